# SPDX-License-Identifier: Apache-2.0
"""
A vmlinux with symbols and types for the guest's kernel, without Debian's debug package of a gigabyte:
the ELF file inside vmlinuz, as it is, with

- a symbol table, which is what /proc/kallsyms says, less what KASLR added;
- DWARF, which is the kernel's own BTF put in other words, and for some variables what type they have:
  BTF says it for per-CPU variables only.

    build(vmlinuz, kallsyms, path)   # paths and the text of /proc/kallsyms

crash, drgn and makedumpfile take it for the real one. It has no line numbers and no functions.
"""

import lzma
import struct
import subprocess
from bisect import bisect_right
from collections import namedtuple
from pathlib import Path

from kernel_structs import BTF_ARRAY, BTF_ENUM, BTF_ENUM64, BTF_INT, BTF_STRUCT, BTF_UNION, BTF_VAR
from kernel_structs import trailer

# include/uapi/linux/btf.h
BTF_PTR, BTF_FWD, BTF_TYPEDEF, BTF_VOLATILE, BTF_CONST, BTF_RESTRICT = 2, 7, 8, 9, 10, 11
BTF_FUNC_PROTO, BTF_FLOAT, BTF_TYPE_TAG = 13, 16, 18

# Variables that tools want to know the type of: the structure, and how many times a pointer to it
# (init/init_task.c, kernel/pid.c, init/version.c, mm/init-mm.c, mm/sparse.c).
VARIABLES = {
    'init_task': ('task_struct', 0),
    'init_pid_ns': ('pid_namespace', 0),
    'init_uts_ns': ('uts_namespace', 0),
    'init_mm': ('mm_struct', 0),
    'mem_section': ('mem_section', 2),
}

Section = namedtuple('Section', 'name type flags addr offset size link info align entsize')
Type = namedtuple('Type', 'name kind flag size members')  # `size` is the type referred to, for some

SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB = 1, 2, 3
SHF_ALLOC = 2
SHN_ABS = 0xfff1
EHDR, SHDR = struct.Struct('<16sHHIQQQIHHHHHH'), struct.Struct('<IIQQQQIIQQ')


# --- the ELF file inside vmlinuz ---

def unpack(vmlinuz):
    """Documentation/arch/x86/boot.rst: setup_sects, payload_offset, payload_length."""
    image = Path(vmlinuz).read_bytes()
    setup = (image[0x1f1] or 4) + 1
    offset, size = struct.unpack_from('<II', image, 0x248)
    packed = image[setup * 512 + offset:][:size]
    # Behind either are four bytes with the size of what was packed (scripts/Makefile.lib, size_append).
    if packed.startswith(b'\xfd7zXZ\0'):
        return lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(packed)
    if packed.startswith(b'\x28\xb5\x2f\xfd'):
        return subprocess.run(['zstd', '-dc'], input=packed[:-4], stdout=subprocess.PIPE, check=True).stdout
    raise ValueError(f'{vmlinuz} is compressed with neither xz nor zstd')


def string_at(table, offset):
    return table[offset:table.index(b'\0', offset)].decode()


def sections(elf):
    header = EHDR.unpack_from(elf)
    offset, count, names = header[6], header[12], header[13]
    raw = [Section(*SHDR.unpack_from(elf, offset + i * SHDR.size)) for i in range(count)]
    table = elf[raw[names].offset:][:raw[names].size]
    return [s._replace(name=string_at(table, s.name)) for s in raw]


def with_sections(elf, old, added):
    """The file again with more sections: `added` has (Section, bytes)."""
    out = bytearray(elf)
    kept = [s for s in old if s.name != '.shstrtab']
    for section, data in added:
        out += bytes(-len(out) % 8)
        kept.append(section._replace(offset=len(out), size=len(data)))
        out += data
    names, at = b'', []
    for name in [s.name for s in kept] + ['.shstrtab']:
        at.append(len(names))
        names += name.encode() + b'\0'
    kept.append(Section('.shstrtab', SHT_STRTAB, 0, 0, len(out), len(names), 0, 0, 1, 0))
    out += names
    out += bytes(-len(out) % 8)
    header = list(EHDR.unpack_from(elf))
    header[6], header[12], header[13] = len(out), len(kept), len(kept) - 1
    out[:EHDR.size] = EHDR.pack(*header)
    for section, name in zip(kept, at):
        out += SHDR.pack(*section._replace(name=name))
    return out


# --- symbols ---

def symbols(kallsyms, text):
    """{name: (address, letter)} of the kernel's own, as linked: `text` is where .text begins."""
    found = {}
    for line in kallsyms.splitlines():
        address, letter, name, *module = line.split()
        if not module:
            found.setdefault(name, (int(address, 16), letter))
    moved = found['_text'][0] - text
    # What lies lower is a per-CPU variable's offset, which nothing moves.
    return {name: (address - moved if address >= text else address, letter)
            for name, (address, letter) in found.items()}


def symbol_table(found, old):
    """(.symtab, .strtab, index of the first global one): those of sections, local ones, global ones."""
    held = sorted((s.addr, s.addr + s.size, i) for i, s in enumerate(old) if s.flags & SHF_ALLOC)
    begins = [begin for begin, _, _ in held]
    table, names = bytearray(24), bytearray(1)
    for address, _, index in held:
        table += struct.pack('<IBBHQQ', 0, 3, 0, index, address, 0)  # STT_SECTION
    for name, (address, letter) in sorted(found.items(), key=lambda item: item[1][1].isupper()):
        i = bisect_right(begins, address) - 1
        index = held[i][2] if i >= 0 and address <= held[i][1] else SHN_ABS
        kind = 2 if letter in 'tTwW' else 1  # STT_FUNC, STT_OBJECT
        table += struct.pack('<IBBHQQ', len(names), letter.isupper() << 4 | kind, 0, index, address,
                             0)
        names += name.encode() + b'\0'
    first = 1 + len(held) + sum(not letter.isupper() for _, letter in found.values())
    return table, names, first


# --- types ---

def btf_types(btf):
    """The types, of which number 0 is void, and the strings."""
    magic, _, _, header, at, size, strings, strings_size = struct.unpack_from('<HBBIIIII', btf)
    assert magic == 0xeb9f
    at += header
    end, strings = at + size, btf[header + strings:][:strings_size]
    types = [None]
    while at < end:
        name, info, size = struct.unpack_from('<III', btf, at)
        kind, count, flag = info >> 24 & 0x1f, info & 0xffff, info >> 31
        body = trailer(kind, count)
        words = struct.unpack_from(f'<{body // 4}I', btf, at + 12)
        types.append(Type(name, kind, flag, size, words))
        at += 12 + body
    return types, strings


def in_groups(words, size):
    return zip(*[iter(words)] * size)


# DWARF 4 (dwarfstd.org), sections 7.5.3 and 7.5.6: tags; attributes with the form that each has here.
TAGS = {'unit': 0x11, 'base': 0x24, 'pointer': 0x0f, 'array': 0x01, 'range': 0x21, 'struct': 0x13,
        'union': 0x17, 'member': 0x0d, 'enum': 0x04, 'value': 0x28, 'typedef': 0x16, 'const': 0x26,
        'volatile': 0x35, 'restrict': 0x37, 'function': 0x15, 'parameter': 0x05,
        'more parameters': 0x18, 'variable': 0x34}
ADDR, STRP, FLAG, DATA1, DATA4, DATA8 = 0x01, 0x0e, 0x0c, 0x0b, 0x06, 0x07
REF4, EXPRLOC = 0x13, 0x18
ATTRIBUTES = {'name': (0x03, STRP), 'byte_size': (0x0b, DATA4), 'type': (0x49, REF4),
              'encoding': (0x3e, DATA1), 'at': (0x38, DATA4), 'bit_size': (0x0d, DATA1),
              'bit_at': (0x6b, DATA4), 'const_value': (0x1c, DATA8), 'count': (0x37, DATA4),
              'declaration': (0x3c, FLAG), 'location': (0x02, EXPRLOC), 'language': (0x13, DATA1),
              'prototyped': (0x27, FLAG),
              'low_pc': (0x11, ADDR), 'high_pc': (0x12, DATA8)}
PACKED = {ADDR: '<Q', STRP: '<I', FLAG: '<B', DATA1: '<B', DATA4: '<I', DATA8: '<Q', REF4: '<I'}
MODIFIERS = {BTF_TYPEDEF: 'typedef', BTF_VOLATILE: 'volatile', BTF_CONST: 'const',
             BTF_RESTRICT: 'restrict'}
LANGUAGE_C99 = 0x0c


def leb128(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return out + bytes([value])


class Dwarf:
    """.debug_info and .debug_abbrev of one unit. .debug_str is BTF's table of strings."""

    def __init__(self, types, strings):
        self.types, self.strings = types, bytearray(strings)
        self.info = bytearray(struct.pack('<IHIB', 0, 4, 0, 8))  # the length comes last
        self.shapes = {}  # (tag, children, attributes): number of the abbreviation
        self.begins = {}  # type: where its entry is
        self.wanted = []  # (where a reference is, type)

    def string(self, text):
        self.strings += text.encode() + b'\0'
        return len(self.strings) - len(text) - 1

    def behind_tags(self, type_id):
        while 0 < type_id < len(self.types) and self.types[type_id].kind == BTF_TYPE_TAG:
            type_id = self.types[type_id].size
        return type_id

    def entry(self, tag, children=False, **attributes):
        """No name and the type void are said by leaving them out."""
        if 'type' in attributes:
            attributes['type'] = self.behind_tags(attributes['type'])
        attributes = {a: v for a, v in attributes.items() if v or a not in ('name', 'type')}
        shape = tag, children, tuple(attributes)
        self.info += leb128(self.shapes.setdefault(shape, len(self.shapes) + 1))
        for attribute, value in attributes.items():
            form = ATTRIBUTES[attribute][1]
            if form == REF4:
                self.wanted.append((len(self.info), value))
                value = 0
            self.info += value if form == EXPRLOC else struct.pack(PACKED[form], value)

    def end(self):
        self.info.append(0)

    def integer(self, t):
        encoding = t.members[0] >> 24 & 0xf
        if encoding & 4:
            code = 2  # DW_ATE_boolean
        elif t.size == 1:
            code = 6 if encoding & 1 else 8  # DW_ATE_signed_char, DW_ATE_unsigned_char
        else:
            code = 5 if encoding & 1 else 7  # DW_ATE_signed, DW_ATE_unsigned
        self.entry('base', name=t.name, byte_size=t.size, encoding=code)

    def record(self, t):
        self.entry('struct' if t.kind == BTF_STRUCT else 'union', True, name=t.name,
                   byte_size=t.size)
        for name, kind, at in in_groups(t.members, 3):
            width, at = (at >> 24, at & 0xffffff) if t.flag else (0, at)
            if width:
                self.entry('member', name=name, type=kind, bit_size=width, bit_at=at)
            else:
                self.entry('member', name=name, type=kind, at=at // 8)
        self.end()

    def enumeration(self, t):
        self.entry('enum', True, name=t.name, byte_size=t.size)
        for name, *value in in_groups(t.members, 2 if t.kind == BTF_ENUM else 3):
            value = value[0] if len(value) == 1 else value[0] | value[1] << 32
            if t.flag and t.kind == BTF_ENUM and value >> 31:
                value |= 0xffffffff00000000  # signed
            self.entry('value', name=name, const_value=value)
        self.end()

    def function(self, t):
        self.entry('function', True, prototyped=1, type=t.size)
        for _, kind in in_groups(t.members, 2):
            self.entry('parameter', type=kind) if kind else self.entry('more parameters')
        self.end()

    def array(self, t):
        self.entry('array', True, type=t.members[0])
        self.entry('range', count=t.members[2])
        self.end()

    def type(self, t):
        """False for what is no type: functions, variables, sections, tags."""
        if t.kind == BTF_INT:
            self.integer(t)
        elif t.kind == BTF_FLOAT:
            self.entry('base', name=t.name, byte_size=t.size, encoding=4)  # DW_ATE_float
        elif t.kind == BTF_PTR:
            self.entry('pointer', byte_size=8, type=t.size)
        elif t.kind == BTF_ARRAY:
            self.array(t)
        elif t.kind in (BTF_STRUCT, BTF_UNION):
            self.record(t)
        elif t.kind in (BTF_ENUM, BTF_ENUM64):
            self.enumeration(t)
        elif t.kind == BTF_FWD:
            self.entry('union' if t.flag else 'struct', name=t.name, declaration=1)
        elif t.kind in MODIFIERS:
            self.entry(MODIFIERS[t.kind], name=t.name, type=t.size)
        elif t.kind == BTF_FUNC_PROTO:
            self.function(t)
        else:
            return False
        return True

    def pointer_to(self, kind):
        """A type of our own, with a number behind those of BTF."""
        number = len(self.types) + len(self.begins)
        self.begins[number] = len(self.info)
        self.entry('pointer', byte_size=8, type=kind)
        return number

    def variables(self, found):
        """Per-CPU ones by BTF, a few others by VARIABLES."""
        typed = {string_at(self.strings, t.name): t.size for t in self.types[1:]
                 if t.kind == BTF_VAR}
        structs = {string_at(self.strings, t.name): i for i, t in enumerate(self.types[1:], 1)
                   if t.kind == BTF_STRUCT}
        for name, (struct_name, pointers) in VARIABLES.items():
            typed[name] = structs[struct_name]
            for _ in range(pointers):
                typed[name] = self.pointer_to(typed[name])
        for name, kind in typed.items():
            if name in found:
                place = b'\x09\x03' + struct.pack('<Q', found[name][0])  # DW_OP_addr
                self.entry('variable', name=self.string(name), type=kind, location=place)

    def write(self, found):
        """The sections by name."""
        text = found['_stext'][0]
        self.entry('unit', True, name=self.string('vmlinux'), language=LANGUAGE_C99, low_pc=text,
                   high_pc=found['_etext'][0] - text)
        for i, t in enumerate(self.types[1:], 1):
            at = len(self.info)
            if self.type(t):
                self.begins[i] = at
        self.variables(found)
        self.end()
        for at, kind in self.wanted:
            struct.pack_into('<I', self.info, at, self.begins[kind])
        struct.pack_into('<I', self.info, 0, len(self.info) - 4)
        return {'.debug_info': self.info, '.debug_abbrev': self.abbreviations(),
                '.debug_str': self.strings}

    def abbreviations(self):
        out = bytearray()
        for (tag, children, attributes), number in self.shapes.items():
            out += leb128(number) + leb128(TAGS[tag]) + bytes([children])
            for attribute in attributes:
                out += bytes(ATTRIBUTES[attribute])
            out += b'\0\0'
        return out + b'\0'


def build(vmlinuz, kallsyms, path):
    elf = unpack(vmlinuz)
    old = sections(elf)
    by_name = {s.name: s for s in old}
    found = symbols(kallsyms, by_name['.text'].addr)
    table, names, first = symbol_table(found, old)
    btf = by_name['.BTF']
    dwarf = Dwarf(*btf_types(elf[btf.offset:][:btf.size])).write(found)
    strtab = len(old)  # .shstrtab goes, .symtab takes its place
    plain = Section('', SHT_PROGBITS, 0, 0, 0, 0, 0, 0, 1, 0)
    added = [(plain._replace(name='.symtab', type=SHT_SYMTAB, link=strtab, info=first, align=8,
                             entsize=24), table),
             (plain._replace(name='.strtab', type=SHT_STRTAB), names)]
    added += [(plain._replace(name=name), data) for name, data in dwarf.items()]
    Path(path).write_bytes(with_sections(elf, old, added))
