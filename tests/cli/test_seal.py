#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
ramseal seal as a user meets it: on containers that were cut anywhere, on one that is still being
written, on disks that are full. Usage: test_seal.py RAMSEAL SOURCE-ROOT
"""
import contextlib
import fcntl
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
from test_acquire import MIB, PAGE, RAMSEAL, Case, memory, run  # noqa: E402
from write_rsz import DATA, assemble, begin, chunk, stream  # noqa: E402

LINE_MAX = 128 << 10  # what one chunk of a manifest holds


class SealCase(Case):
    def seal(self, path, code=0, *args, **more):
        done = run('seal', '-q', *args, path, **more)
        self.assertEqual(done.returncode, code, done.stderr)
        if code:
            self.one_line(done, code)
        return done

    def refused(self, path, message, *args, code=6, **more):
        """One line, and not a byte is another."""
        before = path.read_bytes()
        self.assertIn(message, self.seal(path, code, *args, **more).stderr.decode())
        self.assertEqual(path.read_bytes(), before)

    def extract(self, path, name):
        out = self.at / 'extracted'
        done = run('extract', '-q', '--force', '--stream', name, '-o', out, path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return out.read_bytes()

    def check_sealed_later(self, path):
        info = self.info(path)
        self.assertIs(info['sealed_later'], True)
        # Where the acquisition's last line is there, everything else is.
        said = self.verify(path, 0 if info.get('exit_code') == 0 else 10).stdout
        self.assertTrue(said.endswith(b'; sealed later\n'), said)
        self.assertIn(b'not by the acquisition, but later', run('info', path).stdout)

    def cut(self, length=None, name='cut.rsz'):
        """A container that was cut at `length`, or in the middle of its last but one record."""
        if not hasattr(self, 'whole'):
            self.image = memory(64)
            path, _ = self.acquire(self.file('image', self.image), 'out.rsz', 0, '--level', '1')
            self.whole = path.read_bytes()
        return self.file(name, self.whole[:len(self.whole) - 200 if length is None else length])


class Cut(SealCase):
    def test_everywhere(self):
        self.cut()
        draw = random.Random(1)
        size = len(self.whole)
        lengths = {*draw.sample(range(300, size), 60), *range(size - 180, size, 20), size - 1, size - 176}
        exported = 0
        for length in sorted(lengths):
            with self.subTest(length):
                path = self.cut(length)
                self.seal(path)
                self.check_sealed_later(path)
                streams = [s['name'] for s in self.info(path)['streams']]
                whole = self.info(path)['records']
                self.assertGreater(whole, 2)
                sealed = path.read_bytes()
                if 'fragment' in streams:
                    fragment = self.extract(path, 'fragment')
                    self.assertTrue(self.whole[:length].endswith(fragment))
                    kept = length - len(fragment)
                    self.assertEqual(sealed[:kept], self.whole[:kept])
                else:
                    self.assertEqual(sealed[:length], self.whole[:length])
                if 'memory' in streams and self.pages(path)['data']:
                    self.assertTrue(self.image.startswith(self.export(path)))
                    exported += 1
        self.assertGreater(exported, 10)

    def test_before_anything_is_whole(self):
        self.cut()
        for length in (0, 1, 12, 100):
            self.refused(self.cut(length), 'not a ramseal' if length < 12 else 'was cut off before', code=9)

    def test_inside_a_line_of_the_manifest(self):
        line = json.dumps({'event': 'begin', 'filler': 'y' * (LINE_MAX + 70000)}).encode() + b'\n'
        made = assemble([begin(), stream(0, 7, 0, b'manifest'),
                         chunk(0, [(0, LINE_MAX)], content=line[:LINE_MAX]),
                         chunk(0, [(LINE_MAX, len(line) - LINE_MAX)], content=line[LINE_MAX:])])
        path = self.file('cut.rsz', made[:-50])
        self.seal(path)
        self.check_sealed_later(path)
        lines = self.extract(path, 'manifest').split(b'\n')
        self.assertEqual(lines[0], line[:LINE_MAX])
        self.assertEqual(json.loads(lines[1])['event'], 'sealed_later')

    def test_behind_a_line_of_the_manifest_no_line_is_empty(self):
        path = self.cut()
        self.seal(path)
        lines = self.extract(path, 'manifest').split(b'\n')
        self.assertEqual(lines.pop(), b'')
        self.assertGreater(len([json.loads(line) for line in lines]), 1)

    def test_with_a_file_that_is_called_like_ours(self):
        page = b'A' * PAGE
        made = assemble([begin(), stream(0, 5, PAGE, b'fragment'), stream(1, 5, PAGE, b'manifest'),
                         chunk(0, [(0, PAGE)], [(1, DATA)], page), chunk(0, [(PAGE, PAGE)], [(1, DATA)], page)])
        path = self.file('cut.rsz', made[:-100])
        self.seal(path)
        self.check_sealed_later(path)
        self.assertEqual(self.extract(path, 'fragment'), page)
        self.assertTrue(made[:-100].endswith(self.extract(path, 'fragment (2)')))
        self.assertIn(b'sealed_later', self.extract(path, 'manifest (2)'))

    def test_what_is_whole_is_not_called_partial(self):
        path = self.cut(name='one.rsz.partial')
        done = run('seal', path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f'{self.at}/one.rsz: sealed later', done.stderr.decode())
        self.check_sealed_later(self.at / 'one.rsz')
        self.assertFalse(path.exists())
        # Nothing is replaced, and a name that is nothing but the suffix is one.
        for name in ('one.rsz.partial', '.partial'):
            path = self.cut(name=name)
            before = (self.at / 'one.rsz').read_bytes()
            done = self.seal(path)
            self.assertEqual(b'keeps its name' in done.stderr, name != '.partial')
            self.check_sealed_later(path)
            self.assertEqual((self.at / 'one.rsz').read_bytes(), before)

    def test_what_is_sealed_already_gets_its_name(self):
        """Its writer was killed when all was written, right before it named the file."""
        self.cut()
        path = self.file('one.rsz.partial', self.whole)
        done = run('seal', path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f'{self.at}/one.rsz: was already sealed', done.stderr.decode())
        self.assertFalse(path.exists())
        self.assertEqual((self.at / 'one.rsz').read_bytes(), self.whole)
        # Nothing is replaced.
        path = self.file('one.rsz.partial', self.whole)
        self.assertIn(b'keeps its name', self.seal(path).stderr)
        self.assertEqual(path.read_bytes(), self.whole)

    def test_where_there_is_no_room_in_the_format(self):
        full = assemble([begin(), stream(0, 7, 0, b'manifest'), chunk(0, [(2**63 - 5, 5)], content=b'full\n')])
        self.refused(self.file('full.rsz', full), 'not written', code=9)
        many = [stream(i, 5, PAGE, b'%d' % i) for i in range(4095)]
        many = assemble([begin(), *many, stream(4095, 6, 0, b'log')])
        self.refused(self.file('many.rsz', many), '4096 streams', code=9)

    def test_twice_and_cut_again(self):
        path = self.cut()
        self.seal(path)
        once = path.read_bytes()
        self.assertIn(b'already sealed', run('seal', path).stderr)
        self.assertEqual(path.read_bytes(), once)
        path.write_bytes(once[:-10])
        self.seal(path)
        self.check_sealed_later(path)
        names = [s['name'] for s in self.info(path)['streams']]
        self.assertEqual(names.count('fragment'), 1)
        self.assertEqual(self.extract(path, 'manifest').count(b'"sealed_later":true'), 2)
        self.assertTrue(self.extract(path, 'fragment').endswith(once[len(once) - 176:-10]))

    def test_what_is_damaged_is_left_alone(self):
        self.cut()
        flipped = bytearray(self.whole[:-200])
        flipped[len(flipped) // 2] ^= 1
        self.refused(self.file('bad.rsz', flipped), 'not just cut off', code=7)
        self.refused(self.file('bad.rsz', self.whole[:-176] + b'hello'), 'not just cut off', code=7)


class Copy(SealCase):
    def test_leaves_the_original_alone(self):
        path, out = self.cut(), self.at / 'sealed.rsz'
        before = path.read_bytes()
        self.seal(path, 0, '-o', out)
        self.check_sealed_later(out)
        self.assertEqual(path.read_bytes(), before)
        self.refused(path, 'exists', '-o', out)
        self.seal(path, 0, '-f', '-o', out)

    def test_of_what_is_sealed_already(self):
        self.cut()
        path, out = self.file('one.rsz.partial', self.whole), self.at / 'copy.rsz'
        self.seal(path, 0, '-o', out)
        self.assertEqual(out.read_bytes(), self.whole)
        self.assertEqual(path.read_bytes(), self.whole)
        self.refused(path, 'exists', '-o', out)

    def test_through_a_link_but_never_in_place(self):
        path, link, out = self.cut(), self.at / 'link.rsz', self.at / 'sealed.rsz'
        link.symlink_to(path)
        self.refused(link, 'symbolic link')
        self.seal(link, 0, '-o', out)
        self.check_sealed_later(out)

    def test_what_is_no_file_of_ours(self):
        self.one_line(run('seal', self.at / 'missing'), 9)
        self.one_line(run('seal', self.at), 9)
        os.mkfifo(self.at / 'fifo')
        self.one_line(run('seal', self.at / 'fifo'), 9)


class FullDisk(SealCase):
    def test_file_size_limit(self):
        length = len(self.cut().read_bytes())
        self.refused(self.cut(), 'cut.rsz',
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (length + 9, length + 9)))

    @contextlib.contextmanager
    def full_disk(self, content):
        disk = self.at / 'disk'
        disk.mkdir()
        if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=4M', 'tmpfs', disk], capture_output=True).returncode:
            self.skipTest('may not mount')
        try:
            path = disk / 'cut.rsz'
            path.write_bytes(content)
            with contextlib.suppress(OSError), open(disk / 'filler', 'wb', buffering=0) as filler:
                while filler.write(bytes(PAGE)):
                    pass
            yield path
        finally:
            subprocess.run(['umount', disk], check=True)

    @unittest.skipUnless(os.geteuid() == 0, 'needs root, to mount')
    def test_no_byte_is_lost(self):
        noise = self.file('image', random.Random(4).randbytes(64 * PAGE))
        whole = self.acquire(noise)[0].read_bytes()
        # What was cut does not get smaller by being sealed, so that the end needs a page more.
        with self.full_disk(whole[:len(whole) // PAGE * PAGE]) as path:
            self.refused(path, 'No space')
            (path.parent / 'filler').unlink()
            self.seal(path)
            self.check_sealed_later(path)


class Busy(SealCase):
    """Somebody else has the file in hands."""

    def start(self, *args):
        process = subprocess.Popen([RAMSEAL, *map(str, args)], stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def start_acquisition(self):
        """It is stopped in the middle."""
        self.image = random.Random(2).randbytes(24 * MIB)
        process = self.start('acquire', '-q', '-s', f'file:{self.file("image", self.image)}', '--level', '19',
                             '--threads', '1', '-o', self.at / 'live.rsz')
        partial = self.at / 'live.rsz.partial'
        self.wait_until(lambda: partial.exists() and partial.stat().st_size > 2 * MIB)
        process.send_signal(signal.SIGSTOP)
        self.assertIsNone(process.poll())
        return process, partial

    def wait_until(self, holds):
        deadline = time.monotonic() + 900
        while not holds():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.002)

    def test_an_acquisition_that_runs(self):
        process, partial = self.start_acquisition()
        self.refused(partial, 'another process')
        self.refused(partial, 'another process', '-o', self.at / 'copy.rsz')
        self.assertFalse((self.at / 'copy.rsz').exists())
        again = run('acquire', '-q', '--force', '-s', f'file:{self.at / "image"}', '-o', self.at / 'live.rsz')
        self.one_line(again, 6)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(timeout=900), 0)
        self.verify(self.at / 'live.rsz')
        self.assertEqual(self.export(self.at / 'live.rsz'), self.image)

    def test_an_acquisition_that_was_killed(self):
        process, partial = self.start_acquisition()
        process.kill()
        process.wait()
        self.seal(partial)
        self.assertFalse(partial.exists())
        path = self.at / 'live.rsz'
        self.check_sealed_later(path)
        self.assertGreater(self.assert_cut(self.export(path, 3), self.image), MIB)

    def test_another_seal(self):
        path = self.cut()
        with open(path, 'rb') as held:
            fcntl.flock(held, fcntl.LOCK_SH)
            self.refused(path, 'another process')
            self.seal(path, 0, '-o', self.at / 'copy.rsz')  # who only reads harms nobody who only reads
            fcntl.flock(held, fcntl.LOCK_EX)
            self.refused(path, 'another process', '-o', self.at / 'copy2.rsz')
        self.seal(path)

    def has_open(self, process, path):
        with contextlib.suppress(OSError):
            folder = f'/proc/{process.pid}/fd'
            return any(os.path.realpath(f'{folder}/{fd}') == str(path) for fd in os.listdir(folder))
        return False

    def replace_meanwhile(self, path, cut):
        """Seals what is cut at `path`, and puts another file in its place: what came of it, or None if it was late."""
        path.write_bytes(cut)
        process = self.start('seal', '-q', '--threads', '1', path)
        self.wait_until(lambda: self.has_open(process, path) or process.poll() is not None)
        process.send_signal(signal.SIGSTOP)
        with open(path, 'rb') as opened:
            before = os.fstat(opened.fileno()).st_size
            os.rename(self.file('other', b'precious'), path)
            process.send_signal(signal.SIGCONT)
            code = process.wait(timeout=900)
            self.assertEqual(path.read_bytes(), b'precious')
            if code == 0:  # it had looked already, or was through
                return None
            self.assertEqual(os.fstat(opened.fileno()).st_size, before)
            return code

    def test_the_file_is_replaced_meanwhile(self):
        image = self.file('image', random.Random(3).randbytes(160 * MIB))
        whole, _ = self.acquire(image, 'out.rsz', 0, '--level', 'store')
        cut = whole.read_bytes()[:-100]
        tries = (self.replace_meanwhile(whole, cut) for _ in range(20))
        self.assertEqual(next((code for code in tries if code is not None), 'always late'), 6)


if __name__ == '__main__':
    unittest.main()
