#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The stand-in driver (fixture.c) answers as the original drivers do: the questions of tests/winpmem,
put to it under Wine as each of them, and compared with driver-interface/WINPMEM.md, where the
answers of the originals are. Needs neither them nor QEMU.
Usage: test_standin.py WINE RAMSEAL.exe FIXTURE.sys ASK.exe TABLE [TEST...]
A prefix of its own is made in the current directory.
"""

import random
import re
import shutil
import struct
import subprocess
import sys
import unittest
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'winpmem'))
import answers  # noqa: E402
import answers_reads  # noqa: E402
from answers_reads import MACHINE_CHECK  # noqa: E402
from lab import DEFAULTS, Lab  # noqa: E402
from machine import (FROM_MAPS, HIDE, IOSPACE, RANGES, READ_DATA, READY,  # noqa: E402
                     STOPPED, VBS_EVENT, WRITE_DATA, Answer, Counters, Stopped)
import standin  # noqa: E402
from originals import ORIGINALS  # noqa: E402
from prefix import Prefix  # noqa: E402
from standin import GIB, MIB, PAGE, REQUEST_CONFIG, REQUEST_LOG, Memory  # noqa: E402
import table  # noqa: E402

WINE, EXE, DRIVER, ASK, TABLE = (str(Path(p).absolute()) for p in sys.argv[1:6])
del sys.argv[1:6]

TOP = Path('wine-standin').absolute()
HOST = Prefix(WINE, TOP / 'prefix')
Memory.folder = HOST.path / 'drive_c' / 'ramseal-fixture'

OPEN, CLOSE, CONTROL, READ = range(1, 5)

# As the machine of the originals has it: RAM, and what Windows tells of it.
RAM = [(0, 0x9f000), (MIB, 0x26f0000 - MIB), (4 * GIB, 16 * MIB)]
TOLD = [(PAGE, 0x9e000), *RAM[1:]]

PLAYED_BY = {'1.6.3': standin.gen1, '2.0.1': standin.gen2, '4.1 test': standin.gen3}

CONTENT = [random.Random(base).randbytes(length) for base, length in RAM]


class NotPlayed(Exception):
    """Something that the stand-in has no counterpart of."""


class Asker:
    """The program that has the device open, and what it is asked."""

    def __init__(self):
        self.process = subprocess.Popen([WINE, ASK, r'\\.\pmem'], env=HOST.env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=900)
        self.process.stdout.close()

    def __call__(self, op, handle, number=0, data=b'', out_len=0):
        """(status, information, the buffer)"""
        self.process.stdin.write(struct.pack('<5Q', op, handle, number, len(data), out_len) + data)
        self.process.stdin.flush()
        status, information, out_len = struct.unpack('<3Q', self.process.stdout.read(24))
        return status, information, self.process.stdout.read(out_len)


class Machine:
    """What a Lab (tests/winpmem/lab.py) asks of a machine, over the stand-in."""
    OUTPUT = 0x1000

    def __init__(self, ask, play):
        self.ask = ask
        self.play = play
        self.box = SimpleNamespace(state=READY, user_va=0, user_read_only=None)
        self.handles = []
        self.buffers = {}
        self.secure = standin.SECURE
        self.memory = self._memory(TOLD)

    def __exit__(self, *_):
        self.close_all()

    # --- what it is ---

    def _memory(self, runs):
        return self.play(runs=runs, ram=RAM, content=CONTENT, registry=b'')

    def _configure(self, is_new=False):
        """The device is as self.memory says, and with `is_new` as after loading."""
        self.memory.write()
        status, _, _ = self.ask(CONTROL, 0, REQUEST_CONFIG, b'\1' if is_new else b'')
        assert status == 0, hex(status)

    def load(self, _, patch=None):
        if patch:
            raise NotPlayed('a patch')
        self._configure(True)
        return 0

    def unload(self):
        return 0

    def set(self, setting, value):
        """What the stand-in has no counterpart of must stay as it is."""
        if setting == IOSPACE:
            self.memory.config['iospace'] = value
            self._configure()
        elif setting == VBS_EVENT:
            self.secure = (standin.SECURE_MACHINE_CHECK if value == MACHINE_CHECK
                           else standin.SECURE)
        elif (setting, value) not in DEFAULTS:
            raise NotPlayed(f'setting {setting}')

    def request(self, op, *args):
        if op == RANGES:
            self._set_ranges(*args)
        elif op == HIDE:
            self._hide(*args)
        else:
            raise NotPlayed(f'request {op}')
        return SimpleNamespace(status=0)

    def put(self, offset, data):
        self.buffers[offset] = data
        return offset

    def _set_ranges(self, at, count):
        """Those that Windows tells; RAM stays."""
        runs = [struct.unpack_from('<QQ', self.buffers[at], 16 * i) for i in range(count)] or TOLD
        if runs != self.memory.runs:
            self.memory = self._memory(runs)
            self._configure()

    def _hide(self, how, first, count, on):
        kind = standin.UNMAPPED if how == FROM_MAPS else self.secure
        self.memory.kinds = {(first + i) * PAGE: kind for i in range(count)} if on else {}
        self._configure()

    # --- what it does ---

    def open(self, access=READ_DATA | WRITE_DATA):
        if access != READ_DATA | WRITE_DATA:
            raise NotPlayed('a handle without write access')
        handle = next(n for n in range(1, 16) if n not in self.handles)
        status, _, _ = self.ask(OPEN, handle)
        assert status == 0, status
        self.handles.append(handle)
        return handle

    def close(self, handle):
        self.handles.remove(handle)
        return self.ask(CLOSE, handle)[0]

    def close_all(self):
        while self.handles:
            self.close(self.handles[0])

    def _answer(self, status, information, data):
        stopped = self.log_of_driver()['stopped']
        if stopped:
            self.box.state = STOPPED
            # An access violation, where there is such a parameter.
            raise Stopped(SimpleNamespace(code=stopped, parameter=[0xC0000005], depth=0))
        return Answer(status, information, [0] * 4, False, data)

    def ioctl(self, handle, code, data=b'', out_len=0, out=None, inp=None):
        if out is not None or inp is not None:
            raise NotPlayed('an address')
        status, information, told = self.ask(CONTROL, handle, code, data, out_len)
        return self._answer(status, information, told[:information])

    def read(self, handle, address, length, buffer=None):
        if buffer is not None:
            raise NotPlayed('an address')
        return self._answer(*self.ask(READ, handle, address, b'', length))

    # --- what there is ---

    def log_of_driver(self):
        status, _, data = self.ask(CONTROL, 0, REQUEST_LOG, b'', standin.LOG_BYTES)
        assert status == 0, hex(status)
        return dict(zip(standin.LOG, struct.unpack(f'<{len(standin.LOG)}Q', data)))

    def calls(self):
        log = self.log_of_driver()
        return Counter({'MmMapIoSpace': log['by_iospace'],
                        'ZwMapViewOfSection': log['by_physical']})

    def log(self):
        """Nobody looks at the stand-in as Driver Verifier would."""
        return ''

    def counters(self):
        return {name: 0 for name, _ in Counters._fields_}

    def truth(self, address, length):
        for (first, size), content in zip(RAM, CONTENT):
            if first <= address and address + length <= first + size:
                return content[address - first:address - first + length]
        return None


class StandIn(Lab):
    """A Lab whose machines are this one."""

    def __init__(self, ask, original):
        super().__init__(None, None, original, None)
        self.ask_device = ask

    def _boot(self, options):
        self.close()
        self.machine = Machine(self.ask_device, PLAYED_BY[self.original.name])
        self.options = options


LOADER = 'who loads a driver, and with what rights, is Wine here'
MEMORY = 'no allocation can be made to fail under Wine'
BUFFER = 'Wine\'s driver process has copies of the buffers, not their addresses'
DURING = 'Wine hands a driver one request after the other'
KERNEL = 'it is about what the driver calls and leaves in the kernel'

# What is not asked of the stand-in, and why: by the function that asks, or a question's words.
NOT_ASKED = {
    answers.version: 'it is a text for debuggers',
    answers.load: LOADER,
    answers.device_access: LOADER,
    answers.registry: LOADER,
    answers.load_far: LOADER,
    answers.load_twice: LOADER,
    answers.unload: KERNEL,
    answers.load_without_memory: MEMORY,
    answers.after_failed_load: MEMORY,
    answers.la57_load: 'page tables are of no concern to the stand-in',
    answers.la57_mode: 'page tables are of no concern to the stand-in',
    answers.request_of_reader: 'Wine does not ask what a handle was opened for',
    answers.info_fields: 'the fields are what the test writes',
    answers.info_affinity: KERNEL,
    answers.info_leaks: KERNEL,
    answers.info_modules: KERNEL,
    answers.request_without_memory: MEMORY,
    'GET_INFO, 4 GiB less a byte at a smaller buffer': BUFFER,
    'GET_INFO, 64 KiB at NULL': BUFFER,
    'GET_INFO, 64 KiB in the kernel': BUFFER,
    'GET_INFO, 64 KiB of unmapped memory': BUFFER,
    'GET_INFO, a read-only page': BUFFER,
    'SET_MODE, 4 bytes at NULL': BUFFER,
    'SET_MODE, 4 bytes in the kernel': BUFFER,
    'SET_MODE, 4 bytes of unmapped memory': BUFFER,
    answers_reads.read_into: BUFFER,
    answers_reads.paths: 'Wine has no fast I/O',
    answers_reads.read_without_memory: MEMORY,
    answers_reads.read_without_mdl: MEMORY,
    answers_reads.closed_meanwhile: DURING,
    answers_reads.second_reader: DURING,
    'PTE: the same, with its invlpg overwritten': 'the stand-in has none',
    answers_reads.affinity: KERNEL,
    answers_reads.level: KERNEL,
    answers_reads.unload_open: LOADER,
    answers_reads.unload_reading: DURING,
    answers_reads.closed_reading: DURING,
}


def answers_of_originals():
    """{driver: {section: {question: answer}}}, from the table."""
    told = {}
    names = section = None
    for line in Path(TABLE).read_text().splitlines():
        cells = [cell.strip() for cell in line.strip('|').split(' | ')]
        if line.startswith('## '):
            section = line[3:]
            names = None
        elif not line.startswith('|') or line.startswith('| ---'):
            continue
        elif names is None:
            names = cells[1:]
        else:
            for name, answer in zip(names, cells[1:]):
                told.setdefault(name, {}).setdefault(section, {})[cells[0]] = answer
    return told


def comparable(answer):
    """
    Without the place in the original where it stops, what it leaks, and how much of a read that
    failed was copied: Wine copies nothing then.
    """
    answer = re.sub(r' at \+[0-9a-f]+|; [0-9]+ bytes leaked', '', answer)
    return re.sub(r'(IO_DEVICE_ERROR \(1117\)); [0-9]+ right, [0-9]+ untouched', r'\1', answer)


class Answers(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        shutil.rmtree(TOP, ignore_errors=True)
        HOST.start()
        standin.gen2()
        ran = HOST.run(EXE, 'driver', 'load', DRIVER)
        assert ran.returncode == 0, ran.stderr
        cls.ask = Asker()
        assert cls.ask(OPEN, 0)[0] == 0
        cls.originals = answers_of_originals()

    @classmethod
    def tearDownClass(cls):
        cls.ask.close()
        HOST.run(EXE, 'driver', 'unload')
        HOST.stop()

    def compare(self, name):
        lab = StandIn(self.ask, next(o for o in ORIGINALS if o.name == name))
        compared, differ = 0, []
        for title, questions in table.SECTIONS:
            for words, function, *args in questions:
                if function in NOT_ASKED or words in NOT_ASKED:
                    continue
                want = comparable(self.originals[name][title][words])
                got = comparable(lab.ask(function, *args))
                compared += 1
                if got != want:
                    differ.append(f'{title}: {words}: {got}; the original: {want}')
        lab.close()
        self.assertEqual(differ, [])
        asked = sum(len(questions) for _, questions in table.SECTIONS)
        print(f'note: {name}: {compared} of {asked} answers compared', flush=True)

    def test_1_6_3(self):
        self.compare('1.6.3')

    def test_2_0_1(self):
        self.compare('2.0.1')

    def test_4_1(self):
        self.compare('4.1 test')

    def test_what_is_not_asked_is_in_the_table(self):
        known = {x for _, questions in table.SECTIONS for q in questions for x in q[:2]}
        self.assertEqual([x for x in NOT_ASKED if x not in known], [])


if __name__ == '__main__':
    unittest.main(verbosity=2)
