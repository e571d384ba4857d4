#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
ramseal-collect has what is used on the machine that is acquired, and no code that examines; what both do is the same.
Usage: test_collect.py RAMSEAL-COLLECT [RAMSEAL LIBEXAMINE]
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

COLLECT = os.path.abspath(sys.argv.pop(1))
RAMSEAL, EXAMINE = (os.path.abspath(sys.argv.pop(1)) for _ in range(2)) if len(sys.argv) > 2 else (None, None)
# The other libraries of the program.
OTHERS = [str(path) for part in ('agent', 'formats', 'driver-interface', 'tsk-extract') if EXAMINE
          for path in (Path(EXAMINE).parents[1] / part).glob('**/lib*.a') if str(path) != EXAMINE]
SIMULATOR = os.environ.get('RAMSEAL_SIMULATOR') != '0'  # -Dsimulator
MACHINE = 'sim:desktop,ram=128M,allocated=80M,resident=44M,trimmed=24M,others=30M,processes=10,cache=8M,' \
          'pagefile0=128M,pagefile1=64M'
COMMANDS = {'acquire', 'check', 'status', 'stop', 'driver', 'verify', 'info', 'extract-file', 'pagefiles', 'context',
            'seal', 'upload', 'help', 'version', 'completion', 'manual'}


def output_of(*args, code=0):
    done = subprocess.run(args, capture_output=True, text=True, timeout=900)
    assert done.returncode == code, done
    return done.stdout


def commands(program):
    listed = output_of(program, '--help').split('General options:\n')[0]
    return set(re.findall(r'^  ([a-z-]+)', listed, re.M))


def symbols(*args):
    return {line.split()[-1] for line in output_of('nm', *args).splitlines() if len(line.split()) > 2}


class Parts(unittest.TestCase):
    def test_commands(self):
        self.assertEqual(commands(COLLECT), COMMANDS)

    def test_other_commands_are_unknown(self):
        for command in ('smear', 'read', 'heap', 'export'):
            done = subprocess.run([COLLECT, command, 'x'], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ''), done)
            self.assertIn(f"'{command}'", done.stderr)

    def test_manual_has_examples_of_these_commands_alone(self):
        examples = output_of(COLLECT, 'manual').split('.SH EXAMPLES\n')[1]
        used = set(re.findall(r'^ramseal-collect ([a-z-]+) ', examples, re.M))
        self.assertEqual(used, {'acquire', 'check', 'verify'})
        self.assertNotRegex(examples, r'(?m)^ramseal ')

    def test_it_lists_what_it_is_linked_with(self):
        self.assertNotIn('libfuse', output_of(COLLECT, '--version', '--verbose'))

    @unittest.skipUnless(EXAMINE, 'built without what examines')
    def test_no_code_that_examines(self):
        # Some of them have a namesake, which no other file sees.
        examining = symbols('-g', '--defined-only', EXAMINE) - symbols('--defined-only', *OTHERS)
        self.assertGreater(len(examining), 300)
        self.assertGreater(len(examining & symbols('--defined-only', RAMSEAL)), 300)
        self.assertEqual((examining & symbols('--defined-only', COLLECT)) - {'info_put_smear'}, set())

    @unittest.skipUnless(EXAMINE, 'built without what examines')
    def test_it_is_smaller(self):
        self.assertLess(os.path.getsize(COLLECT), os.path.getsize(RAMSEAL))


@unittest.skipUnless(SIMULATOR, 'built without simulated machines')
class Same(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.container = os.path.join(folder.name, 'host.rsz')
        output_of(COLLECT, 'acquire', '-o', cls.container, '-s', MACHINE)

    def test_info_says_what_it_does_not_measure(self):
        self.assertRegex(output_of(COLLECT, 'info', self.container),
                         r'(?m)^smear +ramseal-collect does not measure it')

    @unittest.skipUnless(RAMSEAL, 'built without what examines')
    def test_info_is_the_same_but_for_that(self):
        here, there = (json.loads(output_of(program, 'info', '--json', self.container))
                       for program in (COLLECT, RAMSEAL))
        self.assertEqual(here['smear'], {'sentence': 'ramseal-collect does not measure it; ramseal info does.'})
        self.assertRegex(there['smear']['sentence'], r'\d % certainly belong there')
        for said in here, there:
            del said['smear']
        self.assertEqual(here, there)

    @unittest.skipUnless(RAMSEAL, 'built without what examines')
    def test_each_verifies_what_the_other_acquired(self):
        self.assertEqual(output_of(COLLECT, 'verify', self.container), output_of(RAMSEAL, 'verify', self.container))


if __name__ == '__main__':
    unittest.main(verbosity=2)
