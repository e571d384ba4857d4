#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Machines whose memory is not all there: unplugged, poisoned, in a balloon, added and taken away while
it is acquired, with holes, on two nodes; other people's memory drivers; kernels in lockdown, which begins in
the running machine or with it.

    test_sources.py KERNEL-FOLDER RAMSEAL ZOO DATA-FOLDER [unittest's arguments]

Each class is a machine, and boots once. Without arguments all of them run; meson.build says which are
in the suite `long`.
"""

import json
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import acquired  # noqa: E402
import vm  # noqa: E402
import zoo  # noqa: E402
from acquired import (COMPLETE, GAPS, NO_SOURCE, PAGE, SOURCE_FAILED, pages)  # noqa: E402
from case import GuestCase, arguments, originals, run_tests  # noqa: E402


MIB = 1 << 20
BLOCK = 128 * MIB  # Linux's memory block on x86-64: the least that can be added
DIMM = BLOCK

# One block that is plugged in half, two nodes, room for DIMMs, and a hole in the lower bank.
HALF = BLOCK // 2
HOLE = (0x6000000, 0x60fffff)
RAM_MIB = 160
PATCHY = vm.Machine(
    cpu=f'{vm.CPU},la57=off,{zoo.CPU}',  # the original linpmem refuses five levels
    slots=',slots=4,maxmem=2G',
    words=f'hardened_usercopy=off memmap=1M${HOLE[0]:#x} {zoo.WORDS}',
    options=('-object', f'memory-backend-ram,id=vmem,size={BLOCK}',
             '-device', f'virtio-mem-pci,id=vmem0,memdev=vmem,requested-size={HALF},node=0',
             '-object', 'memory-backend-ram,id=node0,size=80M',
             '-object', 'memory-backend-ram,id=node1,size=80M',
             '-numa', 'node,nodeid=0,memdev=node0', '-numa', 'node,nodeid=1,memdev=node1',
             '-device', 'virtio-balloon-pci,id=balloon'))

LARGEST = 1024  # pages of the buddy allocator's largest block (MAX_ORDER 10)
FILLED = 1024  # pages of a file in memory that was added

LINEAR = '--pagetables none --order linear'


def addresses(ranges):
    return [(r['first'], r['last']) for r in ranges]


def kernel_of(series):
    """The folder of a newer kernel, or of the usual one (None)."""
    kernel = KERNEL.with_name(f'{KERNEL.name}-{series}') if series else KERNEL
    if not (kernel / 'release').exists():
        raise unittest.SkipTest(f'{kernel} is missing: run build/kernel {series}')
    return kernel


class Lockdown:
    """Checks of a kernel in lockdown, for a test of a guest."""

    def refused(self, source, *words):
        done = self.guest.run(f'ramseal acquire --source {source} -o /tmp/none.rsz')
        self.assertEqual(done.code, NO_SOURCE, done.err)
        self.check_one_line(done.err)
        for word in words:
            self.assertIn(word, done.err)

    def mount_securityfs(self):
        self.guest.check('mount -t securityfs securityfs /sys/kernel/security')
        self.addCleanup(self.guest.check, 'umount /sys/kernel/security')

    def check_mode(self, mode):
        self.assertIn(f'[{mode}]', self.guest.check('cat /sys/kernel/security/lockdown'))

    def lock_down(self, mode):
        """Whatever the mode was; nobody can lower it again (security/lockdown/lockdown.c)."""
        self.mount_securityfs()
        self.guest.check(f'echo {mode} >/sys/kernel/security/lockdown')

    def check_integrity(self, expect, options=''):
        """/dev/mem is closed, and the kernel's log says who tried; /proc/kcore is open."""
        self.mount_securityfs()
        self.check_mode('integrity')
        image = self.image(f'--source auto {options}', expect)
        self.assertEqual({part['source'] for part in image.info['parts']}, {'kcore'})
        self.assertEqual(self.kernel_log('Lockdown: ramseal'), 0)
        self.refused('devmem', 'kernel lockdown (integrity mode)')
        self.assertEqual(self.kernel_log('Lockdown: ramseal'), 1)

    def check_confidentiality(self):
        self.mount_securityfs()
        self.check_mode('confidentiality')
        self.refused('auto', 'kernel lockdown (confidentiality mode)')
        self.refused('kcore', 'kernel lockdown (confidentiality mode)')


class Patchy(GuestCase):
    """Helpers for machines like PATCHY."""
    ORIGINALS = ()  # devices whose module of other people is tried
    SERIES = None  # a newer kernel, for which there are no headers: no module of ours
    holes = set()

    @classmethod
    def setUpClass(cls):
        if cls is Patchy:
            raise unittest.SkipTest('helpers')
        cls.originals = originals(KERNEL, 'originals-sources', DATA, *cls.ORIGINALS)
        files = {'bin/ramseal': RAMSEAL, **cls.originals}
        if not cls.SERIES:
            files['lib/fakemem.ko'] = vm.build_module(KERNEL, vm.HERE / 'guest/fakemem.c',
                                                      f'fakemem-{cls.__name__}')
        cls.start(kernel_of(cls.SERIES), f'sources-{cls.__name__}', {**files, **cls.files()}, machine=PATCHY,
                  ram_mib=RAM_MIB, **cls.more())
        cls.guest.check('echo online_movable >/sys/devices/system/memory/auto_online_blocks; '
                        'modprobe virtio_mem')
        cls.wait_for(lambda: cls.plugged() == HALF)
        cls.wait_for(lambda: 'offline' not in cls.guest.check(
            'cat /sys/devices/system/memory/memory*/state'))
        cls.look()
        cls.vmem, = cls.guest.iomem('System RAM (virtio_mem)')
        # Two where nobody uses them; and one that the kernel does use, which it then cannot isolate.
        # (A page of a process would be its end.)
        cls.poisoned = {*cls.free_blocks(*cls.vmem)[-4:-2],
                        cls.guest.iomem('Kernel data')[0][0] // PAGE}
        for pfn in cls.poisoned:
            cls.poison(pfn)
        cls.truth = cls.save_memory('truth')

    @classmethod
    def files(cls):
        """That the guest has besides."""
        return {}

    @classmethod
    def more(cls):
        """Arguments of vm.Guest."""
        return {}

    @staticmethod
    def wait_for(happened):
        """However long that takes on a busy machine; what does not happen at all ends here."""
        deadline = time.monotonic() + vm.RUN_TIMEOUT
        while not happened():
            if time.monotonic() > deadline:
                raise vm.GuestError('it does not happen')
            time.sleep(0.2)

    @classmethod
    def free_blocks(cls, first, last):
        """
        The first PFNs of the free blocks of the buddy allocator's largest order (KPF_BUDDY,
        admin-guide/mm/pagemap.rst). Such a block is split when no smaller one is left, or when one
        of its pages is poisoned. What remains is the next to be taken: poison one page of each.
        """
        flags = cls.guest.check(f'dd if=/proc/kpageflags bs=8 skip={first // PAGE} '
                                f'count={(last + 1 - first) // PAGE} status=none | '
                                'hexdump -v -e \'2/4 "%x " "\\n"\'').splitlines()
        free = [int(line.split()[0], 16) >> 10 & 1 for line in flags]
        return [first // PAGE + i for i in range(0, len(free), LARGEST)
                if all(free[i:i + LARGEST])]

    @classmethod
    def plugged(cls):
        device, = (d for d in cls.guest.execute('query-memory-devices')
                   if d['type'] == 'virtio-mem')
        return device['data']['size']

    @classmethod
    def poison(cls, pfn):
        """As an uncorrectable error of the hardware leaves it (memory_failure())."""
        cls.guest.run(f'printf {pfn * PAGE:#x} >/sys/devices/system/memory/hard_offline_page')
        cls.guest.check(f'dmesg | grep -q "Memory failure: {pfn:#x}:"')

    @classmethod
    def add_dimm(cls, name):
        """Hot-plugs it; returns its range once the guest calls it RAM."""
        before = set(pages(cls.guest.ram()))
        cls.guest.execute('object-add', **{'qom-type': 'memory-backend-ram', 'id': f'{name}-memory',
                                           'size': DIMM})
        cls.guest.execute('device_add', driver='pc-dimm', id=name, memdev=f'{name}-memory', node=1)
        cls.wait_for(lambda: len(set(pages(cls.guest.ram())) - before) == DIMM // PAGE)
        cls.wait_for(lambda: 'offline' not in cls.guest.check(
            'cat /sys/devices/system/memory/memory*/state'))
        first = min(set(pages(cls.guest.ram())) - before) * PAGE
        return first, first + DIMM - 1

    def acquire_while(self, options, meanwhile, name='meanwhile'):
        """
        Acquires in order of address into a pipe that is full after the first chunks, calls
        meanwhile(), and lets it go on. Returns the container's path, the exit code and the log.
        """
        path = self.work / f'{name}.rsz'
        self.guest.check(
            'rm -f /tmp/pipe; mkfifo /tmp/pipe; '
            f'(ramseal acquire --log-json {options} -o - >/tmp/pipe 2>/tmp/said; '
            'echo $? >/tmp/code) & '
            'exec 5</tmp/pipe; dd bs=4096 count=16 iflag=fullblock status=none <&5 >/tmp/head; '
            'sleep 100000 <&5 & echo $! >/tmp/keeper')
        meanwhile()
        self.guest.check('cat /tmp/head /proc/$(cat /tmp/keeper)/fd/0 >/dev/container; '
                         'kill $(cat /tmp/keeper); while ! [ -s /tmp/code ]; do sleep 0.1; done',
                         container=path)
        code = int(self.guest.check('cat /tmp/code; rm /tmp/code'))
        lines = self.guest.check('cat /tmp/said').splitlines()
        return path, code, [json.loads(line) for line in lines if line.startswith('{')]

    def check_withheld(self, image, but=()):
        """
        The unplugged half, the poisoned pages and those that the direct map lacks are no zeros and no data; all else
        is there, and what cannot change is as the VM has it.
        """
        self.assertEqual(image.unreadable - set(but), self.poisoned | self.holes)
        self.assertEqual(len(image.skipped), HALF // PAGE)
        self.assertLess(image.skipped, set(pages([self.vmem])))
        for pfn in self.text - set(but):
            self.assertEqual(image.memory.page(pfn), self.truth.page(pfn), f'PFN {pfn:#x}')

    def check_module(self, path, device, *parameters):
        self.insert(path, device, *parameters)
        lost = ()
        if device == 'pmem':
            # The first page of every range, and everything behind the last one at the top level,
            # with that one's last page (tools/linux/pmem.c).
            top = max(last for _, last in self.guest.iomem('System RAM'))
            lost = {first // PAGE for first, _ in self.ram} | set(
                pages([(top // PAGE * PAGE, self.vmem[1])]))
        image = self.image(f'--source {device} {LINEAR}', GAPS)
        self.check_withheld(image, but=set(lost) - self.poisoned)
        self.doCleanups()


class Changing(Lockdown, zoo.Checks, Patchy):
    """Debian 12's kernel."""

    @classmethod
    def files(cls):
        return {'bin/zoo': ZOO}

    @classmethod
    def more(cls):
        cls.disk = Path(f'sources-{cls.__name__}.disk').resolve()
        with open(cls.disk, 'wb') as f:
            f.truncate(zoo.DISK_SIZE)
        return {'disk': cls.disk, 'filesystems': zoo.MODULES}

    def test_1_the_map(self):
        """A hole, RAM above 4 GiB, two nodes, half a device: /proc/iomem has it, and so have we."""
        ram = set(pages(self.ram))
        self.assertFalse(ram & set(pages([HOLE])))
        self.assertIn(HOLE[0] // PAGE - 1, ram)
        self.assertGreater(max(ram) * PAGE, 1 << 32)
        self.assertLess(set(pages([self.vmem])), ram)
        self.assertEqual(self.guest.check('ls -d /sys/devices/system/node/node*').split(),
                         [f'/sys/devices/system/node/node{n}' for n in (0, 1)])

    def test_2_modules_ask_too(self):
        self.check_module('/lib/fakemem.ko', 'crash', 'device=crash')

    def test_3_what_must_not_be_read(self):
        """And all kinds of memory that a process can have."""
        mine = self.poisoned
        animals = zoo.Zoo(self.guest, self.work, '/dev/vda')
        image = self.acquire_zoo(animals, '--source kcore')
        type(self).poisoned = self.poisoned
        self.assertLess(mine, self.poisoned)
        self.check_withheld(image)
        self.assertEqual(set(pages(image.ranges)), set(pages(self.ram)))
        begin = self.manifest(image.path, 'begin')['withheld']
        self.assertTrue(begin['known'])
        self.assertEqual(set(pages(addresses(begin['offline']))), image.skipped)
        self.assertNotIn('memory_changes', self.manifest(image.path, 'end'))
        said = self.guest.run('ramseal check').out
        self.assertIn(f'{HALF // PAGE} pages are offline', said)
        self.assertIn(f'and {len(self.poisoned)} poisoned', said)
        self.assertIn(f'{len(self.holes)} pages are not in the kernel\'s direct map', said)
        self.addCleanup(animals.end)
        self.check_zoo(animals, image)

    def test_4_what_changes_meanwhile(self):
        """RAM is added, more of the device plugged, a page poisoned that was read, and one that was not."""
        # The kernel's own, for a page of a process would be its end, and that may be ramseal.
        late = self.guest.iomem('Kernel rodata')[0][0] // PAGE
        early = self.ram[0][0] // PAGE

        def meanwhile():
            type(self).dimm = self.add_dimm('dimm1')
            # Movable pages of node 1: that is where the DIMM is.
            self.guest.check('mkdir /tmp/node1 && '
                             'mount -t tmpfs -o mpol=bind:1 tmpfs /tmp/node1 && '
                             f'head -c {FILLED * PAGE} /dev/urandom >/tmp/node1/file')
            self.guest.execute('qom-set', path='/machine/peripheral/vmem0',
                               property='requested-size', value=BLOCK)
            self.wait_for(lambda: self.plugged() == BLOCK)
            self.poison(late)
            self.poison(early)

        path, code, _ = self.acquire_while(f'--source auto {LINEAR}', meanwhile)
        self.assertEqual(code, GAPS)
        image = self.opened(path)
        changes = self.manifest(path, 'end')['memory_changes']
        self.assertEqual(image.info['memory_changes'], changes)
        told = acquired.ramseal('info', path).stdout
        self.assertIn('128.0 MiB of memory was added to the machine', told)
        self.assertIn('64.0 MiB of memory came back', told)
        self.assertEqual(addresses(changes['added']), [self.dimm])
        self.assertEqual((changes['missing'], changes['removed']), ([], []))
        self.assertEqual(set(pages(addresses(changes['withheld']))), {late, early})
        returned = set(pages(addresses(changes['returned'])))
        self.assertEqual(len(returned), HALF // PAGE)

        added = set(pages([self.dimm]))
        self.assertEqual(set(pages(image.ranges)), set(pages(self.ram)) | added)
        self.assertEqual(image.unreadable, self.poisoned | {late})
        self.assertFalse(image.skipped)  # it came back before its turn
        self.ram.append(self.dimm)
        after = self.save_memory('after')
        filled = [pfn for pfn in added if any(after.page(pfn))]
        self.assertGreaterEqual(len(filled), FILLED)
        same = sum(image.memory.page(pfn) == after.page(pfn) for pfn in filled)
        self.assertGreaterEqual(same, FILLED)
        self.poisoned.update({late, early})

    def test_5_an_image_keeps_its_ranges(self):
        """What was added is not in it, and that is said."""
        dimm = None

        def meanwhile():
            nonlocal dimm
            dimm = self.add_dimm('dimm2')

        _, code, log = self.acquire_while('--source auto --format lime --hash none', meanwhile, 'lime')
        self.assertEqual(code, GAPS)
        summary, = (line for line in log if line['event'] == 'summary')
        self.assertEqual(addresses(summary['memory_changes']['missing']), [dimm])
        # And what was added before it began is RAM like all other.
        self.assertIn('/proc/iomem', json.dumps(summary['maps']))
        self.assertLess(set(pages([self.dimm])),
                        set(pages(addresses(summary['maps'][0]['ranges']))))

    # --- at last, because it stays: lockdown ---

    def test_6_integrity(self):
        self.lock_down('integrity')
        self.doCleanups()
        self.refused('devmem', 'a security module may forbid it')
        self.guest.check('dmesg -c >/dev/null')
        self.check_integrity(GAPS, LINEAR)

    def test_7_confidentiality(self):
        self.lock_down('confidentiality')
        self.doCleanups()
        self.refused('auto', 'a security module may forbid it')
        self.check_confidentiality()


class Newer(Changing):
    """Long: the same on the kernel of Debian 13, and of Debian 12's backports."""
    SERIES = '6.12'
    test_2_modules_ask_too = None


class Sid(Newer):
    """Long: on Debian's development version."""
    SERIES = '7.2'


class Newest(Newer):
    """On the kernel of Debian 13's backports."""
    SERIES = '7.3'


class Modules(Patchy):
    """Long: every driver, other people's where their sources are there, and ours that plays them."""
    ORIGINALS = ('linpmem', 'crash', 'pmem')

    def test_1_ours(self):
        self.check_module('/lib/fakemem.ko', 'linpmem', 'device=linpmem')
        self.check_module('/lib/fakemem.ko', 'pmem', 'device=pmem')

    def test_2_original_linpmem(self):
        self.check_module(self.original('linpmem'), 'linpmem')

    def test_3_original_crash(self):
        self.check_module(self.original('crash'), 'crash')

    def test_4_original_pmem(self):
        self.check_module(self.original('pmem'), 'pmem')

    def test_5_reader_that_hangs(self):
        """A task that nobody can kill: waiting for it ends, and what was read is sealed."""
        self.device('crash', 'hang_after=30000')
        image = self.image(f'--source crash {LINEAR}', SOURCE_FAILED)
        self.assertIn('hangs in the kernel and cannot be killed', self.said)
        read = set(pages(image.ranges)) - image.skipped - image.unreadable
        self.assertTrue(29000 < len(read) <= 30000, len(read))
        self.guest.check('echo 0 >/sys/module/fakemem/parameters/hang_after; '
                         'while lsmod | grep -q "^fakemem.* 1 "; do sleep 0.1; done')

    def test_6_balloon(self):
        """What the guest has given back to its host is offline."""
        self.guest.check('modprobe virtio_balloon')
        size = self.guest.execute('query-balloon')['actual']
        self.guest.execute('balloon', value=size - 64 * MIB)
        self.wait_for(lambda: self.guest.execute('query-balloon')['actual'] == size - 64 * MIB)
        image = self.image(f'--source auto {LINEAR}', GAPS)
        self.assertEqual(len(image.skipped), (HALF + 64 * MIB) // PAGE)
        self.guest.execute('balloon', value=size)
        self.wait_for(lambda: self.guest.execute('query-balloon')['actual'] == size)

    def test_7_memory_that_is_taken_away(self):
        dimm = self.add_dimm('dimm1')

        def meanwhile():
            self.guest.execute('device_del', id='dimm1')
            self.wait_for(lambda: not set(pages(self.guest.ram())) & set(pages([dimm])))

        path, code, _ = self.acquire_while(f'--source auto {LINEAR}', meanwhile)
        self.assertEqual(code, GAPS)
        image = self.opened(path)
        self.assertEqual(addresses(self.manifest(path, 'end')['memory_changes']['removed']), [dimm])
        self.assertTrue(set(pages([dimm])) <= image.skipped)


class InLockdown(Lockdown, GuestCase):
    """As the kernel's command line has it."""
    MODE = None

    @classmethod
    def setUpClass(cls):
        if not cls.MODE:
            raise unittest.SkipTest('helpers')
        cls.start(KERNEL, f'sources-{cls.MODE}', {'bin/ramseal': RAMSEAL},
                  machine=vm.Machine(words=f'lockdown={cls.MODE}'))


class Integrity(InLockdown):
    """Long."""
    MODE = 'integrity'

    def test_auto_leaves_no_trace(self):
        self.check_integrity(COMPLETE)

    def test_without_securityfs(self):
        self.refused('devmem', 'a security module may forbid it')


class Confidentiality(InLockdown):
    """Long."""
    MODE = 'confidentiality'

    def test_nothing_is_open(self):
        self.check_confidentiality()

    def test_without_securityfs(self):
        self.refused('auto', 'a security module may forbid it')


class FiveLevels(GuestCase):
    """Long: LA57, which the guest uses where the processor has it."""
    SERIES = None

    @classmethod
    def setUpClass(cls):
        cls.originals = originals(KERNEL, 'originals-la57', DATA, *([] if cls.SERIES else ['linpmem']))
        cls.start(kernel_of(cls.SERIES), f'sources-{cls.__name__}',
                  {'bin/ramseal': RAMSEAL, **cls.originals},
                  machine=vm.Machine(cpu=vm.ALL_OF_CPU))

    def test_kcore(self):
        path = self.acquire('--source auto', COMPLETE)
        self.assertEqual(self.manifest(path, 'tables')['levels'], 5)
        self.assertEqual(self.manifest(path, 'tables')['process_list'], 'closed')

    def test_original_linpmem_refuses(self):
        self.assertNotEqual(self.guest.run(f'insmod {self.original("linpmem")}').code, 0)
        self.assertIn('linpmem', self.guest.run('ramseal check --source linpmem').err)


class NewerFiveLevels(FiveLevels):
    """Long: the same on a newer kernel."""
    SERIES = '6.12'
    test_original_linpmem_refuses = None


class NewestFiveLevels(NewerFiveLevels):
    """Long."""
    SERIES = '7.3'


def main():
    global KERNEL, RAMSEAL, ZOO, DATA
    KERNEL, RAMSEAL, ZOO, DATA = arguments(4)
    run_tests(4)


if __name__ == '__main__':
    main()
