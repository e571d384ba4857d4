#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Break the rules of formats/SPEC.md one at a time.

    mutate.py IN.rsz OUTDIR

writes OUTDIR/bad-NAME.rsz for each rule, which a reader MUST reject, and OUTDIR/good-NAME.rsz: the
same machinery used within the rules, up to their limits, which a reader has to call sealed. All
sums, places, INDEX entries and the root are repaired, so that only the rule itself finds the fault.

RULES maps a name to (the reason read_rsz.py gives, a function). The function changes the list of
records in place; if it returns a function, that one changes the assembled bytes.
"""
import os
import re
import struct
import sys

from write_rsz import (BEGIN, CHUNK, CLOSE, DATA, HOLE, INDEX, MONO, SKIPPED, STREAM, UNREADABLE, ZERO, Rec,
                       assemble, begin, block, chunk, merkle, split, stored_frame, stream)

RULES, CONTROLS = {}, {}
PAGE, MIB = 4096, 1 << 20
A, B = b"A" * PAGE, b"B" * PAGE
ONE = {"extents": [(0, PAGE)], "runs": [(1, ZERO)]}            # a chunk of one page of zeros


def rule(reason):
    """For a function: it breaks the rule of its own name."""
    def note(change):
        bad(change.__name__.replace("_", "-"), reason, change)
        return change
    return note


def control(change):
    CONTROLS[change.__name__.replace("_", "-")] = change
    return change


def bad(name, reason, change):
    assert name not in RULES, name
    RULES[name] = (reason, change)


def find(recs, kind):
    return next(i for i, rec in enumerate(recs) if rec.type == kind)


def find_last(recs, kind):
    return len(recs) - 1 - find(recs[::-1], kind)


def insert(recs, *new):
    """Before the last INDEX, so that it is listed there."""
    at = find_last(recs, INDEX)
    recs[at:at] = new


def streams(recs):
    return sum(rec.type == STREAM for rec in recs)


def with_stream(recs, kind, make):
    """Declare a stream of this kind and put the records of make(its number) behind it."""
    number = streams(recs)
    insert(recs, stream(number, kind, 4096 if kind < 6 else 0, b"mutated %d" % number), *make(number))


def bad_chunk(name, reason, kind=5, **fields):
    bad(name, reason, lambda recs: with_stream(recs, kind, lambda n: [chunk(n, **fields)]))


def bad_stream(name, reason, /, **fields):
    bad(name, reason, lambda recs: insert(recs, stream(streams(recs), **{"name": b"mutated", **fields})))


def good(name, kind=5, **fields):
    CONTROLS[name] = lambda recs: with_stream(recs, kind, lambda n: [Rec(INDEX), chunk(n, **fields)])


def poke(name, reason, kind, offset, layout, value):
    """In the first record of that kind, set a header field and repair the digest."""
    bad(name, reason, lambda recs: recs[find(recs, kind)].poke(offset, layout, value))


def tweak(name, reason, kind, change):
    """In the last record of that kind, change the body and content that assemble() worked out."""
    def apply(recs):
        recs[find_last(recs, kind)].tweak = change
    bad(name, reason, apply)


# Section 2: the shape ---------------------------------------------------------------------------

bad("no-begin", "BEGIN is record 0", lambda recs: recs.pop(0))
bad("begin-twice", "BEGIN is record 0", lambda recs: insert(recs, begin()))
bad("no-close", "unsealed", lambda recs: recs.pop())
bad("empty-file", "no container", lambda recs: recs.clear())
bad("chunk-before-stream", "not declared", lambda recs: insert(
    recs, chunk(streams(recs), [(0, PAGE)], [(1, ZERO)]), stream(streams(recs), name=b"late")))
bad("close-twice", "behind CLOSE", lambda recs: recs.append(Rec(CLOSE)))
bad("chunk-behind-close", "behind CLOSE", lambda recs: recs.append(chunk(0, **ONE)))
bad("itself-behind-close", "behind CLOSE", lambda recs: lambda data: data + data)
bad("its-own-name-behind-close", "behind CLOSE", lambda recs: lambda data: data + data[:32])
bad("foreign-skippable-frame", "wrong magic",
    lambda recs: insert(recs, Rec(raw=struct.pack("<II", 0x184D2A50, 4) + b"note")))
bad("foreign-data-frame", "wrong magic", lambda recs: insert(recs, Rec(raw=stored_frame(b""))))
bad("same-magic-other-frame", "wrong mark",
    lambda recs: insert(recs, Rec(raw=struct.pack("<II", 0x184D2A5B, 120) + bytes(120))))
bad("zeros-between", "wrong magic", lambda recs: insert(recs, Rec(raw=bytes(4096))))
bad("ends-in-foreign-bytes", "wrong magic", lambda recs: recs.__setitem__(-1, Rec(raw=b"junk")))
bad("cut-close", "cut", lambda recs: lambda data: data[:-1])
bad("cut-close-early", "cut", lambda recs: lambda data: data[:-170])
bad("cut-magic", "cut", lambda recs: lambda data: data[:-173])


@rule("cut")
def cut_payload(recs):
    del recs[find_last(recs, INDEX) + 1:]
    return lambda data: data[:-1]


@rule("cut")
def cut_before_payload(recs):
    """The header is whole, the payload not there at all."""
    del recs[find_last(recs, INDEX) + 1:]
    return lambda data: data[:data.rfind(b"RSZ\x01") - 8 + 144]


# Section 3: the header --------------------------------------------------------------------------

poke("magic", "wrong magic", STREAM, 0, "I", 0x184D2A5A)
poke("mark", "wrong mark", STREAM, 8, "B", ord("r"))
poke("mark-version-2", "wrong mark", STREAM, 11, "B", 2)
poke("type-0", "unknown record type", STREAM, 12, "H", 0)
poke("type-6", "unknown record type", STREAM, 12, "H", 6)
poke("type-high-byte", "unknown record type", STREAM, 12, "H", 0x102)
poke("reserved-14", "reserved header", STREAM, 14, "H", 1)
poke("reserved-60", "reserved header", STREAM, 60, "I", 1 << 31)
# Half of an identity, which is drawn: one byte would be right in one of 256 runs.
poke("other-container", "another container", STREAM, 24, "Q", 0xEE)
poke("other-container-in-close", "another container", CLOSE, 16, "Q", 0xEE)
poke("sequence-skips", "sequence is not", STREAM, 32, "Q", 2)
poke("sequence-repeats", "sequence is not", STREAM, 32, "Q", 0)
poke("sequence-high-word", "sequence is not", STREAM, 32, "Q", 1 << 32 | 1)
poke("begin-sequence", "sequence is not", BEGIN, 32, "Q", 1)
poke("offset", "says it stands at", STREAM, 40, "Q", 0)
poke("offset-high-word", "says it stands at", STREAM, 44, "I", 1)
poke("begin-offset", "says it stands at", BEGIN, 40, "Q", 1)
poke("size-0", "header length", STREAM, 4, "I", 0)
poke("size-huge", "header length", STREAM, 4, "I", 0xFFFFFFFF)
poke("content-without-stored", "stored and content", STREAM, 52, "I", 1)
poke("crc-without-payload", "sums without payload", STREAM, 56, "I", 1)
poke("sha256-without-payload", "sums without payload", STREAM, 95, "B", 1)
for _name, _kind, _limit in (("begin", BEGIN, 4096), ("index", INDEX, 144), ("close", CLOSE, 176)):
    poke(f"size-above-{_name}", "header length", _kind, 4, "I", _limit + 1 - 8)


def _late(name, kind, offset):
    def flip(recs):
        recs[find(recs, kind)].late = [(offset, 0x10)]
    bad(name, "header digest", flip)


_late("digest-begin", BEGIN, 110)
_late("digest-stream", STREAM, 118)
_late("digest-chunk", CHUNK, 113)
_late("digest-index", INDEX, 65)
_late("digest-close", CLOSE, 107)
bad("digest-itself", "header digest", lambda recs: lambda data: data[:-1] + bytes([data[-1] ^ 1]))


def bad_payload(name, reason, frame, poked=None, value=0):
    """A chunk of the data page A whose payload is this frame. Its CRC-32 is right, but for a poke."""
    def make(number):
        rec = chunk(number, [(0, PAGE)], [(1, DATA)], A, frame)
        return [rec.poke(poked, "I", value) if poked else rec]
    bad(name, reason, lambda recs: with_stream(recs, 5, make))


def frame_of(descriptor, fields, *blocks):
    return struct.pack("<IB", 0xFD2FB528, descriptor) + fields + b"".join(blocks)


_SIZE = struct.pack("<I", PAGE)
_RAW = block(0, PAGE, A, 1)
bad_payload("crc", "wrong payload CRC", stored_frame(A), 56, 0x12345678)
bad_payload("crc-0", "wrong payload CRC", stored_frame(A), 56, 0)
bad_payload("sha256", "wrong content SHA-256", stored_frame(A), 64, 0)
bad_payload("content-changed", "wrong content SHA-256", stored_frame(B))
bad_payload("stored-without-content", "stored and content", stored_frame(A), 52, 0)
bad_payload("frame-is-skippable", "not a zstd data frame", struct.pack("<II", 0x184D2A5B, PAGE) + A)
bad_payload("frame-is-text", "not a zstd data frame", A)
bad_payload("frame-states-no-size", "not state its content size", frame_of(0x00, b"\x50", _RAW))
bad_payload("frame-states-more", "another content size", frame_of(0xA0, struct.pack("<I", PAGE + 1), _RAW))
bad_payload("frame-states-less", "another content size", frame_of(0xA0, struct.pack("<I", PAGE - 1), _RAW))
bad_payload("frame-dictionary", "dictionary", frame_of(0xA1, b"\7" + _SIZE, _RAW))
bad_payload("frame-dictionary-0", "dictionary", frame_of(0xA1, b"\0" + _SIZE, _RAW))
bad_payload("frame-reserved-bit", "reserved bit", frame_of(0xA8, _SIZE, _RAW))
bad_payload("frame-window-32-mib", "window", frame_of(0x80, bytes([15 << 3]) + _SIZE, _RAW))
bad_payload("frame-window-2-tib", "window", frame_of(0x80, b"\xff" + _SIZE, _RAW))
bad_payload("frame-halves", "another content size", stored_frame(A[:2048]) + stored_frame(A[2048:]))
bad_payload("frame-and-empty-frame", "exactly one frame", stored_frame(A) + stored_frame(b""))
bad_payload("frame-and-skippable", "exactly one frame", stored_frame(A) + struct.pack("<II", 0x184D2A50, 0))
bad_payload("frame-and-byte", "exactly one frame", stored_frame(A) + b"\0")
bad_payload("frame-without-last-block", "has no end", frame_of(0xA0, _SIZE, block(0, PAGE, A, 0)))
bad_payload("frame-cut", "exactly one frame", stored_frame(A)[:-1])
bad_payload("frame-block-type-3", "does not unpack", frame_of(0xA0, _SIZE, block(3, PAGE, A, 1)))
bad_payload("frame-unpacks-to-less", "does not unpack", frame_of(0xA0, _SIZE, block(0, 4095, A[:4095], 1)))
bad_payload("frame-unpacks-to-more", "does not unpack", frame_of(0xA0, _SIZE, block(0, 4097, A + b"A", 1)))
bad_payload("frame-bomb", "does not unpack",
            frame_of(0xA0, _SIZE, block(1, 1 << 17, b"A", 0) * 100_000, block(1, 1, b"A", 1)))
bad_payload("frame-checksum", "does not unpack", frame_of(0xA4, _SIZE, _RAW, b"\0\0\0\0"))
bad_payload("frame-stored-above-limit", "too large",
            frame_of(0xA0, _SIZE, block(0, 0, b"", 0) * (17 * MIB // 3), _RAW))
bad_chunk("content-above-limit", "too large", kind=6, extents=[(0, 16 * MIB + 1)], content=A * 4096 + b"A",
          frame=frame_of(0xA0, struct.pack("<I", 16 * MIB + 1),
                         block(1, 1 << 17, b"A", 0) * 128, block(1, 1, b"A", 1)))


def _payload(name, kind):
    def change(recs):
        rec = recs[find(recs, kind)]
        rec.content, rec.frame = A, stored_frame(A)
    bad(name, "payload on a record that has none", change)


def _longer(name, reason, kind):
    def change(recs):
        recs[find(recs, kind)].tweak = lambda body, content: (body + bytes(8), content)
    bad(name, reason, change)


for _name, _kind in (("begin", BEGIN), ("stream", STREAM), ("close", CLOSE)):
    _payload(f"payload-on-{_name}", _kind)
    _longer(f"longer-{_name}", "header length is not" if _kind != CLOSE else "out of bounds", _kind)
_longer("longer-chunk", "header length is not", CHUNK)
_longer("longer-index", "out of bounds", INDEX)
tweak("shorter-index", "header length is not", INDEX, lambda body, content: (body[:-4], content))
tweak("shorter-close", "header length is not", CLOSE, lambda body, content: (body[:-4], content))


# Section 4: BEGIN -------------------------------------------------------------------------------

def _begin(name, reason, **fields):
    def change(recs):
        recs[0] = begin(**fields)
    bad(name, reason, change)


_begin("begin-version-0", "unknown version", version=0)
_begin("begin-version-2", "unknown version", version=2)
_begin("begin-text-too-long", "out of bounds", text=b"t" * 3945)
_begin("begin-text-length", "header length is not", text=b"text", length=3)
_begin("begin-text-length-huge", "header length is not", text=b"text", length=0xFFFFFFFC)
_begin("begin-text-not-utf8", "not UTF-8", text=b"\xff\xfe")


# Section 5: STREAM ------------------------------------------------------------------------------

bad("stream-number-skips", "stream number", lambda recs: insert(recs, stream(streams(recs) + 1)))
bad("stream-number-repeats", "stream number", lambda recs: insert(recs, stream(0)))
bad_stream("page-size-512", "page size 512", page_size=512)
bad_stream("page-size-8192", "page size 8192", page_size=8192, kind=99)
for _kind in range(1, 9):
    bad_stream(f"page-size-of-kind-{_kind}", "not its kind's", kind=_kind,
               page_size=0 if _kind < 6 else 4096)
bad_stream("name-empty", "name length", name=b"")
bad_stream("name-too-long", "name length", name=b"n" * 4097)
bad_stream("metadata-too-long", "metadata length", metadata=b"{" + b" " * 65495 + b"}")
bad_stream("stream-reserved", "reserved stream", reserved=1)
bad_stream("name-not-utf8", "not UTF-8", name=b"/tmp/\xe9")
bad_stream("name-surrogate", "not UTF-8", name=b"\xed\xa0\x80")
bad_stream("name-overlong", "not UTF-8", name=b"\xc0\xaf")
bad_stream("metadata-not-utf8", "not UTF-8", metadata=b'{"a":"\xff"}')
bad("name-twice", "not unique", lambda recs: insert(
    recs, *[stream(streams(recs) + i, name=b"mutated twice") for i in range(2)]))


@rule("more than 4096 streams")
def streams_4097(recs):
    add_streams(recs, 4097)


def add_streams(recs, total):
    for number in range(streams(recs), total):
        insert(recs, *[Rec(INDEX)] * (number % 4000 == 0), stream(number, name=b"mutated %d" % number))


# Section 6: CHUNK -------------------------------------------------------------------------------

bad("stream-undeclared", "not declared", lambda recs: insert(recs, chunk(streams(recs), **ONE)))
bad("stream-undeclared-max", "not declared", lambda recs: insert(recs, chunk(0xFFFFFFFF, **ONE)))
bad_chunk("no-extents", " 0 extents", extents=[], runs=[(1, ZERO)], length=PAGE)
bad_chunk("extents-4097", "4097 extents", extents=[(i * PAGE, 1) for i in range(4097)], runs=[(4097, ZERO)])
bad_chunk("no-runs", " 0 page runs", extents=[(0, PAGE)], content=A)
bad_chunk("runs-4097", "4097 page runs", extents=[(i * 2 * PAGE, 4097) for i in range(2100)],
          runs=[(1, (ZERO, HOLE)[i % 2]) for i in range(4096)] + [(104, ZERO)])
bad_chunk("runs-on-plain", " 1 page runs", kind=6, extents=[(0, PAGE)], runs=[(1, DATA)], content=A)
bad_chunk("length-0", "chunk length 0", length=0, **ONE)
bad_chunk("length-short", "not its extents'", extents=[(0, 2 * PAGE)], runs=[(2, ZERO)], length=PAGE)
bad_chunk("length-long", "not its extents'", length=2 * PAGE, **ONE)
bad_chunk("length-above-limit", "chunk length", extents=[(0, 16 * MIB), (16 * MIB, PAGE)],
          runs=[(4097, ZERO)])
bad_chunk("extent-lengths-wrap", "not its extents'", runs=[(1, ZERO)], length=PAGE,
          extents=[(0, 1 << 31), (1 << 40, 1 << 31), (1 << 41, PAGE)])
bad_chunk("chunk-times", "chunk times", start=MONO + 1, end=MONO, **ONE)
bad_chunk("address-inside-page", "begins inside a page", extents=[(2048, PAGE)], runs=[(1, ZERO)])
bad_chunk("address-too-high", "too high", extents=[((1 << 63) - PAGE, 2 * PAGE)], runs=[(2, ZERO)])
bad_chunk("address-wraps", "too high", extents=[((1 << 64) - PAGE, 2 * PAGE)], runs=[(2, ZERO)])
bad_chunk("address-wraps-plain", "too high", kind=6, extents=[((1 << 64) - 1, 2)], content=b"AB")
for _kind in (1, 2, 3):
    bad_chunk(f"address-above-2-52-kind-{_kind}", "too high", kind=_kind,
              extents=[((1 << 52) - PAGE, 2 * PAGE)], runs=[(2, ZERO)])
    bad_chunk(f"partial-page-kind-{_kind}", "ends inside a page", kind=_kind,
              extents=[(0, 100)], runs=[(1, ZERO)])
bad_chunk("extent-empty", "empty extent", extents=[(0, PAGE), (PAGE, 0)], runs=[(1, ZERO)])
bad_chunk("reason-on-pass-0", "reason 1 on pass 0", extents=[(0, PAGE, 0, 1)], runs=[(1, ZERO)])
bad_chunk("reason-4", "reason 4 on pass 1", extents=[(0, PAGE, 1, 4)], runs=[(1, ZERO)])
bad_chunk("no-reason", "reason 0 on pass 1", extents=[(0, PAGE, 1, 0)], runs=[(1, ZERO)])
for _name, _start, _end in (("starts-early", 9, 15), ("ends-late", 15, 21), ("backwards", 16, 15)):
    bad_chunk(f"extent-{_name}", "extent times", start=10, end=20,
              extents=[(0, PAGE, 0, 0, _start, _end)], runs=[(1, ZERO)])
bad_chunk("run-empty", "empty page run", extents=[(0, PAGE)], runs=[(1, ZERO), (0, HOLE)])
bad_chunk("runs-cover-less", "do not cover", extents=[(0, 3 * PAGE)], runs=[(2, ZERO)])
bad_chunk("runs-cover-more", "do not cover", extents=[(0, PAGE)], runs=[(1, ZERO), (1, HOLE)])
bad_chunk("runs-wrap", "do not cover", extents=[(0, PAGE)], runs=[(65535, ZERO), (2, HOLE)])
bad_chunk("state-5", "unknown page state", extents=[(0, PAGE)], runs=[(1, 5)])
bad_chunk("state-255", "unknown page state", extents=[(0, PAGE)], runs=[(1, 255)])
bad_chunk("run-reserved", "reserved page run", extents=[(0, PAGE)], runs=[(1, ZERO, 0, 1)])
bad_chunk("detail-on-data", "detail 1", extents=[(0, PAGE)], runs=[(1, DATA, 1)], content=A)
bad_chunk("detail-on-zero", "detail 1", extents=[(0, PAGE)], runs=[(1, ZERO, 1)])
bad_chunk("detail-on-hole", "detail 1", extents=[(0, PAGE)], runs=[(1, HOLE, 1)])
bad_chunk("skipped-without-detail", "detail 0", extents=[(0, PAGE)], runs=[(1, SKIPPED, 0)])
bad_chunk("skipped-detail-5", "detail 5", extents=[(0, PAGE)], runs=[(1, SKIPPED, 5)])
bad_chunk("runs-alike", "are alike", extents=[(0, 2 * PAGE)], runs=[(1, ZERO), (1, ZERO)])
bad_chunk("runs-alike-detail", "are alike", extents=[(0, 2 * PAGE)], runs=[(1, UNREADABLE, 5)] * 2)
bad_chunk("runs-alike-over-extents", "are alike", extents=[(0, PAGE), (1 << 30, PAGE)],
          runs=[(1, DATA), (1, DATA)], content=A + B)
bad_chunk("content-missing", "not what the page states say", extents=[(0, PAGE)], runs=[(1, DATA)])
bad_chunk("content-short", "not what the page states say", extents=[(0, 2 * PAGE)], runs=[(2, DATA)],
          content=A)
bad_chunk("content-long", "not what the page states say", extents=[(0, PAGE)], runs=[(1, DATA)],
          content=A + B)
bad_chunk("content-pads-last-page", "not what the page states say", extents=[(0, 100)], runs=[(1, DATA)],
          content=A)
bad_chunk("content-without-data", "not what the page states say", extents=[(0, PAGE)], runs=[(1, HOLE)],
          content=A)
bad_chunk("content-short-plain", "not what the page states say", kind=6, extents=[(0, 9)],
          content=b"12345678")


# Section 8: INDEX -------------------------------------------------------------------------------

def entry(number, layout, offset, value):
    """Change one field of an entry of the last INDEX; number counts as in a Python list."""
    def change(body, content):
        at = 24 * (number % (len(content) // 24)) + offset
        size = struct.calcsize("<" + layout)
        return body, content[:at] + struct.pack("<" + layout, value) + content[at + size:]
    return change


def entries(change):
    """Change the list of the last INDEX's entries; their count is repaired."""
    def apply(body, content):
        listed = change(re.findall(b"(?s).{24}", content))
        return struct.pack("<I", len(listed)) + body[4:], b"".join(listed)
    return apply


def bad_entries(name, reason, change):
    """Over one STREAM and three extents, so that there is something to change."""
    def apply(recs):
        with_stream(recs, 5, lambda n: [chunk(n, [(0, PAGE), (PAGE, PAGE)], [(2, ZERO)]), chunk(n, **ONE)])
        recs[find_last(recs, INDEX)].tweak = change
    bad(name, reason, apply)


bad_entries("index-record", "does not list", entry(-1, "Q", 0, 1))
bad_entries("index-address", "does not list", entry(-2, "Q", 8, 2 * PAGE))
bad_entries("index-length", "does not list", entry(-2, "I", 16, 2 * PAGE))
bad_entries("index-length-0", "does not list", entry(-1, "I", 16, 0))
bad_entries("index-stream", "does not list", entry(-1, "I", 20, 4095))
bad_entries("index-stream-address", "does not list", entry(-4, "Q", 8, PAGE))
bad_entries("index-stream-length", "does not list", entry(-4, "I", 16, PAGE))
bad_entries("index-order", "does not list", entries(lambda listed: listed[:-2] + listed[:-3:-1]))
bad_entries("index-lacks-last", "entries are due", entries(lambda listed: listed[:-1]))
bad_entries("index-lacks-stream", "entries are due", entries(lambda listed: listed[:-4] + listed[-3:]))
bad_entries("index-twice-same", "entries are due", entries(lambda listed: listed + listed[-1:]))
bad_entries("index-content-short", "not the entries", lambda body, content: (body, content[:-24]))
bad_entries("index-content-ragged", "not the entries", lambda body, content: (body, content + b"\0"))
bad_entries("index-count-high", "index entries", lambda body, content: (b"\xff" * 4 + body[4:], content))
bad_entries("index-reserved", "reserved index", lambda body, content: (body[:4] + b"\1" + body[5:], content))
tweak("index-previous", "previous INDEX", INDEX,
      lambda body, content: (body[:8] + struct.pack("<Q", 8), content))
tweak("index-previous-high-word", "previous INDEX", INDEX,
      lambda body, content: (body[:12] + b"\1" + body[13:], content))
tweak("index-empty", "0 index entries", INDEX, lambda body, content: (bytes(4) + body[4:], b""))
bad("index-of-nothing", "0 index entries", lambda recs: recs.insert(find_last(recs, INDEX) + 1, Rec(INDEX)))
bad("index-too-many-entries", "[0-9]{4} index entries", lambda recs: with_stream(
    recs, 5, lambda n: [chunk(n, [(i * PAGE, 1) for i in range(4096)], [(4096, ZERO)])]))
bad("index-missing", "no INDEX after", lambda recs: recs.pop(find_last(recs, INDEX)))
bad("stream-behind-last-index", "no INDEX after", lambda recs: recs.insert(
    find_last(recs, INDEX) + 1, stream(streams(recs), name=b"mutated")))



@rule("no INDEX after")
def chunk_behind_last_index(recs):
    with_stream(recs, 5, lambda number: [])
    recs.insert(find_last(recs, INDEX) + 1, chunk(streams(recs) - 1, **ONE))


# Section 9: CLOSE -------------------------------------------------------------------------------

def close(name, reason, offset, value):
    tweak(name, reason, CLOSE, lambda body, content: (
        body[:offset] + value + body[offset + len(value):], content))


close("close-records", "CLOSE counts", 0, struct.pack("<Q", 1))
close("close-records-high-word", "CLOSE counts", 4, b"\1")
close("close-last-index-0", "another last INDEX", 8, bytes(8))
close("close-last-index-high-word", "another last INDEX", 12, b"\1")
close("root", "wrong root", 16, bytes(32))
tweak("root-last-bit", "wrong root", CLOSE, lambda body, content: (body[:-1] + bytes([body[-1] ^ 1]), content))


@rule("wrong root")
def root_of_other_records(recs):
    """Each record is right, but the root was taken when there was one less."""
    other = split(assemble(recs))[0][-1].body
    insert(recs, stream(streams(recs), name=b"mutated"))
    recs[-1].tweak = lambda body, content: (body[:16] + other[16:], content)


@rule("wrong root")
def root_with_last_leaf_doubled(recs):
    """The padding of other Merkle trees, which lets two lists of records share a root."""
    if (len(recs) - 1) % 2 == 0:
        insert(recs, stream(streams(recs), name=b"mutated"))
    whole = assemble(recs)
    leaves = digests(whole)[:-1]
    recs[-1].tweak = lambda body, content: (body[:16] + merkle(leaves + leaves[-1:]), content)
    assert merkle(leaves + leaves[-1:]) != merkle(leaves)


def digests(container):
    found, at = [], 0
    while at < len(container):
        size, stored = (struct.unpack_from("<I", container, at + field)[0] for field in (4, 48))
        found.append(container[at + size + 8 - 32:at + size + 8])
        at += size + 8 + stored
    return found


# What is allowed, up to the limits --------------------------------------------------------------

CONTROLS["as-it-was"] = lambda recs: None
# A device keeps what was on it behind a container that is shorter.
for _name, _tail in (("a-byte", b"\0"), ("zeros", bytes(1 << 20)), ("a-frame", stored_frame(b"")),
                     ("a-magic", b"\x5b\x2a\x4d\x18"), ("31-bytes-of-a-record", None)):
    CONTROLS[f"{_name}-behind-close"] = lambda recs, tail=_tail: lambda data: data + (tail or data[:31])


@control
def another_container_behind_close(recs):
    """The end of a longer one: its CLOSE is the last thing on the device."""
    return lambda data: data + assemble([begin(), stream(0), chunk(0, **ONE), Rec(INDEX), Rec(CLOSE)], bytes(16))


CONTROLS["nothing-but-begin"] = lambda recs: recs.__setitem__(slice(1, -1), [])
CONTROLS["begin-text-longest"] = lambda recs: recs.__setitem__(0, begin(b"t" * 3944))
CONTROLS["begin-text-empty"] = lambda recs: recs.__setitem__(0, begin(b""))
CONTROLS["streams-4096"] = lambda recs: add_streams(recs, 4096)
CONTROLS["stream-longest"] = lambda recs: insert(
    recs, stream(streams(recs), name=b"n" * 4096, metadata=b"{" + b" " * 65494 + b"}"))
CONTROLS["stream-unknown-kind"] = lambda recs: insert(recs, stream(streams(recs), kind=0xFFFFFFFF))
CONTROLS["index-in-between"] = lambda recs: insert(recs, stream(streams(recs), name=b"m"), Rec(INDEX),
                                                   stream(streams(recs) + 1, name=b"n"))
good("all-states", extents=[(0, 9 * PAGE), (1 << 40, 5000, 3, 2), (0, PAGE, 65535, 1)], content=A + A[:904] + B,
     runs=[(1, DATA), (2, ZERO), (1, UNREADABLE), (1, UNREADABLE, 0xFFFFFFFF)]
     + [(1, SKIPPED, i + 1) for i in range(4)] + [(1, HOLE), (2, DATA)])
good("extents-4096", extents=[(i * PAGE, PAGE) for i in range(4096)], runs=[(4096, UNREADABLE, 5)])
good("chunk-longest-header", extents=[(i * PAGE, PAGE) for i in range(4096)],
     runs=[(1, (ZERO, HOLE)[i % 2]) for i in range(4096)])
good("chunk-16-mib", extents=[(0, 16 * MIB)], runs=[(4096, DATA)], content=A * 4096)
good("plain-16-mib", kind=6, extents=[(1, 16 * MIB)], content=A * 4096)
good("address-highest", extents=[((1 << 63) - PAGE, PAGE)], runs=[(1, ZERO)])
good("address-highest-plain", kind=7, extents=[((1 << 63) - 1, 1)], content=b"A")
good("address-highest-physical", kind=1, extents=[((1 << 52) - PAGE, PAGE)], runs=[(1, ZERO)])
good("times-highest", extents=[(0, PAGE)], runs=[(1, ZERO)], start=0, end=(1 << 64) - 1)
good("frame-of-empty-blocks", extents=[(0, PAGE)], runs=[(1, DATA)], content=A,
     frame=frame_of(0xA0, _SIZE, block(0, 0, b"", 0) * 1000, _RAW))
good("frame-rle", extents=[(0, PAGE)], runs=[(1, DATA)], content=A,
     frame=frame_of(0xA0, _SIZE, block(1, PAGE, b"A", 1)))
good("frame-two-byte-size", extents=[(0, PAGE)], runs=[(1, DATA)], content=A,
     frame=frame_of(0x60, struct.pack("<H", PAGE - 256), _RAW))
good("frame-eight-byte-size", extents=[(0, PAGE)], runs=[(1, DATA)], content=A,
     frame=frame_of(0xE0, struct.pack("<Q", PAGE), _RAW))
good("frame-window-16-mib", extents=[(0, PAGE)], runs=[(1, DATA)], content=A,
     frame=frame_of(0x80, bytes([14 << 3]) + _SIZE, _RAW))


def changed(container, change):
    recs, identity = split(container)
    if INDEX not in [rec.type for rec in recs]:
        raise ValueError("a sealed container with at least one INDEX is wanted")
    after = change(recs)
    data = assemble(recs, identity)
    return after(data) if callable(after) else data


def mutations(container):
    """Yield (name, bytes) of containers that a reader MUST reject, one for each rule."""
    for name, (_, change) in RULES.items():
        yield name, changed(container, change)


def controls(container):
    """Yield (name, bytes) of containers that are made in the same way and break no rule."""
    for name, change in CONTROLS.items():
        yield name, changed(container, change)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: mutate.py IN.rsz OUTDIR")
    with open(sys.argv[1], "rb") as file:
        container = file.read()
    os.makedirs(sys.argv[2], exist_ok=True)
    for sort, makers in (("bad", mutations), ("good", controls)):
        for name, data in makers(container):
            with open(os.path.join(sys.argv[2], f"{sort}-{name}.rsz"), "wb") as file:
                file.write(data)


if __name__ == "__main__":
    main()
