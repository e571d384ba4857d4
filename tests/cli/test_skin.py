#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What every command has in common: streams, exit codes, help. Usage: test_skin.py RAMSEAL"""

import json
import os
import re
import subprocess
import sys
import unittest

RAMSEAL = os.path.abspath(sys.argv.pop(1))
# As it calls itself in its help; messages are ramseal's, whichever of the programs says them.
NAME = os.environ.get("RAMSEAL_NAME", "ramseal")


def run(*args, **more):
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.run([RAMSEAL, *args], text=True, timeout=900, **more)


def commands():
    """The names that `ramseal --help` lists."""
    listed = run("--help").stdout.split("General options:\n")[0]
    return re.findall(r"^  ([a-z-]+)", listed, re.M)


class Skin(unittest.TestCase):
    def check_usage_error(self, *args, hint):
        r = run(*args)
        self.assertEqual((r.returncode, r.stdout), (2, ""))
        self.assertEqual(r.stderr.count("\n"), 1, r.stderr)
        self.assertRegex(r.stderr, r"^ramseal: ")
        self.assertTrue(r.stderr.endswith(f"; try '{hint} --help'\n"), r.stderr)

    def test_help_that_was_asked_for_is_on_stdout(self):
        for args in (["--help"], ["-h"], *([c, "--help"] for c in commands())):
            r = run(*args)
            self.assertEqual((r.returncode, r.stderr), (0, ""), args)
            self.assertTrue(r.stdout.startswith(f"Usage: {NAME} "), args)

    def test_version(self):
        r = run("--version")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertRegex(r.stdout, rf"^{NAME} \d+\.\d+\.\d+\n$")
        self.assertEqual(run("version").stdout, r.stdout)
        self.assertEqual(run("version", "--verbose").stdout, run("--version", "--verbose").stdout)

    def test_commands_are_in_groups(self):
        shown = run("--help").stdout.split("General options:\n")[0]
        groups = {title: re.findall(r"^  ([a-z-]+)", rows, re.M)
                  for title, rows in re.findall(r"^(\w[\w ]*):\n((?:  .*\n)+)", shown, re.M)}
        titles = ["On the machine", "Evidence", "A Windows process", "Disks", "Help"]
        self.assertEqual(list(groups), [t for t in titles if t in groups])
        for title, command in zip(titles, ("acquire", "verify", "heap", "context", "version")):
            if command in commands():
                self.assertIn(command, groups[title])

    def test_every_help_begins_with_examples_that_its_options_fit(self):
        for c in commands():
            shown = run(c, "--help").stdout
            examples = re.search(r"^Usage: .*\n\n\w.*(?:\n\w.*)*\n\nExamples:\n((?:  .*\n)+)", shown)
            self.assertTrue(examples, c)
            self.assertIn(len(re.findall(r"^  \w.*:$", examples[1], re.M)), (2, 3, 4), c)
            lines = [" ".join(line.split()) for line in re.split(r"\n(?=  \w)", examples[1])]
            for line in lines:
                for other, words in re.findall(rf"{NAME} ([a-z-]+)((?: [^|>]*)?)", line.split(": ", 1)[1]):
                    help_of_it = run(other, "--help").stdout
                    for option in re.findall(r"(?<!\S)--?[A-Za-z][a-z-]*", words):
                        self.assertRegex(help_of_it, rf"(?m)^ +(?:-., )?{option}\b", line)

    def test_every_kind_of_address_is_named(self):
        network = os.environ.get("RAMSEAL_NETWORK") != "0"
        for c in ("acquire", "check", "upload"):
            shown = run(c, "--help").stdout
            for kind in ("s3://", "gs://", "azblob:", "https://", "tls://"):
                (self.assertRegex if network else self.assertNotRegex)(shown, rf"(?m)^  {kind}")
            if c != "upload":
                self.assertRegex(shown, r"(?m)^  - +stdout$")

    def test_mistakes_are_one_line_on_stderr(self):
        self.check_usage_error(hint=NAME)
        self.check_usage_error("nonsense", hint=NAME)
        self.check_usage_error("two\nlines", hint=NAME)
        self.check_usage_error("x" * 5000, hint=NAME)
        for c in commands():
            self.check_usage_error(c, "--nonsense", hint=f"{NAME} {c}")

    def test_a_wrong_word_is_answered_with_the_right_ones(self):
        for words, *args in (
                (("rsz", "raw", "elf", "lime", "kdump", "dmp", "dmp-full", "e01"), "acquire", "--format"),
                (("raw", "elf", "lime", "kdump", "dmp", "dmp-full", "e01"), "export", "--format"),
                (("linear", "tables-first", "tables-last", "guided"), "acquire", "--order"),
                (("before", "after", "concurrent", "guided"), "acquire", "--pagefile"),
                (("both", "before", "after", "none"), "acquire", "--pagetables"),
                (("auto", "kcore", "file", "sim"), "acquire", "-o-", "--source"),
                (("auto", "store"), "acquire", "--level"),
                (("store",), "export", "--level"),
                (("sha256", "none"), "export", "--hash"),
                (("image", "before", "after"), "read", "--tables"),
                (("timeline", "curves", "states"), "report", "--figure"),
                (("bash", "zsh", "fish"), "completion")):
            if args[0] not in commands():
                continue
            r = run(*args, "wrong")
            self.assertEqual((r.returncode, r.stdout, r.stderr.count("\n")), (2, "", 1), r)
            for word in words:
                self.assertRegex(r.stderr, rf"\b{word}\b", args)

    def test_help_says_what_each_order_does(self):
        said = run("acquire", "--help").stdout
        for order in ("linear", "tables-first", "tables-last", "guided"):
            self.assertRegex(said, rf"(?m)^  {order} +\w+ \w+", order)

    def test_a_typo_is_answered_with_the_nearest_word(self):
        """Wherever there is a list: commands, options, their values, sources, presets and their keys."""
        for near, *args in (("acquire", "aquire"), ("verify", "help", "verfy"),
                            ("--source", "acquire", "--sorce"), ("--json", "verify", "--josn"),
                            ("lime", "acquire", "-F", "lmie"), ("guided", "acquire", "--order=giuded"),
                            ("concurrent", "acquire", "-p", "concurent"), ("sha256", "export", "--hash", "sha265"),
                            ("store", "acquire", "-l", "sotre"), ("timeline", "report", "--figure", "timelin"),
                            ("kcore", "acquire", "-o-", "-s", "kcor"), ("file", "acquire", "-o-", "-s", "flie:/x"),
                            ("fish", "completion", "fsh"), ("--output host.rsz", "acquire", "host.rsz")):
            if args[0] in ("export", "report") and args[0] not in commands():
                continue
            r = run(*args)
            self.assertEqual((r.returncode, r.stdout, r.stderr.count("\n")), (2, "", 1), r)
            self.assertIn(f"(did you mean {near}?)", r.stderr)

    @unittest.skipIf(os.environ.get("RAMSEAL_SIMULATOR") == "0", "built without simulated machines")
    def test_a_typo_in_a_simulated_machine(self):
        for spec, near, code in (("destop", "desktop", 9), ("desktop,resdent=4M", "resident", 2)):
            r = run("acquire", "-o-", "-s", f"sim:{spec}")
            self.assertEqual((r.returncode, r.stdout, r.stderr.count("\n")), (code, "", 1), r)
            self.assertIn(f"(did you mean {near}?)", r.stderr)

    def test_the_simulator_may_be_left_out(self):
        """-Dsimulator=false: `build/test` builds that too, and runs this there."""
        r = run("acquire", "-o-", "-s", "sim:wrong")
        self.assertEqual((r.stdout, r.stderr.count("\n")), ("", 1), r)
        if os.environ.get("RAMSEAL_SIMULATOR") == "0":
            self.assertEqual(r.returncode, 4)
            self.assertIn("built without simulated machines", r.stderr)
            with open(RAMSEAL, "rb") as f:
                self.assertNotIn(b"cohen2015", f.read())
        else:
            self.assertEqual(r.returncode, 9)
            self.assertRegex(r.stderr, "cohen2015.*desktop")

    def test_mistake_after_log_json_is_json(self):
        r = run("--log-json", "completion", "csh")
        self.assertEqual((r.returncode, r.stdout), (2, ""))
        line = json.loads(r.stderr)
        self.assertEqual((line["level"], line["event"], line["exit_code"]), ("error", "failed", 2))

    def test_argument_that_is_not_utf8(self):
        r = subprocess.run([os.fsencode(RAMSEAL), b"--log-json", b"a\xffb"], capture_output=True)
        self.assertEqual(r.returncode, 2)
        self.assertIn(r"a\xffb", json.loads(r.stderr)["message"])

    def test_full_stdout_is_an_output_error(self):
        with open("/dev/full", "w") as full:
            for args in (["--help"], ["--version"], ["completion", "bash"]):
                r = run(*args, stdout=full)
                self.assertEqual(r.returncode, 6, args)
                self.assertRegex(r.stderr, r"^ramseal: .*No space left on device\n$")

    def test_closed_stdout_is_an_output_error(self):
        r = subprocess.run(["sh", "-c", '"$1" --version >&-', "sh", RAMSEAL], capture_output=True)
        self.assertEqual(r.returncode, 6)

    def test_closed_stderr_harms_nothing(self):
        r = subprocess.run(["sh", "-c", '"$1" nonsense 2>&-', "sh", RAMSEAL], capture_output=True)
        self.assertEqual((r.returncode, r.stdout), (2, b""))

    def test_reader_that_went_away_is_an_output_error(self):
        r, w = os.pipe()
        os.close(r)
        self.assertEqual(run("--help", stdout=w).returncode, 6)
        os.close(w)

    @unittest.skipIf(os.environ.get("RAMSEAL_IS_STATIC") == "0", "built with a sanitizer")
    def test_program_is_static(self):
        with open(RAMSEAL, "rb") as f:
            head = f.read(64)
            off, size, n = (int.from_bytes(head[a:b], "little") for a, b in ((32, 40), (54, 56), (56, 58)))
            f.seek(off)
            kinds = [int.from_bytes(f.read(size)[:4], "little") for _ in range(n)]
        self.assertNotIn(3, kinds, "has a PT_INTERP: dynamically linked")


if __name__ == "__main__":
    unittest.main()
