#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
ELF cores and compressed kdumps of a Debian kernel, opened by the tools that they are written for: crash,
drgn, makedumpfile, gdb, without an option that would help them; and the same through `mount`. Of the running
kernel, and of an image of the stopped machine, whose source tells nothing; through a container, and as
`acquire` writes them itself. And the containers in volatility3, if RAMSEAL_PEERS names a folder that has it.

    test_dumps.py KERNEL-FOLDER RAMSEAL [unittest's arguments]

One boot serves every test but those that compare volatility3's own layers with ours: these know four
levels of page tables only, which the usual guest does not have. The kernel's vmlinux is the stand-in
of vmlinux.py, volatility3's symbols are made by isf_from_btf.py.
"""

import csv
import filecmp
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / 'formats')]
import acquired  # noqa: E402
import isf_from_btf  # noqa: E402
import mounted  # noqa: E402
import vm  # noqa: E402
import vmlinux  # noqa: E402
import volatility  # noqa: E402
from acquired import COMPLETE, Lime  # noqa: E402
from case import SKIPPED_EXIT, arguments, run_tests  # noqa: E402
from kernel_structs import Kernel  # noqa: E402

MOUNT_RECIPES = (vm.HERE.parents[1] / 'agent/examine/mount/README.md').read_text()
TOOLS = ('crash', 'drgn', 'gdb', 'makedumpfile')

DRGN_SCRIPT = """
from drgn.helpers.linux.pid import for_each_task
for task in for_each_task(prog):
    print(task.pid.value_(), task.comm.string_().decode())
"""


def tool(*command, **kwargs):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=900,
                          **kwargs)


needs_volatility3 = unittest.skipIf(volatility.missing(), volatility.missing())


def pslist(work, kallsyms, image):
    """{(PID, name)} of linux.pslist, and what it said besides."""
    symbols = work / 'symbols'
    path = symbols / 'linux' / 'guest.json.xz'
    if not path.exists():
        path.parent.mkdir(parents=True)
        isf_from_btf.write(isf_from_btf.isf(KERNEL / 'vmlinuz', kallsyms), path)
    done = volatility.vol(work, symbols, '-r', 'csv', '-f', image, 'linux.pslist')
    assert done.returncode == 0, done.stdout + done.stderr
    return {(int(row['PID']), row['COMM']) for row in csv.DictReader(done.stdout.splitlines())}


class Dumps(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = Path('dumps').resolve()
        cls.guest = vm.Guest(KERNEL, cls.work, {'bin/ramseal': RAMSEAL})
        cls.guest.__enter__()
        cls.addClassCleanup(cls.guest.__exit__)
        cls.kallsyms = cls.guest.check('cat /proc/kallsyms')
        cls.vmlinux = cls.work / 'vmlinux'
        vmlinux.build(KERNEL / 'vmlinuz', cls.kallsyms, cls.vmlinux)
        cls.addClassCleanup(cls.vmlinux.unlink)
        cls.modules = {line.split()[0] for line in
                       cls.guest.check('cat /proc/modules').splitlines()}
        cls.live = [cls.live_through_a_container(), cls.live_at_once('elf')]
        cls.live_flat = cls.live_at_once('kdump')
        cls.images = cls.of_an_image()
        cls.kdumps = [cls.dump('live', 'export', cls.container, kind='kdump'),
                      cls.dump('image', 'export', cls.image_container, kind='kdump')]
        cls.flat = [cls.live_flat, cls.flattened('image', cls.image_container)]
        cls.of_stopped = [*cls.images, cls.kdumps[1], cls.flat[1]]

    # --- the dumps ---

    @classmethod
    def dump(cls, name, *command, kind='elf'):
        """A dump that the host's ramseal writes."""
        path = cls.work / f'{name}.{kind}'
        done = acquired.ramseal(*command[:1], '--quiet', '--format', kind, '-o', path, *command[1:])
        assert done.returncode == COMPLETE, done.stderr
        cls.addClassCleanup(path.unlink)
        return path

    @classmethod
    def live_through_a_container(cls):
        cls.before = cls.processes()
        container = cls.container = cls.work / 'live.rsz'
        cls.addClassCleanup(container.unlink)
        cls.guest.check('ramseal acquire --quiet --source kcore -o - >/dev/container',
                        container=container)
        return cls.dump('live', 'export', container)

    @classmethod
    def flattened(cls, name, container):
        path = cls.work / f'{name}.flat'
        with open(path, 'wb') as f:
            done = subprocess.run([RAMSEAL, 'export', '--quiet', '--format', 'kdump', '-o', '-', container],
                                  stdout=f, stderr=subprocess.PIPE)
        assert done.returncode == COMPLETE, done.stderr
        cls.addClassCleanup(path.unlink)
        return path

    @classmethod
    def live_at_once(cls, kind):
        """To a device: a kdump is flattened."""
        path = cls.work / f'direct.{kind}'
        cls.guest.check(f'ramseal acquire --quiet --source kcore --format {kind} -o - >/dev/container',
                        container=path)
        cls.addClassCleanup(path.unlink)
        cls.lasting = cls.before & cls.processes()
        return path

    @classmethod
    def of_an_image(cls):
        """A LiME file has no notes and knows of no kernel."""
        btf = cls.work / 'btf'
        cls.guest.check('cat /sys/kernel/btf/vmlinux >/dev/container', container=btf)
        code = cls.guest.iomem('Kernel code')[0][0]
        ram = vm.whole_pages(cls.guest.iomem('System RAM'))
        with cls.guest.stopped():
            lime = cls.lime = Lime(cls.guest, cls.work / 'stopped.lime', ram)
            cls.qemus = cls.work / 'qemu.kdump'
            cls.guest.execute('dump-guest-memory', paging=False, protocol=f'file:{cls.qemus}', format='kdump-zlib')
        cls.addClassCleanup(cls.qemus.unlink)
        cls.addClassCleanup(lime.path.unlink)
        kernel = Kernel(btf.read_bytes(), cls.kallsyms, code)
        cls.stopped = {(task.pid, task.name) for task in kernel.tasks(lime)}
        container = cls.image_container = cls.work / 'image.rsz'
        cls.addClassCleanup(container.unlink)
        done = acquired.ramseal('acquire', '--quiet', '--source', f'file:{lime.path}', '-o',
                                container)
        assert done.returncode == COMPLETE, done.stderr
        return [cls.dump('image', 'export', container),
                cls.dump('image-direct', 'acquire', '--source', f'file:{lime.path}')]

    @classmethod
    def processes(cls):
        return {int(name) for name in cls.guest.check('ls /proc').split() if name.isdigit()}

    def each(self, check, paths):
        for path in paths:
            with self.subTest(path.stem):
                check(path)

    def check_tasks(self, path, found):
        """Of the stopped machine it is known exactly what there was."""
        if path in self.of_stopped:
            self.assertEqual(found, self.stopped)
        else:
            self.assertGreater(len(self.lasting), 20)
            self.assertLessEqual(self.lasting, {pid for pid, _ in found})

    # --- crash ---

    def crash(self, path, *commands, options=()):
        """What each of the commands prints; crash itself must have nothing to say."""
        marks = [f'!echo "--- {n}"' for n in range(len(commands))]
        script = [line for pair in zip(marks, commands) for line in pair]
        done = tool('crash', '-s', *options, self.vmlinux, path, input='\n'.join([*script, 'quit', '']))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        said, *answers = re.split(r'^--- \d+\n', done.stdout, flags=re.M)
        # 8.0.2 wants the first upid within struct pid and misses processes since it lies behind it:
        # Linux b69f0aeb0689 (6.5, and Debian's 6.1), crash 8858006. So `ps` is no test; the kernel's
        # own list, followed by crash, is.
        said = re.sub(r'WARNING: active task \w+ on cpu \d+ not found in PID hash', '', said)
        # Of what makedumpfile made of it: nobody knows registers, which a panic would have left.
        said = said.replace('WARNING: compressed kdump: invalid nr_cpus value: 0', '')
        said = re.sub(r'NOTE: (setting phys_base to|using 5-level pagetable).*', '', said)  # as the options say
        self.assertEqual(said.strip(), '')
        self.assertEqual(len(answers), len(commands), done.stdout)
        return answers

    def opens_in_crash(self, path, dump=None, options=()):
        """`dump`: what became of the dump in `path`."""
        release = (KERNEL / 'release').read_text().strip()
        if not options:
            self.assertEqual(tool('crash', '--osrelease', dump or path).stdout.split()[-1], release)
        system, tasks, modules, log = self.crash(
            dump or path, 'sys', 'list -o task_struct.tasks -s task_struct.pid,comm -h init_task',
            'mod', 'log', options=options)
        self.assertIn(f'RELEASE: {release}\n', system)
        found = re.findall(r'pid = (\d+),\n  comm = "([^"\\]*)', tasks)
        self.check_tasks(path, {(int(pid), name) for pid, name in found})
        self.assertEqual({line.split()[1] for line in modules.splitlines()[1:]}, self.modules)
        self.assertIn(f'Linux version {release} ', log)

    def test_1_crash(self):
        """It opens the dump by VMCOREINFO alone, and follows the kernel's lists and its modules'."""
        self.each(self.opens_in_crash, self.live + self.images)

    # --- drgn ---

    def opens_in_drgn(self, path):
        script = self.work / 'tasks.py'
        script.write_text(DRGN_SCRIPT)
        # libkdumpfile 0.5.1 reads what it has freed.
        env = {name: value for name, value in os.environ.items() if name != 'MALLOC_PERTURB_'}
        done = tool('drgn', '-q', '-c', path, '-s', self.vmlinux, script, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {(int(pid), name) for pid, name in
                 (line.split(' ', 1) for line in done.stdout.splitlines())}
        self.check_tasks(path, found | {(0, 'swapper/0')})  # which has no number to go by

    def test_2_drgn(self):
        """It reads the page tables, and finds every task by its number."""
        self.each(self.opens_in_drgn, self.live + self.images)

    # --- compressed kdumps ---

    def test_2_kdumps_in_crash(self):
        """The same as of ELF cores, also flattened."""
        self.each(self.opens_in_crash, self.kdumps + self.flat)

    def test_2_kdumps_in_drgn(self):
        """Through libkdumpfile, which knows the flattened form only from 0.5.3 on."""
        self.each(self.opens_in_drgn, self.kdumps)

    def test_2_flattened_kdumps_are_straightened(self):
        back = self.work / 'straight.kdump'
        for flat, plain in zip(self.flat, [None, self.kdumps[1]]):
            with open(flat, 'rb') as f:
                done = tool('makedumpfile', '-f', '-R', back, stdin=f)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            if plain:
                self.assertTrue(filecmp.cmp(back, plain, shallow=False))
            else:
                self.opens_in_drgn(back)
            back.unlink()

    def check_source(self, path, code):
        """Each page of RAM is what the stopped machine had, or was left out. How many there are of both."""
        image = self.work / 'source.raw'
        done = acquired.ramseal('acquire', '--quiet', '--source', f'file:{path}', '--format', 'raw', '-f', '-o', image)
        self.assertEqual(done.returncode, code, done.stderr)
        same, left_out = 0, b'SKIPPED PAGE    ' * 256
        gaps = 0
        with open(image, 'rb') as got, open(self.lime.path, 'rb') as want:
            for first, last, offset in self.lime.parts:
                got.seek(first)
                want.seek(offset)
                for at in range(first, last, 4096):
                    page, was = got.read(4096), want.read(4096)
                    gaps += page == left_out
                    same += page == was
                    self.assertTrue(page in (was, left_out), hex(at))
        image.unlink()
        return same, gaps

    def test_2_others_kdumps_as_sources(self):
        """QEMU's, which is flattened and has all pages; makedumpfile's, which leaves free ones out."""
        pages = sum(last - first + 1 for first, last, _ in self.lime.parts) // 4096
        self.assertEqual(self.qemus.read_bytes()[:12], b'makedumpfile')
        self.assertEqual(self.check_source(self.qemus, COMPLETE), (pages, 0))
        small = self.work / 'small.kdump'
        for packed in '-c', '-l':
            with self.subTest(packed):
                done = tool('makedumpfile', packed, '-d', '31', '-f', self.images[0], small)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                same, gaps = self.check_source(small, 3)
                self.assertEqual(same + gaps, pages)
                self.assertGreater(same, 1000)
                self.assertGreater(gaps, 1000)
                small.unlink()

    # --- gdb, and all of them through the mount: the recipes of agent/examine/mount/README.md ---

    def opens_in_gdb(self, core):
        commands = re.findall(r'^    (SHIFT=.*|gdb .*)', MOUNT_RECIPES, re.M)
        self.assertEqual(len(commands), 2)
        asked = ['print init_task.comm', 'print ((struct task_struct *)((char *)init_task.tasks.next - '
                 '(long)&((struct task_struct *)0)->tasks))->comm']
        script = '\n'.join([*commands]).replace('/mnt/m/memory.core', str(core))
        script = script.replace('gdb ', 'gdb -nx -batch ').replace('vmlinux', str(self.vmlinux))
        done = tool('sh', '-euc', script + ''.join(f" -ex '{line}'" for line in asked))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"swapper/0', done.stdout)
        self.assertIn('"init', done.stdout)

    def follows_the_drgn_recipe(self, core):
        command, *lines = re.findall(r'^    (drgn .*|>>> .*for_each_task.*)', MOUNT_RECIPES, re.M)
        self.assertEqual(len(lines), 2)
        command = command.replace('/mnt/m/memory.core', str(core)).replace('vmlinux', str(self.vmlinux))
        done = tool('sh', '-euc', command, input='\n'.join(line[4:] for line in lines) + '\n')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("(1, b'init')", done.stdout)

    def options_for_raw(self, core):
        """What crash has to be told of an image that has no VMCOREINFO."""
        with open(core, 'rb') as f:
            known = dict(re.findall(rb'^([A-Z_a-z()]+)=(.*)$', f.read(1 << 20), re.M))
        return ('--kaslr', '0x' + known[b'KERNELOFFSET'].decode(),
                '-m', f'phys_base={known[b"NUMBER(phys_base)"].decode()}', '-m', 'vm=5level')

    def test_3_gdb(self):
        self.each(self.opens_in_gdb, [self.live[0], self.images[0]])

    def test_3_through_the_mount(self):
        if mounted.missing():
            self.skipTest(mounted.missing())
        with mounted.mounted(RAMSEAL, self.container, self.work / 'mnt') as folder:
            core = folder / 'memory.core'
            self.assertTrue(filecmp.cmp(core, self.live[0], shallow=False))
            self.opens_in_drgn(core)
            self.follows_the_drgn_recipe(core)
            self.opens_in_gdb(core)
            self.opens_in_crash(core)
            self.opens_in_crash(core, f'{folder / "memory.raw"}@0', self.options_for_raw(core))
            self.goes_through_makedumpfile(core)

    # --- makedumpfile ---

    def goes_through_makedumpfile(self, path):
        banner = self.guest.check('cat /proc/version').strip().encode()
        small, log = self.work / 'small.kdump', self.work / 'dmesg'
        for command in (['-c', '-d', '31', '-f', path, small], ['--dump-dmesg', '-f', path, log]):
            done = tool('makedumpfile', *command)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(banner, log.read_bytes())
        self.assertLess(small.stat().st_size, path.stat().st_size // 2)
        self.opens_in_crash(path, small)
        small.unlink()

    def test_3_makedumpfile(self):
        """It tells free pages from others, and what it leaves is a dump again."""
        self.each(self.goes_through_makedumpfile, [self.live[1], self.images[0]])

    # --- ours ---

    def test_4_both_ways_are_the_same(self):
        export, direct = self.images
        self.assertEqual(tool('cmp', export, direct).stdout, '')


    # --- volatility3 ---

    @needs_volatility3
    def test_5_volatility3_on_the_container(self):
        """Five levels of page tables, for which the layer brings a layer of its own."""
        self.assertLessEqual(self.lasting, {p for p, _ in pslist(self.work, self.kallsyms, self.container)})
        self.assertEqual(pslist(self.work, self.kallsyms, self.image_container),
                         {(pid, name) for pid, name in self.stopped if pid})


@needs_volatility3
class FourLevels(unittest.TestCase):
    """volatility3 on a container and on what is exported of it: the same, and what `ps` said."""

    def test_container_and_exports(self):
        work = Path('dumps4').resolve()
        with vm.Guest(KERNEL, work, {'bin/ramseal': RAMSEAL},
                      machine=vm.Machine(cpu='max,la57=off')) as guest:
            kallsyms = guest.check('cat /proc/kallsyms')
            guest.check('sleep 1000 & sleep 1001 &')
            list_all = 'for i in /proc/[0-9]*; do echo "${i#/proc/} $(cat $i/comm)"; done'
            before = set(guest.check(list_all).splitlines())
            container = work / 'live.rsz'
            guest.check('ramseal acquire --quiet --source kcore -o - >/dev/container',
                        container=container)
            lasting = {int(line.split()[0]) for line in before & set(guest.check(list_all).splitlines())}
        found = pslist(work, kallsyms, container)
        self.assertGreater(len(lasting), 20)
        self.assertLessEqual(lasting, {pid for pid, _ in found})
        self.assertEqual(len([pid for pid, name in found if name == 'sleep']), 2)
        for kind in ('raw', 'lime', 'elf'):
            image = work / f'live.{kind}'
            done = acquired.ramseal('export', '--quiet', '--format', kind, '-o', image, container)
            self.assertEqual(done.returncode, COMPLETE, done.stderr)
            with self.subTest(kind):
                self.assertEqual(pslist(work, kallsyms, image), found)
            image.unlink()
        if not mounted.missing():
            with mounted.mounted(RAMSEAL, container, work / 'mnt') as folder:
                for name in ('memory.raw', 'memory.core'):
                    with self.subTest(name):
                        self.assertEqual(pslist(work, kallsyms, folder / name), found)
        container.unlink()


def main():
    global KERNEL, RAMSEAL
    KERNEL, RAMSEAL = arguments(2)
    missing = [name for name in TOOLS if not shutil.which(name)]
    if missing:
        print(f'not installed: {", ".join(missing)}')
        sys.exit(SKIPPED_EXIT)
    run_tests(2)


if __name__ == '__main__':
    main()
