#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
A host of 1 TiB, rehearsed: an ELF core of 40,000 ranges of RAM with a page missing between any two, every fiftieth of
them with content and the others zeros. The file itself is small: ranges that are alike are in it once.

    bench_terabyte.py RAMSEAL FOLDER [--gib N] [--ranges N] [--level LEVEL]

One run each of acquire, check, info, verify and smear. There is no kernel in that memory, so `smear` has only to find
that out. FOLDER gets the core and the container, and they are removed.
"""

import argparse
import random
import struct
import sys
from pathlib import Path

from bench import MIB, Job, once

PAGE = 4096
HEADER, PROGRAM_HEADER = 64, 56  # System V ABI, gABI 4.1, chapters 4 and 5: Elf64_Ehdr, Elf64_Phdr
CORE, X86_64, LOAD = 4, 62, 1
EVERY = 50  # this range has content
COLUMNS = '{:<8} {:>9} {:>9} {:>9}'


def content(size):
    """Half of a page text that repeats, some of it that does not: what zstd -1 makes a thirtieth of."""
    make = random.Random(1)
    line = b'a line of a log that says nothing new but the time 00:00:00\n' * 68
    return b''.join(line[:PAGE - 96] + make.randbytes(96) for _ in range(size // PAGE))


def write_core(path, total, ranges):
    """`ranges` ranges in `total` bytes of address space, from 1 MiB on."""
    step = total // ranges // PAGE * PAGE
    size = step - PAGE
    zeros = (HEADER + ranges * PROGRAM_HEADER + PAGE - 1) // PAGE * PAGE
    filled = zeros + size
    with open(path, 'wb') as f:
        f.write(struct.pack('<16sHHIQQQIHHHHHH', b'\x7fELF\x02\x01\x01', CORE, X86_64, 1, 0, HEADER, 0, 0,
                            HEADER, PROGRAM_HEADER, ranges, 0, 0, 0))
        for i in range(ranges):
            at = MIB + i * step
            f.write(struct.pack('<IIQQQQQQ', LOAD, 6, zeros if i % EVERY else filled, 0, at, size, size, PAGE))
        f.seek(filled)
        f.write(content(size))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('ramseal')
    parser.add_argument('folder', type=Path)
    parser.add_argument('--gib', type=int, default=1024)
    parser.add_argument('--ranges', type=int, default=40000)
    parser.add_argument('--level', default='1')
    args = parser.parse_args()

    args.folder.mkdir(parents=True, exist_ok=True)
    core, container = args.folder / 'terabyte.elf', args.folder / 'terabyte.rsz'
    container.unlink(missing_ok=True)
    write_core(core, args.gib << 30, args.ranges)
    source = ['--source', f'file:{core}']
    try:
        print(COLUMNS.format('command', 'wall s', 'CPU s', 'peak MiB'))
        for name, line in {
            'check': ['check', *source, '-o', container],
            'acquire': ['acquire', '-q', '-l', args.level, *source, '-o', container],
            'info': ['info', '--json', container],
            'verify': ['verify', container],
            'smear': ['smear', '--json', container],
        }.items():
            run = once(Job([[args.ramseal, *map(str, line)]], fine=(0, 3)))
            print(COLUMNS.format(name, f'{run.wall:.2f}', f'{run.cpu:.2f}', f'{run.peak / MIB:.0f}'), flush=True)
        print(f'{args.gib} GiB in {args.ranges} ranges: a container of {container.stat().st_size / MIB:.0f} MiB')
    finally:
        core.unlink()
        container.unlink(missing_ok=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
