#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the first inputs of tests/fuzz/fuzz_context.c, small hives, and of fuzz_hive_log.c, hives and their logs.

    tests/ntfs/make_hives.py FOLDER [FOLDER_OF_LOGS]
"""
import os
import struct
import sys

from hive import REG_QWORD, Hive, changed, entry, new_log, numbered, old_log

IFEO = {'a.exe': {'GlobalFlag': '0x02001000', 'ShutdownFlags': 3, 'StackTraceDatabaseSizeInMb': 32},
        'b.exe': {'UseFilter': 1, '0': {'FilterFullPath': 'C:\\b.exe', 'GlobalFlag': 0x200}}}
RADAR = {'Settings': {'CommitThreshold': 5, 'DetectionInterval': 30, 'TimerInterval': 5},
         'DiagnosedApplications': {
             'a.exe': {'LastDetectionTime': (REG_QWORD,
                                             bytes.fromhex('14f3579e046fcc01'))},
             'b.exe': {'LastDetectionTime': bytes(8)}, 'c.exe': {}}}
SOFTWARE = {'Microsoft': {
    'RADAR': {'HeapLeakDetection': RADAR},
    'Windows NT': {'CurrentVersion': {'ProductName': 'Windows', 'UBR': 1,
                                      'Image File Execution Options': IFEO}}}}
CONTROL = {'SystemStartOptions': ' NOEXECUTE=OPTIN  TESTSIGNING',
           'Session Manager': {'GlobalFlag': 0x400, 'Memory Management': {
               'PagingFiles': ['?:\\pagefile.sys', 'D:\\p.sys 1 2'],
               'ExistingPageFiles': ['\\??\\C:\\pagefile.sys'], 'ClearPageFileAtShutdown': 1}},
           'DeviceGuard': {'EnableVirtualizationBasedSecurity': 1, 'Scenarios': {
               'HypervisorEnforcedCodeIntegrity': {'Enabled': 1}}},
           'Lsa': {'LsaCfgFlags': 2}, 'SecureBoot': {'State': {'UEFISecureBootEnabled': 1}}}
SYSTEM = {'Select': {'Current': 2}, 'ControlSet002': {'Control': CONTROL},
          'MountedDevices': {'\\DosDevices\\C:': b'DMIO:ID:' + bytes(16)}}


def db_value():
    """
    A value whose data claims to lie in 65535 cells; the list of them fills the end of the hive, so
    that a reader that follows it reads on behind the hive.
    """
    h = Hive({'Select': {'Current': b'12345'}, 'ControlSet001': {}})
    at = h.cells.index(b'12345') - 4
    vk = h.cells.index(b'Current') - 20
    nothing = h.cell(b'')
    listed = h.cell(struct.pack('<I', nothing) * ((4096 - len(h.cells) - 4) // 4))
    h.cells[at + 4:at + 12] = b'db' + struct.pack('<HI', 0xffff, listed)
    h.cells[vk + 4:vk + 8] = struct.pack('<I', 16345)
    return h.pack()


def with_logs(hive, *logs):
    """As fuzz_hive_log.c takes them apart."""
    parts = [hive[:512] + hive[4096:], *logs]
    return struct.pack('<HH', len(parts[0]) // 512 - 1, len(parts[1]) // 512) + b''.join(parts)


def logs(folder):
    os.makedirs(folder, exist_ok=True)
    states = [Hive({'name': {'a': f'state {i}', 'more': bytes(2000 * i)}}).pack() for i in range(4)]
    hive = numbered(states[0], 7, 6)
    entries = [entry(7 + i, len(b) - 4096, changed(a, b, 4096)) for i, (a, b) in enumerate(zip(states, states[1:]))]
    for name, data in (
            ('old', with_logs(hive, old_log(hive, states[1], 7))),
            ('old-grown', with_logs(hive, b'', old_log(hive, states[3], 7))),
            ('new', with_logs(hive, new_log(hive, 7, entries))),
            ('two', with_logs(hive, new_log(hive, 7, entries[:1]), new_log(hive, 8, entries[1:]))),
            ('gap', with_logs(hive, new_log(hive, 7, entries[::2])))):
        with open(os.path.join(folder, name), 'wb') as f:
            f.write(data)


def main(folder, folder_of_logs=None):
    if folder_of_logs:
        logs(folder_of_logs)
    os.makedirs(folder, exist_ok=True)
    for name, data in (('software', Hive(SOFTWARE).pack()), ('system', Hive(SYSTEM).pack()),
                       ('both', Hive(SOFTWARE | SYSTEM).pack()), ('db', db_value())):
        with open(os.path.join(folder, name), 'wb') as f:
            f.write(data)


if __name__ == '__main__':
    main(*sys.argv[1:])
