#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
acquire, verify, info and export as a user meets them, bad input first. No VM, no root: what needs
root is skipped without it. Usage: test_acquire.py RAMSEAL SOURCE-ROOT
"""

import bz2
import contextlib
import gzip
import json
import lzma
import os
import random
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SOURCE_ROOT = Path(sys.argv.pop(2)).resolve()
sys.path.insert(0, str(SOURCE_ROOT / 'tests/reader'))
from write_rsz import CLOSE, INDEX, Rec, assemble, begin, chunk, stream  # noqa: E402
from pending import wait_until_taken  # noqa: E402

RAMSEAL = os.path.abspath(sys.argv.pop(1))
SIMULATOR = os.environ.get('RAMSEAL_SIMULATOR') != '0'  # -Dsimulator
needs_simulator = unittest.skipUnless(SIMULATOR, 'built without simulated machines')
PAGE = 4096
MIB = 1 << 20
NOBODY = 65534
NOT_THERE = b'SKIPPED PAGE    ' * (PAGE // 16)


def run(*args, **more):
    more = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, 'timeout': 300, **more}
    return subprocess.run([RAMSEAL, *map(str, args)], **more)


def memory(pages, seed=1):
    """Pages of every kind that a compressor meets: random, zero, repetitive, text-like."""
    draw = random.Random(seed)
    words = [b'%x ' % draw.getrandbits(24) for _ in range(300)]
    made = []
    for i in range(pages):
        kind = draw.randrange(4)
        if kind == 0:
            made.append(draw.randbytes(PAGE))
        elif kind == 1:
            made.append(bytes(PAGE))
        elif kind == 2:
            made.append(struct.pack('<Q', 0xffff888000000000 + i * PAGE) * (PAGE // 8))
        else:
            made.append(b''.join(draw.choices(words, k=PAGE))[:PAGE])
    return b''.join(made)


def pattern(address, size):
    """Content that is a function of its address."""
    return b''.join(struct.pack('<Q', (a * 0x9e3779b97f4a7c15 + 1) % 2**64)
                    for a in range(address, address + size, 8))


def elf_core(segments):
    """An ELF core from (p_paddr, p_filesz, p_memsz); the content is the address's pattern."""
    at = 64 + 56 * len(segments)
    headers, content = b'', b''
    for paddr, filesz, memsz in segments:
        headers += struct.pack('<IIQQQQQQ', 1, 7, at + len(content), 0xffff888000000000, paddr,
                               filesz, memsz, PAGE)
        content += pattern(paddr % 2**63, filesz)
    return struct.pack('<16sHHIQQQIHHHHHH', b'\x7fELF\2\1\1', 4, 62, 1, 0, 64, 0, 0, 64, 56,
                       len(segments), 0, 0, 0) + headers + content


def lime(ranges):
    """A LiME file from (first, last)."""
    return b''.join(struct.pack('<IIQQQ', 0x4c694d45, 1, first, last, 0)
                    + pattern(first, last - first + 1) for first, last in ranges)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)

    def file(self, name, content):
        path = self.at / name
        path.write_bytes(content)
        return path

    def one_line(self, done, code):
        """Ended with `code` and one line on stderr."""
        self.assertEqual((done.returncode, done.stderr.count(b'\n')), (code, 1), done)
        self.assertRegex(done.stderr, rb'^ramseal: \S')

    def acquire(self, source, name='out.rsz', code=0, *args, **more):
        """Acquires the image `source`; returns the container's path and what the command said."""
        path = self.at / name
        done = run('acquire', '-q', '--source', f'file:{source}', '-o', path, *args, **more)
        self.assertEqual(done.returncode, code, done.stderr)
        return path, done

    def verify(self, path, code=0):
        done = run('verify', path)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def info(self, path):
        return json.loads(run('info', '--json', path).stdout)

    def assert_cut(self, exported, image):
        """The front of the image; what was not captured is filled, if it is known that it was there."""
        had = len(exported)
        while exported[had - PAGE:had] == NOT_THERE:
            had -= PAGE
        self.assertEqual(exported[:had], image[:had])
        self.assertIn(len(exported), (had, len(image)))
        return had

    def pages(self, path):
        return next(s['pages'] for s in self.info(path)['streams'] if s['name'] == 'memory')

    def export(self, path, code=0, *args):
        out = self.at / 'exported.raw'
        done = run('export', '-q', '--force', '--format', 'raw', '-o', out, *args, path)
        self.assertEqual(done.returncode, code, done.stderr)
        return out.read_bytes()


class BadInput(Case):
    def test_source_that_does_not_exist(self):
        for source, code in (('nonsense', 2), ('file:/does/not/exist', 9), ('file:/', 9),
                             ('linpmem:/does/not/exist', 4)):
            self.one_line(run('acquire', '--source', source, '-o', self.at / 'x'), code)
        self.assertEqual(list(self.at.iterdir()), [])

    def test_file_that_is_no_memory(self):
        zstd = b'\x28\xb5\x2f\xfd' + bytes(PAGE)
        for content in (b'', b'short', zstd, elf_core([])[:60]):
            image = self.file('image', content)
            self.one_line(run('acquire', '--source', f'file:{image}', '-o', self.at / 'x'), 9)
            self.assertFalse((self.at / 'x').exists() or (self.at / 'x.partial').exists())

    def test_file_that_is_something_else_is_named_and_can_be_forced(self):
        text = ''.join(f'line {i} of a log\n' for i in range(500)).encode()
        for content, name in ((gzip.compress(memory(4)), b'a gzip file, not memory; unpack it'),
                              (lzma.compress(memory(4)), b'an xz file'),
                              (bz2.compress(memory(4)), b'a bzip2 file'),
                              (b'%PDF-1.4\n' + memory(4), b'a PDF document'), (text, b'text')):
            image = self.file('image', content)
            done = run('acquire', '--source', f'file:{image}', '-o', self.at / 'x')
            self.one_line(done, 9)
            self.assertIn(b'is ' + name, done.stderr)
            self.assertIn(b'--source raw:PATH', done.stderr)
            self.assertFalse((self.at / 'x').exists())
            whole = self.file('whole', content[:len(content) // PAGE * PAGE])
            done = run('acquire', '-q', '--source', f'raw:{whole}', '-o', self.at / 'x', '--force')
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.export(self.at / 'x'), whole.read_bytes())
            os.unlink(self.at / 'x')

    def test_container_is_no_source(self):
        path, _ = self.acquire(self.file('image', memory(4)))
        self.one_line(run('acquire', '--source', f'file:{path}', '-o', self.at / 'x'), 9)

    def test_a_pipe_is_refused_at_once(self):
        """Opening a FIFO waits for its other end. The same of a pipe that stdin is."""
        fifo, image = self.at / 'fifo', self.file('image', memory(4))
        os.mkfifo(fifo)
        out = ['-o', self.at / 'x']
        for name in (fifo, '/dev/stdin'):
            done = [run(*args, stdin=subprocess.PIPE) for args in (
                ['verify', name], ['info', name], ['smear', name], ['report', name, *out],
                ['read', name, '--pid', 1, '--va', 0], ['export', name, '--format', 'raw', *out],
                ['extract', name, '-S', 'log', *out], ['seal', name], ['seal', name, *out],
                ['pagefiles', '-i', name], ['pagefiles', '-V', name],
                ['extract-file', '-i', name, 'pagefile.sys', *out], ['context', '-H', name],
                ['context', '-i', name], ['check', '-s', f'file:{name}'],
                ['acquire', '-s', f'file:{image}', '-i', name, *out],
                *(['acquire', '-s', f'{source}:{name}', *out] for source in (
                    'file', 'raw', 'kcore', 'devmem', 'linpmem', 'pmem', 'crash')),
                *(['acquire', '-s', f'sim:{name}', *out] for _ in range(SIMULATOR)))]
            for d in done:
                self.one_line(d, 9)
                self.assertIn(b'is a pipe', d.stderr)
        self.assertFalse((self.at / 'x').exists())

    @unittest.skipUnless(os.geteuid() == 0, 'needs root, to give it up')
    def test_no_rights(self):
        image = self.file('image', memory(4))
        os.chmod(self.at, 0o777)
        os.chmod(image, 0o600)
        program = shutil.copy(RAMSEAL, self.at / 'ramseal')
        os.chmod(program, 0o755)
        for source, code in ((f'file:{image}', 9), ('kcore', 4), ('devmem', 4), ('auto', 4)):
            done = subprocess.run([program, 'acquire', '--source', source, '-o', self.at / 'x'],
                                  user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True)
            self.one_line(done, code)
            self.assertFalse((self.at / 'x').exists() or (self.at / 'x.partial').exists())

    @unittest.skipIf(any(map(os.path.exists, ('/proc/kcore', '/dev/crash', '/dev/mem'))), 'there may be a source')
    def test_without_a_source_there_is_a_next_step(self):
        """As in a container: all reasons, and what to do."""
        for place, step in (('docker', 'run it on the container\'s host'), ('', '--source file:DUMP')):
            env = {name: value for name, value in os.environ.items() if name != 'KUBERNETES_SERVICE_HOST'}
            env.pop('container', None)
            if place:
                env['container'] = place
            elif os.path.exists('/.dockerenv') or os.path.exists('/run/.containerenv'):
                continue
            done = run('acquire', '-o', self.at / 'x', env=env)
            self.one_line(done, 4)
            self.assertRegex(done.stderr.decode(), rf'kcore.*crash.*devmem.*; next: .*{re.escape(step)}')

    def test_target_that_exists(self):
        image = self.file('image', memory(4))
        target = self.file('out.rsz', b'precious')
        self.one_line(run('acquire', '--source', f'file:{image}', '-o', target), 6)
        self.assertEqual(target.read_bytes(), b'precious')
        self.acquire(image, 'out.rsz', 0, '--force')
        self.verify(target)
        self.assertEqual(target.stat().st_mode & 0o777, 0o600)

    def test_target_in_a_folder_that_does_not_exist(self):
        image = self.file('image', memory(4))
        self.one_line(run('acquire', '--source', f'file:{image}', '-o', self.at / 'no/x'), 6)

    def test_what_is_no_container(self):
        noise = random.Random(2).randbytes(100000)
        for content in (b'', b'x', noise, b'\x5b\x2a\x4d\x18' + noise):
            path = self.file('noise', content)
            for command in (['verify'], ['info'], ['smear'], ['export', '-o', self.at / 'x']):
                self.one_line(run(*command, path), 9)
            self.assertFalse((self.at / 'x').exists())
        for command in (['verify'], ['info'], ['smear'], ['export', '-o', self.at / 'x']):
            self.one_line(run(*command, self.at / 'missing'), 9)
            self.one_line(run(*command, self.at), 9)

    @needs_simulator
    def test_smear_without_page_tables(self):
        path = self.at / 'out.rsz'
        run('acquire', '-q', '--pagetables=none', '--order=linear', '--source',
            'sim:desktop,ram=64M,allocated=20M,resident=10M,trimmed=5M,others=5M,processes=3,cache=2M',
            '-o', path, check=True)
        for options in ([], ['--json'], ['--csv'], ['--mappings', '1']):
            done = run('smear', *options, path)
            self.one_line(done, 9)
            self.assertIn(b'--pagetables=both', done.stderr)
        self.one_line(run('smear', '--csv', '--json', path), 2)

    def test_flipped_bytes_are_found(self):
        path, _ = self.acquire(self.file('image', memory(300)))
        whole = path.read_bytes()
        draw = random.Random(3)
        for _ in range(60):
            flipped = bytearray(whole)
            place = draw.randrange(len(whole))
            flipped[place] ^= 1 << draw.randrange(8)
            bad = self.file('bad.rsz', flipped)
            done = run('verify', bad)
            self.one_line(done, 7)

    def test_every_truncation_is_told(self):
        image = memory(300)
        path, _ = self.acquire(self.file('image', image), 'out.rsz', 0, '--level', '1')
        whole = path.read_bytes()
        lengths = sorted({*range(0, len(whole), len(whole) // 60), *range(len(whole) - 5, len(whole)),
                          *(m.start() + d for m in re.finditer(rb'\x5b\x2a\x4d\x18.{4}RSZ\x01', whole, re.S)
                            for d in (-1, 0, 1) if m.start() + d >= 0)})
        self.assertGreater(len(lengths), 70)
        exported = 0
        for length in lengths:
            cut = self.file('cut.rsz', whole[:length])
            done = run('verify', cut)
            self.assertIn(done.returncode, (7, 9))
            self.one_line(done, done.returncode)
            self.assertIn(run('info', cut).returncode, (0, 9))
            out = self.at / 'cut.raw'
            out.unlink(missing_ok=True)
            done = run('export', '-q', '--force', '-o', out, cut)
            self.one_line(done, done.returncode)
            self.assertIn(done.returncode, (7, 9))
            if out.exists():
                self.assert_cut(out.read_bytes(), image)
                exported += out.stat().st_size > 0
        self.assertGreater(exported, 10)

    def test_what_a_container_says_is_no_command_to_the_terminal(self):
        name = '\x1b[31mEVIL!\x07' + 'ä' * 20
        path = self.file('\x1bpath.rsz', assemble([begin(), *(stream(i, name=name.encode()) for i in range(2))]))
        for command in (['verify'], ['info'], ['export', '-S', name, '-o', self.at / 'x'],
                        ['extract', '-f', '-S', name, '-o', self.at / 'x']):
            done = run(*command, path)
            self.assertRegex(done.stdout + done.stderr, rb'\\x1b\[31mEVIL!')
            self.assertNotRegex(done.stdout + done.stderr, rb'[\x00-\x09\x0b-\x1f\x7f]')
        # The reason cuts the name in the middle of a letter, and is JSON all the same.
        for command in ('verify', 'info'):
            self.assertIn('declared twice', json.loads(run(command, '--json', path).stdout)['reason'])
        self.assertIn('declared twice', (self.at / 'x.gaps.json').read_text())

    def test_more_files_than_one_are_all_verified(self):
        good, _ = self.acquire(self.file('image', memory(4)))
        bad = self.file('bad.rsz', good.read_bytes()[:-1])
        done = run('verify', bad, good, self.at / 'missing')
        self.assertEqual(done.returncode, 7)
        self.assertIn(b'out.rsz: whole and sealed', done.stdout)
        self.assertEqual(done.stderr.count(b'\n'), 2)


class Outcome(Case):
    """verify answers whether it is whole, and whether it is all of it."""

    def stopped(self):
        """Sealed by a signal while a slow reader held it up."""
        fifo = self.at / 'fifo'
        os.mkfifo(fifo)
        source = self.file('large', random.Random(7).randbytes(16 * MIB))
        process = subprocess.Popen([RAMSEAL, 'acquire', '-q', '-s', f'file:{source}', '-o', fifo],
                                   stderr=subprocess.DEVNULL)
        with open(fifo, 'rb') as reader:
            got = reader.read(MIB)
            process.send_signal(signal.SIGTERM)
            wait_until_taken(process.pid, signal.SIGTERM)
            got += reader.read()
        self.assertEqual(process.wait(timeout=900), 8)
        return self.file('stopped.rsz', got)

    def test_tables_that_were_not_looked_for_are_not_called_missing(self):
        """The signal comes while the first line of the manifest does not fit into the pipe."""
        fifo = self.at / 'fifo'
        os.mkfifo(fifo)
        source = self.file('image', memory(64))
        with open(os.open(fifo, os.O_RDWR | os.O_NONBLOCK), 'rb', buffering=0) as reader:
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(reader.fileno(), bytes(PAGE))
            process = subprocess.Popen([RAMSEAL, 'acquire', '-s', f'file:{source}', '--pagetables=both', '-o', fifo],
                                       stderr=subprocess.PIPE)
            fds = Path(f'/proc/{process.pid}/fd')
            while str(fifo) not in [os.readlink(f) for f in fds.iterdir()]:
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            wait_until_taken(process.pid, signal.SIGINT)
            while process.poll() is None:
                select.select([reader], [], [], 0.1)
                reader.read(1 << 16)
        said = process.stderr.read().decode()
        process.stderr.close()
        self.assertEqual(process.returncode, 8, said)
        self.assertIn('the search for page tables was interrupted', said)
        self.assertNotIn('no page tables were found', said)

    def check(self, path, code, complete, line, acquisition):
        done = run('verify', path)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertRegex(done.stdout.decode(), line)
        self.assertEqual((done.stdout.count(b'\n'), done.stderr.count(b'\n')), (1, int(code > 0)))
        said = run('verify', '--json', path)
        verdict = json.loads(said.stdout)
        self.assertEqual((said.returncode, verdict['exit_code'], verdict['complete'], verdict['whole']),
                         (code, code, complete, True))
        self.assertEqual(verdict['acquisition'] and verdict['acquisition']['exit_code'], acquisition)

    def test_of_what_is_sealed(self):
        good, _ = self.acquire(self.file('image', memory(40)), 'good.rsz')
        gaps, _ = self.acquire(self.file('cut.lime', lime([(0x1000, 0x8fff)])[:-0x2800]), 'gaps.rsz', 3)
        nothing = self.file('nothing.rsz', assemble([begin()]))
        self.check(good, 0, True, r': whole and sealed: .*; acquisition: complete$', 0)
        self.check(gaps, 0, True, r': whole and sealed: .*; acquisition: complete, but some pages', 3)
        self.check(self.stopped(), 10, False,
                   r': sealed, but incomplete: .*; acquisition: interrupted.* by SIGTERM$', 8)
        whole = good.read_bytes()
        cut = self.file('cut.rsz', whole[:len(whole) // 2])
        self.assertEqual(run('seal', cut).returncode, 0)
        self.check(cut, 10, False, r': sealed, but incomplete: .*did not finish; sealed later$',
                   None)
        # Cut behind the last line of the manifest: only the end was lost, and that is made again.
        cut = self.file('cut.rsz', whole[:-176])
        self.assertEqual(run('seal', cut).returncode, 0)
        self.check(cut, 0, True, r': whole and sealed: .*; acquisition: complete; sealed later$', 0)
        self.assertEqual(run('verify', nothing).returncode, 7)

    def test_of_a_container_without_memory(self):
        empty = assemble([begin(), stream(0, 7, 0, b'manifest'), Rec(INDEX), Rec(CLOSE)])
        self.check(self.file('empty.rsz', empty), 10, False, 'did not finish', None)
        line = b'{"event":"end","exit_code":0,"outcome":"complete","message":""}\n'
        empty = assemble([begin(), stream(0, 7, 0, b'manifest'), chunk(0, [(0, len(line))], content=line),
                          Rec(INDEX), Rec(CLOSE)])
        self.check(self.file('empty.rsz', empty), 10, False, 'holds no memory', 0)

    def test_sleep_of_the_machine_is_told(self):
        good, _ = self.acquire(self.file('image', memory(40)), 'good.rsz')
        said = json.loads(run('info', '--json', good).stdout)
        self.assertEqual((said['sleeps'], said['stays_awake']), ([], False))
        self.assertNotIn(b'slept', run('info', good).stdout + run('verify', good).stdout)
        line = json.dumps({'event': 'end', 'exit_code': 0, 'outcome': 'complete', 'message': '', 'sleeps': [
            {'from_ns': 5, 'to_ns': 9, 'asleep_ns': 7200 * 10**9}]}).encode() + b'\n'
        slept = self.file('slept.rsz', assemble([
            begin(), stream(0, 7, 0, b'manifest'), stream(1, 1, 4096, b'memory'),
            chunk(0, [(0, len(line))], content=line), Rec(INDEX), Rec(CLOSE)]))
        self.check(slept, 0, True, r'acquisition: complete; the machine slept 1 time meanwhile, for 2:00:00$', 0)
        self.assertIn(b'the machine slept 1 time meanwhile, for 2:00:00', run('info', slept).stdout)

    def test_damage_is_told_before_what_is_missing(self):
        stopped = self.stopped()
        bad = self.file('bad.rsz', stopped.read_bytes()[:-1])
        done = run('verify', stopped, bad, stopped)
        self.assertEqual(done.returncode, 7)
        self.assertEqual((done.stdout.count(b'\n'), done.stderr.count(b'\n')), (3, 3))
        self.assertIn(b'bad.rsz', done.stderr.splitlines()[-1])


@unittest.skipUnless(os.geteuid() == 0, 'needs root, for a loop device')
class Device(Case):
    """A disk keeps what was on it: here the rest of a container that was longer."""

    def setUp(self):
        super().setUp()
        self.file('disk', random.Random(8).randbytes(24 * MIB))
        done = subprocess.run(['losetup', '-f', '--show', self.at / 'disk'], capture_output=True)
        if done.returncode:
            self.skipTest('no loop device here')
        self.device = Path(done.stdout.decode().strip())
        self.addCleanup(subprocess.run, ['losetup', '-d', self.device], check=True)
        self.long, self.short = (random.Random(9).randbytes(n * MIB) for n in (16, 4))

    def acquire_both(self):
        for image in (self.long, self.short):
            done = run('acquire', '-q', '-s', f'file:{self.file("image", image)}', '-o', self.device)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_shorter_one_is_whole(self):
        self.acquire_both()
        done = self.verify(self.device)
        self.assertRegex(done.stdout, rb'whole and sealed: .*; \d+ bytes follow that are no part of it\n')
        verdict, info = json.loads(run('verify', '--json', self.device).stdout), self.info(self.device)
        for said in (verdict, info):
            self.assertEqual(said['whole_bytes'] + said['trailing_bytes'], 24 * MIB)
        self.assertEqual((info['sealed'], info['end'], info['root']), (True, 'sealed', verdict['root']))
        self.assertRegex(run('info', self.device).stdout, rb'\d+ bytes follow')
        self.assertEqual(self.export(self.device), self.short)
        self.assertIn(b'already sealed', run('seal', self.device).stderr)
        with open(self.device, 'rb') as disk:
            copy = self.file('copy.rsz', disk.read())
        self.verify(copy)

    def test_it_is_not_encrypted(self):
        """Old bytes follow on a disk, and age has no end of its own: nothing is written."""
        recipient = 'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj'
        image, before = self.file('image', self.short), self.at.joinpath('disk').read_bytes()
        how = ('-s', f'file:{image}', '--recipient', recipient, '-f', '-o', self.device)
        why = b'is a disk, so the end of the encrypted data would be unknown: write to a file on it\n'
        done = run('acquire', '-q', *how)
        self.one_line(done, 6)
        self.assertTrue(done.stderr.endswith(why), done.stderr)
        done = run('check', *how)
        self.assertEqual(done.returncode, 6, done.stdout)
        self.assertRegex(done.stdout, b'\nno: .*' + why)
        self.assertEqual(self.at.joinpath('disk').read_bytes(), before)

    def test_a_writer_that_was_stopped(self):
        self.acquire_both()
        whole, _ = self.acquire(self.file('image', self.short), 'whole.rsz', 0, '--level', '1')
        half = whole.read_bytes()[:5 * MIB // 2]
        with open(self.device, 'r+b') as disk:
            disk.write(half)
        before = self.at.joinpath('disk').read_bytes()
        self.assertRegex(self.verify(self.device, 7).stdout, rb'(unsealed|cut off): ')
        self.assertIn(self.info(self.device)['end'], ('unsealed', 'cut off'))
        self.one_line(run('seal', '-q', self.device), 6)
        sealed = self.at / 'sealed.rsz'
        self.assertEqual(run('seal', '-q', '-o', sealed, self.device).returncode, 0)
        self.assertEqual(self.at.joinpath('disk').read_bytes(), before)
        self.verify(sealed, 10)
        self.assertEqual(self.export(sealed, 3)[:2 * MIB], self.short[:2 * MIB])

    def test_full(self):
        image = random.Random(10).randbytes(32 * MIB)
        done = run('acquire', '-q', '-f', '-s', f'file:{self.file("image", image)}', '-o', self.device)
        self.one_line(done, 6)
        self.verify(self.device, 10)
        pages = self.pages(self.device)
        self.assertGreater(pages['data'], 20 * MIB // PAGE)
        self.assertEqual(pages['data'] + pages['skipped'], 32 * MIB // PAGE)
        self.assertEqual(self.export(self.device, 3)[:pages['data'] * PAGE], image[:pages['data'] * PAGE])


class LyingRanges(Case):
    """Files whose headers overlap, run in any order, or lie where no memory can be."""

    def check(self, image, first, last, code=0):
        path, _ = self.acquire(self.file('image', image), 'out.rsz', code, '--force')
        self.verify(path)
        exported = self.export(path, code)
        self.assertEqual(len(exported), last + 1)
        self.assertEqual(exported[first:], pattern(first, last + 1 - first))
        self.assertEqual(exported[:first], bytes(first))
        return path

    def source(self, path):
        return self.info(path)['source']

    def faults(self, path):
        return self.info(path)['maps'][0]['faults']

    def test_overlapping_and_unsorted(self):
        for image in (elf_core([(0x5000, 0x4000, 0x4000), (0x1000, 0x2000, 0x2000),
                                (0x2000, 0x5000, 0x5000), (0x2000, 0x1000, 0x1000)]),
                      lime([(0x5000, 0x8fff), (0x1000, 0x2fff), (0x2000, 0x6fff), (0x2000, 0x2fff)])):
            faults = self.faults(self.check(image, 0x1000, 0x8fff))
            self.assertGreater(faults['overlapping'], 0)
            self.assertGreater(faults['unsorted'], 0)

    def test_lime_files_that_lost_something_do_not_end_with_0(self):
        two = lime([(0x1000, 0x2fff), (0x5000, 0x5fff)])
        front = lime([(0x1000, 0x2fff)])
        other = bytearray(two + lime([(0x1800, 0x2fff)]))
        other[-1] ^= 1
        for content, code, word in (
                (two + bytes(5000), 0, None), (front + two[len(front):][:20], 3, 'header'),
                (front + b'other' * 100, 3, 'left out'), (lime([(0x1000, 0x57ff)]), 3, None),
                (two[:-0x900], 3, None), (bytes(other), 3, '6144 bytes of memory are')):
            image = self.file('image', content)
            path, _ = self.acquire(image, 'out.rsz', code, '--force')
            self.verify(path)
            self.assertEqual(self.export(path, 3 if 'lost' not in self.source(path) and code else 0)
                             [0x1000:0x3000], pattern(0x1000, 0x2000))
            self.assertIn(word or '', self.source(path).get('lost', ''))
            self.assertEqual('lost' in self.source(path), bool(word))
            raw = run('acquire', '-q', '-s', f'file:{image}', '--format', 'raw', '-o',
                      self.at / 'x.raw', '--force')
            self.assertEqual(raw.returncode, code, raw.stderr)

    def test_beyond_what_an_address_can_be(self):
        for address in (1 << 52, 1 << 63, 2**64 - 0x2000):
            path = self.check(elf_core([(0x1000, 0x1000, 0x1000), (address, 0x1000, 0x1000)]),
                              0x1000, 0x1fff)
            self.assertEqual(self.faults(path)['beyond_2_52'], 1)
        self.check(lime([(0x1000, 0x1fff), (1 << 52, (1 << 52) + 0xfff)]), 0x1000, 0x1fff)

    def test_nothing_but_lies(self):
        for image in (elf_core([(1 << 52, 0x1000, 0x1000)]), lime([(0x800, 0xfff)]),
                      struct.pack('<IIQQQ', 0x4c694d45, 1, 0x2000, 0x1000, 0)):
            image = self.file('image', image)
            self.one_line(run('acquire', '--source', f'file:{image}', '-o', self.at / 'x'), 9)

    def test_memory_that_the_file_does_not_hold(self):
        image = self.file('image', elf_core([(0x1000, 0x1000, 0x3000)]))
        path, done = self.acquire(image, 'out.rsz', 3)
        self.verify(path)
        self.assertEqual(self.pages(path)['data'], 1)
        exported = self.export(path, 3)
        self.assertEqual(exported[0x1000:0x2000], pattern(0x1000, 0x1000))
        self.assertNotEqual(exported[0x2000:0x4000], bytes(0x2000), 'missing pages look like zeros')

    def test_file_that_ends_too_early(self):
        image = self.file('image', lime([(0x1000, 0x8fff)])[:-0x2800])
        path, _ = self.acquire(image, 'out.rsz', 3)
        self.verify(path)
        pages = self.pages(path)
        self.assertEqual((pages['data'], pages['unreadable'] + pages['skipped']), (5, 3))


class FullOutput(Case):
    def check_sealed(self, path, done):
        self.assertRegex(done.stderr.splitlines()[-1], rb'^ramseal: acquire: ')
        # The file has its final name, and the message says that one.
        self.assertNotIn(b'.partial', done.stderr)
        self.assertRegex(done.stderr, rb'/out\.rsz: write: .*; sealed, but without \d+ of \d+ pages of memory\n$')
        self.verify(path, 10)
        pages = self.pages(path)
        self.assertGreater(pages['data'], 0)
        self.assertGreater(pages['skipped'], 0)
        self.assertEqual(pages['data'] + pages['skipped'], len(self.image) // PAGE)
        self.assertNotIn('missing', self.info(path))
        had = self.assert_cut(self.export(path, 3), self.image)
        self.assertEqual(had, pages['data'] * PAGE)
        gaps = json.loads((self.at / 'exported.raw.gaps.json').read_text())
        self.assertEqual((gaps['complete'], gaps['origin']['end']), (False, 'sealed'))
        self.assertEqual(gaps['origin']['acquisition']['exit_code'], 6)

    def test_file_size_limit_in_mid_run(self):
        self.image = random.Random(4).randbytes(8 * MIB)
        source = self.file('image', self.image)
        limit = 5 * MIB // 2
        path, done = self.acquire(
            source, 'out.rsz', 6, '--force',
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.check_sealed(path, done)

    def test_room_for_the_end_is_there_for_the_end(self):
        """All content fits, and then there is just the room that was kept: what is it for?"""
        source = self.file('image', random.Random(2).randbytes(8 * MIB))
        path, _ = self.acquire(source)
        kept = (512 << 10) + (256 << 10) + 8 * MIB // 16384  # agent/collect/acquire/room.c
        room = path.stat().st_size + kept
        for limit in range(room - 3000, room + 1000, 500):
            path.unlink()
            done = run('acquire', '-q', '-f', '-s', f'file:{source}', '-o', path,
                       preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (n, n)))
            self.assertIn(done.returncode, (0, 6))
            self.verify(path, 10 if done.returncode else 0)

    @contextlib.contextmanager
    def disk(self, size):
        folder = self.at / 'disk'
        folder.mkdir()
        made = subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={size}', 'tmpfs', folder],
                              capture_output=True)
        if made.returncode:
            self.skipTest('may not mount')
        try:
            yield folder
        finally:
            subprocess.run(['umount', folder], check=True)

    @unittest.skipUnless(os.geteuid() == 0, 'needs root, to mount')
    def test_full_disk_in_mid_run(self):
        self.image = random.Random(5).randbytes(64 * MIB)
        source = self.file('image', self.image)
        with self.disk(4 * MIB):
            path, done = self.acquire(source, 'disk/out.rsz', 6)
            self.check_sealed(path, done)

    MACHINE = ('sim:cohen2015,ram=64M,resident=8M,allocated=16M,trimmed=4M,others=4M,cache=2M,pagefile0=24M,'
               'live_files=1')

    @needs_simulator
    def test_full_in_every_phase(self):
        """Before the memory, in it, in page files, in the tables behind: sealed, and nothing is untold."""
        path = self.at / 'out.rsz'
        told = set()
        for mode in ('guided', 'before', 'after', 'concurrent'):
            for mib in (1, 2, 3, 20, 40, 55, 60, 70):
                limit = mib * 1000 * 1000
                done = run('acquire', '-q', '-f', '-s', self.MACHINE, '--level', 'store', '--pagefile', mode,
                           '-o', path, preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (n, n)))
                with self.subTest(mode=mode, mib=mib):
                    full = mib < 70
                    self.assertEqual(done.returncode, 6 if full else 0, done.stderr)
                    self.verify(path, 10 if full else 0)
                    info = self.info(path)
                    whole = sum(r['last'] + 1 - r['first'] for r in info['maps'][0]['ranges']) // PAGE
                    self.assertEqual(sum(info['pages'].values()), whole)
                    said = re.search(rb'sealed, but without (\d+) of (\d+) pages|sealed, with all of the memory',
                                     done.stderr)
                    self.assertEqual(said is not None, full)
                    missing = int(said[1] or 0) if said else 0
                    self.assertEqual(missing, info['pages']['skipped'])
                    self.assertEqual(len(self.lines(path, 'file')), 1)
                    told.add((missing == 0, missing == whole, 'problem' in self.lines(path, 'file')[0]))
        self.assertGreater(len(told), 4)

    def lines(self, path, event):
        out = self.at / 'manifest'
        self.assertEqual(run('extract', '-q', '-f', '-S', 'manifest', '-o', out, path).returncode, 0)
        return [line for line in map(json.loads, out.read_text().splitlines()) if line['event'] == event]

    @unittest.skipUnless(os.geteuid() == 0, 'needs root, to mount')
    def test_full_file_systems(self):
        self.image = random.Random(12).randbytes(24 * MIB)
        source = self.file('image', self.image)
        folder = self.at / 'disk'
        folder.mkdir()
        for kind, size in (('ext4', 16), ('ext2', 16), ('ntfs', 16)):
            # Each of its own: a loop device that is not gone yet would be used again, with the last one's blocks.
            disk = self.file(f'file-system.{kind}', b'')
            os.truncate(disk, size * MIB)
            made = subprocess.run([f'/sbin/mkfs.{kind}', '-q', '-F', disk], capture_output=True) \
                if shutil.which(f'mkfs.{kind}', path='/sbin:/usr/sbin') else None
            mount = ['ntfs-3g'] if kind == 'ntfs' else ['mount', '-o', 'loop']
            if not made or made.returncode or subprocess.run([*mount, disk, folder],
                                                             capture_output=True).returncode:
                continue
            with self.subTest(kind):
                try:
                    path, done = self.acquire(source, 'disk/out.rsz', 6)
                    self.check_sealed(path, done)
                    # What was kept for the end was given back.
                    used = path.stat().st_blocks * 512 - path.stat().st_size
                    self.assertLess(used, 256 << 10)
                finally:
                    subprocess.run(['umount', folder], check=True)

    def test_what_is_cut_is_told_to_be_missing(self):
        path, _ = self.acquire(self.file('image', random.Random(13).randbytes(4 * MIB)))
        cut = self.file('cut.rsz', path.read_bytes()[:5 * MIB // 2])
        info = self.info(cut)
        self.assertEqual(info['pages']['data'] + info['missing_pages'], 4 * MIB // PAGE)
        self.assertEqual(info['missing'], [{'first': info['pages']['data'] * PAGE, 'last': 4 * MIB - 1}])
        self.assertRegex(run('info', cut).stdout, rb'missing +%d pages' % info['missing_pages'])

    def test_full_device(self):
        image = self.file('image', memory(600))
        with open('/dev/full', 'wb') as full:
            done = run('acquire', '-q', '--source', f'file:{image}', '-o', '-', stdout=full)
        self.one_line(done, 6)

    def test_reader_that_goes_away(self):
        image = self.file('image', random.Random(6).randbytes(8 * MIB))
        r, w = os.pipe()
        process = subprocess.Popen([RAMSEAL, 'acquire', '-q', '--source', f'file:{image}', '-o', '-'],
                                   stdout=w, stderr=subprocess.PIPE)
        os.close(w)
        got = os.read(r, 65536)
        os.close(r)
        _, err = process.communicate(timeout=900)
        self.assertEqual((process.returncode, err.count(b'\n')), (6, 1), err)
        self.assertTrue(got.startswith(b'\x5b\x2a\x4d\x18'))


class Stopped(Case):
    def start(self, *args, **more):
        process = subprocess.Popen([RAMSEAL, 'acquire', '--source', f'file:{self.source}', *args],
                                   stderr=subprocess.PIPE, **more)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def setUp(self):
        super().setUp()
        # Under nohup(1) it is ignored, and a child inherits that.
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL))
        self.image = random.Random(7).randbytes(24 * MIB)
        self.source = self.file('image', self.image)

    def wait_for_size(self, path, size):
        deadline = time.monotonic() + 900
        while not path.exists() or path.stat().st_size < size:
            self.assertLess(time.monotonic(), deadline, 'nothing was written')
            time.sleep(0.01)

    def test_sigterm_while_a_slow_reader_holds_it_up(self):
        fifo = self.at / 'fifo'
        os.mkfifo(fifo)
        process = self.start('-q', '-o', fifo, '--threads', '2')
        with open(fifo, 'rb') as reader:
            got = reader.read(3 * MIB)
            process.send_signal(signal.SIGTERM)
            wait_until_taken(process.pid, signal.SIGTERM)
            got += reader.read()
        self.assertEqual(process.wait(timeout=900), 8)
        path = self.file('out.rsz', got)
        self.verify(path, 10)
        pages = self.pages(path)
        self.assertEqual(pages['data'] + pages['skipped'], len(self.image) // PAGE)
        self.assertGreater(pages['data'], 0)
        self.assertGreater(pages['skipped'], 0)
        exported = self.export(path, 3)
        self.assertEqual(exported[:pages['data'] * PAGE], self.image[:pages['data'] * PAGE])

    def test_every_signal_seals_a_file(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            path = self.at / f'{number}.rsz'
            process = self.start('-q', '-o', path, '--level', '19', '--threads', '1')
            self.wait_for_size(self.at / f'{number}.rsz.partial', MIB)
            process.send_signal(number)
            self.assertEqual(process.wait(timeout=900), 8)
            self.verify(path, 10)
            self.assertFalse((self.at / f'{number}.rsz.partial').exists())

    def test_sigusr1_asks_how_far_it_is(self):
        for args in (['-q'], ['-q', '--log-json']):
            fifo = self.at / f'fifo{len(args)}'
            os.mkfifo(fifo)
            process = self.start(*args, '-o', fifo)
            with open(fifo, 'rb') as reader:
                got = reader.read(3 * MIB)
                process.send_signal(signal.SIGUSR1)
                wait_until_taken(process.pid, signal.SIGUSR1)
                got += reader.read()
            said = process.stderr.read().decode()
            self.assertEqual(process.wait(timeout=900), 0, said)
            self.verify(self.file('out.rsz', got))
            if '--log-json' in args:
                answer = json.loads(said.splitlines()[0])
                self.assertEqual((answer['event'], answer['label'], answer['total_bytes']),
                                 ('progress', 'memory', len(self.image)))
                self.assertGreater(answer['bytes'], 2 * MIB)
            else:
                self.assertRegex(said, r'^ramseal: memory +\d+%  \S+ MiB/24.0 MiB  .*\n$')

    def test_nohup_outlives_its_terminal(self):
        path = self.at / 'out.rsz'
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        process = self.start('-q', '-o', path, '--level', '19', '--threads', '1')
        self.wait_for_size(self.at / 'out.rsz.partial', MIB)
        process.send_signal(signal.SIGHUP)
        self.wait_for_size(self.at / 'out.rsz.partial', 5 * MIB)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=900), 8)
        self.assertGreaterEqual(path.stat().st_size, 5 * MIB)

    def test_kill_leaves_whole_records(self):
        path = self.at / 'out.rsz'
        partial = self.at / 'out.rsz.partial'
        process = self.start('-q', '-o', path, '--level', '19', '--threads', '1')
        self.wait_for_size(partial, 5 * MIB // 2)
        process.kill()
        process.wait()
        self.assertFalse(path.exists())
        self.one_line(run('verify', partial), 7)
        self.assertIn('unsealed' if self.info(partial)['end'] == 'unsealed' else 'cut off',
                      run('info', partial).stdout.decode())
        exported = self.export(partial, 7)
        had = self.assert_cut(exported, self.image)
        self.assertGreaterEqual(had, 2 * MIB)
        self.assertEqual(len(exported), len(self.image))
        gaps = json.loads((self.at / 'exported.raw.gaps.json').read_text())
        self.assertFalse(gaps['complete'])
        self.assertIn(gaps['origin']['end'], ('unsealed', 'cut off'))
        self.assertIsNone(gaps['origin']['acquisition'])
        self.assertEqual(gaps['skipped'], [{'first': had, 'last': len(self.image) - 1,
                                            'pages': (len(self.image) - had) // PAGE,
                                            'reason': 'not captured'}])
        # The same, once it is sealed: nothing is damaged, but not everything is there either.
        run('seal', partial)
        self.assertEqual(self.export(path, 3), exported)
        gaps = json.loads((self.at / 'exported.raw.gaps.json').read_text())
        self.assertEqual((gaps['complete'], gaps['origin']['end'], len(gaps['skipped'])),
                         (False, 'sealed later', 1))
        done = run('--log-json', 'extract', '--stream', 'log', '-o', self.at / 'log', path)
        summary = next(line for line in map(json.loads, done.stderr.splitlines())
                       if line['event'] == 'summary')
        self.assertFalse(summary['complete'])
        self.assertEqual(summary['origin']['end'], 'sealed later')


class LittleMemory(Case):
    """What a cgroup, `ulimit -v` or a machine in need allows, down to where no thread can be started."""

    def limited(self, kib, *args):
        size = kib << 10
        return run(*args, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)))

    def setUp(self):
        super().setUp()
        if self.limited(30000, '--version').returncode:
            self.skipTest('this build (with sanitizers) does not start with so little')

    def test_all_of_it_with_what_there_is(self):
        image = memory(3000)
        source = self.file('image', image)
        for kib in (25000, 30000, 40000, 60000):
            with self.subTest(kib):
                done = self.limited(kib, 'acquire', '-q', '-f', '--source', f'file:{source}', '--threads', '2',
                                    '-o', self.at / 'out.rsz')
                self.assertEqual((done.returncode, done.stderr), (0, b''))
                self.verify(self.at / 'out.rsz')
                self.assertEqual(self.export(self.at / 'out.rsz'), image)


class RoundTrip(Case):
    def test_stdout_holds_the_container_and_nothing_else(self):
        image = memory(700)
        source = self.file('image', image)
        path, _ = self.acquire(source)
        for extra in ([], ['--log-json'], ['--verbose']):
            done = run('acquire', '--source', f'file:{source}', '-o', '-', *extra)
            self.assertEqual(done.returncode, 0)
            piped = self.file('piped.rsz', done.stdout)
            verdict = json.loads(run('verify', '--json', piped).stdout)
            self.assertEqual((verdict['complete'], verdict['trailing_bytes']), (True, 0))
            self.assertEqual(self.pages(piped), self.pages(path))
            self.assertEqual(self.export(piped), image)
        self.assertEqual(self.export(path), image)

    def test_threads_and_levels_make_no_difference(self):
        image = memory(1100)
        source = self.file('image', image)
        for level in ('store', '-5', '1', '3', '19', 'auto'):
            for threads in ('1', '2', '3', '4') if level == '1' else ('2',):
                path, _ = self.acquire(source, 'out.rsz', 0, '--force', '--level', level, '--threads',
                                       threads)
                self.verify(path)
                self.assertEqual(self.export(path, 0, '--threads', threads), image, (level, threads))

    def test_every_frame_is_zstds(self):
        if not shutil.which('zstd'):
            self.skipTest('no zstd here')
        path, _ = self.acquire(self.file('image', memory(300)))
        subprocess.run(['zstd', '-tq', path], check=True)

    def test_summary_is_the_last_line_of_the_json_log(self):
        source = self.file('image', memory(300))
        done = run('--log-json', 'acquire', '--source', f'file:{source}', '-o', self.at / 'o.rsz')
        last = json.loads(done.stderr.splitlines()[-1])
        self.assertEqual((last['event'], last['exit_code'], last['sealed']), ('summary', 0, True))
        self.assertIn(last['root'], self.verify(self.at / 'o.rsz').stdout.decode())


class Documents(unittest.TestCase):
    def test_exit_codes_are_the_same_everywhere(self):
        code = re.findall(r'X\(EXIT_\w+, (\d+),[\s\\]+"([^"]+)"\)',
                          (SOURCE_ROOT / 'formats/base/err.h').read_text())
        readme = re.findall(r'^\| (\d+) \| (.+?) \|$', (SOURCE_ROOT / 'README.md').read_text(), re.M)
        shown = run('--help').stdout.decode().split('Exit status:\n')[1].split('\n\n')[0]
        shown = re.findall(r'^  (\d+) +(.+)$', shown, re.M)
        self.assertGreaterEqual(len(code), 10)
        self.assertEqual(readme, code)
        self.assertEqual(shown, code)


if __name__ == '__main__':
    unittest.main()
