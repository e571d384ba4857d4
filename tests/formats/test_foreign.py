#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every format that ramseal writes, opened by programs that are not ours and read back by ours.
Usage: test_foreign.py RAMSEAL KDUMP_READ"""

import hashlib
import json
import os
import re
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "sim"))
from sampled import WHOLE, drawn  # noqa: E402

KDUMP_READ = os.path.abspath(sys.argv.pop(2))
RAMSEAL = os.path.abspath(sys.argv.pop(1))
# -Dsimulator=false
needs_simulator = unittest.skipIf(os.environ.get("RAMSEAL_SIMULATOR") == "0", "built without simulated machines")

PAGE = 4096
MIB = 1 << 20
GIB = 1 << 30
UNREADABLE = b"UNREADABLE PAGE " * 256
SKIPPED = b"SKIPPED PAGE    " * 256
ZERO = bytes(PAGE)
DIRECT_MAP = 0xFFFF888000000000
VMCOREINFO = b"OSRELEASE=6.1.0-test\nPAGESIZE=4096\nKERNELOFFSET=0\n"


def page_at(address):
    """What our memory holds: every third page zeros, the others their own address."""
    if address // PAGE % 3 == 1:
        return ZERO
    return struct.pack("<Q", address | 1) * (PAGE // 8)


def note(name, kind, desc):
    pad = lambda b: b + bytes(-len(b) % 4)
    name += b"\0"
    return struct.pack("<III", len(name), len(desc), kind) + pad(name) + pad(desc)


NOTES = note(b"CORE", 1, bytes(336)) + note(b"VMCOREINFO", 0, VMCOREINFO)


class Memory:
    """Segments (first, pages, kind). Kind "data" is in the source's file; of "lost" the file says
    that it is behind its end, and so it is unreadable; "absent" is memory without bytes in the
    file, which the source does not offer: skipped."""

    FILL = {"lost": UNREADABLE, "absent": SKIPPED}
    GAPS = {"lost": "unreadable", "absent": "skipped"}

    def __init__(self, segments):
        self.segments = segments

    def ranges(self, joined=True):
        """First and last address of the segments, or of what lies together."""
        return self._join(self.segments, joined)

    def gaps(self, kind):
        """The same of the segments of that kind."""
        return self._join([s for s in self.segments if s[2] == kind], True)

    @staticmethod
    def _join(segments, joined):
        found = []
        for first, pages, _ in segments:
            if joined and found and found[-1][1] + 1 == first:
                found[-1] = (found[-1][0], first + pages * PAGE - 1)
            else:
                found.append((first, first + pages * PAGE - 1))
        return found

    @property
    def code(self):
        """What a command that writes all of it ends with."""
        return 3 if any(kind != "data" for _, _, kind in self.segments) else 0

    def pages(self):
        """Every page as an image shall show it, by its address."""
        return {at: self.FILL.get(kind) or page_at(at) for first, n, kind in self.segments
                for at in range(first, first + n * PAGE, PAGE)}

    def write_elf(self, path, notes=NOTES):
        count = len(self.segments) + 1
        extended = count >= 0xFFFF
        at = 64 + 56 * count
        sections = at if extended else 0
        at += 64 if extended else 0
        data = at + len(notes) + -(at + len(notes)) % PAGE
        end = data + sum(n for _, n, kind in self.segments if kind == "data") * PAGE
        with open(path, "wb") as f:
            f.write(b"\x7fELF\2\1\1" + bytes(9))
            f.write(struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, sections, 0, 64, 56,
                                0xFFFF if extended else count, 64, 1 if extended else 0, 0))
            f.write(struct.pack("<IIQQQQQQ", 4, 0, at, 0, 0, len(notes), len(notes), 4))
            offset = data
            for first, pages, kind in self.segments:
                f.write(struct.pack("<IIQQQQQQ", 1, 7, end if kind == "lost" else offset,
                                    DIRECT_MAP + first, first,
                                    0 if kind == "absent" else pages * PAGE, pages * PAGE, PAGE))
                offset += pages * PAGE if kind == "data" else 0
            if extended:
                f.write(bytes(44) + struct.pack("<I", count) + bytes(16))
            f.write(notes)
            f.seek(data)
            for first, pages, kind in self.segments:
                for i in range(pages if kind == "data" else 0):
                    page = page_at(first + i * PAGE)
                    f.seek(PAGE, 1) if page == ZERO else f.write(page)
            f.truncate(end)


# Unreadable pages at the start, at the end, alone, and on both sides of multiples of 1 MiB and of
# 32 KiB; ranges of one page; one range above 4 GiB that does not begin where a chunk does.
LOW = [
    (0x1000, 158, "data"),
    (0x100000, 1, "data"),
    (0x1FE000, 2, "data"),
    (0x200000, 1, "lost"),
    (0x201000, 300, "data"),
    (0x400000, 8, "lost"),  # one chunk of an E01
    (0x408000, 599, "data"),
    (0x65F000, 1, "absent"),
]
USUAL = Memory(LOW + [
    (GIB, 511, "data"),
    (GIB + 511 * PAGE, 2, "lost"),  # around a multiple of 1 MiB
    (4 * GIB + 5 * PAGE, 1000, "data"),
    (4 * GIB + 1005 * PAGE, 20, "lost"),
])
# To hash 4 GiB takes seconds, and longer in libewf.
UNHASHED = [] if WHOLE else ["--hash", "none"]
# The same below 128 MiB: for images that are padded, and read from end to end.
NEAR = Memory(LOW + [
    (64 * MIB, 511, "data"),
    (64 * MIB + 511 * PAGE, 2, "lost"),
    (96 * MIB + 5 * PAGE, 1000, "data"),
    (96 * MIB + 1005 * PAGE, 20, "lost"),
])
SCATTERED = Memory([(0x10000 + i * 3 * PAGE, 1, "data" if i % 50 else "lost")
                    for i in range(4000)])
# Most of them zeros (see page_at()), because they are many.
FRAGMENTS = Memory([(0x10000 + i * 3 * PAGE, 1, "data") for i in range(66000)] +
                   [(GIB + i * 2 * PAGE, 1, "data") for i in range(100)])


def run(*args, code=0, **more):
    r = subprocess.run([RAMSEAL, "--log-json", *args], capture_output=True, timeout=900, **more)
    lines = [json.loads(line) for line in r.stderr.splitlines()]
    if r.returncode != code:
        raise AssertionError(f"{args} ended with {r.returncode}: {r.stderr.decode()}")
    summary = [line for line in lines if line["event"] == "summary"]
    r.summary = summary[0] if summary else None
    r.error = next((line["message"] for line in lines if line["event"] == "failed"), "")
    return r


def tool(*args):
    r = subprocess.run(args, capture_output=True, text=True, timeout=900)
    if r.returncode:
        raise AssertionError(f"{args} ended with {r.returncode}: {r.stdout}{r.stderr}")
    return r.stdout


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def padded(path):
    """Pages of a raw image by address, as they are asked for."""
    f = open(path, "rb")

    def page(address):
        f.seek(address)
        return f.read(PAGE)

    page.size = os.path.getsize(path)
    page.close = f.close
    return page


def lime_walk(path):
    """LiME's headers, read as its documentation says: [(first, last, offset)]."""
    found = []
    with open(path, "rb") as f:
        size = os.fstat(f.fileno()).st_size
        at = 0
        while at < size:
            f.seek(at)
            magic, version, first, last, reserved = struct.unpack("<IIQQQ", f.read(32))
            assert (magic, version, reserved) == (0x4C694D45, 1, 0), hex(at)
            found.append((first, last, at + 32))
            at += 32 + last - first + 1
        assert at == size
    return found


def readelf_loads(path, align):
    """[(offset, virtual, physical, file size, memory size)] of readelf -lW."""
    out = tool("readelf", "-lW", path)
    row = rf"^\s+LOAD\s+(0x\w+)\s+(0x\w+)\s+(0x\w+)\s+(0x\w+)\s+(0x\w+)\s+RWE\s+{align}$"
    return [tuple(int(v, 16) for v in m) for m in re.findall(row, out, re.M)]


class Case(unittest.TestCase):
    def setUp(self):
        # In memory where that can be: every output is synced, and a test has nothing to lose.
        shm = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.dir = tempfile.mkdtemp(prefix="ramseal-formats-", dir=os.environ.get("TMPDIR", shm))
        self.addCleanup(shutil.rmtree, self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def source(self, memory, name="source.elf"):
        memory.write_elf(self.path(name))
        return "file:" + self.path(name)

    def acquire(self, memory, fmt, out, *more, code=None):
        code = memory.code if code is None else code
        return run("acquire", "--source", self.source(memory), "--format", fmt, "-o",
                   self.path(out), *more, code=code)

    def both(self, memory, fmt, ending, *more):
        """The same image, written directly and from a container. Returns the summaries."""
        direct = self.acquire(memory, fmt, "direct" + ending, *more)
        self.acquire(memory, "rsz", "c.rsz", code=memory.code)
        export = run("export", "--format", fmt, "-o", self.path("export" + ending), *more,
                     self.path("c.rsz"), code=memory.code)
        for r in (direct, export):
            self.check_summary(r.summary, memory)
        return direct.summary, export.summary

    def check_summary(self, s, memory):
        self.assertTrue(s["complete"])
        with open(s["gaps"]) as f:
            gaps = json.load(f)
        self.assertTrue(gaps["complete"])
        for kind, name in memory.GAPS.items():
            want = memory.gaps(kind)
            self.assertEqual([(g["first"], g["last"]) for g in gaps[name]], want)
            self.assertEqual(s["pages"][name], sum((b - a + 1) // PAGE for a, b in want))
        names = [os.path.join(self.dir, f) for f in s.get("files", [])] or [s["output"]]
        for name in names + [s["gaps"]]:
            self.assertEqual(stat.S_IMODE(os.stat(name).st_mode), 0o600)
        self.assertEqual(s["bytes_written"], sum(os.path.getsize(n) for n in names))

    def check_padded(self, path, memory):
        """Every page, and zeros wherever there is no memory (looked at around every range)."""
        page = padded(path)
        self.addCleanup(page.close)
        pages = memory.pages()
        self.assertEqual(page.size, memory.ranges()[-1][1] + 1)
        for at, want in pages.items():
            self.assertEqual(page(at), want, hex(at))
        for first, last in memory.ranges():
            for at in (first - PAGE, last + 1):
                if 0 <= at < page.size and at not in pages:
                    self.assertEqual(page(at), ZERO, hex(at))


class Raw(Case):
    def test_both_ways_and_back(self):
        for s in self.both(NEAR, "raw", ".raw"):
            self.check_padded(s["output"], NEAR)
            self.assertEqual(s["sha256"], sha256(s["output"]))
        # A raw image is all memory: what was a hole is zeros now.
        run("acquire", "--source", "file:" + self.path("direct.raw"), "-o", self.path("again.rsz"))
        r = run("export", "-o", self.path("again.raw"), self.path("again.rsz"))
        self.assertEqual(r.summary["sha256"], sha256(self.path("direct.raw")))

    def test_beyond_4_gib(self):
        """Written directly, from a container, and by `extract`; as a source, whose zeros are holes again."""
        s = self.acquire(USUAL, "raw", "direct.raw", *UNHASHED).summary
        self.check_summary(s, USUAL)
        if WHOLE:
            self.assertEqual(s["sha256"], sha256(s["output"]))
        self.acquire(USUAL, "rsz", "c.rsz")
        run("export", "-o", self.path("export.raw"), "--hash", "none", self.path("c.rsz"), code=3)
        run("extract", "--stream", "memory", "-o", self.path("extract.raw"), "--hash", "none", self.path("c.rsz"),
            code=3)
        run("acquire", "--source", "file:" + self.path("direct.raw"), "-o", self.path("again.rsz"))
        run("export", "-o", self.path("again.raw"), "--hash", "none", self.path("again.rsz"))
        for name in ("direct.raw", "export.raw", "extract.raw", "again.raw"):
            self.check_padded(self.path(name), USUAL)
            self.assertLess(os.stat(self.path(name)).st_blocks * 512, 64 * MIB)  # 4 GiB of holes

    def test_to_a_pipe_without_holes(self):
        small = Memory([(0x3000, 4, "data"), (0x7000, 1, "lost"),
                        (0x100000, 2, "data")])
        source = self.source(small)
        r = run("acquire", "--source", source, "--format", "raw", "-o", "-", "--gaps",
                self.path("gaps"), code=3)
        pages = small.pages()
        want = b"".join(pages.get(at, ZERO) for at in range(0, 0x102000, PAGE))
        self.assertEqual(r.stdout, want)
        self.assertEqual(r.summary["sha256"], hashlib.sha256(want).hexdigest())
        with open(self.path("gaps")) as f:
            self.assertEqual(json.load(f)["unreadable"][0]["first"], 0x7000)

    def test_own_fill_and_no_hash(self):
        r = self.acquire(Memory([(0, 1, "data"), (PAGE, 1, "lost")]), "raw", "a.raw", "--fill", "0badf00d", "--hash", "none")
        with open(self.path("a.raw"), "rb") as f:
            self.assertEqual(f.read(), page_at(0) + bytes.fromhex("0badf00d") * 1024)
        self.assertNotIn("sha256", r.summary)

    def test_nothing_is_overwritten_without_force(self):
        small = Memory([(0, 1, "data")])
        for name in ("a.raw", "a.raw.gaps.json"):
            with open(self.path(name), "w") as f:
                f.write("mine")
            r = self.acquire(small, "raw", "a.raw", code=6)
            self.assertIn("exists", r.error)
            with open(self.path(name)) as f:
                self.assertEqual(f.read(), "mine")
            os.unlink(self.path(name))
            for left in os.listdir(self.dir):
                if left.startswith("a.raw"):
                    os.unlink(self.path(left))


class Lime(Case):
    def check(self, path, memory, joined):
        found = lime_walk(path)
        pages = memory.pages()
        self.assertEqual([f[:2] for f in found], memory.ranges(joined))
        with open(path, "rb") as f:
            for first, last, offset in found:
                f.seek(offset)
                for at in range(first, last, PAGE):
                    self.assertEqual(f.read(PAGE), pages[at], hex(at))

    def test_independent_walk(self):
        for memory in (USUAL, SCATTERED):
            direct, export = self.both(memory, "lime", ".lime", "--force")
            self.check(direct["output"], memory, joined=False)
            self.check(export["output"], memory, joined=True)
            self.assertEqual(direct["sha256"], sha256(direct["output"]))
            self.assertEqual(export["sha256"], sha256(export["output"]))
            for name in ("c.rsz",):
                os.unlink(self.path(name))

    def test_back_as_a_source(self):
        self.both(USUAL, "lime", ".lime")
        run("acquire", "--source", "file:" + self.path("export.lime"), "-o", self.path("2.rsz"))
        run("export", "--format", "lime", "-o", self.path("2.lime"), self.path("2.rsz"))
        self.assertEqual(sha256(self.path("2.lime")), sha256(self.path("export.lime")))


class Elf(Case):
    def check(self, path, memory, joined, align="0"):
        loads = readelf_loads(path, align)
        self.assertEqual([(p, p + size - 1) for _, _, p, _, size in loads],
                         memory.ranges(joined))
        for offset, virtual, physical, in_file, in_memory in loads:
            self.assertEqual((virtual, in_file, offset % PAGE),
                             (DIRECT_MAP + physical, in_memory, 0))
        return loads

    def test_readelf_and_libkdumpfile(self):
        pages = USUAL.pages()
        for s, joined in zip(self.both(USUAL, "elf", ".elf"), (False, True)):
            path = s["output"]
            self.check(path, USUAL, joined)
            self.assertEqual(s["sha256"], sha256(path))
            notes = tool("readelf", "-nW", path)
            self.assertRegex(notes, r"(?s)CORE .*VMCOREINFO")
            at = [a for first, last in USUAL.ranges()
                  for a in {first, first + PAGE, last + 1 - PAGE} if first <= a <= last]
            out = tool(KDUMP_READ, path, *(f"phys:{a:#x}" for a in at)).splitlines()
            for a, line in zip(at, out, strict=True):
                self.assertEqual(line, f"phys:{a:#x} {pages[a].hex()}")

    def test_without_notes(self):
        small = Memory([(0x2000, 3, "data")])
        small.write_elf(self.path("s.elf"), notes=b"")
        run("acquire", "--source", "file:" + self.path("s.elf"), "--format", "elf", "-o",
            self.path("a.elf"))
        self.assertEqual(len(self.check(self.path("a.elf"), small, True, "0x1000")), 1)
        self.assertNotIn("NOTE", tool("readelf", "-lW", self.path("a.elf")))

    @needs_simulator
    def test_windows_has_nothing_of_a_kdump(self):
        source = ("sim:desktop,ram=64M,allocated=40M,resident=25M,trimmed=10M,others=10M,cache=4M,"
                  "activity=0")
        run("acquire", "--source", source, "-o", self.path("c.rsz"))
        for s in (run("acquire", "--source", source, "--format", "elf", "-o", self.path("a.elf")),
                  run("export", "--format", "elf", "-o", self.path("b.elf"), self.path("c.rsz"))):
            self.assertEqual(s.summary["kernel"], {"os": "windows", "vmcoreinfo": None,
                                                   "direct_map": None, "image": None})
            path = s.summary["output"]
            self.assertEqual({virtual for _, virtual, *_ in readelf_loads(path, "0x1000")}, {0})
            self.assertNotIn("NOTE", tool("readelf", "-lW", path))

    def test_notes_are_what_they_were(self):
        self.both(USUAL, "elf", ".elf")
        for name in ("direct.elf", "export.elf"):
            with open(self.path(name), "rb") as f:
                self.assertIn(NOTES, f.read(PAGE))

    def test_more_ranges_than_the_header_can_count(self):
        """Exported, and read and written directly."""
        self.acquire(FRAGMENTS, "rsz", "c.rsz")
        export = run("export", "--format", "elf", "-o", self.path("export.elf"), self.path("c.rsz")).summary
        self.check_summary(export, FRAGMENTS)
        loads = self.check(export["output"], FRAGMENTS, True)
        with open(export["output"], "rb") as f:
            for offset, _, physical, size, _ in drawn(loads, 200, "fragments") + loads[-100:]:
                f.seek(offset)
                self.assertEqual(f.read(size), page_at(physical))
        direct = run("acquire", "--source", "file:" + export["output"], "--format", "elf", "-o",
                     self.path("2.elf")).summary
        self.check_summary(direct, FRAGMENTS)
        self.assertEqual(sha256(direct["output"]), sha256(export["output"]))

    def test_back_as_a_source(self):
        self.both(USUAL, "elf", ".elf")
        run("acquire", "--source", "file:" + self.path("export.elf"), "-o", self.path("2.rsz"))
        run("export", "--format", "elf", "-o", self.path("2.elf"), self.path("2.rsz"))
        self.assertEqual(sha256(self.path("2.elf")), sha256(self.path("export.elf")))


class E01(Case):
    # Small, because libewf's tools read 4 GiB of zeros slowly.
    MEMORY = Memory(LOW + [(8 * MIB, 8, "data"), (8 * MIB + 8 * PAGE, 1, "lost")])

    def check_errors(self, first, memory):
        listed = re.findall(r"at sector\(s\): (\d+) - (\d+) number: (\d+)", tool("ewfinfo", first))
        self.assertEqual([(int(a), int(b), int(n)) for a, b, n in listed],
                         [(a // 512, b // 512, (b - a + 1) // 512) for a, b in
                          sorted(memory.gaps("lost") + memory.gaps("absent"))])

    def check(self, summary, memory):
        first = summary["output"]
        verified = tool("ewfverify", first)
        self.assertIn("ewfverify: SUCCESS", verified)
        self.assertEqual(set(re.findall(r"MD5 hash .*:\s+(\w{32})", verified)), {summary["md5"]})
        self.assertEqual(re.findall(r"SHA1.*:\s+(\w{40})", tool("ewfinfo", first)),
                         [summary["sha1"]])
        out = self.path("exported")
        tool("ewfexport", "-q", "-u", "-f", "raw", "-S", "0", "-t", out, first)
        self.check_padded(out + ".raw", memory)
        with open(out + ".raw", "rb") as f:
            data = f.read()
        for name in ("md5", "sha1", "sha256"):
            self.assertEqual(hashlib.new(name, data).hexdigest(), summary[name], name)
        self.check_errors(first, memory)
        for name in os.listdir(self.dir):
            if name.startswith("exported"):
                os.unlink(self.path(name))

    def test_ewf_tools(self):
        for level in ("store", "1", "12"):
            for s in self.both(self.MEMORY, "e01", ".E01", "--force", "--level", level):
                self.check(s, self.MEMORY)
            os.unlink(self.path("c.rsz"))

    def test_text_of_the_examiner(self):
        self.acquire(Memory([(0, 3, "data")]), "e01", "a.E01", "--case", "2026/7", "--evidence", "E-1",
                     "--examiner", "Zoë Żak", "--notes", "漢字", "--description", "a laptop")
        info = tool("ewfinfo", self.path("a.E01"))
        for row in ("Case number:\t+2026/7", "Evidence number:\t+E-1", "Examiner name:\t+Zoë Żak",
                    "Notes:\t+漢字", "Description:\t+a laptop", r"Media type:\t+memory \(RAM\)",
                    r"Software version used:\t+ramseal \d", "Error granularity:\t+8"):
            self.assertRegex(info, row)

    def test_segments(self):
        noise = os.urandom(8 * MIB)
        with open(self.path("noise.raw"), "wb") as f:
            f.write(b"noise" + noise)
            f.truncate(8 * MIB)
        for stale in ("n.E02", "n.E77", "n.EAA"):
            with open(self.path(stale), "w") as f:
                f.write("of an older image")
        args = ("acquire", "--source", "file:" + self.path("noise.raw"), "--format", "e01", "-o",
                self.path("n.E01"), "--segment-size", "1M")
        self.assertIn("exists", run(*args, code=6).error)
        s = run(*args, "--force").summary
        parts = [part for part in s["outputs"] if part["role"] == "image"]
        self.assertGreater(len(parts), 7)
        self.assertEqual(sorted(self.path(n) for n in os.listdir(self.dir) if n.startswith("n.") and
                                len(n) == 5), [part["name"] for part in parts])
        for part in parts:
            self.assertEqual(os.path.getsize(part["name"]), part["bytes"])
            self.assertLessEqual(part["bytes"], MIB)
        self.assertIn("SUCCESS", tool("ewfverify", self.path("n.E01")))
        self.assertEqual(s["sha256"], sha256(self.path("noise.raw")))

    def test_beyond_4_gib(self):
        if not drawn([False, True], 1, "E01 beyond 4 GiB")[-1]:
            self.skipTest("not drawn: it takes as long as all the others")
        s = self.acquire(USUAL, "e01", "big.E01", *UNHASHED).summary
        if WHOLE:
            self.assertIn("SUCCESS", tool("ewfverify", "-q", self.path("big.E01")))
            raw = self.acquire(USUAL, "raw", "big.raw").summary
            self.assertEqual(s["sha256"], raw["sha256"])
        self.assertEqual([part["name"] for part in s["outputs"] if part["role"] == "image"],
                         [self.path("big.E01")])
        self.check_errors(self.path("big.E01"), USUAL)
        self.assertIn(f"({USUAL.ranges()[-1][1] + 1} bytes)", tool("ewfinfo", self.path("big.E01")))
        tool("ewfexport", "-q", "-u", "-f", "raw", "-S", "0", "-o", str(4 * GIB), "-B",
             str(1025 * PAGE), "-t", self.path("part"), self.path("big.E01"))
        part = padded(self.path("part.raw"))
        self.addCleanup(part.close)
        pages = USUAL.pages()
        for at in range(0, 1025 * PAGE, PAGE):
            self.assertEqual(part(at), pages.get(4 * GIB + at, ZERO), hex(at))

    def test_as_a_source(self):
        """We do not read one, and name what makes a raw image of it. That we do read."""
        self.acquire(self.MEMORY, "e01", "a.E01")
        r = run("acquire", "--source", "file:" + self.path("a.E01"), "-o", self.path("a.rsz"), code=9)
        self.assertRegex(r.error, "is an E01 image, not memory; ewfexport -f raw makes a raw image of it")
        tool("ewfexport", "-q", "-u", "-f", "raw", "-S", "0", "-t", self.path("a"), self.path("a.E01"))
        run("acquire", "--source", "file:" + self.path("a.raw"), "-o", self.path("a.rsz"))
        run("export", "--format", "raw", "-o", self.path("b.raw"), self.path("a.rsz"))
        self.check_padded(self.path("b.raw"), self.MEMORY)

    def test_not_to_a_stream(self):
        r = run("acquire", "--source", self.source(Memory([(0, 1, "data")])), "--format", "e01",
                "-o", "-", code=6)
        self.assertIn("needs files", r.error)


class Container(Case):
    def test_zstd_reads_it(self):
        self.acquire(USUAL, "rsz", "c.rsz")
        tool("zstd", "-t", "-q", self.path("c.rsz"))
        self.assertIn("c.rsz", tool("zstd", "-l", self.path("c.rsz")))

    def test_extract_manifest_and_log(self):
        self.acquire(USUAL, "rsz", "c.rsz")
        for stream in ("manifest", "log"):
            out = self.path(stream + ".json")
            s = run("extract", "--stream", stream, "-o", out, self.path("c.rsz")).summary
            with open(out) as f:
                lines = [json.loads(line) for line in f]
            self.assertEqual(s["sha256"], sha256(out))
            self.assertEqual(s["stream"]["name"], stream)
            if stream == "manifest":
                self.assertEqual([line["event"] for line in lines], ["begin", "tables", "end"])
                self.assertEqual(bytes.fromhex(lines[0]["kernel_notes"]), NOTES)

    def test_extract_of_pages_says_when_they_were_read(self):
        self.acquire(NEAR, "rsz", "c.rsz")
        s = run("extract", "--stream", "memory", "-o", self.path("m"), self.path("c.rsz"),
                code=3).summary
        self.check_padded(self.path("m"), NEAR)
        self.assertLess(0, s["start_ns"])
        self.assertLess(s["start_ns"], s["end_ns"])
        self.assertEqual(s["sha256"], sha256(self.path("m")))

    def test_no_such_stream(self):
        self.acquire(USUAL, "rsz", "c.rsz")
        for command in ("extract", "export"):
            r = run(command, "--stream", "nothing", "-o", self.path("x"), self.path("c.rsz"), code=9)
            self.assertIn('holds no stream "nothing"; it has "manifest", "log", "memory"', r.error)
        r = run("export", "--stream", "log", "-o", self.path("x"), self.path("c.rsz"), code=9)
        self.assertIn("extract", r.error)


    def test_streams_are_listed(self):
        self.acquire(USUAL, "rsz", "c.rsz")
        listed = [line.split(b"\t") for line in run("extract", self.path("c.rsz")).stdout.splitlines()]
        self.assertIn([b"memory", b"physical memory"], listed)
        for name, _ in listed:
            run("extract", "-S", name, "-o", self.path("x"), "-f", "--hash", "none", self.path("c.rsz"),
                code=3 if name == b"memory" else 0)
        r = run("extract", self.path("c.rsz"), "-o", self.path("x"), code=2)
        self.assertIn("lists them", r.error)
        run("extract", self.path("c.rsz"), "-S", "memory", code=2)


class Options(Case):
    def test_what_has_no_meaning_is_refused(self):
        for args in (["acquire", "--gaps", "x"], ["acquire", "--case", "1"],
                     ["acquire", "--format", "raw", "--case", "1"],
                     ["acquire", "--format", "elf", "--level", "3"],
                     ["acquire", "--format", "e01", "--level", "auto"],
                     ["acquire", "--format", "e01", "--level", "-5"],
                     ["acquire", "--format", "aff4"],
                     ["export", "--format", "lime", "--segment-size", "1G", "-o", "x", "y"],
                     ["export", "-o", "x", "--level", "2", "y"], ["export", "y"],
                     ["extract", "-o", "x", "y"], ["extract", "--stream", "x", "y"]):
            r = subprocess.run([RAMSEAL, *args], capture_output=True, text=True)
            self.assertEqual((r.returncode, r.stderr.count("\n")), (2, 1), (args, r.stderr))


class Early(Case):
    """Images that end early: interrupted, or on a full disk."""

    def wait_for_bytes(self, out, process):
        """Until some of the image is written."""
        deadline = time.monotonic() + 900
        while time.monotonic() < deadline and process.poll() is None:
            for path in (self.path(out + ".partial"), self.path(out + ".partial/" + out)):
                if os.path.isfile(path) and os.path.getsize(path) > 64 * 1024:
                    return
            time.sleep(0.01)
        self.assertEqual(process.poll(), 0, "nothing is written")

    def interrupted(self, fmt, out):
        """The summary, and where the gap begins. The source is as large as it takes to come in time."""
        for self.size in (GIB << n for n in range(1, 8)):
            with open(self.path("big.raw"), "wb") as f:
                f.write(b"x" * PAGE)
                f.truncate(self.size)
            p = subprocess.Popen([RAMSEAL, "--log-json", "acquire", "--source",
                                  "file:" + self.path("big.raw"), "--format", fmt, "-o",
                                  self.path(out), "-f"], stderr=subprocess.PIPE)
            self.wait_for_bytes(out, p)
            p.send_signal(signal.SIGINT)
            _, err = p.communicate(timeout=900)
            if p.returncode != 0:
                break
            os.unlink(self.path(out))
        lines = [json.loads(line) for line in err.splitlines()]
        self.assertEqual(p.returncode, 8, err)
        s = next(line for line in lines if line["event"] == "summary")
        self.assertFalse(s["complete"])
        self.assertTrue(s["output"].endswith(out + ".partial"))
        self.assertFalse(os.path.exists(self.path(out)))
        with open(s["gaps"]) as f:
            gaps = json.load(f)
        self.assertFalse(gaps["complete"])
        self.assertEqual(len(gaps["skipped"]), 1)
        self.assertEqual(gaps["skipped"][0]["reason"], "interrupted")
        self.assertEqual(gaps["skipped"][0]["last"], self.size - 1)
        return s, gaps["skipped"][0]["first"]

    def test_interrupted_raw_ends_where_the_gap_begins(self):
        s, end = self.interrupted("raw", "a.raw")
        self.assertEqual(os.path.getsize(s["output"]), end)
        self.assertEqual(sha256(s["output"]), s["sha256"])

    def test_interrupted_lime_and_elf_show_that_they_are_cut(self):
        for fmt in ("lime", "elf"):
            s, end = self.interrupted(fmt, "a." + fmt)
            run("acquire", "--source", "file:" + s["output"], "-o", self.path("again.rsz"), "-f", code=3)
            told = json.loads(run("info", "--json", self.path("again.rsz")).stdout)
            self.assertEqual(told["pages"]["unreadable"], (self.size - end) // PAGE)

    def test_interrupted_e01_is_a_shorter_one(self):
        s, end = self.interrupted("e01", "a.E01")
        first = os.path.join(s["output"], "a.E01")
        self.assertIn("SUCCESS", tool("ewfverify", "-q", first))
        self.assertIn(f"({end} bytes)", tool("ewfinfo", first))

    def test_full_disk(self):
        """A limit on the size of files stands for the full disk: the same error, without root."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, MIB))

        with open(self.path("noise.raw"), "wb") as f:
            f.write(b"noise" + os.urandom(3 * MIB))
            f.truncate(3 * MIB)
        # libewf 20140813 loses a section's descriptor when a write fails: not ours to mend.
        env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
        for fmt, out in (("raw", "a.raw"), ("lime", "a.lime"), ("e01", "a.E01")):
            r = run("acquire", "--source", "file:" + self.path("noise.raw"), "--format", fmt, "-o",
                    self.path(out), code=6, preexec_fn=limit, env=env)
            self.assertRegex(r.error, "File too large|No space left")
            self.assertFalse(os.path.exists(self.path(out)))
            self.assertTrue(os.path.exists(self.path(out + ".partial")))
            self.assertNotIn("sha256", r.summary)  # of what, with a piece half written?


if __name__ == "__main__":
    unittest.main()
