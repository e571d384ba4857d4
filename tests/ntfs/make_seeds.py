#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the first inputs of tests/fuzz/fuzz_ntfs.c: small disks, as lists of sectors.

    tests/ntfs/make_seeds.py FOLDER
"""
import os
import struct
import sys

from forge import Attribute, COMPRESSED, DATA, Volume, gpt_disk, mbr_disk

SIZE = 1 << 20


def volume(**options):
    return Volume(SIZE, upcase=False, content=False, **options)


def plain():
    v = volume()
    v.file('pagefile.sys', [(100, 3), (None, 2), (120, 1)], init=9000)
    f = v.begin('a')
    v.add(f.number, Attribute(DATA, b'unnamed'))
    v.add(f.number, Attribute(DATA, b'stream', name='s'))
    return v


def listed(resident):
    v = volume(cluster=512, mft_runs=[(16, 31), (60, 20), (90, 40)])
    v.file('pagefile.sys', [(500 + 2 * i, 1) for i in range(12)], per_record=3,
           list_resident=resident)
    v.file('a', [(700, 2)], stream='s')
    return v


def packed():
    v = volume(cluster=512)
    f = v.begin('pagefile.sys')
    a = v.add(f.number, Attribute(DATA, None, [(500, 2), (None, 14), (520, 16)], '', 15000, 15000,
                                  COMPRESSED, unit=4))
    a.allocated = 16384
    # One LZNT1 chunk: 8 literals and a copy (MS-XCA 2.5), then the next chunk ends it.
    v.patches.append((500 * 512, struct.pack('<H', 0xb000 | 10) + b'\x00abcdefgh\x01\xfc\x3f'))
    return v


def wof():
    """One chunk of LZX, in the record."""
    v = volume()
    words = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'fuzz', 'corpus', 'lzx', 'words')
    with open(words, 'rb') as f:
        size, = struct.unpack('<H', f.read(2))
        stream = f.read()
    v.reparse('pagefile.sys', size, 0x80000017, struct.pack('<IIII', 1, 2, 1, 1), ('WofCompressedData', stream))
    v.reparse('a', 9000, 0x80000013, bytes(8), runs=[(100, 1), (None, 2)])
    return v


def large_records():
    v = volume(record=4096)
    v.file('pagefile.sys', [(100 + 2 * i, 1) for i in range(60)])
    return v


def sectors(path):
    with open(path, 'rb') as f:
        disk = f.read()
    for i in range(0, min(len(disk), 2 << 20), 512):
        sector = disk[i:i + 512]
        if sector.strip(b'\0'):
            yield struct.pack('<H', i // 512) + sector


def main(folder):
    os.makedirs(folder, exist_ok=True)
    image = os.path.join(folder, '.image')
    seeds = {'plain': plain(), 'list': listed(True), 'list_on_disk': listed(False),
             'packed': packed(), 'wof': wof(), 'large_records': large_records()}
    for name, v in seeds.items():
        v.write(image)
        with open(os.path.join(folder, name), 'wb') as out:
            out.writelines(sectors(image))
    for name, make in (('gpt', gpt_disk), ('mbr', mbr_disk)):
        make(image, [volume()], gap=64)
        with open(os.path.join(folder, name), 'wb') as out:
            out.writelines(sectors(image))
    os.remove(image)


main(*sys.argv[1:])
