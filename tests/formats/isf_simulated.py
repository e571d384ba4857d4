# SPDX-License-Identifier: Apache-2.0
"""
Symbols of the simulated Windows for volatility3: what windows.pslist asks for, where the simulator has
it (agent/simulator/windows.c). Fields that it does not have lie where its pages are zero.
"""

import json
from pathlib import Path

# The PDB that the simulated ntoskrnl names; its age is 2 for Windows 7.
PDB, GUID = 'ntkrnlmp.pdb', '0000ED51F00D0BAD8073696D6B726E6C'
PS_ACTIVE_PROCESS_HEAD = 0x2100

# volatility3 2.11 wants these to be there (framework/symbols/windows/__init__.py).
WANTED = ('_ETHREAD _KTHREAD _ERESOURCE _UNICODE_STRING _EX_FAST_REF _TOKEN _OBJECT_HEADER '
          '_FILE_OBJECT _DEVICE_OBJECT _CM_KEY_BODY _CMHIVE _CM_KEY_NODE _CM_KEY_VALUE _HMAP_ENTRY '
          '_MMVAD_SHORT _MMVAD _KSYSTEM_TIME _KMUTANT _DRIVER_OBJECT _OBJECT_SYMBOLIC_LINK '
          '_CONTROL_AREA _SHARED_CACHE_MAP _VACB _POOL_TRACKER_BIG_PAGES _IMAGE_DOS_HEADER '
          '_KTIMER _POOL_HEADER _HANDLE_TABLE').split()

U64 = {'kind': 'base', 'name': 'unsigned long long'}
U32 = {'kind': 'base', 'name': 'unsigned long'}
VOID = {'kind': 'pointer', 'subtype': {'kind': 'base', 'name': 'void'}}


def base(kind, size, signed=False):
    return {'endian': 'little', 'kind': kind, 'signed': signed, 'size': size}


def record(size, **fields):
    return {'kind': 'struct', 'size': size,
            'fields': {name: {'offset': at, 'type': of} for name, (at, of) in fields.items()}}


def named(name):
    return {'kind': 'struct', 'name': name}


def document(windows):
    pid, name = (0x180, 0x2e0) if windows == 7 else (0x440, 0x5a8)
    link = {'kind': 'pointer', 'subtype': named('_LIST_ENTRY')}
    zero = 0x600
    types = {name: record(8) for name in WANTED}
    types['_LIST_ENTRY'] = record(16, Flink=(0, link), Blink=(8, link))
    types['_LARGE_INTEGER'] = record(8, QuadPart=(0, U64))
    types['_KPROCESS'] = record(0x30, DirectoryTableBase=(0x28, U64))
    types['_EPROCESS'] = record(
        0x700, Pcb=(0, named('_KPROCESS')), UniqueProcessId=(pid, VOID),
        ActiveProcessLinks=(pid + 8, named('_LIST_ENTRY')),
        ImageFileName=(name, {'kind': 'array', 'count': 15,
                              'subtype': {'kind': 'base', 'name': 'unsigned char'}}),
        InheritedFromUniqueProcessId=(zero, VOID), ActiveThreads=(zero, U32),
        CreateTime=(zero, named('_LARGE_INTEGER')), ExitTime=(zero, named('_LARGE_INTEGER')),
        ObjectTable=(zero, {'kind': 'pointer', 'subtype': named('_HANDLE_TABLE')}),
        Session=(zero, VOID), Wow64Process=(zero, VOID),
        ThreadListHead=(zero, named('_LIST_ENTRY')))
    age = 2 if windows == 7 else 1
    return {
        'metadata': {'format': '6.2.0', 'producer': {'name': 'isf_simulated', 'version': '1.0.0'},
                     'windows': {'pdb': {'GUID': GUID, 'age': age, 'database': PDB,
                                         'machine_type': 0x8664}}},
        'base_types': {'void': base('void', 0), 'pointer': base('int', 8),
                       'unsigned char': base('char', 1), 'unsigned long': base('int', 4),
                       'unsigned long long': base('int', 8)},
        'user_types': types, 'enums': {},
        'symbols': {'PsActiveProcessHead': {'address': PS_ACTIVE_PROCESS_HEAD}}}


def write(folder, windows):
    """Below a folder of symbols, where volatility3 looks for it."""
    made = document(windows)
    path = Path(folder) / 'windows' / PDB / f'{GUID}-{made["metadata"]["windows"]["pdb"]["age"]}.json'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(made))
