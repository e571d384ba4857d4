# SPDX-License-Identifier: Apache-2.0
"""
A reader of 64-bit Windows crash dumps of types 1 and 5, for tests. Written from the structures of
kdmp-parser and QEMU (formats/image/dmp.h names them), not from the writer.
"""

import struct

PAGE = 4096


class Dump:
    """header fields by name; page(number): its bytes, or None; numbers: of the pages that it has."""

    def __init__(self, path):
        self.file = open(path, 'rb')
        head = self.at(0, 0x2000)
        assert head[:8] == b'PAGEDU64', head[:8]
        self.head = head
        self.major, self.build, self.dtb, self.frames, self.modules, self.processes, self.machine, \
            self.processors, self.bugcheck = struct.unpack_from('<IIQQQQIII', head, 8)
        self.kdbg, self.n_runs, _, self.n_pages = struct.unpack_from('<QIIQ', head, 0x80)
        self.context = head[0x348:0x348 + 1232]
        self.type, = struct.unpack_from('<I', head, 0xf98)
        self.space, self.time = struct.unpack_from('<QQ', head, 0xfa0)
        self.comment = head[0xfb0:0x1030].split(b'\0')[0].decode()
        self.up_time, _, _, self.product, self.suite = struct.unpack_from('<QIIII', head, 0x1030)
        self.offsets = {}
        {1: self.read_runs, 5: self.read_bitmap}[self.type]()

    def at(self, offset, size):
        self.file.seek(offset)
        return self.file.read(size)

    def read_runs(self):
        assert self.n_runs <= (700 - 16) // 16
        offset = 0x2000
        for i in range(self.n_runs):
            first, count = struct.unpack_from('<QQ', self.head, 0x98 + 16 * i)
            for number in range(first, first + count):
                assert number not in self.offsets
                self.offsets[number] = offset
                offset += PAGE
        assert len(self.offsets) == self.n_pages

    def read_bitmap(self):
        tag, data, present, bits = struct.unpack('<8s24xQQQ', self.at(0x2000, 0x38))
        assert tag in (b'SDMPDUMP', b'FDMPDUMP') and bits % 64 == 0 and data % PAGE == 0
        bitmap = self.at(0x2038, bits // 8)
        assert 0x2038 + len(bitmap) <= data
        offset = data
        for block in range(0, len(bitmap), PAGE):
            part = bitmap[block:block + PAGE]
            if part.count(0) == len(part):
                continue
            for i, byte in enumerate(part, block):
                for bit in range(8 if byte else 0):
                    if byte >> bit & 1:
                        self.offsets[8 * i + bit] = offset
                        offset += PAGE
        assert len(self.offsets) == present
        self.first, self.bits = data, bits

    @property
    def numbers(self):
        return self.offsets.keys()

    def page(self, number):
        """What the file has of it: less than a page where the file is cut short."""
        return self.at(self.offsets[number], PAGE) if number in self.offsets else None

    def runs(self):
        """(first number, count) of pages that follow each other, in the file as well."""
        found = []
        for number, offset in sorted(self.offsets.items()):
            if found and number == found[-1][0] + found[-1][1] and offset == end:
                found[-1][1] += 1
            else:
                found.append([number, 1])
            end = offset + PAGE
        return found

    def pages(self, first, count):
        """The bytes of such a run, or a part of one."""
        return self.at(self.offsets[first], count * PAGE)

    def bytes_at(self, address, size):
        """Physical."""
        page = self.page(address // PAGE)
        return page[address % PAGE:address % PAGE + size]

    def physical(self, address):
        """Of a virtual address, by the tables at `dtb`; None."""
        table = self.dtb
        for level in (3, 2, 1, 0):
            shift = 12 + 9 * level
            entry, = struct.unpack('<Q', self.bytes_at(table + 8 * (address >> shift & 511), 8))
            if not entry & 1:
                return None
            table = entry & 0x000ffffffffff000
            if level and entry & 0x80:
                return table + (address & ((1 << shift) - 1))
        return table + address % PAGE

    def virtual(self, address, size):
        found = b''
        while len(found) < size:
            n = min(size - len(found), PAGE - (address + len(found)) % PAGE)
            found += self.bytes_at(self.physical(address + len(found)), n)
        return found

    def words(self, address, count):
        return struct.unpack(f'<{count}Q', self.virtual(address, 8 * count))
