#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The analyst's walk through a heap, on the process of the 2015 paper: what blocks hold, who refers to whom.

	test_heap_analysis.py RAMSEAL
"""

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import heap_truth  # noqa: E402: beside this

RAMSEAL = os.path.abspath(sys.argv.pop(1))
PID = 1148
# Allocations of the paper (agent/simulator/resolver.c): the name, two records, the entry, the table.
NAME, SECOND, FIRST, ENTRY, TABLE = 0x11e2870, 0x11e2b30, 0x1244fc0, 0x5101f60, 0x51012f0


def run(*args):
    return subprocess.run([RAMSEAL, *map(str, args)], capture_output=True, text=True, timeout=900)


def setUpModule():
    folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
    unittest.addModuleCleanup(folder.cleanup)
    Case.container = os.path.join(folder.name, 'paper.rsz')
    done = run('acquire', '-q', '-s', 'sim:cohen2015heaps,live_files=1', '-o', Case.container)
    assert done.returncode == 0, done.stderr


class Case(unittest.TestCase):
    container = None

    def ask(self, *args, code=0):
        done = run('heap', '-q', '-p', PID, *args, self.container)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def rows(self, *args):
        return [json.loads(line) for line in self.ask('--json', *args).splitlines()]

    def table(self, *args):
        return list(csv.DictReader(io.StringIO(self.ask('-A', '--csv', *args))))

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


class Name(Case):
    def test_process_by_its_name(self):
        info = json.loads(run('info', '--json', self.container).stdout)
        text = json.dumps(info)
        self.assertEqual((text.count('"services.exe"'), text.count('"svchost.exe"') > 2), (1, True))
        for args in (['process'], ['vad'], ['read', '-a', '0x7ffe0000'], ['heap'], ['smear']):
            pid = ['-p', 'Services.EXE'] if args[0] != 'heap' else ['--pid', 'services.exe']
            named = run(*args, *pid, '--json', self.container)
            self.assertIn(named.returncode, (0, 3), named.stderr)
            self.assertTrue(named.stdout)
            self.assertEqual(named.stdout, run(*args, '-p', self.pid, '--json', self.container).stdout)
            several = run(*args, '-p', 'svchost.exe', self.container)
            self.assertEqual((several.returncode, several.stdout), (2, ''), several.stderr)
            self.assertIn(f', {PID}, ', several.stderr)
            none = run(*args, '-p', 'nobody.exe', self.container)
            self.assertEqual((none.returncode, none.stdout), (9, ''), none.stderr)
            self.assertIn("is called 'nobody.exe'", none.stderr)

    @property
    def pid(self):
        return json.loads(run('process', '-p', 'services.exe', '--json', self.container).stdout)['pid']


class Preview(Case):
    ENTRY_LINES = ['    00 00 00 00 00 00 00 00 90 1f 10 05 00 00 00 00 ................',
                   '    +0x08 -> +0x30 of this block',
                   f'    +0x18 -> heap 4, 56 bytes at {FIRST:#x}',
                   '    +0x30 "www.example.com" (UTF-16)']

    def entry_of(self, text):
        lines = text.splitlines()
        at = next(i for i, line in enumerate(lines) if f'0x{ENTRY:012x} ' in line)
        return lines[at + 1:at + 5]

    def test_block_shows_what_it_holds(self):
        self.assertEqual(self.entry_of(self.ask('-A', '--preview', '--in', 12)), self.ENTRY_LINES)
        self.assertNotIn('\n    ', self.ask('-A', '--in', 12))

    def test_terminal_has_previews_and_a_pipe_has_none(self):
        self.assertEqual(self.entry_of(self.at_terminal('-A', '--in', 12, '--size', 88)), self.ENTRY_LINES)
        # What does not fit the line has one of its own; bytes and pointers are a preview's.
        self.assertNotRegex(self.at_terminal('-A', '--in', 12, '--size', 88, '--preview=never'),
                            r'\n    (\+0x|([0-9a-f]{2} ){2})')

    def test_json(self):
        row, = (r for r in self.rows('-A', '--preview', '--in', f'{ENTRY:#x}-{ENTRY:#x}'))
        self.assertEqual(row['preview'], {
            'bytes': '0000000000000000901f100500000000',
            'text': {'offset': 0x30, 'encoding': 'utf-16', 'value': 'www.example.com'},
            'pointers': [{'offset': 8, 'value': hex(ENTRY + 0x30), 'note': '+0x30 of this block'},
                         {'offset': 0x18, 'value': hex(FIRST), 'note': f'heap 4, 56 bytes at {FIRST:#x}'}]})
        self.assertNotIn('preview', self.rows('-A', '--in', 12)[0])

    def test_filters(self):
        everything = self.table()

        def kept(wanted, *args):
            rows = self.table(*args)
            self.assertEqual(rows, [r for r in everything if wanted(r)])
            self.assertTrue(0 < len(rows) < len(everything))
            return rows

        def size(r):
            return int(r['requested'] or r['size'])

        heap4 = kept(lambda r: r['heap'] == '0x11d0000', '--in', 4)
        self.assertEqual(self.table('--in', '0x11d0000'), heap4)
        kept(lambda r: 0x5101f60 <= int(r['address'], 0) <= 0x5102020, '--in', '0x5101f60-0x5102020')
        kept(lambda r: int(r['address'], 0) >= 0x6000000, '--in', '0x6000000-')
        kept(lambda r: size(r) == 1688, '--size', 1688)
        kept(lambda r: 1024 <= size(r), '--size', '1K-')
        kept(lambda r: size(r) <= 64 and r['heap'] == '0x11d0000', '--size', '0-64', '--in', 4)
        some = ('-A', '--preview', '--in', 12, '--size', '0-99')
        every = self.rows(*some)
        texts = self.rows(*some, '--text')
        self.assertEqual(texts, [r for r in every if r['preview']['text']])
        self.assertTrue(0 < len(texts) < len(every))

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


class Show(Case):
    def test_window_around_the_address(self):
        at = TABLE + 1392
        lines = self.ask('--show', hex(at), '--length', 64).splitlines()
        self.assertEqual(lines[0], f'{at:#x} is 1392 bytes into an allocation of 1688 bytes at {TABLE:#x}')
        self.assertEqual((lines[2], lines[-1]), ('  ... 1376 bytes', '  ... and 248 bytes'))
        self.assertEqual(lines[3:-1],
                         [f'  0x{at - 16 + 8 * i:012x} +0x{1376 + 8 * i:03x}  00 00 00 00 00 00 00 00 ........'
                          for i in range(2)] +
                         [f'> 0x{at:012x} +0x570  60 1f 10 05 00 00 00 00 `.......  -> heap 12, 88 bytes at {ENTRY:#x}'] +
                         [f'  0x{at + 8 + 8 * i:012x} +0x{1400 + 8 * i:03x}  00 00 00 00 00 00 00 00 ........'
                          for i in range(5)])
        words = self.show(at)['words']
        self.assertEqual([w['offset'] for w in words], list(range(0, 1688, 8)))
        self.assertEqual(words[1392 // 8]['value'], hex(ENTRY))
        # Whatever the block's size and the window's, the word that was asked for is in it.
        odd = max((r for r in self.table() if r['requested'] and int(r['requested']) % 8), key=lambda r: int(r['requested']))
        for offset in (0, int(odd['requested']) // 2, int(odd['requested']) - 1):
            for length in (8, 13, 64, 1 << 9):
                lines = self.ask('--show', hex(int(odd['address'], 0) + offset), '--length', length).splitlines()
                word = int(odd['address'], 0) + offset // 8 * 8
                self.assertEqual([line[:16] for line in lines if line[0] == '>'], [f'> 0x{word:012x}'], (offset, length))
        # In a block that is larger than any window it is around the address, at each end, too.
        large = max(self.table(), key=lambda r: int(r['size']))
        size = int(large['requested'])
        for offset in (0, size // 2, size - 1):
            words = self.show(int(large['address'], 0) + offset)['words']
            self.assertEqual(len(words), 512)
            self.assertLessEqual(words[0]['offset'], offset)
            self.assertGreater(words[-1]['offset'] + 8, offset)

    def show(self, va, *args):
        return json.loads(self.ask('--show', hex(va), '--json', *args))

    def test_narrow_terminal_has_notes_below(self):
        lines = self.at_terminal('--show', hex(FIRST)).splitlines()
        note = f'-> heap 12, +0x30 of 88 bytes at {ENTRY:#x}'
        self.assertEqual(lines[lines.index(f'        {note}') - 1],
                         f'  0x{FIRST + 8:012x} +0x008  90 1f 10 05 00 00 00 00 ........')
        self.assertLessEqual(max(map(len, lines)), 80)
        for args in (('--show', hex(ENTRY + 0x60), '--header'), ('--referrers', hex(NAME), '--chain'), ('--dns',)):
            self.assertLessEqual(max(map(len, self.at_terminal(*args).splitlines())), 80, args)
        self.assertIn(f'........  {note}\n', self.ask('--show', hex(FIRST)))

    def test_header(self):
        lines = self.ask('--show', hex(NAME), '--header').splitlines()
        self.assertRegex(lines[3], f'^  0x{NAME - 8:012x} -0x008  ([0-9a-f][0-9a-f] ){{8}}.{{8}}  header$')
        before = max(self.table('--in', f'0-{NAME - 1:#x}'), key=lambda r: int(r['address'], 0))
        previous = NAME - int(before['address'], 0)  # whole blocks, one behind the other
        self.assertEqual(lines[4], f'  decoded: size 96, flags 0x01, unused 8, size before {previous}; sum right')
        raw = re.search('-0x008  ((?:[0-9a-f]{2} ){8})', lines[3])[1].replace(' ', '')
        header = self.show(NAME, '--header')['header']
        self.assertEqual(header['bytes'][16:], raw)
        self.assertEqual({**header, 'bytes': ''}, {'bytes': '', 'size': 96, 'flags': 1, 'unused': 8,
                                                   'previous_size': previous, 'sum_fits': True})
        self.assertNotIn('header', self.show(NAME))


class Chain(Case):
    WAY = [SECOND + 8, FIRST, ENTRY + 0x18, TABLE + 1392]  # figures 5 and 6

    def test_referrers_show_their_blocks(self):
        lines = self.ask('--referrers', hex(NAME)).splitlines()
        self.assertEqual(lines[:3], [
            f'0x{SECOND + 8:012x}  heap 4, +0x8 of 72 bytes at {SECOND:#x}',
            f'  0x{SECOND:012x} +0x000  00 00 00 00 00 00 00 00 ........',
            f'> 0x{SECOND + 8:012x} +0x008  70 28 1e 01 00 00 00 00 p(......  -> heap 4, 88 bytes at {NAME:#x}'])
        self.assertEqual(len(lines), 1 + 72 // 8)

    def test_way_out_of_the_heaps(self):
        rows = self.rows('--referrers', hex(NAME), '--chain')
        self.assertEqual([int(r['reference'], 0) for r in rows[:-1]], self.WAY)
        self.assertEqual([(r['step'], r['ends']) for r in rows], [(1, None), (2, None), (3, None), (4, None), (5, 'memory')])
        lines = self.ask('--referrers', hex(NAME + 4), '--chain').splitlines()
        self.assertEqual([int(line.split()[0], 0) for line in lines if line[0] == '0'],
                         [int(r['reference'], 0) for r in rows])
        self.assertEqual(lines[-1], 'memory of no heap, module or stack')
        self.assertIn('--chain goes with --referrers', self.mistake('-A', '--chain'))
        self.assertIn('go with --show', self.mistake('-A', '--header'))

    def test_cycle_is_named(self):
        """The chain's end leads to its beginning, and the entry of the cache leads to neither any more."""
        with tempfile.TemporaryDirectory(prefix='ramseal-test-') as at:
            image, container = os.path.join(at, 'memory.raw'), os.path.join(at, 'cycle.rsz')
            run('acquire', '-q', '-s', 'sim:cohen2015heaps,ram=128M', '--format', 'raw', '-o', image)
            run('acquire', '-q', '-s', f'file:{image}', '-o', container)
            with open(image, 'r+b') as f:
                for va, value in ((SECOND, FIRST), (ENTRY + 0x18, 0)):
                    row = json.loads(run('read', '-q', '-p', PID, '-a', hex(va), '-n', 8, '--json', container).stdout)
                    f.seek(row['frame'] + va % 4096)
                    f.write(value.to_bytes(8, 'little'))
            run('acquire', '-q', '--force', '-s', f'file:{image}', '-o', container)
            done = run('heap', '-p', PID, '--referrers', hex(NAME), '--chain', '--json', container)
            rows = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual([(int(r['reference'], 0), r['ends']) for r in rows], [(SECOND + 8, None), (FIRST, 'cycle')])
            self.assertEqual(done.returncode, 3)  # an image has no page file
            text = run('heap', '-p', PID, '--referrers', hex(NAME), '--chain', container).stdout
            self.assertIn(f'\na cycle: {SECOND:#x}, in a block above, refers to it again\n', text)

    def test_stack_ends_it(self):
        with tempfile.TemporaryDirectory(prefix='ramseal-test-') as at:
            container, account = os.path.join(at, 'stacks.rsz'), os.path.join(at, 'truth')
            done = run('acquire', '-q', '-s', 'sim:desktop,ram=64M,resident=2M,allocated=4M,trimmed=2M,others=8M,'
                       'cache=2M,pagefile0=16M,pagefile1=0,live_files=1,activity=0,inside=1,processes=2,windows=10,'
                       f'heaps=1,heap_blocks=400,stack_roots=9,process_truth={account}', '-o', container)
            self.assertEqual(done.returncode, 0, done.stderr)
            truth = heap_truth.Heaps(account)
            pid = next(iter(truth.stack_roots))
            kinds = {}
            for block, (kind, pointer) in truth.stack_roots[pid].items():
                kinds.setdefault(kind, (block, pointer))
            self.assertEqual(set(kinds), {'user-stack', 'register', 'kernel-stack'})
            for block, pointer in kinds.values():
                done = run('heap', '-q', '-p', pid, '--referrers', hex(block), '--chain', '--json', container)
                self.assertEqual(done.returncode, 0, done.stderr)
                row, = (json.loads(line) for line in done.stdout.splitlines())
                self.assertEqual((int(row['reference'], 0), row['ends']), (pointer, 'stack'))
            text = run('heap', '-q', '-p', pid, '--referrers', hex(block), '--chain', container).stdout
            self.assertRegex(text, r'\nstack of thread [1-9][0-9]*\n$')


if __name__ == '__main__':
    unittest.main(verbosity=2)
