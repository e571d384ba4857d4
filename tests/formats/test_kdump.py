#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Compressed kdumps, plain and flattened, read back page by page by a reader of our own (kdump.py) and by
libkdumpfile, and straightened by makedumpfile. crash and drgn on a kernel's: vm/test_dumps.py.
Usage: test_kdump.py RAMSEAL KDUMP_READ
"""
import hashlib
import json
import os
import resource
import signal
import struct
import subprocess
import tempfile
import unittest

import test_foreign  # for classes with tests, which are not to run here as well
from kdump import INCOMPLETE, Kdump, disk_usage
from sampled import draw, drawn  # test_foreign knows where it is
from test_foreign import (FRAGMENTS, GIB, KDUMP_READ, MIB, NOTES, PAGE, RAMSEAL, SCATTERED, USUAL, VMCOREINFO,
                          ZERO, Case, Memory, needs_simulator, note, page_at, run, sha256, tool)

# kdump_free() of libkdumpfile 0.5.1 reads what it has freed.
os.environ.pop('MALLOC_PERTURB_', None)

DESKTOP = 'sim:desktop,ram=64M,allocated=40M,resident=25M,trimmed=10M,others=10M,cache=4M,activity=0'


def content(memory):
    """{address: page} of what was read."""
    return {at: page_at(at) for first, n, kind in memory.segments if kind == 'data'
            for at in range(first, first + n * PAGE, PAGE)}


def holes_of_every_size():
    """Up to 70 pages, and around multiples of a byte, a piece and a block of bits; the same of gaps."""
    sizes = [*range(1, 71), 255, 256, 257, 32767, 32768, 32769]
    at, segments = 0x1000, []
    for i, size in enumerate(sizes):
        segments.append((at, 1 + i % 9, 'data'))
        at += (1 + i % 9 + size) * PAGE
    for i, size in enumerate([s for s in sizes if s < 300]):
        segments += [(at, 1 + i % 9, 'data'), (at + (1 + i % 9) * PAGE, size, 'lost')]
        at += (1 + i % 9 + size) * PAGE
    return Memory(segments)


class KdumpCase(Case):
    def check(self, path, memory, **same):
        """Every page, every gap, every hole."""
        with Kdump(path) as k:
            self.assertTrue(k.bytes.ended)
            self.assertEqual(k.max_mapnr, (memory.ranges()[-1][1] + 1) // PAGE)
            self.assertEqual(k.memory, [a // PAGE for first, last in memory.ranges()
                                        for a in range(first, last, PAGE)])
            self.compare(k.pages(), content(memory))
            for name, value in same.items():
                self.assertEqual(getattr(k, name), value, name)
            # Where libkdumpfile would look for a 32-bit header's page size.
            self.assertEqual((k.seconds, k.microseconds), (0, 0))

    def compare(self, pages, want):
        if pages != want:  # unittest's own comparison would print them
            self.assertEqual(sorted(pages), sorted(want))
            self.fail(next(hex(at) for at, page in want.items() if pages[at] != page))

    def flattened(self, command, out, code=0):
        """What `command` writes to stdout, and what makedumpfile makes of it."""
        with open(self.path(out), 'wb') as f:
            done = subprocess.run([RAMSEAL, '--log-json', *command, '-o', '-'], stdout=f, stderr=subprocess.PIPE,
                                  timeout=900)
        self.assertEqual(done.returncode, code, done.stderr)
        back = self.path(out + '.back')
        with open(self.path(out), 'rb') as f:
            straight = subprocess.run(['makedumpfile', '-f', '-R', back], stdin=f, capture_output=True, timeout=900)
        self.assertEqual(straight.returncode, 0, straight.stdout + straight.stderr)
        lines = [json.loads(line) for line in done.stderr.splitlines()]
        return self.path(out), back, next(line for line in lines if line['event'] == 'summary')


class Pages(KdumpCase):
    def test_both_ways(self):
        direct, export = self.both(USUAL, 'kdump', '.kdump')
        for s in direct, export:
            self.check(s['output'], USUAL, status=0x20)
            self.assertEqual(s['sha256'], sha256(s['output']))
        self.assertEqual(direct['sha256'], export['sha256'])

    def test_holes_and_gaps_of_every_size(self):
        for memory in holes_of_every_size(), SCATTERED, FRAGMENTS:
            s = self.acquire(memory, 'kdump', 'a.kdump', '-f').summary
            self.check(s['output'], memory)

    def test_beyond_512_gib(self):
        sparse = Memory([(0x1000, 100, 'data'), (511 * GIB + 123 * PAGE, 300, 'data'),
                         (600 * GIB, 20, 'lost'), (600 * GIB + 20 * PAGE, 30, 'data'),
                         (1536 * GIB - 7 * PAGE, 14, 'data')])
        _, s = self.both(sparse, 'kdump', '.kdump')
        self.check(s['output'], sparse)
        self.assertGreater(os.path.getsize(s['output']), 96 * MIB)
        self.assertLess(disk_usage(s['output']), 2 * MIB)
        flat, back, _ = self.flattened(['export', '-F', 'kdump', self.path('c.rsz')], 'flat', code=3)
        self.assertLess(os.path.getsize(flat), 2 * MIB)
        self.check(flat, sparse)
        self.assertEqual(sha256(back), s['sha256'])
        self.libkdumpfile(s['output'], sparse)

    def test_nothing_could_be_read(self):
        memory = Memory([(0x3000, 70, 'lost')])
        self.acquire(memory, 'rsz', 'c.rsz', code=5)
        s = run('export', '-F', 'kdump', '-o', self.path('a.kdump'), self.path('c.rsz'), code=3).summary
        self.check(s['output'], memory)
        flat, back, _ = self.flattened(['export', '-F', 'kdump', self.path('c.rsz')], 'flat', code=3)
        self.check(flat, memory)
        self.assertEqual(sha256(back), s['sha256'])

    def libkdumpfile(self, path, memory):
        """Pages on both sides of every border; a page of a gap, and of a hole, is refused."""
        pages = content(memory)
        at = [a for first, n, kind in memory.segments if kind == 'data'
              for a in sorted({first, first + (n - 1) * PAGE})]
        for a, line in zip(at, tool(KDUMP_READ, path, *(f'phys:{a:#x}' for a in at)).splitlines(), strict=True):
            self.assertEqual(line, f'phys:{a:#x} {pages[a].hex()}')
        gaps = [first for first, _, kind in memory.segments if kind != 'data']
        holes = [last + 1 for _, last in memory.ranges()[:-1]]
        for a in gaps + holes:
            done = subprocess.run([KDUMP_READ, path, f'phys:{a:#x}'], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn('Excluded page', done.stderr)

    def test_libkdumpfile(self):
        s = self.acquire(USUAL, 'kdump', 'a.kdump').summary
        self.libkdumpfile(s['output'], USUAL)

    def test_levels(self):
        sizes = {}
        for level in 'store', '1', '12':
            s = self.acquire(USUAL, 'kdump', level + '.kdump', '--level', level).summary
            self.check(s['output'], USUAL, status=0 if level == 'store' else 0x20)
            sizes[level] = os.path.getsize(s['output'])
        self.assertLess(sizes['1'], sizes['store'] / 4)
        self.assertLessEqual(sizes['12'], sizes['1'] * 1.01)

    def test_pages_that_do_not_shrink_are_stored(self):
        with open(self.path('noise.raw'), 'wb') as f:
            f.write(b'noise' + os.urandom(3 * MIB - 5))
        run('acquire', '-s', 'file:' + self.path('noise.raw'), '-F', 'kdump', '-o', self.path('a.kdump'))
        with Kdump(self.path('a.kdump')) as k, open(self.path('noise.raw'), 'rb') as f:
            self.assertEqual({d.size for d in k.descriptors()}, {PAGE})
            self.assertEqual(b''.join(page for _, page in sorted(k.pages().items())), f.read())

    def test_zeros_share_a_page(self):
        self.acquire(USUAL, 'kdump', 'a.kdump')
        with Kdump(self.path('a.kdump')) as k:
            zeros = {d.offset for frame, d in zip(k.dumped, k.descriptors()) if frame % 3 == 1}
        self.assertEqual(len(zeros), 1)


class Flat(KdumpCase):
    def test_makedumpfile_straightens_it_byte_for_byte(self):
        s = self.acquire(USUAL, 'kdump', 'a.kdump').summary
        source = 'file:' + self.path('source.elf')
        self.acquire(USUAL, 'rsz', 'c.rsz', code=3)
        for command in (['acquire', '-s', source, '-F', 'kdump'], ['export', '-F', 'kdump', self.path('c.rsz')]):
            flat, back, summary = self.flattened(command, 'flat', code=3)
            self.check(flat, USUAL)
            self.assertEqual(summary['sha256'], sha256(flat))
            self.assertEqual(sha256(back), s['sha256'])

    def test_into_a_fifo(self):
        source, fifo = self.source(USUAL), self.path('fifo')
        os.mkfifo(fifo)
        with open(self.path('got'), 'wb') as f, subprocess.Popen(['cat', fifo], stdout=f):
            run('acquire', '-s', source, '-F', 'kdump', '-o', fifo, code=3)
        self.check(self.path('got'), USUAL)

    def test_that_breaks_off(self):
        """Its reader goes away: what it has ends without the last record."""
        source = self.source(Memory([(0, 40000, 'data')]))
        with subprocess.Popen([RAMSEAL, 'acquire', '-s', source, '-F', 'kdump', '-l', 'store', '-o', '-'],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            got = p.stdout.read(8 * MIB)
            p.stdout.close()
            p.stderr.read()
        self.assertEqual(p.returncode, 6)
        with open(self.path('cut'), 'wb') as f:
            f.write(got)
        # makedumpfile 1.7.2 does not notice an end of its input, and reads for ever.
        with Kdump(self.path('cut')) as k:
            self.assertFalse(k.bytes.ended)
            self.assertEqual((len(k.memory), k.dumped), (40000, []))


class Kernel(KdumpCase):
    def dump(self, notes):
        Memory([(0x1000, 10, 'data')]).write_elf(self.path('s.elf'), notes=notes)
        run('acquire', '-s', 'file:' + self.path('s.elf'), '-F', 'kdump', '-f', '-o', self.path('k.kdump'))
        return Kdump(self.path('k.kdump'))

    def test_notes_and_vmcoreinfo(self):
        with self.dump(NOTES) as k:
            self.assertEqual((k.notes, k.vmcoreinfo), (NOTES, VMCOREINFO))
            self.assertEqual((k.cpus, k.phys_base), (1, 0))
            self.assertEqual([k.uts[0], k.uts[4]], [b'Linux', b'x86_64'])
        self.assertEqual(tool('crash', '--osrelease', self.path('k.kdump')).strip(), '6.1.0-test')

    def test_three_processors_and_a_physical_base(self):
        info = VMCOREINFO + b'NUMBER(phys_base)=-16777216\n'
        with self.dump(note(b'CORE', 1, bytes(336)) * 3 + note(b'CORE', 3, bytes(136)) +
                       note(b'VMCOREINFO', 0, info)) as k:
            self.assertEqual((k.vmcoreinfo, k.cpus), (info, 3))
            self.assertEqual(k.phys_base, 2**64 - 16777216)

    def test_notes_of_more_than_a_block(self):
        notes = note(b'CORE', 1, bytes(336)) * 128 + note(b'VMCOREINFO', 0, VMCOREINFO)
        with self.dump(notes) as k:
            self.assertEqual((k.notes, k.vmcoreinfo, k.cpus), (notes, VMCOREINFO, 128))
            self.assertEqual(k.sub_blocks, -(-(104 + len(notes)) // PAGE))

    def test_nothing_is_known(self):
        with self.dump(b'') as k:
            self.assertEqual((k.notes, k.vmcoreinfo, k.cpus, k.uts), (b'', None, 1, [b''] * 6))

    @needs_simulator
    def test_windows_has_no_vmcoreinfo(self):
        """And every page is that of the raw export."""
        run('acquire', '-s', DESKTOP, '-o', self.path('c.rsz'))
        run('export', '-F', 'raw', '-o', self.path('a.raw'), self.path('c.rsz'))
        s = run('export', '-F', 'kdump', '-o', self.path('a.kdump'), self.path('c.rsz')).summary
        self.assertEqual(s['kernel'], {'os': 'windows', 'vmcoreinfo': None, 'direct_map': None, 'image': None})
        direct = run('acquire', '-s', DESKTOP, '-F', 'kdump', '-o', self.path('b.kdump')).summary
        self.assertEqual(direct['sha256'], s['sha256'])
        with open(self.path('a.raw'), 'rb') as f:
            raw = f.read()
        with Kdump(self.path('a.kdump')) as k:
            self.assertEqual((k.vmcoreinfo, k.notes, k.uts[0]), (None, b'', b''))
            self.assertEqual(k.memory, k.dumped)
            pages = k.pages()
        self.assertEqual(len(pages), sum(s['pages'][state] for state in ('data', 'zero')))
        flat = {at: raw[at:at + PAGE] for at in range(0, len(raw), PAGE)}
        self.compare(pages, {at: page for at, page in flat.items() if at in pages or page != ZERO})


class Bad(KdumpCase):
    @needs_simulator
    def test_containers_that_are_cut_or_damaged(self):
        """What is lost is a gap, and the rest is what the raw export has."""
        run('acquire', '-s', DESKTOP, '-o', self.path('c.rsz'))
        with open(self.path('c.rsz'), 'rb') as f:
            whole = f.read()
        somewhere = draw('where it ends').randrange(len(whole) // 6, len(whole) // 2)
        cuts = drawn((len(whole) // 3, len(whole) // 2), 0, 'cuts') + [somewhere]
        for name, data in [*((f'{at} bytes', whole[:at]) for at in cuts),
                           ('flipped', whole[:600000] + bytes([whole[600000] ^ 1]) + whole[600001:])]:
            with self.subTest(name):
                with open(self.path('x.rsz'), 'wb') as f:
                    f.write(data)
                s = run('export', '-F', 'kdump', '-f', '-o', self.path('x.kdump'), self.path('x.rsz'), code=7).summary
                run('export', '-F', 'raw', '-f', '-o', self.path('x.raw'), self.path('x.rsz'), code=7)
                self.check_beside_raw(s)

    def check_beside_raw(self, s):
        with open(s['gaps']) as f:
            gaps = json.load(f)
        missing = {at for kind in ('unreadable', 'skipped') for g in gaps[kind]
                   for at in range(g['first'], g['last'], PAGE)}
        self.assertEqual(gaps['gaps_not_listed'], 0)
        self.assertTrue(missing)
        with Kdump(s['output']) as k, open(self.path('x.raw'), 'rb') as f:
            raw = f.read()
            self.assertEqual({frame * PAGE for frame in k.memory} - missing, {n * PAGE for n in k.dumped})
            pages = k.pages()
            self.compare(pages, {at: raw[at:at + PAGE] for at in pages})

    def test_fill_is_refused(self):
        for args in (['acquire', '-F', 'kdump', '--fill', '00'], ['export', '-F', 'kdump', '--fill', '00', '-o', 'x', 'y'],
                     ['acquire', '-F', 'kdump', '--level', '13']):
            done = subprocess.run([RAMSEAL, *args], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr.count('\n')), (2, 1), done.stderr)

    def check_incomplete(self, path, source):
        """Of what was written so far, all can be read."""
        with Kdump(path) as k, open(source, 'rb') as f:
            self.assertEqual(k.status, 0x20 | INCOMPLETE)
            self.assertLess(len(k.dumped), len(k.memory))
            self.assertEqual(k.dumped, list(range(len(k.dumped))))
            self.compare(k.pages(), {n * PAGE: f.read(PAGE) for n in k.dumped})
            return len(k.dumped)

    def test_full_disk(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (150 * MIB, 150 * MIB))

        with open(self.path('noise.raw'), 'wb') as f:
            block = bytearray(os.urandom(MIB))
            for i in range(160):
                for at in range(0, MIB, PAGE):
                    struct.pack_into('<Q', block, at, ~(i * MIB + at) & 2**64 - 1)
                f.write(block)
        r = run('acquire', '-s', 'file:' + self.path('noise.raw'), '-F', 'kdump', '-o', self.path('a.kdump'), code=6,
                preexec_fn=limit)
        self.assertRegex(r.error, 'File too large|No space left')
        self.assertFalse(os.path.exists(self.path('a.kdump')))
        # Bits are written for 128 MiB at a time.
        self.assertEqual(self.check_incomplete(self.path('a.kdump.partial'), self.path('noise.raw')), 32768)


class Interrupted(KdumpCase):
    wait_for_bytes = test_foreign.Early.wait_for_bytes
    interrupted = test_foreign.Early.interrupted

    def test_interrupted(self):
        s, end = self.interrupted('kdump', 'a.kdump')
        self.assertEqual(s['sha256'], sha256(s['output']))
        with Kdump(s['output']) as k:
            self.assertEqual(k.status, 0x20 | INCOMPLETE)
            self.assertEqual(k.dumped, list(range(end // PAGE)))
            self.assertEqual(len(k.memory), self.size // PAGE)
            self.assertLessEqual(len({d.offset for d in k.descriptors()[1:]}), 1)  # zeros


if __name__ == '__main__':
    unittest.main()
