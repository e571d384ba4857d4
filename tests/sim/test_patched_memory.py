#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Processes of a simulated Windows in whose memory a word or two were changed, as what is read while it
changes can look: what is said of them then. Usage: test_patched_memory.py RAMSEAL
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_truth  # noqa: E402: beside this

RAMSEAL = os.path.abspath(sys.argv.pop(1))
PAGE = 4096
# All that is looked for lies in memory: the pool is not paged.
MACHINE = 'sim:desktop,ram=64M,resident=2M,allocated=4M,trimmed=2M,others=8M,cache=2M,pagefile0=16M,pagefile1=0,' \
    'live_files=1,activity=0,inside=1,processes=4,pool_paged=0,windows=10'
# Build 19045 (agent/examine/process/eprocess.c and vad_layouts.c).
UNIQUE_PROCESS_ID, NODE_PARENT = 0x440, 0x10


def run(*args, codes=(0,)):
    done = subprocess.run([RAMSEAL, *map(str, args)], capture_output=True, timeout=900)
    if done.returncode not in codes:
        raise AssertionError(f'{args} ended with {done.returncode}: {done.stderr.decode()}')
    return done.stdout


class Patched(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        cls.addClassCleanup(folder.cleanup)
        cls.at = Path(folder.name)
        run('acquire', '-q', '-s', f'{MACHINE},process_truth={cls.at / "truth"}', '--format', 'raw', '-o',
            cls.at / 'memory.raw')
        cls.memory = (cls.at / 'memory.raw').read_bytes()
        _, cls.processes = process_truth.read(cls.at / 'truth')
        cls.whole = cls.acquire('whole', {})
        cls.info = json.loads(run('info', '--json', cls.whole))

    @classmethod
    def acquire(cls, name, words):
        """A container of the memory, with other 64-bit words at these physical addresses."""
        image, container = cls.at / f'{name}.raw', cls.at / f'{name}.rsz'
        memory = bytearray(cls.memory)
        for at, value in words.items():
            memory[at:at + 8] = value.to_bytes(8, 'little')
        image.write_bytes(memory)
        run('acquire', '-q', '-s', f'file:{image}', '-o', container)
        image.unlink()
        return container

    def physical(self, va):
        """Where the kernel has that address: pages of 4 KiB and of 2 MiB."""
        table = self.info['system']['kernel_dtb']
        for level in (4, 3, 2, 1):
            at = (table & 0xffffffffff000) + (va >> 3 + 9 * level & 511) * 8
            table = int.from_bytes(self.memory[at:at + 8], 'little')
            self.assertTrue(table & 1, hex(va))
            if level == 2 and table & 0x80:
                return (table & 0xfffffffe00000) + va % (2 << 20)
        return (table & 0xffffffffff000) + va % PAGE

    def test_a_torn_vad_says_nothing_of_pages_that_have_no_entry(self):
        """Its parent is another one: it may have been freed, and be anybody's."""
        pid = max(self.processes)
        before = json.loads(run('vad', '--pid', pid, '--pages', '--json', self.whole))
        vad = max((v for v in before['vads'] if v['private']), key=lambda v: v['counts']['states']['reserved'])
        self.assertGreater(vad['counts']['states']['reserved'], 100)
        torn = self.acquire('torn', {self.physical(int(vad['node'], 0)) + NODE_PARENT: 0xfffff8a000000040})
        after = json.loads(run('vad', '--pid', pid, '--pages', '--json', torn, codes=(0, 3)))
        self.assertEqual((before['torn'], after['torn']), (0, 1))
        self.assertFalse(after['whole'])
        for was, now in zip(before['vads'], after['vads'], strict=True):
            if was['node'] != vad['node']:
                self.assertEqual(now['counts'], was['counts'])
                continue
            self.assertTrue(now['torn'])
            was, now = was['counts']['states'], now['counts']['states']
            self.assertEqual((now['reserved'], now['unknown']), (0, was['unknown'] + was['reserved']))
            self.assertEqual(now['valid'], was['valid'])

    def test_of_two_processes_with_a_pid_the_tables_choose(self):
        """The kernel's list has both, as it may where one ends and the next begins."""
        first, second = sorted(self.processes)[-2:]
        roots = {s['pid']: s['dtb'] for s in self.info['address_spaces']}
        eprocess = self.processes[second].eprocess
        twice = self.acquire('twice', {self.physical(eprocess) + UNIQUE_PROCESS_ID: first})
        for pid in (first, second):
            with self.subTest(pid=pid):
                vad = next(v for v in self.processes[pid].vads if v.type == 'image')
                args = ('--dtb', roots[pid], '--va', hex(vad.first), '--length', vad.last + 1 - vad.first, '--json')
                was, now = ([json.loads(line) for line in run('read', *args, c, codes=(0, 3)).splitlines()]
                            for c in (self.whole, twice))
                # Only the VADs of the process lead to these pages.
                self.assertIn(('0xffffffff00000420', 'memory'), [(r['entry'], r['content']) for r in was])
                for row in was + now:
                    for key in [k for k in row if k.endswith('_ns')]:
                        del row[key]
                self.assertEqual(now, was)


if __name__ == '__main__':
    unittest.main()
