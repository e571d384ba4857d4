# SPDX-License-Identifier: Apache-2.0
"""
Address spaces in a running Debian kernel: our walk beside the kernel's own account of its mappings, and the
process list beside the scan for roots. For tests of a guest; test_processes.py has all of these checks, and
test_live.py and test_swap.py some, on machines and containers that they have anyway.
"""

import csv
import json
import struct
import time

import acquired
from acquired import COMPLETE, PAGE, Lime
from kernel_structs import Kernel

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
    of each process that pagemap does not speak of: {pid: {page}}. It passes over mappings of what are no pages
    of a process (VM_PFNMAP, mm/pagewalk.c): [vvar] is one on 6.1 and 6.12; on 7.3 neither it nor [vvar_vclock] is.
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
        if len(text) - at < 8 * count:
            return rounds, silent
        entries = struct.unpack_from(f'<{count}Q', text, at)
        at += 8 * count
        places = {first + i: place for i, e in enumerate(entries) if (place := place_in_pagemap(e))}
        if line[3].startswith('[vvar') and not places:
            silent.setdefault(pid, set()).update(range(first, first + count))
        of.setdefault(pid, {}).update(places)


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


class Checks:
    """For a test with `guest`, `work` and `ram`."""

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
        """
        {pid: is a kernel thread}, by /proc/PID/stat; without what has ended (proc(5)). Where only its first thread has,
        that is a zombie, too, but not the only thread.
        """
        stat = self.guest.check('cat /proc/[0-9]*/stat 2>/dev/null; true')
        found = {}
        for line in stat.splitlines():
            pid, rest = line.split(' (', 1)
            state, *fields = rest.rsplit(') ', 1)[1].split()
            flags, threads = int(fields[5]), int(fields[16])
            if state not in 'ZX' or threads > 1:
                found[int(pid)] = bool(flags & PF_KTHREAD)
        return found

    def check_agreement(self, line):
        """List and scan of that pass name the same address spaces."""
        self.assertEqual(line['process_list'], 'closed')
        scan = line['scan']
        self.assertTrue(scan['complete'])
        self.assertEqual((scan['hidden'], scan['missed']), (0, 0), scan)
        self.assertEqual([s for s in line['spaces'] if not s['listed'] and not s['kernel']], [])

    def check_two_sides(self, line, first, last, programs):
        """What the kernel's list has, and what /proc said to ramseal: no difference is told."""
        compared = line['processes_compared']
        self.assertEqual([compared[key] for key in ('kernel_only', 'system_only', 'renamed')],
                         [[], [], []])
        self.assertEqual(compared['agree'], line['process_list'] == 'closed')
        told = {p['pid']: p['name'] for p in compared['system_list']}
        self.assertEqual(len(told), compared['system'])
        self.assertGreaterEqual(set(told), {pid for pid in first if pid in last})
        self.assertEqual({pid: told[pid] for pid in programs}, programs)
        # It is in the kernel's list itself, and in what it was told.
        self.assertIn('ramseal', told.values())

    def check_list_and_scan(self, container, log, first, last, programs):
        """
        Of a live acquisition. `first` and `last`: what processes_of_the_guest() said before and after it;
        `programs`: {pid: name} of some that run all the while.
        """
        lines = table_lines(container)
        self.check_agreement(lines['after'])
        events = [line.get('event') for line in log]
        self.assertNotIn('hidden-address-spaces', events)
        self.assertNotIn('processes-differ', events)
        for line in lines.values():
            self.check_two_sides(line, first, last, programs)
        self.assertIsNone(lines['before']['scan'])
        by_pid = {s['pid']: s for s in lines['after']['spaces'] if s['listed']}
        stayed = {pid for pid in first if first[pid] == last.get(pid)}
        self.assertGreaterEqual(stayed, {1, *programs})
        self.assertGreater(len(stayed), 30)
        for pid in stayed:
            self.assertEqual('dtb' in by_pid[pid], not first[pid], by_pid[pid])
            if not first[pid]:
                self.assertTrue(by_pid[pid]['scanned'], by_pid[pid])
        scan = lines['after']['scan']
        print(f'note: list and scan: {len(by_pid)} processes, {scan["roots"]} roots, '
              f'{scan["copies"]} copies of roots, {scan["idle"]} idle, {scan["hidden"]} hidden, '
              f'{scan["missed"]} missed')

    def hide(self, pid):
        """From /proc, until the returned function is called: an empty folder lies over its own."""
        name = f'/proc/{pid}'
        self.guest.check(f'mount -t tmpfs none {name}')
        return lambda: self.guest.check(f'umount {name}')

    def check_hidden(self, container, log, pid, name):
        """It was hidden from /proc during a live acquisition, and nobody else was."""
        self.assertIn('processes-differ', [line.get('event') for line in log])
        for line in table_lines(container).values():
            compared = line['processes_compared']
            self.assertFalse(compared['agree'])
            self.assertEqual(compared['kernel_only'], [{'pid': pid, 'name': name}])
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

    def check_unlinked(self, pid, pages):
        """A process that is taken out of the kernel's list is found. `pages`: that it holds at least."""
        kernel = self.kernel()

        # With nothing changed, list and scan agree, and the list is as Python reads it.
        lime, line = self.quiet_memory()
        self.check_agreement(line)
        spaces = {s['pid']: s for s in line['spaces'] if s['listed']}
        tasks = {task.pid: task for task in kernel.tasks(lime)}
        self.assertEqual({pid: s['name'] for pid, s in spaces.items()},
                         {pid: task.name for pid, task in tasks.items()})
        root = spaces[pid]['dtb']

        changed = lime.copy(self.work / 'unlinked.lime')
        self.addCleanup(changed.path.unlink)
        kernel.unlink(changed, tasks[pid])
        container, log = self.acquire_file(changed)
        lines = table_lines(container)
        self.assertEqual(lines['after']['process_list'], 'closed')
        self.assertEqual({s['pid'] for s in lines['after']['spaces'] if s['listed']},
                         set(spaces) - {pid})
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
        self.assertGreaterEqual(space['copies']['image']['states']['valid'], pages)

    def check_walk(self, names):
        """
        Present and swapped pages of processes that stand still, {pid: name}, are the kernel's, exactly. The
        last has many of both.
        """
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
