#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`acquire --summary`: one object, whole or not there, whatever becomes of the acquisition, which it never
harms. What is in it, tests/documents compares with its schema. Usage: test_summary.py RAMSEAL
"""

import contextlib
import hashlib
import json
import os
import random
import resource
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

RAMSEAL = os.path.abspath(sys.argv.pop(1))
# -Dsimulator=false
needs_simulator = unittest.skipIf(os.environ.get('RAMSEAL_SIMULATOR') == '0', 'built without simulated machines')
SLOW = 'sim:cohen2015,ram=64M,resident=8M,allocated=16M,trimmed=4M,others=4M,cache=2M,pagefile0=24M'


class Summary(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)
        self.image, self.path = self.at / 'image', self.at / 'summary.json'
        self.image.write_bytes(random.Random(1).randbytes(300 << 10))

    def acquire(self, *options, code=0, source=None, output='out.rsz', **more):
        done = subprocess.run([RAMSEAL, 'acquire', '-q', '-s', source or f'file:{self.image}', '-o', self.at / output,
                               '--summary', self.path, *map(str, options)], capture_output=True, timeout=900, **more)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def read(self, code):
        summary = json.loads(self.path.read_text())
        self.assertEqual(summary['exit_code'], code)
        self.assertEqual(summary['error'] is None, code == 0, summary['error'])
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)
        self.assertEqual([p.name for p in self.at.glob('summary*')], ['summary.json'])
        return summary

    def test_complete(self):
        self.acquire()
        s = self.read(0)
        self.assertEqual(s['tool']['sha256'], hashlib.sha256(Path(RAMSEAL).read_bytes()).hexdigest())
        self.assertEqual(s['command'][0], RAMSEAL)
        self.assertEqual(s['outputs'][0]['root'], s['root'])
        self.assertGreaterEqual(s['usage']['io']['read_bytes'], 300 << 10)
        self.assertGreaterEqual(s['usage']['io']['write_bytes'], 300 << 10)
        self.assertEqual(s['machine']['host']['name'], os.uname().nodename)
        self.assertEqual(s['missing']['unreadable_pages'], 0)
        # What people put passwords into.
        self.assertNotIn('command_line', s['machine']['os'])
        self.assertNotIn('arguments', s['machine']['process'])

    def test_files_that_are_missing_are_counted(self):
        """Nobody knows which, of a disk whose only volume cannot be read."""
        disk = self.at / 'disk'
        entry = struct.pack('<4xB3xII48x', 0x83, 2048, 2048)
        disk.write_bytes((bytes(446) + entry + b'\x55\xaa').ljust(2 << 20, b'\0'))
        self.acquire('--image', disk, code=3)
        self.assertEqual(self.read(3)['missing']['files'], 1)

    def test_stdout(self):
        self.path = '-'
        self.assertEqual(json.loads(self.acquire().stdout)['exit_code'], 0)
        for more in (('-o', '-'), ('--statement', '-')):
            done = subprocess.run([RAMSEAL, 'acquire', '-s', f'file:{self.image}', '--summary', '-', *more],
                                  capture_output=True, cwd=self.at)
            self.assertEqual((done.returncode, done.stdout), (2, b''))

    def test_what_never_began(self):
        self.acquire(code=9, source='file:absent')
        self.assertIn('absent', self.read(9)['error'])
        self.acquire('-f', code=4, source='crash')
        self.assertNotIn('outputs', self.read(4))

    def test_a_command_line_that_is_refused_is_not_kept(self):
        """Perhaps because a secret stands in it."""
        for more in (('--to', 'https://host.example/x?X-Amz-Signature=secret'), ('--level', '77')):
            done = subprocess.run([RAMSEAL, 'acquire', '-s', f'file:{self.image}', '--summary', self.path, *more],
                                  capture_output=True)
            self.assertEqual(done.returncode, 2)
            self.assertEqual([p.name for p in self.at.iterdir()], ['image'])

    def test_full(self):
        self.image.write_bytes(random.Random(1).randbytes(8 << 20))
        limit = 4 << 20
        self.acquire(code=6, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        s = self.read(6)
        self.assertTrue(s['sealed'])
        self.assertGreater(s['missing']['skipped_pages'], 1000)

    @needs_simulator
    def test_full_behind_the_memory(self):
        """All of that is there, and of the page file not all."""
        source = SLOW + ',live_files=1'
        self.acquire('--no-pagefile', '--level', 'store', source=source)
        limit = (self.at / 'out.rsz').stat().st_size + (2 << 20)
        self.acquire('-f', '--pagefile', 'after', '--level', 'store', code=6, source=source,
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        s = self.read(6)
        self.assertTrue(s['sealed'])
        self.assertEqual((s['missing']['skipped_pages'], s['missing']['files']), (0, 1))

    def small_disk(self):
        """Where the summary is to go."""
        folder = self.at / 'disk'
        folder.mkdir()
        if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=3M', 'tmpfs', folder], capture_output=True).returncode:
            self.skipTest('may not mount')
        self.addCleanup(subprocess.run, ['umount', folder], check=True)
        self.path = folder / 'summary.json'
        return folder

    @unittest.skipUnless(os.geteuid() == 0, 'needs root, to mount')
    def test_on_a_disk_that_others_fill(self):
        folder = self.small_disk()
        p = self.waiting()
        with open(folder / 'others', 'wb', buffering=0) as f, contextlib.suppress(OSError):
            while f.write(bytes(4096)):
                pass
        with open(self.at / 'fifo', 'rb') as f:
            f.read()
        self.assertEqual(p.wait(900), 0)
        self.assertEqual(p.stderr.read(), b'')
        self.assertEqual(json.loads(self.path.read_text())['exit_code'], 0)

    @unittest.skipUnless(os.geteuid() == 0, 'needs root, to mount')
    def test_on_the_disk_that_the_container_fills(self):
        self.image.write_bytes(random.Random(1).randbytes(16 << 20))
        folder = self.small_disk()
        self.acquire('-f', code=6, output='disk/out.rsz')
        s = json.loads(self.path.read_text())
        self.assertTrue(s['sealed'])
        self.assertGreater(s['missing']['skipped_pages'], 2000)
        self.assertEqual(sorted(p.name for p in folder.iterdir()), ['out.rsz', 'summary.json'])

    def until(self, done):
        deadline = time.monotonic() + 900
        while not done():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def waiting(self, *options):
        """One that has begun, and waits for who reads its output."""
        os.mkfifo(self.at / 'fifo')
        p = subprocess.Popen([RAMSEAL, 'acquire', '-q', '-s', f'file:{self.image}', '-o', self.at / 'fifo', '--summary',
                              self.path, *options], stderr=subprocess.PIPE)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        partial = self.path.with_name('summary.json.partial')
        self.until(lambda: partial.exists() and partial.stat().st_size)
        return p

    def test_interrupted(self):
        p = self.waiting()
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(900), 8)
        self.read(8)

    def test_killed(self):
        p = self.waiting()
        p.kill()
        p.wait()
        self.assertFalse(self.path.exists())

    def test_a_name_that_is_taken_meanwhile_is_a_warning(self):
        p = self.waiting()
        self.path.write_text("another's")
        with open(self.at / 'fifo', 'rb') as f:
            self.assertGreater(len(f.read()), 300 << 10)
        self.assertEqual(p.wait(900), 0)
        self.assertIn(b'warning: the summary: ', p.stderr.read())
        self.assertEqual(self.path.read_text(), "another's")
        self.assertEqual([q.name for q in self.at.glob('summary*')], ['summary.json'])

    def test_nothing_is_replaced_unasked(self):
        self.path.write_text("another's")
        self.assertIn(b'exists', self.acquire(code=6).stderr)
        self.assertEqual(self.path.read_text(), "another's")
        self.assertFalse((self.at / 'out.rsz').exists())
        self.acquire('--force')
        self.read(0)

    def test_what_cannot_be_written_is_known_before(self):
        for bad in (self.at / 'none/summary.json', self.at, self.at / 'out.rsz'):
            self.path = bad
            done = self.acquire(code=6)
            self.assertEqual(done.stderr.count(b'\n'), 1, done.stderr)
            self.assertEqual(list(self.at.glob('*.rsz*')), [])
        self.path = self.at / 'same'
        self.acquire('--statement', self.path, code=6)
        self.assertEqual([p.name for p in self.at.iterdir()], ['image'])

    def test_what_is_read_is_never_replaced(self):
        before, self.path = self.image.read_bytes(), self.image
        for more in ((), ('--image', self.image)):
            self.assertIn(b'is the input', self.acquire('--force', *more, code=6).stderr)
        self.acquire('--force', '--image', self.image, code=6, source='sim:cohen2015')
        self.assertEqual(self.image.read_bytes(), before)

    @needs_simulator
    def test_simulated(self):
        self.acquire('--format', 'raw', source=SLOW, output='out.raw')
        s = self.read(0)
        content = (self.at / 'out.raw').read_bytes()
        self.assertEqual((s['outputs'][0]['bytes'], s['outputs'][0]['sha256']),
                         (len(content), hashlib.sha256(content).hexdigest()))


if __name__ == '__main__':
    unittest.main()
