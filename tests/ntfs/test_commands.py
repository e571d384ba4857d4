#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ramseal extract-file and ramseal pagefiles, on forged disks with a forged SYSTEM hive.

    test_commands.py RAMSEAL [unittest options]
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from forge import DATA, Attribute, Volume, gpt_disk, mbr_disk
from hive import Hive, numbered, old_log

RAMSEAL = os.path.abspath(sys.argv.pop(1))
MIB = 1 << 20
OK, USAGE, GAPS, OUTPUT, VERIFY, INPUT = 0, 2, 3, 6, 7, 9


def system_hive(existing=None, paging=None, mounts=None, current=2):
    memory = {}
    if existing is not None:
        memory['ExistingPageFiles'] = existing
    if paging is not None:
        memory['PagingFiles'] = paging
    control = {'Control': {'Session Manager': {'Memory Management': memory}}}
    other = {'Control': {'Session Manager': {'Memory Management': {
        'ExistingPageFiles': ['\\??\\X:\\of-another-set.sys']}}}}
    tree = {'Select': {'Current': current}, 'ControlSet001': other, 'ControlSet002': control,
            'MountedDevices': {f'\\DosDevices\\{k}:': v for k, v in (mounts or {}).items()}}
    return Hive(tree).pack()


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='ramseal-ntfs-')
        self.addCleanup(shutil.rmtree, self.folder)
        self.image = os.path.join(self.folder, 'image.raw')
        self.out = os.path.join(self.folder, 'out')

    def ramseal(self, *args):
        return subprocess.run([RAMSEAL, *map(str, args)], capture_output=True, timeout=900)

    def refused(self, r, code, *parts):
        self.assertEqual(r.returncode, code, r.stderr)
        self.assertEqual(len(r.stderr.splitlines()), 1, r.stderr)
        for part in parts:
            self.assertIn(part, r.stderr.decode())


class ExtractFile(Case):
    def test_to_stdout_and_to_a_file(self):
        v = Volume(16 * MIB)
        f = v.file('pagefile.sys', [(1000 + 2 * i, 1) for i in range(100)], per_record=30)
        v.write(self.image)
        r = self.ramseal('extract-file', '--image', self.image, 'pagefile.sys', '-o', '-')
        self.assertEqual(r.returncode, OK, r.stderr)
        self.assertTrue(r.stdout == f.content())
        r = self.ramseal('extract-file', '--image', self.image, 'pagefile.sys', '-o', self.out)
        self.assertEqual((r.returncode, r.stdout), (OK, b''), r.stderr)
        with open(self.out, 'rb') as o:
            self.assertTrue(o.read() == f.content())
        r = self.ramseal('extract-file', '--image', self.image, 'pagefile.sys', '-o', self.out)
        self.refused(r, OUTPUT, self.out)
        folder = self.out + '.folder'
        os.mkdir(folder)
        r = self.ramseal('extract-file', '--image', self.image, 'pagefile.sys', '-o', folder)
        self.assertEqual((r.returncode, os.listdir(folder)), (OK, ['pagefile.sys']), r.stderr)

    def test_summary(self):
        v = Volume(16 * MIB)
        v.file('pagefile.sys', [(1000, 5), (None, 3), (2000, 4)], init=9 * 4096)
        v.write(self.image)
        r = self.ramseal('--log-json', 'extract-file', '-i', self.image, 'pagefile.sys', '-o', '-')
        line = [json.loads(x) for x in r.stderr.splitlines() if b'file-copied' in x][0]
        self.assertEqual({k: line[k] for k in line if k.startswith('pages_')},
                         {'pages_data': 6, 'pages_hole': 3, 'pages_skipped': 3,
                          'pages_unreadable': 0})
        self.assertEqual((line['size'], line['fragments'], line['changed']), (49152, 2, False))

    def test_raw_tail(self):
        v = Volume(16 * MIB)
        f = v.file('pagefile.sys', [(1000, 5)], init=4096)
        v.write(self.image)
        r = self.ramseal('extract-file', '-i', self.image, 'pagefile.sys', '-o', '-')
        self.assertTrue(r.stdout == f.content())
        r = self.ramseal('extract-file', '-i', self.image, 'pagefile.sys', '-o', '-', '--raw-tail')
        self.assertTrue(r.stdout == f.content(raw_tail=True))

    def test_gaps(self):
        v = Volume(16 * MIB)
        v.file('pagefile.sys', [(1000, 5), (4094, 10)])
        v.write(self.image)
        r = self.ramseal('extract-file', '-i', self.image, 'pagefile.sys', '-o', self.out)
        self.assertEqual(r.returncode, GAPS)
        self.assertIn(b'8 pages could not be read', r.stderr)
        self.assertEqual(os.path.getsize(self.out), 15 * 4096)

    def test_record(self):
        """Whatever the file is called, and its streams."""
        v = Volume(16 * MIB)
        f = v.file('pagefile.sys', [(1000, 5)])
        small = v.resident('note', b'small', stream='')
        v.add(small.number, Attribute(DATA, b'another', name='more'))
        v.entries.pop()  # it is in no folder
        split = v.file('split', [(2000 + 2 * i, 1) for i in range(50)], per_record=20)
        folder, deleted = v.folder('folder', []), v.new_record(flags=0)
        v.write(self.image)
        command = ['extract-file', '-i', self.image, '--record']
        for number, operand, content in ((f.number, [], f.content()), (small.number, [], b'small'),
                                         (small.number, [':more'], b'another'), (split.number, [], split.content()),
                                         (small.number, [':MORE:$DATA'], b'another')):
            with self.subTest(number, operand=operand):
                r = self.ramseal(*command, number, *operand, '-o', '-')
                self.assertEqual((r.returncode, r.stdout), (OK, content), r.stderr)
        os.mkdir(self.out)
        r = self.ramseal(*command, small.number, '-o', self.out)
        self.assertEqual((r.returncode, os.listdir(self.out)), (OK, [f'record-{small.number}']), r.stderr)
        for code, args, part in (
                (USAGE, [f.number, 'pagefile.sys'], 'both name a file'), (USAGE, [f.number, ':'], 'without a name'),
                (USAGE, [f.number, ':a/b'], 'names no stream'), (USAGE, [1 << 48], '--record'),
                (INPUT, [f.number, ':more'], 'no stream named "more"'), (INPUT, [folder[0]], 'is a folder'),
                (INPUT, [split.number + 1], 'is an extension of another'), (INPUT, [deleted], 'is not in use'),
                (INPUT, [(1 << 48) - 1], 'no MFT record behind')):
            with self.subTest(args):
                r = self.ramseal(*command, *args, '-o', '-')
                self.assertEqual(r.stdout, b'')
                self.refused(r, code, part)

    def test_deep_path(self):
        v = Volume(16 * MIB)
        path = '/'.join(f'{i}' for i in range(400))
        v.tree({path: b'far down'})
        v.write(self.image)
        r = self.ramseal('extract-file', '-i', self.image, path, '-o', '-')
        self.assertEqual((r.returncode, r.stdout), (OK, b'far down'), r.stderr)
        r = self.ramseal('extract-file', '-i', self.image, 'a/' * 16384 + 'a', '-o', '-')
        self.refused(r, USAGE, 'more than 16384 parts')

    def test_other_images_are_named(self):
        """Virtual disks wherever a volume is said to be, even if a disk could be seen in them; and what is no disk."""
        v = Volume(16 * MIB)
        v.file('pagefile.sys', [(1000, 5)])
        v.write(self.image)
        with open(self.image, 'rb') as f:
            volume = f.read()
        convert = 'qemu-img convert -O raw'
        for name, data, text in (
                ('vhdx', b'vhdxfile' + volume[8:], 'a VHDX disk'), ('vmdk', b'KDMV' + bytes(1 << 20), 'a VMDK disk'),
                ('qcow2', b'QFI\xfb' + bytes(1 << 20), 'a qcow2 disk'),
                ('vhd', b'conectix' + bytes(1 << 20), 'a VHD disk'),
                ('vdi', b'<<< Oracle VM VirtualBox Disk Image >>>\n'.ljust(64, b'\0') + b'\x7f\x10\xda\xbe' +
                 bytes(1 << 20), 'a VDI disk'),
                ('gz', b'\x1f\x8b\x08\0\0\0\0\0\0\x03' + bytes(1 << 20), 'a gzip file; unpack it'),
                ('dmp', b'PAGEDUMP' + bytes(1 << 20), 'a 32-bit Windows crash dump')):
            with self.subTest(name):
                path = os.path.join(self.folder, 'disk.' + name)
                with open(path, 'wb') as f:
                    f.write(data)
                parts = [f'{path}: is {text}', *[convert] * (name not in ('gz', 'dmp'))]
                for command in ['pagefiles'], ['extract-file', 'pagefile.sys', '-o', '-']:
                    self.refused(self.ramseal(*command, '-i', path), INPUT, *parts)
                if name not in ('gz', 'dmp'):
                    r = self.ramseal('extract-file', 'pagefile.sys', '-o', '-', '-i', path, '--offset', 8)
                    self.refused(r, INPUT, *parts)

    def test_mistakes(self):
        v = Volume(16 * MIB)
        v.file('pagefile.sys', [(1000, 5)])
        v.write(self.image)
        for code, args, part in (
                (USAGE, ['pagefile.sys', '-o', '-'], '--image or --volume'),
                (USAGE, ['-i', self.image, 'pagefile.sys'], '--output'),
                (USAGE, ['-i', self.image, '-o', '-'], 'PATH, or --record'),
                (USAGE, ['-i', self.image, '-V', self.image, 'x', '-o', '-'], 'cannot be combined'),
                (USAGE, ['-i', self.image, 'a/../b', '-o', '-'], '".."'),
                (INPUT, ['-i', self.image, 'nothing', '-o', '-'], 'there is no "nothing"'),
                (INPUT, ['-i', self.image, '--offset', 5, 'x', '-o', '-'], 'sector 5'),
                (INPUT, ['-i', self.image, '--offset', 1 << 40, 'x', '-o', '-'], 'past its end'),
                (INPUT, ['-i', '/nonexistent', 'x', '-o', '-'], '/nonexistent'),
                (OUTPUT, ['-i', self.image, 'pagefile.sys', '-f', '-o', self.image],
                 'is the input that is being read')):
            with self.subTest(args=args):
                r = self.ramseal('extract-file', *args)
                self.assertEqual(r.stdout, b'')
                self.refused(r, code, part)


class Pagefiles(Case):
    def document(self, *args, code=OK):
        r = self.ramseal('pagefiles', '--image', self.image, '--json', *args)
        self.assertEqual(r.returncode, code, r.stderr)
        return json.loads(r.stdout)

    def list(self, *args, **more):
        return self.document(*args, **more)['pagefiles']

    def brief(self, *args, **more):
        return [(p['path'].strip('\\'), p.get('number'), p['number_origin'], p['readable'],
                 p.get('volume', {}).get('offset')) for p in self.list(*args, **more)]

    def windows(self, hive, *page_files, log=None):
        """A volume with a SYSTEM hive in its place."""
        v = Volume(16 * MIB, label='Windows')
        lcn = 1000
        for name in page_files:
            v.file(name, [(lcn, 4), (lcn + 8, 4)])
            lcn += 20
        at = 'Windows/System32/config/SYSTEM'
        v.tree({at: hive, **({at + '.LOG1': log} if log else {})})
        return v

    def data(self, *page_files):
        v = Volume(16 * MIB, label='data')
        for i, name in enumerate(page_files):
            v.file(name, [(1000 + 20 * i, 3)])
        return v

    def test_two_page_files_on_a_gpt_disk(self):
        # Volume 0 of the disk is D:, volume 1 is C: with Windows on it.
        mounts = {'C': b'DMIO:ID:' + bytes([2] * 16), 'D': b'DMIO:ID:' + bytes([1] * 16)}
        hive = system_hive(['\\??\\C:\\pagefile.sys', '\\??\\D:\\pagefile.sys'], mounts=mounts)
        offsets = gpt_disk(self.image, [self.data('pagefile.sys'),
                                        self.windows(hive, 'pagefile.sys', 'swapfile.sys')])
        self.assertEqual(self.brief(), [
            ('pagefile.sys', 0, 'assumed', True, offsets[1]),
            ('pagefile.sys', 1, 'assumed', True, offsets[0]),
            ('swapfile.sys', 2, 'assumed', True, offsets[1])])
        first = self.list()[0]
        self.assertEqual((first['named_by'], first['fragments'], first['size']),
                         ('ExistingPageFiles', 2, 32768))
        text = self.ramseal('pagefiles', '-i', self.image).stdout.decode()
        self.assertEqual(len(text.splitlines()), 3)
        self.assertIn('#1 (assumed)', text)

    def test_mbr_disk(self):
        signature, gap = 0x1234abcd, 2048 * 512
        mounts = {'C': signature.to_bytes(4, 'little') + gap.to_bytes(8, 'little'),
                  'E': signature.to_bytes(4, 'little') + (17 * MIB).to_bytes(8, 'little')}
        hive = system_hive(['\\??\\E:\\pagefile.sys'], mounts=mounts)
        offsets = mbr_disk(self.image, [self.windows(hive), self.data('pagefile.sys')],
                           signature=signature)
        self.assertEqual(offsets, [gap, 17 * MIB])
        self.assertEqual(self.brief(), [('pagefile.sys', 0, 'assumed', True, 17 * MIB)])

    def test_letter_of_another_disk_that_is_laid_out_alike(self):
        """E: is at the same offset, of a disk with another signature: what is here is not its page file."""
        signature, other = (n.to_bytes(4, 'little') for n in (0x1234abcd, 0x1234abce))
        hive = system_hive(['\\??\\E:\\pagefile.sys'],
                           mounts={'C': signature + (2048 * 512).to_bytes(8, 'little'),
                                   'E': other + (17 * MIB).to_bytes(8, 'little')})
        mbr_disk(self.image, [self.windows(hive), self.data('pagefile.sys')], signature=0x1234abcd)
        self.assertEqual([p[1:4] for p in self.brief()], [(0, 'assumed', False), (None, 'none', True)])
        self.assertIn('not on this disk', self.list()[0]['problem'])

    def test_configured_but_not_existing_value(self):
        hive = system_hive([], ['?:\\pagefile.sys', 'C:\\second page file.sys 16 4096'])
        self.windows(hive, 'pagefile.sys', 'second page file.sys').write(self.image)
        self.assertEqual(self.brief(), [('pagefile.sys', 0, 'assumed', True, 0),
                                        ('second page file.sys', 1, 'assumed', True, 0)])

    def test_named_but_on_another_disk_or_gone(self):
        hive = system_hive(['\\??\\C:\\pagefile.sys', '\\??\\D:\\pagefile.sys'])
        self.windows(hive).write(self.image)
        found = self.list()
        self.assertEqual([p['readable'] for p in found], [False, False])
        self.assertIn('there is no "pagefile.sys"', found[0]['problem'])
        self.assertIn('not on this disk', found[1]['problem'])

    def test_left_over_page_file_has_no_number(self):
        hive = system_hive(['\\??\\C:\\pagefile.sys'],
                           mounts={'C': b'DMIO:ID:' + bytes([1] * 16)})
        gpt_disk(self.image, [self.windows(hive, 'pagefile.sys'), self.data('pagefile.sys')])
        self.assertEqual([p[1:3] for p in self.brief()], [(0, 'assumed'), (None, 'none')])

    def test_volume_without_a_letter(self):
        guid, second = '01234567-89ab-cdef-0123-456789abcdef', bytes(range(1, 17))
        text = '04030201-0605-0807-090a-0b0c0d0e0f10'
        guids = [bytes(16), second]
        for name, mounts in ((guid, {f'\\??\\Volume{{{guid}}}': b'DMIO:ID:' + second}), (text, {}),
                             (text.upper(), {})):
            with self.subTest(name=name):
                tree = {'Select': {'Current': 1}, 'MountedDevices': mounts, 'ControlSet001': {'Control': {
                    'Session Manager': {'Memory Management': {
                        'PagingFiles': [f'\\??\\Volume{{{name}}}\\pagefile.sys 0 0']}}}}}
                gpt_disk(self.image, [self.windows(Hive(tree).pack()), self.data('pagefile.sys')], guids=guids)
                self.assertEqual([p[:4] for p in self.brief()], [('pagefile.sys', 0, 'assumed', True)])
                self.assertEqual(self.list()[0]['named_by'], 'PagingFiles')
        tree['ControlSet001']['Control']['Session Manager']['Memory Management'] = {
            'PagingFiles': [f'\\??\\Volume{{{guid}}}\\pagefile.sys']}
        gpt_disk(self.image, [self.windows(Hive(tree).pack()), self.data('pagefile.sys')], guids=guids)
        self.assertEqual([p[1:4] for p in self.brief()], [(0, 'assumed', False), (None, 'none', True)])

    def test_hive_with_one_torn_cell(self):
        tree = {'Select': {'Current': 1}, 'ControlSet001': {'Control': {'Session Manager': {'Memory Management': {
            'PagingFiles': ['C:\\folder\\p.sys 0 0']}}}}}
        h = Hive(tree)
        struct.pack_into('<i', h.cells, h.cell(b'of nobody'), 3)
        self.windows(h.pack(), 'pagefile.sys').write(self.image)
        names = [p['path'].strip('\\') for p in self.list()]
        self.assertIn('folder\\p.sys', names)
        r = self.ramseal('pagefiles', '-i', self.image)
        self.assertIn(b'is damaged', r.stderr)
        # One that it would have had to look at.
        h = Hive(tree)
        at = h.cells.index(b'PagingFiles') - 20
        self.assertEqual(h.cells[at:at + 2], b'vk')
        struct.pack_into('<i', h.cells, at - 4, 3)
        self.windows(h.pack(), 'pagefile.sys').write(self.image)
        self.blind('is damaged')

    def test_hive_that_was_not_written_out(self):
        hive = bytearray(system_hive(['\\??\\C:\\pagefile.sys']))
        hive[4] ^= 1
        checksum = 0
        for (word,) in struct.iter_unpack('<I', hive[:508]):
            checksum ^= word
        struct.pack_into('<I', hive, 508, checksum)
        self.windows(bytes(hive), 'pagefile.sys').write(self.image)
        r = self.ramseal('pagefiles', '-i', self.image)
        self.assertEqual(r.returncode, OK, r.stderr)
        self.assertIn(b'newest changes are missing: of SYSTEM\'s logs .LOG1 is not there', r.stderr)

    def test_log_of_a_hive_on_the_volume(self):
        """What it names now is found, and nothing is written."""
        before, after = (system_hive([f'\\??\\C:\\{name}.sys']) for name in ('pagefile', 'pagefill'))
        v = self.windows(numbered(before, 5, 4), 'pagefile.sys', 'pagefill.sys',
                         log=old_log(before, after, 5))
        v.write(self.image)
        r = self.ramseal('pagefiles', '-i', self.image)
        self.assertEqual(r.returncode, OK, r.stderr)
        self.assertIn(b'1 transaction of its logs were replayed in memory', r.stderr)

    def test_no_hive(self):
        gpt_disk(self.image, [self.data('pagefile.sys', 'hiberfil.sys'), self.data('PageFile.Sys')])
        self.assertEqual([p[:3] for p in self.brief()],
                         [('pagefile.sys', 0, 'assumed'), ('pagefile.sys', 1, 'assumed')])
        self.assertEqual([p[:3] for p in self.brief('--hibernation')][2],
                         ('hiberfil.sys', None, 'none'))

    def test_damaged_hive(self):
        for hive in (b'regf', bytes(8192), system_hive([])[:5000], b'x' * 100000):
            with self.subTest(hive=hive[:8]):
                self.windows(hive, 'pagefile.sys').write(self.image)
                self.assertEqual(self.brief(code=GAPS), [('pagefile.sys', 0, 'assumed', True, 0)])
                self.blind('its SYSTEM hive, which names page files outside')

    def test_none(self):
        self.data().write(self.image)
        self.assertEqual(self.document(), {'schema': 'ramseal-pagefiles-1', 'pagefiles': [], 'volumes': []})
        r = self.ramseal('pagefiles', '-i', self.image)
        self.assertEqual((r.returncode, r.stderr), (OK, b'ramseal: there are no page files or swap areas\n'))

    def blind(self, *parts, code=GAPS, args=()):
        """It says that something could not be looked at, and why, and never that there are none."""
        r = self.ramseal('pagefiles', '-i', self.image, *args)
        self.assertEqual(r.returncode, code, r.stderr)
        for part in parts:
            self.assertIn(part, r.stderr.decode())
        self.assertNotIn(b'there are no ', r.stderr)
        return r

    def overwrite(self, at, data):
        with open(self.image, 'r+b') as f:
            f.seek(at)
            f.write(data)

    # What a volume of that kind begins with (formats/image/volume_kind.c says where that is from).
    KINDS = {
        'BitLocker': [(0, b'\xeb\x58\x90-FVE-FS-'), (510, b'\x55\xaa')],
        'BitLocker To Go': [(0, b'\xeb\x58\x90MSWIN4.1'), (82, b'FAT32   '), (510, b'\x55\xaa'),
                            (424, bytes.fromhex('3bd66749292ed84a8399f6a339e3d001'))],
        'LUKS': [(0, b'LUKS\xba\xbe\0\2')],
        'ReFS': [(3, b'ReFS\0\0\0\0')],
        'no known file system': [(0, b'\x5a\xa5' * 300)],
    }

    def test_volumes_that_cannot_be_looked_into(self):
        for kind, marks in self.KINDS.items():
            with self.subTest(kind=kind):
                offsets = gpt_disk(self.image, [self.data('pagefile.sys'), self.data()])
                self.overwrite(offsets[1], bytes(64 << 10))
                for at, data in marks:
                    self.overwrite(offsets[1] + at, data)
                name = kind.replace(' To Go', '')
                r = self.blind(name, f'at sector {offsets[1] // 512}:', 'there may be more page')
                self.assertIn(b'pagefile.sys', r.stdout)
                volume, = self.document(code=GAPS)['volumes']
                self.assertTrue(volume['kind'].startswith(name))
                self.assertEqual((volume['offset'], volume['looked_into'],
                                  volume['page_files_may_be_missing']), (offsets[1], False, True))
                # Alone: there is nothing here that the command works on.
                self.blind(name, 'no NTFS volume that can be read', code=INPUT,
                           args=('--offset', offsets[1] // 512))

    def test_volumes_that_hold_no_page_files_of_windows_are_named(self):
        for kind, (at, mark) in {'FAT': (82, b'FAT32   '), 'exFAT': (3, b'EXFAT   '),
                                 'Linux swap': (4086, b'SWAPSPACE2')}.items():
            offsets = gpt_disk(self.image, [self.data('pagefile.sys'), self.data()])
            self.overwrite(offsets[1], bytes(64 << 10))
            self.overwrite(offsets[1] + at, mark)
            r = self.ramseal('pagefiles', '-i', self.image)
            self.assertEqual(r.returncode, OK, r.stderr)
            self.assertIn(f'{kind} at sector {offsets[1] // 512}: is not searched',
                          r.stderr.decode())

    def test_mft_that_cannot_be_read(self):
        offsets = gpt_disk(self.image, [self.data('pagefile.sys'), self.data('pagefile.sys')])
        self.overwrite(offsets[1] + 8192, b'ABCD')
        self.assertEqual(len(self.list(code=GAPS)), 1)
        self.blind(f'NTFS at sector {offsets[1] // 512}: MFT record 0: is not a FILE record')
        self.overwrite(offsets[0] + 8192, b'ABCD')
        self.blind('no NTFS volume that can be read', code=INPUT)

    def test_wrong_offset(self):
        self.data('pagefile.sys').write(self.image)
        self.blind('only zeros at sector 5', 'no NTFS volume that can be read', code=INPUT,
                   args=('--offset', 5))
        self.blind('no known file system at sector 8001', code=INPUT,
                   args=('--offset', 8001))

    def test_damaged_folder(self):
        """What the index does not have is looked for in the MFT, and that is said."""
        v = self.data('pagefile.sys')
        v.write(self.image)
        index = [at for at, data in v.patches if data[:4] == b'INDX'][-1]
        self.overwrite(index, bytes(4096))
        page_file, = self.list()
        self.assertIn('found by its MFT record', page_file['note'])
        r = self.ramseal('pagefiles', '-i', self.image)
        self.assertIn(b'found by its MFT record', r.stdout)
        r = self.ramseal('extract-file', '-i', self.image, 'pagefile.sys', '-o', self.out)
        self.assertEqual(r.returncode, OK, r.stderr)
        self.assertIn(b'found by its MFT record', r.stderr)

        v = self.data('pagefile.sys')
        v.spoil.append(v.resident('another file', b'x').number)
        v.write(self.image)
        self.overwrite([at for at, data in v.patches if data[:4] == b'INDX'][-1], bytes(4096))
        self.assertEqual(len(self.list(code=GAPS)), 1)
        self.blind('NTFS at sector 0: it is not known whether it has ', '1 of the MFT records that may have it cannot')

    def test_page_file_whose_record_is_torn(self):
        v = self.data('pagefile.sys')
        v.spoil.append(v.files[0].number)
        v.write(self.image)
        self.assertEqual([p['readable'] for p in self.list(code=GAPS)], [False])
        self.blind('1 page file cannot be read')

    @unittest.skipIf(os.environ.get('RAMSEAL_SYSTEM') == 'windows', 'no /proc/swaps there')
    def test_this_machine(self):
        r = self.ramseal('pagefiles', '--json')
        self.assertEqual(r.returncode, OK, r.stderr)
        with open('/proc/swaps') as f:
            self.assertEqual(len(json.loads(r.stdout)['pagefiles']), len(f.readlines()) - 1)


if __name__ == '__main__':
    unittest.main()
