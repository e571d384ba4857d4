# SPDX-License-Identifier: Apache-2.0
"""
What the tests of uploads share: a store of ours, a simulated machine that makes the same container
each time, and ramseal, which is the first argument of the test.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import s3_server

RAMSEAL = os.path.abspath(sys.argv.pop(1))
RECIPIENT = 'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj'
MIB = 1 << 20
SMALL = 'sim:desktop,ram=64M,allocated=20M,resident=10M,trimmed=5M,others=5M,processes=3,cache=2M'
SESSION = 'sEsSiOnToKeN/of+the=tests'


def pieces(container):
    return -(-len(container) // (8 * MIB))


class Local(dict):
    """The local files, by their level: each is made when somebody asks for it."""

    def __missing__(self, level):
        with tempfile.TemporaryDirectory(prefix='ramseal-test-') as folder:
            path = Path(folder) / 'local.rsz'
            done = subprocess.run([RAMSEAL, 'acquire', '-q', '-s', SMALL, '--level', level, '-t1',
                                   '-o', path], capture_output=True, timeout=900)
            if done.returncode:
                raise AssertionError(done.stderr)
            self[level] = path.read_bytes()
        return self[level]


class Case(unittest.TestCase):
    local = Local()

    def setUp(self):
        self.serve()
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)

    def serve(self, **how):
        self.store = s3_server.Store(**how)
        self.server = s3_server.Server(self.store)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.port = self.server.port

    @property
    def objects(self):
        return self.store.buckets['evidence']

    def environment(self, **more):
        # A proxy or a region of whoever runs the tests is not to be asked.
        kept = {k: v for k, v in os.environ.items() if not k.lower().endswith('_proxy')
                and not k.startswith('AWS_')}
        kept.update(AWS_ACCESS_KEY_ID=s3_server.ID, AWS_SECRET_ACCESS_KEY=s3_server.SECRET,
                    AWS_ENDPOINT_URL=f'http://127.0.0.1:{self.port}')
        kept.update(more)
        return {k: v for k, v in kept.items() if v is not None}

    def command(self, *args):
        return [RAMSEAL, *map(str, args)]

    def run_it(self, *args, env=None, timeout=900, **more):
        return subprocess.run(self.command(*args), capture_output=True, timeout=timeout, cwd=self.at,
                              env=env or self.environment(), **more)

    def acquire(self, *more, to='s3://evidence/case 1/mem.rsz', level='1', **how):
        return self.run_it('acquire', '-q', '--log-json', '-s', SMALL, '--level', level, '-t1',
                           '-o', to, *more, **how)

    def summary(self, done):
        return json.loads([line for line in done.stderr.splitlines() if b'"summary"' in line][-1])

    def last_line(self, done):
        return json.loads(done.stderr.splitlines()[-1])['message']

    def check_object(self, key, level):
        self.assertEqual(len(self.objects[key]), len(self.local[level]))
        self.assertTrue(self.objects[key] == self.local[level], 'differs')

    def check_nothing_left(self):
        self.assertEqual(os.listdir(self.at), [])
        self.assertEqual(self.store.uploads, {})
