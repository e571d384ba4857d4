#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The code of docs/smear-tables.md: R and pandas read what smear writes, and count what its JSON has.
Usage: test_smear_tables.py RAMSEAL SOURCE_ROOT
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RAMSEAL, ROOT = os.path.abspath(sys.argv.pop(1)), Path(sys.argv.pop(1)).resolve()
MACHINE = ('sim:desktop,ram=128M,resident=16M,allocated=32M,trimmed=4M,others=4M,cache=2M,pagefile0=24M,activity=1000,'
           'pressure=100')


def with_pandas():
    """Debian's Python, or this one."""
    for python in ('/usr/bin/python3', sys.executable):
        if not subprocess.run([python, '-c', 'import pandas'], capture_output=True).returncode:
            return python
    return None


def blocks(language):
    text = (ROOT / 'docs/smear-tables.md').read_text()
    return re.findall(rf'^```{language}\n(.*?)^```$', text, re.M | re.S)


def pages_by_name(text):
    """{"safe": 7, ...} of the lines that are a verdict and a number."""
    return {name: int(n) for name, n in re.findall(r'^ *(safe|at-risk|wrong) +(\d+)$', text, re.M)}


class Tables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.at = Path(tempfile.mkdtemp(dir='.')).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.at)
        cls.run_in(RAMSEAL, 'acquire', '-q', '-s', MACHINE, '-o', 'host.rsz')
        (cls.at / 'bin').mkdir()
        (cls.at / 'bin/ramseal').symlink_to(RAMSEAL)
        code, = blocks('sh')
        cls.run_in('sh', '-euc', code)
        doc = json.loads(cls.run_in(RAMSEAL, 'smear', '--json', 'host.rsz'))
        cls.trust = doc['total']['copies']['image']['trust']

    @classmethod
    def run_in(cls, *args):
        env = {**os.environ, 'PATH': f'{cls.at / "bin"}:{os.environ["PATH"]}'}
        done = subprocess.run(args, cwd=cls.at, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=900)
        if done.returncode:
            raise AssertionError(f'{args}: {done.stderr.decode()}')
        return done.stdout.decode()

    def check(self, *program, language):
        code = blocks(language)
        self.assertEqual(len(code), 2)
        self.assertGreater(self.trust['at-risk'] * self.trust['wrong'] * self.trust['safe'], 0, 'nothing to count')
        said = [self.run_in(*program, block) for block in code]
        for text in said:
            self.assertEqual(pages_by_name(text), {k: self.trust[k] for k in ('safe', 'at-risk', 'wrong')}, text)
        return said

    @unittest.skipUnless(shutil.which('Rscript'), 'without R')
    def test_r(self):
        counted, timed = self.check('Rscript', '-e', language='r')
        self.assertRegex(counted, r'no-file +page-file +\d+')
        self.assertRegex(timed, r'(?m)^ *tenth +pages +risk +share$')

    @unittest.skipUnless(with_pandas(), 'without pandas')
    def test_pandas(self):
        counted, timed = self.check(with_pandas(), '-c', language='python')
        self.assertRegex(counted, r'no-file +page-file +\d+')
        self.assertRegex(timed, r'(?m)^0\.0 +\d+ +\d+ +0\.')


if __name__ == '__main__':
    unittest.main()
