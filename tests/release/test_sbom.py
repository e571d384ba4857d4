#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The SBOM that build/sbom writes: well-formed SPDX 2.3, and about this executable. With a schema of SPDX's in
$RAMSEAL_TEST_DATA/spdx-schema-2.3.json it is checked against that, too.
Usage: test_sbom.py RAMSEAL BUILD-DIR SOURCE-DIR"""

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import unittest

RAMSEAL, BUILD, TREE = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
DATA = os.environ.get("RAMSEAL_TEST_DATA", os.path.join(TREE, "../shared/data"))
SCHEMA = os.path.join(DATA, "spdx-schema-2.3.json")
sys.path.insert(0, os.path.join(TREE, "build"))
from linking import third_parties  # noqa: E402
# SPDX 2.3, clauses 6 to 8 and 11: what each must have.
REQUIRED = {
    "document": ("spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo"),
    "packages": ("name", "SPDXID", "downloadLocation", "filesAnalyzed", "versionInfo", "licenseConcluded",
                 "licenseDeclared", "copyrightText"),
    "files": ("fileName", "SPDXID", "checksums", "licenseConcluded", "copyrightText"),
    "relationships": ("spdxElementId", "relationshipType", "relatedSpdxElement"),
}
# Identifiers of the SPDX licence list and its exceptions that may be there.
LICENCES = {"Apache-2.0", "LGPL-2.0-or-later", "LGPL-2.1-only", "LGPL-2.1-or-later", "LGPL-3.0-or-later",
            "GPL-2.0-only", "GPL-2.0-or-later", "GPL-3.0-or-later", "GCC-exception-3.1", "ISC", "BSD-3-Clause", "MIT",
            "Zlib", "CPL-1.0", "IPL-1.0", "curl", "NOASSERTION"}


class Sbom(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        r = subprocess.run([os.path.join(TREE, "build/sbom"), "linux", BUILD, RAMSEAL, "ramseal-test", "1.2.3", "abc"],
                           capture_output=True, text=True, timeout=900, check=False,
                           env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
        assert r.returncode == 0, r.stderr
        cls.sbom = json.loads(r.stdout)
        cls.packages = {p["name"]: p for p in cls.sbom["packages"]}

    def test_required_members(self):
        for name in REQUIRED["document"]:
            self.assertIn(name, self.sbom)
        for part in ("packages", "files", "relationships"):
            self.assertTrue(self.sbom[part])
            for one in self.sbom[part]:
                for name in REQUIRED[part]:
                    self.assertIn(name, one, one)
        self.assertEqual(self.sbom["spdxVersion"], "SPDX-2.3")
        self.assertEqual(self.sbom["creationInfo"]["created"], "2023-11-14T22:13:20Z")

    def test_identifiers_are_unique_and_known(self):
        ids = [e["SPDXID"] for e in [self.sbom, *self.sbom["packages"], *self.sbom["files"]]]
        self.assertEqual(len(set(ids)), len(ids))
        for one in ids:
            self.assertRegex(one, r"^SPDXRef-[A-Za-z0-9.-]+$")
        for r in self.sbom["relationships"]:
            self.assertLessEqual({r["spdxElementId"], r["relatedSpdxElement"]}, set(ids))
        self.assertEqual({r["relatedSpdxElement"] for r in self.sbom["relationships"]
                          if r["relationshipType"] == "DESCRIBES"}, {"SPDXRef-ramseal"})

    def test_licences_are_of_the_list(self):
        for one in [*self.sbom["packages"], *self.sbom["files"]]:
            words = set(re.split(r" (?:AND|OR|WITH) ", one["licenseConcluded"].replace("(", "").replace(")", "")))
            self.assertLessEqual(words, LICENCES)

    def test_it_is_of_this_executable(self):
        with open(RAMSEAL, "rb") as f:
            data = f.read()
        sums = {c["algorithm"]: c["checksumValue"] for c in self.sbom["files"][0]["checksums"]}
        self.assertEqual(sums, {"SHA1": hashlib.sha1(data).hexdigest(), "SHA256": hashlib.sha256(data).hexdigest()})
        self.assertIn(sums["SHA256"], self.sbom["documentNamespace"])

    def test_it_has_what_the_executable_says_it_has(self):
        said = subprocess.run([RAMSEAL, "--version", "--verbose"], capture_output=True, text=True, timeout=900,
                              check=True).stdout
        libraries = re.findall(r"(?m)^  (.+) \d[0-9.]*: (.+)$", said)
        self.assertGreater(len(libraries), 10)
        linked = {r["relatedSpdxElement"] for r in self.sbom["relationships"] if r["relationshipType"] == "STATIC_LINK"}
        self.assertEqual({p["name"] for p in self.sbom["packages"] if p["SPDXID"] in linked}, {n for n, _ in libraries})
        for name, licence in libraries:
            self.assertEqual(self.packages[name]["licenseDeclared"], licence)

    def test_it_names_the_compiler_of_this_system(self):
        used = {r["spdxElementId"] for r in self.sbom["relationships"] if r["relationshipType"] == "BUILD_TOOL_OF"}
        names = " ".join(p["name"] for p in self.sbom["packages"] if p["SPDXID"] in used)
        version = subprocess.run(["gcc", "-dumpversion"], capture_output=True, text=True, timeout=900, check=True)
        self.assertRegex(names, rf"\bgcc-{version.stdout.split('.')[0].strip()}\b")

    def test_where_the_libraries_are_from(self):
        for name, _, _, owner, _ in third_parties("linux"):
            package = self.packages.get(name)
            if not package:
                continue
            locator = package["externalRefs"][0]["referenceLocator"]
            if ".tar." in owner:
                self.assertRegex(locator, r"^pkg:generic/.*checksum=sha256:[0-9a-f]{64}$")
            else:
                distro = platform.freedesktop_os_release()["VERSION_CODENAME"]
                self.assertRegex(locator, rf"^pkg:deb/debian/{re.escape(owner)}@[^ ]+\?arch=\S+&distro={distro}$")
            self.assertRegex(package["sourceInfo"], r"lib\S+\.a SHA-256 [0-9a-f]{64}")

    @unittest.skipUnless(os.path.exists(SCHEMA), "the schema of SPDX is not here")
    def test_schema(self):
        import jsonschema
        with open(SCHEMA, encoding="utf-8") as f:
            jsonschema.Draft201909Validator(json.load(f)).validate(self.sbom)


if __name__ == "__main__":
    unittest.main(verbosity=2)
