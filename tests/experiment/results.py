# SPDX-License-Identifier: Apache-2.0
"""
The tables of docs/RESULTS.md, out of runs.csv. They stand between `<!-- table NAME -->` and
`<!-- end -->`, and are made anew each time; all other text is written by hand.
"""

import re
import shutil
from statistics import median

from cells import (BEST, DEFAULT_PRESSURE, DEFAULT_TIMING, DEFAULTS, LINKED, MACHINES, ORDERS, PAIR,
                   PAIRS, PRESSURES, SMALL_LINKED, WAYS)
from runs import STATES

NO_VALUE = '-'


def duration(ns):
    for unit, size in (('s', 10**9), ('ms', 10**6), ('µs', 10**3)):
        if ns >= size:
            return f'{_three(ns / size)} {unit}'
    return f'{ns:.0f} ns'


def _three(value):
    """Three digits, without an exponent."""
    return f'{value:.0f}' if value >= 100 else f'{value:.1f}' if value >= 10 else f'{value:.2f}'


def count(n):
    return f'{n:,.0f}'


def size(n):
    return f'{_three(n / 2**20)} MiB' if n else '0'


def ratio(value):
    return f'{value:,.0f} ×' if value >= 10 else f'{value:.2f} ×'


def spread(values, show):
    """The median of the runs, and from the least to the most where they differ."""
    values = [v for v in values if v is not None]
    if not values:
        return NO_VALUE
    low, high = show(min(values)), show(max(values))
    middle = show(median(values))
    return middle if low == high else f'{middle} ({low} to {high})'


def select(rows, **wanted):
    """Runs that came to their end, in the plain cell unless something else is asked for."""
    wanted = {'pagefile': DEFAULT_TIMING, 'pressure': DEFAULT_PRESSURE, **wanted}
    return [r for r in rows if r['outcome'] == 'ok' and all(r[k] == v for k, v in wanted.items())]


def column(rows, name):
    return [r[name] for r in rows]


def table(heads, lines):
    if not lines:
        return 'Not run with this version of the program.\n'
    rules = ['---'] + ['--:'] * (len(heads) - 1)
    return ''.join(f'| {" | ".join(line)} |\n' for line in (heads, rules, *lines))


def timings(rows, machine):
    """Of page files, that were tried there: the older ones first."""
    found = {r['pagefile'] for r in rows if r['machine'] == machine}
    old = ('before', 'after', 'concurrent')
    return [t for t in old if t in found] + sorted(found.difference(old))


def machines(rows):
    """
    Those that have runs; a guest in which only pairs were run is no machine of its own, nor is one
    with a link.
    """
    found = set(column(rows, 'machine')).difference(PAIRS, LINKED)
    return [m for m in (*MACHINES, 'small') if m in found]


def way_name(order, when):
    return 'defaults' if (order, when) == DEFAULTS else order


def ways(rows, machine, level=DEFAULT_PRESSURE):
    """[(name, runs)] of all orders with page files after the memory, and of the defaults."""
    found = [(way_name(*way), select(rows, machine=machine, order=way[0], pagefile=way[1], pressure=level))
             for way in WAYS]
    return [(name, r) for name, r in found if r]


def levels(rows):
    """[(machine, pressure, name, runs)]"""
    return [(machine, level, name, r) for machine in machines(rows) for level in PRESSURES
            for name, r in ways(rows, machine, level)]


def unlinked(rows):
    """Those with a link have a table of their own, with all that is said of it."""
    return [r for r in rows if r['part'] != 'link']


def percent(value):
    return f'{value:.2f} %' if value >= 0.01 or not value else 'below 0.01 %'


def share(rows, part, whole):
    """Of each run."""
    return [100 * r[part] / r[whole] if r[whole] else 0 for r in rows]


# --- tables ---

def orders(rows, machine):
    lines = []
    for name, r in ways(rows, machine):
        lines.append((
            f'`{name}`', str(len(r)),
            *(spread(column(r, f'frame_{n}_ns'), duration) for n in ('median', 'p95', 'max')),
            spread(column(r, 'at_risk'), count), spread(column(r, 'truly_wrong'), count),
            spread(column(r, 'read_wrong'), count), spread(column(r, 'wall_ns'), duration)))
    return table(('order', 'runs', 'median window', '95 %', 'maximum', 'mappings at risk',
                  'wrong in a flat image', 'wrong through `read`', 'wall time'), lines)


def wrong(rows, machine):
    lines = []
    for name, r in ways(rows, machine):
        lines.append((
            f'`{name}`', spread(column(r, 'mappings'), count),
            *(spread(column(r, f'{state}_wrong'), count) for state in STATES),
            spread(column(r, 'foreign'), count), spread(column(r, 'kernel'), count),
            spread(column(r, 'read_wrong'), count)))
    return table(('order', 'mappings', 'wrong in a flat image: valid', 'transition', 'slot',
                  'foreign content', "the kernel's", 'wrong through `read`'), lines)


def risk(rows):
    """How much of what is at risk is wrong, and how much of what is wrong is said to be."""
    lines = []
    for machine, level, name, r in levels(rows):
        bad, safe = (sum(column(r, n)) for n in ('read_wrong', 'safe_but_wrong'))
        lines.append((
            machine, level, f'`{name}`', str(len(r)), spread(column(r, 'safe'), count),
            spread(column(r, 'at_risk'), count), spread(column(r, 'risk_but_wrong'), count),
            spread(share(r, 'risk_but_wrong', 'at_risk'), percent),
            percent(100 * (bad - safe) / bad) if bad else 'none wrong', count(safe),
            spread(column(r, 'changed'), count)))
    return table(('machine', 'pressure', 'order', 'runs', 'safe', 'at risk', 'of these wrong', 'share',
                  'of the wrong, not called safe', 'safe, and wrong', 'changed meanwhile'), lines)


def timing(rows, machine):
    lines = []
    for when in timings(rows, machine):
        for order in ORDERS:
            r = select(rows, machine=machine, order=order, pagefile=when)
            if not r:
                continue
            lines.append((
                f'`{when}`', f'`{order}`', str(len(r)),
                *(spread(column(r, f'slot_{n}_ns'), duration) for n in ('median', 'p95', 'max')),
                spread(column(r, 'slots_at_risk'), count), spread(column(r, 'slot_wrong'), count),
                spread([a + b for a, b in zip(column(r, 'valid_wrong'),
                                              column(r, 'transition_wrong'))], count),
                spread(column(r, 'read_wrong'), count), spread(column(r, 'wall_ns'), duration)))
    return table(('page files', 'order', 'runs', 'median window to the slot', '95 %', 'maximum',
                  'slots at risk', 'wrong in a flat image: slots', 'frames', 'wrong through `read`',
                  'wall time'), lines)


def pressure(rows):
    lines = []
    for machine, level, name, r in levels(rows):
        lines.append((
            machine, level, f'`{name}`', str(len(r)), spread(column(r, 'frame_median_ns'), duration),
            spread(column(r, 'frame_p95_ns'), duration), spread(column(r, 'at_risk'), count),
            spread(column(r, 'truly_wrong'), count), spread(column(r, 'read_wrong'), count)))
    return table(('machine', 'pressure', 'order', 'runs', 'median window', '95 %', 'mappings at risk',
                  'wrong in a flat image', 'wrong through `read`'), lines)


def _middle(rows, name):
    return median(column(rows, name))


def _times(a, b):
    """How many times smaller b is; of nothing nothing can be said but what it came from."""
    return ratio(a / b) if b else f'{count(a)} to none' if a else 'none in both'


# What guided was to reach beside linear.
GOAL_WINDOW = 100
GOAL_WRONG = {'guest': 100}
GOAL_WRONG_ELSE = 1000
GOAL_WALL = 1.25
GOAL_RISK = 3  # times what changed


def missed(machine, linear, guided):
    """Which of the goals it missed. Of nothing wrong with linear nothing can be a thousandth."""
    found = [text for text, name in (('median', 'frame_median_ns'), ('95 %', 'frame_p95_ns'))
             if GOAL_WINDOW * _middle(guided, name) > _middle(linear, name)]
    if GOAL_WRONG.get(machine, GOAL_WRONG_ELSE) * _middle(guided, 'read_wrong') > _middle(
            linear, 'read_wrong'):
        found.append('wrong pages')
    if _middle(guided, 'all_at_risk') > GOAL_RISK * _middle(guided, 'all_changed'):
        found.append('at risk')
    if _middle(guided, 'wall_ns') > GOAL_WALL * _middle(linear, 'wall_ns'):
        found.append('wall time')
    if any(column(guided, 'safe_but_wrong')):
        found.append('safe and wrong')
    return ', '.join(found) or 'nothing'


def goal(rows):
    lines = []
    for machine, level, name, r in levels(rows):
        linear = dict(ways(rows, machine, level)).get('linear')
        if name not in ('guided', 'defaults') or not linear:
            continue
        lines.append((
            machine, level, f'`{name}`', f'{len(linear)}, {len(r)}',
            *(_times(_middle(linear, n), _middle(r, n)) for n in ('frame_median_ns', 'frame_p95_ns')),
            spread(column(linear, 'read_wrong'), count), spread(column(r, 'read_wrong'), count),
            _times(_middle(linear, 'read_wrong'), _middle(r, 'read_wrong')),
            spread(share(r, 'all_at_risk', 'all_mappings'), percent),
            spread(share(r, 'all_changed', 'all_mappings'), percent),
            ratio(_middle(r, 'wall_ns') / _middle(linear, 'wall_ns')), missed(machine, linear, r)))
    return table(('machine', 'pressure', 'order', 'runs of `linear`, and of it',
                  'median window, smaller by', '95 %', 'wrong through `read`: `linear`', 'this order',
                  'fewer by', 'at risk of all', 'changed of all', 'wall time', 'missed'), lines)


def paper(rows):
    """The observation of the 2015 paper: what lies in user pages that is not the program's."""
    lines = []
    for machine in machines(rows):
        for order in BEST:
            r = select(rows, machine=machine, order=order)
            if not r:
                continue
            judged = [sum(row[f'{state}_judged'] for state in STATES) for row in r]
            shares = [100 * row['truly_wrong'] / n for row, n in zip(r, judged)]
            lines.append((
                machine, f'`{order}`', spread(judged, count), spread(column(r, 'truly_wrong'), count),
                spread(shares, percent), spread(column(r, 'foreign'), count),
                spread(column(r, 'kernel'), count)))
    return table(('machine', 'order', 'pages', 'wrong in a flat image', 'share', 'foreign content',
                  "the kernel's"), lines)


def cost(rows):
    lines = []
    for machine in machines(rows):
        for name, r in ways(rows, machine):
            lines.append((
                machine, f'`{name}`', spread(column(r, 'memory_ns'), duration),
                spread(column(r, 'wall_ns'), duration), spread(column(r, 'bytes_read'), size),
                spread(column(r, 'bytes_again'), size),
                spread([4096 * n for n in column(r, 'retaken_pages')], size),
                spread(column(r, 'not_retaken'), count), spread(column(r, 'peak_bytes'), size)))
    return table(('machine', 'order', 'time for the memory', 'wall time', 'read',
                  'memory read more than once', 'of this, captured again for another mapping',
                  'pages not captured again for a bound', 'peak memory'), lines)


# --- pairs in the guest ---

def paired(rows):
    """[(machine, pressure, seed, linear, defaults)] of the same boot, both of which ended well."""
    found = []
    for machine in PAIRS:
        for level in PRESSURES:
            linear, guided = ({r['seed']: r for r in select(rows, machine=machine, pressure=level,
                                                            order=order, pagefile=when)}
                              for order, when in PAIR)
            found += [(machine, level, seed, linear[seed], guided[seed])
                      for seed in sorted(set(linear) & set(guided))
                      if linear[seed]['boot'] == guided[seed]['boot']]
    return found


def _fewer(linear, guided):
    return guided['read_wrong'] < linear['read_wrong']


def _pairs_line(name, found):
    linear, guided = ([pair[i] for pair in found] for i in (3, 4))
    # One wrong page, where there is none, is the least that a factor can be of.
    factors = [a['read_wrong'] / max(b['read_wrong'], 1) for a, b in zip(linear, guided)]
    walls = [b['wall_ns'] / a['wall_ns'] for a, b in zip(linear, guided)]
    return (*name, str(len(found)),
            *(spread(column(side, 'read_wrong'), count) for side in (linear, guided)),
            f'{sum(map(_fewer, linear, guided))} of {len(found)}', spread(factors, ratio),
            *(spread(column(side, 'at_risk'), count) for side in (linear, guided)),
            spread(walls, ratio), count(sum(column(linear + guided, 'safe_but_wrong'))))


def pairs(rows):
    found = paired(rows)
    cells = dict.fromkeys(pair[:2] for pair in found)
    lines = [_pairs_line((machine.removeprefix('pairs-'), level),
                         [p for p in found if p[:2] == (machine, level)]) for machine, level in cells]
    if found:
        lines.append(_pairs_line(('all', 'all'), found))
    return table(('disk', 'pressure', 'pairs', 'wrong through `read`: `linear`', 'the defaults',
                  'pairs in which the defaults have fewer', 'fewer by', 'at risk: `linear`',
                  'the defaults', 'wall time', 'safe, and wrong'), lines)


def each_pair(rows):
    lines = [(machine.removeprefix('pairs-'), level, str(seed),
              *(count(side['read_wrong']) for side in (linear, guided)),
              *(count(side['truly_wrong']) for side in (linear, guided)),
              *(count(side['at_risk']) for side in (linear, guided)),
              *(duration(side['wall_ns']) for side in (linear, guided)))
             for machine, level, seed, linear, guided in paired(rows)]
    return table(('disk', 'pressure', 'pair', 'wrong through `read`: `linear`', 'the defaults',
                  'in a flat image: `linear`', 'the defaults', 'at risk: `linear`', 'the defaults',
                  'wall time: `linear`', 'the defaults'), lines)


# --- links ---

def links(rows):
    lines = []
    for machine, (preset, link) in {**LINKED, **SMALL_LINKED}.items():
        for order, when in PAIR:
            r = select(rows, machine=machine, order=order, pagefile=when)
            if not r:
                continue
            lines.append((
                preset, link, f'`{way_name(order, when)}`', str(len(r)),
                *(spread(column(r, f'frame_{n}_ns'), duration) for n in ('median', 'p95', 'max')),
                *(spread(column(r, f'slot_{n}_ns'), duration) for n in ('median', 'p95', 'max')),
                spread(share(r, 'at_risk', 'mappings'), percent),
                spread(column(r, 'truly_wrong'), count), spread(column(r, 'read_wrong'), count),
                spread(column(r, 'wall_ns'), duration)))
    return table(('machine', 'link', 'order', 'runs', 'median window', '95 %', 'maximum',
                  'median window to the slot', '95 %', 'maximum', 'at risk', 'wrong in a flat image',
                  'wrong through `read`', 'wall time'), lines) + (
                      f'\n{_told([r for r in rows if r["part"] == "link"])}' if lines else '')


# --- what the advice goes by ---

BOUNDS = (0, 0.1, 0.5, 1, 2, 5, 10, 20, 50, 100)  # percent at risk


def _processes(row):
    """[(percent to be asked `read` for, percent wrong in a flat image)] of a run."""
    found = [tuple(map(int, text.split(':'))) for text in row['processes'].split()]
    return [(100 * (at_risk + other) / n, 100 * bad / n) for n, at_risk, other, bad in found if n]


def _by_bound(points):
    """Lines for the shares at risk up to each bound, and above the one before."""
    lines, last = [], -1
    for bound in BOUNDS:
        of = [bad for at_risk, bad in points if last < at_risk <= bound]
        last = bound
        if not of:
            continue
        lines.append((f'{bound} %', count(len(of)), count(sum(not bad for bad in of)),
                      percent(median(of)), percent(max(of)),
                      percent(max(bad for at_risk, bad in points if at_risk <= bound))))
    return lines


def usable(rows):
    """Of every process in every run: what goes with its share at risk, or captured otherwise."""
    points = [p for r in unlinked(rows) if r['outcome'] == 'ok' for p in _processes(r)]
    return table(('at risk, or another capture, up to', 'processes', 'with nothing wrong', 'wrong in a flat image: median',
                  'most', 'most, up to here'), _by_bound(points))


def again(rows):
    """Of runs, by the process that the machine is about: what `read` cannot put right."""
    points = [(100 * r['at_risk'] / r['mappings'], 100 * r['read_wrong'] / r['mappings'])
              for r in unlinked(rows) if r['outcome'] == 'ok']
    return table(('at risk, up to', 'runs', 'with nothing wrong', 'wrong through `read`: median',
                  'most', 'most, up to here'), _by_bound(points))


# --- of what the tables are ---

def _of_each(rows):
    """How many runs the cells have, in words."""
    cells = {}
    for r in rows:
        cell = tuple(r[k] for k in ('machine', 'order', 'pagefile', 'pressure'))
        cells[cell] = cells.get(cell, 0) + 1
    low, high = min(cells.values()), max(cells.values())
    return f'{low} of each cell' if low == high else f'{low} to {high} of each cell'


def parts(rows):
    lines = []
    for machine in (m for m in (*MACHINES, 'small') if m in column(rows, 'machine')):
        r = [row for row in rows if row['machine'] == machine and row['seconds']]
        lines.append((machine, str(len(r)), _of_each(r), spread(column(r, 'seconds'), lambda s: f'{s:.0f} s'),
                      f'{sum(column(r, "seconds")) / 60:.0f} min'))
    return table(('machine', 'runs', 'of them', 'time of a run, with its judgement', 'in all'), lines)


def _told(rows):
    """Who made them, and whether they hold what must not be."""
    ended = [r for r in rows if r['outcome'] == 'ok']
    tools = sorted({f'{r["tool"]} ({r["program"]})' for r in ended})
    lines = [f'{len(ended)} runs by {", ".join(tools)}; in brackets the SHA-256 of the program begins.']
    failed = [r for r in rows if r['outcome'] != 'ok']
    lines.append('No run failed.' if not failed else 'Left out, because they failed twice: ' + '; '.join(
        f'{r["machine"]} {r["order"]} {r["pagefile"]} {r["pressure"]} {r["seed"]}' for r in failed) + '.')
    lines.append(f'Pages that were called safe and are wrong, in all runs: '
                 f'{count(sum(column(ended, "safe_but_wrong")))}, of '
                 f'{count(sum(column(ended, "safe")))} that were called safe.')
    return '\n'.join(lines) + '\n'


def made(rows):
    rows = unlinked(rows)
    return f'{_told(rows)}\n{parts(rows)}'


TABLES = {'made': made, 'orders': orders, 'wrong': wrong, 'timing': timing, 'risk': risk,
          'pressure': pressure, 'links': links, 'pairs': pairs, 'each-pair': each_pair, 'goal': goal, 'paper': paper,
          'usable': usable, 'again': again, 'cost': cost}
OF_MACHINE = ('orders', 'wrong', 'timing')


def fill(text, rows):
    """The text with its tables made anew. KeyError for one that there is not."""
    def one(found):
        name, *machine = found[1].split()
        return f'<!-- table {found[1]} -->\n\n{TABLES[name](rows, *machine)}\n<!-- end -->'

    return re.sub(r'<!-- table ([\w -]+?) -->.*?<!-- end -->', one, text, flags=re.DOTALL)


def all_tables(rows):
    text = ''
    for name in TABLES:
        for machine in machines(rows) if name in OF_MACHINE else ('',):
            mark = f'{name} {machine}'.strip()
            text += f'## {mark}\n\n<!-- table {mark} -->\n<!-- end -->\n\n'
    return fill(text, rows)


def write(folder, rows, drawn):
    """RESULTS.md and its figures."""
    path = folder / 'RESULTS.md'
    path.write_text(fill(path.read_text(), rows))
    (folder / 'results').mkdir(exist_ok=True)
    for name in sorted(set(re.findall(r'\(results/([\w-]+\.svg)\)', path.read_text()))):
        if (drawn / name).exists():
            shutil.copy(drawn / name, folder / 'results' / name)
        else:
            print(f'{name}: there are no runs for it')
    print(f'{path} and its figures are written')


# --- lines for people ---

def short(row):
    if row['outcome'] != 'ok':
        return 'failed'
    windows = (f'{duration(row["frame_median_ns"])}, {duration(row["frame_p95_ns"])}'
               if row['frame_pages'] else 'none')
    return (f'window {windows}; wrong of {count(row["mappings"])}: {count(row["truly_wrong"])} in a flat '
            f'image, {count(row["read_wrong"])} through read, {row["safe_but_wrong"]} of them called safe; '
            f'{count(row["at_risk"])} at risk; {duration(row["wall_ns"])}; {row["seconds"]} s here')


def headline(rows):
    machine = machines(rows)[0]
    parts = []
    for order in BEST:
        r = select(rows, machine=machine, order=order)
        parts.append(f'{order}: median window {spread(column(r, "frame_median_ns"), duration)}, truly '
                     f'wrong {spread(column(r, "truly_wrong"), count)}')
    return '; '.join(parts)
