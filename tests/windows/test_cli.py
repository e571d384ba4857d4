#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ramseal.exe under Wine, as a user meets it, and as the Linux ramseal meets what it wrote.

    test_cli.py WINE RAMSEAL.EXE NATIVE [unittest options]

NATIVE is a Linux ramseal; where it is '' the tests that compare the two are skipped.
"""
import hashlib
import json
import os
import pty
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'ntfs'))
from forge import Volume  # noqa: E402
from hive import Hive  # noqa: E402

WINE, EXE, NATIVE = (sys.argv.pop(1) for _ in range(3))
OBJDUMP = os.environ.get('OBJDUMP', 'objdump')
PAGE = 4096
MIB = 1 << 20
COMPLETE, GAPS, OUTPUT, VERIFY, INTERRUPTED, INPUT, PARTIAL = 0, 3, 6, 7, 8, 9, 10
FOREIGN = 'ä 語 💾'
# DLLs that Windows takes from System32 whatever lies beside the program: the registry's KnownDLLs.
KNOWN = {'advapi32.dll', 'kernel32.dll', 'msvcrt.dll', 'ole32.dll', 'user32.dll', 'rpcrt4.dll', 'ws2_32.dll'}


def windows(path):
    """How Wine calls a path of this machine."""
    return 'Z:' + os.path.abspath(path).replace('/', '\\')


def run(*args, **more):
    more = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, 'timeout': 250, **more}
    return subprocess.run([WINE, EXE, *map(str, args)], **more)


def native(*args):
    return subprocess.run([NATIVE, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=900)


def memory(pages):
    draw = random.Random(pages)
    kinds = [lambda i: draw.randbytes(PAGE), lambda i: bytes(PAGE),
             lambda i: b'%016x' % i * (PAGE // 16)]
    return b''.join(draw.choice(kinds)(i) for i in range(pages))


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='ramseal-windows-')
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), 'wb') as f:
            f.write(data)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), 'rb') as f:
            return f.read()

    def check(self, done, code=COMPLETE):
        self.assertEqual(done.returncode, code, done.stderr.decode(errors='replace'))
        return done

    def acquire(self, data, name='memory.rsz', *more):
        self.write('memory.raw', data)
        return self.check(run('acquire', '--source', 'file:' + windows(self.path('memory.raw')),
                              '-o', windows(self.path(name)), *more))


class Acquire(Case):
    def test_there_and_back(self):
        data = memory(1500)
        self.acquire(data)
        self.check(run('verify', windows(self.path('memory.rsz'))))
        self.check(run('export', '--format', 'raw', '-o', windows(self.path('back.raw')),
                       windows(self.path('memory.rsz'))))
        self.assertEqual(self.read('back.raw'), data)

    def test_what_it_says_of_its_own_machine(self):
        """The memory is an image's: what ramseal knows of this machine is of the one that read it."""
        self.acquire(memory(10))
        doc = json.loads(self.check(run('info', '--json', windows(self.path('memory.rsz')))).stdout)
        for key in ('host', 'os', 'cpu', 'memory', 'security'):
            self.assertNotIn(key, doc)
        self.assertIsInstance(doc['made_on']['os']['build'], int)
        self.assertEqual(doc['made_on']['os']['id'], 'windows')
        self.assertTrue(doc['still'])
        self.assertEqual((doc['stays_awake'], doc['sleeps']), (True, []))
        own = hashlib.sha256(Path(EXE).read_bytes()).hexdigest()
        self.assertEqual(doc['tool']['sha256'], own)

    def test_image_that_somebody_has_open_for_writing(self):
        self.write('memory.raw', memory(10))
        held = windows(self.path('memory.raw'))
        with subprocess.Popen([WINE, 'cmd.exe', '/c', f'pause >> {held}'], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as holder:
            for _ in range(100):  # until it has it open
                done = run('acquire', '-q', '-f', '--no-pagefile', '--source', 'file:' + held,
                           '-o', windows(self.path('memory.rsz')))
                # 3: what it has written to it by then, its prompt, is no whole page.
                self.assertIn(done.returncode, (0, 3), done.stderr)
                doc = json.loads(run('info', '--json', windows(self.path('memory.rsz'))).stdout)
                if not doc['still']:
                    break
            holder.stdin.write(b'\n')
            holder.stdin.close()
            holder.wait(900)
        self.assertFalse(doc['still'])

    def test_check_gathers_what_a_tester_would_type_in(self):
        done = run('check', '--json', '--no-pagefile', '-o', windows(self.path('memory.rsz')))
        said = json.loads(done.stdout)
        self.assertEqual(said['exit_code'], done.returncode)
        machine = said['machine']
        self.assertIsInstance(machine['os']['build'], int)
        self.assertRegex(machine['memory']['user_address_end'], '^0x7ff')
        self.assertIsInstance(machine['security']['antivirus_filters'], list)
        self.assertIsInstance(machine['cpu']['flags'], list)
        self.assertEqual(said['pagefile_list'], [])
        for key in ('whql_enforcement', 'server', 'secure_boot', 'memory_integrity', 'blocklist'):
            self.assertIn(key, said['driver_policy'])
        self.assertIn('security', said['context'])
        self.assertFalse(os.path.exists(self.path('memory.rsz')))

    def test_a_pipe_gets_the_same_bytes(self):
        self.write('memory.raw', memory(300))
        done = self.check(run('acquire', '--source', 'file:' + windows(self.path('memory.raw')),
                              '-o', '-'))
        self.write('piped.rsz', done.stdout)
        self.check(run('verify', windows(self.path('piped.rsz'))))

    def test_names_of_other_languages_and_long_ones(self):
        folder = self.folder
        for _ in range(3):
            folder = os.path.join(folder, 'x' * 120)
            os.mkdir(folder)
        name = os.path.join(folder, FOREIGN + '.rsz')
        self.assertGreater(len(name), 360)
        self.write(FOREIGN + '.raw', memory(20))
        self.check(run('acquire', '--source', 'file:' + windows(self.path(FOREIGN + '.raw')),
                       '-o', windows(name)))
        done = self.check(run('verify', windows(name)))
        self.assertTrue(os.path.getsize(name))
        self.assertEqual(os.listdir(folder), [FOREIGN + '.rsz'])
        self.assertNotIn(b'?', done.stdout)

    def test_what_exists_stays(self):
        self.write('there.rsz', b'precious')
        self.write('memory.raw', memory(2))
        done = run('acquire', '--source', 'file:' + windows(self.path('memory.raw')),
                   '-o', windows(self.path('there.rsz')))
        self.check(done, OUTPUT)
        self.assertEqual(self.read('there.rsz'), b'precious')

    def test_damage_is_found(self):
        self.acquire(memory(200))
        spoilt = bytearray(self.read('memory.rsz'))
        spoilt[len(spoilt) // 2] ^= 1
        self.write('spoilt.rsz', spoilt)
        self.check(run('verify', windows(self.path('spoilt.rsz'))), VERIFY)

    def test_every_format_is_exported(self):
        data = memory(400)
        self.acquire(data)
        for form in 'raw', 'elf', 'lime', 'kdump', 'e01':
            self.check(run('export', '--format', form, '-o', windows(self.path(f'{FOREIGN}.{form}')),
                           windows(self.path('memory.rsz'))))
        self.assertEqual(self.read(FOREIGN + '.raw'), data)
        # libewf again, this time to read.
        again = self.check(run('pagefiles', '--image', windows(self.path(FOREIGN + '.E01'))), INPUT)
        self.assertIn(b'no known file system', again.stderr)

    def test_ctrl_c_seals(self):
        self.write('memory.raw', random.Random(1).randbytes(64 * MIB))
        with subprocess.Popen([WINE, EXE, 'acquire', '--source',
                               'file:' + windows(self.path('memory.raw')), '-o', '-'],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            got = [p.stdout.read(PAGE)]
            p.send_signal(signal.SIGINT)
            # Slowly, so that the signal is there long before the end is.
            while part := p.stdout.read1(PAGE):
                got.append(part)
                time.sleep(0.0005)
            said = p.stderr.read()
        self.assertEqual(p.returncode, INTERRUPTED, said)
        self.assertIn(b'interrupted', said)
        self.write('cut.rsz', b''.join(got))
        self.check(run('verify', windows(self.path('cut.rsz'))), PARTIAL)


@unittest.skipUnless(NATIVE, 'no Linux ramseal was named')
class BothWays(Case):
    def test_linux_reads_what_windows_wrote(self):
        data = memory(700)
        self.acquire(data)
        there = json.loads(self.check(run('verify', '--json', windows(self.path('memory.rsz'))))
                           .stdout)
        here = json.loads(self.check(native('verify', '--json', self.path('memory.rsz'))).stdout)
        self.assertEqual(there['root'], here['root'])
        self.check(native('export', '--format', 'raw', '-o', self.path('back'),
                          self.path('memory.rsz')))
        self.assertEqual(self.read('back'), data)

    def test_windows_reads_what_linux_wrote(self):
        data = memory(700)
        self.write('memory.raw', data)
        self.check(native('acquire', '--source', 'file:' + self.path('memory.raw'),
                          '-o', self.path('linux.rsz')))
        here = json.loads(self.check(native('verify', '--json', self.path('linux.rsz'))).stdout)
        there = json.loads(self.check(run('verify', '--json', windows(self.path('linux.rsz'))))
                           .stdout)
        self.assertEqual(there['root'], here['root'])
        self.check(run('export', '--format', 'raw', '-o', windows(self.path('back')),
                       windows(self.path('linux.rsz'))))
        self.assertEqual(self.read('back'), data)


    def check_same_containers(self, *level):
        """Its times are virtual: the same seed, the same bytes, whatever the system."""
        spec = ('sim:desktop,ram=64M,allocated=40M,resident=22M,trimmed=12M,others=12M,processes=6,'
                'cache=4M,pressure=100,bandwidth=80M,pagefile0=48M,pagefile1=32M,seed=3')
        for order in 'linear', 'guided':
            options = ('acquire', '-q', '--source', spec, '--order', order, *level, '-o')
            self.check(run(*options, windows(self.path(f'{order}-windows.rsz'))))
            self.check(native(*options, self.path(f'{order}-linux.rsz')))
            self.assertTrue(self.read(f'{order}-windows.rsz') == self.read(f'{order}-linux.rsz'), order)

    def test_a_simulated_machine_is_the_same_container(self):
        self.check_same_containers('--level', 'store')

    def test_and_so_it_is_compressed_by_the_same_libzstd(self):
        """As both have it on Debian 12."""
        here, there = (re.search(rb'libzstd [^:]+', self.check(program('--version', '--verbose')).stdout)[0].decode()
                       for program in (native, run))
        if here != there:
            self.skipTest(f'{here} here, {there} there')
        self.check_same_containers()


class Disks(Case):
    def volume(self, hive=None):
        v = Volume(32 * MIB)
        f = v.file('pagefile.sys', runs=[(1000, 40), (3000, 20), (2000, 30)])
        if hive:
            v.nested('Windows/System32/config/SYSTEM', hive)
        v.write(self.path('volume.raw'))
        return f

    def hive(self, names):
        return Hive({'Select': {'Current': 1}, 'ControlSet001': {'Control': {'Session Manager': {
            'Memory Management': {'ExistingPageFiles': names}}}}, 'MountedDevices': {}}).pack()

    def test_a_file_out_of_an_image(self):
        f = self.volume()
        self.check(run('extract-file', '--image', windows(self.path('volume.raw')), '-o',
                       windows(self.path('out')), 'pagefile.sys'))
        self.assertEqual(self.read('out'), f.content())

    def test_page_files_that_a_hive_names(self):
        self.volume(self.hive(['\\??\\C:\\pagefile.sys']))
        done = self.check(run('pagefiles', '--json', '--image', windows(self.path('volume.raw'))))
        listed = json.loads(done.stdout)['pagefiles']
        self.assertEqual([(p['named_by'], p['number'], p['readable']) for p in listed],
                         [('ExistingPageFiles', 0, True)])

    def test_a_hive_wants_no_folder_for_temporary_files(self):
        self.volume(self.hive(['\\??\\C:\\pagefile.sys']))
        command = (f'set TMP=Z:\\nowhere&set TEMP=Z:\\nowhere&{windows(EXE)} pagefiles --json --image '
                   + windows(self.path('volume.raw')))
        done = subprocess.run([WINE, 'cmd', '/c', command], capture_output=True, timeout=900)
        listed = json.loads(self.check(done).stdout)['pagefiles']
        self.assertEqual([p['named_by'] for p in listed], ['ExistingPageFiles'])

    def attach(self, letter):
        """The image as the raw device of a drive: \\\\.\\X: in Wine."""
        links = Path(os.environ['WINEPREFIX']) / 'dosdevices'
        for name, target in (f'{letter}:', self.folder), (f'{letter}::', self.path('volume.raw')):
            link = links / name
            if link.is_symlink():
                link.unlink()
            link.symlink_to(target)
            self.addCleanup(link.unlink)

    def test_a_file_out_of_a_volume(self):
        f = self.volume()
        self.attach('x')
        for name in '\\\\.\\X:', '//./x:', 'X:':
            done = run('extract-file', '--volume', name, '-o', windows(self.path('out')), '--force',
                       'pagefile.sys')
            self.check(done)
            self.assertEqual(self.read('out'), f.content())

    def registry(self, name, value):
        key = ('HKLM\\SYSTEM\\CurrentControlSet\\Control\\Session Manager\\Memory Management')
        subprocess.run([WINE, 'reg', 'add', key, '/v', name, '/t', 'REG_MULTI_SZ', '/d', value, '/f'],
                       check=True, stdout=subprocess.DEVNULL, timeout=900)
        self.addCleanup(subprocess.run, [WINE, 'reg', 'delete', key, '/v', name, '/f'],
                        stdout=subprocess.DEVNULL, timeout=900)

    def test_page_files_of_this_machine(self):
        f = self.volume()
        self.attach('x')
        self.registry('ExistingPageFiles', '\\??\\X:\\pagefile.sys')
        listed = json.loads(self.check(run('pagefiles', '--json')).stdout)['pagefiles']
        self.assertEqual(len(listed), 1, listed)
        self.assertEqual(listed[0]['path'], 'X:\\pagefile.sys')
        self.assertEqual(listed[0]['number'], 0)
        self.assertTrue(listed[0]['readable'], listed)
        self.assertEqual(listed[0]['size'], len(f.content()))
        self.assertEqual(listed[0]['read_by'], 'raw volume')

    def test_a_volume_that_cannot_be_read_and_a_system_that_gives_no_handle(self):
        self.registry('ExistingPageFiles', '\\??\\Q:\\pagefile.sys')
        # Asked for only on request: a security product may report it.
        listed = json.loads(self.check(run('pagefiles', '--json')).stdout)['pagefiles']
        self.assertNotIn('System', listed[0]['problem'])
        listed = json.loads(self.check(run('pagefiles', '--json', '--system-handle')).stdout)['pagefiles']
        self.assertEqual(len(listed), 1, listed)
        self.assertFalse(listed[0]['readable'])
        self.assertNotIn('read_by', listed[0])
        # What Wine lacks is the process; Windows refuses it.
        self.assertRegex(listed[0]['problem'], r'Q:.*; nor by a handle of System: handles of process 4: ')


class Swapper(unittest.TestCase):
    def test_it_says_where_its_pages_are(self):
        with subprocess.Popen([WINE, os.environ['SWAPPER'], '64'], stdout=subprocess.PIPE) as p:
            said = p.stdout.readline().split()
            p.kill()
        self.assertEqual(said[1:], [b'0x100000000000', b'64'])
        self.assertGreater(int(said[0]), 0)


class DoubleClick(unittest.TestCase):
    @staticmethod
    def in_a_terminal(*args):
        """What is on the terminal, where a key is pressed once that is asked for; and the exit code."""
        pid, fd = pty.fork()
        if not pid:
            os.execvp(WINE, [WINE, EXE, *args])
        seen, pressed = b'', False
        while True:
            try:
                got = os.read(fd, 4096)
            except OSError:
                break
            if not got:
                break
            # Wine's console draws each letter by itself.
            seen = re.sub(rb'\x1b\[(\?25[lh]|K)', b'', (seen + got).replace(b'\x1b[1C', b' '))
            if b'any key' in seen and not pressed:
                pressed = os.write(fd, b'x') > 0
        return seen, pressed, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def test_three_commands_and_a_key(self):
        seen, pressed, code = self.in_a_terminal()
        self.assertTrue(pressed)
        self.assertEqual(code, 2)
        for word in b'ramseal check', b'acquire -o', b'verify ':
            self.assertIn(word, seen)

    def test_not_with_a_command(self):
        seen, pressed, code = self.in_a_terminal('version')
        self.assertEqual((pressed, code), (False, 0))
        self.assertIn(b'ramseal', seen)

    def test_not_without_a_keyboard(self):
        ran = run(stdin=subprocess.DEVNULL)
        self.assertEqual(ran.returncode, 2)
        self.assertNotIn(b'any key', ran.stdout)


class File(unittest.TestCase):
    """What the loader sees."""

    @classmethod
    def setUpClass(cls):
        cls.headers = subprocess.run([OBJDUMP, '-p', EXE], stdout=subprocess.PIPE, check=True,
                                     text=True).stdout

    def test_only_dlls_that_windows_takes_from_system32(self):
        names = {n.lower() for n in re.findall(r'DLL Name: (\S+)', self.headers)}
        self.assertIn('kernel32.dll', names)
        self.assertLessEqual(names, KNOWN)

    def test_only_functions_that_windows_7_has(self):
        text = (Path(__file__).resolve().parent / 'imports.txt').read_text()
        known = {tuple(line.split()) for line in text.splitlines()
                 if not line.startswith('#')}
        dll, found = None, set()
        for line in self.headers.splitlines():
            if 'DLL Name:' in line:
                dll = line.split()[-1].lower()
            # Its address, no ordinal (a column since binutils 2.44), a hint, and the name.
            name = re.fullmatch(r'\s+[0-9a-f]+\s+(?:<none>\s+)?[0-9a-f]+\s+(\w+)', line)
            if dll in ('kernel32.dll', 'advapi32.dll', 'ws2_32.dll') and name:
                found.add((dll, name[1]))
        self.assertGreater(len(found), 100)
        self.assertEqual(found - known, set())
        # Windows 8; the library for threads, too, has to look for it at run time.
        self.assertNotIn(('kernel32.dll', 'GetSystemTimePreciseAsFileTime'), known)

    def test_no_time_in_it(self):
        self.assertRegex(self.headers, r'Time/Date\s+(Thu Jan +1 00:00:00 1970|0+\b)')

    def test_hardening(self):
        for flag in 'HIGH_ENTROPY_VA', 'DYNAMIC_BASE', 'NX_COMPAT':
            self.assertIn(flag, self.headers)

    def test_manifest_and_version(self):
        data = Path(EXE).read_bytes()
        self.assertIn(b'<longPathAware', data)
        self.assertIn(b'level="asInvoker"', data)
        version = self_version()
        self.assertIn('FileVersion'.encode('utf-16-le'), data)
        self.assertIn(version.encode('utf-16-le'), data)


    def test_licences(self):
        text = run('--licences').stdout.decode().replace('\r\n', '\n')
        self.assertTrue(text.startswith(f'ramseal {self_version()} for Windows: licences\n'))
        for words in ('Joachim Metz', 'Common Public License', 'GCC RUNTIME LIBRARY EXCEPTION'):
            self.assertTrue(words in text, words)


def self_version():
    return run('--version').stdout.decode().split()[1]


if __name__ == '__main__':
    # One prefix for all, and the one that build/wine would use.
    os.environ.setdefault('WINEPREFIX', str(Path(WINE).resolve().parent.parent / 'out/windows/wine'))
    unittest.main()
