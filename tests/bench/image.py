# SPDX-License-Identifier: Apache-2.0
"""
The image that the benchmark reads: the memory of a Debian guest after a mixed workload.

    image(kernel, holder, cache) -> the path of a raw image, made if it is not there

Programs, libraries, headers and documents of this machine lie in the guest's page cache (and, as
in any machine that has run for a while, once more in memory that was freed); processes hold parsed
text; a file is gzipped, and some memory is random. About a third is never touched. The image is
some 1.25 GiB, differs a little each time, and stays in the build folder; it is not committed.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / 'vm'))
import vm  # noqa: E402

MIB = 1 << 20
RAM_MIB = 1280

# What to put into the page cache: a folder, and how much of it. Kinds of data as on a workstation.
SOURCES = (
    ('/usr/bin', 120 * MIB),
    ('/usr/lib/x86_64-linux-gnu', 150 * MIB),
    ('/usr/lib/gcc', 40 * MIB),
    ('/usr/include', 20 * MIB),
    ('/usr/share/doc', 15 * MIB),
    ('/usr/lib/python3', 10 * MIB),
    ('/usr/share/perl', 10 * MIB),
)
FILE_MAX = 32 * MIB
NOT_LOADED = ('.a', '.o')  # what only a linker reads

WORKLOAD = (
    # Three processes that hold what they have parsed: heaps full of pointers and short strings.
    'for i in 1 2 3; do '
    'find /data/include -name "*.h" | sed -n "$i~3p" | head -n 120 | xargs cat | '
    '''awk '{ for (i = 1; i <= NF; i++) seen[$i] = seen[$i] NR " " } '''
    '''END { while (1) system("sleep 1000") }' & '''
    'done; true',
    # Compressed data, as caches of browsers and package managers are full of.
    'tar -c /data/include | gzip -1 >/tmp/include.tar.gz; true',
    'dd if=/dev/urandom of=/tmp/random bs=1M count=64 2>/dev/null',
    # Logs and sorted copies.
    'find /data -type f | xargs ls -l >/tmp/list; sort /tmp/list >/tmp/sorted; sleep 20',
)


def files_for_guest():
    """Paths in the guest to paths here, cut at each folder's share."""
    chosen = {}
    for folder, share in SOURCES:
        left = share
        for where, folders, names in os.walk(folder):
            folders.sort()
            for name in sorted(names):
                path = Path(where, name)
                if path.is_symlink() or not path.is_file():
                    continue
                size = path.stat().st_size
                if size > min(left, FILE_MAX) or path.suffix in NOT_LOADED:
                    continue
                left -= size
                chosen[f'data/{Path(folder).name}/{path.relative_to(folder)}'] = str(path)
    return chosen


def make(kernel, work, path):
    vm.LOW_RAM_MIB, vm.HIGH_RAM_MIB = RAM_MIB, 0  # all of it below 4 GiB
    vm.BOOT_TIMEOUT = 600
    with vm.Guest(kernel, work, files_for_guest(), ram_mib=RAM_MIB) as guest:
        for line in WORKLOAD:
            guest.check(line, timeout=600)
        with guest.stopped():
            guest.save_memory(0, RAM_MIB * MIB - 1, path)


def image(kernel, cache):
    path = Path(cache, 'guest.raw')
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix('.partial')
        make(kernel, path.parent / 'guest', partial)
        partial.rename(path)
    return path
