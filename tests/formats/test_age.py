#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Encrypted containers and the stock `age`: each reads what the other wrote, and both refuse the same.
Usage: test_age.py RAMSEAL AGE_VECTORS
"""
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / 'sim'))
from sampled import WHOLE, draw, drawn  # noqa: E402

RAMSEAL = os.path.abspath(sys.argv.pop(1))
VECTORS = os.path.abspath(sys.argv.pop(1))
SIMULATOR = os.environ.get('RAMSEAL_SIMULATOR') != '0'  # -Dsimulator
MACHINE = ('sim:desktop,ram=64M,allocated=32M,resident=24M,trimmed=4M,others=8M,processes=4,cache=4M,'
           'pressure=10,bandwidth=80M')
CHUNK = 64 << 10
STORED = CHUNK + 16


def run(*args, **more):
    return subprocess.run([str(a) for a in args], capture_output=True, timeout=900, **more)


@unittest.skipUnless(shutil.which('age') and shutil.which('age-keygen'), 'no age here')
class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix='ramseal-age-')
        cls.at = Path(cls.folder.name)
        cls.keys, cls.public = [], []
        for i in range(3):
            cls.keys.append(cls.at / f'key{i}')
            made = run('age-keygen', '-o', cls.keys[i])
            cls.public.append(made.stderr.decode().split()[-1])

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def ramseal(self, code, *args, **more):
        done = run(RAMSEAL, *args, **more)
        self.assertEqual(done.returncode, code, (args, done.stderr))
        return done


class Vectors(Case):
    def test_both_take_and_refuse_the_same(self):
        folder = self.at / 'vectors'
        folder.mkdir()
        listed = run(VECTORS, folder)
        self.assertEqual(listed.returncode, 0)
        for line in listed.stdout.decode().splitlines():
            name, good, content = line.split()
            done = run('age', '-d', '-i', folder / 'identity', folder / f'{name}.age')
            with self.subTest(name):
                self.assertEqual(done.returncode == 0, good == '1', done.stderr)
                if good == '1':
                    self.assertEqual(len(done.stdout), int(content))


@unittest.skipUnless(SIMULATOR, 'built without simulated machines')
class Containers(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not shutil.which('age'):
            return
        cls.plain, cls.cipher = cls.at / 'plain.rsz', cls.at / 'sealed.rsz.age'
        done = run(RAMSEAL, '--log-json', 'acquire', '-q', '-s', MACHINE, '-o', cls.plain)
        cls.root = json.loads(done.stderr.splitlines()[-1])['root']
        done = run(RAMSEAL, '--log-json', 'acquire', '-q', '-s', MACHINE, '-o', cls.cipher,
                   '--recipient', cls.public[0], '--recipient', cls.public[1])
        assert done.returncode == 0, done.stderr
        cls.said = json.loads(done.stderr.splitlines()[-1])
        cls.bytes = cls.cipher.read_bytes()

    def test_age_gives_the_bytes_of_the_plain_container(self):
        for key in self.keys[:2]:
            done = run('age', '-d', '-i', key, self.cipher)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout, self.plain.read_bytes())
        self.assertNotEqual(run('age', '-d', '-i', self.keys[2], self.cipher).returncode, 0)
        # The root is the plain container's, and its size tells no more than a plain one's.
        self.assertEqual(self.said['root'], self.root)
        self.assertEqual(self.said['bytes_written'], len(self.bytes))
        size = self.plain.stat().st_size
        self.assertEqual(len(self.bytes) - size, 22 + 2 * 98 + 48 + 16 + (size + CHUNK - 1) // CHUNK * 16)

    def test_we_read_what_age_wrote(self):
        made = self.at / 'by-age'
        recipients = self.at / 'recipients'
        recipients.write_text('# both\n' + '\n'.join(self.public[1:]) + '\n')
        run('age', '-R', recipients, '-o', made, self.plain)
        for key in self.keys[1:]:
            self.assertIn(self.root, self.ramseal(0, 'verify', '--identity', key, made).stdout.decode())

    def test_every_command_that_reads_one(self):
        """What each says of the encrypted one is what it says of the plain one."""
        spaces = json.loads(self.ramseal(0, 'smear', '--json', self.plain).stdout)['spaces']
        pid = max(s['pid'] for s in spaces if s.get('pid'))
        commands = [
            ('verify', '{}'), ('info', '{}'), ('info', '--json', '{}'), ('smear', '--json', '{}'),
            ('extract', '{}'), ('extract', '-q', '-S', 'manifest', '-o', '-', '{}'),
            ('export', '-q', '-o', '-', '{}'), ('read', '--json', '--pa', '0x200000', '{}'),
            ('smear', '--json', '--mappings', pid, '{}'),
            ('read', '--json', '--pid', pid, '--va', '0x400000', '{}'),
        ]
        for command in commands:
            with self.subTest(command):
                got = [run(RAMSEAL, *(path if a == '{}' else a for a in command), *more)
                       for path, *more in ((self.plain,), (self.cipher, '--identity', self.keys[0]))]
                told = [done.stdout.replace(str(self.cipher).encode(), str(self.plain).encode())
                        for done in got]
                self.assertEqual(got[0].returncode, got[1].returncode, got[1].stderr)
                self.assertTrue(told[0])
                self.assertEqual(told[0], told[1])
        page = self.at / 'page.html'
        self.ramseal(0, 'report', '--identity', self.keys[1], '-o', page, self.cipher)
        self.assertIn(self.root, page.read_text())

    def test_from_stdin(self):
        plain = self.ramseal(0, 'verify', '-', input=self.plain.read_bytes()).stdout
        self.assertEqual(self.ramseal(0, 'verify', '--identity', self.keys[0], '-', input=self.bytes).stdout, plain)
        with subprocess.Popen(['age', '-d', '-i', self.keys[0], self.cipher], stdout=subprocess.PIPE) as age:
            self.assertEqual(self.ramseal(0, 'verify', '-', stdin=age.stdout).stdout, plain)
        self.assertIn(self.root.encode(),
                      self.ramseal(0, 'info', '--identity', self.keys[0], '-', input=self.bytes).stdout)

    def test_to_stdout_and_without_a_name(self):
        done = self.ramseal(0, 'acquire', '-q', '-s', MACHINE, '-o', '-', '--recipient', self.public[0])
        piped = run('age', '-d', '-i', self.keys[0], input=done.stdout)
        self.assertEqual(piped.stdout, self.plain.read_bytes())
        folder = self.at / 'unnamed'
        folder.mkdir()
        self.ramseal(0, 'acquire', '-q', '-s', MACHINE, '--recipient', self.public[0], cwd=folder)
        self.assertRegex(' '.join(os.listdir(folder)), r'^\S+\.rsz\.age$')

    def check_cut(self, size):
        """Every whole chunk is there, and nothing else; both ways to read say the same."""
        cut = self.at / 'cut.rsz.age'
        cut.write_bytes(self.bytes[:size])
        before = 22 + 2 * 98 + 48 + 16
        chunks = max(0, size - before) // STORED
        front = self.at / 'front.rsz'
        front.write_bytes(self.plain.read_bytes()[:chunks * CHUNK])
        got = run(RAMSEAL, 'verify', '--json', '--identity', self.keys[0], cut)
        piped = run(RAMSEAL, 'verify', '--json', '--identity', self.keys[0], '-', input=self.bytes[:size])
        want = run(RAMSEAL, 'verify', '--json', front)
        self.assertEqual(piped.returncode, got.returncode)
        if size < before:
            self.assertEqual(got.returncode, 9 if size < 19 else 7, got.stderr)
            return
        self.assertEqual(got.returncode, want.returncode, got.stderr)
        self.assertIn(b'cut off', got.stderr)
        if want.stdout:
            a, b, c = json.loads(got.stdout), json.loads(want.stdout), json.loads(piped.stdout)
            for verdict in (a, b, c):
                verdict.pop('file')
            self.assertEqual(a, b)
            self.assertEqual(c, b)
        age = run('age', '-d', '-i', self.keys[0], cut)
        self.assertNotEqual(age.returncode, 0)
        self.assertTrue(front.read_bytes().startswith(age.stdout))

    def test_cut_anywhere(self):
        before = 22 + 2 * 98 + 48 + 16
        sizes = {0, 1, 18, 19, 21, 22, before - 17, before - 1, before, before + 1, before + 15}
        chunks = [1, 2, (len(self.bytes) - before) // STORED - 1]
        for chunk in drawn(chunks, 1, 'chunk'):
            at = before + chunk * STORED
            sizes |= {at - 17, at - 1, at, at + 1, at + 16, at + 17}
        somewhere = draw('cuts')
        sizes |= {somewhere.randrange(len(self.bytes)) for _ in range(12 if WHOLE else 3)} | {len(self.bytes) - 1}
        for size in sorted(sizes):
            with self.subTest(size=size):
                self.check_cut(size)

    @contextlib.contextmanager
    def disk(self, size):
        folder = self.at / 'disk'
        folder.mkdir(exist_ok=True)
        if run('mount', '-t', 'tmpfs', '-o', f'size={size}', 'tmpfs', folder).returncode:
            self.skipTest('may not mount')
        try:
            yield folder
        finally:
            run('umount', folder)

    def check_full(self, out, image):
        done = self.ramseal(6, 'acquire', '-q', '-f', '-s', f'file:{image}', '-o', out, '--recipient',
                            self.public[0])
        self.assertRegex(done.stderr, rb'write: .*; sealed, but without \d+ of \d+ pages of memory\n$')
        self.ramseal(10, 'verify', '--identity', self.keys[0], out)
        info = json.loads(self.ramseal(0, 'info', '--json', '--identity', self.keys[0], out).stdout)
        self.assertEqual(info['pages']['data'] + info['pages']['skipped'], image.stat().st_size // 4096)
        self.assertTrue(info['pages']['data'] and info['pages']['skipped'])
        self.assertNotIn('missing', info)
        age = run('age', '-d', '-i', self.keys[0], out)
        self.assertEqual(age.returncode, 0, age.stderr)
        raw = self.at / 'full.raw'
        self.ramseal(3, 'export', '-q', '-f', '-o', raw, '--identity', self.keys[0], out)
        content, had = image.read_bytes(), info['pages']['data'] * 4096
        self.assertEqual(raw.read_bytes()[:had], content[:had])

    def test_full_disk_ends_in_a_sealed_container(self):
        image = self.at / 'image'
        image.write_bytes(random.Random(5).randbytes(32 << 20))
        for mib in (5, 11):
            with self.subTest(mib=mib), self.disk(mib << 20) as folder:
                self.check_full(folder / 'out.rsz.age', image)

    def test_file_system_that_keeps_no_room(self):
        """ntfs-3g cannot: the record that was begun is not finished, and all before it can be read."""
        if not shutil.which('mkfs.ntfs', path='/sbin:/usr/sbin'):
            self.skipTest('no mkfs.ntfs here')
        image, disk, folder = self.at / 'image', self.at / 'file-system', self.at / 'ntfs'
        image.write_bytes(random.Random(9).randbytes(24 << 20))
        disk.write_bytes(b'')
        os.truncate(disk, 16 << 20)
        folder.mkdir()
        run('/sbin/mkfs.ntfs', '-q', '-F', disk)
        if run('ntfs-3g', disk, folder).returncode:
            self.skipTest('may not mount')
        try:
            done = self.ramseal(6, 'acquire', '-q', '-f', '-s', f'file:{image}', '-o', folder / 'out.rsz.age',
                                '--recipient', self.public[0])
            self.assertIn(b'not sealed;', done.stderr)
            cut = folder / 'out.rsz.age.partial'
            stored = cut.stat().st_size
            self.ramseal(7, 'verify', '--identity', self.keys[0], cut)
            out = self.at / 'from-ntfs.rsz.age'
            self.ramseal(0, 'seal', '--identity', self.keys[0], '--recipient', self.public[0], '-o', out, cut)
            # All but a chunk and a record of what is there.
            self.assertGreater(out.stat().st_size, stored - STORED - 4096)
            info = json.loads(self.ramseal(0, 'info', '--json', '--identity', self.keys[0], out).stdout)
            self.assertGreater(info['pages']['data'] * 4096, stored - (3 << 20))
        finally:
            run('umount', folder)

    def test_file_size_limit(self):
        image = self.at / 'image'
        image.write_bytes(random.Random(6).randbytes(16 << 20))
        for limit in (4 << 20, 7000001, 9 << 20):
            done = run(RAMSEAL, 'acquire', '-q', '-f', '-s', f'file:{image}', '-o', self.at / 'out.rsz.age',
                       '--recipient', self.public[0],
                       preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (n, n)))
            self.assertEqual(done.returncode, 6, done.stderr)
            self.assertIn(b'; sealed, but without', done.stderr)
            self.ramseal(10, 'verify', '--identity', self.keys[0], self.at / 'out.rsz.age')

    def test_full_in_every_phase(self):
        """One record more goes in when it is full, of whichever pass, and then nothing but the end."""
        machine = ('sim:cohen2015,ram=64M,resident=8M,allocated=16M,trimmed=4M,others=4M,cache=2M,pagefile0=24M,'
                   'live_files=1')
        out = self.at / 'phase.rsz.age'
        modes, sizes = ('guided', 'before', 'concurrent'), (1, 2, 3, 4, 20, 40, 55, 60, 75)
        for mode, mib in drawn([(mode, mib) for mode in modes for mib in sizes], 7, 'full disks'):
            limit = mib * 1000 * 1000
            done = run(RAMSEAL, 'acquire', '-q', '-f', '-s', machine, '--level', 'store', '--pagefile', mode, '-o',
                       out, '--recipient', self.public[0],
                       preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (n, n)))
            with self.subTest(mode=mode, mib=mib):
                full = mib < 75
                self.assertEqual(done.returncode, 6 if full else 0, done.stderr)
                self.assertLessEqual(out.stat().st_size, limit)
                self.ramseal(10 if full else 0, 'verify', '--identity', self.keys[0], out)
                told = self.ramseal(0, 'info', '--json', '--identity', self.keys[0], out).stdout
                info = json.loads(told)
                whole = sum(r['last'] + 1 - r['first'] for r in info['maps'][0]['ranges']) // 4096
                self.assertEqual(sum(info['pages'].values()), whole)
                self.assertEqual(b'; sealed, ' in done.stderr, full)
            out.unlink(missing_ok=True)

    def test_full_pipe_is_not_sealed(self):
        image = self.at / 'image'
        image.write_bytes(random.Random(6).randbytes(4 << 20))
        with open('/dev/full', 'wb') as full:
            done = subprocess.run([RAMSEAL, 'acquire', '-q', '-s', f'file:{image}', '-o', '-', '--recipient',
                                   self.public[0]], stdout=full, stderr=subprocess.PIPE, timeout=900)
        self.assertEqual((done.returncode, done.stderr.count(b'\n')), (6, 1), done.stderr)

    def test_stopped_by_a_signal_and_killed(self):
        image = self.at / 'image'
        image.write_bytes(random.Random(8).randbytes(24 << 20))
        for sent, code in ((signal.SIGTERM, 10), (signal.SIGKILL, 7)):
            out = self.at / f'stopped-{sent}.rsz.age'
            partial = out.with_name(out.name + '.partial')
            process = subprocess.Popen([RAMSEAL, 'acquire', '-q', '-s', f'file:{image}', '-o', out, '-t', '1',
                                        '--level', '19', '--recipient', self.public[0]], stderr=subprocess.PIPE)
            while not partial.exists() or partial.stat().st_size < 2 << 20:
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            process.send_signal(sent)
            process.communicate(timeout=900)
            stopped = out if sent == signal.SIGTERM else partial
            self.ramseal(code, 'verify', '--identity', self.keys[0], stopped)
            info = json.loads(self.ramseal(0, 'info', '--json', '--identity', self.keys[0], stopped).stdout)
            self.assertGreaterEqual(info['pages']['data'], 256)

    def test_changed_in_the_middle(self):
        changed = self.at / 'changed.rsz.age'
        changed.write_bytes(self.bytes[:700000] + bytes([self.bytes[700000] ^ 1]) + self.bytes[700001:])
        for done in (run(RAMSEAL, 'verify', '--identity', self.keys[0], changed),
                     run(RAMSEAL, 'verify', '--identity', self.keys[0], '-', input=changed.read_bytes())):
            self.assertEqual(done.returncode, 7)
            self.assertIn(b'damaged', done.stdout)
            self.assertIn(b'was damaged or changed after it was encrypted', done.stderr)
        # What is behind it can be read all the same.
        out = self.at / 'changed.raw'
        self.ramseal(7, 'export', '-q', '-f', '-o', out, '--identity', self.keys[0], changed)

    def test_seal(self):
        cut = self.at / 'stopped.rsz.age'
        cut.write_bytes(self.bytes[:500000])
        out = self.at / 'later.rsz.age'
        key = ('--identity', self.keys[0])
        for code, args in ((9, ()), (6, key), (9, ('-o', out)), (2, (*key, '-o', out)),
                           (2, (*key, '--recipient', self.public[2]))):
            done = self.ramseal(code, 'seal', *args, cut)
            self.assertIn(b'--output' if code == 6 else b'--recipient' if code == 2 else b'--identity', done.stderr)
            self.assertFalse(out.exists())
        self.ramseal(0, 'seal', *key, '--recipient', self.public[2], '-o', out, cut)
        self.assertEqual(cut.read_bytes(), self.bytes[:500000])
        self.ramseal(9, 'verify', *key, out)
        told = self.ramseal(10, 'verify', '--identity', self.keys[2], out).stdout
        self.assertIn(b'sealed later', told)
        self.assertEqual(run('age', '-d', '-i', self.keys[2], out).returncode, 0)

    def test_plain_one_is_sealed_in_place_as_ever(self):
        cut = self.at / 'plain-cut.rsz'
        cut.write_bytes(self.plain.read_bytes()[:400000])
        self.ramseal(0, 'seal', '--identity', self.keys[0], cut)
        self.ramseal(10, 'verify', cut)

    def test_keys_that_do_not_fit(self):
        (self.at / 'recipients').write_text('# mine\n' + self.public[0])
        for args, code, says in (
                ((), 9, 'is encrypted with age; give --identity FILE'),
                (('--identity', self.keys[2]), 9, 'not for this identity'),
                (('--identity', self.keys[2], '--identity', self.keys[2]), 9, 'none of the 2 identities matches'),
                (('--identity', self.at / 'none'), 9, 'No such file'),
                (('--identity', self.plain), 9, 'too large for a key file'),
                (('--identity', self.at / 'recipients'), 9, 'line 2: is not an age identity'),
                (('--identity', '/dev/null'), 9, 'contains no age identity')):
            for command in ('verify', 'info', 'smear', 'extract'):
                done = self.ramseal(code, command, *args, self.cipher)
                self.assertIn(says, done.stderr.decode())
                self.assertEqual(done.stderr.count(b'\n'), 1, done.stderr)

    def test_secret_keys_are_never_shown(self):
        secret = next(line for line in self.keys[0].read_text().splitlines() if line.startswith('AGE-'))
        bad = self.at / 'bad'
        bad.write_text(f'{secret}\n{secret[:-2]}\n')
        for args in (('verify', '--identity', bad, self.cipher),
                     ('acquire', '-s', MACHINE, '-o', self.at / 'never', '--recipient', secret),
                     ('acquire', '-s', MACHINE, '-o', self.at / 'never', '--recipients-file', self.keys[0])):
            done = run(RAMSEAL, '--log-json', *args)
            self.assertIn(done.returncode, (2, 9))
            self.assertNotIn(secret[16:40].encode(), done.stdout + done.stderr)
            self.assertFalse((self.at / 'never').exists())

    def test_text_that_age_makes_and_passphrases(self):
        armored = self.at / 'armored'
        run('age', '-a', '-r', self.public[0], '-o', armored, self.plain)
        self.assertIn(b'as text', self.ramseal(9, 'verify', '--identity', self.keys[0], armored).stderr)

    def test_what_cannot_be_encrypted(self):
        for args, code in ((('--format', 'raw'), 2), (('--recipient', 'age1nobody'), 2),
                           (('--recipients-file', '/dev/null'), 9)):
            self.ramseal(code, 'acquire', '-s', MACHINE, '-o', self.at / 'never', '--recipient',
                         self.public[0], *args)
            self.assertFalse((self.at / 'never').exists())


if __name__ == '__main__':
    unittest.main(verbosity=2)
