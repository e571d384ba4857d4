#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Address spaces in a running Debian kernel: our walk beside the kernel's own account of its mappings,
the process list beside the scan for roots, and what the page tables cost.

    test_processes.py KERNEL-FOLDER RAMSEAL PRESSURE HOLDER
        [unittest's arguments, such as Processes.test_1_walk_is_pagemap]

Two boots serve the tests: the costs want a guest with more RAM. A line that begins with "note: " is
a measurement; build/test shows it.
"""

import csv
import json
import random
import struct
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import acquired  # noqa: E402
import vm  # noqa: E402
from acquired import COMPLETE, PAGE, Lime  # noqa: E402
from case import arguments, run_tests  # noqa: E402
from kernel_structs import Kernel  # noqa: E402
from marked import AREA, make_disk  # noqa: E402
from test_swap import AREA_SIZE, WANTED_PAGES  # noqa: E402

# A hundred processes, and a program that wants more than is left beside them.
SLEEPERS = 100
COST_RAM_MIB = 256
COST_PAGES = (112 << 20) // PAGE

HELD_PAGES = 64

# How often the kernel may move a page of a process that stands still before that is a failure.
ROUNDS = 40

QUIET_ATTEMPTS = 6

# For what takes its time in a guest that swaps, on a machine that is busy with other things.
PATIENCE = 900

# include/linux/sched.h
PF_KTHREAD = 0x00200000

# Documentation/admin-guide/mm/pagemap.rst
PAGEMAP_PRESENT, PAGEMAP_SWAP = 1 << 63, 1 << 62
PAGEMAP_FRAME = (1 << 55) - 1


def said_by_pagemaps(text):
    """
    The whole rounds in what guest/pagemaps has written so far: [{pid: {page: place}}], and the pages
    of each process that pagemap does not speak of: {pid: {page}}.
    """
    rounds, of, silent, at = [], {}, {}, 0
    while True:
        end = text.find(b'\n', at)
        if end < 0:
            return rounds, silent
        line = text[at:end].decode().split()
        at = end + 1
        if line == ['end']:
            rounds.append(of)
            of = {}
            continue
        pid, first, count = map(int, line[:3])
        if line[3].startswith('[vvar'):
            silent.setdefault(pid, set()).update(range(first, first + count))
            continue
        if len(text) - at < 8 * count:
            return rounds, silent
        entries = struct.unpack_from(f'<{count}Q', text, at)
        at += 8 * count
        of.setdefault(pid, {}).update((first + i, place_in_pagemap(e))
                                      for i, e in enumerate(entries) if place_in_pagemap(e))


def place_in_pagemap(entry):
    if entry & PAGEMAP_PRESENT:
        return 'frame', entry & PAGEMAP_FRAME
    if entry & PAGEMAP_SWAP:
        return 'swap', entry & 0x1f, (entry & PAGEMAP_FRAME) >> 5
    return None


def place_in_row(row):
    if row['state'] in ('valid', 'prot-none'):
        return 'frame', int(row['frame'], 16) // PAGE
    if row['state'] == 'swap':
        return 'swap', int(row['file']), int(row['slot'], 16)
    return row['state'], row['raw']


def walked(container, pid):
    """{copy: {page: place}} of a process's user half, as `ramseal smear` walks its tables."""
    done = acquired.ramseal('smear', '--mappings', pid, container)
    assert done.returncode == COMPLETE, done.stderr
    found = {}
    for row in csv.DictReader(done.stdout.splitlines()):
        assert row['pages'] == '1', row
        found.setdefault(row['copy'], {})[int(row['va'], 16) // PAGE] = place_in_row(row)
    return found


def table_lines(container):
    """{'before': line, 'after': line} of the manifest."""
    done = acquired.ramseal('extract', '--quiet', '--stream', 'manifest', '-o', '-', container)
    assert done.returncode == COMPLETE, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line['when']: line for line in lines if line['event'] == 'tables'}


class InGuest(unittest.TestCase):
    ram_mib = vm.RAM_MIB

    @classmethod
    def setUpClass(cls):
        cls.work = Path(cls.__name__.lower()).resolve()
        disk = cls.work.with_suffix('.disk')
        make_disk(disk, AREA_SIZE)
        cls.guest = vm.Guest(KERNEL, cls.work, {
            'bin/ramseal': RAMSEAL,
            'bin/pressure': PRESSURE,
            'bin/holder': HOLDER,
            'bin/pagemaps': vm.HERE / 'guest/pagemaps',
        }, disk=disk, ram_mib=cls.ram_mib)
        cls.guest.__enter__()
        cls.addClassCleanup(cls.guest.__exit__)
        cls.guest.check(f'modprobe virtio_blk && mkswap {AREA} && swapon {AREA}')

    @classmethod
    def start(cls, command):
        """Starts a program of ours that says its PID when it is ready."""
        said = cls.guest.check(f'rm -f /tmp/said; {command} >/tmp/said & '
                               'while ! [ -s /tmp/said ]; do sleep 0.1; done; cat /tmp/said',
                               timeout=PATIENCE)
        return int(said.split()[0])

    def acquire_live(self, options=''):
        path = self.work / f'{self.id().split(".")[-1]}.rsz'
        done = self.guest.run('ramseal acquire --log-json --quiet --source kcore --pagetables both '
                              f'{options} -o - >/dev/container', container=path,
                              timeout=PATIENCE)
        self.assertEqual(done.code, COMPLETE, done.err)
        return path, [json.loads(line) for line in done.err.splitlines()]


class Processes(InGuest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.ram = vm.whole_pages(cls.guest.iomem('System RAM'))
        cls.holder = cls.start(f'holder {HELD_PAGES}')
        cls.pressure = cls.start(f'pressure {WANTED_PAGES}')
        cls.guest.check(f'kill -STOP {cls.pressure}')
        # A shell that has run a command and now stands still.
        cls.shell = int(cls.guest.check('sh -c "echo; kill -STOP \\$\\$; exit" >/dev/null & echo $!'))
        cls.guest.check(f'until grep -q "^State:.T" /proc/{cls.shell}/status; do sleep 0.1; done')

    # --- helpers ---

    def acquire_file(self, lime):
        path = lime.path.with_suffix('.rsz')
        done = acquired.ramseal('acquire', '--log-json', '--quiet', '--source', f'file:{lime.path}',
                                '--pagetables', 'both', '-o', path)
        self.assertEqual(done.returncode, COMPLETE, done.stderr)
        self.addCleanup(path.unlink)
        return path, [json.loads(line) for line in done.stderr.splitlines()]

    def said_so_far(self, path, rounds):
        """Waits for so many whole rounds of guest/pagemaps."""
        deadline = time.monotonic() + PATIENCE
        while True:
            said, silent = said_by_pagemaps(path.read_bytes())
            if len(said) >= rounds:
                return said, silent
            self.assertLess(time.monotonic(), deadline, 'guest/pagemaps says nothing')
            time.sleep(0.1)

    def stopped_memory(self, pids):
        """
        The memory of the stopped VM, and what pagemap said of these processes: the same before as
        after, which it mostly is at once. init waits for a command all the while.
        """
        path = self.work / 'pagemaps'
        self.guest.execute('chardev-change', id='container',
                           backend={'type': 'file', 'data': {'out': str(path)}})
        program = self.guest.check(f'pagemaps {" ".join(map(str, pids))} '
                                   '>/dev/container 2>/dev/null & echo $!').strip()
        try:
            for _ in range(ROUNDS):
                rounds = len(self.said_so_far(path, 1)[0])
                before = self.said_so_far(path, rounds + 1)[0][rounds]
                with self.guest.stopped():
                    lime = Lime(self.guest, self.work / 'stopped.lime', self.ram)
                    # The round that is under way may have begun before the VM stopped.
                    rounds = len(said_by_pagemaps(path.read_bytes())[0])
                said, silent = self.said_so_far(path, rounds + 2)
                if said[rounds + 1] == before:
                    self.addCleanup(lime.path.unlink)
                    return lime, before, silent
        finally:
            # Its last dd may still be at it, and only one can have the port open.
            self.guest.check(f'kill {program}; until (: >/dev/container) 2>/dev/null; do sleep 0.1; '
                             'done')
            self.guest.execute('chardev-change', id='container',
                               backend={'type': 'null', 'data': {}})
        self.fail('the kernel moves pages of processes that stand still')

    def kernel(self):
        btf = self.work / 'btf'
        self.guest.check('cat /sys/kernel/btf/vmlinux >/dev/container', container=btf)
        symbols = self.guest.check('grep -E " (_text|init_task|page_offset_base)$" /proc/kallsyms')
        (code, _), = self.guest.iomem('Kernel code')
        return Kernel(btf.read_bytes(), symbols, code)

    def processes_of_the_guest(self):
        """{pid: is a kernel thread}, by /proc/PID/stat; without what has ended (proc(5))."""
        stat = self.guest.check('cat /proc/[0-9]*/stat 2>/dev/null; true')
        found = {}
        for line in stat.splitlines():
            pid, rest = line.split(' (', 1)
            state, *fields = rest.rsplit(') ', 1)[1].split()
            if state not in 'ZX':
                found[int(pid)] = bool(int(fields[5]) & PF_KTHREAD)
        return found

    def check_agreement(self, line):
        """List and scan of that pass name the same address spaces."""
        self.assertEqual(line['process_list'], 'closed')
        scan = line['scan']
        self.assertTrue(scan['complete'])
        self.assertEqual((scan['hidden'], scan['missed']), (0, 0), scan)
        self.assertEqual([s for s in line['spaces'] if not s['listed'] and not s['kernel']], [])

    def check_two_sides(self, line, first, last):
        """What the kernel's list has, and what /proc said to ramseal: no difference is told."""
        compared = line['processes_compared']
        self.assertEqual([compared[key] for key in ('kernel_only', 'system_only', 'renamed')],
                         [[], [], []])
        self.assertEqual(compared['agree'], line['process_list'] == 'closed')
        told = {p['pid']: p['name'] for p in compared['system_list']}
        self.assertEqual(len(told), compared['system'])
        self.assertGreaterEqual(set(told), {pid for pid in first if pid in last})
        self.assertEqual([told[pid] for pid in (self.holder, self.pressure)],
                         ['holder', 'pressure'])
        # It is in the kernel's list itself, and in what it was told.
        self.assertIn('ramseal', told.values())

    # --- tests ---

    def test_1_walk_is_pagemap(self):
        """Present and swapped pages of processes that stand still are the kernel's, exactly."""
        names = {1: 'init', self.shell: 'a shell', self.pressure: 'pressure'}
        lime, said, silent = self.stopped_memory(names)
        container, _ = self.acquire_file(lime)
        for pid, name in names.items():
            found = walked(container, pid)
            self.assertEqual(set(found), {'image'})  # of an image there is no other
            for copy, pages in found.items():
                ours = {page: place for page, place in pages.items()
                        if page not in silent.get(pid, ())}
                self.assertEqual(ours, said[pid], f'{name}, {copy}')
            kinds = [place[0] for place in said[pid].values()]
            print(f'note: pagemap: {name}: {kinds.count("frame")} present and '
                  f'{kinds.count("swap")} swapped pages, the same by our walk')
            self.assertGreater(kinds.count('frame'), 20)
        self.assertGreater(kinds.count('frame'), 1000)
        self.assertGreater(kinds.count('swap'), 1000)

    def test_2_list_and_scan_agree(self):
        """Live; again and again, with what ramseal before has left behind in free memory."""
        self.guest.check(f'kill -CONT {self.pressure}')
        self.addCleanup(self.guest.check, f'kill -STOP {self.pressure}')
        for _ in range(3):
            first = self.processes_of_the_guest()
            container, log = self.acquire_live('--no-pagefile')
            last = self.processes_of_the_guest()
            lines = table_lines(container)
            self.check_agreement(lines['after'])
            events = [line.get('event') for line in log]
            self.assertNotIn('hidden-address-spaces', events)
            self.assertNotIn('processes-differ', events)
            for line in lines.values():
                self.check_two_sides(line, first, last)
            self.assertIsNone(lines['before']['scan'])
            by_pid = {s['pid']: s for s in lines['after']['spaces'] if s['listed']}
            stayed = {pid for pid in first if first[pid] == last.get(pid)}
            self.assertGreaterEqual(stayed, {1, self.shell, self.pressure, self.holder})
            self.assertGreater(len(stayed), 30)
            for pid in stayed:
                self.assertEqual('dtb' in by_pid[pid], not first[pid], by_pid[pid])
                if not first[pid]:
                    self.assertTrue(by_pid[pid]['scanned'], by_pid[pid])
            scan = lines['after']['scan']
            print(f'note: list and scan: {len(by_pid)} processes, {scan["roots"]} roots, '
                  f'{scan["copies"]} copies of roots, {scan["idle"]} idle, {scan["hidden"]} hidden, '
                  f'{scan["missed"]} missed')

    def test_4_hidden_from_the_system(self):
        """A process that /proc does not show: an empty folder lies over its own."""
        name = f'/proc/{self.holder}'
        self.guest.check(f'mount -t tmpfs none {name}')
        try:
            container, log = self.acquire_live('--no-pagefile')
        finally:
            self.guest.check(f'umount {name}')
        self.assertIn('processes-differ', [line.get('event') for line in log])
        for line in table_lines(container).values():
            compared = line['processes_compared']
            self.assertFalse(compared['agree'])
            self.assertEqual(compared['kernel_only'], [{'pid': self.holder, 'name': 'holder'}])
            self.assertEqual((compared['system_only'], compared['renamed']), ([], []))
        done = acquired.ramseal('info', container)
        self.assertEqual(done.returncode, COMPLETE, done.stderr)
        self.assertIn('1 only in the kernel\'s, 0 only in the system\'s', done.stdout)

    def quiet_memory(self):
        """
        The memory of the stopped VM, and the manifest's line about its tables. A process that is
        being forked, or a program that is being started, is in no list for a moment; init may still
        be about it when its answer to a command is here, but not for ever.
        """
        for attempt in range(QUIET_ATTEMPTS):
            with self.guest.stopped():
                lime = Lime(self.guest, self.work / f'linked{attempt}.lime', self.ram)
            self.addCleanup(lime.path.unlink)
            line = table_lines(self.acquire_file(lime)[0])['after']
            if line['process_list'] != 'closed' or not line['scan']['hidden']:
                break
        return lime, line

    def test_3_unlinked_process_is_found(self):
        kernel = self.kernel()

        # With nothing changed, list and scan agree, and the list is as Python reads it.
        lime, line = self.quiet_memory()
        self.check_agreement(line)
        spaces = {s['pid']: s for s in line['spaces'] if s['listed']}
        tasks = {task.pid: task for task in kernel.tasks(lime)}
        self.assertEqual({pid: s['name'] for pid, s in spaces.items()},
                         {pid: task.name for pid, task in tasks.items()})
        root = spaces[self.holder]['dtb']

        changed = lime.copy(self.work / 'unlinked.lime')
        self.addCleanup(changed.path.unlink)
        kernel.unlink(changed, tasks[self.holder])
        container, log = self.acquire_file(changed)
        lines = table_lines(container)
        self.assertEqual(lines['after']['process_list'], 'closed')
        self.assertEqual({s['pid'] for s in lines['after']['spaces'] if s['listed']},
                         set(spaces) - {self.holder})
        self.assertEqual(lines['after']['scan']['hidden'], 1)
        hidden = [s for s in lines['after']['spaces'] if not s['listed'] and not s['kernel']]
        self.assertEqual([(s['dtb'], s['scanned']) for s in hidden], [(root, True)])
        self.assertIn('hidden-address-spaces', [line.get('event') for line in log])

        # Its tables were stored with the others, and its pages are counted.
        self.assertEqual(lines['after']['tables'], line['tables'])
        done = acquired.ramseal('smear', '--json', container)
        self.assertEqual(done.returncode, COMPLETE, done.stderr)
        space, = (s for s in json.loads(done.stdout)['spaces'] if not s['listed'])
        self.assertEqual(space['dtb'], root)
        self.assertGreaterEqual(space['copies']['image']['states']['valid'], HELD_PAGES)


    def acquire_image(self, lime, *options):
        """As an analyst does, who has nothing but the image: {'info':, 'path':}"""
        path = lime.path.with_suffix('.image.rsz')
        done = acquired.ramseal('acquire', '--quiet', '--force', '--source', f'file:{lime.path}',
                                *options, '-o', path)
        self.assertEqual(done.returncode, COMPLETE, done.stderr)
        self.addCleanup(path.unlink, missing_ok=True)
        return path, json.loads(acquired.ramseal('info', '--json', path).stdout)

    def check_part_of(self, lime, what, lacks, whole):
        """An image that lacks pages: what is found of it is as in the whole, and nothing is hidden."""
        part = lime.part(self.work / 'part.lime', lacks)
        _, info = self.acquire_image(part)
        part.path.unlink()
        system = info.get('system', {'os': 'unknown'})
        if system['os'] != 'unknown':
            for key in ('os', 'kernel_dtb', 'levels', 'kernel_release'):
                self.assertEqual(system[key], whole['system'][key])
            self.assertEqual((system['scan']['hidden'], system['scan']['missed']), (0, 0), system)
        true = {s['dtb']: s for s in whole['address_spaces'] if 'dtb' in s}
        for space in info.get('address_spaces', []):
            if 'dtb' in space and space['listed']:
                self.assertEqual([space[key] for key in ('pid', 'name')],
                                 [true[space['dtb']][key] for key in ('pid', 'name')])
        print(f'note: an image that lacks {what}: {system["os"]}, process list '
              f'{system.get("process_list", "not looked for")}, {system.get("processes", 0)} of '
              f'{whole["system"]["processes"]} processes')
        return system['os']

    def test_5_what_an_image_says(self):
        """Its kernel's name and release, its processes; with and without stored tables; and in part."""
        lime, _ = self.quiet_memory()
        path, info = self.acquire_image(lime)
        system = info['system']
        self.assertEqual(system['kernel_release'], self.guest.check('uname -r').strip())
        self.assertEqual(system['host_name'], self.guest.check('uname -n').strip())
        self.assertNotIn('host', info)
        holder, = (s for s in info['address_spaces'] if s.get('pid') == self.holder)
        rows = acquired.ramseal('smear', '--mappings', self.holder, path).stdout.splitlines()
        va = next(row['va'] for row in csv.DictReader(rows) if row['state'] == 'valid')
        done = acquired.ramseal('read', '--json', '--pid', self.holder, '--va', va, path)
        self.assertEqual(done.returncode, COMPLETE, done.stderr)
        row = json.loads(done.stdout)
        self.assertEqual(row['trust'], 'not-applicable')

        # Whoever knows where the tables are needs no list: the kernel's notes are not there either.
        bare, _ = self.acquire_image(lime, '--pagetables', 'none')
        done = acquired.ramseal('read', '--json', '--dtb', holder['dtb'], '--va', va, bare)
        self.assertEqual(done.returncode, COMPLETE, done.stderr)
        self.assertNotIn('assumed', done.stderr)
        same = json.loads(done.stdout)
        self.assertEqual([same[key] for key in ('entry', 'frame', 'state')],
                         [row[key] for key in ('entry', 'frame', 'state')])
        chance = random.Random(1)
        self.check_part_of(lime, 'its end', lambda n, count: n > 0.9 * count, info)
        for percent in (1, 10):
            found = self.check_part_of(lime, f'{percent} % of its pages',
                                       lambda n, count: chance.random() * 100 < percent, info)
            # Its kernel is known by VMCOREINFO, in a page of its own, and by either of two others.
            self.assertIn(found, ('linux', 'unknown'))


class Cost(InGuest):
    ram_mib = COST_RAM_MIB

    def test_hundred_processes(self):
        """How long the passes take. Nothing is asserted of the time."""
        self.guest.check(f'for i in $(seq {SLEEPERS}); do sleep 100000 & done')
        pressure = self.start(f'pressure {COST_PAGES}')
        _, log = self.acquire_live('--pagefile concurrent')
        self.guest.check(f'kill -0 {pressure}')
        summary, = (line for line in log if line['event'] == 'summary')
        whole, both = summary['duration_ns'], 0
        for when in ('before', 'after'):
            line = summary[f'tables_{when}']
            self.assertEqual(line['process_list'], 'closed')
            self.assertGreater(line['processes'], SLEEPERS)
            self.assertGreater(line['tables'], 4 * SLEEPERS)
            self.assertFalse(line['cut'])
            took = line['end_ns'] - line['start_ns']
            both += took
            print(f'note: tables: {when}: {line["processes"]} processes, {line["tables"]} table pages '
                  f'in {took / 1e6:.0f} ms, the search for them {line["search_ns"] / 1e6:.0f} ms of it')
        print(f'note: tables: both passes {100 * both / whole:.1f} % of the acquisition, which took '
              f'{whole / 1e9:.2f} s')


def main():
    global KERNEL, RAMSEAL, PRESSURE, HOLDER
    KERNEL, RAMSEAL, PRESSURE, HOLDER = arguments(4)
    run_tests(4)


if __name__ == '__main__':
    main()
