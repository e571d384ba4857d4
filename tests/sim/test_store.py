#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Windows' compression store in the simulated machine: what `read` gives of its pages, beside the same machine
without a store. Usage: test_store.py RAMSEAL
"""
import collections
import json
import os
import re
import struct
import sys
import tempfile
import unittest

import simulated
from sampled import sample
from simulated import run

RAMSEAL = os.path.abspath(sys.argv[1])
simulated.RAMSEAL = RAMSEAL
del sys.argv[1:2]
PAGE = 4096
SECTION = 0x7fef8000000  # what all processes share, see sim/machine.h
SMALL = ('cohen2015,windows=10,ram=192M,allocated=48M,resident=12M,trimmed=8M,others=16M,cache=8M,'
         'pagefile0=64M,live_files=1')
# Pages, more than a leaf and than a node of the trees leads to; and the build, one for each form of the store.
CASES = ((90, 17763), (1500, 22000), (7000, 19045), (900, 22621), (1500, 26100), (900, 10240), (300, 10586))



def symbols_of_a_kernel():
    """ISF of the simulated kernel: EPROCESS as JPCERTCC/Windows-Symbol-Tables 11ad856 has it for 22000."""
    fields = {'UniqueProcessId': 0x440, 'CreateTime': 0x468, 'InheritedFromUniqueProcessId': 0x540,
              'SectionBaseAddress': 0x520, 'Peb': 0x550, 'ObjectTable': 0x570, 'ImageFileName': 0x5a8,
              'ThreadListHead': 0x5e0, 'VadRoot': 0x7d8, 'WoW64Process': 0x580}
    return {'metadata': {'windows': {'pdb': {'GUID': '0000ED51F00D0BAD8073696D6B726E6C', 'age': 1}}},
            'user_types': {'_EPROCESS': {'size': 0xb80, 'kind': 'struct', 'fields': {
                k: {'offset': v, 'type': {'kind': 'base', 'name': 'pointer'}} for k, v in fields.items()}}},
            'symbols': {'SmGlobals': {'address': 0x2c00}}}


class Store(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-store-')
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def acquire(self, spec, name, *options):
        done = run(RAMSEAL, 'acquire', '-q', '-f', '--source', f'sim:{spec},truth={self.path(name)}.csv', '--pagefile',
                   'before', *options, '-o', self.path(f'{name}.rsz'))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path(f'{name}.csv')) as f:
            rows = [line.split(',') for line in f]
        return int(next(r[1] for r in rows if r[0] == 'process' and r[2] == 'swapper.exe'))

    def read(self, name, pid, *options):
        """Each page of the process: what its line says, and its bytes; and the summary."""
        heap = [int(row['va'], 16) for row in simulated.mappings(self.path(f'{name}.rsz'), pid)
                if row['state'] in ('compressed', 'page-file') and int(row['va'], 16) < SECTION]
        first, length = min(heap), max(heap) - min(heap) + PAGE
        container, out = self.path(f'{name}.rsz'), self.path(f'{name}.bin')
        told = run(RAMSEAL, '--log-json', 'read', '--json', '--pid', pid, '--va', hex(first), '--length', hex(length),
                   *options, container)
        self.assertIn(told.returncode, (0, 3), told.stderr)
        done = run(RAMSEAL, 'read', '-q', '-f', '--json', '--pid', pid, '--va', hex(first), '--length', hex(length),
                   '-o', out, *options, container)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        pages = {}
        with open(out, 'rb') as f:
            for line in told.stdout.splitlines():
                row = json.loads(line)
                if row['content'] == 'none' and row['state'] != 'compressed':
                    continue
                for i in range(row['pages']):
                    va = int(row['va'], 16) + i * PAGE
                    f.seek(va - first)
                    pages[va] = (row, f.read(PAGE))
        os.unlink(out)
        events = [json.loads(line) for line in told.stderr.splitlines()]
        return pages, next(e for e in events if e['event'] == 'summary')

    def test_pages_are_those_of_the_same_machine_without_a_store(self):
        for seed, (wanted, build) in sample(list(enumerate(CASES)), of=3):
            spec = f'{SMALL},seed={seed},build={build},activity=0'
            pid = self.acquire(spec, 'without')
            self.assertEqual(self.acquire(f'{spec},compressed={wanted}', 'with'), pid)
            without, summary = self.read('without', pid)
            self.assertEqual((summary['compressed'], summary['store_missing']), (0, 0))
            pages, summary = self.read('with', pid)
            self.assertEqual((summary['compressed'], summary['store_missing']), (wanted, 0))
            compressed = [va for va, (row, _) in pages.items() if row['content'] == 'compressed']
            self.assertEqual(len(compressed), wanted)
            for va in compressed:
                row, found = pages[va]
                other, true = without[va]
                self.assertEqual((other['state'], other['content']), ('page-file', 'page-file'))
                self.assertEqual((row['state'], row['verdict'], row['trust']), ('compressed', 'store', 'at-risk'))
                self.assertLessEqual(row['start_ns'], row['end_ns'])
                self.assertGreaterEqual(row['window_ns'], row['end_ns'] - row['start_ns'])
                self.assertEqual(found, true, hex(va))

    def test_symbols_tell_where_it_is_too(self):
        """The same pages; in 22H2 and later SmGlobals is only where a ring begins (sim/store.c)."""
        file = self.path('nt.json')
        with open(file, 'w') as f:
            json.dump(symbols_of_a_kernel(), f)
        for build in sample((22000, 22621, 26100)):
            pid = self.acquire(f'{SMALL},seed=9,build={build},activity=0,compressed=400', 'with')
            found, _ = self.read('with', pid)
            pages, summary = self.read('with', pid, '--symbols', file)
            self.assertEqual((summary['compressed'], summary['store_missing']), (400, 0))
            self.assertEqual({va: data for va, (_, data) in pages.items()}, {va: data for va, (_, data) in found.items()})

    def test_ranges_and_report_count_them_as_a_state_of_their_own(self):
        for build in sample((19045, 26100)):
            pid = self.acquire(f'{SMALL},seed=3,build={build},activity=0,inside=1,compressed=400', 'with')
            counts = {}
            for p in (pid, 4):
                done = run(RAMSEAL, 'vad', '-q', '--json', '--pages', '--pid', p, self.path('with.rsz'))
                self.assertEqual(done.returncode, 0, done.stderr)
                vads = json.loads(done.stdout)
                counts[p] = vads['counts']['states']
                self.assertEqual(sum(v['counts']['states']['compressed'] for v in vads['vads']), counts[p]['compressed'])
            self.assertEqual((counts[pid]['compressed'], counts[4]['compressed']), (400, 0))
            # The list of mappings says the same.
            listed = collections.Counter(row['state'] for row in simulated.mappings(self.path('with.rsz'), pid))
            self.assertEqual(listed['compressed'], 400)
            page = self.path('with.html')
            done = run(RAMSEAL, 'report', '-q', '-f', '--pid', pid, '-o', page, self.path('with.rsz'))
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(page, encoding='utf-8') as f:
                text = re.sub('<[^>]*>', '', f.read())
            self.assertRegex(text, "400 are in Windows' store of compressed memory")
            self.assertRegex(text, '400 compressed')

    def test_nothing_is_invented_of_a_machine_that_runs(self):
        """Trees and records are read at other times than entries; what comes is a page of this address."""
        pid = self.acquire(f'{SMALL},seed=5,compressed=5000,pressure=100', 'running', '--order', 'guided')
        pages, summary = self.read('running', pid)
        found = collections.Counter(row['content'] for row, _ in pages.values() if row['state'] == 'compressed')
        self.assertEqual(summary['compressed'], found['compressed'])
        self.assertEqual(summary['store_missing'], found['none'])
        self.assertGreater(found['compressed'], 1000, found)
        for va, (row, data) in pages.items():
            if row['content'] == 'compressed':
                self.assertEqual(struct.unpack('<8sI4xQ', data[:24]), (b'SIMPAGE1', pid, va))  # sim/page.h


if __name__ == '__main__':
    unittest.main()
