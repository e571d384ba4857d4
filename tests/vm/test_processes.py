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
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import acquired  # noqa: E402
import vm  # noqa: E402
from acquired import COMPLETE, PAGE  # noqa: E402
from case import arguments, run_tests  # noqa: E402
from marked import AREA, make_disk  # noqa: E402
from processes import PATIENCE, Checks  # noqa: E402
from test_swap import AREA_SIZE, WANTED_PAGES  # noqa: E402

# A hundred processes, and a program that wants more than is left beside them.
SLEEPERS = 100
COST_RAM_MIB = 256
COST_PAGES = (112 << 20) // PAGE

HELD_PAGES = 64


class InGuest(unittest.TestCase):
    ram_mib, machine = vm.RAM_MIB, vm.Machine()

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
        }, disk=disk, ram_mib=cls.ram_mib, machine=cls.machine)
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


class Processes(InGuest, Checks):
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

    def programs(self):
        return {self.holder: 'holder', self.pressure: 'pressure', self.shell: 'sh'}

    # --- tests ---

    def test_1_walk_is_pagemap(self):
        self.check_walk({1: 'init', self.shell: 'a shell', self.pressure: 'pressure'})

    def test_2_list_and_scan_agree(self):
        """Live; again and again, with what ramseal before has left behind in free memory."""
        self.guest.check(f'kill -CONT {self.pressure}')
        self.addCleanup(self.guest.check, f'kill -STOP {self.pressure}')
        for _ in range(3):
            first = self.processes_of_the_guest()
            container, log = self.acquire_live('--no-pagefile')
            self.check_list_and_scan(container, log, first, self.processes_of_the_guest(), self.programs())

    def test_3_unlinked_process_is_found(self):
        self.check_unlinked(self.holder, HELD_PAGES)

    def test_4_hidden_from_the_system(self):
        show = self.hide(self.holder)
        try:
            container, log = self.acquire_live('--no-pagefile')
        finally:
            show()
        self.check_hidden(container, log, self.holder, 'holder')

    # --- images ---

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
    ram_mib, machine = COST_RAM_MIB, vm.MEASURED

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
