#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The same upload to object stores of others, where they are installed: npm's s3rver 3.7.1 (which
takes any signature), in PATH or in the folder of RAMSEAL_TEST_NPM. Usage: test_stores.py RAMSEAL
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RAMSEAL = os.path.abspath(sys.argv.pop(1))
S3RVER = shutil.which('s3rver', path=os.environ.get('RAMSEAL_TEST_NPM', '') + ':' + os.environ['PATH'])
SMALL = 'sim:desktop,ram=64M,allocated=20M,resident=10M,trimmed=5M,others=5M,processes=3,cache=2M'


@unittest.skipUnless(S3RVER, 'npm install s3rver@3.7.1, and name its node_modules/.bin in RAMSEAL_TEST_NPM')
class S3rver(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)
        (self.at / 'store').mkdir()
        with socket.create_server(('127.0.0.1', 0)) as free:
            self.port = free.getsockname()[1]
        process = subprocess.Popen([S3RVER, '-d', self.at / 'store', '-a', '127.0.0.1', '-p',
                                    str(self.port), '--silent', '--configure-bucket', 'evidence'],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def run_it(self, *args):
        env = {k: v for k, v in os.environ.items() if not k.startswith('AWS_')}
        env.update(AWS_ACCESS_KEY_ID='S3RVER', AWS_SECRET_ACCESS_KEY='S3RVER',
                   AWS_ENDPOINT_URL=f'http://127.0.0.1:{self.port}')
        return subprocess.run([RAMSEAL, *args], cwd=self.at, env=env, capture_output=True, timeout=600)

    def test_the_object_is_the_local_file(self):
        """Beginning before the store is up is one of the things that it has to bear."""
        how = ('acquire', '-q', '-s', SMALL, '--level', 'store', '-t1', '-o')
        self.assertEqual(self.run_it(*how, 'local.rsz').returncode, 0)
        done = self.run_it(*how, 's3://evidence/a b/mem.rsz')
        self.assertEqual(done.returncode, 0, done.stderr)
        stored = self.at / 'store/evidence/a b/mem.rsz._S3rver_object'
        self.assertTrue(stored.read_bytes() == (self.at / 'local.rsz').read_bytes())
        done = self.run_it(*how, 's3://evidence/a b/mem.rsz')
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn(b'exists', done.stderr)


if __name__ == '__main__':
    unittest.main()
