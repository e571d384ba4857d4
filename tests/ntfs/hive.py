# SPDX-License-Identifier: Apache-2.0
"""Writes registry hives with the keys and values that a test needs.

    Hive({'Select': {'Current': 1}, 'ControlSet001': {...}}).pack()

A dict is a key; an int a REG_DWORD, bytes a REG_BINARY, a list of str a REG_MULTI_SZ, a str a
REG_SZ; a pair of a type and bytes is that. Layout: msuhanov's "Windows registry file format
specification".
"""
import struct

REG_SZ, REG_BINARY, REG_DWORD, REG_MULTI_SZ, REG_QWORD = 1, 3, 4, 7, 11


class Hive:
    def __init__(self, tree):
        self.cells = bytearray(32)  # the hbin header, filled in last
        self.root = self.key('ROOT', tree, 0xffffffff, root=True)

    def cell(self, data):
        at = len(self.cells)
        size = (len(data) + 4 + 7) // 8 * 8
        self.cells += struct.pack('<i', -size) + data + bytes(size - 4 - len(data))
        return at

    def value(self, name, value):
        if isinstance(value, int):
            kind, data = REG_DWORD, struct.pack('<I', value)
        elif isinstance(value, tuple):
            kind, data = value
        elif isinstance(value, bytes):
            kind, data = REG_BINARY, value
        elif isinstance(value, list):
            kind, data = REG_MULTI_SZ, ''.join(s + '\0' for s in value + ['']).encode('utf-16-le')
        else:
            kind, data = REG_SZ, (value + '\0').encode('utf-16-le')
        if len(data) <= 4:
            size, where = len(data) | 0x80000000, data.ljust(4, b'\0')
        else:
            size, where = len(data), struct.pack('<I', self.cell(data))
        return self.cell(b'vk' + struct.pack('<HI4sIHH', len(name), size, where, kind, 1, 0)
                         + name.encode('latin-1'))

    def key(self, name, tree, parent, root=False):
        keys = sorted((k for k in tree if isinstance(tree[k], dict)), key=str.upper)
        values = [k for k in tree if not isinstance(tree[k], dict)]
        me = self.cell(bytes(76) + name.encode('latin-1'))
        subkeys = [self.key(k, tree[k], me) for k in keys]
        index = 0xffffffff
        if keys:
            entries = b''.join(struct.pack('<I4s', at, k.encode('latin-1')[:4].ljust(4, b'\0'))
                               for at, k in zip(subkeys, keys))
            index = self.cell(b'lf' + struct.pack('<H', len(keys)) + entries)
        listed = 0xffffffff
        if values:
            cells = [self.value(k, tree[k]) for k in values]
            listed = self.cell(struct.pack(f'<{len(cells)}I', *cells))
        node = b'nk' + struct.pack('<HQ15IHH', 0x2c if root else 0x20, 0, 0, parent,
                                   len(keys), 0, index, 0xffffffff, len(values), listed,
                                   0xffffffff, 0xffffffff, 0, 0, 0, 0, 0, len(name), 0)
        self.cells[me + 4:me + 4 + len(node)] = node
        return me

    def pack(self):
        size = (len(self.cells) + 4095) // 4096 * 4096
        rest = size - len(self.cells)
        cells = self.cells + (struct.pack('<i', rest) + bytes(rest - 4) if rest else b'')
        cells[0:32] = struct.pack('<4sIIIIQI', b'hbin', 0, size, 0, 0, 0, 0)
        head = struct.pack('<4sIIQIIIIIII', b'regf', 1, 1, 0, 1, 5, 0, 1, self.root, size, 1)
        head = head.ljust(508, b'\0')
        checksum = 0
        for (word,) in struct.iter_unpack('<I', head):
            checksum ^= word
        return (head + struct.pack('<I', checksum)).ljust(4096, b'\0') + bytes(cells)


def sealed(head):
    """A header with the checksum that it should have."""
    checksum = 0
    for (word,) in struct.iter_unpack('<I', head[:508]):
        checksum ^= word
    return head[:508] + struct.pack('<I', checksum) + head[512:]


def numbered(hive, primary, secondary, kind=0):
    """The hive with these sequence numbers: it is dirty if they differ."""
    head = bytearray(hive[:512])
    struct.pack_into('<II', head, 4, primary, secondary)
    struct.pack_into('<I', head, 28, kind)
    return bytes(sealed(head)) + hive[512:]


def marvin(data):
    """Marvin32 of whole words, with the seed of the logs."""
    lo, hi = 0x7a4e55c5, 0x82ef4d88

    def turn(x, n):
        return (x << n | x >> 32 - n) & 0xffffffff

    for (word,) in struct.iter_unpack('<I', data + struct.pack('<II', 0x80, 0)):
        lo = lo + word & 0xffffffff
        hi ^= lo
        lo = turn(lo, 20) + hi & 0xffffffff
        hi = turn(hi, 9) ^ lo
        lo = turn(lo, 27) + hi & 0xffffffff
        hi = turn(hi, 19)
    return hi << 32 | lo


def changed(before, after, size):
    """{offset in the bins: page} of what differs."""
    return {at - 4096: after[at:at + size] for at in range(4096, len(after), size)
            if before[at:at + size] != after[at:at + size]}


def entry(number, bins, pages):
    """One of a log of the new format."""
    body = b''.join(struct.pack('<II', at, len(p)) for at, p in sorted(pages.items())) \
        + b''.join(p for _, p in sorted(pages.items()))
    size = (40 + len(body) + 511) // 512 * 512
    body = body.ljust(size - 40, b'\0')
    head = struct.pack('<4sIIIIIQ', b'HvLE', size, 0, number, bins, len(pages), marvin(body))
    return head + struct.pack('<Q', marvin(head)) + body


def new_log(hive, first, entries):
    """Of Windows 8.1 and later; `first`: the sequence number of its first entry."""
    return numbered(hive[:512], first, first, 6) + b''.join(entries)


def old_log(before, after, number):
    """Of Windows up to 8: all pages of 512 bytes that differ."""
    pages = changed(before, after, 512)
    bitmap = bytearray((len(after) - 4096) // 4096)
    for at in pages:
        bitmap[at // 4096] |= 1 << at // 512 % 8
    vector = b'DIRT' + bytes(bitmap)
    return (numbered(after[:512], number, number, 1) + vector.ljust((len(vector) + 511) // 512 * 512, b'\0')
            + b''.join(p for _, p in sorted(pages.items())))
