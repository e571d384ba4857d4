# SPDX-License-Identifier: Apache-2.0
"""
What each driver answers when it is loaded, asked, and run out of memory. A section is a list of
questions: words, a function of a Lab (lab.py), and its arguments. answers_reads.py has the reads.
"""

import struct

from lab import PAGE, ioctl_text, read_text
from machine import (FAIL_AT, FAR, JUNK, KERNEL_VA, MODULES, PROCESSORS, RANGES, READ_DATA,
                     SECURE, Stopped)
from originals import IOSPACE, MODES, PHYSICAL, PTE, status_text

MIB = 1 << 20

# In the RAM that never changes.
SOMEWHERE = 0x2000000

NOT_MAPPED = 0x7FF00000000

# What is alive on behalf of a driver, and should not be any more when it has gone.
ALIVE = {'pool_blocks': 'blocks of pool', 'pages_locked': 'locked pages',
         'system_ptes': 'system PTEs', 'views': 'views', 'handles': 'handles',
         'devices': 'devices', 'links': 'links', 'image_pages': 'pages of its image'}


def complaints(m, before):
    """What Driver Verifier would not have let pass since the log was `before` characters long."""
    return ''.join('; ' + line[2:] for line in m.log()[before:].splitlines()
                   if line.startswith('! '))


def left(m, before):
    """What there is more of than before."""
    now = m.counters()
    more = [(now[name] - before[name], what) for name, what in ALIVE.items()]
    return ''.join(f'; {what} left: {n}' for n, what in more if n)


# --- loading ---

def load(lab):
    m = lab.bare()
    before = len(m.log())
    return status_text(m.load(lab.file)) + complaints(m, before)


def version(lab):
    m, _ = lab.fresh()
    return next(line[2:].strip() for line in m.log().splitlines() if 'WinPMEM' in line)


def device_access(lab):
    m = lab.bare()
    before = len(m.log())
    m.load(lab.file)
    who = {'S-1-5-18': 'SYSTEM', 'S-1-5-32-...': 'Administrators'}
    return ' and '.join(who[line.split()[-1]] for line in m.log()[before:].splitlines()
                        if line.startswith('device security'))


def registry(lab, exported):
    """The machine must be new: its registry remembers."""
    lab.close()
    m = lab.bare()
    m.set(SECURE, exported)
    m.load(lab.file)
    m.unload()
    c = m.counters()
    return f'{c["keys_created"]} keys created, {c["values_set"]} values set, none removed'


def load_far(lab):
    m = lab.bare()
    m.set(FAR, 1)
    before = m.counters()
    return status_text(m.load(lab.file)) + ('' if m.counters()['devices'] else left(m, before))


def load_twice(lab):
    m, _ = lab.fresh()
    return status_text(m.load(lab.file))


def unload(lab, asks):
    """After a read, and if it was asked for information before."""
    m = lab.bare()
    before = m.counters()
    m.load(lab.file)
    h = m.open()
    if asks:
        m.ioctl(h, lab.original.get_info, out_len=64 << 10)
    lab.set_mode(m, h, PTE)
    m.read(h, SOMEWHERE, MIB)
    m.close(h)
    said = len(m.log())
    return status_text(m.unload()) + complaints(m, said) + left(m, before)


# --- out of memory ---

def failed_name(m):
    number = m.counters()['failed']
    return m.box.exports[number].name.decode() if number < len(m.box.exports) else 'I/O manager'


def each_failing(lab, prepare, act, again=None):
    """
    act(lab, m, h) once for each of its allocations, which fails; then again(lab, m, h). Told once
    for all that end alike.
    """
    outcomes = {}
    for n in range(1, 100):
        failed = []

        def question(lab, n=n, failed=failed):
            m, h = prepare(lab)
            m.set(FAIL_AT, n)
            said = len(m.log())
            try:
                outcome = act(lab, m, h)
            finally:
                if m.counters()['failed']:
                    failed.append(failed_name(m))
            m.set(FAIL_AT, 0)
            return outcome + complaints(m, said) + (again(lab, m, h) if again else '')

        outcome = lab.ask(question)
        if not failed:
            break
        names = outcomes.setdefault(outcome, [])
        if failed[0] not in names:
            names.append(failed[0])
    return '<br>'.join(f'{", ".join(names)}: {outcome}' for outcome, names in outcomes.items())


def act_load(lab, m, _):
    before = m.counters()
    status = m.load(lab.file)
    return status_text(status) + (left(m, before) if status else '')


def load_without_memory(lab):
    return each_failing(lab, lambda lab: (lab.bare(), None), act_load)


def loads_of(lab):
    """How many allocations a load makes."""
    m = lab.bare()
    m.set(FAIL_AT, 0)
    m.load(lab.file)
    return m.counters()['allocations']


def after_failed_load(lab, act):
    """At the last allocation; then act(lab, m, h), if the device can be opened."""
    count = loads_of(lab)
    m = lab.bare()
    m.set(FAIL_AT, count)
    status = m.load(lab.file)
    m.set(FAIL_AT, 0)
    if status == 0:
        return 'the load succeeds all the same'
    if not m.counters()['devices']:
        return 'there is no device'
    return act(lab, m, m.open())


def act_modes(lab, m, h):
    return ', '.join(f'{MODES[mode]}: {status_text(lab.set_mode(m, h, mode))}'
                     for mode in (PTE, PHYSICAL))


def act_read(lab, m, h):
    lab.set_mode(m, h, PHYSICAL)
    return read_text(m, h, SOMEWHERE, PAGE)


def act_unload(lab, m, h):
    m.close(h)
    said = len(m.log())
    return status_text(m.unload()) + complaints(m, said)


def act_info(lab, m, h):
    return ioctl_text(m.ioctl(h, lab.original.get_info, out_len=64 << 10))


def act_set_pte(lab, m, h):
    return status_text(lab.set_mode(m, h, PTE))


def act_next_read(lab, m, h):
    text = read_text(m, h, SOMEWHERE + MIB, PAGE)
    return '' if text == 'ok, right' else '; the next read: ' + text


def request_without_memory(lab, act):
    """And a read afterwards."""
    return each_failing(lab, lambda lab: lab.fresh(), act, act_next_read)


# --- five levels of page tables ---

def la57_load(lab, junk):
    """`junk` is what new pool holds; None: the address of a number of the kernel's."""
    lab.close()
    m = lab.bare('la57')
    victim = type(m.box).other.offset
    m.box.other.op = 0
    m.set(JUNK, KERNEL_VA + victim if junk is None else junk)
    said = len(m.log())
    status = m.load(lab.file)
    changed = '; **a number of the kernel was changed**' if m.box.other.op else ''
    return status_text(status) + changed + complaints(m, said)


def la57_mode(lab, mode):
    """Where it can be loaded at all."""
    lab.close()
    m = lab.bare('la57')
    try:
        m.load(lab.file)
    except Stopped:
        lab.close()
        return '(stopped while loading)'
    h = m.open()
    status = lab.set_mode(m, h, mode)
    if status:
        return status_text(status)
    return 'ok; read: ' + read_text(m, h, SOMEWHERE, PAGE)


# --- requests ---

def code_of(lab, code):
    return {'GET_INFO': lab.original.get_info, 'SET_MODE': lab.original.set_mode}.get(code, code)


def request(lab, code, data=b'', out_len=0, out=None, inp=None):
    m, h = lab.fresh()
    addresses = {'kernel': KERNEL_VA, 'not mapped': NOT_MAPPED, 'NULL': 0,
                 'read-only': m.box.user_read_only, 'small': m.box.user_va + m.OUTPUT}
    said = len(m.log())
    a = m.ioctl(h, code_of(lab, code), data, out_len, addresses.get(out), addresses.get(inp))
    return ioctl_text(a) + complaints(m, said)


def request_of_reader(lab):
    """A handle without write access."""
    m, h = lab.fresh()
    m.close(h)
    h = m.open(READ_DATA)
    return ioctl_text(m.ioctl(h, lab.original.get_info, out_len=64 << 10)) + '; read: ' + \
        read_text(m, h, SOMEWHERE, PAGE)


def info_leaks(lab):
    m, h = lab.fresh()
    before = m.counters()
    for _ in range(10):
        m.ioctl(h, lab.original.get_info, out_len=64 << 10)
    now = m.counters()
    return f'{(now["pool_bytes"] - before["pool_bytes"]) // 10} bytes of pool'


def info_ranges(lab, count, room):
    m, h = lab.fresh()
    ranges = b''.join(struct.pack('<QQ', (2 * i + 1) * MIB, MIB) for i in range(count))
    m.request(RANGES, m.put(0x100000, ranges), count)
    before = m.counters()
    a = m.ioctl(h, lab.original.get_info, out_len=room)
    told = ''
    if not a.status and a.information:
        at = 2352 if lab.original.family == 'buffered' else 2608
        told = f'; {struct.unpack_from("<Q", a.data, at)[0]} told'
    leaked = m.counters()['pool_bytes'] - before['pool_bytes']
    # The module list, which is lost whatever the number of ranges, has a row of its own.
    lost = f'; {leaked} bytes leaked' if a.status and leaked else ''
    return ioctl_text(a) + told + lost


def info_modules(lab, count):
    """How much of the module list is lost."""
    m, h = lab.fresh()
    m.set(MODULES, count)
    before = m.counters()
    m.ioctl(h, lab.original.get_info, out_len=64 << 10)
    return f'{m.counters()["pool_bytes"] - before["pool_bytes"]} bytes of pool'


def info_fields(lab):
    m, h = lab.fresh()
    m.set(PROCESSORS, 0xF)
    a = m.ioctl(h, lab.original.get_info, out_len=64 << 10)
    cr3, build, base, _ = struct.unpack_from('<4Q', a.data)
    slots = 32 if lab.original.family == 'buffered' else 64
    kpcrs = sum(1 for x in struct.unpack_from(f'<{slots}Q', a.data, 32) if x)
    return (f'CR3 of {"System" if cr3 == m.box.cr3_system else "the caller"}, build {build:#x}, '
            f'kernel base {"right" if KERNEL_VA <= base < KERNEL_VA + 0x100000 else hex(base)}, '
            f'{kpcrs} KPCRs of 4')


def info_affinity(lab):
    m, h = lab.fresh()
    m.set(PROCESSORS, 0xF)
    m.ioctl(h, lab.original.get_info, out_len=64 << 10)
    return f'left at {m.counters()["affinity"]:#x}' if m.counters()['affinity'] else 'restored'


# --- modes ---

def how_read(m, h):
    """By what the driver calls to read a page."""
    by = {'MmMapIoSpace': IOSPACE, 'ZwMapViewOfSection': PHYSICAL}
    before = m.calls()
    text = read_text(m, h, SOMEWHERE, PAGE)
    used = [MODES[mode] for name, mode in by.items() if m.calls()[name] > before[name]]
    return f'reads by {(used or ["PTE"])[0]}' if text.startswith('ok') else 'read: ' + text


def mode_used(lab, choose=()):
    """After these modes were chosen one after the other."""
    m, h = lab.fresh()
    chosen = [status_text(lab.set_mode(m, h, mode)) for mode in choose]
    return ', '.join([*chosen, how_read(m, h)])


def mode_of_other(lab):
    """Of a handle while another one chooses."""
    m, h = lab.in_mode(PTE)
    status = lab.set_mode(m, m.open(), PHYSICAL)
    return f'{status_text(status)}, {how_read(m, h)}'


def mode_of_next(lab):
    """Of a handle that is opened when the one that chose has been closed."""
    m, h = lab.in_mode(PTE)
    m.close(h)
    h = m.open()
    return f'SET_MODE: {status_text(lab.set_mode(m, h, PHYSICAL))}'


LOADING = [
    ('its name', version),
    ('DriverEntry()', load),
    ('who may open the device', device_access),
    ('registry, below `Control\\Class`', registry, 0),
    ('the same, if the kernel exported IoCreateDeviceSecure()', registry, 1),
    ('loaded, the kernel so large that its headers are not found', load_far),
    ('loaded a second time', load_twice),
    ('unloaded after a read of 1 MiB in PTE mode', unload, False),
    ('unloaded after GET_INFO and such a read', unload, True),
    ('loaded, each allocation failing in turn', load_without_memory),
    ('after the last of these failures: SET_MODE', after_failed_load, act_modes),
    ('after the last of these failures: SET_MODE PHYSICAL, and a read', after_failed_load,
     act_read),
    ('after the last of these failures: unloaded', after_failed_load, act_unload),
    ('five levels: loaded, new pool all zeros', la57_load, 0),
    ('five levels: loaded, new pool all 0xCD', la57_load, 0xCDCDCDCDCDCDCDCD),
    ('five levels: loaded, new pool full of old pointers', la57_load, None),
    ('five levels: SET_MODE PTE', la57_mode, PTE),
    ('five levels: SET_MODE PHYSICAL', la57_mode, PHYSICAL),
]

LENGTHS = (8, 2375, 2423, 2424, 2935, 2936, 64 << 10, MIB)

REQUESTS = [
    ('GET_INFO, no buffer', request, 'GET_INFO'),
    *[(f'GET_INFO, room for {n}', request, 'GET_INFO', b'', n) for n in LENGTHS],
    ('GET_INFO, 4 GiB less a byte at a smaller buffer', request, 'GET_INFO', b'', (4 << 30) - 1,
     'small'),
    ('GET_INFO, 64 KiB at NULL', request, 'GET_INFO', b'', 64 << 10, 'NULL'),
    ('GET_INFO, 64 KiB in the kernel', request, 'GET_INFO', b'', 64 << 10, 'kernel'),
    ('GET_INFO, 64 KiB of unmapped memory', request, 'GET_INFO', b'', 64 << 10, 'not mapped'),
    ('GET_INFO, a read-only page', request, 'GET_INFO', b'', PAGE, 'read-only'),
    ('GET_INFO, and a read, without write access', request_of_reader),
    ('GET_INFO: its fields', info_fields),
    ('GET_INFO: affinity of the thread afterwards', info_affinity),
    ('GET_INFO: leak of each success, 200 modules loaded', info_leaks),
    ('GET_INFO: leak of each success, 10 modules loaded', info_modules, 10),
    ('GET_INFO, each allocation failing in turn', request_without_memory, act_info),
    *[(f'GET_INFO, {n} ranges, room for {room >> 10} KiB', info_ranges, n, room)
      for n, room in ((20, 64 << 10), (21, 64 << 10), (100, 64 << 10), (300, 64 << 10),
                      (301, 64 << 10), (8000, 64 << 10), (8000, MIB))],
    ('SET_MODE, no buffer', request, 'SET_MODE'),
    ('SET_MODE, 1 byte', request, 'SET_MODE', b'\2'),
    ('SET_MODE, 3 bytes', request, 'SET_MODE', b'\2\0\0'),
    ('SET_MODE, 4 KiB', request, 'SET_MODE', b'\2' + bytes(PAGE - 1)),
    ('SET_MODE, 4 MiB', request, 'SET_MODE', b'\2' + bytes(4 * MIB - 1)),
    ('SET_MODE, 4 bytes at NULL', request, 'SET_MODE', bytes(4), 0, None, 'NULL'),
    ('SET_MODE, 4 bytes in the kernel', request, 'SET_MODE', bytes(4), 0, None, 'kernel'),
    ('SET_MODE, 4 bytes of unmapped memory', request, 'SET_MODE', bytes(4), 0, None, 'not mapped'),
    ('SET_MODE PTE, each allocation failing in turn', request_without_memory, act_set_pte),
    ('SET_MODE 3', request, 'SET_MODE', b'\3\0\0\0'),
    ('SET_MODE 0xFFFFFFFF', request, 'SET_MODE', b'\xff' * 4),
    ('0x22C404, SET_MODE buffered, PTE', request, 0x22C404, b'\2\0\0\0'),
    ('0x22C407, SET_MODE neither, PTE', request, 0x22C407, b'\2\0\0\0'),
    ('0x22C40C, GET_INFO buffered, 64 KiB', request, 0x22C40C, b'', 64 << 10),
    ('0x22C40F, GET_INFO neither, 64 KiB', request, 0x22C40F, b'', 64 << 10),
    ('0x22C400, the old GET_INFO, no buffer', request, 0x22C400),
    ('0x22C400, the old GET_INFO, room for 16', request, 0x22C400, b'', 16),
    ('0x22C400, the old GET_INFO, 64 KiB', request, 0x22C400, b'', 64 << 10),
    ('0x22C408, WRITE_ENABLE buffered', request, 0x22C408),
    ('0x22C40B, WRITE_ENABLE neither', request, 0x22C40B),
    ('0x22C413, reverse search', request, 0x22C413, bytes(8), 8),
    ('0x22C417, SET_MODE neither with another bit', request, 0x22C417, b'\2\0\0\0'),
    ('0x22C40D, GET_INFO with METHOD_IN_DIRECT', request, 0x22C40D, b'', 64 << 10),
    ('0x22C40E, GET_INFO with METHOD_OUT_DIRECT', request, 0x22C40E, b'', 64 << 10),
    ('0x22C7FC, an unknown request', request, 0x22C7FC),
    ('request 0', request, 0),
]

CHOICES = [
    ('a read before any SET_MODE', mode_used),
    ('SET_MODE IOSPACE', mode_used, (IOSPACE,)),
    ('SET_MODE PHYSICAL', mode_used, (PHYSICAL,)),
    ('SET_MODE PTE', mode_used, (PTE,)),
    ('SET_MODE PTE, PHYSICAL', mode_used, (PTE, PHYSICAL)),
    ('SET_MODE PHYSICAL, PTE', mode_used, (PHYSICAL, PTE)),
    ('SET_MODE IOSPACE, PTE', mode_used, (IOSPACE, PTE)),
    ('SET_MODE PTE, PTE', mode_used, (PTE, PTE)),
    ('SET_MODE PTE, then PHYSICAL on another handle: how the first handle reads', mode_of_other),
    ('SET_MODE PTE, handle closed and opened again, PHYSICAL', mode_of_next),
]
