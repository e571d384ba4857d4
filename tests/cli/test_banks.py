#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Raw images whose bytes are not at the addresses of their offsets: RAM banks end to end, without the hole
between them, by a map that is given, by what VMware keeps beside a .vmem, and by nothing.
Usage: test_banks.py RAMSEAL
"""

import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RAMSEAL = os.path.abspath(sys.argv.pop(1))
needs_simulator = unittest.skipIf(os.environ.get('RAMSEAL_SIMULATOR') == '0', 'built without simulated machines')
PAGE = 4096
MIB = 1 << 20
MACHINE = ('sim:desktop,ram=64M,allocated=20M,resident=12M,trimmed=8M,others=10M,processes=6,cache=2M,'
           'activity=0,pagefile0=32M,pagefile1=0,seed=5')
# What is left out, as if nobody had written down the hole.
HOLE = range(40 * MIB, 48 * MIB)
MAP = '0-27fffff\n3000000-3ffffff\n'


def run(*args):
    return subprocess.run([RAMSEAL, *map(str, args)], capture_output=True, timeout=900)


def tag(name, value, *indices, size=4):
    return (bytes([len(indices) << 6 | size, len(name)]) + name.encode() + struct.pack(f'<{len(indices)}I', *indices)
            + value.to_bytes(size, 'little'))


def block(name, data, pad=0):
    """Data of any length: its size twice, a gap."""
    return (bytes([63, len(name)]) + name.encode() + struct.pack('<QQH', len(data), len(data), pad) + bytes(pad)
            + data)


def vmss(regions, magic=b'\xd2\xbe\xd2\xbe', count=None, before=b''):
    """What says that these (page of the .vmem, page of memory, pages) are its regions."""
    tags = before + tag('align_mask', 0xffff) + tag('regionsCount', len(regions) if count is None else count)
    for i, (number, ppn, pages) in enumerate(regions):
        tags += tag('regionPageNum', number, i) + tag('regionPPN', ppn, i) + tag('regionSize', pages, i)
    groups = [(b'Checkpoint', b'\0\0'), (b'memory', tags + b'\0\0')]
    at = 12 + 80 * len(groups)
    head, body = magic + struct.pack('<II', 8, len(groups)), b''
    for name, data in groups:
        head += name.ljust(64, b'\0') + struct.pack('<QQ', at + len(body), len(data))
        body += data
    return head + body


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-banks-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)

    def file(self, name, content):
        path = self.at / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def acquire(self, image, *args, code=0):
        """As raw, so that each byte can be compared, and the log."""
        r = run('acquire', '-f', '--log-json', '-s', f'file:{image}', '--format', 'lime', '-o', self.at / 'out', *args)
        self.assertEqual(r.returncode, code, r.stderr)
        self.log = r.stderr.decode()
        return (self.at / 'out').read_bytes() if not r.returncode or r.returncode == 3 else None

    def runs(self, content):
        """{first address: bytes} of a LiME file."""
        at, runs = 0, {}
        while at < len(content):
            _, _, first, last, _ = struct.unpack_from('<IIQQQ', content, at)
            runs[first] = content[at + 32:at + 32 + last - first + 1]
            at += 32 + last - first + 1
        return runs


class Maps(Case):
    def setUp(self):
        super().setUp()
        self.pages = [bytes([i + 1]) * PAGE for i in range(8)]
        self.image = self.file('image.raw', b''.join(self.pages))

    def mapped(self, text, code=0):
        got = self.acquire(self.image, '--map', self.file('map', text), code=code)
        return got and {first: [x[0] for x in (c[i:i + PAGE] for i in range(0, len(c), PAGE))]
                        for first, c in self.runs(got).items()}

    def test_ranges_in_the_order_of_the_file(self):
        self.assertEqual(self.mapped('0-2fff\n0x100000000 - 0x100004fff'), {0: [1, 2, 3], 1 << 32: [4, 5, 6, 7, 8]})

    def test_ranges_with_offsets_and_remarks(self):
        text = '# banks\n\n00000000-00003fff @ 4000 : System RAM\r\n 10000-13fff @0 # the other\n'
        self.assertEqual(self.mapped(text), {0: [5, 6, 7, 8], 0x10000: [1, 2, 3, 4]})

    def test_what_the_map_and_the_file_do_not_agree_on_is_told(self):
        self.assertEqual(self.mapped('0-3fff', code=3), {0: [1, 2, 3, 4]})
        self.assertIn('does not say where 16384 bytes of the file belong', self.log)
        self.assertIn(0, self.mapped('0-7fff\n100000-103fff', code=3))
        self.assertIn('has 32768', self.log)

    def test_what_is_no_map_is_refused(self):
        for text, part in (('', 'no range'), ('0-0fff\nzero', 'line 2'), ('2000-1fff', 'line 1'),
                           ('0-1fff 5', 'line 1'), ('0-1fff\n1000-2fff', 'line 2: overlaps'), ('0-1fff @', 'line 1'),
                           ('0-ffffffffffffffffff', 'line 1'), ('-1fff', 'line 1')):
            with self.subTest(text=text):
                self.mapped(text, code=9)
                self.assertIn(part, self.log)

    def test_it_is_for_raw_images_alone(self):
        lime = self.file('lime', struct.pack('<IIQQQ', 0x4c694d45, 1, 0, PAGE - 1, 0) + bytes(PAGE))
        self.acquire(lime, '--map', self.file('map', '0-fff'), code=9)
        self.assertIn('--map is for raw images', self.log)
        r = run('acquire', '-s', 'auto', '--map', self.at / 'map', '-o', self.at / 'x')
        self.assertEqual(r.returncode, 2, r.stderr)
        r = run('check', '-s', f'file:{self.image}', '--map', self.at / 'nothing', '-o', self.at / 'x', '--no-pagefile')
        self.assertEqual(r.returncode, 9, r.stderr)


class Vmem(Case):
    def setUp(self):
        super().setUp()
        self.image = self.file('machine.vmem', b''.join(bytes([i + 1]) * PAGE for i in range(8)))

    def regions(self, code=0):
        return {first: c[::PAGE] for first, c in self.runs(self.acquire(self.image, code=code)).items()}

    def test_regions(self):
        want = {0: bytes([1, 2, 3]), 1 << 32: bytes([4, 5, 6, 7, 8])}
        banks = [(0, 0, 3), (3, 1 << 20, 5)]
        for name, content in (('machine.vmss', vmss(banks)), ('machine.vmsn', vmss(banks)),
                              ('machine.vmsn', vmss(banks, b'\xd3\xbe\xd3\xbe', before=block('Memory', b'x' * 999, 5))),
                              ('machine.vmss', vmss(list(reversed(banks))))):
            with self.subTest(name=name):
                path = self.file(name, content)
                self.assertEqual(self.regions(), want)
                self.assertIn('.' + name[-4:] + ' beside it', self.log)
                path.unlink()

    def test_no_regions_are_one(self):
        self.file('machine.vmss', vmss([]))
        self.assertEqual(self.regions(), {0: bytes(range(1, 9))})
        (self.at / 'machine.vmss').unlink()
        self.assertEqual(self.regions(), {0: bytes(range(1, 9))})

    def test_what_cannot_be_right_is_told(self):
        for content, part in ((b'\xd2\xbe\xd2\xbe', 'cannot be used'), (b'nothing at all', 'cannot be used'),
                              (vmss([(0, 0, 3)], count=2), 'region 1 has no'),
                              (vmss([(0, 0, 3)], count=99), '99 regions'),
                              (vmss([(0, 0, 0)]), 'region 0 is empty'), (vmss([(0, 0, 3)])[:-2], 'cannot be used'),
                              (vmss([(0, 0, 3)]), 'where 20480 bytes of the file belong'),
                              (vmss([(0, 0, 9)]), 'what is missing is unreadable'),
                              (vmss([(0, 0, 3)]).replace(b'memory', b'mercury'[:6]), 'has no group')):
            with self.subTest(part=part):
                self.file('machine.vmss', content)
                self.acquire(self.image, code=3)
                self.assertIn(part, self.log)

    def test_the_two_do_not_agree(self):
        self.file('machine.vmss', vmss([(0, 0, 3), (3, 1 << 20, 5)]))
        self.file('machine.vmsn', vmss([(0, 0, 4), (4, 1 << 20, 4)]))
        self.assertEqual(self.regions(code=3), {0: bytes([1, 2, 3]), 1 << 32: bytes([4, 5, 6, 7, 8])})
        self.assertIn('disagree', self.log)


@needs_simulator
class Hole(Case):
    """A machine of which eight megabytes in the middle are nowhere, and what is behind them stands in their place."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-banks-')
        cls.addClassCleanup(folder.cleanup)
        cls.raw = Path(folder.name) / 'raw'
        r = run('acquire', '-q', '-s', MACHINE, '--format', 'raw', '--gaps', '/dev/null', '-f', '-o', cls.raw)
        if r.returncode:
            raise RuntimeError(r.stderr.decode())
        cls.memory = cls.raw.read_bytes()

    def container(self, image, *args, code=0):
        path = self.at / 'out.rsz'
        r = run('acquire', '-f', '-s', f'file:{image}', '-o', path, '--no-pagefile', *args)
        self.assertEqual(r.returncode, code, r.stderr)
        self.log = r.stderr.decode()
        return json.loads(run('info', '--json', path).stdout), run('info', path).stdout.decode()

    def test_entries_that_point_outside_are_told(self):
        whole, text = self.container(self.raw)
        self.assertNotIn('outside', text)
        self.assertNotIn('outside', whole['system'])
        self.assertNotIn('end to end', self.log)
        image = self.file('banks.raw', self.memory[:HOLE.start] + self.memory[HOLE.stop:])
        for passes in ((), ('--pagetables=both',)):
            with self.subTest(passes=passes):
                doc, text = self.container(image, *passes, code=3)
                self.assertIn('end to end', self.log)
                self.assertNotIn('outcome: complete', self.log)
                self.assertIn('refer to memory that the image does not have', text)
                said = run('smear', self.at / 'out.rsz').stdout.decode()
                self.assertIn(' at addresses that the image does not have (it is cut off', said)
                outside = doc['system']['outside']
                self.assertGreater(outside['entries'], 64)
                self.assertGreaterEqual(outside['first'], len(self.memory) - len(HOLE))
                self.assertGreaterEqual(outside['last'], len(self.memory) - 4 * MIB)
                self.assertLess(outside['last'], 1 << 34)

    def test_with_a_map_everything_is_found_but_for_the_hole(self):
        image = self.file('banks.raw', self.memory[:HOLE.start] + self.memory[HOLE.stop:])
        got = self.runs(self.acquire(image, '--map', self.file('map', MAP)))
        self.assertEqual(set(got), {0, HOLE.stop})
        self.assertTrue(got[0] == self.memory[:HOLE.start] and got[HOLE.stop] == self.memory[HOLE.stop:])

    def test_memory_that_is_not_in_its_place_is_told(self):
        half, part, seen = len(self.memory) // 2, len(self.memory) // 4, []
        for name, content in (('halves that were exchanged', self.memory[half:] + self.memory[:half]),
                              ('a mebibyte in front', bytes(MIB) + self.memory),
                              ('sixteen pages are gone', self.memory[16 * PAGE:]),
                              ('quarters that were exchanged', self.memory[:part] + self.memory[2 * part:3 * part]
                               + self.memory[part:2 * part] + self.memory[3 * part:])):
            with self.subTest(name):
                doc, text = self.container(self.file('moved.raw', content), code=3)
                self.assertIn('another order', self.log)
                self.assertNotIn('outcome: complete', self.log)
                if 'name themselves' in self.log:
                    there = doc['displaced']
                    self.assertIn(f'{there["roots"]} roots', self.log)
                    self.assertIn(f'0x{abs(there["distance"]):x} bytes', self.log)
                    self.assertIn('addresses are wrong', text)
                seen.append(doc.get('displaced', {}).get('distance'))
        # What stands in front moves all by as much; what is gone, the other way.
        self.assertEqual(seen[1:3], [MIB, -16 * PAGE])


class Linux(Case):
    """Hardly any memory but what a kernel says of itself."""

    BASE, ROOT, UTS = 0x200000, 0x210000, 0x213390
    RELEASE = '6.1.0-56-amd64'

    def image(self, move):
        text = f'OSRELEASE={self.RELEASE}\nPAGESIZE=4096\n' + ''.join(
            f'SYMBOL({name})=ffffffff{0x80000000 + at:08x}\n' for name, at in
            (('init_uts_ns', self.UTS), ('init_top_pgt', self.ROOT), ('_stext', self.BASE)))
        text += 'NUMBER(phys_base)=0\nNUMBER(pgtable_l5_enabled)=0\n'
        memory = bytearray(4 * MIB)
        memory[0x3000:0x3000 + len(text)] = text.encode()
        for i, word in enumerate(('Linux', 'host', self.RELEASE, '#1 SMP', 'x86_64')):
            at = self.UTS + move + 65 * i
            memory[at:at + len(word)] = word.encode()
        return self.file('linux.raw', bytes(memory))

    def test_a_kernel_that_is_not_where_it_says(self):
        image = self.image(0)
        r = run('acquire', '-f', '-s', f'file:{image}', '-o', self.at / 'out.rsz', '--no-pagefile')
        self.assertEqual(r.returncode, 0, r.stderr)
        for move in (PAGE, -MIB, MIB):
            with self.subTest(move=move):
                image = self.image(move)
                r = run('acquire', '-f', '-s', f'file:{image}', '-o', self.at / 'out.rsz', '--no-pagefile')
                self.assertEqual(r.returncode, 3, r.stderr)
                self.assertIn(f'VMCOREINFO of a Linux kernel ({self.RELEASE})', r.stderr.decode())
                doc = json.loads(run('info', '--json', self.at / 'out.rsz').stdout)
                self.assertEqual(doc['displaced'], {'vmcoreinfo': self.RELEASE})


if __name__ == '__main__':
    unittest.main()
