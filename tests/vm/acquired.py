# SPDX-License-Identifier: Apache-2.0
"""
What the guest's ramseal has sealed, opened with the ramseal of this side, and memory by page.

Set PROGRAM first, the path of ramseal.
"""

import json
import mmap
import shutil
import struct
import subprocess
from pathlib import Path

PAGE = 4096

# formats/base/err.h, EXIT_MAP
COMPLETE, USAGE, GAPS, NO_SOURCE, SOURCE_FAILED, OUTPUT, VERIFY, INTERRUPTED = 0, 2, 3, 4, 5, 6, 7, 8
PARTIAL = 10

PROGRAM = None


def pages(ranges):
    """The PFNs of inclusive ranges of physical addresses."""
    for first, last in ranges:
        yield from range(first // PAGE, (last + 1) // PAGE)


def ramseal(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=900)


class Memory:
    """Pages by PFN, out of files that each hold ranges of physical addresses."""

    def __init__(self):
        self.parts, self.maps = [], {}

    def add(self, first, last, path, offset=0):
        if path not in self.maps:
            with open(path, 'rb') as f:
                self.maps[path] = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
        self.parts.append((first // PAGE, last // PAGE, self.maps[path], offset))

    def page(self, pfn):
        for first, last, bytes_, offset in self.parts:
            if first <= pfn <= last:
                at = offset + (pfn - first) * PAGE
                return bytes_[at:at + PAGE]
        raise KeyError(hex(pfn))

    def close(self):
        for bytes_ in self.maps.values():
            bytes_.close()


class Lime:
    """The memory of a guest, stopped by the caller, as a LiME file that can be read and changed."""

    HEADER = struct.Struct('<IIQQ8x')
    MAGIC, VERSION = 0x4c694d45, 1

    def __init__(self, guest, path, ranges):
        self.path, self.parts = path, []
        with open(path, 'wb') as out:
            for first, last in ranges:
                out.write(self.HEADER.pack(self.MAGIC, self.VERSION, first, last))
                self.parts.append((first, last, out.tell()))
                piece = path.with_suffix('.piece')
                guest.save_memory(first, last, piece)
                with open(piece, 'rb') as f:
                    shutil.copyfileobj(f, out)
                piece.unlink()

    def copy(self, path):
        other = object.__new__(Lime)
        other.path, other.parts = Path(shutil.copy(self.path, path)), self.parts
        return other

    def runs(self, lacks):
        """[first, last] of pages in a row of which lacks(number, of how many) is not true."""
        count, n = sum(last - first + 1 for first, last, _ in self.parts) // PAGE, 0
        for first, last, _ in self.parts:
            run = None
            for at in range(first, last, PAGE):
                if lacks(n, count):
                    run = None
                elif run:
                    run[1] += PAGE
                else:
                    run = [at, at + PAGE - 1]
                    yield run
                n += 1

    def part(self, path, lacks):
        """The same without some of its pages."""
        other = object.__new__(Lime)
        other.path, other.parts = path, []
        with open(path, 'wb') as out:
            for first, last in list(self.runs(lacks)):
                out.write(self.HEADER.pack(self.MAGIC, self.VERSION, first, last))
                other.parts.append((first, last, out.tell()))
                out.write(self.read(first, last - first + 1))
        return other

    def offset(self, pa, size):
        for first, last, at in self.parts:
            if first <= pa and pa + size - 1 <= last:
                return at + pa - first
        raise KeyError(hex(pa))

    def read(self, pa, size):
        with open(self.path, 'rb') as f:
            f.seek(self.offset(pa, size))
            return f.read(size)

    def write(self, pa, data):
        with open(self.path, 'r+b') as f:
            f.seek(self.offset(pa, len(data)))
            f.write(data)


def lime_ranges(path):
    """(first, last, offset in the file) of each range."""
    with open(path, 'rb') as f:
        while header := f.read(Lime.HEADER.size):
            magic, version, first, last = Lime.HEADER.unpack(header)
            assert (magic, version) == (Lime.MAGIC, Lime.VERSION)
            yield first, last, f.tell()
            f.seek(last - first + 1, 1)


class Image:
    """A container, as the commands of the host's ramseal show it."""

    def __init__(self, test, path):
        self.path = path
        self.verified = ramseal('verify', path)
        shown = ramseal('info', '--json', path)
        test.assertEqual(shown.returncode, COMPLETE, shown.stderr)
        self.info = json.loads(shown.stdout)
        self.ranges = [(r['first'], r['last']) for r in self.info['ranges']]
        # A raw image would be 4 GiB long, because of the RAM above.
        self.lime = path.with_suffix('.lime')
        self.lime.unlink(missing_ok=True)
        exported = ramseal('export', '--quiet', '--force', '--format', 'lime', '--hash', 'none', '-o', self.lime, path)
        test.assertIn(exported.returncode, (COMPLETE, GAPS), exported.stderr)
        self.memory = Memory()
        for first, last, offset in lime_ranges(self.lime):
            self.memory.add(first, last, self.lime, offset)
        test.addCleanup(self.close)

    def close(self):
        self.memory.close()
        self.lime.unlink(missing_ok=True)

    @property
    def unreadable(self):
        return set(pages((r['first'], r['last']) for r in self.info['unreadable']))

    @property
    def skipped(self):
        return set(pages((r['first'], r['last']) for r in self.info['skipped']))

    @property
    def sealed(self):
        return self.info['sealed']
