#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What an acquisition takes of a machine that is at work: how far its threads step back, which limits
of control groups it keeps, what it leaves in the page cache, and what is left of it when the kernel
kills it.

    test_share.py KERNEL-FOLDER RAMSEAL HOLDER [unittest's arguments]

Nothing here is timed: tests/bench/bench_load.py measures what others feel of it. One boot serves
every test.
"""

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import acquired  # noqa: E402
import areas  # noqa: E402
import vm  # noqa: E402
from acquired import COMPLETE, PAGE, PARTIAL  # noqa: E402
from case import GuestCase, arguments, run_tests  # noqa: E402

INTERNAL = 1  # formats/base/err.h, EXIT_MAP
KILLED = 128 + 9
MIB = 1 << 20
OTHER, BATCH = '0', '3'  # include/uapi/linux/sched.h
GROUPS = '/groups'
DISK = '/disk'


class Share(GuestCase):
    @classmethod
    def setUpClass(cls):
        image = areas.make_image(Path('share.img').resolve(), 'ext4-4k', 512 * MIB)
        cls.addClassCleanup(image.unlink)
        cls.start(KERNEL, 'share', {
            'bin/ramseal': RAMSEAL,
            'bin/holder': HOLDER,
            'bin/threads': vm.HERE / 'guest/threads',
        }, disk=image, ram_mib=256, filesystems=('ext4',))
        cls.guest.load('virtio_blk', 'crc32c_generic', 'ext4')
        cls.guest.check(f'mkdir {DISK} {GROUPS} && mount -t ext4 /dev/vda {DISK} && '
                        f'mount -t cgroup2 cgroup2 {GROUPS} && '
                        f'echo "+cpu +memory" >{GROUPS}/cgroup.subtree_control')

    # --- helpers ---

    def group(self, **limits):
        """A new control group; returns what a line of shell begins with to be in it."""
        path = f'{GROUPS}/{self.id().split(".")[-1]}'
        self.guest.check(f'mkdir {path}')
        for name, value in limits.items():
            self.guest.check(f'echo "{value}" >{path}/{name.replace("_", ".")}')
        self.path = path
        return f'echo 0 >{path}/cgroup.procs; '

    def threads(self, count, options, before=''):
        """{name: (policy, nice, I/O priority)} of `acquire`, of several of that name as a set."""
        out = self.guest.check(f'{before}threads {count} ramseal acquire -q --source kcore '
                               f'{options} -o /tmp/fifo')
        found = {}
        lines = out.splitlines()
        for line in lines:
            name, policy, nice, io = line.split(' ', 3)
            found.setdefault(name, []).append((policy, int(nice), io))
        self.assertEqual(len(lines), count, out)
        return found

    def taken_out(self, path):
        """A file of the guest, as a file here."""
        here = self.work / f'{self.id().split(".")[-1]}.out'
        self.guest.check(f'cat {path} >/dev/container', container=here)
        self.addCleanup(here.unlink)
        return here

    def cached(self):
        """Bytes of the page cache that the group is charged for."""
        stat = self.guest.check(f'cat {self.path}/memory.stat')
        return int(re.search(r'^file (\d+)$', stat, re.M)[1])

    # --- threads ---

    def check_reading(self, found, threads=2):
        """Whoever reads is as he was started: he must not be held up between a table and its frames."""
        self.assertEqual([t[:2] for t in found['ramseal']], [(OTHER, 0)] * threads)
        self.assertNotIn('best-effort: prio 7', [t[2] for t in found['ramseal']])

    def check_behind(self, found, nice, packing=1):
        behind = (BATCH, nice, 'best-effort: prio 7')
        self.assertEqual(found['ramseal-pack'], [behind] * packing)
        self.assertEqual(found['ramseal-write'], [behind])

    def test_01_by_default_what_can_wait_steps_back(self):
        """Two CPUs: one thread compresses, so that the other is free."""
        found = self.threads(4, '')
        self.check_reading(found)
        self.check_behind(found, 10)

    def test_02_nice_says_how_far(self):
        found = self.threads(5, '--nice 15 --threads 2')
        self.check_reading(found)
        self.check_behind(found, 15, packing=2)

    def test_03_fast_steps_back_for_nobody(self):
        found = self.threads(5, '--fast')
        self.assertEqual(set(found), {'ramseal', 'ramseal-pack', 'ramseal-write'})
        self.check_reading({'ramseal': [t for of in found.values() for t in of]}, threads=5)

    def test_04_what_we_are_started_with_is_not_taken_back(self):
        found = self.threads(4, '--nice 5', before='renice -n 12 -p $$ >/dev/null; ionice -c 3 ')
        self.assertEqual(found['ramseal-write'], [(BATCH, 12, 'idle')])
        self.assertEqual([t[1:] for t in found['ramseal']], [(12, 'idle')] * 2)

    def test_05_a_limit_of_cpu_time_is_a_limit_of_threads(self):
        before = self.group(cpu_max='100000 100000')
        self.check_reading(self.threads(4, '--fast', before=before), threads=4)

    # --- limits ---

    def test_06_limits_are_kept_and_recorded(self):
        before = self.group(cpu_max='150000 100000', memory_max=36 * MIB)
        output = f'{DISK}/limited.rsz'
        done = self.guest.run(f'{before}ramseal acquire --source kcore --threads 16 -o {output}')
        self.assertEqual(done.code, COMPLETE, done.err)
        here = self.taken_out(output)
        self.guest.check(f'rm {output}')
        begin = self.manifest(here, 'begin')
        limits = begin['limits']
        self.assertEqual((limits['cpus'], limits['cpu_time'], limits['memory']), (2, 1.5, 36 * MIB))
        self.assertEqual(limits['cpu_time_from'], f'{self.path}/cpu.max')
        self.assertEqual(limits['memory_from'], f'{self.path}/memory.max')
        self.assertLess(begin['threads'], 16)
        said = re.search(r'the memory limit of 36.0 MiB leaves .*--threads (\d+) \(not 16\)', done.err)
        self.assertEqual(int(said[1]), begin['threads'])
        self.assertEqual((begin['share']['mode'], begin['share']['pauses']), ('nice', False))
        self.assertEqual(begin['share']['behind'],
                         {'policy': 'batch', 'nice': 10, 'io': 'best-effort', 'io_level': 7})
        # So much did it take: the threads that were left did fit.
        self.assertIn('oom_kill 0', self.guest.check(f'cat {self.path}/memory.events'))
        self.assertEqual(acquired.ramseal('verify', here).returncode, COMPLETE)

    def test_07_too_small_a_limit_is_said_before_anything_is_read(self):
        before = self.group(memory_high=12 * MIB, cpu_max='50000 100000')
        checked = self.guest.run(f'{before}ramseal check --source kcore -o {DISK}/none.rsz')
        self.assertEqual(checked.code, INTERNAL)
        self.assertRegex(checked.out, r'(?m)^no: the memory limit of 12.0 MiB leaves')
        self.assertRegex(checked.out, r'(?m)^note: CPU time is limited to 0.50 CPUs')
        done = self.guest.run(f'{before}ramseal acquire --source kcore -o {DISK}/none.rsz')
        self.assertEqual(done.code, INTERNAL)
        self.check_one_line(done.err)
        self.assertRegex(done.err, r'the memory limit of 12.0 MiB leaves .* \(/groups/\S+/memory.high\)')
        self.assertEqual(self.guest.run(f'ls {DISK}/none.rsz*').out, '')

    # --- what others keep ---

    def test_08_output_does_not_fill_the_page_cache(self):
        """What is in there is the machine's, and a part of what is acquired."""
        before, left = self.group(), {}
        for how in ('--fast', ''):
            output = f'{DISK}/cache.rsz'
            self.guest.check(f'{before}ramseal acquire -q --source kcore {how} -o {output}')
            left[how] = self.cached()
            size = int(self.guest.check(f'stat -c %s {output}'))
            self.guest.check(f'rm {output}')
        self.assertGreater(size, 64 * MIB)
        self.assertGreater(left['--fast'], 32 * MIB)
        self.assertLess(left[''], 10 * MIB)

    def test_09_the_kernel_kills_us_first_and_what_was_written_can_be_sealed(self):
        """
        A tmpfs takes its pages from the same limit, and does not give them back. In the same group is
        somebody who has more of them than we.
        """
        before = self.group(memory_max=72 * MIB)
        held = self.guest.check(f'({before}exec holder 9000) >/tmp/large & '
                                'while ! [ -s /tmp/large ]; do sleep 0.1; done; cat /tmp/large')
        pid = int(held.split()[0])
        self.addCleanup(self.guest.check, f'kill {pid}')
        done = self.guest.run(f'({before}exec ramseal acquire -q --source kcore --level store -o /tmp/k.rsz)')
        self.assertEqual(done.code, KILLED, done.err)
        self.guest.check(f'kill -0 {pid}')
        self.assertIn('oom_kill 1', self.guest.check(f'cat {self.path}/memory.events'))
        self.assertGreater(self.kernel_log('Memory cgroup out of memory: Killed process .*(ramseal)'), 0)

        here = self.taken_out('/tmp/k.rsz.partial')
        self.guest.check('rm /tmp/k.rsz.partial')
        sealed = acquired.ramseal('seal', here)
        self.assertEqual(sealed.returncode, COMPLETE, sealed.stderr)
        self.assertEqual(acquired.ramseal('verify', here).returncode, PARTIAL)
        info = json.loads(acquired.ramseal('info', '--json', here).stdout)
        memory = next(s for s in info['streams'] if s['name'] == 'memory')
        self.assertGreater(memory['pages']['data'] * PAGE, 8 * MIB)
        # All but the last record, if that was cut.
        self.assertLess(here.stat().st_size, 40 * MIB)
        later = self.manifest(here, 'sealed_later')
        self.assertGreater(later['whole_bytes'], 8 * MIB)


def main():
    global KERNEL, RAMSEAL, HOLDER
    KERNEL, RAMSEAL, HOLDER = arguments(3)
    run_tests(3)


if __name__ == '__main__':
    main()
