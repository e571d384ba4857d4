#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
formats/volatility3 in volatility3 itself: a simulated Windows whose processes, pages and page files are
known, as a container and as what is exported of it.
Usage: test_volatility3.py RAMSEAL

RAMSEAL_PEERS is a folder that has volatility3's source in `volatility3`. Without it, or without a Python
that has pefile, which volatility3 needs, the test is skipped.
"""

import collections
import csv
import hashlib
import json
import os
import random
import re
import shutil
import struct
import subprocess
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


def made(case):
    """A folder of the class's own, with symbols in it; the seed of its machine."""
    folder = tempfile.TemporaryDirectory()
    case.addClassCleanup(folder.cleanup)
    case.dir = Path(folder.name)
    case.symbols = case.dir / 'symbols'
    isf_simulated.write(case.symbols, 10)
    seed = random.randrange(1 << 32)
    print(f'seed {seed}')
    return seed


class Windows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        seed = made(cls)
        cls.path, cls.processes = samples.busy_machine(RAMSEAL, cls.dir, seed)
        cls.truth = {(int(pid), name[:14]) for pid, (name, _) in cls.processes.items()}

    def pslist(self, image, *options):
        """(processes, what it said besides)"""
        done = volatility.vol(self.dir, self.symbols, '-r', 'csv', *options, '-f', image, 'windows.pslist')
        rows = [] if done.returncode else csv.DictReader(done.stdout.splitlines())
        return {(int(row['PID']), row['ImageFileName'][:14]) for row in rows}, done

    def helper(self, container, *arguments, **kwargs):
        return volatility.python(HERE / 'read_in_volatility3.py', samples.LAYER, container, *arguments, ramseal=RAMSEAL,
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


# What stands for the program where there is no machine that it could read: it says what is in ANSWERS.
STAND_IN = '''#!/usr/bin/env python3
import json, sys
answers, options = json.load(open({answers!r})), dict(zip(sys.argv, sys.argv[1:]))
first, length = int(options['--va'], 16), int(options['--length'])
assert sys.argv[1:3] == ['-q', 'read'] and options['--dtb'] == answers['dtb'], sys.argv
rows = [row for row in answers['rows'] if first <= int(row['va'], 16) < first + length]
if '--json' in sys.argv:
    print(*map(json.dumps, rows), sep='\\n')
else:
    data = bytearray(length)
    for row in rows:
        at = int(row['va'], 16) - first
        data[at:at + 4096] = bytes([row['fill']]) * 4096
    sys.stdout.buffer.write(data)
sys.exit(3)
'''


class Asked(unittest.TestCase):
    """What the program ramseal finds for the layers: a process whose pages are in page files and in the store."""

    @classmethod
    def setUpClass(cls):
        seed = made(cls)
        cls.path, (cls.pid, cls.dtb) = samples.stored_machine(RAMSEAL, cls.dir, seed)
        cls.wanted = samples.as_read(RAMSEAL, cls.path, cls.dtb)

    def memmap(self, **variables):
        """(rows, the pages that it wrote by address, the run)"""
        out = self.dir / 'dump'
        out.mkdir()
        self.addCleanup(shutil.rmtree, out)
        done = volatility.vol(self.dir, self.symbols, '-r', 'csv', '-o', out, '-f', self.path, 'windows.memmap',
                              '--pid', self.pid, '--dump', **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [row for row in csv.DictReader(done.stdout.splitlines()) if row['Virtual']]
        data, pages = (out / f'pid.{self.pid}.dmp').read_bytes(), {}
        for row in rows:
            first, at = int(row['Virtual'], 16), int(row['Offset in File'], 16)
            for i in range(0, int(row['Size'], 16), PAGE):
                pages[first + i] = data[at + i:at + i + PAGE]
        return rows, {va: page for va, page in pages.items() if va < 1 << 47}, done

    def test_a_plugin_gets_what_read_gives(self):
        """And says what it is worth, in a column and in a file."""
        log = self.dir / 'verdicts.csv'
        rows, pages, _ = self.memmap(RAMSEAL=RAMSEAL, RAMSEAL_VERDICTS=str(log), RAMSEAL_COLUMN='1')
        wanted = {va: data for va, (_, data) in self.wanted.items() if data is not None}
        kinds = collections.Counter(row['content'] for va, (row, _) in self.wanted.items() if va in pages)
        self.assertEqual(kinds['compressed'], 1500)
        self.assertGreater(kinds['page-file'], 3000)
        self.assertEqual(set(pages), set(wanted))
        self.assertEqual([hex(va) for va in pages if pages[va] != wanted[va]], [])
        # The file: each page of the process with the program's words.
        judged = {}
        with open(log, encoding='utf-8') as f:
            for row in csv.DictReader(f):
                if row['dtb'] == self.dtb:
                    self.assertEqual(row['pid'], self.pid)
                    judged.update({int(row['va'], 16) + i * PAGE: row for i in range(int(row['pages']))})
        for va, (row, _) in self.wanted.items():
            got = judged[va]
            words = ('state', 'content', 'trust', 'verdict', 'doubt', 'why')
            self.assertEqual([got[k] for k in words], [row.get(k, '') for k in words], hex(va))
        # The column: the worst of the row.
        said = {row['Verdict'].split(' ')[0] for row in rows}
        self.assertLessEqual({'safe', 'at-risk'}, said)
        for row in rows:
            inside = {self.wanted[va][0]['trust'] for va in range(int(row['Virtual'], 16), int(row['Virtual'], 16) +
                                                                   int(row['Size'], 16), PAGE) if va in self.wanted}
            if 'at-risk' in inside:
                self.assertRegex(row['Verdict'], r'^(at-risk|wrong) \(\d+ of \d+ pages\)$')

    def test_installed(self):
        """It finds the program in its own prefix, and volatility3 finds it by its configuration."""
        prefix, home = self.dir / 'prefix', self.dir / 'home'
        layer, settings = prefix / 'share/ramseal/volatility3', home / '.config/volatility3/vol.json'
        for folder in layer, prefix / 'bin', settings.parent:
            folder.mkdir(parents=True)
        shutil.copy(samples.LAYER / 'ramseal.py', layer)
        (prefix / 'bin/ramseal').symlink_to(RAMSEAL)
        settings.write_text(json.dumps({'plugin_dirs': str(layer)}))
        done = subprocess.run([volatility.interpreter(), '-c', 'import ramseal; print(ramseal.program())'], cwd=layer,
                              env={'PATH': '/nonexistent'}, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.strip(), str(prefix / 'bin/ramseal'))
        cache = self.dir / 'installed'
        cache.mkdir()
        done = subprocess.run([volatility.interpreter(), volatility.source() / 'vol.py', '--offline', '-q',
                               '--cache-path', cache, '-s', self.symbols, '-r', 'csv', '-f', self.path, 'windows.pslist'],
                              cwd=cache, env={'HOME': str(home), 'PATH': '/usr/bin:/bin', 'RAMSEAL_COLUMN': '1'},
                              capture_output=True, text=True, timeout=900)
        rows = [row for row in csv.DictReader(done.stdout.splitlines()) if row['PID']]
        self.assertIn(self.pid, {row['PID'] for row in rows}, done.stderr)
        self.assertTrue(all('pages)' in row['Verdict'] for row in rows), rows)

    def test_without_the_program(self):
        """It is said once, and those pages are missing; so it was before there were any."""
        rows, pages, done = self.memmap(RAMSEAL='/nonexistent/ramseal')
        self.assertEqual(done.stderr.count('pages that only `ramseal read` finds are missing: the program ramseal'), 1)
        self.assertNotIn('Verdict', rows[0])
        kinds = collections.Counter(row['content'] for va, (row, _) in self.wanted.items() if va in pages)
        self.assertEqual(kinds['compressed'], 0)
        self.assertGreater(kinds['page-file'], 3000)
        for va, page in pages.items():
            self.assertEqual(page, self.wanted[va][1], hex(va))

    def test_a_program_that_fails(self):
        """Once, with its reason."""
        failing = self.dir / 'failing'
        failing.write_text('#!/bin/sh\necho "ramseal: read: cannot today" >&2\nexit 9\n')
        failing.chmod(0o755)
        _, pages, done = self.memmap(RAMSEAL=str(failing))
        self.assertEqual(done.stderr.count('are missing: ramseal: read: cannot today'), 1, done.stderr)
        self.assertGreater(len(pages), 3000)

    def test_slots_of_linux(self):
        """
        Hand-made tables of Linux, one entry of which is in a swap area (arch/x86/include/asm/pgtable_64.h), and a
        stand-in for the program. tests/vm/test_swap.py has the program follow such entries.
        """
        pml4, pdpt, directory, table, page, va = 0x1000, 0x2000, 0x3000, 0x4000, 0x5000, 0x7F1234400000
        swapped = (~5 & (1 << 50) - 1) << 9 & (1 << 59) - 1 | 1 << 59
        frames = {pml4: {va >> 39 & 511: pdpt | 7}, pdpt: {va >> 30 & 511: directory | 7},
                  directory: {va >> 21 & 511: table | 7}, table: {0: page | 7, 1: swapped, 2: swapped + 512}}
        image, path, program, answers = (self.dir / n for n in ('l.lime', 'l.rsz', 'stand-in', 'answers.json'))
        with open(image, 'wb') as f:
            f.write(struct.pack('<IIQQ8x', 0x4C694D45, 1, 0x1000, 0x5FFF))
            for at in sorted(frames):
                f.write(b''.join(struct.pack('<Q', frames[at].get(i, 0)) for i in range(512)))
            f.write(b'p' * PAGE)
        run(RAMSEAL, 'acquire', '-q', '-s', f'file:{image}', '-o', path)
        rows = [{'va': hex(va), 'pages': 1, 'state': 'valid', 'content': 'memory', 'fill': 1},
                {'va': hex(va + PAGE), 'pages': 1, 'state': 'swap', 'content': 'page-file', 'fill': 0x5A},
                {'va': hex(va + 2 * PAGE), 'pages': 1, 'state': 'swap', 'content': 'none', 'fill': 3}]
        answers.write_text(json.dumps({'dtb': hex(pml4), 'rows': rows}))
        program.write_text(STAND_IN.format(answers=str(answers)))
        program.chmod(0o755)
        done = volatility.python(HERE / 'read_in_volatility3.py', samples.LAYER, path, 'linux', hex(pml4),
                                 ramseal=program, input='\n'.join(hex(va + i * PAGE) for i in range(4)))
        got = dict(map(str.split, done.stdout.splitlines()))
        digest = lambda byte: hashlib.sha256(byte * PAGE).hexdigest()
        self.assertEqual(list(got.values()), [digest(b'p'), digest(b'\x5a'), '-', '-'])


if __name__ == '__main__':
    volatility.skip_without()
    if os.environ.get('RAMSEAL_SIMULATOR') == '0':
        print('built without simulated machines')
        sys.exit(77)
    unittest.main()
