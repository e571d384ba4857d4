#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The reader of read_rsz.py held against containers that are built by hand (write_rsz.py), and against
each rule of formats/SPEC.md broken by mutate.py: it has to give the reason of that very rule.
"""
import contextlib
import functools
import io
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.append(str(Path(__file__).resolve().parents[1] / "sim"))

import mutate  # noqa: E402
import read_rsz  # noqa: E402
from sampled import drawn  # noqa: E402
from write_rsz import (  # noqa: E402
    CLOSE, DATA, HOLE, INDEX, SKIPPED, UNREADABLE, ZERO, Rec, assemble, begin, chunk, split, stored_frame, stream)

PAGE = 4096
A, B, C = (letter * PAGE for letter in (b"A", b"B", b"C"))


@functools.cache
def sample():
    """Two streams; memory out of order, with every page state and a page captured twice."""
    return assemble([
        begin(b"by hand"),
        stream(0, 7, 0, b"manifest", b'{"a":1}'),
        chunk(0, [(0, 12)], content=b'{"begin":1}\n'),
        stream(1, 1, PAGE, b"memory"),
        chunk(1, [(0x5000, 2 * PAGE), (0x1000, 3 * PAGE)],
              [(1, DATA), (1, UNREADABLE, 5), (1, ZERO), (2, DATA)], A + B + C, end=1100),
        Rec(INDEX),
        chunk(1, [(0x3000, PAGE, 1, 1), (0x8000, 3 * PAGE)], [(2, ZERO), (1, SKIPPED, 1), (1, HOLE)]),
        chunk(0, [(12, 10)], content=b'{"end":1}\n'),
        Rec(INDEX),
        Rec(CLOSE)])


def run(data, *arguments):
    """What the command prints, what it says in its last line or on stderr, and its exit status."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        out, err = io.StringIO(), io.StringIO()
        argv = ["read_rsz.py", arguments[0], file.name, *arguments[1:]]
        with mock.patch("sys.argv", argv), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                read_rsz.main()
                status = 0
            except SystemExit as stop:
                status = stop.code
    return out.getvalue(), err.getvalue(), status


def verify(data):
    out, _, status = run(data, "verify")
    return out.strip(), status


class Good(unittest.TestCase):
    def test_a_container_made_by_hand_is_sealed(self):
        data = sample()
        self.assertEqual(verify(data), (f"sealed {data[-64:-32].hex()}", 0))

    def test_the_root_of_three_leaves_is_that_of_rfc_6962(self):
        def sha(data):
            return read_rsz.hashlib.sha256(data).digest()
        a, b, c = (sha(b"\0" + leaf) for leaf in (b"a", b"b", b"c"))
        self.assertEqual(read_rsz.merkle_root([a, b, c]), sha(b"\1" + sha(b"\1" + a + b) + c))

    def test_what_is_taken_apart_goes_together_again(self):
        self.assertEqual(assemble(*split(sample())), sample())

    def test_what_is_within_the_limits_is_sealed(self):
        for name, data in mutate.controls(sample()):
            with self.subTest(name):
                self.assertEqual(verify(data)[1], 0, verify(data)[0])


class Verdict(unittest.TestCase):
    def test_every_prefix_is_unsealed_or_cut_at_its_last_record(self):
        data = sample()
        ends = [0] + [end for end, _ in self.ends(data)]
        edges = {at + i for at in ends for i in (-1, 0, 1, 11, 12, 16)}
        for length in sorted(edges & set(range(len(data)))) + drawn(range(len(data)), 50, "prefixes"):
            last = max(end for end in ends if end <= length)
            word = "no container" if length < 12 else "unsealed" if length == last else "cut"
            self.assertEqual(verify(data[:length])[0].split(":")[0], f"{word} at {last}")

    def test_what_is_a_container(self):
        data = sample()
        zeroed = bytes(12) + data[12:]
        self.assertRegex(verify(zeroed)[0], "^damaged at 0: not a record: wrong magic")
        self.assertRegex(verify(bytes(152) + data[152:])[0], "^damaged at 0")
        second = self.ends(data)[0][0]
        for other in (b"", b"[", b"x" * 5000, zeroed[:second + 100],
                      zeroed[:second] + b"\0" + zeroed[second:]):
            self.assertRegex(verify(other)[0], "^no container at 0")

    def test_a_tail_that_is_no_record_is_not_cut(self):
        data = sample()[:-176]
        for tail in (b"h", b"hello", sample()[-176:-168] + b"RSX", bytes(41)):
            self.assertRegex(verify(data + tail)[0], f"^damaged at {len(data)}: ")

    def test_each_record_s_end_is_unsealed(self):
        data = sample()
        for end, kind in self.ends(data):
            if kind != CLOSE:
                self.assertEqual(verify(data[:end]), (f"unsealed at {end}: no CLOSE record", 1))

    def test_the_first_of_two_faults_is_named_though_payloads_are_checked_in_batches(self):
        recs, identity = split(sample())
        recs[2].frame = stored_frame(b'{"bogus":1}\n')
        recs[4].poke(56, "I", 1)
        recs[6].poke(14, "H", 1)
        out, status = verify(assemble(recs, identity))
        self.assertRegex(out, r"^damaged at \d+: wrong content SHA-256")
        self.assertEqual(status, 1)

    def test_a_flip_of_any_bit_is_found(self):
        data = bytearray(sample())
        for at in drawn(range(len(data)), 100, "bits"):
            data[at] ^= 1 << at % 8
            self.assertEqual(verify(data)[1], 1, f"byte {at}")
            data[at] ^= 1 << at % 8

    @staticmethod
    def ends(data):
        reader = read_rsz.Reader(io.BytesIO(data))
        return [(record.end, record.type) for record in reader.records()]


class Extract(unittest.TestCase):
    def extract(self, data, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out")
            _, err, status = run(data, "extract", *arguments, "-o", path)
            with open(path, "rb") as file:
                return file.read(), err, status

    def test_memory_lies_at_its_addresses_and_the_newest_capture_counts(self):
        zero, fill = bytes(PAGE), b"\xee" * PAGE
        got, _, status = self.extract(sample(), "memory", "--fill", "EE")
        self.assertEqual(status, 0)
        #               0      1      2   3      4      5   6      7      8      9      10
        self.assertEqual(got, zero + zero + B + zero + zero + A + fill + zero + zero + fill + zero)

    def test_a_newer_zero_page_hides_older_bytes(self):
        recs, identity = split(sample())
        without = assemble(recs[:6] + recs[7:], identity)
        self.assertEqual(self.extract(without, "memory")[0][0x3000:0x4000], C)
        self.assertEqual(self.extract(sample(), "memory")[0][0x3000:0x4000], bytes(PAGE))

    def test_a_plain_stream_is_its_bytes(self):
        self.assertEqual(self.extract(sample(), "manifest")[0], b'{"begin":1}\n{"end":1}\n')

    def test_a_cut_container_gives_what_came_before(self):
        got, err, status = self.extract(sample()[:-200], "manifest")
        self.assertTrue(got.startswith(b'{"begin":1}\n'))
        self.assertRegex(err, "^cut at ")
        self.assertEqual(status, 1)

    def test_no_such_stream_is_an_error(self):
        self.assertEqual(self.extract(sample(), "memoir")[2], "no such stream")


class List(unittest.TestCase):
    def test_streams_extents_states_and_times_are_shown(self):
        out, _, status = run(sample(), "list")
        self.assertEqual(status, 0)
        self.assertIn('stream 1: kind 1, page size 4096, "memory"', out)
        self.assertIn("0x5000-0x6fff pass 0, 2023-11-14T22:13:20.000000000Z"
                      " to 2023-11-14T22:13:20.000000100Z", out)
        self.assertIn("0x3000-0x3fff pass 1", out)
        self.assertIn("3 data, 3 zero, 1 unreadable, 1 skipped, 1 hole", out)


class Broken(unittest.TestCase):
    """One test for each rule: see below."""


def broken(name, reason):
    def test(self):
        out, status = verify(mutate.changed(sample(), mutate.RULES[name][1]))
        self.assertEqual(status, 1, f"{name} was accepted")
        self.assertTrue(re.search(reason, out), f"{name}: rejected, but for another reason: {out}")
    return test


for _name, (_reason, _) in mutate.RULES.items():
    setattr(Broken, "test_" + _name.replace("-", "_"), broken(_name, _reason))

if __name__ == "__main__":
    unittest.main()
