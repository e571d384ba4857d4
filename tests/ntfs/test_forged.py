#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of forged volumes, read through the MFT: right bytes, right states, one clear line.

    test_forged.py NTFS_TOOL [unittest options]

icat (sleuthkit) is asked too where it is installed and can read the volume.
"""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

from forge import (Attribute, BITMAP, COMPRESSED, DATA, FILE_NAME, INDEX_ALLOCATION, INDEX_BITMAP, LIST, MFT,
                   ROOT, SECURE, UPCASE, VOLUME, Volume, gpt_disk, mbr_disk, words)

TOOL = os.path.abspath(sys.argv.pop(1))
MIB = 1 << 20
OK, USAGE, GAPS, VERIFY, INPUT = 0, 2, 3, 7, 9


def copy(source, target):
    """A command that does that, for the shell of the system that the tool runs on."""
    if os.environ.get('RAMSEAL_SYSTEM') == 'windows':
        source, target = (path.replace('/', '\\') for path in (source, target))
        return f'copy /y /b {source} {target} >nul'
    return f'cp {source} {target}'


class Result:
    def __init__(self, process):
        self.code = process.returncode
        self.out = process.stdout
        self.err = process.stderr.decode()
        # "data=7 hole=2 " and "bad 0+512 error=5"
        self.pages = {k: int(v) for k, v in re.findall(r'(\w+)=(\d+) ', self.err)}
        self.bad = re.findall(r'^bad (\d+)\+(\d+) error=(\d+)$', self.err, re.M)


def version_of(program):
    """'' if there is none."""
    if not shutil.which(program):
        return ''
    return re.search(r'[0-9.]{5,}', subprocess.run([program, '-V'], capture_output=True, text=True).stdout)[0]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='ramseal-ntfs-')
        self.addCleanup(shutil.rmtree, self.folder)
        self.image = os.path.join(self.folder, 'image.raw')

    def tool(self, *args):
        return Result(subprocess.run([TOOL, *map(str, args)], capture_output=True, timeout=900))

    def cat(self, path, offset='-', images=None):
        return self.tool('cat', offset, path, *(images or [self.image]))

    def info(self, path):
        first, *extents = self.tool('info', '-', path, self.image).out.decode().splitlines()
        fields = dict(re.findall(r'(\w+)=(\S+)', first))
        return fields, [e.split() for e in extents]

    def icat(self, number, sectors=0, images=None):
        if not shutil.which('icat'):
            return None
        p = subprocess.run(['icat', '-f', 'ntfs', '-o', str(sectors), *(images or [self.image]),
                            str(number)], capture_output=True, timeout=900)
        return p.stdout

    def check(self, volume, f, icat=True, **pages):
        """The whole content, no gaps, the same as icat's."""
        volume.write(self.image)
        r = self.cat(f.name)
        self.assertEqual(r.code, OK, r.err)
        self.assertTrue(r.out == f.content(), 'content differs')
        other = self.icat(f.number) if icat else None
        if other is not None:
            self.assertTrue(r.out == other, 'icat differs')
        for state, count in pages.items():
            self.assertEqual(r.pages.get(state, 0), count, r.err)
        return r

    def refused(self, r, code, *parts):
        """One line on stderr that says why, and this exit code."""
        self.assertEqual(r.code, code, r.err)
        self.assertEqual(r.out, b'')
        self.assertEqual(len(r.err.splitlines()), 1, r.err)
        for part in parts:
            self.assertIn(part, r.err)


class Geometry(Case):
    def test_every_cluster_size(self):
        for shift in range(9, 22):
            with self.subTest(cluster=1 << shift):
                v = Volume(max(16 * MIB, 64 << shift), cluster=1 << shift)
                start = max(16, MIB >> shift)
                f = v.file('pagefile.sys', [(start, 4), (None, 2), (start + 8, 3)])
                self.check(v, f, icat=shift <= 16)  # 4.11 knows clusters of up to 64 KiB

    def test_records_of_4_kib_and_sectors_of_4096(self):
        v = Volume(32 * MIB, record=4096, sector=4096)
        f = v.file('pagefile.sys', [(2000 + 2 * i, 1) for i in range(1200)], per_record=300)
        self.check(v, f, data=1200)

    def test_fragmented_mft(self):
        v = Volume(32 * MIB, mft_runs=[(4, 4), (100, 4), (50, 30)])
        self.check(v, v.file('pagefile.sys', [(2000, 10)]))

    def test_mft_with_an_attribute_list_of_its_own(self):
        for sound in (True, False):
            with self.subTest(sound=sound):
                v = Volume(32 * MIB, mft_list=True, mft_runs=[(4, 5), (100, 4), (50, 30)])
                for i in range(40):
                    f = v.file(f'far {i}', [(2000 + 20 * i, 10), (2011 + 20 * i, 3)])
                if not sound:
                    v.spoil.append(15)
                v.write(self.image)
                if sound:
                    self.check(v, f, data=13)
                    self.assertEqual(len(self.cat('$MFT').out), 39 * 4096)
                else:
                    self.assertEqual(self.cat(f.name).code, VERIFY)

    def test_mft_whose_list_leads_on_record_by_record(self):
        """Each of its records lies in the part of $MFT that the one before it names."""
        v = Volume(16 * MIB, mft_runs=[(4, 4), (100, 4), (50, 30)])
        for i in range(60):
            v.resident(f'file {i}', str(i).encode())
        runs = v.mft_runs

        def split():
            mft = v.records[MFT][3]
            data = [a for a in mft if a.kind == DATA][0]
            data.runs = runs[:1]
            entries, first = [], 4
            # The second piece is in record 15, which the first names; the third is in record 20,
            # which lies in the second.
            for number, run in ((15, runs[1]), (20, runs[2])):
                v.records[number] = (1, 1, MFT | 1 << 48, [])
                a = v.add(number, Attribute(DATA, None, [run], first=first))
                entries.append((DATA, first, number, a.id, ''))
                first += run[1]
            f = v.files[0].__class__(v, MFT, '$MFT', 0)
            v.attribute_list(f, entries[::-1], resident=True)
        v.system_files_done = split
        v.write(self.image)
        for i in (0, 59):
            r = self.cat(f'file {i}')
            self.assertEqual((r.code, r.out), (OK, str(i).encode()), r.err)
        self.assertNotIn('note=', self.tool('volumes', self.image).out.decode())

    def test_mft_record_in_two_clusters_that_lie_apart(self):
        v = Volume(16 * MIB, cluster=512, mft_runs=[(16, 31)] + [(100 + 2 * i, 1)
                                                                for i in range(40)])
        f = v.file('pagefile.sys', [(2000 + 2 * i, 1) for i in range(100)], per_record=20)
        self.check(v, f)


class Content(Case):
    def test_one_run(self):
        v = Volume(16 * MIB)
        self.check(v, v.file('pagefile.sys', [(1000, 1000)]), data=1000)

    def test_a_thousand_fragments(self):
        v = Volume(32 * MIB)
        f = v.file('pagefile.sys', [(1000 + 2 * i, 1) for i in range(1000)], per_record=90)
        self.check(v, f, data=1000)

    def test_more_extension_records_than_libtsk_looks_at(self):
        v = Volume(256 * MIB)
        f = v.file('pagefile.sys', [(2000 + 2 * i, 1) for i in range(20000)], per_record=60)
        self.check(v, f, icat=False, data=20000)
        fields, extents = self.info('pagefile.sys')
        self.assertEqual(fields['records'], '335')
        self.assertEqual(len(extents), 20000)
        other = self.icat(f.number)
        if other is not None:
            self.assertFalse(other == f.content(), 'libtsk has learnt it: compare with it again')

    def test_attribute_list_resident_and_not(self):
        for resident in (True, False):
            with self.subTest(resident=resident):
                v = Volume(16 * MIB)
                f = v.file('pagefile.sys', [(1000 + 2 * i, 1) for i in range(12)], per_record=3,
                           list_resident=resident)
                self.check(v, f, data=12)

    def test_security_descriptors(self):
        v = Volume(16 * MIB, secure=words(3, 0, 50000))
        v.write(self.image)
        r = self.cat('$Secure:$SDS')
        self.assertEqual(r.code, OK, r.err)
        self.assertTrue(r.out == v.secure)

    def test_runs_backwards_and_side_by_side(self):
        v = Volume(32 * MIB)
        f = v.file('pagefile.sys', [(5000, 3), (4997, 3), (1000, 1), (1001, 2), (6000, 1)])
        self.check(v, f, data=10)
        self.assertEqual(self.info('pagefile.sys')[0]['fragments'], '4')

    def test_resident(self):
        v = Volume(16 * MIB)
        self.check(v, v.resident('pagefile.sys', b'small'), data=1)

    def test_empty(self):
        v = Volume(16 * MIB)
        self.check(v, v.resident('pagefile.sys', b''))
        v = Volume(16 * MIB)
        self.check(v, v.file('pagefile.sys', []))

    def test_size_of_0_in_front_of_allocated_clusters(self):
        v = Volume(16 * MIB)
        f = v.file('pagefile.sys', [(1000, 4)], size=0)
        self.check(v, f, icat=False)  # libtsk takes the clusters for the size

    def test_sparse(self):
        v = Volume(32 * MIB)
        f = v.file('pagefile.sys', [(None, 100), (1000, 1), (None, 50)])
        self.check(v, f, hole=150, data=1)

    def test_behind_the_initialised_size(self):
        v = Volume(32 * MIB)
        f = v.file('pagefile.sys', [(1000, 10), (2000, 20)], init=50000, size=30 * 4096 - 100)
        self.check(v, f, data=13, skipped=17)

    def test_size_that_ends_within_a_page(self):
        v = Volume(16 * MIB)
        self.check(v, v.file('pagefile.sys', [(1000, 3)], size=2 * 4096 + 1), data=3)

    def test_pages_of_several_small_clusters(self):
        v = Volume(16 * MIB, cluster=512)
        # Page 0: data and a hole. Page 1: a hole. Page 2: data.
        f = v.file('pagefile.sys', [(5000, 4), (None, 12), (6000, 8)])
        self.check(v, f, data=2, hole=1)

    def packed(self, volume, runs, init=None):
        """A file in units of 16 clusters, none of which shrank when it was compressed."""
        f = volume.begin('packed')
        f.runs, f.size = runs, sum(n for _, n in runs) * volume.cluster
        f.init = f.size if init is None else init
        volume.add(f.number, Attribute(DATA, None, f.runs, '', f.size, f.init, COMPRESSED,
                                       unit=4)).allocated = f.size
        return f

    def test_compressed_units_stored_plain_and_sparse(self):
        v = Volume(16 * MIB)
        self.check(v, self.packed(v, [(1000, 16), (None, 16), (2000, 16)]), data=32, hole=16)

    def test_compressed_unit_that_begins_where_the_initialised_size_ends(self):
        v = Volume(16 * MIB)
        f = self.packed(v, [(1000, 16), (1100, 16), (2000, 16)], init=32 * 4096)
        # icat 4.12.1 shows what lies on the disk there, and Windows zeros.
        self.check(v, f, icat=version_of('icat') == '4.11.1', data=32, skipped=16)


class Names(Case):
    def volume(self):
        v = Volume(16 * MIB)
        for name in ('Ähre.sys', 'PageFile.SYS', 'twin', 'TWIN', 'three', 'Three', '\U0001f600',
                     'con', 'plain'):
            v.resident(name, name.encode())
        f = v.begin('streams')
        v.add(f.number, Attribute(DATA, b'unnamed'))
        v.add(f.number, Attribute(DATA, b'first', name='One'))
        v.add(f.number, Attribute(DATA, b'second', name='two'))
        v.resident('only', b'there', stream='here')
        return v

    def test_names(self):
        self.volume().write(self.image)
        for asked, want in {
                'pagefile.sys': 'PageFile.SYS', 'PAGEFILE.SYS': 'PageFile.SYS',
                'ähre.SYS': 'Ähre.sys', 'twin': 'twin', 'TWIN': 'TWIN', 'Three': 'Three',
                '\U0001f600': '\U0001f600', 'con': 'con', '/plain': 'plain', '\\plain': 'plain',
                'plain::$DATA': 'plain', 'streams': 'unnamed', 'streams:One': 'first',
                'streams:one': 'first', 'STREAMS:TWO:$data': 'second', 'only:here': 'there'}.items():
            with self.subTest(asked=asked):
                r = self.cat(asked)
                self.assertEqual((r.code, r.out.decode()), (OK, want), r.err)

    def test_names_that_are_not_there(self):
        self.volume().write(self.image)
        for asked, code, part in (
                ('nothing', INPUT, 'there is no "nothing"'),
                ('streams:three', INPUT, 'no stream named "three"'),
                ('only', INPUT, 'has no content'),
                ('Twin', INPUT, 'differ in case'),
                ('plain/below', INPUT, 'plain/below'),
                ('a/../plain', USAGE, '".."'),
                ('C:\\pagefile.sys', USAGE, 'drive letter'),
                ('\\\\.\\PhysicalDrive0', USAGE, 'device'),
                ('', USAGE, 'names no file')):
            with self.subTest(asked=asked):
                self.refused(self.cat(asked), code, part)

    def test_folder_of_many_blocks(self):
        v = Volume(16 * MIB)
        for i in range(500):
            v.resident(f'file number {i} with quite a long name', str(i).encode())
        v.write(self.image)
        for i in (0, 250, 499):
            r = self.cat(f'FILE number {i} with quite a long name')
            self.assertEqual((r.code, r.out), (OK, str(i).encode()), r.err)
        self.refused(self.cat('FILE number'), INPUT, 'there is no "FILE number"\n')

    def test_the_mft_itself(self):
        v = Volume(16 * MIB, mft_runs=[(4, 4), (100, 4), (50, 30)])
        v.write(self.image)
        r = self.cat('$MFT')
        self.assertEqual(r.code, OK, r.err)
        self.assertEqual(len(r.out), 38 * 4096)
        self.assertEqual(r.out[:4], b'FILE')
        other = self.icat(0)
        if other is not None:
            self.assertTrue(r.out == other)


class Damage(Case):
    """What can be read is kept and the rest is marked; or one line says why nothing can."""

    def test_extension_record_that_is_missing(self):
        v = Volume(16 * MIB)
        f = v.file('pagefile.sys', [(1000 + 2 * i, 1) for i in range(30)], per_record=10, drop=[1])
        v.write(self.image)
        r = self.cat('pagefile.sys')
        want = bytearray(f.content())
        want[10 * 4096:20 * 4096] = bytes(10 * 4096)
        self.assertEqual(r.code, GAPS)
        self.assertTrue(r.out == want)
        self.assertEqual((r.pages['data'], r.pages['unreadable']), (20, 10))
        self.assertEqual(r.bad[0][:2], ('40960', '40960'))
        self.assertIn('lost=1', self.tool('info', '-', 'pagefile.sys', self.image).out.decode())

    def test_extension_record_that_is_torn(self):
        v = Volume(16 * MIB)
        f = v.file('pagefile.sys', [(1000 + 2 * i, 1) for i in range(30)], per_record=10)
        v.spoil.append(f.number + 3)
        v.write(self.image)
        r = self.cat('pagefile.sys')
        self.assertEqual((r.code, r.pages['data'], r.pages['unreadable']), (GAPS, 20, 10))

    def test_extension_record_of_another_file(self):
        v = Volume(16 * MIB)
        f = v.file('pagefile.sys', [(1000 + 2 * i, 1) for i in range(30)], per_record=10)
        sequence, flags, _, attributes = v.records[f.number + 2]
        v.records[f.number + 2] = (sequence, flags, 999 | 1 << 48, attributes)
        v.write(self.image)
        r = self.cat('pagefile.sys')
        self.assertEqual((r.code, r.pages['data'], r.pages['unreadable']), (GAPS, 20, 10), r.err)

    def test_extension_record_that_was_used_anew(self):
        v = Volume(16 * MIB)
        f = v.file('pagefile.sys', [(1000 + 2 * i, 1) for i in range(30)], per_record=10)
        _, flags, base, attributes = v.records[f.number + 2]
        v.records[f.number + 2] = (2, flags, base, attributes)
        v.write(self.image)
        r = self.cat('pagefile.sys')
        self.assertEqual((r.code, r.pages['data'], r.pages['unreadable']), (GAPS, 20, 10))

    def test_runs_behind_the_end_of_the_volume(self):
        v = Volume(16 * MIB)
        v.file('pagefile.sys', [(1000, 10), (4090, 100), (1 << 40, 5), (2000, 1)])
        v.write(self.image)
        r = self.cat('pagefile.sys')
        self.assertEqual((r.code, r.pages['data'], r.pages['unreadable']), (GAPS, 17, 99), r.err)

    def test_run_into_the_next_volume(self):
        a, b = Volume(16 * MIB), Volume(16 * MIB)
        f = a.file('pagefile.sys', [(1000, 1), (4096 + 600, 1)])
        offsets = gpt_disk(self.image, [a, b])
        r = self.cat('pagefile.sys', offsets[0] // 512)
        self.assertEqual(r.code, GAPS)
        self.assertEqual(r.out, f.content()[:4096] + bytes(4096))

    def test_truncated_image(self):
        v = Volume(16 * MIB)
        v.top = 900  # all that the volume itself needs lies before the cut
        f = v.file('pagefile.sys', [(1000, 2000)])
        v.write(self.image)
        os.truncate(self.image, 1500 * 4096 + 700)
        r = self.cat('pagefile.sys')
        self.assertEqual((r.code, r.pages['data'], r.pages['unreadable']), (GAPS, 500, 1500))
        self.assertTrue(r.out[:500 * 4096] == f.content()[:500 * 4096])

    def test_runs_that_overlap_in_the_file(self):
        v = Volume(16 * MIB)
        f = v.file('pagefile.sys', [(1000 + 2 * i, 1) for i in range(30)], per_record=10)
        for a in v.records[f.number + 2][3]:
            a.first = 5
        v.write(self.image)
        r = self.cat('pagefile.sys')
        self.assertEqual(r.code, GAPS)
        self.assertLessEqual(r.pages['data'], 25)

    def test_attribute_list_that_names_its_own_record_for_ever(self):
        v = Volume(16 * MIB)
        f = v.file('pagefile.sys', [(1000, 3)])
        v.attribute_list(f, [(DATA, i, f.number, 3, '') for i in range(5000)])
        v.write(self.image)
        r = self.cat('pagefile.sys')
        self.assertIn(r.code, (OK, GAPS))
        self.assertEqual(len(r.out), 3 * 4096)

    def test_attribute_list_that_lists_itself(self):
        v = Volume(16 * MIB)
        f = v.file('pagefile.sys', [(1000, 3)])
        v.attribute_list(f, [(LIST, 0, f.number, 4, ''), (LIST, 0, f.number + 1, 4, '')])
        v.write(self.image)
        self.assertTrue(self.cat('pagefile.sys').out == f.content())

    def test_base_record_that_is_torn(self):
        v = Volume(16 * MIB)
        f = v.file('pagefile.sys', [(1000, 3)])
        v.spoil.append(f.number)
        v.write(self.image)
        self.refused(self.cat('pagefile.sys'), VERIFY, f'MFT record {f.number}', 'torn')

    def test_torn_mft(self):
        v = Volume(16 * MIB)
        v.file('pagefile.sys', [(1000, 3)])
        v.spoil.append(0)
        v.write(self.image)
        self.refused(self.cat('pagefile.sys'), INPUT, 'no NTFS volume that can be read')

    def found_with_note(self, path, f, *parts):
        """It is read whole, and how it was found is told."""
        r = self.cat(path)
        self.assertEqual(r.code, OK, r.err)
        self.assertTrue(r.out == f.content())
        told = self.tool('volumes', self.image).out.decode() + \
            self.tool('info', '-', path, self.image).out.decode()
        self.assertIn('note=', told)
        for part in parts:
            self.assertIn(part, told)

    def test_torn_mft_with_a_mirror(self):
        for spoil, magic, note in (([MFT], b'FILE', 'copy in $MFTMirr'), ([], b'ABCD', '$MFTMirr')):
            v = Volume(16 * MIB, mirror=2000, mft_runs=[(4, 10), (100, 30)])
            f = v.file('pagefile.sys', [(1000, 3)])
            v.spoil += spoil
            v.patches.append((4 * 4096, magic))
            v.write(self.image)
            self.found_with_note('pagefile.sys', f, note)
            self.assertEqual(self.cat('$MFT').code, OK)

    def test_mft_record_that_is_called_bad(self):
        v = Volume(16 * MIB)
        f = v.file('pagefile.sys', [(1000, 3)])
        v.patches.append((v.mft_lcn() * 4096, b'BAAD'))
        v.write(self.image)
        self.found_with_note('pagefile.sys', f, 'marked as bad')
        other = self.icat(0)
        if other is not None:
            self.assertTrue(self.cat('$MFT').out == other)

    def test_system_files_that_are_torn_cost_nothing_else(self):
        for number in (VOLUME, BITMAP, SECURE, UPCASE):
            with self.subTest(number=number):
                v = Volume(16 * MIB, secure=b'descriptors')
                f = v.file('pagefile.sys', [(1000, 3)])
                v.spoil.append(number)
                v.write(self.image)
                self.assertTrue(self.cat('pagefile.sys').out == f.content())

    def test_first_run_of_the_mft_that_is_shorter_than_its_first_records(self):
        for clusters in (1, 2):
            v = Volume(16 * MIB, mft_runs=[(4, clusters), (100, 40)])
            f = v.file('pagefile.sys', [(1000, 3)])
            self.check(v, f)
            self.assertEqual(self.cat('$MFT').out, self.icat(0) or self.cat('$MFT').out)

    def test_folder_whose_record_is_torn(self):
        v = Volume(16 * MIB)
        f = v.file('pagefile.sys', [(1000, 3)])
        v.spoil.append(ROOT)
        v.write(self.image)
        self.found_with_note('PageFile.SYS', f, 'the index of its folder is damaged', 'is torn',
                             'found by its MFT record')
        other = self.icat(0)
        if other is not None:
            self.assertTrue(self.cat('$MFT').out == other)
        self.refused(self.cat('nothing'), VERIFY, 'index of its folder is damaged', 'cannot be read')

    def damage_root(self, v, at, data):
        """Over the first block of the root's index, which the last of its patches wrote."""
        where = [off for off, d in v.patches if d[:4] == b'INDX']
        with open(self.image, 'r+b') as image:
            image.seek(where[-1] + at)
            image.write(data)

    def test_folder_whose_index_is_damaged(self):
        """Torn, emptied, an entry of no length, an entry that reaches out of its block."""
        for at, data in ((510, b'??'), (0, bytes(4096)), (64 + 8, b'\0\0'), (64 + 8, b'\xf0\xff')):
            with self.subTest(at=at, data=data[:4]):
                v = Volume(16 * MIB)
                for i in range(20):
                    v.resident(f'file {i}', b'x')
                f = v.file('pagefile.sys', [(1000, 3)])
                v.write(self.image)
                self.damage_root(v, at, data)
                self.found_with_note('pagefile.sys', f, 'found by its MFT record')
                self.refused(self.cat('nothing'), INPUT, 'there is no "nothing"',
                             'no MFT record has that name')

    def reuse(self, v, f):
        """The record of `f` is another file's since; the index has the old entry."""
        entry = f.number | v.records[f.number][0] << 48
        v.records[f.number] = (v.records[f.number][0] + 1, *v.records[f.number][1:])
        reference = v.reference
        v.reference = lambda number: entry if number == f.number else reference(number)

    def test_index_entry_of_a_record_that_is_another_files_now(self):
        for content in ([(1000, 3)], None):
            with self.subTest(content=content):
                v = Volume(16 * MIB)
                f = v.file('pagefile.sys', content) if content else v.resident('pagefile.sys', b'resident')
                # The other file has a name of its own, and its content must not come by the old one.
                self.reuse(v, f)
                attribute = next(a for a in v.records[f.number][3] if a.kind == FILE_NAME)
                attribute.value = v.file_name(f.number, 'somebody else')
                v.write(self.image)
                self.refused(self.cat('pagefile.sys'), INPUT, 'expects sequence number 1, but the record has 2')
                self.refused(self.cat('PAGEFILE.SYS'), INPUT, 'there is no "PAGEFILE.SYS"')

    def test_folder_whose_record_is_another_folders_now(self):
        v = Volume(16 * MIB)
        v.nested('Windows/System32/config/SYSTEM', b'a hive, perhaps')
        windows = next(n for n, name in v.entries if name == 'Windows')
        v.records[windows] = (2, *v.records[windows][1:])
        reference = v.reference
        v.reference = lambda number: windows | 1 << 48 if number == windows else reference(number)
        for a in v.records[windows][3]:
            if a.kind == FILE_NAME:
                a.value = v.file_name(windows, 'Windows.old')
        v.write(self.image)
        self.refused(self.cat('Windows/System32/config/SYSTEM'), INPUT, 'expects sequence number 1')

    def test_stale_entry_of_a_file_that_is_elsewhere_now(self):
        """What its own record says is found all the same."""
        v = Volume(16 * MIB)
        f = v.file('pagefile.sys', [(1000, 3)])
        other = v.resident('other', b'x')
        reference = v.reference
        v.reference = lambda number: other.number | 7 << 48 if number == f.number else reference(number)
        v.write(self.image)
        self.found_with_note('pagefile.sys', f, 'expects sequence number 7', 'found by its MFT record')

    def test_index_that_lacks_its_bitmap_or_its_blocks(self):
        for kind in (INDEX_ALLOCATION, INDEX_BITMAP):
            v = Volume(16 * MIB)
            f = v.file('pagefile.sys', [(1000, 3)])
            v.system_files_done = lambda: v.records[ROOT][3].__delitem__(
                [a.kind for a in v.records[ROOT][3]].index(kind))
            v.write(self.image)
            self.assertTrue(self.cat('pagefile.sys').out == f.content())
            self.refused(self.cat('nothing'), INPUT, 'no MFT record has that name')

    def test_folder_in_between_whose_record_is_torn(self):
        v = Volume(16 * MIB)
        f = v.nested('Windows/System32/config/SYSTEM', b'a hive, perhaps')
        v.spoil.append(f.number + 2) # System32
        v.write(self.image)
        self.found_with_note('Windows/System32/config/SYSTEM', f, '"config" was found by its MFT')

    def test_names_of_other_folders_and_of_deleted_files_are_not_taken(self):
        v = Volume(16 * MIB)
        v.nested('folder/pagefile.sys', b'not this one')
        deleted = v.file('pagefile.sys', [(1000, 3)])
        v.records[deleted.number] = (2, 0, *v.records[deleted.number][2:])
        v.write(self.image)
        self.damage_root(v, 0, bytes(4096))
        self.refused(self.cat('pagefile.sys'), INPUT, 'no MFT record has that name')

    def test_records_that_cannot_be_read_may_have_any_name(self):
        v = Volume(16 * MIB)
        other = v.resident('other', b'x')
        v.spoil.append(other.number)
        v.write(self.image)
        self.refused(self.cat('pagefile.sys'), INPUT, 'there is no "pagefile.sys"')
        self.damage_root(v, 0, bytes(4096))
        self.refused(self.cat('pagefile.sys'), VERIFY, 'its folder is damaged', '1 of the MFT records that may have it cannot be read')

    def test_mft_that_claims_more_than_there_can_be(self):
        """The search through its records ends: neither what is nowhere nor what comes again is read."""
        def larger(a):
            a.size = a.init = a.allocated = 1 << 55

        def again(a):
            a.runs = a.runs + [(3000, 1000)] * 100    # which are empty
            a.size = a.init = a.allocated = sum(n for _, n in a.runs) * 4096

        for change in (larger, again):
            with self.subTest(change=change.__name__):
                v = Volume(16 * MIB)
                f = v.file('pagefile.sys', [(1000, 3)])
                v.system_files_done = lambda: change([a for a in v.records[MFT][3]
                                                      if a.kind == DATA][0])
                v.write(self.image)
                self.damage_root(v, 0, bytes(4096))
                self.found_with_note('pagefile.sys', f, 'found by its MFT record')
                self.refused(self.cat('nothing'), VERIFY, 'its folder is damaged', 'cannot be read')

    def test_corrupt_boot_sector(self):
        for at, value in ((11, b'\x03\x00'), (13, b'\x03'), (48, b'\xff' * 8), (64, b'\x00'),
                          (40, bytes(8))):
            with self.subTest(at=at):
                v = Volume(16 * MIB)
                v.patches.append((at, value))
                v.write(self.image)
                self.refused(self.cat('pagefile.sys'), INPUT, 'boot sector')

    def test_other_file_systems_and_noise(self):
        marks = {'ReFS': (3, b'ReFS\0\0\0\0'), 'FAT': (82, b'FAT32   '), 'exFAT': (3, b'EXFAT   '),
                 'LUKS': (0, b'LUKS\xba\xbe'), 'BitLocker': (3, b'-FVE-FS-'),
                 'ext2': (1080, b'\x53\xef'), 'swap': (4086, b'SWAPSPACE2'), 'hibernated': (4086, b'S1SUSPEND')}
        for kind, (at, mark) in marks.items():
            with self.subTest(kind=kind):
                data = bytearray(words(1, 0, MIB // 8))
                data[at:at + len(mark)] = mark
                with open(self.image, 'wb') as f:
                    f.write(data)
                self.refused(self.cat('pagefile.sys'), INPUT, kind)
        for noise in (words(7, 0, MIB // 8), bytes(MIB), b'x', b''):
            with self.subTest(noise=noise[:4]):
                with open(self.image, 'wb') as f:
                    f.write(noise)
                self.refused(self.cat('pagefile.sys'), INPUT)

    def test_mbr_whose_extended_partition_leads_to_itself(self):
        with open(self.image, 'wb') as f:
            f.truncate(4 * MIB)
            for at in (0, 2048 * 512):
                f.seek(at + 446)
                f.write(struct.pack('<B3sB3sII', 0, b'\0' * 3, 5, b'\0' * 3, 2048 if not at else 0,
                                    4096))
                f.seek(at + 510)
                f.write(b'\x55\xaa')
        self.refused(self.cat('pagefile.sys'), INPUT)


class Disks(Case):
    def volumes(self):
        made = []
        for i, cluster in enumerate((512, 4096, 65536)):
            v = Volume(8 * MIB, cluster=cluster, label=f'volume {i}')
            start = max(16, 2 * MIB // cluster)
            v.page = v.file('pagefile.sys', [(start + 2 * k, 1) for k in range(8)], per_record=3)
            v.page.seed = i
            made.append(v)
        return made

    def test_several_volumes(self):
        for make, guid in ((gpt_disk, '1'), (mbr_disk, '0')):
            with self.subTest(make=make.__name__):
                volumes = self.volumes()
                offsets = make(self.image, volumes)
                listed = self.tool('volumes', self.image).out.decode().splitlines()
                self.assertEqual(len(listed), 3)
                for i, (v, offset) in enumerate(zip(volumes, offsets)):
                    self.assertIn(f'offset={offset} ', listed[i])
                    self.assertIn('readable=1', listed[i])
                    self.assertIn(f'guid={guid}', listed[i])
                    self.assertIn(f'label=volume {i}', listed[i])
                    r = self.cat('pagefile.sys', offset // 512)
                    self.assertTrue(r.out == v.page.content(), r.err)
                    other = self.icat(v.page.number, offset // 512)
                    if other is not None:
                        self.assertTrue(r.out == other)
                self.refused(self.cat('pagefile.sys'), INPUT, '3 NTFS volumes')

    def test_raw_split_and_ewf_are_the_same(self):
        v = self.volumes()[1]
        offset = gpt_disk(self.image, [v])[0] // 512
        want = self.cat('pagefile.sys', offset).out
        self.assertTrue(want == v.page.content())
        with open(self.image, 'rb') as f:
            data = f.read()
        for suffixes in (('001', '002', '003', '004'), ('aa', 'ab', 'ac', 'ad')):
            parts = [os.path.join(self.folder, f'split.{s}') for s in suffixes]
            step = 2 * MIB + 512 * 3
            for i, part in enumerate(parts):
                with open(part, 'wb') as f:
                    f.write(data[i * step:(i + 1) * step if i < 3 else None])
            for images in (parts[:1], parts):
                r = self.cat('pagefile.sys', offset, images)
                self.assertTrue(r.out == want, r.err)
            self.assertTrue(self.cat('pagefile.sys', '-', parts[:1]).out == want)
        if not shutil.which('ewfacquire'):
            self.skipTest('ewfacquire (ewf-tools) is not installed')
        ewf = os.path.join(self.folder, 'image')
        subprocess.run(['ewfacquire', '-u', '-q', '-S', '3145728', '-c', 'none', '-t', ewf,
                        self.image], check=True, capture_output=True)
        self.assertTrue(os.path.exists(ewf + '.E02'))
        r = self.cat('pagefile.sys', '-', [ewf + '.E01'])
        self.assertEqual(r.code, OK, r.err)
        self.assertTrue(r.out == want)

    def ewf(self, volume, *options):
        """An E01 of the volume."""
        if not shutil.which('ewfacquire'):
            self.skipTest('ewfacquire (ewf-tools) is not installed')
        volume.write(self.image)
        ewf = os.path.join(self.folder, 'image')
        subprocess.run(['ewfacquire', '-u', '-q', *options, '-t', ewf, self.image], check=True,
                       capture_output=True)
        return ewf + '.E01'

    def test_ewf_that_is_cut_short(self):
        """Nothing has become zeros, and the E01 is to blame, not the disk."""
        v = Volume(16 * MIB)
        f = v.file('pagefile.sys', [(100, 400), (600, 3000)])
        ewf = self.ewf(v, '-c', 'none')
        size = os.path.getsize(ewf)
        for cut in (size - 50, size - 1000, size // 2, 1000, 100, 20):
            with self.subTest(cut=cut):
                os.truncate(ewf, cut)
                r = self.cat('pagefile.sys', '-', [ewf])
                if cut == size - 50: # the last sections are gone, and no chunk
                    self.assertEqual(r.code, OK, r.err)
                    self.assertTrue(r.out == f.content())
                else:
                    self.refused(r, INPUT, 'E01', 'damaged or cut short')

    def test_ewf_with_a_chunk_that_fails_its_checksum(self):
        v = Volume(16 * MIB)
        f = v.file('pagefile.sys', [(100, 400), (600, 3000)])
        ewf = self.ewf(v, '-c', 'none')
        with open(ewf, 'r+b') as o:
            at = o.read().index(f.content()[1 << 20:][:64])
            o.seek(at)
            o.write(b'?')
        r = self.cat('pagefile.sys', '-', [ewf])
        self.assertEqual(r.code, GAPS, r.err)
        (at, length, error), = [map(int, b) for b in r.bad]
        self.assertEqual((length, error), (32 << 10, 5))
        self.assertTrue(at <= 1 << 20 < at + length)
        want = f.content()
        self.assertTrue(r.out == want[:at] + bytes(length) + want[at + length:])

    def put(self, at, data, image=None):
        with open(image or self.image, 'r+b') as f:
            f.seek(at if at >= 0 else os.path.getsize(image or self.image) + at)
            f.write(data)

    def bytes_at(self, at, length):
        with open(self.image, 'rb') as f:
            f.seek(at if at >= 0 else os.path.getsize(self.image) + at)
            return f.read(length)

    def one(self, sectors, seed, **more):
        """A volume with a page file of its own."""
        v = Volume(sectors * 512, label=f'volume {seed}', **more)
        v.page = v.file('pagefile.sys', [(600, 8)])
        v.page.seed = seed
        return v

    def finds(self, volume, *notes, images=None, offset='-'):
        r = self.cat('pagefile.sys', offset, images)
        self.assertEqual(r.code, OK, r.err)
        self.assertTrue(r.out == volume.page.content(), 'the file is of another volume')
        for note in notes:
            self.assertIn(note, r.err)
        if not notes:
            self.assertNotIn('note:', r.err)

    def old_and_new(self):
        """A GPT disk, and an MBR with one partition elsewhere written over its first sector."""
        old, new = self.one(16384, 1), self.one(16384, 2)
        gpt_disk(self.image, [old, self.one(16384, 3)])
        end = os.path.getsize(self.image) // 512
        with open(self.image, 'r+b') as f:
            f.truncate((end + 40960) * 512)
            f.seek(0)
            first = f.read(34 * 512)
            # The backup is where the disk ends.
            f.seek((end - 33) * 512)
            backup = f.read(33 * 512)
            f.seek(-33 * 512, os.SEEK_END)
            f.write(backup)
            total = os.path.getsize(self.image) // 512
            f.seek(-512, os.SEEK_END)
            h = bytearray(backup[-512:])
            struct.pack_into('<Q', h, 24, total - 1)
            struct.pack_into('<Q', h, 72, total - 33)
            struct.pack_into('<I', h, 16, 0)
            struct.pack_into('<I', h, 16, zlib.crc32(h[:92]))
            f.write(h)
            new.write(f, (end + 2048) * 512)
        entry = struct.pack('<B3sB3sII', 0, b'\0' * 3, 7, b'\0' * 3, end + 2048, 16384)
        return old, new, first, entry

    def test_mbr_with_partitions_beside_a_gpt_of_a_former_use(self):
        old, new, first, entry = self.old_and_new()
        mbr = bytes(446) + entry + bytes(48) + b'\x55\xaa'
        self.put(0, mbr)
        self.finds(new, 'the primary GPT is ignored (2 partitions')
        self.put(512, bytes(33 * 512))
        self.finds(new, 'the backup GPT is ignored (2 partitions')
        # Some tools mark the entry as one to start from; others leave the first one empty.
        self.put(0, bytes(446) + bytes(16) + b'\x80' + entry[1:] + bytes(32) + b'\x55\xaa')
        self.finds(new, 'the backup GPT is ignored')
        self.put(512, first[512:])
        # With 0xEE anywhere, or with no MBR at all, the GPT counts.
        where = 2048
        for sector in (first[:446] + entry + first[446:462] + bytes(32) + b'\x55\xaa', bytes(512),
                       bytes(510) + b'\x55\xaa', b'\xff' * 512):
            self.put(0, sector)
            self.finds(old, offset=where)
            self.assertIn(f'offset={where * 512} ', self.tool('volumes', self.image).out.decode())

    def test_mbr_with_an_entry_that_makes_no_sense_beside_a_gpt_of_a_former_use(self):
        """The MBR counts all the same, and what of it can be read."""
        old, new, first, entry = self.old_and_new()
        wild = struct.pack('<B3sB3sII', 0, bytes(3), 7, bytes(3), 0xfffffff0, 0xffffffff)
        for backup in (False, True):
            if backup:
                self.put(512, bytes(33 * 512))
            self.put(0, bytes(446) + wild + entry + bytes(32) + b'\x55\xaa')
            self.finds(new, 'the MBR has entries that make no sense', 'GPT is ignored')
            self.put(0, bytes(446) + wild + bytes(48) + b'\x55\xaa')
            r = self.cat('pagefile.sys')
            self.assertEqual((r.code, r.out), (INPUT, b''), r.err)
            self.assertIn('no NTFS volume', r.err)

    def test_mbr_with_an_odd_boot_indicator_beside_a_gpt_of_a_former_use(self):
        """Firmware does not use it (UEFI 2.10, 5.2.1): what counts is where the partitions are."""
        old, new, first, entry = self.old_and_new()
        total = os.path.getsize(self.image) // 512
        where = struct.unpack('<I', entry[8:12])[0]
        for backup in (False, True):
            if backup:
                self.put(512, bytes(33 * 512))
            for flag in (b'\x41', b'\x01', b'\xff'):
                with self.subTest(backup=backup, flag=flag):
                    self.put(0, bytes(446) + flag + entry[1:] + bytes(48) + b'\x55\xaa')
                    self.finds(new, 'boot indicators that make no sense', 'GPT is ignored')
                    # In an entry that is not used.
                    self.put(0, bytes(446) + entry + flag + bytes(47) + b'\x55\xaa')
                    self.finds(new, 'boot indicators that make no sense', 'GPT is ignored')
            # Text, or code: partitions that are not on the disk, or one in another.
            for at, size in ((total, 8), (where + 8, 8), (where - 8, 16), (1, 0xffffffff)):
                with self.subTest(backup=backup, at=at, size=size):
                    wild = struct.pack('<B3sB3sII', 0x41, bytes(3), 7, bytes(3), at, size)
                    self.put(0, bytes(446) + entry + wild + bytes(32) + b'\x55\xaa')
                    self.finds(old, offset=2048)

    def test_tables_that_name_other_partitions_are_told(self):
        v = self.one(16384, 4)
        gpt_disk(self.image, [v])
        for where, notes in ((30000, ('the MBR has 1 partitions that the GPT does not have',)), (2048, ())):
            self.put(462, struct.pack('<B3sB3sII', 0, bytes(3), 7, bytes(3), where, 16384))
            self.finds(v, *notes)
        # Two that are sound, one of them from before.
        gpt_disk(self.image, [v, self.one(16384, 5)])
        entries = self.bytes_at(1024, 128) + bytes(128 * 127)
        header = bytearray(self.bytes_at(512, 92))
        header[88:92] = struct.pack('<I', zlib.crc32(entries))
        header[16:20] = bytes(4)
        header[16:20] = struct.pack('<I', zlib.crc32(header))
        self.put(512, bytes(header))
        self.put(1024, entries)
        self.finds(v, 'the backup GPT at the end of the disk, which is sound, names other partitions')

    def test_gpt_that_is_damaged(self):
        v = self.one(16384, 1)
        offset = gpt_disk(self.image, [v])[0]
        primary = self.bytes_at(512, 33 * 512)
        self.finds(v)
        for at, data in ((512 + 16, b'\0'), (1024 + 33, b'\1'), (512, bytes(512)), (512 + 84, b'\xff')):
            with self.subTest(at=at):
                self.put(at, data)
                self.finds(v, 'its backup at the end of the disk was used')
                self.assertIn('guid=1', self.tool('volumes', self.image).out.decode())
                self.put(512, primary)
        # Neither is as it should be.
        self.put(512 + 60, b'?')
        self.put(-512, bytes(512))
        self.finds(v, 'the primary GPT has a wrong checksum')
        self.put(512, bytes(512))
        self.refused(self.cat('pagefile.sys'), INPUT, 'no NTFS volume')
        self.assertEqual(offset, 2048 * 512)

    def test_first_chunk_of_a_disk_that_cannot_be_read(self):
        if not shutil.which('ewfacquire'):
            self.skipTest('ewfacquire (ewf-tools) is not installed')
        v = self.one(16384, 1)
        for make in (gpt_disk, mbr_disk):
            make(self.image, [v])
            self.put(5 * 512, b'a mark that is found again')
            ewf = os.path.join(self.folder, make.__name__)
            subprocess.run(['ewfacquire', '-u', '-q', '-c', 'none', '-t', ewf, self.image], check=True,
                           capture_output=True)
            ewf += '.E01'
            with open(ewf, 'r+b') as f:
                f.seek(f.read().index(b'a mark that is found again'))
                f.write(b'?')
            if make is gpt_disk:
                self.finds(v, 'its backup at the end of the disk was used', 'first sector cannot be read',
                           images=[ewf])
            else:
                self.refused(self.cat('pagefile.sys', '-', [ewf]), INPUT, 'cannot be read at the beginning')

    def test_boot_sector_that_is_lost(self):
        v = self.one(16384, 1, mft_runs=[(300, 20)])
        offset = gpt_disk(self.image, [v])[0]
        boot = self.bytes_at(offset, 512)
        self.put(offset + 16383 * 512, boot)
        self.finds(v)
        self.put(offset + 13, b'\x77')
        self.finds(v)
        self.assertIn('note=its boot sector makes no sense; the copy', self.tool('volumes', self.image).out.decode())
        # Something else may have been made there since.
        self.put(offset, bytes(4096))
        r = self.cat('pagefile.sys')
        self.refused(r, INPUT, 'only zeros')
        self.assertIn('possibly a former one', r.err)
        if not shutil.which('ewfacquire'):
            self.skipTest('ewfacquire (ewf-tools) is not installed')
        self.put(offset, boot)
        self.put(offset + 1024, b'a mark that is found again')
        ewf = os.path.join(self.folder, 'ewf')
        subprocess.run(['ewfacquire', '-u', '-q', '-c', 'none', '-t', ewf, self.image], check=True,
                       capture_output=True)
        with open(ewf + '.E01', 'r+b') as f:
            f.seek(f.read().index(b'a mark that is found again'))
            f.write(b'?')
        self.finds(v, images=[ewf + '.E01'])
        listed = self.tool('volumes', ewf + '.E01').out.decode()
        self.assertIn('note=its boot sector cannot be read; the copy', listed)

    def test_files_that_cannot_be_opened(self):
        self.refused(self.cat('x', '-', ['/nonexistent/image']), INPUT, '/nonexistent/image')
        self.refused(self.cat('x', '-', [self.folder]), INPUT, 'is neither a file nor a ')

    def test_real_volume_with_an_attribute_list(self):
        image = os.environ.get('RAMSEAL_TEST_DATA') or os.path.join(
            os.path.dirname(__file__), '..', '..', '..', 'shared', 'data')
        image = os.path.join(image, 'ntfs-attribute-list.E01')
        if not os.path.exists(image):
            self.skipTest('no ntfs-attribute-list.E01')
        import hashlib
        r = self.cat('ones.bin', '-', [image])
        self.assertEqual(hashlib.sha256(r.out).hexdigest(),
                         '396d2ca10e09a4a70bed0dcf580c13d5608e59c433b8592fd3d1f0ccd87244ce')
        other = self.icat(38, images=[image])
        if other is not None:
            self.assertTrue(r.out == other)
        self.assertNotIn('note=', self.tool('info', '-', 'ones.bin', image).out.decode())
        r = self.cat('$Secure:$SDS', '-', [image])
        self.assertEqual(hashlib.sha256(r.out).hexdigest(),
                         'e12749f342f60de738832eeea1fd9d5bd9ca7b8fd1a2583e76862c539beace1c')
        other = self.icat('9-128-8', images=[image])
        if other is not None:
            self.assertTrue(r.out == other)


class Changes(Case):
    """The image changes while the second half of the file has yet to be copied."""

    def changed(self, before, after, volume=lambda: Volume(16 * MIB), **options):
        v = volume()
        v.file('pagefile.sys', before, init=options.get('init_before'))
        v.write(self.image)
        new = os.path.join(self.folder, 'new.raw')
        w = volume()
        f = w.file(options.get('name', 'pagefile.sys'), after, init=options.get('init_after'))
        sequence, flags, base, attributes = w.records[f.number]
        w.records[f.number] = (options.get('sequence', sequence), options.get('flags', flags),
                               base, attributes)
        w.write(new)
        r = self.tool('changed', '-', 'pagefile.sys', self.image, copy(new, self.image))
        self.assertEqual(r.code, OK, r.err)
        flags = dict(re.findall(r'(\w+)=(\d+)', r.err))
        again = [tuple(map(int, a)) for a in re.findall(r'^again (\d+)\+(\d+)$', r.err, re.M)]
        return flags, again

    def test_nothing(self):
        flags, again = self.changed([(1000, 10)], [(1000, 10)])
        self.assertEqual((flags['any'], again), ('0', []))

    def test_grown(self):
        flags, again = self.changed([(1000, 10)], [(1000, 10), (2000, 5)])
        self.assertEqual((flags['size'], flags['moved'], flags['first'], flags['now']),
                         ('1', '1', '40960', '61440'))
        self.assertEqual(again, [(40960, 20480)])

    def test_shrunk(self):
        flags, again = self.changed([(1000, 10)], [(1000, 4)])
        self.assertEqual((flags['any'], flags['size'], flags['now']), ('1', '1', '16384'))
        self.assertEqual(again, [])

    def test_moved_in_the_middle(self):
        flags, again = self.changed([(1000, 10)], [(1000, 3), (3000, 2), (1005, 5)])
        self.assertEqual((flags['size'], flags['moved']), ('0', '1'))
        self.assertEqual(again, [(12288, 8192)])

    def test_initialised_size_that_grew(self):
        """Its last page had zeros behind the old one."""
        flags, again = self.changed([(1000, 10)], [(1000, 10)], init_before=5 * 4096 + 100, init_after=8 * 4096)
        self.assertEqual((flags['any'], flags['size'], flags['moved']), ('1', '1', '0'))
        self.assertEqual(again, [(5 * 4096, 3 * 4096)])

    def test_resident(self):
        for after, again in ((b'before', []), (b'beyond', [(0, 6)]), (b'b', [(0, 1)])):
            with self.subTest(after=after):
                new = os.path.join(self.folder, 'new.raw')
                for value, path in ((b'before', self.image), (after, new)):
                    v = Volume(16 * MIB)
                    v.resident('pagefile.sys', value)
                    v.write(path)
                r = self.tool('changed', '-', 'pagefile.sys', self.image, copy(new, self.image))
                found = [tuple(map(int, a))
                         for a in re.findall(r'^again (\d+)\+(\d+)$', r.err, re.M)]
                self.assertEqual(found, again, r.err)

    def test_deleted(self):
        flags, _ = self.changed([(1000, 10)], [(1000, 10)], flags=0)
        self.assertEqual((flags['any'], flags['gone']), ('1', '1'))

    def test_record_given_to_another_file(self):
        flags, _ = self.changed([(1000, 10)], [(1000, 10)], name='other', sequence=2)
        self.assertEqual(flags['gone'], '1')


if __name__ == '__main__':
    unittest.main()
