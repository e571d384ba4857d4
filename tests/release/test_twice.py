#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""build/release twice: of a clone, and of the source that this released, in another folder, at another time, with
another umask, locale, time zone and home, none of which it may let through, from libraries built anew. Every byte
must be the same; diffoscope says what is not. Then what is in the release. Usage: test_twice.py SOURCE-DIR [--without-windows]"""

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

TREE = os.path.abspath(sys.argv.pop(1))
OPTIONS = sys.argv[1:2] if sys.argv[1:2] == ["--without-windows"] else []
del sys.argv[1:1 + len(OPTIONS)]
TOOLS = ("dh", "lintian", "minisign", "diffoscope", "git")


def run(*args, **more):
    return subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)


def must(*args, **more):
    r = run(*args, **more)
    if r.returncode:
        sys.exit(f"{args}: {r.returncode}\n{r.stdout[-4000:]}")
    return r.stdout


def read(path):
    with open(path, "rb") as f:
        return f.read()


def release(tree, umask, **env):
    print(f"building a release in {tree}", file=sys.stderr)
    return must("sh", "-c", f"umask {umask}; exec build/release \"$@\"", "sh", *OPTIONS, cwd=tree,
                env={**os.environ, **env})


def touch(tree, when):
    for at, _, names in os.walk(tree):
        for name in names:
            os.utime(os.path.join(at, name), (when, when), follow_symlinks=False)


class Twice(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder, key = folder.name, os.path.join(folder.name, "key")
        must("minisign", "-G", "-W", "-p", key + ".pub", "-s", key)
        cls.key = key + ".pub"
        one = os.path.join(cls.folder, "one")
        must("git", "clone", "-q", "--no-local", TREE, one)
        os.makedirs(os.path.join(one, "out"))
        for name in ("sources", "libraries"):
            if os.path.exists(os.path.join(TREE, "out", name)):
                shutil.copytree(os.path.join(TREE, "out", name), os.path.join(one, "out", name), symlinks=True)
        release(one, "022", RAMSEAL_MINISIGN_KEY=key)
        cls.one = os.path.join(one, "out/release")
        cls.version = re.search(r"(?m)^    version: '(.*)'", read(os.path.join(TREE, "meson.build")).decode())[1]
        deep = os.path.join(cls.folder, "a-second-folder", "whose-path-is-longer")
        os.makedirs(deep)
        with tarfile.open(os.path.join(cls.one, f"ramseal-{cls.version}.tar.xz")) as source:
            source.extractall(deep)
        two = os.path.join(deep, f"ramseal-{cls.version}")
        os.makedirs(os.path.join(two, "out"))
        shutil.copytree(os.path.join(one, "out/sources"), os.path.join(two, "out/sources"))
        touch(two, 1_000_000_000)
        release(two, "077", RAMSEAL_MINISIGN_KEY=key, LC_ALL="C.UTF-8", TZ="Asia/Kathmandu", HOME=deep,
                DEB_BUILD_OPTIONS="parallel=1")
        cls.two = os.path.join(two, "out/release")

    def path(self, name):
        return os.path.join(self.one, name.format(v=self.version))

    def test_both_are_the_same(self):
        self.assertEqual(sorted(os.listdir(self.one)), sorted(os.listdir(self.two)))
        different = [name for name in sorted(os.listdir(self.one))
                     if read(os.path.join(self.one, name)) != read(os.path.join(self.two, name))]
        for name in different:
            print(run("diffoscope", "--max-report-size", "20000", os.path.join(self.one, name),
                      os.path.join(self.two, name)).stdout)
        self.assertEqual(different, [])

    def test_all_files_are_there(self):
        expected = {"SHA256SUMS", "SHA256SUMS.minisig", f"ramseal-{self.version}.tar.xz",
                    f"ramseal_{self.version}_amd64.deb", f"ramseal-dbgsym_{self.version}_amd64.deb"}
        for system, ending in (("linux", "tar.xz"), ("windows", "zip"))[:1 if OPTIONS else 2]:
            expected |= {f"ramseal-{self.version}-{system}-x86_64.{ending}",
                         f"ramseal-{self.version}-{system}-x86_64.spdx.json",
                        f"ramseal-{self.version}-{system}-x86_64-collect.spdx.json",
                         f"ramseal-{self.version}-relink-{system}-x86_64.tar.xz"}
        self.assertEqual(set(os.listdir(self.one)), expected)
        must("sha256sum", "--strict", "-c", "SHA256SUMS", cwd=self.one)
        summed = {line.split()[1] for line in read(self.path("SHA256SUMS")).decode().splitlines()}
        self.assertEqual(summed, expected - {"SHA256SUMS", "SHA256SUMS.minisig"})

    def test_signature(self):
        sums = self.path("SHA256SUMS")
        self.assertIn(f"ramseal {self.version}, commit ", must("minisign", "-V", "-p", self.key, "-m", sums))
        changed = os.path.join(self.folder, "changed")
        with open(changed, "wb") as f:
            f.write(read(sums).replace(b"0", b"1", 1))
        self.assertNotEqual(run("minisign", "-V", "-p", self.key, "-m", changed, "-x", sums + ".minisig").returncode, 0)

    def test_the_linux_packages_have_one_program(self):
        d = os.path.join(self.folder, "linux")
        must("dpkg-deb", "-x", self.path("ramseal_{v}_amd64.deb"), d)
        with tarfile.open(self.path("ramseal-{v}-linux-x86_64.tar.xz")) as t:
            t.extractall(d)
        top = os.path.join(d, f"ramseal-{self.version}-linux-x86_64")
        program = os.path.join(d, "usr/bin/ramseal")
        self.assertEqual(read(program), read(top + "/bin/ramseal"))
        self.assertEqual(must(program, "--version"), f"ramseal {self.version}\n")
        self.assertIn("Network: yes", must(program, "--version", "--verbose"))
        self.assertEqual(must(program, "--licences").encode(), read(top + "/LICENCES.txt"))
        with gzip.open(d + "/usr/share/man/man1/ramseal.1.gz") as f:
            self.assertEqual(f.read().decode(), must(program, "manual"))
        for path, shell in (("bash-completion/completions/ramseal", "bash"), ("zsh/vendor-completions/_ramseal", "zsh"),
                            ("fish/vendor_completions.d/ramseal.fish", "fish")):
            for share in (d + "/usr/share/", top + "/share/"):
                self.assertEqual(read(share + path).decode(), must(program, "completion", shell))
        # The sources that the licences of what is in the program ask for, as Debian's policy (7.8) has it.
        self.assertRegex(must("dpkg-deb", "-f", self.path("ramseal_{v}_amd64.deb"), "Built-Using"),
                         r"\blibewf \(= \S+\).*\bsleuthkit \(= ")
        self.check_sbom(read(top + f"/ramseal-{self.version}-linux-x86_64.spdx.json"), read(program))
        # What is in the package came from a stripped program; its symbols are in the other one.
        debug = os.path.join(self.folder, "debug")
        must("dpkg-deb", "-x", self.path("ramseal-dbgsym_{v}_amd64.deb"), debug)
        build_id = re.search(r"Build ID: ([0-9a-f]+)", must("readelf", "-n", program))[1]
        self.assertTrue(os.path.exists(f"{debug}/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"))

    def test_the_linux_packages_have_what_only_collects(self):
        d = os.path.join(self.folder, "collect")
        must("dpkg-deb", "-x", self.path("ramseal_{v}_amd64.deb"), d)
        with tarfile.open(self.path("ramseal-{v}-linux-x86_64.tar.xz")) as t:
            t.extractall(d)
        top = os.path.join(d, f"ramseal-{self.version}-linux-x86_64")
        program = os.path.join(d, "usr/bin/ramseal-collect")
        self.assertEqual(read(program), read(top + "/bin/ramseal-collect"))
        self.assertEqual(must(program, "--version"), f"ramseal-collect {self.version}\n")
        with gzip.open(d + "/usr/share/man/man1/ramseal-collect.1.gz") as f:
            self.assertEqual(f.read().decode(), must(program, "manual"))
        self.check_sbom(read(top + f"/ramseal-{self.version}-linux-x86_64-collect.spdx.json"), read(program))

    def check_sbom(self, text, program):
        sums = {c["algorithm"]: c["checksumValue"] for c in json.loads(text)["files"][0]["checksums"]}
        self.assertEqual(sums["SHA256"], hashlib.sha256(program).hexdigest())

    @unittest.skipIf(OPTIONS, "left out")
    def test_the_windows_package(self):
        top = f"ramseal-{self.version}-windows-x86_64/"
        with zipfile.ZipFile(self.path("ramseal-{v}-windows-x86_64.zip")) as z:
            names = {n.removeprefix(top) for n in z.namelist()}
            self.assertLessEqual({"ramseal.exe", "ramseal-collect.exe", "LICENSE", "LICENCES.txt", "README.md",
                                  "WINDOWS-CHECKLIST.md", "WINDOWS-CHECKLIST.ps1"}, names)
            program = z.read(top + "ramseal.exe")
            self.check_sbom(z.read(top + top[:-1] + ".spdx.json"), program)
            self.check_sbom(z.read(top + top[:-1] + "-collect.spdx.json"), z.read(top + "ramseal-collect.exe"))
            self.assertTrue(z.read(top + "LICENCES.txt").startswith(f"ramseal {self.version} for Windows".encode()))
        self.assertEqual(program[:2], b"MZ")
        self.assertNotIn(self.folder.encode(), program)


if __name__ == "__main__":
    missing = [t for t in TOOLS if not shutil.which(t)]
    if missing or not os.path.exists(os.path.join(TREE, ".git")):
        print("not here: " + (" ".join(missing) or "a git checkout"))
        sys.exit(77)
    unittest.main(verbosity=2)
