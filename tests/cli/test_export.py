#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
export, extract and info on containers that are damaged, or made to hurt, and the names of what they
and `acquire --format` write. Usage: test_export.py RAMSEAL SOURCE-ROOT
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, os.path.join(sys.argv.pop(2), 'tests', 'reader'))
from write_rsz import CLOSE, DATA, INDEX, SKIPPED, Rec, assemble, begin, block, chunk, stream  # noqa: E402

RAMSEAL = os.path.abspath(sys.argv.pop(1))
PAGE = 4096
MIB = 1 << 20
END = [Rec(INDEX), Rec(CLOSE)]


def run(*args, **more):
    return subprocess.run([RAMSEAL, *map(str, args)], capture_output=True, timeout=900, **more)


def peak(*args):
    """Runs it; what it ended with, and its largest resident set in bytes."""
    pid = os.fork()
    if not pid:
        null = os.open('/dev/null', os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        # What a sanitizer keeps of what was freed is not the program's.
        options = os.environ.get('ASAN_OPTIONS', '') + ':quarantine_size_mb=1'
        os.execve(RAMSEAL, [RAMSEAL, *map(str, args)], {**os.environ, 'ASAN_OPTIONS': options})
    _, status, usage = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024


def rle(byte, size):
    """A zstd frame of one byte, `size` times: 4 bytes per 128 KiB (RFC 8878, 3.1.1.2.2)."""
    step = 1 << 17
    blocks = b''.join(block(1, min(step, size - at), byte, at + step >= size)
                      for at in range(0, size, step))
    return b'\x28\xb5\x2f\xfd\xa0' + size.to_bytes(4, 'little') + blocks


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)

    def file(self, name, content):
        path = self.at / name
        path.write_bytes(content)
        return path

    def names(self, prefix=''):
        return sorted(p.name for p in self.at.iterdir() if p.name.startswith(prefix))

    def refused(self, words, *args):
        done = run(*args)
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn(words, done.stderr.decode())


class Damage(Case):
    def test_one_damaged_page_costs_one_page(self):
        pages = [bytes([65 + i % 26]) * PAGE for i in range(256)]
        records = [begin(), stream(0, kind=1, name=b'memory')]
        records += [chunk(0, [(i * PAGE, PAGE)], [(1, DATA)], page) for i, page in enumerate(pages)]
        whole = bytearray(assemble(records + END))
        whole[whole.find(pages[1]) + 5] ^= 1
        out = self.at / 'out.raw'
        done = run('export', '-o', out, self.file('c.rsz', whole))
        self.assertEqual(done.returncode, 7, done.stderr)
        pages[1] = b'UNREADABLE PAGE ' * (PAGE // 16)
        self.assertEqual(out.read_bytes(), b''.join(pages))
        gaps = json.loads((self.at / 'out.raw.gaps.json').read_text())
        self.assertEqual(gaps['damaged_pages'], 1)
        self.assertEqual([(g['first'], g['last']) for g in gaps['unreadable']], [(PAGE, 2 * PAGE - 1)])

    def test_damaged_text_is_left_out_and_told(self):
        texts = [b'{"n":%d}\n' % i for i in range(3)]
        at, records = 0, [begin(), stream(0, kind=6, page_size=0, name=b'log')]
        for text in texts:
            records.append(chunk(0, [(at, len(text))], [], text))
            at += len(text)
        whole = bytearray(assemble(records + END))
        whole[whole.find(texts[1])] ^= 1
        out = self.at / 'log'
        done = run('extract', '--stream', 'log', '-o', out, self.file('c.rsz', whole))
        self.assertEqual(done.returncode, 7)
        self.assertIn(b'8 bytes are damaged and left out', done.stderr)
        self.assertIn(b'not complete', done.stderr)
        self.assertEqual(out.read_bytes(), texts[0] + texts[2])

    def test_a_damaged_piece_of_the_manifest_costs_its_lines(self):
        texts = [b'{"event":"file"}\n{"event":"beg', b'in"}\n{"event":"tables"}\n',
                 b'{"event":"end","outcome":"fine","exit_code":0}\n']
        at, records = 0, [begin(), stream(0, kind=7, page_size=0, name=b'manifest')]
        for text in texts:
            records.append(chunk(0, [(at, len(text))], [], text))
            at += len(text)
        for damaged in range(3):
            whole = bytearray(assemble(records + END))
            whole[whole.find(texts[damaged])] ^= 1
            done = run('info', '--json', self.file('c.rsz', whole))
            self.assertEqual(json.loads(done.stdout).get('outcome'), None if damaged == 2 else 'fine')


class Gaps(Case):
    """What an image lacks, and what is said of it: the exit code, the summary and the list beside it."""

    def export(self, runs, *more, kind=1, records=tuple(END), exit_code=0, name='c.rsz', ending=None):
        """Of a stream of such runs of pages: the result, the image, its list of gaps and the summary."""
        pages = sum(r[0] for r in runs)
        data = b'd' * PAGE * sum(r[0] for r in runs if r[1] == DATA)
        lines = [begin(), stream(0, kind=kind, name=b'memory'), stream(1, kind=7, page_size=0, name=b'manifest'),
                 chunk(0, [(0, pages * PAGE)], runs, data)]
        if ending is not None:
            text = json.dumps({'event': 'end', 'outcome': 'test', 'exit_code': ending}).encode() + b'\n'
            lines.append(chunk(1, [(0, len(text))], [], text))
        out = self.at / f'{name}.raw'
        done = run('--log-json', 'export', '-o', out, *more, self.file(name, assemble([*lines, *records])))
        self.assertEqual(done.returncode, exit_code, done.stderr)
        summary = [m for m in map(json.loads, done.stdout.splitlines() + done.stderr.splitlines())
                   if 'complete' in m][-1]
        return done, out.read_bytes(), json.loads((self.at / f'{name}.raw.gaps.json').read_text()), summary

    def test_skipped_pages_alone_are_gaps(self):
        done, image, gaps, summary = self.export([(1, DATA), (2, SKIPPED, 1), (1, DATA)], exit_code=3, ending=3)
        self.assertIn(b'0 unreadable and 2 skipped pages', done.stderr)
        self.assertEqual(image[PAGE:3 * PAGE], b'SKIPPED PAGE    ' * (2 * PAGE // 16))
        self.assertEqual([(g['first'], g['pages'], g['reason']) for g in gaps['skipped']],
                         [(PAGE, 2, 'not offered by the source')])
        self.assertEqual((summary['exit_code'], summary['complete']), (3, True))

    def test_what_the_system_shows_as_zeros_is_no_gap(self):
        _, image, gaps, summary = self.export([(1, DATA), (2, SKIPPED, 4)], '--stream', 'memory', kind=5, ending=0)
        self.assertEqual(image, b'd' * PAGE + bytes(2 * PAGE))
        self.assertEqual(summary['exit_code'], 0)

    def test_a_container_that_was_not_sealed_is_said_to_be_that(self):
        for name, records in (('none', ()), ('index', [Rec(INDEX)])):
            with self.subTest(name):
                done, image, gaps, summary = self.export([(2, DATA)], records=records, exit_code=7, name=name, ending=0)
                self.assertIn(b'what is whole was exported', done.stderr)
                self.assertEqual(image, b'd' * 2 * PAGE)
                self.assertFalse(gaps['complete'])
                self.assertEqual((summary['exit_code'], summary['complete']), (7, False))

    def test_an_image_is_as_complete_as_its_container(self):
        """Sealed they all are; of those that say nothing of their end, or that they were stopped, nobody knows."""
        for ending, complete in ((0, True), (3, True), (None, False), (1, False), (4, False), (130, False)):
            with self.subTest(ending=ending):
                _, _, gaps, summary = self.export([(2, DATA)], ending=ending, name=str(ending))
                self.assertEqual((gaps['complete'], summary['complete']), (complete, complete))


class Bombs(Case):
    LIMIT = 160 * MIB

    def bomb(self, kind, name, content, frame, count):
        """`count` chunks of the same content, one behind the other."""
        size = len(content)
        return assemble([begin(), stream(0, kind=kind, page_size=0, name=name)] +
                        [chunk(0, [(i * size, size)], [], content, frame) for i in range(count)] + END)

    def test_log(self):
        path = self.file('c.rsz', self.bomb(6, b'log', b'x' * (16 * MIB), rle(b'x', 16 * MIB), 20))
        self.assertLess(path.stat().st_size, 64 << 10)
        code, used = peak('extract', '--stream', 'log', '-o', '/dev/null', path)
        self.assertEqual(code, 0)
        self.assertLess(used, self.LIMIT)

    def test_manifest_of_many_lines(self):
        lines = b'{"event":"x"}\n' * (1 << 19)
        frame = subprocess.run(['zstd', '-q', '-c', '--no-check', f'--stream-size={len(lines)}'],
                               input=lines, stdout=subprocess.PIPE, check=True).stdout
        path = self.file('c.rsz', self.bomb(7, b'manifest', lines, frame, 8))
        self.assertLess(path.stat().st_size, 64 << 10)
        code, used = peak('info', path)
        self.assertEqual(code, 0)
        self.assertLess(used, self.LIMIT)

    def test_manifest_of_one_line(self):
        # Of a kind that is kept, if its values were not counted first.
        line = b'{"event":"begin","x":[' + b'{},' * (5 << 20) + b'{}]}\n'
        records = [begin(), stream(0, kind=7, page_size=0, name=b'manifest')]
        for at in range(0, len(line), 8 * MIB):
            piece = line[at:at + 8 * MIB]
            records.append(chunk(0, [(at, len(piece))], [], piece))
        code, used = peak('info', self.file('c.rsz', assemble(records + END)))
        self.assertEqual(code, 0)
        self.assertLess(used, self.LIMIT)


class Names(Case):
    """What an output may replace, and what not."""

    def setUp(self):
        super().setUp()
        self.image = self.file('image', os.urandom(4 * PAGE))
        self.container = self.at / 'c.rsz'
        self.assertEqual(run('acquire', '-q', '-s', f'file:{self.image}', '-o',
                             self.container).returncode, 0)

    def unchanged(self, path):
        """What checks, later, that it still holds what it holds now."""
        before = path.read_bytes()
        return lambda: self.assertEqual(path.read_bytes(), before)

    def test_input_is_never_the_output(self):
        words = 'is the input that is being read'
        source = f'file:{self.image}'
        checks = [self.unchanged(self.image), self.unchanged(self.container)]
        os.link(self.container, self.at / 'hard')
        os.rename(self.container, self.at / 'c.E01')
        for out in ('c.E01', 'hard'):
            self.refused(words, 'export', '-f', '-o', self.at / out, self.at / 'c.E01')
            self.refused(words, 'export', '-f', '-o', self.at / 'x', '--gaps', self.at / out,
                         self.at / 'c.E01')
            self.refused(words, 'extract', '-f', '-S', 'log', '-o', self.at / out, self.at / 'c.E01')
        self.refused(words, 'export', '-f', '-F', 'e01', '-o', self.at / 'c', self.at / 'c.E01')
        self.refused(words, 'acquire', '-f', '-s', source, '-o', self.image)
        self.refused(words, 'acquire', '-f', '-F', 'raw', '-s', source, '-o', self.image)
        self.refused(words, 'acquire', '-f', '-F', 'raw', '-s', source, '-o', self.at / 'x', '--gaps',
                     self.image)
        os.rename(self.at / 'c.E01', self.container)
        for check in checks:
            check()
        self.assertEqual(self.names(), ['c.rsz', 'hard', 'image'])

    def test_image_and_list_are_two(self):
        words = 'cannot be both the image and the list of its gaps'
        for args in (['-o', self.at / 'x', '--gaps', f'{self.at}/./x'],
                     ['-F', 'e01', '-o', self.at / 'x', '--gaps', self.at / 'x.E01']):
            self.refused(words, 'export', '-f', *args, self.container)
        self.assertEqual(self.names('x'), [])

    def test_list_that_exists_is_told_before_anything_is_read(self):
        gaps = self.file('x.gaps.json', b'mine')
        self.refused('x.gaps.json exists', 'acquire', '-F', 'raw', '-s', f'file:{self.image}', '-o',
                     self.at / 'x')
        self.assertEqual(self.names('x'), ['x.gaps.json'])
        self.assertEqual(gaps.read_bytes(), b'mine')

    def test_no_list_beside_a_device(self):
        done = run('export', '-q', '-o', '/dev/null', self.container)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(os.path.exists('/dev/null.gaps.json'))

    def test_interrupted_try_stays_and_blocks_nothing(self):
        big = self.at / 'big'
        with open(big, 'wb') as f:
            f.truncate(64 << 30)
        for out, fmt, where in (('x', 'raw', 'x'), ('y.E01', 'e01', 'y.E01')):
            args = ['acquire', '-q', '-f', '-F', fmt, '--hash', 'none', '-o', self.at / out, '-s']
            process = subprocess.Popen([RAMSEAL, *map(str, args), f'file:{big}'],
                                       stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + 900
            while not (self.at / f'{where}.gaps.json.partial').exists():
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(900), 8)
            left = [f'{where}.gaps.json.partial', f'{out}.partial']
            self.assertEqual(self.names(out[0]), left)
            first = self.unchanged(self.at / left[0])
            gaps = json.loads((self.at / left[0]).read_text())
            self.assertEqual((gaps['complete'], gaps['image']), (False, f'{self.at}/{out}.partial'))
            # Without --force, because nothing has the names that it wants.
            args.remove('-f')
            done = run(*args, f'file:{self.image}')
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(b'It stays as it is', done.stderr)
            self.assertEqual(self.names(out[0]), sorted([out, f'{where}.gaps.json', *left]))
            first()


if __name__ == '__main__':
    unittest.main()
