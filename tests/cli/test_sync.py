#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Disks that fail late: fsync() and close() of each kind of output fail in their turn, by strace. Then the exit code is 6,
the message names the file, and what is there has not the name of a result. Usage: test_sync.py RAMSEAL SOURCE-ROOT
"""

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

SOURCE_ROOT = Path(sys.argv.pop(2)).resolve()
sys.path[:0] = [str(SOURCE_ROOT / 'tests' / part) for part in ('network', 'ntfs')]
RAMSEAL = os.path.abspath(sys.argv.pop(1))
SIMULATOR = os.environ.get('RAMSEAL_SIMULATOR') != '0'  # -Dsimulator
NETWORK = os.environ.get('RAMSEAL_NETWORK') != '0'  # -Dnetwork
RECIPIENT = 'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj'
WINDOWS = 'sim:cohen2015,ram=64M,resident=8M,allocated=16M,trimmed=4M,others=4M,cache=2M'
STRACE = ('strace', '-f', '-qq', '-y', '-e', 'signal=none')
PAGE = 4096
EIO = 'Input/output error'


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        cls.addClassCleanup(folder.cleanup)
        cls.given = Path(folder.name).resolve()
        cls.image = cls.given / 'image'
        cls.image.write_bytes(random.Random(1).randbytes(16 * PAGE))
        cls.container = cls.given / 'given.rsz'
        cls.ramseal('acquire', '-s', f'file:{cls.image}', '-o', cls.container)

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name).resolve()
        self.trace = self.at / 'trace'
        self.out = self.at / 'out'
        self.out.mkdir()

    @staticmethod
    def ramseal(*args):
        return subprocess.run([RAMSEAL, args[0], '-q', *map(str, args[1:])], check=True, timeout=900)

    def acquire(self, *more):
        return ['acquire', '-s', f'file:{self.image}', *more]

    def run_traced(self, trace, args, **more):
        # Whoever is traced cannot be looked through for leaks.
        env = more.get('env', os.environ)
        more['env'] = {**env, 'ASAN_OPTIONS': env.get('ASAN_OPTIONS', '') + ':detect_leaks=0'}
        with subprocess.Popen([*STRACE, '-o', self.trace, *trace, RAMSEAL, args[0], '-q', *map(str, args[1:])],
                              stderr=subprocess.PIPE, text=True, start_new_session=True, **more) as done:
            try:
                said = done.communicate(timeout=900)[1]
            except BaseException:
                os.killpg(done.pid, signal.SIGKILL)  # strace alone would leave what it traces
                raise
        return done.returncode, said, self.trace.read_text().splitlines()

    def inject(self, call, path, *args, code=6, says=None, nth=1, **more):
        """The nth such call on that path fails, in this command. What it says."""
        how = ['--seccomp-bpf', '-P', path, '-e', f'trace={call}', '-e', f'inject={call}:error=EIO:when={nth}']
        ended, said, lines = self.run_traced(how, args, **more)
        self.assertEqual(sum('INJECTED' in line for line in lines), 1, f'{args[0]} has no such {call}() of {path}')
        self.assertEqual(ended, code, said)
        self.assertIn(says or f'{path}: {"sync" if call == "fsync" else call}: {EIO}', said)
        self.assertEqual(len(said.splitlines()), 1, said)
        return said

    def left(self):
        return sorted(p.name for p in self.out.iterdir())


class Container(Case):
    def setUp(self):
        super().setUp()
        self.rsz, self.statement, self.summary = (self.out / f'a.{end}' for end in ('rsz', 'txt', 'json'))
        self.args = self.acquire('-o', self.rsz, '--statement', self.statement, '--summary', self.summary)

    def check_not_sealed(self):
        """By nobody's account, and where the summary says that it is."""
        self.assertEqual(self.left(), ['a.json', 'a.rsz.partial', 'a.txt'])
        said = json.loads(self.summary.read_text())
        self.assertEqual((said['exit_code'], said['sealed'], said['root']), (6, False, None))
        self.assertEqual([said['output'], said['outputs'][0]['name']], 2 * [f'{self.rsz}.partial'])
        self.assertIn('\noutcome: unsealed\n', self.statement.read_text())
        self.assertNotIn('\nroot: ', self.statement.read_text())

    def test_sync(self):
        self.inject('fsync', f'{self.rsz}.partial', *self.args)
        self.check_not_sealed()

    def test_close(self):
        self.inject('close', f'{self.rsz}.partial', *self.args)
        self.check_not_sealed()

    def test_sync_of_the_name(self):
        self.inject('fsync', self.out, *self.args, says=f'{self.rsz}: sync of its directory: {EIO}')
        self.check_not_sealed()

    def test_encrypted(self):
        path = self.out / 'a.rsz.age'
        self.inject('fsync', f'{path}.partial', *self.acquire('-o', path, '--recipient', RECIPIENT))
        self.assertEqual(self.left(), [f'{path.name}.partial'])

    def test_what_was_to_be_replaced_is_still_there(self):
        self.rsz.write_text('earlier')
        self.inject('fsync', f'{self.rsz}.partial', *self.acquire('-f', '-o', self.rsz))
        self.assertEqual(self.rsz.read_text(), 'earlier')

    def test_stdout(self):
        for call in ('fsync', 'close'):
            with open(self.rsz, 'wb') as f:
                self.inject(call, self.rsz, *self.acquire('-o', '-'), stdout=f,
                          says=f'stdout: {"sync" if call == "fsync" else call}: {EIO}')

    @unittest.skipUnless(os.geteuid() == 0, 'needs root, for a loop device')
    def test_disk(self):
        (self.at / 'disk').write_bytes(bytes(4 << 20))
        done = subprocess.run(['losetup', '-f', '--show', self.at / 'disk'], capture_output=True, text=True)
        if done.returncode:
            self.skipTest('no loop device here')
        device = done.stdout.strip()
        self.addCleanup(subprocess.run, ['losetup', '-d', device], check=True)
        for call in ('fsync', 'close'):
            self.inject(call, device, *self.acquire('-o', device))

    def test_statement(self):
        """One that may not be there tomorrow is lost: the container is not."""
        for call, path, says in (('fsync', f'{self.statement}.partial', None),
                                 ('close', f'{self.statement}.partial', None),
                                 ('fsync', self.out, f'{self.statement}: sync of its directory: {EIO}')):
            said = self.inject(call, path, *self.args, '-f', says=says, nth=2 if says else 1)
            self.assertIn('the container is sealed, but its statement is lost: ', said)
            self.assertEqual(self.left(), ['a.json', 'a.rsz'])
            summary = json.loads(self.summary.read_text())
            self.assertEqual((summary['exit_code'], summary['sealed'], len(summary['outputs'])), (6, True, 1))
            self.ramseal('verify', self.rsz)

    def test_statement_of_what_has_gaps(self):
        """It is what is told of both."""
        self.image = self.at / 'image'
        self.image.write_bytes(bytes(PAGE + 1))
        args = self.acquire('-o', self.rsz, '--statement', self.statement)
        said = self.inject('fsync', f'{self.statement}.partial', *args)
        self.assertIn('the container is sealed, but its statement is lost: ', said)

    def test_summary(self):
        """It never harms the acquisition: that it is lost is a warning, and nothing passes for it."""
        for call, path, says in (('fsync', f'{self.summary}.partial', None),
                                 ('close', f'{self.summary}.partial', None),
                                 ('fsync', self.out, f'{self.summary}: sync of its directory: {EIO}')):
            said = self.inject(call, path, *self.args, '-f', code=0, says=says, nth=3 if says else 1)
            self.assertIn('warning: the summary: ', said)
            self.assertEqual(self.left(), ['a.rsz', 'a.txt'])


class Image(Case):
    def check(self, name, *left):
        """It is where the summary says, and not under its own name."""
        self.assertEqual(self.left(), sorted([*left, 's.json']))
        said = json.loads((self.out / 's.json').read_text())
        self.assertEqual((said['exit_code'], said['complete']), (6, False))
        for path in [said['output'], said['gaps'], *(o['name'] for o in said['outputs'])]:
            self.assertTrue(os.path.exists(path), path)

    def args(self, form, name, *more):
        return self.acquire('-F', form, '-o', self.out / name, '--summary', self.out / 's.json', *more)

    def test_each_format(self):
        for form in ('raw', 'lime', 'elf', 'kdump'):
            with self.subTest(form):
                self.inject('fsync', self.out / 'a.partial', *self.args(form, 'a', '-f'))
                self.check('a', 'a.partial', 'a.gaps.json.partial')
                for name in ('a.partial', 'a.gaps.json.partial'):
                    (self.out / name).unlink()

    @unittest.skipUnless(SIMULATOR, 'built without simulated machines')
    def test_dmp(self):
        self.inject('fsync', self.out / 'a.partial', 'acquire', '-s', WINDOWS, '-F', 'dmp', '-o', self.out / 'a')
        self.assertEqual(self.left(), ['a.gaps.json.partial', 'a.partial'])

    def test_close(self):
        self.inject('close', self.out / 'a.partial', *self.args('raw', 'a'))
        self.check('a', 'a.partial', 'a.gaps.json.partial')

    def test_sync_of_the_name(self):
        self.inject('fsync', self.out, *self.args('raw', 'a'), says=f'{self.out}/a: sync of its directory: {EIO}')
        self.check('a', 'a.partial', 'a.gaps.json.partial')

    def test_list_of_gaps(self):
        """The image is whole, but what it cannot say is lost."""
        self.inject('fsync', self.out / 'a.gaps.json.partial', *self.args('raw', 'a'))
        self.assertEqual(self.left(), ['a', 'a.gaps.json.partial', 's.json'])

    def test_e01(self):
        """libewf has each file open several times, and closes it; we sync it behind that."""
        path = self.out / 'a.E01.partial' / 'a.E01'
        self.inject('fsync', path, *self.args('e01', 'a'))
        self.check('a.E01', 'a.E01.partial', 'a.E01.gaps.json.partial')
        self.assertEqual(os.listdir(path.parent), ['a.E01'])

    def test_e01_close(self):
        path = self.out / 'a.E01.partial' / 'a.E01'
        self.inject('close', path, *self.args('e01', 'a'), says=f'unable to close file with error: {EIO}')
        self.assertEqual(self.left(), ['a.E01.partial', 's.json'])

    def test_e01_sync_of_the_names(self):
        self.image = self.at / 'image'
        self.image.write_bytes(random.Random(2).randbytes(5 << 19))
        args = self.args('e01', 'a', '--segment-size', '1M')
        self.inject('fsync', self.out, *args, says=f'{self.out}/a.E01: sync of its directory: {EIO}')
        self.check('a.E01', 'a.E01.partial', 'a.E01.gaps.json.partial')
        names = ['a.E01', 'a.E02', 'a.E03']
        self.assertEqual(sorted(os.listdir(self.out / 'a.E01.partial')), names)
        # And in which order they are called so: behind the first one there are all others.
        ended, said, lines = self.run_traced(['-e', 'trace=renameat2,fsync'], [*args, '-f'])
        self.assertEqual(ended, 0, said)
        calls = [m for line in lines if (m := re.search(r'(fsync|renameat2)\(\d+<([^>]*)>(?:, "(a\.E\d+)")?', line))]
        renamed = [m[3] for m in calls if m[3]]
        self.assertEqual(renamed, names[::-1])
        synced = [os.path.basename(m[2]) for m in calls[:[m[3] for m in calls].index(renamed[0])]]
        self.assertEqual(sorted(synced), names)


class Others(Case):
    def test_export(self):
        self.inject('fsync', self.out / 'a.partial', 'export', self.container, '-F', 'raw', '-o', self.out / 'a')
        self.assertEqual(self.left(), ['a.gaps.json.partial', 'a.partial'])

    def test_report(self):
        self.inject('fsync', self.out / 'a.html.partial', 'report', self.container, '-o', self.out / 'a.html')
        self.assertEqual(self.left(), [])

    def test_read(self):
        self.inject('fsync', self.out / 'a.partial', 'read', '--pa', '0x1000', self.container, '-o', self.out / 'a')
        self.assertEqual(self.left(), ['a.partial'])

    def test_extract(self):
        self.inject('fsync', self.out / 'a.partial', 'extract', '-S', 'manifest', self.container, '-o', self.out / 'a')
        self.assertEqual(self.left(), ['a.partial'])

    def test_extract_file(self):
        from forge import Volume
        volume = Volume(16 << 20)
        volume.file('a', [(1000, 3)])
        volume.write(str(self.at / 'disk'))
        self.inject('fsync', self.out / 'a.partial', 'extract-file', '-i', self.at / 'disk', 'a', '-o', self.out / 'a')
        self.assertEqual(self.left(), ['a.partial'])

    def cut(self):
        path = self.out / 'cut.rsz.partial'
        path.write_bytes(self.container.read_bytes()[:10 * PAGE])
        return path

    def test_seal(self):
        path = self.cut()
        self.inject('fsync', self.out / 'a.rsz.partial', 'seal', path, '-o', self.out / 'a.rsz')
        self.assertEqual(self.left(), ['a.rsz.partial', path.name])

    def test_seal_in_place(self):
        """What was there comes back."""
        path = self.cut()
        before = path.read_bytes()
        self.inject('fsync', path, 'seal', path)
        self.assertEqual((self.left(), path.read_bytes()), ([path.name], before))

    def test_seal_and_the_new_name(self):
        """It is sealed, and told to be called what it was."""
        path = self.cut()
        said = self.inject('fsync', self.out, 'seal', path, code=0,
                         says=f'{self.out}/cut.rsz: sync of its directory: {EIO}')
        self.assertIn(f'{path} is complete, but keeps its name: ', said)
        self.assertEqual(self.left(), [path.name])
        self.assertIn(b' sealed', subprocess.run([RAMSEAL, 'verify', path], capture_output=True).stdout)

    def test_printed(self):
        """What a command prints is written when it ends."""
        with open(self.out / 'a', 'wb') as f:
            self.inject('close', self.out / 'a', 'verify', '--json', self.container, stdout=f, says=f'stdout: {EIO}')


@unittest.skipUnless(NETWORK, 'built without network')
class Network(Case):
    def end_what_listens(self):
        """Should the log do, it would listen for ever."""
        while self.out.exists():
            if (self.out / 'witness.jsonl').exists():
                for line in Path('/proc').glob('[0-9]*/cmdline'):
                    with contextlib.suppress(OSError):
                        if str(self.out).encode() in line.read_bytes():
                            os.kill(int(line.parent.name), signal.SIGTERM)
            time.sleep(0.1)

    def test_log_of_a_receiver(self):
        key = self.at / 'key'
        subprocess.run([RAMSEAL, 'receive', '--new-key', key], check=True, stdout=subprocess.DEVNULL)
        threading.Thread(target=self.end_what_listens, daemon=True).start()
        for call in ('fsync', 'close'):
            self.inject(call, self.out / 'witness.jsonl.partial', 'receive', '--listen', '127.0.0.1:0',
                        '--key', key, '--any-sender', '--max-total', '1M', '--dir', self.out)
            self.assertEqual(self.left(), [])

    def test_state_of_an_upload(self):
        """Without it nobody could complete what arrives: nothing is sent."""
        import s3_server
        store = s3_server.Store()
        server = s3_server.Server(store)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        env = {k: v for k, v in os.environ.items() if not k.startswith('AWS_') and not k.lower().endswith('_proxy')}
        env.update(AWS_ACCESS_KEY_ID=s3_server.ID, AWS_SECRET_ACCESS_KEY=s3_server.SECRET,
                   AWS_ENDPOINT_URL=f'http://127.0.0.1:{server.port}')
        state = self.out / 'state'
        self.inject('fsync', state, *self.acquire('-o', 's3://evidence/a.rsz', '--upload-state', state), env=env)
        self.assertEqual((self.left(), store.buckets['evidence'], store.uploads), ([], {}, {}))


def may_trace():
    try:
        done = subprocess.run([*STRACE, '--seccomp-bpf', '-e', 'trace=close', '-e', 'inject=close:error=EIO:when=9999',
                               'true'], capture_output=True, timeout=900)
    except FileNotFoundError:
        return False
    return not done.returncode


if __name__ == '__main__':
    if not may_trace():
        print('strace is not there, or not allowed to trace here')
        sys.exit(77)
    unittest.main()
