#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a terminal gets: how wide, whether anything, and no colours. Usage: test_terminal.py RAMSEAL"""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
import unittest

RAMSEAL = os.path.abspath(sys.argv.pop(1))
MACHINE = "sim:cohen2015,ram=128M,resident=16M,allocated=32M,trimmed=4M,others=4M,cache=2M"


def set_columns(fd, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24 if columns else 0, columns, 0, 0))


class Seen:
    """What was written to a terminal."""

    def __init__(self, columns):
        self.fd, self.stderr = pty.openpty()
        self.text = b""
        set_columns(self.stderr, columns)

    def read(self, seconds=0.0):
        while select.select([self.fd], [], [], seconds)[0]:
            try:
                self.text += os.read(self.fd, 65536)
            except OSError:  # Linux: EIO, when nobody has the other end any more
                break

    def drawn(self):
        """The lines that were drawn to be taken back."""
        parts = self.text.decode().split("\r\x1b[K")
        return [line for line in (part.split("\r\n")[-1] for part in parts) if line]

    def close(self):
        os.close(self.fd)
        os.close(self.stderr)


@unittest.skipIf(os.environ.get("RAMSEAL_SIMULATOR") == "0", "built without simulated machines")
class Terminal(unittest.TestCase):
    def acquire(self, columns, then=None, **environment):
        """
        Into a pipe. `then`: it is not read any more when the first line is drawn; the terminal gets
        that width, and so much later that the next line is due reading goes on.
        """
        seen = Seen(columns)
        self.addCleanup(seen.close)
        env = {**os.environ, "TERM": "xterm", **environment}
        env.pop("COLUMNS", None)
        env.update(environment)
        p = subprocess.Popen([RAMSEAL, "acquire", "--level", "store", "-s", MACHINE, "-o", "-"],
                             stdout=subprocess.PIPE, stderr=seen.stderr, env=env)
        if then is not None:
            while not seen.drawn() and os.read(p.stdout.fileno(), 65536):
                seen.read()
            time.sleep(0.3)
            seen.read()
            self.assertTrue(seen.drawn())
            seen.text = b""
            set_columns(seen.stderr, then)
        while p.stdout.read(1 << 20):
            seen.read()
        self.assertEqual(p.wait(), 0, seen.text)
        p.stdout.close()
        seen.read(0.1)
        return seen

    def check_width(self, seen, columns):
        self.assertTrue(seen.drawn())
        for line in seen.drawn():
            self.assertLess(len(line), columns, line)
            self.assertRegex(line, r"^[\w #\[-]*\]? *\d+%")

    def test_progress_fits(self):
        for columns in (40, 20):
            self.check_width(self.acquire(columns), columns)

    def test_unknown_width_is_columns_or_80(self):
        self.check_width(self.acquire(0), 80)
        self.check_width(self.acquire(0, COLUMNS="30"), 30)
        self.check_width(self.acquire(0, COLUMNS="wide"), 80)

    def test_window_that_becomes_smaller(self):
        self.check_width(self.acquire(100, then=24), 24)

    def test_no_colour_ever(self):
        for more in ({}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1"}):
            text = self.acquire(80, **more).text
            self.assertEqual(set(re.findall(rb"\x1b\[[0-9;?]*[A-Za-z]", text)), {b"\x1b[K"})

    def test_dumb_terminal_gets_lines_only(self):
        for term in ("dumb", ""):
            text = self.acquire(80, TERM=term).text
            self.assertNotIn(b"\x1b", text)
            self.assertNotRegex(text.replace(b"\r\n", b"\n"), rb"\r")
            self.assertIn(b"root", text)

    def test_no_terminal_gets_lines_only(self):
        r = subprocess.run([RAMSEAL, "acquire", "-s", MACHINE, "-o", "-"], capture_output=True, timeout=900)
        self.assertEqual(r.returncode, 0)
        self.assertNotRegex(r.stderr, rb"[\r\x1b]")


class Help(unittest.TestCase):
    def shown(self, *args, **environment):
        r = subprocess.run([RAMSEAL, *args], capture_output=True, text=True, timeout=900,
                           env={**os.environ, **environment})
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        return r.stdout

    def test_every_help_fits(self):
        names = re.findall(r"^  ([a-z-]+)", self.shown("help").split("General options:\n")[0], re.M)
        for columns in (80, 63, 40):
            for args in ([], *([name] for name in names)):
                for line in self.shown("help", *args, COLUMNS=str(columns)).splitlines():
                    if not line.startswith("Usage:"):
                        self.assertLessEqual(len(line), columns, (args, line))

    def test_it_is_never_wider_than_80_nor_narrower_than_40(self):
        for name in ("verify", "acquire"):
            wide, narrow = (self.shown("help", name, COLUMNS=c) for c in ("200", "10"))
            self.assertEqual(wide, self.shown("help", name, COLUMNS="80"))
            self.assertEqual(narrow, self.shown("help", name, COLUMNS="40"))
            self.assertEqual(wide.split(), narrow.split(), "the same words")

    def test_help_in_words_is_the_same(self):
        self.assertEqual(self.shown("help"), self.shown("--help"))
        self.assertEqual(self.shown("help", "verify"), self.shown("verify", "--help"))
        self.assertEqual(self.shown("hel", "veri"), self.shown("verify", "-h"))

    def test_the_manual_does_not_depend_on_the_terminal(self):
        self.assertEqual(self.shown("manual", COLUMNS="40"), self.shown("manual", COLUMNS="200"))


if __name__ == "__main__":
    unittest.main()
