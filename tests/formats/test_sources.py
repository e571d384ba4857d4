#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Images that other tools write, as sources: each page is what was put in, or is a gap and counted.
Usage: test_sources.py RAMSEAL"""
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import image_makers as make
from image_makers import PAGE

RAMSEAL = os.path.abspath(sys.argv.pop(1))
MIB = 1 << 20
UNREADABLE = b"UNREADABLE PAGE " * 256
SKIPPED = b"SKIPPED PAGE    " * 256
ZERO = bytes(PAGE)


def noise(first, pages, seed=0):
    return random.Random(first << 8 | seed).randbytes(pages * PAGE)


def words(first, pages):
    """Memory as it often is: half of each page repeats, the other half does not."""
    r = random.Random(first)
    return b"".join(struct.pack("<Q", first + i * PAGE) * 256 + r.randbytes(PAGE // 2) for i in range(pages))


def pages_of(memory):
    return {first + at: data[at:at + PAGE] for first, data in memory for at in range(0, len(data), PAGE)}


class Case(unittest.TestCase):
    def setUp(self):
        shm = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.dir = tempfile.mkdtemp(prefix="ramseal-sources-", dir=os.environ.get("TMPDIR", shm))
        self.addCleanup(shutil.rmtree, self.dir)
        self.source = self.path("source")

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, data):
        with open(self.source, "wb") as f:
            f.write(data)

    def run_it(self, *args):
        r = subprocess.run([RAMSEAL, "--log-json", *args], capture_output=True, timeout=250)
        lines = [json.loads(line) for line in r.stderr.splitlines()]
        r.summary = next((line for line in lines if line["event"] == "summary"), None)
        r.error = next((line["message"] for line in lines if line["event"] == "failed"), "")
        r.text = r.stderr.decode()
        return r

    def acquire(self, data, code, fmt="raw"):
        if data is not None:
            self.write(data)
        r = self.run_it("acquire", "--source", "file:" + self.source, "--format", fmt, "-o", self.path("out"), "-f")
        self.assertEqual(r.returncode, code, r.text)
        return r

    def gaps(self):
        with open(self.path("out.gaps.json")) as f:
            told = json.load(f)
        return {name: {at for g in told[name] for at in range(g["first"], g["last"], PAGE)}
                for name in ("unreadable", "skipped")}

    def check(self, data, pages, code=0, unreadable=(), skipped=()):
        """Every page that `pages` has, each gap, and zeros elsewhere. Returns the run."""
        r = self.acquire(data, code)
        gaps = self.gaps()
        self.assertEqual(gaps["unreadable"], set(unreadable))
        self.assertEqual(gaps["skipped"], set(skipped))
        self.assertEqual(r.summary["pages"]["unreadable"], len(gaps["unreadable"]))
        end = max([*pages, *unreadable, *skipped]) + PAGE
        self.assertEqual(os.path.getsize(self.path("out")), end)
        with open(self.path("out"), "rb") as f:
            for at in range(0, end, PAGE):
                want = (UNREADABLE if at in gaps["unreadable"] else SKIPPED if at in gaps["skipped"]
                        else pages.get(at, ZERO))
                if f.read(PAGE) != want:
                    self.fail(f"page {at:#x}")
        return r

    def compare(self, pages, lost=False):
        """What is data is right; the rest is a gap, or (`lost`) not in any range, as was told."""
        gaps = self.gaps()
        n = 0
        with open(self.path("out"), "rb") as f:
            for at in range(0, os.path.getsize(self.path("out")), PAGE):
                page = f.read(PAGE)
                if at in gaps["unreadable"] or at in gaps["skipped"]:
                    self.assertIn(page, (UNREADABLE, SKIPPED))
                elif page == pages.get(at, ZERO):
                    n += at in pages
                elif not lost or page != ZERO:
                    self.fail(f"page {at:#x}")
        return n

    def refused(self, data, text, code=9):
        r = self.acquire(data, code)
        self.assertIn(text, r.error)
        self.assertEqual(r.error.count("\n"), 0)


# Ranges that begin and end where no chunk of snappy does.
MEMORY = [
    (0x1000, words(0x1000, 158)),
    (0x100000, noise(0x100000, 37)),
    (0x200000, bytes(3 * PAGE) + words(0x203000, 40) + bytes(20 * PAGE)),
    (16 * MIB - 5 * PAGE, words(7, 1)),
]


class Avml(Case):
    def test_page_by_page(self):
        r = self.check(make.avml(MEMORY)[0], pages_of(MEMORY))
        self.assertIn("leaves blocks of zeros out", r.text)
        # Blocks that touch are one range, and a container of it is whole.
        both = [(0, MEMORY[0][1][:64 * PAGE]), (64 * PAGE, MEMORY[1][1])]
        r = self.acquire(make.avml(both)[0], 0, "rsz")
        self.assertIn(" in 1 range", r.text)
        self.assertEqual(self.run_it("verify", self.path("out")).returncode, 0)
        self.assertEqual(self.run_it("export", "-o", self.path("raw"), self.path("out")).returncode, 0)
        with open(self.path("raw"), "rb") as f:
            self.assertEqual(f.read(), both[0][1] + both[1][1])

    def test_blocks_of_zeros(self):
        memory = [(0, words(0, 32)), (32 * PAGE, bytes(64 * PAGE)), (96 * PAGE, words(1, 32))]
        pages = pages_of(memory)
        for headers in (False, True):
            data, places = make.avml(memory, headers, 16 * PAGE)
            self.assertEqual(len(places), 8 if headers else 4)
            r = self.check(data, pages)
            self.assertEqual("262144 bytes are headers alone" in r.text, headers)
        # At the end it might as well be cut off there.
        data, places = make.avml(memory[:2], True, 32 * PAGE)
        self.check(data, pages_of(memory[:1]) | {at: ZERO for at in range(32 * PAGE, 64 * PAGE, PAGE)}, 3,
                   unreadable=range(64 * PAGE, 96 * PAGE, PAGE))

    MEMORY = [(0x10000, words(0, 40)), (0x80000, noise(3, 20)), (0x200000, words(4, 20))]

    @staticmethod
    def chunks(data, places):
        """(begin, end, addresses of its pages) of every chunk."""
        for place in places:
            first, last = struct.unpack_from("<QQ", data, place + 8)
            at = place + 32 + 10
            while first <= last:
                end = at + 4 + int.from_bytes(data[at + 1:at + 4], "little")
                n = min(65536, last + 1 - first)
                yield at, end, set(range(first, first + n, PAGE))
                first += n
                at = end

    def run_any(self, data, codes):
        self.write(data)
        r = self.run_it("acquire", "--source", "file:" + self.source, "--format", "raw", "-o", self.path("out"), "-f")
        self.assertIn(r.returncode, codes, r.text)
        return r

    def test_cut_anywhere(self):
        data, places = make.avml(self.MEMORY)
        pages = pages_of(self.MEMORY)
        cuts = {*range(0, 64, 3), *(places[1] + i for i in range(-12, 60, 3)), *places[1:],
                *(len(data) - i for i in range(1, 20, 3)), *random.Random(1).sample(range(len(data)), 20)}
        for cut in sorted(cuts):
            with self.subTest(cut=cut):
                if cut < 32:
                    self.run_any(data[:cut], (7, 9))
                    continue
                self.run_any(data[:cut], (0,) if cut in places else (3,))
                there = set().union(*(p for _, end, p in self.chunks(data, places) if end <= cut))
                self.assertEqual(self.compare(pages), len(there))

    def test_damaged_chunks_lose_their_own_pages_alone(self):
        data, places = make.avml(self.MEMORY)
        pages = pages_of(self.MEMORY)
        for begin, end, lost in self.chunks(data, places):
            for at in (begin + 4, begin + 20, (begin + end) // 2, end - 1):
                bad = bytearray(data)
                bad[at] ^= 0x10
                with self.subTest(at=at, chunk=begin):
                    self.check(bytes(bad), {k: v for k, v in pages.items() if k not in lost}, 3, unreadable=lost)

    def test_one_flipped_bit_anywhere(self):
        data, places = make.avml(self.MEMORY)
        pages = pages_of(self.MEMORY)
        r = random.Random(2)
        bits = {8 * (place + i) + r.randrange(8) for place in places for i in range(0, 50)}
        bits |= {8 * (places[1] - i) + r.randrange(8) for i in range(1, 9)}
        bits |= set(r.sample(range(8 * len(data)), 25))
        for bit in sorted(bits):
            bad = bytearray(data)
            bad[bit // 8] ^= 1 << bit % 8
            with self.subTest(byte=bit // 8, bit=bit % 8):
                if bit < 8 * 32:  # whose file is it, or not even one address to begin with
                    self.run_any(bad, (3, 7, 9))
                    continue
                r = self.run_any(bad, (0, 3))
                n = self.compare(pages, "source-lost" in r.text)
                # The two other blocks, at least; and all, where a copy copies the same from elsewhere.
                self.assertGreaterEqual(n, 40)
                self.assertEqual(r.returncode, 0 if n == 80 and "source-lost" not in r.text else 3)

    def test_a_piece_that_is_gone(self):
        """A sector across two blocks: both lose pages, no other does."""
        data, places = make.avml(self.MEMORY)
        pages = pages_of(self.MEMORY)
        bad = bytearray(data)
        bad[places[1] - 500:places[1] + 500] = bytes(1000)
        self.write(bad)
        r = self.run_any(bad, (3,))
        self.assertEqual(self.compare(pages, True), 32 + 20)
        self.assertIn("it is damaged in", r.text)

    def test_overlapping_blocks(self):
        twice = [(0x10000, words(0, 16)), (0x18000, words(0, 16)[8 * PAGE:] + words(5, 4))]
        r = self.check(make.avml(twice)[0], pages_of(twice))
        self.assertIn("32768 bytes of memory stand in the file twice, and are the same", r.text)
        twice[1] = (0x18000, noise(9, 12))
        r = self.run_any(make.avml(twice)[0], (3,))
        self.assertIn("and the first range counts", r.text)
        self.assertEqual(self.compare(pages_of([twice[1], twice[0]])), 20)

    def test_hostile(self):
        page = words(0, 1)
        block = make.avml_block(0x1000, page)
        stream = make.snappy_stream(page)

        def of(first, last, body):
            return make.avml_header(first, last) + body + struct.pack("<Q", len(body))

        bomb = make.varint(65536) + b"\x00x" + b"\xfe\x01\x00" * 1024  # 64 KiB out of 3 KiB: no more can be
        packed = struct.pack("<I", make.masked(make.crc32c(b"x" * 65536)))
        bomb = lambda n: b"\x00" + (len(packed + n)).to_bytes(3, "little") + packed + n
        lie = make.varint(65536) + b"\x00x"
        huge = make.varint(2**32 - 1) + b"\x00x"
        for name, more in {
                "2^64 bytes": of(0, 2**64 - 1, stream),
                "2^64 - 1 bytes": of(0x100000, 2**64 - 1, stream),
                "2^52 bytes": of(0x100000, 2**52 + 0xfffff, stream),
                "the last address": of(2**64 - PAGE, 2**64 - 1, stream),
                "backwards": of(0x200fff, 0x200000, stream),
                "64 KiB out of 3 bytes": of(0x200000, 0x20ffff, make.IDENTIFIER + bomb(lie)),
                "4 GiB out of 6 bytes": of(0x200000, 0x200000 + 2**32 - 1, make.IDENTIFIER + bomb(huge)),
                "no chunk": of(0x200000, 0x200fff, b""),
                "a chunk without data": of(0x200000, 0x200fff, make.IDENTIFIER + make.snappy_chunk(b"") * 9),
                "a chunk of another kind": of(0x200000, 0x200fff, make.IDENTIFIER + b"\x02\1\0\0x"),
                "one that is to be skipped": of(0x200000, 0x200fff, make.IDENTIFIER + b"\x80\1\0\0x"),
                "a range that is too short": of(0x200000, 0x200800, stream),
        }.items():
            with self.subTest(name):
                r = self.run_any(block + more + make.avml_block(0x3000, page), (0, 3))
                self.assertEqual(self.compare({0x1000: page, 0x3000: page, 2**64 - PAGE: page}), 2)
        self.refused(make.avml_header(0x2000, 0x1fff) + stream, "first header is wrong")
        self.refused(b"AVML" + struct.pack("<I", 3) + bytes(64), "version 3")


if __name__ == "__main__":
    unittest.main()
