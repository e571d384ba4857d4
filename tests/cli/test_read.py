#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`ramseal read`, and the headline of `ramseal info`, on a small container whose page tables are made
here from the processor's manual. Usage: test_read.py RAMSEAL SOURCE-ROOT
"""

import json
import os
import pty
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE_ROOT = Path(sys.argv.pop(2)).resolve()
sys.path.insert(0, str(SOURCE_ROOT / 'tests/reader'))
import write_rsz as rsz  # noqa: E402

RAMSEAL = os.path.abspath(sys.argv.pop(1))
PAGE = 4096
SECOND = 10**9
ROOT = 0x100000
FRAMES = 0x120000  # where the process's pages lie
RAM = (0x100000, 0x13ffff)
VA = 0x400000
MISSING = b'MISSING PAGE    ' * (PAGE // 16)
KINDS = {'memory': 1, 'before': 2, 'after': 3, 'page file': 4, 'manifest': 7}


def run(*args, **more):
    more = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, 'timeout': 300, **more}
    return subprocess.run([RAMSEAL, *map(str, args)], **more)


def page_of(n):
    """The content of the process's n-th page."""
    return b'page %-2d of seven' % n + bytes(range(240)) * 17


def swap(slot, area=0):
    """Linux 6.1 (pgtable_64.h): type at 59, inverted offset at 9."""
    return ~(slot << 9) & ((1 << 59) - 1) & ~0x1ff | area << 59


def tables(entries):
    """Page tables by address: `entries` are those of the page table of VA, one behind the other."""
    made = {ROOT + i * PAGE: bytearray(PAGE) for i in range(4)}
    for level, shift in ((0, 39), (1, 30), (2, 21)):
        struct.pack_into('<Q', made[ROOT + level * PAGE], 8 * (VA >> shift & 511),
                         (ROOT + (level + 1) * PAGE) | 0x67)
    struct.pack_into(f'<{len(entries)}Q', made[ROOT + 3 * PAGE], 0, *entries)
    return made


def container(before, after, lines=('before', 'after'), zeros=0, release='6.1.0', system=None):
    """
    Tables before at 1 s, and `zeros` chunks of 4096 pages of zeros with them; memory at 2 s, a swap
    area at 3 s, tables after at 5 s.
    """
    def stream_of(number, pages, start):
        return [rsz.chunk(number, [(at, PAGE, 0, 0, start, start + 10)], [(1, rsz.DATA)],
                          bytes(pages[at]), start=start, end=start + 10) for at in sorted(pages)]

    memory = {at: bytes(PAGE) for at in range(RAM[0], RAM[1], PAGE)}
    memory.update(tables(before))
    memory.update({FRAMES + i * PAGE: page_of(i) for i in range(8)})
    slots = {i * PAGE: b'slot %d' % i + bytes(PAGE - 6) for i in range(4)}
    manifest = [{'event': 'begin', 'os': {'kernel_release': release}, 'memory': {'zswap': 'N'},
                 'maps': [{'ranges': [{'first': RAM[0], 'last': RAM[1]}]}]}]
    for when in lines:
        manifest.append({'event': 'tables', 'when': when, 'os': 'linux', 'levels': 4, 'cut': False,
                         'system': system or {}, 'spaces': [{'listed': True, 'kernel': False, 'pid': 7, 'name': 'seven',
                                     'dtb': ROOT}]})
    text = ''.join(json.dumps(line) + '\n' for line in manifest).encode()
    recs = [rsz.begin(), rsz.stream(0, KINDS['manifest'], 0, b'manifest'),
            rsz.stream(1, KINDS['before'], PAGE, b'page tables before'),
            rsz.stream(2, KINDS['memory'], PAGE, b'memory'),
            rsz.stream(3, KINDS['page file'], PAGE, b'/dev/vda',
                       b'{"number":0,"number_origin":"known"}'),
            rsz.stream(4, KINDS['after'], PAGE, b'page tables after')]
    recs += stream_of(1, tables(before), SECOND)
    recs += [rsz.chunk(1, [(1 << 30, 4096 * PAGE, 0, 0, SECOND, SECOND)], [(4096, rsz.ZERO)], b'',
                       start=SECOND, end=SECOND)] * zeros
    recs += stream_of(2, memory, 2 * SECOND)
    recs += stream_of(3, slots, 3 * SECOND) + stream_of(4, tables(after), 5 * SECOND)
    recs += [rsz.chunk(0, [(0, len(text))], [], text), rsz.Rec(rsz.INDEX), rsz.Rec(rsz.CLOSE)]
    return rsz.assemble(recs)


def frame(n):
    return (FRAMES + n * PAGE) | 0x67


class Case(unittest.TestCase):
    BEFORE = [frame(0), frame(1), 0, swap(2), 0xfee00067, frame(5)]
    AFTER = [frame(0), frame(4), 0, swap(2), 0xfee00067, frame(5)]

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)
        self.path = self.at / 'x.rsz'
        self.path.write_bytes(container(self.BEFORE, self.AFTER))

    def read(self, *options, code=0):
        done = run('read', '--quiet', self.path, *options)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def one_line(self, code, *options, path=None):
        done = run('read', path or self.path, *options)
        self.assertEqual((done.returncode, done.stderr.count(b'\n')), (code, 1), done)
        self.assertRegex(done.stderr, rb'^ramseal: read: \S')
        self.assertEqual(done.stdout, b'')
        return done.stderr.decode()


class Usage(Case):
    def test_what_is_missing_or_too_much(self):
        for options in (['--va', VA], ['--pid', 7], ['--pid', 7, '--dtb', ROOT, '--va', VA],
                        ['--pid', 7, '--va', VA, '--fill', '00'],
                        ['--pid', 7, '--va', VA, '--json', '-o', '-'],
                        ['--pid', 7, '--va', VA, '--tables', 'both'],
                        ['--pid', 7, '--va', VA, '--length', 0],
                        ['--pid', -1, '--va', VA], ['--pid', 7, '--va', 'x']):
            self.assertIn('--help', self.one_line(2, *options))

    def test_address_that_there_is_not(self):
        for options in (['--va', 0x800000000000], ['--va', 0x7ffffffff000, '--length', '8K'],
                        ['--va', 2**64 - PAGE, '--length', PAGE + 1]):
            self.one_line(2, '--pid', 7, *options)

    def test_space_that_there_is_not(self):
        self.assertIn('process 8', self.one_line(9, '--pid', 8, '--va', VA))
        self.assertIn('0xabc000', self.one_line(9, '--dtb', '0xabc000', '--va', VA))
        self.one_line(9, '--dtb', FRAMES, '--va', VA, '--tables', 'before')
        out = self.at / 'out'
        self.one_line(9, '--pid', 8, '--va', VA, '-o', out)
        self.assertEqual([self.path], list(self.at.iterdir()))

    def test_container_without_tables(self):
        self.path.write_bytes(container(self.BEFORE, self.AFTER, []))
        for option in ('--pagetables', '--dtb'):
            self.assertIn(option, self.one_line(9, '--pid', 7, '--va', VA))
        self.assertNotIn(b'\nsmear', run('info', self.path).stdout)

    def test_tables_that_are_named_need_no_stored_ones(self):
        self.path.write_bytes(container(self.BEFORE, self.AFTER, []))
        options = ['--dtb', ROOT, '--va', VA, '--length', 2 * PAGE]
        done = self.read(*options, '-o', '-')
        self.assertEqual(done.stdout, page_of(0) + page_of(1))
        # Nobody knows how far to trust it, or even how many levels there are; and it is said.
        self.assertIn(b'4 levels are assumed', run('read', self.path, *options).stderr)
        rows = [json.loads(line) for line in self.read(*options, '--json').stdout.splitlines()]
        self.assertEqual([row['verdict'] for row in rows], ['one-pass', 'one-pass'])
        self.assertEqual([row['trust'] for row in rows], ['at-risk', 'at-risk'])
        self.one_line(9, '--dtb', 0x180000, '--va', VA)
        self.one_line(9, '--dtb', ROOT, '--va', VA, '--tables', 'before')

    def test_tables_of_an_image_without_a_kernel(self):
        image = self.at / 'image'
        made = tables(self.BEFORE)
        made.update({FRAMES + i * PAGE: page_of(i) for i in range(8)})
        image.write_bytes(b''.join(bytes(made.get(at, bytes(PAGE)))
                                   for at in range(0, RAM[1], PAGE)))
        for pagetables in ([], ['--pagetables=none'], ['--pagetables=both']):
            path = self.at / 'image.rsz'
            run('acquire', '-q', '-f', *pagetables, '-s', f'file:{image}', '-o', path, check=True)
            done = run('read', '-q', path, '--dtb', ROOT, '--va', VA, '--length', 6 * PAGE, '--json')
            self.assertEqual(done.returncode, 3, done.stderr)
            rows = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual([row.get('frame') for row in rows],
                             [FRAMES, FRAMES + PAGE, None, None, 0xfee00000, FRAMES + 5 * PAGE])
            self.assertEqual([row.get('trust') for row in rows], ['not-applicable'] * 2 +
                             [None, 'at-risk', 'wrong', 'not-applicable'])
            self.assertEqual((rows[3]['state'], rows[3]['verdict']), ('unknown', 'unknown'))
            self.assertNotIn('window_ns', rows[0])

    def test_what_is_no_container(self):
        noise = self.at / 'noise'
        noise.write_bytes(os.urandom(10000))
        for path in (noise, self.at / 'missing', self.at):
            self.one_line(9, '--pid', 7, '--va', VA, path=path)

    def test_one_pass_is_enough(self):
        self.path.write_bytes(container(self.BEFORE, self.AFTER, ['before']))
        done = self.read('--pid', 7, '--va', VA, '--json')
        self.assertEqual(json.loads(done.stdout)['verdict'], 'one-pass')
        self.one_line(9, '--pid', 7, '--va', VA, '--tables', 'after')


class Special(Case):
    """Entries of Linux 7.3, with CONFIG_DEVICE_PRIVATE: 24 poison, 25 to 27 migration, 31 marker."""
    ENTRIES = [frame(0), swap(4, 31), swap(5, 31), swap((FRAMES >> 12) + 2, 24), swap((FRAMES >> 12) + 3, 27)]

    def make(self, **more):
        self.path.write_bytes(container(self.ENTRIES, self.ENTRIES, release='7.3.4+deb13-amd64', **more))

    def rows(self):
        done = self.read('--pid', 7, '--va', VA, '--length', 5 * PAGE, '--json', code=3)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def mappings(self):
        done = run('smear', self.path, '--mappings', 7)
        head, *rows = (line.split(',') for line in done.stdout.decode().splitlines())
        return [dict(zip(head, row)) for row in rows if row[0] == 'image']

    def test_they_are_named_and_nothing_without_content_is_safe(self):
        self.make(system={'kernel_release': '7.3.4+deb13-amd64', 'device_private': True})
        rows = self.rows()
        self.assertEqual([row['state'] for row in rows], ['valid', 'marker', 'marker', 'poisoned', 'migration'])
        self.assertEqual([row.get('marker') for row in rows], [None, 'guard', 'uffd-wp+guard', None, None])
        self.assertEqual([row['trust'] for row in rows],
                         ['safe', 'not-applicable', 'not-applicable', 'not-applicable', 'at-risk'])
        self.assertEqual([row.get('frame') for row in rows], [FRAMES, None, None, None, FRAMES + 3 * PAGE])
        text = self.read('--pid', 7, '--va', VA, '--length', 5 * PAGE, code=3).stdout.decode()
        self.assertIn(' marker (guard); nothing: a guard region', text)
        self.assertEqual([row['state'] for row in self.mappings()], [row['state'] for row in rows])
        self.assertEqual([row['marker'] for row in self.mappings()], ['', 'guard', 'uffd-wp+guard', '', ''])
        smear = json.loads(run('smear', '--json', self.path).stdout)
        self.assertIs(smear['layout']['device_private'], True)
        self.assertNotIn('doubt', smear['layout'])

    def test_what_nothing_tells_is_unknown_and_has_rows(self):
        self.ENTRIES = [*self.ENTRIES[:3], swap((FRAMES >> 12) + 3, 27)]
        self.make()
        self.assertEqual([(row['state'], row.get('trust')) for row in self.rows()][3:],
                         [('unknown', 'at-risk'), ('empty', None)])
        row = self.mappings()[3]
        self.assertEqual((row['state'], row['raw'], row['frame'], row['slot'], row['trust']),
                         ('unknown', hex(swap((FRAMES >> 12) + 3, 27)), '', '', 'at-risk'))
        text = run('smear', self.path).stdout.decode()
        self.assertEqual(text.count('it is not known whether this kernel has CONFIG_DEVICE_PRIVATE'), 1)
        self.assertIsNone(json.loads(run('smear', '--json', self.path).stdout)['layout']['device_private'])

    def test_version_that_lies_is_said_once(self):
        self.make(system={'kernel_release': '6.1.0', 'device_private': False})
        smear = run('smear', self.path).stdout.decode()
        read = run('read', self.path, '--pid', 7, '--va', VA, '--length', 5 * PAGE)
        info = run('info', self.path).stdout.decode()
        for text in (smear, read.stderr.decode(), info):
            self.assertEqual(text.count('Linux 7.3, and its memory that it is 6.1'), 1, text)


class Bytes(Case):
    WHOLE = page_of(0) + page_of(1) + MISSING + b'slot 2' + bytes(PAGE - 6) + MISSING + page_of(5)

    def test_file_and_stdout_are_the_same(self):
        out = self.at / 'out'
        options = ['--pid', 7, '--va', VA, '--length', 6 * PAGE]
        rows = self.read(*options, '-o', out, code=3).stdout
        self.assertEqual(out.read_bytes(), self.WHOLE)
        self.assertEqual(len(rows.splitlines()), 6)
        self.assertEqual(out.stat().st_mode & 0o777, 0o600)
        done = self.read(*options, '-o', '-', code=3)
        self.assertEqual(done.stdout, self.WHOLE)
        self.assertEqual(done.stderr.count(b'\n'), 1)
        done = run('read', self.path, *options, '-o', '-')
        self.assertEqual(done.stdout, self.WHOLE)
        self.assertEqual(done.stderr.count(b'ramseal: 0x'), 6)

    def test_existing_file_stays(self):
        out = self.at / 'out'
        out.write_bytes(b'precious')
        self.one_line(6, '--pid', 7, '--va', VA, '-o', out)
        self.assertEqual(out.read_bytes(), b'precious')
        self.read('--pid', 7, '--va', VA, '-o', out, '--force')
        self.assertEqual(out.read_bytes(), page_of(0))
        self.one_line(6, '--pid', 7, '--va', VA, '-o', self.path, '--force')

    def test_parts_of_pages(self):
        for first, length in ((5, 1), (PAGE - 1, 2), (0, PAGE), (100, 2 * PAGE), (2 * PAGE + 3, 90)):
            done = self.read('--pid', 7, '--va', VA + first, '--length', length, '-o', '-',
                             code=3 if first + length > 2 * PAGE else 0)
            self.assertEqual(done.stdout, self.WHOLE[first:first + length])

    def test_fill(self):
        done = self.read('--pid', 7, '--va', VA + PAGE, '--length', 2 * PAGE, '-o', '-', '--fill',
                         'c0ffee', code=3)
        self.assertEqual(done.stdout, page_of(1) + (b'\xc0\xff\xee' * PAGE)[:PAGE])

    def test_other_tables(self):
        for tables, page in (('before', 1), ('image', 1), ('after', 4)):
            done = self.read('--dtb', ROOT, '--va', VA + PAGE, '--tables', tables, '-o', '-')
            self.assertEqual(done.stdout, page_of(page))

    def test_never_to_a_terminal(self):
        master, slave = pty.openpty()
        try:
            done = run('read', self.path, '--pid', 7, '--va', VA, '-o', '-', stdout=slave)
        finally:
            os.close(slave)
            os.close(master)
        self.assertEqual(done.returncode, 6, done.stderr)


class Rows(Case):
    def test_json(self):
        rows = [json.loads(line) for line in self.read(
            '--pid', 7, '--va', VA, '--length', 6 * PAGE, '--json', code=3).stdout.splitlines()]
        self.assertEqual([row['va'] for row in rows], [hex(VA + i * PAGE) for i in range(6)])
        self.assertEqual([row['state'] for row in rows],
                         ['valid', 'valid', 'empty', 'swap', 'valid', 'valid'])
        self.assertEqual([row['content'] for row in rows],
                         ['memory', 'memory', 'none', 'page-file', 'none', 'memory'])
        self.assertEqual([row.get('trust') for row in rows],
                         ['safe', 'at-risk', None, 'safe', 'wrong', 'safe'])
        self.assertEqual((rows[0]['entry'], rows[0]['frame']), (hex(frame(0)), FRAMES))
        self.assertEqual((rows[0]['start_ns'], rows[0]['window_ns']), (2 * SECOND, 10))
        self.assertEqual((rows[1]['change'], rows[1]['verdict']), ('remapped', 'changed'))
        self.assertEqual((rows[3]['file'], rows[3]['slot'], rows[3]['stream']), (0, 2, '/dev/vda'))
        self.assertEqual(rows[3]['window_ns'], SECOND + 10)
        self.assertIn('not in the RAM', rows[4]['why'])

    def test_dump(self):
        done = self.read('--pid', 7, '--va', VA + 3 * PAGE + 2, '--length', 0x30)
        self.assertEqual(done.stdout.decode().splitlines(), [
            f'{VA + 3 * PAGE:#018x}  entry {swap(2):#x} swap, slot 0x2 of file 0; from "/dev/vda" at '
            '2.999999 s, window 1.000000 s; safe',
            f'{VA + 3 * PAGE:#018x}        6f 74 20 32 00 00  00 00 00 00 00 00 00 00  '
            '|  ot 2..........|',
            f'{VA + 3 * PAGE + 0x10:#018x}  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  '
            '|................|',
            '*',
            f'{VA + 3 * PAGE + 0x30:#018x}  00 00' + 42 * ' ' + ' ' + '  |..              |'])

    def test_headline_of_info(self):
        sentence = json.loads(run('info', '--json', self.path).stdout)['smear']
        self.assertEqual({key: sentence[key] for key in ('tables', 'safe', 'at-risk', 'wrong')},
                         {'tables': 'before', 'safe': 3, 'at-risk': 1, 'wrong': 1})
        self.assertIn(f'smear        {sentence["sentence"]}\n'.encode(),
                      run('info', self.path).stdout)
        self.assertIn('60.0 % certainly belong', sentence['sentence'])

    def test_headline_of_info_is_left_out_where_it_takes_long(self):
        said = []
        for zeros in 1, 2:  # 16 MiB of tables, 32 MiB
            self.path.write_bytes(container(self.BEFORE, self.AFTER, zeros=zeros))
            said.append(json.loads(run('info', '--json', self.path).stdout)['smear'])
        self.assertIn('60.0 % certainly belong', said[0]['sentence'])
        self.assertEqual(said[1], {'sentence': 'There is much to measure: ask `ramseal smear`.'})


if __name__ == '__main__':
    unittest.main()
