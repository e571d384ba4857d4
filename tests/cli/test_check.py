#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ramseal check: what it says is what acquire then does. Usage: test_check.py RAMSEAL"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

RAMSEAL = os.path.abspath(sys.argv.pop(1))
MIB = 1 << 20


class Check(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = directory.name
        with open(self.path("memory"), "wb") as f:
            f.truncate(64 * MIB)
        self.source = ["-s", "file:" + self.path("memory")]

    def path(self, name):
        return os.path.join(self.folder, name)

    def ramseal(self, *args):
        return subprocess.run([RAMSEAL, *args], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=120, cwd=self.folder)

    def check(self, *args, code):
        """The JSON, after a look that nothing was written and that the text says the same."""
        before = sorted(os.listdir(self.folder))
        done = self.ramseal("check", "--json", *args)
        self.assertEqual(done.returncode, code, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual((said["go"], said["exit_code"]), (code == 0, code))
        text = self.ramseal("check", *args)
        self.assertEqual(text.returncode, code, text.stderr)
        self.assertEqual(text.stdout.splitlines()[-1], "acquire would not start" if code else "go")
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        return said

    def stops(self, said):
        return [f["what"] for f in said["findings"] if f["stops"]]

    def test_go(self):
        said = self.check(*self.source, "-o", "new.rsz", code=0)
        self.assertEqual((said["memory_bytes"], said["source"]["name"], said["output"]),
                         (64 * MIB, "file", "new.rsz"))
        self.assertEqual(said["probe"]["bytes"], 4 * MIB)
        self.assertGreater(said["probe"]["bytes_per_second"], 0)
        self.assertEqual(said["output_needed"], 16 * MIB)
        self.assertGreater(said["output_room"], 0)
        self.assertEqual(said["maps"][0]["ranges"], [{"first": 0, "last": 64 * MIB - 1}])
        self.assertEqual(self.stops(said), [])
        self.assertEqual(self.ramseal("acquire", "-q", *self.source, "-o", "new.rsz").returncode, 0)

    def test_default_output_and_stdout(self):
        self.assertRegex(self.check(*self.source, code=0)["output"], r"-\d{8}T\d{6}Z\.rsz$")
        said = self.check(*self.source, "-o", "-", code=0)
        self.assertNotIn("output_room", said)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to take a host's name")
    def test_default_output_of_a_host_without_a_name(self):
        for name in ("(none)", ""):
            done = subprocess.run(
                ["unshare", "--uts", "sh", "-c", 'echo "$1" > /proc/sys/kernel/hostname; shift; exec "$@"',
                 "sh", name, RAMSEAL, "check", "--json", *self.source],
                capture_output=True, text=True, timeout=120, cwd=self.folder)
            if done.returncode and "unshare" in done.stderr:
                self.skipTest("no namespaces here")
            self.assertRegex(json.loads(done.stdout)["output"], r"^unnamed-\d{8}T\d{6}Z\.rsz$")

    def test_no_source(self):
        for source, code in (("linpmem:" + self.path("none"), 4), ("file:" + self.path("none"), None),
                             ("nonsense", 2)):
            with self.subTest(source):
                acquired = self.ramseal("acquire", "-q", "-s", source, "-o", "-").returncode
                self.assertIn(code, (None, acquired))
                said = self.check("-s", source, "-o", "new", code=acquired)
                self.assertEqual(self.stops(said)[0], "source")
                self.assertNotIn("probe", said)

    def test_output_that_is_there(self):
        with open(self.path("old.rsz"), "w"):
            pass
        said = self.check(*self.source, "-o", "old.rsz", code=6)
        self.assertEqual(self.stops(said), ["output"])
        self.check(*self.source, "-o", "old.rsz", "--force", code=0)

    def test_output_that_cannot_be(self):
        for output in ("no/folder/x", ".", self.path("memory") + "/x"):
            with self.subTest(output):
                said = self.check(*self.source, "-o", output, "--force", code=6)
                self.assertEqual(self.stops(said), ["output"])
                self.assertEqual(self.ramseal("acquire", "-q", "-f", *self.source, "-o",
                                              output).returncode, 6)

    def test_too_little_room(self):
        room = os.statvfs(self.folder)
        with open(self.path("memory"), "r+b") as f:
            try:
                f.truncate((room.f_bfree * room.f_frsize // (64 * MIB) + 2) * 8 * 64 * MIB)
            except OSError:
                self.skipTest("no sparse file of that size here")
        said = self.check(*self.source, "-o", "new", code=6)
        self.assertEqual(self.stops(said), ["room"])
        self.assertEqual(self.ramseal("acquire", "-q", *self.source, "-o", "new").returncode, 6)
        self.assertNotIn("new", os.listdir(self.folder))
        said = self.check(*self.source, "-o", "new", "--force", code=0)
        self.assertIn("room", [f["what"] for f in said["findings"]])

    def test_no_disk(self):
        done = self.ramseal("check", *self.source, "-i", "a", "-V", "b")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        said = self.check(*self.source, "-i", self.path("none"), code=9)
        self.assertEqual(self.stops(said), ["disk"])

    def test_this_machine(self):
        done = self.ramseal("check", "--json")
        said = json.loads(done.stdout)
        self.assertEqual(said["exit_code"], done.returncode)
        self.assertEqual(said["go"], done.returncode == 0)
        self.assertEqual("source" in said, "source" not in self.stops(said))
        self.assertIn("cpu", said["machine"])


if __name__ == "__main__":
    unittest.main()
