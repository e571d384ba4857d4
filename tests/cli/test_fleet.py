#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`ramseal report` on the summaries of many hosts: its numbers are the truth, whatever is neither a summary is named,
and nothing gets through that a host says. Usage: test_fleet.py RAMSEAL
"""

import collections
import concurrent.futures
import copy
import json
import os
import random
import re
import resource
import signal
import struct
import subprocess
import time
import unittest
from pathlib import Path

import test_report
from report_data import EVIL, HIDDEN
from test_report import Case, Page, needs_simulator, run

RAMSEAL = test_report.RAMSEAL
HOSTS = 200
SIM = 'sim:cohen2015,ram=64M,resident=8M,allocated=16M,trimmed=4M,others=4M,cache=2M,pagefile0=24M,live_files=1'
KERNELS = ['6.1.0-49-amd64', '6.12.9-amd64', '5.14.0-427.el9']
WORDS = {0: 'complete', 3: 'some pages could not be read', 4: 'no usable source', 5: 'the source failed midway',
         6: 'the output failed', 8: 'interrupted', 9: 'the input cannot be opened', 99: 'so it says'}
ADVICE = {0: 'ramseal verify', 3: 'ramseal info', 4: 'ramseal check', 5: 'another --source', 6: 'make room',
          8: 'if nobody meant to stop it', 9: 'check the file', 99: 'not known: read the log'}


class Fleet(Case):
    def page_of(self, *args, code=0, **more):
        return self.page(*args, code=code, **more)

    def rows(self, text, section):
        """Cells of a section's table."""
        body = text[re.search(f'<section[^>]* id="{section}"', text).start():]
        body = body[:body.index('</section>')]
        rows = re.findall(r'<tr>(.*?)</tr>', body.split('<tbody>')[1], re.S)
        return [[re.sub(r'<[^>]*>', '', cell).strip()
                 for cell in re.findall(r'<t[hd][^>]*>(.*?)</t[hd]>', row, re.S)] for row in rows]


class Real(Fleet):
    """200 hosts, each with an acquisition of its own; the few that fail end in every way there is."""
    def acquire(self, i, kind):
        at = self.at / f'{i}'
        at.mkdir()
        options, more, source = [], {}, f'file:{self.image}'
        if kind == 'gaps':
            source = f'file:{self.cut}'
        elif kind == 'raw':
            options = ['--format', 'raw']
        elif kind == 'no source':
            source = 'crash'
        elif kind == 'absent':
            source = 'file:absent'
        elif kind == 'sim':
            source = f'{SIM},seed={i}'
        elif kind == 'full':
            source = f'file:{self.large}'
            more['preexec_fn'] = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, 4 << 20))
        elif kind == 'interrupted':
            os.mkfifo(at / 'out')
        command = [RAMSEAL, 'acquire', '-q', '-s', source, '-o', at / 'out', '--summary', at / 'summary.json', *options]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, **more) as p:
            while kind == 'interrupted' and p.poll() is None and not list(at.glob('summary*')):
                time.sleep(0.05)  # before it has begun there is nothing to tell of
            while kind == 'interrupted' and p.poll() is None:
                time.sleep(0.05)
                p.send_signal(signal.SIGTERM)
        if kind == 'sim':
            (at / 'info.json').write_bytes(run('info', '--json', at / 'out').stdout)
        if (at / 'out').is_file():
            (at / 'out').unlink()
        return p.returncode

    def kind_of(self, i):
        special = {3: 'gaps', 7: 'no source', 11: 'absent', 17: 'full', 23: 'interrupted', 29: 'raw'}
        if i < 3 and os.environ.get('RAMSEAL_SIMULATOR') != '0':
            return 'sim'
        return special.get(i % 40, 'usual') if i < 80 else 'usual'

    def rename(self, i, code):
        """They all ran here; some get an exit code that nothing here can have."""
        path = self.at / f'{i}/summary.json'
        doc = json.loads(path.read_text())
        self.assertEqual(doc['exit_code'], code)
        doc['machine']['host'].update(name=f'host{i:03}', boot_id=f'{i:036}')
        doc['machine']['os'].update(kernel='Linux', kernel_release=KERNELS[i % 3 and i % 7 % 3])
        if i in (90, 91):
            doc.update(exit_code=5 if i == 90 else 99, outcome='so it says', error='broken on purpose')
        if i == 150:
            doc['machine']['host'].update(name='host149')
        if i == 160:
            doc['machine']['host'].update(boot_id=f'{161:036}')
        path.write_text(json.dumps(doc))
        return doc

    def test_200_hosts(self):
        self.image, self.cut, self.large = self.at / 'image', self.at / 'cut', self.at / 'large'
        self.image.write_bytes(random.Random(1).randbytes(16 << 12))
        self.large.write_bytes(random.Random(2).randbytes(8 << 20))
        self.cut.write_bytes(struct.pack('<IIQQQ', 0x4C694D45, 1, 0x1000, 0x20fff, 0) + bytes(65536))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            codes = list(pool.map(lambda i: self.acquire(i, self.kind_of(i)), range(HOSTS)))
        docs = [self.rename(i, code) for i, code in enumerate(codes)]
        truth = collections.Counter(d['exit_code'] for d in docs)
        self.assertEqual(set(truth), set(WORDS))
        folders = [self.at / f'{i}' for i in range(HOSTS)]
        text = self.write(*folders)
        page = Page(text)
        self.assertEqual(page.faults, [])
        self.check_alone(text, page)
        self.check_head(page, truth)
        self.check_codes(text, truth)
        self.check_failures(text, docs)
        self.check_order(text, docs)
        self.check_groups(text, docs)
        self.assertEqual(len(self.rows(text, 'hosts')), HOSTS)
        self.assertNotIn('id="unread"', text)

    def check_head(self, page, truth):
        head = page.text('')
        self.assertIn(f'{truth[0]} of {HOSTS} complete', head)
        self.assertIn(f'{truth[3]} are complete, with gaps', head)
        self.assertIn(f'{HOSTS - truth[0] - truth[3]} are not complete', head)

    def check_codes(self, text, truth):
        rows = self.rows(text, 'codes')
        self.assertEqual([(int(row[0].split()[1]), int(row[3].split()[0])) for row in rows], sorted(truth.items()))
        for code, means, advice, _ in rows:
            self.assertIn('not known' if code[2:] == '99' else WORDS[int(code[2:])], means)
            self.assertIn(ADVICE[int(code[2:])], advice)

    def check_failures(self, text, docs):
        rows = self.rows(text, 'failures')
        failed = {d['machine']['host']['name']: d for d in docs if d['exit_code']}
        self.assertEqual({row[0] for row in rows}, set(failed))
        self.assertEqual(len(rows), len(failed))
        for host, outcome, why, missing in rows:
            d = failed[host]
            self.assertIn(f'exit {d["exit_code"]}', outcome)
            if d['exit_code'] != 99:  # what a code means stands once, in its own table
                self.assertNotIn(WORDS[d['exit_code']], outcome)
            self.assertIn(re.sub(r'[&<>"\'].*', '', d['error'])[:100], why)
            if d['exit_code'] == 3:
                self.assertEqual(missing, f'{d["missing"]["unreadable_pages"]} pages unreadable')
        # What is worst comes first.
        self.assertEqual([row[1].startswith('!') for row in rows], sorted(row[1].startswith('!') for row in rows))

    def check_order(self, text, docs):
        # Every host that has both numbers has a mark, and so has no other.
        pages = [d.get('pages') or {'data': 0, 'zero': 0} for d in docs]
        has = [d for d, p in zip(docs, pages)
               if d.get('duration_ns') and (d['memory']['bytes'] if d.get('memory') else p['data'] + p['zero'])]
        marks = re.findall(r'<g><title>(\S+?): ', text)
        self.assertEqual(collections.Counter(marks),
                         collections.Counter([d['machine']['host']['name'] for d in has] * 2))  # wide and narrow
        took = {d['machine']['host']['name']: d['duration_ns'] for d in docs}
        for name, second in (('host000', took['host000']), ('host007', took['host007'])):
            row, = (r for r in self.rows(text, 'hosts') if r[0] == name)
            unit = re.sub(r'[\d.]+ ', '', row[2])
            self.assertAlmostEqual(float(row[2].split()[0]), second / {'s': 1e9, 'ms': 1e6, 'µs': 1e3}[unit],
                                   delta=.06 if unit != 's' else .6)
        if os.environ.get('RAMSEAL_SIMULATOR') == '0':
            return
        smear = {}
        for i in range(3):
            s = json.loads((self.at / f'{i}/info.json').read_text())['smear']
            smear[f'host{i:03}'] = (s['at-risk'] + s['wrong'], s['at-risk'] + s['wrong'] + s['safe'])
        rows = self.rows(text, 'smear')
        self.assertEqual([row[0] for row in rows], sorted(smear, key=lambda h: -smear[h][0] / smear[h][1]))
        for host, doubtful, named in rows:
            self.assertEqual((int(doubtful.split()[0].replace(',', '')), int(named.replace(',', ''))), smear[host])

    def check_groups(self, text, docs):
        kernels = collections.Counter('Linux ' + d['machine']['os']['kernel_release'] for d in docs)
        self.assertEqual({row[0]: int(row[1].split()[0]) for row in self.rows(text, 'kernels')}, kernels)
        twice = [(row[0], row[2]) for row in self.rows(text, 'twice')]
        roots = collections.Counter(d.get('root') for d in docs if d.get('root'))
        self.assertEqual([t for t in twice if t[0] in roots], [(r, str(n)) for r, n in sorted(roots.items()) if n > 1])
        self.assertIn(('host149', '2'), twice)
        self.assertIn((f'{161:036}', '2'), twice)
        self.assertEqual(len([t for t in twice if t[0] not in roots]), 2)


BASE = {'schema': 'ramseal-summary-1', 'exit_code': 0, 'outcome': 'complete', 'error': None, 'duration_ns': 10**9,
        'machine': {'host': {'name': 'web01', 'boot_id': 'b'}, 'os': {'kernel': 'Linux', 'kernel_release': '6.1'}},
        'tool': {'version': '0.1.0'}, 'sealed': True, 'root': '5' * 64, 'bytes_written': 4096, 'output': 'x.rsz',
        'memory': {'bytes': 8192},
        'missing': {'unreadable_pages': 0, 'skipped_pages': 0, 'unacquired_bytes': 0, 'files': 0}}


class Made(Fleet):
    def setUp(self):
        super().setUp()
        self.folder = self.at / 'fleet'
        self.folder.mkdir()

    def put(self, name, content):
        if not isinstance(content, (bytes, str)):
            content = json.dumps(content)
        (self.folder / name).write_bytes(content.encode() if isinstance(content, str) else content)

    def summary(self, name='web01', **more):
        doc = copy.deepcopy(BASE)
        doc['machine']['host'] = {'name': name, 'boot_id': f'boot of {name}'}
        doc.update(more)
        return doc

    def test_one(self):
        self.put('a.json', self.summary())
        for what in (self.folder, self.folder / 'a.json'):
            page = self.page(what)
            self.assertIn('Memory acquisitions of 1 host', page.text(''))
            self.assertIn('All 1 complete', page.text(''))
            self.assertNotIn('failures', page.sections)
            self.assertNotIn('twice', page.sections)

    def test_what_is_no_summary_is_named(self):
        bad = {'empty.json': (b'', 'it is empty'), 'cut.json': (json.dumps(BASE)[:99], 'no JSON'),
               'deep.json': ('[' * 100000, 'nested too deeply'), 'deep2.json': ('{"a":' * 33 + '1' + '}' * 33, 'nested'),
               'twice.json': ('{"schema": "ramseal-summary-1", "schema": 1}', 'duplicate'),
               'large.json': (b' ' * (4 << 20) + b'{}', 'too large'), 'list.json': ('[1]', 'not a ramseal document'),
               'number.json': ('{"schema": 7}', 'not a ramseal document'), 'nul.json': (b'{"schema": "\\u0000"}', 'no JSON'),
               'utf8.json': (b'{"schema": "\xff"}', 'no JSON'), 'other.json': ({'schema': 'ramseal-status-1'}, 'another document'),
               'newer.json': ({'schema': 'ramseal-summary-2'}, 'this version does not know'),
               'evil.json': ({'schema': EVIL}, 'this version does not know'), f'{HIDDEN[:6]}.json': (b'x', 'no JSON')}
        for name, (content, _) in bad.items():
            self.put(name, content)
        self.put('good.json', self.summary())
        self.put('not-json.txt', 'x')
        os.mkfifo(self.folder / 'fifo.json')
        os.symlink('.', self.folder / 'loop')
        text = self.write(self.folder, code=7)
        page = Page(text)
        self.assertEqual(page.faults, [])
        self.check_alone(text, page)
        rows = {Path(row[0]).name: row[1] for row in self.rows(text, 'unread')}
        self.assertEqual(len(rows), len(bad))
        for name, (_, why) in bad.items():
            shown = name.replace('\u202e', '\\u{202e}')
            self.assertIn(why, rows[shown], name)
        self.assertIn('All 1 complete', page.text(''))
        self.assertIn(f'{len(bad) - 1} files are not readable', page.text(''))

    def test_other_documents_are_no_fault(self):
        self.put('a.json', self.summary())
        self.put('check.json', {'schema': 'ramseal-check-1'})
        self.put('a.raw.gaps.json', '{}')
        text = self.write(self.folder)
        self.assertEqual([row[1] for row in self.rows(text, 'unread')], ['another document: &quot;ramseal-check-1&quot;'])

    def test_hostile(self):
        """Names, texts and numbers as bad as they can be, in every member that the page shows."""
        self.put('1.json', self.summary(EVIL, error=EVIL, exit_code=1, output=HIDDEN, root=EVIL))
        self.put('2.json', self.summary(HIDDEN, outcome=EVIL, exit_code=10**15))
        self.put('3.json', self.summary('x' * 100000, exit_code=-5))
        self.put('4.json', {k: EVIL for k in BASE} | {'schema': 'ramseal-summary-1'})
        self.put('5.json', {k: [[]] for k in BASE} | {'schema': 'ramseal-summary-1'})
        self.put('6.json', {'schema': 'ramseal-summary-1'})
        self.put('7.json', self.summary('big', duration_ns='18446744073709551615', bytes_written='99999999999999999999',
                                        memory={'bytes': 2**63 - 1}, exit_code=1.5))
        self.put('8.json', self.summary('bad', duration_ns=-1, memory={'bytes': 2**63 - 1}, exit_code=True,
                                        tool={'version': EVIL, 'sha256': EVIL}))
        self.put('9.json', {'schema': 'ramseal-info-1', 'root': EVIL, 'smear': {'safe': 2**63 - 1, 'at-risk': 2**63 - 1,
                                                                               'wrong': 1}})
        text = self.write(self.folder)
        page = Page(text)
        self.assertEqual(page.faults, [])
        self.check_alone(text, page)
        self.assertNotIn('<script', text)
        self.assertNotIn('\u202e', text)
        self.assertNotIn('\x1b', text)
        self.assertLess(len(text), 100000)
        self.assertEqual(len(self.rows(text, 'hosts')), 8)
        self.assertIn('0 of 8 complete', page.text(''))

    def test_says_complete_and_is_not_sealed(self):
        self.put('a.json', self.summary(sealed=False, root=None))
        page = self.page(self.folder)
        self.assertIn('0 of 1 complete', page.text(''))
        self.assertIn('but not whole', page.text('failures'))
        self.assertIn('not known', page.text('failures'))

    def test_mutations(self):
        """Bytes changed at random: each file is a host or is named, and the page is whole."""
        seed = random.randrange(1 << 32)
        r = random.Random(seed)
        good = json.dumps(self.summary(EVIL, error='why')).encode()
        for i in range(400):
            bad = bytearray(good)
            for _ in range(r.randrange(1, 6)):
                bad[r.randrange(len(bad))] = r.choice(b'{}[]",:\\0e-\x00\xff<')
            self.put(f'{i}.json', bytes(bad))
        out = self.at / 'out.html'
        done = run('report', '-q', '-f', '-o', out, self.folder)
        self.assertIn(done.returncode, (0, 7), (seed, done.stderr))
        text = out.read_text()
        page = Page(text)
        self.assertEqual(page.faults, [], seed)
        self.check_alone(text, page)
        named = len(self.rows(text, 'unread')) if 'id="unread"' in text else 0
        self.assertEqual(len(self.rows(text, 'hosts')) + named, 400, seed)

    def test_5000_hosts(self):
        for i in range(5000):
            self.put(f'{i:04}.json', self.summary(f'host{i:04}', root=f'{i:064x}', exit_code=6 * (i % 50 == 0),
                                                  error='full' if i % 50 == 0 else None, duration_ns=i * 10**9))
        text = self.write(self.folder)
        self.assertEqual(len(self.rows(text, 'hosts')), 5000)
        self.assertEqual(len(self.rows(text, 'failures')), 100)
        self.assertIn('4900 of 5000 complete', Page(text).text(''))
        self.assertLess(len(text) / 5000, 1200)

    def test_mistakes(self):
        out = self.at / 'out'
        self.put('a.json', self.summary())
        container = self.container()
        self.assertIn('neither a summary', self.one_line(9, '-o', out, self.folder / 'a.json', container))
        self.assertIn('neither a summary', self.one_line(9, '-o', out, container, self.folder))
        self.assertIn('--figure', self.one_line(2, '-o', out, '--figure', 'curves', self.folder))
        self.assertIn('--label', self.one_line(2, '-o', out, '--label', 'x', self.folder))
        self.assertIn('at most', self.one_line(2, '-o', out, *[container] * 17))
        self.assertIn('exists', self.one_line(6, '-o', self.folder / 'a.json', self.folder))
        self.assertFalse(out.exists())

    def test_an_empty_folder(self):
        self.assertIn('no summaries (*.json)', self.one_line(9, '-o', self.at / 'out', self.folder))
        self.assertFalse((self.at / 'out').exists())


if __name__ == '__main__':
    unittest.main()
