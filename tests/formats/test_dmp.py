#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Crash dumps (`--format dmp`, `dmp-full`) read back by a reader of our own, page by page, beside what the raw
export of the same container has; of simulated Windows, of memory that is nobody's, of containers that are
cut or damaged. And by volatility3, if RAMSEAL_PEERS names a folder that has it.
Usage: test_dmp.py RAMSEAL
"""

import csv
import hashlib
import itertools
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RAMSEAL = os.path.abspath(sys.argv.pop(1))
HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent / 'sim')]

import isf_simulated  # noqa: E402
import layer_samples as samples  # noqa: E402
import volatility  # noqa: E402
from layer_samples import PAGE, Flat  # noqa: E402
from read_dmp import Dump  # noqa: E402
from sampled import draw, drawn  # noqa: E402

MACHINE = ('sim:desktop,ram=64M,allocated=20M,resident=10M,trimmed=8M,others=5M,processes=5,cache=2M,'
           'pagefile0=24M,pagefile1=16M,start=0,exit=0')
IMAGE, SYSTEM_TIME = 0xfffff80002a00000, 130700000000000000  # agent/simulator/machine.h
HEAD, MODULES, KDBG, FRAMES, BLOCK = (IMAGE + 0x2000 + at for at in (0x100, 0x140, 0x300, 0x710, 0x800))

needs_simulator = unittest.skipIf(os.environ.get('RAMSEAL_SIMULATOR') == '0',
                                  'built without simulated machines')


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)
        self.seed = draw(self.id()).randrange(2**32)
        self.said = []

    def run_it(self, *arguments, codes=(0,)):
        done = subprocess.run([RAMSEAL, *map(str, arguments), '--log-json'], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=900)
        self.assertIn(done.returncode, codes, (arguments, self.seed, done.stderr))
        self.said = [json.loads(line) for line in done.stderr.splitlines()]
        return next((line for line in self.said if line.get('event') == 'summary'), None)

    def warnings(self):
        return [line['message'] for line in self.said if line.get('level') == 'warning']

    def acquire(self, source, name='host.rsz', *options, codes=(0,)):
        self.run_it('acquire', '-s', source, '-o', self.dir / name, *options, codes=codes)
        return self.dir / name

    def opened(self, path):
        dump = Dump(path)
        self.addCleanup(dump.file.close)
        return dump

    def dump(self, container, kind='dmp', *options, codes=(0,)):
        """(dump, summary, list of gaps)"""
        path = self.dir / f'{kind}.dmp'
        summary = self.run_it('export', '-f', '-F', kind, '--hash', 'none', '-o', path, *options, container,
                              codes=codes)
        return self.opened(path), summary, json.loads(Path(f'{path}.gaps.json').read_text())

    def check_pages(self, dump, flat, gaps, honest):
        """Each page of the dump is the raw image's, but for what is listed as patched."""
        known = {n for a, b in flat.captured for n in range(a // PAGE, b // PAGE)}
        lost = {n for a, b in flat.gaps for n in range(a // PAGE, b // PAGE)}
        self.assertEqual(set(dump.numbers), known - lost if honest else known, self.seed)
        differs = {}
        for first, count in dump.runs():
            data, wanted = dump.pages(first, count), flat.data[first * PAGE:(first + count) * PAGE]
            if data != wanted:
                differs.update(self.differences(first * PAGE, data, wanted))
        listed = {}
        for p in gaps['patched']:
            original, written = bytes.fromhex(p['original']), bytes.fromhex(p['written'])
            self.assertEqual({len(original), len(written)}, {p['bytes']})
            listed.update((p['address'] + i, pair) for i, pair in enumerate(zip(original, written)))
        self.assertEqual({at: pair for at, pair in listed.items() if pair[0] != pair[1]}, differs)
        self.assertEqual(dump.space, os.path.getsize(dump.file.name))


    @staticmethod
    def differences(address, data, wanted):
        """(address, (byte of the raw image, byte of the dump))"""
        for at in range(0, max(len(data), len(wanted)), PAGE):
            a, b = data[at:at + PAGE], wanted[at:at + PAGE]
            if a != b:
                both = enumerate(itertools.zip_longest(a, b), address + at)
                yield from ((place, (y, x)) for place, (x, y) in both if x != y)


@needs_simulator
class Windows(InFolder):
    def machine(self, **settings):
        more = ''.join(f',{key}={value}' for key, value in settings.items())
        return self.acquire(f'{MACHINE},seed={self.seed}{more}')

    def check_header(self, dump, windows, cpus):
        self.assertEqual((dump.major, dump.machine, dump.bugcheck), (15, 0x8664, 0x161))
        self.assertEqual(dump.build, 7601 if windows == 7 else 19045)
        self.assertEqual((dump.processes, dump.modules, dump.kdbg), (HEAD, MODULES, KDBG))
        self.assertEqual(dump.processors, max(cpus, 1))
        self.assertEqual(dump.dtb, 0x1aa000)
        if cpus:
            self.assertEqual((dump.time, dump.up_time), (SYSTEM_TIME, 3600 * 10**7))
            self.assertEqual((dump.product, dump.suite, dump.frames), (1, 0x110, FRAMES))
        else:
            self.assertEqual(struct.pack('<QQ', dump.time, dump.up_time), b'PAGE' * 4)
        flags, mxcsr, *segments = struct.unpack_from('<II6H', dump.context, 0x30)
        rip, again = struct.unpack_from('<Q', dump.context, 0xf8)[0], struct.unpack_from('<I', dump.context, 0x118)[0]
        self.assertEqual((flags, mxcsr, again), (0x10001f, 0x1f80, 0x1f80))
        self.assertEqual(rip, IMAGE + 0x10000 if cpus else 0)
        self.assertEqual(segments[0], 0x10)
        self.assertEqual(segments[1:], [0x2b, 0x2b, 0x53, 0x2b, 0] if windows == 10 or not cpus else [0] * 5)

    def check_kdbg(self, dump, cpus):
        """The block in the dumped memory is one that a debugger can read."""
        words = dump.words(KDBG, 0x340 // 8)
        self.assertEqual(words[:4], (KDBG, KDBG, 0x340 << 32 | 0x4742444b, IMAGE))
        self.assertEqual(words[9:11], (MODULES, HEAD))
        self.assertEqual(words[0x218 // 8], BLOCK if cpus else 0)
        for i in range(cpus):
            prcb, = dump.words(BLOCK + 8 * i, 1)
            self.assertEqual(dump.virtual(prcb + (words[0x2b8 // 8] >> 48), 4), struct.pack('<I', i))

    def test_both_types_page_by_page(self):
        seven, ten = drawn(((7, 1), (7, 128)), 1, 'Windows 7'), drawn(((10, 1), (10, 128)), 1, 'Windows 10')
        for windows, cpus in [*seven, (10, 0), *ten]:
            container = self.machine(windows=windows, cpus=cpus)
            flat = Flat(RAMSEAL, container, self.dir)
            for kind in ('dmp', 'dmp-full'):
                with self.subTest(windows=windows, cpus=cpus, kind=kind, seed=self.seed):
                    dump, summary, gaps = self.dump(container, kind)
                    self.check_pages(dump, flat, gaps, True)
                    self.check_header(dump, windows, cpus)
                    self.check_kdbg(dump, cpus)
                    self.check_summary(dump, summary['kernel'], gaps, windows, cpus)
                    self.assertEqual(self.warnings(), [])
            container.unlink()

    def check_summary(self, dump, kernel, gaps, windows, cpus):
        encoded = windows == 10
        self.assertEqual(kernel['kdbg'], {'va': hex(KDBG), 'encoded': encoded, 'whole': True,
                                          'patched': encoded, 'flag_patched': encoded and cpus > 0})
        self.assertEqual(kernel['processors'], cpus or None)
        self.assertEqual((kernel['dtb'], kernel['build']), (hex(dump.dtb), dump.build))
        self.assertEqual((kernel['os'], kernel['context']), ('windows', cpus > 0))
        names = [p['what'] for p in gaps['patched']]
        self.assertEqual(names, ['KdDebuggerDataBlock'] * encoded +
                         ['KdpDataBlockEncoded', 'KPRCB.Context segments'] * (encoded and cpus > 0))
        if encoded and cpus:
            self.assertEqual(dump.virtual(IMAGE + 0x2020, 1), b'\0')

    def test_nothing_is_patched_if_that_is_not_wanted(self):
        container = self.machine(cpus=2)
        flat = Flat(RAMSEAL, container, self.dir)
        for kind in ('dmp', 'dmp-full'):
            dump, summary, gaps = self.dump(container, kind, '--no-patch')
            self.assertEqual(gaps['patched'], [])
            self.check_pages(dump, flat, gaps, True)
            self.assertEqual((dump.kdbg, dump.processors), (KDBG, 2))
            self.assertFalse(summary['kernel']['kdbg']['patched'])
            self.assertRegex(self.warnings()[0], r'stays encoded.*--no-patch.*WinDbg')

    def test_keys_of_many_machines(self):
        for seed in drawn([979124964 + 7919 * i for i in range(8)], 2, 'keys') + [self.seed]:
            self.seed = seed
            dump, summary, gaps = self.dump(self.machine(cpus=3, activity=0), 'dmp')
            with self.subTest(seed=self.seed):
                self.check_kdbg(dump, 3)
                self.assertEqual(len(gaps['patched']), 3)
            (self.dir / 'host.rsz').unlink()

    def test_acquired_at_once(self):
        container = self.machine(cpus=4, activity=0, pressure=0)
        flat = Flat(RAMSEAL, container, self.dir)
        source = f'{MACHINE},seed={self.seed},cpus=4,activity=0,pressure=0'
        for kind in ('dmp', 'dmp-full'):
            path = self.dir / f'acquired-{kind}.dmp'
            summary = self.run_it('acquire', '-s', source, '-F', kind, '-o', path)
            gaps = json.loads(Path(f'{path}.gaps.json').read_text())
            dump = self.opened(path)
            self.check_pages(dump, flat, gaps, True)
            self.check_header(dump, 10, 4)
            self.check_kdbg(dump, 4)
            self.assertEqual(len(gaps['patched']), 3)
            self.assertTrue(summary['kernel']['kdbg']['patched'])

    def test_as_a_source(self):
        """What ramseal itself reads of them (formats/image/windows_dump.c) is what was written."""
        container = self.machine(cpus=1)
        flat = Flat(RAMSEAL, container, self.dir)
        for kind in ('dmp', 'dmp-full'):
            self.dump(container, kind, '--no-patch')
            again = Flat(RAMSEAL, self.acquire(f'file:{self.dir / kind}.dmp', f'{kind}.rsz'), self.dir)
            self.assertEqual((again.captured, again.gaps), (flat.captured, []))
            self.assertTrue(again.data == flat.data)

    def test_a_container_that_was_cut(self):
        data = self.machine(cpus=1).read_bytes()
        cut = self.dir / 'cut.rsz'
        # Behind that no page of memory may be lost.
        for part in drawn((0.3, 0.6, 0.95), 1, 'cuts') + [draw('another cut').uniform(0.2, 0.95)]:
            cut.write_bytes(data[:int(len(data) * part)])
            flat = Flat(RAMSEAL, cut, self.dir, codes=(7,))
            dump, summary, gaps = self.dump(cut, codes=(7,))
            with self.subTest(part=part, seed=self.seed):
                self.assertGreater(len(flat.gaps), 0)
                self.check_pages(dump, flat, gaps, True)
                if not summary['kernel']['kdbg']:
                    self.assertRegex(self.warnings()[0], 'WinDbg will not open')

    def test_damaged_chunks_are_gaps(self):
        """They are found out when the bitmap is written already."""
        container = self.machine(cpus=1)
        broken = self.dir / 'broken.rsz'
        broken.write_bytes(samples.damaged(container.read_bytes(), self.seed, 2))
        flat = Flat(RAMSEAL, broken, self.dir, codes=(7,))
        dump, _, gaps = self.dump(broken, codes=(7,))
        self.assertGreater(gaps['damaged_pages'], 0)
        self.check_pages(dump, flat, gaps, True)
        piped = subprocess.run([RAMSEAL, 'export', '-q', '-F', 'dmp', '-o', '-', broken], capture_output=True,
                               timeout=900)
        (self.dir / 'piped.dmp').write_bytes(piped.stdout)
        self.check_pages(self.opened(self.dir / 'piped.dmp'), flat, gaps, False)

    def test_volatility3(self):
        why = volatility.missing()
        if why:
            self.skipTest(why)
        truth = self.dir / 'truth.csv'
        container = self.acquire(f'{MACHINE},seed={self.seed},cpus=2,truth={truth}')
        rows = [row for row in csv.reader(truth.read_text().splitlines()) if row[0] == 'process']
        flat = Flat(RAMSEAL, container, self.dir)
        isf_simulated.write(self.dir / 'symbols', 10)
        for kind in ('dmp', 'dmp-full'):
            with self.subTest(kind):
                self.dump(container, kind)
                path = self.dir / f'{kind}.dmp'
                done = volatility.vol(self.dir, self.dir / 'symbols', '-r', 'csv', '-f', path, 'windows.pslist')
                found = {(row['PID'], row['ImageFileName'][:14]) for row in csv.DictReader(done.stdout.splitlines())}
                self.assertEqual(found, {(row[1], row[2][:14]) for row in rows}, done.stderr)
                lines = volatility.python(HERE / 'read_in_volatility3.py', samples.LAYER, path, 'valid',
                                          hex(len(flat.data))).stdout.splitlines()
                self.assertEqual({int(line, 16) for line in lines},
                                 {at for a, b in flat.captured for at in range(a, b, PAGE)})


class Memory(InFolder):
    """Of no system that anybody knows."""

    def gappy(self, ranges, lost=0, codes=(0,)):
        image = self.dir / 'image.lime'
        samples.lime(image, ranges, cut=lost and (lost - 1) * PAGE + 1)
        return self.acquire(f'file:{image}', 'gaps.rsz', codes=codes)

    def test_gaps_are_gaps_or_filled_and_listed(self):
        container = self.gappy([(0x1000, 0x9efff), (0x100000, 0x4fffff), (0x700000, 0x700fff)], 6, (3,))
        flat = Flat(RAMSEAL, container, self.dir)
        self.assertGreater(len(flat.gaps), 0)
        for kind in ('dmp', 'dmp-full'):
            dump, _, gaps = self.dump(container, kind, codes=(3,))
            self.check_pages(dump, flat, gaps, kind == 'dmp')
            self.assertEqual((dump.kdbg, dump.dtb, dump.processors), (0, 0, 1))
            self.assertRegex(self.warnings()[0], 'no Windows kernel was found.*WinDbg will not open')

    def test_what_cannot_be_acquired_is_left_out(self):
        image, path = self.dir / 'image.lime', self.dir / 'at-once.dmp'
        samples.lime(image, [(0x1000, 0x9efff), (0x100000, 0x4fffff)], cut=5 * PAGE + 1)
        summary = self.run_it('acquire', '-s', f'file:{image}', '-F', 'dmp', '-o', path, codes=(3,))
        flat = Flat(RAMSEAL, self.acquire(f'file:{image}', codes=(3,)), self.dir)
        gaps = json.loads(Path(f'{path}.gaps.json').read_text())
        self.check_pages(self.opened(path), flat, gaps, True)
        self.assertEqual(sum(len(range(a, b, PAGE)) for a, b in flat.gaps), 6)
        self.assertEqual(summary['sha256'], hashlib.sha256(path.read_bytes()).hexdigest())

    def test_holes_of_every_size(self):
        place = random.Random(self.seed)
        ranges, at = [], 0
        for size in list(range(1, 40)) + [63, 64, 65, 511, 512, 513]:
            at += place.choice((size, 1, 8, 64)) * PAGE
            ranges.append((at, at + size * PAGE - 1))
            at += size * PAGE
        container = self.gappy(ranges)
        flat = Flat(RAMSEAL, container, self.dir)
        dump, _, gaps = self.dump(container)
        self.check_pages(dump, flat, gaps, True)

    def test_42_runs_fit_and_43_do_not(self):
        for count in (42, 43):
            container = self.gappy([(0x2000 * i, 0x2000 * i + 0xfff) for i in range(count)])
            flat = Flat(RAMSEAL, container, self.dir)
            dump, _, gaps = self.dump(container)
            self.check_pages(dump, flat, gaps, True)
            if count == 42:
                dump, _, gaps = self.dump(container, 'dmp-full')
                self.check_pages(dump, flat, gaps, True)
            else:
                path = self.dir / 'many.dmp'
                said = subprocess.run([RAMSEAL, 'export', '-F', 'dmp-full', '-o', path, container],
                                      capture_output=True, text=True, timeout=900)
                self.assertEqual(said.returncode, 9)
                errors = [line for line in said.stderr.splitlines() if '42 runs' in line]
                self.assertEqual(len(errors), 1, said.stderr)
                self.assertRegex(errors[0], r'43 ranges.*--format dmp')
                self.assertFalse(path.exists())
            container.unlink()

    def test_beyond_512_gib(self):
        high = 700 << 30
        container = self.gappy([(0x1000, 0x8fff), (high, high + 0x2fff)])
        for kind, first in (('dmp', 0x2038 + (high // PAGE + 64) // 8), ('dmp-full', 0x2000)):
            dump, _, gaps = self.dump(container, kind)
            self.assertEqual(set(dump.numbers), set(range(1, 9)) | set(range(high // PAGE, high // PAGE + 3)))
            self.assertEqual(dump.page(high // PAGE + 2)[:8], struct.pack('<Q', high + 2 * PAGE) if
                             (high // PAGE + 2) % 3 else bytes(8))
            self.assertEqual(dump.offsets[1], -(-first // PAGE) * PAGE)
            if kind == 'dmp':
                self.assertTrue(any('MemProcFS' in line and '512 GiB' in line for line in self.warnings()))

    def test_options(self):
        container = self.gappy([(0x1000, 0x8fff)])
        said = subprocess.run([RAMSEAL, 'export', '-F', 'raw', '--no-patch', '-o', self.dir / 'x', container],
                              capture_output=True, text=True, timeout=900)
        self.assertEqual(said.returncode, 2)
        self.assertTrue(re.search(r'--no-patch applies to --format dmp only', said.stderr))

    def test_to_a_pipe(self):
        container = self.gappy([(0x1000, 0x8fff)])
        _, _, _ = self.dump(container)
        done = subprocess.run([RAMSEAL, 'export', '-q', '-F', 'dmp', '-o', '-', container], capture_output=True,
                              timeout=900)
        self.assertEqual(done.stdout, (self.dir / 'dmp.dmp').read_bytes())


if __name__ == '__main__':
    unittest.main()
