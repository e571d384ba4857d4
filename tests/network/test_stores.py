#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The same uploads to object stores of others, where they are installed: OpenStack Swift with s3api (Debian's
python3-swift, strict about hashes, the order and the size of parts), and npm's s3rver 3.7.1, which takes any
signature (build/npm installs it). Usage: test_stores.py RAMSEAL
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import swift_server  # noqa: E402
from fault_proxy import FaultProxy  # noqa: E402
from targets import clean  # noqa: E402

RAMSEAL = os.path.abspath(sys.argv.pop(1))
HERE = Path(__file__).resolve().parent
S3RVER = shutil.which('s3rver', path=os.environ.get('RAMSEAL_TEST_NPM', '') + ':' +
                      str(HERE.parents[1] / 'out/npm/node_modules/.bin') + ':' + os.environ['PATH'])
SMALL = 'sim:desktop,ram=64M,allocated=20M,resident=10M,trimmed=5M,others=5M,processes=3,cache=2M'
MIB = 1 << 20
DEBIANS_PYTHON = '/usr/bin/python3'
LOCAL = {}


def has_swift():
    return os.path.exists(DEBIANS_PYTHON) and not subprocess.run(
        [DEBIANS_PYTHON, '-c', 'import swift.common.middleware.s3api'], capture_output=True, check=False).returncode


def keeps_attributes(folder):
    """Swift keeps what it knows of an object in extended attributes."""
    try:
        os.setxattr(folder, 'user.swift', b'x')
    except OSError:
        return False
    return True


class Store(unittest.TestCase):
    keys = ('S3RVER', 'S3RVER')

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)
        (self.at / 'store').mkdir()
        self.start()

    def command(self, *args):
        return [RAMSEAL, *map(str, args)]

    def environment(self, **more):
        return clean(AWS_ACCESS_KEY_ID=self.keys[0], AWS_SECRET_ACCESS_KEY=self.keys[1],
                     AWS_ENDPOINT_URL=f'http://127.0.0.1:{self.port}', **more)

    def run_it(self, *args, **more):
        return subprocess.run(self.command(*args), cwd=self.at, env=self.environment() | more,
                              capture_output=True, timeout=900, check=False)

    def acquire(self, to, *more, level='store', **env):
        return self.run_it('acquire', '-q', '-s', SMALL, '--level', level, '-t1', '-o', to, *more, **env)

    def local(self, level='store'):
        """Made once."""
        if level not in LOCAL:
            done = self.acquire('local.rsz', '--force', level=level)
            self.assertEqual(done.returncode, 0, done.stderr)
            LOCAL[level] = (self.at / 'local.rsz').read_bytes()
        return LOCAL[level]

    def check_the_object_is_the_local_file(self):
        done = self.acquire('s3://evidence/a b/mem.rsz')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.content('a b/mem.rsz') == self.local())
        self.refused('exists; choose another name, or --force replaces it', self.acquire('s3://evidence/a b/mem.rsz'))
        done = self.acquire('s3://evidence/a b/mem.rsz', '--force', level='1')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.content('a b/mem.rsz') == self.local('1'))

    def refused(self, pattern, done):
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertEqual(done.stderr.count(b'\n'), 1, done.stderr)
        self.assertRegex(done.stderr.decode(), pattern)


@unittest.skipUnless(S3RVER, 'no s3rver: build/npm installs it')
class S3rver(Store):
    def start(self):
        with socket.create_server(('127.0.0.1', 0)) as free:
            self.port = free.getsockname()[1]
        process = subprocess.Popen([S3RVER, '-d', self.at / 'store', '-a', '127.0.0.1', '-p',
                                    str(self.port), '--silent', '--configure-bucket', 'evidence'],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def content(self, key):
        return (self.at / f'store/evidence/{key}._S3rver_object').read_bytes()

    def test_the_object_is_the_local_file(self):
        """Beginning before the store is up is one of the things that it has to bear."""
        self.check_the_object_is_the_local_file()


@unittest.skipUnless(has_swift(), 'Debian\'s python3-swift is not installed')
class Swift(Store):
    keys = (swift_server.USER, swift_server.KEY)

    @classmethod
    def setUpClass(cls):
        """One for all tests: it takes seconds to start."""
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        cls.addClassCleanup(folder.cleanup)
        at = Path(folder.name)
        if not keeps_attributes(at):
            raise unittest.SkipTest('the file system of the temporary folder keeps no extended attributes')
        (at / 'store').mkdir()
        log = open(at / 'log', 'w+', encoding='utf-8')
        cls.addClassCleanup(log.close)
        process = subprocess.Popen([DEBIANS_PYTHON, HERE / 'swift_server.py', at / 'store'],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        cls.addClassCleanup(process.communicate)
        cls.addClassCleanup(process.kill)
        line = process.stdout.readline()
        if not line:
            raise AssertionError((at / 'log').read_text())
        cls.direct = int(line)

    def start(self):
        self.port = self.direct
        _, headers, _ = self.ask('GET', '/auth/v1.0', **{'X-Storage-User': self.keys[0],
                                                         'X-Storage-Pass': self.keys[1]})
        self.token = headers['X-Auth-Token']
        self.assertIn(self.ask('PUT', '/v1/AUTH_test/evidence', **{'X-Auth-Token': self.token})[0], (201, 202))
        self.addCleanup(self.remove_all)

    def listed(self, container):
        _, _, body = self.ask('GET', f'/v1/AUTH_test/{container}', **{'X-Auth-Token': self.token})
        return body.decode().splitlines()

    def remove_all(self):
        for container in ('evidence', 'evidence+segments'):
            for name in self.listed(container):
                self.ask('DELETE', f'/v1/AUTH_test/{container}/{name}', **{'X-Auth-Token': self.token})

    def ask(self, method, path, **headers):
        """Swift's own way to look at it."""
        request = urllib.request.Request(f'http://127.0.0.1:{self.direct}{urllib.request.quote(path)}',
                                         headers=headers, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=900) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as e:
            with e:
                return e.code, e.headers, e.read()

    def content(self, key):
        status, _, body = self.ask('GET', f'/v1/AUTH_test/evidence/{key}', **{'X-Auth-Token': self.token})
        return body if status == 200 else None

    def test_the_object_is_the_local_file(self):
        self.check_the_object_is_the_local_file()

    def test_what_it_refuses(self):
        self.refused('the secret key is wrong', self.acquire('s3://evidence/x', AWS_SECRET_ACCESS_KEY='wrong'))
        self.refused('no such bucket', self.acquire('s3://nowhere/x'))

    def test_another_region_is_found(self):
        done = self.acquire('s3://evidence/x', level='1', AWS_REGION='mars-1')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.content('x') == self.local('1'))

    def proxy(self, **how):
        ret = FaultProxy(self.direct)
        self.addCleanup(ret.close)
        for name, value in how.items():
            setattr(ret, name, value)
        self.port = ret.port
        return ret

    def test_answers_that_get_lost(self):
        local = self.local('1')
        for number in range(100):
            with self.subTest(lost=number):
                proxy = self.proxy(lose={number})
                done = self.acquire(f's3://evidence/{number}', level='1')
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(self.content(str(number)) == local)
            if not proxy.lost:
                break
        self.assertGreaterEqual(number, 4)

    def kill_at(self, size):
        """Behind so many bytes; the state is there."""
        proxy = self.proxy()
        process = None
        proxy.moments = [(size, lambda: process.kill() or True)]
        with proxy.lock:
            process = subprocess.Popen(self.command('acquire', '-q', '-s', SMALL, '--level', 'store', '-t1', '-o',
                                                    's3://evidence/x', '--upload-state', 'state'),
                                       cwd=self.at, env=self.environment())
        self.assertEqual(process.wait(900), -9)
        self.port = self.direct

    def test_killed_and_finished(self):
        self.kill_at(30 * MIB)
        done = self.run_it('upload', '--finish', 'state')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.content('x') == self.local()[:24 * MIB])

    def test_killed_before_anything_had_arrived(self):
        """And nothing of it stays."""
        self.kill_at(2 * MIB)
        self.refused('nothing had arrived', self.run_it('upload', '--finish', 'state'))
        self.assertIsNone(self.content('x'))
        self.assertEqual(self.listed('evidence+segments'), [])


if __name__ == '__main__':
    unittest.main()
