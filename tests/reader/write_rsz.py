# SPDX-License-Identifier: Apache-2.0
"""
Build .rsz containers for tests, from formats/SPEC.md alone. Nothing is checked here: a test says what a
record holds, right or wrong, and assemble() makes everything around it true (place, sums, INDEX,
root), so that a reader can only stumble over the rule that the test broke.
"""
import functools
import hashlib
import io
import os
import struct
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from read_rsz import unzstd

BEGIN, STREAM, CHUNK, INDEX, CLOSE = 1, 2, 3, 4, 5
DATA, ZERO, UNREADABLE, SKIPPED, HOLE = range(5)
MONO = 1000                            # "now" of all records built here


class Rec:
    """
    body: the header from offset 96 to the digest. frame: None has the content stored in raw blocks.
    patches: (offset, bytes) for the header, before its digest is taken. late: (offset, bits to flip) after.
    tweak: called with (body, content) once those of INDEX and CLOSE are filled in; returns both.
    raw: not a record at all, but these bytes.
    """

    def __init__(self, kind=0, body=b"", content=b"", frame=None, tweak=None, raw=None):
        self.type, self.body, self.content, self.frame = kind, body, content, frame
        self.tweak, self.raw, self.patches, self.late = tweak, raw, [], []

    def poke(self, offset, layout, value):
        self.patches.append((offset, struct.pack("<" + layout, value)))
        return self


def begin(text=b"test", version=1, length=None):
    return Rec(BEGIN, struct.pack("<IIQQ", version, len(text) if length is None else length,
                                  1_700_000_000 * 10**9, MONO) + text)


def stream(number, kind=5, page_size=4096, name=b"file", metadata=b"", reserved=0):
    return Rec(STREAM, struct.pack("<IIIIII", number, kind, page_size, len(name), len(metadata), reserved)
               + name + metadata)


def chunk(number, extents, runs=(), content=b"", frame=None, length=None, start=MONO, end=MONO):
    """extents: (address, length[, pass, reason[, start, end]]); runs: (count, state[, detail[, reserved]])"""
    full = [tuple(e) + (0, 0, start, end)[len(e) - 2:] for e in extents]
    total = sum(e[1] for e in full) if length is None else length
    body = struct.pack("<IIIIQQ", number, len(full), len(runs), total & 0xFFFFFFFF, start, end)
    body += b"".join(struct.pack("<QIHHQQ", *e) for e in full)
    for count, state, detail, reserved in (tuple(r) + (0, 0)[len(r) - 2:] for r in runs):
        body += struct.pack("<HBBI", count, state, reserved, detail)
    return Rec(CHUNK, body, content, frame)


def stored_frame(content):
    """A zstd frame of raw blocks: single segment, content size in four bytes (RFC 8878, 3.1.1)."""
    pieces = [content[at:at + (1 << 17)] for at in range(0, len(content), 1 << 17)] or [b""]
    return (struct.pack("<IBI", 0xFD2FB528, 0xA0, len(content))
            + b"".join(block(0, len(piece), piece, piece is pieces[-1]) for piece in pieces))


def block(kind, size, data, last):
    return (size << 3 | kind << 1 | last).to_bytes(3, "little") + data


def merkle(leaves):
    """RFC 6962's tree from the left: equal halves are joined as soon as both are there."""
    def join(left, right):
        return hashlib.sha256(b"\1" + left + right).digest()

    halves = []                        # (how many leaves, hash), each larger than the next
    for leaf in leaves:
        halves.append((1, leaf))
        while len(halves) > 1 and halves[-2][0] == halves[-1][0]:
            (n, right), (_, left) = halves.pop(), halves.pop()
            halves.append((2 * n, join(left, right)))
    root = halves.pop()[1]
    while halves:
        root = join(halves.pop()[1], root)
    return root


def entries_of(rec, offset):
    if rec.type == STREAM:
        return [struct.pack("<QQII", offset, 0, 0, *struct.unpack_from("<I", rec.body))]
    if rec.type != CHUNK:
        return []
    number, count = struct.unpack_from("<II", rec.body)
    count = min(count, (len(rec.body) - 32) // 32)
    return [struct.pack("<QQII", offset, *struct.unpack_from("<QI", rec.body, 32 + 32 * i), number)
            for i in range(count)]


def assemble(recs, container=b"\xc5" * 16):
    """The bytes of the container. What a Rec says of itself stands; all else is worked out."""
    out, leaves, unlisted, last_index = bytearray(), [], [], 0
    for rec in recs:
        offset = len(out)
        if rec.raw is not None:
            out += rec.raw
            continue
        body, content, frame = rec.body, rec.content, rec.frame
        if rec.type == INDEX:
            body, content = struct.pack("<IIQ", len(unlisted), 0, last_index), b"".join(unlisted)
            unlisted, last_index, frame = [], offset, None
        if rec.type == CLOSE:
            body = struct.pack("<QQ", len(leaves), last_index) + merkle(leaves or [bytes(32)])
        if rec.tweak:
            body, content = rec.tweak(body, content)
        unlisted += entries_of(rec, offset)
        if frame is None:
            frame = stored_frame(content) if content else b""
        header = bytearray(struct.pack(
            "<4sI4sHH16sQQIIII32s", b"\x5b\x2a\x4d\x18", 96 + len(body) + 32 - 8, b"RSZ\x01", rec.type, 0,
            container, len(leaves), offset, len(frame), len(content), zlib.crc32(frame) if frame else 0, 0,
            hashlib.sha256(content).digest() if frame else bytes(32)) + body)
        for at, value in rec.patches:
            header[at:at + len(value)] = value
        header += hashlib.sha256(b"\0" + header).digest()
        leaves.append(bytes(header[-32:]))
        for at, mask in rec.late:
            header[at] ^= mask
        out += header + frame
    return bytes(out)


@functools.lru_cache(maxsize=4)
def parts(container):
    """(type, body, content, frame) of each record of a good container, unpacked by one process."""
    found, sizes, at = [], [], 0
    while at < len(container):
        size, _, kind, _, _, _, _, stored, content = struct.unpack_from("<I4sHH16sQQII", container, at + 4)
        found.append((kind, container[at + 96:at + size + 8 - 32], container[at + size + 8:at + size + 8 + stored]))
        sizes.append(content)
        at += size + 8 + stored
    whole = io.BytesIO(unzstd([frame for _, _, frame in found], sum(sizes)))
    return [(kind, body, whole.read(size), frame) for (kind, body, frame), size in zip(found, sizes)]


def split(container):
    """The records of a good container, and its identity: assemble(*split(c)) == c."""
    return [Rec(*part) for part in parts(container)], container[16:32]
