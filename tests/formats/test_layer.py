#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The reader in formats/volatility3/ramseal.py, without volatility3, beside what ramseal itself exports and
reads of the same containers, page by page.
Usage: test_layer.py RAMSEAL
"""

import io
import logging
import os
import random
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

RAMSEAL = os.path.abspath(sys.argv.pop(1))
HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / 'reader'), str(HERE.parents[1] / 'formats/volatility3')]

import layer_samples as samples  # noqa: E402
import mutate  # noqa: E402
import ramseal  # noqa: E402
import read_rsz  # noqa: E402
import test_reader  # noqa: E402
from layer_samples import PAGE, Flat, run  # noqa: E402
from write_rsz import CLOSE, INDEX, ZERO, Rec, assemble, begin, chunk, stream  # noqa: E402

needs_simulator = unittest.skipIf(os.environ.get('RAMSEAL_SIMULATOR') == '0',
                                  'built without simulated machines')
logging.disable(logging.WARNING)  # damage is said to be damage; here it is wanted


def opened(data, **options):
    """A container in memory; `data` are its bytes."""
    return ramseal.Container(lambda at, length: data[at:at + length], len(data), **options)


def pages(container, stream, end):
    """(address, bytes or None) of every page below `end`."""
    for at in range(0, end, 1 << 20):
        got = {}
        for first, last, piece in container.parts(stream, at, min(1 << 20, end - at)):
            for page in range(first & -PAGE, last, PAGE):
                low, high = max(page, first), min(page + PAGE, last)
                got.setdefault(page, []).append(None if piece is None else piece[low - first:high - first])
        for page, parts in sorted(got.items()):
            yield page, None if None in parts else b''.join(parts)


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)

    def check(self, container, stream, flat):
        """Every page is the export's; what is missing there is missing here. Returns (there, missing)."""
        end = (len(flat.data) + PAGE - 1) // PAGE * PAGE
        counts = [0, 0]
        for address, data in pages(container, stream, end):
            wanted = flat.page(address)
            if wanted is not None and data is not None:
                wanted = wanted[:len(data)]
            self.assertEqual(data, wanted, f'page {address:#x}')
            counts[data is None] += 1
        return counts

    def made(self, ranges, cut=0, codes=(0,), options=()):
        image, path = self.dir / 'image.lime', self.dir / 'made.rsz'
        samples.lime(image, ranges, cut)
        run(RAMSEAL, 'acquire', '-q', '-s', f'file:{image}', '-o', path, *options, codes=codes)
        return path


@needs_simulator
class Busy(InFolder):
    """Pages with several captures, and page files."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        seed = random.randrange(1 << 32)
        print(f'seed {seed}')
        cls.path, _ = samples.busy_machine(RAMSEAL, folder.name, seed)
        cls.container = opened(cls.path.read_bytes())

    def test_it_is_sealed(self):
        self.assertEqual((self.container.ending, self.container.reason), ('sealed', ''))

    def test_newest_captures_are_the_flat_image(self):
        flat = Flat(RAMSEAL, self.path, self.dir)
        there, _ = self.check(self.container, self.container.memory(), flat)
        self.assertGreater(there, 20000)
        # Pages that were read in any order, through a cache that holds hardly anything.
        small = opened(self.path.read_bytes(), cache_bytes=1 << 20)
        for address in random.Random(1).sample(range(0, len(flat.data), PAGE), 300):
            (_, _, data), = small.parts(small.memory(), address, PAGE)
            self.assertEqual(data, flat.page(address))
        self.assertLess(small.cached, 4 << 20)

    def test_older_captures_are_those_of_read(self):
        flat = Flat(RAMSEAL, self.path, self.dir)
        memory, several = self.container.memory(), []
        for entry in flat.listed['captured_again']['ranges']:
            several += range(entry['first'], entry['last'], PAGE)
        self.assertGreater(len(several), 50)
        for address in several:
            self.assertGreater(len(memory.captures(address)), 1, hex(address))
        for address in random.Random(2).sample(several, 10):
            for number, piece in enumerate(memory.captures(address), 1):
                wanted = run(RAMSEAL, 'read', '-q', '--pa', hex(address), '--capture', number, '-o', '-', self.path,
                             binary=True)
                got = self.container.piece_bytes(memory, piece, address, address + PAGE)
                self.assertEqual(got, wanted, f'{address:#x} capture {number}')

    def test_page_files_by_number(self):
        files = self.container.page_files()
        self.assertEqual(sorted(files), [0, 1])
        for stream in files.values():
            flat = Flat(RAMSEAL, self.path, self.dir, stream.name)
            there, missing = self.check(self.container, stream, flat)
            self.assertGreater(there, 10000)
            self.assertEqual(missing, 0)

    def test_a_damaged_chunk_costs_itself_alone(self):
        data = samples.damaged(self.path.read_bytes(), 3, 3)
        broken = self.dir / 'broken.rsz'
        broken.write_bytes(data)
        container = opened(data)
        flat = Flat(RAMSEAL, broken, self.dir, codes=(7,))
        self.assertGreater(flat.listed['damaged_pages'], 0)
        _, missing = self.check(container, container.memory(), flat)
        self.assertGreaterEqual(missing, flat.listed['damaged_pages'])
        self.assertTrue(container.bad)


class Gaps(InFolder):
    RANGES = [(0x1000, 0x9efff), (0x100000, 0x4fffff), (0x1000000, 0x1000fff)]

    def test_holes_between_ranges_and_pages_that_were_not_read(self):
        for cut, codes in ((0, (0,)), (5 * PAGE + 1, (3,)), (700 * PAGE, (3,))):
            with self.subTest(cut):
                path = self.made(self.RANGES, cut, codes, ('--force',))
                container = opened(path.read_bytes())
                there, missing = self.check(container, container.memory(), Flat(RAMSEAL, path, self.dir))
                self.assertGreater(there, 100)
                self.assertGreater(missing, 90)

    def test_a_cut_container_has_what_is_whole(self):
        whole = self.made([(0, 0x2ffffff)], options=('--level', 'store')).read_bytes()
        ends = {at for at, *_ in samples.records(whole)}
        rng = random.Random(4)
        cuts = [rng.randrange(2000, len(whole)) for _ in range(4)] + rng.sample(sorted(ends)[4:], 2)
        for length in cuts:
            with self.subTest(length):
                path = self.dir / 'cut.rsz'
                path.write_bytes(whole[:length])
                container = opened(whole[:length])
                self.assertEqual(container.ending, 'unsealed' if length in ends else 'cut')
                if not container.memory():
                    continue
                flat = Flat(RAMSEAL, path, self.dir, codes=(0, 3, 5, 7, 8))
                self.check(container, container.memory(), flat)

    def test_without_its_first_record(self):
        path = self.made([(0x1000, 0x1fffff)])
        data = bytearray(path.read_bytes())
        data[40] ^= 1
        container = opened(bytes(data))
        self.assertEqual(container.ending, 'damaged')
        self.check(container, container.memory(), Flat(RAMSEAL, path, self.dir))

    def test_libzstd_without_the_module(self):
        path = self.made([(0x1000, 0x1fffff)])
        with mock.patch.dict(sys.modules, {'zstandard': None}):
            container = opened(path.read_bytes())
        self.check(container, container.memory(), Flat(RAMSEAL, path, self.dir))


class Facts(unittest.TestCase):
    """What a container says about itself is believed only as far as it has the right shape."""

    def container(self, lines, metadata):
        recs = [begin(b'by hand'), stream(0, 7, 0, b'manifest'), chunk(0, [(0, len(lines))], content=lines),
                stream(1, 1, PAGE, b'memory'), chunk(1, [(0, PAGE)], [(1, ZERO)])]
        for number, facts in enumerate(metadata, 2):
            recs += [stream(number, 4, PAGE, b'file %d' % number, facts), chunk(number, [(0, PAGE)], [(1, ZERO)])]
        return opened(assemble([*recs, Rec(INDEX), Rec(CLOSE)]))

    def test_right_ones(self):
        line = (b'{"event":"tables","os":"windows","levels":4,"kernel_dtb":8192,"system":{"build":19045},'
                b'"ntoskrnl":{"base":"0xfffff80000000000"}}\n')
        container = self.container(b'{"event":"begin"}\n' + line, [b'{"number":0}', b'{"number":3}'])
        self.assertEqual(container.facts(), {
            'os': 'Windows', 'page_table_levels': 4, 'windows_build': 19045, 'ntoskrnl': 0xfffff80000000000,
            'architecture': 'Intel64', 'page_map_offset': 8192})
        self.assertEqual(sorted(container.page_files()), [0, 3])

    def test_machines(self):
        arm64 = b'"machine":{"architecture":"arm64"'
        for lines, facts in (
                (b'{"event":"begin",%s,"page_size":16384}}' % arm64, {'machine': 'arm64', 'machine_page_size': 16384}),
                (b'{"event":"begin",%s}}' % arm64, {'machine': 'arm64', 'machine_page_size': PAGE}),
                (b'{"event":"begin",%s,"page_size":"x"}}' % arm64, {'machine': 'arm64', 'machine_page_size': PAGE}),
                (b'{"event":"begin"}\n{"event":"tables","os":"linux","kernel_dtb":1,%s}}' % arm64,
                 {'os': 'Linux', 'machine': 'arm64', 'machine_page_size': PAGE}),
                (b'{"event":"begin","machine":{"architecture":"x86_64","page_size":4096}}', {}),
                (b'{"event":"begin","machine":[]}', {}), (b'{"event":"begin","machine":{"architecture":7}}', {})):
            with self.subTest(lines):
                self.assertEqual(self.container(lines + b'\n', []).facts(), facts)

    def test_wrong_ones(self):
        for line in (b'', b'\n\n[]\n7\nnull', b'[' * 100000, b'\xff\xfe\n{"event":"tables"',
                     b'{"event":"tables","kernel_dtb":"1"}', b'{"event":["tables"],"kernel_dtb":1}'):
            self.assertEqual(self.container(line or b'\n', []).facts(), {})
        line = b'{"event":"tables","os":[],"kernel_dtb":1,"levels":4,"system":"x","ntoskrnl":{"base":{}}}'
        self.assertEqual(self.container(line, []).facts(), {'page_table_levels': 4})
        metadata = [b'{"number":[]}', b'{"number":"0"}', b'{"number":-1}', b'{"number":99}', b'[', b'{"number":1}',
                    b'{"number":1}', b'{"number":2}']
        self.assertEqual(list(self.container(b'\n', metadata).page_files()), [2])


class Rules(unittest.TestCase):
    """Each rule of SPEC.md, broken (tests/reader/mutate.py)."""

    @staticmethod
    def is_whole(data):
        try:
            container = opened(data)
        except ramseal.Damaged:
            return False
        return container.ending == 'sealed' and all(map(container.is_good, range(len(container.records))))

    def test_what_breaks_a_rule_is_not_whole(self):
        believed = {name for name, data in mutate.mutations(test_reader.sample()) if self.is_whole(data)}
        self.assertEqual(believed, set())

    def test_what_breaks_none_is(self):
        for name, data in mutate.controls(test_reader.sample()):
            with self.subTest(name):
                self.assertTrue(self.is_whole(data))

    def test_the_second_reader_ends_where_this_one_does(self):
        data = test_reader.sample()
        for length in range(12, len(data), 19):
            reader = read_rsz.Reader(io.BytesIO(data[:length]))
            for _ in reader.records():
                pass
            self.assertEqual(str(reader.problem).split(' ')[0], opened(data[:length]).ending, length)

    def test_any_flipped_bit_is_noticed(self):
        data = bytearray(test_reader.sample())
        for at in range(0, len(data), 23):
            data[at] ^= 1 << at % 8
            if self.is_whole(bytes(data)):
                # In an INDEX's payload, which is not looked at: what it has to say is known.
                kind = next(r[3] for r in samples.records(test_reader.sample()) if r[0] <= at < r[0] + r[1] + r[2])
                self.assertEqual(kind, 4, at)
            data[at] ^= 1 << at % 8


if __name__ == '__main__':
    unittest.main()
