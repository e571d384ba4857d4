#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Completion, in the shells that it is for: what they make of a line and the tab key. bash and zsh
are interactive and at a terminal; fish answers `complete -C`, PowerShell its own TabExpansion2.
Usage: test_completion.py RAMSEAL
"""

import functools
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RAMSEAL = os.path.abspath(sys.argv.pop(1))
SHELLS = ("bash", "zsh", "fish", "powershell")

# What is typed, and what the line is after the tab key. The folder has a file and a folder (below).
LINES = (
    ("ramseal acq", "ramseal acquire"),
    ("ramseal --vers", "ramseal --version"),
    ("ramseal acquire --paget", "ramseal acquire --pagetables"),
    ("ramseal acquire --log", "ramseal acquire --log-json"),
    ("ramseal acquire --format l", "ramseal acquire --format lime"),
    ("ramseal acquire --format=l", "ramseal acquire --format=lime"),
    ("ramseal acquire -F l", "ramseal acquire -F lime"),
    ("ramseal acquire -s kc", "ramseal acquire -s kcore"),
    ("ramseal acquire --order gui", "ramseal acquire --order guided"),
    ("ramseal completion power", "ramseal completion powershell"),
    ("ramseal help veri", "ramseal help verify"),
    ("ramseal -q veri", "ramseal -q verify"),
    ("ramseal verify evid", "ramseal verify evidence.rsz"),
    ("ramseal verify -q evid", "ramseal verify -q evidence.rsz"),
    ("ramseal acquire -o evid", "ramseal acquire -o evidence.rsz"),
    ("ramseal acquire --output=evid", "ramseal acquire --output=evidence.rsz"),
    ("ramseal verify --witness evid", "ramseal verify --witness evidence.rsz"),
    ("ramseal acquire --spool sp", "ramseal acquire --spool spool.folder/"),
)


def run(*args):
    return subprocess.run([RAMSEAL, *args], text=True, timeout=900, capture_output=True)


@functools.cache
def commands():
    """The names that `ramseal --help` lists."""
    listed = run("--help").stdout.split("General options:\n")[0]
    return re.findall(r"^  ([a-z-]+)", listed, re.M)


@functools.cache
def options(command):
    """The long ones that its --help lists."""
    return re.findall(r"^ +(?:-., )?(--[a-z0-9-]+)", run(command, "--help").stdout, re.M)


@functools.cache
def script(shell):
    r = run("completion", shell)
    assert (r.returncode, r.stderr) == (0, ""), r
    return r.stdout


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)
        for shell in SHELLS:
            (self.at / f"script.{shell}").write_text(script(shell))
        (self.at / "evidence.rsz").touch()
        (self.at / "spool.file").touch()
        (self.at / "spool.folder").mkdir()


class Typing:
    """An interactive shell at a terminal. What is typed is answered in its order, so nothing depends on time."""

    def __init__(self, case, at, argv, setup):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(at)
            os.environ.update(HOME=str(at), ZDOTDIR=str(at), TERM="xterm", COLUMNS="200", LINES="100",
                              PS1="ready> ")
            os.execvp(argv[0], argv)
        case.addCleanup(self.end)
        self.until(rb"ready> ")
        self.keys(setup + b"\r")

    def end(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.fd)

    def keys(self, keys):
        """What is shown for them. ^U takes back what is left of the line."""
        os.write(self.fd, keys + b"\x15" + b"echo dee''d\r")
        return self.until(rb"deed\r\n.*ready> ")

    def until(self, mark):
        """Up to a prompt: until that is there the terminal, and not the shell, obeys ^U."""
        seen = b""
        while not re.search(mark, seen, re.S):
            if not select.select([self.fd], [], [], 900)[0]:
                raise AssertionError(f"no answer: {seen}")
            seen += os.read(self.fd, 4096)
        return seen

    def line(self, typed):
        """The command line that it becomes."""
        shown = self.keys(os.fsencode(typed) + b"\t\r")
        ran = re.findall(rb"<<(.*?)>>\r", shown)
        return "ramseal " + os.fsdecode(ran[0]) if ran else repr(shown)


class Interactive(Folder):
    def check_lines(self, shell, lines):
        for typed, wanted in lines:
            with self.subTest(typed):
                self.assertEqual(shell.line(typed).rstrip(), wanted)

    def check_lists(self, shell):
        shown = shell.keys(b"ramseal \t")
        for c in commands():
            self.assertIn(os.fsencode(c), shown)
        for c in commands():
            shown = shell.keys(os.fsencode(f"ramseal {c} --\t"))
            for option in options(c):
                self.assertIn(os.fsencode(option), shown, c)

    @unittest.skipUnless(shutil.which("bash"), "no bash here")
    def test_bash(self):
        setup = (b"bind 'set show-all-if-ambiguous on'; bind 'set completion-query-items 0'; "
                 b"bind 'set page-completions off'; bind 'set enable-bracketed-paste off'; "
                 b"ramseal() { echo \"<<$*>>\"; }; source ./script.bash")
        shell = Typing(self, self.at, ["bash", "--norc", "--noprofile", "-i"], setup)
        self.check_lines(shell, LINES + (
            ("ramseal acquire -s file:evid", "ramseal acquire -s file:evidence.rsz"),))
        self.check_lists(shell)

    @unittest.skipUnless(shutil.which("zsh"), "no zsh here")
    def test_zsh(self):
        setup = (b"unsetopt BEEP PROMPT_SP AUTO_REMOVE_SLASH; LISTMAX=9999; autoload -U compinit; compinit -u; "
                 b"ramseal() { echo \"<<$*>>\" }; source ./script.zsh")
        shell = Typing(self, self.at, ["zsh", "-f", "-i"], setup)
        self.check_lines(shell, LINES)
        self.check_lists(shell)

    @unittest.skipUnless(shutil.which("zsh"), "no zsh here")
    def test_zsh_loads_it_from_a_folder_of_functions(self):
        """As it is installed: the file is the body of the function."""
        (self.at / "_ramseal").write_text(script("zsh"))
        setup = (b"unsetopt BEEP PROMPT_SP AUTO_REMOVE_SLASH; fpath=($PWD $fpath); autoload -U compinit; "
                 b"compinit -u; ramseal() { echo \"<<$*>>\" }")
        shell = Typing(self, self.at, ["zsh", "-f", "-i"], setup)
        self.check_lines(shell, LINES[:5])


@unittest.skipUnless(shutil.which("fish"), "no fish here")
class Fish(Folder):
    def offers(self, *lines):
        """For each of the lines what fish offers for its last word."""
        asked = "; echo ===; ".join(f"complete -C '{line}'" for line in lines)
        r = subprocess.run(["fish", "--no-config", "-c", f"source script.fish; {asked}"], cwd=self.at,
                           capture_output=True, text=True, env={**os.environ, "HOME": str(self.at)})
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        return [[offer.split("\t")[0] for offer in part.splitlines() if offer]
                for part in r.stdout.split("===\n")]

    def test_lines(self):
        for (typed, wanted), offered in zip(LINES, self.offers(*(typed for typed, _ in LINES))):
            begun = typed.split(" ")[-1]
            others = [offer for offer in offered if not offer.startswith(begun)]
            with self.subTest(typed):
                self.assertEqual([offer for offer in offered if offer not in others], [wanted.split(" ")[-1]])
                # fish 4 adds what only has these letters, in this order.
                for offer in others:
                    self.assertRegex(offer, ".*".join(map(re.escape, begun)))

    def test_every_command_and_option_is_offered(self):
        offered, *of = self.offers("ramseal ", *(f"ramseal {c} --" for c in commands()))
        self.assertEqual(sorted(offered), sorted(commands()))
        for c, got in zip(commands(), of):
            self.assertLessEqual(set(options(c)), set(got), c)


def powershell_words(text):
    """
    The script without what is in quotes, and the strings that were there. Of PowerShell's grammar
    as much as we write: '' in '...', `x in "...", and no comments but whole lines.
    """
    strings = []

    def take(m):
        strings.append(m[0][1:-1].replace("''", "'"))
        return "Q"

    text = re.sub(r"(?m)^\s*#.*$", "", text)
    return re.sub(r"'(?:[^'\n]|'')*'|\"(?:[^\"`\n]|`.)*\"", take, text), strings


class PowerShell(Folder):
    def test_script_is_in_order_as_far_as_can_be_told_without_powershell(self):
        text = script("powershell")
        self.assertTrue(text.isascii(), "Windows PowerShell reads a file without a BOM as ANSI")
        bare, strings = powershell_words(text)
        self.assertNotRegex(bare, "['\"]", "a quote without its other one")
        pairs, stack = {")": "(", "]": "[", "}": "{"}, []
        for c in bare:
            if c in "([{":
                stack.append(c)
            elif c in pairs:
                self.assertTrue(stack and stack.pop() == pairs[c], "brackets")
        self.assertEqual(stack, [])
        for c in commands():
            self.assertIn(c, strings)
            for option in options(c):
                self.assertTrue(any(s.startswith(f"{option}\t") for s in strings), option)
        self.assertIn("kcore", strings)

    @unittest.skipUnless(shutil.which("pwsh"), "no PowerShell (pwsh) here: its completion was not loaded")
    def test_lines(self):
        ask = "; ".join(f"(TabExpansion2 '{typed}' {len(typed)}).CompletionMatches.CompletionText -join '|'"
                        for typed, _ in LINES)
        r = subprocess.run(["pwsh", "-NoProfile", "-Command",
                            f"Get-Content -Raw script.powershell | Invoke-Expression; {ask}"],
                           cwd=self.at, capture_output=True, text=True)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        for (typed, wanted), offered in zip(LINES, r.stdout.splitlines()):
            with self.subTest(typed):
                self.assertIn(wanted.split(" ")[-1].rstrip("/"), offered.replace("./", "").split("|"))


class Scripts(Folder):
    def test_they_are_well_formed(self):
        for shell in ("bash", "zsh", "fish"):
            if shutil.which(shell) is None:
                continue
            r = subprocess.run([shell, "-n", f"script.{shell}"], cwd=self.at, capture_output=True, text=True)
            self.assertEqual((r.returncode, r.stderr), (0, ""), shell)


if __name__ == "__main__":
    unittest.main()
