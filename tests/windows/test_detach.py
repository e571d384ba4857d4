#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
acquire --detach, status and stop of ramseal.exe under Wine: jobs, handles, secrets. An acquisition goes to a
server of the test's own, which takes nothing until it is told to: so it lasts for as long as the test needs.

    test_detach.py WINE RAMSEAL.EXE IN_JOB.EXE [unittest options]
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

WINE, EXE, IN_JOB = (sys.argv.pop(1) for _ in range(3))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'network'))
import s3_server  # noqa: E402

NETWORK = os.environ.get('RAMSEAL_NETWORK') != '0'
MIB = 1 << 20
COMPLETE, USAGE, OUTPUT, INTERRUPTED, INPUT, RUNNING, DIED = 0, 2, 6, 8, 9, 12, 13
LINE_MAX = 2000


def windows(path):
    """How Wine calls a path of this machine."""
    return 'Z:' + os.path.abspath(path).replace('/', '\\')


def wine(*args, **more):
    """Stderr goes to a file: each process of Wine's keeps its own copy of that, whatever Windows' handles are."""
    with tempfile.TemporaryFile() as error:
        more = {'stdout': subprocess.PIPE, 'stderr': error, 'timeout': 250, **more}
        done = subprocess.run([WINE, *map(str, args)], **more)
        error.seek(0)
        done.stderr = error.read()
    return done


def run(*args, **more):
    return wine(EXE, *args, **more)


class Gate(s3_server.Handler):
    """Answers to a part when its server is open."""

    def act(self, path, query, body):
        if self.command == 'PUT':
            self.server.open.wait()
        return super().act(path, query, body)


class Case(unittest.TestCase):
    def setUp(self):
        self.at = Path(tempfile.mkdtemp(prefix='ramseal-windows-'))
        self.addCleanup(shutil.rmtree, self.at, ignore_errors=True)
        self.image = self.at / 'image'
        self.image.write_bytes(os.urandom(16 * MIB))
        self.state = self.at / 'state.json'
        self.out = self.at / 'out.rsz'

    def command(self, *more, out=None):
        return ['acquire', '--detach', '--state', windows(self.state), '--source', f'file:{windows(self.image)}',
                '-t1', '--level', 'store', '-o', out or windows(self.out), *more]

    def begun(self, done, in_job=False):
        self.assertEqual((done.returncode, done.stderr), (COMPLETE, b''), done)
        self.assertLessEqual(len(done.stdout), LINE_MAX)
        said = json.loads(done.stdout)
        self.assertEqual(list(said), ['schema', 'pid', 'state', 'output', 'in_job'])
        self.assertEqual((said['schema'], said['state'], said['in_job']),
                         ('ramseal-detached-1', windows(self.state), in_job))
        return said

    def status(self, code, *args):
        done = run('status', '--json', '--state', windows(self.state), *args)
        self.assertEqual(done.returncode, code, done)
        return json.loads(done.stdout)

    def verify(self, path=None):
        done = run('verify', windows(path or self.out))
        self.assertEqual(done.returncode, COMPLETE, done.stderr)


class Detached(Case):
    def test_it_goes_on_and_ends(self):
        said = self.begun(run(*self.command()))
        ended = self.status(COMPLETE, '--wait')
        self.assertEqual((ended['state'], ended['pid'], ended['exit_code'], ended['where']),
                         ('ended', said['pid'], 0, windows(self.out)))
        self.verify()
        line = run('status', '--state', windows(self.state))
        self.assertEqual((line.returncode, line.stdout.count(b'\n')), (0, 1))
        self.assertIn(b'ended: exit code 0, complete', line.stdout)

    def test_what_fails_early_fails_as_without(self):
        self.out.write_bytes(b'x')
        for more, code in ((['--source', 'file:nothing'], INPUT), ([], OUTPUT), (['--source', 'nonsense'], USAGE)):
            command = self.command(*more)
            plain = run(*(c for c in command if c != '--detach'))
            detached = run(*command)
            self.assertEqual((detached.returncode, detached.stdout), (code, b''), detached)
            self.assertEqual(detached.stderr.splitlines(), plain.stderr.splitlines()[-1:])
        for more in (['-o', '-'], ['--to', 'fd:5', '-o', 'x']):
            self.assertEqual(run(*self.command(), *more).returncode, USAGE)

    def test_no_state(self):
        for command in 'status', 'stop':
            self.assertEqual(run(command, '--state', windows(self.state)).returncode, INPUT)

    def test_the_default_place(self):
        done = run('acquire', '--detach', '--source', f'file:{windows(self.image)}', '-o', windows(self.out))
        said = json.loads(done.stdout)
        self.assertTrue(said['state'].lower().endswith(':\\programdata\\ramseal\\acquire.json'), said)
        self.assertEqual(run('status', '--wait').returncode, COMPLETE)
        # Without --detach nothing is put there: it is on a disk.
        self.assertEqual(run('status', '--json').stdout, before := run('status', '--json').stdout)
        self.assertEqual(run('acquire', '-q', '-s', 'pmem:nothing', '-o', windows(self.at / 'x')).returncode, USAGE)
        self.assertNotEqual(run('acquire', '-q', '-s', 'winpmem:nothing', '-o', windows(self.at / 'x')).returncode, 0)
        self.assertEqual(run('status', '--json').stdout, before)


@unittest.skipUnless(NETWORK, 'built without network')
class Jobs(Case):
    def setUp(self):
        super().setUp()
        self.image.write_bytes(os.urandom(64 * MIB))  # more than what waits in memory
        self.store = s3_server.Store()
        self.server = s3_server.Server(self.store)
        self.server.RequestHandlerClass = Gate
        self.server.open = threading.Event()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.env = {**os.environ, 'AWS_ACCESS_KEY_ID': s3_server.ID, 'AWS_SECRET_ACCESS_KEY': s3_server.SECRET,
                    'AWS_ENDPOINT_URL': f'http://127.0.0.1:{self.server.port}'}
        self.addCleanup(self.end)

    def end(self):
        self.server.open.set()
        with contextlib.suppress(subprocess.TimeoutExpired):
            run('stop', '--state', windows(self.state), timeout=30)

    def blocked(self, *front):
        return wine(*front, EXE, *self.command('--spool-size', '16M', out='s3://evidence/x.rsz'), env=self.env)

    def arrived(self):
        self.status(COMPLETE, '--wait')
        self.out.write_bytes(self.store.buckets['evidence']['x.rsz'])
        self.verify()

    def go_on(self):
        self.server.open.set()
        self.arrived()

    def test_a_job_that_lets_it_go(self):
        said = self.begun(self.blocked(windows(IN_JOB), 'allow'))
        # The job was closed, with all that was in it.
        self.assertEqual(self.status(RUNNING)['state'], 'running')
        self.assertEqual(self.status(RUNNING, '--wait=1')['pid'], said['pid'])
        self.go_on()

    def test_a_job_that_does_not(self):
        self.begun(self.blocked(windows(IN_JOB), 'forbid'), in_job=True)
        self.assertEqual(self.status(DIED, '--wait')['state'], 'died')
        self.assertEqual(run('stop', '--state', windows(self.state)).returncode, DIED)

    def test_no_job(self):
        # That this returns shows that the new process does not hold stdout.
        self.begun(self.blocked())
        self.status(RUNNING)
        done = run(*self.command())
        self.assertEqual((done.returncode, done.stdout, done.stderr.count(b'\n')), (RUNNING, b'', 1), done)
        self.go_on()

    def test_stop(self):
        self.begun(self.blocked())
        done = []
        stop = threading.Thread(target=lambda: done.append(run('stop', '--state', windows(self.state))))
        stop.start()
        while stop.is_alive() and not self.status(RUNNING)['stopping']:
            pass
        self.server.open.set()
        stop.join(250)
        self.assertEqual((done[0].returncode, done[0].stderr), (INTERRUPTED, b''), done)
        self.assertIn(b'ended: exit code 8', done[0].stdout)
        self.assertEqual(self.status(INTERRUPTED)['stopping'], 'ramseal stop')

    def test_keys_from_stdin(self):
        self.server.open.set()
        env = {k: v for k, v in self.env.items() if not k.endswith(('_ID', '_KEY'))}
        keys = f'AWS_ACCESS_KEY_ID = {s3_server.ID}\nAWS_SECRET_ACCESS_KEY = {s3_server.SECRET}\n'
        self.begun(run(*self.command('--keys', '-', out='s3://evidence/x.rsz'), input=keys.encode(), env=env))
        self.arrived()


if __name__ == '__main__':
    unittest.main()
