#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Acquires a machine's memory through each original WinPmem driver, with our client, and compares.

    test_originals.py KERNEL RAMSEAL ACQUIRE-RANGES WORK DATA [unittest's arguments]

RAMSEAL is the one that is built for that machine (meson.build). Without the drivers in DATA, or in
$RAMSEAL_TEST_DATA, everything is skipped. What each driver answers to what is table.py's.
"""

import json
import os
import struct
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from machine import (FROM_READS, HIDE, JUNK, MODULES, RANGES, STOPPED, Machine,  # noqa: E402
                     Stopped)
from originals import IOSPACE, MODES, ORIGINALS, PHYSICAL, PTE  # noqa: E402

PAGE = 4096
MIB = 1 << 20
SKIPPED = 77

# formats/base/err.h, EXIT_MAP
COMPLETE, GAPS = 0, 3

INVALID_IMAGE_FORMAT, IMAGE_CHECKSUM_MISMATCH = 0xC000007B, 0xC0000221

# In RAM that never changes, one of them alone, some together.
SECURE_PAGES = [0x1F00, 0x2000, 0x2001, 0x2002, 0x2400]

# What serving reads of 1 MiB changes of the machine's own memory: the buffer, and some more.
CHANGED_MAX = 500

# 2.0.1 loses its list of modules each time that it is asked for information; nobody else anything.
BLOCKS_LOST_BY_OPENING = {'2.0.1': 1}

# How many acquisitions, and how much memory the machine's kernel has for what is lost.
COUNT, SYSTEM_MIB = int(os.environ.get('RAMSEAL_TEST_ACQUISITIONS', '500')), 128
MANY_TIMEOUT = 3600


# The attested 1.6.3 is the same code (table.py looks).
CODES = [original for original in ORIGINALS if original.name != '1.6.3 attested']


def note(text):
    print('note: ' + text)


class Originals(unittest.TestCase):
    def machine(self, original, options='', **kwargs):
        """One with the driver loaded."""
        m = Machine(KERNEL, WORK / 'machine', options, **kwargs)
        m.__enter__()
        self.addCleanup(m.__exit__)
        self.assertEqual(m.load(original.path(DATA)), 0)
        return m

    def ramseal(self, m, *arguments):
        done = m.run([RAMSEAL, *arguments])
        self.assertNotEqual(m.box.state, STOPPED, m.logs())
        return done

    def acquire(self, m, source='winpmem'):
        """(exit code, the container's info as JSON, its memory as a raw image)"""
        path, raw = WORK / 'image.rsz', WORK / 'image.raw'
        done = self.ramseal(m, 'acquire', '--force', '--quiet', '--no-pagefile', '--pagetables',
                            'none', '--order', 'linear', '--source', f'{source}:{m.path()}', '-o',
                            path)
        if done.returncode not in (COMPLETE, GAPS):
            return done.returncode, done.stderr, b''
        self.assertEqual(self.ramseal(m, 'verify', '--quiet', path).returncode, COMPLETE)
        info = json.loads(self.ramseal(m, 'info', '--json', path).stdout)
        # Pages without content come as zeros, so that all lie where they belong.
        exported = self.ramseal(m, 'export', '--force', '--quiet', '--format', 'raw', '--fill',
                                '00', '--hash', 'none', '-o', raw, path)
        self.assertIn(exported.returncode, (COMPLETE, GAPS), exported.stderr)
        return done.returncode, info, raw

    def saved(self, m):
        """
        RAM as QEMU itself reads it by address, with the machine standing still: {first: bytes}.
        """
        m.save_memory(WORK / 'saved')
        banks = {}
        for first, _ in m.ram():
            file = Path(f'{WORK}/saved.{first:x}')
            banks[first] = file.read_bytes()
            file.unlink()
        return banks

    def compare(self, m, before, raw, missing=()):
        """
        The image with what QEMU saved before. RAM that is not the kernel's own never changes, and
        must be the same but for missing pages; of the kernel's own, pages come as they were at
        that moment. Returns how many of those are as before.
        """
        own = range(m.box.system_first, m.box.system_first + m.box.system_bytes, PAGE)
        unchanged = 0
        with open(raw, 'rb') as image:
            for first, bank in before.items():
                first_page = max(first, PAGE) - first  # page 0 is in no map
                for at in range(first_page, len(bank), PAGE):
                    image.seek(first + at)
                    same = image.read(PAGE) == bank[at:at + PAGE]
                    if first + at in own:
                        unchanged += same
                    elif (first + at) // PAGE not in missing:
                        self.assertTrue(same, f'page {(first + at) // PAGE:x} is another')
        return unchanged

    # --- memory ---

    def test_memory_is_that_of_the_machine(self):
        """In the mode that the client chooses by itself."""
        for original in ORIGINALS:
            with self.subTest(original.name):
                m = self.machine(original)
                before = self.saved(m)
                code, info, raw = self.acquire(m)
                self.assertEqual(code, COMPLETE, info)
                self.assertEqual(info['source']['facts']['mode'], MODES[PTE])
                self.assertEqual(info['source']['facts']['requests'], original.family)
                self.assertEqual(info['unreadable'], [])
                own = self.compare(m, before, raw)
                pages = sum(size for _, size in m.ram()) // PAGE
                of = m.box.system_bytes // PAGE
                note(f'{original.name}: {pages - of} pages are right, and {own} of {of} that the '
                     'machine itself uses are as they were')
                self.assertGreater(own, of - CHANGED_MAX)
                self.assertEqual(m.counters()['complaints'], 0, m.logs())
                self.assertEqual(m.unload(), 0)
                self.assertEqual(m.counters()['image_pages'], 0)
                self.doCleanups()

    def test_secure_memory_is_missing_and_nothing_else(self):
        for original in CODES:
            with self.subTest(original.name):
                m = self.machine(original, 'vbs')
                before = self.saved(m)
                for pfn in SECURE_PAGES:
                    self.assertEqual(m.request(HIDE, FROM_READS, pfn, 1, 1).status, 0)
                code, info, raw = self.acquire(m)
                self.assertEqual(code, GAPS, info)
                missing = [pfn for r in info['unreadable']
                           for pfn in range(r['first'] // PAGE, (r['last'] + 1) // PAGE)]
                self.assertEqual(missing, SECURE_PAGES)
                self.assertEqual({r['error'] for r in info['unreadable']}, {1117})
                self.compare(m, before, raw, SECURE_PAGES)
                self.doCleanups()

    def test_other_modes_by_name(self):
        for original in CODES:
            for mode in (PHYSICAL, IOSPACE):
                with self.subTest(f'{original.name}, {MODES[mode]}'):
                    m = self.machine(original)
                    before = self.saved(m)
                    code, info, raw = self.acquire(m, 'winpmem-' + MODES[mode].lower())
                    # PHYSICAL is not believed to tell what it could not read.
                    self.assertEqual(code, GAPS if mode == PHYSICAL else COMPLETE, info)
                    self.assertEqual(info['source']['facts']['mode'], MODES[mode])
                    self.compare(m, before, raw)
                    self.doCleanups()

    def acquire_with_ranges(self, original, count):
        """
        Where the driver tells too few or none, the registry's map is read; all of it is there.
        """
        m = self.machine(original, ram_mib=104)
        before = self.saved(m)
        first, _ = m.ram()[-1]
        ranges = b''.join(struct.pack('<QQ', first + i * 2 * PAGE, PAGE) for i in range(count))
        self.assertEqual(m.request(RANGES, m.put(MIB, ranges), count).status, 0)
        code, info, raw = self.acquire(m)
        self.assertEqual(code, COMPLETE, info)
        self.assertEqual([x['origin'] for x in info['maps']],
                         ['registry', 'driver'] if original.family == 'buffered'
                         else ['registry'])
        self.compare(m, before, raw)

    def test_more_ranges_than_the_driver_tells(self):
        for original in CODES:
            for count in (100, 8000):
                with self.subTest(f'{original.name}, {count} ranges'):
                    self.acquire_with_ranges(original, count)
                    self.doCleanups()

    def test_five_levels(self):
        """A driver that does not stop Windows when it is loaded is read by PHYSICAL."""
        for original in CODES:
            with self.subTest(original.name):
                if original.name != '4.1 test':
                    with self.assertRaises(Stopped) as stop:
                        self.machine(original, 'la57')
                    self.assertEqual(stop.exception.args[0].code, 0x7E)
                    continue
                m = self.machine(original, 'la57')
                before = self.saved(m)
                code, info, raw = self.acquire(m)
                self.assertEqual(code, GAPS, info)
                self.assertEqual(info['source']['facts']['mode'], MODES[PHYSICAL])
                self.assertEqual(info['source']['facts']['page_table_levels'], '5')
                self.compare(m, before, raw)
                self.doCleanups()

    # --- many ---

    def acquisitions(self, original):
        """
        Of random ranges, each from opening the device to closing it, with secure memory among
        them, in one run of the machine: nothing is left but what is known to be lost.
        """
        m = self.machine(original, f'vbs system={SYSTEM_MIB}', low_mib=SYSTEM_MIB + 16,
                         ram_mib=SYSTEM_MIB + 32)
        m.set(MODULES, 10)
        secure = {pfn + (SYSTEM_MIB - 24) * MIB // PAGE for pfn in SECURE_PAGES}
        for pfn in secure:
            m.request(HIDE, FROM_READS, pfn, 1, 1)
        before = m.counters()
        done = m.run([ACQUIRE_RANGES, m.path(), COUNT, 20201008], timeout=MANY_TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr + m.logs())
        after = m.counters()
        (_, compared), *missing = [[int(n) for n in line.split()]
                                   for line in done.stdout.splitlines()]
        self.assertGreater(compared, 10 * COUNT)
        self.assertLessEqual({pfn for pfn, in missing}, secure)
        for name in ('pages_locked', 'system_ptes', 'views', 'handles', 'devices', 'links',
                     'complaints'):
            self.assertEqual(after[name], before[name], name)
        self.assertEqual(after['pool_blocks'] - before['pool_blocks'],
                         COUNT * BLOCKS_LOST_BY_OPENING.get(original.name, 0))
        self.assertEqual(m.unload(), 0)
        note(f'{original.name}: {COUNT} acquisitions, {compared} pages compared, '
             f'{after["pool_bytes"] - before["pool_bytes"]} bytes of pool lost')

    def test_acquisitions(self):
        for original in CODES:
            with self.subTest(original.name):
                self.acquisitions(original)
                self.doCleanups()

    # --- this machine itself ---

    def test_files_that_are_no_driver(self):
        original = ORIGINALS[2]
        whole = original.path(DATA).read_bytes()
        m = self.machine(original)
        self.assertEqual(m.unload(), 0)
        cases = {
            'empty': (b'', INVALID_IMAGE_FORMAT),
            'cut short': (whole[:0x2000], INVALID_IMAGE_FORMAT),
            'of another machine': (whole.replace(b'PE\0\0\x64\x86', b'PE\0\0\x4c\x01', 1),
                                   INVALID_IMAGE_FORMAT),
            'changed': (whole[:0x1000] + b'\xCC' + whole[0x1001:], IMAGE_CHECKSUM_MISMATCH),
        }
        file = WORK / 'no-driver.sys'
        for name, (data, status) in cases.items():
            with self.subTest(name):
                file.write_bytes(data)
                # Cut short in a section, a file fails by its sum first, and by its headers later.
                self.assertIn(m.load(file), (status, IMAGE_CHECKSUM_MISMATCH), name)
        self.assertEqual(m.counters()['image_pages'], 0)
        self.assertEqual(m.load(original.path(DATA)), 0)

    def test_a_changed_file_is_not_taken_for_the_original(self):
        folder = WORK / 'changed/winpmem'
        folder.mkdir(parents=True, exist_ok=True)
        original = ORIGINALS[2]
        data = bytearray(original.path(DATA).read_bytes())
        data[-1] ^= 1
        (folder / original.file).write_bytes(data)
        with self.assertRaises(ValueError):
            original.path(folder.parent)

    def test_pool_is_not_zeroed(self):
        """And an uninitialised field is what the driver finds there."""
        original = ORIGINALS[2]
        m = Machine(KERNEL, WORK / 'machine', 'la57')
        with m:
            m.set(JUNK, 0)
            with self.assertRaises(Stopped) as stop:
                m.load(original.path(DATA))
            b = stop.exception.args[0]
            self.assertEqual((b.code, b.parameter[0], b.parameter[2]), (0x7E, 0xC0000005, 0))
            self.assertEqual(b.trace[0] - b.image, 0x14BC)


def main():
    global KERNEL, RAMSEAL, ACQUIRE_RANGES, WORK, DATA
    KERNEL, RAMSEAL, ACQUIRE_RANGES, WORK, DATA = (Path(x).resolve() for x in sys.argv[1:6])
    DATA = Path(os.environ.get('RAMSEAL_TEST_DATA') or DATA)
    if not all(original.path(DATA) for original in ORIGINALS):
        print(f'{DATA}/winpmem: no original drivers: skipped')
        sys.exit(SKIPPED)
    WORK.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=[sys.argv[0], '--verbose', *sys.argv[6:]])


if __name__ == '__main__':
    main()
