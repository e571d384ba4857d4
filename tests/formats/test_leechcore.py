#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What LeechCore, which MemProcFS and others read memory through, has of each page: of every export that it
opens, and of what `mount` shows.
Usage: test_leechcore.py RAMSEAL

RAMSEAL_PEERS is a folder that has LeechCore's source in `LeechCore`, built there with its Makefile.
Without it the test is skipped.
"""

import contextlib
import ctypes
import json
import os
import random
import sys
import tempfile
import unittest
from pathlib import Path

RAMSEAL = os.path.abspath(sys.argv.pop(1))
sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import layer_samples as samples  # noqa: E402
import mounted  # noqa: E402
from layer_samples import PAGE, Flat, run  # noqa: E402

LIBRARY = Path(os.environ.get('RAMSEAL_PEERS') or '/nonexistent') / 'LeechCore/files/leechcore.so'
AT_ONCE = 256
MACHINE = ('sim:desktop,ram=96M,allocated=40M,resident=20M,trimmed=16M,others=20M,processes=10,cache=6M,'
           'pagefile0=64M,pagefile1=48M,start=0,exit=0')

needs_simulator = unittest.skipIf(os.environ.get('RAMSEAL_SIMULATOR') == '0', 'built without simulated machines')
needs_mount = unittest.skipIf(mounted.missing(), mounted.missing())


class Config(ctypes.Structure):
    """LC_CONFIG (leechcore.h of 709dce8)."""
    _fields_ = [('version', ctypes.c_uint32), ('verbosity', ctypes.c_uint32), ('device', ctypes.c_char * 260),
                ('remote', ctypes.c_char * 260), ('printf', ctypes.c_void_p), ('max', ctypes.c_uint64),
                ('flags', ctypes.c_uint32 * 4), ('name', ctypes.c_char * 260)]


class Scatter(ctypes.Structure):
    """MEM_SCATTER (there)."""
    _fields_ = [('version', ctypes.c_uint32), ('done', ctypes.c_uint32), ('address', ctypes.c_uint64),
                ('bytes', ctypes.c_void_p), ('count', ctypes.c_uint32), ('depth', ctypes.c_uint32),
                ('stack', ctypes.c_uint64 * 12)]


class Device:
    """An image that LeechCore has opened."""

    def __init__(self, path):
        self.library = ctypes.CDLL(str(LIBRARY))
        self.library.LcCreate.restype = ctypes.c_void_p
        self.config = Config(version=0xc0fd0002, device=f'file://{path}'.encode())
        self.handle = ctypes.c_void_p(self.library.LcCreate(ctypes.byref(self.config)))
        if not self.handle:
            raise OSError(f'LeechCore does not open {path}')
        self.pages = ctypes.POINTER(ctypes.POINTER(Scatter))()
        if not self.library.LcAllocScatter1(AT_ONCE, ctypes.byref(self.pages)):
            raise MemoryError

    def read(self, addresses):
        """The page at each; None where it has none."""
        for i, address in enumerate(addresses):
            self.pages[i].contents.address, self.pages[i].contents.done = address, 0
        self.library.LcReadScatter(self.handle, len(addresses), self.pages)
        return [ctypes.string_at(p.contents.bytes, PAGE) if p.contents.done else None
                for p in self.pages[:len(addresses)]]

    def close(self):
        self.library.LcMemFree(self.pages)
        self.library.LcClose(self.handle)


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)

    def gaps_of(self, path, flat, patched=()):
        """Checks all that it has, but for bytes of `patched` pages. {pages that it has not}"""
        missing = set()
        with contextlib.closing(Device(path)) as device:
            for first in range(0, len(flat.data), AT_ONCE * PAGE):
                addresses = range(first, min(first + AT_ONCE * PAGE, len(flat.data)), PAGE)
                for at, page in zip(addresses, device.read(addresses)):
                    if page is None:
                        missing.add(at)
                    elif at not in patched:
                        self.assertTrue(page == flat.data[at:at + PAGE], f'{path.name} at {at:#x}')
        return missing

    def known(self, container):
        """(flat image, all its pages, those in ranges, those of them that were read)"""
        flat = Flat(RAMSEAL, container, self.dir)
        covered, lost = ({at for a, b in spans for at in range(a, b, PAGE)} for spans in (flat.captured, flat.gaps))
        return flat, set(range(0, len(flat.data), PAGE)), covered, covered - lost

    def check(self, container, kinds, codes=(0,)):
        flat, everything, covered, read = self.known(container)
        wanted = {'raw': everything, 'dmp': read}
        for kind in kinds:
            path = self.dir / f'exported.{kind}'
            more = ('--no-patch',) if 'dmp' in kind else ()
            run(RAMSEAL, 'export', '-q', '-f', '-F', kind, *more, '-o', path, container, codes=codes)
            with self.subTest(kind):
                self.assertEqual(everything - self.gaps_of(path, flat), wanted.get(kind, covered))
            path.unlink()

    @needs_simulator
    def test_a_simulated_windows(self):
        container = self.dir / 'host.rsz'
        seed = random.randrange(1 << 32)
        print(f'seed {seed}')
        run(RAMSEAL, 'acquire', '-q', '-s', f'{MACHINE},seed={seed},cpus=2', '-o', container)
        self.check(container, ('raw', 'lime', 'elf', 'dmp', 'dmp-full'))
        if mounted.missing():
            self.skipTest(mounted.missing())
        flat, everything, _, read = self.known(container)
        with mounted.mounted(RAMSEAL, container, self.dir / 'mnt') as folder:
            self.assertEqual(self.gaps_of(folder / 'memory.raw', flat), set())
            patches = json.loads((folder / 'memory.dmp.gaps.json').read_text())['patched']
            patched = {at & -PAGE for p in patches for at in (p['address'], p['address'] + p['bytes'] - 1)}
            self.assertEqual(everything - self.gaps_of(folder / 'memory.dmp', flat, patched), read)

    def gappy(self, count):
        """Ranges of all sizes, and pages behind them that could not be read; it takes no file below 16 MiB."""
        place = random.Random(count)
        ranges, at, image, container = [], 0, self.dir / 'gaps.lime', self.dir / 'gaps.rsz'
        for _ in range(count):
            at += place.choice((1, 1, 2, 9, 70)) * PAGE
            size = place.choice((1, 1, 3, 8, 65)) * PAGE
            ranges.append((at, at + size - 1))
            at += size
        ranges.append((at + PAGE, at + 4500 * PAGE - 1))
        samples.lime(image, ranges, cut=20 * PAGE)
        run(RAMSEAL, 'acquire', '-q', '-f', '-s', f'file:{image}', '-o', container, codes=(3,))
        return container

    def test_gaps(self):
        """It takes an ELF core only if its headers end within 8 KiB: 145 ranges at most."""
        self.check(self.gappy(1000), ('raw', 'lime', 'dmp'), (3,))
        self.check(self.gappy(30), ('elf', 'dmp-full'), (3,))

    @needs_mount
    def test_gaps_through_the_mount(self):
        for count, name in ((1000, 'memory.raw'), (30, 'memory.core')):
            container = self.gappy(count)
            flat, everything, covered, _ = self.known(container)
            with mounted.mounted(RAMSEAL, container, self.dir / 'mnt') as folder:
                self.assertEqual(everything - self.gaps_of(folder / name, flat),
                                 covered if name == 'memory.core' else everything)


if __name__ == '__main__':
    if not LIBRARY.exists():
        print('LeechCore is missing: RAMSEAL_PEERS does not name a folder that has it')
        sys.exit(77)
    unittest.main()
