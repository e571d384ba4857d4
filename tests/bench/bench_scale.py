#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What it takes to look into containers of simulated machines of 2, 16 and 64 GiB.

    bench_scale.py RAMSEAL FOLDER [--order ORDER] [--runs N] [--only WORD]

FOLDER keeps the containers (made once for each order: remove them when acquire has changed; the largest
takes 1.3 GB, and minutes). `info`, `smear`, `read` of one page and `report` run in turn, after one run that
does not count; the table shows medians of wall and CPU time and the highest peak of resident memory,
each beside that of 2 GiB. `aim` is 64 MiB, 8 bytes for each page of page tables and 3 bits for each
page of memory.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from bench import MIB, Job, median, once

# The largest is the server's preset times four, but for its processes: there are twelve times as many.
MACHINES = {
    2: 'desktop',
    16: 'server16g',
    64: 'server16g,ram=64G,allocated=32G,resident=26G,trimmed=22G,others=20G,processes=1500,'
        'pagefile0=16G,pagefile1=8G,cache=6G,bandwidth=4000000000,touch=240000,write=120000,'
        'alloc=16000,free=16000,trim=1600M',
}
NOTHING_THERE = 3  # what `read` ends with at an address that maps nothing: its work was the same
COLUMNS = '{:>4} {:<8} {:>8} {:>6} {:>8} {:>6} {:>8} {:>6} {:>8}'


def make(ramseal, folder, gib, order):
    path = folder / f'scale-{gib}-{order}.rsz'
    if not path.exists():
        print(f'acquiring {path} ...', flush=True)
        subprocess.run([ramseal, 'acquire', '-q', '--source', f'sim:{MACHINES[gib]}', '--order', order,
                        '--no-pagefile', '-o', path], check=True)
    return path


def smear(ramseal, path):
    return json.loads(subprocess.run([ramseal, 'smear', '--json', path], check=True,
                                     stdout=subprocess.PIPE).stdout)


def aim(gib, doc):
    tables = max(c['tables'] for c in doc['total']['copies'].values())
    return 64 * MIB + 8 * tables + 3 * (gib << 30 >> 12) // 8


def commands(path, folder, doc):
    """The process with most page tables is read from: its whole walk is what `read` has to make."""
    space = max((s for s in doc['spaces'] if s.get('fate') == 'lived' and s.get('pid')),
                key=lambda s: s['copies']['image']['tables'])
    return {
        'info': ['info', '--json', path],
        'smear': ['smear', '--json', path],
        'read': ['read', '--json', '--pid', str(space['pid']), '--va', '0x10000', path],
        'report': ['report', '--force', '-o', folder / 'scale.html', path],
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('ramseal')
    parser.add_argument('folder', type=Path)
    parser.add_argument('--order', default='guided')
    parser.add_argument('--runs', type=int, default=3)
    parser.add_argument('--only', default='')
    args = parser.parse_args()

    args.folder.mkdir(parents=True, exist_ok=True)
    print(COLUMNS.format('GiB', 'command', 'wall s', 'x', 'CPU s', 'x', 'peak MiB', 'x', 'aim MiB'))
    least = {}
    for gib in MACHINES:
        path = make(args.ramseal, args.folder, gib, args.order)
        doc = smear(args.ramseal, path)
        for name, line in commands(path, args.folder, doc).items():
            if args.only not in name:
                continue
            job = Job([[args.ramseal, *map(str, line)]], fine=(0, NOTHING_THERE))
            once(job)
            runs = [once(job) for _ in range(args.runs)]
            row = median(runs, 'wall'), median(runs, 'cpu'), max(r.peak for r in runs)
            base = least.setdefault(name, row)
            times = [f'{mine / first:.1f}' if first else '-' for mine, first in zip(row, base)]
            print(COLUMNS.format(gib, name, f'{row[0]:.2f}', times[0], f'{row[1]:.2f}', times[1],
                                 f'{row[2] / MIB:.0f}', times[2], f'{aim(gib, doc) / MIB:.0f}'), flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
