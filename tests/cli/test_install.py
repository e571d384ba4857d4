#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manual page, the libraries, and what `meson install` installs.
Usage: test_install.py RAMSEAL BUILD-DIR SOURCE-DIR"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

RAMSEAL = os.path.abspath(sys.argv.pop(1))
BUILD = os.path.abspath(sys.argv.pop(1))
TREE = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, os.path.join(TREE, "build"))
from linking import sources, third_parties  # noqa: E402
# Not in a program that is built with -Dnetwork=false.
NETWORK = ("c-ares", "libcurl", "Mbed TLS")


def run(*args, **more):
    return subprocess.run(args, capture_output=True, text=True, timeout=900, **more)


def ramseal(*args):
    r = run(RAMSEAL, *args)
    assert (r.returncode, r.stderr) == (0, ""), r
    return r.stdout


def commands():
    listed = ramseal("--help").split("General options:\n")[0]
    return re.findall(r"^  ([a-z-]+)", listed, re.M)


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.roff = ramseal("manual")
        # One long line per paragraph, no hyphens, no bold.
        r = run("groff", "-man", "-Tascii", "-P-cbou", "-rLL=1000n", "-rHY=0", input=cls.roff)
        cls.text = r.stdout

    def section(self, name, level=""):
        """What stands below a heading; those of commands are indented by three blanks."""
        parts = re.split(rf"^{level}([A-Za-z][A-Za-z -]*)$", self.text, flags=re.M)
        return dict(zip(parts[1::2], parts[2::2]))[name]

    def test_groff_has_nothing_to_warn_of(self):
        r = run("groff", "-man", "-Tutf8", "-ww", "-z", input=self.roff)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        wrong = run("groff", "-man", "-Tutf8", "-ww", "-z", input=self.roff + ".nonsense\n")
        self.assertIn("nonsense", wrong.stderr, "groff warns of nothing at all")

    def test_every_command_has_a_section_with_its_options(self):
        for c in commands():
            section = self.section(c, "   ")
            wanted = ramseal(c, "--help").split("General options:")[0]
            options = re.findall(r"^ +(?:-., )?--[a-z0-9-]+(?: \S+)?", wanted, re.M)
            for option in options:
                self.assertIn(option.strip(), section, c)

    def test_help_and_manual_say_the_same(self):
        def words(text):
            return re.sub(r"\s+", " ", text)

        for c in commands():
            section = words(self.section(c, "   "))
            parts = ramseal(c, "--help").split("\n\n", 1)[1]
            parts = re.sub(r"General options:\n(?:  .*\n)*", "", parts).replace("Options:\n", "")
            for paragraph in parts.split("\n\n"):
                # An option's help begins in a column of its own, a note's item after two blanks.
                for piece in re.split(r"\n(?=\S)|\n  (?=[ -]*\S)| {2,}(?=[^- ])", paragraph):
                    self.assertIn(words(piece).strip(), section, c)

    def test_exit_codes_and_general_options(self):
        listed = re.findall(r"^  (\d+)  (.*)$", ramseal("--help"), re.M)
        self.assertEqual(len(listed), 16)
        for code, text in listed:
            self.assertRegex(self.section("EXIT STATUS"), rf"(?m)^ +{code} +{re.escape(text)}$")
        self.assertIn("--log-json", self.section("GENERAL OPTIONS"))
        for name in ("ENVIRONMENT", "FILES", "EXAMPLES"):
            self.assertTrue(self.section(name).strip(), name)

    def test_examples_are_command_lines_of_ours(self):
        lines = re.findall(r"^ +ramseal ([a-z-]+) (.*)$", self.section("EXAMPLES"), re.M)
        self.assertGreater(len(lines), 3)
        for command, rest in lines:
            for option in re.findall(r"(?<!\S)--?[A-Za-z-]+", rest):
                self.assertRegex(ramseal(command, "--help"), rf"(?m)^ +.*{option}[, ]", command)


def table():
    """{library: (licence, package)} of THIRD-PARTY.md for this system."""
    return {name: (licence, package) for name, _, licence, package, _ in third_parties("linux")
            if name not in NETWORK or os.environ.get("RAMSEAL_NETWORK") != "0"}


def packages_of(archives):
    """The packages that these are from; of what build/libraries made, the source archives."""
    made = os.path.join(TREE, "out/libraries/linux/lib/lib")
    ret = {sources("linux")[a[len(made):-len('.a')]][0] for a in archives if a.startswith(made)}
    debians = [a for a in archives if not a.startswith(made)]
    return ret | {line.split(":")[0] for line in run("dpkg", "-S", *debians).stdout.splitlines()}


class Libraries(unittest.TestCase):
    def test_verbose_version_lists_the_libraries(self):
        for args in (("--version", "--verbose"), ("-v", "--version"), ("--version", "-v", "--bad")):
            lines = ramseal(*args).splitlines()
            self.assertIn("Network: " + ("no" if os.environ.get("RAMSEAL_NETWORK") == "0" else "yes"), lines)
            self.assertEqual(lines[0] + "\n", ramseal("--version"))
            listed = {name: licence for name, licence in
                      re.findall(r"(?m)^  (.+) \d[0-9.]*(?: \(Debian [^ ]+\))?: (.+)$", "\n".join(lines))}
            self.assertEqual(listed, {name: licence for name, (licence, _) in table().items()})

    @unittest.skipUnless(shutil.which("dpkg"), "only dpkg knows Debian's revisions")
    def test_verbose_version_has_debians_revisions(self):
        """A security update changes nothing else."""
        listed = dict(re.findall(r"(?m)^  (.+) \d[0-9.]* \(Debian ([^ ]+)\): ", ramseal("--version", "--verbose")))
        packages = {name: package for name, (_, package) in table().items() if ".tar." not in package}
        self.assertGreater(len(packages), 10)
        self.assertEqual(listed, {name: run("dpkg-query", "-W", "-f", "${Version}", package).stdout
                                  for name, package in packages.items()})

    @unittest.skipIf(os.environ.get("RAMSEAL_IS_STATIC") == "0", "built with a sanitizer")
    @unittest.skipUnless(shutil.which("dpkg"), "only dpkg knows whose an archive is")
    def test_they_are_what_the_linker_takes(self):
        """The executable linked once more; the linker names each archive that it takes from."""
        commands = run("ninja", "-t", "commands", "agent/ramseal", cwd=BUILD).stdout
        with tempfile.TemporaryDirectory() as d:
            again = commands.splitlines()[-1].replace(" -o agent/ramseal ", f" -o {d}/ramseal ")
            self.assertIn(d, again)
            r = run("sh", "-c", again + " -Wl,--trace", cwd=BUILD)
        self.assertEqual(r.returncode, 0, r.stderr)
        archives = {os.path.realpath(path) for path in re.findall(r"(?m)^\(?(/\S+?\.a)\b", r.stdout)}
        self.assertEqual(packages_of(archives), {package for _, package in table().values()})


class Newest(unittest.TestCase):
    """build/demo and build/release install the newest of what is linked statically (build/lib.sh)."""

    APT_CACHE = """#!/bin/sh
shift
for package; do
	case $package in
	libsodium-dev) installed=1.0-1 candidate=1.0-1+deb12u1 ;;
	libzstd-dev) installed=1.0-2 candidate='1.0-2~bpo' ;;
	zlib1g-dev) installed='(none)' candidate=3 ;;
	*) installed=1 candidate=1 ;;
	esac
	printf '%s:\\n  Installed: %s\\n  Candidate: %s\\n  Version table:\\n' "$package" "$installed" "$candidate"
done
"""
    LOG = '#!/bin/sh\necho "${0##*/} $*" >>"${0%/*}/log"\n'

    def need_newest(self, user):
        with tempfile.TemporaryDirectory() as d:
            for name, text in (("apt-cache", self.APT_CACHE), ("apt-get", self.LOG), ("sudo", "#!/bin/sh\nexit 1\n"),
                               ("id", f"#!/bin/sh\necho {user}\n")):
                path = os.path.join(d, name)
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
                os.chmod(path, 0o755)
            r = run("sh", "-euc", '. build/lib.sh; PATH=$1:$PATH; need_newest build', "sh", d, cwd=TREE)
            self.assertEqual(r.returncode, 0, r.stderr)
            with open(os.path.join(d, "log"), "a+", encoding="utf-8") as f:
                f.seek(0)
                return r.stdout, [line.split() for line in f]

    def test_what_is_older_is_upgraded(self):
        _, asked = self.need_newest(0)
        self.assertEqual(asked[0], ["apt-get", "-q", "update"])
        self.assertEqual([word for word in asked[-1] if word.endswith("-dev")], ["libsodium-dev"])
        self.assertIn("install", asked[-1])

    def test_who_may_not_install_is_told(self):
        said, asked = self.need_newest(1000)
        self.assertIn("apt offers newer versions of what is linked: libsodium-dev\n", said)
        self.assertEqual(asked, [])


class CheatSheet(unittest.TestCase):
    def setUp(self):
        with open(TREE + "/docs/CHEATSHEET.txt", encoding="ascii") as f:
            self.lines = f.read().splitlines()

    def test_it_is_one_page(self):
        self.assertLessEqual(len(self.lines), 60)
        self.assertLessEqual(max(map(len, self.lines)), 80)

    def test_its_commands_and_options_exist(self):
        known, seen = {c: ramseal(c, "--help") for c in commands()}, set()
        for line in self.lines:
            said = re.search(r"(?:^ .*  |ramseal-collect(?:\.exe)? )(%s)(?: |$)(.*)" % "|".join(known), line)
            if not said or said[1] == "check" and "changes nothing" in line:
                continue
            seen.add(said[1])
            for option in re.findall(r"(?<!\S)(--?[a-z-]+)", said[2]):
                if option != "--driver":  # Windows'
                    self.assertRegex(known[said[1]], rf"(?m)^ +(?:-., )?{option}\b", line)
        self.assertLessEqual(set("check acquire status stop seal verify info smear report process vad heap read mount "
                                 "export extract-file".split()), seen)

    def test_its_exit_codes_are_right(self):
        listed = dict(re.findall(r"^  (\d+) +(.*)$", ramseal("--help"), re.M))
        for line in self.lines:
            for code, text in re.findall(r"(?:^ {4}| {2,})(\d)  (\S+(?: \S+)*)", line):
                first = re.match("[a-z]+", text)[0]
                self.assertIn(first, re.findall("[a-z]+", listed[code]), line)


class Install(unittest.TestCase):
    def test_everything_goes_below_destdir(self):
        with tempfile.TemporaryDirectory() as d:
            r = run("meson", "install", "--no-rebuild", "-C", BUILD, "--destdir", d)
            self.assertEqual(r.returncode, 0, r.stderr)
            found = {os.path.join(at, name)[len(d):].replace("/usr/local", "", 1)
                     for at, _, names in os.walk(d) for name in names}
            for path in ("/bin/ramseal", "/share/man/man1/ramseal.1", "/share/doc/ramseal/LICENSE",
                         "/bin/ramseal-collect", "/share/man/man1/ramseal-collect.1",
                         "/share/doc/ramseal/docs/CHEATSHEET.txt",
                         "/share/ramseal/volatility3/ramseal.py", "/share/ramseal/volatility3/README.md",
                         "/share/bash-completion/completions/ramseal.bash",
                         "/share/zsh/site-functions/_ramseal",
                         "/share/fish/vendor_completions.d/ramseal.fish"):
                self.assertIn(path, found)
            for _, package in table().values():
                if os.path.exists(f"/usr/share/doc/{package}/copyright"):
                    self.assertIn(f"/share/doc/ramseal/licences/{package}/copyright", found)
                elif ".tar." in package:
                    self.assertTrue({f"/share/doc/ramseal/licences/{package}/{name}"
                                     for name in ("LICENSE", "COPYING")} & found, package)
            schemas = {os.path.basename(path) for path in glob.glob(TREE + "/formats/json/*.schema.json")}
            self.assertTrue(schemas)
            self.assertEqual({os.path.basename(path) for path in found if path.endswith(".schema.json")}, schemas)
            prefix = d + "/usr/local"
            self.assertEqual(run(prefix + "/bin/ramseal", "--version").stdout, ramseal("--version"))
            for path, *args in (("man/man1/ramseal.1", "manual"),
                                ("bash-completion/completions/ramseal.bash", "completion", "bash"),
                                ("zsh/site-functions/_ramseal", "completion", "zsh"),
                                ("fish/vendor_completions.d/ramseal.fish", "completion", "fish")):
                with open(os.path.join(prefix, "share", path)) as f:
                    self.assertEqual(f.read(), ramseal(*args), path)


if __name__ == "__main__":
    unittest.main(verbosity=2)
