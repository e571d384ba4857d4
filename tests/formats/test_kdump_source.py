#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Compressed kdumps as a source: ours, and made here as makedumpfile's diskdump_mod.h and IMPLEMENTATION
have them; cut, damaged, and with headers that lie. makedumpfile's and QEMU's own: vm/test_dumps.py.
Usage: test_kdump_source.py RAMSEAL
"""
import ctypes
import os
import random
import struct
import subprocess
import sys
import time
import unittest
import zlib

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'sim'))
from image_makers import varint  # noqa: E402: beside this
from kdump import Kdump  # noqa: E402
from sampled import sample  # noqa: E402
from test_sources import PAGE, RAMSEAL, ZERO, Case, noise, words  # noqa: E402

LIBLZO2 = ctypes.CDLL('liblzo2.so.2')
ZLIB, LZO, SNAPPY, INCOMPLETE, ZSTD = 1, 2, 4, 8, 0x20
SUB, BITMAPS = 4096, 8192


def zstd(page):
    return subprocess.run(['zstd', '-qc'], input=page, capture_output=True, check=True).stdout


def snappy(page):
    """google/snappy, format_description.txt: where the first half repeats its first 8 bytes, copies of these."""
    literal = lambda data: b'\xf4' + struct.pack('<H', len(data) - 1) + data
    half = PAGE // 2
    if page[:half] != page[:8] * (half // 8):
        return varint(PAGE) + literal(page)
    copies = [64] * ((half - 8) // 64) + [(half - 8) % 64]
    return (varint(PAGE) + literal(page[:8]) + b''.join(struct.pack('<BH', (n - 1) << 2 | 2, 8) for n in copies) +
            literal(page[half:]))


def lzo(page):
    """What makedumpfile -l calls."""
    out, size = ctypes.create_string_buffer(2 * PAGE), ctypes.c_size_t(2 * PAGE)
    work = ctypes.create_string_buffer(1 << 17)  # LZO1X_1_MEM_COMPRESS of 64 bits
    assert LIBLZO2.lzo1x_1_compress(page, ctypes.c_size_t(len(page)), out, ctypes.byref(size), work) == 0
    return out.raw[:size.value]


def packed(page, method):
    return {ZLIB: zlib.compress, ZSTD: zstd, SNAPPY: snappy, 0: bytes, LZO: lzo}[method](page)


def bits(frames, blocks):
    out = bytearray(blocks * PAGE)
    for f in frames:
        out[f // 8] |= 1 << f % 8
    return bytes(out)


def make(pages, ram, method=ZLIB, version=6, status=None, single=False, machine=b'x86_64', notes=b'', blocks=1,
         max_mapnr=None, split=0):
    """{frame: page, or the 24 bytes of a descriptor}, and the frames that are memory."""
    top = max(ram) + 1 if max_mapnr is None else max_mapnr
    head = struct.pack('<8si', b'KDUMP   ', version) + bytes(65 * 4) + machine.ljust(65, b'\0') + bytes(65)
    head = head.ljust(408, b'\0') + struct.pack('<QQ', 0, 0)
    head += struct.pack('<IiiIIIIIIi', method if status is None else status, PAGE, 1, blocks if single else 2 * blocks,
                        min(top, 0xffffffff), 0, 0, 0, 0, 1)
    sub = struct.pack('<QiiQQQQQQQQQQQ', 0, 31, split, 0, 0, 0, 0, SUB + 104 if notes else 0, len(notes), 0, 0, 0, 0,
                      top if version >= 6 else 0) + notes
    maps = b'' if single else bits(ram, blocks)
    maps += bits(pages, blocks)
    table, data = b'', b''
    begin = BITMAPS + len(maps) + 24 * len(pages)
    for frame in sorted(pages):
        page = pages[frame]
        if len(page) == 24:
            table += page
            continue
        stored = packed(page, method)
        flags = method if len(stored) < PAGE or method == SNAPPY else 0
        stored = stored if flags else page
        if len(stored) > PAGE:
            stored, flags = page, 0
        table += struct.pack('<QIIQ', begin + len(data), len(stored), flags, 0)
        data += stored
    return head.ljust(PAGE, b'\0') + sub.ljust(PAGE, b'\0') + maps + table + data


def flatten(data, sizes, end=True):
    """Records of these sizes in turn, in any order, blocks of zeros left out."""
    out = b'makedumpfile'.ljust(16, b'\0') + struct.pack('>QQ', 1, 1)
    out, records, at = out.ljust(PAGE, b'\0'), [], 0
    while at < len(data):
        n = sizes[len(records) % len(sizes)]
        records.append((at, data[at:at + n]))
        at += n
    random.Random(1).shuffle(records)
    for at, part in records:
        if any(part):
            out += struct.pack('>QQ', at, len(part)) + part
    return out + (b'\xff' * 16 if end else b'')


def memory():
    """Pages of words, of zeros and of noise; every seventh is left out; two ranges."""
    ram = [*range(3, 90), *range(200, 240)]
    pages = {}
    for f in ram:
        if f % 7 == 0:
            continue
        pages[f] = ZERO if f % 5 == 0 else noise(f, 1) if f % 11 == 0 else words(f, 1)
    return pages, ram


class Sources(Case):
    def check_pages(self, data, pages, ram, **more):
        left_out = {f * PAGE for f in ram if f not in pages}
        r = self.check(data, {f * PAGE: p for f, p in pages.items()}, skipped=left_out, **more)
        return r

    def test_each_compression(self):
        pages, ram = memory()
        for method in ZLIB, LZO, ZSTD, SNAPPY, 0:
            with self.subTest(method):
                data = make(pages, ram, method)
                self.check_pages(data, pages, ram, code=3)
                with Kdump(self.source) as k:
                    packed_pages = sum(d.flags == method for d in k.descriptors())
                self.assertGreater(packed_pages, len(pages) // 2)

    def test_each_version(self):
        pages, ram = memory()
        for version in range(7):
            with self.subTest(version):
                self.check_pages(make(pages, ram, version=version), pages, ram, code=3)

    def test_one_bitmap(self):
        """What is left out of it is not known to be memory."""
        pages, ram = memory()
        data = make(pages, ram, single=True)
        self.check_pages(data, pages, list(pages), code=0)

    def test_bits_behind_the_last_frame_do_not_count(self):
        pages, ram = memory()
        some = {f: p for f, p in pages.items() if f < 77}
        r = self.check_pages(make(pages, ram, max_mapnr=77), some, [f for f in ram if f < 77], code=3)
        self.assertEqual(r.summary['pages']['skipped'], sum(f % 7 == 0 for f in ram if f < 77))

    def test_flattened(self):
        pages, ram = memory()
        for sizes in ([PAGE], [1 << 20], [464, 3632, 777, 5000, 1]):
            with self.subTest(sizes):
                self.check_pages(flatten(make(pages, ram), sizes), pages, ram, code=3)

    def test_flattened_header_that_is_written_again(self):
        pages, ram = memory()
        data = make(pages, ram)
        wrong = data[:424] + struct.pack('<I', INCOMPLETE) + data[428:PAGE]
        flat = flatten(data, [PAGE])
        first = flat[:PAGE] + struct.pack('>QQ', 0, PAGE) + wrong + flat[PAGE:]
        r = self.check_pages(first, pages, ram, code=3)
        self.assertNotIn('incomplete', r.text)
        first = flat[:PAGE] + struct.pack('>QQ', 100, PAGE) + wrong + flat[PAGE:]
        self.assertIn('overlap', self.refused(first))

    def test_lost_and_damaged_pages(self):
        pages, ram = memory()
        lost = {f: struct.pack('<QIIQ', *d) for f, d in {
            10: (0, 0, 0, 0), 12: (1 << 40, 100, ZLIB, 0), 15: ((1 << 63) - 1, 4096, 0, 0),
            16: (BITMAPS, 4097, ZLIB, 0), 17: (BITMAPS, 100, 0, 0), 18: (BITMAPS, 0, ZLIB, 0),
            19: (BITMAPS, 100, ZLIB, 0), 20: (BITMAPS, 100, ZSTD, 0), 22: (BITMAPS, 100, SNAPPY, 0),
            23: (BITMAPS, 100, ZSTD | ZLIB, 0), 24: (BITMAPS, 100, LZO, 0),
            25: ((1 << 64) - 1, 4096, 0, 0)}.items()}
        data = make({**pages, **lost}, ram, status=ZLIB | INCOMPLETE)
        rest = {f: p for f, p in pages.items() if f not in lost}
        r = self.check(data, {f * PAGE: p for f, p in rest.items()}, code=3, unreadable={f * PAGE for f in lost},
                       skipped={f * PAGE for f in ram if f not in pages and f not in lost})
        self.assertIn('incomplete', r.text)

    def test_lzo_that_is_not_a_page(self):
        """Cut, with something behind it, longer and shorter than a page, and with every bit of a page's turned."""
        page = words(3, 1)
        whole = lzo(page)
        parts = [whole[:-1], whole + b'\0', lzo(page + b'!'), lzo(page[:-1]), whole[:40], b'\x11\0\0',
                 *(whole[:i // 8] + bytes([whole[i // 8] ^ 1 << i % 8]) + whole[i // 8 + 1:]
                   for i in sample(range(8 * len(whole)), of=70))]
        first = BITMAPS + 2 * PAGE + 24 * len(parts)
        places = [first + sum(map(len, parts[:i])) for i in range(len(parts))]
        table = {i + 3: struct.pack('<QIIQ', at, len(part), LZO, 0)
                 for i, (at, part) in enumerate(zip(places, parts))}
        self.write(make(table, list(table), LZO) + b''.join(parts))
        r = self.run_it('acquire', '-s', 'file:' + self.source, '-F', 'kdump', '-o', self.path('out'), '-f')
        self.assertIn(r.returncode, (3, 5), r.text)
        with Kdump(self.path('out')) as k:
            self.assertFalse({a // PAGE for a in k.pages()} & set(range(3, 9)))

    def test_notes(self):
        info = b'OSRELEASE=6.1.0-test\nPAGESIZE=4096\n'
        note = struct.pack('<III', 11, len(info), 0) + b'VMCOREINFO\0\0' + info + bytes(-len(info) % 4)
        pages, ram = memory()
        self.acquire(make(pages, ram, notes=note), 3, 'kdump')
        with Kdump(self.path('out')) as k:
            self.assertEqual((k.notes, k.vmcoreinfo), (note, info))

    def test_sealed_and_exported_again(self):
        """Ours, plain and flattened: the same dump again, through a container."""
        pages, ram = memory()
        self.acquire(make(pages, ram), 3, 'kdump')
        with Kdump(self.path('out')) as k:
            first = k.memory, k.dumped, k.pages()
        self.assertEqual((first[0], sorted(first[1])), (ram, sorted(pages)))
        os.rename(self.path('out'), self.source)
        r = self.run_it('acquire', '-s', 'file:' + self.source, '-o', self.path('c.rsz'))
        self.assertEqual(r.returncode, 3, r.text)
        r = self.run_it('export', '-F', 'kdump', '-o', self.path('again'), self.path('c.rsz'))
        self.assertEqual(r.returncode, 3, r.text)
        with open(self.source, 'rb') as a, open(self.path('again'), 'rb') as b:
            self.assertEqual(a.read(), b.read())


class Bad(Case):
    def refused(self, data):
        self.write(data)
        done = subprocess.run([RAMSEAL, 'acquire', '-s', 'file:' + self.source, '-o', self.path('x'), '-f'],
                              capture_output=True, text=True, timeout=900)
        self.assertEqual((done.returncode, done.stderr.count('\n')), (9, 1), done.stderr)
        return done.stderr

    def test_other_kinds_are_named(self):
        pages, ram = memory()
        data = make(pages, ram)
        for bad, text in ((make(pages, ram, version=7), 'version 7'), (make(pages, ram, machine=b'ppc64le'), 'machine'),
                          (make(pages, ram, split=1), '--reassemble'), (flatten(b'\x7fELF' + bytes(5000), [PAGE]), '-R'),
                          (data[:428] + struct.pack('<I', 65536) + data[432:], '65536'),
                          (b'DISKDUMP' + data[8:], 'diskdump'), (make(pages, ram, max_mapnr=1 << 35), 'cannot be')):
            self.assertIn(text, self.refused(bad))

    def test_cut_anywhere(self):
        """Refused, or all that is read is right."""
        pages, ram = memory()
        whole = make(pages, ram)
        for name, data in ('plain', whole), ('flat', flatten(whole, [PAGE])):
            for at in [8, 16, 463, 4095, 5000, 8192, 12287, 16383, 16384, 17000, 20000, 60000, len(data) - 17,
                       len(data) - 1, *random.Random(7).sample(range(len(data)), 12)]:
                with self.subTest(name, at=at):
                    self.write(data[:at])
                    r = self.run_it('acquire', '-s', 'file:' + self.source, '-F', 'kdump', '-o', self.path('out'), '-f')
                    self.assertIn(r.returncode, (3, 5, 9), r.text)
                    if r.returncode == 9:
                        continue
                    with Kdump(self.path('out')) as k:
                        self.assertEqual(r.returncode == 5, not k.pages())
                        for address, page in k.pages().items():
                            self.assertEqual(page, pages[address // PAGE], hex(address))

    def test_fields_that_lie(self):
        """Every word of the headers, and of the first descriptors; in bounded time, with one line."""
        pages, ram = memory()
        whole = make(pages, ram)
        table = BITMAPS + 2 * PAGE
        places = [8, *range(424, 464, 4), *range(SUB, SUB + 104, 4), *range(table, table + 48, 4)]
        for data in whole, flatten(whole, [1 << 20]):
            base = 0 if data is whole else PAGE + 16
            for place, value in sample([(p, v) for p in places for v in (0, 1, 0x7fffffff, 0x80000000, 0xffffffff)],
                                       of=7):
                with self.subTest(place=place, value=value, flat=base > 0):
                    self.write(data[:base + place] + struct.pack('<I', value) + data[base + place + 4:])
                    begin = time.monotonic()
                    done = subprocess.run([RAMSEAL, 'acquire', '-q', '-s', 'file:' + self.source, '-F', 'lime',
                                           '-o', '/dev/null'], capture_output=True, text=True, timeout=900)
                    self.assertIn(done.returncode, (0, 3, 5, 9), done.stderr)
                    self.assertLess(time.monotonic() - begin, 60)
                    if done.returncode == 9:
                        self.assertEqual(done.stderr.count('\n'), 1, done.stderr)

    def test_records_that_lie(self):
        pages, ram = memory()
        flat = flatten(make(pages, ram), [PAGE])
        for offset, size in ((1 << 63, 100), (5, 0), (5, 1 << 63), ((1 << 63) - 1, 4096), ((1 << 64) - 1, 5)):
            self.assertIn('cannot be', self.refused(flat[:PAGE] + struct.pack('>QQ', offset, size) + flat[PAGE:]))


Sources.refused = Bad.refused

if __name__ == '__main__':
    unittest.main()
