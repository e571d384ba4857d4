#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Acquires the RAM of a running Debian kernel from inside, and compares the image with what the VM
itself says its memory holds.

    test_live.py KERNEL-FOLDER RAMSEAL HOLDER WITHOUT KDUMP-READ DATA-FOLDER [unittest's arguments]

One boot serves every test. A line that begins with "note: " is a measurement; build/test shows it.
"""

import json
import signal
import struct
import subprocess
import sys
import unittest
from collections import namedtuple
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import acquired  # noqa: E402
import processes  # noqa: E402
import vm  # noqa: E402
from acquired import (COMPLETE, GAPS, INTERRUPTED, NO_SOURCE, OUTPUT, PAGE,  # noqa: E402
                      SOURCE_FAILED, pages)
from case import (HELD_MAGIC, HELD_PAGES, GuestCase, arguments, held_page,  # noqa: E402
                  originals, run_tests)


# Page tables are read page by page, and each page of a module's device costs a switch to the reader process. One test
# does it; the others would only repeat it.
NO_TABLES = '--pagetables none'

# `path` of a container, the `log` of its acquisition, the processes `before` and `behind`, and the memory `after`.
Acquisition = namedtuple('Acquisition', 'path log before behind after')


class Live(GuestCase, processes.Checks):
    of_kcore = None

    @classmethod
    def setUpClass(cls):
        module = {}
        if vm.headers(KERNEL):
            module['lib/fakemem.ko'] = vm.build_module(KERNEL, vm.HERE / 'guest/fakemem.c', 'fakemem')
        cls.originals = originals(KERNEL, 'originals', DATA, 'pmem')
        cls.start(KERNEL, 'live', {
            'bin/ramseal': RAMSEAL,
            'bin/holder': HOLDER,
            'bin/without': WITHOUT,
            **module,
            **cls.originals,
        })
        # Its memory is its second thread's: the first, which the list of processes has, is over.
        cls.hold('first-ends')

    # --- helpers ---

    def kcore(self):
        """One acquisition with the default options, shared by the tests that only look at the result."""
        if not self.of_kcore:
            before = self.processes_of_the_guest()
            path = self.acquire('--log-json --source kcore', COMPLETE)
            log = [json.loads(line) for line in self.said.splitlines()]
            behind = self.processes_of_the_guest()
            type(self).of_kcore = Acquisition(path, log, before, behind, self.save_memory('after'))
        return self.of_kcore

    def pages_to_fail(self):
        """The first and the last page, a pair and a single one, of those that no test must see."""
        free = sorted(set(pages(self.ram)) - self.text - self.held)
        pair = next(i for i in range(len(free) // 2, len(free)) if free[i + 1] == free[i] + 1)
        return {free[0], free[pair], free[pair + 1], free[pair + 100], free[-1]}

    # --- tests ---

    def test_01_the_maps_agree(self):
        """What /proc/iomem calls RAM is what the firmware gave, less the page 0 of the BIOS."""
        firmware = set(pages(self.guest.firmware_map()))
        self.assertEqual(set(pages(self.ram)), firmware - {0})
        self.assertGreaterEqual(self.ram[-1][0], 1 << 32, 'no RAM above 4 GiB')
        self.assertEqual(len(self.held), HELD_PAGES)

    def test_02_kcore_is_the_vms_own_memory(self):
        path, *_, after = self.kcore()
        image = self.opened(path)
        self.assertEqual(set(pages(image.ranges)), set(pages(self.ram)))
        self.check_constant_memory(image)

        # The holder's pages are found by content alone. A page that the kernel moved while it was
        # being pinned may still stand where it was first, too, in memory that is free now.
        found = {}
        for pfn in pages(image.ranges):
            page = image.memory.page(pfn)
            if page.startswith(HELD_MAGIC):
                sequence, = struct.unpack_from('<Q', page, 8)
                self.assertEqual(page, held_page(sequence, self.held_at + sequence * PAGE))
                found.setdefault(sequence, set()).add(pfn)
        self.assertEqual(sorted(found), list(range(HELD_PAGES)))
        for sequence, at in found.items():
            self.assertEqual(len(at & self.held), 1, f'page {sequence}: {at}')

        everything = list(pages(image.ranges))
        same = self.check_mostly_same(image, after, everything)
        print(f'note: {same} of {len(everything)} pages ({100 * same / len(everything):.2f} %) '
              f'are what the VM held when kcore was through')

    def test_02_kcore_is_read_by_several_at_once(self):
        """The kernel has a buffer for each descriptor: who shared one would get another's pages."""
        image = self.image(f'--source auto --order linear {NO_TABLES} --threads 8')
        after = self.save_memory('several')
        self.check_constant_memory(image)
        self.check_mostly_same(image, after, list(pages(image.ranges)))

    def check_device_with_bad_pages(self, name, options=''):
        bad = self.pages_to_fail()
        self.device(name, 'bad=' + ','.join(map(str, bad)))
        image = self.image(f'--source {name} {options}', GAPS)
        self.assertEqual(image.unreadable, bad)
        self.assertEqual(set(pages(image.ranges)), set(pages(self.ram)))
        self.check_constant_memory(image)

    def test_03_linpmem_with_bad_pages(self):
        self.check_device_with_bad_pages('linpmem')

    def test_04_crash_with_bad_pages(self):
        self.check_device_with_bad_pages('crash', NO_TABLES)

    def test_05_pmem_is_silent(self):
        """rekall's driver turns what it cannot read into zeros: the container must say so."""
        self.device('pmem', 'bounce=1', 'bad=' + ','.join(map(str, self.pages_to_fail())))
        image = self.image(f'--source pmem {NO_TABLES}', GAPS)
        self.assertTrue(image.info['source']['silent'])
        # Its two bugs that can be told from zeros: it refuses the first page of every bank
        # (is_page_valid(): start < address), and ends one byte before the end of RAM.
        lost = {first // PAGE for first, _ in self.ram} | {self.ram[-1][1] // PAGE}
        self.assertEqual(image.unreadable, lost)
        self.check_constant_memory(image, but=lost)

    def test_06_strict_devmem(self):
        """Debian's refuses RAM with an error, and with zeros below 1 MiB: neither is memory."""
        image = self.image('--source devmem', SOURCE_FAILED)
        self.assertIn('no page of memory could be read', self.said)
        self.assertNotIn("machine's memory", self.said)  # a pipe does not
        self.assertEqual(set(pages(image.ranges)), set(pages(self.ram)))
        self.assertEqual(image.unreadable, set(pages(self.ram)))

    def test_07_auto_touches_nothing_that_it_does_not_need(self):
        """And it tells of a process that /proc does not show."""
        self.device('crash')
        show = self.hide(self.held_by)
        try:
            path = self.acquire('--log-json --source auto', COMPLETE)
        finally:
            show()
        image = self.opened(path)
        self.assertEqual({part['source'] for part in image.info['parts']}, {'kcore'})
        self.check_constant_memory(image)
        self.assertEqual(self.counter('opened'), 0)
        self.check_hidden(path, [json.loads(line) for line in self.said.splitlines()], self.held_by, 'holder')

    def test_07_auto_goes_on_with_the_next_source(self):
        """No /proc/kcore in a container: the module then, and /dev/mem for what that cannot give."""
        bad = self.pages_to_fail()
        self.device('crash', 'bad=' + ','.join(map(str, bad)))
        self.mask_kcore()
        image = self.image(f'--source auto {NO_TABLES}', GAPS)
        self.assertEqual({part['source'] for part in image.info['parts']}, {'crash'})
        self.assertEqual(image.unreadable, bad)
        self.check_constant_memory(image)

    def test_08_source_dies_midway(self):
        self.device('linpmem', 'die_after=20000')
        # Page tables would be read first, with reads of the same device.
        path = self.acquire(f'--source linpmem {NO_TABLES}', SOURCE_FAILED)
        after = self.save_memory('after')
        image = self.opened(path)
        # In order of address, and nothing that was read is lost.
        read = sorted(set(pages(self.ram)) - image.skipped)
        self.assertEqual(len(read), 20000)
        self.check_mostly_same(image, after, read)

    def test_09_auto_survives_a_source_that_dies(self):
        self.device('crash', 'die_after=20000')
        self.mask_kcore()
        image = self.image(f'--source auto {NO_TABLES}', GAPS)
        # What is left is asked of /dev/mem, which refuses it.
        self.assertEqual(len(set(pages(self.ram)) - image.unreadable), 20000)

    def refused(self, command, *words):
        done = self.guest.run(command)
        self.assertEqual(done.code, NO_SOURCE, done.err)
        self.check_one_line(done.err)
        for word in words:
            self.assertIn(word, done.err)
        return done.err

    def test_10_without_rights(self):
        """What is missing comes first: everything else follows from it."""
        for source in 'kcore', 'devmem', 'auto':
            said = self.refused(f'su -s /bin/sh nobody -c '
                                f'"ramseal acquire --source {source} -o /tmp/nobody.rsz"',
                                'not root')
        self.assertTrue(said.startswith('ramseal: acquire: not root'), said)
        said = self.refused('unshare -U -r ramseal acquire -o /tmp/nobody.rsz')
        self.assertTrue(said.startswith('ramseal: acquire: root in a user namespace'), said)
        said = self.refused('without 17 ramseal acquire -o /tmp/nobody.rsz')
        self.assertTrue(said.startswith('ramseal: acquire: root without CAP_SYS_RAWIO'), said)
        self.mask_kcore()
        self.refused('ramseal acquire --source kcore -o /tmp/nobody.rsz', 'masked')
        self.assertEqual(self.guest.check('ls /tmp'), self.guest.check('ls /tmp | grep -v rsz'))

    def test_11_no_such_source(self):
        done = self.guest.run('ramseal acquire --source linpmem -o /tmp/none.rsz')
        self.assertEqual(done.code, NO_SOURCE, done.err)
        self.check_one_line(done.err)

    def test_12_sigterm_seals(self):
        path = self.work / 'sigterm.rsz'
        # The pipe is full while its reader sends the signal: however fast the guest is, the run is
        # not over by then.
        done = self.guest.run(
            'mkfifo /tmp/pipe; ramseal acquire --quiet --source kcore -o - >/tmp/pipe & '
            '{ dd bs=4096 count=256 iflag=fullblock status=none; '
            f'kill -{signal.SIGTERM.value} $!; cat; }} </tmp/pipe >/dev/container; wait $!',
            container=path)
        self.guest.check('rm /tmp/pipe')
        self.assertEqual(done.code, INTERRUPTED, done.err)
        image = self.opened(path)
        self.assertEqual(set(pages(image.ranges)), set(pages(self.ram)))
        skipped = len(image.skipped)
        self.assertTrue(100 < skipped < len(list(pages(self.ram))) - 100, skipped)

    def test_12_stop_seals_a_detached_one(self):
        path = self.work / 'stopped.rsz'
        self.guest.check('mkdir -p /run && mount -t tmpfs -o mode=755 tmpfs /run')
        self.addCleanup(self.guest.check, 'umount /run')
        # Nobody reads the pipe until it was asked to stop.
        done = self.guest.run(
            'mkfifo /tmp/pipe; { until test -e /tmp/go; do sleep 0.1; done; cat; } </tmp/pipe >/dev/container & '
            'ramseal acquire --detach --source kcore -o /tmp/pipe || exit 99; '
            'ramseal acquire --source kcore -o /tmp/second.rsz 2>/dev/null; echo second $?; '
            'ramseal status; echo status $?; ramseal stop & stop=$!; '
            'until ramseal status | grep -q -e stopping -e ended; do :; done; '
            'touch /tmp/go; wait $stop; echo stop $?; wait; rm /tmp/go /tmp/pipe; test ! -e /tmp/second.rsz',
            container=path)
        self.assertEqual(done.code, COMPLETE, done.err)
        for said in ('"ramseal-detached-1"', 'second 12', 'running: process', 'status 12', 'ended: exit code 8', 'stop 8'):
            self.assertIn(said, done.out)
        image = self.opened(path)
        self.assertEqual(set(pages(image.ranges)), set(pages(self.ram)))
        self.assertGreater(len(image.skipped), 100)

    def test_13_disk_full_in_mid_run(self):
        self.guest.check('mkdir /tmp/small && mount -t tmpfs -o size=4m tmpfs /tmp/small')
        self.addCleanup(self.guest.check, 'umount /tmp/small && rmdir /tmp/small')
        # One try: told before, and tried all the same.
        checked = self.guest.run('ramseal check --source kcore -o /tmp/small/m.rsz')
        self.assertEqual(checked.code, OUTPUT, checked.err)
        self.assertRegex(checked.out, "note: /tmp/small/m.rsz: is in this machine's memory .tmpfs.")
        self.assertRegex(checked.out, r'note: /tmp/small/m.rsz: has room for .* \(estimated from a sample\)')
        done = self.guest.run('ramseal acquire --quiet --source kcore -o /tmp/small/m.rsz')
        self.assertEqual(done.code, OUTPUT, done.err)
        self.assertRegex(done.err, r'warning: /tmp/small/m.rsz: has room for')
        self.assertRegex(done.err, r'acquire: /tmp/small/m.rsz: .*; sealed, but without \d+ of \d+ pages of memory')
        path = self.work / 'full.rsz'
        self.guest.check('cat /tmp/small/m.rsz >/dev/container', container=path)
        image = self.opened(path)
        self.assertEqual(image.info['exit_code'], OUTPUT)
        self.assertGreater(image.info['pages']['data'], 100)
        self.assertGreater(image.info['pages']['skipped'], 100)

    def test_14_file_in_the_guest(self):
        """A container in a file: mode 0600, in place only when sealed, never over another."""
        self.guest.check('head -c 1048576 /dev/urandom >/tmp/small.raw')
        self.addCleanup(self.guest.check, 'rm -f /tmp/small.*')
        command = 'ramseal acquire --quiet --source file:/tmp/small.raw -o /tmp/small.rsz'
        self.guest.check(command)
        self.assertTrue(self.guest.check('ls -l /tmp/small.rsz').startswith('-rw-------'))
        self.guest.check('ramseal export --format raw -o /tmp/small.back /tmp/small.rsz && '
                         'cmp /tmp/small.raw /tmp/small.back')
        self.assertEqual(self.guest.run(command).code, OUTPUT)

        # A device is written as it is.
        path = self.work / 'device.rsz'
        self.guest.check(command.replace('/tmp/small.rsz', '/dev/container'), container=path)
        self.opened(path)

    # --- somebody else's reader ---

    def kernel_symbols(self, *names):
        """Where the running kernel has them, by its own account."""
        lines = self.guest.check(f'grep -E " ({"|".join(names)})$" /proc/kallsyms').splitlines()
        found = {name: int(address, 16) for address, _, name in map(str.split, lines)}
        self.assertEqual(set(found), set(names))
        self.assertNotIn(0, found.values(), 'kptr_restrict hides them')
        return found

    def kdump(self, dump, address, size):
        """`size` bytes at a virtual address of the kernel, as libkdumpfile reads them."""
        requests = [f'virt:{at:#x}' for at in range(address, address + size, 64)]
        done = subprocess.run([KDUMP_READ, dump, *requests], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=900)
        self.assertEqual(done.returncode, 0, done.stderr)
        return b''.join(bytes.fromhex(line.split()[1]) for line in done.stdout.splitlines())

    def check_dump(self, path):
        """The ELF export is a dump: its page tables lead from the kernel's symbols to their bytes."""
        at = self.kernel_symbols('_stext', 'linux_banner', 'init_task', 'saved_command_line')
        dump = path.with_suffix('.elf')
        dump.unlink(missing_ok=True)
        done = acquired.ramseal('export', '--quiet', '--format', 'elf', '-o', dump, path)
        self.assertEqual(done.returncode, COMPLETE, done.stderr)
        self.addCleanup(dump.unlink)

        # /proc/version prints the banner again from its parts (fs/proc/version.c).
        banner = self.guest.check('cat /proc/version').encode() + b'\0'
        self.assertTrue(self.kdump(dump, at['linux_banner'], len(banner)).startswith(banner))

        # A pointer in the kernel's image, to what the allocator gave: two regions of its page tables.
        pointer, = struct.unpack('<Q', self.kdump(dump, at['saved_command_line'], 64)[:8])
        line = self.guest.check('cat /proc/cmdline').rstrip('\n').encode() + b'\0'
        self.assertTrue(self.kdump(dump, pointer, len(line)).startswith(line))

        # task_struct.comm of the idle task (include/linux/sched.h, INIT_TASK_COMM).
        self.assertIn(b'swapper/0\0', self.kdump(dump, at['init_task'], 4096))

        text = self.guest.iomem('Kernel code')[0][0]
        self.assertEqual(self.kdump(dump, at['_stext'], PAGE), self.truth.page(text // PAGE))

    def test_15_kernel_symbols_through_libkdumpfile(self):
        self.check_dump(self.kcore().path)

    def test_15_image_of_the_stopped_machine(self):
        """Its source tells nothing: the kernel, its name and what makes a dump of it are found in memory."""
        lime, _ = self.quiet_memory()
        path = lime.path.with_suffix('.rsz')
        info = json.loads(acquired.ramseal('info', '--json', path).stdout)
        self.assertEqual(info['system']['kernel_release'], self.guest.check('uname -r').strip())
        self.assertEqual(info['system']['host_name'], self.guest.check('uname -n').strip())
        self.assertNotIn('host', info)
        self.check_dump(path)

    # --- page tables ---

    def translate(self, tables, levels, table, address):
        """The PFN behind a 4 KiB page, by the hardware's rules and nothing of ours."""
        for level in range(levels, 0, -1):
            tables.seek(table + (address >> (3 + 9 * level) & 511) * 8)
            entry, = struct.unpack('<Q', tables.read(8))
            self.assertTrue(entry & 1, f'level {level} of {address:#x}')
            table = entry & 0x000ffffffffff000
        return table // PAGE

    def test_16_page_tables_twice(self):
        """All processes, and their page tables: those of the holder lead to the pages it holds."""
        path, _, before, *_ = self.kcore()
        manifest = self.extracted(path, 'manifest').read_text()
        passes = {line['when']: line for line in map(json.loads, manifest.splitlines())
                  if line['event'] == 'tables'}
        self.assertEqual(set(passes), {'before', 'after'})
        for when, line in passes.items():
            self.assertEqual((line['os'], line['process_list'], line['cut']),
                             ('linux', 'closed', False))
            spaces = {space['pid']: space for space in line['spaces'] if space['listed']}
            # Who was asked, their shell and ramseal itself come and go.
            self.assertLessEqual(len(set(before) ^ set(spaces)), 8)
            holder, = (space for space in spaces.values() if space['name'] == 'holder')
            with open(self.extracted(path, f'page tables {when}'), 'rb') as tables:
                found = {self.translate(tables, line['levels'], holder['dtb'],
                                        self.held_at + i * PAGE) for i in range(HELD_PAGES)}
            self.assertEqual(found, self.held)
        cost = {when: (line['end_ns'] - line['start_ns']) / 1e6 for when, line in passes.items()}
        print(f'note: {passes["before"]["tables"]} table pages; before {cost["before"]:.0f} ms, '
              f'after {cost["after"]:.0f} ms, of which the search took '
              f'{passes["before"]["search_ns"] / 1e6:.0f} and '
              f'{passes["after"]["search_ns"] / 1e6:.0f} ms')

    def test_17_virtual_memory_of_the_holder(self):
        """What `read` gives of the holder is what it holds, through each copy of the page tables."""
        path = self.kcore().path
        held = b''.join(held_page(i, self.held_at + i * PAGE) for i in range(HELD_PAGES))
        out = path.with_suffix('.held')
        self.addCleanup(out.unlink, missing_ok=True)
        for tables in ('before', 'image', 'after'):
            done = acquired.ramseal('read', '--quiet', '--force', '--pid', self.held_by, '--va',
                                    self.held_at, '--length', len(held), '--tables', tables,
                                    '-o', out, path)
            self.assertEqual(done.returncode, COMPLETE, done.stderr)
            self.assertTrue(out.read_bytes() == held, f'not what the holder has: {tables}')

    # --- processes ---

    def test_17_list_and_scan_agree(self):
        path, log, before, behind, _ = self.kcore()
        self.check_list_and_scan(path, log, before, behind, {self.held_by: 'holder'})

    def test_17_unlinked_process_is_found(self):
        self.check_unlinked(self.held_by, HELD_PAGES)

    # --- modules that are a hazard ---

    def check_hazard(self):
        """/dev/pmem is there, and reading it ends in a BUG of the kernel."""
        before = self.kernel_log('kernel BUG at')
        said = self.guest.check('ramseal check --force')
        self.assertIn('/dev/pmem: is present', said)
        said = self.guest.check('ramseal check --force --source pmem')
        self.assertIn('check does not read it', said)
        self.assertEqual(self.kernel_log('kernel BUG at'), before)

        path = self.acquire(f'--source pmem {NO_TABLES}', SOURCE_FAILED)
        self.assertEqual(self.kernel_log('kernel BUG at'), before + 1)
        self.check_one_line(self.said)
        self.assertIn('killed by signal 11', self.said)
        image = self.opened(path)
        self.assertTrue(set(pages(self.ram)) > image.skipped > set())

        # Where the BUG would be the end of the machine, it is not risked.
        self.guest.check('sysctl -w kernel.panic_on_oops=1')
        self.addCleanup(self.guest.check, 'sysctl -w kernel.panic_on_oops=0')
        self.refused('ramseal acquire --source pmem -o /tmp/none.rsz', 'panic_on_oops')

    def test_18_hazard_kills_nobody_but_its_reader(self):
        self.device('pmem')
        self.check_constant_memory(self.image(f'--source auto {NO_TABLES}'))
        self.assertEqual(self.counter('opened'), 0)
        self.check_hazard()

    def test_19_hazard_of_the_original(self):
        self.insert(self.original('pmem'), 'pmem')
        self.check_hazard()


def main():
    global KERNEL, RAMSEAL, HOLDER, WITHOUT, KDUMP_READ, DATA
    KERNEL, RAMSEAL, HOLDER, WITHOUT, KDUMP_READ, DATA = arguments(6)
    run_tests(6)


if __name__ == '__main__':
    main()
