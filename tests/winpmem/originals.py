# SPDX-License-Identifier: Apache-2.0
"""
The published WinPmem drivers, which are not part of this repository, and what a status of theirs
is called.
"""

import hashlib
from collections import namedtuple
from pathlib import Path


class Original(namedtuple('Original', 'name file sha256 family info_len')):
    """`family`: of its requests, as in driver-interface/winpmem.c."""

    def path(self, data):
        """
        Below the folder of test data; None if it is not there. A file that was changed is an
        error.
        """
        file = Path(data) / 'winpmem' / self.file
        if not file.exists():
            return None
        found = hashlib.sha256(file.read_bytes()).hexdigest()
        if found != self.sha256:
            raise ValueError(f'{file}: SHA-256 is {found}, not {self.sha256}')
        return file

    @property
    def get_info(self):
        return {'buffered': 0x22C40C, 'neither': 0x22C40F}[self.family]

    @property
    def set_mode(self):
        return {'buffered': 0x22C404, 'neither': 0x22C407}[self.family]


ORIGINALS = [
    Original('1.6.3', 'winpmem-1.6.3-x64.sys',
             'e23d488877ef3dfeccaff7700e59f9d51305df5b8e2e570b72f3d52f3c179ef4', 'buffered', 2424),
    Original('1.6.3 attested', 'winpmem-1.6.3-attestation-x64.sys',
             '30d79c358cf1375e94a67a637a3bfeb80aba1fb85d2dda26cb169f5640d04397', 'buffered', 2424),
    Original('2.0.1', 'winpmem-2.0.1-x64.sys',
             'b1b866f7cf86bd2bbbd8beca081e9df836911d938fd129cd615cfcb04399212b', 'neither', 2936),
    Original('4.1 test', 'winpmem-4.1-test-x64.sys',
             'edc00ee0f3cff3fa4adb6ba357d8fb964ce2ffa376ab7c25c8106f00d198c154', 'neither', 2936),
]

IOSPACE, PHYSICAL, PTE = range(3)
MODES = ['IOSPACE', 'PHYSICAL', 'PTE']

# NTSTATUS: its name, and the Win32 error that a program sees (RtlNtStatusToDosError()).
STATUSES = {
    0x00000000: ('SUCCESS', 0),
    0x80000002: ('DATATYPE_MISALIGNMENT', 998),
    0xC0000001: ('UNSUCCESSFUL', 31),
    0xC0000002: ('NOT_IMPLEMENTED', 1),
    0xC0000004: ('INFO_LENGTH_MISMATCH', 24),
    0xC0000005: ('ACCESS_VIOLATION', 998),
    0xC0000008: ('INVALID_HANDLE', 6),
    0xC000000D: ('INVALID_PARAMETER', 87),
    0xC000000E: ('NO_SUCH_DEVICE', 2),
    0xC0000010: ('INVALID_DEVICE_REQUEST', 1),
    0xC0000022: ('ACCESS_DENIED', 5),
    0xC0000023: ('BUFFER_TOO_SMALL', 122),
    0xC0000034: ('OBJECT_NAME_NOT_FOUND', 2),
    0xC0000035: ('OBJECT_NAME_COLLISION', 183),
    0xC0000056: ('DELETE_PENDING', 5),
    0xC000009A: ('INSUFFICIENT_RESOURCES', 1450),
    0xC00000A3: ('DEVICE_NOT_READY', 21),
    0xC00000BB: ('NOT_SUPPORTED', 50),
    0xC0000185: ('IO_DEVICE_ERROR', 1117),
}

STOPS = {
    0x0A: 'IRQL_NOT_LESS_OR_EQUAL',
    0x1A: 'MEMORY_MANAGEMENT',
    0x3B: 'SYSTEM_SERVICE_EXCEPTION',
    0x4A: 'IRQL_GT_ZERO_AT_SYSTEM_SERVICE',
    0x50: 'PAGE_FAULT_IN_NONPAGED_AREA',
    0x7E: 'SYSTEM_THREAD_EXCEPTION_NOT_HANDLED',
    0x93: 'INVALID_KERNEL_HANDLE',
    0x9C: 'MACHINE_CHECK_EXCEPTION',
    0xC2: 'BAD_POOL_CALLER',
}


def status_text(status):
    """'ok', or 'INVALID_PARAMETER (87)'"""
    if not status:
        return 'ok'
    name, error = STATUSES.get(status, (f'{status:08X}', '?'))
    return f'{name} ({error})'
