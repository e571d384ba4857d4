#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What file(1) and the desktops' MIME database say of a container. Usage: test_magic.py RAMSEAL BUILD-DIR SOURCE-DIR"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

RAMSEAL, BUILD, TREE = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
MAGIC = os.path.join(TREE, "formats/ramseal.magic")
MIME = os.path.join(TREE, "formats/ramseal-mime.xml")


def output_of(*args, **more):
    return subprocess.run(args, capture_output=True, text=True, timeout=900, check=True, **more).stdout.strip()


class Magic(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        image = cls.path("memory.raw")
        with open(image, "wb") as f:
            f.write(os.urandom(8192))
        subprocess.run([RAMSEAL, "acquire", "--source", "file:" + image, "-o", cls.path("host.rsz")],
                       capture_output=True, timeout=900, check=False)
        shutil.copyfile(cls.path("host.rsz"), cls.path("no-extension"))
        with open(cls.path("other.zst"), "wb") as f:  # a frame to be skipped, of somebody else's
            f.write(bytes.fromhex("5b2a4d18 08000000") + b"ABCDEFGH")

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @unittest.skipUnless(shutil.which("file"), "file(1) is not installed")
    def test_file(self):
        both = ("-m", MAGIC + ":/usr/share/misc/magic")
        for name in ("host.rsz", "no-extension"):
            self.assertEqual(output_of("file", "-b", *both, self.path(name)), "ramseal memory container, version 1")
            self.assertEqual(output_of("file", "-b", "--mime-type", *both, self.path(name)), "application/x-ramseal")
        self.assertEqual(output_of("file", "-b", "--extension", *both, self.path("host.rsz")), "rsz")
        self.assertNotIn("ramseal", output_of("file", "-b", *both, self.path("other.zst")))

    @unittest.skipUnless(shutil.which("file"), "file(1) is not installed")
    def test_the_magic_has_no_mistake(self):
        r = subprocess.run(["file", "-C", "-m", MAGIC], cwd=self.folder.name, capture_output=True, text=True,
                           timeout=900, check=False)
        self.assertEqual((r.returncode, r.stderr), (0, ""))

    @unittest.skipUnless(shutil.which("update-mime-database") and shutil.which("gio"), "no shared MIME database here")
    def test_shared_mime_info(self):
        os.makedirs(self.path("share/mime/packages"))
        shutil.copy(MIME, self.path("share/mime/packages/ramseal.xml"))
        subprocess.run(["update-mime-database", self.path("share/mime")], capture_output=True, timeout=900, check=True)
        env = {**os.environ, "XDG_DATA_HOME": self.path("share")}
        for name in ("host.rsz", "no-extension"):
            said = output_of("gio", "info", "-a", "standard::content-type", self.path(name), env=env)
            self.assertIn("standard::content-type: application/x-ramseal", said, name)
        self.assertNotIn("ramseal", output_of("gio", "info", "-a", "standard::content-type", self.path("other.zst"),
                                              env=env).split("attributes:")[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
