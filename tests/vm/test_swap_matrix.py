#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Swap areas of many kinds, each acquired twice from inside a Debian kernel: while a program of marked
pages is swapped in and out, and when it has been stopped. What `ramseal read` then calls safe must be
the program's own, and of a kind whose slots can be known there must be such pages.

    test_swap_matrix.py KERNEL-FOLDER RAMSEAL PRESSURE SWAPFILE [unittest's arguments]

test_swap.py has a sample of this. One boot serves all.
"""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import areas  # noqa: E402
import marked  # noqa: E402
import vm  # noqa: E402
from acquired import COMPLETE, PAGE  # noqa: E402
from case import arguments, run_tests  # noqa: E402
from marked import AREA, MIB  # noqa: E402

AREA_SIZE = 128 * MIB  # of which a fifth may be no slots
WANTED_PAGES = (96 * MIB) // PAGE
IMAGE_SIZE = 400 * MIB
# The modules of all these file systems want more than other tests have.
RAM_MIB = vm.RAM_MIB + 24

# What is not known of a slot whose place is: when it was written, and whether the entry stood.
OF_TIME = {'slot', 'changed', 'torn', 'path', 'out-of-time'}


class Matrix(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = Path('swap_matrix').resolve()
        disks = Path('swap_matrix.disks').resolve()
        disks.mkdir(exist_ok=True)
        marked.make_disk(disks / 'partition', AREA_SIZE)
        cls.kinds = list(areas.FILESYSTEMS)
        cls.images = [areas.make_image(disks / kind, kind, IMAGE_SIZE) for kind in cls.kinds]
        cls.addClassCleanup(lambda: [path.unlink() for path in cls.images])
        files = {'bin/ramseal': RAMSEAL, 'bin/pressure': PRESSURE, 'bin/swapfile': SWAPFILE}
        cls.guest = vm.Guest(KERNEL, cls.work, files, disk=[disks / 'partition', *cls.images],
                             ram_mib=RAM_MIB, filesystems=['ext4', 'xfs', 'btrfs', 'vfat', 'nls_cp437', 'nls_ascii'])
        cls.guest.__enter__()
        cls.addClassCleanup(cls.guest.__exit__)
        cls.guest.check('modprobe virtio_blk')

    def device(self, kind):
        return f'/dev/vd{chr(ord("b") + self.kinds.index(kind))}'

    def acquire(self, pagefile):
        path = self.work / f'{pagefile}.rsz'
        self.addCleanup(path.unlink, missing_ok=True)
        done = self.guest.run('ramseal acquire --quiet --source kcore --pagetables both --pagefile '
                              f'{pagefile} -o - >/dev/container', container=path, timeout=900)
        self.assertEqual(done.code, COMPLETE, done.err)
        return marked.Acquired(self, path)

    def press(self):
        """Both acquisitions: what `read` says of the program's pages, busy and quiet."""
        program = marked.Program(self.guest, WANTED_PAGES, timeout=900, area=None)
        try:
            busy = marked.read(self, self.acquire('guided'), program)
            self.guest.check(f'kill -STOP {program.pid}; sync; sleep 1')
            before = program.slots(self.guest, self.work / 'pagemap')
            quiet = marked.read(self, self.acquire('after'), program)
            stayed = before.items() & program.slots(self.guest, self.work / 'pagemap').items()
        finally:
            self.guest.check(f'kill -KILL {program.pid}')
        return busy, quiet, dict(stayed)

    def check(self, name, known=True):
        busy, quiet, stayed = self.press()
        areas.check_safe(self, busy)
        safe = areas.check_safe(self, quiet)
        for sequence, page, what in quiet:
            if sequence not in stayed or 'slot' not in page:
                continue
            self.assertEqual((page['file'], page['slot']), stayed[sequence])
            if known:
                self.assertEqual(what, 'right', page)
                self.assertIn(page['verdict'], {'safe'} | OF_TIME, page)
        print(f'note: {name}: busy: {dict(areas.counted(busy))}; quiet: '
              f'{dict(areas.counted(quiet))}; {len(stayed)} in the same slot before and after')
        self.assertEqual(sum(safe.values()) > 0, known)
        return quiet

    def check_file(self, kind, how, piece='', known=True):
        areas.swap_on(self.guest, self.device(kind), kind, how, AREA_SIZE >> 10, piece)
        try:
            return self.check(f'{kind}, {how}, {f"pieces of {piece} KiB" if piece else "whole"}',
                              known)
        finally:
            areas.swap_off(self.guest)

    # --- tests ---

    def test_partition(self):
        self.guest.check(f'mkswap {AREA} && swapon {AREA}')
        try:
            self.check('partition')
        finally:
            self.guest.check(f'swapoff {AREA}')

    def test_zram(self):
        """
        Its slots are compressed in memory; its device gives them, and those are the program's. It has room for
        them behind the files of the guest, which are in tmpfs and go first.
        """
        self.guest.check('modprobe zram && echo 24M >/sys/block/zram0/disksize && mkswap /dev/zram0 && '
                         f'mkswap {AREA} && swapon {AREA} && swapfile on /dev/zram0 20')
        try:
            busy, quiet, _ = self.press()
            areas.check_safe(self, busy)
            areas.check_safe(self, quiet)
            in_zram = [(page, what) for _, page, what in quiet if page.get('file') == 1]
            self.assertGreater(len(in_zram), 0)
            for page, what in in_zram:
                self.assertEqual(what, 'right', page)
                self.assertIn(page['verdict'], {'safe'} | OF_TIME, page)
            self.assertIn('safe', {page['verdict'] for page, _ in in_zram})
        finally:
            self.guest.check(f'swapoff /dev/zram0; swapoff {AREA}; rmmod zram')

    def test_no_fiemap(self):
        """Where nobody says where its slots lie, none is safe, and that is said."""
        quiet = self.check_file('vfat', 'written', known=False)
        doubts = {page['doubt'] for _, page, _ in quiet if page.get('verdict') == 'slot-map'}
        self.assertEqual(len(doubts), 1)
        self.assertIn('FIEMAP', doubts.pop())


def add_file(kind, how, piece=''):
    name = f'test_{kind.replace("-", "_")}_{how}{f"_{piece}" if piece else ""}'

    def test(self):
        self.check_file(kind, how, piece)

    setattr(Matrix, name, test)


# Pieces are of odd numbers of blocks, so that they begin and end within pages where blocks are smaller.
for kind in (('ext4-1k', 'written'), ('ext4-1k', 'allocated'), ('ext4-1k', 'written', 37),
             ('ext4-1k', 'allocated', 13), ('ext4-2k', 'allocated'), ('ext4-2k', 'written', 38),
             ('ext4-4k', 'written'), ('ext4-4k', 'allocated'), ('ext4-4k', 'written', 36),
             ('ext2-1k', 'written'), ('xfs-1k', 'allocated'), ('xfs-1k', 'written', 37),
             ('xfs-4k', 'allocated'), ('xfs-4k', 'written', 36), ('btrfs', 'allocated'),
             ('btrfs', 'written'), ('btrfs', 'allocated', 36)):
    add_file(*kind)


def main():
    global KERNEL, RAMSEAL, PRESSURE, SWAPFILE
    KERNEL, RAMSEAL, PRESSURE, SWAPFILE = arguments(4)
    run_tests(4)


if __name__ == '__main__':
    main()
