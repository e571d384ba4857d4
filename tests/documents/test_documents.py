#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
formats/json: schemas that are valid and describe everything, and that what is printed is what they say.
Usage: test_documents.py RAMSEAL SOURCE_ROOT
"""

import hashlib
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RAMSEAL, ROOT = os.path.abspath(sys.argv.pop(1)), Path(sys.argv.pop(1)).resolve()
try:
    import jsonschema
except ImportError:
    print('python3-jsonschema is not there')
    sys.exit(77)
import documents  # noqa: E402: in PYTHONPATH, or beside this

needs_simulator = unittest.skipIf(os.environ.get('RAMSEAL_SIMULATOR') == '0', 'built without simulated machines')
NAMES = ['check', 'common', 'context', 'detached', 'driver', 'driver-files', 'driver-inspect', 'event', 'heap', 'heap-block', 'heap-diff', 'heap-dns', 'heap-leaks',
         'heap-pages', 'info', 'pagefiles', 'process', 'read', 'smear', 'state', 'status', 'summary', 'vad', 'verify']
SMALL = ('sim:cohen2015,ram=64M,resident=8M,allocated=16M,trimmed=4M,others=4M,cache=2M,pagefile0=24M,'
         'live_files=1')
RECIPIENT = 'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj'  # tests/gen/age_recipe.h


def members(schema, path):
    """Every member that a schema describes: its path, and what is said of it."""
    for name, s in schema.get('properties', {}).items():
        yield f'{path}.{name}', s
        yield from members(s, f'{path}.{name}')
    for part in ('items', 'additionalProperties', 'then'):
        if isinstance(schema.get(part), dict):
            yield from members(schema[part], f'{path}[]')
    for part in ('anyOf', 'oneOf', 'allOf'):
        for s in schema.get(part, []):
            yield from members(s, path)
    for name, s in schema.get('$defs', {}).items():
        yield from members(s, f'{path}#{name}')


class Schemas(unittest.TestCase):
    def test_they_are_valid_and_name_themselves(self):
        self.assertEqual(sorted(p.name for p in documents.FOLDER.glob('*.json')),
                         [f'{name}-1.schema.json' for name in NAMES])
        for name in NAMES:
            schema = documents.schema(f'{name}-1')
            jsonschema.Draft202012Validator.check_schema(schema)
            self.assertEqual(schema['$id'], f'{name}-1.schema.json')

    def test_every_member_is_described(self):
        for name in NAMES:
            for path, s in members(documents.schema(f'{name}-1'), name):
                while '$ref' in s and 'description' not in s:
                    s = documents.validator(f'{name}-1').resolver.resolve(s['$ref'])[1]
                self.assertTrue(s.get('description'), path)

    def test_the_readme_has_them_all(self):
        text = (documents.FOLDER / 'README.md').read_text()
        for name in NAMES:
            self.assertIn(f'({name}-1.schema.json)', text)

    def test_every_field_of_an_event_is_in_them(self):
        """What C passes to the log by name; what it makes elsewhere, the documents themselves show."""
        known = {*documents.schema('event-1')['properties'], *documents.schema('summary-1')['properties']}
        found = set()
        for path in (ROOT / 'agent').rglob('*.c'):
            text = path.read_text()
            for m in re.finditer(r'\blog_(?:debug|info|result|warning|error)_with\(|\blog_progress\w*\(', text):
                depth, end = 1, m.end()
                while depth:
                    depth += {'(': 1, ')': -1}.get(text[end], 0)
                    end += 1
                found |= {(name, path.name) for name in re.findall(r'field_\w+\("(\w+)"', text[m.end():end])}
        self.assertGreater(len(found), 40)
        self.assertEqual({(name, file) for name, file in found if name not in known}, set())

    def test_unknown_members_are_for_readers_to_ignore(self):
        documents.validator('detached-1').validate({'schema': 'ramseal-detached-1', 'pid': 1, 'state': '/run/x',
                                                    'output': 'x.rsz', 'new': 1})


class Check(unittest.TestCase):
    """documents.check() finds what is wrong."""
    GOOD = {'schema': 'ramseal-event-1', 'time': '2026-11-20T05:30:12.000000042Z', 'mono_ns': 1, 'level': 'info',
            'event': 'source-opened', 'source': {'name': 'file', 'path': 'x', 'silent': False}}

    def check_bad(self, why, **more):
        doc = {**self.GOOD, **more}
        with self.assertRaisesRegex(documents.Undocumented, why):
            documents.check({k: v for k, v in doc.items() if v is not None})

    def test_good(self):
        documents.check(self.GOOD)
        documents.check({'schema': 'ramseal-detached-1', 'pid': 1, 'state': '/run/x', 'output': 'x.rsz'})
        documents.check({'schema': 'ramseal-status-1', 'state': 'running', 'pid': 1, 'exit_code': None})
        documents.check({'schema': 'ramseal-status-1', 'state': 'ended', 'pid': 1, 'exit_code': 3})

    def test_bad(self):
        self.check_bad(r'\$\.extra is not in', extra=1)
        self.check_bad(r'\$\.source\.extra is not in', source={**self.GOOD['source'], 'extra': 1})
        self.check_bad("'time' is a required", time=None)
        self.check_bad(r'\$\.mono_ns', mono_ns='soon')
        self.check_bad('level', level='loud')
        with self.assertRaisesRegex(documents.Undocumented, 'first member'):
            documents.check({'time': '', **self.GOOD})

    def test_of_long_lists_each_shape_is_looked_at(self):
        odd = {'a': 1, 'b': [{'c': None}]}
        long = [{'a': i, 'b': [{'c': i}]} for i in range(10000)]
        long[7777] = odd
        thin = documents.thinned({'list': long, 'short': long[:documents.LONG]})
        self.assertIn(odd, thin['list'])
        self.assertLess(len(thin['list']), 2 * documents.LONG)
        self.assertEqual((thin['list'][0], thin['short']), (long[0], long[:documents.LONG]))

    def test_what_json_loads_reads_is_checked(self):
        json.loads(json.dumps(self.GOOD))
        if json.loads.__module__ != 'sitecustomize':
            self.skipTest('tests/documents is not in PYTHONPATH')
        with self.assertRaises(documents.Undocumented):
            json.loads(json.dumps({**self.GOOD, 'extra': 1}))


class Documents(unittest.TestCase):
    """Each command that prints JSON, in many situations. What is read has been checked by then."""
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        cls.addClassCleanup(folder.cleanup)
        cls.at = Path(folder.name)
        cls.image = cls.at / 'memory.raw'
        cls.image.write_bytes(random.Random(1).randbytes(300 << 10))

    def run_it(self, *args, code=0):
        done = subprocess.run([RAMSEAL, *map(str, args)], cwd=self.at, capture_output=True, timeout=900)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def docs(self, text, name):
        """Of lines of JSON, or one object of many lines."""
        text = text.decode()
        try:
            docs = [json.loads(text)]
        except json.JSONDecodeError:
            docs = [json.loads(line) for line in text.splitlines()]
        for doc in docs:
            self.assertEqual(next(iter(doc.items())), ('schema', f'ramseal-{name}-1'))
            documents.check(doc)
        return docs

    def acquire(self, source, name, *options, code=0):
        """The summary; that of the log is the same."""
        path = self.at / f'{name}.json'
        done = self.run_it('--log-json', 'acquire', '-v', '-f', '-s', source, '-o', name, '--summary', path,
                           *options, code=code)
        events = self.docs(done.stderr, 'event')
        summary = self.docs(path.read_bytes(), 'summary')[0]
        said = next(e for e in events if e['event'] == 'summary')
        self.assertLessEqual(set(summary) - {'schema'}, set(said))
        self.assertEqual({k: said[k] for k in summary if k != 'schema'},
                         {k: v for k, v in summary.items() if k != 'schema'})
        self.assertEqual(len([e for e in events if e['event'] == 'summary']), 1)
        self.assertEqual(summary['exit_code'], code)
        return summary

    def look(self, path, smear=True):
        self.docs(self.run_it('info', '--json', path).stdout, 'info')
        self.docs(self.run_it('verify', '--json', path).stdout, 'verify')
        return self.docs(self.run_it('smear', '--json', path).stdout, 'smear')[0] if smear else None

    def test_image(self):
        s = self.acquire(f'file:{self.image}', 'image.rsz')
        self.assertEqual([o['role'] for o in s['outputs']], ['container'])
        self.assertEqual(s['outputs'][0]['bytes'], (self.at / 'image.rsz').stat().st_size)
        self.assertEqual(s['machine']['process']['pid'], s['pid'])
        self.assertNotIn('command_line', s['machine']['os'])
        self.look('image.rsz', smear=False)
        self.docs(self.run_it('read', '--pa', '0x1000', '--json', 'image.rsz').stdout, 'read')

    @needs_simulator
    def test_simulated(self):
        for kind, options in (('plain', ()), ('linear', ('--order', 'linear', '--pagetables', 'none')),
                              ('after', ('--pagefile', 'after'))):
            with self.subTest(kind):
                summary = self.acquire(SMALL, f'{kind}.rsz', *options)
                self.assertEqual(len(summary['files']), 1)
                if kind != 'linear':
                    smear = self.look(f'{kind}.rsz')
        pid = next(s['pid'] for s in smear['spaces'] if s['listed'] and s['copies']['image']['entries'])
        self.docs(self.run_it('smear', '--mappings', pid, '--json', 'plain.rsz').stdout, 'smear')
        rows = self.run_it('smear', '--mappings', pid, '--json', 'plain.rsz').stdout.splitlines()
        va = next(hex(row['va']) for row in map(json.loads, rows) if row['copy'] == 'image' and 'frame' in row)
        self.docs(self.run_it('read', '-q', '--pid', pid, '--va', va, '--json', 'plain.rsz').stdout, 'read')
        self.docs(self.run_it('vad', '--pid', pid, '--json', '--pages', 'plain.rsz').stdout, 'vad')
        self.docs(self.run_it('--log-json', 'vad', '--pid', pid, 'plain.rsz').stderr, 'event')
        done = self.run_it('--log-json', 'read', '--pid', pid, '--va', va, '-o', '-', 'plain.rsz')
        self.docs(done.stderr, 'event')

    def test_formats(self):
        for name in ('raw', 'elf', 'lime', 'kdump', 'e01'):
            s = self.acquire(f'file:{self.image}', f'out.{name}', '--format', name, '--hash', 'sha256')
            roles = {o['role']: o for o in s['outputs']}
            self.assertEqual(set(roles) - {'gaps'}, {'image'})
            for o in s['outputs']:
                content = Path(self.at / o['name']).read_bytes()
                self.assertEqual(o['bytes'], len(content))
                if o['sha256']:
                    self.assertEqual(o['sha256'], hashlib.sha256(content).hexdigest())
            done = self.run_it('--log-json', 'export', '-f', '--format', name, '-o', f'again.{name}',
                               self.sealed())
            self.docs(done.stderr, 'event')

    def sealed(self):
        if not (self.at / 'sealed.rsz').exists():
            self.run_it('acquire', '-q', '-s', f'file:{self.image}', '-o', 'sealed.rsz')
        return 'sealed.rsz'

    def test_cut_encrypted_and_stated(self):
        lime = self.at / 'cut.lime'
        lime.write_bytes(struct.pack('<IIQQQ', 0x4C694D45, 1, 0x1000, 0x20fff, 0) + bytes(65536))
        s = self.acquire(f'file:{lime}', 'cut.rsz', code=3)
        self.assertEqual(s['missing'], {'unreadable_pages': 16, 'skipped_pages': 0, 'unacquired_bytes': 0, 'files': 0})
        self.look('cut.rsz', smear=False)
        s = self.acquire(f'file:{self.image}', 'closed.rsz.age', '--recipient', RECIPIENT)
        self.assertTrue(s['encrypted'])
        s = self.acquire(f'file:{self.image}', 'stated.rsz', '--statement', 'stated')
        self.assertEqual([o['role'] for o in s['outputs']], ['container', 'statement'])
        self.docs(self.run_it('verify', '--json', '--statement', 'stated', 'stated.rsz').stdout, 'verify')
        half = (self.at / 'stated.rsz').read_bytes()[:200000]
        (self.at / 'half.rsz').write_bytes(half)
        self.docs(self.run_it('verify', '--json', '--statement', 'stated', 'half.rsz', code=7).stdout, 'verify')
        self.docs(self.run_it('--log-json', 'seal', '-o', 'later.rsz', 'half.rsz').stderr, 'event')
        self.docs(self.run_it('verify', '--json', 'later.rsz', code=10).stdout, 'verify')
        self.docs(self.run_it('--log-json', 'extract', '-S', 'memory', '-o', 'memory', 'stated.rsz').stderr, 'event')

    def test_check(self):
        self.docs(self.run_it('check', '--json', '-s', f'file:{self.image}').stdout, 'check')
        self.docs(self.run_it('check', '--json', '-s', 'file:absent', code=9).stdout, 'check')

    def test_mistakes_are_events(self):
        self.docs(self.run_it('--log-json', 'nonsense', code=2).stderr, 'event')
        self.docs(self.run_it('--log-json', 'verify', 'absent', code=9).stderr, 'event')


if __name__ == '__main__':
    unittest.main()
