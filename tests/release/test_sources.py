#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""build/libraries fetch: which of several accepted archives it takes, from a mirror of ours on the loopback that lacks
some, breaks off, lies, or is not there; and what follows for licences and the SBOM.
Usage: test_sources.py RAMSEAL BUILD-DIR SOURCE-DIR"""

import hashlib
import http.server
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest
import urllib.parse

RAMSEAL, BUILD, TREE = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
POOL = "/debian/pool/main/c/crash/"
CUT = "cut"


class Mirror(http.server.ThreadingHTTPServer):
    """Serves `files`, {path: bytes}, and notes what it was asked for. Of paths in `cut` it sends half."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.files, self.cut, self.asked = {}, set(), []
        packages = b"Package: none\nVersion: 1\nArchitecture: all\nFilename: none\nSize: 0\nMD5sum: 0\n"
        self.files["/debian/dists/bookworm/main/binary-amd64/Packages"] = packages
        self.files["/debian/dists/bookworm/Release"] = (
            "Origin: Debian\nSuite: oldstable\nCodename: bookworm\nComponents: main\nArchitectures: amd64\n"
            "Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n"
            f" {hashlib.sha256(packages).hexdigest()} {len(packages)} main/binary-amd64/Packages\n").encode()
        self.address = f"http://127.0.0.1:{self.server_address[1]}/debian/"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def forget(self):
        """What is in its pool, and what it was asked for."""
        self.files = {path: data for path, data in self.files.items() if "/pool/" not in path}
        self.cut, self.asked = set(), []

    def stop(self):
        self.shutdown()
        self.server_close()


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = urllib.parse.unquote(self.path)
        if "/pool/" in path:
            self.server.asked.append(os.path.basename(path))
        data = self.server.files.get(path)
        if data is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if path in self.server.cut:
            data = data[:len(data) // 2]
            self.close_connection = True
        self.wfile.write(data)

    def log_message(self, *args):
        pass


def digest(data):
    return hashlib.sha256(data).hexdigest()


def tarball(**files):
    """A .tar.gz with these, in a top folder as upstream's have one; __ in a name is a slash."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for name, text in files.items():
            member = tarfile.TarInfo("top/" + name.replace("__", "/"))
            member.size = len(text)
            t.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


FIRST, SECOND = os.urandom(100_000), os.urandom(100_000)
PATCHES, THIRD = os.urandom(5000), os.urandom(100_000)
ROWS = {"crash_3.orig.tar.gz": FIRST, "crash_2+dfsg.orig.tar.xz": SECOND,
        "crash_2+dfsg-1.debian.tar.xz": PATCHES, "crash_1.orig.tar.gz": THIRD}


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = folder.name
        shutil.copytree(os.path.join(TREE, "build"), self.path("build"),
                        ignore=shutil.ignore_patterns("fleet", "__pycache__"))
        shutil.copy(os.path.join(TREE, "THIRD-PARTY.md"), self.at)
        os.makedirs(self.path("out/sources"))

    def path(self, name):
        return os.path.join(self.at, name)

    def write(self, name, data):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as f:
            f.write(data)

    def list_sources(self, target="guest", rows=None):
        rows = ROWS if rows is None else rows
        self.write("build/sources.txt", "".join(
            f"{name.split('_')[0]} sid {target} {name} {digest(data)}\n" for name, data in rows.items()).encode())


class Apt:
    """A configuration of apt that knows of this mirror alone; and once update() has run, what it has."""

    def __init__(self, at, mirror):
        os.makedirs(at + "/lists/partial")
        os.makedirs(at + "/cache/archives/partial")
        with open(at + "/sources.list", "w", encoding="ascii") as f:
            f.write(f"deb [trusted=yes] {mirror.address} bookworm main\n")
        with open(at + "/apt.conf", "w", encoding="ascii") as f:
            f.write(f"""
                Dir::Etc::sourcelist "{at}/sources.list"; Dir::Etc::sourceparts "/dev/null";
                Dir::State::lists "{at}/lists"; Dir::Cache "{at}/cache"; APT::Sandbox::User "";
                Acquire::http::Proxy::127.0.0.1 "DIRECT"; Acquire::Retries::Delay "false";
                APT::Architecture "amd64"; APT::Architectures "amd64"; """)
        self.env = {**{k: v for k, v in os.environ.items()
                       if not k.lower().endswith("_proxy") and "RAMSEAL" not in k}, "APT_CONFIG": at + "/apt.conf"}

    def update(self):
        subprocess.run(["apt-get", "-q", "update"], stdin=subprocess.DEVNULL, capture_output=True, timeout=900,
                       env=self.env, check=True)


@unittest.skipUnless(os.path.exists("/usr/lib/apt/apt-helper"), "this is not Debian")
class Fetch(Tree):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.mirror = Mirror()
        cls.addClassCleanup(cls.mirror.stop)
        cls.apt = Apt(folder.name + "/apt", cls.mirror)
        cls.apt.update()

    def setUp(self):
        super().setUp()
        self.list_sources()
        self.mirror.forget()

    def has(self, *names):
        self.mirror.files.update({POOL + name: ROWS[name] for name in names})

    def run_here(self, *args, **env):
        return subprocess.run(args, cwd=self.at, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=900, env={**self.apt.env, **env}, check=False)

    def fetch(self, target="guest", **env):
        return self.run_here("build/libraries", "fetch", target, **env)

    def check_fetched(self, *names):
        r = self.fetch()
        self.assertEqual((r.returncode, r.stdout.split()), (0, list(names)), r.stderr)
        for name in names:
            with open(self.path("out/sources/" + name), "rb") as f:
                self.assertEqual(f.read(), ROWS[name], name)
        self.assertEqual(sorted(os.listdir(self.path("out/sources"))), sorted(names))

    def check_one_line(self, r, *words):
        """What went wrong is one line, besides what is being done."""
        said = [line for line in r.stderr.splitlines() if not line.startswith("== ")]
        self.assertEqual((r.returncode, r.stdout, len(said)), (1, "", 1), r.stderr)
        for word in ("libraries: ", self.mirror.address, *words):
            self.assertIn(word, said[0])
        self.assertEqual(os.listdir(self.path("out/sources")), [])

    def test_the_first_is_preferred(self):
        self.has(*ROWS)
        self.check_fetched("crash_3.orig.tar.gz")
        self.assertEqual(self.mirror.asked, ["crash_3.orig.tar.gz"])

    def test_what_the_mirror_has_no_more(self):
        self.has("crash_2+dfsg.orig.tar.xz", "crash_2+dfsg-1.debian.tar.xz", "crash_1.orig.tar.gz")
        self.check_fetched("crash_2+dfsg.orig.tar.xz", "crash_2+dfsg-1.debian.tar.xz")

    def test_an_archive_without_its_patches_is_not_taken(self):
        self.has("crash_2+dfsg.orig.tar.xz", "crash_1.orig.tar.gz")
        r = self.fetch()
        self.assertEqual((r.returncode, r.stdout), (0, "crash_1.orig.tar.gz\n"), r.stderr)

    def test_what_is_here_needs_no_mirror(self):
        """It is not replaced by what is preferred either."""
        self.has(*ROWS)
        self.write("out/sources/crash_1.orig.tar.gz", THIRD)
        self.check_fetched("crash_1.orig.tar.gz")
        self.assertEqual(self.mirror.asked, [])

    def test_another_content_is_not_taken(self):
        self.has(*ROWS)
        self.mirror.files[POOL + "crash_3.orig.tar.gz"] = THIRD
        self.write("out/sources/crash_2+dfsg.orig.tar.xz", THIRD)
        self.check_fetched("crash_2+dfsg.orig.tar.xz", "crash_2+dfsg-1.debian.tar.xz")

    def test_none_is_there(self):
        self.mirror.files[POOL + "crash_1.orig.tar.gz"] = FIRST
        self.check_one_line(self.fetch(), "none of the accepted sources of crash", "crash_3.orig.tar.gz (404",
                            "crash_2+dfsg.orig.tar.xz (404", "crash_1.orig.tar.gz (Hash Sum mismatch")

    def test_a_download_that_breaks_off(self):
        """It does not choose another version for that, and the next run has it."""
        self.has(*ROWS)
        self.mirror.cut.add(POOL + "crash_3.orig.tar.gz")
        self.check_one_line(self.fetch(), "cannot fetch crash_3.orig.tar.gz")
        self.assertEqual(set(self.mirror.asked), {"crash_3.orig.tar.gz"})
        self.mirror.cut.clear()
        self.check_fetched("crash_3.orig.tar.gz")

    def test_a_mirror_that_apt_has_not_asked_yet(self):
        self.has(*ROWS)
        self.apt = Apt(self.path("apt"), self.mirror)
        self.check_fetched("crash_3.orig.tar.gz")

    def test_a_mirror_that_is_not_there(self):
        self.mirror = Mirror()
        self.apt = Apt(self.path("known"), self.mirror)
        self.apt.update()
        self.mirror.stop()
        self.check_one_line(self.fetch(), "cannot fetch crash_3.orig.tar.gz", "Could not connect")
        self.apt = Apt(self.path("unknown"), self.mirror)
        r = self.fetch()
        said = [line for line in r.stderr.splitlines() if not line.startswith("== ")]
        self.assertEqual((r.returncode, said), (1, ["libraries: apt knows no archive of Debian, or cannot reach it"]))

    def test_a_driver_is_unpacked(self):
        """Once, until the archive is listed no more."""
        for version in "12":
            name, data = f"crash_{version}.orig.tar.gz", tarball(
                memory_driver__crash_c=f"driver {version}", gdb__main_c="not wanted")
            self.list_sources(rows={name: data})
            self.mirror.files[POOL + name] = data
            for _ in range(2):
                r = self.run_here("build/drivers")
                self.assertEqual(r.returncode, 0, r.stderr)
            self.assertEqual(self.mirror.asked.count(name), 1)
            self.assertEqual(os.listdir(self.path("out/drivers/crash")), ["crash_c"])
            with open(self.path("out/drivers/crash/crash_c"), encoding="ascii") as f:
                self.assertEqual(f.read(), f"driver {version}")

    def test_without_the_network_libraries(self):
        """`make` then builds without network, and says so."""
        self.list_sources("all", {name.replace("crash", package): data for name, data in ROWS.items()
                                   for package in ("curl", "mbedtls")})
        r = self.fetch("linux")
        self.assertEqual((r.returncode, r.stdout), (0, "-Dnetwork=false\n"), r.stderr)
        self.assertRegex(r.stderr, r"\Aramseal is built without network: .* of mbedtls: .*\n\Z")


class Taken(Tree):
    """A library was made from another archive than the one that is preferred."""

    def setUp(self):
        super().setUp()
        self.name = "c-ares_1.2.3+dfsg.orig.tar.gz"
        data = tarball(**{"LICENSE.md": "the licence of 1.2.3\n", "src__a.c": "/* Copyright (c) 1998 by Nobody */\n"})
        self.write("out/sources/" + self.name, data)
        self.write("out/libraries/windows/sources",
                   f"c-ares {self.name} {digest(data)}\nc-ares c-ares_1.2.3-1.debian.tar.xz {'0' * 64}\n".encode())

    def test_licences(self):
        r = subprocess.run(["build/licences", "windows", self.path("to")], cwd=self.at, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, timeout=900, check=True)
        self.assertNotIn("c-ares", r.stderr)
        to = self.path(f"to/{self.name}")
        self.assertEqual(sorted(os.listdir(to)), ["LICENSE.md", "copyright-notices"])
        with open(to + "/LICENSE.md", encoding="ascii") as f:
            self.assertEqual(f.read(), "the licence of 1.2.3\n")

    def ask(self, expression):
        """Of build/linking.py, in that tree."""
        r = subprocess.run([sys.executable, "-c", f"import json, linking; print(json.dumps({expression}))"],
                           cwd=self.path("build"), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           timeout=900, check=True)
        return json.loads(r.stdout)

    def test_table(self):
        rows = {row[0]: row for row in self.ask("linking.third_parties('windows')")}
        self.assertEqual(rows["c-ares"], ["c-ares", "1.2.3", "MIT", self.name, "c-ares"])
        self.assertEqual(rows["libzstd"][3], "libzstd_1.5.4+dfsg2.orig.tar.xz")
        self.assertEqual(self.ask("linking.third_parties('linux')")[0][0], "glibc")

    def test_owner(self):
        library = self.path("out/libraries/windows/lib/libcares.a")
        self.assertEqual(self.ask(f"linking.owners([{library!r}], 'windows')"), {self.name: [library]})
        self.assertEqual(self.ask("linking.sources('windows')['c-ares'][0]"), self.name)


class Lists(unittest.TestCase):
    def test_the_table_names_what_is_preferred(self):
        preferred = {}
        with open(os.path.join(TREE, "build/sources.txt"), encoding="utf-8") as f:
            for package, _, target, name, sha in (line.split() for line in f if line[0] not in "#\n"):
                self.assertRegex(sha, "^[0-9a-f]{64}$")
                self.assertTrue(name.startswith(package + "_"), name)
                self.assertIn(target, ("windows", "all", "guest"))
                if target != "guest":
                    preferred.setdefault(package, name)
        with open(os.path.join(TREE, "THIRD-PARTY.md"), encoding="utf-8") as f:
            named = re.findall(r"\| (\S+\.orig\.tar\.\S+) \| (\S+) \|$", f.read(), re.M)
        self.assertEqual({package: name for name, package in named}, {
            package: name for package, name in preferred.items() if package != "cmocka"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
