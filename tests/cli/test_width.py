#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Every command of README.md at terminals of 80 and 120 columns. Usage: test_width.py RAMSEAL SOURCE_ROOT

Each in some ways at 80, and in one at 120. No line may be wider than the terminal, unless it is one word: a
path, or a hash. What a pipe gets is as wide as it is, and has every column.
"""

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import unittest
from pathlib import Path

RAMSEAL, ROOT = os.path.abspath(sys.argv.pop(1)), Path(sys.argv.pop(1)).resolve()
MACHINE = 'sim:leaks2010,ram=64M,live_files=1'
PID = '444'  # app.exe, which has heaps

# Of each command of the table in README.md what is tried, and the exit codes that it may end with. `{x}`: the
# container; `{new}`: a file that does not exist; `{block}`: an address in the heap.
TRIED = {
    'acquire': [(['-s', MACHINE, '-o', '{new}'], 0), (['-s', MACHINE, '-o', '{x}'], 6),
                (['-s', 'file:{x}.no', '-o', '{new}'], 9)],
    'check': [(['-s', MACHINE, '-o', '{x}'], 6)],
    'status': [(['--state', '{state}'], 0), (['--state', '{new}'], 9)],
    'stop': [(['--state', '{new}'], 9), (['--state', '{state}'], 0)],
    'driver': [([], 2), (['inspect', '{x}'], 9)],
    'verify': [(['{x}'], 0), (['{cut}'], 7), (['--root', '00' * 32, '{x}'], 11)],
    'info': [(['{x}'], 0), (['--full', '{x}'], 0), (['--full', '{cut}'], 0)],
    'smear': [(['{x}'], 0), (['--full', '{x}'], 0), (['{cut}'], 0)],
    'report': [(['{x}', '-o', '{new}'], 0), (['{x}', '-o', '{x}'], 6)],
    'read': [(['-p', PID, '-a', '{block}', '{x}'], 0), (['--pa', '0x1000', '{x}'], 0),
             (['-p', PID, '-a', '0', '{x}'], 3)],
    'export': [(['--format', 'raw', '-o', '{new}', '{x}'], 0), (['--format', 'raw', '-o', '{x}', '{x}'], 6)],
    'extract': [(['{x}'], 0), (['-S', 'log', '-o', '{new}', '{x}'], 0), (['-S', 'nothing', '-o', '{new}', '{x}'], 9)],
    'mount': [([], 2), (['{x}.no', '{x}'], 6)],
    'seal': [(['{x}'], 0), (['-o', '{new}', '{cut}'], 0)],
    'upload': [(['{x}'], 2), (['-o', 'nonsense://x', '{x}'], 2)],
    'receive': [([], 2)],
    'process': [(['-p', PID, '{x}'], 0), (['-p', '3', '{x}'], 9)],
    'vad': [(['-p', PID, '--pages', '{x}'], 0), (['-p', PID, '{x}'], 0)],
    'heap': [(['-p', PID, *more, '{x}'], 0)
             for more in (['-A'], [], ['--pages'], ['--leaks'], ['--dns'], ['--find', 'hex:00'], ['--show', '{block}'],
                          ['--referrers', '{block}'])],
    'pagefiles': [(['-i', '{x}'], 9)],
    'extract-file': [(['-i', '{x}', '-o', '{new}', 'C:\\x'], 9)],
    'context': [([], 4), (['-i', '{x}'], 9)],
}

def commands_of_readme():
    table = (ROOT / 'README.md').read_text().split('\n## Commands\n')[1].split('\n## ')[0]
    return {name for row in re.findall(r'^\| (`.*?) \|', table, re.M) for name in re.findall(r'`([a-z-]+)`', row)}


def at_terminal(columns, args):
    """The exit code, and what was written to a terminal that cannot take back a line."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
    p = subprocess.Popen([RAMSEAL, *args], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
                         env={**os.environ, 'TERM': 'dumb'})
    os.close(theirs)
    text = []

    def take():
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # EIO: nobody has the other end any more
                return
            if not part:
                return
            text.append(part)

    taker = threading.Thread(target=take)
    taker.start()
    code = p.wait(timeout=900)
    taker.join()
    os.close(ours)
    return code, b''.join(text).decode().replace('\r\n', '\n')


def piped(args, code=0):
    done = subprocess.run([RAMSEAL, *args], capture_output=True, timeout=900, stdin=subprocess.DEVNULL)
    if done.returncode != code:
        raise AssertionError(done)
    return done.stdout.decode()


@unittest.skipIf(os.environ.get('RAMSEAL_SIMULATOR') == '0', 'built without simulated machines')
class Width(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.at = Path(tempfile.mkdtemp(dir='.'))
        cls.addClassCleanup(shutil.rmtree, cls.at)
        x = cls.at / 'x.rsz'
        piped(['acquire', '-q', '-s', MACHINE, '-o', x, '--state', cls.at / 'state'])
        (cls.at / 'cut.rsz').write_bytes(x.read_bytes()[:-5000])
        cls.names = {'x': str(x), 'cut': str(cls.at / 'cut.rsz'), 'new': str(cls.at / 'new'),
                     'state': str(cls.at / 'state')}
        cls.names['block'] = piped(['heap', '-p', PID, '-A', x]).splitlines()[1].split()[1]

    def shown(self, columns, command, args, code=0):
        done, text = at_terminal(columns, [command, *(a.format(**self.names) for a in args)])
        self.assertEqual(done, code, text)
        for path in self.at.glob('new*'):
            path.unlink()
        return text

    def check_width(self, columns, text):
        for line in text.splitlines():
            if len(line.split()) > 1:
                self.assertLessEqual(len(line), columns, line)

    def test_every_command_is_tried(self):
        self.assertEqual(commands_of_readme(), set(TRIED))

    def test_lines_fit(self):
        for command, tries in TRIED.items():
            for args, code in tries:
                for columns in (80, 120) if args is tries[0][0] else (80,):
                    with self.subTest(columns=columns, command=command, args=args):
                        self.check_width(columns, self.shown(columns, command, args, code))

    def test_nothing_is_lost(self):
        """A terminal has the words of a pipe, but for columns of tables, which it names."""
        for command in ('info', 'smear'):
            all_of_it = piped([command, self.names['x']]).split()
            self.assertEqual(self.shown(200, command, ['--full', '{x}']).split(), all_of_it)
            self.assertEqual(piped([command, '--full', self.names['x']]).split(), all_of_it)
        self.assertIn('(left out to fit the terminal: ', self.shown(80, 'smear', ['--full', '{x}']))

    def test_what_matters_most_comes_first_and_is_short(self):
        for command, first in (('info', 'state '), ('smear', 'User pages of ')):
            text = self.shown(80, command, ['{x}'])
            self.assertLessEqual(len(text.splitlines()), 12, text)
            self.assertTrue(text.startswith(first), text)
            self.assertEqual(text.split(), piped([command, '--brief', self.names['x']]).split())
        root = piped(['info', self.names['x']]).split('root ')[1].split()[0]
        self.assertIn(f'\nroot         {root}\n', self.shown(80, 'info', ['{x}']))

    def test_a_failure_is_said_once(self):
        """On a terminal, where the text has it; a log alone has it, too."""
        self.assertEqual(self.shown(80, 'verify', ['{cut}'], 7).count('cut off: '), 1)
        self.assertEqual(self.shown(80, 'verify', ['{cut}', '{x}', '{cut}'], 7).count('cut off: '), 2)
        self.assertEqual(self.shown(80, 'check', ['-s', MACHINE, '-o', '{x}'], 6).count('exists'), 1)
        done = subprocess.run([RAMSEAL, 'verify', self.names['cut']], capture_output=True, timeout=900)
        self.assertEqual((done.stdout + done.stderr).count(b'cut off: '), 2)
        self.assertIn('not the one of --root', self.shown(80, 'verify', ['--root', '00' * 32, '{x}'], 11))

    def test_a_reader_that_has_gone_knows_why(self):
        for command, more in (('heap', ['-A', '-p', PID]), ('smear', ['--json']), ('info', []),
                              ('read', ['--pa', '0x1000'])):
            there, here = os.pipe()
            os.close(there)
            with open(here, 'wb') as gone:
                done = subprocess.run([RAMSEAL, command, *more, self.names['x']], stdout=gone, stderr=subprocess.PIPE,
                                      timeout=900)
            self.assertEqual((done.returncode, done.stderr), (6, b''), command)
        with open('/dev/full', 'wb') as full:
            done = subprocess.run([RAMSEAL, 'info', self.names['x']], stdout=full, stderr=subprocess.PIPE, timeout=900)
        self.assertEqual(done.stderr, b'ramseal: info: stdout: No space left on device\n')

    def test_what_was_cut_off_is_named(self):
        partial = self.names['new'] + '.partial'
        Path(partial).write_bytes(Path(self.names['cut']).read_bytes())
        for command in ('verify', 'info', 'smear', 'seal', 'report'):
            done = subprocess.run([RAMSEAL, command, self.names['new']], capture_output=True, timeout=900)
            self.assertIn(f'directory; {partial} is there: `ramseal seal` closes it', done.stderr.decode())
        text = self.shown(120, 'acquire', ['-s', MACHINE, '-o', '{new}'])
        self.assertIn('`ramseal seal` closes', text)

    def test_a_report_has_a_name_of_its_own(self):
        """After the container, in the current folder; nothing there is replaced."""
        def report(*args):
            return subprocess.run([RAMSEAL, 'report', *args], cwd=self.at, capture_output=True, timeout=900)

        done = report('--no-verify', 'x.rsz')
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b'', b'ramseal: the report is ./x.html\n'))
        page = (self.at / 'x.html').read_bytes()
        self.assertIn(b'<html', page)
        (self.at / 'x.html').write_bytes(b'precious')
        done = report('--no-verify', 'x.rsz')
        self.assertEqual((done.returncode, done.stderr),
                         (6, b'ramseal: report: ./x.html exists; choose another name, or --force replaces it\n'))
        self.assertEqual((self.at / 'x.html').read_bytes(), b'precious')
        for args in (['x.rsz', 'cut.rsz'], ['.'], ['-']):
            self.assertIn(b'needs --output', report(*args).stderr)

    def test_brief_and_full_contradict_each_other(self):
        for command in ('info', 'smear'):
            self.assertIn('contradict each other', self.shown(80, command, ['--brief', '--full', '{x}'], 2))


if __name__ == '__main__':
    unittest.main()
