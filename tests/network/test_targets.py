#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The same for every target (targets.py): connections that are cut at random, answers that get lost one after the
other, kill -9 at random moments. What arrives is the local container, byte for byte, or its beginning,
which can be closed. Moments are counted in bytes, and drawn from the printed seed.
Usage: test_targets.py RAMSEAL [TEST...]; RAMSEAL_TEST_SEED, _CUTS and _KILLS say what to draw and how often
"""

import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import targets  # noqa: E402
from fault_proxy import FaultProxy  # noqa: E402
from targets import MIB  # noqa: E402

RAMSEAL = os.path.abspath(sys.argv.pop(1))
SEED = int(os.environ.get('RAMSEAL_TEST_SEED', '7'))
CUTS = os.environ.get('RAMSEAL_TEST_CUTS')
KILLS = int(os.environ.get('RAMSEAL_TEST_KILLS', '3'))
ROW = 3  # cuts that may follow each other: after each one the pause doubles


def machine(mib):
    return ('-s', f'sim:desktop,ram={mib}M,allocated=20M,resident=10M,trimmed=5M,others=5M,processes=3,cache=2M',
            '-t1', '--level')


def run(*args, **more):
    return subprocess.run([str(a) for a in args], capture_output=True, timeout=3600, check=False, **more)


class Case(unittest.TestCase):
    kind = None
    locals = {}

    @classmethod
    def setUpClass(cls):
        if cls.kind.needs and not os.path.exists(cls.kind.needs):
            raise unittest.SkipTest(f'{cls.kind.needs} is not installed')
        if not cls.locals:
            cls.folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
            unittest.addModuleCleanup(cls.folder.cleanup)

    def local(self, how):
        """The container as a file: each is made once."""
        if how not in self.locals:
            path = Path(self.folder.name) / f'{len(self.locals)}.rsz'
            done = run(RAMSEAL, 'acquire', '-q', *how, '-o', path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.locals[how] = path
        return self.locals[how]

    def target(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        self.addCleanup(folder.cleanup)
        ret = self.kind(RAMSEAL, Path(folder.name))
        self.addCleanup(ret.close)
        return ret

    def proxy(self, target, **how):
        ret = FaultProxy(target.port, seed=SEED)
        self.addCleanup(ret.close)
        for name, value in how.items():
            setattr(ret, name, value)
        return ret

    def start(self, target, proxy, how):
        args = target.send(proxy.port, self.local(how), how)
        ret = subprocess.Popen([RAMSEAL, *map(str, args)], cwd=target.at, stderr=subprocess.PIPE,
                               stdout=subprocess.PIPE, env=target.environment(proxy.port))
        self.addCleanup(ret.communicate)
        self.addCleanup(ret.kill)
        return ret

    def check_arrives(self, target, proxy, how):
        process = self.start(target, proxy, how)
        err = process.communicate(timeout=3600)[1]
        self.assertEqual(process.returncode, 0, err)
        self.check_whole(target, how)
        self.assertEqual(target.left(), [])
        self.assertFalse(target.state.exists())

    def check_whole(self, target, how):
        self.assertTrue(target.content() == self.local(how).read_bytes(), 'differs')


class EachTarget:
    def test_cuts_at_random(self):
        cuts = int(CUTS or (6 if self.kind.whole else 20))  # behind one all begins anew where only whole files are kept
        print(f'{self.kind.__name__}: {cuts} cuts, seed {SEED}', file=sys.stderr)
        how = (*machine(64 + (3 * cuts if cuts > 20 and not self.kind.whole else 0)), 'store')
        size = self.local(how).stat().st_size
        target, lasts = self.target(), (size + size // 50 if self.kind.whole else self.kind.piece)
        proxy = self.proxy(target, cuts=cuts, mercy=ROW, whole=lasts + (64 << 10),
                           within=size if self.kind.whole else lasts + MIB)
        self.check_arrives(target, proxy, how)
        while self.kind.whole and proxy.made < cuts:
            target.forget()
            self.check_arrives(target, proxy, how)
        self.assertEqual(proxy.made, cuts)

    def test_answers_that_get_lost(self):
        """Each in its turn, then with the next one, which is that to the request as it was asked for again."""
        how = (*machine(64), '1')
        for more in (0, 1):
            number = 0
            while True:
                with self.subTest(lost=number, more=more):
                    target = self.target()
                    proxy = self.proxy(target, lose={number, number + more})
                    self.check_arrives(target, proxy, how)
                if not proxy.lost:
                    break
                number += 1
                self.assertLess(number, 100)
            self.assertGreaterEqual(number, 2)

    def test_killed_at_random_moments(self):
        print(f'{self.kind.__name__}: {KILLS} kills, seed {SEED}', file=sys.stderr)
        how = (*machine(64), 'store')
        draw = random.Random(SEED)
        size = self.local(how).stat().st_size
        for i in range(KILLS):
            at = draw.choice([draw.randrange(4000), draw.randrange(size), draw.randrange(size),
                              size + draw.randrange(20000)])
            with self.subTest(number=i, bytes=at):
                self.check_killed(at, how)

    def check_killed(self, at, how):
        target = self.target()
        proxy = self.proxy(target)
        process = None
        proxy.moments = [(at, lambda: process.kill())]
        with proxy.lock:
            process = self.start(target, proxy, how)
        err = process.communicate(timeout=900)[1]
        self.assertIn(process.returncode, (0, -9), err)
        content, whole = target.finish(), self.local(how).read_bytes()
        if process.returncode == 0:
            self.assertTrue(content == whole)
        elif content is not None and content != whole:
            self.assertTrue(not self.kind.whole, 'half a file')
            self.assertTrue(content == whole[:len(content)], 'differs')
            self.check_closes(target.at / 'fetched.rsz', content)

    def check_closes(self, path, content):
        """`verify` says how far it is whole, and `seal` closes it."""
        path.write_bytes(content)
        done = run(RAMSEAL, 'verify', path)
        if done.returncode == 9 or b'(0 records)' in done.stdout:
            self.assertLess(len(content), 1000)  # not even the first record
            return
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertEqual(run(RAMSEAL, 'seal', path).returncode, 0)
        self.assertEqual(run(RAMSEAL, 'verify', path).returncode, 10)


for each in (targets.S3, targets.AzBlob, targets.Put, targets.Tls):
    globals()[each.__name__] = type(each.__name__, (EachTarget, Case), {'kind': each})
del each

if __name__ == '__main__':
    unittest.main()
