#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Acquires RAM and a swap partition in use into one container, from inside a Debian kernel with too
little RAM, and compares the swap area with the disk as the VM has it.

    test_swap.py KERNEL-FOLDER RAMSEAL PRESSURE SWAPFILE [unittest's arguments, such as Swap.test_1_quiet]

Each class is a machine and one boot: Pressure is for every run of the tests, Swap is in the suite `long`. A line that begins with "note: " is a measurement; build/test shows it.
"""

import csv
import json
import statistics
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import acquired  # noqa: E402
import areas  # noqa: E402
import marked  # noqa: E402
import processes  # noqa: E402
import vm  # noqa: E402
from acquired import COMPLETE, PAGE, pages  # noqa: E402
from case import arguments, run_tests  # noqa: E402
from marked import AREA, AREA_AT, MIB, Area  # noqa: E402

AREA_SIZE = 80 * MIB
# The kernel and the initramfs leave some 45 of the guest's 128 MiB, and ramseal needs 20 of these.
WANTED_PAGES = (64 * MIB) // PAGE

# In pieces that begin and end within pages of the device.
FILE_KIB, FILE_PIECE = 32 * 1024, 37
FILE_USED = 16 * MIB

ASLEEP_PAGES = (8 * MIB) // PAGE

# The program is at work when so many more pages were written to the swap area.
AT_WORK_PAGES = 256

TRUSTS = ('safe', 'at-risk', 'wrong')
# Once each: an acquisition under pressure takes a minute. build/experiment repeats them.
SLOT_TIMES = ('after', 'guided', 'concurrent')
# Order, and options: with four threads, two read what a group of tables names.
SMEAR_ORDERS = ('linear', ''), ('guided', ''), ('guided', '--threads 4')


class Acquired(marked.Acquired):
    def __init__(self, test, path):
        super().__init__(test, path)
        lines = self.stream(test, 'manifest').read_text().splitlines()
        self.manifest = [json.loads(line) for line in lines]


class Machine(unittest.TestCase):
    """A guest with a swap partition, and the program that wants more than there is."""
    NAME = None

    @classmethod
    def setUpClass(cls):
        if not cls.NAME:
            raise unittest.SkipTest('helpers')
        cls.work = Path(cls.NAME).resolve()
        cls.disk = Path(f'{cls.NAME}.disk').resolve()
        marked.make_disk(cls.disk, AREA_SIZE)
        files = {'bin/ramseal': RAMSEAL, 'bin/pressure': PRESSURE, 'bin/swapfile': SWAPFILE,
                 'bin/pagemaps': vm.HERE / 'guest/pagemaps'}
        with_blocks_of_1k = areas.make_image(cls.disk.with_suffix('.ext4'), 'ext4-1k', 96 * MIB)
        cls.guest = vm.Guest(KERNEL, cls.work, files, disk=[cls.disk, with_blocks_of_1k], filesystems=['ext4'])
        cls.guest.__enter__()
        cls.addClassCleanup(cls.guest.__exit__)
        cls.marked = marked.Program(cls.guest, WANTED_PAGES)
        cls.program = cls.marked.pid
        cls.program_at = cls.marked.at

    # --- helpers ---

    def quiet(self):
        """Stops the program, and lets what it has begun come to its end."""
        self.guest.check(f'kill -STOP {self.program}; sync; sleep 1')

    def swapped_out(self):
        """Pages that the kernel has ever written to a swap area."""
        return int(self.guest.check("sed -n 's/^pswpout //p' /proc/vmstat"))

    def disk_now(self):
        """The swap area as it is on the VM's disk at this moment."""
        path = self.work / 'disk'
        with self.guest.stopped():
            subprocess.run(['cp', '--sparse=always', self.disk, path], check=True)
        return Area(path, AREA_AT)

    def slots_of_the_program(self):
        return self.marked.slots(self.guest, self.work / 'pagemap')

    def acquire(self, options='', pagefile='concurrent'):
        path = self.work / f'{self.id().split(".")[-1]}.rsz'
        done = self.guest.run(self.command(options, pagefile), container=path)
        self.assertEqual(done.code, COMPLETE, done.err)
        return path

    @staticmethod
    def command(options, pagefile):
        return f'ramseal acquire --quiet --source kcore --pagefile {pagefile} {options} -o - >/dev/container'

    def acquire_under_pressure(self, options, pagefile):
        """While the program is being swapped. It is stopped afterwards: looking at the container takes a while."""
        path = self.work / f'{self.id().split(".")[-1]}.rsz'
        written = 'sed -n "s/^pswpout //p" /proc/vmstat'
        done = self.guest.run(f'before=$({written}); kill -CONT {self.program}; '
                              f'until [ $({written}) -gt $((before + {AT_WORK_PAGES})) ]; do sleep 0.1; done; '
                              f'{self.command(options, pagefile)}; code=$?; '
                              f'kill -STOP {self.program}; exit $code', container=path)
        self.assertEqual(done.code, COMPLETE, done.err)
        return Acquired(self, path)

    def check_streams(self, image):
        """Memory and swap area were read at the same time, and the manifest says what is what."""
        memory, swap = image.streams['memory'], image.streams[AREA]
        self.assertEqual(swap['kind'], 'page file')
        self.assertLess(max(memory['start_ns'], swap['start_ns']),
                        min(memory['end_ns'], swap['end_ns']))
        line, = (line for line in image.manifest if line['event'] == 'file')
        self.assertEqual((line['path'], line['number'], line['named_by']),
                         (AREA, 0, '/proc/swaps'))
        self.assertEqual(line['copied']['bytes'], AREA_SIZE)
        self.assertEqual(image.swap.slots, AREA_SIZE // PAGE)
        return line['number']

    def check_size(self, foretold, size):
        """The swap area counts, and the bound holds; the estimate is one, and printed."""
        self.assertEqual((foretold['pagefiles'], foretold['pagefile_bytes']), (1, AREA_SIZE))
        self.assertLess(size, foretold['output_at_most'])
        print(f'note: check estimated {foretold["output_estimate"] >> 10} KiB from a sample of '
              f'{foretold["output_sample_bytes"] >> 10} KiB; the container has {size >> 10} KiB')
        self.assertLess(size, 2 * foretold['output_estimate'])
        self.assertGreater(size, foretold['output_estimate'] / 2)

    def check_area(self, image, before, after):
        """
        Every slot that is the same on the disk before and after is the same in the container.
        Returns how many are not, which says nothing of the container.
        """
        changed = 0
        for slot in range(before.slots):
            if before[slot] != after[slot]:
                changed += 1
            else:
                self.assertEqual(image.swap[slot], before[slot], f'slot {slot}')
        return changed

    def marked_in_swap(self, image):
        """[sequence number] of the program's pages, by content."""
        found = (self.marked.sequence(image.swap[slot]) for slot in range(image.swap.slots))
        return [sequence for sequence in found if sequence is not None]

    def marked_in_memory(self, image):
        """
        {sequence number} of the program's pages. What the kernel has taken back from it and begun
        to use for something else is not whole, and not a page of it.
        """
        found = {self.marked.sequence(image.memory.page(pfn)) for pfn in pages(image.ranges)}
        return found - {None}

    def check_quiet(self):
        self.quiet()
        slots = self.slots_of_the_program()
        foretold = json.loads(self.guest.check('ramseal check --json --source kcore -o -'))
        before = self.disk_now()
        path = self.acquire()
        after = self.disk_now()
        image = Acquired(self, path)
        number = self.check_streams(image)
        self.check_size(foretold, path.stat().st_size)

        changed = self.check_area(image, before, after)
        differ = sum(image.swap[slot] != after[slot] for slot in range(after.slots))

        # The page table entries lead to the pages: the right area, the right slot.
        self.assertGreater(len(slots), 1000)
        kept = 0
        for sequence, (area, slot) in slots.items():
            self.assertEqual(area, number)
            if before[slot] == after[slot]:
                self.assertEqual(self.marked.sequence(image.swap[slot]), sequence)
                kept += 1
        self.assertGreater(kept, len(slots) * 9 // 10)

        in_swap = self.marked_in_swap(image)
        in_memory = self.marked_in_memory(image)
        both = in_memory | set(in_swap)
        print(f'note: quiet: {differ} of {after.slots} slots are not what the disk has afterwards '
              f'({changed} changed meanwhile); {len(in_swap)} marked pages found in the swap area '
              f'by content, {kept} of {len(slots)} by their page table entries')
        print(f"note: of the program's {WANTED_PAGES} pages memory has {len(in_memory)}, "
              f'the swap area {len(set(in_swap))}, the container {len(both)}')
        self.assertGreater(WANTED_PAGES - len(in_memory), 5000, 'memory alone would do')
        # Only a page that was on its way to the disk meanwhile can be in neither.
        self.assertGreaterEqual(len(both), WANTED_PAGES - changed)

    def judged(self, image):
        """{(copy, trust): [pages, pages whose content is another's]} of the program's pages."""
        found = {}
        for (copy, _, trust, verdict), n in marked.judge(self, image, self.marked).items():
            of = found.setdefault((copy, trust), [0, 0])
            of[0] += n
            of[1] += n if verdict != 'right' else 0
        return found

    def median_window(self, image):
        """Of the image's mappings of the program that name a frame, in ns."""
        done = acquired.ramseal('smear', '--mappings', self.program, image.path)
        rows = csv.DictReader(done.stdout.splitlines())
        found = [int(row['window_ns']) for row in rows
                 if row['copy'] == 'image' and row['frame'] and row['window_ns']]
        return statistics.median(found)

    def smear(self, image):
        done = acquired.ramseal('smear', '--json', image.path)
        self.assertEqual(done.returncode, COMPLETE, done.stderr)
        return json.loads(done.stdout)['total']['copies']['image']

    def check_safe_is_right(self, image):
        """judged(), and that no page of those that are called safe is another's."""
        found = self.judged(image)
        for copy in ('before', 'image', 'after'):
            self.assertEqual(found.get((copy, 'safe'), [0, 0])[1], 0, f'{copy}: {found}')
        return found

    def check_zram_is_named(self):
        """And zswap. An area on zram is one like others."""
        self.quiet()
        if self.guest.run('modprobe zram').code:
            self.skipTest('the kernel has no zram')
        self.addCleanup(self.guest.check, 'echo N >/sys/module/zswap/parameters/enabled; '
                        'swapoff /dev/zram0; rmmod zram')
        self.guest.check('echo 4M >/sys/block/zram0/disksize && mkswap /dev/zram0 && '
                         'swapon /dev/zram0 && echo Y >/sys/module/zswap/parameters/enabled')
        found = json.loads(self.guest.check('ramseal pagefiles --json'))
        self.assertIn('zswap', found['note'])
        self.assertEqual([(f['path'], f['number']) for f in found['pagefiles']],
                         [(AREA, 0), ('/dev/zram0', 1)])
        self.assertEqual((found['pagefiles'][1]['kind'], found['pagefiles'][1]['readable']), ('swap on zram', True))

    def swap_to_a_file(self, kib, used):
        """Also, and first; in pieces. Once so much of it is used returns what `pagefiles` says of it."""
        areas.swap_on(self.guest, '/dev/vdb', 'ext4-1k', 'written', kib, FILE_PIECE)
        self.guest.check(f'kill -CONT {self.program}')
        marked.wait_for(lambda: areas.in_swaps(self.guest, areas.FILE)[1] >= used, 'pages in the swap file')
        self.quiet()
        found = {f['path']: f for f in json.loads(
            self.guest.check('ramseal pagefiles --json'))['pagefiles']}[areas.FILE]
        size, _ = areas.in_swaps(self.guest, areas.FILE)
        self.assertEqual(found['slots'], size // PAGE + 1)
        self.assertEqual(found['device'], '/dev/vdb')
        self.assertGreater(found['fragments'], kib // FILE_PIECE)
        return found

    def check_the_file(self, image, found, kib):
        """The stream of the swap file, and that no page is called safe that is another's. Returns its line."""
        self.assertEqual(image.streams[areas.FILE]['kind'], 'page file')
        line, = (line for line in image.manifest if line['event'] == 'file' and line['number'] == 1)
        self.assertEqual((line['path'], line['slots'], line['slots_held'], line['device']),
                         (areas.FILE, found['slots'], True, '/dev/vdb'))
        self.assertEqual(line['copied']['bytes'], kib << 10)
        rows = marked.read(self, image, self.marked)
        safe = areas.check_safe(self, rows)
        print(f'note: swap file: {line["first"]["fragments"]} pieces, {found["slots"]} slots of '
              f'{kib // 4} pages; {dict(areas.counted(rows))}')
        self.assertGreater(safe[1], 0)


class Pressure(Machine, processes.Checks):
    """What every run has of this."""
    NAME = 'pressure-guest'

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.ram = vm.whole_pages(cls.guest.iomem('System RAM'))

    def test_1_quiet(self):
        self.check_quiet()

    def test_2_walk_is_pagemap(self):
        """When it is at work, and has been stopped: what it reads over and over is in memory."""
        self.guest.check(f'kill -CONT {self.program}')
        marked.wait_for(lambda: WANTED_PAGES - len(self.slots_of_the_program()) > WANTED_PAGES // 10, 'pages in memory')
        self.quiet()
        self.check_walk({1: 'init', int(self.program): 'pressure'})

    def test_3_zram_and_zswap(self):
        self.check_zram_is_named()
        said = self.guest.check('ramseal check --source kcore -o -')
        self.assertIn('zswap is on', said)
        self.assertIn('/dev/zram0: swap on zram', said)

    def test_4_smear_under_pressure(self):
        """
        No page that is called safe may be another's, while at this pressure some at risk are. Read by the page
        tables, and with the slots behind them, pages and slots lie closer to the entries that name them. Some slots
        are those of a swap file, which are not where the file has them. With four threads, two read what a group
        of tables names.
        """
        found_file = self.swap_to_a_file(FILE_KIB // 2, FILE_USED // 2)
        wrong, windows, slots = 0, {}, {}
        for order, pagefile in ('guided', 'guided'), ('linear', 'after'):
            image = self.acquire_under_pressure(f'--pagetables both --order {order} --threads 4', pagefile)
            found = self.check_safe_is_right(image)
            self.assertGreater(found[('before', 'safe')][0], 100, found)
            wrong += sum(found.get((copy, 'at-risk'), [0, 0])[1] for copy in ('before', 'image', 'after'))
            end = image.manifest[-1]
            self.assertEqual(end['order']['name'], order)
            windows[order] = self.median_window(image)
            slots[order] = self.smear(image)['slot_window']['median_ns']
            if pagefile == 'guided':
                self.assertGreater(end['order']['slots']['swap_cache']['absent'], 0)
                self.check_the_file(image, found_file, FILE_KIB // 2)
            print(f'note: smear: {order}: ' + ', '.join(f'{copy} {trust} {n} ({bad} wrong)'
                                                        for (copy, trust), (n, bad) in found.items()))
        print('note: smear: median windows between an entry and its frame, and its slot: ' + '; '.join(
            f'{order} {windows[order] / 1e6:.1f} ms, {slots[order] / 1e6:.1f} ms' for order in windows))
        self.assertGreater(wrong, 0, 'nothing was wrong: this pressure proves nothing')
        self.assertLess(windows['guided'], windows['linear'])
        self.assertLess(slots['guided'], slots['linear'])


class Swap(Machine):
    """Long."""
    NAME = 'swap'

    def test_1_quiet(self):
        self.check_quiet()

    def test_2_busy(self):
        """
        While a program is swapped in and out, the pages of another one, which sleeps, stay in their slots:
        an entry that is the same before and after has led to the same slot all the time, and nothing else
        was written there. At any speed, those are in the container.
        """
        self.quiet()
        asleep = marked.Program(self.guest, ASLEEP_PAGES, area=None)
        self.addCleanup(self.guest.run, f'kill -KILL {asleep.pid}')
        self.guest.check(f'kill -STOP {asleep.pid}; kill -CONT {self.program}')
        work = self.work / 'pagemap'
        marked.wait_for(lambda: len(asleep.slots(self.guest, work)) >= ASLEEP_PAGES // 4,
                        'pages of the other program in slots')
        entries, written = asleep.slots(self.guest, work), self.swapped_out()
        before = self.disk_now()
        path = self.acquire()
        written = self.swapped_out() - written
        stayed = asleep.slots(self.guest, work).items() & entries.items()
        self.quiet()
        after = self.disk_now()
        changed = sum(before[slot] != after[slot] for slot in range(after.slots))

        image = Acquired(self, path)
        self.check_streams(image)
        for sequence, (_, slot) in stayed:
            self.assertEqual(asleep.sequence(image.swap[slot]), sequence, f'slot {slot}')
        self.assertGreater(len(stayed), 0)
        self.assertGreater(written, 0, 'it was not busy')
        print(f'note: busy: {written} pages were written to slots meanwhile, and {changed} of '
              f'{after.slots} slots are not what they were; {len(stayed)} that stayed are right')

    def test_3_smear_under_pressure(self):
        """
        What is called safe must be right: no page among it may be another's. And read by the page
        tables, pages lie closer to the entries that name them.
        """
        risk = [0, 0]
        windows = {}
        for order, threads in SMEAR_ORDERS:
            image = self.acquire_under_pressure(f'--pagetables both --order {order} {threads}', 'concurrent')
            found = self.check_safe_is_right(image)
            for copy in ('before', 'image', 'after'):
                risk = [a + b for a, b in zip(risk, found.get((copy, 'at-risk'), [0, 0]))]
            self.assertGreater(found[('before', 'safe')][0], 100, found)
            end = [line for line in image.manifest if line['event'] == 'end'][0]
            self.assertEqual(end['order']['name'], order)
            windows.setdefault(order, []).append(self.median_window(image))
            print(f'note: smear: {order}: ' + ', '.join(f'{copy} {trust} {n} ({wrong} wrong)'
                                                        for (copy, trust), (n, wrong) in found.items()))
        self.assertGreater(risk[1], 0, 'nothing was wrong: this pressure proves nothing')
        print(f'note: smear: of {risk[0]} mappings at risk in {len(SMEAR_ORDERS)} acquisitions, '
              f'{risk[1]} ({100 * risk[1] / risk[0]:.1f} %) named what was not their own; of the '
              'safe ones, none')
        print('note: smear: median window between an entry and its frame: ' + '; '.join(
            f'{order} ' + ', '.join(f'{ns / 1e6:.1f} ms' for ns in of)
            for order, of in windows.items()))
        self.assertLess(max(windows['guided']), min(windows['linear']))

    def test_4_slots_by_the_tables(self):
        """
        Slots that the tables name are read right behind them, by themselves and as well as with the
        rest of the area: what a slot of theirs holds is what the disk has, and what is safe is right.
        """
        self.quiet()
        slots = self.slots_of_the_program()
        before = self.disk_now()
        path = self.acquire('--order guided', 'guided')
        after = self.disk_now()
        image = Acquired(self, path)
        line, = (line for line in image.manifest if line['event'] == 'file')
        self.assertEqual(line['copied']['bytes'], AREA_SIZE)
        self.assertGreater(line['guided_pages'], len(slots) // 2)
        self.assertNotIn('sha256', line)
        self.check_area(image, before, after)
        kept = [sequence for sequence, (_, slot) in slots.items() if before[slot] == after[slot]]
        self.assertGreater(len(kept), len(slots) * 9 // 10)
        for sequence in kept:
            self.assertEqual(self.marked.sequence(image.swap[slots[sequence][1]]), sequence)
        print(f'note: slots: {line["guided_pages"]} of {AREA_SIZE // PAGE} slots were read by the '
              f'tables, {len(kept)} of the program\'s compared')
        # While nothing moves, the swap cache tells of each what it holds: none has to wait a second.
        looks = image.manifest[-1]['order']['slots']['swap_cache']
        self.assertGreater(looks['absent'], 0)
        rows = [page for _, page, _ in marked.read(self, image, self.marked) if 'slot' in page]
        waiting = sum(page['verdict'] == 'slot' for page in rows)
        self.assertGreater(len(rows), 5000)
        self.assertLess(waiting, len(rows) // 10)
        print(f'note: slots: looks at the swap cache: {looks}; {waiting} of {len(rows)} at risk')

    def test_5_slots_under_pressure(self):
        windows = {}
        for time in SLOT_TIMES:
            image = self.acquire_under_pressure('--order guided', time)
            found = self.check_safe_is_right(image)
            total = self.smear(image)
            window = total['slot_window']
            begin, end = image.manifest[0], image.manifest[-1]
            seconds = (end['clocks']['mono_ns'] - begin['clocks']['mono_ns']) / 1e9
            windows.setdefault(time, []).append(window['median_ns'])
            if time == 'guided':
                self.assertGreater(end['order']['slots']['swap_cache']['absent'], 0)
            print(f'note: slots: {time}: {window["pages"]} windows to slots, median '
                  f'{window["median_ns"] / 1e6:.1f} ms, 95 % {window["p95_ns"] / 1e6:.1f} ms; '
                  f'{total["slots"]}, {sum(found.get(("image", t), [0, 0])[1] for t in TRUSTS)} of all '
                  f'mappings wrong; {seconds:.1f} s in all, {end["usage"]["peak_rss"] >> 10} KiB of '
                  f'memory; {end["order"].get("slots", "")}')
        self.assertLess(min(windows['guided']), min(windows['after']))

    def test_6_zram_and_zswap(self):
        """What zram holds is copied from its device; that zswap is on is said."""
        self.check_zram_is_named()
        path = self.work / 'zram.rsz'
        done = self.guest.run('ramseal acquire --source kcore -o - >/dev/container', container=path)
        self.assertEqual(done.code, COMPLETE, done.err)
        self.assertIn('zswap', done.err)
        image = Acquired(self, path)
        self.assertEqual(image.streams['/dev/zram0']['kind'], 'page file')
        self.assertEqual(image.stream(self, '/dev/zram0').read_bytes()[PAGE - 10:PAGE], b'SWAPSPACE2')

    def test_7_swap_file_with_blocks_below_a_page(self):
        """
        Beside the partition a file in pieces, whose slots are not where the file has them: none that
        is safe is wrong, through page tables of two areas. And where it cannot be known, none is safe.
        """
        found = self.swap_to_a_file(FILE_KIB, FILE_USED)
        self.check_the_file(Acquired(self, self.acquire('--pagetables both', 'guided')), found, FILE_KIB)

        # Whatever lies at its path now, it is not what the kernel swaps to.
        self.guest.check(f'dd if=/dev/zero of=/tmp/other bs=1M count=1 && mount --bind /tmp/other '
                         f'{areas.FILE}')
        self.addCleanup(self.guest.check, f'umount {areas.FILE}; rm /tmp/other')
        path = self.acquire('--pagetables both', 'guided')
        image = Acquired(self, path)
        rows = marked.read(self, image, self.marked)
        safe = areas.check_safe(self, rows)
        self.assertEqual(safe[1], 0)
        self.assertIn('header', ' '.join(page.get('doubt', '') for _, page, _ in rows))
        self.assertEqual(image.info['smear']['slot_map_doubts'][0]['file'], areas.FILE)
        self.assertIn('It is not known which part of', image.info['smear']['sentence'])
        smear = json.loads(acquired.ramseal('smear', '--json', path).stdout)
        self.assertEqual(smear['slot_map_doubts'][0]['file'], areas.FILE)
        self.assertIn(f'no slot of {areas.FILE} is called safe',
                      acquired.ramseal('smear', path).stdout)


def main():
    global KERNEL, RAMSEAL, PRESSURE, SWAPFILE
    KERNEL, RAMSEAL, PRESSURE, SWAPFILE = arguments(4)
    run_tests(4)


if __name__ == '__main__':
    main()
