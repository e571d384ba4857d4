#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What a parser can reach that was led astray by what it parsed: without a cage everything, in it nothing but
what the command line names. Usage: test_cage.py RAMSEAL ASTRAY SOURCE-ROOT
"""

import ctypes
import errno
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(3)).resolve()
sys.path[:0] = [str(ROOT / 'tests' / part) for part in ('reader', 'cli', 'ntfs')]
import report_data  # noqa: E402
from forge import Volume  # noqa: E402
from make_hives import SOFTWARE  # noqa: E402
from hive import Hive  # noqa: E402

ASTRAY, RAMSEAL = os.path.abspath(sys.argv.pop(2)), os.path.abspath(sys.argv.pop(1))
STATIC = os.environ.get('RAMSEAL_IS_STATIC') == '1'
MIB = 1 << 20
# What reads alone: if there is no Landlock, all of them stay.
FILES = {'reads', 'lists'}


def told(log):
    """What is said of a kernel that lacks something."""
    lines = [json.loads(line) for line in log.splitlines() if line.startswith('{')]
    return [line for line in lines if line['event'] == 'not-caged']


def lacking(*calls):
    """For a child: a kernel that knows none of these system calls (seccomp(2), in a filter of its own)."""
    code = [(0x20, 0, 0, 0)]  # BPF_LD | BPF_W | BPF_ABS: the number
    for call in calls:
        code += [(0x15, 0, 1, call), (0x06, 0, 0, 0x50000 | errno.ENOSYS)]  # BPF_JEQ; SECCOMP_RET_ERRNO
    code.append((0x06, 0, 0, 0x7fff0000))  # SECCOMP_RET_ALLOW
    packed = ctypes.create_string_buffer(b''.join(struct.pack('<HBBI', *one) for one in code))
    program = ctypes.create_string_buffer(struct.pack('<HxxxxxxQ', len(code), ctypes.addressof(packed)))
    libc = ctypes.CDLL(None)

    def begin():
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
            os._exit(99)
    begin.keep = packed
    return begin


@unittest.skipUnless(STATIC, 'a sanitizer has no cage: it starts programs for its reports')
class Cage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-cage-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)
        self.file = self.at / 'evidence'
        self.file.write_bytes(report_data.container())
        (self.at / 'other').write_text('other')
        (self.at / 'victim').write_text('victim')

    def run_astray(self, *args, **more):
        return subprocess.run([ASTRAY, '--log-json', *map(str, args)], capture_output=True, text=True, timeout=900,
                              stdin=subprocess.DEVNULL, env={**os.environ, 'RAMSEAL_ASTRAY': str(self.at)}, **more)

    def tried(self, *args):
        """What was reached, by the names in tests/gen/astray.h."""
        done = self.run_astray(*args)
        said = [line[8:] for line in done.stderr.splitlines() if line.startswith('astray: ')]
        self.assertIn('tried', said, done)
        reached = set(said) - {'tried'}
        if told(done.stderr):
            reached -= FILES
        return done.returncode, reached

    def test_before(self):
        """`seal` is in no cage; 25 attempts, as many as there are."""
        code, reached = self.tried('seal', self.file)
        self.assertEqual(len(reached), 25, (code, reached))

    def test_containers(self):
        out = self.at / 'out'
        for args, wanted in ((['info'], 0), (['verify'], 0), (['export', '-F', 'raw', '-f', '-o', out], 3),
                             (['extract'], 0), (['extract', '-S', 'manifest', '-f', '-o', out], 0), (['smear'], 0),
                             (['read', '--pid', '7', '--va', '0x400000', '-n', '4K'], 0),
                             (['read', '--pid', '7', '--va', '0x400000', '-n', '4K', '-f', '-o', out], 0),
                             (['heap', '--pid', '7'], None), (['vad', '--pid', '7'], None),
                             (['process', '--pid', '7'], None), (['report', '-f', '-o', out], None)):
            with self.subTest(args=args):
                code, reached = self.tried(*args, self.file)
                self.assertEqual(reached, set())
                if wanted is not None:
                    self.assertEqual(code, wanted)
        self.assertEqual((self.at / 'other').read_text(), 'other')
        self.assertEqual(self.file.read_bytes(), report_data.container())

    def test_disks_and_hives(self):
        v = Volume(16 * MIB)
        v.file('pagefile.sys', [(1000, 100)])
        v.write(str(self.at / 'image.raw'))
        (self.at / 'hive').write_bytes(Hive(SOFTWARE).pack())
        for args in (['extract-file', '--image', self.at / 'image.raw', 'pagefile.sys', '-o', self.at / 'copy'],
                     ['pagefiles', '--image', self.at / 'image.raw'], ['context', '--hive', self.at / 'hive']):
            with self.subTest(args=args):
                code, reached = self.tried(*args)
                self.assertEqual((code, reached), (0, set()))
        self.assertEqual((self.at / 'copy').stat().st_size, 100 * 4096)

    def test_outputs_are_what_they_were(self):
        """By the deputy: new, in place of another one, refused, into a folder, to a FIFO and to stdout."""
        def export(*args, code=3, **more):
            done = subprocess.run([RAMSEAL, 'export', '-q', '-F', 'raw', *map(str, args), self.file],
                                  capture_output=True, timeout=900, **more)
            self.assertEqual(done.returncode, code, done)
            return done
        wanted = export('-o', '-', '--gaps', self.at / 'gaps').stdout
        export('-o', self.at / 'raw')
        self.assertEqual((self.at / 'raw').read_bytes(), wanted)
        self.assertEqual((self.at / 'raw').stat().st_mode & 0o777, 0o600)
        self.assertIn(b'exists', export('-o', self.at / 'raw', code=6).stderr)
        (self.at / 'raw').write_bytes(b'old')
        export('-f', '-o', self.at / 'raw')
        self.assertEqual((self.at / 'raw').read_bytes(), wanted)
        (self.at / 'sub').mkdir()
        export('-o', self.at / 'sub')
        self.assertEqual((self.at / 'sub' / 'evidence.raw').read_bytes(), wanted)
        export('-o', 'relative', '--gaps', self.at / 'sub' / 'gaps', cwd=self.at)
        self.assertEqual((self.at / 'relative').read_bytes(), wanted)
        self.assertEqual(json.loads((self.at / 'sub' / 'gaps').read_text())['format'], 'raw')
        (self.at / 'raw').unlink()
        (self.at / 'raw.gaps.json').unlink()
        (self.at / 'raw.partial').write_bytes(b'of another run')
        export('-o', self.at / 'raw')
        self.assertEqual((self.at / 'raw.partial').read_bytes(), b'of another run')
        self.assertEqual((self.at / 'raw').read_bytes(), wanted)
        export('-f', '-o', '/dev/null', '--gaps', self.at / 'gaps')
        os.mkfifo(self.at / 'fifo')
        with open(self.at / 'seen', 'wb') as seen, \
                subprocess.Popen(['cat', self.at / 'fifo'], stdout=seen):
            export('-f', '-o', self.at / 'fifo', '--gaps', self.at / 'gaps')
        self.assertEqual((self.at / 'seen').read_bytes(), wanted)
        done = subprocess.run([RAMSEAL, 'export', '-q', '-F', 'e01', '-o', self.at / 'e', self.file], timeout=900,
                              capture_output=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 3, done)
        self.assertTrue((self.at / 'e.E01').exists())

    @unittest.skipUnless(os.uname().machine == 'x86_64', 'the numbers of the calls are those of x86-64')
    def test_kernels_that_lack_it(self):
        """It is said once, and the command goes on; without Landlock alone, reading is all that is left."""
        landlock, seccomp = 444, 317
        for calls, left in ((landlock,), FILES), ((seccomp,), None), ((landlock, seccomp), None):
            done = self.run_astray('info', self.file, preexec_fn=lacking(*calls))
            self.assertEqual(done.returncode, 0, done)
            self.assertEqual([(line['landlock'], line['seccomp']) for line in told(done.stderr)],
                             [(landlock not in calls and not told(self.run_astray('info', self.file).stderr),
                               seccomp not in calls)])
            reached = {line[8:] for line in done.stderr.splitlines() if line.startswith('astray: ')} - {'tried'}
            if left is not None:
                self.assertEqual(reached, left)

    def test_parts_of_an_image(self):
        v = Volume(16 * MIB)
        v.file('pagefile.sys', [(1000, 100)])
        v.write(str(self.at / 'image.raw'))
        whole = (self.at / 'image.raw').read_bytes()
        for i in range(4):
            (self.at / f'split.00{i + 1}').write_bytes(whole[4 * MIB * i:4 * MIB * (i + 1)])
        (self.at / 'link').mkdir()
        os.symlink(self.at / 'image.raw', self.at / 'link' / 'x.raw')
        for image in 'split.001', 'link/x.raw':
            done = subprocess.run([RAMSEAL, 'extract-file', '-q', '--image', self.at / image, 'pagefile.sys', '-o',
                                   '-'], capture_output=True, timeout=900)
            self.assertEqual((done.returncode, len(done.stdout)), (0, 100 * 4096), done.stderr)

    def test_nobody_is_left(self):
        """The deputy ends with its command, however that ends."""
        fifo = self.at / 'fifo'
        os.mkfifo(fifo)
        for number in 0, signal.SIGKILL:
            command = [RAMSEAL, 'export', '-q', '-f', '-F', 'raw', '--gaps', self.at / 'gaps', '-o',
                       fifo if number else self.at / 'raw', self.file]
            with subprocess.Popen(command, start_new_session=True) as process:
                if number:
                    os.close(os.open(fifo, os.O_RDONLY))  # it is open, and so the deputy is there
                    process.send_signal(number)
            until = time.monotonic() + 900
            with self.assertRaises(ProcessLookupError):
                while time.monotonic() < until:
                    os.killpg(process.pid, 0)
                    time.sleep(0.02)


if __name__ == '__main__':
    unittest.main()
