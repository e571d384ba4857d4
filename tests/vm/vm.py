# SPDX-License-Identifier: Apache-2.0
"""
A Debian kernel in QEMU that does what a test says.

    with Guest(kernel, work, {'bin/ramseal': path}) as guest:
        done = guest.run('ramseal acquire --source kcore -o /dev/container', container=path)
        with guest.stopped():
            guest.save_memory(0x1000, 0x2000, path)

Software emulation only (-accel tcg): it works wherever the tests run, and boots in seconds. The
guest's RAM lies in two banks, one of them above 4 GiB. Nothing here needs root.
"""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections import namedtuple
from pathlib import Path

HERE = Path(__file__).parent

# The kernel keeps some 55 MiB. Every MiB more is read, hashed and compressed by each acquisition.
RAM_MIB = 128
LOW_RAM_MIB, HIGH_RAM_MIB = 128, 32  # at most below 4 GiB, at least above
KERNEL_ENDS_MIB = 80  # the kernel unpacks itself below this, and the initramfs must lie above

# With this processor the kernel, OpenSSL and zstd choose code that QEMU translates well: no vector instructions beyond
# SSE2, each of which would be a call, and no `rep movsb` (erms), which QEMU runs byte by byte. An acquisition takes 5 s
# of processor time, and 8.4 s with "max". Without rdrand the kernel patches its own text late, when it has gathered
# enough entropy, and its text would not be constant.
CPU = 'qemu64,la57=on,rdrand=on'
ALL_OF_CPU = 'max,avx=off,avx2=off'

# no_timer_check: on a busy host too few timer ticks arrive in the time that the kernel's check of the IO-APIC allows,
# and it would panic.
WORDS = 'console=ttyS0 panic=-1 no_timer_check'
# swiotlb=noforce: because of the RAM above 4 GiB the kernel would reserve 64 MiB for bounce buffers, which no device
# here needs. tsc=reliable: QEMU's processors share one clock, but the kernel cannot know that, and would read the
# emulated HPET each time instead, which is slow.
LEAN = 'swiotlb=noforce tsc=reliable'

# Folders of modules that a guest has only if it asks for one.
OPTIONAL = {'fs', 'lib', 'crypto', 'nvdimm'}

# What is tested begins when the guest is up; that an emulated machine on a busy host does not always
# get there is nothing that a test should fail for.
BOOT_TIMEOUT = 900
BOOT_ATTEMPTS = 3
RUN_TIMEOUT = 900

Done = namedtuple('Done', 'code out err')

# What a machine has beside the usual: `cpu` and further `options` of QEMU, `slots` behind the size of
# -m (",slots=2,maxmem=1G") for memory that is added later, `words` of the kernel's command line, what
# is set behind -drive for every disk (",throttling.bps-total=1000000"), and whether LEAN applies.
Machine = namedtuple('Machine', 'cpu options slots words drive lean', defaults=(CPU, (), '', '', '', True))

# What the published measurements were made on (docs/RESULTS.md, tests/bench).
MEASURED = Machine(cpu='max', lean=False)


class GuestError(Exception):
    pass


def go_first():
    """
    In QEMU's process, before it starts: other tests run beside it, and a guest whose emulated CPU has to
    wait misses ticks and time limits. Where the kernel gives each session its share, the session's nice
    counts (sched(7), "The autogroup feature"). Only root may.
    """
    with contextlib.suppress(OSError):
        os.nice(-10)
    with contextlib.suppress(OSError):
        Path('/proc/self/autogroup').write_text('-10', encoding='ascii')


class Channel:
    """One end of a socket whose other end QEMU has inherited."""

    def __init__(self):
        self.ours, self.qemus = socket.socketpair()
        self.qemu_fd = self.qemus.fileno()
        self.got = b''

    def started(self):
        self.qemus.close()

    def close(self):
        self.ours.close()

    def send(self, line):
        self.ours.sendall(line.encode() + b'\n')

    def _more(self, deadline):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.ours.settimeout(left)
        more = self.ours.recv(1 << 16)
        if not more:
            raise GuestError('QEMU has ended')
        self.got += more

    def line(self, deadline):
        while b'\n' not in self.got:
            self._more(deadline)
        line, self.got = self.got.split(b'\n', 1)
        return line.decode()

    def take(self, size, deadline):
        while len(self.got) < size:
            self._more(deadline)
        taken, self.got = self.got[:size], self.got[size:]
        return taken


class Guest:
    def __init__(self, kernel, work, files, disk=None, ram_mib=RAM_MIB, filesystems=(),
                 machine=None):
        """
        `kernel`: what build/kernel made. `work`: a folder for logs and the like. `files`: paths in
        the guest to paths here. `disk`: a raw image outside `work`, /dev/vda in the guest, or a list of
        them (vda, vdb, …); while the guest is stopped, the file is what the guest has written.
        `ram_mib`: some of it is above 4 GiB. `filesystems`: those whose modules the guest has, by the
        modules' names, and drivers of NVDIMMs likewise; ext4, XFS and btrfs together take 9 MiB of its RAM.
        `machine`: what is not as usual.
        """
        self.kernel = Path(kernel)
        self.work = Path(work)
        self.files = files
        self.disks = disk if isinstance(disk, (list, tuple)) else [disk] if disk else []
        self.filesystems = filesystems
        self.machine = machine or Machine()
        self.ram_mib = ram_mib
        self.low_ram_mib = min(LOW_RAM_MIB, ram_mib - HIGH_RAM_MIB)
        self.console = self.work / 'console.log'
        self.process = None
        self.control = self.monitor = None

    # --- life ---

    def __enter__(self):
        for attempt in range(BOOT_ATTEMPTS):
            self.control = Channel()
            self.monitor = Channel()
            try:
                self._start()
                return self
            except GuestError:
                self.__exit__()
                if attempt == BOOT_ATTEMPTS - 1:
                    raise
            except BaseException:
                self.__exit__()
                raise

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()
        for channel in (self.control, self.monitor):
            channel.close()

    def _start(self):
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        initramfs = self._initramfs()
        fds = (self.control.qemu_fd, self.monitor.qemu_fd)
        with open(self.work / 'qemu.log', 'wb') as log:
            self.process = subprocess.Popen([
                # However the test ends, its QEMU ends too.
                'setpriv', '--pdeathsig', 'KILL',
                'qemu-system-x86_64', '-accel', 'tcg', '-cpu', self.machine.cpu, '-smp', '2',
                '-machine', f'pc,max-ram-below-4g={self.low_ram_mib}M',
                '-m', f'{self.ram_mib}{self.machine.slots}',
                '-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot',
                '-kernel', self.kernel / 'vmlinuz', '-initrd', initramfs,
                '-append', f'{WORDS} {LEAN if self.machine.lean else ""} {self.machine.words}',
                '-chardev', f'file,id=serial,path={self.console}', '-serial', 'chardev:serial',
                '-chardev', f'socket,id=monitor,fd={fds[1]}', '-mon', 'monitor,mode=control',
                '-device', 'virtio-serial-pci',
                '-chardev', f'socket,id=control,fd={fds[0]}',
                '-device', 'virtserialport,chardev=control,name=control',
                '-chardev', 'null,id=container',
                '-device', 'virtserialport,chardev=container,name=container',
                *self._disk_options(), *self.machine.options,
            ], stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=go_first, pass_fds=fds)
        self.control.started()
        self.monitor.started()
        deadline = time.monotonic() + BOOT_TIMEOUT
        try:
            self.monitor.line(deadline)  # the greeting
            self.execute('qmp_capabilities')
            if self.control.line(deadline) != 'ready':
                raise GuestError('the guest says something else than "ready"')
        except (TimeoutError, GuestError, OSError) as e:
            raise GuestError(f'the guest did not come up: {e!r}\n{self._logs()}') from e

    def _disk_options(self):
        options = []
        for i, disk in enumerate(self.disks):
            options += ['-drive', f'if=none,id=disk{i},format=raw,cache=writethrough,file={disk}'
                        f'{self.machine.drive}',
                        '-device', f'virtio-blk-pci,drive=disk{i}']
        return options

    def _initramfs(self):
        """Busybox, our init and the caller's files, as the kernel unpacks them."""
        root = self.work / 'initramfs'
        release = (self.kernel / 'release').read_text().strip()
        modules = f'lib/modules/{release}'
        chosen = self._modules(self.kernel / modules / 'modules.dep')
        self.modules = {Path(module).stem for module in chosen}
        lists = [f'modules.{name}' for name in ('dep', 'alias', 'symbols', 'softdep', 'builtin')]
        for name in [*lists, *chosen]:
            (root / modules / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.kernel / modules / name, root / modules / name)
        (root / 'etc').mkdir()
        (root / 'etc/passwd').write_text('root:x:0:0::/root:/bin/sh\n'
                                         'nobody:x:65534:65534::/:/bin/sh\n')
        for inside, outside in {'init': HERE / 'guest/init', 'bin/busybox': '/bin/busybox',
                                **self.files}.items():
            (root / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(outside, root / inside)
            strip(root / inside)
        (root / 'bin/sh').symlink_to('busybox')
        archive = self.work / 'initramfs.cpio'
        with open(archive, 'wb') as out:
            names = subprocess.run(['find', '.'], cwd=root, check=True, capture_output=True).stdout
            subprocess.run(['cpio', '--quiet', '-o', '-H', 'newc', '-R', '0:0'], cwd=root,
                           input=names, stdout=out, check=True)
        room = (self.low_ram_mib - KERNEL_ENDS_MIB) << 20
        assert archive.stat().st_size < room, f'{archive}: more than {room} bytes; give the guest more RAM'
        return archive

    def _modules(self, dependencies):
        """
        All but those of file systems, unless they are asked for, with what they need. Checksums are asked for by name,
        so that file too, if the kernel does not have it built in.
        """
        wanted, crc32c = set(), 'kernel/crypto/crc32c_generic.ko'
        lines = [line.split(':') for line in dependencies.read_text().splitlines()]
        for module, needs in lines:
            is_asked_for = Path(module).stem in self.filesystems
            if is_asked_for or not OPTIONAL & set(Path(module).parts):
                wanted.update([module, *needs.split()])
            if is_asked_for:
                wanted.update(m for m, _ in lines if m == crc32c)
        return wanted

    def _logs(self):
        tail = []
        for log in (self.work / 'qemu.log', self.console):
            if log.exists():
                tail += [f'--- {log}'] + log.read_text(errors='replace').splitlines()[-20:]
        return '\n'.join(tail)

    # --- inside ---

    def run(self, command, container=None, timeout=RUN_TIMEOUT):
        """
        Runs one line of shell as root. What the guest writes to /dev/container meanwhile goes to
        the file `container` here, which is made anew.
        """
        assert '\n' not in command
        if container:
            self.execute('chardev-change', id='container',
                         backend={'type': 'file', 'data': {'out': str(container)}})
        deadline = time.monotonic() + timeout
        try:
            self.control.send(command)
            code, out, err = map(int, self.control.line(deadline).split())
            done = Done(code, self.control.take(out, deadline).decode(errors='replace'),
                        self.control.take(err, deadline).decode(errors='replace'))
        except (TimeoutError, GuestError, OSError) as e:
            raise GuestError(f'no answer to {command!r}: {e!r}\n{self._logs()}') from e
        finally:
            if container:
                self.execute('chardev-change', id='container',
                             backend={'type': 'null', 'data': {}})
        return done

    def check(self, command, **kwargs):
        """run() for what must succeed; returns its stdout."""
        done = self.run(command, **kwargs)
        if done.code:
            raise GuestError(f'{command!r} ended with {done.code}: {done.err}')
        return done.out

    @property
    def version(self):
        """(6, 12) of "6.12.117+deb12-amd64"."""
        return tuple(map(int, (self.kernel / 'release').read_text().split('.')[:2]))

    def load(self, *modules):
        """Those that this kernel has as modules: what it has built in is there anyway."""
        for module in modules:
            if module in self.modules:
                self.check(f'modprobe {module}')

    # --- from outside ---

    def execute(self, command, **arguments):
        """One command to QEMU's monitor (QMP)."""
        deadline = time.monotonic() + RUN_TIMEOUT
        self.monitor.send(json.dumps({'execute': command, 'arguments': arguments}))
        while True:
            answer = json.loads(self.monitor.line(deadline))
            if 'error' in answer:
                raise GuestError(f"{command}: {answer['error']['desc']}")
            if 'return' in answer:
                return answer['return']

    @contextlib.contextmanager
    def stopped(self):
        self.execute('stop')
        try:
            yield
        finally:
            self.execute('cont')

    def save_memory(self, first, last, path):
        self.execute('pmemsave', val=first, size=last - first + 1, filename=str(path))

    def firmware_map(self):
        """
        The usable ranges (first, last) of the VM's memory map, as its firmware hands it to the
        kernel, cut to whole pages. Newer kernels say "System RAM" of them (7.3; arch/x86/kernel/e820.c).
        """
        log = self.console.read_text(errors='replace')
        found = re.findall(r'BIOS-e820: \[mem (0x\w+)-(0x\w+)\] +(?:usable|System RAM)', log)
        return whole_pages((int(first, 16), int(last, 16)) for first, last in found)

    def ram(self):
        """Everything that /proc/iomem calls RAM, what drivers added among it."""
        return self.iomem('System RAM', 'System RAM (virtio_mem)')

    def iomem(self, *names):
        """The ranges (first, last) that the guest's /proc/iomem calls by one of `names`, at any depth."""
        lines = self.check('cat /proc/iomem').splitlines()
        found = [re.fullmatch(r'\s*(\w+)-(\w+) : (.*)', line).groups() for line in lines]
        return [(int(first, 16), int(last, 16)) for first, last, what in found if what in names]


def strip(path):
    """Files of the initramfs stay in RAM, which every acquisition reads: symbols would only cost time."""
    with open(path, 'rb') as f:
        is_program = f.read(4) == b'\x7fELF' and path.suffix != '.ko'
    if is_program:
        subprocess.run(['strip', path], check=True)


def whole_pages(ranges):
    """The same ranges, with pages that are only partly covered left out."""
    inner = [((first + 4095) & ~4095, ((last + 1) & ~4095) - 1) for first, last in ranges]
    return [(first, last) for first, last in inner if first < last]


def with_libraries(inside, program):
    """For `files`: a program, and what it is linked with, at the paths where it looks for that."""
    listed = subprocess.run(['ldd', program], check=True, capture_output=True, text=True).stdout
    libraries = re.findall(r'(/\S+) \(0x', listed)
    return {inside: program, **{path.lstrip('/'): path for path in libraries}}


def headers(kernel):
    """Where Debian's headers of that kernel are: build/kernel has unpacked those of the usual one; else None."""
    release = (Path(kernel) / 'release').read_text().strip()
    path = Path(kernel).resolve().parent / 'headers' / release / f'usr/src/linux-headers-{release}'
    return path if path.is_dir() else None


def build_module(kernel, source, folder):
    """Builds the kernel module in `source` against Debian's headers; returns the path of the .ko."""
    folder = _new_folder(folder)
    for name in (source, source.with_name('Kbuild')):
        shutil.copy(name, folder)
    _make_modules(kernel, folder)
    return folder / source.with_suffix('.ko').name


def build_original(kernel, sources, name, folder):
    """
    The same for the published sources of somebody's module, a folder as it is, which are copied to
    `folder` and built there without a change.
    """
    folder = _new_folder(folder)
    shutil.copytree(sources, folder, dirs_exist_ok=True)
    _make_modules(kernel, folder)
    return folder / f'{name}.ko'


def _new_folder(folder):
    folder = Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _make_modules(kernel, folder):
    made = subprocess.run(['make', '-s', '-C', headers(kernel), f'M={folder.resolve()}', 'modules'],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={'PATH': os.environ['PATH']})
    if made.returncode:
        raise GuestError(f'{folder.name} does not build:\n{made.stdout}{made.stderr}')
