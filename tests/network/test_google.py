#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""acquire and upload to gs://, where a store of ours differs as Google's does. Usage: test_google.py RAMSEAL"""

import socket
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from upload_case import SMALL, Case  # noqa: E402


class Google(Case):
    """gs://: the same, but that nothing hinders a completion from replacing what has the name."""

    def setUp(self):
        super().setUp()
        self.serve(google=True, region='auto')

    def acquire(self, *more, to='gs://evidence/case 1/mem.rsz', **how):
        return super().acquire(*more, to=to, **how)

    def test_the_object_is_the_local_file(self):
        self.store.faults.drop_after = ['^POST uploadId']
        done = self.acquire(level='store', env=self.environment(AWS_REGION='eu-north-7'))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_object('case 1/mem.rsz', 'store')
        self.check_nothing_left()
        self.assertEqual(self.summary(done)['output'], 'gs://evidence/case 1/mem.rsz')
        # Once at the beginning, and once before each completion.
        self.assertEqual([method for method, _, _ in self.store.requests].count('HEAD'), 3)

    def refused(self, pattern, code, done):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertRegex(self.last_line(done), pattern)

    def test_nothing_is_replaced_unless_that_is_asked_for(self):
        self.objects['x'] = b'old'
        self.refused('exists; choose another name, or --force replaces it', 6, self.acquire(to='gs://evidence/x'))
        self.store.faults.answers = [('^HEAD', 404, '', ())]  # it came meanwhile
        self.refused("exists.*'ramseal upload --finish' with this address", 6, self.acquire(to='gs://evidence/x'))
        self.assertEqual(self.objects['x'], b'old')
        done = self.run_it('upload', '--finish', 'gs://evidence/x')
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertEqual(self.objects['x'], b'old')
        self.store.may_look = False
        self.refused('nor say whether the name exists', 6, self.acquire(to='gs://evidence/y'))
        done = self.run_it('upload', '--finish', 'gs://evidence/x', '--force')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_object('x', '1')
        self.check_nothing_left()

    def test_what_is_refused(self):
        none = self.environment(AWS_SECRET_ACCESS_KEY=None)
        self.refused('gs: needs HMAC keys', 2, self.acquire(env=none))
        self.refused('not gs://BUCKET/KEY', 2, self.acquire(to='gs://evidence'))
        self.refused('does not support locks', 2, self.acquire('--object-lock', 'governance:1d'))
        self.check_nothing_left()

    def test_without_an_endpoint_it_is_googles(self):
        """What a proxy is asked for says where it goes."""
        with socket.create_server(('127.0.0.1', 0)) as server:
            process = subprocess.Popen(
                self.command('acquire', '-q', '-s', SMALL, '-o', 'gs://evidence/x', '--pin',
                             'sha256//' + 43 * 'A' + '=', '--proxy', f'http://127.0.0.1:{server.getsockname()[1]}'),
                cwd=self.at, env=self.environment(AWS_ENDPOINT_URL=None), stderr=subprocess.DEVNULL)
            with process, server.accept()[0] as peer:
                self.assertRegex(peer.recv(4096), rb'^CONNECT storage\.googleapis\.com:443 ')
                process.kill()


if __name__ == '__main__':
    unittest.main()
