#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What processes of a simulated machine hold, in containers: that it is captured as it is, and that the 2015
paper's table of a heap's pages comes out again. Usage: test_inside.py RAMSEAL SIM_TRUTH
"""
import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest

import heap_truth
import simulated
from sampled import sample
from simulated import output_of, truth, wrong

RAMSEAL, simulated.SIM_TRUTH = (os.path.abspath(p) for p in sys.argv[1:3])
simulated.RAMSEAL = RAMSEAL
SMALL = ('desktop,ram=128M,allocated=40M,resident=24M,trimmed=14M,others=30M,processes=10,cache=8M,'
         'pressure=100,bandwidth=80M,pagefile0=96M,pagefile1=64M,live_files=1,inside=1,heaps=3,heap_leaks=20')


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix='ramseal-inside-')
        self.addCleanup(self.folder.cleanup)
        self.container, self.account, self.held = (
            os.path.join(self.folder.name, n) for n in ('a.rsz', 'a.csv', 'held.csv'))

    def acquire(self, spec, *options):
        return simulated.acquire(f'{spec},process_truth={self.held}', self.container, self.account, *options)

    def lines(self, kind):
        """The lines of the account of what processes hold, of one kind."""
        with open(self.held) as f:
            return [row[1:] for row in csv.reader(f) if row[0] == kind]


class Inside(Case):
    def test_nothing_is_wrong_where_nothing_moves(self):
        for windows in sample((7, 10)):
            with self.subTest(windows):
                self.acquire(f'{SMALL},windows={windows},activity=0', '--pagefile', 'guided')
                for of in truth(self.container, self.account)['all'].values():
                    self.assertGreater(of['right'], 1000)
                    self.assertEqual(wrong(of), 0)

    def test_hardly_anything_is_wrong_where_it_moves(self):
        self.acquire(f'{SMALL},activity=300', '--pagefile', 'guided', '--order', 'guided')
        of = truth(self.container, self.account)['all']
        self.assertGreater(sum(v['right'] for v in of.values()), 20000)
        self.assertLess(sum(v['other'] for v in of.values()), 50)

    def test_stack_traces_are_told_for_every_block(self):
        for windows in sample((7, 10)):
            with self.subTest(windows):
                self.acquire(f'{SMALL},windows={windows},activity=0,heap_ust=1')
                told = heap_truth.Heaps(self.held)
                modules = [(row[0], int(row[1], 0), int(row[2], 0)) for row in self.lines('module')]
                for pid in told.pids:
                    self.assertEqual(told.traces[pid].keys(), told.busy[pid].keys())
                    entries = told.entries[pid]
                    unknown = [a for a, t in told.traces[pid].items() if t is None]
                    self.assertLess(len(unknown), len(told.traces[pid]) / 5)
                    self.assertGreater(len(unknown), 0)
                    self.assertLessEqual({t for t in told.traces[pid].values() if t}, entries.keys())
                    for frames in entries.values():
                        self.assertIn(len(frames), range(4, 32))
                        for frame in frames:
                            self.assertTrue(any(of == pid and base + 0x1000 <= frame < base + size
                                                for of, base, size in modules))

    def test_what_threads_alone_lead_to_is_no_leak(self):
        for windows in sample((7, 10)):
            with self.subTest(windows):
                self.acquire(f'{SMALL},windows={windows},activity=0,stack_roots=40')
                told = heap_truth.Heaps(self.held)
                threads = {}
                for row in self.lines('thread'):
                    threads.setdefault(row[0], []).append((int(row[7], 0), int(row[5], 0)))
                for pid in told.pids:
                    roots = told.stack_roots[pid]
                    self.assertGreaterEqual(len(roots), 30)
                    self.assertEqual({where for where, _ in roots.values()},
                                     {'user-stack', 'register', 'kernel-stack'})
                    for address, (where, at) in roots.items():
                        self.assertIn(address, told.busy[pid])
                        self.assertNotIn(address, told.leaked[pid])
                        self.assertNotIn(address, told.referrers[pid])
                        if where == 'user-stack':
                            self.assertTrue(any(rsp <= at < base for rsp, base in threads[pid]))
                for address, (_, at) in told.stack_roots[told.pids[0]].items():
                    done = subprocess.run([RAMSEAL, 'read', self.container, '--pid', told.pids[0], '-a', hex(at),
                                           '-n', '8', '-q', '-o', '-'], capture_output=True, timeout=900)
                    self.assertEqual(int.from_bytes(done.stdout, 'little'), address, done.stderr)

    def test_account_changes_nothing(self):
        with_account = self.acquire(SMALL)['root']
        alone = simulated.acquire(SMALL, self.container, self.account)['root']
        self.assertEqual(with_account, alone)


class Paper(Case):
    PID = 1148

    def heap_states(self):
        """The pages of this process's heaps by their states, as `ramseal vad` sees them."""
        found = json.loads(output_of(RAMSEAL, 'vad', '-q', '--pages', '--json', '-p', self.PID, self.container))
        heaps = {int(first, 16): int(last, 16)
                 for pid, _, first, last in self.lines('heap-region') if int(pid) == self.PID}
        sums = {}
        for vad in found['vads']:
            if int(vad['start'], 16) not in heaps:
                continue
            self.assertEqual(int(vad['end'], 16), heaps.pop(int(vad['start'], 16)))
            for state, n in vad['counts']['states'].items():
                sums[state] = sums.get(state, 0) + n
        self.assertEqual(heaps, {})
        return sums

    def test_table_of_the_pages(self):
        """
        3,286 pages: 457 valid, 144 in transition, 431 in the page file, 2,254 of zeros, which are those that
        were never touched and those that are only reserved. Without the page file 431 of 1,032 are lost.
        """
        for files, paged in ((0, 'not_captured'), (1, 'page_file')):
            self.acquire(f'cohen2015heaps,live_files={files}')
            sums = self.heap_states()
            zeros = sums.pop('demand_zero') + sums.pop('reserved')
            self.assertEqual({state: n for state, n in sums.items() if n},
                             {'valid': 457, 'transition': 144, paged: 431})
            self.assertEqual(zeros, 2254)

    def test_every_seed_has_it(self):
        for seed in sample((2, 3)):
            self.acquire(f'cohen2015heaps,seed={seed}')
            states = [[int(n) for n in row[3:]] for row in self.lines('pages') if int(row[0]) == self.PID and
                      row[1] in {region[2] for region in self.lines('heap-region') if int(region[0]) == self.PID}]
            valid, transition, paged, zero, none = (sum(column) for column in zip(*states))
            self.assertEqual((valid, transition, paged, zero + none), (457, 144, 431, 2254))


if __name__ == '__main__':
    del sys.argv[1:3]
    unittest.main(verbosity=2)
