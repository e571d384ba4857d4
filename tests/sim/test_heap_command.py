#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
ramseal heap on simulated machines, whose own account of every allocation it is compared with.

	test_heap_command.py RAMSEAL
"""

import csv
import io
import json
import os
import re
import sys
import unittest
from operator import itemgetter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import heap_truth  # noqa: E402: beside this
from machine_case import BUILDS, WITH_WOW64, HeapCase, run  # noqa: E402
from sampled import sample  # noqa: E402

HEAPS = 'ram=96M,processes=4,heaps=3,heap_blocks=5000,heap_lfh=40,heap_leaks=20'


# agent/examine/heap/heap_checks.c
UNNAMED = 'known only by the headers of its blocks: where it begins is not known, and it may be a copy of a heap'


class Heap(HeapCase):
    def acquire(self, settings):
        super().acquire(f'{HEAPS},{settings}')
        return heap_truth.Heaps(self.account)

    def test_every_allocation_of_every_build(self):
        for build, narrow in [(b, 0) for b in BUILDS] + [(b, 2) for b in WITH_WOW64]:
            with self.subTest(build=build, narrow=narrow):
                truth = self.acquire(f'windows={7 if build == 7601 else 10},build={build},wow64={narrow}')
                self.assertEqual(sum({h[-1] for h in truth.heaps[pid].values()} == {'32', '64'} for pid in truth.pids),
                                 narrow)
                for pid in truth.pids:
                    got = self.blocks(pid)
                    self.assertEqual({a: (r['requested'], r['place']) for a, r in got.items()}, truth.busy[pid])
                    said = json.loads(self.ask(pid, '--json'))
                    self.assertEqual([int(h['address'], 0) for h in said['heaps']], sorted(truth.heaps[pid]))
                    for h in said['heaps']:
                        self.assertEqual((h['kind'], h['found'], h['finding']), ('nt', True, None))
                        # From 24H2 on the PEB lists the first alone, and a ring has all.
                        self.assertEqual((h['listed'], h['chained']),
                                         (build < 26100 or h['index'] == 1, build >= 26100))
                        self.assertEqual((h['key'], str(h['bits'])),
                                         itemgetter(3, -1)(truth.heaps[pid][int(h['address'], 0)]))
                        for check in h['checks']:
                            self.assertEqual(check['heap_counts'], check['blocks_count'], check)
                        self.assertEqual(h['contradictions'] + h['lost'] + h['unlinked'], 0)

    def test_who_asked_for_each_block(self):
        for build in BUILDS:
            with self.subTest(build=build):
                truth = self.acquire(f'windows={7 if build == 7601 else 10},build={build},heap_ust=1,heap_blocks=2000')
                for pid in truth.pids:
                    got = self.blocks(pid)
                    self.assertEqual({a: (r['requested'], r['place']) for a, r in got.items()}, truth.busy[pid])
                    said = {a: r['trace'] and [int(f['address'], 0) for f in r['trace']] for a, r in got.items()}
                    entries, traces = truth.entries[pid], truth.traces[pid]
                    self.assertEqual(said, {a: entries[traces[a]] if traces[a] else None for a in got})
                    self.assertTrue(any(said.values()) and not all(said.values()))
                    self.assertTrue(all(f['module'] for r in got.values() for f in r['trace'] or ()))
                    leaks, found = self.leaks(pid)
                    self.assertEqual(found, truth.leaked.get(pid, set()))
                    for g in leaks['groups']:
                        trace = g['trace'] and [int(f['address'], 0) for f in g['trace']]
                        self.assertEqual({tuple(said[int(a, 0)] or ()) for a in g['addresses']}, {tuple(trace or ())})
                traced = next(a for a in got if said[a])
                shown = self.ask(pid, '--show', hex(traced)).splitlines()
                frames = [f"    {int(f['address'], 0):#014x}  {f['module']}+0x{f['offset']:x}"
                          for f in got[traced]['trace']]
                self.assertEqual(shown[2:3 + len(frames)], ['allocated by', *frames])

    def test_csv_is_the_same(self):
        truth = self.acquire('windows=10')
        pid = truth.pids[0]
        rows = list(csv.DictReader(io.StringIO(self.ask(pid, '--allocations', '--csv'))))
        text = self.ask(pid, '--allocations') + self.ask(pid)
        self.assertNotRegex(text, r'(?m) $|\b1 (segments|blocks|uncommitted ranges)\b')
        self.assertIn(f"within {rows[0]['container']};", self.ask(pid, '--show', rows[0]['address']))
        got = {int(r['address'], 0): (int(r['requested']), r['place']) for r in rows if r['state'] == 'busy'}
        self.assertEqual(got, truth.busy[pid])
        self.assertEqual(len(self.ask(pid, '--allocations').splitlines()), 1 + len(rows))

    def test_without_the_page_file_nothing_is_invented(self):
        for settings in sample(('build=19045', 'build=19045,heap_ust=1', 'build=26100', 'build=19045,wow64=4',
                                'build=26100,wow64=4')):
            with self.subTest(settings=settings):
                self.check_without_the_page_file(settings)

    def check_without_the_page_file(self, settings):
        truth = self.acquire(f'windows=10,{settings},seed=1,live_files=0,region_paged=30,region_transition=10')
        there = seen = tried = 0
        for pid in truth.pids:
            done = run('heap', self.container, '--pid', pid, '-A', '--json')
            if done.returncode == 9:
                continue
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertEqual(done.stderr.count(b'\n'), 1)
            rows = [json.loads(line) for line in done.stdout.splitlines()]
            for r in rows:
                if r['state'] == 'busy':
                    requested, place = truth.busy[pid][int(r['address'], 0)]
                    self.assertEqual(r['place'], place)
                    self.assertIn(r['requested'], (requested, None))
            there += len(truth.busy[pid])
            seen += sum(r['state'] == 'busy' for r in rows)
            said = json.loads(self.ask(pid, '--json', codes=(3,)))
            self.assertLessEqual({int(h['address'], 0) for h in said['heaps']}, set(truth.heaps[pid]))
            # A list that is lost in part says nothing against a heap. One that is lost with a heap's first page
            # leaves the headers of its blocks.
            self.assertLessEqual({h['finding'] for h in said['heaps']}, {None, UNNAMED})
            if said['vads_whole']:  # else nobody knows which pages are only reserved
                tried += self.check_lost(truth, pid, said['heaps'], {int(r['address'], 0) for r in rows})
        self.assertTrue(tried)
        self.assertGreater(seen, there / 10)
        self.assertLess(seen, there)

    def check_lost(self, truth, pid, heaps, listed):
        """
        No more of a heap is lost than its pages that cannot be read: one that is only reserved has no block. A large
        block whose header is lost counts as a whole.
        """
        large = [a for a, (_, place) in truth.busy[pid].items() if place == 'virtual' and a not in listed]
        vads = json.loads(run('vad', '-q', self.container, '-p', pid, '--pages', '--json').stdout)['vads']
        for h in heaps:
            regions = truth.regions[pid][truth.heaps[pid][int(h['address'], 0)][1]]
            states = [v['counts']['states'] for v in vads if any(a <= int(v['start'], 0) <= b for a, b in regions)]
            self.assertLessEqual(h['lost'], 4096 * sum(s['not_captured'] + s['unknown'] for s in states) + sum(
                b - a + 1 for a, b in regions if any(a <= address <= b for address in large)))
        return len(heaps)

    def test_where_the_bytes_of_a_block_are(self):
        """Beside what `read` says of each page."""
        states = {'valid': 'valid', 'transition': 'transition', 'page-file': 'page_file', 'demand-zero': 'demand_zero'}
        truth = self.acquire('windows=10,region_paged=30,region_transition=20,heap_blocks=2000')
        pid = truth.pids[0]
        got = self.blocks(pid)
        rows = {int(r['address'], 0): r for r in csv.DictReader(io.StringIO(self.ask(pid, '-A', '--csv')))}
        seen, across = set(), 0
        for heap in truth.heaps[pid]:
            mine = sorted(a for a, r in got.items() if int(r['heap'], 0) == heap and r['place'] != 'virtual')
            first, last = mine[0] & ~4095, mine[-1] + got[mine[-1]]['requested']
            done = run('read', '-q', '-j', '-p', pid, '-a', first, '-n', last + 1 - first, self.container)
            pages = {int(r['va'], 0) + 4096 * i: r['state'] for r in map(json.loads, done.stdout.splitlines())
                     if 'va' in r for i in range(r['pages'])}
            for a in mine:
                size, said = got[a]['requested'], {}
                for va in range(a & ~4095, a + size, 4096):
                    state = states[pages[va]]
                    said[state] = said.get(state, 0) + min(va + 4096, a + size) - max(va, a)
                said = {n: b for n, b in said.items() if b}
                self.assertEqual((got[a]['from'], got[a]['unread']), (said, 0))
                self.assertEqual({n: int(rows[a][n]) for n in said}, said)
                seen |= set(said)
                across += len(said) > 1
                if len(said) > 1 and across < 4:
                    words = ', '.join(f'{said[n]} {n.replace("_", " ")}' for n in states.values() if n in said)
                    self.assertTrue(self.ask(pid, '--show', a).splitlines()[1].endswith(f'; bytes: {words}'))
        self.assertLessEqual({'valid', 'transition', 'page_file'}, seen)
        self.assertTrue(across)

    def test_referrers_and_show(self):
        for settings in sample(('windows=7,wow64=1', 'windows=10', 'windows=10,build=26100,wow64=1')):
            with self.subTest(settings=settings):
                self.check_referrers_and_show(settings)

    def check_referrers_and_show(self, settings):
        truth = self.acquire(settings)
        pid = truth.pids[-1]
        busy = truth.busy[pid]
        tried = 0
        for address, reference in sorted(truth.referrers[pid].items())[:200:20]:
            rows = [json.loads(line) for line in self.ask(pid, '--referrers', hex(address), '--json').splitlines()]
            said = {int(r['reference'], 0): r for r in rows}
            if reference not in said:  # a pointer into the block, not to its begin
                continue
            tried += 1
            row = said[reference]
            if row.get('state') != 'busy':  # of a module, or of a block that was freed since
                continue
            holder = int(row['address'], 0)
            self.assertIn(holder, busy)
            self.assertEqual(row['offset'], reference - holder)
            shown = json.loads(self.ask(pid, '--show', hex(reference), '--json'))
            self.assertEqual((int(shown['address'], 0), shown['offset']), (holder, reference - holder))
            word = next((w for w in shown['words'] if w['offset'] == reference - holder), None)
            if word:
                self.assertEqual(int(word['value'], 0), address)
                self.assertIn(hex(address) if holder != address else 'this block', word['note'])
                self.assertIn(f'+0x{word["offset"]:03x}', self.ask(pid, '--show', hex(reference)))
        self.assertGreater(tried, 3)
        # What the program keeps outside of its heaps, in the data of its modules or elsewhere.
        roots = sorted(set(busy) - set(truth.referrers[pid]) - truth.leaked[pid])
        outside = 0
        for address in roots[:100:10]:
            rows = [json.loads(line) for line in self.ask(pid, '--referrers', hex(address), '--json').splitlines()]
            outside += any('address' not in r and r['outside']['address'] == r['reference'] for r in rows)
        self.assertTrue(outside)
        free = next(json.loads(line) for line in self.ask(pid, '-A', '--json').splitlines() if '"free"' in line)
        self.assertEqual(json.loads(self.ask(pid, '--show', free['address'], '--json'))['state'], 'free')
        self.assertIn(f" into a free block of {free['size']} bytes at ", self.ask(pid, '--show', free['address']))

    def test_content_is_found(self):
        truth = self.acquire('windows=10')
        pid = truth.pids[0]
        across = [a for a, (size, _) in truth.busy[pid].items() if size >= 64 and a % 4096 > 4096 - 32]
        inside = [a for a, (size, _) in truth.busy[pid].items() if size >= 64 and a % 4096 < 2048]
        self.assertTrue(across and inside)
        texts = 0
        drawn = sample(across[:4] + inside[:12])
        for address in [*drawn, *inside[12:]]:
            if texts and address not in drawn:
                break  # the others are there in case that none of the drawn has a text
            done = run('read', '-q', self.container, '-p', pid, '-a', address, '-n', 64, '-o', '-')
            self.assertEqual(len(done.stdout), 64, done.stderr)
            said = [json.loads(r) for r in self.ask(pid, '--find', 'hex:' + done.stdout.hex(), '--json').splitlines()]
            self.assertIn(address, [int(r['reference'], 0) for r in said])
            for r in said:
                if int(r['reference'], 0) == address:
                    self.assertEqual((int(r['address'], 0), r['offset']), (address, 0))
            for text, step in ((re.search(rb'[a-zA-Z]{6,}', done.stdout), 1),
                               (re.search(rb'(?:[a-zA-Z]\0){6,}', done.stdout), 2)):
                if text:
                    texts += 1
                    where = hex(address + text.start())[2:]
                    self.assertIn(where, self.ask(pid, '--find', text.group()[::step].decode()))
        self.assertTrue(texts)
        self.assertEqual(self.ask(pid, '--find', 'no such text is anywhere in there'), '')
        for bad in ('', 'hex:', 'hex:4', 'hex:4g', 'hex:' + '41' * 257, 'x' * 129, '€' * 86):
            done = run('heap', self.container, '--pid', pid, '--find', bad)
            self.assertEqual((done.returncode, done.stderr.count(b'\n')), (2, 1), done.stderr)

    def test_what_was_not_searched_is_told(self):
        """A text that is nowhere: in a whole container, and in one without its page file."""
        for live in (1, 0):
            truth = self.acquire(f'windows=10,seed=1,live_files={live},region_paged=30,region_transition=10')
            tried = sum(self.check_search(pid, live) for pid in truth.pids)
            self.assertTrue(tried)

    def check_search(self, pid, live):
        vad = run('vad', '-q', self.container, '-p', pid, '--pages', '--json')
        if vad.returncode:  # which pages there are is not known
            return False
        done = run('heap', self.container, '-p', pid, '--find', 'no such text', '--log-json')
        said = json.loads(done.stderr.splitlines()[0])
        self.assertEqual((done.stdout, said['places'], done.returncode), (b'', 0, 0 if live else 3))
        self.assertGreater(said['pages_searched'], 100)
        self.assertEqual(bool(said['pages_lost']), not live)
        states = json.loads(vad.stdout)['counts']['states']
        self.assertLessEqual(said['pages_lost'], states['not_captured'] + states['unknown'])
        last = json.loads(done.stderr.splitlines()[-1])['message']
        self.assertEqual(f"{said['pages_lost']} pages could not be searched" in last, not live)
        return True

    def test_resolvers_cache_is_found(self):
        done = run('acquire', '-q', '--force', '-s', 'sim:cohen2015heaps', '-o', self.container)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(run('heap', self.container, '-p', 1148, '--dns').returncode, 3) # no page file here
        for row in json.loads(self.ask(1148, '--dns', '--json', codes=(3,)))['records']:
            self.assertRegex(row['name'], r'^(www\.example\.com|front\.cdn\.example\.net|host[0-9]+\.example\.org)$')
        self.acquire('windows=7')
        pid = heap_truth.Heaps(self.account).pids[0]
        self.assertEqual(json.loads(self.ask(pid, '--dns', '--json'))['records'], [])
        done = run('acquire', '-q', '--force', '-s', 'sim:cohen2015heaps,live_files=1', '-o', self.container)
        cache = json.loads(self.ask(1148, '--dns', '--json'))
        rows = cache['records']
        # The paper's figure has the table at 51012f0 and the entry at 5101f60; all that is there has a record.
        self.assertEqual((cache['table'], cache['unanswered']), ('0x51012f0', []))
        self.assertEqual({r['in_table'] for r in rows}, {True})
        self.assertEqual({r['entry'] for r in rows if r['name'] in ('www.example.com', 'front.cdn.example.net')},
                         {'0x5101f60'})
        said = {(r['name'], r['type'], r['data']) for r in rows}
        self.assertEqual(said, {(f'host{i}.example.org', 'A', f'192.0.0.{i + 1}') for i in range(12)} |
                         {('www.example.com', 'CNAME', 'front.cdn.example.net'),
                          ('front.cdn.example.net', 'A', '192.0.0.10')})
        self.assertEqual({r['trust'] for r in rows}, {'safe'})  # nothing moves
        linked = {r['name']: r['linked_from'] for r in rows}
        self.assertEqual(linked.pop('front.cdn.example.net'), 'record')  # behind that of www, and in no entry
        self.assertEqual(set(linked.values()), {'block'})
        lines = self.ask(1148, '--dns').splitlines()
        self.assertEqual(lines[0], '14 DNS records, 0 names without one; table 0x51012f0')
        at = lines.index('www.example.com              0x000005101f60 table      -')
        self.assertEqual(lines[at + 1:at + 3], [
            '. www.example.com            0x000001244fc0 CNAME   3600 front.cdn.example.net',
            '. front.cdn.example.net      0x0000011e2b30 A       3600 192.0.0.10'])
        self.assertEqual(sum(line.endswith(' table      -') for line in lines), 13)
        self.assertEqual(sum(line.startswith('. ') for line in lines), 14)

    def leaks(self, pid, codes=(0,)):
        said = json.loads(self.ask(pid, '--leaks', '--json', codes=codes))
        found = {int(a, 0) for g in said['groups'] for a in g['addresses']}
        self.assertEqual(said['unreferenced_blocks'], len(found))
        seen = said['searched']
        self.assertGreater(seen['pages'], said['root_pages'])
        self.assertEqual(seen['safe'] + seen['at_risk'], seen['pages'])
        self.assertLess(seen['start_ns'], seen['end_ns'])
        self.assertRegex(self.ask(pid, '--leaks', codes=codes),
                         f"(?m)^searched: {seen['pages']} pages, captured over [0-9.]+ s; {seen['safe']} safe, "
                         f"{seen['at_risk']} at risk, 0 not judged$")
        for name in ('unreferenced', 'inside', 'by_leaked'):
            groups = said['inside_groups' if name == 'inside' else 'groups']
            count = 'by_leaked' if name == 'by_leaked' else 'blocks'
            self.assertEqual(said[f'{name}_blocks'], sum(g[count] for g in groups))
            self.assertEqual(said[f'{name}_bytes'], sum(g['size'] * g[count] for g in groups))
        return said, found

    def test_leaks_are_those_of_the_program(self):
        for settings in sample(('windows=7', 'windows=10', 'windows=10,build=26100', 'windows=7,wow64=2',
                                'windows=10,wow64=2', 'windows=10,build=26100,wow64=2')):
            truth = self.acquire(f'{settings},region_paged=30,region_transition=10')
            for pid in truth.pids:
                said, found = self.leaks(pid)
                if any(h[-1] == '32' for h in truth.heaps[pid].values()):
                    # Any four bytes, of code as well, can look like a pointer to one.
                    self.assertLessEqual(found, truth.leaked[pid])
                    self.assertGreaterEqual(len(found), 0.8 * len(truth.leaked[pid]))
                else:
                    self.assertEqual(found, truth.leaked[pid])
                self.assertTrue(said['all_read'])
                self.assertEqual(said['busy_blocks'], len(truth.busy[pid]))
            text = self.ask(pid, '--leaks').splitlines()
            self.assertTrue(text[0].startswith(f'{len(found)} of '), text[0])
            self.assertNotIn('candidates', ' '.join(text))
            groups = re.findall(r'^0x[0-9a-f]+ +[0-9]+ +([0-9]+) ', '\n'.join(text).split(' further blocks')[0], re.M)
            self.assertEqual(sum(map(int, groups)), len(found))

    def test_without_the_page_file_leaks_are_at_most(self):
        truth = self.acquire('windows=10,live_files=0,region_paged=30,region_transition=10')
        tried = 0
        for pid in truth.pids:
            done = run('heap', self.container, '--pid', pid, '--leaks', '--json')
            if done.returncode == 9:
                continue
            self.assertEqual(done.returncode, 3, done.stderr)
            said = json.loads(done.stdout)
            found = {int(a, 0) for g in said['groups'] for a in g['addresses']}
            self.assertFalse(said['all_read'])
            heaps = json.loads(self.ask(pid, '--json', codes=(3,)))['heaps']
            self.assertGreaterEqual(said['heaps_lost'], sum(h['kind'] == 'unreadable' or h['lost'] > 0 for h in heaps))
            self.assertLessEqual(said['heaps_lost'], len(heaps))
            self.assertLessEqual(found, set(truth.busy[pid]))
            # What is leaked and known is among them: that they are at most.
            known = {a for a, r in self.blocks(pid, codes=(3,)).items() if r['state'] == 'busy'}
            self.assertLessEqual(truth.leaked[pid] & known, found)
            text = self.ask(pid, '--leaks', codes=(3,))
            self.assertIn('at most these are leaked; perhaps none', text)
            self.assertEqual('\ncandidates, none of them certain:\n' in text, bool(found))
            tried += 1
        self.assertTrue(tried)

    def test_wrong_uses(self):
        truth = self.acquire('windows=10')
        pid = truth.pids[0]
        for args, code, text in (
                (['--pid', pid, '--csv'], 2, '--csv goes with'), ([], 2, 'needs --pid'),
                (['--pid', pid, '-A', '--show', '1'], 2, 'takes one of'),
                (['--pid', pid, '-A', '--leaks'], 2, 'takes one of'),
                (['--pid', pid, '--show', '0x100'], 9, 'in no known allocation'), (['--pid', 5], 9, 'no process')):
            done = run('heap', self.container, *args)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(text, done.stderr.decode())
            self.assertEqual(done.stderr.count(b'\n'), 1)


if __name__ == '__main__':
    unittest.main(verbosity=2)
