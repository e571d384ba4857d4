# SPDX-License-Identifier: Apache-2.0
"""
A machine in QEMU whose kernel (kernel/) plays Windows' to one WinPmem driver.

    with Machine(kernel, work) as m:
        m.load(driver)
        handle = m.open()
        m.ioctl(handle, 0x22C40F, out_len=2936)
        m.read(handle, 0x1000, 4096)

Software emulation only (-accel tcg), no rights. Everything that is asked goes through the mailbox
of protocol.h.
"""

import contextlib
import ctypes
import json
import mmap
import shutil
import subprocess
import sys
import time
from collections import Counter, namedtuple
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / 'vm'))
from vm import Channel, GuestError, go_first  # noqa: E402

MIB = 1 << 20

LOW_MIB = 40
RAM_MIB = 56

# An idle machine boots in a second, and no request takes one.
BOOT_TIMEOUT = 900
ANSWER_TIMEOUT = 900

# --- protocol.h and kernel/layout.h ---

MAILBOX_PHYS = 0x200000
MAILBOX_MAGIC = 0x3168646D656D7077
KERNEL_VA = 0xFFFFF80312200000  # of the mailbox

BOOTING, READY, BUSY, STOPPED = range(4)

LOAD, UNLOAD, OPEN, CLOSE, IOCTL, READ, SET, RANGES, HIDE = range(1, 10)

(FAIL_AT, JUNK, IOSPACE, SECURE, MODULES, BUILD, PROCESSORS, TRACE, TRIGGER, VBS_EVENT,
 LENIENT, FAR) = range(12)

READ_DATA, WRITE_DATA = 1, 2
FAST, IRP = 1, 2
FROM_READS, FROM_MAPS = range(2)
IOSPACE_MAPS, IOSPACE_STOPS, IOSPACE_NULL = range(3)

LOG_SIZE = 1 << 17

U64 = ctypes.c_uint64


class Request(ctypes.Structure):
    _fields_ = [('op', U64), ('arg', U64 * 8)]


class Reply(ctypes.Structure):
    _fields_ = [('status', U64), ('information', U64), ('value', U64 * 4), ('hung', U64),
                ('done', U64)]


class Counters(ctypes.Structure):
    _fields_ = [(name, U64) for name in
                ('pool_blocks', 'pool_bytes', 'pages_locked', 'system_ptes', 'views', 'handles',
                 'devices', 'links', 'image_pages', 'frames', 'allocations', 'failed', 'complaints',
                 'keys_created', 'values_set', 'mapped_above_passive', 'affinity', 'driver_ticks',
                 'kernel_ticks', 'request_ticks')]


class Bugcheck(ctypes.Structure):
    _fields_ = [('code', U64), ('parameter', U64 * 4), ('rip', U64), ('rsp', U64), ('address', U64),
                ('image', U64), ('depth', U64), ('trace', U64 * 16)]


class Export(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char * 48), ('calls', U64)]


class Range(ctypes.Structure):
    _fields_ = [('base', U64), ('bytes', U64)]


class Mailbox(ctypes.Structure):
    _fields_ = [('magic', U64), ('size', U64), ('state', U64), ('request', Request),
                ('other', Request), ('reply', Reply), ('other_reply', Reply),
                ('trigger', ctypes.c_char * 48), ('ram_count', U64), ('ram', Range * 64),
                ('system_first', U64), ('system_bytes', U64), ('user_phys', U64), ('user_va', U64),
                ('user_bytes', U64), ('user_read_only', U64), ('cr3_system', U64),
                ('cr3_user', U64), ('levels', U64), ('vbs', U64), ('counters', Counters),
                ('bugcheck', Bugcheck), ('exports', Export * 128), ('log_len', U64),
                ('log', ctypes.c_ubyte * LOG_SIZE)]


class MachineError(Exception):
    pass


class Stopped(Exception):
    """The machine stopped: a bug check. `args[0]` is its Bugcheck."""


Answer = namedtuple('Answer', 'status information value hung data')


class Machine:
    # Where buffers lie in the asking process, unless a caller wants them elsewhere.
    INPUT, OUTPUT = 0, 0x1000

    def __init__(self, kernel, work, options='', ram_mib=RAM_MIB, low_mib=LOW_MIB):
        """
        `work`: a folder for RAM and logs, made anew. `options`: the kernel's command line ("la57",
        "vbs", "system=64").
        """
        self.kernel = kernel
        self.work = Path(work)
        self.options = options
        self.ram_mib = ram_mib
        self.low_mib = low_mib
        self.process = self.memory = self.box = None
        self.bell = self.monitor = None
        self.handles = []

    # --- life ---

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()
        for channel in (self.bell, self.monitor):
            if channel:
                channel.close()
        # The mapping goes with the last reply that somebody has kept.
        self.box = self.memory = None
        with contextlib.suppress(FileNotFoundError):
            (self.work / 'ram').unlink()

    def _start(self):
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        ram = self.work / 'ram'
        with open(ram, 'wb') as f:
            f.truncate(self.ram_mib * MIB)
        self.bell, self.monitor = Channel(), Channel()
        fds = self.bell.qemu_fd, self.monitor.qemu_fd
        with open(self.work / 'qemu.log', 'wb') as log:
            self.process = subprocess.Popen([
                # However the test ends, its QEMU ends too.
                'setpriv', '--pdeathsig', 'KILL',
                'qemu-system-x86_64', '-accel', 'tcg', '-cpu', 'max', '-smp', '1',
                '-machine', f'pc,max-ram-below-4g={self.low_mib}M,memory-backend=ram',
                '-m', str(self.ram_mib), '-object',
                f'memory-backend-file,id=ram,size={self.ram_mib}M,mem-path={ram},share=on',
                '-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot',
                '-kernel', self.kernel, '-append', self.options,
                '-chardev', f'socket,id=bell,fd={fds[0]}', '-serial', 'chardev:bell',
                '-chardev', f'socket,id=monitor,fd={fds[1]}', '-mon', 'monitor,mode=control',
            ], stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=go_first, pass_fds=fds)
        self.bell.started()
        self.monitor.started()
        with open(ram, 'r+b') as f:
            self.memory = mmap.mmap(f.fileno(), 0)
        self.box = Mailbox.from_buffer(self.memory, MAILBOX_PHYS)
        self._wait(BOOT_TIMEOUT)
        if self.box.magic != MAILBOX_MAGIC or self.box.size != ctypes.sizeof(Mailbox):
            raise MachineError(f'another mailbox: {self.box.magic:x}, {self.box.size} bytes')
        self.execute('qmp_capabilities')

    def _wait(self, timeout):
        try:
            self.bell.take(1, time.monotonic() + timeout)
        except (TimeoutError, GuestError, OSError) as e:
            raise MachineError(f'no answer: {e!r}\n{self.logs()}') from None
        self.bell.got = b''

    # --- QEMU ---

    def execute(self, command, **arguments):
        """One command to QEMU's monitor (QMP)."""
        deadline = time.monotonic() + ANSWER_TIMEOUT
        self.monitor.send(json.dumps({'execute': command, 'arguments': arguments}))
        while True:
            answer = json.loads(self.monitor.line(deadline))
            if 'error' in answer:
                raise MachineError(f"{command}: {answer['error']['desc']}")
            if 'return' in answer:
                return answer['return']

    def save_memory(self, path):
        """
        RAM as QEMU itself reads it by address, bank after bank, while the machine stands still.
        """
        self.execute('stop')
        for first, size in self.ram():
            self.execute('pmemsave', val=first, size=size, filename=f'{path}.{first:x}')
        self.execute('cont')

    # --- requests ---

    def request(self, op, *args, timeout=ANSWER_TIMEOUT):
        """The Reply, which the next request overwrites."""
        self._check()
        self._put(self.box.request, op, *args)
        self.bell.ours.sendall(b'?')
        self._wait(timeout)
        self._check()
        return self.box.reply

    def _check(self):
        if self.box.state == STOPPED:
            raise Stopped(Bugcheck.from_buffer_copy(self.box.bugcheck))

    @staticmethod
    def _put(request, op, *args):
        request.op = op
        request.arg[:] = list(args) + [0] * (8 - len(args))

    def put(self, offset, data):
        """Into the asking process's buffers; returns the address there."""
        at = self.box.user_phys + offset
        self.memory[at:at + len(data)] = data
        return self.box.user_va + offset

    def get(self, offset, length):
        at = self.box.user_phys + offset
        return self.memory[at:at + length]

    def set(self, setting, value):
        assert self.request(SET, setting, value).status == 0

    def meanwhile(self, export, nth, op, *args):
        """
        During the next request, at the driver's n-th call of `export`, this is carried out too.
        """
        self.box.trigger = export.encode()
        self._put(self.box.other, op, *args)
        self.box.other_reply = Reply()
        self.set(TRIGGER, nth)

    def load(self, path, patch=None):
        """The driver's DriverEntry(). `patch`: an RVA and the bytes to put there."""
        driver = Path(path).read_bytes()
        rva, code = patch or (0, b'')
        self.put(0, driver)
        self.put(len(driver), code)
        return self.request(LOAD, 0, len(driver), rva, len(driver), len(code)).status

    def unload(self):
        return self.request(UNLOAD).status

    def open(self, access=READ_DATA | WRITE_DATA):
        reply = self.request(OPEN, access)
        if reply.status:
            raise MachineError(f'open: {reply.status:#x}')
        self.handles.append(reply.value[0])
        return reply.value[0]

    def close(self, handle):
        self.handles.remove(handle)
        return self.request(CLOSE, handle).status

    def close_all(self):
        while self.handles:
            self.close(self.handles[0])

    def ioctl(self, handle, code, data=b'', out_len=0, out=None, inp=None):
        """`out`, `inp`: addresses to give in place of buffers of our own."""
        if inp is None:
            inp = self.put(self.INPUT, data) if data else 0
        if out is None:
            out = self.box.user_va + self.OUTPUT if out_len else 0
        r = self.request(IOCTL, handle, code, inp, len(data), out, out_len)
        return Answer(r.status, r.information, list(r.value), bool(r.hung),
                      self.get(self.OUTPUT, min(r.information, out_len)))

    def read(self, handle, address, length, buffer=None):
        """`buffer`: an address in place of a buffer of our own, which is filled with 0xEE first."""
        if buffer is None:
            buffer = self.put(self.OUTPUT, b'\xee' * length)
        r = self.request(READ, handle, buffer, length, address)
        return Answer(r.status, r.information, list(r.value), bool(r.hung),
                      self.get(self.OUTPUT, length))

    # --- others ---

    def path(self):
        """What client.c takes as the path of the device."""
        return f'{self.work / "ram"},{self.bell.ours.fileno()}'

    def run(self, command, timeout=ANSWER_TIMEOUT):
        """Runs a program that talks to the machine itself meanwhile; text out."""
        self.bell.ours.setblocking(True)
        return subprocess.run([str(word) for word in command],
                              pass_fds=[self.bell.ours.fileno()], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=timeout, check=False)

    # --- what there is ---

    def log(self):
        """What the kernel and the driver have said, as far as it is kept."""
        end = self.box.log_len
        text = bytes(self.box.log)
        text = text[end % LOG_SIZE:] + text[:end % LOG_SIZE] if end > LOG_SIZE else text[:end]
        return text.decode(errors='replace')

    def logs(self):
        return (self.work / 'qemu.log').read_text(errors='replace') + self.log()[-4000:]

    def counters(self):
        return {name: getattr(self.box.counters, name) for name, _ in Counters._fields_}

    def calls(self):
        """How often the driver has called each function of the kernel: a Counter by name."""
        return Counter({e.name.decode(): e.calls for e in self.box.exports})

    def ram(self):
        """(first, bytes) of each bank"""
        return [(r.base, r.bytes) for r in self.box.ram[:self.box.ram_count]]

    def truth(self, address, length):
        """What is in RAM there, now; None if part of it is no RAM."""
        if not any(first <= address and address + length <= first + size
                   for first, size in self.ram()):
            return None
        low = self.low_mib * MIB
        at = address if address < low else address - (1 << 32) + low
        return self.memory[at:at + length]
