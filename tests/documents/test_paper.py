#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Runs the commands of docs/paper.md, and compares what they print with what it shows.

	test_paper.py RAMSEAL SOURCE-ROOT [NUMBER]

A fenced block of the language `console` has lines "$ COMMAND", each with its output below it: stdout, and then
stderr. A line "..." stands for one or more lines. Another exit code than 0 follows the language: ```console 2.
With NUMBER, prints what that command prints, to be put into the document.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RAMSEAL, ROOT = os.path.abspath(sys.argv.pop(1)), Path(sys.argv.pop(1)).resolve()
PRINTED = int(sys.argv.pop(1)) if sys.argv[1:] and sys.argv[1].isdigit() else None
DOCUMENT = ROOT / 'docs/paper.md'
LEFT_OUT = '...'


def steps(text):
    """Command, its exit code, and the lines of its output."""
    found = []
    for code, block in re.findall(r'^```console ?(\d*)\n(.*?)^```$', text, re.M | re.S):
        for line in block.splitlines():
            if line.startswith('$ '):
                found.append((line[2:], int(code or 0), []))
            else:
                found[-1][2].append(line)
    return found


def parts(lines):
    """What stands between the lines that are left out."""
    ret = [[]]
    for line in lines:
        if line == LEFT_OUT:
            ret.append([])
        else:
            ret[-1].append(line)
    return ret


def difference(shown, printed):
    """Why `printed` is not what is shown; None: it is."""
    first, *others = parts(shown)
    if printed[:len(first)] != first:
        return next(f'{a!r}, not {b!r}' for a, b in zip([*printed, None], first) if a != b)
    at = len(first)
    if not others:
        return None if at == len(printed) else f'{printed[at]!r} is not shown'
    *between, last = others
    for part in between:
        at += 1  # a line is left out at least
        while printed[at:at + len(part)] != part:
            if at >= len(printed):
                return f'no lines {part}'
            at += 1
        at += len(part)
    if last and printed[max(at + 1, len(printed) - len(last)):] != last:
        return f'the last lines are not {last}, but {printed[-len(last):]}'
    return None if at < len(printed) else 'nothing is left out at the end'


class Compare(unittest.TestCase):
    def test_what_differs_is_seen(self):
        for shown, printed in (('a b', 'a b'), ('a ...', 'a b c'), ('... c', 'a b c'), ('a ... c', 'a b c'),
                               ('a ... c ... e', 'a b c d e'), ('', '')):
            self.assertIsNone(difference(shown.split(), printed.split()), (shown, printed))
        for shown, printed in (('a b', 'a'), ('a', 'a b'), ('a b', 'a c'), ('a ...', 'a'), ('... c', 'c'), ('a ... c', 'a c'),
                               ('a ... c ... e', 'a b d e'), ('a ... c', 'a b d'), ('... b ...', 'a b'), ('', 'a')):
            self.assertIsNotNone(difference(shown.split(), printed.split()), (shown, printed))


class Paper(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        cls.addClassCleanup(folder.cleanup)
        cls.at = Path(folder.name)
        (cls.at / 'tests').symlink_to(ROOT / 'tests')

    def run_step(self, command):
        program, *args = shlex.split(command)
        programs = {'ramseal': [RAMSEAL], 'python3': [sys.executable, '-B']}
        return subprocess.run([*programs[program], *args], cwd=self.at, capture_output=True, text=True, timeout=900,
                              stdin=subprocess.DEVNULL)

    def test_commands_print_what_the_document_shows(self):
        found = steps(DOCUMENT.read_text())
        self.assertGreater(len(found), 15)
        for number, (command, code, shown) in enumerate(found):
            done = self.run_step(command)
            if number == PRINTED:
                print(done.stdout + done.stderr)
            with self.subTest(command):
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIsNone(difference(shown, (done.stdout + done.stderr).splitlines()))


if __name__ == '__main__':
    unittest.main(verbosity=2)
