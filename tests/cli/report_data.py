# SPDX-License-Identifier: Apache-2.0
"""
A container for the tests of `ramseal report`: small, with everything that a report shows, and names
that are as hostile as they can be. Made from formats/SPEC.md and the processor's manual.
"""

import json
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / 'reader'))
import write_rsz as rsz  # noqa: E402

PAGE = 4096
SECOND = 10**9
ROOT = 0x100000
TABLES = 0x101000  # the three levels below every root
ROOTS = 0x180000   # of further processes
FRAMES = 0x120000
RAM = (0x100000, 0x1fffff)
VA = 0x400000
BEGUN = 900_000_000
EVIL = '</title><script>alert(1)</script><img src=x onerror="alert(2)">\'&'
HIDDEN = 'gpj\u202e.exe\u200b\x1b[2J'
KINDS = {'memory': 1, 'before': 2, 'after': 3, 'page file': 4, 'log': 6, 'manifest': 7}


def swap(slot):
    """Linux 6.1 (pgtable_64.h): type at 59, inverted offset at 9."""
    return ~(slot << 9) & ((1 << 59) - 1) & ~0x1ff


def frame(n):
    return (FRAMES + n * PAGE) | 0x67


# By what they come to: safe, at risk (remapped, paged out, gone, appeared), wrong (no RAM).
BEFORE = [frame(0), frame(1), frame(2), frame(3), 0, 0xfee00067, swap(2), frame(7)]
AFTER = [frame(0), frame(4), swap(1), 0, frame(5), 0xfee00067, swap(2), frame(7)]


def tables(entries, processes):
    """Page tables by address; the processes have roots of their own and share what is below."""
    roots = [ROOT] + [ROOTS + i * PAGE for i in range(processes - 1)]
    made = {at: bytearray(PAGE) for at in roots + [TABLES + i * PAGE for i in range(3)]}
    for root in roots:
        struct.pack_into('<Q', made[root], 8 * (VA >> 39 & 511), TABLES | 0x67)
    for level, shift in ((0, 30), (1, 21)):
        struct.pack_into('<Q', made[TABLES + level * PAGE], 8 * (VA >> shift & 511),
                         (TABLES + (level + 1) * PAGE) | 0x67)
    struct.pack_into(f'<{len(entries)}Q', made[TABLES + 2 * PAGE], 0, *entries)
    return made


def spaces(names):
    return [{'listed': True, 'kernel': False, 'pid': 7 + i, 'name': name,
             'dtb': ROOTS + (i - 1) * PAGE if i else ROOT} for i, name in enumerate(names)]


def manifest(names, passes, host, order, outcome, silent):
    lines = [{'event': 'begin', 'host': {'name': host}, 'cpu': {'model': HIDDEN},
              'os': {'name': 'Debian <12>', 'kernel_release': '6.1.0'}, 'memory': {'zswap': 'N'},
              'source': {'name': 'made', 'path': EVIL, 'silent': silent, 'error_numbers': 'errno'},
              'security': {EVIL: EVIL}, 'tool': {'sha256': EVIL},
              'clocks': {'mono_ns': BEGUN},
              'maps': [{'origin': EVIL, 'bytes': RAM[1] - RAM[0] + 1,
                        'ranges': [{'first': RAM[0], 'last': RAM[1]}]}]}]
    for when in passes:
        lines.append({'event': 'tables', 'when': when, 'os': 'linux', 'levels': 4, 'cut': False,
                      'spaces': spaces(names),
                      'scan': {'hidden': 3, 'missed': 1} if when == 'after' else None})
    lines.append({'event': 'file', 'path': EVIL, 'sha256': '5' * 64})
    if outcome is not None:
        lines.append({'event': 'end', 'exit_code': outcome, 'outcome': 'ended <so>', 'message': EVIL,
                      'order': {'name': order, 'guided_pages': 4711, 'retaken_pages': 2},
                      'clocks': {'mono_ns': BEGUN + 5 * SECOND}})
    return ''.join(json.dumps(line) + '\n' for line in lines).encode()


def pages_of(number, pages, start, step=0):
    return [rsz.chunk(number, [(at, PAGE, 0, 0, start + i * step, start + i * step + 10)],
                      [(1, rsz.DATA)], bytes(pages[at]), start=start + i * step,
                      end=start + i * step + 10) for i, at in enumerate(sorted(pages))]


def memory(entries, processes, holes):
    """[what, error] of its pages: `holes` of them are bad, every other one unreadable or skipped."""
    pages = {at: bytes(PAGE) for at in range(RAM[0], RAM[1], PAGE)}
    pages.update(tables(entries, processes))
    pages.update({FRAMES + i * PAGE: b'page %d' % i + bytes(range(1, 241)) * 17 for i in range(8)})
    pages = {at: page.ljust(PAGE, b'.')[:PAGE] for at, page in pages.items()}
    bad = range(0x1c0000, 0x1c0000 + 2 * holes * PAGE, 2 * PAGE)
    recs = pages_of(2, {at: page for at, page in pages.items() if at not in bad}, 2 * SECOND, 10**6)
    for i, at in enumerate(bad):
        start = 2 * SECOND + i
        recs.append(rsz.chunk(2, [(at, PAGE, 0, 0, start, start + 10)],
                              [(1, rsz.SKIPPED, 3) if i % 2 else (1, rsz.UNREADABLE, 14)],
                              length=PAGE, start=start, end=start + 10))
    return recs


def container(names=(EVIL, HIDDEN, 'two'), passes=('before', 'after'), holes=2, host=EVIL,
              order='linear', late=3 * SECOND, closed=True, outcome=3, silent=True):
    """
    Tables before at 1 s, memory at 2 s, swap at 3 s, tables after at `late` + 2 s; some of the memory
    is captured again.
    """
    text = manifest(names, passes, host, order, outcome, silent)
    recs = [rsz.begin(b'ramseal <test>'), rsz.stream(0, KINDS['manifest'], 0, b'manifest'),
            rsz.stream(1, KINDS['before'], PAGE, b'page tables before'),
            rsz.stream(2, KINDS['memory'], PAGE, b'memory'),
            rsz.stream(3, KINDS['page file'], PAGE, EVIL.encode(),
                       b'{"number":0,"number_origin":"known"}'),
            rsz.stream(4, KINDS['after'], PAGE, b'page tables after')]
    if 'before' in passes:
        recs += pages_of(1, tables(BEFORE, len(names)), SECOND)
    recs += memory(BEFORE, len(names), holes)
    recs += pages_of(3, {i * PAGE: b'slot %d' % i + bytes(PAGE - 6) for i in range(4)}, late)
    again = late + SECOND
    recs.append(rsz.chunk(2, [(FRAMES, 2 * PAGE, 1, 1, again, again + 10)], [(2, rsz.DATA)],
                          b'again'.ljust(2 * PAGE, b'!'), start=again, end=again + 10))
    if 'after' in passes:
        recs += pages_of(4, tables(AFTER, len(names)), late + 2 * SECOND)
    recs.append(rsz.chunk(0, [(0, len(text))], [], text))
    return rsz.assemble(recs + ([rsz.Rec(rsz.INDEX), rsz.Rec(rsz.CLOSE)] if closed else []))
