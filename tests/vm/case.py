# SPDX-License-Identifier: Apache-2.0
"""What tests of an acquisition in the guest have in common."""

import json
import os
import struct
import sys
import unittest
from pathlib import Path

import acquired
import vm
from acquired import COMPLETE, GAPS, PAGE, PARTIAL, Image, Memory, pages

# The published sources of other people's drivers, as they are, not part of this repository: the device, the
# folder of its sources, its module.
ORIGINALS = {'linpmem': ('linpmem', 'linpmem'), 'pmem': ('rekall-pmem', 'pmem'),
             'crash': ('crash', 'crash')}

# What guest/holder.c holds for hold().
HELD_PAGES = 512
HELD_MAGIC = b'RSHELD\r\n'

SKIPPED_EXIT = 77  # what meson takes for "skipped"


def held_page(sequence, address):
    """The same page as in guest/holder.c."""
    return HELD_MAGIC + struct.pack('<QQ', sequence, address) + struct.pack('<Q', sequence) * 509


def arguments(count):
    """
    A test's first arguments, as paths: the kernel's folder, ramseal, and what else it takes. Without
    a kernel it ends as skipped.
    """
    paths = [Path(name).resolve() for name in sys.argv[1:1 + count]]
    acquired.PROGRAM = paths[1]
    if not (paths[0] / 'release').exists():
        print(f'{paths[0]} is missing: run build/kernel')
        sys.exit(SKIPPED_EXIT)
    return paths


def run_tests(count):
    """With the arguments behind the first `count`."""
    ran = unittest.main(argv=[sys.argv[0], '--verbose', *sys.argv[1 + count:]], exit=False).result
    if ran.wasSuccessful() and not ran.testsRun:
        sys.exit(SKIPPED_EXIT)  # such as a class whose kernel is missing
    sys.exit(not ran.wasSuccessful())


def original_in_guest(device):
    return f'lib/original-{device}.ko'


def originals(kernel, folder, data, *devices):
    """
    Builds the modules of other people for `devices`, below `folder`: those whose sources are where build/drivers
    puts them, beside the kernel, or in `data` (or RAMSEAL_TEST_DATA). Returns names in the guest to paths here.
    """
    places = kernel.with_name('drivers'), Path(os.environ.get('RAMSEAL_TEST_DATA') or data) / 'linux-drivers'
    built = {}
    for device in devices if vm.headers(kernel) else ():
        inside, module = ORIGINALS[device]
        found = next((place / inside for place in places if (place / inside).is_dir()), None)
        if found:
            built[original_in_guest(device)] = vm.build_original(kernel, found, module, Path(folder) / inside)
    return built


class GuestCase(unittest.TestCase):
    """A test whose class has `guest`, `work` and `ram`; and behind hold(), memory that stays as it is."""

    @classmethod
    def start(cls, kernel, name, files, **kwargs):
        cls.work = Path(name).resolve()
        cls.guest = vm.Guest(kernel, cls.work, files, **kwargs)
        cls.guest.__enter__()
        cls.addClassCleanup(cls.guest.__exit__)
        cls.look()

    @classmethod
    def look(cls):
        """At the memory that the guest says it has."""
        cls.ram = vm.whole_pages(cls.guest.ram())
        cls.text = set(pages(vm.whole_pages(cls.guest.iomem('Kernel code'))))

    @classmethod
    def save_memory(cls, name):
        """What the VM's memory holds at this moment, by the VM's own account."""
        memory = Memory()
        with cls.guest.stopped():
            for number, (first, last) in enumerate(cls.ram):
                path = cls.work / f'{name}{number}'
                cls.guest.save_memory(first, last, path)
                memory.add(first, last, path)
        cls.addClassCleanup(memory.close)
        return memory

    @classmethod
    def hold(cls, how=''):
        """
        Starts a program that holds pages of known content, which the guest has as `bin/holder`, and keeps what
        the VM has then: `truth`, and the PFNs `held`. `how`: see guest/holder.c.
        """
        held = cls.guest.check(f'holder {HELD_PAGES} {how} >/tmp/held & '
                               'while ! [ -s /tmp/held ]; do sleep 0.1; done; cat /tmp/held')
        cls.held_by = int(held.split()[0])
        cls.held_at = int(held.split()[1], 16)
        cls.truth = cls.save_memory('truth')
        cls.held = {pfn for pfn in pages(cls.ram)
                    if cls.truth.page(pfn).startswith(HELD_MAGIC)}

    def check_constant_memory(self, image, but=()):
        """Every page of the kernel's text and of the holder is there, as the VM has it."""
        self.assertGreater(len(self.text), 1000)
        for pfn in (self.text | self.held) - set(but):
            self.assertEqual(image.memory.page(pfn), self.truth.page(pfn), f'PFN {pfn:#x}')

    def check_mostly_same(self, image, truth, pfns, cached=0):
        """
        ramseal changes the pages that it takes itself, an idle machine few others, and a file that is
        written there as many as it has. Returns how many are the same in `truth`.
        """
        same = sum(image.memory.page(pfn) == truth.page(pfn) for pfn in pfns)
        footprint = image.info['usage']['peak_rss'] // PAGE
        self.assertLess(len(pfns) - same, footprint + cached + len(pfns) // 20)
        return same

    def acquire(self, options, expect):
        """Runs `ramseal acquire` as root in the guest; returns where its container is."""
        path = self.work / f'{self.id().split(".")[-1]}.rsz'
        done = self.guest.run(f'ramseal acquire --quiet {options} -o - >/dev/container',
                              container=path)
        self.assertEqual(done.code, expect, done.err)
        self.said = done.err
        return path

    def opened(self, path):
        """The container of that path: whole and sealed, and complete if it says so."""
        image = Image(self, path)
        complete = image.info['exit_code'] in (COMPLETE, GAPS)
        self.assertEqual(image.verified.returncode, COMPLETE if complete else PARTIAL,
                         image.verified.stderr)
        self.assertNotIn('missing_pages', image.info)
        self.assertTrue(image.sealed)
        return image

    def image(self, options, expect=COMPLETE):
        return self.opened(self.acquire(options, expect))

    def extracted(self, container, stream):
        """A stream of a container, padded by address."""
        path = container.with_suffix('.stream')
        # Page tables are written at their addresses, 4 GiB apart: hashing the holes would take seconds.
        done = acquired.ramseal('extract', '--quiet', '--force', '--hash', 'none', '--stream', stream, '-o', path,
                                container)
        self.assertIn(done.returncode, (COMPLETE, GAPS), done.stderr)
        self.addCleanup(path.unlink, missing_ok=True)
        return path

    def manifest(self, container, event):
        """The manifest's last line of that kind."""
        lines = map(json.loads, self.extracted(container, 'manifest').read_text().splitlines())
        return [line for line in lines if line['event'] == event][-1]

    def check_one_line(self, err):
        """One clear line says what went wrong; warnings are no part of it."""
        errors = [line for line in err.splitlines() if 'warning: ' not in line]
        self.assertEqual(len(errors), 1, err)

    # --- devices ---

    def original(self, device):
        """Where the guest has the module of other people; the test is skipped if there are no sources of it."""
        inside = original_in_guest(device)
        if inside not in self.originals:
            self.skipTest(f'no sources of the original of /dev/{device}')
        return f'/{inside}'

    def insert(self, path, device, *parameters):
        """Loads a module that offers that device until the test ends."""
        self.guest.check(f'insmod {path} {" ".join(parameters)}')
        module = 'fakemem' if 'fakemem' in path else ORIGINALS[device][1]
        self.addCleanup(self.guest.check, f'rmmod {module}')
        if device == 'linpmem':
            self.guest.check('mknod /dev/linpmem c 42 0')
            self.addCleanup(self.guest.check, 'rm /dev/linpmem')

    def device(self, name, *parameters):
        """Loads fakemem.ko as that device; the test is skipped on a kernel whose headers are not here."""
        if 'lib/fakemem.ko' not in self.guest.files:
            self.skipTest('a kernel for which no module of ours can be built')
        self.insert('/lib/fakemem.ko', name, f'device={name}', *parameters)

    def counter(self, name):
        """What fakemem.ko has counted."""
        return int(self.guest.check(f'cat /sys/module/fakemem/parameters/{name}'))

    def mask_kcore(self):
        """As container engines do it."""
        self.guest.check('mount --bind /dev/null /proc/kcore')
        self.addCleanup(self.guest.check, 'umount /proc/kcore')

    def kernel_log(self, pattern):
        """How many lines of it match."""
        return int(self.guest.run(f'dmesg | grep -c "{pattern}"').out)
