# SPDX-License-Identifier: Apache-2.0
"""
For tests of commands on a process of a simulated machine: the program, which is the script's first
argument, and machines that are acquired with their own account beside the container.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from sampled import sample

RAMSEAL = os.path.abspath(sys.argv.pop(1))
BUILDS = sample((7601, 17763, 18362, 19045, 22000, 22621, 22631, 26100))
# Those that are tried with 32-bit programs, too: each keeps something else elsewhere.
WITH_WOW64 = sample((7601, 17763, 19045, 26100))
# Of what little memory can be; the rest of the spec is the test's.
SMALL = 'sim:desktop,resident=2M,allocated=4M,trimmed=2M,others=8M,cache=2M,pagefile0=32M,pagefile1=0,' \
    'live_files=1,activity=0,inside=1'


def run(*args):
    return subprocess.run([RAMSEAL, *map(str, args)], capture_output=True, timeout=900)


class MachineCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)
        self.container = self.at / 'machine.rsz'
        self.account = self.at / 'truth'

    def acquire(self, settings):
        """The machine, in self.container, and what it says of itself, in self.account."""
        done = run('acquire', '-q', '--force', '-s', f'{SMALL},{settings},process_truth={self.account}', '-o',
                   self.container)
        self.assertEqual(done.returncode, 0, done.stderr)


class HeapCase(MachineCase):
    """`ramseal heap` on such a machine."""

    def ask(self, pid, *args, codes=(0,)):
        done = run('heap', self.container, '--pid', pid, *args)
        self.assertIn(done.returncode, codes, done.stderr)
        return done.stdout.decode()

    def blocks(self, pid, codes=(0,)):
        rows = [json.loads(line) for line in self.ask(pid, '-A', '--json', codes=codes).splitlines()]
        got = {int(r['address'], 0): r for r in rows if r['state'] == 'busy'}
        self.assertEqual(len(got), sum(r['state'] == 'busy' for r in rows))  # none is two heaps'
        return got
