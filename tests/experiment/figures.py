# SPDX-License-Identifier: Apache-2.0
"""
The figures of the experiment: numbers out of runs.csv, drawn by the report's own code (plot.c).
"""

import subprocess
from collections import Counter
from statistics import median

from cells import BEST, PRESSURES
from results import column, machines, select, timings, ways


def window_line(name, row, kind):
    return '\t'.join([name, *(str(row[f'{kind}_{n}'] or 0)
                              for n in ('pages', 'median_ns', 'p95_ns', 'max_ns')),
                      row[f'{kind}_octaves']])


def pooled(rows, kind):
    """All runs of a cell as one distribution; its quantiles are the medians of theirs."""
    octaves = Counter()
    for row in rows:
        for part in row[f'{kind}_octaves'].split():
            octave, pages = map(int, part.split(':'))
            octaves[octave] += pages
    return {f'{kind}_pages': sum(octaves.values()),
            f'{kind}_octaves': ' '.join(f'{o}:{n}' for o, n in sorted(octaves.items())),
            **{f'{kind}_{n}': int(median(column(rows, f'{kind}_{n}')))
               for n in ('median_ns', 'p95_ns', 'max_ns')}}


def windows(rows, machine):
    """By order: how windows are distributed."""
    lines = []
    for name, of in ways(rows, machine):
        r = [row for row in of if row['frame_pages']]
        if r:
            lines.append(window_line(name, pooled(r, 'frame'), 'frame'))
    return ('curves',), lines


def spread(rows, machine):
    return ('spread',), [window_line(name, row, 'frame') for name, r in ways(rows, machine)
                         for row in r]


def slots(rows, machine):
    """By page-file timing and order: windows to slots."""
    return ('spread',), [window_line(f'{when}, {order}', row, 'slot')
                         for when in timings(rows, machine) for order in BEST
                         for row in select(rows, machine=machine, order=order, pagefile=when)]


def dots(name, row):
    return '\t'.join([name, *(str(row[f'{s}_wrong']) for s in ('valid', 'transition', 'slot'))])


DOTS = ('pages whose content is not their own', 'valid', 'transition', 'slot')


def wrong(rows, machine):
    return (('dots', 'Wrong pages in a flat image, by order', *DOTS),
            [dots(name, row) for name, r in ways(rows, machine) for row in r])


def pressure(rows, machine):
    return (('dots', 'Wrong pages in a flat image, by pressure and order', *DOTS),
            [dots(f'{level}, {name}', row) for level in PRESSURES
             for name, r in ways(rows, machine, level) if name in (*BEST, 'defaults') for row in r])


FIGURES = {'windows': windows, 'spread': spread, 'slots': slots, 'wrong': wrong,
           'pressure': pressure}


def draw(rows, plot, out):
    folder = out / 'figures'
    folder.mkdir(exist_ok=True)
    for machine in machines(rows):
        for name, make in FIGURES.items():
            arguments, lines = make(rows, machine)
            if not lines:
                continue
            done = subprocess.run([plot, *arguments], input='\n'.join(lines) + '\n', text=True,
                                  capture_output=True, check=True)
            (folder / f'{machine}-{name}.svg').write_text(done.stdout)
