#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
ramseal heap --umdh on simulated machines, whose own account of every allocation and of every stack trace it is
compared with. The log is read here by the lines of UMDH's own (a-palchikov/pyumdh af1d937, tests/test.log).

	test_heap_umdh.py RAMSEAL
"""

import collections
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import heap_truth  # noqa: E402: beside this
import process_truth  # noqa: E402: beside this
from machine_case import BUILDS, MachineCase, run  # noqa: E402
from sampled import sample  # noqa: E402

HEAPS = 'ram=96M,processes=4,heaps=3,heap_blocks=2000,heap_lfh=40,heap_leaks=20'
DASHES = '- - - - - - - - - -'
UNTRACED = 1 << 62

Block = collections.namedtuple('Block', 'requested overhead id')


class Log:
    """Strict: what is no line of such a log, or not in its place, is an error."""
    def __init__(self, text):
        head, *rest = re.split(rf'^\*{DASHES} Start of data for heap @ ([0-9A-F]+) {DASHES}\n', text, flags=re.M)
        self.comments, _, modules = head.partition('// Loaded modules:\n//     Base Size Module\n')
        for line in head.splitlines():
            if line and not line.startswith('//'):
                raise ValueError(line)
        self.modules = [(int(m[1], 16), int(m[2], 16), m[3])
                        for m in re.finditer(r'^// +([0-9A-F]+) +([0-9A-F]+) (.*)$', modules, re.M)]
        self.heaps, self.stacks = {}, {}
        for heap, data in zip(rest[::2], rest[1::2]):
            blocks, self.first = {}, {}
            prologue = ('\nREQUESTED bytes + OVERHEAD at ADDRESS by BackTraceID\n     STACK if not already dumped.\n\n'
                        f'*{DASHES} Heap {heap} Hogs {DASHES}\n\n')
            epilogue = f'\n*{DASHES} End of data for heap @ {heap} {DASHES}\n'
            body, _, behind = data.removeprefix(prologue).partition(epilogue)
            if not data.startswith(prologue) or behind.strip() or epilogue not in data or int(heap, 16) in self.heaps:
                raise ValueError(heap)
            self.take(body, blocks)
            self.heaps[int(heap, 16)] = blocks

    def take(self, body, blocks):
        """A stack follows the first block of its ID, between empty lines."""
        seen, stack, last = set(), None, None
        for line in body.split('\n'):
            m = re.fullmatch('([0-9A-F]+) bytes \\+ ([0-9A-F]+) at ([0-9A-F]+) by BackTrace([0-9A-F]+)', line)
            if m:
                if stack is not None:
                    raise ValueError(f'no empty line before {line}')
                requested, overhead, address, last = (int(v, 16) for v in m.groups())
                if address in blocks:
                    raise ValueError(f'twice: {line}')
                fresh = last not in seen
                seen.add(last)
                blocks[address] = Block(requested, overhead, last)
            elif line.startswith('\t'):
                if stack is None and not fresh:
                    raise ValueError(f'a second stack: {line}')
                stack = (stack or []) + [int(line[1:], 16)]
                fresh = False
            elif line:
                raise ValueError(line)
            elif stack is not None:
                if self.stacks.setdefault(last, stack) != stack:
                    raise ValueError(f'two stacks of {last:x}')
                stack = None


class Umdh(MachineCase):
    def acquire(self, settings):
        super().acquire(f'{HEAPS},{settings}')
        return heap_truth.Heaps(self.account)

    def log(self, pid, codes=(0,)):
        done = run('heap', self.container, '--pid', pid, '--umdh')
        self.assertIn(done.returncode, codes, done.stderr)
        return Log(done.stdout.decode())

    def rows(self, pid, codes=(0,)):
        done = run('heap', self.container, '--pid', pid, '-A', '--json')
        self.assertIn(done.returncode, codes, done.stderr)
        rows = map(json.loads, done.stdout.splitlines())
        return {int(r['address'], 0): r for r in rows if r['state'] == 'busy'}

    def check_untraced(self, log, untraced):
        """The same ID is the same heap, size and class."""
        kinds = {}
        for address, (heap, block) in untraced.items():
            self.assertTrue(block.id & UNTRACED)
            stands = log.stacks.get(block.id, [])
            self.assertEqual(kinds.setdefault(block.id, (heap, block.requested, stands)),
                             (heap, block.requested, stands))
            self.assertLessEqual(len(stands), 1)
        kinds = {i: (heap, size, tuple(stands)) for i, (heap, size, stands) in kinds.items()}
        self.assertEqual(len(set(kinds.values())), len(kinds))

    def check(self, truth, process, pid):
        log = self.log(pid)
        self.assertEqual(sorted(log.heaps), sorted(truth.heaps[pid]))
        got = {a: (heap, b) for heap, blocks in log.heaps.items() for a, b in blocks.items()}
        self.assertEqual(len(got), sum(map(len, log.heaps.values())))
        wrong = {a for a in got.keys() | truth.busy[pid].keys()
                 if a not in got or got[a][1].requested != truth.busy[pid].get(a, (None,))[0]}
        self.assertEqual(len(wrong), 0, sorted(map(hex, wrong))[:5])
        rows = self.rows(pid)
        self.assertEqual({a: (int(r['heap'], 0), r['size']) for a, r in rows.items()},
                         {a: (heap, b.requested + b.overhead) for a, (heap, b) in got.items()})
        self.assertEqual([m[:2] for m in log.modules], sorted((m.base, m.size) for m in process.modules))
        for (_, _, path), m in zip(log.modules, sorted(process.modules)):
            self.assertTrue(path.endswith(m.path), (path, m.path))
        traces = truth.traces.get(pid, {})
        traced = {a: truth.entries[pid][traces[a]] for a in got if traces.get(a)}
        self.assertEqual({a for a, (_, b) in got.items() if not b.id & UNTRACED}, set(traced))
        for a, calls in traced.items():
            self.assertEqual(log.stacks[got[a][1].id], calls)
        self.assertEqual(len({got[a][1].id for a in traced}), len(set(map(tuple, traced.values()))))
        untraced = {a: t for a, t in got.items() if a not in traced}
        said = re.search(r'^// (\d+) blocks have no readable stack trace', log.comments, re.M)
        self.assertEqual(int(said[1]) if said else 0, len(untraced))
        self.check_untraced(log, untraced)
        return len(traced), len(untraced)

    def test_every_block_with_its_calls(self):
        for build in BUILDS:
            for ust in sample((0, 1)):
                with self.subTest(build=build, ust=ust):
                    truth = self.acquire(f'windows={7 if build == 7601 else 10},build={build},heap_ust={ust}')
                    processes = process_truth.read(self.account)[1]
                    sums = [self.check(truth, processes[int(pid)], pid) for pid in truth.pids]
                    traced, untraced = map(sum, zip(*sums))
                    self.assertEqual(traced > 0, ust == 1)
                    self.assertGreater(untraced, 0)

    def test_ids_are_the_same_in_each_log(self):
        """Of a machine and of the same without its page file: what is in both has one ID."""
        settings = 'windows=10,build=19045,heap_ust=1,seed=1,region_paged=30,region_transition=10'
        truth = self.acquire(settings)
        whole = {pid: self.log(pid) for pid in truth.pids}
        self.acquire(f'{settings},live_files=0')
        both = 0
        for pid in truth.pids:
            done = run('heap', self.container, '--pid', pid, '--umdh')
            if done.returncode == 9:
                continue
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertEqual(done.stderr.count(b'\n'), 1)
            log = Log(done.stdout.decode())
            self.assertIn('// Not all heaps could be read', log.comments)
            self.assertNotIn('Not all', whole[pid].comments)
            ids = {tuple(s): i for i, s in whole[pid].stacks.items() if not i & UNTRACED}
            for i, stack in log.stacks.items():
                if not i & UNTRACED:
                    both += 1
                    self.assertEqual(ids.get(tuple(stack)), i)
            self.assertEqual({a: b.requested for h in log.heaps.values() for a, b in h.items()},
                             {a: r['size'] if r['requested'] is None else r['requested']
                              for a, r in self.rows(pid, codes=(3,)).items()})
            unsized = sum(r['requested'] is None for r in self.rows(pid, codes=(3,)).values())
            said = re.search(r'^// For (\d+) blocks the requested size is not known', log.comments, re.M)
            self.assertEqual(int(said[1]) if said else 0, unsized)
        self.assertGreater(both, 10)

    def test_wrong_uses(self):
        truth = self.acquire('windows=10')
        for args, text in ((['--json'], 'goes without --json'), (['--leaks'], 'takes one of'), (['-A'], 'takes one of'),
                           (['--csv'], '--csv goes with')):
            done = run('heap', self.container, '--pid', truth.pids[0], '--umdh', *args)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count(b'\n')), (2, b'', 1), done.stderr)
            self.assertIn(text, done.stderr.decode())


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
