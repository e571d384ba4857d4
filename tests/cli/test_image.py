#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Images as sources: whose memory it is and which machine made the container, what is known of the system
in it, also where parts of it are missing, and what cannot be said of something that has one moment.
Usage: test_image.py RAMSEAL SOURCE-ROOT
"""

import json
import os
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE_ROOT = Path(sys.argv.pop(2)).resolve()
sys.path[:0] = [str(SOURCE_ROOT / 'tests/reader'), str(SOURCE_ROOT / 'tests/sim')]
import write_rsz as rsz  # noqa: E402
from sampled import WHOLE, drawn  # noqa: E402

RAMSEAL = os.path.abspath(sys.argv.pop(1))
# -Dsimulator=false
needs_simulator = unittest.skipIf(os.environ.get('RAMSEAL_SIMULATOR') == '0', 'built without simulated machines')
PAGE = 4096
# A Windows 10 that stands still.
MACHINE = ('sim:desktop,ram=64M,allocated=20M,resident=12M,trimmed=8M,others=10M,processes=6,cache=2M,'
           'activity=0,pagefile0=32M,pagefile1=0,seed=5')
SYMBOLS = 'ntkrnlmp.pdb/0000ED51F00D0BAD8073696D6B726E6C1'
BASE = '0xfffff80002a00000'  # agent/simulator/machine.h
MACHINE_KEYS = ('host', 'os', 'cpu', 'memory', 'security')
WHY = 'an image file does not change while it is read; what changed while it was taken is not known'


def run(*args, **more):
    more = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, 'timeout': 900, **more}
    return subprocess.run([RAMSEAL, *map(str, args)], **more)


def lime(content, pages):
    """A LiME file of the pages with these numbers."""
    runs = []
    for n in sorted(pages):
        if runs and runs[-1][1] == n:
            runs[-1][1] = n + 1
        else:
            runs.append([n, n + 1])
    return b''.join(struct.pack('<IIQQQ', 0x4c694d45, 1, first * PAGE, last * PAGE - 1, 0) +
                    content[first * PAGE:last * PAGE] for first, last in runs)


class Nothing(unittest.TestCase):
    """Files whose headers name memory of which not one page can be read."""

    def test_no_page_can_be_read(self):
        with tempfile.TemporaryDirectory(prefix='ramseal-test-') as folder:
            path = Path(folder)
            (path / 'lime').write_bytes(struct.pack('<IIQQQ', 0x4c694d45, 1, 0x1000, 0x100fff, 0))
            # A core of which nothing but the headers is there.
            (path / 'elf').write_bytes(
                struct.pack('<16sHHIQQQIHHHHHH', b'\x7fELF\2\1\1', 4, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0) +
                struct.pack('<IIQQQQQQ', 1, 7, 0x1000, 0xffff888000001000, 0x1000, 0x100000, 0x100000, 4096))
            for name in ('lime', 'elf'):
                source = f'file:{path / name}'
                for args in (('--no-pagefile',), ('--format', 'raw'), ('--format', 'lime')):
                    with self.subTest(name=name, args=args):
                        p = run('acquire', '--source', source, *args, '-o', path / 'out', '-f')
                        self.assertEqual(p.returncode, 5, p.stderr)
                        self.assertIn(b'no page of memory could be read', p.stderr)
                        self.assertNotIn(b'outcome: complete', p.stdout + p.stderr)
                p = run('check', '--json', '--source', source, '-o', path / 'new', '--no-pagefile')
                self.assertEqual(p.returncode, 5, p.stderr)
                doc = json.loads(p.stdout)
                self.assertIs(doc['go'], False)
                self.assertIn('none of ', next(f['text'] for f in doc['findings'] if f['stops']))


class Counted(unittest.TestCase):
    def test_pages_that_were_not_captured_are_no_memory(self):
        """A record of 64 pages of which 16 are there; `info` says so many."""
        with tempfile.TemporaryDirectory(prefix='ramseal-test-') as folder:
            path = Path(folder)
            (path / 'lime').write_bytes(struct.pack('<IIQQQ', 0x4c694d45, 1, 0x1000, 0x40fff, 0) +
                                        random.Random(1).randbytes(16 * PAGE))
            p = run('acquire', '--source', f'file:{path / "lime"}', '--no-pagefile', '-o', path / 'out')
            self.assertEqual(p.returncode, 3, p.stderr)
            p = run('info', path / 'out')
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertRegex(p.stdout.decode(), r'stream +memory \(physical memory\): 64\.0 KiB in ')


@needs_simulator
class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        cls.addClassCleanup(cls.folder.cleanup)
        cls.raw = Path(cls.folder.name) / 'windows.raw'
        run('acquire', '-q', '--source', MACHINE, '--format', 'raw', '--gaps', '/dev/null', '-f',
            '-o', cls.raw, check=True)
        cls.memory = cls.raw.read_bytes()

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)

    def acquire(self, image, *args, code=0):
        path = self.at / 'out.rsz'
        done = run('acquire', '-q', '-f', '--log-json', '-s', f'file:{image}', '-o', path, *args)
        self.assertEqual(done.returncode, code, done.stderr)
        self.log = [json.loads(line) for line in done.stderr.splitlines()]
        return path

    def lines(self, path):
        done = run('extract', '--stream', 'manifest', '-o', '-', path)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def info(self, path):
        return json.loads(run('info', '--json', path, check=True).stdout)

    def text(self, path):
        """{label: [values]} of what info says to people."""
        rows = {}
        for line in run('info', path, check=True).stdout.decode().splitlines():
            rows.setdefault(line[:13].strip(), []).append(line[13:])
        return rows

    def report(self, *paths):
        done = run('report', '-q', '-o', '-', *paths, check=True)
        return done.stdout.decode()

    def events(self):
        return [line.get('event') for line in self.log]


class Origin(Case):
    def test_the_machine_that_did_the_work_is_named_as_such(self):
        path = self.acquire(self.raw)
        begin = self.lines(path)[0]
        for key in MACHINE_KEYS:
            self.assertNotIn(key, begin)
            self.assertIn(key, begin['made_on'])
        self.assertEqual(begin['made_on']['host']['name'], socket.gethostname())
        self.assertTrue(begin['source']['image'])
        doc = self.info(path)
        for key in MACHINE_KEYS:
            self.assertNotIn(key, doc)
        self.assertEqual(doc['made_on'], begin['made_on'])
        rows = self.text(path)
        self.assertEqual(rows['host'], ["not known: the memory is an image's"])
        self.assertTrue(rows['made on'][0].startswith(socket.gethostname() + ', '), rows)
        page = self.report(path)
        self.assertIn('container made on', page)
        self.assertNotIn(f'Memory acquisition of <bdi>{socket.gethostname()}', page)
        cpu = begin['made_on']['cpu'].get('model')
        if cpu:
            self.assertNotIn(cpu, page)

    def container(self, begin):
        path = self.at / 'made.rsz'
        text = (json.dumps({'event': 'begin', **begin}) + '\n').encode()
        path.write_bytes(rsz.assemble([
            rsz.begin(), rsz.stream(0, 7, 0, b'manifest'), rsz.stream(1, 1, PAGE, b'memory'),
            rsz.chunk(0, [(0, len(text))], [], text), rsz.Rec(rsz.INDEX), rsz.Rec(rsz.CLOSE)]))
        return path

    def test_older_containers_are_read_right(self):
        facts = {'host': {'name': 'analyst', 'product': 'Workbench'}, 'cpu': {'model': 'Slow 1'},
                 'os': {'name': 'Debian 12', 'kernel_release': '6.1.0'}}
        path = self.container({'source': {'name': 'file', 'path': 'a.raw'}, **facts})
        doc = self.info(path)
        self.assertNotIn('host', doc)
        self.assertEqual(doc['made_on'], facts)
        self.assertEqual(self.text(path)['made on'], ['analyst, Debian 12'])
        self.assertNotIn('Slow 1', self.report(path))
        # Of a live source they are the machine's.
        path = self.container({'source': {'name': 'kcore', 'path': '/proc/kcore'}, **facts})
        self.assertEqual(self.info(path)['host'], facts['host'])
        self.assertNotIn('made_on', self.info(path))
        self.assertEqual(self.text(path)['host'], ['analyst, Debian 12'])
        page = self.report(path)
        self.assertIn('Slow 1', page)
        self.assertIn('Memory acquisition of <bdi>analyst', page)

    def test_registry_of_the_disk_says_its_name(self):
        context = {'windows': {'product': 'Windows 10 Pro', 'computer': 'WS-17'}}
        path = self.container({'source': {'name': 'file', 'path': 'a.raw', 'image': True,
                                          'still': True}, 'context': context})
        self.assertEqual(self.text(path)['host'], ['WS-17 (as the registry of the disk image has it)'])
        self.assertEqual(self.text(path)['system'], ['Windows 10 Pro'])

    def test_default_name_is_the_images(self):
        done = run('acquire', '-q', '-s', f'file:{self.raw}', cwd=self.at)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([p.name.split('-')[0] for p in self.at.iterdir()], ['windows.raw'])


class System(Case):
    def test_what_the_kernel_says(self):
        doc = self.info(self.acquire(self.raw))
        self.assertEqual((doc['system']['os'], doc['system']['build'], doc['system']['levels']),
                         ('windows', 19045, 4))
        self.assertEqual(doc['system']['kernel_dtb_origin'], 'self-reference')
        self.assertEqual((doc['ntoskrnl']['base'], doc['ntoskrnl']['symbols']), (BASE, SYMBOLS))
        self.assertTrue(doc['kdbg']['encoded'])
        spaces = {space['pid']: space for space in doc['address_spaces']}
        self.assertEqual(spaces[4]['name'], 'System')
        self.assertEqual(spaces[4]['dtb'], doc['system']['kernel_dtb'])
        self.assertEqual(len(spaces), doc['system']['processes'])
        rows = self.text(self.at / 'out.rsz')
        self.assertEqual(rows['system'], ['Windows, build 19045'])
        self.assertEqual(rows['kernel'], [f'DTB {spaces[4]["dtb"]:#x} (self-reference), 4 levels of '
                                          f'page tables, image at {BASE}'])
        self.assertEqual(rows['kdbg'], [doc['kdbg']['address'] + ', encoded'])
        self.assertEqual(len(rows['space']), len(spaces))
        self.assertIn(f'{spaces[4]["dtb"]:#014x}       4 System (the kernel\'s)', rows['space'])

    def test_processes_without_names_are_told(self):
        spaces = self.info(self.acquire(self.raw))['address_spaces']
        self.assertNotIn('processes-without-names', [line.get('event') for line in self.log])
        memory = self.memory
        for name in {s['name'] for s in spaces if 'name' in s}:
            memory = memory.replace(name.encode().ljust(15, b'\0'), b'\1' * 15)
        image = self.at / 'nameless.raw'
        image.write_bytes(memory)
        doc = self.info(self.acquire(image))
        self.assertEqual({s['pid'] for s in doc['address_spaces'] if 'pid' in s},
                         {s['pid'] for s in spaces if 'pid' in s})
        self.assertIn('processes-without-names', [line.get('event') for line in self.log])

    def test_kdbg_of_windows_7_is_not_encoded(self):
        image = self.at / 'seven.raw'
        run('acquire', '-q', '--source', f'{MACHINE},windows=7', '--format', 'raw', '-o', image,
            check=True)
        self.assertFalse(self.info(self.acquire(image))['kdbg']['encoded'])

    def test_windows_is_told_by_its_tables_if_there_is_no_more(self):
        image = self.at / 'tables.lime'
        pages = range(len(self.memory) // PAGE)
        image.write_bytes(lime(self.memory, [n for n in pages
                                             if self.memory[n * PAGE:n * PAGE + 2] != b'MZ' and
                                             b'RSDS' not in self.memory[n * PAGE:(n + 1) * PAGE]]))
        doc = self.info(self.acquire(image))
        self.assertEqual(doc['system']['os'], 'windows')
        self.assertNotIn('ntoskrnl', doc)
        self.assertEqual(self.text(self.at / 'out.rsz')['system'],
                         ['Windows, by the look of its page tables alone'])

    def test_nothing_is_known_of_noise(self):
        image = self.at / 'noise'
        image.write_bytes(os.urandom(64 * PAGE))
        doc = self.info(self.acquire(image))
        for key in ('system', 'ntoskrnl', 'kdbg', 'address_spaces'):
            self.assertNotIn(key, doc)
        self.assertEqual(self.text(self.at / 'out.rsz')['system'], ['not known'])

    def test_image_without_a_kernel_is_read_once(self):
        """What may be one is collected by the threads that read; `export` believes that there is none."""
        image = self.at / 'noise'
        with open(image, 'wb') as f:
            f.truncate(72 << 20)
            f.seek(68 << 20)
            f.write(os.urandom(64 * PAGE))
        for threads in '1', '3':
            path = self.acquire(image, '--threads', threads)
            line = next(line for line in self.lines(path) if line['event'] == 'tables')
            self.assertEqual((line['when'], line['os'], line.get('searched')), ('image', 'unknown', True))
            self.assertLess(line['search_pages'], 100)
        done = run('export', '--log-json', '--format', 'elf', '-o', self.at / 'core', path, check=True)
        self.assertEqual(json.loads(done.stderr.splitlines()[-1])['kernel']['os'], 'unknown')
        again = self.acquire(self.at / 'core')
        whole = run('export', '-q', '--format', 'raw', '-o', '-', again, check=True)
        self.assertEqual(whole.stdout, image.read_bytes())

    def test_it_can_be_left_out(self):
        path = self.acquire(self.raw, '--pagetables=none')
        self.assertEqual([line['event'] for line in self.lines(path)], ['begin', 'end'])

    def test_processes_are_read_through_the_images_own_tables(self):
        path = self.acquire(self.raw)
        doc = self.info(path)
        self.assertFalse([s for s in doc['streams'] if s['kind'].startswith('page tables')])
        space = next(s for s in doc['address_spaces'] if s.get('pid') not in (None, 4))
        rows = run('smear', '--mappings', space['pid'], path, check=True).stdout.decode()
        va, frame = next(line.split(',')[1:6:4] for line in rows.splitlines() if ',valid,' in line)
        done = run('read', '-q', '--pid', space['pid'], '--va', va, '-o', '-', path)
        self.assertEqual((done.returncode, done.stdout),
                         (0, self.memory[int(frame, 16):int(frame, 16) + PAGE]))
        named = run('read', '-q', '--dtb', space['dtb'], '--va', va, '-o', '-', path)
        self.assertEqual(named.stdout, done.stdout)


class NotApplicable(Case):
    """An image has one moment, however it was acquired."""

    def check_smear(self, path):
        doc = json.loads(run('smear', '--json', path, check=True).stdout)
        self.assertFalse(doc['applicable'])
        self.assertEqual(doc['why'], WHY)
        self.assertNotIn('born', doc)
        trust = doc['total']['copies']['image']['trust']
        self.assertEqual((trust['safe'], trust['at-risk']), (0, 0))
        self.assertGreater(trust['not-applicable'], 1000)
        # What is missing is missing: there are no page files.
        self.assertEqual(trust['wrong'], doc['total']['copies']['image']['slots']['no-file'])
        self.assertEqual({space['fate'] for space in doc['spaces']}, {'not-applicable'})
        text = run('smear', path, check=True).stdout.decode()
        self.assertIn('Not applicable: ' + WHY, text)
        for word in ('safe', 'at risk', 'born', 'window '):
            self.assertNotIn(word, text)

    def test_smear(self):
        for passes in ([], ['--pagetables=both'], ['--pagetables=before']):
            self.check_smear(self.acquire(self.raw, *passes))
        self.assertNotIn('hidden-address-spaces', self.events())

    def test_info(self):
        for passes in ([], ['--pagetables=both'], ['--pagetables=none']):
            path = self.acquire(self.raw, *passes)
            self.assertEqual(self.info(path)['smear'],
                             {'applicable': False, 'sentence': f'Not applicable: {WHY}.'})
            self.assertEqual(self.text(path)['smear'], [f'Not applicable: {WHY}.'])

    def test_read(self):
        path = self.acquire(self.raw)
        space = next(s for s in self.info(path)['address_spaces'] if s.get('pid') not in (None, 4))
        rows = run('smear', '--mappings', space['pid'], path, check=True).stdout.decode()
        va = next(line.split(',')[1] for line in rows.splitlines() if ',valid,' in line)
        row = json.loads(run('read', '-q', '--pid', space['pid'], '--va', va, '--json', path).stdout)
        self.assertEqual((row['trust'], row['verdict'], row['change']),
                         ('not-applicable', 'image', 'not-applicable'))
        self.assertNotIn('window_ns', row)
        done = run('read', '--pid', space['pid'], '--va', va, path)
        self.assertIn(b'; safe or at risk: not applicable', done.stdout)
        self.assertNotIn(b'window', done.stdout)
        self.assertIn(WHY.encode(), done.stderr)

    def test_report(self):
        path = self.acquire(self.raw)
        page = self.report(path)
        self.assertIn('Not applicable: ' + WHY, page)
        self.assertIn('safe or at risk, for an image', page.split('<main>')[0])
        # What has no answer has no section; what is there of each process has one.
        self.assertEqual(re.findall(r'<section (?:class="part" )?id="(\w+)"', page),
                         ['acquisition', 'timeline', 'smear', 'processes', 'states', 'integrity',
                          'glossary'])
        processes = page.split('id="processes"')[1].split('</section>')[0]
        self.assertIn('Processes by pages that are missing', processes)
        self.assertNotIn('at risk', processes)
        self.assertRegex(processes, r'data-column="in the image">[1-9]')
        self.assertNotIn('by pages at risk', page)
        # Without tables, why is said in the head.
        page = self.report(self.acquire(self.raw, '--pagetables=none'))
        self.assertEqual(page.count('Not applicable: ' + WHY), 1)
        self.assertNotIn('id="processes"', page)
        several = self.report(path, path)
        self.assertIn('not applicable</a> to images: ' + WHY, several)
        self.assertNotIn('not known<', several)
        live = self.at / 'live.rsz'
        done = run('acquire', '-q', '-s', MACHINE, '-o', live)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('>not applicable</td>', self.report(live, path))
        done = run('report', '-q', '--figure', 'windows', '-o', '-', path)
        self.assertEqual(done.returncode, 9)
        self.assertIn(b'not applicable: an image file', done.stderr)

    def test_image_that_somebody_is_writing_to_can_change(self):
        image = self.at / 'busy.raw'
        image.write_bytes(self.memory)
        with open(image, 'r+b'):
            path = self.acquire(image)
        self.assertFalse(self.lines(path)[0]['source']['still'])
        self.assertFalse(self.info(path)['still'])
        # So it is measured as what runs is.
        doc = json.loads(run('smear', '--json', path, check=True).stdout)
        self.assertTrue(doc['applicable'])
        self.assertGreater(doc['total']['copies']['image']['trust']['safe'], 1000)
        self.assertNotIn('Not applicable', self.text(path)['smear'][0])
        self.assertTrue(self.info(self.acquire(image))['still'])

    def test_image_that_was_changed_meanwhile_is_none_that_stands_still(self):
        image = self.at / 'changed.raw'
        image.write_bytes(self.memory)
        path = self.at / 'out.rsz'
        with subprocess.Popen([RAMSEAL, 'acquire', '-q', '--log-json', '-l', 'store', '-s',
                               f'file:{image}', '-o', '-'], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            start = process.stdout.read(1 << 20)  # more is not written while nobody reads
            os.utime(image, (0, 0))
            path.write_bytes(start + process.stdout.read())
            said = process.stderr.read()
        self.assertEqual(process.returncode, 0, said)
        self.assertIn(b'"image-changed"', said)
        self.assertTrue(self.lines(path)[0]['source']['still'])
        self.assertFalse(self.info(path)['still'])
        self.assertNotIn('Not applicable', json.dumps(self.info(path).get('smear', {})))


class Partial(Case):
    """What is found degrades, and nothing is told that is not there."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        path = Path(cls.folder.name) / 'whole.rsz'
        run('acquire', '-q', '-s', f'file:{cls.raw}', '-o', path, check=True)
        cls.whole = json.loads(run('info', '--json', path, check=True).stdout)
        cls.spaces = {s['dtb']: s for s in cls.whole['address_spaces']}
        cls.pages = len(cls.memory) // PAGE

    def check(self, doc):
        """Counts what was found, all of which must be as in the whole image."""
        system = doc.get('system', {'os': 'unknown'})
        whole = self.whole['system']
        self.assertIn(system['os'], ('windows', 'unknown'))
        if 'ntoskrnl' in doc:
            for key, value in doc['ntoskrnl'].items():
                if key != 'pdb_record':
                    self.assertEqual(value, self.whole['ntoskrnl'][key])
        if 'kdbg' in doc:
            self.assertEqual(doc['kdbg'], self.whole['kdbg'])
        if 'build' in system:
            self.assertEqual(system['build'], whole['build'])
        if system.get('kernel_dtb_origin') == 'system-process':
            self.assertEqual(system['kernel_dtb'], whole['kernel_dtb'])
        elif system['os'] == 'windows':
            self.assertIn(system['kernel_dtb'], self.spaces)
        scan = system.get('scan') or {}
        self.assertEqual((scan.get('hidden', 0), scan.get('missed', 0)), (0, 0))
        for space in doc.get('address_spaces', []):
            true = self.spaces[space['dtb']]
            self.assertEqual(space.get('pid', true['pid']), true['pid'])
            self.assertEqual(space.get('name', true['name']), true['name'])
            self.assertLessEqual(space['kernel'], true['kernel'])
        return (system['os'] == 'windows', 'ntoskrnl' in doc, 'kdbg' in doc,
                system.get('process_list') == 'closed')

    def check_all(self, images):
        found = [0] * 4
        for content in images:
            image = self.at / 'partial.lime'
            image.write_bytes(content)
            path = self.acquire(image)
            self.assertNotIn('hidden-address-spaces', self.events())
            for i, was in enumerate(self.check(self.info(path))):
                found[i] += was
            doc = json.loads(run('smear', '--json', path, check=True).stdout)
            self.assertFalse(doc['applicable'])
            trust = doc['total']['copies']['image']['trust']
            self.assertEqual((trust['safe'], trust['at-risk']), (0, 0))
        return found

    def losing(self, percent, seeds):
        for seed in seeds:
            chance = random.Random(seed)
            yield lime(self.memory, [n for n in range(self.pages) if chance.random() * 100 >= percent])

    def test_one_percent_less(self):
        seeds = drawn(range(4), 2, '1 %')
        found = self.check_all(self.losing(1, seeds))
        self.assertEqual(found[0], len(seeds))
        self.assertGreaterEqual(found[1], len(seeds) - 1)

    def test_ten_percent_less(self):
        seeds = drawn(range(4), 2, '10 %')
        found = self.check_all(self.losing(10, seeds))
        self.assertGreaterEqual(found[0], len(seeds) - 1)
        if WHOLE:
            self.assertGreaterEqual(found[1], 1)

    def test_half_of_it(self):
        found = self.check_all(self.losing(50, drawn(range(6), 2, '50 %')))
        if WHOLE:
            self.assertGreaterEqual(found[0], 1)
            self.assertLess(found[3], 6)

    def test_any_one_page_of_the_kernel(self):
        """Pages that the search needs: roots, the kernel's image, its structures."""
        needed = [self.whole['system']['kernel_dtb'] // PAGE] + [
            n for n in range(self.pages)
            if any(mark in self.memory[n * PAGE:(n + 1) * PAGE]
                   for mark in (b'PsInitialSystemProcess', b'RSDS', b'PE\0\0d\x86', b'System\0'))]
        self.assertGreaterEqual(len(needed), 5)
        needed = drawn(needed, 3, 'pages of the kernel')
        found = self.check_all(lime(self.memory, set(range(self.pages)) - {n}) for n in needed)
        self.assertEqual(found[0], len(needed))
        self.assertGreaterEqual(found[1], len(needed) - 1)

    def test_cut_at_the_end(self):
        """As an acquisition that was interrupted leaves it; tables that roots name are behind the end."""
        parts = drawn((9, 7, 5, 3), 2, 'ends')
        found = self.check_all(lime(self.memory, range(self.pages * part // 10)) for part in parts)
        self.assertEqual(found[0], len(parts))
        image = self.at / 'cut.raw'
        image.write_bytes(self.memory[:-6 << 20])
        self.assertTrue(self.check(self.info(self.acquire(image, code=3)))[0])
        self.assertNotIn('no-page-tables', self.events())
        self.assertIn('entries-outside', self.events())

    def test_without_its_process_list_nothing_is_hidden(self):
        """The list's head and System's address are on one page of the kernel's image."""
        data = next(n for n in range(self.pages) if b'RSDS' in self.memory[n * PAGE:(n + 1) * PAGE])
        image = self.at / 'partial.lime'
        image.write_bytes(lime(self.memory, set(range(self.pages)) - {data}))
        for passes in ([], ['--pagetables=both']):
            path = self.acquire(image, *passes)
            self.assertNotIn('hidden-address-spaces', self.events())
            doc = self.info(path)
            self.assertNotEqual(doc['system']['process_list'], 'closed')
            self.assertEqual(doc['system']['scan']['hidden'], 0)
            self.assertEqual(doc['system']['scan']['unlisted'], len(self.spaces) - 1)
            text = run('smear', path, check=True).stdout.decode()
            self.assertNotIn('born', text)
            self.assertIn('(not listed)', text)
            self.assertIn('not whole', self.text(path)['spaces'][0])


if __name__ == '__main__':
    unittest.main()
