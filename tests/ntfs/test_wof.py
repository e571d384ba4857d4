#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files whose content is not in their unnamed stream: compressed by WOF, deduplicated, in a cloud.

    test_wof.py RAMSEAL [unittest options]
"""
import itertools
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import wof
from forge import DATA, Volume

RAMSEAL = os.path.abspath(sys.argv.pop(1))
MIB = 1 << 20
OK, GAPS, INPUT = 0, 3, 9
TAG_WOF, DEDUP, CLOUD, SYMLINK = 0x80000017, 0x80000013, 0x9000301a, 0xa000000c
RECALL = 0x401620     # offline, sparse, reparse point, recall on data access
STREAM = 'WofCompressedData'


def provider(algorithm, kind=2):
    return struct.pack('<IIII', 1, kind, 1, algorithm)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='ramseal-wof-')
        self.addCleanup(shutil.rmtree, self.folder)
        self.image = os.path.join(self.folder, 'image.raw')
        self.out = os.path.join(self.folder, 'out')
        self.volume = Volume(16 * MIB)

    def ramseal(self, *args):
        return subprocess.run([RAMSEAL, *map(str, args)], capture_output=True, timeout=900)

    def acquire(self, path, container):
        memory = os.path.join(self.folder, 'memory.raw')
        with open(memory, 'wb') as f:
            f.truncate(MIB)
        return self.ramseal('acquire', '-s', f'file:{memory}', '--image', self.image, '--no-pagefile', '--file', path,
                            '-o', container)

    def extract(self, path='file'):
        self.volume.write(self.image)
        return self.ramseal('extract-file', '-i', self.image, path, '-o', '-')


@unittest.skipUnless(wof.HAVE_WIMLIB, 'wimlib-imagex (wimtools) is not installed')
class Compressed(Case):
    def test_every_algorithm(self):
        # A program: calls that LZX translates, chunks that are stored as they are, a last one that is short.
        for algorithm, size in itertools.product(range(4), (1000, 4096, 32768, 300001)):
            with self.subTest(algorithm=algorithm, size=size):
                want = wof.program(size) if size > 4096 else (b'ten green bottles ' * 300)[:size]
                self.volume = Volume(16 * MIB)
                self.volume.reparse('file', size, TAG_WOF, provider(algorithm),
                                    (STREAM, wof.compress(want, algorithm)))
                r = self.extract()
                self.assertEqual((r.returncode, r.stdout == want), (OK, True), r.stderr)

    def test_in_a_container(self):
        want = wof.program(200000)
        packed = wof.compress(want, wof.LZX)
        self.volume.reparse('file', len(want), TAG_WOF, provider(wof.LZX), (STREAM, packed))
        self.volume.write(self.image)
        c = os.path.join(self.folder, 'c.rsz')
        r = self.acquire('file', c)
        self.assertEqual(r.returncode, OK, r.stderr)
        r = self.ramseal('extract', c, '--stream', 'file', '-o', self.out)
        with open(self.out, 'rb') as f:
            self.assertTrue(f.read() == want, r.stderr)
        # The compressed stream is there for who asks for it.
        r = self.ramseal('extract-file', '-i', self.image, 'file:' + STREAM, '-o', '-')
        self.assertEqual((r.returncode, r.stdout == packed), (OK, True), r.stderr)

    def test_damaged(self):
        want = wof.program(200000)
        for algorithm in range(4):
            packed = bytearray(wof.compress(want, algorithm))
            chunks = -(-len(want) // wof.CHUNK[algorithm])
            table = 4 * (chunks - 1)
            for what in 'chunk', 'table', 'cut':
                with self.subTest(algorithm=algorithm, what=what):
                    bad = bytearray(packed)
                    if what == 'chunk':     # the first, which is compressed: no more codes than bits
                        bad[table:table + 40] = b'\x11' * 40
                    elif what == 'table':
                        struct.pack_into('<I', bad, 0, 0xfffffff0)
                    else:
                        del bad[len(bad) // 2:]
                    self.volume = Volume(16 * MIB)
                    self.volume.reparse('file', len(want), TAG_WOF, provider(algorithm), (STREAM, bytes(bad)))
                    r = self.extract()
                    self.assertEqual((r.returncode, len(r.stdout)), (GAPS, len(want)), r.stderr)
                    self.assertIn(b'could not be read', r.stderr)
                    # What is not read is zeros, and all else is the file's.
                    for at in range(0, len(want), 4096):
                        page = r.stdout[at:at + 4096]
                        self.assertTrue(page in (want[at:at + 4096], bytes(len(page))), at)
                    self.assertNotEqual(r.stdout, bytes(len(want)))


class Elsewhere(Case):
    def refused(self, r, *parts):
        self.assertEqual((r.returncode, r.stdout), (GAPS, b''), r.stderr)
        for part in (b'file: is ', *parts):
            self.assertIn(part, r.stderr)

    def test_refused_by_name(self):
        for tag, data, part in ((DEDUP, bytes(100), b'deduplicated'), (CLOUD, bytes(300), b'cloud file'),
                                (0x9000001a, b'', b'cloud file'), (0x80000021, b'', b'OneDrive'),
                                (0x8000001e, b'', b'Azure File Sync'), (0x9000001c, b'', b'ProjFS'),
                                (0xc0000004, b'', b'hierarchical storage'), (0x80000007, b'', b'single-instanced'),
                                (0x12345678, b'', b'unknown tag 0x12345678'),
                                (TAG_WOF, provider(0, kind=1), b'WIM file'), (TAG_WOF, provider(4), b'not known'),
                                (TAG_WOF, b'', b'not known'), (TAG_WOF, provider(1), b'unusable stream')):
            with self.subTest(tag=hex(tag), data=data[:16]):
                self.volume = Volume(16 * MIB)
                self.volume.reparse('file', 100000, tag, data)
                self.refused(self.extract(), part)

    def test_resident_placeholder(self):
        f = self.volume.reparse('file', 0, CLOUD, bytes(40), attributes=RECALL)
        next(a for a in self.volume.records[f.number][3] if a.kind == DATA).value = bytes(200)
        self.refused(self.extract(), b'cloud file')

    def test_partly_here(self):
        f = self.volume.reparse('file', 12 * 4096, CLOUD, bytes(40), runs=[(1000, 4), (None, 4), (2000, 4)])
        r = self.extract()
        self.assertEqual(r.returncode, GAPS, r.stderr)
        self.assertTrue(r.stdout == f.content())
        self.assertIn(b'4 pages could not be read: it is a cloud file', r.stderr)

    def test_wholly_here(self):
        f = self.volume.reparse('file', 12 * 4096, CLOUD, bytes(40), runs=[(1000, 12)])
        r = self.extract()
        self.assertEqual((r.returncode, r.stdout == f.content()), (OK, True), r.stderr)

    def test_link(self):
        self.volume.reparse('file', 0, SYMLINK, bytes(20))
        r = self.extract()
        self.assertEqual((r.returncode, r.stdout), (INPUT, b''), r.stderr)
        self.assertIn(b'symbolic link', r.stderr)

    def test_named_streams_are_as_they_are(self):
        self.volume.reparse('file', 100000, DEDUP, bytes(100), ('Zone.Identifier', b'ZoneId=3'))
        r = self.extract('file:Zone.Identifier')
        self.assertEqual((r.returncode, r.stdout), (OK, b'ZoneId=3'), r.stderr)

    def test_in_a_container(self):
        self.volume.reparse('file', 100000, DEDUP, bytes(100))
        self.volume.write(self.image)
        c = os.path.join(self.folder, 'c.rsz')
        r = self.acquire('file', c)
        self.assertEqual(r.returncode, GAPS, r.stderr)
        self.assertIn(b'file: is deduplicated', r.stderr)
        info = json.loads(self.ramseal('info', '--json', c).stdout)
        stream = next(s for s in info['streams'] if s['name'] == 'file')
        self.assertEqual(stream['pages']['unreadable'], 25, stream)


if __name__ == '__main__':
    unittest.main()
