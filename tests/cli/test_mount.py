#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`ramseal mount`: what it shows is what export, extract, read and smear write of the same container;
damage, hostile names and files that vanish. Needs /dev/fuse, and root or fusermount3.
Usage: test_mount.py RAMSEAL SOURCE-ROOT
"""

import contextlib
import csv
import errno
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(sys.argv.pop(2)).resolve()
sys.path[:0] = [str(ROOT / 'tests/reader'), str(ROOT / 'tests/cli')]
import report_data  # noqa: E402
import write_rsz as rsz  # noqa: E402

RAMSEAL = os.path.abspath(sys.argv.pop(1))
PAGE = 4096
MIB = 1 << 20
HOLES = (0x1c0000, 0x1c2000)  # of report_data: one unreadable, one skipped
VA = report_data.VA


def setUpModule():
    if not os.access('/dev/fuse', os.R_OK | os.W_OK):
        raise unittest.SkipTest('/dev/fuse cannot be opened: nothing can be mounted here')
    if os.geteuid() and not shutil.which('fusermount3'):
        raise unittest.SkipTest('fusermount3 is missing, and we are not root')


def run(*args, **more):
    return subprocess.run([RAMSEAL, *map(str, args)], capture_output=True, timeout=900, **more)


def output_of(*args):
    done = run(*args)
    if done.returncode not in (0, 3):
        raise AssertionError(done)
    return done.stdout


def unmount(folder):
    tool = ('umount',) if not os.geteuid() else ('fusermount3', '-u')
    return subprocess.run([*tool, folder], capture_output=True, text=True, timeout=900)


def wait_until(what, seconds=250):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def read_at(path, offset, length=PAGE):
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.pread(fd, length, offset)
    finally:
        os.close(fd)


def noise(pages, seed=1):
    return random.Random(seed).randbytes(pages * PAGE)


def flat(pages, per_chunk=256, tail=()):
    """A container of nothing but memory, from address 0 on, that does not compress."""
    content = noise(pages)
    recs = [rsz.begin(), rsz.stream(0, 1, PAGE, b'memory')]
    for at in range(0, pages, per_chunk):
        n = min(per_chunk, pages - at)
        recs.append(rsz.chunk(0, [(at * PAGE, n * PAGE)], [(n, rsz.DATA)],
                              content[at * PAGE:(at + n) * PAGE]))
    return rsz.assemble(recs + list(tail) + [rsz.Rec(rsz.INDEX), rsz.Rec(rsz.CLOSE)]), content


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)
        self.to = self.at / 'mnt'
        self.to.mkdir()

    def file(self, content, name='c.rsz'):
        path = self.at / name
        path.write_bytes(content)
        return path

    def mount(self, path, *args):
        """In the foreground; the process. It is unmounted at the end of the test."""
        process = subprocess.Popen([RAMSEAL, 'mount', '-f', '-q', *args, path, self.to],
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.stop, process)
        self.assertTrue(wait_until(lambda: os.path.ismount(self.to) or process.poll() is not None))
        self.assertIsNone(process.poll(), process.stderr.read() if process.poll() is not None else '')
        return process

    def stop(self, process, code=0):
        if process.poll() is None:
            process.terminate()
        said = process.communicate(timeout=900)[1]
        self.assertEqual(process.returncode, code, said)
        return said

    def log(self):
        return [json.loads(line) for line in (self.to / 'mount.log').read_text().splitlines()]

    def fails(self, path, offset, number=errno.EIO, length=PAGE):
        with self.assertRaises(OSError) as caught:
            read_at(path, offset, length)
        self.assertEqual(caught.exception.errno, number)


class Memory(Case):
    def setUp(self):
        super().setUp()
        self.container = self.file(report_data.container())

    def export(self, name, *args):
        out = self.at / name
        done = run('export', *args, '-o', out, self.container)
        self.assertEqual(done.returncode, 3, done.stderr)
        return out

    def test_files_are_those_that_export_writes(self):
        raw = self.export('x.raw')
        elf = self.export('x.elf', '--format', 'elf')
        self.mount(self.container)
        self.assertEqual((self.to / 'memory.raw').read_bytes(), raw.read_bytes())
        self.assertEqual((self.to / 'memory.core').read_bytes(), elf.read_bytes())
        wanted = json.loads(Path(f'{raw}.gaps.json').read_text())
        shown = json.loads((self.to / 'memory.gaps.json').read_text())
        self.assertEqual(wanted.pop('damaged_pages'), 0)
        self.assertEqual((wanted.pop('image'), shown.pop('image')), (str(raw), 'memory.raw'))
        # An export looks whether pages are zeros that a container has as content; nothing does here.
        for pages in wanted['pages'], shown['pages']:
            pages['data'] += pages.pop('zero')
        self.assertEqual(shown, wanted)
        self.assertTrue(shown['unreadable'] and shown['skipped'])

    def test_any_offset_and_length(self):
        raw = self.export('x.raw').read_bytes()
        self.mount(self.container)
        chance = random.Random(7)
        for _ in range(300):
            at = chance.randrange(len(raw) + PAGE)
            length = chance.randrange(3 * PAGE)
            self.assertEqual(read_at(self.to / 'memory.raw', at, length), raw[at:at + length])

    def test_gaps_fail_if_asked_to(self):
        self.mount(self.container, '--gaps', 'eio')
        for at in HOLES:
            self.fails(self.to / 'memory.raw', at)
            self.assertEqual(len(read_at(self.to / 'memory.raw', at + PAGE)), PAGE)
        # What lies outside of all memory is no gap.
        self.assertEqual(read_at(self.to / 'memory.raw', 0), bytes(PAGE))
        # A gap is in the list, and nothing is wrong.
        self.assertEqual([line['event'] for line in self.log()], ['mounted'])

    def test_gaps_are_filled_as_asked(self):
        self.mount(self.container, '--fill', 'aa55')
        for at in HOLES:
            self.assertEqual(read_at(self.to / 'memory.raw', at), b'\xaa\x55' * (PAGE // 2))

    def test_holes_are_holes(self):
        self.mount(self.container)
        fd = os.open(self.to / 'memory.raw', os.O_RDONLY)
        self.addCleanup(os.close, fd)
        first, last = report_data.RAM
        self.assertEqual(os.lseek(fd, 0, os.SEEK_DATA), first)
        self.assertEqual(os.lseek(fd, 0, os.SEEK_HOLE), 0)
        self.assertEqual(os.lseek(fd, first + 5, os.SEEK_HOLE), last + 1)
        facts = os.fstat(fd)
        self.assertEqual((facts.st_size, facts.st_blocks * 512), (last + 1, last + 1 - first))

    def test_other_streams_are_what_extract_writes(self):
        self.mount(self.container)
        names = {'manifest': 'manifest',
                 report_data.EVIL: report_data.EVIL.replace('/', '\\x2f')}
        self.assertEqual(sorted(os.listdir(self.to / 'files')), sorted(names.values()))
        for stream, name in names.items():
            out = self.at / 'out'
            done = run('extract', '--force', '-S', stream, '-o', out, self.container)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual((self.to / 'files' / name).read_bytes(), out.read_bytes())

    def test_nobody_can_write(self):
        self.mount(self.container)
        for attempt in (lambda: open(self.to / 'memory.raw', 'r+b'), lambda: os.mkdir(self.to / 'x'),
                        lambda: os.unlink(self.to / 'memory.raw')):
            with self.assertRaises(OSError) as caught:
                attempt()
            self.assertEqual(caught.exception.errno, errno.EROFS)
        for name, mode in (('memory.raw', 0o100400), ('pid', 0o40500)):
            self.assertEqual((self.to / name).stat().st_mode, mode)


@unittest.skipIf(os.environ.get('RAMSEAL_SIMULATOR') == '0', 'built without simulated machines')
class WindowsDump(Case):
    def setUp(self):
        super().setUp()
        self.container = self.at / 'c.rsz'
        output_of('acquire', '-q', '-s', 'sim:desktop,ram=64M,allocated=24M,resident=12M,trimmed=8M,others=12M,'
                  'processes=8,cache=4M,cpus=2', '-o', self.container)

    def test_it_is_what_export_writes(self):
        dump = self.at / 'x.dmp'
        output_of('export', '-q', '-F', 'dmp', '-o', dump, self.container)
        wanted = json.loads(Path(f'{dump}.gaps.json').read_text())
        self.mount(self.container)
        self.assertFalse((self.to / 'memory.core').exists())
        shown = json.loads((self.to / 'memory.dmp.gaps.json').read_text())
        self.assertEqual(shown['patched'], wanted['patched'])
        self.assertEqual(len(shown['patched']), 3)
        self.assertEqual(shown['ranges'], wanted['ranges'])
        data = dump.read_bytes()
        self.assertEqual((self.to / 'memory.dmp').stat().st_size, len(data))
        self.assertTrue((self.to / 'memory.dmp').read_bytes() == data)
        chance = random.Random(7)
        for _ in range(200):
            at, length = chance.randrange(len(data) + PAGE), chance.randrange(3 * PAGE)
            self.assertTrue(read_at(self.to / 'memory.dmp', at, length) == data[at:at + length], (at, length))
        # Some bytes that were changed, without what is around them.
        raw = self.to / 'memory.raw'
        for p in shown['patched']:
            self.assertEqual(read_at(raw, p['address'], p['bytes']).hex(), p['original'])

    def test_a_cut_container_has_what_export_gives(self):
        self.container.write_bytes(self.container.read_bytes()[:-self.container.stat().st_size // 3])
        dump = self.at / 'x.dmp'
        self.assertEqual(run('export', '-q', '-F', 'dmp', '-o', dump, self.container).returncode, 7)
        self.mount(self.container)
        self.assertTrue((self.to / 'memory.dmp').read_bytes() == dump.read_bytes())


class Processes(Case):
    def setUp(self):
        super().setUp()
        self.container = self.file(report_data.container(names=('one', 'two')))

    def pages(self):
        """What read says of the mapped pages, by address."""
        lines = output_of('read', '-p', 7, '-a', VA, '-n', 16 * PAGE, '-j', self.container)
        return {int(page['va'], 16): page for page in map(json.loads, lines.splitlines())}

    def test_memory_is_what_read_writes(self):
        out = self.at / 'out'
        output_of('read', '-q', '-p', 7, '-a', VA, '-n', 8 * PAGE, '-o', out, self.container)
        wanted = out.read_bytes()
        self.mount(self.container)
        memory = self.to / 'pid/7-one/memory'
        shown = read_at(memory, VA, 8 * PAGE)
        self.assertIn(b'page 2', shown)
        self.assertIn(b'slot 2', shown)
        self.assertIn(b'MISSING PAGE', shown)
        for i in range(8):
            theirs, ours = (x[i * PAGE:(i + 1) * PAGE] for x in (wanted, shown))
            # The one entry that is empty is a hole in a sparse file.
            self.assertEqual(ours, bytes(PAGE) if i == 4 else theirs, i)
        self.assertEqual(memory.stat().st_size, 1 << 47)

    def test_what_is_not_mapped_is_a_hole(self):
        self.mount(self.container)
        memory = self.to / 'pid/7-one/memory'
        fd = os.open(memory, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        self.assertEqual(os.lseek(fd, 0, os.SEEK_DATA), VA)
        self.assertEqual(os.lseek(fd, VA + PAGE, os.SEEK_HOLE), VA + 4 * PAGE)
        self.assertEqual(os.lseek(fd, VA + 4 * PAGE, os.SEEK_DATA), VA + 5 * PAGE)
        with self.assertRaises(OSError) as caught:
            os.lseek(fd, VA + 16 * PAGE, os.SEEK_DATA)
        self.assertEqual(caught.exception.errno, errno.ENXIO)
        self.assertEqual(os.fstat(fd).st_blocks * 512, 7 * PAGE)
        self.assertEqual(read_at(memory, 0), bytes(PAGE))
        self.assertEqual(read_at(memory, (1 << 47) - PAGE), bytes(PAGE))

    def test_what_is_missing_fails_if_asked_to(self):
        self.mount(self.container, '--gaps', 'eio')
        memory = self.to / 'pid/7-one/memory'
        for va in (0, VA + 4 * PAGE, VA + 5 * PAGE):  # no entry, an empty one, one that names no RAM
            self.fails(memory, va)
        self.assertTrue(read_at(memory, VA + 2 * PAGE).startswith(b'page 2'))

    def test_pages_csv_agrees_with_read_and_smear(self):
        pages = self.pages()
        mappings = output_of('smear', '--mappings', 7, self.container).decode()
        wanted = [row for row in csv.DictReader(io.StringIO(mappings)) if row['copy'] == 'image']
        self.mount(self.container)
        path = self.to / 'pid/7-one/pages.csv'
        text = path.read_text()
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(len(text), path.stat().st_size)
        self.assertEqual(len(rows), 7)
        for row in wanted:
            self.assertIn(row, rows)
        for row in rows:
            page = pages[int(row['va'], 16)]
            self.assertEqual((row['raw'], row['state'], row['trust'], row['verdict'], row['change']),
                             (page['entry'], page['state'], page['trust'], page['verdict'],
                              page['change']))
            if page['content'] in ('memory', 'page-file'):
                self.assertEqual(int(row['captured_ns']), page['start_ns'])
        for length in (1, 7, 100):  # and in pieces of any length
            fd = os.open(path, os.O_RDONLY)
            pieces = iter(lambda: os.read(fd, length), b'')
            self.assertEqual(b''.join(pieces).decode(), text)
            os.close(fd)

    def test_a_container_without_processes(self):
        content, _ = flat(16)
        self.mount(self.file(content, 'flat.rsz'))
        self.assertEqual(os.listdir(self.to / 'pid'), [])
        self.assertIn('no-processes', [line['event'] for line in self.log()])


class Recipes(Case):
    """Of agent/examine/mount/README.md; those that need a kernel are in tests/vm/test_dumps.py."""

    def test_drgn_with_a_reader(self):
        if subprocess.run(['/usr/bin/python3', '-c', 'import drgn'], capture_output=True).returncode:
            self.skipTest('drgn is not installed')
        text = (ROOT / 'agent/examine/mount/README.md').read_text().split('reader of its own:')[1]
        lines = [line[8:] for line in text.splitlines() if line.startswith('    >>> ')]
        self.assertEqual(len(lines), 3)
        script = '\n'.join(lines).replace('/mnt/m/pid/1-init/', f'{self.to}/pid/7-one/')
        self.mount(self.file(report_data.container(names=('one',))))
        done = subprocess.run(['/usr/bin/python3'], capture_output=True, text=True, timeout=900,
                              input=script.replace('prog.read', 'print(prog.read') + ')')
        self.assertEqual((done.returncode, done.stdout[:9]), (0, "b'page 0\\"), done.stderr)


class Names(Case):
    def listed(self, processes):
        """The folders below pid/ for processes (PID, name)."""
        def spaces(_):
            return [{'listed': True, 'kernel': False, 'pid': pid, 'name': name,
                     'dtb': report_data.ROOTS + (i - 1) * PAGE if i else report_data.ROOT}
                    for i, (pid, name) in enumerate(processes)]

        with mock.patch.object(report_data, 'spaces', spaces):
            content = report_data.container(names=processes)
        self.mount(self.file(content))
        names = sorted(os.listdir(self.to / 'pid'))
        for name in names:
            self.assertEqual(sorted(os.listdir(self.to / 'pid' / name)), ['memory', 'pages.csv'])
            shown = read_at(self.to / 'pid' / name / 'memory', VA + 2 * PAGE, 6)
            self.assertEqual(shown, b'page 2')
        self.assertEqual(os.listdir(self.to / 'pid'), os.listdir(self.to / 'pid'))
        return names

    def test_hostile_names(self):
        names = self.listed([(1, '/../../etc/passwd'), (2, '..'), (3, ''), (4, 'a\nb\x1b[2J\x7f'),
                             (5, 'x' * 300), (6, 'tilde~2'), (7, 'caf\u00e9')])
        self.assertEqual(len(names), 7)
        self.assertEqual(names[:4], ['1-\\x2f..\\x2f..\\x2fetc\\x2fpasswd', '2-..', '3-', '4-a\\x0ab\\x1b[2J\\x7f'])
        self.assertTrue(names[4].startswith('5-xxx') and len(names[4]) < 250)
        self.assertEqual(names[5], '6-tilde\\x7e2')
        self.assertEqual(names[6], '7-caf\u00e9')

    def test_one_pid_for_several(self):
        names = self.listed([(4, 'a'), (4, 'a'), (4, 'b'), (5, 'a')])
        roots = [hex(report_data.ROOT), *(hex(report_data.ROOTS + i * PAGE) for i in range(2))]
        self.assertEqual(names, [f'4-a-{roots[0]}', f'4-a-{roots[1]}', f'4-b-{roots[2]}', '5-a'])

    def test_streams_of_like_names(self):
        """Each can be had back from its name, but for one that was cut; two of one name are told apart."""
        streams = ('C:\\a', 'C:/a', '/swap', '..', '.', '/..', 'a~2', 'a', 'a\\x2fb', 'a/b', '\u202egpj.exe', '\x9b2J')
        long = 250 * 'l'
        recs = [rsz.begin(), rsz.stream(0, 1, PAGE, b'memory')]
        for i, name in enumerate((*streams, long + '1', long + '2'), 1):
            recs.append(rsz.stream(i, 5, PAGE, name.encode(), b'{"size":%d}' % (PAGE - i)))
            recs.append(rsz.chunk(i, [(0, PAGE - i)], [(1, rsz.DATA)], bytes([i]) * (PAGE - i)))
        self.mount(self.file(rsz.assemble(recs + [rsz.Rec(rsz.INDEX), rsz.Rec(rsz.CLOSE)])))
        names = os.listdir(self.to / 'files')
        self.assertEqual(len(names), len(streams) + 2)
        for name in names:
            i = (self.to / 'files' / name).read_bytes()[0]
            plain = re.sub(r'~\d+$', '', name).encode()
            plain = re.sub(rb'\\x([0-9a-f]{2})', lambda m: bytes([int(m[1], 16)]), plain).decode()
            self.assertEqual(plain, streams[i - 1] if i <= len(streams) else 198 * 'l' + '~', name)
            self.assertFalse(set(name) & set('/\u202e\x9b'), name)
        self.assertIn('C:\\a', names)
        self.assertEqual(sorted(name for name in names if 'll' in name), [198 * 'l' + '~', 198 * 'l' + '~~2'])


class Damage(Case):
    def test_a_damaged_chunk_fails_and_is_logged(self):
        content, memory = flat(64, per_chunk=4)
        at = content.find(memory[8 * PAGE:8 * PAGE + 64])
        self.assertGreater(at, 0)
        broken = bytearray(content)
        broken[at] ^= 1
        process = self.mount(self.file(broken))
        raw = self.to / 'memory.raw'
        for page in range(64):
            if 8 <= page < 12:
                self.fails(raw, page * PAGE)
            else:
                self.assertEqual(read_at(raw, page * PAGE), memory[page * PAGE:(page + 1) * PAGE])
        # A large read has what is in front of it.
        self.assertEqual(read_at(raw, 0, 16 * PAGE), memory[:8 * PAGE])
        told = [line for line in self.log() if line['event'] == 'cannot-read']
        self.assertEqual(len(told), 1, told)  # once, however often it was tried
        self.assertEqual((told[0]['level'], told[0]['file']), ('warning', 'memory.raw'))
        self.assertIn('memory.raw: at offset', self.stop(process))

    def test_check_all_gives_nothing_whose_sha256_is_not_checked(self):
        memory = noise(64)
        piece = rsz.chunk(0, [(0, 64 * PAGE)], [(64, rsz.DATA)], memory).poke(64, '32s', bytes(range(32)))
        path = self.file(rsz.assemble([rsz.begin(), rsz.stream(0, 1, PAGE, b'memory'), piece,
                                       rsz.Rec(rsz.INDEX), rsz.Rec(rsz.CLOSE)]))
        raw = self.to / 'memory.raw'
        process = self.mount(path, '--check-all')
        for page in (40, 3, 63):
            self.fails(raw, page * PAGE)
        self.stop(process)
        # Its CRC-32 is right, which is what single reads check without that.
        self.mount(path)
        fd = os.open(raw, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)  # the kernel asks for what we ask for
        for page in (40, 3, 63):
            self.assertEqual(os.pread(fd, PAGE, page * PAGE), memory[page * PAGE:(page + 1) * PAGE])
        for page in (5, 40 + 1, 7):
            with self.assertRaises(OSError) as caught:
                os.pread(fd, PAGE, page * PAGE)
            self.assertEqual(caught.exception.errno, errno.EIO)

    def test_damage_in_what_a_process_has_mapped(self):
        content = report_data.container(names=('one',))
        at = content.find(b'page 2')
        broken = bytearray(content)
        broken[at] ^= 1
        self.mount(self.file(broken))
        memory = self.to / 'pid/7-one/memory'
        self.fails(memory, VA + 2 * PAGE)
        self.assertTrue(read_at(memory, VA + 3 * PAGE).startswith(b'page 3'))

    def test_a_cut_container_has_what_is_whole(self):
        content, memory = flat(64, per_chunk=4)
        cut = content.find(memory[32 * PAGE:32 * PAGE + 64]) + 100
        self.mount(self.file(content[:cut]))
        self.assertEqual((self.to / 'memory.raw').read_bytes(), memory[:32 * PAGE])
        self.assertIn('not-sealed', [line['event'] for line in self.log()])

    def test_it_can_be_removed(self):
        content, memory = flat(64, per_chunk=4)
        path = self.file(content)
        self.mount(path)
        path.unlink()
        self.assertEqual((self.to / 'memory.raw').read_bytes(), memory)

    def test_it_can_be_cut_meanwhile(self):
        content, memory = flat(64, per_chunk=4)
        path = self.file(content)
        process = self.mount(path)
        raw = self.to / 'memory.raw'
        self.assertEqual(read_at(raw, 0), memory[:PAGE])
        os.truncate(path, content.find(memory[32 * PAGE:32 * PAGE + 64]))
        self.fails(raw, 32 * PAGE)
        self.fails(raw, 60 * PAGE)
        self.assertEqual(read_at(raw, 31 * PAGE), memory[31 * PAGE:32 * PAGE])
        os.truncate(path, 0)
        self.fails(raw, 16 * PAGE)
        self.assertIsNone(process.poll())
        self.assertIn('cannot-read', [line['event'] for line in self.log()])


class Readers(Case):
    def test_many_at_once(self):
        """More chunks than the smallest cache holds, so that they push each other out."""
        content, memory = flat(16 * 256)
        self.mount(self.file(content), '--cache', '8M')
        wrong = []

        def read(seed):
            chance = random.Random(seed)
            fd = os.open(self.to / 'memory.raw', os.O_RDONLY)
            for _ in range(60):
                at = chance.randrange(len(memory))
                length = chance.randrange(1, 64 * PAGE)
                if os.pread(fd, length, at) != memory[at:at + length]:
                    wrong.append((seed, at))
            os.close(fd)

        readers = [threading.Thread(target=read, args=(i,)) for i in range(12)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        self.assertEqual(wrong, [])

    def test_processes_at_once(self):
        names = [f'n{i}' for i in range(8)]
        self.mount(self.file(report_data.container(names=names)))
        wrong = []

        def read(i):
            folder = self.to / f'pid/{7 + i}-n{i}'
            for _ in range(5):
                lines = (folder / 'pages.csv').read_text().splitlines()
                shown = read_at(folder / 'memory', VA + 2 * PAGE, 6)
                if len(lines) != 8 or shown != b'page 2':
                    wrong.append((i, len(lines), shown))

        readers = [threading.Thread(target=read, args=(i,)) for i in range(8)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        self.assertEqual(wrong, [])


class Mounting(Case):
    def setUp(self):
        super().setUp()
        content, self.memory = flat(16)
        self.container = self.file(content)

    def gone(self):
        return not os.path.ismount(self.to)

    def test_signals_unmount(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            # What whoever runs the tests ignores (nohup), programs ignore as well.
            self.addCleanup(signal.signal, number, signal.signal(number, signal.SIG_DFL))
            process = self.mount(self.container)
            process.send_signal(number)
            self.assertTrue(wait_until(self.gone))
            self.stop(process)

    def test_a_signal_while_it_is_being_mounted(self):
        """Nobody has seen it yet; it is not passed over, whenever it comes."""
        for ms in range(0, 40):
            process = subprocess.Popen([RAMSEAL, 'mount', '-f', '-q', self.container, self.to], stderr=subprocess.PIPE)
            time.sleep(ms / 1000)  # the chance, not a wait for something
            process.terminate()
            _, said = process.communicate(timeout=900)
            self.assertIn(process.returncode, (0, -signal.SIGTERM), said)
            self.assertTrue(wait_until(self.gone))

    def test_a_signal_unmounts_what_is_in_use(self):
        content, memory = flat(16 * 256)
        process = self.mount(self.file(content))
        fd = os.open(self.to / 'memory.raw', os.O_RDONLY)
        self.assertEqual(os.pread(fd, PAGE, 0), memory[:PAGE])
        process.terminate()
        self.assertTrue(wait_until(self.gone))
        self.stop(process)
        with self.assertRaises(OSError):
            os.pread(fd, PAGE, 15 * MIB)  # which nobody has read before
        with contextlib.suppress(OSError):
            os.close(fd)
        self.assertEqual(os.listdir(self.to), [])

    def test_unmounting_what_is_in_use_is_refused(self):
        process = self.mount(self.container)
        with open(self.to / 'memory.raw', 'rb', buffering=0) as file:
            self.assertNotEqual(unmount(self.to).returncode, 0)
            self.assertEqual(file.read(PAGE), self.memory[:PAGE])
        self.assertTrue(wait_until(lambda: unmount(self.to).returncode == 0))
        process.wait(900)
        self.stop(process)

    def test_background(self):
        done = run('mount', 'c.rsz', 'mnt', cwd=self.at)
        self.assertEqual((done.returncode, done.stdout), (0, b''), done)
        self.assertEqual(done.stderr.decode().splitlines(),
                         [f'ramseal: {self.to}: mounted; to unmount it: fusermount3 -u {self.to}'])
        self.assertTrue(os.path.ismount(self.to))
        self.assertEqual((self.to / 'memory.raw').read_bytes(), self.memory)
        mine = [p for p in Path('/proc').glob('[0-9]*')
                if self.words(p)[1:2] == ['mount'] and self.container in map(Path, self.files(p))]
        self.assertEqual(len(mine), 1)
        self.assertEqual(os.readlink(mine[0] / 'cwd'), '/')
        self.assertEqual(os.readlink(mine[0] / 'exe'), os.path.realpath(RAMSEAL))
        self.assertEqual(unmount(self.to).returncode, 0)
        self.assertTrue(wait_until(lambda: not self.files(mine[0])))

    @staticmethod
    def words(process):
        try:
            return (process / 'cmdline').read_bytes().decode(errors='replace').split('\0')
        except OSError:
            return []

    @staticmethod
    def files(process):
        try:
            return [os.readlink(fd) for fd in (process / 'fd').iterdir()]
        except OSError:
            return []

    def test_what_cannot_be_mounted(self):
        (self.at / 'text').write_text('no container')
        for extra in ((), ('-f',)):
            for code, words, file, folder in (
                    (9, 'text', 'text', 'mnt'), (9, 'absent', 'absent', 'mnt'),
                    (6, 'absent: No such file or directory', 'c.rsz', 'absent'),
                    (6, 'text: is not a folder', 'c.rsz', 'text')):
                done = run('mount', *extra, file, folder, cwd=self.at)
                self.assertEqual(done.returncode, code, done)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertIn(words, done.stderr.decode())
        done = run('mount', '--gaps', 'eio', '--fill', '00', self.container, self.to)
        self.assertEqual(done.returncode, 2, done)
        self.assertTrue(self.gone())

    @unittest.skipUnless(shutil.which('age'), 'age is not installed')
    def test_encrypted(self):
        key = self.at / 'key'
        made = subprocess.run(['age-keygen', '-o', key], capture_output=True, text=True, check=True)
        subprocess.run(['age', '-r', made.stderr.split()[-1], '-o', self.at / 'c.age', self.container],
                       check=True)
        done = run('mount', self.at / 'c.age', self.to)
        self.assertEqual(done.returncode, 9, done)
        self.assertIn('--identity', done.stderr.decode())
        self.mount(self.at / 'c.age', '--identity', key)
        self.assertEqual((self.to / 'memory.raw').read_bytes(), self.memory)

    def test_commas_in_its_name(self):
        path = self.file(self.container.read_bytes(), 'a,allow_other,b\\c.rsz')
        self.mount(path)
        line = next(x for x in Path('/proc/mounts').read_text().splitlines() if str(self.to) in x)
        self.assertEqual(line.split()[0], str(path).replace('\\', '\\134'))
        self.assertNotIn('allow_other', line.split()[3])

    def test_no_part_of_libfuse_that_loads_plugins(self):
        """Its file for character devices brings them, and is under the GPL (see serve.c)."""
        content = Path(RAMSEAL).read_bytes()
        self.assertIn(b'fusermount3', content)
        self.assertNotIn(b'libfusemod_', content)
        self.assertNotIn(b'/dev/cuse', content)


if __name__ == '__main__':
    unittest.main()
