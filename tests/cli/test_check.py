#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ramseal check: what it says is what acquire then does. Usage: test_check.py RAMSEAL"""
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

RAMSEAL = os.path.abspath(sys.argv.pop(1))
# -Dsimulator=false
needs_simulator = unittest.skipIf(os.environ.get("RAMSEAL_SIMULATOR") == "0", "built without simulated machines")
MIB = 1 << 20
RECIPIENT = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"


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
                              text=True, timeout=900, cwd=self.folder)

    def check(self, *args, code):
        """The JSON, after a look that nothing was written and that the text says the same."""
        before = sorted(os.listdir(self.folder))
        done = self.ramseal("check", "--json", *args)
        self.assertEqual(done.returncode, code, done.stderr)
        said = json.loads(done.stdout)
        starts = code == 0 or not any(f["stops"] for f in said["findings"])
        self.assertEqual((said["go"], said["exit_code"]), (starts, code))
        self.assertEqual(len(said["pagefile_list"]), said["pagefiles"])
        for one in said["pagefile_list"]:
            self.assertIn(one["number_origin"], ("none", "assumed", "known"), one)
        text = self.ramseal("check", *args)
        self.assertEqual(text.returncode, code, text.stderr)
        self.assertEqual(text.stdout.splitlines()[-1], "acquire would not start" if not starts else
                         "acquire would start, but would probably fill the disk" if code else "go")
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        return said

    def stops(self, said):
        return [f["what"] for f in said["findings"] if f["stops"]]

    def test_go(self):
        said = self.check(*self.source, "-o", "new.rsz", code=0)
        self.assertEqual((said["memory_bytes"], said["source"]["name"], said["output"]),
                         (64 * MIB, "file", "new.rsz"))
        self.assertEqual(said["probe"]["bytes"], 16 * MIB)
        self.assertGreater(said["probe"]["bytes_per_second"], 0)
        self.assertEqual(said["output_sample_bytes"], 16 * MIB)
        self.assertLess(said["output_estimate"], 2 * MIB)
        self.assertGreater(said["output_at_most"], 64 * MIB)
        self.assertGreater(said["output_room"], 0)
        self.assertEqual(said["maps"][0]["ranges"], [{"first": 0, "last": 64 * MIB - 1}])
        self.assertEqual(self.stops(said), [])
        self.assertEqual(self.ramseal("acquire", "-q", *self.source, "-o", "new.rsz").returncode, 0)

    def test_default_output_and_stdout(self):
        # Of an image as acquire has it: the image's name, not this machine's.
        self.assertRegex(self.check(*self.source, code=0)["output"], r"^memory-\d{8}T\d{6}Z\.rsz$")
        said = self.check(*self.source, "-o", "-", code=0)
        self.assertNotIn("output_room", said)

    @needs_simulator
    def test_a_simulated_machine_that_would_not_start(self):
        """Its time ends with it: what is said afterwards is said in ours."""
        self.assertEqual(self.stops(self.check("-s", self.MACHINE, "-o", "no/folder/x", code=6)), ["output"])

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to take a host's name")
    @needs_simulator
    def test_default_output_of_a_host_without_a_name(self):
        for name in ("(none)", ""):
            done = subprocess.run(
                ["unshare", "--uts", "sh", "-c", 'echo "$1" > /proc/sys/kernel/hostname; shift; exec "$@"',
                 "sh", name, RAMSEAL, "check", "--json", "-s", self.MACHINE],
                capture_output=True, text=True, timeout=900, cwd=self.folder)
            if done.returncode and "unshare" in done.stderr:
                self.skipTest("no namespaces here")
            self.assertRegex(json.loads(done.stdout)["output"], r"^unnamed-\d{8}T\d{6}Z\.rsz$")

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to mount")
    def test_kcore_is_masked(self):
        """As in a container: /dev/null over it, or systemd's empty file, in a namespace of its own."""
        masks = {"null": 'touch kcore; mount --bind /dev/null kcore', "empty": 'touch kcore; chmod 0 kcore',
                 "no mask": 'ln -s "$1/real/self/exe" kcore', "nothing": ":"}
        space = os.path.join(self.folder, "space")
        os.mkdir(space)
        for name, mask in masks.items():
            # Not every kernel has the file, and nobody can make one in a proc file system: the real one is
            # put elsewhere, with a name here for each of its own.
            done = subprocess.run(
                ["unshare", "--mount", "sh", "-ec", f'''
                mount -t tmpfs none "$1"; cp "$0" "$1/ramseal"; mkdir "$1/real"
                mount --bind /proc "$1/real"; mount -t tmpfs none /proc; cd /proc; ln -s "$1"/real/* .
                rm -f kcore; {mask}
                for source in auto kcore "file:$1/ramseal"; do
                    "$1/ramseal" check --json -s "$source" -o "$1/new.rsz" 2>"$1/errors" || true
                done''', RAMSEAL, space], capture_output=True, text=True, timeout=900, cwd=self.folder)
            if done.returncode and "unshare" in done.stderr:
                self.skipTest("no namespaces here")
            self.assertEqual(done.returncode, 0, done.stderr)
            with self.subTest(name):
                said = [json.loads(part + "}") for part in done.stdout.split("\n}\n")[:-1]]
                self.assertEqual(len(said), 3, done.stdout)
                found = [[f for f in one["findings"] if f["what"] == "kcore-masked"] for one in said]
                masked = name in ("null", "empty")
                self.assertEqual([len(f) for f in found], [masked, masked, False], found)
                for finding in (*found[0], *found[1]):
                    self.assertFalse(finding["stops"])
                    self.assertTrue(finding["text"].startswith(
                        "kcore is masked: this container is not privileged"), finding)

    def test_no_source(self):
        for source, code in (("linpmem:" + self.path("none"), 4), ("file:" + self.path("none"), None),
                             ("nonsense", 2)):
            with self.subTest(source):
                acquired = self.ramseal("acquire", "-q", "-s", source, "-o", "-").returncode
                self.assertIn(code, (None, acquired))
                said = self.check("-s", source, "-o", "new", code=acquired)
                self.assertEqual(self.stops(said)[0], "source")
                self.assertNotIn("probe", said)

    def test_encrypted(self):
        """The size is that of what is encrypted: a tag for each 64 KiB, and room for the end."""
        with open(self.path("recipients"), "w") as f:
            f.write(f"# one, twice\n{RECIPIENT}\n{RECIPIENT}\n")
        plain = self.check(*self.source, "-o", "new.rsz", code=0)
        said = self.check(*self.source, "-o", "new.rsz", "--recipients-file", "recipients", code=0)
        self.assertEqual((plain["recipients"], said["recipients"]), (0, 1))
        most = plain["output_at_most"]
        self.assertEqual(said["output_at_most"], most + most // 4096 + 2 * MIB)
        self.assertEqual(said["output_at_least"], plain["output_at_least"] + 2 * MIB)
        self.assertRegex(self.check(*self.source, "--recipient", RECIPIENT, code=0)["output"], r"Z\.rsz\.age$")
        text = self.ramseal("check", *self.source, "--recipient", RECIPIENT).stdout
        self.assertIn("encrypted: for 1 recipient; the size is that of what is encrypted", text)
        for name, notes in (("new.rsz", 1), ("new.rsz.age", 0)):
            to = (*self.source, "--recipient", RECIPIENT, "-o", name)
            note = f"{name}: will be encrypted, but its name does not end in .age\n"
            self.assertEqual(self.ramseal("check", *to).stdout.count(f"note: {note}"), notes)
            done = self.ramseal("acquire", *to)
            self.assertEqual((done.returncode, done.stderr.count(f"ramseal: {note}")), (0, notes), done.stderr)
            self.assertRegex(done.stderr, r" in .* [KM]iB, encrypted for 1 recipient, root [0-9a-f]{64}\n")
        for args, code in ((("--recipient", "age1"), 2), (("--recipients-file", "none"), 9)):
            done = self.ramseal("check", *self.source, *args)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), done.stderr)
            self.assertEqual(self.ramseal("acquire", *self.source, *args).returncode, code)

    def test_output_that_is_there(self):
        with open(self.path("old.rsz"), "w"):
            pass
        said = self.check(*self.source, "-o", "old.rsz", code=6)
        self.assertEqual(self.stops(said), ["output"])
        self.check(*self.source, "-o", "old.rsz", "--force", code=0)

    def test_output_that_cannot_be(self):
        for output in ("no/folder/x", "no/folder/", self.path("memory") + "/x"):
            with self.subTest(output):
                said = self.check(*self.source, "-o", output, "--force", code=6)
                self.assertEqual(self.stops(said), ["output"])
                self.assertEqual(self.ramseal("acquire", "-q", "-f", *self.source, "-o",
                                              output).returncode, 6)

    def acquired(self, *args):
        """The size of the container that acquire makes, and what it says."""
        done = self.ramseal("acquire", "-q", "-f", *args, "-o", "made.rsz")
        return os.path.getsize(self.path("made.rsz")), done

    def test_size_of_memory_of_every_kind(self):
        draw = random.Random(1)
        text = b"".join(b"%d of %d, " % (draw.getrandbits(9), draw.getrandbits(12)) for _ in range(400000))
        kinds = {"noise": draw.randbytes(32 * MIB), "zeros": bytes(32 * MIB), "text": (bytes(4096) + text * 16)[:32 * MIB],
                 "half": b"".join(draw.randbytes(4096) + bytes(4096) for _ in range(4096)),
                 "little": draw.randbytes(3 * 4096)}
        for kind, content in kinds.items():
            with self.subTest(kind):
                with open(self.path("memory"), "wb") as f:
                    f.write(content)
                said = self.check(*self.source, "-o", "new", code=0)
                size, done = self.acquired(*self.source)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertLess(size, said["output_at_most"])
                self.assertLess(size, said["output_estimate"] * 1.1 + MIB)
                self.assertGreater(size, said["output_estimate"] * 0.9 - MIB)
                stored, _ = self.acquired(*self.source, "--level", "store")
                self.assertLess(stored, said["output_at_most"])

    MACHINE = "sim:cohen2015,ram=64M,resident=8M,allocated=16M,trimmed=4M,others=4M,cache=2M,pagefile0=24M"

    @needs_simulator
    def test_page_files_are_those_that_acquire_takes(self):
        # The simulated machine has none, whatever this one has; or it offers its own.
        for spec, count, size in ((self.MACHINE, 0, 0), (self.MACHINE + ",live_files=1", 1, 24 * MIB)):
            with self.subTest(spec):
                said = self.check("-s", spec, "-o", "new", code=0)
                self.assertEqual((said["pagefiles"], said["pagefile_bytes"]), (count, size))
                made, done = self.acquired("-s", spec, "--level", "store")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertLess(made, said["output_at_most"])
                streams = json.loads(self.ramseal("info", "--json", "made.rsz").stdout)["streams"]
                self.assertEqual(sum(s["kind"] == "page file" for s in streams), count)
                self.assertEqual(self.check("-s", spec, "--no-pagefile", code=0)["pagefiles"], 0)
        said = self.check(*self.source, "-o", "new", code=0)
        self.assertEqual(said["pagefiles"], 0)

    @contextlib.contextmanager
    def disk(self, size):
        os.mkdir(self.path("disk"))
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", self.path("disk")],
                              capture_output=True)
        if made.returncode:
            self.skipTest("may not mount")
        try:
            yield
        finally:
            subprocess.run(["umount", self.path("disk")], check=True)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to mount")
    def test_room_that_may_not_do(self):
        """Told by both, and refused by neither: what does not compress ends on a full disk, sealed."""
        with open(self.path("memory"), "r+b") as f:
            f.write(os.urandom(48 * MIB))
        with self.disk(20 * MIB):
            said = self.check(*self.source, "-o", "disk/new", code=6)
            self.assertEqual((said["go"], said["fits"], self.stops(said)), (True, False, []))
            done = self.ramseal("check", *self.source, "-o", "disk/new")
            self.assertEqual(done.returncode, 6)
            self.assertTrue(done.stdout.endswith("\nacquire would start, but would probably fill the disk\n"), done.stdout)
            self.assertIs(self.check(*self.source, "-o", "disk/new", "--force", code=0)["fits"], False)
            memory = next(f for f in said["findings"] if f["what"] == "output-in-memory")
            self.assertIn("disk/new: is in this machine's memory (tmpfs)", memory["text"])
            note = next(f for f in said["findings"] if f["what"] == "room")
            self.assertRegex(note["text"], r"disk/new: has room for .*, may need about .* \(estimated from a sample\)")
            self.assertFalse(note["stops"])
            done = self.ramseal("acquire", "-q", *self.source, "-o", "disk/new")
            self.assertEqual(done.returncode, 6)
            self.assertRegex(done.stderr, r"^ramseal: warning: disk/new: has room for .* if nothing compresses\n"
                                          r"ramseal: acquire: disk/new: write: .*; sealed, but without")
            self.assertEqual(os.listdir(self.path("disk")), ["new"])
            self.assertNotIn("has room", self.ramseal("acquire", "-q", "-f", *self.source, "-o", "disk/new").stderr)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to mount")
    def test_room_for_nothing(self):
        with self.disk(MIB // 4):
            said = self.check(*self.source, "-o", "disk/new", code=6)
            self.assertEqual(self.stops(said), ["room"])
            self.assertEqual(self.ramseal("acquire", "-q", *self.source, "-o", "disk/new").returncode, 6)
            self.assertEqual(os.listdir(self.path("disk")), [])
            said = self.check(*self.source, "-o", "disk/new", "--force", code=0)
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
