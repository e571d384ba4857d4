#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The leaks that "Leak Checking" (adeyblue, 18 January 2010) lists, made again: the simulated machine `leaks2010` has
its program (agent/simulator/leaker.h), and ramseal heap has to list what ntdll listed there, and no more.

	test_heap_leaks.py RAMSEAL
"""

import collections
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import heap_truth  # noqa: E402: beside this
import process_truth  # noqa: E402: beside this
from machine_case import MachineCase, run  # noqa: E402
from sampled import sample  # noqa: E402
from test_heap_umdh import UNTRACED, Log  # noqa: E402

PRESET = 'sim:leaks2010'
# The calls that all traces end with, from main()'s caller to where threads begin, and the one that they begin with.
LAST = [0x00efb998, 0x00efb7df, 0x75d31174, 0x76e8b3f5, 0x76e8b3c8]
FIRST = 0x76eab234
# What stands between. Of LocalAlloc's and GlobalAlloc's own return addresses, which the text has lost, it is only said
# whose they are.
LOCAL_ALLOC, GLOBAL_ALLOC = 0x75317589, 0x75317613
Leak = collections.namedtuple('Leak', 'size trace')


def trace(*calls):
    return (FIRST, *calls, *LAST)


# By the text: sizes, traces, and the addresses that it has kept.
EARLY = {0x0041fc28: Leak(32, None), 0x0041fca0: Leak(32, None), 0x00421cd0: Leak(32, None)}
LATE = {
    0x00422518: Leak(0xcc, trace(0x00ef3adc)),
    0x00422600: Leak(0x123, trace(LOCAL_ALLOC, 0x00ef3b39)),
    0x00422740: Leak(0x456, trace(GLOBAL_ALLOC, 0x00ef3b96)),
    0x00422bb0: Leak(0x80, trace(0x00ef3bfa)),
}
OWN = {**EARLY, **LATE}
FOREIGN = {0x00601508: Leak(128, None)}
HEAPS = {0x00410000: OWN, 0x00600000: FOREIGN}
LEAKS = {**OWN, **FOREIGN}
# new char[77] and malloc(89) with 36 bytes of the debug CRT's around each.
CRT = {0x00422c48: 77 + 36, 0x00422cd8: 89 + 36}
CRT_FIRST, CRT_LAST = 0x40, 0x44  # in app.exe's data


class Leaks(MachineCase):
    def acquire_preset(self, settings=''):
        done = run('acquire', '-q', '--force', '-s', f'{PRESET}{settings},process_truth={self.account}', '-o',
                   self.container)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.process, = (p for p in process_truth.read(self.account)[1].values() if p.name == 'app.exe')
        self.app, = (m for m in self.process.modules if m.path.endswith('\\app.exe'))

    def ask(self, *args, codes=(0,)):
        done = run('heap', '--pid', self.process.pid, self.container, *args)
        self.assertIn(done.returncode, codes, done.stderr)
        return done.stdout.decode()

    def rows(self, *args, codes=(0,)):
        return [json.loads(line) for line in self.ask('--json', *args, codes=codes).splitlines()]

    def memory(self, va, size):
        done = run('read', '-q', self.container, '-p', self.process.pid, '-a', va, '-n', size, '-o', '-')
        self.assertEqual((done.returncode, len(done.stdout)), (0, size), done.stderr)
        return done.stdout

    def word(self, va):
        return int.from_bytes(self.memory(va, 4), 'little')

    def place(self, va):
        """A line of a trace."""
        m, = (m for m in self.process.modules if m.base <= va < m.base + m.size)
        return f"    0x{va:08x}  {m.path.split(chr(92))[-1]}+0x{va - m.base:x}"

    def listed(self, codes=(0,)):
        """{heap: {address: leak}} of --leaks, and the document."""
        said = json.loads(self.ask('--leaks', '--json', codes=codes))
        found = collections.defaultdict(dict)
        for g in said['groups']:
            calls = g['trace'] and tuple(int(f['address'], 0) for f in g['trace'])
            for f in g['trace'] or ():
                line = self.place(int(f['address'], 0))
                self.assertEqual(line.split('  ')[-1], f"{f['module']}+0x{f['offset']:x}")
            for address in g['addresses']:
                found[int(g['heap'], 0)][int(address, 0)] = Leak(g['size'], calls)
            self.assertEqual((len(g['addresses']), g['first']), (g['blocks'], None))
        return found, said

    def test_eight_leaks(self):
        for settings in ('', *sample((',seed=2', ',seed=3', ',region_paged=40,region_transition=20,live_files=1'))):
            with self.subTest(settings):
                self.acquire_preset(settings)
                found, said = self.listed()
                self.assertEqual(found, HEAPS)
                self.assertEqual((said['name'], said['unreferenced_blocks'], said['unreferenced_bytes']),
                                 ('app.exe', 8, 3 * 32 + 204 + 291 + 1110 + 128 + 128))
                self.assertTrue(said['all_read'])
                self.assertEqual(said['images_whole'] + said['by_leaked_blocks'], 0)
                # The simulator, which made it of the same text, says so as well.
                told = heap_truth.Heaps(self.account)
                self.assertEqual(told.leaked[str(self.process.pid)], set(LEAKS))

    def test_as_text(self):
        self.acquire_preset()
        busy = len(heap_truth.Heaps(self.account).busy[str(self.process.pid)])
        head, searched, columns, *lines = self.ask('--leaks').split(' further blocks')[0].splitlines()
        self.assertEqual(head, f'8 of {busy} busy blocks (1957 bytes) are referenced by nothing')
        self.assertRegex(searched, r'^searched: \d+ pages, captured over [\d.]+ s; \d+ safe, 0 at risk, 0 not judged$')
        self.assertEqual(columns.split(), ['heap', 'size', 'blocks', 'bytes', 'addresses'])
        expected = []
        for heap, addresses in ((0x410000, [0x422740]), (0x410000, [0x422600]), (0x410000, [0x422518]),
                                (0x410000, [0x422bb0]), (0x600000, [0x601508]), (0x410000, sorted(EARLY))):
            leak = LEAKS[addresses[0]]
            row = f'0x{heap:012x} {leak.size} {len(addresses)} {leak.size * len(addresses)}'
            expected.append(f"{row} {' '.join(map(hex, addresses))}")
            expected += [self.place(va) for va in leak.trace or ()] or ['    no stack trace']
        lines = [line if line.startswith(' ') else re.sub(' +', ' ', line) for line in lines
                 if line.startswith((' ', '0x'))]
        self.assertEqual(lines, expected)

    def test_who_is_shown(self):
        self.acquire_preset()
        for heap, leaks in HEAPS.items():
            for address, leak in leaks.items():
                lines = self.ask('--show', hex(address + 4)).splitlines()
                self.assertEqual(lines[0], f'{hex(address + 4)} is 4 bytes into an allocation of {leak.size} bytes at '
                                           f'{hex(address)}')
                self.assertTrue(lines[1].startswith(f'heap {hex(heap)}, back-end, within {hex(heap)}; '), lines[1])
                calls = [self.place(va) for va in leak.trace or ()]
                self.assertEqual(lines[2:3 + len(calls)] if calls else [], ['allocated by', *calls] if calls else [])
                self.assertEqual('allocated by' in lines, leak.trace is not None)
                # No word of a block or a global leads to it; one of a block that was freed led to the early ones.
                self.assertEqual([r for r in self.rows('--referrers', hex(address)) if r.get('state') == 'busy' or
                                  r.get('outside', {}).get('module')], [])

    def test_as_a_log_of_umdh(self):
        self.acquire_preset()
        log = Log(self.ask('--umdh'))
        busy = heap_truth.Heaps(self.account).busy[str(self.process.pid)]
        self.assertEqual(sum(map(len, log.heaps.values())), len(busy))
        for heap, leaks in HEAPS.items():
            for address, leak in leaks.items():
                block = log.heaps[heap][address]
                self.assertEqual(block.requested, leak.size)
                self.assertEqual(bool(block.id & UNTRACED), leak.trace is None)
                if leak.trace:
                    self.assertEqual(log.stacks[block.id], list(leak.trace))
        self.assertIn(f'// {len(busy) - len(LATE) - len(CRT)} blocks have no readable stack trace', log.comments)
        self.assertIn((self.app.base, self.app.size, f'C:{self.app.path}'), log.modules)

    def test_the_debug_crt_keeps_its_blocks(self):
        """They are as lost to the program as the others: its list of all blocks has them."""
        self.acquire_preset()
        blocks = {int(r['address'], 0): r for r in self.rows('--allocations') if r['state'] == 'busy'}
        for address, size in CRT.items():
            self.assertEqual(blocks[address]['requested'], size)
            self.assertIsNotNone(blocks[address]['trace'])
        said = self.listed()[1]
        for g in said['groups'] + said['inside_groups']:
            self.assertFalse(CRT.keys() & {int(a, 0) for a in g['addresses']})
        referrers = self.rows('--referrers', hex(max(CRT)))
        outside, = (r for r in referrers if 'address' not in r)
        self.assertEqual(outside['outside']['module'], 'app.exe')
        head = int(outside['reference'], 0)
        self.assertEqual(head % 0x1000, CRT_FIRST)
        self.assertIn(f'{head:#014x}  in no known allocation; app.exe+0x{head - self.app.base:x}\n',
                      self.ask('--referrers', hex(max(CRT))))
        chain, at = [], self.word(head)
        while at:
            chain.append(at)
            at = self.word(at)
        self.assertEqual(chain[:2], sorted(CRT, reverse=True))
        self.assertEqual(chain[-1], self.word(head - CRT_FIRST + CRT_LAST))
        self.assertLess({*chain}, {*blocks})
        self.assertFalse({*chain} & LEAKS.keys())

    def test_header_before_a_stack_trace(self):
        """+ust: between the header and the block there is more, and the decoded header is the chunk's."""
        self.acquire_preset()
        for address in LATE:
            header = json.loads(self.ask('--show', hex(address), '--header', '--json'))['header']
            self.assertTrue(header['sum_fits'])
            self.assertEqual((header['flags'], header['bytes'][-2:]), (1, '05'))
            self.assertGreaterEqual(header['size'], LATE[address].size + len(header['bytes']) // 2)

    def test_way_to_a_block(self):
        self.acquire_preset()
        *_, last = self.rows('--referrers', hex(min(CRT)), '--chain')
        self.assertEqual((last['ends'], last['outside']['module']), ('module', 'app.exe'))
        address = next(iter(EARLY))
        self.assertEqual(self.rows('--referrers', hex(address), '--chain'), [])
        self.assertEqual(self.ask('--referrers', hex(address), '--chain'),
                         'nothing that could be read refers to it\n')

    def test_words_of_code_hide_no_leak(self):
        """
        ntdll takes words of code for pointers, the text says, because it searches whatever was mapped to be written
        once, as images are. app.exe's code has a word for each leak: by that rule there would be none.
        """
        self.acquire_preset()
        image = self.memory(self.app.base, self.app.size)
        words = {int.from_bytes(image[i:i + 4], 'little'): i for i in range(0, len(image), 4)}
        self.assertLessEqual(LEAKS.keys(), words.keys())
        optional = 24 + int.from_bytes(image[0x3c:0x40], 'little')
        table = optional + int.from_bytes(image[optional - 4:optional - 2], 'little')
        sections = [image[table + 40 * i:table + 40 * (i + 1)] for i in range(3)]
        for leak in LEAKS:
            section, = (s for s in sections if 0 <= words[leak] - int.from_bytes(s[12:16], 'little') <
                        int.from_bytes(s[8:12], 'little'))
            self.assertEqual(section[:8].rstrip(b'\0'), b'.text')
        vads = json.loads(run('vad', '--json', '-p', self.process.pid, self.container).stdout)['vads']
        self.assertEqual([(v['kind'], v['protection']) for v in vads if int(v['start'], 0) == self.app.base],
                         [('image', 'wcx')])  # PAGE_EXECUTE_WRITECOPY
        self.assertEqual(self.listed()[0], HEAPS)

    def test_nor_where_a_module_has_lost_its_headers(self):
        """Programs that hide erase them; then nothing tells what of the image is code."""
        self.acquire_preset()
        done = run('read', self.container, '-p', self.process.pid, '-a', self.app.base, '-n', 16,
                   '-o', self.at / 'header')
        frame = int(re.search(rb'valid, frame (0x[0-9a-f]+)', done.stdout)[1], 0)
        raw = self.at / 'image.raw'
        self.assertEqual(run('export', '-q', '-o', raw, '--format', 'raw', self.container).returncode, 0)
        with open(raw, 'r+b') as f:
            f.seek(frame)
            self.assertEqual(f.read(2), b'MZ')
            f.seek(frame)
            f.write(bytes(0x1000))
        self.container = self.at / 'image.rsz'
        self.assertEqual(run('acquire', '-q', '-s', f'file:{raw}', '-o', self.container).returncode, 0)
        found, said = self.listed()
        self.assertEqual((found, said['images_whole']), (HEAPS, 1))
        self.assertIn('1 modules have no readable headers', self.ask('--leaks'))

    def test_what_was_freed_hides_no_leak(self):
        self.acquire_preset()
        held = set()
        for r in self.rows('--allocations'):
            if r['state'] == 'free':
                content = self.memory(int(r['address'], 0), min(r['size'], 0x100))
                held |= {int.from_bytes(content[i:i + 4], 'little') for i in range(0, len(content), 4)}
        self.assertLessEqual(EARLY.keys(), held)
        self.assertEqual(self.listed()[0], HEAPS)

    def test_without_the_page_file_they_are_at_most(self):
        self.acquire_preset(',region_paged=20,region_transition=10')
        found, said = self.listed(codes=(3,))
        self.assertFalse(said['all_read'])
        known = {int(r['address'], 0): int(r['heap'], 0) for r in self.rows('--allocations', codes=(3,))}
        there = {a for a in LEAKS if known.get(a) in HEAPS}
        self.assertGreater(len(there), 0)
        self.assertLessEqual(there, {a for leaks in found.values() for a in leaks})

    def test_what_the_calls_added(self):
        """UMDH's way: the same process before its six calls, and after them."""
        later = self.container
        self.acquire_preset()
        self.container = self.at / 'before.rsz'
        self.acquire_preset(',leaker=2')
        found, said = self.listed()
        self.assertEqual((found, said['unreferenced_bytes']), ({0x410000: EARLY, 0x600000: FOREIGN}, 224))
        document = json.loads(self.ask(later, '--diff', '--json'))
        grown = {tuple(int(f['address'], 0) for f in g['trace']): (g['old_blocks'], g['new_blocks'], g['new_bytes'])
                 for g in document['groups']}
        self.assertEqual(len(grown), 6)
        for leak in LATE.values():
            self.assertEqual(grown.pop(leak.trace), (0, 1, leak.size))
        self.assertEqual(sorted(grown.values()), sorted((0, 1, size) for size in CRT.values()))
        text = self.ask(later, '--diff')
        total = sum(leak.size for leak in LATE.values()) + sum(CRT.values())
        self.assertTrue(text.endswith(f'Total increase == {total:X}\n'), text[-80:])
        self.assertIn('\n'.join(map(self.place, LATE[0x422740].trace)), text)
        self.assertEqual(text.count(self.place(FIRST)), 6)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
