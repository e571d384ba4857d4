# SPDX-License-Identifier: Apache-2.0
"""
What is run: a cell for each combination of machine, order, page-file timing, pressure and seed.

The whole product would take a day. Every order meets every timing at the pressure of the preset; the
other pressures are tried with page files behind the memory, where most tools have them. On the largest
machine and in the guest the timings are tried with the two orders that matter most.
"""

import json
import re
import subprocess
from collections import namedtuple

Cell = namedtuple('Cell', 'part machine order pagefile pressure seed')
SPREAD = Cell._fields[:-1]  # what repeated runs have in common

ORDERS = ('linear', 'tables-first', 'tables-last', 'guided')
BEST = ('linear', 'guided')
USAGE = 2  # exit code of a command line that is refused
DEFAULT_TIMING = 'after'
CONCURRENT = 'concurrent'  # two threads: the only one that does not repeat itself
DEFAULT_PRESSURE = 'normal'

# What is set beside a preset. `normal` is the preset as it is.
PRESSURES = {
    'low': 'activity=25,pressure=10',
    'normal': '',
    'high': 'activity=300,pressure=200',
}

# A machine that is read in a moment, for --quick: short of memory, and busy.
SMALL = ('desktop,ram=128M,allocated=80M,resident=44M,trimmed=24M,others=30M,processes=10,cache=8M,'
         'pressure=100,bandwidth=80M,pagefile0=64M,pagefile1=32M,activity=1000')

# One that is only asked whether it can be read.
TINY = ('desktop,ram=64M,allocated=8M,resident=4M,trimmed=2M,others=4M,processes=2,cache=1M,'
        'pagefile0=16M,pagefile1=0,live_files=1')

PRESETS = {'cohen2015': 'cohen2015', 'desktop': 'desktop', 'server16g': 'server16g', 'small': SMALL}
MACHINES = ('cohen2015', 'desktop', 'server16g', 'guest')

# Seconds that a run takes on two idle cores, with what is done with its container; for estimates.
SECONDS = {'cohen2015': 9, 'desktop': 8, 'server16g': 65, 'small': 2, 'guest': 60}


def spec_of(cell):
    more = f',{PRESSURES[cell.pressure]}' if PRESSURES[cell.pressure] else ''
    return f'{PRESETS[cell.machine]}{more},live_files=1,seed={cell.seed}'


def timings(ramseal):
    """The values of --pagefile, as the program's own help has them."""
    shown = subprocess.run([ramseal, 'acquire', '--help'], capture_output=True, text=True, check=True)
    return re.search(r'--pagefile ([\w|-]+)', shown.stdout).group(1).split('|')


def tried(ramseal, order, timing):
    """
    The root of a container of both together, of a machine that is read in a moment; None if the
    program refuses such a command line.
    """
    done = subprocess.run([ramseal, 'acquire', '-q', '--log-json', '--source', f'sim:{TINY}',
                           '--order', order, '--pagefile', timing, '-o', '-'],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode == USAGE:
        return None
    return json.loads(done.stderr.splitlines()[-1])['root']


def combinations(ramseal):
    """
    [(order, timing)] that the program takes. What comes to the same as `after` is left out: a timing
    that goes by the page tables is of use to the order that does so.
    """
    after = {order: tried(ramseal, order, DEFAULT_TIMING) for order in ORDERS}
    found = [(order, timing, tried(ramseal, order, timing))
             for timing in timings(ramseal) for order in ORDERS]
    return [(order, timing) for order, timing, root in found
            if root and (timing in (DEFAULT_TIMING, CONCURRENT) or root != after[order])]


def _cells(part, machine, pairs, pressure, seeds):
    return [Cell(part, machine, order, timing, pressure, seed) for seed in range(1, seeds + 1)
            for order, timing in pairs]


def _simulated(machine, pairs, seeds):
    default = [p for p in pairs if p[1] == DEFAULT_TIMING]
    others = [p for p in pairs if p[1] != DEFAULT_TIMING]
    if machine == 'small':
        return _cells('sim', machine, pairs, DEFAULT_PRESSURE, seeds)
    if machine == 'server16g':
        best = [p for p in default if p[0] in BEST]
        return (_cells('sim', machine, default, DEFAULT_PRESSURE, seeds) +
                _cells('sim', machine, [p for p in others if p[0] in BEST], DEFAULT_PRESSURE, seeds) +
                _cells('sim', machine, best, 'high', seeds))
    cells = _cells('sim', machine, pairs, DEFAULT_PRESSURE, seeds)
    for pressure in PRESSURES:
        if pressure != DEFAULT_PRESSURE:
            cells += _cells('sim', machine, default, pressure, seeds)
    return cells


def _guest(pairs, runs):
    """Its seed is the number of the run: nothing there repeats itself."""
    best = [p for p in pairs if p[0] in BEST]
    others = [p for p in pairs if p not in best and p[1] == DEFAULT_TIMING]
    default = [p for p in best if p[1] == DEFAULT_TIMING]
    cells = _cells('guest', 'guest', best, DEFAULT_PRESSURE, runs)
    cells += _cells('guest', 'guest', others, DEFAULT_PRESSURE, max(1, runs - 1))
    # Run by run, so that what changes while the guest grows old meets all of them.
    cells.sort(key=lambda cell: cell.seed)
    return cells + _cells('guest', 'guest', default, 'high', runs)


def plan(machines, pairs, seeds, runs):
    cells = []
    for machine in machines:
        cells += _guest(pairs, runs) if machine == 'guest' else _simulated(machine, pairs, seeds)
    return cells


def is_shown(cell):
    """Whose container is kept for the comparison: one run of each order."""
    return (cell.pagefile == DEFAULT_TIMING and cell.pressure == DEFAULT_PRESSURE and
            cell.seed == 1)


def estimate(cells, jobs):
    """{machine: (runs, seconds)}"""
    found = {}
    for cell in cells:
        runs, seconds = found.get(cell.machine, (0, 0))
        found[cell.machine] = (runs + 1, seconds + SECONDS[cell.machine] /
                               (1 if cell.part == 'guest' else jobs))
    return found
