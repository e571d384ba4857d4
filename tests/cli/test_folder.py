#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""-o DIR: every command that writes a file finds a name for it there. Usage: test_folder.py RAMSEAL"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RAMSEAL = os.path.abspath(sys.argv.pop(1))
MACHINE = "sim:cohen2015,ram=64M,resident=8M,allocated=16M,trimmed=4M,others=4M,cache=2M"


def run(*args, **more):
    return subprocess.run([RAMSEAL, "-q", *map(str, args)], capture_output=True, text=True, timeout=900,
                          **more)


@unittest.skipIf(os.environ.get("RAMSEAL_SIMULATOR") == "0", "built without simulated machines")
class Folder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.rsz = Path(cls.folder.name, "host.rsz")
        r = run("acquire", "-s", MACHINE, "-o", cls.rsz)
        assert r.returncode == 0, r.stderr
        whole = cls.rsz.read_bytes()
        cls.cut = Path(cls.folder.name, "cut.rsz.partial")
        cls.cut.write_bytes(whole[:len(whole) // 2])

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)

    def written(self, *args, codes=(0,), slashes=("",)):
        """The one new file, for each way to name the directory."""
        names = []
        for slash in slashes:
            r = run(*args, "-o", f"{self.at}{slash}")
            self.assertIn(r.returncode, codes, (args, r.stderr))
            found = [f for f in os.listdir(self.at) if not f.endswith(".gaps.json")]
            self.assertEqual(len(found), 1, (args, r.stderr))
            names.append(found[0])
            for f in os.listdir(self.at):
                (self.at / f).unlink()
        return names

    def test_acquire_takes_its_default_name(self):
        for more, ending in (((), "rsz"), (("-F", "raw"), "raw"), (("-F", "e01"), "E01")):
            for name in self.written("acquire", "-s", MACHINE, *more, slashes=("", "/", "//")):
                self.assertRegex(name, rf"^[\w.-]+-\d{{8}}T\d{{6}}Z\.{ending}$")

    def test_an_image_gives_its_own_name(self):
        image = Path(self.folder.name, "dump.raw")
        image.write_bytes(os.urandom(1 << 20))
        for name in self.written("acquire", "-s", f"raw:{image}"):
            self.assertRegex(name, r"^dump\.raw-\d{8}T\d{6}Z\.rsz$")

    def test_what_is_made_of_a_container_is_called_after_it(self):
        for args, name in ((("export", self.rsz), "host.raw"),
                           (("export", "-F", "e01", self.rsz), "host.E01"),
                           (("report", "--no-verify", self.rsz), "host.html"),
                           (("report", "--figure", "states", self.rsz), "host-states.svg"),
                           (("report", "--no-verify", self.rsz, self.rsz), "report.html"),
                           (("seal", self.cut), "cut.rsz"),
                           (("read", "--pa", "0x2000", self.rsz), "host-pa-0x2000.bin")):
            self.assertEqual(self.written(*args, codes=(0, 3)), [name])

    def test_a_stream_keeps_its_name(self):
        for name in ("memory", "manifest", "log"):
            self.assertEqual(self.written("extract", "-S", name, self.rsz, codes=(0, 3)), [name])

    def test_what_is_written_is_what_a_file_name_gets(self):
        run("extract", "-S", "log", self.rsz, "-o", self.at / "named")
        r = subprocess.run([RAMSEAL, "--log-json", "extract", "-S", "log", self.rsz, "-o", self.at],
                           capture_output=True, text=True, timeout=900)
        self.assertEqual((self.at / "log").read_bytes(), (self.at / "named").read_bytes())
        summary = json.loads(r.stderr.splitlines()[-1])
        self.assertEqual(summary["output"], str(self.at / "log"))

    def test_what_is_there_stays(self):
        (self.at / "log").write_text("evidence")
        r = run("extract", "-S", "log", self.rsz, "-o", self.at)
        self.assertEqual(r.returncode, 6, r.stderr)
        self.assertIn(f"{self.at}/log exists", r.stderr)
        self.assertEqual((self.at / "log").read_text(), "evidence")

    def test_a_directory_that_is_not_there(self):
        for args in (("acquire", "-s", MACHINE), ("check", "-s", MACHINE), ("export", self.rsz),
                     ("report", "--no-verify", self.rsz), ("seal", self.cut)):
            r = run(*args, "-o", f"{self.at}/none/")
            self.assertEqual(r.returncode, 6, (args, r.stderr))
            said = r.stdout if args[0] == "check" else r.stderr
            self.assertRegex(said, "(?m)none/: there is no such directory; make it first$")
        (self.at / "file").touch()
        r = run("export", self.rsz, "-o", f"{self.at}/file/")
        self.assertEqual((r.returncode, r.stderr),
                         (6, f"ramseal: export: {self.at}/file/: Not a directory\n"))

    def test_a_link_to_a_directory_needs_the_slash(self):
        """In /tmp anybody can put a link where a file is to be."""
        real = self.at / "real"
        real.mkdir()
        (self.at / "link").symlink_to(real)
        what = ("extract", "-S", "log", self.rsz, "-o")
        self.assertEqual(run(*what, self.at / "link").returncode, 6)
        self.assertEqual(run(*what, f"{self.at}/link/").returncode, 0)
        self.assertTrue((real / "log").exists())

    def test_check_says_where_acquire_would_write(self):
        r = subprocess.run([RAMSEAL, "check", "--json", "-s", MACHINE, "-o", f"{self.at}/"],
                           capture_output=True, text=True, timeout=900)
        self.assertRegex(json.loads(r.stdout)["output"], rf"^{self.at}/[\w.-]+Z\.rsz$")
        self.assertEqual(os.listdir(self.at), [])


if __name__ == "__main__":
    unittest.main()
