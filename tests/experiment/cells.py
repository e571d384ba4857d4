# SPDX-License-Identifier: Apache-2.0
"""
What is run: a cell for each combination of machine, order, page-file timing, pressure and seed.

The whole product would take a day. Every order meets every timing at the pressure of the preset; the
other pressures are tried with page files behind the memory, where most tools have them, and with the
defaults. On the largest machine and in the guest the timings are tried with the two orders that matter
most. In the guest the defaults are also paired with `linear`: both in the same boot, in turns. The same
two are tried on simulated machines whose output goes out by a link.

What says most is run first, and what has been run of each cell is much the same at any time: an
experiment that is interrupted has lost its end, and not a part of it.
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

# What `acquire` does if it is not told otherwise, beside all orders with the same timing.
DEFAULTS = ('guided', 'guided')
WAYS = (*((order, DEFAULT_TIMING) for order in ORDERS), DEFAULTS)
PAIR = (('linear', DEFAULT_TIMING), DEFAULTS)

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
PAIRS = ('pairs-fast', 'pairs-slow')  # the guest, by the speed of its disk

# Bytes a second of the link that the container goes out by; 0: nothing waits.
LINKS = {'no link': 0, '1 Gbit/s': 125_000_000, '100 Mbit/s': 12_500_000, '10 Mbit/s': 1_250_000}


def link_machine(preset, link):
    return f'link-{preset}-{link.replace(" ", "-").replace("/", "-")}'


# {name: (preset, link)}. Their pages compress to a fortieth, which no memory does: so they are stored.
LINKED = {link_machine(preset, link): (preset, link) for preset in ('cohen2015', 'desktop')
          for link in LINKS}
SMALL_LINKED = {'link-small': ('small', 'slow')}  # for --quick, with a spool that fits it
SLOW = 'link=8M,spool=16M'
LINK_OPTIONS = ['--level', 'store']

MACHINES = ('cohen2015', 'desktop', 'server16g', 'guest', *PAIRS, *LINKED)
PARTS = ('sim', 'guest', 'pairs', 'link')
PREFIXED = ('pairs', 'link')  # parts that their machines' names begin with

# 20 pairs: so many of each pressure and disk.
PAIRS_OF = {'low': 3, 'normal': 4, 'high': 3}
PAIRS_IN_A_ROW = 2  # as long as a boot serves

# Seconds that a run takes on an idle core, with what is done with its container, until some have been
# timed.
SECONDS = {'cohen2015': 9, 'desktop': 8, 'server16g': 110, 'small': 2, 'guest': 40,
           'pairs-fast': 40, 'pairs-slow': 60, **dict.fromkeys(LINKED, 30), 'link-small': 3}


def part_of(machine):
    for part in PREFIXED:
        if machine.startswith(f'{part}-'):
            return part
    return 'guest' if machine == 'guest' else 'sim'


def is_simulated(cell):
    return cell.part in ('sim', 'link')


def options_of(cell):
    """Of acquire, beside the order and the timing."""
    return ['-t', '1', *(LINK_OPTIONS if cell.part == 'link' else ())]


def spec_of(cell):
    preset, link = {**LINKED, **SMALL_LINKED}.get(cell.machine, (cell.machine, None))
    more = f',{PRESSURES[cell.pressure]}' if PRESSURES[cell.pressure] else ''
    if link:
        more += f',{SLOW}' if link == 'slow' else f',link={LINKS[link]}'
    return f'{PRESETS[preset]}{more},live_files=1,seed={cell.seed}'


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


def _cells(machine, ways, pressure, seeds):
    return [Cell(part_of(machine), machine, order, timing, pressure, seed) for seed in seeds
            for order, timing in ways]


def _simulated(machine, ways, seeds):
    seeds = range(1, seeds + 1)
    if machine == 'small':
        return _cells(machine, ways, DEFAULT_PRESSURE, seeds)
    always = [w for w in ways if w in WAYS]
    others = [w for w in ways if w not in WAYS]
    levels = [p for p in PRESSURES if p != DEFAULT_PRESSURE]
    if machine == 'server16g':
        best = [w for w in always if w[0] in BEST]
        rest = [w for w in always if w not in best] + [w for w in others if w[0] in BEST]
        return (_in_turns(_cells(machine, best, p, seeds) for p in PRESSURES) +
                _cells(machine, rest, DEFAULT_PRESSURE, seeds))
    return _in_turns([_cells(machine, always + others, DEFAULT_PRESSURE, seeds),
                      *(_cells(machine, always, p, seeds) for p in levels)])


def _in_turns(groups):
    """Seed by seed, in the order of the groups."""
    return sorted((cell for group in groups for cell in group), key=lambda cell: cell.seed)


def _guest(ways, runs):
    """
    Its seed is the number of the run: nothing there repeats itself. Run by run, so that what changes
    while the guest grows old meets all of them.
    """
    best = [w for w in ways if w[0] in BEST]
    others = [w for w in ways if w in WAYS and w not in best]
    high = [w for w in best if w in WAYS]
    return _in_turns([_cells('guest', best + others, DEFAULT_PRESSURE, range(1, runs + 1)),
                      _cells('guest', high, 'high', range(1, runs + 1))])


def _pairs(machine, runs):
    """
    Pairs follow each other in one boot, and which of the two comes first takes turns. `runs`: as many
    more or fewer as that is not 3.
    """
    found = []
    for level, count in PAIRS_OF.items():
        for seed in range(1, max(count + runs - 3, 1) + 1):
            found += _cells(machine, PAIR if seed % 2 else PAIR[::-1], level, [seed])
    return found


def _linked(machine, seeds):
    return _cells(machine, PAIR, DEFAULT_PRESSURE, range(1, seeds + 1))


def _together(groups):
    """Pairs of all disks and pressures, a few of each at a time."""
    return sorted((cell for group in groups for cell in group),
                  key=lambda cell: (cell.seed - 1) // PAIRS_IN_A_ROW)


def plan(machines, ways, seeds, runs):
    """In the order in which they are to be run: first what the defaults and `linear` have."""
    simulated = _in_turns(_simulated(m, ways, seeds) for m in machines if part_of(m) == 'sim')
    simulated.sort(key=lambda c: ((c.order, c.pagefile) not in PAIR, c.machine == 'server16g'))
    return [*simulated, *_in_turns(_linked(m, seeds) for m in machines if part_of(m) == 'link'),
            *_together(_pairs(m, runs) for m in machines if m in PAIRS),
            *(_guest(ways, runs) if 'guest' in machines else ())]


def pair_of(cell):
    """Both cells of its pair."""
    return [cell._replace(order=order, pagefile=timing) for order, timing in PAIR]


def is_shown(cell):
    """Whose container is kept for the comparison: one run of each order."""
    return (cell.part not in PREFIXED and cell.pagefile == DEFAULT_TIMING and
            cell.pressure == DEFAULT_PRESSURE and cell.seed == 1)


def estimate(cells, jobs, taken):
    """{machine: (runs, seconds)}; `taken`: {machine: seconds} of a run, as far as they are known."""
    found = {}
    for cell in cells:
        runs, seconds = found.get(cell.machine, (0, 0))
        found[cell.machine] = (runs + 1, seconds + taken.get(cell.machine, SECONDS[cell.machine]) /
                               (jobs if is_simulated(cell) else 1))
    return found
