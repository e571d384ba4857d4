#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reading a container through `ramseal mount`: at random, and from front to back beside a raw image.

    bench_mount.py RAMSEAL [--folder DIR] [--size MIB] [--seconds N] [--source SPEC]

The container is of a file of SIZE MiB, made here: a quarter zeros, a quarter noise, the rest machine
code of this system. It and the raw image are in the page cache; each row has a mount of its own.
"random" is single reads of 4 KiB by so many readers, three times: with nothing decoded at the beginning;
after all of it was read, as far as ramseal's cache goes, past the kernel's (O_DIRECT); and from the kernel's
cache. In brackets: per second of ramseal's CPU time, for a machine that does other things as well.
--source takes a machine instead (sim:server16g).
"""
import argparse
import glob
import mmap
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

PAGE = 4096
MIB = 1 << 20


def fill(path, size):
    """In pieces of 64 KiB, in an order that is always the same."""
    chance = random.Random(1)
    files = sorted(f for f in glob.glob('/usr/lib/x86_64-linux-gnu/*.so*') + glob.glob('/usr/bin/*')
                   if os.path.isfile(f) and os.path.getsize(f) > MIB)
    with open(path, 'wb') as out:
        while out.tell() < size:
            kind = chance.randrange(4)
            piece = bytes(16 * PAGE)
            if kind == 1:
                piece = chance.randbytes(16 * PAGE)
            elif kind and files:
                name = chance.choice(files)
                with open(name, 'rb') as f:
                    f.seek(chance.randrange(os.path.getsize(name) - 16 * PAGE))
                    piece = f.read(16 * PAGE)
            out.write(piece.ljust(16 * PAGE, b'\0'))


class Mounted:
    def __init__(self, ramseal, container, folder, *options):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.process = subprocess.Popen([ramseal, 'mount', '-f', '-q', *options, container, folder])
        while not os.path.ismount(folder):
            if self.process.poll() is not None:
                sys.exit(f'bench_mount: {container} could not be mounted')
            time.sleep(0.01)

    def cpu(self):
        with open(f'/proc/{self.process.pid}/stat', encoding='ascii') as f:
            fields = f.read().rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def __enter__(self):
        self.path = os.path.join(self.folder, 'memory.raw')
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def sequential(path):
    begin = time.monotonic()
    subprocess.run(['cp', path, '/dev/null'], check=True)
    return os.path.getsize(path) / MIB / (time.monotonic() - begin)


def at_random(path, readers, seconds, flags=0):
    """Reads in a second."""
    pages = os.path.getsize(path) // PAGE
    counts, end = [0] * readers, time.monotonic() + seconds

    def read(i):
        chance = random.Random(i)
        buffer = mmap.mmap(-1, PAGE)  # aligned, for O_DIRECT
        fd = os.open(path, os.O_RDONLY | flags)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        while time.monotonic() < end:
            os.preadv(fd, [buffer], chance.randrange(pages) * PAGE)
            counts[i] += 1
        os.close(fd)

    threads = [threading.Thread(target=read, args=(i,)) for i in range(readers)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return sum(counts) / seconds


def rate(mount, readers, seconds, flags=0):
    before = mount.cpu()
    reads = at_random(mount.path, readers, seconds, flags)
    return f'{reads:8.0f} ({reads * seconds / max(mount.cpu() - before, 0.01):7.0f})'


def measure(a, raw, container, folder):
    to = os.path.join(folder, 'mnt')
    print(f'{os.path.getsize(raw) >> 20} MiB in {os.path.getsize(container) >> 20} MiB')
    sequential(raw)
    print(f'cp of the raw image               {sequential(raw):8.0f} MiB/s')
    for name, options in (('the default cache', ()), ('--cache 8M', ('--cache', '8M'))):
        with Mounted(a.ramseal, container, to, *options) as m:
            before = m.cpu()
            print(f'{name:20} cp            {sequential(m.path):8.0f} MiB/s, '
                  f'{m.cpu() - before:.1f} s CPU', flush=True)
        for readers in (1, 4):
            with Mounted(a.ramseal, container, to, *options) as m:
                first = rate(m, readers, a.seconds)
                sequential(m.path)
                decoded = rate(m, readers, a.seconds, os.O_DIRECT)
                print(f'{name:20} random, {readers} reader{"s" if readers > 1 else " "}: {first}, '
                      f'decoded {decoded}, kernel {rate(m, readers, a.seconds)} reads/s', flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument('ramseal', type=os.path.abspath)
    p.add_argument('--folder')
    p.add_argument('--size', type=int, default=1024)
    p.add_argument('--seconds', type=float, default=5)
    p.add_argument('--source')
    a = p.parse_args()
    if os.geteuid() or not os.path.exists('/dev/fuse'):
        print('bench_mount: needs root and /dev/fuse')
        return
    folder = tempfile.mkdtemp(prefix='ramseal-bench-mount-', dir=a.folder)
    raw, container = (os.path.join(folder, name) for name in ('m.raw', 'm.rsz'))
    try:
        if not a.source:
            fill(raw, a.size * MIB)
        subprocess.run([a.ramseal, 'acquire', '-q', '-s', a.source or f'file:{raw}', '-o', container],
                       check=True)
        if a.source:
            subprocess.run([a.ramseal, 'export', '-q', '-o', raw, container], check=True)
        measure(a, raw, container, folder)
    finally:
        shutil.rmtree(folder)


main()
