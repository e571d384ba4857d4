#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Images that other tools write, as sources: each page is what was put in, or is a gap and counted.
Usage: test_sources.py RAMSEAL"""
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import zlib

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "sim"))

import image_makers as make  # noqa: E402
from image_makers import PAGE  # noqa: E402
from sampled import WHOLE, draw, drawn  # noqa: E402

RAMSEAL = os.path.abspath(sys.argv.pop(1))
MIB = 1 << 20
UNREADABLE = b"UNREADABLE PAGE " * 256
SKIPPED = b"SKIPPED PAGE    " * 256
ZERO = bytes(PAGE)


def cases(alike, what, count):
    """So many drawn ones of many cases alike, or ten times as many: there are too many to try them all."""
    return draw(what).sample(alike, min(len(alike), 10 * count if WHOLE else count))


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
        r = subprocess.run([RAMSEAL, "--log-json", *args], capture_output=True, timeout=900)
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
        self.assertIn("leaves out blocks of zeros", r.text)
        # Blocks that touch are one range, and a container of it is whole.
        both = [(0, MEMORY[0][1][:64 * PAGE]), (64 * PAGE, MEMORY[1][1])]
        r = self.acquire(make.avml(both)[0], 0, "rsz")
        self.assertIn(" in 1 range", r.text)
        self.assertEqual(self.run_it("verify", self.path("out")).returncode, 0)
        self.assertEqual(self.run_it("export", "-o", self.path("raw"), self.path("out")).returncode, 0)
        with open(self.path("raw"), "rb") as f:
            self.assertEqual(f.read(), both[0][1] + both[1][1])

    @unittest.skipUnless(make.libsnappy(), "without libsnappy")
    def test_packed_by_the_library(self):
        with unittest.mock.patch.object(make, "snappy", make.libsnappy()):
            self.check(make.avml(MEMORY)[0], pages_of(MEMORY))

    def test_blocks_of_zeros(self):
        memory = [(0, words(0, 32)), (32 * PAGE, bytes(64 * PAGE)), (96 * PAGE, words(1, 32))]
        pages = pages_of(memory)
        for headers in (False, True):
            data, places = make.avml(memory, headers, 16 * PAGE)
            self.assertEqual(len(places), 8 if headers else 4)
            r = self.check(data, pages)
            self.assertEqual("262144 bytes have only a header" in r.text, headers)
        # At the end it might as well be cut off there, if there are no others.
        self.check(make.avml(memory[:2], True, 32 * PAGE)[0], pages_of(memory[:2]))
        self.check(make.avml(memory[:2], True, 64 * PAGE)[0], pages_of(memory[:1]), 3,
                   unreadable=range(32 * PAGE, 96 * PAGE, PAGE))

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
        # Where not one page could be read, that is no acquisition.
        if 3 in codes and r.returncode == 5:
            self.assertEqual(r.summary["pages"]["data"] + r.summary["pages"]["zero"], 0)
            self.assertIn("no page of memory could be read", r.error)
        else:
            self.assertIn(r.returncode, codes, r.text)
        return r

    def test_cut_anywhere(self):
        data, places = make.avml(self.MEMORY)
        pages = pages_of(self.MEMORY)
        edges = [*range(0, 64), *(places[1] + i for i in range(-12, 60)), *(len(data) - i for i in range(1, 20))]
        for cut in sorted({0, 32, *places[1:], *cases(edges, "edges", 12), *cases(range(len(data)), "cuts", 6)}):
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
            for at in drawn((begin + 4, begin + 20, (begin + end) // 2, end - 1), 2, f"chunk {begin}"):
                bad = bytearray(data)
                bad[at] ^= 0x10
                with self.subTest(at=at, chunk=begin):
                    self.check(bytes(bad), {k: v for k, v in pages.items() if k not in lost}, 3, unreadable=lost)

    def test_one_flipped_bit_anywhere(self):
        data, places = make.avml(self.MEMORY)
        pages = pages_of(self.MEMORY)
        headers = [8 * (place + i) + bit for place in places for i in range(0, 50) for bit in range(8)]
        ends = [8 * (places[1] - i) + bit for i in range(1, 9) for bit in range(8)]
        for bit in sorted({*cases(headers, "bits of headers", 24), *cases(ends, "bits of ends", 4),
                           *cases(range(8 * len(data)), "bits", 8)}):
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
        self.assertIn("32768 bytes of memory are in the file twice, with the same content", r.text)
        twice[1] = (0x18000, noise(9, 12))
        r = self.run_any(make.avml(twice)[0], (3,))
        self.assertIn("the first range is used", r.text)
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



class WindowsDump(Case):
    RUNS = [(0x1000, words(0x1000, 158)), (0x100000, noise(0x100000, 300)), (0x400000, words(2, 1)),
            (0x2000000, words(3, 77))]

    def test_complete(self):
        r = self.acquire(make.dump_full(self.RUNS), 0, "rsz")
        source = r.summary["source"]
        self.assertEqual(source["cr3"], 0x1AA000)
        self.assertEqual(source["facts"], {
            "dump_type": "1 (complete)", "build": "19041", "processors": "4", "bug_check": "0xd1",
            "system_time": "2020-11-16T11:33:20.000000000Z"})
        r = self.check(None, pages_of(self.RUNS))
        self.assertEqual([(m["first"], m["last"]) for m in r.summary["maps"][0]["ranges"]],
                         [(a, a + len(d) - 1) for a, d in self.RUNS])
        high = [(0x1000, words(1, 3)), (2**51, words(2, 3))]
        self.acquire(make.dump_full(high), 0, "lime")
        with open(self.path("out"), "rb") as f:
            self.assertEqual(f.read(), b"".join(struct.pack("<IIQQQ", 0x4C694D45, 1, a, a + len(d) - 1, 0) + d
                                                for a, d in high))

    def test_as_many_runs_as_there_can_be(self):
        for n in (1, 42, 43):
            runs = [(0x10000 * i, words(i, 1 + i % 3)) for i in range(n)]
            self.check(make.dump_full(runs), pages_of(runs))
        runs = [(0x10000 * i, words(i, 1)) for i in range(44)]
        self.refused(make.dump_full(runs), "44 runs, but the header has room for 43")

    def test_runs_in_any_order_that_overlap(self):
        runs = [(0x80000, words(1, 16)), (0x10000, words(2, 8)), (0x88000, words(1, 16)[8 * PAGE:] + noise(4, 8))]
        r = self.check(make.dump_full(runs), pages_of(runs))
        self.assertIn("32768 bytes of memory are in the file twice, with the same content", r.text)
        runs[2] = (0x88000, noise(5, 16))
        r = self.check(make.dump_full(runs), pages_of([runs[2], runs[0], runs[1]]), 3)
        self.assertIn("the first range is used", r.text)

    def test_bitmaps(self):
        pages = {a: p for a, p in pages_of(self.RUNS).items() if a // PAGE % 5 and not 40 < a // PAGE % 256 < 80}
        pages[0x300000] = words(9, 1)  # in no run
        ram = [(a // PAGE, len(d) // PAGE) for a, d in self.RUNS]
        gaps = pages_of(self.RUNS).keys() - pages.keys()
        for kind in (5, 6):
            for signature in (b"SDMPDUMP", b"FDMPDUMP"):
                self.check(make.dump_bitmap(kind, pages, ram, signature=signature), pages, 3, skipped=gaps)
        # Without runs nothing tells of what is not there; and where the first page is, is free.
        self.check(make.dump_bitmap(5, pages), pages)
        self.check(make.dump_bitmap(5, pages, bits=0x123456, first=0x2038 + 0x24690), pages)

    def test_bitmaps_of_every_shape(self):
        r = random.Random(3)
        for bits in (1, 7, 8, 9, 63, 64, 65, 1000):
            frames = [n for n in range(bits) if r.random() < 0.5] or [0]
            pages = {n * PAGE: words(n, 1) for n in frames}
            self.check(make.dump_bitmap(6, pages, bits=bits), pages)
            self.check(make.dump_bitmap(5, {n * PAGE: words(n, 1) for n in range(bits)}),
                       {n * PAGE: words(n, 1) for n in range(bits)})

    def test_cut_anywhere(self):
        pages = {a: p for a, p in pages_of(self.RUNS[:2]).items() if a // PAGE % 7}
        for data in (make.dump_full(self.RUNS[:2]), make.dump_bitmap(6, pages)):
            full = data[0xf98] == 1
            want = pages_of(self.RUNS[:2]) if full else pages
            first = 0x2000 if full else 0x3000
            order = sorted(want)
            for cut in sorted({*cases(range(8, first), "cuts of headers", 5), 0x2000, 0x2038, first, first + 1,
                               *cases(range(first, len(data)), "cuts", 4), len(data) - 1}):
                with self.subTest(full=full, cut=cut):
                    if cut < first:
                        self.refused(data[:cut], "")
                        continue
                    n = (cut - first) // PAGE
                    r = self.check(data[:cut], {a: want[a] for a in order[:n]}, 3 if n else 5, unreadable=order[n:])
                    self.assertIn("cut short", r.text)

    def test_one_flipped_bit_of_the_header(self):
        """Of all that says what it is, and how many pages are where but for the first of a run."""
        pages = {a: p for a, p in pages_of(self.RUNS[:2]).items() if a // PAGE % 7}
        kind = [*range(4, 8), *range(0x30, 0x34), 0xf98]  # by the first four it is of no kind that is known
        bitmap = make.dump_bitmap(6, pages, None)
        for data, places in (
                (make.dump_full(self.RUNS[:2]), [*range(0x88, 0x8c), *range(0x90, 0x98), *range(0xa0, 0xa8)]),
                (bitmap, [*range(0x2000, 0x2008), *range(0x2028, 0x2030), *range(0x2038, 0x2038 + 69)])):
            for bit in cases([8 * at + bit for at in kind + places for bit in range(8)], "bits of dumps", 20):
                bad = bytearray(data)
                bad[bit // 8] ^= 1 << bit % 8
                with self.subTest(byte=bit // 8, bit=bit % 8):
                    self.refused(bad, "dump")

    def test_lies(self):
        pages = pages_of(self.RUNS[:1])

        def header(at, fmt, *values, data=make.dump_full(self.RUNS[:1])):
            bad = bytearray(data)
            struct.pack_into("<" + fmt, bad, at, *values)
            return bytes(bad)

        bitmap = make.dump_bitmap(5, pages)
        for text, data in [
                ("158 pages, but its runs have 157", header(0xa0, "Q", 157)),
                ("4294967295 runs", header(0x88, "I", 2**32 - 1)),
                ("beyond 2^52", header(0x98, "Q", 2**64 - 1)),
                ("beyond 2^52", header(0x98, "QQ", 2**40 - 1, 2)),
                ("more than Windows", header(0x90, "QQQ", 2**40, 0, 2**40)),
                ("no runs of memory", header(0x88, "IIQ", 0, 0, 0)),
                ("no runs of memory", header(0x88, "4s", b"PAGE")),
                ("of ARM64", header(0x30, "I", 0xaa64)),
                ("machine 0x14c", header(0x30, "I", 0x14c)),
                ("(type 4), which has hardly any memory", header(0xf98, "I", 4)),
                ("the header of a crash dump", header(0xf98, "I", 3)),
                ("(type 2)", header(0xf98, "I", 2)),
                ("(types 8 to 10)", header(0xf98, "I", 9)),
                ("of type 77", header(0xf98, "I", 77)),
                ("no bitmap after", header(0xf98, "I", 5)),
                ("no bitmap after", header(0x2000, "I", 0, data=bitmap)),
                ("inside the bitmap", header(0x2020, "Q", 0x2038, data=bitmap)),
                ("inside the bitmap", header(0x2020, "Q", 0, data=bitmap)),
                ("before the pages", header(0x2020, "Q", 2**63, data=bitmap)),
                ("157 pages, but its bitmap has 158", header(0x2028, "Q", 157, data=bitmap)),
                ("in a bitmap of", header(0x2028, "Q", 2**64 - 1, data=bitmap)),
                ("beyond 2^52", header(0x2030, "Q", 2**64 - 1, data=bitmap)),
                ("inside the bitmap", header(0x2030, "Q", 2**40, data=bitmap)),
                ("an empty bitmap", header(0x2028, "QQ20s", 0, 160, bytes(20), data=bitmap))]:
            with self.subTest(text):
                self.refused(data, text)

    def test_others_are_named(self):
        for begin, text in ((b"PAGEDUMP", "a 32-bit Windows crash dump"), (b"MDMP\x93\xa7", "a minidump"),
                            (b"HIBR", "a Windows hibernation file"), (b"\xd2\xbe\xd2\xbe", "a VMware snapshot"),
                            (b"QEVM", "a QEMU snapshot"), (b"LibvirtQemudSave", "a saved libvirt guest"),
                            (b"\x14\x20\x28\x01", "a Hyper-V saved state"),
                            (b"\x7fVirtualBox SavedState V2.0\n", "a VirtualBox saved state")):
            self.refused(begin + bytes(0x3000), text)



class Xen(Case):
    def test_core(self):
        """Frames in any order, runs of them, and entries without a frame."""
        pages = {f: words(f, 1) for f in [9, 2, 3, 4, 700, 1, *range(1200, 600, -1)]}
        r = self.check(make.xen_core(pages), {f * PAGE: page for f, page in pages.items()})
        self.assertIn("Xen", r.text)
        pages[(1 << 64) - 1] = bytes(PAGE)
        core = make.xen_core(pages)
        del pages[(1 << 64) - 1]
        self.check(core, {f * PAGE: page for f, page in pages.items()})
        # Cut within its pages: what is missing is unreadable, and the rest is right.
        r = self.acquire(core[:-3 * PAGE - 1], 3)
        pages = {f * PAGE: page for f, page in pages.items()}
        self.assertEqual((self.compare(pages), len(self.gaps()["unreadable"])), (len(pages) - 3, 3))

    def test_hostile(self):
        core = make.xen_core({7: words(7, 1), 2: words(2, 1)})
        frames = core.index(struct.pack("<QQ", 7, 2))
        header = 64 + 64 * 4 + 24  # of .xen_pfn, from its offset on
        for place, value, text in (
                (frames, 1 << 40, "frame number"), (header, 1 << 63, "past the end"),
                (header, len(core), "past the end"),
                (header + 8, 24, "do not match"), (header + 8, 8, "do not match"), (header + 8, 1 << 63, "past the end"),
                (header + 64, 1 << 63, "do not match"), (header + 72, PAGE, "do not match"), (40, 1 << 63, "past the end"),
                (40, len(core) - 64, "past the end"), (64 + 64 + 24, 1 << 63, "without physical addresses")):
            self.refused(core[:place] + struct.pack("<Q", value) + core[place + 8:], text)
        for place, value in (60, 0), (62, 6), (62, 0xffff):  # e_shnum, e_shstrndx
            self.refused(core[:place] + struct.pack("<H", value) + core[place + 2:], "without physical addresses")
        self.refused(core.replace(b".xen_pfn", b".xen_xxx"), "no section says")
        self.refused(make.xen_core({7: words(7, 1)}, "xen_p2m"), "paravirtualized Xen guest, which is not read; crash")
        for cut in cases(range(64, core.index(words(7, 1))), "cut Xen cores", 12):
            self.refused(core[:cut], "")

    def test_saved_guest(self):
        self.refused(b"Xen saved domain, xl format\n \0 \r".ljust(3 * PAGE, b"\0"), "is a saved Xen guest (xl save)")


class PackedLime(Case):
    def test_page_by_page(self):
        for options in ({}, {"level": 0}, {"level": 9, "bits": 15, "memory": 9}, {"bits": 9, "memory": 1},
                        {"strategy": zlib.Z_FIXED}, {"strategy": zlib.Z_HUFFMAN_ONLY}, {"flush_every": 5000}):
            with self.subTest(options):
                self.check(make.packed(make.lime(MEMORY), **options), pages_of(MEMORY))

    def test_sealed(self):
        """Large enough for several places to begin at; what it holds is read in the container's order."""
        memory = [(0x1000, words(1, 1500)), (0x1000000, bytes(3000 * PAGE) + noise(3, 100) + words(2, 700))]
        r = self.acquire(make.packed(make.lime(memory)), 0, "rsz")
        self.assertNotIn("source-lost", r.text)
        self.assertEqual(self.run_it("export", "-F", "lime", "-o", self.path("again"), self.path("out")).returncode, 0)
        with open(self.path("again"), "rb") as f:
            self.assertEqual(f.read(), make.lime(memory))

    def test_cut_anywhere(self):
        memory = [(0x10000, words(0, 40)), (0x80000, noise(3, 20)), (0x200000, words(4, 20))]
        pages = pages_of(memory)
        plain = make.lime(memory)
        data = make.packed(plain)
        self.assertEqual(data[:2], b"\x38\x8d")
        for cut in sorted({*cases(range(2, 60), "first bytes", 4), *cases(range(60, len(data)), "cuts", 6),
                           *cases(range(len(data) - 8, len(data)), "last bytes", 3)}):
            with self.subTest(cut=cut):
                there = len(zlib.decompressobj().decompress(data[:cut]))
                self.write(data[:cut])
                r = self.run_it("acquire", "--source", "file:" + self.source, "--format", "raw", "-o",
                                self.path("out"), "-f")
                if there < 32:  # then it begins like LiME for nobody
                    self.assertIn(r.returncode, (3, 9), r.text)
                    continue
                self.assertIn("zlib stream is cut short", r.text)
                want, at = set(), 0
                for first, d in memory:
                    at += 32
                    want |= {first + n for n in range(0, len(d), PAGE) if at + n + PAGE <= there}
                    at += len(d)
                self.assertEqual(r.returncode, 3 if want else 5, r.text)
                self.assertEqual(self.compare(pages), len(want))

    def test_one_flipped_bit_anywhere(self):
        """It is told; and what is damaged, or follows, may be wrong, for there is one checksum for all."""
        memory = [(0x10000, words(0, 40)), (0x80000, noise(3, 20)), (0x200000, words(4, 20))]
        data = make.packed(make.lime(memory))
        ends = len(data) * 8
        for bit in sorted({*cases(range(16, 16 + 8 * 200), "first bits", 12), *cases(range(ends), "bits", 8),
                           *cases(range(ends - 32, ends), "last bits", 3)}):
            bad = bytearray(data)
            bad[bit // 8] ^= 1 << bit % 8
            with self.subTest(byte=bit // 8, bit=bit % 8):
                self.write(bad)
                p = self.run_it("acquire", "--source", "file:" + self.source, "--format", "lime", "--hash", "none",
                                "-o", self.path("out"), "-f")
                # Before the first header is unpacked it is a file like any other.
                self.assertIn(p.returncode, (0, 3, 5, 9) if bit < 8 * 120 else (3, 5), p.text)
                if bit >= 8 * 120:
                    self.assertIn("source-lost", p.text)

    def test_overlapping_ranges(self):
        twice = [(0x10000, words(0, 16)), (0x18000, words(0, 16)[8 * PAGE:] + words(5, 4))]
        r = self.check(make.packed(make.lime(twice)), pages_of(twice))
        self.assertIn("32768 bytes of memory are in the file twice, with the same content", r.text)

    def test_bombs(self):
        """A thousand to one, and lengths that nothing is behind: bounded memory, and told."""
        memory = [(0, bytes(96 * MIB)), (1 << 30, words(1, 3))]
        data = make.packed(make.lime(memory), level=9, bits=15)
        self.assertLess(len(data), MIB)
        self.write(data)
        r = self.run_it("acquire", "--source", "file:" + self.source, "--format", "lime", "--hash", "none", "-o",
                        self.path("out"), "-f")
        self.assertEqual(r.returncode, 0, r.text)
        self.assertEqual(r.summary["pages"]["data"] + r.summary["pages"]["zero"], 96 * MIB // PAGE + 3)
        self.assertLess(r.summary["usage"]["peak_rss"], 64 * MIB)
        self.check(make.packed(make.lime([(0x1000, words(1, 4))]) + bytes(3 * MIB)), pages_of([(0x1000, words(1, 4))]))
        header = struct.pack("<IIQQQ", 0x4C694D45, 1, 0x1000, 0x9000 - 1, 0)
        self.check(make.packed(header + words(1, 3)), pages_of([(0x1000, words(1, 3))]), 3,
                   unreadable=range(0x4000, 0x9000, PAGE))

    def test_what_else_is_packed_is_refused(self):
        for data in (words(0, 40), bytes(200 * PAGE)):
            self.refused(make.packed(data), "is a zlib stream, but not of LiME's format=lime")
        # What begins with two bytes of a header, and is none, is memory.
        for begin in (b"\x38\x8d", b"\x78\x9c", b"\x78\x01\x00\x00\x00\xff\xff"):
            data = begin + noise(1, 2)[len(begin):]
            self.check(data, pages_of([(0, data)]))
        # A stream that is short, and unpacks, is not enough to say that.
        data = (make.packed(words(0, 1)) + noise(2, 2))[:2 * PAGE]
        self.check(data, pages_of([(0, data)]))



class Stopped(Case):
    """What it takes minutes to open: a signal ends it, and nothing is written."""

    # Frames of a bitmap that is a hole: 128 GiB, a fault only where it ends. Nobody reads so much in STARTED's time.
    BITS = 1 << 40
    # What every file costs, programs' libraries included, is less.
    STARTED = 64 * MIB

    @staticmethod
    def bytes_read(process):
        with open(f"/proc/{process.pid}/io") as f:
            return int(f.readline().split()[1])

    def write_dump(self):
        first = 0x2038 + self.BITS // 8 + PAGE & -PAGE
        with open(self.source, "wb") as f:
            f.write(make.dump_header(5, None) + b"SDMPDUMP" + bytes(0x18) + struct.pack("<QQQ", first, 0, self.BITS))
            try:
                f.truncate(first + PAGE)
            except OSError as e:
                self.skipTest(f"no file of 128 GiB with a hole here: {e.strerror}")

    def test_a_signal_while_it_is_opened(self):
        self.write_dump()
        for name in ("SIGTERM", "SIGINT"):
            for command in (["acquire", "-o", self.path("out")], ["acquire", "-F", "raw", "-o", self.path("out")],
                            ["check"]):
                with self.subTest(signal=name, command=command):
                    process = subprocess.Popen([RAMSEAL, *command, "--source", "file:" + self.source],
                                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                    while process.poll() is None and self.bytes_read(process) < self.STARTED:
                        time.sleep(0.01)
                    process.send_signal(signal.Signals[name])
                    said = "".join(process.communicate(timeout=900))
                    self.assertEqual(process.returncode, 8, said)
                    self.assertIn(f"source: interrupted by {name} while it was opened\n", said)
                    self.assertEqual(os.listdir(self.dir), ["source"])


@unittest.skipIf(os.environ.get("RAMSEAL_SIMULATOR") == "0", "built without simulated machines")
class OwnDumps(Case):
    """What our exports write is read again as what it was."""

    MACHINE = ("sim:desktop,ram=64M,allocated=20M,resident=10M,trimmed=8M,others=10M,processes=10,cache=2M,"
               "pagefile0=24M,pagefile1=16M,start=0,exit=0")

    def sha256(self, *args):
        r = self.run_it(*args, "-F", "raw", "-f", "-o", self.path("raw"))
        self.assertEqual(r.returncode, 0, r.text)
        return r.summary["sha256"]

    def test_both_types(self):
        host, again = self.path("host.rsz"), self.path("again.rsz")
        self.assertEqual(self.run_it("acquire", "-s", self.MACHINE, "-o", host).returncode, 0)
        want = self.sha256("export", host)
        for kind in ("dmp", "dmp-full"):
            dump = self.path(kind)
            self.assertEqual(self.run_it("export", "-F", kind, "--no-patch", "-o", dump, host).returncode, 0)
            self.assertEqual(self.sha256("acquire", "-s", "file:" + dump), want)
            r = self.run_it("acquire", "-s", "file:" + dump, "-f", "-o", again)
            self.assertEqual(r.returncode, 0, r.text)
            info = subprocess.run([RAMSEAL, "info", again], capture_output=True, text=True)
            self.assertIn("DTB 0x1aa000 (source)", info.stdout)
            self.assertIn("the kernel's list of processes is whole, it has 12", info.stdout)


if __name__ == "__main__":
    unittest.main()
