# SPDX-License-Identifier: Apache-2.0
"""
What the stand-in driver (fixture.c) is told to be: each generation of WinPmem, over memory of our
own.
"""

import random
import struct

PAGE = 4096
MIB = 1 << 20
GIB = 1 << 30

# NTSTATUS (ntstatus.h)
UNSUCCESSFUL = 0xc0000001
INVALID_PARAMETER = 0xc000000d
ACCESS_DENIED = 0xc0000022
INFO_LENGTH_MISMATCH = 0xc0000004
INVALID_DEVICE_REQUEST = 0xc0000010
NOT_SUPPORTED = 0xc00000bb

IOSPACE, PHYSICAL, PTE = range(3)
NEITHER = {'get_info': 0x22c40f, 'set_mode': 0x22c407, 'null_status': INVALID_PARAMETER,
           'refuses_empty': 1}
BUFFERED = {'get_info': 0x22c40c, 'set_mode': 0x22c404, 'buffered': 1,
            'null_status': INFO_LENGTH_MISMATCH, 'refuses_empty': 0}

# Bad pages (fixture.c, enum kind).
GOOD, SECURE, SECURE_MACHINE_CHECK, UNMAPPED = range(4)

# Requests of the stand-in's own, and what it counts: struct log.
REQUEST_CONFIG, REQUEST_LOG = 0x223ff8, 0x223ffc
LOG = ('mode modes_set iospace_set reads largest_read bytes stopped opens by_iospace '
       'by_physical by_pte').split()
LOG_BYTES = 8 * len(LOG)
KERNEL_BASE = 0xfffff80312345000

RUNS = [(0x1000, 0x9e000), (0x100000, 0x300000), (4 * GIB, 0x200000),
        (0x4000000000, 0x1000)]


def many(count):
    return [(GIB + i * 0x3000, 0x2000) for i in range(count)]


def resource_list(runs):
    """CM_RESOURCE_LIST with an interrupt first; what is large is a large descriptor."""
    def descriptor(kind, flags, start, length):
        return struct.pack('<BBHQII', kind, 0, flags, start, length, 0)
    memory = [descriptor(7, 0x200, base, length >> 8) if length >= MIB
              else descriptor(3, 0, base, length) for base, length in runs]
    return (struct.pack('<IIIHHI', 1, 0, 0, 1, 1, 1 + len(runs)) + descriptor(2, 0, 0, 1)
            + b''.join(memory))


def info(runs, kpcrs=64, capacity=20, trailing=False, poke=None, cr3=0x1ad002):
    """WINPMEM_MEMORY_INFO; `trailing` is how 1.x tells one range more than there is."""
    count_at = 32 + 8 * kpcrs + 4 * 8 + 0xfe * 8
    size = count_at + 8 + 16 * (len(runs) + 1 if trailing else capacity)
    data = bytearray(size)
    struct.pack_into('<QQQ', data, 0, cr3, 0xf0004a65, KERNEL_BASE)
    struct.pack_into('<Q', data, count_at, len(runs))
    for i, run in enumerate(runs[:(size - count_at - 8) // 16]):
        struct.pack_into('<QQ', data, count_at + 8 + 16 * i, *run)
    for at, value in (poke or {}).items():
        struct.pack_into('<Q', data, count_at + at, value)
    return bytes(data)


class Memory:
    """
    What the stand-in is given; see struct config in fixture.c. `runs` is RAM as the driver tells it
    in `told`, and `ram`, if that is more, what there is. `bad`: pages of secure memory; `unmapped`:
    such as Windows does not map.
    """
    ORDER = ('get_info set_mode set_mode_too old_info denied least_out told info_status '
             'null_status unknown_status first_mode set_once pte_status physical_status silent '
             'refuses_zero refuses_empty iospace phys_bits buffered entry_status dies_after '
             'hangs_after leaves no_device').split()
    folder = None  # where the stand-in looks for all this

    def __init__(self, runs=RUNS, told=None, registry=None, bad=(), unmapped=(), seed=1,
                 content=None, ram=None, capacity=None, **more):
        self.runs = runs
        self.ram = ram or runs
        self.bad = set(bad)
        self.kinds = {**dict.fromkeys(bad, SECURE), **dict.fromkeys(unmapped, UNMAPPED)}
        self.told = told if told is not None else info(runs)
        self.registry = resource_list(runs) if registry is None else registry
        too_many = capacity is not None and len(runs) > capacity
        self.config = {name: 0 for name in self.ORDER}
        self.config.update({
            'least_out': len(self.told), 'told': len(self.told),
            'info_status': INFO_LENGTH_MISMATCH if too_many else 0,
            'null_status': INFO_LENGTH_MISMATCH, 'unknown_status': INVALID_PARAMETER,
            'first_mode': PHYSICAL, 'silent': 1, 'phys_bits': 40, **NEITHER, **more})
        # A mode that can be set twice is.
        self.modes_set = 1 if self.config['set_once'] else 2
        draw = random.Random(seed)
        self.content = content or [draw.randbytes(length // 2) + bytes(length - length // 2)
                                   for _, length in self.ram]
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / 'log').unlink(missing_ok=True)
        (self.folder / 'image').write_bytes(b''.join(self.content))
        self.write()

    def write(self):
        """The config; the image stays."""
        parts, at = b'', 0
        for base, length in self.ram:
            parts += struct.pack('<QQQ', base, length, at)
            at += length
        pages = b''.join(struct.pack('<QQQ', page, page + PAGE - 1, kind)
                         for page, kind in sorted(self.kinds.items()))
        (self.folder / 'config').write_bytes(
            struct.pack('<Q', 0x5846535245414c01)
            + b''.join(struct.pack('<Q', self.config[name]) for name in self.ORDER)
            + struct.pack('<QQQQ', len(self.ram), len(self.kinds), len(self.told),
                          len(self.registry))
            + parts + pages + self.told + self.registry)


# What follows is held against the originals' answers by test_standin.py.

OF_1_6_3 = {'first_mode': PTE, 'old_info': 0x22c400, **BUFFERED}
OF_2_0_1 = {'set_mode_too': 0x22c417, 'capacity': 20}
LATER = {'first_mode': IOSPACE, 'set_once': 1, 'refuses_zero': 1, 'silent': 0, 'capacity': 20,
         'denied': 0x22c413}


def gen1(**more):
    runs = more.pop('runs', RUNS)
    return Memory(runs, info(runs, 32, trailing=True), **{**OF_1_6_3, **more})


def gen2(**more):
    return Memory(**{**OF_2_0_1, **more})


def gen3(**more):
    """3.x, 4.0.1, and the 4.1 that was published for tests."""
    return Memory(**{**LATER, **more})


def gen41(**more):
    """4.1 as its sources have it."""
    runs = more.pop('runs', RUNS)
    return Memory(runs, info(runs, capacity=300), **{**LATER, 'capacity': 300, **more})
