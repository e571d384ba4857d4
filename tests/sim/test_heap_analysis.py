#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The analyst's walk through a heap, on the process of the 2015 paper: what blocks hold, who refers to whom.

	test_heap_analysis.py RAMSEAL
"""

import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import unittest

RAMSEAL = os.path.abspath(sys.argv.pop(1))
PID = 1148
# Allocations of the paper (agent/simulator/resolver.c): the name, two records, the entry, the table.
NAME, SECOND, FIRST, ENTRY, TABLE = 0x11e2870, 0x11e2b30, 0x1244fc0, 0x5101f60, 0x51012f0


def run(*args):
    return subprocess.run([RAMSEAL, *map(str, args)], capture_output=True, text=True, timeout=900)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        cls.addClassCleanup(folder.cleanup)
        cls.container = os.path.join(folder.name, 'paper.rsz')
        done = run('acquire', '-q', '-s', 'sim:cohen2015heaps,live_files=1', '-o', cls.container)
        assert done.returncode == 0, done.stderr

    def ask(self, *args, code=0):
        done = run('heap', '-q', '-p', PID, *args, self.container)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def rows(self, *args):
        return [json.loads(line) for line in self.ask('--json', *args).splitlines()]

    def mistake(self, *args, code=2):
        done = run('heap', '-p', PID, *args, self.container)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count('\n')), (code, '', 1), done.stderr)
        return done.stderr

    def at_terminal(self, *args):
        ours, theirs = pty.openpty()
        with subprocess.Popen([RAMSEAL, 'heap', '-q', '-p', str(PID), *map(str, args), self.container], stdout=theirs,
                              env={**os.environ, 'COLUMNS': '80'}) as p:
            os.close(theirs)
            text = b''
            while True:
                try:
                    text += os.read(ours, 65536)
                except OSError:  # Linux: EIO, when nobody has the other end any more
                    break
        os.close(ours)
        self.assertEqual(p.returncode, 0)
        return text.decode().replace('\r\n', '\n')


class Preview(Case):
    ENTRY_LINES = ['    00 00 00 00 00 00 00 00 90 1f 10 05 00 00 00 00 ................',
                   '    +0x08 -> +0x30 of this block',
                   f'    +0x18 -> heap 4, 56 bytes at {FIRST:#x}',
                   '    +0x30 "www.example.com" (UTF-16)']

    def entry_of(self, text):
        lines = text.splitlines()
        at = next(i for i, line in enumerate(lines) if f' 0x{ENTRY:012x} ' in line)
        return lines[at + 1:at + 5]

    def test_block_shows_what_it_holds(self):
        self.assertEqual(self.entry_of(self.ask('-A', '--preview', '--in', 12)), self.ENTRY_LINES)
        self.assertNotIn('\n    ', self.ask('-A', '--in', 12))

    def test_terminal_has_previews_and_a_pipe_has_none(self):
        self.assertEqual(self.entry_of(self.at_terminal('-A', '--in', 12, '--size', 88)), self.ENTRY_LINES)
        self.assertNotIn('\n    ', self.at_terminal('-A', '--in', 12, '--size', 88, '--preview=never'))

    def test_json(self):
        row, = (r for r in self.rows('-A', '--preview', '--in', f'{ENTRY:#x}-{ENTRY:#x}'))
        self.assertEqual(row['preview'], {
            'bytes': '0000000000000000901f100500000000',
            'text': {'offset': 0x30, 'encoding': 'utf-16', 'value': 'www.example.com'},
            'pointers': [{'offset': 8, 'value': hex(ENTRY + 0x30), 'note': '+0x30 of this block'},
                         {'offset': 0x18, 'value': hex(FIRST), 'note': f'heap 4, 56 bytes at {FIRST:#x}'}]})
        self.assertNotIn('preview', self.rows('-A', '--in', 12)[0])

    def test_filters(self):
        everything = self.rows('-A')

        def kept(wanted, *args):
            rows = self.rows('-A', *args)
            self.assertEqual(rows, [r for r in everything if wanted(r)])
            self.assertTrue(0 < len(rows) < len(everything))
            return rows

        def size(r):
            return r['size'] if r['requested'] is None else r['requested']

        heap4 = kept(lambda r: r['heap'] == '0x11d0000', '--in', 4)
        self.assertEqual(self.rows('-A', '--in', '0x11d0000'), heap4)
        kept(lambda r: 0x5101f60 <= int(r['address'], 0) <= 0x5102020, '--in', '0x5101f60-0x5102020')
        kept(lambda r: int(r['address'], 0) >= 0x6000000, '--in', '0x6000000-')
        kept(lambda r: size(r) == 1688, '--size', 1688)
        kept(lambda r: 1024 <= size(r), '--size', '1K-')
        kept(lambda r: size(r) <= 64 and r['heap'] == '0x11d0000', '--size', '0-64', '--in', 4)
        # Each has a text; what is between 64 and 80 bytes large in heap 12 and has none is not listed.
        texts = [r['preview']['text'] for r in self.rows('-A', '--text', '--preview', '--in', 12)]
        self.assertTrue(texts and all(texts))
        bare = [r for r in self.rows('-A', '--preview', '--in', 12) if not r['preview']['text']]
        self.assertTrue(bare)

    def test_blocks_with_a_text(self):
        rows = self.rows('-A', '--find', 'www.example.com')
        self.assertEqual([int(r['address'], 0) for r in rows], [ENTRY])
        self.assertNotIn('reference', rows[0])
        places = self.rows('--find', 'front.cdn.example.net')
        rows = self.rows('-A', '--find', 'front.cdn.example.net')
        self.assertEqual({r['address'] for r in rows}, {r['address'] for r in places})
        self.assertIn(hex(NAME), {r['address'] for r in rows})

    def test_what_cannot_be_meant(self):
        self.assertIn('goes with --allocations', self.mistake('--size', 8))
        self.assertIn('goes with --allocations', self.mistake('--dns', '--text'))
        self.assertIn('goes with --allocations', self.mistake('-A', '--csv', '--preview'))
        for bad in ('x', '9-1', '-', '4-x'):
            self.assertIn('takes a size', self.mistake('-A', f'--size={bad}'))
            self.assertIn("takes a heap's number", self.mistake('-A', f'--in={bad}'))
        self.assertIn('has no heap 13', self.mistake('-A', '--in', 13, code=9))
        self.assertIn('no heap of the process is at 0x11d1000', self.mistake('-A', '--in', '0x11d1000', code=9))


if __name__ == '__main__':
    unittest.main(verbosity=2)
