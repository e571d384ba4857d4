#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The executable's own bytes: the same from whatever folder, position-independent, and without what is not used.
Usage: test_executable.py RAMSEAL BUILD-DIR SOURCE-DIR"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

RAMSEAL, BUILD, TREE = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
STATIC = os.environ.get("RAMSEAL_IS_STATIC") != "0"
CODE = ("formats", "driver-interface", "tsk-extract", "agent")
# Of each part one, with assertions (__FILE__), or with a header that the build makes.
SAMPLE = ("formats/rsz/merkle.c", "formats/rsz/rsz_writer.c", "driver-interface/kcore.c", "tsk-extract/mft.c",
          "agent/main.c", "agent/collect/order/guided.c")


def output_of(*args):
    return subprocess.run(args, capture_output=True, text=True, timeout=900, check=True).stdout


def read(path):
    with open(path, "rb") as f:
        return f.read()


class Folders(unittest.TestCase):
    @unittest.skipUnless(STATIC, "built with a sanitizer, which keeps the paths of its own reports")
    def test_the_executable_names_no_folder_of_the_build(self):
        data = read(RAMSEAL)
        for path in (TREE, BUILD, os.path.realpath(TREE)):
            self.assertNotIn(path.encode() + b"/", data)

    def test_objects_are_the_same_from_another_folder(self):
        """Compiled once more where everything is different, and compared with the build's own."""
        with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as f:
            commands = {os.path.relpath(os.path.join(BUILD, c["file"]), TREE): c for c in json.load(f)
                        if "/tests/" not in c["output"] and not c["output"].startswith("tests/")}
        with tempfile.TemporaryDirectory() as d:
            tree = os.path.join(d, "a folder of another name and depth".replace(" ", "/"), "tree")
            build = os.path.join(tree, os.path.relpath(BUILD, TREE))
            for part in CODE:
                shutil.copytree(os.path.join(TREE, part), os.path.join(tree, part), copy_function=shutil.copyfile)
            os.makedirs(os.path.join(build, "agent"))
            shutil.copyfile(os.path.join(BUILD, "agent/linked.h"), os.path.join(build, "agent/linked.h"))
            libraries = os.path.join(TREE, "out/libraries")
            for source in SAMPLE:
                c = commands[source]
                os.makedirs(os.path.join(build, os.path.dirname(c["output"])), exist_ok=True)
                # The libraries stay where they are.
                command = c["command"].replace(libraries, "\0").replace(TREE, tree).replace("\0", libraries)
                subprocess.run(["sh", "-c", "umask 077; " + command], cwd=build, check=True, timeout=900,
                               env={**os.environ, "LC_ALL": "C", "TZ": "Asia/Kathmandu"})
                self.assertEqual(read(os.path.join(build, c["output"])), read(os.path.join(BUILD, c["output"])),
                                 source)


    def test_objects_are_marked_for_control_flow_enforcement(self):
        """The executable itself is, once every static library of Debian is: SECURITY.md."""
        with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as f:
            outputs = {os.path.relpath(os.path.join(BUILD, c["file"]), TREE): c["output"] for c in json.load(f)
                       if not c["output"].startswith("tests/")}
        for source in SAMPLE:
            self.assertRegex(output_of("readelf", "-Wn", os.path.join(BUILD, outputs[source])), r"IBT, SHSTK", source)


@unittest.skipUnless(STATIC, "built with a sanitizer")
class Shape(unittest.TestCase):
    def test_it_is_static_and_position_independent(self):
        self.assertRegex(output_of("readelf", "-Wh", RAMSEAL), r"Type: +DYN ")
        segments = output_of("readelf", "-Wl", RAMSEAL)
        self.assertNotIn("INTERP", segments)
        self.assertRegex(segments, r"GNU_STACK .* RW +0x")
        self.assertIn("GNU_RELRO", segments)
        self.assertRegex(output_of("readelf", "-Wd", RAMSEAL), r"FLAGS_1.* NOW PIE")

    def mapped(self, p):
        """Where the program lies; execve() closes Popen's pipe before it maps anything."""
        deadline = time.monotonic() + 900
        while time.monotonic() < deadline and p.poll() is None:
            with open(f"/proc/{p.pid}/maps", encoding="utf-8") as f:
                for line in f:
                    if line.rstrip().endswith("/ramseal"):
                        return line.split("-")[0]
            time.sleep(0.01)
        return None

    def test_addresses_differ_from_run_to_run(self):
        """The kernel may be told not to; then there is nothing to be seen."""
        with open("/proc/sys/kernel/randomize_va_space", encoding="ascii") as f:
            if f.read().strip() == "0":
                self.skipTest("address space layout randomisation is off")
        seen = set()
        for _ in range(3):
            r, w = os.pipe()  # it waits for its input, in the meantime its map can be read
            with subprocess.Popen([RAMSEAL, "verify", "-"], stdin=r, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE) as p:
                os.close(r)
                seen.add(self.mapped(p))
                os.close(w)
                p.communicate(timeout=900)
        self.assertGreater(len(seen - {None}), 1, seen)

    def names(self):
        """Those of the functions and data that are in it."""
        return [line.split()[-1] for line in output_of("nm", "--defined-only", RAMSEAL).splitlines()]

    def test_no_module_of_the_name_service_switch_can_be_loaded(self):
        """glibc's functions for users, hosts and services open the host's libnss_*.so, even in a static program."""
        names = self.names()
        self.assertIn("__libc_start_main", names)
        self.assertEqual([n for n in names if re.match(r"_*nss_", n)], [])

    def test_of_libtsk_only_ntfs_is_linked(self):
        names = self.names()
        self.assertIn("ntfs_open", names)
        others = {n for n in names if re.match(r"(ext2fs|exfatfs|fatxxfs|ffs|hfs|iso9660|yaffs|yaffsfs|apfs)_", n)}
        self.assertLessEqual({n for n in others if not re.fullmatch(r"[a-z0-9]+_open(_auto_detect)?", n)}, set())
        # What the names left are, is ours: it does nothing.
        sizes = {line.split()[-1]: int(line.split()[1], 16) for line in
                 output_of("nm", "-S", "--defined-only", RAMSEAL).splitlines() if len(line.split()) == 4}
        for name in others:
            self.assertLess(sizes[name], 16, name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
