# SPDX-License-Identifier: Apache-2.0
"""
A second way to Linux's process list, for a memory image of the guest: offsets from the kernel's BTF,
addresses from /proc/kallsyms and /proc/iomem, no page tables. It can also take a process out of the
list, as a rootkit does.

    kernel = Kernel(btf, kallsyms, code)   # bytes, text, physical address of "Kernel code"
    for task in kernel.tasks(memory): ...  # memory: read(pa, size), write(pa, bytes)
"""

import struct
from collections import namedtuple

KERNEL_MAP = 0xffffffff80000000  # Documentation/arch/x86/x86_64/mm.rst: the kernel's text mapping

# include/uapi/linux/btf.h: what follows struct btf_type, by its kind
BTF_INT, BTF_ARRAY, BTF_STRUCT, BTF_UNION, BTF_ENUM, BTF_FUNC_PROTO = 1, 3, 4, 5, 6, 13
BTF_VAR, BTF_DATASEC, BTF_DECL_TAG, BTF_ENUM64 = 14, 15, 17, 19

Task = namedtuple('Task', 'address pid name')


def trailer(kind, count):
    """Bytes between a struct btf_type and the next."""
    per_member = {BTF_STRUCT: 12, BTF_UNION: 12, BTF_ENUM: 8, BTF_FUNC_PROTO: 8, BTF_DATASEC: 12,
                  BTF_ENUM64: 12}
    once = {BTF_INT: 4, BTF_ARRAY: 12, BTF_VAR: 4, BTF_DECL_TAG: 4}
    return once.get(kind, 0) + per_member.get(kind, 0) * count


def offsets(btf, struct_name, wanted):
    """{member: byte offset} of a structure's own members."""
    magic, _, _, header, types, types_size, strings, _ = struct.unpack_from('<HBBIIIII', btf)
    assert magic == 0xeb9f

    def name_at(offset):
        begin = header + strings + offset
        return btf[begin:btf.index(b'\0', begin)].decode()

    at, end = header + types, header + types + types_size
    while at < end:
        name, info, _ = struct.unpack_from('<III', btf, at)
        kind, count = info >> 24 & 0x1f, info & 0xffff
        if kind == BTF_STRUCT and name_at(name) == struct_name:
            members = [struct.unpack_from('<III', btf, at + 12 + 12 * i) for i in range(count)]
            # With kind_flag the upper 8 bits of an offset are the width of a bit field.
            found = {name_at(n): (o & 0xffffff) // 8 for n, _, o in members}
            if set(wanted) <= set(found):
                return {w: found[w] for w in wanted}
        at += 12 + trailer(kind, count)
    raise KeyError(struct_name)


class Kernel:
    def __init__(self, btf, kallsyms, code):
        self.at = offsets(btf, 'task_struct', ('tasks', 'pid', 'comm'))
        self.symbols = {line.split()[2]: int(line.split()[0], 16)
                        for line in kallsyms.splitlines()}
        self.image = self.symbols['_text'] - code
        self.direct_map = None

    def physical(self, memory, va):
        if va >= KERNEL_MAP:
            return va - self.image
        if self.direct_map is None:
            self.direct_map = self.word(memory, self.symbols['page_offset_base'])
        return va - self.direct_map

    def word(self, memory, va):
        return struct.unpack('<Q', memory.read(self.physical(memory, va), 8))[0]

    def put_word(self, memory, va, value):
        memory.write(self.physical(memory, va), struct.pack('<Q', value))

    def tasks(self, memory):
        """The whole list, from init_task on, which is its first."""
        found, first = [], self.symbols['init_task']
        task = first
        while task != first or not found:
            pid, = struct.unpack('<I', memory.read(self.physical(memory, task + self.at['pid']), 4))
            comm = memory.read(self.physical(memory, task + self.at['comm']), 16)
            found.append(Task(task, pid, comm.split(b'\0')[0].decode()))
            task = self.word(memory, task + self.at['tasks']) - self.at['tasks']
        return found

    def unlink(self, memory, task):
        """The neighbours point past it. Its own pointers stay, as a rootkit would leave them."""
        link = task.address + self.at['tasks']
        following, before = self.word(memory, link), self.word(memory, link + 8)
        self.put_word(memory, before, following)
        self.put_word(memory, following + 8, before)
