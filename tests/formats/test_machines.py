#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What kind of machine an image is of: read from ELF cores and kdumps, kept in the manifest, told by info and
report, and written into exports. On this machine images of both kinds are alike.
Usage: test_machines.py RAMSEAL
"""
import json
import os
import struct
import subprocess
import sys
import unittest

from kdump import Kdump
from test_kdump_source import Case, words
from test_kdump_source import make as kdump
from test_sources import PAGE, RAMSEAL

X86_64, ARM64 = 62, 183
FIRST = 0x40000000
MEMORY = words(FIRST, 16)


def note(text):
    return struct.pack('<III', 11, len(text), 0) + b'VMCOREINFO\0\0' + text + bytes(-len(text) % 4)


def core(machine, notes=b''):
    """RAM as in the linear map, and in front of it a part of it as the kernel's text, whose first page is zeros."""
    text = MEMORY[PAGE:3 * PAGE]
    loads = [(0xffffb3e7c8900000, FIRST + PAGE, bytes(PAGE) + text[PAGE:]), (0xffff331200000000 + FIRST, FIRST, MEMORY)]
    loads = loads if machine == ARM64 else loads[1:]
    at = 64 + 56 * (len(loads) + 1)
    table = [struct.pack('<IIQQQQQQ', 4, 0, at, 0, 0, len(notes), len(notes), 4)]
    data = notes
    for vaddr, paddr, content in loads:
        table.append(struct.pack('<IIQQQQQQ', 1, 7, at + len(data), vaddr, paddr, len(content), len(content), 0))
        data += content
    head = b'\x7fELF\2\1\1' + bytes(9) + struct.pack('<HHIQQQIHHHHHH', 4, machine, 1, 0, 64, 0, 0, 64, 56, len(table), 0, 0, 0)
    return head + b''.join(table) + data


def arm64_note(page_size):
    return note(b'OSRELEASE=6.12.0-16k\nPAGESIZE=%d\nNUMBER(VA_BITS)=48\nSYMBOL(_stext)=ffffb3e7c8901000\n' % page_size)


class Machines(Case):
    def acquired(self, data):
        self.write(data)
        r = self.run_it('acquire', '-s', 'file:' + self.source, '-o', self.path('c.rsz'), '-f')
        self.assertEqual(r.returncode, 0, r.text)
        done = subprocess.run([RAMSEAL, 'info', '--json', self.path('c.rsz')], capture_output=True, check=True, text=True)
        return json.loads(done.stdout).get('machine')

    def test_image_that_the_cut_linear_map_lacks(self):
        """Both of its pages are in the file; that their first one is zeros in a saved kcore is said."""
        whole = core(ARM64, arm64_note(4096))
        for left, code, unread in ((16, 0, 0), (3, 3, 13), (1, 3, 13)):
            self.write(whole[:len(whole) - (16 - left) * PAGE])
            r = self.run_it('acquire', '-s', 'file:' + self.source, '-o', self.path('c.rsz'), '-f', '--pagetables=none')
            self.assertEqual(r.returncode, code, r.text)
            self.assertEqual('from its own mapping' in r.text, left == 1, r.text)
            done = subprocess.run([RAMSEAL, 'info', '--json', self.path('c.rsz')], capture_output=True, check=True, text=True)
            stream = next(s for s in json.loads(done.stdout)['streams'] if s['kind'] == 'physical memory')
            self.assertEqual(stream['pages'].get('unreadable', 0), unread)

    def export(self, fmt, code=0):
        r = self.run_it('export', '-F', fmt, '-o', self.path('out'), '-f', self.path('c.rsz'))
        self.assertEqual(r.returncode, code, r.text)
        return r

    def text_of(self, *command):
        return subprocess.run([RAMSEAL, *command, self.path('c.rsz')], capture_output=True, check=True, text=True).stdout

    def test_arm64_from_end_to_end(self):
        told = {'architecture': 'arm64', 'page_size': 4096}
        self.assertEqual(self.acquired(core(ARM64, arm64_note(4096))), told)
        self.assertRegex(self.text_of('info'), r'(?m)^machine +ARM64$')
        self.export('kdump')
        with Kdump(self.path('out')) as k:
            self.assertEqual(k.uts[4], b'aarch64')
            for at, page in k.pages().items():
                self.assertEqual(page, MEMORY[at - FIRST:][:PAGE], hex(at))
            self.assertEqual(len(k.pages()), 16)
        with open(self.path('out'), 'rb') as f:
            self.assertEqual(self.acquired(f.read()), told)
        self.export('elf')
        with open(self.path('out'), 'rb') as f:
            again = f.read()
        self.assertEqual(struct.unpack_from('<H', again, 18), (ARM64,))
        self.assertEqual(self.acquired(again), told)
        self.export('raw')
        with open(self.path('out'), 'rb') as f:
            f.seek(FIRST)
            self.assertEqual(f.read(), MEMORY)

    def test_pages_of_16_kib(self):
        self.assertEqual(self.acquired(core(ARM64, arm64_note(16384))), {'architecture': 'arm64', 'page_size': 16384})
        self.assertRegex(self.text_of('info'), r'(?m)^machine +ARM64, pages of 16 KiB$')
        self.run_it('report', '-o', self.path('r.html'), self.path('c.rsz'))
        with open(self.path('r.html'), encoding='utf-8') as f:
            self.assertIn('ARM64, pages of 16 KiB', f.read())
        self.assertIn('pages of 16384 bytes', self.export('kdump', 9).error)
        self.assertFalse(os.path.exists(self.path('out')))
        self.export('elf')

    def test_what_is_not_told(self):
        self.assertEqual(self.acquired(core(ARM64)), {'architecture': 'arm64'})
        self.assertEqual(self.acquired(core(ARM64, arm64_note(12345))), {'architecture': 'arm64'})
        self.assertIsNone(self.acquired(MEMORY))
        self.assertNotRegex(self.text_of('info'), '(?m)^machine')
        pages = {n: MEMORY[n * PAGE:][:PAGE] for n in range(16)}
        self.assertIsNone(self.acquired(kdump(pages, list(pages), machine=b'')))

    def test_x86_64(self):
        self.assertEqual(self.acquired(core(X86_64, note(b'PAGESIZE=4096\n'))), {'architecture': 'x86_64', 'page_size': 4096})
        self.export('elf')
        with open(self.path('out'), 'rb') as f:
            self.assertEqual(struct.unpack_from('<H', f.read(20), 18), (X86_64,))
        self.assertEqual(self.acquired(core(X86_64, note(b'PAGESIZE=16384\n'))), {'architecture': 'x86_64'})


if __name__ == '__main__':
    sys.exit(not unittest.main(verbosity=2, exit=False).result.wasSuccessful())
