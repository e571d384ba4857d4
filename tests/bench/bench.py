#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
ramseal beside the tools that one would use instead, on the same memory image in page cache.

    bench.py RAMSEAL KERNEL CACHE [--image FILE] [--scratch FOLDER] [--runs N] [--only WORD]

KERNEL is what build/kernel made, CACHE a folder for the image (made once, see image.py). Each pair
of commands runs in turn, A B A B ..., after one run of each that does not count; the table shows
medians, and of the ratio A/B of each pair the median with its extremes. CPU is user and system
time of all processes; peak is the largest resident set of a single process. A ratio below 1 means
that ramseal takes less. Outputs go to a tmpfs where there is one with room, so that no disk is
measured: ramseal syncs what it writes, and of the others only dd can be told to.
"""

import argparse
import collections
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from image import image

MIB = 1 << 20
THREADS = 2
FAST = '1'  # the level that is compared with zstd's of the same number

Run = collections.namedtuple('Run', 'wall cpu peak')

# What a user would run: `commands` side by side, or each reading what the one before it writes.
# An exit status that is none of `fine` ends the bench.
Job = collections.namedtuple('Job', 'commands piped output runs fine',
                             defaults=(False, None, None, (0,)))

Row = collections.namedtuple('Row', 'name ours theirs aim')


def peak_of(pid):
    """
    The most that was resident so far. Not from wait4(): a child's ru_maxrss begins with what its
    parent had when it forked, and Python is larger than ramseal.
    """
    try:
        status = Path(f'/proc/{pid}/status').read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    at = status.find('VmHWM:')
    return int(status[at:].split()[1]) * 1024 if at >= 0 else 0


def start(job):
    processes, stdin = [], subprocess.DEVNULL
    for i, command in enumerate(job.commands):
        last = i == len(job.commands) - 1
        stdout = subprocess.PIPE if job.piped and not last else subprocess.DEVNULL
        processes.append(subprocess.Popen(command, stdin=stdin, stdout=stdout,
                                          stderr=subprocess.DEVNULL))
        if stdin not in (None, subprocess.DEVNULL):
            stdin.close()
        stdin = processes[-1].stdout if job.piped else subprocess.DEVNULL
    return processes


def once(job):
    for stale in job.output or ():
        Path(stale).unlink(missing_ok=True)
    begin = time.monotonic()
    running = {p.pid: p for p in start(job)}
    cpu, peak = 0.0, dict.fromkeys(running, 0)
    while running:
        for pid in list(running):
            peak[pid] = max(peak[pid], peak_of(pid))
            done, status, usage = os.wait4(pid, os.WNOHANG)
            if not done:
                continue
            process = running.pop(pid)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode not in job.fine:
                sys.exit(f'{process.args} ended with {process.returncode}')
            cpu += usage.ru_utime + usage.ru_stime
        time.sleep(0.002)
    return Run(time.monotonic() - begin, cpu, max(peak.values()))


def pair(ours, theirs, runs):
    a, b = [], []
    once(ours), once(theirs)
    for _ in range(min(runs, theirs.runs or runs)):
        a.append(once(ours))
        b.append(once(theirs))
    return a, b


def median(runs, what):
    return statistics.median(getattr(run, what) for run in runs)


def size(job):
    """Bytes on the disk: an image with holes is as large as what is not a hole."""
    return sum(Path(p).stat().st_blocks * 512 for p in job.output) if job.output else None


COLUMNS = '{:<42} {:>8} {:>8} {:>20} {:>6} {:>5} {:>5} {:>6} {:>6}'


def heading():
    print(COLUMNS.format('A against B', 'A s', 'B s', 'A/B wall', 'A/B', 'A', 'B', 'A/B', 'aim'))
    print(COLUMNS.format('', 'wall', 'wall', 'median (min-max)', 'cpu', 'MiB', 'MiB', 'size',
                         'wall'), flush=True)


def show(row, runs):
    a, b = pair(row.ours, row.theirs, runs)
    walls = [x.wall / y.wall for x, y in zip(a, b)]
    cpus = [x.cpu / y.cpu for x, y in zip(a, b)]
    sizes = size(row.ours), size(row.theirs)
    print(COLUMNS.format(
        row.name, f'{median(a, "wall"):.2f}', f'{median(b, "wall"):.2f}',
        f'{statistics.median(walls):.2f} ({min(walls):.2f}-{max(walls):.2f})',
        f'{statistics.median(cpus):.2f}', f'{median(a, "peak") / MIB:.0f}',
        f'{median(b, "peak") / MIB:.0f}', f'{sizes[0] / sizes[1]:.3f}' if all(sizes) else '-',
        row.aim), flush=True)


class Bench:
    def __init__(self, ramseal, source, scratch):
        self.ramseal = ramseal
        self.source = str(source)
        self.scratch = scratch

    def to(self, name):
        return str(self.scratch / name)

    def ours(self, command, *args, output=None):
        line = [self.ramseal, command, '-q', '--threads', str(THREADS), *args]
        if output:
            line += ['--force', '-o', self.to(output)]
        return Job([line], output=[self.to(output)] if output else None)

    def acquire(self, *args, output='a.rsz', source=None):
        return self.ours('acquire', '--source', f'file:{source or self.source}', *args,
                         output=output)

    def writes(self, name, *commands, runs=None):
        return Job(list(commands), output=[self.to(name)], runs=runs)

    def zstd(self):
        return ['zstd', f'-T{THREADS}', '-1', '-q', '-f', self.source, '-o', self.to('b.zst')]

    def rows(self):
        zstd = self.writes('b.zst', self.zstd())
        hashed = self.writes('b.zst', self.zstd(), ['openssl', 'dgst', '-sha256', self.source])
        ewf = Job([['ewfacquire', '-u', '-q', '-c', 'fast', '-S', '7EiB', '-t', self.to('b'),
                    self.source]], output=[self.to('b.E01')], runs=3)
        unpacked = Job([['zstd', '-dc', '-q', self.to('in.zst')], ['openssl', 'dgst', '-sha256']],
                       piped=True)
        fast = self.acquire('--level', FAST)
        yield Row('acquire : zstd -T2 -1', fast, zstd, '0.72')
        yield Row('acquire : zstd -T2 -1 & openssl sha256', fast, hashed, '')
        yield Row('acquire : ewfacquire -c fast', fast, ewf, '')
        yield Row('acquire : cp', fast, self.writes('b.raw', ['cp', self.source, self.to('b.raw')]),
                  '')
        yield Row('acquire --level store : dd conv=fsync', self.acquire('--level', 'store'),
                  self.writes('b.raw', ['dd', f'if={self.source}', f'of={self.to("b.raw")}', 'bs=1M',
                                        'conv=fsync', 'status=none']), '0.75')
        yield Row('acquire --level -5 : lz4 -1', self.acquire('--level', '-5'),
                  self.writes('b.lz4', ['lz4', '-1', '-q', '-f', self.source, self.to('b.lz4')]), '1')
        yield Row('verify : zstd -dc | openssl sha256', self.ours('verify', self.to('in.rsz')),
                  unpacked, '0.5')
        yield Row('export raw : zstd -dc | openssl sha256',
                  self.ours('export', '--format', 'raw', self.to('in.rsz'), output='a.raw'),
                  unpacked, '0.5')
        copied = self.writes('b.raw', ['cp', self.source, self.to('b.raw')])
        for form in 'raw', 'lime', 'elf', 'kdump':
            yield Row(f'export {form} : cp',
                      self.ours('export', '--format', form, self.to('in.rsz'), output=f'a.{form}'), copied, '')
        yield Row('export raw, guided machine : linear', *self.scattered(), '')
        if self.writes_e01():
            yield Row('export e01 : cp',
                      self.ours('export', '--format', 'e01', self.to('in.rsz'), output='a.E01'), copied, '')
            yield Row('acquire --format e01 : ewfacquire -c fast',
                      self.acquire('--format', 'e01', output='a.E01'), ewf, '0.55')

    def scattered(self):
        """A simulated machine that `guided` took, and the same content that `linear` took."""
        made = []
        for order in 'guided', 'linear':
            once(Job([[self.ramseal, 'acquire', '-q', '-f', '-s', 'sim:desktop', '--order', order,
                       '-o', self.to(f'{order}.rsz')]], fine=(0, 3)))
            made.append(self.ours('export', '--format', 'raw', self.to(f'{order}.rsz'), output='a.raw'))
        return made

    def writes_e01(self):
        shown = subprocess.run([self.ramseal, 'acquire', '--help'], capture_output=True, text=True)
        return '--format' in shown.stdout

    def prepare(self):
        """In page cache, and packed by both sides for what unpacks."""
        with open(self.source, 'rb') as f:
            while f.read(MIB):
                pass
        once(self.acquire('--level', FAST, output='in.rsz'))
        once(self.writes('b.zst', self.zstd()))
        os.rename(self.to('b.zst'), self.to('in.zst'))

    def peaks(self):
        """Peak memory must not grow with the image."""
        double = self.to('double.raw')
        subprocess.run(f'cat "{self.source}" "{self.source}" >"{double}"', shell=True, check=True)
        peaks = [once(self.acquire('--level', FAST, source=s)).peak
                     for s in (self.source, double)]
        os.unlink(double)
        print(f'peak of acquire at {THREADS} threads: {peaks[0] / MIB:.1f} MiB; '
              f'of an image twice as large: {peaks[1] / MIB:.1f} MiB')


def scratch_folder(chosen, cache, needed):
    """A new folder below the chosen one, or in memory, or else in the cache."""
    shm = Path('/dev/shm')
    if chosen:
        return chosen / f'ramseal-bench-{os.getpid()}'
    if shm.is_dir() and shutil.disk_usage(shm).free > needed:
        return shm / f'ramseal-bench-{os.getpid()}'
    print('note: no tmpfs with room: the disk is measured too')
    return Path(cache, 'scratch')


def options(runs, rows='rows'):
    arguments = argparse.ArgumentParser()
    arguments.add_argument('ramseal', type=os.path.abspath)
    arguments.add_argument('kernel', type=Path)
    arguments.add_argument('cache', type=Path)
    arguments.add_argument('--image', type=Path)
    arguments.add_argument('--scratch', type=Path)
    arguments.add_argument('--runs', type=int, default=runs)
    arguments.add_argument('--only', default='', help=f'{rows} whose name holds this')
    o = arguments.parse_args()
    if not o.image and not (o.kernel / 'vmlinuz').exists() and not (o.cache / 'guest.raw').exists():
        print('no kernel to make an image with: run build/kernel')
        sys.exit(77)  # meson: skipped
    return o


def main():
    o = options(runs=7)
    source = o.image or image(o.kernel, o.cache)
    scratch = scratch_folder(o.scratch, o.cache, 6 * source.stat().st_size)
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        bench = Bench(o.ramseal, source, scratch)
        bench.prepare()
        print(f'{source}: {source.stat().st_size / MIB:.0f} MiB; '
              f'zstd -1 makes {os.path.getsize(scratch / "in.zst") / MIB:.0f} MiB of it; '
              f'{o.runs} runs; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs')
        heading()
        for row in bench.rows():
            if o.only in row.name:
                show(row, o.runs)
        bench.peaks()
    finally:
        shutil.rmtree(scratch)
    return 0


if __name__ == '__main__':
    sys.exit(main())
