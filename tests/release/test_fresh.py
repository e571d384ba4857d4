#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Both commands of the README on a Debian where nothing is installed: a root that debootstrap makes, with this tree in
it. build/demo as a whole, build/test without guests. Wants root, debootstrap, a mirror and 10 GiB; skipped where one is
not to be had. The root and its logs stay if something fails. Usage: test_fresh.py SUITE SOURCE-DIR FOLDER"""

import os
import re
import shutil
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

SUITE, TREE, FOLDER = sys.argv[1], *map(os.path.abspath, sys.argv[2:4])
del sys.argv[1:4]
ROOT = os.path.join(FOLDER, f"root-{SUITE}")
SKIPPED_EXIT = 77
GIB = 1 << 30
# A namespace of mounts of its own, so that nothing is left mounted. The root is a mount itself: what makes such
# namespaces in it wants that.
ENTER = """
mount --bind "$0" "$0"
mount -t proc proc "$0/proc"
mount -t sysfs -o ro sys "$0/sys"
mount --rbind /dev "$0/dev"
mount -t tmpfs -o mode=1777 tmp "$0/dev/shm"
exec chroot "$0" /bin/sh -c "$1"
"""
# Of the caller's there is nothing in it, least of all a locale.
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}


def output_of(*args):
    return subprocess.run(args, capture_output=True, text=True, check=True).stdout


def mirrors():
    """Of Debian and of its security updates, as this machine's apt has them; the latter may be None."""
    listed = output_of("apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI) $(CODENAME) $(COMPONENT)",
                       "Created-By: Packages")
    rows = [line.split() for line in listed.splitlines() if line.startswith("Debian ") and line.endswith(" main")]
    main = [uri for _, uri, codename, _ in rows if "-" not in codename]
    security = [uri for _, uri, codename, _ in rows if codename.endswith("-security")]
    return main[0] if main else None, security[0] if security else None


def obstacle():
    """Why there can be no such root, or ''."""
    if os.getuid():
        return "not root"
    for program in ("apt-get", "debootstrap", "unshare"):
        if not shutil.which(program, path=ENVIRONMENT["PATH"]):
            return f"no {program}"
    if subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True, check=False).returncode:
        return "no namespaces here"
    if shutil.disk_usage(FOLDER).free < 10 * GIB:
        return f"less than 10 GiB are free in {FOLDER}"
    mirror, _ = mirrors()
    if not mirror:
        return "apt knows no mirror of Debian"
    try:
        with urllib.request.urlopen(f"{mirror}dists/{SUITE}/Release", timeout=900):
            return ""
    except (urllib.error.URLError, OSError) as error:
        return f"the mirror has no {SUITE}: {error}"


def make_root():
    mirror, security = mirrors()
    shutil.rmtree(ROOT, ignore_errors=True)
    subprocess.run(["debootstrap", "--variant=minbase", SUITE, ROOT, mirror], stdin=subprocess.DEVNULL,
                   stdout=sys.stderr, check=True, env={**os.environ, "PATH": ENVIRONMENT["PATH"]})
    etc = os.path.join(ROOT, "etc")
    with open(os.path.join(etc, "apt/sources.list"), "w", encoding="ascii") as f:
        f.write(f"deb {mirror} {SUITE} main\ndeb {mirror} {SUITE}-updates main\n")
        if security:
            f.write(f"deb {security} {SUITE}-security main\n")
    # Proxies, and what else this machine needs to reach the mirror.
    with open(os.path.join(etc, "apt/apt.conf.d/00acquire"), "w", encoding="utf-8") as f:
        f.writelines(line + "\n" for line in output_of("apt-config", "dump", "Acquire").splitlines()
                     if not line.endswith(' "";'))
    shutil.copy("/etc/resolv.conf", etc)
    shutil.copytree(TREE, os.path.join(ROOT, "root/ramseal"), symlinks=True,
                    ignore=lambda at, names: {"out", ".git"} & set(names) if at == TREE else ())


class Fresh(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        make_root()

    def run_inside(self, command):
        """What it printed; a file beside the root has it, too."""
        log = f"{ROOT}-{command.split('/')[-1]}.log"
        with open(log, "w", encoding="utf-8") as f:
            code = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", ENTER, ROOT,
                                   f"cd /root/ramseal && {command}"], stdin=subprocess.DEVNULL, stdout=f,
                                  stderr=subprocess.STDOUT, env=ENVIRONMENT, check=False).returncode
        with open(log, encoding="utf-8", errors="replace") as f:
            said = f.read()
        self.assertEqual(code, 0, f"{log}: {said[-4000:]}")
        return said

    def test_both_commands(self):
        said = self.run_inside("build/demo")
        self.assertIn("missing packages: ", said)
        self.assertNotIn("built without network", said)
        self.assertRegex(said, r"Every hash in that container was checked")
        last = self.run_inside("RAMSEAL_WITHOUT=guests build/test").splitlines()[-1]
        self.assertRegex(last, r"^[1-9]\d{2,} passed, 0 failed, \d+ skipped$")
        print(f"note: {SUITE}: {last}")
        kernels = [name for name in os.listdir(os.path.join(ROOT, "boot")) if re.match(r"vmlinuz|initrd", name)]
        self.assertEqual(kernels, [], "a kernel was installed")
        shutil.rmtree(ROOT)


if __name__ == "__main__":
    why = obstacle()
    if why:
        print(f"skipped: {why}")
        sys.exit(SKIPPED_EXIT)
    unittest.main(verbosity=2)
