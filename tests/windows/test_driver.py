#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
acquire through a kernel driver, on Windows as Wine has it: every generation of WinPmem, played by
fixture.c; the driver's life, crashes included; a whole machine with its page files. The container is
read by ramseal on Linux.
Usage: test_driver.py WINE RAMSEAL.exe RAMSEAL FIXTURE.sys SIM_TRUTH.exe CONSOLE_EVENT.exe [TEST...]
WINE runs a Windows program; a prefix of its own is made in the current directory.
"""

import contextlib
import csv
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest
from pathlib import Path

for part in 'ntfs', 'sim':
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / part))
from forge import Volume  # noqa: E402
import ntfs_disk  # noqa: E402
from prefix import Prefix  # noqa: E402
from standin import (BUFFERED, GIB, INVALID_DEVICE_REQUEST, INVALID_PARAMETER,  # noqa: E402
                     KERNEL_BASE, LOG, MIB, NOT_SUPPORTED, PAGE, PTE, RUNS, UNSUCCESSFUL,
                     Memory, gen1, gen2, gen3, gen41, info, many)

WINE, EXE, RAMSEAL, DRIVER, SIM_TRUTH, CONSOLE_EVENT = (str(Path(p).absolute())
                                                        for p in sys.argv[1:7])
del sys.argv[1:7]

TOP = Path('wine-driver').absolute()
PREFIX = TOP / 'prefix'
C = PREFIX / 'drive_c'
FIXTURE = C / 'ramseal-fixture'
HOST = Prefix(WINE, PREFIX)
ENV = HOST.env
Memory.folder = FIXTURE

COMPLETE, USAGE, GAPS, NO_SOURCE, SOURCE_FAILED, OUTPUT, INTERRUPTED, INPUT = 0, 2, 3, 4, 5, 6, 8, 9
PARTIAL = 10
FILL = b'\xee'

wine = HOST.run


def set_value(key, name, value):
    """A number in Wine's registry."""
    ran = wine('reg', 'add', key, '/v', name, '/t', 'REG_DWORD', '/d', value, '/f')
    assert ran.returncode == 0, ran.stderr


def text(data):
    return data.decode(errors='replace')


def sha256_of(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


class Driver(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        shutil.rmtree(TOP, ignore_errors=True)
        HOST.start()

    @classmethod
    def tearDownClass(cls):
        HOST.stop()

    def setUp(self):
        self.out = TOP / (self.id().split('.')[-1] + '.rsz')

    def acquire(self, want, *args, driver=DRIVER):
        """The objects of the log's lines."""
        self.out.unlink(missing_ok=True)
        ran = wine(EXE, 'acquire', '--log-json', '--no-pagefile', '--pagetables', 'none', '-o',
                   self.out, *(['--driver', driver] if driver else []), *args)
        self.assertEqual(ran.returncode, want, text(ran.stderr))
        return [json.loads(line) for line in ran.stderr.splitlines() if line.startswith(b'{')]

    def nothing_is_left(self, unloaded=True):
        """Asked of others than ramseal: the registry, the folders, the driver itself."""
        services = wine('reg', 'query', 'HKLM\\System\\CurrentControlSet\\Services')
        self.assertEqual(services.returncode, 0)
        self.assertNotIn('ramseal_', text(services.stdout))
        self.assertEqual([str(p) for p in C.rglob('ramseal_*')], [])
        self.assertEqual((FIXTURE / 'log').exists(), unloaded)
        if unloaded:
            self.assertEqual(self.log()['stopped'], 0)

    def log(self):
        """What the driver has counted."""
        log = (FIXTURE / 'log').read_bytes()
        return dict(zip(LOG, struct.unpack(f'<{len(LOG)}Q', log)))

    def manifest(self):
        ran = subprocess.run([RAMSEAL, 'info', '--json', self.out], capture_output=True,
                             check=True)
        return json.loads(ran.stdout)

    def verify(self, code=COMPLETE):
        ran = subprocess.run([RAMSEAL, 'verify', '-q', self.out], capture_output=True)
        self.assertEqual(ran.returncode, code, text(ran.stderr))

    def check_memory(self, memory):
        """ramseal on Linux verifies it; every page is what the fixture holds."""
        self.verify()
        raw = self.out.with_suffix('.raw')
        subprocess.run([RAMSEAL, 'export', '-q', '-f', '--fill', FILL.hex(), '--hash', 'none',
                        '-o', raw, self.out], capture_output=True)
        with open(raw, 'rb') as image:
            for (base, length), want in zip(memory.runs, memory.content):
                image.seek(base)
                got = image.read(length)
                for at in range(0, length, PAGE):
                    page = want[at:at + PAGE] if base + at not in memory.bad else FILL * PAGE
                    self.assertTrue(got[at:at + PAGE] == page, hex(base + at))
        raw.unlink()
        Path(str(raw) + '.gaps.json').unlink(missing_ok=True)

    def check(self, memory, want=COMPLETE, *args, mode='PTE', modes_set=None, origin='driver',
              silent=False, **facts):
        """One acquisition, and everything that must be so after each. Returns the manifest."""
        events = [line['event'] for line in self.acquire(want, *args)]
        self.assertNotIn('map-changed', events)
        manifest = self.manifest()
        source = manifest['source']
        self.assertEqual(source['facts']['mode'], mode)
        self.assertEqual(source['silent'], silent)
        self.assertEqual(source['error_numbers'], 'win32')
        for name, value in facts.items():
            self.assertEqual(source['facts'][name], value, name)
        self.assertEqual(manifest['maps'][0]['origin'], origin)
        ranges = [(r['first'], r['last'] - r['first'] + 1) for r in manifest['maps'][0]['ranges']]
        self.assertEqual(ranges, memory.runs)
        self.check_memory(memory)
        self.nothing_is_left()
        self.assertEqual(self.log()['modes_set'],
                         memory.modes_set if modes_set is None else modes_set)
        self.assertEqual(self.log()['iospace_set'], 0)
        self.assertEqual(self.log()['by_iospace'], 0)
        self.assertLessEqual(self.log()['largest_read'], MIB)
        return manifest

    # A whole machine

    def machine(self):
        """A simulated Windows in which nothing moves: its account, memory and page files, as the Linux
        ramseal has them, and whose tables it finds."""
        container, raw = TOP / 'machine.rsz', TOP / 'machine.raw'
        spec = ('sim:desktop,ram=64M,allocated=40M,resident=22M,trimmed=12M,others=12M,processes=6,'
                'cache=4M,pressure=0,activity=0,bandwidth=8000M,pagefile0=48M,pagefile1=32M,seed=5,'
                f'truth={TOP}/machine.csv,pagefiles={TOP}/pages')
        for args in (('acquire', '-q', '-f', '--source', spec, '--order', 'linear', '-o', container),
                     ('export', '-q', '-f', '--hash', 'none', '-o', raw, container)):
            subprocess.run([RAMSEAL, *args], check=True, capture_output=True)
        lines = self.lines(container)
        ranges = lines[0]['maps'][0]['ranges']
        runs = [(r['first'], r['last'] - r['first'] + 1) for r in ranges]
        bytes_ = raw.read_bytes()
        content = [bytes_[base:base + length] for base, length in runs]
        tables = next(line for line in lines if line['event'] == 'tables')
        return runs, content, tables

    @staticmethod
    def scattered(volume, name, data):
        """A file of these bytes in pieces of half a MiB, the last of them first on the volume."""
        count = len(data) // (MIB // 2)
        runs = [(400 + 200 * (count - i), 128) for i in range(count)]
        volume.file(name, runs)
        for i, (lcn, _) in enumerate(runs):
            volume.patches.append((lcn * PAGE, data[i * MIB // 2:(i + 1) * MIB // 2]))

    def attach(self, letter, image):
        """An image as the raw device of a drive: \\\\.\\X: in Wine."""
        links = PREFIX / 'dosdevices'
        pairs = [(f'{letter}::', image)] + ([] if letter == 'c' else [(f'{letter}:', TOP)])
        for name, target in pairs:
            (links / name).symlink_to(target)
            self.addCleanup((links / name).unlink)

    def put_page_files(self):
        """On three volumes: X: by mkntfs, Y: in pieces, C: with what lies beside Windows. By path, the
        bytes, and number and origin."""
        first, second = ((TOP / f'pages{i}.sys').read_bytes() for i in range(2))
        ntfs_disk.format_partition(TOP / 'x.raw', TOP / 'pages0.sys', 0)
        y, c = Volume(72 * MIB), Volume(24 * MIB)
        self.scattered(y, 'pagefile.sys', second)
        swap = c.file('swapfile.sys', [(3000, 300), (None, 40), (2000, 60)])
        hibernation = c.file('hiberfil.sys', [(4000, 700), (1000, 500)])
        y.write(str(TOP / 'y.raw'))
        c.write(str(TOP / 'c.raw'))
        for letter in 'xyc':
            self.attach(letter, TOP / f'{letter}.raw')
        key = 'HKLM\\SYSTEM\\CurrentControlSet\\Control\\Session Manager\\Memory Management'
        names = '\\??\\X:\\pagefile.sys\\0\\??\\Y:\\pagefile.sys'
        self.addCleanup(wine, 'reg', 'delete', key, '/v', 'ExistingPageFiles', '/f')
        added = wine('reg', 'add', key, '/v', 'ExistingPageFiles', '/t', 'REG_MULTI_SZ', '/d', names,
                     '/f')
        self.assertEqual(added.returncode, 0)
        return {'X:\\pagefile.sys': (first, 0, 'assumed'),
                'Y:\\pagefile.sys': (second, 1, 'assumed'),
                'C:\\swapfile.sys': (swap.content(), 2, 'assumed'),
                'C:\\hiberfil.sys': (hibernation.content(), None, 'none')}

    @staticmethod
    def lines(container):
        ran = subprocess.run([RAMSEAL, 'extract', '-q', '--stream', 'manifest', '-o', '-', container],
                             check=True, capture_output=True)
        return [json.loads(line) for line in ran.stdout.splitlines()]

    def check_two_machines(self, line):
        """The fixture's memory is another machine's than the one that tells its processes."""
        compared = line['processes_compared']
        kernel = {s['pid']: s['name'] for s in line['spaces'] if s['listed']}
        system = {p['pid']: p['name'] for p in compared['system_list']}
        self.assertIn('services.exe', system.values())
        self.assertTrue(any(Path(EXE).name == name for name in system.values()), system)
        self.assertFalse(compared['agree'])
        self.assertEqual((compared['kernel'], compared['system']), (len(kernel), len(system)))
        # What ended or started meanwhile is not told.
        self.assertLessEqual({p['pid'] for p in compared['kernel_only']}, set(kernel) - set(system))
        self.assertLessEqual({p['pid'] for p in compared['system_only']}, set(system) - set(kernel))
        self.assertTrue(compared['kernel_only'] and compared['system_only'])

    def check_page_files(self, files, lines):
        told = {line['path']: (line.get('number'), line['number_origin']) for line in lines
                if line['event'] == 'file'}
        self.assertEqual(told, {path: tuple(rest) for path, (_, *rest) in files.items()})
        for path, (content, *_) in files.items():
            out = TOP / 'one.sys'
            ran = subprocess.run([RAMSEAL, 'extract', '-q', '-f', '--stream', path, '-o', out, self.out],
                                 capture_output=True)
            self.assertEqual(ran.returncode, COMPLETE, text(ran.stderr))
            self.assertTrue(out.read_bytes() == content, path)

    def check_spaces(self, known, lines):
        """Both passes over the page tables have found every process, and its root."""
        found = [line for line in lines if line['event'] == 'tables']
        self.assertEqual([line['when'] for line in found], ['before', 'after'])
        spaces = [(s.get('pid'), s.get('name'), s['dtb']) for s in known['spaces']]
        self.assertGreater(len(spaces), 6)
        for line in found:
            self.assertEqual((line['os'], line['kernel_dtb'], line['kernel_dtb_origin']),
                             ('windows', known['kernel_dtb'], 'source'))
            self.assertEqual([(s.get('pid'), s.get('name'), s['dtb']) for s in line['spaces']],
                             spaces)
            self.assertEqual(line['ntoskrnl'], known['ntoskrnl'])
            self.check_two_machines(line)
        with open(TOP / 'machine.csv') as f:
            account = [row[1:4] for row in csv.reader(f) if row[0] == 'process']
        for pid, name, dtb in account:
            self.assertIn((int(pid), name, int(dtb, 16)), spaces)
        return [int(pid) for pid, *_ in account if pid != '4']

    def check_mappings(self, pid, total):
        """Every page of a process, by sim_truth's own walk: its state, its frame or slot, the number of
        its page file, and that what lies there is the page. Both passes and the image have it."""
        there = wine(SIM_TRUTH, 'Z:' + str(self.out), f'Z:{TOP}/machine.csv', pid)
        self.assertEqual(there.returncode, 0, text(there.stderr))
        want = {}
        for row in csv.DictReader(text(there.stdout).splitlines()):
            self.assertEqual(row['verdict'], 'right', row)
            want[int(row['va'], 16)] = (row['state'], int(row['place'], 16), int(row['file']))
            total[row['state'], row['file']] = total.get((row['state'], row['file']), 0) + 1
        ran = subprocess.run([RAMSEAL, 'smear', '--mappings', str(pid), self.out],
                             capture_output=True, check=True)
        found = {'before': {}, 'image': {}, 'after': {}}
        for row in csv.DictReader(text(ran.stdout).splitlines()):
            if row['state'] in ('valid', 'transition', 'page-file'):
                # The registry's order is not the kernel's word on which file has which number.
                trust = 'at-risk' if row['state'] == 'page-file' else 'safe'
                self.assertEqual(row['trust'], trust, row)
                found[row['copy']][int(row['va'], 16)] = (
                    row['state'], int(row['frame'] or row['slot'], 16), int(row['file'] or 0))
        for copy, mappings in found.items():
            self.assertEqual(mappings, want, copy)

    def root(self):
        """As both programs compute it."""
        roots = set()
        for program, name in ([RAMSEAL], self.out), ([WINE, EXE], f'Z:{self.out}'):
            ran = subprocess.run([*program, 'verify', '--json', name], env=ENV, capture_output=True,
                                 timeout=900)
            self.assertEqual(ran.returncode, COMPLETE, text(ran.stderr))
            roots.add(json.loads(ran.stdout)['root'])
        self.assertEqual(len(roots), 1, roots)
        return roots.pop()

    @unittest.skipUnless(shutil.which('mkntfs') and shutil.which('ntfscp'), 'ntfs-3g is not installed')
    def test_a_whole_machine(self):
        """One command: driver, memory, page tables twice, page files by MFT, the registry's context."""
        runs, content, known = self.machine()
        files = self.put_page_files()
        memory = Memory(runs, info(runs, cr3=known['kernel_dtb'] | 2), content=content)
        self.out.unlink(missing_ok=True)
        set_value('HKLM\\Software\\Microsoft\\Windows NT\\CurrentVersion', 'UBR', 3803)
        ran = wine(EXE, 'acquire', '-q', '--log-json', '--hibernation', '-o', self.out, '--driver',
                   DRIVER)
        self.assertEqual(ran.returncode, COMPLETE, text(ran.stderr))
        self.assertIn(b'"processes-differ"', ran.stderr)
        summary = json.loads(ran.stderr.splitlines()[-1])
        self.nothing_is_left()
        self.assertEqual(self.root(), summary['root'])
        self.check_memory(memory)
        lines = self.lines(self.out)
        self.assertEqual(lines[0]['os']['ubr'], 3803)
        self.assertEqual(lines[0]['context']['windows']['revision'], 3803)
        shown = text(subprocess.run([RAMSEAL, 'info', self.out], check=True,
                                    capture_output=True).stdout)
        self.assertIn(known['ntoskrnl']['symbols'], shown)
        self.assertIn('.3803)', shown)
        self.assertRegex(shown, r'processes .* and they differ: [1-9]')
        self.assertEqual(lines[0]['context']['page_files']['existing'],
                         ['\\??\\X:\\pagefile.sys', '\\??\\Y:\\pagefile.sys'])
        self.check_page_files(files, lines)
        total = {}
        for pid in self.check_spaces(known, lines):
            self.check_mappings(pid, total)
        for place in ('valid', '0'), ('transition', '0'), ('page-file', '0'), ('page-file', '1'):
            self.assertGreater(total[place], 100, total)
        end = next(line for line in lines if line['event'] == 'end')
        self.assertEqual((end['order']['name'], end['order']['retaken_pages']), ('guided', 0))
        print(f'note: ramseal.exe has {Path(EXE).stat().st_size} bytes; with {sum(n for _, n in runs)} '
              f'bytes of memory and {sum(len(f[0]) for f in files.values())} of page files its working '
              f'set was {end["usage"]["peak_rss"]} bytes at most', flush=True)

    # What stands in the way

    CI = 'HKLM\\System\\CurrentControlSet\\Control\\CI\\Config'
    SECURE_BOOT = 'HKLM\\System\\CurrentControlSet\\Control\\SecureBoot\\State'

    def policy(self):
        """What check says without a driver: what the policies are, and of each what to do."""
        ran = wine(EXE, 'check', '--no-pagefile', '--json', '-o', self.out)
        self.assertEqual(ran.returncode, NO_SOURCE, text(ran.stderr))
        doc = json.loads(ran.stdout)
        found = {f['what']: f for f in doc['findings'] if f['what'].startswith('driver-')}
        self.assertFalse(any(f['stops'] for f in found.values()))
        printed = text(wine(EXE, 'check', '--no-pagefile', '-o', self.out).stdout)
        for finding in found.values():
            self.assertIn('note: ' + finding['text'], printed)
        self.assertEqual(doc['machine']['security']['code_integrity']['value'] & 1,
                         int(doc['driver_policy']['signatures_checked']))
        return doc['driver_policy'], set(found)

    def test_policies_on_drivers(self):
        for number, on in ((1, True), (0, False)):
            set_value(self.CI, 'VulnerableDriverBlocklistEnable', number)
            set_value(self.SECURE_BOOT, 'UEFISecureBootEnabled', number)
            policy, found = self.policy()
            self.assertEqual((policy['blocklist'], policy['blocklist_by'], policy['secure_boot']),
                             (on, 'registry', on))
            # What Wine itself says: signatures are checked, and nothing else is on.
            self.assertEqual((policy['signatures_checked'], policy['test_signing'],
                              policy['memory_integrity'], policy['application_control']),
                             (True, False, False, False))
            self.assertEqual(found, {'driver-signature', 'driver-file'} | (
                {'driver-blocklist', 'driver-secure-boot'} if on else set()))
        for key in self.CI, self.SECURE_BOOT:
            self.assertEqual(wine('reg', 'delete', key, '/f').returncode, 0)
        policy, _ = self.policy()
        self.assertEqual((policy['blocklist_by'], policy['secure_boot']), ('default', None))

    def test_check_judges_the_driver_that_acquire_would_load(self):
        """Wine loads what has no signature; that Windows would not is said, and nothing is loaded."""
        ran = wine(EXE, 'check', '--no-pagefile', '--json', '-o', self.out, '--driver', DRIVER)
        self.assertEqual(ran.returncode, NO_SOURCE, text(ran.stderr))
        doc = json.loads(ran.stdout)
        found = {f['what']: f['stops'] for f in doc['findings']}
        self.assertEqual((found['driver-to-load'], found['driver-not-signed'], found['driver-forecast']),
                         (False, True, True))
        self.assertEqual((doc['driver_forecast']['verdict'], doc['driver_forecast']['class']), ('blocked', 'none'))
        self.assertNotIn('source', found)
        sha256 = subprocess.run(['sha256sum', DRIVER], capture_output=True, check=True)
        self.assertEqual(doc['driver']['sha256'], text(sha256.stdout).split()[0])
        self.assertEqual(doc['memory_bytes'], doc['machine']['memory']['total_bytes'])
        self.nothing_is_left()
        ran = wine(EXE, 'check', '--no-pagefile', '-o', self.out, '--driver', EXE)
        self.assertEqual(ran.returncode, INPUT, text(ran.stderr))
        self.assertIn('is a program, not a driver', text(ran.stderr))

    # Generations

    def test_gen1(self):
        manifest = self.check(gen1(), requests='buffered', kpcrs='32', info_bytes='2440')
        self.assertEqual(manifest['source']['cr3'], 0x1ad000)
        self.assertEqual(manifest['source']['kernel_base'], hex(KERNEL_BASE))
        self.assertEqual(manifest['source']['facts']['build'], '19045')
        for maps in manifest['maps'], manifest['maps_at_end']:
            self.assertEqual([m['origin'] for m in maps], ['driver', 'registry'])
            for m in maps:
                self.assertEqual(m['ranges'], manifest['maps'][0]['ranges'])
        sha256 = subprocess.run(['sha256sum', DRIVER], capture_output=True, check=True)
        self.assertEqual(manifest['driver']['sha256'], text(sha256.stdout).split()[0])
        self.assertIsNone(manifest['driver']['signer'])
        # What was judged before it was loaded, and by what: Wine did not keep to it.
        forecast = manifest['driver_forecast']
        self.assertEqual((forecast['verdict'], forecast['certain'], forecast['class']), ('blocked', True, 'none'))
        self.assertEqual(manifest['code_integrity']['policy_files'], [])

    def test_2_0_0(self):
        self.check(Memory(told=info(RUNS), **BUFFERED), requests='buffered', kpcrs='64',
                   info_bytes='2936')

    def test_gen2(self):
        self.check(gen2(), requests='neither', kpcrs='64', info_bytes='2936')

    def test_gen3(self):
        self.check(gen3(), requests='neither', info_bytes='2936')

    def test_gen41(self):
        self.check(gen41(), requests='neither', info_bytes='7416')

    def test_success_without_bytes_is_no_answer(self):
        self.check(gen1(unknown_status=0), requests='buffered')

    def test_unknown_requests_fail_otherwise(self):
        self.check(gen1(unknown_status=INVALID_DEVICE_REQUEST), requests='buffered')

    # Ranges

    def test_21_ranges_of_gen1(self):
        self.check(gen1(runs=many(21)))

    def test_300_ranges_of_gen1(self):
        self.check(gen1(runs=many(300)))

    def test_100_ranges_of_gen41(self):
        self.check(gen41(runs=many(100)))

    def test_300_ranges_of_gen41(self):
        self.check(gen41(runs=many(300)))

    def test_21_ranges_are_too_many_for_gen2(self):
        self.check(gen2(runs=many(21)), origin='registry')

    def test_301_ranges_are_too_many_for_gen41(self):
        self.check(gen41(runs=many(301)), origin='registry')

    def test_no_map_at_all(self):
        gen2(runs=many(21), registry=b'')
        self.acquire(NO_SOURCE)
        self.nothing_is_left()
        self.assertFalse(self.out.exists())

    def test_info_that_lies(self):
        for name, poke in {'none': {0: 0}, 'too many': {0: 21}, 'endless': {0: 2**64 - 1},
                           'in a page': {8: 0x1001}, 'empty': {16: 0}, 'overlap': {16: MIB},
                           'backwards': {24: 0x1000}, 'beyond': {40: 2**52},
                           'wraps': {48: 2**64 - PAGE}}.items():
            with self.subTest(name):
                self.check(gen2(told=info(RUNS, poke=poke)), origin='registry')

    def test_range_that_is_hidden_is_in_the_other_map(self):
        self.check(gen2(told=info(RUNS[:-1])), origin='registry')

    # Modes

    def test_no_pte(self):
        self.check(gen3(pte_status=NOT_SUPPORTED), GAPS, mode='PHYSICAL', silent=True)
        for status in INVALID_PARAMETER, INVALID_DEVICE_REQUEST:
            with self.subTest(hex(status)):
                gen2(pte_status=status)
                log = self.acquire(NO_SOURCE)
                self.assertIn('does not accept mode PTE', log[-1]['message'])
                self.nothing_is_left()
                self.assertEqual(self.log()['reads'], 0)

    def test_device_that_a_failed_load_left(self):
        """Whatever loaded it: by name and by itself, it is not read."""
        gen2(pte_status=UNSUCCESSFUL)
        for source in 'winpmem', 'winpmem-physical':
            log = self.acquire(NO_SOURCE, '--source', source)
            self.assertIn('restart Windows', log[-1]['message'])
            self.nothing_is_left()
            self.assertEqual(self.log()['reads'], 0)
            self.assertFalse(self.out.exists())

    def test_physical_fills_with_zeros_and_says_so(self):
        memory = gen2(unmapped=[0x105000])
        self.acquire(GAPS, '--source', 'winpmem-physical')
        source = self.manifest()['source']
        self.assertTrue(source['silent'])
        self.assertIn('unreadable pages cannot be detected', source['note'])
        self.assertIn('cannot be detected', self.manifest()['message'])
        at = 0x105000 - RUNS[1][0]
        memory.content[1] = (memory.content[1][:at] + bytes(PAGE) + memory.content[1][at + PAGE:])
        self.check_memory(memory)
        self.nothing_is_left()

    def test_mode_is_set_already(self):
        self.check(gen3(first_mode=PTE), mode='unknown', modes_set=0)

    def test_mode_cannot_be_set(self):
        gen3(pte_status=NOT_SUPPORTED, physical_status=NOT_SUPPORTED)
        log = self.acquire(NO_SOURCE)
        self.assertIn('has no mode and accepts none', log[-1]['message'])
        self.nothing_is_left()

    def test_iospace_only_by_name(self):
        memory = gen2()
        self.acquire(COMPLETE, '--source', 'winpmem-iospace')
        self.assertEqual(self.manifest()['source']['facts']['mode'], 'IOSPACE')
        self.check_memory(memory)
        self.assertEqual(self.log()['iospace_set'], 1)
        self.nothing_is_left()

    def test_physical_by_name(self):
        self.check(gen3(), GAPS, '--source', 'winpmem-physical', mode='PHYSICAL', silent=True)

    # Pages that fail

    def test_pages_that_fail(self):
        bad = [0x1000, 0x9e000, 0x100000, 0x17f000, 0x180000, 0x3ff000, 4 * GIB + 0x55000]
        for make in gen1, gen2, gen3:
            with self.subTest(make.__name__):
                manifest = self.check(make(bad=bad), GAPS)
                self.assertIn('7 pages were unreadable', manifest['message'])
                memory = next(s for s in manifest['streams'] if s['name'] == 'memory')
                self.assertEqual(memory['pages']['unreadable'], len(bad))

    def test_page_0(self):
        runs = [(0, 0x9f000), *RUNS[1:]]
        self.check(gen2(runs=runs, told=info(runs)))
        memory = gen3(runs=runs, told=info(runs))
        memory.bad = {0}
        self.check(memory, GAPS)

    def test_device_that_goes_away(self):
        gen2(dies_after=MIB)
        self.acquire(SOURCE_FAILED)
        self.verify(PARTIAL)
        self.nothing_is_left()

    def test_read_that_never_returns(self):
        """The watchdog ends it, and what there is is sealed. The limit may be as short as it is, because
        the read that it is for never ends."""
        gen2(runs=[(MIB, 8 * MIB)], hangs_after=2 * MIB)
        log = self.acquire(SOURCE_FAILED, '--read-timeout', '3')
        (hang,) = [line for line in log if line['event'] == 'source-hangs']
        self.assertRegex(hang['message'], 'a read of [0-9]+ bytes at 0x[0-9a-f]+ did not return')
        self.verify(PARTIAL)
        self.assertIn('did not return', self.manifest()['message'])
        states = next(s for s in self.manifest()['streams'] if s['name'] == 'memory')['pages']
        self.assertGreater(states['data'], 0)
        self.assertEqual(states['data'] + states['zero'] + states['skipped'], 8 * MIB // PAGE)
        self.driver(COMPLETE, 'cleanup')
        self.nothing_is_left()

    def test_read_that_never_returns_while_it_is_opened(self):
        gen2(hangs_after=1)
        log = self.acquire(SOURCE_FAILED, '--read-timeout', '3')
        self.assertIn('could not be opened within', log[-1]['message'])
        self.assertFalse(self.out.exists())
        self.driver(COMPLETE, 'cleanup')
        self.nothing_is_left()

    def test_images(self):
        memory = gen2()
        self.out = self.out.with_suffix('.lime')
        ran = wine(EXE, 'acquire', '--driver', DRIVER, '--format', 'lime', '-o', self.out)
        self.assertEqual(ran.returncode, COMPLETE, text(ran.stderr))
        with open(self.out, 'rb') as image:
            for (base, length), want in zip(memory.runs, memory.content):
                _, _, first, last, _ = struct.unpack('<IIQQQ', image.read(32))
                self.assertEqual((first, last), (base, base + length - 1))
                self.assertTrue(image.read(length) == want)
            self.assertEqual(image.read(1), b'')
        self.nothing_is_left()

    # Targets that fail

    def acquire_to(self, path, *args, **more):
        """64 MiB that do not get smaller, to a target that fails. What is on stderr."""
        memory = gen2(runs=[(MIB, 64 * MIB)])
        memory.content = [random.Random(3).randbytes(64 * MIB)]
        (FIXTURE / 'image').write_bytes(memory.content[0])
        ran = wine(EXE, 'acquire', '-q', '--no-pagefile', '--pagetables', 'none', '-l', 'store', '-o',
                   path, '--driver', DRIVER, *args, **more)
        said = text(ran.stderr)
        self.assertEqual(ran.returncode, OUTPUT, said)
        *warnings, line = said.splitlines()
        self.assertTrue(line.startswith('ramseal: acquire: '), line)
        for warning in warnings:
            self.assertRegex(warning, '^ramseal: warning: (.*: has room for|the driver will be blocked, because the '
                                      'file is not signed)')  # Wine says that it checks signatures, and does not
        self.nothing_is_left()
        return memory, line

    def check_what_fitted(self, memory, least):
        """Sealed, and what it has is right; the rest is told to be missing."""
        self.verify(PARTIAL)
        raw = self.out.with_suffix('.raw')
        ran = subprocess.run([RAMSEAL, 'export', '-q', '-f', '--fill', FILL.hex(), '--hash', 'none',
                              '-o', raw, self.out], capture_output=True)
        self.assertEqual(ran.returncode, GAPS, text(ran.stderr))
        got = raw.read_bytes()[MIB:]
        states = next(s for s in self.manifest()['streams'] if s['name'] == 'memory')['pages']
        pages = states['data']
        self.assertEqual(pages + states['skipped'], len(memory.content[0]) // PAGE)
        right = sum(got[at:at + PAGE] == memory.content[0][at:at + PAGE]
                    for at in range(0, len(got), PAGE))
        self.assertEqual(right, pages)
        self.assertGreater(pages * PAGE, least)
        raw.unlink()

    def test_file_size_limit(self):
        limit = 20 * MIB + 700000  # Wine keeps no room: what the last record leaves has to do
        self.out.unlink(missing_ok=True)
        memory, _ = self.acquire_to(
            self.out, restore_signals=False,  # Python ignores SIGXFSZ, and so does its child then
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.check_what_fitted(memory, limit // 2)

    @contextlib.contextmanager
    def disk(self, *options):
        folder = TOP / 'disk'
        folder.mkdir(exist_ok=True)
        if subprocess.run(['mount', '-t', 'tmpfs', '-o', ','.join(options), 'tmpfs', folder],
                          capture_output=True).returncode:
            self.skipTest('may not mount')
        try:
            yield folder
        finally:
            subprocess.run(['umount', folder], check=True)

    @unittest.skipUnless(os.geteuid() == 0, 'needs root, to mount')
    def test_full_disk(self):
        with self.disk('size=12700k') as folder:
            memory, line = self.acquire_to(folder / 'out.rsz')
            self.assertIn('; sealed, but without', line)
            shutil.copy(folder / 'out.rsz', self.out)
        self.check_what_fitted(memory, 6 * MIB)

    def test_full_stdout(self):
        with open('/dev/full', 'wb') as full:
            self.acquire_to('-', capture_output=False, stdout=full, stderr=subprocess.PIPE)

    @unittest.skipUnless(os.geteuid() == 0, 'needs root, to mount')
    def test_read_only_disk(self):
        with self.disk('ro') as folder:
            self.acquire_to(folder / 'out.rsz')

    def test_folder_that_takes_no_files(self):
        self.acquire_to('Z:\\sys\\out.rsz')

    # The driver's life

    def test_driver_that_does_not_start(self):
        gen2(entry_status=UNSUCCESSFUL)
        log = self.acquire(NO_SOURCE)
        self.assertIn('(error 31)', log[-1]['message'])
        self.assertIn('ramseal driver status', log[-1]['message'])
        self.nothing_is_left(unloaded=False)

    def test_driver_that_does_not_start_and_leaves_its_device(self):
        self.addCleanup(HOST.restart)  # until then Wine loads no other driver
        gen2(entry_status=UNSUCCESSFUL, leaves=1)
        log = self.acquire(NO_SOURCE)
        self.assertFalse(self.out.exists())
        # Wine ends the process of a driver that does not start, and its devices go.
        if 'the driver started and gave up' in log[-1]['message']:
            self.skipTest('Wine took the device away before anyone looked')
        self.assertIn('restart Windows', log[-1]['message'])

    def test_driver_whose_device_does_not_appear(self):
        gen2(no_device=1)
        log = self.acquire(NO_SOURCE)
        self.assertIn('is not WinPmem', log[-1]['message'])
        self.nothing_is_left()

    def test_driver_for_another_architecture(self):
        gen2()
        image = bytearray(Path(DRIVER).read_bytes())
        at = struct.unpack_from('<I', image, 0x3c)[0]
        for machine in 0x14c, 0xaa64:
            struct.pack_into('<H', image, at + 4, machine)
            (TOP / 'other.sys').write_bytes(image)
            log = self.acquire(INPUT, driver=TOP / 'other.sys')
            self.assertIn('is not for x64', log[-1]['message'])
        self.nothing_is_left(unloaded=False)

    def test_answers_of_random_bytes(self):
        draw = random.Random(11)
        gen2(told=draw.randbytes(2936), registry=draw.randbytes(500))
        log = self.acquire(NO_SOURCE)
        self.assertIn('nothing says where RAM is', log[-1]['message'])
        self.nothing_is_left()

    def test_what_is_no_driver(self):
        gen2()
        for name, content in ('empty', b''), ('text', b'MZ' + b'x' * 100), ('program', None):
            with self.subTest(name):
                path = TOP / 'no.sys'
                path.write_bytes(Path(EXE).read_bytes() if content is None else content)
                self.acquire(INPUT, driver=path)
                self.nothing_is_left(unloaded=False)
        self.acquire(INPUT, driver=TOP / 'missing.sys')
        self.acquire(USAGE, '--source', 'file:' + EXE)

    def test_no_driver(self):
        if self.status()['built_in']:
            self.skipTest('this ramseal.exe has a driver built in')
        log = self.acquire(NO_SOURCE, driver=None)
        self.assertIn('--driver FILE.sys', log[-1]['message'])

    def test_paths(self):
        """Blanks, letters of other scripts, and more than 260 characters, for file and copy."""
        long = '/'.join(f'{i} ünïcode имя 名前 ' + 'x' * 50 for i in range(6))
        folder = C / 'Dri vers & ümlaut' / long
        folder.mkdir(parents=True)
        path = folder / 'my dríver.sys'
        shutil.copy(DRIVER, path)
        self.assertGreater(len(str(folder.relative_to(C))), 260)
        name = 'C:\\' + str(path.relative_to(C)).replace('/', '\\')
        memory = gen2()
        self.out = folder / 'öut put.rsz'
        self.acquire(COMPLETE, '--driver-dir', name.rpartition('\\')[0], driver=name)
        self.assertEqual(self.manifest()['driver']['path'], name)
        kept, self.out = self.out, TOP / 'paths.rsz'
        shutil.move(kept, self.out)
        self.check_memory(memory)
        self.nothing_is_left()

    def test_copy_that_a_link_leads_to(self):
        """The service gets the path that the copy really has, and neither it nor its folder can be moved."""
        gen2()
        folder = C / 'really'
        folder.mkdir(exist_ok=True)
        (C / 'link').symlink_to(folder, target_is_directory=True)
        self.addCleanup((C / 'link').unlink)
        self.driver(COMPLETE, 'load', DRIVER, '--driver-dir', 'C:\\link')
        (entry,) = self.status()['drivers']
        shown = text(wine('sc', 'qc', entry['name']).stdout) + text(wine(
            'reg', 'query', 'HKLM\\System\\CurrentControlSet\\Services\\' + entry['name']).stdout)
        self.driver(COMPLETE, 'unload', '--driver-dir', 'C:\\link')
        self.assertIn('\\??\\C:\\really\\', shown)
        self.nothing_is_left()

    def test_copy_is_below_windows(self):
        """Whatever the environment calls the folder for temporary files."""
        gen2()
        self.driver(COMPLETE, 'load', DRIVER)
        made = [p.parent.name for p in C.rglob('ramseal_*')]
        self.driver(COMPLETE, 'unload')
        self.assertEqual(made, ['windows'])
        self.nothing_is_left()

    def status(self):
        ran = wine(EXE, 'driver', 'status', '--json')
        self.assertEqual(ran.returncode, COMPLETE, text(ran.stderr))
        return json.loads(ran.stdout)

    def driver(self, want, *args):
        ran = wine(EXE, 'driver', *args)
        self.assertEqual(ran.returncode, want, text(ran.stderr))

    def test_output_goes_past_the_cache(self):
        """By Wine's own trace: the flag of the container's handle, and size and buffer of each write to it."""
        memory = gen2()
        ran = wine(EXE, 'acquire', '-q', '--driver', DRIVER, '--no-pagefile', '--pagetables', 'none', '-o', self.out,
                   env={**ENV, 'WINEDEBUG': '+file'})
        self.assertEqual(ran.returncode, COMPLETE)
        handle, opening, writes = None, {}, []
        for line in text(ran.stderr).splitlines():
            thread, _, said = line.partition(':trace:file:')
            words = said.split()
            if said.startswith('CreateFileW L"') and f'{self.out.name}.partial' in said and 'GENERIC_WRITE' in said:
                opening[thread] = int(words[-1], 16)
            elif said.startswith('CreateFileW returning') and thread in opening:
                self.assertTrue(opening.pop(thread) & 0x20000000)  # FILE_FLAG_NO_BUFFERING
                self.assertIsNone(handle, 'it was made twice')
                handle = words[-1]
            elif handle and words[:2] == ['WriteFile', handle]:
                writes.append((int(words[2], 16), int(words[3])))
        self.assertGreater(len(writes), 2)
        self.assertEqual([w for w in writes if w[0] % PAGE or w[1] % PAGE or not w[1]], [])
        # The first was to see if it works, and the last has the end and zeros behind it, which are cut off.
        size = self.out.stat().st_size
        self.assertEqual(sum(length for _, length in writes[1:]), -(-size // PAGE) * PAGE)
        self.assertNotEqual(size % PAGE, 0)
        self.check_memory(memory)

    def test_load_attach_unload(self):
        memory = gen2()
        self.assertEqual(self.status()['drivers'], [])
        self.driver(COMPLETE, 'load', DRIVER)
        status = self.status()
        self.assertTrue(status['device'])
        (entry,) = status['drivers']
        self.assertTrue(entry['running'] and entry['kept'] and not entry['in_use'])
        for driver in None, DRIVER:
            self.acquire(COMPLETE, driver=driver)
            self.check_memory(memory)
            used = self.manifest()['driver']
            self.assertEqual((used['loaded_before'], used['service']), (True, entry['name']))
            self.assertEqual(used['sha256'], sha256_of(DRIVER))
            self.assertEqual(used['path'].lower(), f'c:\\windows\\{entry["name"]}\\winpmem.sys')
        self.driver(COMPLETE, 'cleanup')  # what was left on purpose stays
        self.assertEqual(self.status(), status)
        self.driver(COMPLETE, 'unload')
        self.assertFalse(self.status()['device'])
        self.nothing_is_left()
        # Only by what reads it: closing a handle of 1.6.3 or 2.0.1 disturbs another's reads.
        self.assertEqual(self.log()['opens'], 2)

    def start(self, *args, through=(), **more):
        """An acquisition that takes its time."""
        self.out.unlink(missing_ok=True)
        more = {'stdin': subprocess.DEVNULL, 'stdout': subprocess.DEVNULL, **more}
        ran = subprocess.Popen([WINE, *through, EXE, 'acquire', '--log-json', '--no-pagefile',
                                '--pagetables', 'none', '-l', '19', '-t', '1', '-o', self.out,
                                '--driver', DRIVER, *args],
                               env=ENV, stderr=subprocess.PIPE, **more)
        for stream in ran.stdin, ran.stdout, ran.stderr:
            if stream:
                self.addCleanup(stream.close)
        return ran

    def until(self, ran, event):
        for line in ran.stderr:
            if line.startswith(b'{') and json.loads(line)['event'] == event:
                return
        self.fail(f'it ended without {event}')

    def test_in_use_is_not_cleaned_up(self):
        memory = gen2(runs=[(MIB, 24 * MIB)])
        ran = self.start()
        self.until(ran, 'driver-loaded')
        drivers = self.status()['drivers']
        if ran.poll() is None:  # it may have come to its end, on a fast machine, and have taken the driver with it
            (entry,) = drivers
            self.assertTrue(entry['in_use'])
            self.driver(COMPLETE, 'cleanup')
        self.until(ran, 'summary')
        ran.stderr.read()
        self.assertEqual(ran.wait(timeout=900), COMPLETE)
        self.check_memory(memory)
        self.nothing_is_left()

    def test_killed_at_random(self):
        """Whenever it dies, cleanup removes what it left, and the next run works."""
        draw = random.Random()
        seed = draw.randrange(2**32)
        print('seed', seed, flush=True)
        draw.seed(seed)
        left = 0
        for i in range(10):
            gen2(runs=[(MIB, 24 * MIB)])
            ran = self.start()
            if i % 2:  # half of them while the driver is loaded
                self.until(ran, 'driver-loaded')
            if i != 1:  # that one leaves something for sure
                time.sleep(draw.uniform(0, 2))  # this is the chance, not a wait for something
            ran.kill()
            ran.stderr.read()
            ran.wait(timeout=900)
            left += bool(list(C.rglob('ramseal_*')))
            self.driver(COMPLETE, 'cleanup')
            self.nothing_is_left((FIXTURE / 'log').exists())
            self.assertEqual(self.status()['drivers'], [])
            self.assertFalse(self.status()['device'])
        print('note: killed 10 times, left something', left, 'times')
        self.assertGreater(left, 0)
        self.check(gen2())

    def test_ctrl_c_seals_and_unloads(self):
        gen2(runs=[(MIB, 64 * MIB)])
        ran = self.start()
        self.until(ran, 'source-opened')
        ran.send_signal(signal.SIGINT)
        ran.stderr.read()
        self.assertEqual(ran.wait(timeout=900), INTERRUPTED)
        self.verify(PARTIAL)
        self.nothing_is_left()

    # Console events: wincon.h has their numbers
    CTRL_C, CTRL_BREAK, CLOSE, LOGOFF, SHUTDOWN = 0, 1, 2, 5, 6

    @staticmethod
    def deliver(ran, event):
        ran.stdin.write(b'%d\n' % event)
        ran.stdin.flush()

    def test_console_events_seal_and_unload(self):
        for event, name in ((self.CTRL_C, 'Ctrl-C'), (self.CTRL_BREAK, 'Ctrl-Break'),
                            (self.CLOSE, 'a closed console'), (self.LOGOFF, 'logoff'),
                            (self.SHUTDOWN, 'shutdown')):
            with self.subTest(name):
                gen2(runs=[(MIB, 64 * MIB)])
                ran = self.start(through=[CONSOLE_EVENT], stdin=subprocess.PIPE)
                self.until(ran, 'source-opened')
                self.deliver(ran, event)
                ran.stdin.close()
                said = text(ran.stderr.read())
                self.assertEqual(ran.wait(timeout=900), INTERRUPTED, said)
                self.assertIn(f'interrupted by {name}', said)
                self.verify(PARTIAL)
                self.nothing_is_left()

    def stuck(self):
        """An acquisition into a pipe that nobody reads any more, in the middle of a chunk."""
        memory = gen2(runs=[(MIB, 64 * MIB)])
        memory.content = [random.Random(3).randbytes(64 * MIB)]
        (FIXTURE / 'image').write_bytes(memory.content[0])
        ran = self.start('-l', 'store', '-o', '-', through=[CONSOLE_EVENT], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
        self.until(ran, 'source-opened')
        self.assertEqual(len(ran.stdout.read(MIB // 2)), MIB // 2)
        return ran

    def test_second_ctrl_c_ends_it_at_once(self):
        """Nothing is sealed, but the driver goes; its copy is for cleanup."""
        ran = self.stuck()
        self.deliver(ran, self.CTRL_C)
        self.deliver(ran, self.CTRL_C)
        ran.stdin.close()
        ran.wait(timeout=900)
        self.assertEqual([d for d in self.status()['drivers'] if d['running']], [])
        self.assertFalse(self.status()['device'])
        self.driver(COMPLETE, 'cleanup')
        self.nothing_is_left()

    def test_console_is_closed_and_the_target_hangs(self):
        """Before Windows ends the program, the driver goes without the seal."""
        ran = self.stuck()
        self.deliver(ran, self.CLOSE)
        for _ in range(4500):
            if not any(d['running'] for d in self.status()['drivers']):
                break
            time.sleep(0.2)
        (entry,) = self.status()['drivers']  # its service goes with the program, which has a handle
        self.assertFalse(entry['running'])
        self.assertFalse(self.status()['device'])
        self.assertIsNone(ran.poll())
        ran.stdin.close()
        ran.stdout.read()  # now it goes on, and has no driver any more
        ran.stderr.read()
        ran.wait(timeout=900)
        self.driver(COMPLETE, 'cleanup')
        self.nothing_is_left()


if __name__ == '__main__':
    os.makedirs(TOP, exist_ok=True)
    unittest.main(verbosity=2)
