#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Page files beside memory in one container. Usage: test_acquire.py RAMSEAL"""
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from forge import Volume, gpt_disk  # noqa: E402
from hive import Hive  # noqa: E402

RAMSEAL = os.path.abspath(sys.argv.pop(1))
MIB = 1 << 20
COMPLETE, USAGE, GAPS, INPUT = 0, 2, 3, 9


def ramseal(*arguments):
    return subprocess.run([RAMSEAL, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=900)


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = directory.name
        self.image = self.path('disk.raw')
        self.container = self.path('m.rsz')
        self.memory = random.Random(7).randbytes(3 * MIB) + bytes(MIB)
        with open(self.path('memory.raw'), 'wb') as f:
            f.write(self.memory)

    def path(self, name):
        return os.path.join(self.folder, name)

    def acquire(self, *options, code=COMPLETE):
        done = ramseal('acquire', '-q', '--force', '-s', f'file:{self.path("memory.raw")}',
                       '--image', self.image, '-o', self.container, *options)
        self.assertEqual(done.returncode, code, done.stderr)
        if code in (COMPLETE, GAPS):
            verified = ramseal('verify', self.container)
            self.assertEqual(verified.returncode, COMPLETE, verified.stdout)
        return done

    def extract(self, stream, code=COMPLETE):
        out = self.path('out')
        done = ramseal('extract', '-q', '--force', '--stream', stream, '-o', out, self.container)
        self.assertEqual(done.returncode, code, done.stderr)
        with open(out, 'rb') as f:
            return f.read()

    def lines(self):
        """The manifest's lines about files, by path."""
        text = self.extract('manifest').decode()
        return {line['path']: line for line in map(json.loads, text.splitlines())
                if line['event'] == 'file'}


class Together(Case):
    def forge(self, n=2):
        volumes, files = [], []
        for i in range(n):
            v = Volume(24 * MIB, label=f'v{i}')
            files.append(v.file('pagefile.sys', [(700 + 10 * k, 5) for k in range(200)]))
            files.append(v.file('swapfile.sys', [(3000, 100), (None, 50), (4000, 3)]))
            for f in files[-2:]:
                f.seed += 100 * i
            v.resident('hello.txt', b'resident\n')
            volumes.append(v)
        gpt_disk(self.image, volumes)
        return files

    def test_every_page_file_of_two_volumes(self):
        files = self.forge()
        for order in ('before', 'after', 'concurrent', 'guided'):
            self.acquire('--pagefile', order)
            got = [self.extract(name) for name in ('pagefile.sys', 'swapfile.sys',
                                                   'pagefile.sys (2)', 'swapfile.sys (2)')]
            # The list has the page files of both volumes; which volume comes first is its affair.
            self.assertEqual(sorted(map(len, got)), sorted(f.size for f in files))
            self.assertEqual({hashlib.sha256(g).digest() for g in got},
                             {hashlib.sha256(f.content()).digest() for f in files})
            out = self.path('memory')
            self.assertEqual(ramseal('export', '-q', '--force', '-o', out,
                                     self.container).returncode, COMPLETE)
            with open(out, 'rb') as f:
                self.assertEqual(f.read(), self.memory)

    def test_the_manifest_says_where_they_lay(self):
        pagefile, swapfile = self.forge(1)
        self.acquire()
        line = self.lines()['pagefile.sys']
        self.assertEqual(line['sha256'], hashlib.sha256(pagefile.content()).hexdigest())
        self.assertEqual((line['number'], line['number_origin']), (0, 'assumed'))
        self.assertEqual(line['first']['size'], pagefile.size)
        self.assertEqual(line['first']['fragments'], 200)
        self.assertEqual(line['first']['mft_records'][0]['record'], pagefile.number)
        runs = line['first']['runs'].split()
        self.assertEqual(runs[:2], [f'0+20480@{700 * 4096}', f'20480+20480@{710 * 4096}'])
        self.assertIn('409600+204800@hole', self.lines()['swapfile.sys']['first']['runs'])
        self.assertFalse(line['changed'])
        self.assertEqual(self.lines()['swapfile.sys']['copied']['pages']['hole'], 50)

    def test_what_lies_behind_the_initialised_size_is_zeros(self):
        v = Volume(24 * MIB)
        f = v.file('pagefile.sys', [(700, 300)], size=299 * 4096 + 100, init=100 * 4096 + 7)
        v.write(self.image)
        self.acquire()
        line = self.lines()['pagefile.sys']
        got = self.extract('pagefile.sys')
        self.assertEqual(got, f.content())
        self.assertEqual(hashlib.sha256(got).hexdigest(), line['sha256'])
        # No gap, but not hidden either.
        with open(self.path('out.gaps.json')) as g:
            gaps = json.load(g)
        self.assertTrue(gaps['complete'])
        self.assertEqual([(s['first'], s['reason']) for s in gaps['skipped']],
                         [(101 * 4096, 'beyond the initialised size')])

    def test_pages_have_capture_times(self):
        self.forge(1)
        self.acquire('--pagefile', 'after')
        streams = {s['name']: s for s in
                   json.loads(ramseal('info', '--json', self.container).stdout)['streams']}
        self.assertGreater(streams['pagefile.sys']['start_ns'], streams['memory']['end_ns'])
        self.assertEqual(streams['pagefile.sys']['kind'], 'page file')
        self.acquire('--pagefile', 'before')
        streams = {s['name']: s for s in
                   json.loads(ramseal('info', '--json', self.container).stdout)['streams']}
        self.assertLess(streams['pagefile.sys']['end_ns'], streams['memory']['start_ns'])

    def test_other_files_by_name(self):
        self.forge(1)
        self.acquire('--no-pagefile', '--file', 'hello.txt', '--file', '$MFT')
        self.assertEqual(self.extract('hello.txt'), b'resident\n')
        self.assertEqual(self.extract('$MFT')[:4], b'FILE')
        self.assertEqual(set(self.lines()), {'hello.txt', '$MFT'})
        self.assertFalse(self.lines()['hello.txt']['changed'])

    def test_the_same_name_again_gets_one_that_is_free(self):
        volume = Volume(24 * MIB)
        contents = {'x': b'x\n', 'x (2)': b'literally\n', 'memory': b'no memory\n'}
        for name, content in contents.items():
            volume.resident(name, content)
        gpt_disk(self.image, [volume])
        self.acquire('--no-pagefile', '--file', 'x', '--file', 'x (2)', '--file', 'x', '--file', 'memory')
        for stream, content in (('x', b'x\n'), ('x (2)', b'literally\n'), ('x (3)', b'x\n'),
                                ('memory (2)', b'no memory\n')):
            self.assertEqual(self.extract(stream), content)

    def test_a_file_that_is_not_there_costs_only_itself(self):
        self.forge(1)
        done = self.acquire('--file', 'gone.txt', code=GAPS)
        self.assertIn('gone.txt', done.stderr)
        lines = self.lines()
        self.assertEqual(set(lines), {'pagefile.sys', 'swapfile.sys', 'gone.txt'})
        self.assertIn('problem', lines['gone.txt'])
        self.assertNotIn('first', lines['gone.txt'])

    def test_pages_that_lie_behind_the_end_of_the_volume(self):
        v = Volume(24 * MIB)
        f = v.file('pagefile.sys', [(700, 500), (1300, 300)], runs_on_disk=[(700, 500), (9000, 300)])
        v.write(self.image)
        self.acquire(code=GAPS)
        line = self.lines()['pagefile.sys']
        self.assertEqual(line['copied']['pages']['unreadable'], 300)
        self.assertEqual(line['copied']['unreadable'][0]['first'], 500 * 4096)
        self.assertNotIn('sha256', line)
        self.assertEqual(self.extract('pagefile.sys', GAPS)[:500 * 4096], f.content()[:500 * 4096])

    def test_volume_that_cannot_be_read_is_no_disk_without_page_files(self):
        for damage in (b'ABCD', bytes(1024)):
            self.forge(2)
            with open(self.image, 'r+b') as f:
                f.seek(2048 * 512 + 24 * MIB + 8192) # $MFT's own record, of the second volume
                f.write(damage)
            done = self.acquire(code=GAPS)
            self.assertIn('NTFS at sector', done.stderr)
            self.assertIn('MFT record 0', done.stderr)
            self.assertEqual(set(self.lines()), {'pagefile.sys', 'swapfile.sys'})

    def test_locked_volumes_are_no_volumes_without_page_files(self):
        self.forge(2)
        with open(self.image, 'r+b') as f:
            f.seek(2048 * 512 + 24 * MIB)
            f.write(b'\xeb\x58\x90-FVE-FS-')
        done = self.acquire(code=GAPS)
        self.assertIn('BitLocker, locked at sector', done.stderr)
        begin = json.loads(self.extract('manifest').splitlines()[0])
        self.assertEqual([(v['kind'], v['page_files_may_be_missing']) for v in begin['volumes']],
                         [('BitLocker, locked', True)])
        out = ramseal('acquire', '-q', '--force', '-s', f'file:{self.path("memory.raw")}', '-o',
                      self.container, '--image', self.image, '--offset', 7)
        self.assertEqual(out.returncode, GAPS, out.stderr)
        self.assertIn('only zeros at sector 7', out.stderr)
        self.assertIn('has no NTFS volume that can be read', out.stderr)

    def test_volume_that_is_cut_short_before_the_index_of_its_root(self):
        files = self.forge(2)
        os.truncate(self.image, os.path.getsize(self.image) - 10 * MIB)
        self.acquire(code=GAPS)
        self.assertTrue(self.extract('pagefile.sys (2)') == files[2].content())
        self.assertIn('found by its MFT record', self.lines()['pagefile.sys']['note'])
        got = self.extract('swapfile.sys (2)', GAPS) # its last three clusters are gone
        self.assertEqual(got[:-3 * 4096], files[3].content()[:-3 * 4096])

    def test_hibernation_file_on_demand(self):
        v = Volume(24 * MIB)
        v.file('pagefile.sys', [(700, 300)])
        f = v.file('hiberfil.sys', [(2000, 200), (1500, 100)])
        v.write(self.image)
        self.acquire()
        self.assertEqual(set(self.lines()), {'pagefile.sys'})
        self.acquire('--hibernation')
        self.assertEqual(self.extract('hiberfil.sys'), f.content())
        line = self.lines()['hiberfil.sys']
        self.assertEqual((line['pagefile_kind'], line['number_origin']), ('hibernation file', 'none'))
        self.assertNotIn('number', line)

    def test_no_hibernation_file(self):
        self.forge(1)
        self.assertIn('no hiberfil.sys was found', self.acquire('--hibernation').stderr)
        self.acquire('--hibernation', '--no-pagefile', code=USAGE)
        done = ramseal('acquire', '-s', f'file:{self.path("memory.raw")}', '--hibernation', '-o',
                       self.path('none.rsz'))
        self.assertEqual(done.returncode, USAGE, done.stderr)
        self.assertFalse(os.path.exists(self.path('none.rsz')))

    def test_page_file_on_a_disk_that_is_not_there(self):
        hive = Hive({'Select': {'Current': 1}, 'ControlSet001': {'Control': {'Session Manager': {
            'Memory Management': {'ExistingPageFiles': ['\\??\\C:\\pagefile.sys',
                                                        '\\??\\D:\\pagefile.sys']}}}}})
        v = Volume(24 * MIB)
        v.file('pagefile.sys', [(700, 300)])
        v.nested('Windows/System32/config/SYSTEM', hive.pack())
        v.write(self.image)
        self.assertIn('not on this disk', self.acquire(code=GAPS).stderr)
        self.assertEqual(set(self.lines()), {'\\pagefile.sys'})

    def test_usage(self):
        self.forge(1)
        done = ramseal('acquire', '-s', f'file:{self.path("memory.raw")}', '--file', 'x', '-o',
                       self.container)
        self.assertEqual(done.returncode, USAGE)
        self.acquire('--format', 'raw', code=USAGE)
        with open(self.image, 'wb') as f:
            f.write(random.Random(1).randbytes(MIB))
        self.acquire(code=INPUT)


class Changing(Case):
    """
    The file moves while it is copied: the container goes into a FIFO that nobody reads, so that the
    copy stops after a few MiB; then the disk changes; then the FIFO is read.
    """

    def changed(self, before, after):
        v = Volume(64 * MIB)
        v.file('pagefile.sys', before)
        v.write(self.image)
        w = Volume(64 * MIB)
        f = w.file('pagefile.sys', after)
        new = self.path('new.raw')
        w.write(new)

        fifo = self.path('fifo')
        os.mkfifo(fifo)
        process = subprocess.Popen(
            [RAMSEAL, 'acquire', '-q', '-l', 'store', '-t', '1', '--pagefile', 'after', '-s',
             f'file:{self.path("memory.raw")}', '--image', self.image, '-o', fifo],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        with open(fifo, 'rb') as read, open(self.container, 'wb') as write:
            # Past the memory and into the page file, and no further.
            while write.tell() < len(self.memory) + MIB:
                write.write(read.read(64 << 10))
            threading.Event().wait(0.5)
            with open(new, 'rb') as source, open(self.image, 'r+b') as target:
                target.write(source.read())
            write.write(read.read())
        self.assertEqual(process.wait(900), COMPLETE, process.stderr.read())
        process.stderr.close()
        self.assertEqual(ramseal('verify', self.container).returncode, COMPLETE)
        return f, self.lines()['pagefile.sys']

    def test_moved_and_grown(self):
        f, line = self.changed([(1000, 4000), (9000, 4000)], [(1000, 4000), (5100, 3800), (13200, 700)])
        self.assertTrue(line['changed'])
        self.assertNotIn('sha256', line)
        self.assertEqual((line['first']['size'], line['last']['size']), (8000 * 4096, 8500 * 4096))
        self.assertNotEqual(line['first']['runs'], line['last']['runs'])
        self.assertGreaterEqual(line['recopied_bytes'], 4500 * 4096)
        self.assertEqual(self.extract('pagefile.sys'), f.content())

    def test_shrunk(self):
        f, line = self.changed([(1000, 8000)], [(1000, 5000)])
        self.assertTrue(line['changed'])
        self.assertEqual((line['first']['size'], line['last']['size']), (8000 * 4096, 5000 * 4096))
        self.assertEqual(self.extract('pagefile.sys')[:f.size], f.content())

    def test_left_alone(self):
        f, line = self.changed([(1000, 8000)], [(1000, 8000)])
        self.assertFalse(line['changed'])
        self.assertEqual(line['sha256'], hashlib.sha256(f.content()).hexdigest())


if __name__ == '__main__':
    unittest.main()
