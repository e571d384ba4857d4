# SPDX-License-Identifier: Apache-2.0
"""Makers of memory images as other tools write them, from what their sources say and with nothing of
ours: AVML's version 2 (microsoft/avml 633424c, src/image.rs; google/snappy, framing_format.txt and
format_description.txt); Windows' crash dumps (0vercl0k/kdmp-parser 0114c86, kdmp-parser-structs.h); LiME's compress=1
(504ensicsLabs/LiME 7511bff, src/deflate.c)."""
import ctypes
import struct
import zlib

PAGE = 4096
CHUNK = 65536
AVML_BLOCK = 16 << 20
IDENTIFIER = b"\xff\x06\x00\x00sNaPpY"


def _crc_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


CRC_TABLE = _crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    table = CRC_TABLE
    for b in data:
        crc = crc >> 8 ^ table[(crc ^ b) & 0xFF]
    return crc ^ 0xFFFFFFFF


def masked(crc):
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def _literal(data):
    n = len(data) - 1
    if n < 60:
        return bytes([n << 2]) + data
    size = (n.bit_length() + 7) // 8
    return bytes([59 + size << 2]) + n.to_bytes(size, "little") + data


def _copy(back, length):
    """In as many elements as it takes, of all three kinds."""
    out = b""
    while length:
        n = min(length, 64)
        if 4 <= n <= 11 and back < 2048:
            out += bytes([1 | n - 4 << 2 | back >> 8 << 5, back & 0xFF])
        elif n % 2 or back > 0xFFFF:
            out += bytes([3 | n - 1 << 2]) + struct.pack("<I", back)
        else:
            out += bytes([2 | n - 1 << 2]) + struct.pack("<H", back)
        length -= n
    return out


def snappy(data):
    """Greedy, eight bytes at a time."""
    out, seen, done, at = [varint(len(data))], {}, 0, 0
    while at + 8 <= len(data):
        key = data[at:at + 8]
        before = seen.get(key)
        seen[key] = at
        if before is None:
            at += 8
            continue
        n = 8
        while at + n < len(data) and data[before + n] == data[at + n]:
            n += 1
        if done < at:
            out.append(_literal(data[done:at]))
        out.append(_copy(at - before, n))
        at += n
        done = at
    if done < len(data):
        out.append(_literal(data[done:]))
    return b"".join(out)


def libsnappy():
    """A function that packs as the library does, or None without it."""
    try:
        compress = ctypes.CDLL("libsnappy.so.1").snappy_compress
    except OSError:
        return None

    def pack(data):
        out = ctypes.create_string_buffer(32 + len(data) + len(data) // 6)
        size = ctypes.c_size_t(len(out))
        assert compress(data, ctypes.c_size_t(len(data)), out, ctypes.byref(size)) == 0
        return out.raw[:size.value]

    return pack


def snappy_chunk(data):
    packed = snappy(data)
    stored = len(packed) >= len(data) - len(data) // 8
    body = struct.pack("<I", masked(crc32c(data))) + (data if stored else packed)
    return bytes([1 if stored else 0]) + len(body).to_bytes(3, "little") + body


def snappy_stream(data):
    return IDENTIFIER + b"".join(snappy_chunk(data[at:at + CHUNK]) for at in range(0, len(data), CHUNK))


def avml_header(first, last):
    return struct.pack("<4sIQQQ", b"AVML", 2, first, last, 0)


def avml_block(first, data):
    stream = snappy_stream(data)
    return avml_header(first, first + len(data) - 1) + stream + struct.pack("<Q", len(stream))


def avml(memory, zero_headers=False, block=AVML_BLOCK):
    """Of [(first, bytes)]. `zero_headers`: as 0.16 and 0.17 did it. Returns the file and where its
    blocks begin."""
    out, places = b"", []
    for first, data in memory:
        for at in range(0, len(data), block):
            part = data[at:at + block]
            if any(part):
                places.append(len(out))
                out += avml_block(first + at, part)
            elif zero_headers:
                places.append(len(out))
                out += avml_header(first + at, first + at + len(part) - 1)
    return out, places


def dump_header(kind, runs, pages=None, dtb=0x1AA000):
    h = bytearray(b"PAGE" * 0x800)

    def put(at, fmt, *values):
        struct.pack_into("<" + fmt, h, at, *values)

    h[:8] = b"PAGEDU64"
    put(8, "II", 15, 19041)
    put(0x10, "Q", dtb)
    put(0x30, "IIII", 0x8664, 4, 0xD1, 0)
    if runs is not None:
        put(0x88, "IIQ", len(runs), 0, sum(n for _, n in runs) if pages is None else pages)
        for i, (base, n) in enumerate(runs[:43]):
            put(0x98 + 16 * i, "QQ", base, n)
    put(0xF98, "I", kind)
    put(0xFA8, "Q", 132500000000000000)
    return h


def dump_full(runs):
    """Of [(first, bytes)], in that order."""
    return dump_header(1, [(a // PAGE, len(d) // PAGE) for a, d in runs]) + b"".join(d for _, d in runs)


def dump_bitmap(kind, pages, runs=None, bits=None, first=None, signature=b"SDMPDUMP"):
    """Of {address: page}. `runs`: (first frame, frames) of RAM."""
    frames = sorted(a // PAGE for a in pages)
    bits = bits or frames[-1] + 1
    bitmap = bytearray((bits + 7) // 8)
    for n in frames:
        bitmap[n // 8] |= 1 << n % 8
    first = first or 0x2038 + len(bitmap) + -(0x2038 + len(bitmap)) % PAGE
    s = signature + bytes(0x18) + struct.pack("<QQQ", first, len(frames), bits) + bitmap
    head = dump_header(kind, runs) + s
    return head + bytes(first - len(head)) + b"".join(pages[n * PAGE] for n in frames)


def lime(memory):
    return b"".join(struct.pack("<IIQQQ", 0x4C694D45, 1, a, a + len(d) - 1, 0) + d for a, d in memory)


def packed(data, level=-1, bits=11, memory=5, strategy=zlib.Z_DEFAULT_STRATEGY, flush_every=0):
    """As LiME's module has the kernel's zlib do it, unless other values are given."""
    z = zlib.compressobj(level, zlib.DEFLATED, bits, memory, strategy)
    if not flush_every:
        return z.compress(data) + z.flush()
    out = b""
    for at in range(0, len(data), flush_every):
        out += z.compress(data[at:at + flush_every]) + z.flush(zlib.Z_FULL_FLUSH)
    return out + z.flush()


def xen_core(pages, frames="xen_pfn"):
    """
    A guest's core as `xl dump-core` writes it: {frame: page}, in any order. Of Xen's docs/misc/dump-core-format.txt; a
    paravirtualized guest has "xen_p2m" for its frames.
    """
    note = lambda kind, data: struct.pack("<III4s", 4, len(data), 0x2000000 | kind, b"Xen") + data
    notes = note(0, b"") + note(1, struct.pack("<4Q", 0xF00FEBEE, 1, len(pages), PAGE)) + note(3, struct.pack("<Q", 1))
    numbers = 2 if frames == "xen_p2m" else 1
    entries = b"".join(struct.pack(f"<{numbers}Q", *[f] * numbers) for f in pages)
    sections = [("", 0, b""), (".shstrtab", 3, b""), (".note.Xen", 7, notes), (".xen_prstatus", 1, bytes(5168)),
                ("." + frames, 1, entries), (".xen_pages", 1, b"".join(pages.values()))]
    names = b"\0".join(name.encode() for name, _, _ in sections) + b"\0"
    sections[1] = (".shstrtab", 3, names)
    at, headers, data = 64 + 64 * len(sections), b"", b""
    for name, kind, content in sections:
        place = 0 if not kind else names.index(name.encode() + b"\0")
        headers += struct.pack("<IIQQQQIIQQ", place, kind, 0, 0, at + len(data), len(content), 0, 0, 0, 0)
        data += content
    head = struct.pack("<4sBBBB8xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 4, 62, 1, 0, 0, 64, 0, 64, 0, 0, 64,
                       len(sections), 1)
    return head + headers + data
