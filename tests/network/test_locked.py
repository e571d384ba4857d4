#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--object-lock at an object store of ours. Usage: test_locked.py RAMSEAL"""

import datetime
import json
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from upload_case import SMALL, Case  # noqa: E402


class Locked(Case):
    """--object-lock: what the store keeps, and what it is not believed to keep."""

    def lock_of(self, done):
        return self.summary(done)['upload']['object_lock']

    def test_days_by_the_clock_of_the_store(self):
        self.store.faults.clock_ahead = 7 * 86400
        for announces in (True, False):  # without checksums Content-MD5 is what it wants
            self.store.announces = announces
            done = self.acquire('--force', '--object-lock', 'governance:30d')
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check_object('case 1/mem.rsz', '1')
            mode, until = self.store.locks['evidence', 'case 1/mem.rsz']
            self.assertEqual(mode, 'GOVERNANCE')
            self.assertEqual(self.lock_of(done), {'mode': 'governance', 'until': until, 'kept': True})
            then = datetime.datetime.strptime(until + '+0000', '%Y-%m-%dT%H:%M:%SZ%z').timestamp()
            self.assertLess(abs(then - time.time() - 37 * 86400), 3600)
            self.check_nothing_left()

    def test_a_day_and_a_file(self):
        path = self.at / 'there.rsz'
        path.write_bytes(self.local['1'])
        done = self.run_it('--log-json', 'upload', path, 's3://evidence/a', '--object-lock', 'compliance:2089-12-31')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.store.locks['evidence', 'a'], ('COMPLIANCE', '2089-12-31T00:00:00Z'))
        self.assertTrue(self.lock_of(done)['kept'])

    def test_who_may_not_look_is_told_so(self):
        self.store.may_see_locks = False
        done = self.acquire('--object-lock', 'compliance:2089-12-31T12:00:00Z')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b'does not allow checking the lock', done.stderr)
        self.assertIsNone(self.lock_of(done)['kept'])

    def test_a_store_that_passes_it_over(self):
        """All is there, and sealed; but what was asked for did not come about."""
        self.store.object_lock = 'passed over'
        done = self.acquire('--object-lock', 'governance:30d')
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn('is complete, but the lock is not confirmed: the store did not lock the object',
                      self.last_line(done))
        said = self.summary(done)
        self.assertTrue(said['sealed'] and said['root'])
        self.assertIs(said['upload']['object_lock']['kept'], False)
        self.check_object('case 1/mem.rsz', '1')
        self.store.object_lock = 'enabled'
        self.store.locks['evidence', 'x'] = ('GOVERNANCE', '2030-01-01T00:00:00Z')
        self.store.faults.answers = [('^GET retention', 200, '', ())]
        done = self.acquire('--object-lock', 'governance:2089-12-31', to='s3://evidence/y')
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn('does not say how long', self.last_line(done))

    def test_what_is_refused(self):
        def refused(says, code, *args, **how):
            done = self.acquire(*args, **how)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(says, self.last_line(done))
            self.check_nothing_left()

        refused('a time in the future', 6, '--object-lock', 'governance:2020-01-01')
        refused('token has expired', 6, '--object-lock', 'governance:1d',
                env=self.environment(AWS_SESSION_TOKEN='old'))
        self.store.object_lock = 'off'
        refused('enable Object Lock for the bucket', 6, '--object-lock', 'governance:1d')
        for wrong in ('governance', 'governance:', 'gov:1d', 'compliance:0d', 'compliance:36501d', 'compliance:1',
                      'compliance:2027-13-01', 'compliance:2027-01-01T', 'compliance:2027-01-01T00:00:00',
                      'compliance:2027-02-29', 'compliance:2027-01-01x', 'compliance:-1d'):
            refused('takes governance or compliance', 2, '--object-lock', wrong)
        pin = ('--pin', 'sha256//' + 43 * 'A' + '=')
        for to in ('tls://127.0.0.1:1', 'https://127.0.0.1:1/x'):
            refused('does not support locks', 2, '--object-lock', 'governance:1d', *pin, to=to)
        refused('--object-lock is for addresses', 2, '--object-lock', 'governance:1d', to='file.rsz')
        self.assertNotIn('PUT', [method for method, _, _ in self.store.requests])

    def test_killed_and_finished(self):
        """The lock began with the upload; the state tells what to look for."""
        for how in ('state', 's3://evidence/x'):
            self.store.faults.hold = '^PUT .*partNumber=', 1
            with subprocess.Popen(self.command('acquire', '-q', '-s', SMALL, '--level', 'store', '-t1', '-o',
                                               's3://evidence/x', '--object-lock', 'governance:2089-12-31',
                                               '--upload-state', 'state'),
                                  cwd=self.at, env=self.environment(), stderr=subprocess.DEVNULL) as process:
                until = time.monotonic() + 900
                while not any(u.parts for u in list(self.store.uploads.values())):
                    self.assertLess(time.monotonic(), until)
                    time.sleep(0.02)
                process.kill()
            self.store.faults.hold = None
            said = json.loads((self.at / 'state').read_text())['object_lock']
            self.assertEqual(said, {'mode': 'governance', 'until': '2089-12-31T00:00:00Z', 'kept': None})
            self.store.requests.clear()
            done = self.run_it('upload', '--finish', how)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.store.locks.pop(('evidence', 'x')), ('GOVERNANCE', '2089-12-31T00:00:00Z'))
            self.assertEqual(sum('retention' in path for _, path, _ in self.store.requests), how == 'state')
            (self.at / 'state').unlink(missing_ok=True)
            del self.objects['x']
        done = self.run_it('upload', '--finish', 's3://evidence/x', '--object-lock', 'governance:90d')
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(b'days count from the upload', done.stderr)


if __name__ == '__main__':
    unittest.main()
