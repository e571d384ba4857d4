#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
ramseal heap --diff on pairs of simulated machines that are one but for what is in their heaps, compared with
what both say of every allocation.

	test_heap_diff.py RAMSEAL
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
from machine_case import MachineCase, run  # noqa: E402
from sampled import sample  # noqa: E402

HEAPS = 'ram=96M,processes=4,heaps=3,heap_lfh=40,windows=10,build=19045,seed=1'
FEW = f'{HEAPS},heap_blocks=1500,heap_leaks=20'
MANY = f'{HEAPS},heap_blocks=1800,heap_leaks=50'


class Machine:
    def __init__(self, account):
        self.truth = heap_truth.Heaps(account)
        self.processes = process_truth.read(account)[1]
        self.index = {}
        for line in account.read_text(encoding='utf-8').splitlines():
            kind, *f = line.split(',')
            if kind == 'allocation':
                self.index.setdefault(f[0], {})[int(f[2], 0)] = int(f[1])

    def groups(self, pid):
        """Blocks and bytes by stack trace; of those without one by heap and size."""
        sums = collections.defaultdict(lambda: [0, 0])
        traces = self.truth.traces.get(pid, {})
        for address, (size, _) in self.truth.busy[pid].items():
            entry = traces.get(address)
            key = self.places(pid, entry) if entry else (self.index[pid][address], size)
            sums[key][0] += 1
            sums[key][1] += size
        return sums

    def places(self, pid, entry):
        places = []
        for va in self.truth.entries[pid][entry]:
            m = [m for m in self.processes[int(pid)].modules if m.base <= va < m.base + m.size]
            places.append((os.path.basename(m[0].path.replace('\\', '/')), va - m[0].base) if m else (None, va))
        return ('trace', *places)


def number(v):
    return int(v, 0) if isinstance(v, str) else v


class Diff(MachineCase):
    def machine(self, name, settings):
        self.container, self.account = self.at / f'{name}.rsz', self.at / f'{name}.truth'
        self.acquire(settings)
        return self.container, Machine(self.account)

    def diff(self, old, new, pid, *args, codes=(0,)):
        done = run('heap', '--diff', old, new, '--pid', pid, *args)
        self.assertIn(done.returncode, codes, done.stderr)
        self.assertEqual(done.stderr.count(b'\n'), done.returncode != 0, done.stderr)
        return done

    def told(self, document):
        sums = collections.defaultdict(lambda: [0, 0, 0, 0])
        for g in document['groups']:
            if g['trace'] is None:
                key = (g['heap_index'], number(g['size']))
                self.assertEqual(g['heap'] is None, g['heap_index'] > 0)
            else:
                key = ('trace', *((p['module'], number(p['offset']) if p['module'] else number(p['address']))
                                  for p in g['trace']))
                self.assertNotIn(key, sums)
            values = [number(g[k]) for k in ('old_blocks', 'old_bytes', 'new_blocks', 'new_bytes')]
            self.assertNotEqual(values[:2], values[2:])
            sums[key] = [a + b for a, b in zip(sums[key], values)]
        return sums

    def check_text(self, text, document):
        """Its own sums, and those of the JSON document."""
        line = r'^([+-]) +([0-9A-F]+) \( *([0-9A-F]+) - +([0-9A-F]+)\)'
        rows = [(m[1], *(int(v, 16) for v in m.groups()[1:]))
                for m in re.finditer(line + r' +([0-9A-F]+) allocs\tBackTrace([0-9A-F]+)$', text, re.M)]
        counts = [(m[1], *(int(v, 16) for v in m.groups()[1:]))
                  for m in re.finditer(line + r'\tBackTrace([0-9A-F]+)\tallocations$', text, re.M)]
        self.assertEqual([(r[4], r[5]) for r in rows], [(c[2], c[4]) for c in counts])
        self.assertEqual(len({r[5] for r in rows}), len(rows))
        for sign, delta, new, old, *_ in rows + counts:
            self.assertEqual(new - old, -delta if sign == '-' else delta)
        self.assertEqual([(r[3], r[2], c[3], c[2]) for r, c in zip(rows, counts)],
                         [tuple(number(g[k]) for k in ('old_bytes', 'new_bytes', 'old_blocks', 'new_blocks'))
                          for g in document['groups']])
        total = re.search(r'^Total (in|de)crease == ([0-9A-F]+)$', text, re.M)
        growth = number(document['new']['bytes']) - number(document['old']['bytes'])
        self.assertEqual(int(total[2], 16) * (1 if total[1] == 'in' else -1), growth)
        self.assertEqual(sum(r[2] - r[3] for r in rows), growth)

    def check(self, old, new, pid):
        document = json.loads(self.diff(old[0], new[0], pid, '--json').stdout)
        for name, (_, machine) in (('old', old), ('new', new)):
            sizes = [size for size, _ in machine.truth.busy[pid].values()]
            self.assertEqual((document[name]['blocks'], number(document[name]['bytes'])), (len(sizes), sum(sizes)))
            self.assertEqual((document[name]['all_read'], document[name]['unplaced_blocks']), (True, 0))
        told, before, after = self.told(document), old[1].groups(pid), new[1].groups(pid)
        for key in before.keys() | after.keys() | told.keys():
            growth = [b - a for a, b in zip(before[key], after[key])]
            got = told.get(key, [0, 0, 0, 0])
            self.assertEqual([got[2] - got[0], got[3] - got[1]], growth, key)
            if key[0] == 'trace' and key in told:
                self.assertEqual(got, before[key] + after[key])
        text = self.diff(old[0], new[0], pid).stdout.decode()
        self.assertNotIn('Not all', text)
        self.check_text(text, document)
        return document

    def test_segment_heaps_are_told_by_their_address(self):
        """They have no number; the process's first heap is one here."""
        old = self.machine('old', f'{FEW},segment_heap=1')
        new = self.machine('new', f'{MANY},segment_heap=1')
        pid = old[1].truth.pids[0]
        groups = json.loads(self.diff(old[0], new[0], pid, '--json').stdout)['groups']
        listed = json.loads(run('heap', '--pid', pid, '--json', old[0]).stdout)['heaps']
        first = next(h['address'] for h in listed if h['kind'] == 'segment')
        without = [g for g in groups if not g['heap_index'] and g['trace'] is None]
        self.assertEqual({g['heap'] for g in without}, {first})
        self.assertGreater(len(without), 10)
        text = self.diff(old[0], new[0], pid).stdout.decode()
        self.assertEqual(text.count(f'no stack trace: heap at {first}, '), len(without))

    def test_what_came_and_went(self):
        for ust in sample((0, 1)):
            with self.subTest(ust=ust):
                old = self.machine('old', f'{FEW},heap_ust={ust}')
                new = self.machine('new', f'{MANY},heap_ust={ust}')
                pids = [p for p in old[1].truth.pids if p in new[1].truth.pids]
                self.assertEqual(pids, old[1].truth.pids)
                traced = 0
                for pid in pids:
                    there = self.check(old, new, pid)
                    back = self.check(new, old, pid)
                    self.assertGreater(len(there['groups']), 0)
                    self.assertEqual(len(there['groups']), len(back['groups']))
                    traced += sum(g['trace'] is not None for g in there['groups'])
                self.assertEqual(traced > 0, ust == 1)
                same = self.check(old, old, pids[0])
                self.assertEqual(same['groups'], [])

    def test_what_could_not_be_had_is_told(self):
        lossy = f'{FEW},region_paged=30,region_transition=10'
        whole, old = self.machine('whole', lossy)
        lost, _ = self.machine('lost', f'{lossy},live_files=0')
        tried = 0
        for pid in old.truth.pids:
            for a, b, texts in ((lost, whole, ['OLD numbers are minimums, increases are maximums']),
                                (whole, lost, ['NEW numbers and increases are minimums']),
                                (lost, lost, ['OLD numbers', 'NEW numbers', 'larger or smaller'])):
                done = self.diff(a, b, pid, codes=(3, 9))
                if done.returncode == 9:
                    continue
                tried += 1
                for text in texts:
                    self.assertIn(text, done.stdout.decode())
                document = json.loads(self.diff(a, b, pid, '--json', codes=(3,)).stdout)
                self.assertEqual([document[k]['all_read'] for k in ('old', 'new')], [a == whole, b == whole])
                self.check_text(done.stdout.decode(), document)
        self.assertGreater(tried, 2)

    def test_another_process_and_wrong_uses(self):
        old = self.machine('old', FEW)
        other = self.machine('other', f'{FEW},booted=60')
        both = [p for p in old[1].truth.pids if p in other[1].truth.pids and
                old[1].processes[int(p)].created != other[1].processes[int(p)].created]
        self.assertGreater(len(both), 0)
        for pid in both:
            done = self.diff(old[0], other[0], pid, codes=(9,))
            self.assertEqual(done.stdout, b'')
            self.assertIn('it was created at another time', done.stderr.decode())
        for args in ((old[0], '--diff'), (old[0], old[0]), (old[0], old[0], '--diff', '--leaks')):
            done = run('heap', *args, '--pid', both[0])
            self.assertEqual((done.returncode, done.stdout, done.stderr.count(b'\n')), (2, b'', 1), done.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
