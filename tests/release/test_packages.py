#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""build/packages.txt, and how build/lib.sh says that this system has not what it lists.
Usage: test_packages.py SOURCE-DIR"""

import os
import re
import shutil
import subprocess
import sys
import unittest

TREE = os.path.abspath(sys.argv.pop(1))
NAMES = ("no-such-package-of-ramseal", "nor-this-one")


def shell(commands):
    return subprocess.run(["sh", "-euc", f". build/lib.sh; {commands}"], cwd=TREE, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=900, check=False)


def listed():
    """{name: the comment behind it}, of all sections."""
    with open(os.path.join(TREE, "build/packages.txt"), encoding="utf-8") as f:
        return dict(re.findall(r"(?m)^([a-z0-9][^ \n]*) *#? *(.*)$", f.read()))


@unittest.skipUnless(shutil.which("apt-get"), "this is not Debian")
class Packages(unittest.TestCase):
    def test_what_apt_does_not_know_is_one_line(self):
        known = shell("unknown_of dash " + " ".join(NAMES)).stdout.split()
        self.assertEqual(sorted(known), sorted(NAMES))
        # Whatever wants root does nothing here.
        done = shell("as_root() { :; }; apt_install dash " + " ".join(NAMES))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, rf"\A[^\n]*: {NAMES[0]} {NAMES[1]}\n\Z")
        self.assertEqual(shell("as_root() { :; }; apt_install dash").returncode, 0)

    def test_apt_knows_all_that_are_listed(self):
        """But for those that this release has not, by what is said of them."""
        with open("/etc/debian_version", encoding="ascii") as f:
            release = f.read().split(".")[0].strip()
        if release not in ("12", "13"):
            self.skipTest(f"Debian {release}")
        unknown = shell(f"unknown_of {' '.join(listed())}").stdout.split()
        if len(unknown) > 20:
            self.skipTest("apt has no lists")
        self.assertEqual([name for name in unknown if f"not in Debian {release}" not in listed()[name]], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
