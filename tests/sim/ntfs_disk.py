#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
A disk image with an NTFS partition for each FILE, which is its pagefile.sys: mkntfs and ntfscp, no
mount. Usage: ntfs_disk.py DISK FILE...
"""
import os
import struct
import subprocess
import sys

MIB = 1 << 20
SECTOR = 512
FREE = 16 * MIB  # and a quarter: NTFS keeps an eighth for its MFT, and has a log


def format_partition(part, file, first_sector):
    with open(part, 'wb') as f:
        f.truncate((os.path.getsize(file) * 5 // 4 + FREE) // MIB * MIB)
    for command in (('mkntfs', '-q', '-F', '-Q', '-p', str(first_sector), '-H', '255', '-S', '63', part),
                    ('ntfscp', '-q', part, file, 'pagefile.sys')):
        subprocess.run(command, check=True, capture_output=True, timeout=900)


def copy(part, out):
    """What is zero stays a hole."""
    with open(part, 'rb') as f:
        while block := f.read(MIB):
            if block.count(0) == len(block):
                out.seek(len(block), os.SEEK_CUR)
            else:
                out.write(block)


def make(disk, files):
    at, entries = MIB, b''
    part = f'{disk}.part'
    with open(disk, 'wb') as out:
        for file in files:
            format_partition(part, file, at // SECTOR)
            out.seek(at)
            copy(part, out)
            size = os.path.getsize(part)
            entries += struct.pack('<4sB3sII', bytes(4), 7, bytes(3), at // SECTOR, size // SECTOR)
            at += size
            os.remove(part)
        out.truncate(at)
        out.seek(446)
        out.write(entries.ljust(64, b'\0') + b'\x55\xaa')


if __name__ == '__main__':
    make(sys.argv[1], sys.argv[2:])
