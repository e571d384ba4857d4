# SPDX-License-Identifier: Apache-2.0
"""
One driver in machines: loaded anew for each question, with a new machine whenever the last one
stopped.
"""

import struct
from collections import Counter
from pathlib import Path

from machine import (FAIL_AT, FAR, IOSPACE as SET_IOSPACE, JUNK, LENIENT, MODULES, PROCESSORS,
                     RANGES, SECURE, TRIGGER, VBS_EVENT, Machine, Stopped)
from originals import STOPS, status_text

PAGE = 4096

DEFAULTS = ((FAIL_AT, 0), (JUNK, 0xCDCDCDCDCDCDCDCD), (SET_IOSPACE, 0), (SECURE, 0), (MODULES, 200),
            (PROCESSORS, 1), (TRIGGER, 0), (VBS_EVENT, 13), (LENIENT, 0),
            (FAR, 0))


def imports(file):
    """The names that a PE file imports: Microsoft's "PE Format", .idata."""
    data = Path(file).read_bytes()
    pe = struct.unpack_from('<I', data, 0x3C)[0]
    sections, optional = struct.unpack_from('<H12xH', data, pe + 6)

    def raw(rva):
        for n in range(sections):
            size, first, _, at = struct.unpack_from('<4I', data, pe + 24 + optional + 40 * n + 8)
            if first <= rva < first + size:
                return rva - first + at
        raise ValueError(hex(rva))

    def text(at):
        return data[at:data.index(b'\0', at)].decode()

    found = []
    at = raw(struct.unpack_from('<I', data, pe + 24 + 120)[0])
    while struct.unpack_from('<I', data, at + 12)[0]:
        name = raw(struct.unpack_from('<I', data, at)[0])
        while struct.unpack_from('<Q', data, name)[0]:
            found.append(text(raw(struct.unpack_from('<Q', data, name)[0]) + 2))
            name += 8
        at += 20
    return found


class Lab:
    def __init__(self, kernel, work, original, file):
        self.kernel = kernel
        self.work = work
        self.original = original
        self.file = file
        self.machine = None
        self.options = None
        self.calls = Counter()  # of the kernel's functions, by name

    def close(self):
        if self.machine:
            self._count_calls()
            self.machine.__exit__()
        self.machine = None

    def _count_calls(self):
        self.calls += self.machine.calls()

    def _boot(self, options):
        self.close()
        machine = Machine(self.kernel, self.work, options)
        machine.__enter__()
        self.machine = machine
        self.options = options

    def _tidy(self):
        """As it was before the driver was loaded. False: it cannot be had without a new machine."""
        m = self.machine
        for setting, value in DEFAULTS:
            m.set(setting, value)
        m.request(RANGES, 0, 0)
        m.close_all()
        m.unload()
        return not any(m.counters()[name] for name in ('devices', 'image_pages', 'links'))

    def bare(self, options=''):
        """A machine without a driver."""
        if not self.machine or self.options != options or not self._tidy():
            self._boot(options)
        return self.machine

    def fresh(self, options='', **kwargs):
        """A machine with the driver just loaded, and a handle."""
        m = self.bare(options)
        status = m.load(self.file, **kwargs)
        assert status == 0, status_text(status)
        return m, m.open()

    def in_mode(self, mode, options='', **kwargs):
        m, h = self.fresh(options, **kwargs)
        status = self.set_mode(m, h, mode)
        assert status == 0, status_text(status)
        return m, h

    def set_mode(self, m, h, mode):
        return m.ioctl(h, self.original.set_mode, mode.to_bytes(4, 'little')).status

    def ask(self, question, *args):
        """
        question(lab, *args) as a text. If Windows stops meanwhile, or the driver never returns,
        that is the answer.
        """
        try:
            answer = question(self, *args)
        except Stopped as e:
            answer = stop_text(e.args[0])
            self.close()
        except Hung:
            answer = '**hangs**'
            self.close()
        return answer


class Hung(Exception):
    """The driver does not return from a request."""


def stop_text(b):
    """With the place in the driver, which may be where it called the kernel."""
    what = f' ({b.parameter[0]:X})' if b.code in (0x3B, 0x7E) else ''
    where = f' at +{b.trace[0] - b.image:x}' if b.depth else ''
    return f'**stops Windows: 0x{b.code:X} {STOPS[b.code]}**{what}{where}'


def piece_text(m, address, data, fill):
    """Of one page, or a part of it."""
    length = len(data)
    truth = m.truth(address, length)
    if truth is not None and data == truth:
        return 'right'
    if data == bytes([fill]) * length:
        return 'untouched'
    if data == bytes(length):
        return 'zeros'
    if data == m.truth(address % (1 << 52), length):
        return '**another page**'
    return '**wrong**'


def content_text(m, address, data, fill=0xEE):
    """What a buffer holds, page by page, that was to get memory and was full of `fill`."""
    runs = []
    at = 0
    while at < len(data):
        end = min(len(data), at + PAGE - (address + at) % PAGE)
        kind = piece_text(m, address + at, data[at:end], fill)
        if runs and runs[-1][0] == kind:
            runs[-1][1] += 1
        else:
            runs.append([kind, 1])
        at = end
    if len(runs) == 1:
        return runs[0][0]
    return ', '.join(f'{count} {kind}' for kind, count in runs)


def read_text(m, h, address, length, buffer=None):
    a = m.read(h, address, length, buffer)
    if a.hung:
        raise Hung
    content = content_text(m, address, a.data)
    if not a.status and a.information == length:
        return ', '.join(filter(None, ('ok', content)))
    text = status_text(a.status) + ('' if a.status else f', {a.information} bytes')
    return text + ('; ' + content if content not in ('', 'untouched') else '')


def ioctl_text(a):
    if a.hung:
        raise Hung
    return status_text(a.status) + (f', {a.information} bytes' if not a.status else '')
