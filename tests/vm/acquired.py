# SPDX-License-Identifier: Apache-2.0
"""
What the guest's ramseal has sealed, opened with the ramseal of this side, and memory by page.

Set PROGRAM first, the path of ramseal.
"""

import json
import subprocess

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
                          capture_output=True, text=True, timeout=120)


class Memory:
    """Pages by PFN, out of files that each hold one range of physical addresses."""

    def __init__(self):
        self.files = []

    def add(self, first, last, path, offset=0):
        self.files.append((first // PAGE, last // PAGE, open(path, 'rb'), offset))

    def page(self, pfn):
        for first, last, file, offset in self.files:
            if first <= pfn <= last:
                file.seek(offset + (pfn - first) * PAGE)
                return file.read(PAGE)
        raise KeyError(hex(pfn))

    def close(self):
        for *_, file, _ in self.files:
            file.close()


class Image:
    """A container, as the commands of the host's ramseal show it."""

    def __init__(self, test, path):
        self.path = path
        self.verified = ramseal('verify', path)
        shown = ramseal('info', '--json', path)
        test.assertEqual(shown.returncode, COMPLETE, shown.stderr)
        self.info = json.loads(shown.stdout)
        self.ranges = [(r['first'], r['last']) for r in self.info['ranges']]
        self.raw = path.with_suffix('.raw')
        self.raw.unlink(missing_ok=True)
        exported = ramseal('export', '--force', '--format', 'raw', '-o', self.raw, path)
        test.assertIn(exported.returncode, (COMPLETE, GAPS), exported.stderr)
        self.memory = Memory()
        self.memory.add(0, self.raw.stat().st_size - 1, self.raw)
        test.addCleanup(self.close)

    def close(self):
        self.memory.close()
        self.raw.unlink(missing_ok=True)

    @property
    def unreadable(self):
        return set(pages((r['first'], r['last']) for r in self.info['unreadable']))

    @property
    def skipped(self):
        return set(pages((r['first'], r['last']) for r in self.info['skipped']))

    @property
    def sealed(self):
        return self.info['sealed']
