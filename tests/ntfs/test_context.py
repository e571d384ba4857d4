#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ramseal context, on forged hives, alone and on forged disks. Usage: test_context.py RAMSEAL DATA

One test wants a hive that Windows wrote. It is not a part of the sources: it is looked for in
$RAMSEAL_TEST_DATA, or in DATA, and without it that test is skipped.
"""
import json
import lzma
import os
import struct
import subprocess
import sys
import tempfile
import unittest

from forge import Volume
from hive import Hive, changed, entry, new_log, numbered, old_log, sealed
from make_hives import CONTROL, SOFTWARE, SYSTEM, db_value

RAMSEAL = os.path.abspath(sys.argv.pop(1))
DATA = os.environ.get('RAMSEAL_TEST_DATA', os.path.abspath(sys.argv.pop(1)))
REAL = os.path.join(DATA, 'win7sp1-x64-SOFTWARE.xz')
MIB = 1 << 20
OK, USAGE, NO_SOURCE, VERIFY, INPUT = 0, 2, 4, 7, 9


def ramseal(*arguments):
    return subprocess.run([RAMSEAL, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=900)


def with_header(hive, at, value):
    """The hive with 4 bytes of its header changed, and the checksum made right."""
    head = bytearray(hive[:512])
    struct.pack_into('<I', head, at, value)
    checksum = 0
    for (word,) in struct.iter_unpack('<I', head[:508]):
        checksum ^= word
    struct.pack_into('<I', head, 508, checksum)
    return bytes(head) + hive[512:]


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = directory.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), 'wb') as f:
            f.write(data)
        return self.path(name)

    def context(self, *arguments, code=OK):
        done = ramseal('context', '--json', *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def refused(self, code, part, *arguments):
        done = ramseal('context', *arguments)
        self.assertEqual((done.returncode, done.stdout), (code, ''), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(part, done.stderr)


class Hives(Case):
    def check_software(self, c):
        self.assertEqual(c['windows']['product'], 'Windows')
        self.assertEqual(c['radar']['settings'], {
            'commit_threshold_percent': 5, 'detection_interval_days': 30,
            'timer_interval_minutes': 5})
        self.assertEqual([(d['image'], d.get('filetime'), d.get('last_detection'))
                          for d in c['radar']['diagnosed']], [
            ('a.exe', '0x01cc6f049e57f314', '2011-09-09T15:24:51.401806800Z'),
            ('b.exe', '0x0000000000000000', None), ('c.exe', None, None)])
        a, b = c['heap_debugging']['images']
        self.assertEqual((a['image'], a['global_flag']['value'], a['stack_trace_database_mb']),
                         ('a.exe', 0x02001000, 32))
        self.assertEqual([n[:3] for n in a['global_flag']['names']], ['ust', 'hpa'])
        self.assertEqual(a['shutdown_flags']['value'], 3)
        self.assertEqual((b['image'], b['path'], b['global_flag']['value']),
                         ('b.exe', 'C:\\b.exe', 0x200))

    def check_system(self, c):
        self.assertEqual(c['windows']['control_set'], 2)
        self.assertEqual(c['page_files'], {
            'configured': ['?:\\pagefile.sys', 'D:\\p.sys 1 2'],
            'existing': ['\\??\\C:\\pagefile.sys'], 'cleared_at_shutdown': True})
        s = c['security']
        self.assertEqual((s['vbs'], s['hvci'], s['credential_guard'], s['secure_boot'],
                          s['test_signing'], s['kernel_debugger']),
                         (True, True, 2, True, True, False))
        self.assertEqual(c['heap_debugging']['system']['global_flag']['value'], 0x400)

    def test_software(self):
        c = self.context('--hive', self.write('s', Hive(SOFTWARE).pack()))
        self.check_software(c)
        self.assertEqual([(h['kind'], h['dirty']) for h in c['hives']], [('SOFTWARE', False)])
        self.assertIsNone(c['security']['test_signing'])

    def test_both_in_any_order(self):
        software = self.write('x', Hive(SOFTWARE).pack())
        system = self.write('y', Hive(SYSTEM).pack())
        for order in ((software, system), (system, software)):
            c = self.context('--hive', order[0], '--hive', order[1])
            self.check_software(c)
            self.check_system(c)

    def test_text(self):
        done = ramseal('context', '--hive', self.write('s', Hive(SOFTWARE).pack()),
                       '--hive', self.write('t', Hive(SYSTEM).pack()))
        self.assertEqual((done.returncode, done.stderr), (OK, ''))
        for line in ('RADAR: programs that commit 5 % of memory, looked for every 5 minutes, '
                     'the same program at most every 30 days',
                     'RADAR: a.exe, last detected 2011-09-09T15:24:51.401806800Z',
                     'RADAR: c.exe, last detected at an unknown time', 'test signing: yes',
                     'page files, existing: \\??\\C:\\pagefile.sys', 'Credential Guard: on (2)'):
            self.assertIn(line, done.stdout.splitlines())

    def test_names_that_are_not_for_a_terminal(self):
        tree = {'Microsoft': {'RADAR': {'HeapLeakDetection': {'DiagnosedApplications': {
            'a\x1b[2Jé.exe': {}}}}}}
        path = self.write('s', Hive(tree).pack())
        self.assertIn('RADAR: a\\x1b[2Jé.exe,', ramseal('context', '--hive', path).stdout)
        self.assertEqual(self.context('--hive', path)['radar']['diagnosed'][0]['image'],
                         'a\x1b[2Jé.exe')

    def test_dirty(self):
        path = self.write('s', with_header(Hive(SOFTWARE).pack(), 4, 77))
        self.assertTrue(self.context('--hive', path)['hives'][0]['dirty'])
        self.assertIn('.LOG1 is not there, .LOG2 is not there; newer changes are missing',
                      ramseal('context', '--hive', path).stdout)

    def product(self, hive, logs):
        """What the hive says with these logs beside it, of which nothing is written: its name, and the rest."""
        path = self.write('h', hive)
        for suffix in ('.LOG1', '.LOG2', '.LOG'):
            if os.path.exists(path + suffix):
                os.remove(path + suffix)
        for suffix, data in logs.items():
            self.write('h' + suffix, data)
        c = self.context('--hive', path)
        with open(path, 'rb') as f:
            self.assertEqual(f.read(), hive)
        self.assertEqual(set(os.listdir(self.folder)), {'h', *('h' + x for x in logs)})
        return c['windows']['product'], c['hives'][0]

    @staticmethod
    def named(name, more=0):
        """One that has another name, and may have more bins."""
        tree = {'Microsoft': {'Windows NT': {'CurrentVersion': {'ProductName': name, 'filler': bytes(more)}}}}
        return Hive(tree).pack()

    def test_logs_of_the_old_format(self):
        before = numbered(self.named('before'), 5, 4)
        for more in (0, 9000):
            after = self.named('after!', more)
            log = old_log(before, after, 5)
            for suffix in ('.LOG1', '.LOG2', '.LOG'):
                name, h = self.product(before, {suffix: log})
                self.assertEqual((name, h['dirty'], h['logs']),
                                 ('after!', False, '1 transaction of its logs were replayed'))
        self.assertIn('was not written out whole: 1 transaction of its logs',
                      ramseal('context', '--hive', self.path('h')).stdout)
        # Clean, it is what it is; and with a damaged header its log's counts.
        self.assertEqual(self.product(numbered(before, 5, 5), {'.LOG1': log})[0], 'before')
        self.assertEqual(self.product(before[:60] + b'?' + before[61:], {'.LOG1': log})[0], 'after!')
        # Not written to the end; of another time; cut short; with a bin that is none; not of a hive.
        other = bytearray(log)
        struct.pack_into('<Q', other, 12, 77)
        torn = old_log(before, after[:4096] + b'nibh' + after[4100:], 5)
        for bad, why in ((numbered(log, 5, 4, 1), 'of another state'), (sealed(bytes(other)), 'of another state'),
                         (log[:-512], 'of another state'), (torn, 'of another state'),
                         (log[:511] + b'?' + log[512:], 'no log'), (b'', 'not there'), (bytes(4096), 'no log')):
            name, h = self.product(before, {'.LOG1': bad})
            self.assertEqual((name, h['dirty']), ('before', True), why)
            self.assertIn(f'.LOG1 is {"empty or " if why == "no log" else ""}{why}', h['logs'])
        # The other one is right.
        self.assertEqual(self.product(before, {'.LOG1': torn, '.LOG2': log})[0], 'after!')

    def test_logs_of_the_new_format(self):
        states = [self.named(f'state {i}', 9000 * (i > 2)) for i in range(5)]
        hive = numbered(states[0], 7, 6)
        entries = [entry(7 + i, len(b) - 4096, changed(a, b, 4096))
                   for i, (a, b) in enumerate(zip(states, states[1:]))]
        old = entry(6, len(hive) - 4096, {0: bytes(4096)})

        def check(logs, name, dirty, count):
            got, h = self.product(hive, logs)
            self.assertEqual((got, h['dirty']), (name, dirty))
            self.assertEqual(h['logs'].split(' ')[0], str(count))

        check({'.LOG1': new_log(hive, 7, entries)}, 'state 4', False, 4)
        check({'.LOG1': new_log(hive, 6, [old] + entries)}, 'state 4', False, 4)
        for two in (('.LOG1', '.LOG2'), ('.LOG2', '.LOG1')):
            check({two[0]: new_log(hive, 7, entries[:2]), two[1]: new_log(hive, 9, entries[2:])}, 'state 4', False, 4)
        # What is left of an earlier use of the log, behind them.
        check({'.LOG1': new_log(hive, 7, entries + [old])}, 'state 4', False, 4)
        # One is damaged, or missing: no other one may follow it.
        for k in range(4):
            for at in (12, 24, 32, 44, 600):
                bad = bytearray(entries[k])
                bad[at] ^= 1
                log = new_log(hive, 7, entries[:k] + [bytes(bad)] + entries[k + 1:])
                if k:
                    check({'.LOG1': log}, f'state {k}', True, k)
                else:
                    self.assertEqual(self.product(hive, {'.LOG1': log})[0], 'state 0')
        check({'.LOG1': new_log(hive, 7, entries[:1] + entries[2:])}, 'state 1', True, 1)
        # Right by its hashes, and beyond the hive.
        beyond = entry(8, len(hive) - 4096, {len(hive) - 4096: bytes(4096)})
        check({'.LOG1': new_log(hive, 7, [entries[0], beyond])}, 'state 1', True, 1)
        # A header that is damaged is the log's.
        name, h = self.product(hive[:60] + b'?' + hive[61:], {'.LOG1': new_log(hive, 7, entries)})
        self.assertEqual((name, h['dirty']), ('state 4', False))

    def test_mistakes(self):
        software = self.write('s', Hive(SOFTWARE).pack())
        self.refused(USAGE, 'second SOFTWARE', '--hive', software, '--hive', software)
        self.refused(USAGE, '--image', '--hive', software, '--image', software)
        self.refused(USAGE, '--offset', '--offset', 1)
        self.refused(INPUT, 'neither', '--hive', self.write('n', Hive({'Other': {}}).pack()))
        self.refused(INPUT, 'No such file', '--hive', self.path('none'))
        if os.environ.get('RAMSEAL_SYSTEM') != 'windows':  # there it is the running system's
            self.refused(NO_SOURCE, 'no registry')

    def test_damaged(self):
        whole = Hive(SOFTWARE).pack()
        long = Hive({'Microsoft': {f'key {i}': {} for i in range(200)}}).pack()
        for name, data, why in (
                ('empty', b'', 'is not a registry hive'), ('short', whole[:5000], 'is not a registry hive'),
                ('zeros', bytes(8192), 'is not a registry hive'),
                ('text', b'x' * 100000, 'is not a registry hive'),
                ('version', with_header(whole, 20, 2), 'version 2, which cannot be read'),
                ('torn', whole[:100] + b'?' + whole[101:], 'the checksum of the hive'),
                ('cut', long[:-4096], 'the hive is cut short'),
                ('no bins', whole[:4096] + bytes(len(whole) - 4096), 'cells'),
                ('no-root', with_header(whole, 36, 0x28), 'cells'),
                ('far', with_header(whole, 40, 1 << 30), 'the hive is cut short')):
            with self.subTest(name):
                path = self.write(name, data)
                self.refused(INPUT, path, '--hive', path)
                r = ramseal('context', '--hive', path)
                self.assertIn(why, r.stderr)
                self.assertNotRegex(r.stderr, 'not supported|Invalid argument|Bad address|errno')

    def test_damage_in_one_place_leaves_the_rest(self):
        h = Hive(SOFTWARE)
        at = h.cells.index(b'LastDetectionTime')
        # The data of the first one is said to lie where no cell begins.
        struct.pack_into('<I', h.cells, at - 20 + 8, 3)
        path = self.write('s', h.pack())
        c = self.context('--hive', path, code=VERIFY)
        self.assertEqual(len(c['problems']), 1)
        self.assertIn('LastDetectionTime', c['problems'][0])
        self.assertEqual([d['image'] for d in c['radar']['diagnosed']], ['a.exe', 'b.exe', 'c.exe'])
        self.assertEqual(c['windows']['product'], 'Windows')

    def test_one_cell_is_torn(self):
        # libhivex goes through all cells before it says anything.
        for kind, tree in ('SOFTWARE', SOFTWARE), ('SYSTEM', SYSTEM):
            whole = self.context('--hive', self.write('whole', Hive(tree).pack()))
            for length in 0, 3, -3, 0x7fffffff, -0x7fffffff:
                with self.subTest(kind=kind, length=length):
                    h = Hive(tree)
                    extra = h.cell(b'of nobody')
                    struct.pack_into('<i', h.cells, extra, length)
                    c = self.context('--hive', self.write('s', h.pack()), code=VERIFY)
                    self.assertEqual(len(c['problems']), 1, c['problems'])
                    self.assertIn('is damaged', c['problems'][0])
                    for d in whole, c:
                        for key in 'hives', 'problems':
                            d.pop(key, None)
                    self.assertEqual(c, whole)

    def test_the_cell_of_a_key_is_torn(self):
        h = Hive(SOFTWARE)
        at = h.cells.index(b'a.exe') - 76
        self.assertEqual(h.cells[at:at + 2], b'nk')
        struct.pack_into('<i', h.cells, at - 4, 5)
        c = self.context('--hive', self.write('s', h.pack()), code=VERIFY)
        self.assertIn('is damaged', c['problems'][0])
        self.assertEqual(c['windows']['product'], 'Windows')

    def test_global_flag_as_text(self):
        for text, want in ((' 0x2000', 0x2000), ('\t 512 ', 512), ('0x200', 0x200), ('x', None), (' ', None)):
            with self.subTest(text=text):
                tree = {'Microsoft': {'Windows NT': {'CurrentVersion': {
                    'Image File Execution Options': {'a.exe': {'GlobalFlag': text}}}}}}
                c = self.context('--hive', self.write('s', Hive(tree).pack()))
                images = c.get('heap_debugging', {}).get('images', [])
                self.assertEqual([i['global_flag']['value'] for i in images if i.get('global_flag')],
                                 [] if want is None else [want], c)

    def test_a_users_hive_is_not_the_machines(self):
        explorer = {'Windows': {'CurrentVersion': {'Explorer': {}}}, 'Windows NT': {'CurrentVersion': {'Winlogon': {}}}}
        for tree in ({'Software': {'Microsoft': explorer}, 'Environment': {}, 'Control Panel': {}},
                     {'Microsoft': explorer}, {'Microsoft': explorer, 'Environment': {}, 'Software': {}},
                     {'Microsoft': {'Windows NT': {'CurrentVersion': {}}}}):
            with self.subTest(keys=list(tree)):
                self.refused(INPUT, "a user's", '--hive', self.write('NTUSER.DAT', Hive(tree).pack()))

    def test_value_longer_than_its_cell(self):
        # libhivex would follow a list of 65535 cells, most of them behind the end of the file.
        c = self.context('--hive', self.write('s', db_value()))
        self.assertEqual(c['windows']['control_set'], 1)

    def test_value_larger_than_any(self):
        c = self.context('--hive', self.write('s', Hive({'Microsoft': {'Windows NT': {
            'CurrentVersion': {'ProductName': 'x' * 8172, 'UBR': 7}}}}).pack()), code=VERIFY)
        self.assertIn('ProductName', c['problems'][0])
        self.assertEqual(c['windows'], {'revision': 7})

    def test_keys_that_lead_to_one_another(self):
        names = {f'{i:03}.exe': {} for i in range(1000)}
        h = Hive({'Microsoft': {'Windows NT': {'CurrentVersion': {
            'Image File Execution Options': names}}}})
        # Each of them has the same keys below it as their parent.
        parent = h.cells.index(b'Image File Execution Options') - 76
        subkeys = h.cells[parent + 20:parent + 24], h.cells[parent + 28:parent + 32]
        for name in names:
            at = h.cells.index(name.encode()) - 76
            h.cells[at + 20:at + 24], h.cells[at + 28:at + 32] = subkeys
        c = self.context('--hive', self.write('s', h.pack()), code=VERIFY)
        self.assertIn('form a loop', c['problems'][0])

    @unittest.skipUnless(os.path.exists(REAL), 'the hive is not here')
    def test_a_hive_of_windows_7(self):
        with lzma.open(REAL) as f:
            path = self.write('SOFTWARE', f.read())
        c = self.context('--hive', path)
        self.assertEqual(c['radar']['diagnosed'], [{
            'image': 'TrustedInstaller.exe', 'filetime': '0x01cc6f049e57f314',
            'last_detection': '2011-09-09T15:24:51.401806800Z'}])
        self.assertEqual(c['radar']['settings']['commit_threshold_percent'], 5)
        self.assertEqual(c['windows']['product'], 'Windows 7 Ultimate')
        self.assertIn('RADAR: TrustedInstaller.exe, last detected 2011-09-09T15:24:51.401806800Z',
                      ramseal('context', '--hive', path).stdout.splitlines())


class Disks(Case):
    def disk(self, **hives):
        v = Volume(16 * MIB, label='Windows')
        for name, data in hives.items():
            v.nested(f'Windows/System32/config/{name}', data)
        v.write(self.path('disk'))
        return self.path('disk')

    def test_software(self):
        c = self.context('--image', self.disk(SOFTWARE=Hive(SOFTWARE).pack()), code=VERIFY)
        self.assertEqual(len(c['radar']['diagnosed']), 3)
        self.assertIn('SYSTEM', c['problems'][0])

    def test_system(self):
        c = self.context('--image', self.disk(SYSTEM=Hive(SYSTEM).pack()), code=VERIFY)
        self.assertEqual(c['windows']['control_set'], 2)
        self.assertIn('SOFTWARE', c['problems'][0])

    def test_none(self):
        self.refused(INPUT, 'no volume has', '--image', self.disk(OTHER=bytes(8192)))
        self.refused(VERIFY, 'SYSTEM', '--image', self.disk(SYSTEM=bytes(8192)))

    def test_in_the_manifest_beside_a_memory_image(self):
        memory = self.write('memory', bytes(MIB))
        disk = self.disk(SYSTEM=Hive({'Select': {'Current': 1}, 'ControlSet001': {
            'Control': CONTROL}}).pack())
        container, manifest = self.path('c.rsz'), self.path('manifest')
        for extra, there in ((['--image', disk], True), ([], False)):
            done = ramseal('acquire', '-q', '-f', '-s', f'file:{memory}', '-o', container, *extra)
            self.assertIn(done.returncode, (0, 3), done.stderr)
            done = ramseal('extract', '-q', '-f', '--stream', 'manifest', '-o', manifest, container)
            self.assertEqual(done.returncode, OK, done.stderr)
            with open(manifest) as f:
                begin = json.loads(f.readline())
            self.assertEqual(begin['event'], 'begin')
            self.assertEqual('context' in begin, there)
            if there:
                self.assertTrue(begin['context']['security']['test_signing'])
                self.assertEqual(begin['context']['windows']['control_set'], 1)


if __name__ == '__main__':
    unittest.main()
