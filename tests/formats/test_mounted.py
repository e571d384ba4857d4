#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What a mounted container shows, read by others and by ramseal itself as a source: each page as it was acquired.
That its files are those that export writes: cli/test_mount.py. LeechCore on it: test_leechcore.py; crash, drgn,
gdb and makedumpfile: vm/test_dumps.py.
Usage: test_mounted.py RAMSEAL KDUMP_READ
"""
import csv
import json
import os
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True

import isf_simulated
import mounted
import volatility
from layer_samples import PAGE, Flat, lime
from test_foreign import KDUMP_READ, RAMSEAL, Case, needs_simulator, run, tool

# kdump_free() of libkdumpfile 0.5.1 reads what it has freed.
os.environ.pop('MALLOC_PERTURB_', None)

MACHINE = ('sim:desktop,ram=96M,allocated=40M,resident=20M,trimmed=16M,others=20M,processes=10,cache=6M,'
           'pagefile0=64M,pagefile1=48M,start=0,exit=0,cpus=2')


class OfNoSystem(Case):
    RANGES = [(0x1000, 0x9fff), (0x10000, 0x18fff), (0x100000, 0x22bfff)]
    LOST = 5  # pages at its end

    def setUp(self):
        super().setUp()
        self.container = self.path('gaps.rsz')
        lime(self.path('gaps.lime'), self.RANGES, cut=(self.LOST - 1) * PAGE + 1)
        run('acquire', '-s', f'file:{self.path("gaps.lime")}', '-o', self.container, code=3)
        self.flat = Flat(RAMSEAL, self.container, self.dir)
        self.assertEqual(self.flat.gaps, [(0x22c000 - self.LOST * PAGE, 0x22c000)])

    def mounted(self):
        return mounted.mounted(RAMSEAL, self.container, self.path('mnt'))

    def test_as_a_source(self):
        """A gap is what fills it; pages between ranges are zeros of memory.raw, and no memory of memory.core."""
        with self.mounted() as folder:
            for name in 'memory.raw', 'memory.core':
                run('acquire', '-f', '-s', f'file:{folder / name}', '-o', self.path('again.rsz'), code=0)
                again = Flat(RAMSEAL, self.path('again.rsz'), self.dir)
                with self.subTest(name):
                    self.assertTrue(again.data == self.flat.data)
                    self.assertEqual(again.captured, [(0, 0x22c000)] if name == 'memory.raw' else self.flat.captured)

    def test_libkdumpfile(self):
        pages = [at for a, b in self.flat.captured for at in range(a, b, PAGE)]
        with self.mounted() as folder:
            shown = tool(KDUMP_READ, folder / 'memory.core', *(f'phys:{at:#x}' for at in pages)).splitlines()
        self.assertEqual(shown, [f'phys:{at:#x} {self.flat.data[at:at + PAGE].hex()}' for at in pages])


@needs_simulator
class Windows(Case):
    def setUp(self):
        super().setUp()
        self.container, truth = self.path('host.rsz'), Path(self.path('truth.csv'))
        run('acquire', '-s', f'{MACHINE},truth={truth}', '-o', self.container, code=0)
        rows = [row for row in csv.reader(truth.read_text().splitlines()) if row[0] == 'process']
        self.truth = {(row[1], row[2][:14]) for row in rows}

    def test_dump_as_a_source(self):
        """All of it is the machine's but the bytes that are listed as patched."""
        flat = Flat(RAMSEAL, self.container, self.dir)
        with mounted.mounted(RAMSEAL, self.container, self.path('mnt')) as folder:
            patched = json.loads((folder / 'memory.dmp.gaps.json').read_text())['patched']
            run('acquire', '-s', f'file:{folder / "memory.dmp"}', '-o', self.path('again.rsz'), code=0)
        again = Flat(RAMSEAL, self.path('again.rsz'), self.dir)
        data = bytearray(again.data)
        for p in patched:
            self.assertEqual(data[p['address']:p['address'] + p['bytes']].hex(), p['written'])
            data[p['address']:p['address'] + p['bytes']] = bytes.fromhex(p['original'])
        self.assertGreater(len(patched), 0)
        self.assertEqual((again.captured, again.gaps), (flat.captured, []))
        self.assertTrue(data == flat.data)

    @unittest.skipIf(volatility.missing(), volatility.missing())
    def test_volatility3(self):
        symbols = Path(self.path('symbols'))
        isf_simulated.write(symbols, 10)
        with mounted.mounted(RAMSEAL, self.container, self.path('mnt')) as folder:
            for name in 'memory.raw', 'memory.dmp':
                done = volatility.vol(self.dir, symbols, '-r', 'csv', '-f', folder / name, 'windows.pslist')
                found = {(row['PID'], row['ImageFileName'][:14]) for row in csv.DictReader(done.stdout.splitlines())}
                with self.subTest(name):
                    self.assertEqual(found, self.truth, done.stderr)


if __name__ == '__main__':
    if mounted.missing():
        print(mounted.missing())
        sys.exit(77)
    unittest.main()
