#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The kit that build/relink-kit makes: with the libraries as they are it gives the same program, and with changed
ones a program that does what these do. Usage: test_relink.py RAMSEAL BUILD-DIR SOURCE-DIR"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

RAMSEAL, BUILD, TREE = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
sys.path.insert(0, os.path.join(TREE, "tests/ntfs"))
from hive import Hive  # noqa: E402
from make_hives import SOFTWARE  # noqa: E402

# A changed version of a function: it says so, and goes on as before.
CHANGED = """
#include <unistd.h>
{result} before_{name}({parameters});
{result} {name}({parameters})
{{
	static const char text[] = "changed {name}\\n";
	if (write(2, text, sizeof(text) - 1) < 0)
		return {failure};
	return before_{name}({arguments});
}}
"""
LIBRARIES = {
    "libhivex.a": dict(name="hivex_open", result="void *", parameters="const char *a, int b", arguments="a, b",
                       failure="0"),
    "libewf.a": dict(name="libewf_handle_initialize", result="int", parameters="void **a, void **b",
                     arguments="a, b", failure="-1"),
}


def run(*args, **more):
    return subprocess.run(args, capture_output=True, text=True, timeout=900, **more)


def must(*args, **more):
    r = run(*args, **more)
    assert r.returncode == 0, (args, r.stderr)
    return r.stdout


class Kit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.kit = cls.path("kit")
        must(os.path.join(TREE, "build/relink-kit"), "linux", BUILD, cls.kit)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def stripped(self, executable):
        to = executable + ".stripped"
        must("strip", "-R", ".note.gnu.build-id", "-o", to, executable)
        with open(to, "rb") as f:
            return f.read()

    def change(self, kit, library, how):
        """Puts the changed function beside the old one, which gets another name."""
        archive, source = os.path.join(kit, "lib", library), self.path(how["name"] + ".c")
        with open(source, "w", encoding="ascii") as f:
            f.write(CHANGED.format(**how))
        must("gcc", "-O", "-c", "-fPIE", source, "-o", source + ".o")
        # Only the definition is renamed: callers, in other members, meet the new one.
        owner = next(line.split(":")[1] for line in must("nm", "-A", archive).splitlines()
                     if line.endswith(" T " + how["name"]))
        must("ar", "x", archive, owner, cwd=self.folder.name)
        must("objcopy", "--redefine-sym", f"{how['name']}=before_{how['name']}", self.path(owner))
        must("ar", "rs", archive, self.path(owner), source + ".o")

    def test_unchanged_it_is_the_same_program(self):
        must(os.path.join(self.kit, "relink"), self.path("again"), cwd="/")
        shutil.copy(RAMSEAL, self.path("ramseal"))
        self.assertEqual(self.stripped(self.path("again")), self.stripped(self.path("ramseal")))
        self.assertEqual(run(os.path.join(self.kit, "relink")).returncode, 2)
        self.assertEqual(run(os.path.join(self.kit, "relink"), self.path("none"), "nonsense").returncode, 2)

    def test_nor_is_what_only_collects_another_program(self):
        must(os.path.join(self.kit, "relink"), self.path("collect again"), "ramseal-collect", cwd="/")
        shutil.copy(RAMSEAL + "-collect", self.path("ramseal-collect"))
        self.assertEqual(self.stripped(self.path("collect again")), self.stripped(self.path("ramseal-collect")))

    def test_a_changed_library_takes_effect(self):
        kit = self.path("changed")
        shutil.copytree(self.kit, kit)
        for library, how in LIBRARIES.items():
            self.change(kit, library, how)
        must(os.path.join(kit, "relink"), self.path("changed-ramseal"))
        with open(self.path("hive"), "wb") as f:
            f.write(Hive(SOFTWARE).pack())
        with open(self.path("memory.raw"), "wb") as f:
            f.write(os.urandom(65536))
        for program, expected in ((RAMSEAL, False), (self.path("changed-ramseal"), True)):
            r = run(program, "context", "--hive", self.path("hive"))
            self.assertEqual((r.returncode, "changed hivex_open\n" in r.stderr), (0, expected), r)
            r = run(program, "acquire", "--format", "e01", "--source", "file:" + self.path("memory.raw"),
                    "-o", self.path(f"image-{expected}"))
            self.assertEqual("changed libewf_handle_initialize\n" in r.stderr, expected, r)
            self.assertEqual(r.returncode, 0, r)

    def test_what_it_says(self):
        with open(os.path.join(self.kit, "README"), encoding="utf-8") as f:
            text = f.read()
        for words in ("glibc, libewf, hivex, libfuse", "./relink OUTPUT", "gcc, g++ and libc6-dev"):
            self.assertIn(words, text)
        for library in ("libewf.a", "libhivex.a", "libfuse3.a", "libc.a", "libtsk.a"):
            self.assertTrue(os.path.exists(os.path.join(self.kit, "lib", library)), library)


if __name__ == "__main__":
    unittest.main(verbosity=2)
