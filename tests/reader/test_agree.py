#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The two readers, ours in C and the one that was written from SPEC.md alone, must agree: on the root of
what ramseal writes, on the bytes of a stream, and on every container in which one rule is broken.
Usage: test_agree.py RAMSEAL
"""
import contextlib
import hashlib
import io
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

RAMSEAL = os.path.abspath(sys.argv.pop(1))
sys.path.append(str(Path(__file__).resolve().parents[1] / 'sim'))

import mutate  # noqa: E402
import read_rsz  # noqa: E402
from sampled import drawn  # noqa: E402

# -Dsimulator=false
needs_simulator = unittest.skipIf(os.environ.get('RAMSEAL_SIMULATOR') == '0', 'built without simulated machines')
PAGE = 4096


def ramseal(*arguments, stdout=subprocess.PIPE):
    return subprocess.run([RAMSEAL, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=stdout,
                          stderr=subprocess.PIPE, text=True, timeout=900)


def reader(*arguments):
    """What read_rsz.py says of its arguments, in this process: to start Python takes longer than to read a file."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with mock.patch('sys.argv', ['read_rsz.py', *map(str, arguments)]), contextlib.redirect_stdout(out), \
            contextlib.redirect_stderr(err):
        try:
            read_rsz.main()
        except SystemExit as stop:
            code = stop.code
    return types.SimpleNamespace(stdout=out.getvalue(), stderr=f'{err.getvalue()}{code or ""}', returncode=code)


def lime(path, ranges, cut=0):
    """A LiME image whose pages are noise, text or zeros; `cut` bytes of its end are missing."""
    rng = random.Random(1)
    with open(path, 'wb') as file:
        for first, last in ranges:
            file.write(struct.pack('<IIQQ8x', 0x4C694D45, 1, first, last))
            for pfn in range(first // PAGE, (last + 1) // PAGE):
                kind = rng.randrange(3)
                file.write(b'\0' * PAGE if kind == 0 else rng.randbytes(PAGE) if kind == 1
                           else (b'page %d ' % pfn * PAGE)[:PAGE])
        file.truncate(file.tell() - cut)


class Agree(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = Path(directory.name)

    def check(self, image, *options, code=0):
        """Acquires, verifies with both, extracts with both; returns the container."""
        path, ours, theirs = self.dir / 'm.rsz', self.dir / 'ours', self.dir / 'theirs'
        done = ramseal('acquire', '-q', '--force', '-s', f'file:{image}', '-o', path, *options)
        self.assertEqual(done.returncode, code, done.stderr)
        verified = ramseal('verify', '--json', path)
        self.assertEqual(verified.returncode, 0, verified.stderr)
        root = json.loads(verified.stdout)['root']
        self.assertEqual(reader('verify', path).stdout, f'sealed {root}\n')

        done = ramseal('export', '-q', '--force', '--fill', 'ee', '-o', ours, path)
        self.assertEqual(done.returncode, code, done.stderr)
        done = reader('extract', path, 'memory', '-o', theirs, '--fill', 'ee')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(subprocess.run(['cmp', ours, theirs]).returncode, 0)
        self.assertEqual(subprocess.run(['zstd', '-q', '-t', path]).returncode, 0)
        return path

    def test_at_every_level(self):
        image = self.dir / 'image.lime'
        lime(image, [(0x1000, 0x9efff), (0x100000, 0x4fffff), (0x1000000, 0x1000fff)])
        for level in ('store', '-50', '1', '19'):
            self.check(image, f'--level={level}')

    def test_with_pages_that_are_missing(self):
        image = self.dir / 'image.lime'
        lime(image, [(0x0, 0xfff), (0x3000, 0x302fff)], cut=5 * PAGE + 1)
        self.check(image, code=3)

    def test_with_thousands_of_ranges(self):
        image = self.dir / 'image.lime'
        lime(image, [(i * 0x3000, i * 0x3000 + 0xfff) for i in range(5000)])
        self.check(image)

    @needs_simulator
    def test_on_every_capture_of_a_page(self):
        """Memory in the order of its tables: they are read twice, and some frames are."""
        path, image = self.dir / 'm.rsz', self.dir / 'image'
        spec = ('sim:desktop,ram=128M,allocated=80M,resident=44M,trimmed=24M,others=30M,processes=10,cache=8M,'
                'pressure=100,bandwidth=80M,pagefile0=96M,pagefile1=64M')
        done = ramseal('acquire', '-q', '-s', spec, '--order', 'guided', '-o', path)
        self.assertEqual(done.returncode, 0, done.stderr)
        exported = ramseal('export', '-o', image, path)
        self.assertEqual(exported.returncode, 0, exported.stderr)
        listed = json.loads((self.dir / 'image.gaps.json').read_text())['captured_again']
        done = reader('captures', path, 'memory')
        self.assertEqual(done.returncode, 0, done.stderr)
        theirs = {page['address']: page['captures'] for page in map(json.loads, done.stdout.splitlines())}
        frames = [at for at, page in theirs.items() if page[-1]['reason'] != 'table-again']
        self.assertTrue(frames)
        self.assertEqual((listed['pages'], listed['page_tables'], listed['ranges_not_listed']),
                         (len(theirs), len(theirs) - len(frames), 0))
        self.assertRegex(exported.stderr, f' {len(frames)} pages? ha(s|ve) older captures')
        times = [{key: capture[key] for key in ('start_ns', 'end_ns', 'reason')}
                 for page in theirs.values() for capture in page]
        self.assertEqual([capture for entry in listed['ranges']
                          for capture in entry['captures'] * entry['pages']], times)
        for address in [*list(theirs)[:20], *frames]:
            done = ramseal('read', '--pa', hex(address), '--json', path)
            self.assertEqual(done.returncode, 0, done.stderr)
            ours = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual([{key: x[key] for key in theirs[address][0]} for x in ours], theirs[address])
            self.assertEqual([x['newest'] for x in ours], [False] * (len(ours) - 1) + [True])
        with open(image, 'rb') as flat:
            for number, capture in enumerate(theirs[frames[0]]):
                page = self.dir / 'page'
                done = ramseal('read', '--pa', hex(frames[0]), '--capture', number + 1, '-f', '-o', page, path)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(hashlib.sha256(page.read_bytes()).hexdigest(), capture['sha256'])
            flat.seek(frames[0])
            self.assertEqual(flat.read(PAGE), page.read_bytes())

    def test_sealed_later(self):
        image = self.dir / 'image.lime'
        lime(image, [(0x1000, 0x4fffff)])
        path = self.check(image)
        whole = path.read_bytes()
        for length in (len(whole) - 1, len(whole) - 176, len(whole) // 2, 3000):
            path.write_bytes(whole[:length])
            self.assertNotEqual(reader('verify', path).returncode, 0)
            self.assertEqual(ramseal('verify', path).returncode, 7)
            done = ramseal('seal', path)
            self.assertEqual(done.returncode, 0, done.stderr)
            root = json.loads(ramseal('verify', '--json', path).stdout)['root']
            self.assertEqual(reader('verify', path).stdout, f'sealed {root}\n')

    def agree(self, path, end, whole):
        """Both give this verdict, at this offset."""
        said = reader('verify', path).stdout
        self.assertEqual(said.split(':')[0], f'{end} at {whole}')
        done = ramseal('verify', '--json', path)
        if end == 'no container':
            self.assertEqual(done.returncode, 9, done.stderr)
            self.assertIn('not a ramseal container', done.stderr)
            return
        self.assertEqual(done.returncode, 7, done.stderr)
        verdict = json.loads(done.stdout)
        self.assertEqual((verdict['end'].split()[0], verdict['whole_bytes']), (end, whole))

    def small(self):
        """A small container, and where its records begin."""
        image = self.dir / 'image.lime'
        lime(image, [(0x1000, 0x40fff)])
        whole = self.check(image).read_bytes()
        starts, at = [], 0
        while at < len(whole):
            starts.append(at)
            at += struct.unpack_from('<I', whole, at + 4)[0] + 8 + struct.unpack_from('<I', whole, at + 48)[0]
        return whole, starts, self.dir / 'small.rsz'

    def test_on_tails(self):
        whole, starts, path = self.small()
        last = starts[-1]
        magic = whole[:8]
        for tail, end in ((b'h', 'damaged'), (b'hello', 'damaged'), (bytes(41), 'damaged'),
                          (magic[:1], 'cut'), (magic, 'cut'), (magic + b'RSZ', 'cut'),
                          (magic + b'RSX', 'damaged'), (magic + b'RSZ\1\5\0\0', 'cut'),
                          (magic + b'RSZ\1\x63\0', 'cut'), (magic + b'RSZ\1\x63\0\0\0', 'damaged')):
            with self.subTest(tail):
                path.write_bytes(whole[:last] + tail)
                self.agree(path, end, last)

    def test_on_cuts(self):
        whole, starts, path = self.small()
        for length in (0, 1, 11, 12, 15, 16, 100, starts[1] - 1, starts[1], starts[1] + 1, starts[2] - 1,
                       starts[-1], starts[-1] + 15):
            with self.subTest(length):
                path.write_bytes(whole[:length])
                at = max(start for start in starts if start <= length)
                self.agree(path, 'no container' if length < 12 else 'unsealed' if at == length else 'cut', at)

    def test_on_a_flipped_bit_in_begin(self):
        whole, starts, path = self.small()
        ours = self.dir / 'image.raw'
        self.assertEqual(ramseal('export', '-q', '-o', ours, self.dir / 'm.rsz').returncode, 0)
        wanted = ours.read_bytes()
        for at in drawn(range(starts[1]), 12, 'bytes of BEGIN'):
            flipped = bytearray(whole)
            flipped[at] ^= 1 << at % 8
            path.write_bytes(flipped)
            with self.subTest(at):
                self.agree(path, 'damaged', 0)
                done = ramseal('info', '--json', path)
                self.assertEqual(done.returncode, 0, done.stderr)
                facts = json.loads(done.stdout)
                self.assertEqual((facts['sealed'], facts['begun']), (False, None))
                self.assertEqual(facts['pages']['data'] + facts['pages']['zero'], 64)
                done = ramseal('export', '-q', '--force', '-o', ours, path)
                self.assertEqual(done.returncode, 7)
                self.assertRegex(done.stderr, '^ramseal: export: .*offset 0: ')
                self.assertEqual(ours.read_bytes(), wanted)
                self.assertEqual(ramseal('extract', '-q', '--force', '-S', 'log', '-o', ours, path).returncode, 7)
                self.assertEqual(ramseal('seal', path).returncode, 7)

    def test_on_a_begin_that_is_gone(self):
        whole, starts, path = self.small()
        second = starts[1]
        for data, end in ((bytes(second) + whole[second:], 'damaged'),
                          (bytes(second) + whole[second:second + 50], 'no container'),
                          (whole[:12] + bytes(second - 12) + whole[second:second + 50], 'damaged'),
                          (whole[second:], 'damaged'), (bytes(5000), 'no container')):
            path.write_bytes(data)
            self.agree(path, end, 0)

    def test_a_payload_behind_a_bad_begin_is_looked_at_too(self):
        whole, starts, path = self.small()
        flipped = bytearray(whole)
        flipped[100] ^= 1
        chunk = max(range(1, len(starts)), key=lambda i: starts[i] - starts[i - 1])
        flipped[starts[chunk] - 10] ^= 1
        path.write_bytes(flipped)
        verdict = json.loads(ramseal('verify', '--json', path).stdout)
        self.assertEqual((verdict['end'], verdict['whole_bytes'], verdict['records']), ('damaged', 0, 0))
        self.assertRegex(verdict['reason'], f'^offset {starts[chunk - 1]}: ')
        done = ramseal('export', '-q', '-o', self.dir / 'x', path)
        self.assertEqual(done.returncode, 7)
        self.assertIn('pages are damaged', done.stderr)

    def test_on_every_broken_rule(self):
        image = self.dir / 'image.lime'
        lime(image, [(0x1000, 0x13ffff)], cut=PAGE)
        whole = self.check(image, code=3).read_bytes()
        seen = {'bad': self.check_broken('bad', mutate.mutations(whole)),
                'good': self.check_broken('good', mutate.controls(whole))}
        self.assertGreater(min(seen.values()), 10)

    def check_broken(self, kind, made):
        """How many there were."""
        folder = self.dir / kind
        folder.mkdir()
        for name, data in made:
            (folder / f'{name}.rsz').write_bytes(data)
        containers = sorted(folder.iterdir())
        verdicts = {verdict['file']: verdict['exit_code'] for verdict in
                    map(json.loads, ramseal('verify', '--json', *containers).stdout.splitlines())}
        for container in containers:
            # Sealed, and nothing in it; of what is no container nothing is printed but an error.
            good = 10 if container.stem == 'nothing-but-begin' else 0
            with self.subTest(container.name):
                self.assertEqual(verdicts.get(str(container)), good if kind == 'good' else None
                                 if container.stem == 'empty-file' else 7)
        # What does not verify must not crash the commands that believe it, either.
        for container in drawn(containers, 40, f'{kind} containers'):
            for command in (['verify', '-q'], ['info'], ['export', '-q', '-o', '-']):
                code = ramseal(*command, container, stdout=subprocess.DEVNULL).returncode
                with self.subTest(container.name, command=command):
                    told = verdicts.get(str(container), 9)
                    self.assertIn(code, (told,) if command[0] == 'verify' else (0, 3, 7, 9))
        return len(containers)


if __name__ == '__main__':
    unittest.main()
