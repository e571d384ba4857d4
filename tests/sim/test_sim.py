#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The simulated machine from outside: the same container for the same seed, what smear says beside what
is true, and page files by MFT. Usage: test_sim.py RAMSEAL SIM_TRUTH
"""
import collections
import csv
import hashlib
import json
import os
import shutil
import struct
import sys
import tempfile
import unittest

import ntfs_disk
import simulated
from sampled import sample
from simulated import run, wrong

RAMSEAL, SIM_TRUTH = (os.path.abspath(p) for p in sys.argv[1:3])
simulated.RAMSEAL, simulated.SIM_TRUTH = RAMSEAL, SIM_TRUTH
del sys.argv[1:3]
MIB = 1 << 20
PAGE = 4096
# A machine that is read in a moment, and is short of memory.
SMALL = ('desktop,ram=128M,allocated=80M,resident=44M,trimmed=24M,others=30M,processes=10,cache=8M,'
         'pressure=100,bandwidth=80M,pagefile0=96M,pagefile1=64M')


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-sim-')
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def acquire(self, spec, name, *options):
        """Acquires a machine, and keeps its account; returns the summary."""
        summary = simulated.acquire(spec, self.path(f'{name}.rsz'), self.path(f'{name}.csv'),
                                    *options)
        verified = run(RAMSEAL, 'verify', self.path(f'{name}.rsz'))
        self.assertEqual(verified.returncode, 0, verified.stderr)
        return summary

    def truth(self, name):
        return simulated.truth(self.path(f'{name}.rsz'), self.path(f'{name}.csv'))

    def smear(self, name):
        return simulated.smear(self.path(f'{name}.rsz'))

    def account(self, name, kind):
        with open(self.path(f'{name}.csv')) as f:
            return [row[1:] for row in csv.reader(f) if row[0] == kind]

    def reading(self, name, pid, vas):
        """What `read` gives of these addresses: the owner's PID and the address that each page has in itself."""
        page, first = self.path('pages'), min(vas, default=0)
        if not vas:
            return {}
        done = run(RAMSEAL, 'read', '-q', '-f', '--json', '--pid', pid, '--va', hex(first), '--length',
                   max(vas) - first + PAGE, '-o', page, self.path(f'{name}.rsz'))
        self.assertIn(done.returncode, (0, 3), done.stderr)
        found = {}
        with open(page, 'rb') as f:
            for va in vas:
                f.seek(va - first)
                magic, owner, _, at = struct.unpack('<8sIIQ', f.read(24))  # agent/simulator/page.h
                found[va] = (owner, at) if magic == b'SIMPAGE1' else None
        return found

    def compare(self, name):
        """
        Each mapping of the main process: (state, trust, truth), counted, each by its own capture as
        `read` takes it. All are decoded alike.
        """
        pid = self.truth(name)['main_pid']
        truth = simulated.truth_of(self.path(f'{name}.rsz'), self.path(f'{name}.csv'), pid)
        found, mended = collections.Counter(), []
        for row in simulated.mappings(self.path(f'{name}.rsz'), pid):
            if row['state'] not in simulated.PLACED:
                continue
            true = truth.pop(int(row['va'], 16), None)
            if true is None:
                self.assertEqual(row['state'], 'page-file')  # there are no page files
                continue
            self.assertEqual((row['state'], int(row['frame'] or row['slot'], 16)),
                             (true['state'], int(true['place'], 16)))
            verdict = simulated.verdict_of(true, row['captured_ns'])
            found[row['state'], row['trust'], verdict] += 1
            if verdict == 'right' != true['verdict']:
                mended.append(int(row['va'], 16))
        self.assertEqual(truth, {})
        self.mended = len(mended)  # right by another capture than the newest
        near = [va for va in mended if va < min(mended) + 16 * MIB]
        for va, mark in self.reading(name, pid, near).items():
            self.assertIn(mark, ((0, va), (pid, va)))
        for (_, trust, verdict), n in found.items():
            if trust == 'safe':
                self.assertEqual(verdict, 'right', found)
        return found


class Determinism(Case):
    def test_same_seed_same_root(self):
        for order in sample(('linear', 'guided')):
            roots = {self.acquire(f'{SMALL},seed=3', name, '--order', order, '-t', threads)['root']
                     for name, threads in (('a', 1), ('another name', 1), ('c', 3))}
            self.assertEqual(len(roots), 1, roots)
            other = self.acquire(f'{SMALL},seed=4', 'd', '--order', order)['root']
            self.assertNotIn(other, roots)

    def test_nothing_of_this_host_is_in_the_container(self):
        self.acquire(SMALL, 'a')
        out = self.path('manifest')
        run(RAMSEAL, 'extract', '--stream', 'manifest', '-o', out, self.path('a.rsz'), check=True)
        with open(out) as f:
            lines = [json.loads(line) for line in f]
        self.assertTrue(lines[0]['simulated'])
        self.assertEqual(sorted(lines[0]['tool']), ['name', 'version'])
        for line in lines:
            if line['event'] == 'tables':
                continue  # they are the simulated machine's
            for key in ('host', 'os', 'cpu', 'process', 'usage', 'footprint', 'threads'):
                self.assertNotIn(key, line)
        self.assertTrue(lines[0]['source']['path'].startswith('desktop,seed=1,'), lines[0])
        self.assertNotIn(self.folder, json.dumps(lines))


class Kernel(Case):
    # agent/simulator/windows.c, as a symbol server is asked for it.
    SYMBOLS = 'ntkrnlmp.pdb/0000ED51F00D0BAD8073696D6B726E6C'

    def check(self, name, symbols):
        done = run(RAMSEAL, 'info', '--json', self.path(f'{name}.rsz'), check=True)
        doc = json.loads(done.stdout)
        self.assertEqual(doc['ntoskrnl']['symbols'], symbols)
        self.assertEqual(doc['ntoskrnl']['base'], '0xfffff80002a00000')
        # These processes are no processes of this machine: nobody was asked.
        self.assertNotIn('processes_compared', doc)
        text = run(RAMSEAL, 'info', self.path(f'{name}.rsz'), check=True).stdout.decode()
        self.assertRegex(text, f'(?m)^ntoskrnl +{symbols}$')

    def test_pdb_of_a_machine_and_of_its_image(self):
        for windows, age in ((7, 2), (10, 1)):
            self.acquire(f'{SMALL},windows={windows}', 'a')
            self.check('a', f'{self.SYMBOLS}{age}')
        run(RAMSEAL, 'export', '-q', '--hash', 'none', '-o', self.path('a.raw'),
            self.path('a.rsz'), check=True)
        run(RAMSEAL, 'acquire', '-q', '--source', f'file:{self.path("a.raw")}', '--pagetables',
            'before', '-o', self.path('b.rsz'), check=True)
        self.check('b', f'{self.SYMBOLS}1')


class Truth(Case):
    def test_nothing_is_wrong_where_nothing_moves(self):
        for order in ('linear', 'guided'):
            self.acquire(f'{SMALL},activity=0', 'a', '--order', order)
            truth = self.truth('a')
            self.assertGreater(truth['all']['valid']['right'], 10000)
            self.assertEqual([wrong(v) for v in truth['all'].values()], [0, 0, 0])
            self.assertTrue(all(trust == 'safe' for _, trust, _ in self.compare('a')))

    def test_what_smear_calls_safe_is_right(self):
        for order, seed in sample([(o, s) for o in ('linear', 'tables-first', 'tables-last', 'guided') for s in (1, 2)]):
            with self.subTest(order=order, seed=seed):
                self.acquire(f'{SMALL},seed={seed},activity=1000,start=300,exit=300', 'a', '--order', order)
                self.assertGreater(sum(self.compare('a').values()), 5000)

    def test_several_readers(self):
        """Four who read among each other, page by page: nothing that is called safe is wrong, either."""
        orders = ('linear', 'guided', 'tables-first', 'tables-last')
        for order, race in sample([(o, r) for o in orders for r in (0, 50)]):
            with self.subTest(order=order, race=race):
                self.acquire(f'{SMALL},readers=1,activity=1000,start=300,exit=300,race={race}', 'a', '--order', order,
                             '-t', 4)
                self.assertGreater(sum(self.compare('a').values()), 5000)
                beside = sum(int(n) for what, n in self.account('a', 'count') if what == 'beside')
                self.assertGreater(beside, 1000)

    def test_papers_experiment(self):
        """The paper's own observation, and what is left of it when tables and frames go together."""
        results, read = {}, {}
        for order in ('linear', 'guided'):
            self.acquire('cohen2015,seed=1', order, '--order', order)
            resident = [int(n) for _, n in self.account(order, 'resident')]
            self.assertEqual(resident[0], 347 * MIB >> 12)
            self.assertLess(min(resident[:80]), 190 * MIB >> 12)  # within eight seconds
            tables = self.smear(order)
            results[order] = self.truth(order)
            valid = results[order]['main']['valid']
            found = self.compare(order)
            safe = sum(n for (_, trust, _), n in found.items() if trust == 'safe')
            read[order] = sum(n for (*_, verdict), n in found.items() if verdict != 'right')
            print(f'note: cohen2015, {order}: of {sum(valid.values())} valid pages of swapper.exe '
                  f'{wrong(valid)} are wrong ({valid["kernel"]} hold the kernel\'s); smear calls '
                  f'{safe} pages safe, and all of them are right')
            self.assertEqual(results[order]['main']['valid']['missing'], 0)
            self.assertTrue(tables)
        linear, guided = (results[o]['main']['valid'] for o in ('linear', 'guided'))
        self.assertGreater(linear['kernel'], 1000)
        # A flat image has one capture of a page that was captured for several; `read` has each.
        self.assertLess(20 * wrong(guided), wrong(linear))
        self.assertLess(1000 * read['guided'], read['linear'])

    def test_source_that_slows_down_half_way(self):
        summary = self.acquire(f'{SMALL},slow_after=64M,slow_bandwidth=1M', 'a')
        self.assertGreater(summary['duration_ns'], 60 * 10**9)
        self.compare('a')

    def test_tables_that_change_faster_than_they_are_read(self):
        summary = self.acquire(f'{SMALL},write=400000,touch=400000,alloc=50000,free=50000,'
                               'bandwidth=20M', 'a', '--order', 'guided')
        again = summary['order']['retaken_pages']
        self.assertGreater(summary['order']['tables_unsettled'], 0)
        self.assertGreater(again, 0)
        self.compare('a')
        shown = simulated.output_of(simulated.RAMSEAL, 'info', self.path('a.rsz')).decode()
        self.assertIn(f'{again} pages, because entries that name them had changed', shown)


class LivePageFiles(Case):
    """Page files that the machine offers itself, and writes to while they are copied."""

    def test_same_seed_same_root(self):
        for timing in sample(('before', 'after')):
            roots = {self.acquire(f'{SMALL},live_files=1', 'a', '--pagefile', timing, '-t', n)['root']
                     for n in (1, 2)}
            self.assertEqual(len(roots), 1, timing)

    def test_what_smear_calls_safe_is_right(self):
        for timing, order in sample([(t, o) for t in ('before', 'after') for o in ('linear', 'guided')]):
            self.acquire(f'{SMALL},live_files=1,activity=1000', 'a', '--order', order, '--pagefile', timing)
            found = self.compare('a')
            slots = {trust: n for (state, trust, verdict), n in found.items()
                     if state == 'page-file' and verdict == 'right'}
            self.assertGreater(slots['safe'], 1000, (timing, order, found))

    def test_beside_the_memory(self):
        """Which read comes first is this host's business; that the machine is whole is not."""
        self.acquire(f'{SMALL},live_files=1,activity=1000', 'a', '--pagefile', 'concurrent')
        truth = self.truth('a')['all']
        self.assertEqual([v['missing'] for v in truth.values()], [0, 0, 0])
        self.assertGreater(truth['page-file']['right'], 5000)

    def test_reading_them_takes_the_machines_time(self):
        """80 MB/s: 160 MiB of page files beside 128 MiB of memory."""
        without = self.acquire(f'{SMALL}', 'a')['duration_ns']
        with_files = self.acquire(f'{SMALL},live_files=1', 'b')['duration_ns']
        self.assertGreater(with_files - without, 160 * MIB * 10**9 // (80 * MIB))
        self.assertEqual(self.acquire(f'{SMALL},live_files=1', 'c', '--no-pagefile')['duration_ns'],
                         without)


class Races(Case):
    """
    What a page table names changes soon after that was read, among the readings of tables and frames: frames
    go from one address to another. Whatever rests on two readings that agree has to survive it.
    """
    def check(self, order, race, *options):
        self.acquire(f'{SMALL},seed=5,race={race}', order, '--order', order, *options)
        found = self.compare(order)  # and nothing that is safe is wrong
        wrong_at_risk = sum(n for (_, trust, verdict), n in found.items()
                            if trust == 'at-risk' and verdict not in ('right', 'missing'))
        safe = sum(n for (_, trust, _), n in found.items() if trust == 'safe')
        self.assertGreater(safe, 1000, found)
        return safe, wrong_at_risk

    def test_from_a_pass_to_the_image(self):
        for order in sample(('linear', 'tables-first', 'tables-last')):
            with self.subTest(order):
                _, wrong_at_risk = self.check(order, 20)
                self.assertGreater(wrong_at_risk, 50)

    def test_around_the_frames(self):
        for race in sample((20, 200)):
            with self.subTest(race):
                _, wrong_at_risk = self.check('guided', race)
                self.assertGreater(wrong_at_risk + self.mended, 50)
                self.assertGreater(self.mended, 0)  # right by another capture than the newest

    def test_with_page_files(self):
        for timing in sample(('guided', 'after')):
            with self.subTest(timing):
                self.acquire(f'{SMALL},live_files=1,seed=5,race=50', timing, '--pagefile', timing)
                self.compare(timing)


@unittest.skipUnless(shutil.which('mkntfs') and shutil.which('ntfscp'), 'ntfs-3g is not installed')
class PageFiles(Case):
    def make_disk(self, spec, swapped=False):
        """The same machine, read in the same way, has the same page files in the end."""
        self.acquire(f'{spec},pagefiles={self.path("pages")}', 'first', '--order', 'guided')
        self.assertEqual(os.path.getsize(self.path('pages0.sys')), 96 * MIB)
        self.assertEqual(os.path.getsize(self.path('pages1.sys')), 64 * MIB)
        disk = self.path('disk.raw')
        files = [self.path('pages0.sys'), self.path('pages1.sys')]
        ntfs_disk.make(disk, files[::-1] if swapped else files)
        return disk

    def slots(self, name):
        """{trust: slots of the main process}, and what content says of the numbers."""
        sums = collections.Counter()
        for (state, trust, _), n in self.compare(name).items():
            sums[trust] += n if state == 'page-file' else 0
        return sums, self.smear(name).get('page_files')

    def stream(self, name, stream):
        run(RAMSEAL, 'extract', '-q', '-f', '--stream', stream, '-o', self.path('stream'),
            self.path(f'{name}.rsz'), check=True)
        with open(self.path('stream'), 'rb') as f:
            return hashlib.sha256(f.read()).digest()

    def test_slots_by_the_tables(self):
        """Near the tables, the whole files all the same, and again and again alike."""
        spec = f'{SMALL},activity=1000'
        disk = self.make_disk(spec)
        windows, streams, smears = {}, {}, {}
        for name, time, threads in (('after', 'after', 1), ('a', 'guided', 1), ('b', 'guided', 3)):
            summary = self.acquire(spec, name, '--order', 'guided', '--image', disk,
                                   '--pagefile', time, '-t', threads)
            smears[name] = self.smear(name)
            del smears[name]['file']
            windows[name] = smears[name]['total']['copies']['image']['slot_window']
            streams[name] = [self.stream(name, s) for s in ('pagefile.sys', 'pagefile.sys (2)', 'memory')]
            for file in summary['files']:
                self.assertEqual('sha256' in file, time == 'after')
                self.assertEqual(file['copied']['pages']['unreadable'], 0)
                self.assertEqual(file.get('guided_pages', 0) > 1000, time == 'guided', file)
                self.assertEqual(file['copied']['bytes'], (96, 64)[file['number']] * MIB)
        self.compare('a')
        for i in range(2):
            with open(self.path(f'pages{i}.sys'), 'rb') as f:
                digest = hashlib.sha256(f.read()).digest()
            self.assertEqual([streams[name][i] for name in streams], 3 * [digest])
        self.assertEqual(streams['a'], streams['b'])
        self.assertEqual(smears['a'], smears['b'])
        print('note: two page files, windows to slots: ' + '; '.join(
            f'{name} median {w["median_ns"] / 1e6:.3f} ms, 95 % {w["p95_ns"] / 1e6:.3f} ms'
            for name, w in windows.items() if name != 'b'))
        self.assertGreater(windows['a']['pages'], 5000)
        self.assertLess(100 * windows['a']['median_ns'], windows['after']['median_ns'])
        self.assertLess(100 * windows['a']['p95_ns'], windows['after']['p95_ns'])

    def test_numbers_that_are_mixed_up(self):
        """The list has the files in the wrong order; content finds it out, and no slot is safe."""
        spec = f'{SMALL},activity=1000'
        self.acquire(spec, 'a', '--order', 'guided', '--image', self.make_disk(spec, swapped=True))
        sums, numbers = self.slots('a')
        self.assertEqual([(n['number'], n['number_origin'], n['file'], n['other'], n['votes'])
                          for n in numbers],
                         [(0, 'contradicted', 'pagefile.sys', 'pagefile.sys (2)', 0),
                          (1, 'contradicted', 'pagefile.sys (2)', 'pagefile.sys', 0)])
        self.assertGreater(sums['at-risk'], 1000)
        self.assertEqual(sums['safe'], 0)
        told = run(RAMSEAL, 'smear', self.path('a.rsz')).stdout.decode()
        self.assertIn('page file 0 is not pagefile.sys but pagefile.sys (2)', told)
        told = run(RAMSEAL, 'info', self.path('a.rsz')).stdout.decode()
        self.assertIn('The content of a page file contradicts its number', told)
        run(RAMSEAL, 'report', '-q', self.path('a.rsz'), '-o', self.path('a.html'), check=True)
        with open(self.path('a.html')) as f:
            self.assertIn('The numbers of page files are mixed up', f.read())

    def test_numbers_without_enough_votes(self):
        """Nothing moves between two readings: nobody can say, and no slot is safe."""
        spec = f'{SMALL},activity=0,pressure=0'
        self.acquire(spec, 'a', '--order', 'guided', '--image', self.make_disk(spec))
        sums, numbers = self.slots('a')
        self.assertEqual([n['number_origin'] for n in numbers], ['assumed', 'assumed'])
        self.assertTrue(all(n['votes'] < 16 and not n['against'] for n in numbers), numbers)
        self.assertGreater(sums['at-risk'], 1000)
        self.assertEqual(sums['safe'], 0)

    def test_two_page_files_by_mft(self):
        spec = f'{SMALL},activity=1000'
        disk = self.make_disk(spec)
        self.acquire(spec, 'a', '--order', 'guided', '--image', disk)
        sums, numbers = self.slots('a')
        self.assertEqual([(n['number'], n['number_origin'], n['against']) for n in numbers],
                         [(0, 'confirmed', 0), (1, 'confirmed', 0)])
        self.assertTrue(all(16 <= n['votes'] <= n['compared'] <= n['moved'] for n in numbers), numbers)
        # From a pipe nothing is kept that could be compared: that is said, and not "no votes".
        with open(self.path('a.rsz'), 'rb') as f:
            piped = json.loads(run(RAMSEAL, 'info', '--json', '-', stdin=f).stdout)['smear']
        whole = json.loads(run(RAMSEAL, 'info', '--json', self.path('a.rsz')).stdout)['smear']
        self.assertEqual([n['number_origin'] for n in whole['page_files']], ['confirmed', 'confirmed'])
        self.assertNotIn('page_files', piped)
        self.assertIn('Numbers of page files were not compared with their content', piped['sentence'])
        self.assertNotIn('not compared', whole['sentence'])
        self.assertGreater(piped['at-risk'], whole['at-risk'])
        self.assertLess(50 * sums['at-risk'], sums['safe'])
        truth = self.truth('a')
        slots = truth['all']['page-file']
        print(f'note: of {sum(slots.values())} pages in two page files {wrong(slots)} are wrong, of '
              f'{sum(truth["all"]["valid"].values())} valid ones {wrong(truth["all"]["valid"])}')
        self.assertEqual(slots['missing'], 0)
        self.assertGreater(slots['right'], 5000)
        self.assertLess(20 * wrong(slots), slots['right'])
        found = self.compare('a')
        self.assertTrue(any(state == 'page-file' for state, _, _ in found), found)


if __name__ == '__main__':
    unittest.main(verbosity=2)
