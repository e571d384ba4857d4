# SPDX-License-Identifier: Apache-2.0
"""
Opens ramseal's containers (.rsz) in volatility3, without an export:

    vol -p FOLDER-OF-THIS-FILE -f host.rsz windows.pslist

Three parts. `Container` reads formats/SPEC.md (§ refers to its sections) and wants nothing but
Python 3.8 and zstd, either as the module `zstandard` or as the library. `Asked` has the program
ramseal itself say what a page of an address space is, and what that is worth. Behind them are the
layers, which are there only if volatility3 is.
"""
import atexit
import bisect
import collections
import contextlib
import csv
import ctypes
import ctypes.util
import functools
import hashlib
import heapq
import itertools
import json
import logging
import os
import shutil
import struct
import subprocess
import threading
import urllib.parse
import urllib.request
import zlib
from array import array
from concurrent.futures import ThreadPoolExecutor

log = logging.getLogger(__name__)

PAGE = 4096
MIB = 1 << 20
# Of unpacked chunks, at most; and at most half of what the machine has to spare. Pages that are
# neighbours in a process lie in chunks from different times, and each unpacks as a whole.
CACHE_BYTES = 4096 * MIB

BEGIN, STREAM, CHUNK, INDEX, CLOSE = 1, 2, 3, 4, 5  # §3
DATA, ZERO, UNREADABLE, SKIPPED, HOLE = range(5)  # §6
NOT_INITIALISED = 4  # why a page was skipped: the file's own zeros
MEMORY, TABLES_BEFORE, TABLES_AFTER, PAGE_FILE, MANIFEST = 1, 2, 3, 4, 7  # §5
PHYSICAL_KINDS, PAGED_KINDS, PLAIN_KINDS = {1, 2, 3}, {1, 2, 3, 4, 5, 9}, {6, 7, 8}

MAGIC = struct.pack("<I", 0x184D2A5B)  # a zstd skippable frame
MARK = b"RSZ\x01"
DATA_FRAME = struct.pack("<I", 0xFD2FB528)
HEAD = struct.Struct("<4sI4sHH16sQQIIII32s")
EXTENT, RUN, ENTRY = struct.Struct("<QIHHQQ"), struct.Struct("<HBBI"), struct.Struct("<QQII")
LONGEST = {BEGIN: 4096, STREAM: 69744, CHUNK: 164000, INDEX: 144, CLOSE: 176}
AGE = b"age-encryption.org/v1\n"  # §12
FIRST_READ = 512  # has the whole header of most records

# Where a piece's bytes begin in its chunk's content; or one of these.
ZEROS, MISSING = -1, -2


class Damaged(Exception):
    """A rule of the specification does not hold."""


class Cut(Exception):
    """The file ends inside a record."""


def need(holds, reason):
    if not holds:
        raise Damaged(reason)


# --- zstd ---


def unpacker():
    """A function (frame, bytes of content) -> content."""
    try:
        import zstandard
    except ImportError:
        return library_unpacker()
    mine = threading.local()

    def unpack(frame, size):
        if not hasattr(mine, "decompressor"):
            mine.decompressor = zstandard.ZstdDecompressor()
        try:
            return mine.decompressor.decompress(frame, max_output_size=size)
        except zstandard.ZstdError as error:
            raise Damaged(f"payload does not unpack: {error}") from None

    return unpack


def library_unpacker():
    name = ctypes.util.find_library("zstd") or "libzstd.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError:
        raise ImportError("ramseal containers need zstd: pip install zstandard") from None
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p,
                                        ctypes.c_size_t]

    def unpack(frame, size):
        room = ctypes.create_string_buffer(size)
        need(library.ZSTD_decompress(room, size, frame, len(frame)) == size,
             "payload does not unpack to its content")
        return room.raw

    return unpack


def check_frame(frame, content):
    """It is exactly one zstd data frame as §3 wants it (RFC 8878, 3.1.1): nothing large unpacks."""
    need(frame[:4] == DATA_FRAME and len(frame) > 5, "payload is not a zstd data frame")
    descriptor = frame[4]
    single, size_flag = descriptor >> 5 & 1, descriptor >> 6
    need(not descriptor & 0x0B, "payload frame has a dictionary or a reserved bit")
    size_bytes = (single, 2, 4, 8)[size_flag]
    need(size_bytes, "payload frame does not state its content size")
    at = 5 + (not single) + size_bytes  # without "single segment" a window byte stands first
    window = (8 + (frame[5] & 7)) << (frame[5] >> 3) + 7
    need(single or window <= 16 * MIB, "payload frame's window is too large")
    stated = int.from_bytes(frame[at - size_bytes:at], "little") + (256 if size_flag == 1 else 0)
    need(stated == content, "payload frame states another content size")
    last = 0
    while not last:  # a block is three bytes and its data
        need(at + 3 <= len(frame), "payload frame has no end")
        block = int.from_bytes(frame[at:at + 3], "little")
        last = block & 1
        at += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
    need(at + (descriptor & 4) == len(frame), "payload is not exactly one frame")


# --- the container ---


def cache_size():
    try:
        spare = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):  # not on Windows
        spare = 1024 * MIB
    return max(64 * MIB, min(CACHE_BYTES, spare))


class Record:
    """One header (§3), checked by itself. `read` is the container's."""

    def __init__(self, read, offset, size):
        head = read(offset, min(FIRST_READ, size - offset))
        self.check_beginning(head, size - offset)
        self.type, = struct.unpack_from("<H", head, 12)
        length = struct.unpack_from("<I", head, 4)[0] + 8
        need(self.type in LONGEST and 96 + 32 <= length <= LONGEST[self.type],
             "wrong type or header length")
        if offset + length > size:
            raise Cut("the file ends in a header")
        if length > len(head):
            head += read(offset + len(head), length - len(head))
        self.header = header = head[:length]
        (_, _, _, _, reserved, self.container, self.sequence, stands, self.stored, self.content,
         self.crc, reserved2, self.sha256) = HEAD.unpack_from(header)
        self.digest = header[-32:]
        need(hashlib.sha256(b"\0" + header[:-32]).digest() == self.digest, "wrong header digest")
        need(reserved == 0 and reserved2 == 0, "reserved header field in use")
        need(stands == offset, f"record says that it stands at {stands}")
        need(self.stored <= 17 * MIB and self.content <= 16 * MIB, "payload too large")
        need((self.stored == 0) == (self.content == 0), "stored and content disagree")
        need(self.stored or (self.crc == 0 and not any(self.sha256)), "sums without payload")
        self.offset, self.payload, self.end = offset, offset + length, offset + length + self.stored

    @staticmethod
    def check_beginning(head, left):
        """The bytes that are there must be a header's, as §2 says of files that end in one."""
        begins = MAGIC.startswith(head[:4]) and MARK.startswith(head[8:12])
        need(begins, "not a record: wrong magic or mark")
        if left < 16:
            raise Cut("the file ends in a header")

    def fields(self, layout, offset=96):
        return struct.unpack_from("<" + layout, self.header, offset)

    def need_length(self, expected):
        need(len(self.header) == expected, f"header length is not {expected}")

    def text(self, offset, length):
        try:
            return self.header[offset:offset + length].decode("utf-8")
        except UnicodeDecodeError:
            raise Damaged("text is not UTF-8") from None


def json_object(text):
    """What it says; nothing if it is no object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


class Stream:
    """
    What a stream holds, as pieces: neighbouring pages of one extent in one state, in the order in
    which the file has them, so that a higher number is a newer capture (§7). settle() then makes of
    them the flat content, the newest piece for each address, sorted.
    """

    def __init__(self, kind, paged, name, metadata):
        self.kind, self.paged, self.name = kind, paged, name
        self.facts = json_object(metadata)
        self.starts, self.ends = array("Q"), array("Q")
        self.chunks, self.extents, self.data = array("I"), array("H"), array("i")
        self.clusters = []  # (first, end, pieces by address) where pieces overlap

    def add(self, start, length, chunk, extent, data):
        self.starts.append(start)
        self.ends.append(start + length)
        self.chunks.append(chunk)
        self.extents.append(extent)
        self.data.append(data)

    def settle(self):
        starts, ends, n = self.starts, self.ends, len(self.starts)
        if all(map(int.__le__, ends, itertools.islice(starts, 1, None))):
            self.first, self.last, self.piece = starts, ends, range(n)
            return
        self.first, self.last, self.piece = array("Q"), array("Q"), array("I")
        order = sorted(range(n), key=starts.__getitem__)
        i = 0
        while i < n:
            end, j = ends[order[i]], i + 1
            while j < n and starts[order[j]] < end:
                end = max(end, ends[order[j]])
                j += 1
            if j == i + 1:
                self.settle_piece(starts[order[i]], end, order[i])
            else:
                self.settle_cluster(order[i:j])
            i = j

    def settle_piece(self, first, last, piece):
        self.first.append(first)
        self.last.append(last)
        self.piece.append(piece)

    def settle_cluster(self, cluster):
        starts, ends = self.starts, self.ends
        bounds = sorted({x for p in cluster for x in (starts[p], ends[p])})
        self.clusters.append((bounds[0], bounds[-1], cluster))
        newest, k = [], 0  # a heap of negative numbers
        for at, upto in zip(bounds, bounds[1:]):
            while k < len(cluster) and starts[cluster[k]] <= at:
                heapq.heappush(newest, -cluster[k])
                k += 1
            while ends[-newest[0]] <= at:
                heapq.heappop(newest)
            self.settle_piece(at, upto, -newest[0])

    def cluster(self, first, end):
        """The first one that has something of these addresses; None."""
        i = bisect.bisect(self.clusters, (first, 1 << 64))
        for one in self.clusters[max(i - 1, 0):i + 1]:
            if one[0] < end and first < one[1]:
                return one
        return None

    def captures(self, address):
        """The pieces that captured an address, from the oldest to the newest."""
        found = self.cluster(address, address + 1)
        if found:
            return sorted(p for p in found[2] if self.starts[p] <= address < self.ends[p])
        i = self.at(address)
        return [self.piece[i]] if i is not None else []

    def at(self, address):
        """The index in `piece` of what the flat content has at an address; None: nothing."""
        i = bisect.bisect(self.first, address) - 1
        return i if i >= 0 and address < self.last[i] else None

    def pieces(self, address, end):
        """(first, end, piece) from address to end; piece is None where nothing was captured."""
        i = bisect.bisect(self.first, address) - 1
        if i < 0 or self.last[i] <= address:
            i += 1
        while address < end:
            if i < len(self.first) and self.first[i] <= address:
                upto = min(end, self.last[i])
                yield address, upto, self.piece[i]
                i += 1
            else:
                upto = min(end, self.first[i]) if i < len(self.first) else end
                yield address, upto, None
            address = upto


class Container:
    """
    `read(offset, length)` gives bytes of the file, which has `size`. It opens as far as it is
    whole: `ending` says how it ends (sealed, unsealed, cut, damaged) and `reason` why. Every header is
    checked when it is opened, a payload when it is used. Whether all of a container is as it was
    sealed, `ramseal verify` says.
    """

    def __init__(self, read, size, cache_bytes=None):
        self.read, self.size = read, size
        self.cache_bytes = cache_bytes or cache_size()
        self.streams, self.names = [], set()
        self.records = []  # of chunks: (offset, header length, stored, content, crc, sha256)
        self.cache, self.cached, self.lock = collections.OrderedDict(), 0, threading.Lock()
        self.reading = threading.Lock()  # `read` seeks
        self.bad, self.good = {}, set()  # {chunk: why}, and those whose hash was right
        self.pool = None
        self.unpack = unpacker()
        self.identity, self.leaves, self.n_records, self.last_index = None, [], 0, 0
        self.unlisted = []  # INDEX entries for the records since the last INDEX
        self.ending, self.reason = "unsealed", "no CLOSE record"
        self.walk()
        for stream in self.streams:
            stream.settle()

    # --- opening ---

    @staticmethod
    def begins(read, size):
        """Where the first whole record is: 0, or behind a bad BEGIN (§2). None: no container."""
        head = read(0, min(size, 4096 + 12))
        if len(head) >= 12 and head[:4] == MAGIC and head[8:12] == MARK:
            try:
                Record(read, 0, size)
                return 0
            except (Cut, Damaged):
                pass
        at = head.find(MAGIC, 152)
        while at >= 0:
            try:
                record = Record(read, at, size)
                if record.sequence == 1 and record.end <= size:
                    return at
            except (Cut, Damaged):
                pass
            at = head.find(MAGIC, at + 1)
        return 0 if len(head) >= 12 and head[:4] == MAGIC and head[8:12] == MARK else None

    def walk(self):
        offset = self.begins(self.read, self.size)
        need(offset is not None, "not a container")
        without_begin = offset > 0
        if without_begin:
            self.leaf(self.read(offset - 32, 32))
        parts = [self.take_begin, self.take_stream, self.take_chunk, self.take_index,
                 self.take_close]
        try:
            while self.ending == "unsealed" and offset < self.size:
                record = Record(self.read, offset, self.size)
                self.check_place(record)
                parts[record.type - 1](record)
                self.leaf(record.digest)
                offset = record.end
        except Cut as problem:
            self.ending, self.reason = "cut", f"at {offset}: {problem}"
        except Damaged as problem:
            self.ending, self.reason = "damaged", f"at {offset}: {problem}"
        if without_begin:
            self.ending, self.reason = "damaged", "at 0: its first record is damaged"

    def check_place(self, record):
        need((record.type == BEGIN) == (record.offset == 0), "BEGIN is record 0 and only that")
        need(record.sequence == self.n_records, f"sequence is not {self.n_records}")
        need(record.container == (self.identity or record.container), "from another container")
        self.identity = record.container
        if record.end > self.size:
            raise Cut("the file ends in a payload")
        if record.type in (BEGIN, STREAM, CLOSE):
            need(record.stored == 0, "payload on a record that has none")

    def leaf(self, digest):
        """Of the Merkle tree (§9.1), kept as (leaves, hash): equal halves are joined."""
        self.n_records += 1
        self.leaves.append((1, digest))
        while len(self.leaves) > 1 and self.leaves[-2][0] == self.leaves[-1][0]:
            self.join()

    def join(self):
        (n, right), (m, left) = self.leaves.pop(), self.leaves.pop()
        self.leaves.append((n + m, hashlib.sha256(b"\1" + left + right).digest()))

    def take_begin(self, record):  # §4
        version, length = record.fields("II")
        need(version == 1, f"unknown version {version}")
        record.need_length(120 + length + 32)
        record.text(120, length)

    def take_stream(self, record):  # §5
        number, kind, page_size, name, metadata, reserved = record.fields("IIIIII")
        need(number == len(self.streams) < 4096, f"stream number is not {len(self.streams)}")
        need(page_size in (0, PAGE), f"page size {page_size}")
        need(kind not in (PLAIN_KINDS if page_size else PAGED_KINDS), "page size is not its kind's")
        need(1 <= name <= 4096 and metadata <= 65496 and reserved == 0, "wrong stream field")
        record.need_length(120 + name + metadata + 32)
        stream = Stream(kind, bool(page_size), record.text(120, name),
                        record.text(120 + name, metadata))
        need(stream.name not in self.names, "name is not unique")
        self.streams.append(stream)
        self.names.add(stream.name)
        self.unlisted.append(ENTRY.pack(record.offset, 0, 0, number))

    def take_chunk(self, record):  # §6
        number, extents, runs, length, start, end = record.fields("IIIIQQ")
        need(number < len(self.streams), f"stream {number} is not declared")
        stream = self.streams[number]
        need(1 <= extents <= 4096 and 1 <= length <= 16 * MIB, "wrong number of extents, or length")
        need(1 <= runs <= 4096 if stream.paged else runs == 0, f"{runs} page runs")
        need(start <= end, "chunk times run backwards")
        record.need_length(128 + 32 * extents + 8 * runs + 32)
        split = 128 + 32 * extents
        table = list(EXTENT.iter_unpack(record.header[128:split]))
        for extent in table:
            self.check_extent(stream, extent, start, end)
        need(sum(e[1] for e in table) == length, "chunk length is not its extents'")
        if stream.paged:
            states = self.check_runs(list(RUN.iter_unpack(record.header[split:-32])), table)
        else:
            states = [(sum(pages_of(e[1]) for e in table), DATA, 0)]
        pieces, content = lay_out(table, states)
        need(content == record.content, "content is not what the page states say")
        for piece in pieces:
            stream.add(*piece[:2], len(self.records), *piece[2:])
        self.records.append((record.offset, len(record.header), record.stored, record.content,
                             record.crc, record.sha256))
        self.unlisted += [ENTRY.pack(record.offset, e[0], e[1], number) for e in table]

    @staticmethod
    def check_extent(stream, extent, begin, finish):
        address, length, capture, reason, start, end = extent
        physical = stream.kind in PHYSICAL_KINDS
        need(length >= 1 and address + length <= 1 << (52 if physical else 63), "wrong extent")
        need(not physical or length % PAGE == 0, "extent ends inside a page")
        need(not stream.paged or address % PAGE == 0, "extent begins inside a page")
        need(reason == 0 if capture == 0 else 1 <= reason <= 3, f"reason {reason}, pass {capture}")
        need(begin <= start <= end <= finish, "extent times out of order")

    @staticmethod
    def check_runs(runs, table):
        before = None
        for count, state, reserved, detail in runs:
            need(count >= 1 and reserved == 0 and state <= HOLE, "wrong page run")
            need(state == UNREADABLE or (1 <= detail <= 4 if state == SKIPPED else detail == 0),
                 f"detail {detail} on a page of state {state}")
            need((state, detail) != before, "neighbouring page runs are alike")
            before = state, detail
        need(sum(run[0] for run in runs) == sum(pages_of(e[1]) for e in table),
             "page runs do not cover the extents")
        return [(count, state, detail) for count, state, _, detail in runs]

    def take_index(self, record):  # §8
        record.need_length(144)
        entries, reserved, previous = record.fields("IIQ")
        need(1 <= entries <= 4096 and reserved == 0, "wrong index field")
        need(previous == self.last_index, f"previous INDEX is not at {previous}")
        need(entries == len(self.unlisted) and record.content == ENTRY.size * entries,
             "wrong number of entries")
        # What it has to say is known, so that nothing needs to be unpacked.
        need(hashlib.sha256(b"".join(self.unlisted)).digest() == record.sha256,
             "INDEX does not list the records before it")
        self.unlisted, self.last_index = [], record.offset

    def take_close(self, record):  # §9
        record.need_length(176)
        records, last_index, root = record.fields("QQ32s")
        need(records == record.sequence, f"CLOSE counts {records} records")
        need(last_index == self.last_index and not self.unlisted, "CLOSE and INDEX disagree")
        while len(self.leaves) > 1:
            self.join()
        need(root == self.leaves[0][1], "wrong root")
        behind = self.read(record.end, min(32, self.size - record.end))
        need(len(behind) < 32 or behind[:4] != MAGIC or behind[8:12] != MARK
             or behind[16:] != record.container, "a record of this container behind CLOSE")
        self.ending, self.reason = "sealed", ""

    # --- content ---

    def chunk(self, number):
        """A chunk's content, checked. Damaged if it is not what its header says."""
        with self.lock:
            if number in self.bad:
                raise Damaged(self.bad[number])
            if number in self.cache:
                self.cache.move_to_end(number)
                return self.cache[number]
        try:
            content = self.load(number)
        except Damaged as problem:
            self.bad[number] = str(problem)
            log.warning("ramseal: the chunk at %d is damaged: %s", self.records[number][0], problem)
            raise
        with self.lock:
            if number not in self.cache:
                self.cache[number] = content
                self.cached += len(content)
            while self.cached > self.cache_bytes and len(self.cache) > 1:
                self.cached -= len(self.cache.popitem(last=False)[1])
        return content

    def load(self, number):
        offset, header, stored, size, crc, sha256 = self.records[number]
        if not stored:
            return b""
        with self.reading:
            frame = self.read(offset + header, stored)
        need(len(frame) == stored and zlib.crc32(frame) == crc, "wrong payload CRC-32")
        check_frame(frame, size)
        content = self.unpack(frame, size)
        need(len(content) == size, "payload does not unpack to its content")
        if number not in self.good:
            need(hashlib.sha256(content).digest() == sha256, "wrong content SHA-256")
            self.good.add(number)
        return content

    def ahead(self, wanted):
        """
        Loads the chunks of (stream, piece) side by side: zstd and the sums do not hold Python's lock.
        """
        numbers = {s.chunks[p] for s, p in wanted if p is not None and s.data[p] >= 0}
        numbers = sorted(numbers - self.cache.keys())
        if len(numbers) < 2:
            return
        if not self.pool:
            self.pool = ThreadPoolExecutor(4)
        list(self.pool.map(self.is_good, numbers))

    def is_good(self, number):
        try:
            self.chunk(number)
        except Damaged:
            return False
        return True

    def is_readable(self, stream, piece):
        """Something was read there, and it is not damaged. `piece` may be None."""
        if piece is None or stream.data[piece] == MISSING:
            return False
        return stream.data[piece] == ZEROS or self.is_good(stream.chunks[piece])

    def piece_bytes(self, stream, piece, first, end):
        """None: it cannot be read."""
        if not self.is_readable(stream, piece):
            return None
        if stream.data[piece] == ZEROS:
            return bytes(end - first)
        at = stream.data[piece] + first - stream.starts[piece]
        return self.chunk(stream.chunks[piece])[at:at + end - first]

    def parts(self, stream, address, length):
        """(first, end, bytes or None) of the flat content."""
        pieces = list(stream.pieces(address, address + length))
        if length > MIB:
            self.ahead((stream, piece) for _, _, piece in pieces)
        for first, end, piece in pieces:
            yield first, end, self.piece_bytes(stream, piece, first, end)

    def captured(self, stream, piece):
        """(start, end) of a capture, monotonic ns."""
        return self.times(stream.chunks[piece])[stream.extents[piece]]

    @functools.lru_cache(maxsize=256)
    def times(self, number):
        offset, length = self.records[number][:2]
        with self.reading:
            header = self.read(offset, length)
        extents, = struct.unpack_from("<I", header, 100)
        return [e[4:] for e in EXTENT.iter_unpack(header[128:128 + 32 * extents])]

    # --- what the streams are ---

    def kind(self, kind):
        return [s for s in self.streams if s.kind == kind]

    def memory(self):
        """The stream of physical memory; None: there is none, or it is empty."""
        return next((s for s in self.kind(MEMORY) if len(s.first)), None)

    def page_files(self):
        """{number that entries have: stream}; of a number that two claim, none."""
        named = [(s.facts.get("number"), s) for s in self.kind(PAGE_FILE)]
        named = [(n, s) for n, s in named if isinstance(n, int) and 0 <= n < 32]
        claims = collections.Counter(n for n, _ in named)
        return {n: s for n, s in named if claims[n] == 1}

    def manifest(self):
        """Its lines, those that can be read (§11)."""
        text = b"".join(data or b"\n" for s in self.kind(MANIFEST) if len(s.first)
                        for _, _, data in self.parts(s, 0, s.last[-1]))
        found = []
        for line in text.split(b"\n"):
            found.append(json_object(line))
        return [line for line in found if line]

    def facts(self):
        """
        What the acquisition found out, for those who would search for it; by the names that
        volatility3 has for some. Values of another kind than MANIFEST.md says are left out.
        """
        manifest = self.manifest()
        lines = [x for x in manifest if x.get("event") == "tables"]
        tables = next((x for x in reversed(lines) if isinstance(x.get("kernel_dtb"), int)), {})
        system, kernel = (tables[k] if isinstance(tables.get(k), dict) else {}
                          for k in ("system", "ntoskrnl"))
        os_name = {"windows": "Windows", "linux": "Linux"}.get(str(tables.get("os")))
        begin = next((x for x in manifest if x.get("event") == "begin"), {})
        facts = {"os": os_name, "page_table_levels": tables.get("levels"), **machine_of(begin, tables)}
        if isinstance(system.get("build"), int):
            facts["windows_build"] = system["build"]
        with contextlib.suppress(TypeError, ValueError):
            facts["ntoskrnl"] = int(kernel.get("base"), 16)
        if os_name == "Windows" and tables.get("levels") == 4 and "machine" not in facts:
            facts.update(architecture="Intel64", page_map_offset=tables["kernel_dtb"])
        return {name: fact for name, fact in facts.items() if fact is not None}


def machine_of(*lines):
    """What the first of these lines says that says something; nothing of x86-64, as in older containers."""
    for machine in (line.get("machine") for line in lines):
        if isinstance(machine, dict) and machine.get("architecture") == "arm64":
            size = machine.get("page_size")
            return {"machine": "arm64", "machine_page_size": size if isinstance(size, int) else PAGE}
        if isinstance(machine, dict) and machine.get("architecture") == "x86_64":
            break
    return {}


def pages_of(length):
    return -(-length // PAGE)


def lay_out(table, states):
    """[(address, length, extent, data)], and how many bytes of content that takes."""
    pieces, content, left, runs = [], 0, 0, iter(states)
    for number, extent in enumerate(table):
        address, end = extent[0], extent[0] + extent[1]
        while address < end:
            if not left:
                left, state, detail = next(runs)
            pages = min(left, pages_of(end - address))
            length = min(pages * PAGE, end - address)
            if state == DATA:
                pieces.append((address, length, number, content))
                content += length
            else:
                zeros = state in (ZERO, HOLE) or (state, detail) == (SKIPPED, NOT_INITIALISED)
                pieces.append((address, length, number, ZEROS if zeros else MISSING))
            address, left = address + length, left - pages
    return pieces, content


# --- which capture of a page an entry means ---

ACCESSED_DIRTY = 0x60  # what a processor changes in an entry that goes on leading to the same page


def entry_observations(container, address):
    """[(start, end, entry, in memory, the newest there)] of 8 bytes of a table, by time."""
    page, memory, found = address & -PAGE, container.memory(), []
    streams = container.kind(TABLES_BEFORE) + [memory] + container.kind(TABLES_AFTER)
    for stream in streams:
        pieces = stream.captures(page)
        for piece in pieces:
            data = container.piece_bytes(stream, piece, address, address + 8)
            entry = int.from_bytes(data, "little") & ~ACCESSED_DIRTY if data else None
            newest = stream is memory and piece == pieces[-1]
            found.append((*container.captured(stream, piece), entry, stream is memory, newest))
    return sorted(found, key=lambda o: o[:2])


def choose_capture(container, stream, page, entry_address):
    """
    Which of several captures of a page or slot belongs to an entry: §7, and agent/examine/smear/METHOD.md,
    section 5, of which this takes the entry's own table, not the whole path. Returns its place
    among the stream's captures of the page, or None: none can be read.
    """
    pieces = stream.captures(page)
    readable = [i for i, p in enumerate(pieces) if container.is_readable(stream, p)]
    if len(readable) < 2:
        return readable[0] if readable else None
    seen = entry_observations(container, entry_address)
    own = first = last = next(i for i, o in enumerate(seen) if o[4])
    while first > 0 and seen[first - 1][2] == seen[own][2]:
        first -= 1
    while last + 1 < len(seen) and seen[last + 1][2] == seen[own][2]:
        last += 1
    readings = [o for o in seen[first:last + 1] if o[3]]

    def rank(i):
        start, end = container.captured(stream, pieces[i])
        stood = seen[first][1] <= start and end <= seen[last][0]
        between = readings[0][1] <= start and end <= seen[own][0]
        window = min(max(end, o[1]) - min(start, o[0]) for o in readings)
        return between, stood, -window, i

    return max(readable, key=rank)


# --- Windows' entries that name a slot of a page file ---

WINDOWS_1809 = 17763
INVALID_PTE_MASK = 1 << 45  # what Windows sets in entries that are not present, since the L1TF fix


def windows_slot(entry, build, mask=INVALID_PTE_MASK):
    """
    (number of the page file, slot) that an entry names which is not present; None: it names none.
    _MMPTE_SOFTWARE of the public symbols, of 7 to 1709 and of 1809 to 11 22H2, which later ones are
    taken to be like; 1803 has both.
    """
    if entry & 0xC01 or not build or 16299 < build < WINDOWS_1809:  # valid, prototype, transition
        return None
    shift = 1
    if build >= WINDOWS_1809:
        shift = 12
        if not entry & 0x10:  # SwizzleBit
            entry &= ~mask
    slot = entry >> 32
    return (entry >> shift & 15, slot) if 0 < slot < 0xFFFFFFFF else None


# --- what only the program knows ---

BLOCK, WINDOW = 4 * MIB, 1024 * MIB
# From the best to the worst, as METHOD.md has them; the last where nothing was said.
TRUST = ("safe", "not-applicable", "at-risk", "wrong", "unknown")


def program():
    """Where ramseal is: as RAMSEAL says, in the prefix that this file is installed in, or in PATH."""
    name = "ramseal.exe" if os.name == "nt" else "ramseal"
    here = os.path.dirname(os.path.abspath(__file__))
    named = os.environ.get("RAMSEAL")
    if named:
        return shutil.which(named)
    # On Windows shutil.which() looks into the current folder first, where evidence may be.
    path = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]
    for folder in [os.path.join(here, "..", "..", "..", "bin"), os.path.join(here, ".."), *path]:
        found = os.path.normpath(os.path.join(folder, name))
        if os.path.isfile(found) and os.access(found, os.X_OK):
            return found
    return None


class Asked:
    """
    Pages of address spaces as `ramseal read` finds them: in Windows' compression store, in slots of
    swap areas and page files, by prototypes; and with its verdict. A page that is asked for costs
    two runs of the program, and then so do none of its neighbours.
    """

    def __init__(self, path):
        self.path, self.program, self.said = path, program(), False
        if not self.program:
            self.give_up("the program ramseal is neither in PATH nor named by RAMSEAL")

    def give_up(self, why):
        if not self.said:
            log.warning("ramseal: pages that only `ramseal read` finds are missing: %s", why)
        self.said = True

    def run(self, *arguments):
        """Its output; None if it has none. Exit code 3 is that of pages without content."""
        if not self.program:
            return None
        command = [self.program, "-q", *arguments, self.path]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        except OSError as problem:
            self.give_up(str(problem))
            self.program = None
            return None
        if done.returncode not in (0, 3):
            lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
            self.give_up(lines[-1])
            return None
        return done.stdout

    def read(self, dtb, va, length, *options):
        return self.run("read", "--dtb", hex(dtb), "--va", hex(va), "--length", str(length), *options)

    @functools.lru_cache(maxsize=256)
    def window(self, dtb, base):
        """(first addresses, rows) of a GiB."""
        text = self.read(dtb, base, WINDOW, "--json") or b""
        rows = [json_object(line) for line in text.splitlines()]
        rows = [row for row in rows
                if isinstance(row.get("va"), str) and isinstance(row.get("pages"), int)]
        for row in rows:
            row["first"] = int(row["va"], 16)
        return [row["first"] for row in rows], rows

    def row(self, dtb, va):
        """What `ramseal read --json` says of a page; None."""
        firsts, rows = self.window(dtb, va & -WINDOW)
        i = bisect.bisect(firsts, va) - 1
        return rows[i] if i >= 0 and va < rows[i]["first"] + rows[i]["pages"] * PAGE else None

    @functools.lru_cache(maxsize=16)
    def block(self, dtb, base):
        return self.read(dtb, base, BLOCK, "--output", "-")

    def page(self, dtb, va):
        """Its bytes; None: it has no content, or none that is its own."""
        row = self.row(dtb, va)
        if not row or row.get("content") not in ("memory", "page-file", "compressed", "zeros"):
            return None
        if row["content"] == "zeros":
            return bytes(PAGE)
        block = self.block(dtb, va & -BLOCK) or b""
        page = block[va % BLOCK:va % BLOCK + PAGE]
        return page if len(page) == PAGE else None

    def pids(self):
        """{DTB: PID}"""
        spaces = json_object(self.run("info", "--json") or b"").get("address_spaces")
        spaces = spaces if isinstance(spaces, list) else []
        return {s.get("dtb"): s.get("pid") for s in spaces if isinstance(s, dict)}


class Verdicts:
    """
    Which pages of address spaces were looked at, and what each is worth. With RAMSEAL_VERDICTS=FILE
    a CSV of them is written at the end, and with RAMSEAL_COLUMN=1 each row of what a plugin prints
    has the worst of the pages that were looked at for it.
    """

    HEAD = ("pid", "dtb", "va", "pages", "state", "content", "trust", "verdict", "doubt", "why")

    def __init__(self):
        self.path, self.column = os.environ.get("RAMSEAL_VERDICTS"), os.environ.get("RAMSEAL_COLUMN")
        self.pages, self.lately = {}, set()  # of those in `pages`, in their order: (asked, dtb, va)
        self.column = self.column not in (None, "", "0")
        self.wanted = bool(self.path or self.column)
        if self.path:
            atexit.register(self.write)

    def add(self, asked, dtb, va):
        if self.path:
            self.pages[asked, dtb, va] = None
        if self.column:
            self.lately.add((asked, dtb, va))

    @staticmethod
    def trust(row):
        trust = row.get("trust", "not-applicable") if row else None
        return trust if trust in TRUST else TRUST[-1]

    def take_column(self):
        """The worst of those since the last time, and how many of them are not safe."""
        counts = collections.Counter(self.trust(asked.row(dtb, va)) for asked, dtb, va in self.lately)
        self.lately.clear()
        if not counts:
            return "-"
        worst = max(counts, key=TRUST.index)
        return f"{worst} ({counts[worst]} of {sum(counts.values())} pages)"

    def rows(self):
        """Neighbours that are alike are one."""
        last = None
        pids = {asked: asked.pids() for asked in {key[0] for key in self.pages}}
        for asked, dtb, va in sorted(self.pages, key=lambda key: (key[0].path, key[1:])):
            row = asked.row(dtb, va) or {}
            facts = [row.get(name, "") for name in self.HEAD[4:]]
            facts[2] = self.trust(row)
            own = [pids[asked].get(dtb, ""), hex(dtb)]
            if last and last[:2] == own and last[4:] == facts and last[2] + last[3] * PAGE == va:
                last[3] += 1
                continue
            if last:
                yield last
            last = [*own, va, 1, *facts]
        if last:
            yield last

    def write(self):
        """Processes of volatility3 that run in parallel add to the same file."""
        if not self.pages:
            return
        with open(self.path, "a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            if not file.tell():
                writer.writerow(self.HEAD)
            for row in self.rows():
                writer.writerow([*row[:2], hex(row[2]), *row[3:]])


verdicts = Verdicts()


# --- the layers ---

try:
    from volatility3.framework import exceptions, interfaces, renderers
    from volatility3.framework.automagic import linux as linux_automagic
    from volatility3.framework.automagic import pdbscan
    from volatility3.framework.automagic import windows as windows_automagic
    from volatility3.framework.configuration import requirements
    from volatility3.framework.layers import intel
except ImportError:
    interfaces = None

# Addresses of the layer are physical ones, below 2^52. Above them is what only a process layer asks
# for: from bit 52 on the number of a capture (1: the oldest; 0: the newest), and from bit 62 on a
# page file's number, plus 1. Or all of this is a virtual address, with its DTB above it, of a page
# that ramseal is asked for.
OFFSET_BITS, FILE_BIT = 52, 62
CAPTURES = (1 << FILE_BIT - OFFSET_BITS) - 1
ASKED, DTB_BIT = 1 << 128, 64

if interfaces:
    opened = {}  # (location, size): Container; layers are made anew more than once
    askable = {}  # location: Asked

    class RamsealLayer(interfaces.layers.TranslationLayerInterface):
        """Physical memory in a ramseal container, with the gaps that it has."""

        provides = {"type": "physical"}

        def __init__(self, context, config_path, name, metadata=None):
            super().__init__(context=context, config_path=config_path, name=name,
                             metadata=metadata)
            self._base_layer = self.config["base_layer"]
            self._container = None
            self._memory = self.container.memory()
            if not self._memory:
                raise exceptions.LayerException(name, "the container has no physical memory")
            self._files = self.container.page_files()
            self._metadata = {**self.container.facts(), **self._metadata}

        @property
        def container(self):
            if not self._container:
                base = self._context.layers[self._base_layer]
                size = base.maximum_address + 1
                key = getattr(base, "location", base.name), size
                if key not in opened:
                    opened[key] = Container(reader_of(base), size)
                    complain(opened[key])
                opened[key].read = reader_of(base)
                self._container = opened[key]
            return self._container

        @property
        def asked(self):
            """None: the container is no plain file."""
            location = str(getattr(self._context.layers[self._base_layer], "location", ""))
            if not location.startswith("file:"):
                return None
            if location not in askable:
                path = urllib.request.url2pathname(urllib.parse.urlparse(location).path)
                askable[location] = Asked(path)
            return askable[location]

        def __getstate__(self):
            """For other processes and copies of a context: they open the container themselves."""
            return {**self.__dict__, "_container": None, "_memory": None, "_files": None}

        def __setstate__(self, state):
            self.__dict__.update(state)

        # The streams are looked up again in another process.

        @property
        def memory(self):
            if self._memory is None:
                self._memory = self.container.memory()
            return self._memory

        @property
        def files(self):
            if self._files is None:
                self._files = self.container.page_files()
            return self._files

        @property
        def minimum_address(self):
            return self.memory.first[0]

        @property
        def maximum_address(self):
            return self.memory.last[-1] - 1

        @property
        def dependencies(self):
            return [self._base_layer]

        @classmethod
        def get_requirements(cls):
            return [requirements.TranslationLayerRequirement(name="base_layer", optional=False)]

        def stream_at(self, offset):
            """(stream or None, number of a capture) of an address."""
            number, capture = offset >> FILE_BIT, offset >> OFFSET_BITS & CAPTURES
            return (self.files.get(number - 1) if number else self.memory), capture

        def stretches(self, offset, length):
            """(first, end, stream, piece or None): all in the place that `offset` is in."""
            stream, capture = self.stream_at(offset)
            at = offset & (1 << OFFSET_BITS) - 1
            if not stream:
                yield offset, offset + length, None, None
            elif not capture:
                for first, end, piece in stream.pieces(at, at + length):
                    yield first - at + offset, end - at + offset, stream, piece
                return
            while stream and length:
                size = min(length, PAGE - at % PAGE)
                captures = stream.captures(at)
                piece = captures[capture - 1] if capture <= len(captures) else None
                yield offset, offset + size, stream, piece
                offset, at, length = offset + size, at + size, length - size

        def asked_page(self, offset):
            """Of an address with ASKED; None."""
            return self.asked and self.asked.page((offset & ASKED - 1) >> DTB_BIT,
                                                  offset & (1 << DTB_BIT) - PAGE)

        def asked_bytes(self, offset, length, pad):
            found = b""
            while len(found) < length:
                at = offset + len(found)
                page = self.asked_page(at)
                if not page and not pad:
                    raise exceptions.InvalidAddressException(
                        self.name, at, f"nothing could be read at {at:#x}")
                found += (page or bytes(PAGE))[at % PAGE:at % PAGE + length - len(found)]
            return found

        def is_valid(self, offset, length=1):
            if offset & ASKED:
                pages = range(offset & -PAGE, offset + max(length, 1), PAGE)
                return all(self.asked_page(at) is not None for at in pages)
            container = self.container
            return offset >= 0 and all(container.is_readable(stream, piece) for _, _, stream, piece
                                       in self.stretches(offset, max(length, 1)))

        def read(self, offset, length, pad=False):
            if offset & ASKED:
                return self.asked_bytes(offset, length, pad)
            container, mask = self.container, (1 << OFFSET_BITS) - 1
            stretches = list(self.stretches(offset, length))
            if length > MIB:
                container.ahead((stream, piece) for _, _, stream, piece in stretches)
            found = []
            for first, end, stream, piece in stretches:
                at, size = first & mask, end - first
                data = container.piece_bytes(stream, piece, at, at + size)
                if data is None and not pad:
                    raise exceptions.InvalidAddressException(
                        self.name, first, f"nothing could be read at {first:#x}")
                found.append(bytes(size) if data is None else data)
            return found[0] if len(found) == 1 else b"".join(found)

        def write(self, offset, value):
            raise NotImplementedError("a container is not written to")

        def mapping(self, offset, length, ignore_errors=False):
            """
            What was captured; where a chunk is damaged is known once it was read. Offsets in the
            file mean nothing to anybody, so they are this layer's.
            """
            if offset & ASKED:
                yield offset, length, offset, length, self._base_layer
                return
            first = last = None
            for begin, end, stream, piece in self.stretches(offset, length):
                number = None if piece is None else stream.chunks[piece]
                if piece is None or stream.data[piece] == MISSING or number in self.container.bad:
                    if not ignore_errors:
                        raise exceptions.InvalidAddressException(
                            self.name, begin, f"nothing was read at {begin:#x}")
                    continue
                if first is not None and begin == last:
                    last = end
                    continue
                if first is not None:
                    yield first, last - first, first, last - first, self._base_layer
                first, last = begin, end
            if first is not None:
                yield first, last - first, first, last - first, self._base_layer

        def _scan_chunk(self, scanner, progress, iterator_value):
            """As the framework's, but one damaged chunk does not cost what is around it."""
            blocks, end = iterator_value
            data = b"".join(self.read(at, size, pad=True) for _, at, size in blocks)
            progress.value = end
            return list(scanner(data, end - len(data)))

    def reader_of(base):
        """What Container reads with: of a file that has become shorter, less."""

        def read(offset, length):
            try:
                return base.read(offset, length) if length > 0 else b""
            except exceptions.InvalidAddressException:
                return b""

        return read

    def complain(container):
        if container.ending == "sealed":
            return
        log.warning("ramseal: the container is %s (%s): what it has up to there is used",
                    container.ending, container.reason)

    class Recaptured(intel.Intel):
        """
        Entries lead to the capture that was made for them, if a page has several; and Windows' to
        the page files in the container. Of other entries that are not present the program ramseal
        is asked. Over another physical layer it does nothing.
        """

        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self._leaf = None
            self._chosen = {}

        @property
        def _physical(self):
            layer = self._context.layers[self._base_layer]
            return layer if isinstance(layer, RamsealLayer) else None

        def _get_valid_table(self, base_address):
            self._leaf = base_address
            return super()._get_valid_table(base_address)

        def _own_address(self, offset):
            """(DTB, virtual address of the page) as ramseal is asked for them."""
            dtb = self.config["page_map_offset"] & (1 << OFFSET_BITS) - PAGE
            return dtb, self.canonicalize(offset & self.address_mask) & (1 << DTB_BIT) - PAGE

        def _translate(self, offset):
            physical = self._physical
            try:
                page, size, layer = super()._translate(offset)
            except exceptions.PagedInvalidAddressException as problem:
                if not physical:
                    raise
                if problem.entry or problem.invalid_bits == self._page_size_in_bits:
                    self._note(physical, offset)
                return self._not_present(physical, offset, problem)
            self._note(physical, offset)
            if physical and layer == self._base_layer:
                if physical.memory.cluster(page & -size, (page & -size) + size):
                    return self._capture(physical, page, offset), PAGE, layer
            return page, size, layer

        def _capture(self, physical, place, offset):
            """`place`, or that of an older capture of it which fits the entry better."""
            stream, at = physical.stream_at(place)[0], place & (1 << OFFSET_BITS) - 1
            captures = stream.captures(at)
            if len(captures) < 2:
                return place
            _, position = self._translate_entry(offset)
            index = offset >> position + 1 & self._entry_number - 1
            key = place & -PAGE, self._leaf + index * self._entry_size
            if key not in self._chosen:
                self._chosen[key] = choose_capture(physical.container, stream, at, key[1])
            chosen = self._chosen[key]
            if chosen is None or chosen + 1 in (len(captures), CAPTURES + 1):
                return place
            return chosen + 1 << OFFSET_BITS | place

        def _note(self, physical, offset):
            """What has no table at all is not looked at: it would have no verdict."""
            if verdicts.wanted and physical and physical.asked:
                verdicts.add(physical.asked, *self._own_address(offset))

        def _not_present(self, physical, offset, problem):
            """
            Of entries of 0 only those in tables of pages are asked for, which Windows' prototypes
            may fill: the others are nearly all that there is of an address space.
            """
            found = self._page_file(physical, offset, problem)
            last = problem.invalid_bits == self._page_size_in_bits
            if not found and not problem.entry & 1 and (problem.entry or last) and physical.asked:
                dtb, va = self._own_address(offset)
                if physical.asked.page(dtb, va):
                    found = ASKED | dtb << DTB_BIT | va | offset & PAGE - 1
            if not found:
                raise problem
            return found, PAGE, self._base_layer

        def _page_file(self, physical, offset, problem):
            return None

    class RamsealIntel32e(Recaptured, intel.Intel32e):
        """Linux on x64 over a container."""

    class RamsealIntel57(RamsealIntel32e):
        """The same with five levels of page tables, which volatility3 has no layer for."""

        _maxvirtaddr = 57
        _structure = [("page map layer 5", 9, False)] + intel.Intel32e._structure

    class RamsealWindowsIntel32e(Recaptured, intel.WindowsIntel32e):
        """Windows on x64 over a container."""

        def _page_file(self, physical, offset, problem):
            if problem.invalid_bits != self._page_size_in_bits:
                return None
            found = windows_slot(problem.entry, physical.metadata.get("windows_build"))
            if not found or found[0] not in physical.files:
                return None
            number, slot = found
            place = number + 1 << FILE_BIT | slot * PAGE | offset & PAGE - 1
            return self._capture(physical, place, offset)

    class RamsealStacker(interfaces.automagic.StackerLayerInterface):
        """The physical layer of a container."""

        stack_order = 9

        @classmethod
        def stack(cls, context, layer_name, progress_callback=None):
            base = context.layers[layer_name]
            if base.dependencies:
                return None
            size, read = base.maximum_address + 1, reader_of(base)
            if read(0, len(AGE)) == AGE:
                log.warning("ramseal: the file is encrypted: decrypt it first, with `age --decrypt "
                            "-i KEYS -o host.rsz FILE`")
                return None
            if Container.begins(read, size) is None:
                return None
            name = context.layers.free_layer_name("RamsealLayer")
            context.config[interfaces.configuration.path_join(name, "base_layer")] = layer_name
            try:
                return RamsealLayer(context, name, name)
            except exceptions.LayerException as problem:
                log.warning("ramseal: %s", problem)
                return None

    def over_container(stacker, kinds, context, layer_name, progress_callback):
        """The layer that volatility3's own stacker makes, as one of `kinds`."""
        if not isinstance(context.layers[layer_name], RamsealLayer):
            return None
        made = stacker.stack(context, layer_name, progress_callback)
        if type(made) not in kinds:
            return None
        kind = kinds[type(made)]
        return kind(context, made.config_path, made.name, metadata=dict(made._metadata))

    class RamsealLinuxStacker(interfaces.automagic.StackerLayerInterface):
        stack_order = 34
        exclusion_list = ["mac", "windows"]

        @classmethod
        def stack(cls, context, layer_name, progress_callback=None):
            layer = context.layers[layer_name]
            five = layer.metadata.get("page_table_levels") == 5
            kind = RamsealIntel57 if five else RamsealIntel32e
            return over_container(linux_automagic.LinuxIntelStacker, {intel.Intel32e: kind},
                                  context, layer_name, progress_callback)

    class RamsealWindowsStacker(interfaces.automagic.StackerLayerInterface):
        stack_order = 39
        exclusion_list = ["mac", "linux"]

        @classmethod
        def stack(cls, context, layer_name, progress_callback=None):
            return over_container(windows_automagic.WindowsIntelStacker,
                                  {intel.WindowsIntel32e: RamsealWindowsIntel32e}, context,
                                  layer_name, progress_callback)

    class RamsealKernelFinder(pdbscan.KernelPDBScanner):
        """
        ntoskrnl where the acquisition found it. volatility3's own scanner, which searches memory
        several times, runs behind this one if there is something left to be found.
        """

        priority = pdbscan.KernelPDBScanner.priority - 1

        def method_known(self, context, vlayer, progress_callback=None):
            physical = context.layers[vlayer.config["memory_layer"]]
            base = physical.metadata.get("ntoskrnl")
            if not isinstance(physical, RamsealLayer) or not base:
                return None
            return self.check_kernel_offset(context, vlayer, base & vlayer.address_mask,
                                            progress_callback)

        methods = [method_known]

    if verdicts.column:
        make_grid = renderers.TreeGrid.__init__

        def judged(generator):
            for level, values in generator or []:
                yield level, (*values, verdicts.take_column())

        def make_judged_grid(self, columns, generator):
            make_grid(self, [*columns, ("Verdict", str)], judged(generator))

        # Whoever imported the class before has the same one.
        renderers.TreeGrid.__init__ = make_judged_grid
