#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What an acquisition takes of this machine: how far its threads step back, what it leaves in the page cache, and whom
the kernel kills first. Usage: test_share.py RAMSEAL

tests/vm/test_share.py asks the same, and what only limits of control groups can show, of the running kernel.
"""

import ctypes
import mmap
import os
import random
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

RAMSEAL = os.path.abspath(sys.argv.pop(1))
MIB = 1 << 20
IMAGE = random.Random(8).randbytes(32 * MIB)
OTHER, BATCH = 0, 3  # include/uapi/linux/sched.h
TMPFS_MAGIC = 0x01021994
WAIT_SECONDS = 900


def file_system(path):
    """Its magic number, the first word of struct statfs."""
    said = (ctypes.c_long * 32)()
    assert not ctypes.CDLL(None).statfs(os.fsencode(path), said)
    return said[0]


def cached(path):
    """How many bytes of a file are in the page cache (mincore(2))."""
    libc = ctypes.CDLL(None)
    size = path.stat().st_size
    with open(path, 'r+b') as f, mmap.mmap(f.fileno(), size) as mapped:
        at = ctypes.addressof((ctypes.c_ubyte * size).from_buffer(mapped))
        there = (ctypes.c_ubyte * (-(-size // mmap.PAGESIZE)))()
        assert not libc.mincore(ctypes.c_void_p(at), ctypes.c_size_t(size), there)
    return sum(page & 1 for page in there) * mmap.PAGESIZE


class Share(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-', dir='.')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)
        self.source = self.at / 'image'
        self.source.write_bytes(IMAGE)

    def held_up(self, threads, *options):
        """An acquisition whose output nobody reads, once all of its threads wait."""
        fifo = self.at / 'fifo'
        os.mkfifo(fifo)
        process = subprocess.Popen([RAMSEAL, 'acquire', '-q', '--source', f'file:{self.source}', '-o', fifo,
                                    '--level', 'store', *options], stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        reader = open(fifo, 'rb')  # pylint: disable=consider-using-with
        self.addCleanup(reader.close)
        deadline = time.monotonic() + WAIT_SECONDS
        while not self.waiting(process.pid, threads):
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), deadline, 'it has not so many threads')
            time.sleep(0.02)
        return process.pid

    @staticmethod
    def stat(task):
        """The fields of its stat behind the name, from the third on (proc_pid_stat(5))."""
        return (task / 'stat').read_text().rsplit(') ', 1)[1].split()

    def waiting(self, pid, threads):
        tasks = list(Path(f'/proc/{pid}/task').iterdir())
        return len(tasks) == threads and all(self.stat(task)[0] in 'SD' for task in tasks)

    def threads(self, pid):
        """{name: [(policy, nice, I/O priority)]}"""
        found = {}
        for task in Path(f'/proc/{pid}/task').iterdir():
            fields = self.stat(task)
            io = subprocess.run(['ionice', '-p', task.name], check=True, capture_output=True, text=True).stdout
            found.setdefault((task / 'comm').read_text().strip(), []).append(
                (int(fields[41 - 3]), int(fields[19 - 3]), io.strip()))
        return found

    def test_what_can_wait_steps_back(self):
        """Whoever reads is as he was started: he must not be held up between a table and its frames."""
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        found = self.threads(self.held_up(5, '--nice', '19', '--threads', '2'))
        behind = (BATCH, 19, 'best-effort: prio 7')
        self.assertEqual((found['ramseal-pack'], found['ramseal-write']), ([behind] * 2, [behind]))
        self.assertEqual([t[:2] for t in found['ramseal']], [(OTHER, nice)] * 2)

    def test_fast_steps_back_for_nobody(self):
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        found = self.threads(self.held_up(5, '--fast', '--threads', '2'))
        self.assertEqual({t[:2] for of in found.values() for t in of}, {(OTHER, nice)})

    def test_the_kernel_would_kill_it_first(self):
        pid = self.held_up(5, '--nice', '10', '--threads', '2')
        self.assertEqual(Path(f'/proc/{pid}/oom_score_adj').read_text(), '1000\n')

    def test_output_does_not_fill_the_page_cache(self):
        """What is in there is the machine's, and a part of what is acquired."""
        if file_system(self.at) == TMPFS_MAGIC:
            self.skipTest('a tmpfs is nothing but page cache')
        # A file that is written as usual, so that it is known what the file system would keep.
        plain = self.at / 'plain'
        plain.write_bytes(IMAGE)
        self.assertGreater(cached(plain), len(IMAGE) // 2)
        for how in ('--fast', '--nice=10'):
            path = self.at / 'out.rsz'
            subprocess.run([RAMSEAL, 'acquire', '-q', '-f', '--source', f'file:{self.source}', how, '-o', path],
                           check=True)
            self.assertGreater(path.stat().st_size, len(IMAGE))
            self.assertLess(cached(path), MIB)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], '--verbose', *sys.argv[1:]])
