#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What reads a container, with less and less memory (`ulimit -v`): it says what it says with all of it, or that memory
is too short. A page that could not be decoded for that reason is not one that was never captured.

	test_little_memory.py RAMSEAL
"""

import os
import resource
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import heap_truth  # noqa: E402: beside this
from machine_case import RAMSEAL, MachineCase  # noqa: E402
from sampled import WHOLE  # noqa: E402

MACHINE = 'ram=96M,processes=4,heaps=3,heap_blocks=2000,heap_lfh=40,heap_leaks=20,windows=10'
KIB = range(7000, 60000, 400 if WHOLE else 1600)
ENOUGH = 4  # limits in a row with which all went well: more than that needs no try


def limited(kib, *args):
    return subprocess.run([RAMSEAL, *map(str, args)], capture_output=True, timeout=900, check=False, preexec_fn=lambda: (
        resource.setrlimit(resource.RLIMIT_AS, (kib << 10, kib << 10))))


def starts(kib):
    return limited(kib, '--version').returncode == 0


class LittleMemory(MachineCase):
    def check(self, *args):
        whole = limited(1 << 22, *args)
        self.assertEqual(whole.returncode, 0, whole.stderr)
        short = well = 0
        for kib in filter(starts, KIB):
            done = limited(kib, *args)
            with self.subTest(args=args, kib=kib):
                if done.returncode:
                    self.assertEqual((done.returncode, done.stderr.count(b'\n')), (1, 1), done.stderr)
                    self.assertIn(b'out of memory', done.stderr)
                    short, well = short + 1, 0
                else:
                    self.assertEqual(done.stdout, whole.stdout)
                    well += 1
            if well == ENOUGH:
                break
        self.assertGreater(short, 2)
        self.assertGreater(well, 0)

    def test_it_says_so_or_says_all(self):
        if not starts(30000):
            self.skipTest('this build (with sanitizers) does not start with so little')
        self.acquire(MACHINE)
        pid = heap_truth.Heaps(self.account).pids[0]
        for args in (['smear', '--json'], ['info', '--json'], ['vad', '--pages', '--json', '-p', pid],
                     ['process', '--json', '-p', pid], ['heap', '--json', '-p', pid],
                     ['heap', '--leaks', '--json', '-p', pid]):
            self.check(*args, self.container)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
