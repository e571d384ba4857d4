#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time of `ramseal extract-file` against dd and fcat, for a page file in 1, 1,000, 50,000 fragments.

    bench_extract.py RAMSEAL [--folder DIR] [--size MIB] [--rounds N]

Each number is the median of N rounds in which the programs take turns. dd reads as many bytes of
the same image in 1 MiB blocks, in one piece: what the disk or the page cache can do. "cold" means
that the image was dropped from the page cache before (posix_fadvise). The images (2.5 times the
size, sparse) are kept in DIR if it is given. fcat's output is checked: libtsk 4.11 ends a run list
after 256 MFT records, so what it writes for 50,000 fragments is not the file.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'ntfs'))
from forge import Volume  # noqa: E402

CLUSTER, FIRST = 4096, 100000


def make(path, size, fragments):
    clusters = size // CLUSTER
    each, rest = divmod(clusters, fragments)
    gap = max(1, each // 2)
    runs, lcn = [], FIRST
    for i in range(fragments):
        count = each + (i < rest)
        runs.append((lcn, count))
        lcn += count + gap
    volume = Volume((lcn + 50000) * CLUSTER)
    volume.file('pagefile.sys', runs, per_record=None if fragments == 1 else 90)
    if not os.path.exists(path):
        volume.write(path)


def drop(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def warm(path):
    subprocess.run(['dd', f'if={path}', 'of=/dev/null', 'bs=1M', 'status=none'], check=True)


def run(command, out):
    """Seconds and peak RSS in MiB (0 where GNU time is not installed)."""
    gnu_time = shutil.which('time')
    if gnu_time:
        command = [gnu_time, '-f', '%M', *command]
    with open(out, 'wb') as o:
        begin = time.monotonic()
        p = subprocess.run(command, stdout=o, stderr=subprocess.PIPE)
        took = time.monotonic() - begin
    if p.returncode:
        raise SystemExit(p.stderr.decode())
    return took, int(p.stderr.split()[-1]) / 1024 if gnu_time else 0


def rounds(commands, n, before, out):
    """{name: (median seconds, largest RSS)}"""
    results = {name: [] for name in commands}
    for _ in range(n):
        for name, command in commands.items():
            before()
            results[name].append(run(command, out))
            if out != '/dev/null':
                os.remove(out)
    return {name: (statistics.median(t for t, _ in r), max(m for _, m in r))
            for name, r in results.items()}


def main():
    p = argparse.ArgumentParser()
    p.add_argument('ramseal')
    p.add_argument('--folder')
    p.add_argument('--size', type=int, default=2048)
    p.add_argument('--rounds', type=int, default=5)
    a = p.parse_args()
    folder = a.folder or tempfile.mkdtemp(prefix='ramseal-bench-')
    os.makedirs(folder, exist_ok=True)
    out = os.path.join(folder, 'out')
    print(f'{a.size} MiB, median of {a.rounds}; x = times dd')
    try:
        for fragments in (1, 1000, 50000):
            image = os.path.join(folder, f'fragments-{fragments}.raw')
            make(image, a.size << 20, fragments)
            commands = {
                'dd': ['dd', f'if={image}', 'bs=1M', f'skip={FIRST * CLUSTER >> 20}',
                       f'count={a.size}', 'status=none'],
                'ramseal': [os.path.abspath(a.ramseal), '-q', 'extract-file', '-i', image,
                            'pagefile.sys', '-o', '-'],
            }
            if shutil.which('fcat'):
                commands['fcat'] = ['fcat', 'pagefile.sys', image]
            warm(image)
            for what, before, to in (('cached, to /dev/null', lambda: None, '/dev/null'),
                                     ('cached, to a file', lambda: None, out),
                                     ('cold, to /dev/null', lambda: drop(image), '/dev/null')):
                r = rounds(commands, a.rounds, before, to)
                print(f'{fragments:6} fragments, {what:21}' + ''.join(
                    f'  {name} {t:.2f} s ({t / r["dd"][0]:.2f} x, {m:.0f} MiB)'
                    for name, (t, m) in r.items()), flush=True)
    finally:
        if not a.folder:
            shutil.rmtree(folder)


main()
