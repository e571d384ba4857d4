#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Symbols of a Linux kernel for volatility3, from what the kernel has of itself: its BTF and kallsyms,
without a debug package.

    isf_from_btf.py VMLINUZ KALLSYMS OUTPUT.json[.xz]

VMLINUZ is the kernel's compressed image, KALLSYMS what /proc/kallsyms said (to root). The format is
volatility3's Intermediate Symbol Format, schema 6.2.0 (volatility3/schemas/schema-6.2.0.json).
"""

import base64
import json
import lzma
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import vmlinux  # noqa: E402
from kernel_structs import BTF_ARRAY, BTF_ENUM, BTF_ENUM64, BTF_INT, BTF_STRUCT, BTF_UNION  # noqa: E402
from kernel_structs import BTF_FUNC_PROTO, BTF_VAR  # noqa: E402
from vmlinux import BTF_FLOAT, BTF_FWD, BTF_PTR  # noqa: E402

VOID = {'kind': 'base', 'name': 'void'}


class Types:
    """BTF's types in ISF's words. What has no name there gets one from its number."""

    def __init__(self, btf):
        self.types, strings = vmlinux.btf_types(btf)
        self.strings = bytes(strings)
        self.base, self.user, self.enums = {}, {}, {}
        self.base['void'] = {'endian': 'little', 'kind': 'void', 'signed': False, 'size': 0}
        self.base['pointer'] = {'endian': 'little', 'kind': 'int', 'signed': False, 'size': 8}
        self.by_name = {}
        for number, kind in enumerate(self.types[1:], 1):
            self.take(number, kind)

    def name(self, offset):
        return vmlinux.string_at(self.strings, offset)

    def name_of(self, number):
        return self.name(self.types[number].name) or f'unnamed_{number:x}'

    def take(self, number, kind):
        name = self.name_of(number)
        if kind.kind == BTF_INT:
            self.take_integer(name, kind)
        elif kind.kind == BTF_FLOAT:
            self.base[name] = {'endian': 'little', 'kind': 'float', 'signed': True, 'size': kind.size}
        elif kind.kind in (BTF_STRUCT, BTF_UNION):
            # Several of one name (in different files): the first, as there is nothing to tell them by.
            if name not in self.user:
                self.user[name] = self.record(kind)
                self.by_name[name] = number
        elif kind.kind in (BTF_ENUM, BTF_ENUM64):
            self.enums.setdefault(name, self.enumeration(kind))

    def take_integer(self, name, kind):
        encoding = kind.members[0] >> 24 & 0xf
        word = 'bool' if encoding & 4 else 'char' if kind.size == 1 else 'int'
        self.base[name] = {'endian': 'little', 'kind': word, 'signed': bool(encoding & 1),
                           'size': kind.size}

    def record(self, kind):
        fields = {}
        for number, (name, of, at) in enumerate(vmlinux.in_groups(kind.members, 3)):
            width, at = (at >> 24, at & 0xffffff) if kind.flag else (0, at)
            described = self.describe(of)
            offset = at // 8
            if width:
                size = self.size(of)
                offset = at // (8 * size) * size
                described = {'kind': 'bitfield', 'bit_length': width,
                             'bit_position': at - 8 * offset, 'type': described}
            field = {'offset': offset, 'type': described}
            text = self.name(name)
            if not text:
                text, field['anonymous'] = f'unnamed_field_{number:x}', True
            fields[text] = field
        return {'kind': 'struct' if kind.kind == BTF_STRUCT else 'union', 'size': kind.size,
                'fields': fields}

    def enumeration(self, kind):
        constants = {}
        for name, *value in vmlinux.in_groups(kind.members, 2 if kind.kind == BTF_ENUM else 3):
            value = value[0] if len(value) == 1 else value[0] | value[1] << 32
            bits = 8 * kind.size
            if kind.flag and value >> bits - 1:
                value -= 1 << bits  # signed
            constants[self.name(name)] = value
        base = {1: 'unsigned char', 2: 'short unsigned int', 4: 'unsigned int',
                8: 'long unsigned int'}[kind.size]
        return {'size': kind.size, 'base': base, 'constants': constants}

    def size(self, number):
        kind = self.types[number]
        if kind.kind in (BTF_INT, BTF_STRUCT, BTF_UNION, BTF_ENUM, BTF_ENUM64, BTF_FLOAT):
            return kind.size
        return 8 if kind.kind == BTF_PTR else self.size(kind.size)

    def describe(self, number):
        if not number:
            return VOID
        kind = self.types[number]
        if kind.kind == BTF_PTR:
            return {'kind': 'pointer', 'subtype': self.describe(kind.size)}
        if kind.kind == BTF_ARRAY:
            return {'kind': 'array', 'count': kind.members[2],
                    'subtype': self.describe(kind.members[0])}
        if kind.kind in (BTF_STRUCT, BTF_UNION):
            return {'kind': 'struct' if kind.kind == BTF_STRUCT else 'union',
                    'name': self.name_of(number)}
        if kind.kind in (BTF_ENUM, BTF_ENUM64):
            return {'kind': 'enum', 'name': self.name_of(number)}
        if kind.kind == BTF_FWD:
            return {'kind': 'union' if kind.flag else 'struct', 'name': self.name_of(number)}
        if kind.kind in (BTF_INT, BTF_FLOAT):
            return {'kind': 'base', 'name': self.name_of(number)}
        if kind.kind == BTF_FUNC_PROTO:
            return {'kind': 'function'}
        return self.describe(kind.size)  # typedef, const, volatile, restrict, tags

    def variables(self):
        """{name: type}: per-CPU ones by BTF, a few others by vmlinux.VARIABLES."""
        found = {self.name(t.name): self.describe(t.size) for t in self.types[1:]
                 if t.kind == BTF_VAR}
        for name, (record, pointers) in vmlinux.VARIABLES.items():
            found[name] = {'kind': 'struct', 'name': record}
            for _ in range(pointers):
                found[name] = {'kind': 'pointer', 'subtype': found[name]}
        return found


def text_at(elf, sections, address):
    """The zero-terminated text at an address of the kernel as linked, with its end."""
    held = next(s for s in sections if s.addr and s.addr <= address < s.addr + s.size)
    at = held.offset + address - held.addr
    return elf[at:elf.index(b'\0', at) + 1]


def isf(vmlinuz, kallsyms):
    """The document. `kallsyms` is text."""
    elf = vmlinux.unpack(vmlinuz)
    sections = vmlinux.sections(elf)
    by_name = {s.name: s for s in sections}
    btf = by_name['.BTF']
    types = Types(elf[btf.offset:][:btf.size])
    variables = types.variables()
    symbols = {name: {'address': address, **({'type': variables[name]} if name in variables else {})}
               for name, (address, _)
               in vmlinux.symbols(kallsyms, by_name['.text'].addr).items()}
    # What volatility3 knows the kernel by (init/version.c).
    banner = text_at(elf, sections, symbols['linux_banner']['address'])
    symbols['linux_banner'].update(
        type={'kind': 'array', 'count': len(banner), 'subtype': {'kind': 'base', 'name': 'char'}},
        constant_data=base64.b64encode(banner).decode())
    return {'metadata': {'format': '6.2.0', 'producer': {'name': 'isf_from_btf', 'version': '1.0.0'},
                         'linux': {'symbols': [{'kind': 'system-map', 'name': 'kallsyms'}],
                                   'types': [{'kind': 'symtab', 'name': 'BTF'}]}},
            'base_types': types.base, 'user_types': types.user, 'enums': types.enums,
            'symbols': symbols}


def write(document, path):
    text = json.dumps(document).encode()
    Path(path).write_bytes(lzma.compress(text, preset=1) if str(path).endswith('.xz') else text)


def main():
    vmlinuz, kallsyms, path = sys.argv[1:]
    write(isf(vmlinuz, Path(kallsyms).read_text()), path)


if __name__ == '__main__':
    main()
