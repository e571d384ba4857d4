#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Characters that a terminal obeys, hides or reorders are shown escaped, wherever they come from; in JSON they
have the same value. Usage: test_shown.py RAMSEAL SOURCE-ROOT
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(2)).resolve()
sys.path[:0] = [str(ROOT / 'tests/reader'), str(ROOT / 'tests/cli')]
import report_data  # noqa: E402

RAMSEAL = os.path.abspath(sys.argv.pop(1))
# Directions, C1, DEL, what is invisible, line ends of Unicode, a tag above U+FFFF.
STRANGE = 'a\u202ecod.exe\u2066b\u061c\x9b2J\x7f\u200b\u2028\U000e0041'
HIDDEN = set(STRANGE) - set('acod.exeb2J')


def run(*args):
    return subprocess.run([RAMSEAL, *map(str, args)], capture_output=True, timeout=900)


class Shown(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-shown-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)
        self.file = self.at / f'{STRANGE}.rsz'
        self.file.write_bytes(report_data.container(names=(STRANGE, 'two'), host=STRANGE))

    def check(self, *args, code=0):
        done = run(*args)
        self.assertEqual(done.returncode, code, done)
        shown = (done.stdout + done.stderr).decode()
        self.assertFalse(HIDDEN & set(shown), (args, shown))
        return done

    def test_people(self):
        for args in (['info'], ['extract'], ['smear']):
            shown = self.check(*args, self.file).stdout.decode()
            if args != ['extract']:
                self.assertIn('a\\xe2\\x80\\xaecod.exe', shown)
        self.check('info', self.at / STRANGE, code=9)
        self.check('context', '--hive', self.file, code=9)
        self.check('pagefiles', '--image', self.file, code=9)
        self.check('verify', self.file)

    def test_programs(self):
        said = json.loads(self.check('info', '--json', self.file).stdout)
        self.assertEqual((said['file'], said['host']['name']), (str(self.file), STRANGE))
        said = json.loads(self.check('smear', '--json', self.file).stdout)
        self.assertIn(STRANGE, [s.get('name') for s in said['spaces']])
        log = self.check('info', '--log-json', self.at / STRANGE, code=9).stderr
        said = [json.loads(line) for line in log.split(b'\n') if line]
        self.assertIn(STRANGE, said[-1]['message'])
        self.check('export', '--log-json', '-F', 'raw', '-o', self.at / 'raw', self.file, code=3)
        gaps = (self.at / 'raw.gaps.json').read_text()
        self.assertFalse(HIDDEN & set(gaps))
        self.assertEqual(json.loads(gaps)['origin']['container'], str(self.file))

    def test_escapes_are_lower_case_and_of_four_digits(self):
        self.assertIn(b'a\\u202ecod.exe\\u2066b\\u061c\\u009b2J\\u007f\\u200b\\u2028\\udb40\\udc41',
                      self.check('info', '--json', self.file).stdout)


if __name__ == '__main__':
    unittest.main()
