#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
--symbols of the commands that look into a process: on machines that have their fields where no build has them
(moved=1), by an ISF file and by a PDB of clang and lld-link, which are written here out of Windows' own names and the
offsets of agent/simulator/layout.c.

	test_symbols_command.py RAMSEAL
"""

import json
import os
import shutil
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_truth  # noqa: E402: beside this
from machine_case import MachineCase, run  # noqa: E402

# The simulated kernel's (agent/simulator/windows.c), as its debug directory has it.
KERNEL = bytes.fromhex('51ed00000df0ad0b80') + b'simkrnl'
POINTER, WORD = 8, 4
CLANG, LINKER = (shutil.which(f'{name}-19') or shutil.which(name) for name in ('clang', 'lld-link'))

EPROCESS = {
    'UniqueProcessId': 0x458, 'CreateTime': 0x4a0, 'InheritedFromUniqueProcessId': 0x588, 'SectionBaseAddress': 0x538,
    'Peb': 0x578, 'ObjectTable': 0x598, 'ImageFileName': 0x5d8, 'ThreadListHead': 0x620, 'VadRoot': 0x800,
    'VadCount': 0x810, 'WoW64Process': 0x5a8,
}
# Name: size, and each field: its offset, and the name of its structure, if it is one; or a bit and how many.
TYPES = {
    '_EPROCESS': (0xb80, {k: (v, None) for k, v in EPROCESS.items()}),
    '_KTHREAD': (0x430, {'StackBase': (0x40, None), 'KernelStack': (0x60, None), 'TrapFrame': (0x98, None),
                         'Teb': (0x100, None), 'Process': (0x230, None)}),
    '_ETHREAD': (0x900, {'Cid': (0x4f8, None), 'Win32StartAddress': (0x550, None), 'ThreadListEntry': (0x570, None)}),
    '_RTL_BALANCED_NODE': (24, {'Left': (0, None), 'Right': (8, None), 'ParentValue': (16, None)}),
    '_MMVAD_FLAGS': (4, {'VadType': (0, (6, 3)), 'Protection': (0, (12, 5)), 'PrivateMemory': (0, (25, 1))}),
    '_MMVAD_FLAGS1': (4, {'CommitCharge': (0, (0, 31)), 'MemCommit': (0, (31, 1))}),
    '_MMVAD_SHORT': (0x40, {'VadNode': (0, '_RTL_BALANCED_NODE'), 'StartingVpn': (0x18, WORD),
                            'EndingVpn': (0x1c, WORD), 'StartingVpnHigh': (0x20, 1), 'EndingVpnHigh': (0x21, 1),
                            'u1': (0x30, '_MMVAD_FLAGS1'), 'u': (0x34, '_MMVAD_FLAGS')}),
    '_MMVAD': (0x88, {'Core': (0, '_MMVAD_SHORT'), 'Subsection': (0x48, None), 'FirstPrototypePte': (0x50, None),
                      'LastContiguousPte': (0x58, None)}),
    '_SUBSECTION': (0x38, {'ControlArea': (0, None), 'SubsectionBase': (8, None), 'NextSubsection': (0x10, None),
                           'u': (0x20, WORD), 'StartingSector': (0x24, WORD), 'NumberOfFullSectors': (0x28, WORD),
                           'PtesInSubsection': (0x2c, WORD)}),
    '_CONTROL_AREA': (0x80, {'Segment': (0, None), 'FilePointer': (0x40, None)}),
    '_FILE_OBJECT': (0xd8, {'FileName': (0x58, None)}),
}


def guid_text(guid):
    return (guid[3::-1] + guid[5:3:-1] + guid[7:5:-1] + guid[8:]).hex().upper()


def isf(guid, age, types=TYPES, names=None):
    def of(what):
        if isinstance(what, str):
            return {'kind': 'struct', 'name': what}
        if isinstance(what, tuple):
            return {'kind': 'bitfield', 'bit_position': what[0], 'bit_length': what[1],
                    'type': {'kind': 'base', 'name': 'unsigned long'}}
        return {'kind': 'base', 'name': {None: 'unsigned long long', 4: 'unsigned long', 1: 'unsigned char'}[what]}

    return json.dumps({
        'metadata': {'format': '6.2.0', 'windows': {'pdb': {'GUID': guid_text(guid), 'age': age}}},
        'base_types': {}, 'enums': {},
        'user_types': {name: {'kind': 'struct', 'size': size, 'fields': {
            f: {'offset': at, 'type': of(what)} for f, (at, what) in fields.items()}}
            for name, (size, fields) in types.items()},
        'symbols': {name: {'address': at} for name, at in (names or {}).items()}})


def source():
    """The same types as C, in which what is between fields is an array of bytes."""
    out, done = [], {}
    for name, (size, fields) in sorted(TYPES.items(), key=lambda t: list(TYPES).index(t[0])):
        lines, at, bit, pads = [], 0, 0, 0
        for f, (offset, what) in sorted(fields.items(), key=lambda i: (i[1][0], i[1][1] if isinstance(i[1][1], tuple)
                                                                       else (0, 0))):
            if isinstance(what, tuple):
                if what[0] > bit:
                    lines.append(f'unsigned pad{pads} : {what[0] - bit};')
                    pads += 1
                lines.append(f'unsigned {f} : {what[1]};')
                bit, at = sum(what), 4
                continue
            if offset > at:
                lines.append(f'unsigned char pad{pads}[{offset - at}];')
                pads += 1
            kind, length = (f'struct {what}', done[what]) if isinstance(what, str) else \
                {None: ('unsigned long long', 8), 4: ('unsigned', 4), 1: ('unsigned char', 1)}[what]
            lines.append(f'{kind} {f};')
            at = offset + length
        if bit and bit < 32:
            lines.append(f'unsigned pad{pads} : {32 - bit};')
        elif size > at:
            lines.append(f'unsigned char pad{pads}[{size - at}];')
        done[name] = size
        out.append('#pragma pack(push, 1)\nstruct %s {\n\t%s\n};\n#pragma pack(pop)\nstruct %s use%s;\n' %
                   (name, '\n\t'.join(lines), name, name))
    return '\n'.join(out)


def pdb(folder, guid, age):
    """clang and lld-link give the file a GUID of theirs; the simulated kernel's is put in its place."""
    def call(*args):
        subprocess.run(args, cwd=folder, check=True, capture_output=True)

    (folder / 't.c').write_text(source())
    call(CLANG, '--target=x86_64-pc-windows-msvc', '-g', '-gcodeview', '-ffreestanding', '-c', 't.c')
    call(LINKER, '/debug', '/dll', '/noentry', '/nodefaultlib', '/out:t.dll', '/pdb:t.pdb', 't.o')
    dll, data = (folder / 't.dll').read_bytes(), bytearray((folder / 't.pdb').read_bytes())
    at = dll.index(b'RSDS')
    its = dll[at + 4:at + 20]
    assert data.count(its) == 1, data.count(its)
    data[data.index(its):][:16] = guid
    at = data.index(its)
    data[at:at + 16] = guid
    # The age of the DBI stream, which begins with -1, a version, the age.
    header = struct.pack('<iI', -1, 19990903)
    assert data.count(header) == 1
    at = data.index(header) + 8
    data[at:at + 4] = struct.pack('<I', age)
    return bytes(data)


class Symbols(MachineCase):
    def machine(self, more=''):
        self.acquire(f'ram=64M,processes=6,windows=10,{more}')
        _, processes = process_truth.read(self.account)
        return [p for p in processes.values() if p.pid != 4]

    def write(self, name, content):
        path = self.at / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def refused(self, text, *args, code=9):
        done = run(*args)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stderr.count(b'\n'), 1, done.stderr)
        self.assertIn(text, done.stderr.decode())

    def check_all(self, processes, symbols):
        """Everything that the machine's own account has."""
        for p in processes:
            said = json.loads(self.good('process', self.container, '--pid', p.pid, '--json', *symbols))
            self.assertEqual((said['pid'], said['name'], int(said['eprocess'], 0), int(said['peb'], 0)),
                             (p.pid, p.name, p.eprocess, p.peb))
            self.assertEqual(said['layout'], 'from symbols')
            self.assertEqual(said['created_ns'], p.created * 100 - 11644473600 * 10**9)
            self.assertEqual(said['parent'], p.parent or None)
            self.assertEqual((said['loader_list'], said['thread_list'], said['vads_whole']),
                             ('closed', 'closed', True))
            self.assertEqual(sorted((t['tid'], int(t['ethread'], 0), int(t['start'], 0), int(t['teb'], 0), int(t['rsp'], 0))
                                    for t in said['threads']),
                             sorted((t.tid, t.ethread, t.start, t.teb, t.rsp) for t in p.threads))
            vads = json.loads(self.good('vad', self.container, '--pid', p.pid, '--json', *symbols))
            self.assertEqual((vads['layout'], vads['vad_layout'], vads['whole']), ('from symbols', 'from symbols', True))
            self.assertEqual(sorted((int(v['start'], 0), int(v['end'], 0), v['file']) for v in vads['vads']),
                             sorted((v.first, v.last, v.file) for v in p.vads))
            self.good('heap', self.container, '--pid', p.pid, *symbols)
            page = self.at / 'page.html'
            self.good('report', '-f', '--pid', p.pid, '-o', page, self.container, *symbols)
            for t in p.threads:
                self.assertIn(f'>{t.tid}</', page.read_text(encoding='utf-8'))

    def good(self, *args):
        done = run(*args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_without_symbols_it_is_said_and_with_isf_all_is_there(self):
        processes = self.machine('moved=1,heaps=2,heap_blocks=100')
        pid = processes[0].pid
        for command in ('process', 'vad', 'heap'):
            self.refused('unknown version of Windows', command, self.container, '--pid', pid)
        file = self.write('nt.json', isf(KERNEL, 1))
        self.check_all(processes, ('--symbols', file))
        said = json.loads(self.good('process', self.container, '--pid', pid, '--json', '--symbols', file))
        self.assertEqual(said['symbols'], [{'file': str(file), 'kind': 'ISF', 'of': 'nt', 'guid': guid_text(KERNEL),
                                            'age': 1, 'forced': False}])
        self.assertIn(b'from symbols (the VAD trees of', self.good('process', self.container, '-p', pid,
                                                                  '--symbols', file))

    def test_and_with_a_pdb(self):
        if not CLANG or not LINKER:
            self.skipTest('no clang or lld-link')
        processes = self.machine('moved=1,heaps=1')
        file = self.write('nt.pdb', pdb(self.at, KERNEL, 1))
        self.check_all(processes[:3], ('--symbols', file))

    def test_symbols_of_something_else_are_refused(self):
        pid = self.machine('moved=1')[0].pid
        for guid, age in ((KERNEL, 2), (KERNEL[:15] + b'x', 1)):
            file = self.write('other.json', isf(guid, age))
            for command in ('process', 'vad', 'heap'):
                self.refused('is for another kernel', command, self.container, '--pid', pid, '--symbols', file)
            self.refused('is for another kernel', 'read', self.container, '--pid', pid, '--va', '0x10000',
                         '--symbols', file)
            done = run('process', self.container, '--pid', pid, '--json', '--symbols', file, '--force-symbols')
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(b'these may not be this kernel', done.stderr)
            self.assertTrue(json.loads(done.stdout)['symbols'][0]['forced'])
            done = run('heap', self.container, '--pid', pid, '--json', '--symbols', file, '--force-symbols')
            said = json.loads(done.stdout)
            self.assertEqual((said['layout'], said['symbols'][0]['forced']), ('from symbols', True))
            self.assertIn('nothing says that they are', said['layout_reason'])
        few = dict(TYPES, _EPROCESS=(0xb80, {'Peb': (0x578, None)}))
        self.refused('does not say where _EPROCESS.UniqueProcessId is', 'vad', self.container, '--pid', pid,
                     '--symbols', self.write('few.json', isf(KERNEL, 1, few)))
        fields = {k: v for k, v in EPROCESS.items() if k != 'WoW64Process'}
        few = dict(TYPES, _EPROCESS=(0xb80, {k: (v, None) for k, v in fields.items()}))
        self.refused('does not say where _EPROCESS.WoW64Process is', 'vad', self.container, '--pid', pid,
                     '--symbols', self.write('few.json', isf(KERNEL, 1, few)))
        kernel = self.write('nt.json', isf(KERNEL, 1))
        for types in (TYPES, {}):
            self.refused("is for a kernel, and so is", 'process', self.container, '--pid', pid, '--symbols', kernel,
                         '--symbols', self.write('second.json', isf(KERNEL, 1, types)))
        self.refused("is for a kernel, and so is", 'process', self.container, '--pid', pid, '--force-symbols',
                     '--symbols', kernel, '--symbols', self.write('second.json', isf(KERNEL, 2)))
        self.refused('is for another kernel', 'process', self.container, '--pid', pid, '--symbols', kernel,
                     '--symbols', self.at / 'second.json')
        self.refused('needs --symbols', 'process', self.container, '--pid', pid, '--force-symbols', code=2)
        self.refused('needs --symbols', 'read', self.container, '--pa', 0, '--force-symbols', code=2)
        self.refused('go with --pid', 'report', self.container, '-o', self.at / 'no.html', '--force-symbols', code=2)
        self.refused('neither to the kernel', 'vad', self.container, '--pid', pid, '--symbols',
                     self.write('nt.json', isf(KERNEL, 1)), '--symbols',
                     self.write('none.json', isf(bytes(16), 1, {})))
        # ntdll's have the kernel's structures, too.
        self.refused('neither to the kernel', 'vad', self.container, '--pid', pid, '--symbols',
                     self.write('nt.json', isf(KERNEL, 1)), '--symbols',
                     self.write('ntdll.json', isf(bytes(16), 1, TYPES, {'LdrInitializeThunk': 0x1000})))
        self.refused('is neither an ISF file', 'vad', self.container, '--pid', pid, '--symbols', self.account)
        self.refused('missing.json', 'vad', self.container, '--pid', pid, '--symbols', self.at / 'missing.json')
        self.refused('needs --pid', 'read', self.container, '--pa', 0, '--symbols', self.at / 'nt.json', code=2)

    def test_wrong_offsets_are_not_believed_where_a_table_fits(self):
        """A machine of a known build, and forced symbols whose trees are nowhere."""
        p = self.machine('build=22000')[0]
        wrong = dict(TYPES, _EPROCESS=(0xb80, {**TYPES['_EPROCESS'][1], 'UniqueProcessId': (0x440, None),
                                               'ImageFileName': (0x5a8, None), 'VadRoot': (0x900, None),
                                               'VadCount': (0x910, None)}))
        done = run('process', self.container, '--pid', p.pid, '--json', '--symbols',
                   self.write('wrong.json', isf(KERNEL, 1, wrong)))
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual(said['layout'], '10-20h1')
        self.assertIn('what the symbols say does not fit', said['layout_reason'])

    def test_addresses_have_names(self):
        """Of a module whose debug directory was touched, and where a thread begins."""
        for p in self.machine('build=22000,heaps=1'):
            said = json.loads(self.good('process', self.container, '--pid', p.pid, '--json'))
            known = {int(m['base'], 0) for m in said['modules'] if m['pdb']}
            found = [(m, t.start) for m in p.modules for t in p.threads
                     if m.base in known and m.base <= t.start < m.base + m.size]
            if found:
                break
        module, start = found[0]
        rva, name = start - module.base, module.path.split('\\')[-1]
        file = self.write('module.json', isf(bytes.fromhex(module.guid), module.age, {},
                                               {'Before': rva - 0x30, 'Zero': 0, 'Behind': rva + 1}))
        said = json.loads(self.good('process', self.container, '--pid', p.pid, '--json', '--symbols', file))
        places = {int(t['start'], 0): t['start_place'] for t in said['threads']}
        self.assertEqual(places[start], f'{name}!Before+0x30')
        self.assertEqual([s['of'] for s in said['symbols']], [name])
        self.assertEqual(said['layout'], '10-20h1')
        page = self.at / 'page.html'
        self.good('report', '-f', '--pid', p.pid, '-o', page, self.container, '--symbols', file)
        self.assertIn(f'{name}!Before+0x30', page.read_text(encoding='utf-8'))
        text = self.good('process', self.container, '--pid', p.pid, '--symbols', file).decode()
        self.assertIn(f'start 0x{start:012x} {name}!Before+0x30', text)
        said = json.loads(self.good('process', self.container, '--pid', p.pid, '--json'))
        places = {int(t['start'], 0): t['start_place'] for t in said['threads']}
        self.assertEqual(places[start], f'{name}+0x{rva:x}')

    def test_frames_of_traces_have_names(self):
        for p in self.machine('build=22000,heaps=1,heap_blocks=200,heap_ust=1'):
            ask = ('heap', self.container, '--pid', p.pid, '--allocations', '--json')
            rows = [json.loads(line) for line in self.good(*ask).splitlines()]
            frames = [(m, f) for r in rows for f in r['trace'] or () for m in p.modules
                      if m.guid and m.base <= int(f['address'], 0) < m.base + m.size]
            if frames:
                break
        module, frame = frames[0]
        rva, name = int(frame['address'], 0) - module.base, module.path.split('\\')[-1]
        self.assertEqual(frame['place'], f'{name}+0x{rva:x}')
        file = self.write('module.json', isf(bytes.fromhex(module.guid), module.age, {}, {'Before': rva - 0x10}))
        rows = [json.loads(line) for line in self.good(*ask, '--symbols', file).splitlines()]
        self.assertIn(f'{name}!Before+0x10', {f['place'] for r in rows for f in r['trace'] or ()
                                              if f['address'] == frame['address']})


if __name__ == '__main__':
    unittest.main(verbosity=2)
