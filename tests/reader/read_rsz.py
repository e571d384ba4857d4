#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Read a ramseal container (.rsz). Written from formats/SPEC.md alone; § refers to its sections.

    read_rsz.py verify  FILE                              exit status 0: sealed, every rule holds
    read_rsz.py list    FILE                              headers only: payloads are not unpacked
    read_rsz.py extract FILE STREAM -o OUT [--fill HEX]   newest content, padded by address
    read_rsz.py captures FILE STREAM                      of each page with several: all that can be read

A container is a row of records: a header, then perhaps a payload. Read this file in that order:
Record is one header, Reader.records() walks them and holds each to the rules, Reader.contents()
adds the unpacked payloads. Everything but zstd is Python's standard library; frames are unpacked
by the `zstd` command.
"""
import argparse
import datetime
import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib
from typing import NamedTuple

PAGE = 4096
MIB = 1 << 20
BATCH = 32 * MIB                       # unpacked at a time, because starting zstd costs more

BEGIN, STREAM, CHUNK, INDEX, CLOSE = 1, 2, 3, 4, 5
DATA, ZERO, UNREADABLE, SKIPPED, HOLE = range(5)
STATES = ["data", "zero", "unreadable", "skipped", "hole"]
READ = {DATA, ZERO}
REASONS = ["first", "table-changed", "file-changed", "table-again"]
PHYSICAL_KINDS, PAGED_KINDS, PLAIN_KINDS = {1, 2, 3}, {1, 2, 3, 4, 5, 9}, {6, 7, 8}

MAGIC = struct.pack("<I", 0x184D2A5B)  # a zstd skippable frame
MARK = b"RSZ\x01"
DATA_FRAME = struct.pack("<I", 0xFD2FB528)
HEAD = struct.Struct("<4sI4sHH16sQQIIII32s")
LONGEST = {BEGIN: 4096, STREAM: 69744, CHUNK: 164000, INDEX: 144, CLOSE: 176}
NOTHING = bytes(32)


class Problem(Exception):
    """Why the walk stopped: word is "unsealed", "cut", "damaged" or "no container"."""

    def __init__(self, word, offset, reason):
        super().__init__(f"{word} at {offset}: {reason}")


class Stream(NamedTuple):
    kind: int
    page_size: int
    name: str
    metadata: str


class Extent(NamedTuple):
    address: int
    length: int
    capture: int                       # "pass" in the text: 0, then one more each time
    reason: int
    start: int
    end: int


class Record:
    """One record. The header's fields are attributes; the body is parsed by Reader, by type."""

    def __init__(self, file, offset, size):
        self.offset = offset
        self.wanted = None             # INDEX: what its content has to be
        start = self.read(file, size, 16)
        self.need(start[:4] == MAGIC, "not a record: wrong magic")
        self.need(start[8:12] == MARK, "wrong mark")
        length, kind = struct.unpack_from("<I", start, 4)[0] + 8, struct.unpack_from("<H", start, 12)[0]
        self.need(kind in LONGEST, f"unknown record type {kind}")
        self.need(96 + 32 <= length <= LONGEST[kind], f"header length {length} out of bounds")

        self.header = header = start + self.read(file, size, length, 16)
        (_, _, _, self.type, reserved, self.container, self.sequence, stands, self.stored,
         self.content, self.crc, reserved2, self.sha256) = HEAD.unpack_from(header)
        self.digest = header[-32:]
        self.need(hashlib.sha256(b"\0" + header[:-32]).digest() == self.digest, "wrong header digest")
        self.need(reserved == 0 and reserved2 == 0, "reserved header field in use")
        self.need(stands == offset, f"record says it stands at {stands}")
        self.need(self.stored <= 17 * MIB and self.content <= 16 * MIB, "payload too large")
        self.need((self.stored == 0) == (self.content == 0), "stored and content disagree")
        self.need(self.stored or (self.crc == 0 and self.sha256 == NOTHING), "sums without payload")
        self.end = offset + length + self.stored

    def need(self, holds, reason):
        if not holds:
            raise Problem("damaged", self.offset, reason)

    def read(self, file, size, upto, have=0):
        """The header's bytes have to upto; what stands there must at least begin like a header."""
        piece = file.read(upto - have)
        if self.offset + upto > size:
            self.need(have or may_begin(piece), "not a record: wrong magic or mark")
            raise Problem("cut", self.offset, "the file ends in a header")
        return piece

    def fields(self, layout, offset=96):
        return struct.unpack_from("<" + layout, self.header, offset)

    def need_length(self, expected):
        self.need(len(self.header) == expected, f"header length is not {expected}")

    def text(self, offset, length, what):
        try:
            return self.header[offset:offset + length].decode("utf-8")
        except UnicodeDecodeError:
            self.need(False, f"{what} is not UTF-8")

    def pieces(self):
        """A CHUNK cut wherever the extent or the page state changes: (address, length, state, detail)."""
        runs, left = iter(self.runs), 0
        for extent in self.extents:
            at = 0
            while at < extent.length:
                if left == 0:
                    left, state, detail = next(runs)
                pages = min(left, pages_of(extent.length - at))
                length = min(pages * PAGE, extent.length - at)
                yield extent.address + at, length, state, detail
                at, left = at + length, left - pages

    def check_frame(self):
        """The payload is exactly one zstd data frame (RFC 8878, 3.1.1) that states its content size."""
        frame = self.frame
        self.need(zlib.crc32(frame) == self.crc, "wrong payload CRC-32")
        self.need(frame[:4] == DATA_FRAME and len(frame) > 5, "payload is not a zstd data frame")
        descriptor = frame[4]
        single, size_flag = descriptor >> 5 & 1, descriptor >> 6
        self.need(descriptor & 3 == 0, "payload frame asks for a dictionary")
        self.need(descriptor & 8 == 0, "reserved bit of the payload frame in use")
        size_bytes = [single, 2, 4, 8][size_flag]
        at = 5 + (not single) + size_bytes         # without "single segment" a window byte stands first
        exponent, mantissa = frame[5] >> 3, frame[5] & 7
        self.need(single or (8 + mantissa) << exponent + 7 <= 16 * MIB, "payload frame's window too large")
        self.need(size_bytes, "payload frame does not state its content size")
        stated = int.from_bytes(frame[at - size_bytes:at], "little") + (256 if size_flag == 1 else 0)
        self.need(stated == self.content, "payload frame states another content size")
        last = 0
        while not last:                            # a block is three bytes and its data
            self.need(at + 3 <= len(frame), "payload frame has no end")
            block = int.from_bytes(frame[at:at + 3], "little")
            last, kind = block & 1, block >> 1 & 3
            at += 3 + (1 if kind == 1 else block >> 3)
        at += 4 if descriptor & 4 else 0           # the frame's own checksum
        self.need(at == len(frame), "payload is not exactly one frame")


def may_begin(piece):
    """Are magic and mark right, as far as they are there?"""
    return MAGIC.startswith(piece[:4]) and MARK.startswith(piece[8:12])


class Reader:
    def __init__(self, file):
        self.file = file
        self.size = file.seek(0, os.SEEK_END)
        self.problem = None            # why the walk stopped; None: the container is sealed
        self.begin = None              # record 0
        self.streams, self.names = [], set()
        self.unlisted = []             # INDEX entries for the records since the last INDEX
        self.last_index = 0
        self.leaves = []
        self.root = None
        self.behind = 0                # bytes that follow CLOSE and are not the container's

    def records(self):
        """Yield each record whose header obeys the rules. Stops at the first that does not."""
        offset = 0
        try:
            if not self.is_container():
                raise Problem("no container", 0, "neither record 0 nor record 1 is there")
            while self.root is None and (offset < self.size or offset == 0):
                self.file.seek(offset)
                record = Record(self.file, offset, self.size)
                self.check_place(record)
                [self.read_begin, self.read_stream, self.read_chunk,
                 self.read_index, self.read_close][record.type - 1](record)
                self.leaves.append(record.digest)
                if record.end > self.size:
                    raise Problem("cut", offset, "the file ends in a payload")
                yield record
                offset = record.end
            if self.root is None:
                raise Problem("unsealed", offset, "no CLOSE record")
            self.behind = self.size - offset
        except Problem as problem:
            self.problem = problem

    def is_container(self):                                                                  # §2
        self.file.seek(0)
        head = self.file.read(4096 + 12)
        if len(head) >= 12 and may_begin(head):
            return True
        for at in range(152, len(head) - 11):
            if may_begin(head[at:at + 12]):
                self.file.seek(at)
                try:
                    record = Record(self.file, at, self.size)
                    if record.sequence == 1 and record.end <= self.size:
                        return True
                except Problem:
                    pass
        return False

    def check_place(self, record):
        record.need((record.type == BEGIN) == (record.offset == 0), "BEGIN is record 0 and only that")
        record.need(record.sequence == len(self.leaves), f"sequence is not {len(self.leaves)}")
        if self.begin:
            record.need(record.container == self.begin.container, "from another container")
        if record.type in (BEGIN, STREAM, CLOSE):
            record.need(record.stored == 0, "payload on a record that has none")

    def read_begin(self, record):                                                            # §4
        version, length, record.wall, record.mono = record.fields("IIQQ")
        record.need(version == 1, f"unknown version {version}")
        record.need_length(120 + length + 32)
        record.program = record.text(120, length, "text")
        self.begin = record

    def read_stream(self, record):                                                           # §5
        number, kind, page_size, name, metadata, reserved = record.fields("IIIIII")
        record.need(number == len(self.streams), f"stream number is not {len(self.streams)}")
        record.need(number < 4096, "more than 4096 streams")
        record.need(page_size in (0, PAGE), f"page size {page_size}")
        record.need(kind not in (PLAIN_KINDS if page_size else PAGED_KINDS), "page size is not its kind's")
        record.need(1 <= name <= 4096, f"name length {name}")
        record.need(metadata <= 65496, f"metadata length {metadata}")
        record.need(reserved == 0, "reserved stream field in use")
        record.need_length(120 + name + metadata + 32)
        stream = Stream(kind, page_size, record.text(120, name, "name"),
                        record.text(120 + name, metadata, "metadata"))
        record.need(stream.name not in self.names, "name is not unique")
        self.streams.append(stream)
        self.names.add(stream.name)
        self.unlisted.append((record.offset, 0, 0, number))

    def read_chunk(self, record):                                                            # §6
        number, extents, runs, length, record.start, record.finish = record.fields("IIIIQQ")
        record.need(number < len(self.streams), f"stream {number} is not declared")
        record.stream, stream = number, self.streams[number]
        record.need(1 <= extents <= 4096, f"{extents} extents")
        record.need(1 <= runs <= 4096 if stream.page_size else runs == 0, f"{runs} page runs")
        record.need(1 <= length <= 16 * MIB, f"chunk length {length}")
        record.need(record.start <= record.finish, "chunk times run backwards")
        record.need_length(128 + 32 * extents + 8 * runs + 32)
        record.extents = [Extent(*record.fields("QIHHQQ", 128 + 32 * i)) for i in range(extents)]
        for extent in record.extents:
            self.check_extent(record, stream, extent)
            self.unlisted.append((record.offset, extent.address, extent.length, number))
        record.need(sum(e.length for e in record.extents) == length, "chunk length is not its extents'")
        if stream.page_size:
            self.read_runs(record, runs, 128 + 32 * extents)
        else:
            record.runs = [(sum(pages_of(e.length) for e in record.extents), DATA, 0)]
        stored = sum(length for _, length, state, _ in record.pieces() if state == DATA)
        record.need(record.content == stored, "content is not what the page states say")

    def check_extent(self, record, stream, extent):
        record.need(extent.length >= 1, "empty extent")
        physical = stream.kind in PHYSICAL_KINDS
        limit = 1 << (52 if physical else 63)
        record.need(extent.address + extent.length <= limit, "extent ends too high")
        record.need(not physical or extent.length % PAGE == 0, "extent ends inside a page")
        record.need(not stream.page_size or extent.address % PAGE == 0, "extent begins inside a page")
        known = extent.reason == 0 if extent.capture == 0 else extent.reason in (1, 2, 3)
        record.need(known, f"reason {extent.reason} on pass {extent.capture}")
        record.need(record.start <= extent.start <= extent.end <= record.finish, "extent times out of order")

    def read_runs(self, record, count, offset):
        record.runs, before = [], None
        for i in range(count):
            pages, state, reserved, detail = record.fields("HBBI", offset + 8 * i)
            record.need(pages >= 1, "empty page run")
            record.need(state < len(STATES), f"unknown page state {state}")
            record.need(reserved == 0, "reserved page run field in use")
            known = state == UNREADABLE or (1 <= detail <= 4 if state == SKIPPED else detail == 0)
            record.need(known, f"detail {detail} on a page of state {STATES[state]}")
            record.need((state, detail) != before, "neighbouring page runs are alike")
            before = (state, detail)
            record.runs.append((pages, state, detail))
        expected = sum(pages_of(e.length) for e in record.extents)
        record.need(sum(run[0] for run in record.runs) == expected, "page runs do not cover the extents")

    def read_index(self, record):                                                            # §8
        record.need_length(144)
        entries, reserved, previous = record.fields("IIQ")
        record.need(1 <= entries <= 4096, f"{entries} index entries")
        record.need(reserved == 0, "reserved index field in use")
        record.need(previous == self.last_index, f"previous INDEX is not at {previous}")
        record.need(entries == len(self.unlisted), f"{len(self.unlisted)} entries are due, not {entries}")
        record.need(record.content == 24 * entries, "content is not the entries")
        record.wanted = b"".join(struct.pack("<QQII", *entry) for entry in self.unlisted)
        self.unlisted, self.last_index = [], record.offset

    def read_close(self, record):                                                            # §9
        record.need_length(176)
        records, last_index, root = record.fields("QQ32s")
        record.need(records == record.sequence, f"CLOSE counts {records} records")
        record.need(last_index == self.last_index, "CLOSE names another last INDEX")
        record.need(not self.unlisted, "no INDEX after the last STREAM and CHUNK")
        record.need(root == merkle_root(self.leaves), "wrong root")
        record.need(not self.goes_on(record), "a record of this container behind CLOSE")
        self.root = root

    def goes_on(self, close):                                                                # §2
        self.file.seek(close.end)
        start = self.file.read(32)
        return len(start) == 32 and may_begin(start) and start[16:] == close.container

    def contents(self):
        """Yield (record, content), every payload checked. Raises Problem unless sealed and right."""
        batch, held = [], 0
        for record in self.records():
            record.frame = self.file.read(record.stored)
            batch.append(record)
            held += len(record.header) + record.stored + record.content
            if held >= BATCH:
                yield from unpack(batch)
                batch, held = [], 0
        yield from unpack(batch)       # before the walk's own problem: that one stands behind them
        if self.problem:
            raise self.problem


def pages_of(length):
    return -(-length // PAGE)


def merkle_root(leaves):
    """RFC 6962, 2.1. The leaves are hashes already: a header's digest begins with the 0x00 (§9.1)."""
    if len(leaves) == 1:
        return leaves[0]
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + merkle_root(leaves[:split]) + merkle_root(leaves[split:])).digest()


def unzstd(frames, expected):
    """What the frames unpack to, or None if that is not exactly `expected` bytes."""
    if not expected:
        return b""
    with tempfile.TemporaryFile() as packed:
        packed.writelines(frames)
        packed.seek(0)
        with subprocess.Popen(["zstd", "-dcq"], stdin=packed, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as zstd:
            content = zstd.stdout.read(expected + 1)    # no more: a frame may unpack to far more
    return content if zstd.returncode == 0 and len(content) == expected else None


def unpack(batch):
    problem, good = None, []
    for record in batch:
        try:
            if record.stored:
                record.check_frame()
            good.append(record)
        except Problem as found:
            problem = found
            break
    content = unzstd([r.frame for r in good], sum(r.content for r in good))
    at = 0
    for record in good:
        if content is None:            # one of them is bad: find out which
            mine = unzstd([record.frame], record.content)
        else:
            mine, at = content[at:at + record.content], at + record.content
        record.need(mine is not None, "payload does not unpack to its content")
        if record.stored:
            record.need(hashlib.sha256(mine).digest() == record.sha256, "wrong content SHA-256")
        record.need(record.wanted in (None, mine), "INDEX does not list the records before it")
        record.frame = b""
        yield record, mine
    if problem:
        raise problem


def verify(args, reader):
    for _ in reader.contents():
        pass
    print("sealed", reader.root.hex())
    if reader.behind:
        print(f"{reader.behind} bytes follow that are not the container's")


def extract(args, reader):
    with open(args.output, "w+b", buffering=0) as out:
        length = 0
        try:
            for record, content in reader.contents():
                if record.type != CHUNK or reader.streams[record.stream].name != args.stream:
                    continue
                length = max(length, max(e.address + e.length for e in record.extents))
                write_pieces(out, record, content, args.fill)
        finally:
            out.truncate(length)
    if all(stream.name != args.stream for stream in reader.streams):
        sys.exit("no such stream")


def write_pieces(out, record, content, fill):
    """Later records overwrite earlier ones (§7), so each piece is written, in the order of the file."""
    at = 0
    for address, length, state, _ in record.pieces():
        if state == DATA:
            data, at = content[at:at + length], at + length
        else:
            data = bytes([fill if state in (UNREADABLE, SKIPPED) else 0]) * length
        if any(data) or any(os.pread(out.fileno(), length, address)):       # else leave it sparse
            os.pwrite(out.fileno(), data, address)


def list_captures(args, reader):
    """A JSON line for each page that was captured more than once, in order of address (§7)."""
    found = {}
    for record, content in reader.contents():
        if record.type != CHUNK or reader.streams[record.stream].name != args.stream:
            continue
        at = page = 0
        states = [(state, detail) for pages, state, detail in record.runs for _ in range(pages)]
        for extent in record.extents:                   # within a record, too, a later extent is newer
            for address in range(extent.address, extent.address + extent.length, PAGE):
                length = min(PAGE, extent.address + extent.length - address)
                state = states[page][0]
                data = content[at:at + length] if state == DATA else bytes(length)
                at, page = at + (length if state == DATA else 0), page + 1
                digest = hashlib.sha256(data.ljust(PAGE, b"\0")).hexdigest() if state in READ else None
                found.setdefault(address, []).append((extent.start, extent.end, extent.reason, digest))
    for address, captures in sorted(found.items()):
        captures = [c for c in captures[:-1] if c[3]] + captures[-1:]
        if len(captures) > 1:
            print(json.dumps({"address": address, "captures": [
                {"start_ns": start, "end_ns": end, "reason": REASONS[reason], "sha256": digest}
                for start, end, reason, digest in captures]}))


def list_streams(args, reader):
    chunks = [record for record in reader.records() if record.type == CHUNK]
    if not reader.begin:
        raise reader.problem

    def clock(mono):
        seconds, ns = divmod(reader.begin.wall + mono - reader.begin.mono, 10**9)
        return f"{datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc):%FT%T}.{ns:09}Z"

    # Names are written by whoever was captured: json.dumps() keeps control characters off the terminal.
    print("container", reader.begin.container.hex(), "by", json.dumps(reader.begin.program))
    print("begun", clock(reader.begin.mono))
    for number, stream in enumerate(reader.streams):
        mine = [chunk for chunk in chunks if chunk.stream == number]
        print(f"stream {number}: kind {stream.kind}, page size {stream.page_size},",
              json.dumps(stream.name), json.dumps(stream.metadata))
        for extent in merge(e for chunk in mine for e in chunk.extents):
            print(f"  {extent.address:#x}-{extent.address + extent.length - 1:#x} pass {extent.capture},"
                  f" {clock(extent.start)} to {clock(extent.end)}")
        counts = [0] * len(STATES)
        for pages, state, _ in (run for chunk in mine for run in chunk.runs):
            counts[state] += pages
        if stream.page_size:
            print("  pages, all captures:", ", ".join(f"{n} {s}" for n, s in zip(counts, STATES)))
    print("headers: " + (str(reader.problem) if reader.problem else "sealed " + reader.root.hex()))


def merge(extents):
    """Join extents that follow each other in the same pass, for a listing that people read."""
    joined = None
    for e in extents:
        if joined and (joined.address + joined.length, joined.capture) == (e.address, e.capture):
            joined = joined._replace(length=joined.length + e.length, start=min(joined.start, e.start),
                                     end=max(joined.end, e.end))
            continue
        if joined:
            yield joined
        joined = e
    if joined:
        yield joined


def one_byte(text):
    (byte,) = bytes.fromhex(text)
    return byte


def main():
    parser = argparse.ArgumentParser(description="Read a ramseal container; formats/SPEC.md explains it.")
    verbs = parser.add_subparsers(required=True, metavar="verify|list|captures|extract")
    for name, verb in (("verify", verify), ("list", list_streams), ("captures", list_captures),
                       ("extract", extract)):
        command = verbs.add_parser(name)
        command.add_argument("file")
        command.set_defaults(verb=verb)
        if verb in (list_captures, extract):
            command.add_argument("stream")
    command.add_argument("-o", "--output", required=True)
    command.add_argument("--fill", type=one_byte, default=0,
                         help="for unreadable and skipped pages; what no extent covers is always zero")
    args = parser.parse_args()
    try:
        with open(args.file, "rb") as file:
            args.verb(args, Reader(file))
    except Problem as problem:
        print(problem, file=sys.stdout if args.verb is verify else sys.stderr)
        sys.exit(1)
    except OSError as error:           # no zstd, no space, an address that no file reaches
        sys.exit(f"read_rsz: {error}")


if __name__ == "__main__":
    main()
