#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`ramseal vad`, and what `read` has from it, beside what the simulated machine says of its processes.
Usage: test_vad_command.py RAMSEAL
"""
import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest

RAMSEAL = os.path.abspath(sys.argv.pop(1))
PAGE = 4096
SMALL = ('desktop,ram=128M,allocated=40M,resident=24M,trimmed=8M,others=30M,processes=8,cache=8M,'
         'pressure=20,bandwidth=80M,pagefile0=96M,pagefile1=64M,inside=1,live_files=1')
RELEASES = {7: 'windows=7', 10: 'windows=10', 11: 'windows=10,build=26100', 'wow64 7': 'windows=7,wow64=5',
            'wow64 11': 'windows=10,build=26100,wow64=5'}


def run(*args, code=0):
    done = subprocess.run([RAMSEAL, *map(str, args)], capture_output=True, timeout=900)
    if done.returncode != code:
        raise AssertionError(f'{args} ended with {done.returncode}: {done.stderr.decode()}')
    return done


def number(text):
    return int(text, 16)


class Account:
    def __init__(self, path):
        rows = list(csv.reader(path))
        self.processes = {r[1]: r for r in rows if r[0] == 'process'}
        self.peb32 = {r[1]: number(r[2]) for r in rows if r[0] == 'wow64'}
        self.vads = {pid: [r[2:] for r in rows if r[0] == 'vad' and r[1] == pid] for pid in self.processes}
        self.pages = {pid: {(r[2], r[3]): r[4:] for r in rows if r[0] == 'pages' and r[1] == pid}
                      for pid in self.processes}


class Vad(unittest.TestCase):
    windows = {}

    @classmethod
    def setUpClass(cls):
        cls.at = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        for release, settings in RELEASES.items():
            container, told = f'{cls.at.name}/{release}.rsz', f'{cls.at.name}/{release}.csv'
            run('acquire', '-q', '-s', f'sim:{SMALL},{settings},process_truth={told}', '-o', container)
            with open(told) as f:
                account = Account(f)
            found = {pid: json.loads(run('vad', '--pid', pid, '--pages', '--json', container).stdout)
                     for pid in account.processes}
            cls.windows[release] = container, account, found

    @classmethod
    def tearDownClass(cls):
        cls.at.cleanup()

    def each(self):
        for release, (container, account, found) in self.windows.items():
            for pid in account.processes:
                with self.subTest(windows=release, pid=pid):
                    yield container, account, pid, found[pid]

    def test_every_vad_and_nothing_else(self):
        seen = 0
        for _, account, pid, doc in self.each():
            self.assertTrue(doc['whole'])
            self.assertEqual(doc['expected'], len(doc['vads']))
            self.assertEqual([[v['start'], v['end'], v['kind'], v['node'], v['file'] or ''] for v in doc['vads']],
                             [[v[0], v[1], v[2], v[4], v[5]] for v in account.vads[pid]])
            seen += len(doc['vads'])
        self.assertGreater(seen, 100)
        self.assertEqual({d['layout'] for d in self.windows[7][2].values()}, {'7'})
        self.assertEqual({d['vad_layout'] for d in self.windows[10][2].values()}, {'10-1903'})
        self.assertEqual({(d['layout'], d['vad_layout']) for d in self.windows[11][2].values()},
                         {('11-24h2', '11-21h2')})

    def test_protections(self):
        names = {1: 'r', 2: 'x', 3: 'rx', 4: 'rw', 5: 'wc', 6: 'rwx', 7: 'wcx'}
        for _, account, pid, doc in self.each():
            for v, told in zip(doc['vads'], account.vads[pid]):
                self.assertEqual(v['protection'], names[int(told[3])])

    def test_eprocess_peb_and_birth(self):
        for _, account, pid, doc in self.each():
            told = account.processes[pid]
            self.assertEqual(doc['name'], told[2])
            self.assertEqual(doc['eprocess'], told[3])
            self.assertEqual(number(doc['peb'] or '0'), number(told[4]))
            self.assertEqual(doc['parent'] or 0, int(told[6]))
            if doc['peb']:
                self.assertTrue(any(number(v['start']) <= number(doc['peb']) <= number(v['end'])
                                    for v in doc['vads']))
                self.assertRegex(doc['created'], '^201[0-9]-')

    def test_32_bit_programs_have_another_peb(self):
        narrow = 0
        for _, account, pid, doc in self.each():
            self.assertEqual(number(doc['peb32'] or '0'), account.peb32.get(pid, 0))
            narrow += pid in account.peb32
        self.assertEqual(narrow, 10)

    def test_each_page_is_counted_once(self):
        shared = 0
        for _, _, _, doc in self.each():
            self.assertEqual(doc['outside'], [])
            for v in doc['vads']:
                states = v['counts']['states']
                self.assertEqual(sum(states.values()), v['pages'])
                self.assertEqual(states['unknown'], 0)
                given = sum(states[s] for s in ('valid', 'transition', 'page_file', 'demand_zero'))
                self.assertEqual(sum(v['counts']['trust'].values()), given)
                shared += v['counts']['by_prototype']
            self.assertEqual(sum(doc['counts']['states'].values()), sum(v['pages'] for v in doc['vads']))
        self.assertGreater(shared, 100)

    def test_what_is_committed(self):
        """States change while the machine is read; whether there is a page at all does not, in what is compared."""
        compared = 0
        for _, account, pid, doc in self.each():
            for v in doc['vads']:
                told = account.pages[pid].get((v['start'], v['end']))
                if told and v['private']:
                    self.assertEqual(v['counts']['states']['reserved'], int(told[4]))
                    compared += 1
        self.assertGreater(compared, 20)

    def pages(self, container, pid, v):
        length = number(v['end']) - number(v['start']) + 1
        done = subprocess.run([RAMSEAL, 'read', '-q', '--pid', pid, '--va', v['start'], '-n', str(length),
                               '--fill', '00', '-o', f'{self.at.name}/bytes', '-f', container], capture_output=True)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        with open(f'{self.at.name}/bytes', 'rb') as f:
            content = f.read()
        done = subprocess.run([RAMSEAL, 'read', '-q', '--json', '--pid', pid, '--va', v['start'], '-n', str(length),
                               container], capture_output=True)
        for line in map(json.loads, done.stdout.splitlines()):
            at = number(line['va']) - number(v['start'])
            yield line, content[at:at + line['pages'] * PAGE]

    def test_views_of_one_file_are_the_same(self):
        """Each process has touched other pages of it; the others are found through the VAD."""
        for release, (container, account, found) in self.windows.items():
            views = [(pid, v) for pid, d in found.items() for v in d['vads']
                     if v['kind'] == 'mapped' and v['protection'] == 'r' and v['file']]
            name = max({v['file'] for _, v in views}, key=lambda n: sum(v['file'] == n for _, v in views))
            views = [x for x in views if x[1]['file'] == name][:4]
            self.assertGreater(len(views), 1)
            pages, by_vad = {}, 0
            for pid, v in views:
                for line, content in self.pages(container, pid, v):
                    by_vad += line['entry'] == '0x0' and line['content'] in ('memory', 'page-file')
                    if line['content'] not in ('memory', 'page-file') or line['verdict'] != 'prototype':
                        continue
                    at = number(line['va']) - number(v['start']) + v['file_offset']
                    with self.subTest(windows=release, file=name, pid=pid, at=hex(at)):
                        self.assertEqual(pages.setdefault(at, content), content)
            self.assertGreater(len(pages), 5)
            self.assertGreater(by_vad, 0)

    def test_read_names_the_file(self):
        for release, (container, account, found) in self.windows.items():
            pid, v = next((pid, v) for pid, d in found.items() for v in d['vads']
                          if v['kind'] == 'mapped' and v['file'] and v['counts']['states']['file'])
            with self.subTest(windows=release, pid=pid, file=v['file']):
                named = 0
                for line, _ in self.pages(container, pid, v):
                    if line['state'] == 'subsection':
                        self.assertEqual(line['mapped_file'], v['file'])
                        self.assertEqual(line['mapped_offset'],
                                         v['file_offset'] + number(line['va']) - number(v['start']))
                        named += line['pages']
                    else:
                        self.assertNotIn('mapped_file', line)
                self.assertEqual(named, v['counts']['states']['file'])

    def test_text_has_a_row_for_each(self):
        container, account, _ = self.windows[10]
        pid = list(account.processes)[1]
        for options in ((), ('--pages',)):
            text = run('vad', '--pid', pid, *options, container).stdout.decode()
            rows = [line for line in text.splitlines() if line.startswith('0x')]
            self.assertEqual(len(rows), len(account.vads[pid]))
            files = [v['file'] for v in self.windows[10][2][pid]['vads']]
            self.assertIn(r'\Windows\System32\ntdll.dll', files)
            for line, file in zip(rows, files):
                before, last, behind = line.rpartition(f' {file} +0x') if file else (line, '', '')
                self.assertEqual(bool(last), file is not None, line)
                self.assertRegex(behind, '^[0-9a-f]*$')
                self.assertLessEqual(len(before), 80, line)

    def test_tables_of_another_time(self):
        container, account, found = self.windows[10]
        pid = list(account.processes)[1]
        for copy in ('image', 'before', 'after'):
            doc = json.loads(run('vad', '--tables', copy, '--pid', pid, '--pages', '--json', container).stdout)
            self.assertEqual([v['start'] for v in doc['vads']], [v['start'] for v in found[pid]['vads']])
            self.assertEqual(doc == found[pid], copy == 'image', copy)

    def test_mistakes(self):
        container = self.windows[10][0]
        for code, args in ((2, (container,)), (9, ('--pid', 6, container)), (9, ('--pid', 4, 'absent'))):
            done = run('vad', *args, code=code)
            self.assertEqual(done.stdout, b'')
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == '__main__':
    unittest.main()
