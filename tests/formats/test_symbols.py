#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PDBs of somebody else's linker: clang and lld-link make a DLL whose data say where its fields lie.

    test_symbols.py SYMBOLS_READ

Offsets, bits, addresses, GUID and age come from the DLL: offsetof() in its data, its exports, its debug
directory. Where there is llvm-pdbutil, that has to read the same GUID out of the PDB. Skipped where there is
no clang or lld-link: the unit test has PDBs of its own.
"""
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

SKIPPED = 77
SOURCE = r'''
typedef unsigned long long u64;
typedef unsigned u32;
#define offsetof(t, f) __builtin_offsetof(t, f)
struct _NODE { struct _NODE *Left, *Right; };
union _FLAGS { u64 Long; struct { u64 Type : 4, Lock : 3, Protection : 5, Private : 1, Wide : 40; } Bits; };
struct _VAD {
        struct _NODE Node; u32 Start; union _FLAGS u;
        struct { int a; struct _NODE In; } Inner;
        volatile struct _NODE Last; char Name[15]; u64 Count : 31, Commit : 1;
};
struct _BIG { char Before[200000]; int After; FIELDS };
__declspec(dllexport) struct _VAD SmGlobals = { .Start = 1 };
__declspec(dllexport) struct _BIG Zeros;
__declspec(dllexport) const u32 offsets[] = { OFFSETS };
__declspec(dllexport) const union _FLAGS bits[] = { { .Bits = { .Protection = ~0 } }, { .Bits = { .Wide = ~0ull } } };
__declspec(dllexport) int function(struct _VAD *v) { return (int)v->Start + Zeros.After; }
'''
FIELDS = [('_NODE', 'Right'), ('_VAD', 'Start'), ('_VAD', 'u'), ('_VAD', 'Inner.In.Right'), ('_VAD', 'Last.Right'),
          ('_VAD', 'Name'), ('_BIG', 'After'), ('_BIG', 'field0'), ('_BIG', 'field3999')]
CLANG, LINKER = (shutil.which(f'{name}-19') or shutil.which(name) for name in ('clang', 'lld-link'))

# A field list holds 64 KiB at most: so many go on in further ones.
MANY = 4000


def make(folder):
    source = SOURCE.replace('FIELDS', ' '.join(f'int field{i};' for i in range(MANY))).replace(
        'OFFSETS', ', '.join(f'offsetof({"struct " + t}, {f})' for t, f in FIELDS))
    (folder / 't.c').write_text(source)
    subprocess.run([CLANG, '--target=x86_64-pc-windows-msvc', '-g', '-gcodeview', '-ffreestanding', '-c', 't.c'],
                   cwd=folder, check=True)
    subprocess.run([LINKER, '/debug', '/dll', '/noentry', '/nodefaultlib', '/out:t.dll', '/pdb:t.pdb', 't.o'],
                   cwd=folder, check=True)


class Image:
    """As much of a PE as the test needs."""

    def __init__(self, path):
        self.file = path.read_bytes()
        pe = struct.unpack_from('<I', self.file, 60)[0]
        sections, optional = struct.unpack_from('<H', self.file, pe + 6)[0], struct.unpack_from('<H', self.file, pe + 20)[0]
        self.directories = pe + 24 + 112
        self.sections = [struct.unpack_from('<IIII', self.file, pe + 24 + optional + 40 * i + 8) for i in range(sections)]

    def at(self, rva, size):
        for _, start, length, offset in self.sections:
            if start <= rva < start + length:
                return self.file[offset + rva - start:][:size]
        raise AssertionError(f'no section at {rva:#x}')

    def u32(self, rva, count=1):
        return struct.unpack(f'<{count}I', self.at(rva, 4 * count))

    def directory(self, i):
        return struct.unpack_from('<I', self.file, self.directories + 8 * i)[0]

    def exports(self):
        count, functions, names, ordinals = self.u32(self.directory(0) + 24, 4)
        found = {}
        for i in range(count):
            name = self.at(self.u32(names + 4 * i)[0], 100).split(b'\0')[0].decode()
            ordinal = struct.unpack('<H', self.at(ordinals + 2 * i, 2))[0]
            found[name] = self.u32(functions + 4 * ordinal)[0]
        return found

    def identity(self):
        record = self.at(self.u32(self.directory(6) + 20)[0], 24)
        assert record[:4] == b'RSDS', record
        a, b, c = struct.unpack_from('<IHH', record, 4)
        return f'{a:08X}{b:04X}{c:04X}{record[12:20].hex().upper()} {struct.unpack_from("<I", record, 20)[0]}'


def ask(program, path, *requests):
    p = subprocess.run([program, path, *requests], stdout=subprocess.PIPE, encoding='ascii', check=True)
    return p.stdout.splitlines()


def bits_of(mask):
    low = (mask & -mask).bit_length() - 1
    return f'{low} {(mask >> low).bit_length()}'


def main():
    program = sys.argv[1]
    if not CLANG or not LINKER:
        print('no clang or lld-link')
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix='ramseal-test-') as name:
        folder = pathlib.Path(name)
        make(folder)
        image, pdb = Image(folder / 't.dll'), folder / 't.pdb'
        exports = image.exports()

        assert ask(program, pdb, 'id') == [image.identity()]
        offsets = image.u32(exports['offsets'], len(FIELDS))
        answers = ask(program, pdb, *(f'field:{t}/{f}' for t, f in FIELDS))
        assert answers == [f'{o} 0 0' for o in offsets], (answers, offsets)
        masks = struct.unpack('<2Q', image.at(exports['bits'], 16))
        for field, mask in zip(('Protection', 'Wide'), masks):
            assert ask(program, pdb, f'field:_FLAGS/Bits.{field}') == [f'0 {bits_of(mask)}'], field
        assert ask(program, pdb, 'field:_VAD/Commit')[0].split()[1:] == ['31', '1']
        assert ask(program, pdb, 'size:_NODE', 'size:_FLAGS') == ['16', '8']
        for symbol in ('SmGlobals', 'Zeros', 'offsets', 'function'):
            assert ask(program, pdb, f'name:{symbol}') == [str(exports[symbol])], symbol
        assert ask(program, pdb, 'name:nobody', 'field:_VAD/nobody', 'field:_NONE/x', 'size:_NONE') == ['none'] * 4
        if shutil.which('llvm-pdbutil'):
            said = subprocess.run(['llvm-pdbutil', 'dump', '-summary', pdb], stdout=subprocess.PIPE, encoding='ascii',
                                  check=True).stdout
            parts = re.search(r'GUID: \{([0-9A-F-]+)\}', said).group(1).replace('-', '')
            # It prints the first three parts byte by byte.
            swapped = parts[6:8] + parts[4:6] + parts[2:4] + parts[0:2] + parts[10:12] + parts[8:10] + parts[14:16] + \
                parts[12:14] + parts[16:]
            assert ask(program, pdb, 'id')[0].split()[0] in (parts, swapped)
        print(f'{len(FIELDS)} fields, {len(exports)} names')
    return 0


if __name__ == '__main__':
    sys.exit(main())
