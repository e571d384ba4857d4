#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What a parser of ramseal.exe can reach that was led astray: without a cage everything, in it nothing but what the
command line names. What Wine does not enforce is skipped by its name; Windows does.

    test_cage.py WINE RAMSEAL.EXE ASTRAY.EXE SOURCE-ROOT [unittest options]
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

WINE, EXE, ASTRAY = (sys.argv.pop(1) for _ in range(3))
ROOT = Path(sys.argv.pop(1)).resolve()
sys.path[:0] = [str(ROOT / 'tests' / part) for part in ('reader', 'cli', 'ntfs')]
import report_data  # noqa: E402
from forge import Volume  # noqa: E402
from make_hives import SOFTWARE  # noqa: E402
from hive import Hive  # noqa: E402

MIB = 1 << 20
DEPUTY = {'asks_to_read', 'asks_to_write', 'asks_to_make', 'asks_to_remove', 'asks_to_rename', 'asks_what_is_there'}
TOKEN = {'reads', 'lists', 'writes', 'makes', 'makes_folder', 'removes', 'renames', 'reads_registry', 'loads',
         'opens_processes'}
JOB = {'runs'}
POLICIES = {'makes_code'}
ALL = DEPUTY | TOKEN | JOB | POLICIES | {'has_privileges'}


def windows(path):
    """How Wine calls a path of this machine."""
    return 'Z:' + os.path.abspath(path).replace('/', '\\')


class Cage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-cage-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)
        self.file = self.at / 'evidence'
        self.file.write_bytes(report_data.container())
        (self.at / 'other').write_text('other')
        (self.at / 'victim').write_text('victim')

    def run_exe(self, exe, *args, **env):
        """Stderr goes to a file: each process of Wine's keeps its own copy of that."""
        with tempfile.TemporaryFile('w+') as error:
            args = [windows(a) if isinstance(a, Path) else a for a in args]
            done = subprocess.run([WINE, exe, *args], stdout=subprocess.PIPE, stderr=error, timeout=900,
                                  stdin=subprocess.DEVNULL,
                                  env={**os.environ, 'RAMSEAL_ASTRAY': windows(self.at), **env})
            error.seek(0)
            return done.returncode, done.stdout, error.read()

    def tried(self, *args, **env):
        """What was reached, by the names in astray.c, and what is said of a system that lacks something."""
        code, _, log = self.run_exe(ASTRAY, '--log-json', *args, **env)
        said = [line[8:] for line in log.splitlines() if line.startswith('astray: ')]
        self.assertIn('tried', said, log)
        told = [json.loads(line) for line in log.splitlines() if line.startswith('{')]
        return code, set(said) - {'tried'}, [line for line in told if line['event'] == 'not-caged']

    def test_without_a_cage(self):
        code, reached, told = self.tried('info', self.file, RAMSEAL_CAGE='off')
        self.assertEqual(code, 0)
        # What a process gives up by itself, Wine's knows of no policies.
        self.assertEqual(reached | POLICIES | {'has_privileges'}, ALL)
        self.assertEqual([(line['token'], line['job']) for line in told], [(False, False)])
        self.assertIn('RAMSEAL_CAGE', told[0]['message'])

    def check(self, reached, told):
        """`told` names what this system does not enforce."""
        open_to = set()
        if told and not told[0]['token']:
            open_to |= TOKEN
        if told and not told[0]['job']:
            open_to |= JOB | POLICIES
        self.assertLessEqual(len(told), 1)
        self.assertEqual(reached - open_to, set())
        return open_to

    def test_containers(self):
        out, left = self.at / 'out', set()
        for args, wanted in ((['info'], 0), (['export', '-F', 'raw', '-f', '-o', out], 3),
                             (['read', '--pid', '7', '--va', '0x400000', '-n', '4K', '-f', '-o', out], 0),
                             (['report', '-f', '-o', out], None)):
            with self.subTest(args=args):
                code, reached, told = self.tried(*args, self.file)
                left |= self.check(reached, told)
                if wanted is not None:
                    self.assertEqual(code, wanted)
        self.assertEqual((self.at / 'other').read_text(), 'other')
        self.assertTrue((self.at / 'victim').exists())
        self.assertEqual(self.file.read_bytes(), report_data.container())
        if left:
            self.skipTest('this system does not enforce: ' + ', '.join(sorted(left)))

    def test_disks_and_hives(self):
        v = Volume(16 * MIB)
        v.file('pagefile.sys', [(1000, 100)])
        v.write(str(self.at / 'image.raw'))
        (self.at / 'hive').write_bytes(Hive(SOFTWARE).pack())
        for args in (['extract-file', '--image', self.at / 'image.raw', 'pagefile.sys', '-o', self.at / 'copy'],
                     ['pagefiles', '--image', self.at / 'image.raw'], ['context', '--hive', self.at / 'hive']):
            with self.subTest(args=args):
                code, reached, told = self.tried(*args)
                self.check(reached, told)
                self.assertEqual(code, 0)
        self.assertEqual((self.at / 'copy').stat().st_size, 100 * 4096)

    def test_outputs_are_what_they_were(self):
        """By the deputy: new, in place of another one, refused, into a folder, to stdout and to a device."""
        def export(*args, code=3):
            got, out, log = self.run_exe(EXE, 'export', '-q', '-F', 'raw', *args, self.file)
            self.assertEqual(got, code, log)
            return out, log
        wanted, _ = export('-o', '-', '--gaps', self.at / 'gaps')
        export('-o', self.at / 'raw')
        self.assertEqual((self.at / 'raw').read_bytes(), wanted)
        self.assertIn('exists', export('-o', self.at / 'raw', code=6)[1])
        (self.at / 'raw').write_bytes(b'old')
        export('-f', '-o', self.at / 'raw')
        self.assertEqual((self.at / 'raw').read_bytes(), wanted)
        (self.at / 'sub').mkdir()
        export('-o', self.at / 'sub')
        self.assertEqual((self.at / 'sub' / 'evidence.raw').read_bytes(), wanted)
        (self.at / 'raw').unlink()
        (self.at / 'raw.gaps.json').unlink()
        (self.at / 'raw.partial').write_bytes(b'of another run')
        export('-o', self.at / 'raw')
        self.assertEqual((self.at / 'raw.partial').read_bytes(), b'of another run')
        self.assertEqual((self.at / 'raw').read_bytes(), wanted)
        export('-f', '-o', 'NUL', '--gaps', self.at / 'gaps2')
        # An input that is its own output, and one that is not there.
        self.assertIn('input', export('-f', '-o', self.file, code=6)[1])
        self.assertEqual(self.run_exe(EXE, 'info', self.at / 'none')[0], 9)

    def test_images_in_parts(self):
        v = Volume(16 * MIB)
        v.file('pagefile.sys', [(1000, 100)])
        v.write(str(self.at / 'image.raw'))
        whole = (self.at / 'image.raw').read_bytes()
        for i in range(4):
            (self.at / f'split.00{i + 1}').write_bytes(whole[4 * MIB * i:4 * MIB * (i + 1)])
        code, out, log = self.run_exe(EXE, 'extract-file', '-q', '--image', self.at / 'split.001', 'pagefile.sys',
                                      '-o', '-')
        self.assertEqual((code, len(out)), (0, 100 * 4096), log)


if __name__ == '__main__':
    unittest.main()
