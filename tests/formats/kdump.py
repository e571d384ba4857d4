# SPDX-License-Identifier: Apache-2.0
"""
Reads compressed kdumps, plain and flattened: for tests, and written from makedumpfile's
diskdump_mod.h and IMPLEMENTATION alone, not from what ramseal writes.
"""
import bisect
import os
import struct
import subprocess
from typing import NamedTuple

PAGE = 4096
ZERO = bytes(PAGE)
PIECE = 1 << 20  # of a bitmap
BITS = [[bit for bit in range(8) if byte >> bit & 1] for byte in range(256)]
ZSTD, ZLIB, INCOMPLETE = 0x20, 0x01, 0x08


class Flattened:
    """The bytes that the records of a flattened file stand for; what no record has is zeros."""

    def __init__(self, f):
        self.f = f
        head = f.read(4096)
        assert head[:16] == b'makedumpfile'.ljust(16, b'\0'), head[:16]
        assert struct.unpack('>QQ', head[16:32]) == (1, 1)
        assert not any(head[32:])
        self.records, at = [], 4096
        self.ended = False
        while len(words := f.read(16)) == 16:
            offset, size = struct.unpack('>qq', words)
            if offset == -1:
                assert size == -1 and not f.read(1)
                self.ended = True
                break
            assert offset >= 0 and size > 0
            self.records.append((offset, size, at + 16))
            at = f.seek(at + 16 + size)
        self.order = sorted(range(len(self.records)), key=lambda i: (self.records[i][0], i))
        self.starts = [self.records[i][0] for i in self.order]

    def read(self, at, size):
        got = bytearray(size)
        first = max(bisect.bisect_right(self.starts, at) - 1, 0)
        for i in self.order[first:]:
            offset, length, place = self.records[i]
            begin, end = max(at, offset), min(at + size, offset + length)
            if offset >= at + size:
                break
            if begin < end:
                self.f.seek(place + begin - offset)
                got[begin - at:end - at] = self.f.read(end - begin)
        return bytes(got)


class Plain:
    ended = True

    def __init__(self, f):
        self.f = f

    def read(self, at, size):
        self.f.seek(at)
        got = self.f.read(size)
        assert len(got) == size, f'ends inside {size} bytes at {at}'
        return got


class Descriptor(NamedTuple):
    offset: int
    size: int
    flags: int
    page_flags: int


class Kdump:
    def __init__(self, path):
        self.f = open(path, 'rb')
        flat = self.f.read(12) == b'makedumpfile'
        self.f.seek(0)
        self.bytes = Flattened(self.f) if flat else Plain(self.f)
        self._header(self.bytes.read(0, PAGE))
        self._sub_header(self.bytes.read(PAGE, PAGE))
        self.memory = list(self._frames(0))
        self.dumped = list(self._frames(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.f.close()

    def _header(self, h):
        signature, self.version = struct.unpack_from('<8si', h)
        assert (signature, self.version) == (b'KDUMP   ', 6)
        self.uts = [h[12 + 65 * i:77 + 65 * i].split(b'\0')[0] for i in range(6)]
        assert all(h[76 + 65 * i] == 0 for i in range(6))
        self.seconds, self.microseconds = struct.unpack_from('<QQ', h, 408)
        (self.status, block, self.sub_blocks, self.bitmap_blocks, max_mapnr, _, _, _, self.cpu,
         self.cpus) = struct.unpack_from('<IiiIIIIIIi', h, 424)
        assert block == PAGE and not any(h[464:])
        self.max_mapnr_32 = max_mapnr

    def _sub_header(self, h):
        (self.phys_base, self.dump_level, self.split, _, _, info, info_size, notes, notes_size, erase,
         erase_size, _, _, self.max_mapnr) = struct.unpack_from('<QiiQQQQQQQQQQQ', h)
        assert (self.split, erase, erase_size) == (0, 0, 0)
        assert self.max_mapnr_32 == min(self.max_mapnr, 0xffffffff)
        assert self.bitmap_blocks >= 2 * -(-self.max_mapnr // (8 * PAGE))
        self.vmcoreinfo = self.bytes.read(info, info_size) if info else None
        self.notes = self.bytes.read(notes, notes_size) if notes else b''
        assert not notes or PAGE < notes and notes + notes_size <= (1 + self.sub_blocks) * PAGE

    def _frames(self, which):
        """Numbers of the bits that are set."""
        size = self.bitmap_blocks // 2 * PAGE
        begin = (1 + self.sub_blocks) * PAGE + which * size
        for at in range(0, size, PIECE):
            piece = self.bytes.read(begin + at, min(PIECE, size - at))
            if piece.count(0) == len(piece):
                continue
            for block in range(0, len(piece), PAGE):
                part = piece[block:block + PAGE]
                if part != ZERO:
                    yield from ((at + block + i) * 8 + bit for i, byte in enumerate(part) if byte for bit in BITS[byte])

    def descriptors(self):
        begin = (1 + self.sub_blocks + self.bitmap_blocks) * PAGE
        table = self.bytes.read(begin, 24 * len(self.dumped))
        return [Descriptor(*fields) for fields in struct.iter_unpack('<QIIQ', table)]

    def pages(self):
        """{address: page} of all that is dumped."""
        descriptors = self.descriptors()
        packed, page = {}, {}  # by where they are: many frames may share a page
        for d in set(descriptors):
            assert d.flags in (0, ZSTD) and d.offset > 0 and d.page_flags == 0, d
            assert d.size == PAGE if not d.flags else d.size < PAGE, d
            assert d.offset not in packed and d.offset not in page, d
            (packed if d.flags else page)[d.offset] = self.bytes.read(d.offset, d.size)
        plain = unzstd(packed.values())
        assert len(plain) == PAGE * len(packed)
        page.update((offset, plain[i * PAGE:(i + 1) * PAGE]) for i, offset in enumerate(packed))
        return {frame * PAGE: page[d.offset] for frame, d in zip(self.dumped, descriptors, strict=True)}


def unzstd(frames):
    if not frames:
        return b''
    done = subprocess.run(['zstd', '-dcq'], input=b''.join(frames), capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def disk_usage(path):
    return os.stat(path).st_blocks * 512
