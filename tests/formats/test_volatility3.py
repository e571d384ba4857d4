#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
formats/volatility3 in volatility3 itself: a simulated Windows whose processes, pages and page files are
known, as a container and as what is exported of it.
Usage: test_volatility3.py RAMSEAL

RAMSEAL_PEERS is a folder that has volatility3's source in `volatility3`. Without it, or without a Python
that has pefile, which volatility3 needs, the test is skipped.
"""

import csv
import hashlib
import os
import random
import re
import sys
import tempfile
import unittest
from pathlib import Path

RAMSEAL = os.path.abspath(sys.argv.pop(1))
HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))

import isf_simulated  # noqa: E402
import layer_samples as samples  # noqa: E402
import volatility  # noqa: E402
from layer_samples import MAIN, PAGE, Flat, run  # noqa: E402


class Windows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.dir = Path(folder.name)
        seed = random.randrange(1 << 32)
        print(f'seed {seed}')
        cls.path, cls.processes = samples.busy_machine(RAMSEAL, cls.dir, seed)
        cls.symbols = cls.dir / 'symbols'
        isf_simulated.write(cls.symbols, 10)
        cls.truth = {(int(pid), name[:14]) for pid, (name, _) in cls.processes.items()}

    def pslist(self, image, *options):
        """(processes, what it said besides)"""
        done = volatility.vol(self.dir, self.symbols, '-r', 'csv', *options, '-f', image, 'windows.pslist')
        rows = [] if done.returncode else csv.DictReader(done.stdout.splitlines())
        return {(int(row['PID']), row['ImageFileName'][:14]) for row in rows}, done

    def helper(self, container, *arguments, **kwargs):
        return volatility.python(HERE / 'read_in_volatility3.py', samples.LAYER, container, *arguments,
                                 **kwargs).stdout.splitlines()

    # --- processes ---

    def test_processes_of_the_container_and_of_every_export(self):
        found, done = self.pslist(self.path)
        self.assertEqual(found, self.truth, done.stderr)
        for kind in ('raw', 'lime', 'elf'):
            image = self.dir / f'exported.{kind}'
            run(RAMSEAL, 'export', '-q', '-F', kind, '-o', image, self.path)
            with self.subTest(kind):
                self.assertEqual(self.pslist(image)[0], self.truth)
            image.unlink()

    def test_processes_in_parallel(self):
        """Each of volatility3's own processes opens the container. (Its threads fail on any image.)"""
        self.assertEqual(self.pslist(self.path, '--parallelism', 'processes')[0], self.truth)

    def test_an_unsealed_container_is_named_so(self):
        path = self.dir / 'unsealed.rsz'
        path.write_bytes(self.path.read_bytes()[:-176])
        found, done = self.pslist(path)
        self.assertEqual(found, self.truth)
        self.assertRegex(done.stderr, r'the container is unsealed \(no CLOSE record\)')

    def test_an_encrypted_one_is_to_be_decrypted_first(self):
        path = self.dir / 'host.rsz.age'
        path.write_bytes(b'age-encryption.org/v1\n-> X25519 x\n' + bytes(5000))
        found, done = self.pslist(path)
        self.assertEqual(found, set())
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('is encrypted: decrypt it first', done.stderr)

    # --- pages ---

    def mapped(self, container):
        """{address: row} of what ramseal finds mapped in the main process, with frames and slots."""
        rows = csv.DictReader(run(RAMSEAL, 'smear', '--mappings', MAIN, container).splitlines())
        return {int(row['va'], 16): row for row in rows
                if row['copy'] == 'image' and row['pages'] == '1' and (row['frame'] or row['slot'])}

    def as_ramseal_reads(self, container, addresses):
        """{address: its page}, from as few calls of `ramseal read` as there are gaps of a MiB."""
        spans, found = [], {}
        for address in sorted(addresses):
            if spans and address - spans[-1][1] < 1 << 20:
                spans[-1][1] = address + PAGE
            else:
                spans.append([address, address + PAGE])
        for first, end in spans:
            data = run(RAMSEAL, 'read', '-q', '--pid', MAIN, '--va', hex(first), '-n', end - first, '-o', '-',
                       container, codes=(0, 3), binary=True)
            found.update({a: data[a - first:a - first + PAGE] for a in addresses if first <= a < end})
        return found

    def test_a_process_has_the_captures_and_slots_that_are_its_own(self):
        rows = self.mapped(self.path)
        wanted = self.as_ramseal_reads(self.path, rows)
        flat = Flat(RAMSEAL, self.path, self.dir)
        lines = self.helper(self.path, 'pages', self.processes[MAIN][1], input='\n'.join(map(hex, rows)))
        got = {int(address, 16): said for address, said in map(str.split, lines)}
        differ, older, slots = [], 0, 0
        for address, row in rows.items():
            same = got[address] == hashlib.sha256(wanted[address]).hexdigest()
            if row['verdict'] == 'safe':
                self.assertTrue(same, row)
            elif not same:
                differ.append(row)
            slots += row['state'] == 'page-file'
            older += bool(row['frame']) and wanted[address] != flat.page(int(row['frame'], 16) & -PAGE)
        self.assertGreater(len(rows), 8000)
        self.assertGreater(slots, 1000)
        self.assertGreater(older, 0)  # the flat image would be wrong for these
        # Ramseal compares the tables on the whole path, the layer the last one.
        self.assertLess(len(differ), len(rows) // 100)

    # --- scans ---

    def test_scans_pass_over_a_damaged_chunk(self):
        broken = self.dir / 'broken.rsz'
        broken.write_bytes(samples.damaged(self.path.read_bytes(), 3, 2))
        for path, codes in ((self.path, (0,)), (broken, (7,))):
            with self.subTest(path.name):
                flat = Flat(RAMSEAL, path, self.dir, codes=codes)
                wanted = {m.start() for m in re.finditer(b'SIMPAGE1', flat.data)}
                found = {int(line, 16) for line in self.helper(path, 'scan', 'SIMPAGE1')}
                self.assertGreater(len(wanted), 5000)
                self.assertEqual(found, wanted)


    # --- gaps ---

    def test_gaps_of_the_container_and_what_exports_make_of_them(self):
        ranges, lost, end = [(0x1000, 0x9efff), (0x100000, 0x4fffff)], 6, 0x600000
        image, container = self.dir / 'gaps.lime', self.dir / 'gaps.rsz'
        samples.lime(image, ranges, cut=(lost - 1) * PAGE + 1)
        run(RAMSEAL, 'acquire', '-q', '-s', f'file:{image}', '-o', container, codes=(3,))
        covered = {page for first, last in ranges for page in range(first, last, PAGE)}
        read = covered - set(range(0x500000 - lost * PAGE, 0x500000, PAGE))
        for kind, wanted in (('rsz', read), ('lime', covered), ('elf', covered),
                             ('raw', set(range(0, 0x500000, PAGE)))):
            path = container
            if kind != 'rsz':
                path = self.dir / f'gaps.{kind}.out'
                run(RAMSEAL, 'export', '-q', '-F', kind, '-o', path, container, codes=(3,))
            with self.subTest(kind):
                self.assertEqual({int(line, 16) for line in self.helper(path, 'valid', hex(end))}, wanted)


if __name__ == '__main__':
    volatility.skip_without()
    if os.environ.get('RAMSEAL_SIMULATOR') == '0':
        print('built without simulated machines')
        sys.exit(77)
    unittest.main()
