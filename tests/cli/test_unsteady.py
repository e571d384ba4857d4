#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
An acquisition on a machine whose counter jumps back and forth: it ends as any other, and says so.
Usage: test_unsteady.py RAMSEAL UNSTEADY SOURCE-ROOT
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(sys.argv.pop(3)).resolve()
sys.path.insert(0, str(ROOT / 'tests' / 'reader'))
from read_rsz import Reader  # noqa: E402

UNSTEADY, RAMSEAL = os.path.abspath(sys.argv.pop(2)), os.path.abspath(sys.argv.pop(1))
SECOND = 10**9
MIB = 1 << 20


def run(*command):
    return subprocess.run([*map(str, command)], capture_output=True, timeout=900)


class Unsteady(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)

    def acquire(self, *args):
        image, out = self.at / 'image.raw', self.at / 'out.rsz'
        image.write_bytes(b''.join(n.to_bytes(8, 'little') * 512 for n in range(64 * MIB // 4096)))
        done = run(UNSTEADY, 'acquire', '--log-json', '--source', f'file:{image}', '-o', out, *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return image, out, [json.loads(line) for line in done.stderr.splitlines()]

    def check(self, *args):
        image, out, log = self.acquire(*args)
        # It took seconds, not the hours that the counter went.
        moments = [line['mono_ns'] for line in log]
        self.assertEqual(moments, sorted(moments))
        self.assertEqual(len([line for line in log if line['event'] == 'clock-went-back']), 1)
        # Each program that reads takes it, one too that knows nothing of such clocks.
        self.assertEqual(run(RAMSEAL, 'verify', out).returncode, 0)
        with open(out, 'rb') as file:
            chunks = [r for r in Reader(file).records() if hasattr(r, 'extents')]
        begun = chunks[0].start
        self.assertEqual([r for r in chunks if not begun <= r.start <= r.finish < begun + 900 * SECOND], [])
        doc = json.loads(run(RAMSEAL, 'info', '--json', out).stdout)
        back = sum(step['back_ns'] for step in doc['clock_steps'])
        self.assertGreater(back, 2 * SECOND)
        self.assertEqual([s for s in doc['clock_steps'] if s['to_ns'] <= s['from_ns'] or not s['count']], [])
        for command in 'info', 'verify':
            self.assertIn(b"the machine's counter went back ", run(RAMSEAL, command, out).stdout)
        flat = self.at / 'flat.raw'
        self.assertEqual(run(RAMSEAL, 'export', '-q', '--format', 'raw', out, '-o', flat).returncode, 0)
        self.assertEqual(flat.read_bytes(), image.read_bytes())

    def test_one_reader(self):
        self.check('--threads', '1')

    def test_several_readers(self):
        self.check('--threads', '3')

    def test_steady_clock_says_nothing(self):
        image, out = self.at / 'image.raw', self.at / 'out.rsz'
        image.write_bytes(b'\x01' * MIB)
        done = run(RAMSEAL, 'acquire', '--source', f'file:{image}', '-o', out)
        self.assertEqual(done.returncode, 0, done.stderr)
        doc = json.loads(run(RAMSEAL, 'info', '--json', out).stdout)
        self.assertEqual(doc['clock_steps'], [])
        self.assertNotIn(b'counter', run(RAMSEAL, 'info', out).stdout)


if __name__ == '__main__':
    unittest.main(verbosity=2)
