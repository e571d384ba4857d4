# SPDX-License-Identifier: Apache-2.0
"""
Swap areas of all kinds in a guest: partitions, zram, and swap files on file systems that lay them out
in their ways. tests/vm/test_swap.py takes one of them, test_swap_matrix.py all.
"""

import subprocess
from collections import Counter, namedtuple

from marked import MIB

FOLDER = '/mnt'
FILE = f'{FOLDER}/swapfile'

# `filesystem`: a name for mount -t; `mkfs`: what makes it, without the path of the image.
FileSystem = namedtuple('FileSystem', 'filesystem mkfs')

FILESYSTEMS = {
    'ext4-1k': FileSystem('ext4', ('mke2fs', '-q', '-F', '-t', 'ext4', '-b', '1024')),
    'ext4-2k': FileSystem('ext4', ('mke2fs', '-q', '-F', '-t', 'ext4', '-b', '2048')),
    'ext4-4k': FileSystem('ext4', ('mke2fs', '-q', '-F', '-t', 'ext4', '-b', '4096')),
    # Without extents: its maps come from indirect blocks.
    'ext2-1k': FileSystem('ext4', ('mke2fs', '-q', '-F', '-t', 'ext2', '-b', '1024')),
    'xfs-1k': FileSystem('xfs', ('mkfs.xfs', '-q', '-f', '-b', 'size=1024')),
    'xfs-4k': FileSystem('xfs', ('mkfs.xfs', '-q', '-f')),
    'btrfs': FileSystem('btrfs', ('mkfs.btrfs', '-q', '-f', '-d', 'single')),
    # Blocks of 512 bytes, and no FIEMAP.
    'vfat': FileSystem('vfat', ('mkfs.vfat', '-F', '32')),
}


def make_image(path, kind, size):
    """A file system, made here, of `size` bytes."""
    path.unlink(missing_ok=True)
    with open(path, 'wb') as f:
        f.truncate(size)
    subprocess.run([*FILESYSTEMS[kind].mkfs, path], check=True, capture_output=True,
                   env={'PATH': '/usr/sbin:/sbin:/usr/bin:/bin'})
    return path


def swap_on(guest, device, kind, how, kib, piece='', priority=10):
    """Mounts the image that is `device` there, and swaps to a file on it (guest/swapfile.c)."""
    name = FILESYSTEMS[kind].filesystem
    # What the kernel would ask modprobe for, but it does not know where that is here.
    helpers = ('nls_cp437', 'nls_ascii') if name == 'vfat' else ('crc32c_generic',)
    guest.load('virtio_blk', *helpers, name)
    guest.check(f'mkdir -p {FOLDER} && mount -t {name} {device} {FOLDER}')
    guest.check(f'swapfile {how} {FILE} {kib} {piece} && mkswap {FILE} && sync && '
                f'swapfile on {FILE} {priority}', timeout=900)


def swap_off(guest):
    guest.check(f'swapoff {FILE} && rm -f {FILE} {FILE}.other && umount {FOLDER}', timeout=900)


def in_swaps(guest, path):
    """(size, used) in bytes, as /proc/swaps has them."""
    for line in guest.check('cat /proc/swaps').splitlines():
        fields = line.split()
        if fields[0] == path:
            return int(fields[2]) << 10, int(fields[3]) << 10
    raise KeyError(path)


def counted(rows):
    """{(place, trust, verdict, what it is): pages} of what marked.read() returns, for people."""
    return Counter(('slot' if 'slot' in page else 'memory', page.get('trust'), page.get('verdict'),
                    what) for _, page, what in rows)


def check_safe(test, rows):
    """None that is safe is another's. Returns how many slots are safe, by the area's number."""
    found = counted(rows)
    safe = Counter()
    for _, page, what in rows:
        if page.get('trust') == 'safe' and what is not None:
            test.assertEqual(what, 'right', f'{page}: {found}')
            # What the swap cache had is right wherever the slots lie.
            if 'slot' in page and page['verdict'] != 'cache-frame':
                safe[page['file']] += 1
    return safe
