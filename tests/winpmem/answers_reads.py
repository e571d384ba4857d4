# SPDX-License-Identifier: Apache-2.0
"""What each driver makes of reads, in each mode."""

from answers import MIB, NOT_MAPPED, SOMEWHERE, act_next_read, complaints, each_failing
from lab import PAGE, Hung, content_text, read_text
from machine import (CLOSE, FAIL_AT, FAST, FROM_MAPS, FROM_READS, HIDE, IOSPACE as SET_IOSPACE,
                     IOSPACE_NULL, IOSPACE_STOPS, IRP, KERNEL_VA, LENIENT, OPEN, READ, STOPPED,
                     UNLOAD, VBS_EVENT)
from originals import IOSPACE, PHYSICAL, PTE, status_text

HIGH = 1 << 32  # where the upper bank begins
HIGH_BYTES = 16 * MIB

GENERAL_PROTECTION, MACHINE_CHECK = 13, 18


def read(lab, mode, address, length):
    m, h = lab.in_mode(mode)
    said = len(m.log())
    return read_text(m, h, address, length) + complaints(m, said)


def read_into(lab, mode, where):
    m, h = lab.in_mode(mode)
    buffers = {'NULL': 0, 'in the kernel': KERNEL_VA, 'unmapped': NOT_MAPPED,
               'read-only': m.box.user_read_only}
    a = m.read(h, SOMEWHERE, PAGE, buffers[where])
    return status_text(a.status)


def read_hidden(lab, mode, before, event=GENERAL_PROTECTION):
    """Secure memory behind so many good pages, and one behind it; then a good page again."""
    m, h = lab.in_mode(mode, 'vbs')
    m.set(VBS_EVENT, event)
    assert m.request(HIDE, FROM_READS, SOMEWHERE // PAGE, 1, 1).status == 0
    try:
        text = read_text(m, h, SOMEWHERE - before * PAGE, (before + 2) * PAGE)
        return text + '; the next: ' + read_text(m, h, SOMEWHERE + MIB, PAGE)
    finally:
        if lab.machine and lab.machine.box.state != STOPPED:
            m.request(HIDE, FROM_READS, SOMEWHERE // PAGE, 1, 0)


def read_refused(lab, mode, before):
    """A page that Windows does not map."""
    m, h = lab.in_mode(mode)
    m.request(HIDE, FROM_MAPS, SOMEWHERE // PAGE, 1, 1)
    try:
        return read_text(m, h, SOMEWHERE - before * PAGE, (before + 2) * PAGE)
    finally:
        m.request(HIDE, FROM_MAPS, SOMEWHERE // PAGE, 1, 0)


def read_iospace(lab, policy):
    m, h = lab.in_mode(IOSPACE)
    m.set(SET_IOSPACE, policy)
    return read_text(m, h, SOMEWHERE, PAGE)


def act_read(lab, m, h):
    return read_text(m, h, SOMEWHERE, 2 * PAGE)


def read_without_memory(lab, mode, fast):
    def prepare(lab):
        m, h = lab.in_mode(mode)
        if fast:
            m.read(h, SOMEWHERE, PAGE)
        return m, h

    return each_failing(lab, prepare, act_read, act_next_read)


def read_without_mdl(lab):
    """Were it not for the look at the IRQL on the way back to the program."""
    m, h = lab.in_mode(PTE)
    m.read(h, SOMEWHERE, PAGE)
    m.set(LENIENT, 1)
    m.set(FAIL_AT, 1)
    first = read_text(m, h, SOMEWHERE, 2 * PAGE)
    try:
        return f'{first}; the next: {read_text(m, h, SOMEWHERE, PAGE)}'
    except Hung:
        lab.close()
        return f'{first}; the next: **hangs**'


def paths(lab, mode):
    """How the I/O manager gets its bytes: the first read, the second, one that fails."""
    names = {FAST: 'fast', IRP: 'IRP', FAST | IRP: 'fast, then IRP'}
    m, h = lab.in_mode(mode, 'vbs')
    m.request(HIDE, FROM_READS, SOMEWHERE // PAGE, 1, 1)
    ways = [names[m.read(h, address, PAGE).value[0]]
            for address in (SOMEWHERE + PAGE, SOMEWHERE + PAGE)]
    if mode == PTE:
        ways.append(names[m.read(h, SOMEWHERE, PAGE).value[0]] + ' on failure')
    m.request(HIDE, FROM_READS, SOMEWHERE // PAGE, 1, 0)
    return ', '.join(ways)


# --- the TLB ---

# Where each driver's invlpg is, and as many bytes of NOP.
INVLPG = {'1.6.3': 0x1990, '1.6.3 attested': 0x1990, '2.0.1': 0x1720, '4.1 test': 0x16E3}
NOP = b'\x0f\x1f\x00'


def alternate(lab, flushing):
    """
    Two pages in turn, singly and in one request: PTE mode must make the processor forget the last
    one. Not `flushing`: the driver's invlpg is overwritten, to see that this machine shows it.
    """
    m, h = lab.in_mode(PTE, patch=None if flushing else (INVLPG[lab.original.name], NOP))
    texts = [read_text(m, h, address, PAGE) for address in (SOMEWHERE, SOMEWHERE + MIB) * 4]
    texts.append(read_text(m, h, SOMEWHERE, 16 * PAGE))
    # How many are wrong depends on what else was in QEMU's TLB.
    return 'ok, right' if set(texts) == {'ok, right'} else 'ok, some pages are **another\'s**'


def affinity(lab, mode):
    m, h = lab.in_mode(mode)
    m.read(h, SOMEWHERE, PAGE)
    m.read(h, SOMEWHERE, PAGE)
    kept = m.counters()['affinity']
    return f'left at {kept:#x}' if kept else 'as before'


def level(lab, mode):
    m, h = lab.in_mode(mode)
    before = m.counters()['mapped_above_passive']
    m.read(h, SOMEWHERE, 2 * PAGE)
    above = m.counters()['mapped_above_passive'] - before
    return 'APC_LEVEL (PASSIVE_LEVEL is required)' if above else 'PASSIVE_LEVEL'


# --- handles ---

def second_reader(lab, mode):
    """A read while another thread is in the middle of one."""
    m, h = lab.in_mode(mode)
    other = m.open()
    # The second thread's buffer lies behind the first one's.
    buffer = m.put(0x400000, b'\xee' * 4 * PAGE)
    m.meanwhile('IoAllocateMdl' if lab.original.family == 'neither' else 'ZwMapViewOfSection', 2,
                READ, other, buffer, 4 * PAGE, SOMEWHERE + MIB)
    first = read_text(m, h, SOMEWHERE, 4 * PAGE)
    if not m.box.other_reply.done:
        return f'{first}; the other: did not run'
    data = m.get(0x400000, 4 * PAGE)
    return (f'{first}; the other: {status_text(m.box.other_reply.status)}, '
            f'{content_text(m, SOMEWHERE + MIB, data)}')


def closed_meanwhile(lab, mode):
    """Another process closes its handle while one reads."""
    m, h = lab.in_mode(mode)
    other = m.open()
    m.read(h, SOMEWHERE, PAGE)
    m.handles.remove(other)
    export = {PHYSICAL: 'ZwMapViewOfSection', IOSPACE: 'MmMapIoSpace'}.get(
        mode, 'IoAllocateMdl' if lab.original.family == 'neither' else 'ExReleaseFastMutex')
    m.meanwhile(export, 2 if export != 'ExReleaseFastMutex' else 1, CLOSE, other)
    return read_text(m, h, SOMEWHERE, 4 * PAGE)


def unload_open(lab):
    m, h = lab.in_mode(PTE)
    status = m.unload()
    again = m.request(OPEN, 3).status
    text = f'{status_text(status)}; open: {status_text(again)}; read: ' + \
        read_text(m, h, SOMEWHERE, PAGE)
    said = len(m.log())
    m.close(h)
    gone = 'gone' if not m.counters()['image_pages'] else 'still there'
    return text + f'; closed: {gone}' + complaints(m, said)


def unload_reading(lab):
    """It is asked for in the middle of a read."""
    m, h = lab.in_mode(PTE)
    m.meanwhile('ExReleaseFastMutex', 1, UNLOAD)
    text = read_text(m, h, SOMEWHERE, 4 * PAGE)
    m.close(h)
    gone = 'gone' if not m.counters()['image_pages'] else 'still there'
    return text + f'; closed: {gone}'


def closed_reading(lab):
    """One's own handle is closed by another thread in the middle of a read."""
    m, h = lab.in_mode(PTE)
    m.meanwhile('ExReleaseFastMutex', 1, CLOSE, h)
    text = read_text(m, h, SOMEWHERE, 4 * PAGE)
    m.handles.remove(h)
    return text + f'; then: {status_text(m.request(READ, h, m.box.user_va, PAGE, 0).status)}'


# Where a page table entry can point, but nothing is. Of the other modes the kernel decides.
BEYOND = [
    ('the first page beyond the processor\'s addresses (2^40)', 1 << 40, PAGE),
    ('the last page below 2^52', (1 << 52) - PAGE, PAGE),
    ('2^52 + 0x2000000', (1 << 52) + SOMEWHERE, PAGE),
    ('the last page below 2^63', (1 << 63) - PAGE, PAGE),
]

PLACES = [
    ('a page', SOMEWHERE, PAGE),
    ('a page above 4 GiB', HIGH + 8 * MIB, PAGE),
    ('page 0', 0, PAGE),
    ('pages 0 and 1', 0, 2 * PAGE),
    ('byte 1', 1, 1),
    ('1 byte', SOMEWHERE + 5, 1),
    ('100 bytes across a page boundary', SOMEWHERE + PAGE - 50, 100),
    ('3 pages from the middle of one on', SOMEWHERE + 0x800, 3 * PAGE),
    ('0 bytes', SOMEWHERE, 0),
    ('1 MiB', SOMEWHERE - MIB, MIB),
    ('4 MiB', SOMEWHERE - 4 * MIB, 4 * MIB),
    ('4 MiB less a byte', SOMEWHERE - 4 * MIB, 4 * MIB - 1),
    ('the last page of RAM and the next one', HIGH + HIGH_BYTES - PAGE, 2 * PAGE),
    ('a page in the hole below 4 GiB', 0x70000000, PAGE),
    ('a page far beyond RAM', 1 << 38, PAGE),
]

BUFFERS = ['NULL', 'in the kernel', 'unmapped', 'read-only']


def section_of(mode):
    places = PLACES + (BEYOND if mode == PTE else [])
    questions = [(words, read, mode, address, length) for words, address, length in places]
    questions += [(f'a page, the buffer: {where}', read_into, mode, where) for where in BUFFERS]
    questions += [
        ('path of the first read, of later reads', paths, mode),
        ('a page of secure memory', read_hidden, mode, 0),
        ('a page of secure memory after 2 good pages', read_hidden, mode, 2),
        ('a page of secure memory, if it raised a machine check', read_hidden, mode, 0,
         MACHINE_CHECK),
        ('a page that Windows refuses to map after 2 good pages', read_refused, mode, 2),
        ('2 pages, each allocation failing in turn', read_without_memory, mode, False),
        ('the same in a later read', read_without_memory, mode, True),
        ('another handle is closed during the read', closed_meanwhile, mode),
    ]
    return questions


IOSPACES = [
    ('a page, if MmMapIoSpace() stops Windows for unlocked RAM', read_iospace, IOSPACE_STOPS),
    ('a page, if MmMapIoSpace() returns NULL for RAM', read_iospace, IOSPACE_NULL),
]

TOGETHER = [
    ('PTE: two pages read alternately', alternate, True),
    ('PTE: the same, with its invlpg overwritten', alternate, False),
    ('PTE: affinity of the thread after a read', affinity, PTE),
    ('PHYSICAL: IRQL at ZwMapViewOfSection()', level, PHYSICAL),
    ('PTE: the first allocation of a later read fails, if Windows did not check the IRQL',
     read_without_mdl),
    ('PHYSICAL: another thread reads during a read', second_reader, PHYSICAL),
    ('unloaded while a handle is open', unload_open),
    ('unloaded during a read', unload_reading),
    ('the handle is closed during a read', closed_reading),
]
