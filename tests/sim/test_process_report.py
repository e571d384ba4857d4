#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`ramseal report --pid` on simulated machines: its numbers beside the machine's own account and beside
those of `vad`, `heap` and `process`, with pages that are missing, and on what has no such page.

	test_process_report.py RAMSEAL
"""

import csv
import json
import os
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, str(Path(__file__).parents[1] / 'cli'))
import report_data  # noqa: E402
from machine_case import MachineCase, run  # noqa: E402
from report_page import Page, Tables, strangers  # noqa: E402

PAPER = 1148
STATES = {'valid': 'valid', 'transition': 'transition', 'page file': 'page_file', 'compressed': 'compressed',
          'demand zero': 'demand_zero', 'on disk only': 'file', 'reserved': 'reserved',
          'not captured': 'not_captured', 'unknown': 'unknown'}


def number(text):
    return int(text.replace(',', ''))


class ProcessReport(MachineCase):
    def machine(self, spec):
        done = run('acquire', '-q', '--force', '-s', f'sim:{spec},process_truth={self.account}', '-o', self.container)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.account, encoding='utf-8', newline='') as f:
            return list(csv.reader(f))

    def page(self, pid, codes=(0,), file=None):
        out = self.at / 'page.html'
        done = run('report', '-q', '-f', '--pid', pid, '-o', out, file or self.container)
        self.assertIn(done.returncode, codes, done.stderr)
        self.assertEqual((done.stdout, done.stderr.count(b'\n')), (b'', int(done.returncode != 0)))
        text = out.read_text(encoding='utf-8')
        page = Page(text)
        self.assertEqual(page.faults, [])
        self.assertEqual(strangers(text, page), [])
        self.headline = re.search('class="headline">(.*?)</p>', text)[1]
        self.headline = re.sub('<[^>]*>', '', self.headline)
        self.outcome = re.sub('<[^>]*>', '', text[text.index('class="outcome'):text.index('class="cards')])
        self.leaks = page.text('leaks') if 'leaks' in page.sections else ''
        return page, Tables(text).sections

    def ask(self, command, pid, *options):
        return json.loads(run(command, '-q', '--pid', pid, '--json', *options, self.container).stdout)

    def states(self, table):
        """{first cell: {state: pages}} of a table of where pages are; what has no column is 0."""
        found = {}
        for row in table[1:]:
            cells = dict(zip(table[0], row))
            found[row[0]] = {name: number(cells.get(shown, '0')) for shown, name in STATES.items()}
            self.assertEqual(sum(found[row[0]].values()), number(cells['pages']))
            found[row[0]].update(safe=number(cells.get('safe', '0')), risk=number(cells['at risk']))
        return found

    def compare(self, pid, sections):
        """With what the commands say."""
        vad = self.ask('vad', pid, '--pages')
        kinds, ranges = (self.states(t) for t in sections['map'])
        for name, n in vad['counts']['states'].items():
            self.assertEqual(kinds['the process'][name], n)
            self.assertEqual(sum(k[name] for k in kinds.values()), 2 * n)
        self.assertEqual(len(ranges), len(vad['vads']))
        for said, v in zip(ranges.items(), vad['vads']):
            self.assertTrue(said[0].startswith(f"{v['start']}-{v['end']} "), said[0])
            self.assertIn(v['protection'], said[0])
            self.assertIn(v['file'] or '', said[0])
            self.assertEqual({n: said[1][n] for n in v['counts']['states']}, v['counts']['states'])
        found = self.ask('heap', pid)
        if found['heaps']:
            pages, walks = sections['heaps']
            self.assertEqual([row[0].split(' ')[0] for row in walks[1:]], [h['address'] for h in found['heaps']])
            for row, h in zip(walks[1:], found['heaps']):
                cells = dict(zip(walks[0], row))
                self.assertEqual(number(cells['busy blocks']),
                                 sum(b['blocks'] for b in h['blocks'] if b['state'] == 'busy'))
                self.assertTrue(cells['key'].endswith(h['key'] or h['key_from']))
            kept = self.states(pages)
            self.assertEqual(kept.pop('all heaps'), {n: sum(k[n] for k in kept.values()) for n in kept[min(kept)]})
        if found['heaps']:
            self.compare_blocks(pid, sections)
        process = self.ask('process', pid)
        findings = [m['base'] for m in process['modules'] if m['finding']]
        modules = [[row[0] for row in table[1:]] for table in sections['modules']]
        self.assertEqual(modules, ([findings] if findings else []) + [[m['base'] for m in process['modules']]])
        self.assertEqual([row[0] for row in sections['threads'][0][1:]], [str(t['tid']) for t in process['threads']])

    def compare_blocks(self, pid, sections):
        """The largest, the names and the leaks, with what `heap` says of all."""
        lines = run('heap', '-q', '--pid', pid, '--json', '--allocations', self.container).stdout.splitlines()
        blocks = [b for b in map(json.loads, lines) if b['state'] == 'busy' and b['place'] != 'own']
        sizes = {b['address']: b['requested'] or b['size'] for b in blocks}
        largest = {row[0]: number(row[2]) for row in sections['largest'][0][1:]}
        self.assertEqual(largest, {address: sizes[address] for address in largest})
        self.assertEqual(sorted(largest.values(), reverse=True), sorted(sizes.values(), reverse=True)[:20])
        for row in sections['largest'][0][1:]:
            first = int(row[0], 16) % 4096
            self.assertEqual(number(row[6]), (first + max(number(row[2]), 1) + 4095) // 4096)
            self.assertLessEqual(number(row[5]), number(row[6]))
        dns = self.ask('heap', pid, '--dns')
        said = [(r['name'], r['type'], r['data'] or '-', r['address']) for r in dns['records']]
        said += [(r['name'], 'no record', '-', r['entry']) for r in dns['unanswered']]
        names = sections.get('names', [[]])[0][1:]
        self.assertEqual([(*row[:3], row[6]) for row in names], said[:200])
        leaks = self.ask('heap', pid, '--leaks')
        text, rows = self.leaks, sections['leaks'][0][1:] if sections['leaks'] else []
        self.assertIn(f"{leaks['unreferenced_blocks']:,} of {leaks['busy_blocks']:,} busy block", text)
        self.assertEqual('none is certain' in text, not leaks['all_read'] and leaks['unreferenced_blocks'] > 0)
        self.assertEqual([(row[0], number(row[1]), number(row[2]), row[3]) for row in rows],
                         [(g['heap'], g['size'], g['blocks'], g['addresses'][0]) for g in leaks['groups'][:20]])

    def ask_heap_pages(self, kept, everything, code):
        """What `heap --pages` says of the same, as JSON and as a table that fits a terminal."""
        said = self.ask('heap', PAPER, '--pages')
        rows = {h['address']: h['counts'] for h in said['heaps']}
        rows['all'] = said['all_heaps']
        expected = {name.split(' ')[0]: row for name, row in kept.items()} | {'all': everything}
        self.assertEqual({name: dict(c['states'], safe=c['data_trust']['safe'], risk=c['data_trust']['at-risk'])
                          for name, c in rows.items()}, expected)
        self.assertEqual(said['process'], self.ask('vad', PAPER, '--pages')['counts'])
        done = run('heap', '-p', PAPER, '--pages', self.container)
        self.assertEqual(done.returncode, code)
        lines = done.stdout.decode().splitlines()
        self.assertLess(max(map(len, lines)), 80)
        shown = [s for s in STATES.values() if everything[s]]
        columns = shown + ['safe', 'risk']
        table = {n: [str(sum(row[s] for s in shown))] + [str(row[c]) for c in columns] for n, row in expected.items()}
        self.assertEqual({f[0]: f[1:] for f in map(str.split, lines[3:-1])}, table)
        self.assertEqual(lines[-1], 'no page is: ' + ', '.join(n for n, s in STATES.items() if not everything[s]))

    def test_table_of_the_paper(self):
        """3,286 pages: 457 valid, 144 in transition, 431 in the page file, 2,254 without data."""
        truth = self.machine('cohen2015heaps,live_files=1')
        page, sections = self.page(PAPER)
        self.assertEqual(self.headline, '✓ 1,032 of 1,032 heap pages with data are safe')
        self.assertIn('Its 12 heaps have data in 1,032 pages. All of them are in this container '
                      '(457 valid, 144 transition, 431 page file).', self.outcome)
        self.assertIn('2,254 more pages have no data', self.outcome)
        pages, walks = sections['heaps']
        kept = self.states(pages)
        everything = kept.pop('all heaps')
        self.assertEqual({n: x for n, x in everything.items() if x},
                         {'valid': 457, 'transition': 144, 'page_file': 431, 'safe': 1032,
                          'demand_zero': 193, 'reserved': 2061})
        self.ask_heap_pages(kept, everything, 0)
        sizes, busy, keys = {}, {}, {}
        heaps = {row[2]: row[3] for row in truth if row[0] == 'heap' and row[1] == str(PAPER)}
        for row in truth:
            if row[1:2] != [str(PAPER)]:
                continue
            if row[0] == 'heap-region':
                sizes[row[2]] = sizes.get(row[2], 0) + (int(row[4], 0) - int(row[3], 0) + 1) // 4096
            elif row[0] == 'heap':
                keys[row[3]] = row[4]
            elif row[0] == 'allocation' and row[6] != 'own' and row[7] != 'free':
                busy[heaps[row[2]]] = busy.get(heaps[row[2]], 0) + 1
        self.assertEqual({name.split(' ')[0]: sum(k[s] for s in STATES.values()) for name, k in kept.items()},
                         {heaps[i]: n for i, n in sizes.items()})
        self.assertEqual({row[0].split(' ')[0]: number(row[3]) for row in walks[1:]}, busy)
        self.assertEqual({row[0].split(' ')[0]: row[1].split(' ')[-1] for row in walks[1:]}, keys)
        self.compare(PAPER, sections)
        self.assertIn('No page was found that is: compressed, not captured, unknown.', page.text('map'))

    def test_without_the_page_file(self):
        """What is lost is said first, and heaps that are not found are not said not to be there."""
        self.machine('cohen2015heaps,live_files=0')
        page, sections = self.page(PAPER, codes=(3,))
        kept = self.states(sections['heaps'][0])
        heaps = kept.pop('all heaps')
        self.ask_heap_pages(kept, heaps, 3)
        lost = heaps['not_captured']
        self.assertGreater(lost, 100)
        safe = heaps['valid'] + heaps['transition']
        self.assertEqual(self.headline, f'! In the heaps found, {safe:,} of {safe + lost:,} pages with data are safe')
        self.assertIn(f'{lost} are not: it is known where they were, but that was not captured.', self.outcome)
        self.assertIn('Its list of heaps cannot be read to its end', self.outcome)
        self.assertNotIn('All of them', self.outcome)
        self.assertEqual(self.states(sections['map'][0])['the process']['not_captured'], 960)
        self.compare(PAPER, sections)

    def test_every_process(self):
        """Of a machine that went on, with segment heaps; System has no heaps."""
        truth = self.machine('desktop,ram=128M,allocated=40M,resident=24M,trimmed=8M,others=30M,processes=6,cache=8M,'
                             'pressure=20,bandwidth=80M,pagefile0=96M,pagefile1=0,windows=10,build=19045,'
                             'inside=1,heaps=3,segment_heap=1,live_files=1,activity=300')
        pids = [row[1] for row in truth if row[0] == 'process']
        heaps, without, findings = 0, 0, 0
        for pid in pids:
            with self.subTest(pid=pid):
                page, sections = self.page(pid, codes=(0, 3))
                if 'map' not in sections:
                    self.assertEqual(self.headline, '✗ No page with data was found')
                    without += 1
                    continue
                self.compare(pid, sections)
                if not sections['heaps']:
                    self.assertIn('No heap was found', page.text('heaps'))
                    self.assertIn('No data of a heap was found.', self.outcome)
                heaps += bool(sections['heaps'])
                if 'Finding' in self.outcome:
                    findings += 1
                    # What somebody looks for comes first, by name, and colours the box.
                    self.assertRegex(self.outcome, r'^class="outcome (fair|bad)"[^!✗]*! Finding: \d')
                    self.assertLess(self.outcome.index('Finding'), self.outcome.index(self.headline[2:]))
                    bad = [m for m in self.ask('process', pid)['modules'] if m['finding']]
                    for m in bad[:3]:
                        self.assertIn(m['path'] or m['base'], self.outcome)
        self.assertGreater(heaps, 2)
        self.assertGreater(without, 0)
        self.assertGreater(findings, 0)

    def test_leaks_of_the_text(self):
        """The eight blocks of "Leak Checking"; nothing is lost, so the page says so."""
        self.machine('leaks2010')
        _, sections = self.page(444)
        self.assertIn('8 of 477 busy blocks', self.leaks)
        self.assertNotIn('certain', self.leaks)
        self.compare_blocks(444, sections)

    def test_an_image_is_not_judged(self):
        self.machine('cohen2015heaps,live_files=0')
        raw = self.at / 'image.raw'
        self.assertEqual(run('export', '-q', '-o', raw, '--format', 'raw', self.container).returncode, 0)
        image = self.at / 'image.rsz'
        self.assertEqual(run('acquire', '-q', '-s', f'file:{raw}', '-o', image).returncode, 0)
        _, sections = self.page(PAPER, codes=(3,), file=image)
        self.assertRegex(self.headline, r'^! In the heaps found, [\d,]+ of [\d,]+ pages with data are in this container$')
        self.assertIn('it is not known whether its pages match', self.outcome)
        self.assertNotIn('safe', sections['map'][0][0])

    def refused(self, code, *args):
        done = run('report', *args, '-f', '-o', self.at / 'refused.html')
        self.assertEqual((done.returncode, done.stderr.count(b'\n')), (code, 1), done.stderr)
        self.assertFalse((self.at / 'refused.html').exists())
        return done.stderr.decode()

    def test_refused_in_one_line(self):
        linux = self.at / 'linux.rsz'
        linux.write_bytes(report_data.container())
        self.assertIn('not from Windows', self.refused(9, '--pid', 7, linux))
        self.machine('cohen2015heaps')
        self.assertIn('6', self.refused(9, '--pid', 6, self.container))
        self.assertIn('one FILE', self.refused(2, '--pid', 4, self.container, linux))
        self.assertIn('--figure', self.refused(2, '--pid', 4, '--figure', 'timeline', self.container))
        self.assertIn('--pid', self.refused(2, '--tables', 'after', self.container))
        self.assertIn('--pid', self.refused(2, '--force-symbols', self.container))

    def test_name_in_a_folder(self):
        self.machine('cohen2015heaps,live_files=1')
        done = run('report', '-q', '--pid', PAPER, '-o', self.at, self.container)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.at / f'machine-{PAPER}.html').exists())


if __name__ == '__main__':
    unittest.main()
