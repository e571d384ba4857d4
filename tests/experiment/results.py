# SPDX-License-Identifier: Apache-2.0
"""
The tables of agent/smear/RESULTS.md, out of runs.csv. They stand between `<!-- table NAME -->` and
`<!-- end -->`, and are made anew each time; all other text is written by hand.
"""

import re
import shutil
from statistics import median

from cells import BEST, DEFAULT_PRESSURE, DEFAULT_TIMING, MACHINES, ORDERS, PRESSURES
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
        return 'No run of it.\n'
    rules = ['---'] + ['--:'] * (len(heads) - 1)
    return ''.join(f'| {" | ".join(line)} |\n' for line in (heads, rules, *lines))


def timings(rows, machine):
    """Of page files, that were tried there: the older ones first."""
    found = {r['pagefile'] for r in rows if r['machine'] == machine}
    old = ('before', 'after', 'concurrent')
    return [t for t in old if t in found] + sorted(found.difference(old))


def machines(rows):
    found = set(column(rows, 'machine'))
    return [m for m in (*MACHINES, 'small') if m in found]


# --- tables ---

def orders(rows, machine):
    lines = []
    for order in ORDERS:
        r = select(rows, machine=machine, order=order)
        if not r:
            continue
        lines.append((
            f'`{order}`', str(len(r)),
            *(spread(column(r, f'frame_{name}_ns'), duration) for name in ('median', 'p95', 'max')),
            spread(column(r, 'at_risk'), count), spread(column(r, 'truly_wrong'), count),
            spread(column(r, 'wall_ns'), duration), spread(column(r, 'bytes_again'), size)))
    return table(('order', 'runs', 'median window', '95 %', 'maximum', 'mappings at risk',
                  'truly wrong pages', 'wall time', 'read again'), lines)


def wrong(rows, machine):
    lines = []
    for order in ORDERS:
        r = select(rows, machine=machine, order=order)
        if not r:
            continue
        lines.append((
            f'`{order}`', spread(column(r, 'mappings'), count),
            *(spread(column(r, f'{state}_wrong'), count) for state in ('valid', 'transition', 'slot')),
            spread(column(r, 'foreign'), count), spread(column(r, 'kernel'), count),
            spread(column(r, 'wrong'), count), spread(column(r, 'safe'), count),
            count(sum(column(r, 'safe_but_wrong')))))
    return table(('order', 'mappings', 'wrong: valid', 'transition', 'slot', 'foreign content',
                  "the kernel's", 'called wrong', 'called safe', 'of these wrong'), lines)


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
                spread(column(r, 'wall_ns'), duration)))
    return table(('page files', 'order', 'runs', 'median window to the slot', '95 %', 'maximum',
                  'slots at risk', 'wrong: slots', 'wrong: frames', 'wall time'), lines)


def pressure(rows):
    lines = []
    for machine in machines(rows):
        for level in PRESSURES:
            for order in ORDERS:
                r = select(rows, machine=machine, order=order, pressure=level)
                if not r:
                    continue
                lines.append((
                    machine, level, f'`{order}`', str(len(r)),
                    spread(column(r, 'frame_median_ns'), duration),
                    spread(column(r, 'frame_p95_ns'), duration),
                    spread(column(r, 'at_risk'), count), spread(column(r, 'truly_wrong'), count)))
    return table(('machine', 'pressure', 'order', 'runs', 'median window', '95 %',
                  'mappings at risk', 'truly wrong pages'), lines)


def _middle(rows, name):
    return median(column(rows, name))


def _times(a, b):
    """How many times smaller b is; of nothing nothing can be said but what it came from."""
    return ratio(a / b) if b else f'{count(a)} to none' if a else 'none in both'


# What guided was to reach beside linear.
GOAL_WINDOW = 100
GOAL_WALL = 1.25


def missed(linear, guided, wrong_frames):
    """Which of the goals it missed; wrong pages were to get fewer by as much as the median window."""
    def by(name):
        return _middle(linear, name) / _middle(guided, name)

    found = [text for text, name in (('median', 'frame_median_ns'), ('95 %', 'frame_p95_ns'))
             if by(name) < GOAL_WINDOW]
    if wrong_frames[1] * by('frame_median_ns') > wrong_frames[0]:
        found.append('wrong frames')
    if 1 / by('wall_ns') > GOAL_WALL:
        found.append('wall time')
    return ', '.join(found) or 'nothing'


def goal(rows):
    lines = []
    for machine in machines(rows):
        for level in PRESSURES:
            linear, guided = (select(rows, machine=machine, order=o, pressure=level) for o in BEST)
            if not linear or not guided:
                continue
            frames = [[r['valid_wrong'] + r['transition_wrong'] for r in side]
                      for side in (linear, guided)]
            lines.append((
                machine, level,
                *(_times(_middle(linear, n), _middle(guided, n))
                  for n in ('frame_median_ns', 'frame_p95_ns', 'frame_max_ns')),
                _times(median(frames[0]), median(frames[1])),
                *(ratio(_middle(guided, n) / _middle(linear, n)) for n in ('memory_ns', 'wall_ns')),
                missed(linear, guided, [median(f) for f in frames])))
    return table(('machine', 'pressure', 'median window, smaller by', '95 %', 'maximum',
                  'wrong frames, fewer by', 'time for the memory', 'wall time', 'missed'), lines)


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
                spread(shares, lambda s: f'{s:.2f} %'), spread(column(r, 'foreign'), count),
                spread(column(r, 'kernel'), count)))
    return table(('machine', 'order', 'pages', 'truly wrong', 'share', 'foreign content',
                  "the kernel's"), lines)


def cost(rows):
    lines = []
    for machine in machines(rows):
        for order in ORDERS:
            r = select(rows, machine=machine, order=order)
            if not r:
                continue
            lines.append((
                machine, f'`{order}`', spread(column(r, 'memory_ns'), duration),
                spread(column(r, 'wall_ns'), duration), spread(column(r, 'bytes_read'), size),
                spread(column(r, 'bytes_again'), size), spread(column(r, 'peak_bytes'), size)))
    return table(('machine', 'order', 'time for the memory', 'wall time', 'read', 'read again',
                  'peak memory'), lines)


def made(rows):
    """Of what the tables are."""
    ended = [r for r in rows if r['outcome'] == 'ok']
    tools = sorted({f'{r["tool"]} ({r["program"]})' for r in ended})
    lines = [f'{len(ended)} runs by {", ".join(tools)}; in brackets the SHA-256 of the program begins.']
    for machine in machines(rows):
        of = [r for r in ended if r['machine'] == machine]
        lines.append(f'{machine}: {len(of)} runs.')
    failed = [r for r in rows if r['outcome'] != 'ok']
    lines.append('No run failed.' if not failed else 'Left out, because they failed twice: ' + '; '.join(
        f'{r["machine"]} {r["order"]} {r["pagefile"]} {r["pressure"]} {r["seed"]}' for r in failed) + '.')
    lines.append(f'Pages that were called safe and are wrong, in all runs: '
                 f'{count(sum(column(ended, "safe_but_wrong")))}, of '
                 f'{count(sum(column(ended, "safe")))} that were called safe.')
    return '\n'.join(lines) + '\n'


TABLES = {'orders': orders, 'wrong': wrong, 'timing': timing, 'pressure': pressure, 'goal': goal,
          'paper': paper, 'cost': cost, 'made': made}
OF_MACHINE = ('orders', 'wrong', 'timing')


def fill(text, rows):
    """The text with its tables made anew. KeyError for one that there is not."""
    def one(found):
        name, *machine = found[1].split()
        return f'<!-- table {found[1]} -->\n\n{TABLES[name](rows, *machine)}\n<!-- end -->'

    return re.sub(r'<!-- table ([\w ]+?) -->.*?<!-- end -->', one, text, flags=re.DOTALL)


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
    return (f'window {windows}; {count(row["truly_wrong"])} of {count(row["mappings"])} wrong, '
            f'{row["safe_but_wrong"]} of them called safe; {duration(row["wall_ns"])}')


def headline(rows):
    machine = machines(rows)[0]
    parts = []
    for order in BEST:
        r = select(rows, machine=machine, order=order)
        parts.append(f'{order}: median window {spread(column(r, "frame_median_ns"), duration)}, truly '
                     f'wrong {spread(column(r, "truly_wrong"), count)}')
    return '; '.join(parts)
