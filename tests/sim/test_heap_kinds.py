#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
ramseal heap on simulated machines whose processes have segment heaps or page heap, beside the machine's
own account of every allocation.

	test_heap_kinds.py RAMSEAL
"""

import collections
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import heap_truth  # noqa: E402: beside this
from machine_case import HeapCase, run  # noqa: E402
from sampled import sample  # noqa: E402

BUILDS = sample((17763, 18362, 19045, 22000, 22621, 22631))
SEGMENT = 'ram=96M,processes=4,heaps=3,heap_blocks=5000,heap_lfh=40,heap_leaks=20,segment_heap=1,windows=10'
REGISTRY = SEGMENT.replace('segment_heap=1', 'segment_heap=2')

PAGE = 'ram=128M,processes=4,heaps=3,heap_blocks=3000,heap_lfh=40,heap_leaks=20'
HEADER = 0x40  # _DPH_BLOCK_INFORMATION


class Kinds(HeapCase):
    def acquire(self, settings):
        super().acquire(settings)
        return heap_truth.Heaps(self.account)

    def assert_same(self, got, true):
        """Two dictionaries, which are too large to be printed."""
        wrong = [(hex(a), got.get(a), true.get(a)) for a in got.keys() | true.keys() if got.get(a) != true.get(a)]
        self.assertEqual(wrong[:5], [], f'{len(wrong)} of {len(true)}')

    def test_every_allocation_of_a_segment_heap(self):
        for build in BUILDS:
            with self.subTest(build=build):
                self.check_every_allocation(f'{SEGMENT},build={build}', build)

    def test_every_allocation_of_one_that_the_registry_switched_on(self):
        """A header lies before each block's data, which nothing else says."""
        for build in sample((17763, 18362, 19045)):
            with self.subTest(build=build):
                self.check_every_allocation(f'{REGISTRY},build={build}', build)

    def check_every_allocation(self, settings, build):
        truth = self.acquire(settings)
        for pid in truth.pids:
            got = self.blocks(pid)
            self.assert_same({a: (r['requested'], r['place']) for a, r in got.items()}, truth.busy[pid])
            said = json.loads(self.ask(pid, '--json'))
            self.assertEqual([int(h['address'], 0) for h in said['heaps']], sorted(truth.heaps[pid]))
            kinds = collections.Counter(h['kind'] for h in said['heaps'])
            self.assertEqual(kinds['segment'], 1)
            for h in said['heaps']:
                self.assertEqual((h['experimental'], h['refused'], h['nearest_layout']), (False, None, None))
                self.assertEqual(h['contradictions'] + h['lost'] + h['unlinked'] + h['containers_lost'], 0)
                if h['kind'] == 'segment':
                    self.assertEqual(h['layout'], '17763' if build < 20348 else '20348')
                    self.assertEqual(h['key_from'], 'recovered')

    def test_without_the_page_file_nothing_is_invented(self):
        """A page is there, or it is not; and of what is, only what is confirmed is listed."""
        seen = there = 0
        for build, seed, paged in [(b, s, p) for p in (10, 30, 60) for b, s in sample(
                [(b, s) for b in (17763, 19045, 22000) for s in (1, 2, 3)], of=9)]:
            with self.subTest(build=build, seed=seed, paged=paged):
                part, whole = self.check_without_the_page_file(build, seed, paged)
                seen += part
                there += whole
        self.assertGreater(seen, there / 10)
        self.assertLess(seen, there)

    def check_without_the_page_file(self, build, seed, paged):
        truth = self.acquire(f'{SEGMENT},build={build},seed={seed},live_files=0,region_paged={paged},'
                             'region_transition=10')
        own = ('vs', 'segment', 'large')
        seen = there = 0
        for pid in truth.pids:
            done = run('heap', self.container, '--pid', pid, '-A', '--json')
            if done.returncode == 9:
                continue
            self.assertEqual(done.returncode, 3, done.stderr)
            for r in map(json.loads, done.stdout.splitlines()):
                if r['state'] == 'busy':
                    requested, place = truth.busy[pid].get(int(r['address'], 0), (None, None))
                    self.assertEqual(r['place'], place, r)
                    self.assertIn(r['requested'], (requested, None), r)
                    seen += place in own
            there += sum(place in own for _, place in truth.busy[pid].values())
        return seen, there

    def test_leaks_in_segment_heaps(self):
        truth = self.acquire(f'{SEGMENT},build=19045')
        found = 0
        for pid in truth.pids:
            said = json.loads(self.ask(pid, '--leaks', '--json'))
            leaked = {int(a, 0) for g in said['groups'] for a in g['addresses']}
            self.assertEqual(leaked ^ truth.leaked.get(pid, set()), set())
            found += sum(truth.busy[pid][a][1] == 'vs' for a in leaked)
        self.assertGreater(found, 0)

    def page_heap_rows(self, pid, codes=(0,)):
        rows = [json.loads(line) for line in self.ask(pid, '-A', '--json', codes=codes).splitlines()]
        return [r for r in rows if r['place'] == 'page-heap'], [r for r in rows if r['place'] != 'page-heap']

    def test_every_block_of_page_heap(self):
        for windows, build in sample(((7, 7601), (10, 19045))):
            for mode in (1, 2):
                with self.subTest(build=build, mode=mode):
                    truth = self.acquire(f'{PAGE},windows={windows},build={build},page_heap={mode}')
                    self.assertEqual(len(truth.page_blocks), 1)
                    for pid in truth.page_blocks:
                        self.check_page_heap(truth, pid, mode)

    def check_page_heap(self, truth, pid, mode):
        blocks = truth.page_blocks[pid]
        states = collections.Counter(state for _, _, state, _ in blocks.values())
        self.assertTrue(states['busy'] and states['freed'])
        own, others = self.page_heap_rows(pid)
        self.assert_same({int(r['address'], 0): (r['size'], 'busy' if r['state'] == 'busy' else 'freed') for r in own},
                         {a: (size, state) for a, (size, _, state, _) in blocks.items() if state != 'stale'})
        # The chunk that a light block is in is not listed beside it.
        self.assert_same({int(r['address'], 0): r['requested'] for r in others if r['state'] == 'busy'},
                         {a: size for a, (size, place) in truth.busy[pid].items()
                          if a not in blocks and blocks.get(a + HEADER, (0, 0, 'stale'))[2] == 'stale'})
        traces = {int(r['address'], 0): [int(f['address'], 0) for f in r['trace']] for r in own if r['trace']}
        self.assert_same(traces, {a: truth.entries[pid][entry] for a, (_, _, state, entry) in blocks.items()
                                  if entry and state != 'stale'})
        said = json.loads(self.ask(pid, '--json'))
        self.assertTrue(said['global_flag'] & 0x02000000)
        self.assertEqual(mode == 1, any(h['kind'] == 'page heap' and h['blocks'] for h in said['heaps']))
        self.assertIn('page heap is on', self.ask(pid))
        self.assertIn('blocks in missing pages are not counted', self.ask(pid))
        self.assertEqual(self.lost_to_leaks(pid), 0)

    def lost_to_leaks(self, pid, codes=(0,)):
        said = json.loads(self.ask(pid, '--leaks', '--json', codes=codes))
        self.assertFalse(said['all_read'] and said['page_heap_pages_lost'])
        return said['page_heap_pages_lost']

    def test_page_heap_without_the_page_file(self):
        seen = there = lost = 0
        for seed in sample((1, 2, 3)):
            for mode in (1, 2):
                truth = self.acquire(f'{PAGE},windows=10,build=19045,page_heap={mode},seed={seed},live_files=0,'
                                     'region_paged=30,region_transition=10')
                for pid in truth.page_blocks:
                    if run('heap', self.container, '--pid', pid).returncode == 9:
                        continue
                    for r in self.page_heap_rows(pid, codes=(0, 3))[0]:
                        size, _, state, _ = truth.page_blocks[pid].get(int(r['address'], 0), (0, 0, 'none', 0))
                        self.assertEqual((r['size'], r['state'] == 'busy'), (size, state == 'busy'), r)
                        self.assertIn(state, ('busy', 'freed'), r)
                        seen += 1
                    lost += self.lost_to_leaks(pid, codes=(3,)) if mode == 1 else 0
                    there += sum(state != 'stale' for _, _, state, _ in truth.page_blocks[pid].values())
        self.assertGreater(seen, there / 10)
        self.assertLess(seen, there)
        self.assertGreater(lost, 0)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
