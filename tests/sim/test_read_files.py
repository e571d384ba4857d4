#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`ramseal read --file-pages`: pages that only a mapped file has, out of that file on an NTFS volume or in a container,
beside what the simulated machine says that is in them. Usage: test_read_files.py RAMSEAL
"""
import contextlib
import csv
import json
import os
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'ntfs')]
from forge import Volume, gpt_disk  # noqa: E402: beside this
from machine_case import SMALL, MachineCase, run  # noqa: E402
from sampled import WHOLE, sample  # noqa: E402

PAGE, MIB = 4096, 1 << 20
OK, USAGE, GAPS, OUTPUT, INPUT = 0, 2, 3, 6, 9
CAN_MOUNT = (os.geteuid() == 0 and os.path.exists('/dev/fuse') and shutil.which('ntfs-3g') and
             shutil.which('mkntfs'))
DATA = 'Windows/Globalization/Sorting/SortDefault.nls'
PROBABLY = '^the image was relocated, probably for 0x[0-9a-f]+: its headers in memory do not confirm that$'
# What the kernel knows of files is in memory.
NO_PAGEFILE = 'seed=4,pool_paged=0,region_paged=0'
NTDLL = 'Windows/System32/ntdll.dll'


def number(text):
    return int(text, 16)


def fnv(data):
    h = 0xcbf29ce484222325
    for b in data:
        h = (h ^ b) * 0x100000001b3 & (2**64 - 1)
    return h


def plain(path):
    return path.strip('\\').replace('\\', '/')


class Case(MachineCase):
    def setUp(self):
        super().setUp()
        self.disk = self.at / 'disk.raw'
        self.bytes = self.at / 'bytes'

    def machine(self, settings, *options):
        """The machine, and its files by their paths; self.true is what is in each page: (pid, va) -> FNV-1a."""
        done = run('acquire', '-q', '--force', '-s',
                   f'{SMALL},ram=64M,processes=6,{settings},process_truth={self.account},files={self.at}/file,'
                   f'truth={self.at}/true', '-o', self.container, *options)
        self.assertIn(done.returncode, (OK, GAPS), done.stderr)
        with open(self.account, encoding='utf-8', newline='') as f:
            rows = list(csv.reader(f))
        self.serial = next(number(r[1]) for r in rows if r[0] == 'volume')
        self.pids = [r[1] for r in rows if r[0] == 'process' and r[2] != 'System']
        self.files = {}
        for _, n, size, path in (r for r in rows if r[0] == 'file'):
            self.files[plain(path)] = data = (self.at / f'file{n}.bin').read_bytes()
            self.assertEqual(len(data), int(size))
        with open(self.at / 'true', encoding='utf-8') as f:
            self.true = {(r[1], number(r[2])): number(r[3]) for r in csv.reader(f) if r[0] == 'made'}

    def volume(self, files=None, serial=None):
        """Of all files of the machine, and not yet written."""
        v = Volume(32 * MIB, record=4096, serial=0xc0ffee << 32 | (self.serial if serial is None else serial))
        self.on_disk = v.tree(self.files if files is None else files)
        return v

    def write(self, *args, **more):
        self.volume(*args, **more).write(str(self.disk))

    def vads(self, pid, file=None):
        done = run('vad', '-q', '--json', '--pages', '--pid', pid, self.container)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [v for v in json.loads(done.stdout)['vads']
                if v['file'] and (file is None or plain(v['file']) == file)]

    def read(self, pid, v, *options, code=None):
        """[(line, bytes of its first page)]"""
        length = number(v['end']) - number(v['start']) + 1
        done = run('read', '-q', '--json', '--fill', 'ee', '--pid', pid, '--va', v['start'], '-n', length,
                   '-o', self.bytes, '-f', *options, self.container)
        self.assertIn(done.returncode, (OK, GAPS) if code is None else (code,), done.stderr)
        content = self.bytes.read_bytes()
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(sum(line['pages'] for line in lines) * PAGE, length)
        return [(line, content[at:at + PAGE]) for line in lines
                for at in [number(line['va']) - number(v['start'])]]

    def pages(self, *options, file=None, code=None, most=3):
        """Of some processes all pages of mapped files that only the file has: (pid, line, bytes)"""
        for pid in self.pids[:most]:
            for v in self.vads(pid, file):
                for line, content in self.read(pid, v, *options, code=code):
                    if line['state'] == 'subsection':
                        yield pid, line, content

    def why(self, *options, file=NTDLL, most=3):
        """The one reason for which no page of a file is given."""
        reasons = set()
        for _, line, content in self.pages(*options, file=file, code=GAPS, most=most):
            self.assertEqual(line['content'], 'none')
            self.assertNotIn('file_source', line)
            self.assertEqual(content, b'\xee' * PAGE)
            reasons.add(line['why'])
        self.assertEqual(len(reasons), 1, reasons)
        return reasons.pop()


class RightBytes(Case):
    def test_every_page_is_what_it_was(self):
        """All processes of four machines: each page out of a file, byte by byte."""
        headers = tails = ends = 0
        for settings in sample(('windows=7,seed=3', 'windows=10,seed=4', 'windows=10,build=26100,seed=5',
                                'windows=7,seed=6,wow64=4'), of=2):
            self.machine(settings)
            self.write()
            seen = 0
            for pid in self.pids:
                for v in self.vads(pid):
                    path = plain(v['file'])
                    if not v['counts']['states']['file']:
                        continue
                    lines = self.read(pid, v, '--file-pages', self.disk)
                    there = 0
                    for line, content in lines:
                        if line['content'] != 'file':
                            self.assertEqual(('file_source' in line, line['state'] == 'subsection'),
                                             (False, path not in self.files and line['state'] == 'subsection'))
                            continue
                        there += 1
                        with self.subTest(machine=settings, pid=pid, file=path, at=line['va']):
                            self.assertEqual(fnv(content), self.true[pid, number(line['va'])])
                        self.assertEqual((line['trust'], line['verdict'], plain(line['mapped_file'])),
                                         ('at-risk', 'file', path))
                        self.assertNotIn('doubt', line)
                        self.assertNotIn('why', line)
                        at, size = line['mapped_offset'], len(self.files[path])
                        headers += at == 0 and v['kind'] == 'image'
                        tails += v['kind'] == 'image' and at > 0 and content[-1] == 0
                        ends += size - at < PAGE
                    if path in self.files:
                        self.assertEqual(there, v['counts']['states']['file'])
                    seen += there
                    if pid == self.pids[0]:
                        # What is not from a file is what it is without the option.
                        self.assertEqual([x for x in lines if x[0]['state'] != 'subsection'],
                                         [x for x in self.read(pid, v) if x[0]['state'] != 'subsection'])
            self.assertGreater(seen, 40)
        # Headers, images' last pages, the last page of a data file: each has zeros behind what the file has of it.
        # Not every machine has a last page of a data file that only the file has.
        self.assertGreater(min(headers, tails, ends if WHOLE else 1), 0, (headers, tails, ends))

    def test_what_is_said_of_it(self):
        self.machine('seed=4')
        self.write()
        pid, line, _ = next(self.pages('--file-pages', self.disk, file=NTDLL))
        source = line['file_source']
        self.assertEqual(source, {
            'from': str(self.disk), 'stream': None, 'volume_offset': 0, 'volume_serial': f'00c0ffee{self.serial:08x}',
            'mft_record': self.on_disk[NTDLL].number, 'sequence': 1, 'size': len(self.files[NTDLL]),
            'modified': '2001-02-03T02:05:06.000000000Z', 'same_volume': True, 'same_size': True,
            'same_header': source['same_header'], 'relocated': False})
        text = run('read', '--pid', pid, '--va', line['va'], '--file-pages', self.disk, self.container)
        self.assertEqual(text.returncode, 0)
        first = text.stdout.decode().splitlines()[0]
        self.assertIn(rf'subsection; from the file \Windows\System32\ntdll.dll, offset 0x{line["mapped_offset"]:x}, '
                      rf'of "{self.disk}", at another time than the memory (same volume, size', first)
        self.assertTrue(first.endswith('; at-risk (file)'), first)
        self.assertIn('of 1 pages 0 from memory, 0 from page files, 1 from files, at another time, 0 zeros, '
                      '0 missing; 0 safe, 1 at risk', text.stderr.decode())

    def test_off_unless_asked_for(self):
        self.machine('seed=4')
        pid, line, _ = next(self.pages(file=NTDLL))
        self.assertEqual((line['content'], line['why']), ('none', 'needs the mapped file'))
        text = run('read', '--pid', pid, '--va', line['va'], self.container)
        self.assertEqual(text.returncode, GAPS)
        self.assertNotIn('from files', text.stderr.decode())

    def test_images_are_relocated(self):
        """
        By the file's own table, to the last byte. The headers alone say something else in memory, and are marked; and so
        is all of an image whose headers are not in memory, to say for where it was relocated.
        """
        self.machine('seed=4,relocated=1,windows=7,wow64=3')
        self.write()
        headers = pages = data = certain = 0
        widths = set()
        for pid, line, content in self.pages('--file-pages', self.disk, most=len(self.pids)):
            if line['content'] != 'file':
                continue
            va, true = number(line['va']), self.true[pid, number(line['va'])]
            image = plain(line['mapped_file']) != DATA
            self.assertEqual(line['file_source']['relocated'], image)
            if line['mapped_offset'] or not image:
                with self.subTest(pid=pid, va=line['va'], file=line['mapped_file']):
                    if image and not line['file_source']['same_header']:
                        self.assertRegex(line['doubt'], PROBABLY)
                    else:
                        self.assertNotIn('doubt', line)
                        certain += image
                    self.assertEqual(fnv(content), true)
                pages += image
                data += not image
                continue
            self.assertRegex(line['doubt'], f'{PROBABLY}|^its headers say where the image lies, and may differ in memory$')
            at = number(content[0x3c:0x3e][::-1].hex())
            narrow = content[at + 4:at + 6] == b'\x4c\x01'
            where, width = at + 24 + (28 if narrow else 24), 4 if narrow else 8
            self.assertNotEqual(fnv(content), true)
            self.assertEqual(fnv(content[:where] + va.to_bytes(width, 'little') + content[where + width:]), true)
            widths.add(width)
            headers += 1
        self.assertGreater(min(headers, certain, pages - certain, data), 0, (headers, certain, pages, data))
        self.assertEqual(widths, {4, 8})
        text = run('read', '--pid', pid, '--va', line['va'], '--file-pages', self.disk, self.container)
        self.assertEqual(', relocated, at another time' in text.stdout.decode(), image, text.stdout)

    def test_a_table_that_lies_relocates_nothing(self):
        """Then each page is as in its file, and marked."""
        self.machine('seed=4,relocated=1')
        whole = self.files[NTDLL]
        table = whole.index(bytes((0, 0x10, 0, 0, 12, 0, 0, 0, 0xf8, 0xa7)))
        for at, byte in ((table, 1), (table + 1, 0x40), (table + 4, 13), (table + 4, 4), (table + 6, 1),
                         (table + 9, 0x37), (table + 9, 0xb7), (table + 12 + 3, 0x40)):
            with self.subTest(at=at - table, byte=byte):
                self.files[NTDLL] = whole[:at] + bytes((byte,)) + whole[at + 1:]
                self.write()
                seen = 0
                for _, line, content in self.pages('--file-pages', self.disk, file=NTDLL, most=1):
                    offset = line['mapped_offset']
                    self.assertIn('was relocated: addresses in it differ', line['doubt'])
                    self.assertFalse(line['file_source']['relocated'])
                    expected = self.files[NTDLL][offset:offset + PAGE]
                    self.assertEqual(content[:len(expected)] if offset else expected, expected)
                    seen += 1
                self.assertGreater(seen, 3)

    def test_changed_later(self):
        """The machine's clock stands at the end of 2014; the forged files are older."""
        self.machine('seed=4,relocated=1')
        v = self.volume()
        for path in (NTDLL, DATA):
            a = next(a for a in v.records[self.on_disk[path].number][3] if a.kind == 0x10)
            a.value = a.value[:8] + (136256395060000000).to_bytes(8, 'little') + a.value[16:]  # 2032
        v.write(str(self.disk))
        later = 'the file was changed after the acquisition had begun'
        for path, doubt in ((DATA, f'^{later}$'), (NTDLL, f'({PROBABLY[:-1]}; |^){later}$')):
            lines = [line for _, line, _ in self.pages('--file-pages', self.disk, file=path)]
            self.assertTrue(lines)
            for line in lines:
                self.assertRegex(line['doubt'], doubt)
                self.assertRegex(line['file_source']['modified'], '^2032')
        text = run('read', '--pid', self.pids[0], '--va', lines[0]['va'], '--file-pages', self.disk, self.container)
        self.assertRegex(text.stdout.decode(), rf'; at-risk \(file: .*{later}\)')


class AnotherFile(Case):
    """What is refused, and the one reason that each page has."""

    def change(self, path, data):
        files = dict(self.files)
        if data is None:
            del files[path]
        else:
            files[path] = data
        self.write(files)

    def test_absent(self):
        self.machine('seed=4')
        self.change(NTDLL, None)
        self.assertEqual(self.why('--file-pages', self.disk),
                         f'{self.disk}: there is no "ntdll.dll"')
        # The others are given all the same.
        self.assertTrue(any(line['content'] == 'file' for _, line, _ in self.pages('--file-pages', self.disk)))
        self.assertIn('there is no "ProgramData"', self.why('--file-pages', self.disk, file='ProgramData/shared.dat'))

    def test_another_size(self):
        self.machine('seed=4')
        size = len(self.files[NTDLL])
        for data in (self.files[NTDLL][:-1], self.files[NTDLL] + b'\0'):
            self.change(NTDLL, data)
            self.assertEqual(self.why('--file-pages', self.disk),
                             f'{self.disk}: another version of the file: it has {len(data)} bytes there, and had '
                             f'{size} in memory')

    def test_shorter_where_memory_does_not_know_its_size(self):
        self.machine('seed=4,bare_files=1')
        data = self.files[NTDLL]
        end = len(data) - 0x6b1  # of what is mapped of it
        self.change(NTDLL, data[:end])
        lines = [line for _, line, _ in self.pages('--file-pages', self.disk, file=NTDLL)]
        self.assertEqual({line['content'] for line in lines}, {'file'})
        self.assertFalse(lines[0]['file_source']['same_size'] or lines[0]['file_source']['same_volume'])
        self.change(NTDLL, data[:end - 1])
        self.assertEqual(self.why('--file-pages', self.disk),
                         f'{self.disk}: another version of the file: it has {end - 1} bytes there, but {end} of it '
                         'are mapped')
        # Of a data file only the pages behind the end are missing.
        self.change(DATA, self.files[DATA][:20 * PAGE + 1])
        given = set()
        for pid, line, content in self.pages('--file-pages', self.disk, file=DATA, code=GAPS):
            at = line['mapped_offset'] // PAGE
            given.add((at <= 20, line['content'], line.get('why')))
            if at < 20:
                self.assertEqual(fnv(content), self.true[pid, number(line['va'])])
        self.assertEqual(given, {(True, 'file', None),
                                 (False, 'none', 'needs the mapped file, but lies past its end on the disk')})

    def image_with_header(self):
        """The path of an image whose headers are in memory, and of which other pages are not."""
        for pid in self.pids[:3]:
            for v in self.vads(pid):
                if v['kind'] == 'image' and v['counts']['states']['file']:
                    line, content = self.read(pid, v)[0]
                    if line['content'] == 'memory' and content[:2] == b'MZ':
                        return plain(v['file'])
        return self.fail('this machine has none')

    def test_another_version(self):
        """Time stamp, size or checksum in the header differ: then nothing of it is given."""
        self.machine('seed=4')
        path = self.image_with_header()
        for field in (8, 24 + 56, 24 + 64):
            data = bytearray(self.files[path])
            data[0xe8 + field] ^= 1
            self.change(path, bytes(data))
            self.assertEqual(self.why('--file-pages', self.disk, file=path),
                             f'{self.disk}: another version of the file: time stamp, size or checksum in its header '
                             'differ')
        data[:2] = b'ZM'
        self.change(path, bytes(data))
        self.assertEqual(self.why('--file-pages', self.disk, file=path),
                         f'{self.disk}: another version of the file: it is no program there')
        self.write()
        sources = [line['file_source'] for _, line, _ in self.pages('--file-pages', self.disk, file=path)]
        self.assertTrue(sources and all(x['same_header'] and x['same_size'] for x in sources))

    def test_header_that_memory_lacks_compares_nothing(self):
        self.machine('seed=4')
        files = {}
        for path, data in self.files.items():
            data = bytearray(data)
            data[0xe8 + 8] ^= 1
            files[path] = bytes(data)
        self.write(files)
        known = {False: 0, True: 0}
        for pid in self.pids:
            for v in self.vads(pid):
                if v['kind'] != 'image' or not v['counts']['states']['file']:
                    continue
                lines = self.read(pid, v, '--file-pages', self.disk)
                header = lines[0][0]['content'] not in ('file', 'none')
                known[header] += 1
                for line, _ in lines:
                    if line['state'] == 'subsection':
                        self.assertEqual(line['content'], 'none' if header else 'file')
                        self.assertFalse(line.get('file_source', {}).get('same_header'))
        self.assertGreater(min(known.values()), 0, known)

    def test_files_whose_bytes_are_not_theirs(self):
        self.machine('seed=4')

        def encrypt(v, f):
            next(a for a in v.records[f.number][3] if a.kind == 0x80).flags |= 0x4000

        def attribute(flag):
            def put(v, f):
                a = next(a for a in v.records[f.number][3] if a.kind == 0x10)
                a.value = a.value[:32] + (0x20 | flag).to_bytes(4, 'little') + a.value[36:]
            return put

        def wof(v, f):
            from forge import Attribute, DATA as DATA_KIND
            v.add(f.number, Attribute(DATA_KIND, b'compressed', name='WofCompressedData'))

        def delete(v, f):
            v.records[f.number] = (2, 0, 0, v.records[f.number][3])

        for change, reason in ((encrypt, 'it is encrypted there (EFS)'),
                               (attribute(0x4000), 'it is encrypted there (EFS)'),
                               (attribute(0x400), 'it is a reparse point there'), (wof, 'it is a reparse point there'),
                               (delete, '')):
            v = self.volume()
            change(v, self.on_disk[NTDLL])
            v.write(str(self.disk))
            with self.subTest(change):
                self.assertIn(f'{self.disk}: {reason}', self.why('--file-pages', self.disk))

    def test_what_cannot_be_read(self):
        self.machine('seed=4')
        v = self.volume()
        v.write(str(self.disk))
        lcn, clusters = next(a for a in v.records[self.on_disk[NTDLL].number][3] if a.kind == 0x80).runs[0]
        self.assertLess(self.on_disk[DATA].number, self.on_disk[NTDLL].number)  # and lies behind it
        with open(self.disk, 'r+b') as f:
            f.truncate((lcn + clusters // 2) * PAGE)
        given = {(line['mapped_offset'] + PAGE > clusters // 2 * PAGE, line['content'], line.get('why'))
                 for _, line, _ in self.pages('--file-pages', self.disk, file=NTDLL, code=GAPS)}
        self.assertEqual(given, {(False, 'file', None),
                                 (True, 'none', 'needs the mapped file, which cannot be read there')})
        # The file's own record is torn: whether it is there is not known.
        v = self.volume()
        v.spoil.append(self.on_disk[NTDLL].number)
        v.write(str(self.disk))
        self.assertIn(f'{self.disk}: ', self.why('--file-pages', self.disk))


class Patched(Case):
    """An image of the memory in which a few bytes are others."""

    def image(self, find, put):
        raw = self.at / 'raw'
        done = run('export', '-q', '-f', '--format', 'raw', '-o', raw, self.container)
        self.assertIn(done.returncode, (OK, GAPS), done.stderr)
        memory = bytearray(raw.read_bytes())
        at = find(memory)
        memory[at:at + len(put)] = put
        raw.write_bytes(memory)
        done = run('acquire', '-q', '-f', '-s', f'file:{raw}', '-o', self.container)
        self.assertIn(done.returncode, (OK, GAPS), done.stderr)

    def place(self, pid, va):
        """Of a page of the kernel: where it is in memory."""
        done = run('read', '-q', '--json', '--pid', pid, '--va', hex(number(va) & -PAGE), self.container)
        self.assertEqual(done.returncode, OK, done.stderr)
        return json.loads(done.stdout)['frame'] + number(va) % PAGE

    def test_an_entry_of_another_section(self):
        """The file, and the page of it, are the VAD's; where the prototype entry says otherwise, nobody knows."""
        self.machine(NO_PAGEFILE)
        self.write()
        pid, line, _ = next(self.pages(file=NTDLL))
        _, other, _ = next(self.pages(file=DATA))
        self.assertNotEqual(line['prototype'], other['prototype'])
        at = self.place(pid, line['prototype_va'])
        self.image(lambda memory: at, number(other['prototype']).to_bytes(8, 'little'))
        v = next(v for v in self.vads(pid, NTDLL))
        lines = {one['va']: one for one, _ in self.read(pid, v, '--file-pages', self.disk, code=GAPS)}
        self.assertEqual((lines[line['va']]['content'], lines[line['va']].get('why')),
                         ('none', 'needs the mapped file, but its VAD contradicts its entry'))
        others = [one for one in lines.values() if one['state'] == 'subsection' and one['va'] != line['va']]
        self.assertEqual({one['content'] for one in others}, {'file'})
        # Of an image nothing is safe or at risk, but this is of another time all the same.
        self.assertEqual({one['trust'] for one in others}, {'at-risk'})
        self.assertIn('not-applicable', {one.get('trust') for one in lines.values()})

    def test_an_entry_of_another_page(self):
        self.machine(NO_PAGEFILE)
        self.write()
        # The process's entry is to name the prototype entry behind that of its page, whose page is in the file, too.
        lines = [line for _, line, _ in self.pages(file=DATA, most=len(self.pids))]
        line = next(x for x, y in zip(lines, lines[1:])
                    if number(y['prototype_va']) == number(x['prototype_va']) + 8 and x['prototype'] == y['prototype']
                    and x['entry'] not in ('0x0', '0xffffffff00000420'))
        old, new = (number(line['entry']) + more for more in (0, 8 << 16))
        self.assertTrue(line['entry'].endswith('0420'))
        self.image(lambda memory: memory.index(old.to_bytes(8, 'little')), new.to_bytes(8, 'little'))
        reasons = [one.get('why') for pid in self.pids for v in self.vads(pid, DATA)
                   for one, _ in self.read(pid, v, '--file-pages', self.disk)
                   if one['entry'] == hex(new) and one.get('mapped_offset') == line['mapped_offset']]
        self.assertEqual(reasons, ['needs the mapped file, but its VAD contradicts its entry'])

    def test_a_name_that_is_no_path(self):
        self.machine(NO_PAGEFILE)
        self.write({**self.files, 'X' + DATA: self.files[DATA]})
        name = ('\\' + DATA.replace('/', '\\')).encode('utf-16-le')
        self.image(lambda memory: memory.index(name), b'X\0')
        reasons = {line['why'] for pid in self.pids[:2] for v in self.vads(pid, 'X' + DATA)
                   for line, _ in self.read(pid, v, '--file-pages', self.disk) if line['state'] == 'subsection'}
        self.assertEqual(reasons, {'needs the mapped file, but its name is not a full path'})


class WhichVolume(Case):
    def disks(self, serials, wrong):
        """A disk with a volume for each; the files of those in `wrong` have other bytes."""
        other = {path: bytes(b ^ 0xff for b in data) for path, data in self.files.items() if path == DATA}
        volumes = [self.volume(other if i in wrong else None, serial) for i, serial in enumerate(serials)]
        return gpt_disk(str(self.disk), volumes)

    def check_true(self, *options):
        lines = [(pid, line, content) for pid, line, content in self.pages(*options, file=DATA)]
        self.assertTrue(lines)
        for pid, line, content in lines:
            self.assertEqual(line['content'], 'file', line)
            self.assertEqual(fnv(content), self.true[pid, number(line['va'])])
        return lines[0][1]['file_source']

    def test_by_its_serial_number(self):
        self.machine('seed=4')
        for wrong in (0, 2):
            offsets = self.disks([5 if i == wrong else self.serial if i == 2 - wrong else 6 for i in range(3)],
                                 (wrong, 1))
            source = self.check_true('--file-pages', self.disk)
            self.assertEqual((source['volume_offset'], source['same_volume']), (offsets[2 - wrong], True))
        self.disks([5, 6, 7], ())
        self.assertEqual(self.why('--file-pages', self.disk, file=DATA),
                         f'{self.disk}: no readable volume there has the serial number '
                         f'{self.serial >> 16:04X}-{self.serial & 0xffff:04X} of the file\'s')

    def test_several_are_no_guess(self):
        for settings, serials in (('seed=4,bare_files=1', (1, 2)), ('seed=4', None)):
            self.machine(settings)
            offsets = self.disks(serials or (self.serial, self.serial), (0,))
            self.assertEqual(self.why('--file-pages', self.disk, file=DATA),
                             f'{self.disk}: 2 volumes there have such a file (at sectors {offsets[0] // 512}, '
                             f'{offsets[1] // 512}): choose one with --offset')
            self.check_true('--file-pages', self.disk, '--offset', offsets[1] // 512)
        # Only one of them has it.
        self.machine('seed=4,bare_files=1')
        volumes = [self.volume({NTDLL: b'x'}, 1), self.volume(None, 2)]
        gpt_disk(str(self.disk), volumes)
        self.check_true('--file-pages', self.disk)

    def test_in_the_order_in_which_they_are_named(self):
        self.machine('seed=4')
        self.write()
        right = self.at / 'right.raw'
        os.rename(self.disk, right)
        self.write({DATA: self.files[DATA][:-1]})
        source = self.check_true('--file-pages', self.disk, '--file-pages', right)
        self.assertEqual(source['from'], str(right))
        # That of a file which is there says more than that of one which is not.
        self.write({NTDLL: self.files[NTDLL]})
        os.rename(self.disk, self.at / 'without.raw')
        self.write({DATA: self.files[DATA][:-1]})
        for order in ((self.at / 'without.raw', self.disk), (self.disk, self.at / 'without.raw')):
            self.assertIn('another version', self.why('--file-pages', order[0], '--file-pages', order[1], file=DATA))


class Container(Case):
    def test_files_of_the_container(self):
        self.machine('seed=4')
        self.write()
        self.machine(NO_PAGEFILE, '-i', self.disk, '--no-pagefile', '--file', DATA.upper(), '--file', NTDLL)
        given = set()
        for pid, line, content in self.pages('--file-pages', 'container'):
            path = plain(line['mapped_file'])
            given.add((path in (DATA, NTDLL), line['content']))
            if line['content'] == 'none':
                self.assertEqual(line['why'], 'container: none of its streams matches the file')
                continue
            self.assertEqual(fnv(content), self.true[pid, number(line['va'])])
            self.assertEqual(line['file_source'], {
                'from': 'container', 'stream': DATA.upper() if path == DATA else NTDLL, 'volume_offset': 0,
                'volume_serial': f'00c0ffee{self.serial:08x}', 'mft_record': None, 'sequence': None,
                'size': len(self.files[path]), 'modified': '2001-02-03T02:05:06.000000000Z', 'same_volume': True,
                'same_size': True, 'same_header': line['file_source']['same_header'], 'relocated': False})
        self.assertEqual(given, {(True, 'file'), (False, 'none')})

    def test_another_volume_of_the_container(self):
        self.machine('seed=4')
        self.write(serial=7)
        self.machine(NO_PAGEFILE, '-i', self.disk, '--no-pagefile', '--file', DATA)
        self.assertEqual(self.why('--file-pages', 'container', file=DATA),
                         'container: none of its streams matches the file')

    def test_copied_in_part(self):
        self.machine('seed=4')
        v = self.volume()
        v.write(str(self.disk))
        lcn, clusters = next(a for a in v.records[self.on_disk[DATA].number][3] if a.kind == 0x80).runs[0]
        with open(self.disk, 'r+b') as f:
            f.truncate((lcn + clusters // 2) * PAGE)
        self.machine(NO_PAGEFILE, '-i', self.disk, '--no-pagefile', '--file', DATA)
        given = {(line['mapped_offset'] >= clusters // 2 * PAGE, line['content'], line.get('why'))
                 for _, line, _ in self.pages('--file-pages', 'container', file=DATA, code=GAPS)}
        self.assertEqual(given, {(False, 'file', None),
                                 (True, 'none', 'needs the mapped file, which cannot be read there')})

    def test_none(self):
        self.machine('seed=4')
        done = run('read', '--pid', self.pids[0], '--va', '0x10000', '--file-pages', 'container', self.container)
        self.assertEqual(done.returncode, INPUT)
        self.assertIn('holds no files but page files', done.stderr.decode())


class Mistakes(Case):
    def refused(self, code, text, *args):
        done = run('read', *args, self.container)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(text, done.stderr.decode())
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertEqual(done.stdout, b'')

    def test_mistakes(self):
        self.machine('seed=4')
        self.write()
        pid = ('--pid', self.pids[0], '--va', '0x10000')
        self.refused(USAGE, '--offset needs --file-pages', *pid, '--offset', 1)
        self.refused(USAGE, '--file-pages needs --pid', '--dtb', '0x187000', '--va', 0, '--file-pages', self.disk)
        self.refused(USAGE, '--file-pages needs --pid', '--pa', 0, '--file-pages', self.disk)
        self.refused(INPUT, 'absent', *pid, '--file-pages', self.at / 'absent')
        self.refused(INPUT, 'past its end', *pid, '--file-pages', self.disk, '--offset', 1 << 40)
        for content in (b'', b'not a disk\n' * 100, bytes(MIB)):
            (self.at / 'other').write_bytes(content)
            self.refused(INPUT, 'other: ', *pid, '--file-pages', self.at / 'other')
        # It is, but for what makes it a volume.
        data = bytearray(self.disk.read_bytes())
        data[11:13] = b'\0\0'
        (self.at / 'other').write_bytes(data)
        done = run('read', *pid, '--file-pages', self.at / 'other', self.container)
        self.assertIn(done.returncode, (7, INPUT), done.stderr)
        self.refused(OUTPUT, 'is the disk being read', *pid, '--file-pages', self.disk, '-f', '-o', self.disk)

    def test_linux_has_no_such_pages(self):
        image = self.at / 'raw'
        image.write_bytes(bytes(MIB))
        done = run('acquire', '-q', '-s', f'file:{image}', '-o', self.container, '-f')
        self.assertIn(done.returncode, (OK, GAPS), done.stderr)
        self.write_nothing()
        done = run('read', '--pid', 4, '--va', 0, '--file-pages', self.disk, self.container)
        self.assertEqual(done.returncode, INPUT, done.stderr)

    def write_nothing(self):
        self.serial = 1
        self.write({NTDLL: b'x' * 5000})


@unittest.skipUnless(CAN_MOUNT, 'needs root, FUSE, mkntfs and ntfs-3g')
class Formatted(Case):
    @contextlib.contextmanager
    def mounted(self, *options):
        at = self.at / 'mount'
        at.mkdir(exist_ok=True)
        subprocess.run(['ntfs-3g', '-o', ','.join(options) or 'rw', self.disk, at], check=True, capture_output=True,
                       timeout=900)
        try:
            yield at
        finally:
            subprocess.run(['umount', at], check=True, timeout=900)

    def test_a_volume_of_mkntfs_with_compressed_files(self):
        """Compressed by the file system itself is no reason to refuse them: they are the same bytes."""
        self.machine('seed=4,bare_files=1')
        with open(self.disk, 'wb') as f:
            f.truncate(64 * MIB)
        subprocess.run(['mkntfs', '-q', '-F', '-Q', self.disk], check=True, capture_output=True, timeout=900)
        with self.mounted('compression') as at:
            for path, data in self.files.items():
                to = at / path
                to.parent.mkdir(parents=True, exist_ok=True)
                if to.name != 'ntdll.dll':
                    # FILE_ATTRIBUTE_COMPRESSED of the folder: files made in it are compressed
                    os.setxattr(to.parent, 'system.ntfs_attrib_be', (0x800).to_bytes(4, 'big'))
                to.write_bytes(data)
        seen = set()
        for pid, line, content in self.pages('--file-pages', self.disk, most=6):
            if plain(line['mapped_file']) in self.files:
                self.assertEqual((line['content'], fnv(content)), ('file', self.true[pid, number(line['va'])]))
                seen.add(plain(line['mapped_file']))
        self.assertGreater(len(seen), 4)
        self.assertIn(DATA, seen)


@unittest.skipUnless(os.geteuid() == 0 and shutil.which('losetup'), 'needs root and losetup')
class Live(Case):
    def test_a_device(self):
        self.machine('seed=4')
        self.write()
        done = subprocess.run(['losetup', '-f', '--show', self.disk], capture_output=True, timeout=900)
        if done.returncode:
            self.skipTest(done.stderr.decode().strip())
        device = done.stdout.decode().strip()
        self.addCleanup(subprocess.run, ['losetup', '-d', device], timeout=900)
        seen = 0
        for pid, line, content in self.pages('--file-pages', device, file=NTDLL, code=OK):
            self.assertEqual((line['file_source']['from'], fnv(content)), (device, self.true[pid, number(line['va'])]))
            seen += 1
        self.assertGreater(seen, 0)
        done = run('read', '-q', '--pid', self.pids[0], '--va', line['va'], '--file-pages', device, '-f', '-o', device,
                   self.container)
        self.assertEqual(done.returncode, OUTPUT, done.stderr)


if __name__ == '__main__':
    unittest.main(verbosity=2)
