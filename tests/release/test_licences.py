#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ramseal --licences`: all texts that the libraries in the executable ask for, and what these ask to be said.
Usage: test_licences.py RAMSEAL BUILD-DIR SOURCE-DIR"""

import os
import re
import subprocess
import sys
import unittest

RAMSEAL, BUILD, TREE = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
NETWORK = ("c-ares", "libcurl", "Mbed TLS")
sys.path.insert(0, os.path.join(TREE, "build"))
from linking import third_parties  # noqa: E402
# The first words of each licence of the table, and its last ones.
TEXTS = {
    "LGPL-2.1-or-later": ("GNU LESSER GENERAL PUBLIC LICENSE\n                       Version 2.1, February 1999",
                          "That's all there is to it!"),
    "LGPL-3.0-or-later": ("GNU LESSER GENERAL PUBLIC LICENSE\n                       Version 3, 29 June 2007",
                          "permanent authorization for you to choose that version for the\nLibrary."),
    "GPL-3.0-or-later WITH GCC-exception-3.1": ("GCC RUNTIME LIBRARY EXCEPTION", "END OF TERMS AND CONDITIONS"),
    "Apache-2.0": ("Apache License\n                           Version 2.0, January 2004",
                   "limitations under the License."),
    "CPL-1.0": ("Common Public License", "Each party waives its rights to a jury trial in any resulting litigation."),
    "IPL-1.0": ("IBM Public License", "waives its rights to a jury trial in any resulting litigation."),
}
# Whose notices must be there: one holder of each library.
HOLDERS = ("Free Software Foundation", "The OpenSSL Project|OpenSSL", "Frank Denis", "Facebook", "Eric Biggers",
           "Jean-loup Gailly", "Joachim Metz", "Brian Carrier", "Red Hat", "Miklos Szeredi", "Petri Lehtinen")
NETWORK_HOLDERS = ("M.I.T.|Massachusetts Institute of Technology", "Daniel Stenberg", "Mbed TLS Contributors")


def ramseal(*args, **more):
    return subprocess.run([RAMSEAL, *args], capture_output=True, text=True, timeout=900, **more)


def source_of(package):
    """Where build/licences takes the texts from."""
    return os.path.join(TREE, "out/sources", package) if ".tar." in package else f"/usr/share/doc/{package}/copyright"


class Licences(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        r = ramseal("--licences")
        assert (r.returncode, r.stderr) == (0, ""), r
        cls.text = r.stdout
        cls.front = cls.text.split("=" * 96)[0]
        cls.network = "Network: yes" in ramseal("--version", "--verbose").stdout
        cls.linked = [row for row in third_parties("linux") if cls.network or row[0] not in NETWORK]
        # Some machines keep no copyright files. What is here must be in the text.
        cls.absent = [row for row in cls.linked if not os.path.exists(source_of(row[3]))]
        cls.linked = [row for row in cls.linked if row not in cls.absent]

    def test_every_library_has_its_texts(self):
        version = ramseal("--version").stdout.strip()
        self.assertTrue(self.text.startswith(version + " for Linux: licences\n"))
        titles = re.findall(r"(?m)^text (\d+): (\S+): ", self.text)
        self.assertEqual([int(n) for n, _ in titles], list(range(1, len(titles) + 1)))
        for library, _, licence, package, _ in self.linked:
            m = re.search(rf"(?m)^{re.escape(library)} \S+\n    licence: {re.escape(licence)}\n"
                          rf"    from: {re.escape(package)}, source: \S+\n    texts: ([\d, ]+)$", self.front)
            self.assertTrue(m, library)
            self.assertLessEqual(max(map(int, m[1].split(", "))), len(titles))
        self.assertEqual(self.front.count("MISSING"), len(self.absent))
        for library in () if self.network else NETWORK:
            self.assertNotIn(f"\n{library} ", self.front)

    def test_the_copyright_files_are_there_whole(self):
        for *_, package, _ in self.linked:
            if ".tar." not in package:
                with open(source_of(package), encoding="utf-8", errors="replace") as f:
                    wanted = re.sub(r"[ \t\r\f]+\n", "\n", f.read()).strip()
                self.assertTrue(wanted in self.text, package)

    def test_licences_and_notices(self):
        if self.absent:
            self.skipTest(f"the licence of {self.absent[0][3]} is not on this machine")
        for name, ends in TEXTS.items():
            for words in ends:
                pattern = re.escape(words).replace(r"\ ", r"\s+").replace("\\\n", r"\s+")
                self.assertTrue(re.search(pattern, self.text), name)
        for holder in HOLDERS + (NETWORK_HOLDERS if self.network else ()):
            self.assertTrue(re.search(rf"(?i)copyright.*(\n.*){{0,4}}({holder})", self.text), holder)

    def test_what_copyleft_licences_ask_to_be_said(self):
        words = re.sub(r"\s+", " ", self.front)
        # LGPL 2.1, section 6 and LGPL 3, section 4: notice, permission to change and to reverse engineer.
        self.assertIn("covers these libraries, and their use in ramseal: glibc, libewf, hivex, libfuse.", words)
        self.assertRegex(words, r"You may change them, link ramseal .* debug such changes")
        self.assertRegex(words, r"ramseal-\d+\.\d+\.\d+-relink-linux-x86_64\.tar\.xz")
        # CPL and IPL, section 3.
        for part in ("disclaim all warranties and conditions", "not liable for any damages",
                     "Its source is available from", "is offered by the authors of ramseal alone"):
            self.assertIn(part, words)

    def test_command_line(self):
        for args, code in ((("--licences", "--nonsense"), 0), (("acquire", "--licences"), 2), (("--licence",), 0)):
            self.assertEqual(ramseal(*args).returncode, code, args)
        self.assertIn("--licences", ramseal("--help").stdout)
        with open("/dev/full", "w", encoding="ascii") as full:
            r = subprocess.run([RAMSEAL, "--licences"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=900)
        self.assertEqual(r.returncode, 6)
        self.assertRegex(r.stderr, r"^ramseal: .*No space left on device\n$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
