#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Containers from a pipe: what verify and info say of one is what they say of the file, however it ends.
Usage: test_stdin.py RAMSEAL
"""
import array
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest
from pathlib import Path

RAMSEAL = os.path.abspath(sys.argv[1])
del sys.argv[1]
SMALL = ('desktop,ram=64M,allocated=32M,resident=24M,trimmed=4M,others=8M,processes=4,cache=4M,'
         'pressure=10,bandwidth=80M')


def run(*args, **more):
    return subprocess.run([RAMSEAL, *(str(a) for a in args)], capture_output=True, timeout=900, **more)


class Stdin(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix='ramseal-stdin-')
        cls.at = Path(cls.folder.name)
        cls.container = cls.at / 'a.rsz'
        done = run('acquire', '-q', '--source', f'sim:{SMALL}', '-o', cls.container)
        assert done.returncode == 0, done.stderr
        cls.bytes = cls.container.read_bytes()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def piped(self, data, *args):
        """In pieces of odd sizes, as a network gives them."""
        with subprocess.Popen([RAMSEAL, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            def feed():
                try:
                    for at in range(0, len(data), 77777):
                        # Past the buffer: what nobody reads any more would be in it at the end.
                        os.write(process.stdin.fileno(), data[at:at + 77777])
                    process.stdin.close()
                except BrokenPipeError:
                    pass
            feeder = threading.Thread(target=feed)
            feeder.start()
            err = []
            reader = threading.Thread(target=lambda: err.append(process.stderr.read()))
            reader.start()
            out = process.stdout.read()
            reader.join()
            feeder.join()
        return subprocess.CompletedProcess(args, process.returncode, out, err[0])

    def same(self, data):
        """Says of these bytes what it says of a file of them."""
        path = self.at / 'b.rsz'
        path.write_bytes(data)
        for args in (['verify'], ['verify', '--json'], ['info'], ['info', '--json']):
            with self.subTest(args=args, bytes=len(data)):
                file, pipe = run(*args, path), self.piped(data, *args, '-')
                for name in ('stdout', 'stderr'):
                    want = getattr(file, name).decode().replace(str(path), 'stdin')
                    self.assertEqual(getattr(pipe, name).decode(), want)
                self.assertEqual(pipe.returncode, file.returncode)
        return file.returncode

    def test_whole(self):
        self.assertEqual(self.same(self.bytes), 0)
        self.assertEqual(json.loads(self.piped(self.bytes, 'verify', '--json', '-').stdout)['file'], 'stdin')

    def test_bytes_that_follow(self):
        self.same(self.bytes + b'x')
        self.same(self.bytes + bytes(5 << 20))
        self.same(self.bytes + self.bytes)

    def test_cut_off_anywhere(self):
        size = len(self.bytes)
        for end in (1, 15, 64, 100, 200, 1000, 5000, size // 3, size // 2, size - 1000, size - 100, size - 1):
            self.same(self.bytes[:end])

    def test_damaged_anywhere(self):
        size = len(self.bytes)
        for at in (0, 20, 60, 130, 170, 400, 3000, size // 3, size // 2, size - 5000, size - 300, size - 20):
            damaged = bytearray(self.bytes)
            damaged[at] ^= 0x10
            self.same(bytes(damaged))

    def test_partial_and_sealed_later(self):
        cut = self.at / 'later.rsz'
        cut.write_bytes(self.bytes[:len(self.bytes) * 2 // 3])
        self.assertEqual(run('seal', cut).returncode, 0)
        self.same(cut.read_bytes())
        self.assertEqual(self.piped(cut.read_bytes(), 'verify', '-').returncode, 10)

    def test_what_is_no_container(self):
        for data in (b'', b'x', b'no container\n' * 10000, bytes(100000)):
            self.same(data)
            done = self.piped(data, 'verify', '-')
            self.assertIn(b'stdin: not a ramseal container', done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertEqual(done.returncode, run('verify', '/dev/null').returncode)

    def test_other_commands_say_that_they_want_a_file(self):
        for args in (['smear'], ['export', '-o', self.at / 'x'], ['extract'], ['seal'], ['report', '-o', self.at / 'x']):
            done = self.piped(self.bytes, *(str(a) for a in args), '-')
            self.assertIn(b'stdin: can only be read forward: save it to a file first', done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertNotEqual(done.returncode, 0)
        self.assertFalse((self.at / 'x').exists())

    def test_stdin_that_is_closed_or_a_folder(self):
        done = run('verify', '-', preexec_fn=lambda: os.close(0))
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        folder = os.open(self.folder.name, os.O_RDONLY)
        done = run('verify', '-', stdin=folder)
        os.close(folder)
        self.assertEqual(done.stderr, b'ramseal: verify: stdin: read: Is a directory\n')

    def test_interrupted_while_nothing_comes(self):
        ends = os.pipe()
        with subprocess.Popen([RAMSEAL, 'verify', '-'], stdin=ends[0], stderr=subprocess.PIPE) as process:
            os.close(ends[0])
            os.write(ends[1], self.bytes[:5000])
            left = array.array('i', [1])
            while left[0]:  # it has read all that there is, and so is past its start
                fcntl.ioctl(ends[1], termios.FIONREAD, left)
            while process.poll() is None:  # a signal just before read() would not end it
                process.terminate()
                time.sleep(0.05)
            err = process.stderr.read()
        os.close(ends[1])
        self.assertIn(b'interrupted by SIGTERM', err)

    def test_memory_does_not_grow_with_the_container(self):
        large = self.at / 'large.rsz'
        done = run('acquire', '-q', '--source', f'sim:{SMALL.replace("ram=64M", "ram=512M").replace("cache=4M", "cache=128M")}',
                   '-l', 'store', '-o', large)
        self.assertEqual(done.returncode, 0, done.stderr)
        size = large.stat().st_size
        with open(large, 'rb') as f:
            cat = subprocess.Popen(['cat'], stdin=f, stdout=subprocess.PIPE)
        peaks = {}
        process = subprocess.Popen([RAMSEAL, 'verify', '-q', '-t', '1', '-'], stdin=cat.stdout,
                                   stdout=subprocess.DEVNULL)
        cat.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        cat.wait()
        peaks['verify'] = usage.ru_maxrss
        print(f'note: verify - of {size >> 20} MiB takes {peaks["verify"] >> 10} MiB')
        self.assertEqual(process.returncode, 0)
        self.assertGreater(size, 100 << 20)
        if os.environ.get('RAMSEAL_IS_STATIC') == '1':  # the sanitizers take memory of their own
            self.assertLess(peaks['verify'] << 10, size // 2)


if __name__ == '__main__':
    unittest.main(verbosity=2)
