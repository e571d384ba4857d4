#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Which order of acquisition smears least: orders, page-file timings, pressures and seeds, on simulated
machines and in a real kernel, each run judged by what is true.

    experiment.py BUILD OUT [--only PART]... [--seeds N] [--runs N] [--jobs N] [--plan] [--quick]
                  [--write-results]

BUILD is a build folder, OUT gets runs.csv, compare*.html, figures and RESULTS.md's tables. What
runs.csv has already of the same program is not run again. --only: sim, link, guest, pairs, or
sim:PRESET, pairs:fast, pairs:slow. Two that run at the same time with the same OUT, one with `--only sim` and the
other with `--only guest --only pairs`, share what there is to do.
"""

import argparse
import hashlib
import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import cells
import figures
import guest
import measure
import results
import runs

TOP = Path(__file__).resolve().parents[2]
SKIPPED_EXIT = 77
ATTEMPTS = 2  # one that fails gets a second chance, and is left out then


class Experiment:
    def __init__(self, build, out, jobs):
        self.ramseal = build / 'agent/ramseal'
        self.plot = build / 'tests/experiment/plot'
        self.out = out
        self.jobs = jobs
        out.mkdir(parents=True, exist_ok=True)
        (out / 'work').mkdir(exist_ok=True)
        (out / 'containers').mkdir(exist_ok=True)
        measure.simulated.RAMSEAL = self.ramseal
        measure.simulated.SIM_TRUTH = build / 'tests/sim/sim_truth'
        program = hashlib.sha256(self.ramseal.read_bytes()).hexdigest()[:16]
        self.runs = runs.Runs(out / 'runs.csv', program)
        self.guests = guest.Guests(TOP / 'out/kernel', self.ramseal, build / 'tests/vm/pressure',
                                   out / 'work/guest')
        self.begun = time.monotonic()
        self.ended = self.wanted = 0

    def say(self, text):
        print(f'{time.monotonic() - self.begun:7.0f} s  {text}', flush=True)

    def container(self, cell):
        """Where it stays if the comparison shows it."""
        return self.out / 'containers' / f'{cell.machine}-{cell.order}.rsz'

    def is_done(self, cell):
        if cell.part == 'pairs':
            return self.runs.are_paired(cells.pair_of(cell))
        return self.runs.done(cell) and (not cells.is_shown(cell) or self.container(cell).exists())

    def keep(self, name):
        """What must not be (METHOD.md, 5) is there to be looked at, with the machine's account."""
        folder = self.out / 'safe-but-wrong'
        folder.mkdir(exist_ok=True)
        for found in self.out.glob(f'work/{name}.*'):
            shutil.copy(found, folder)
        self.say(f'{name}: pages that are called safe are wrong; its container is in {folder}')

    def once(self, cell):
        name = '-'.join(map(str, cell))
        container = self.out / 'work' / f'{name}.rsz'
        account = self.out / 'work' / f'{name}.csv'
        options = ['--order', cell.order, '--pagefile', cell.pagefile]
        begun = time.monotonic()
        try:
            if cells.is_simulated(cell):
                row = measure.simulated_run(cells.spec_of(cell), options + cells.options_of(cell),
                                            container, account)
            else:
                row = self.guests.run(cell, options, container)
            if row['safe_but_wrong']:
                self.keep(name)
            if cells.is_shown(cell):
                os.replace(container, self.container(cell))
            return {**row, 'seconds': round(time.monotonic() - begun)}
        finally:
            for left in self.out.glob(f'work/{name}.*'):
                left.unlink()

    def attempt(self, unit):
        """Rows of cells that belong together, all of one boot if it is a guest's."""
        rows = [{'outcome': 'ok', **self.once(cell)} for cell in unit]
        if len({row.get('boot') for row in rows}) > 1:
            raise RuntimeError('the guest was started anew between the runs of a pair')
        return rows

    def run(self, unit):
        for attempt in range(ATTEMPTS):
            try:
                rows = self.attempt(unit)
                break
            except Exception as e:  # whatever it was, the other cells go on
                problem = ' '.join(str(e).split())[:500]
                rows = [{'outcome': 'failed', 'problem': problem}] * len(unit)
                self.say(f'attempt {attempt + 1} of {" ".join(map(str, unit[0]))} failed: {problem}')
        for cell, row in zip(unit, rows):
            self.runs.add(cell, row)
            self.ended += 1
            self.say(f'{" ".join(map(str, cell))}: {results.short(row)}  '
                     f'({self.wanted - self.ended} left)')

    def run_all(self, wanted):
        """Simulated machines side by side, then the guest alone: its time is real."""
        todo = [cell for cell in wanted if not self.is_done(cell)]
        self.wanted = len(todo)
        if len(todo) < len(wanted):
            self.say(f'{len(wanted) - len(todo)} of {len(wanted)} runs are in runs.csv already')
        with ThreadPoolExecutor(self.jobs) as pool:
            try:
                for _ in pool.map(self.run, [[c] for c in todo if cells.is_simulated(c)]):
                    pass
            except BaseException:  # Ctrl-C: what has begun ends, and nothing more is begun
                pool.shutdown(cancel_futures=True)
                raise
        pairs = [c for c in todo if c.part == 'pairs']
        try:
            for unit in [*zip(pairs[::2], pairs[1::2]), *([c] for c in todo if c.part == 'guest')]:
                self.run(unit)
        finally:
            self.guests.stop()
            guest.clean(self.guests.work)

    def seconds(self):
        """{machine: seconds} of a run, as long as they took here."""
        taken = {}
        for row in self.runs.rows:
            if row['seconds']:
                taken.setdefault(row['machine'], []).append(row['seconds'])
        return {machine: median(of) for machine, of in taken.items()}

    def report(self, pages=True):
        figures.draw(self.runs.rows, self.plot, self.out)
        if pages:
            self.compare()
        (self.out / 'tables.md').write_text(results.all_tables(self.runs.rows))

    def compare(self):
        """The comparison by ramseal itself: each machine's orders, and all of them on one page."""
        kept = [(machine, order, self.out / 'containers' / f'{machine}-{order}.rsz')
                for machine in (*cells.MACHINES, 'small') for order in cells.ORDERS]
        kept = [(machine, order, path) for machine, order, path in kept if path.exists()]
        for machine in dict.fromkeys(m for m, _, _ in kept):
            self.page(f'compare-{machine}.html', [(o, p) for m, o, p in kept if m == machine])
        self.page('compare.html', [(f'{m}, {o}', p) for m, o, p in kept])

    def page(self, name, labelled):
        if len(labelled) < 2:
            return
        command = [self.ramseal, 'report', '-q', '--force', '-o', self.out / name]
        for label, path in labelled:
            command += ['--label', label, path]
        measure.simulated.output_of(*command)
        self.say(f'{self.out / name}')


def chosen(only):
    """The machines that --only names."""
    if not only:
        return list(cells.MACHINES)
    found = []
    for part in only:
        kind, _, name = part.partition(':')
        of_kind = {m.removeprefix(f'{kind}-'): m for m in cells.MACHINES if cells.part_of(m) == kind}
        if not of_kind or (name and name not in of_kind):
            sys.exit(f'--only takes one of {", ".join(cells.PARTS)}, or sim:cohen2015 and the like, not '
                     f'{part}')
        found += [of_kind[name]] if name else of_kind.values()
    return [m for m in cells.MACHINES if m in found]


def show_plan(wanted, jobs, taken):
    """`taken`: {machine: seconds} of a run, where they are known."""
    total = 0
    for machine, (count, seconds) in cells.estimate(wanted, jobs, taken).items():
        print(f'{machine:<12} {count:4} runs, about {seconds / 60:5.1f} minutes'
              f'{"" if machine in taken else ", if the cores are idle"}')
        total += seconds
    print(f'in all {len(wanted):9} runs, about {total / 60:5.1f} minutes')


# --- the short one, as a test ---

def check(condition, text):
    if not condition:
        sys.exit(f'FAILED: {text}')


def check_rows(rows, wanted):
    """All cells are there, and each line has everything."""
    failed = [row for row in rows if row['outcome'] != 'ok']
    check(not failed, f'runs failed: {failed}')
    check({runs.cell_of(row) for row in rows} == set(wanted), 'cells are missing')
    check(len(rows) == len(wanted), 'cells are there twice')
    for row in rows:
        lacking = [n for n in runs.NUMBERS if row[n] is None and n not in runs.OPTIONAL]
        check(not lacking, f'{runs.cell_of(row)} lacks {lacking}')
        check(row['mappings'] == row['safe'] + row['at_risk'] + row['wrong'], 'sums do not agree')
        check(row['safe_but_wrong'] + row['risk_but_wrong'] <= row['read_wrong'], 'more than all')
        check(row['processes'], 'no process')
        check(row['valid_judged'] > 1000 and row['slot_judged'] > 1000 and row['frame_pages'] > 1000,
              f'{runs.cell_of(row)}: nothing to judge')


def check_truth(rows):
    """
    None that is called safe is wrong. A page that changed and changed back may be (METHOD.md, 9), now and
    then: not in runs that are the same each time, and in the others not twice.
    """
    for row in rows:
        check(row['safe_but_wrong'] <= (row['pagefile'] == cells.CONCURRENT),
              f'{runs.cell_of(row)}: {row["safe_but_wrong"]} pages that are called safe are wrong')
        check(row['safe'] > 0, f'{runs.cell_of(row)}: nothing is called safe')
    linear = [r for r in rows if r['order'] == 'linear' and r['pagefile'] == 'after']
    check(all(r['truly_wrong'] > 100 for r in linear), 'nothing is wrong: this proves nothing')


def check_windows(rows):
    """Time is virtual: the same everywhere, and therefore a thing to be asserted."""
    def medians(order):
        return [r['frame_median_ns'] for r in rows
                if r['order'] == order and r['pagefile'] == 'after']

    check(20 * max(medians('guided')) < min(medians('linear')),
          f'guided: {medians("guided")} ns, linear: {medians("linear")} ns')


def check_link(rows):
    """What does not fit into the spool has to wait, and the windows of `guided` do not grow."""
    def of(machine, order):
        return [r for r in rows if r['machine'] == machine and r['order'] == order]

    for order, timing in cells.PAIR:
        alone, linked = (of(m, order) for m in ('small', 'link-small'))
        check(min(r['wall_ns'] for r in linked) > 3 * max(r['wall_ns'] for r in alone),
              f'{order}: nothing waits for the link')
    check(10 * max(r['frame_median_ns'] for r in of('link-small', 'guided')) <
          min(r['frame_median_ns'] for r in of('link-small', 'linear')), 'windows with a link')
    check('| 2 |' in results.links(rows), results.links(rows))


def check_pairs(rows):
    """Of the guest's runs only those of one boot are compared."""
    def side(machine, way, wrong, boot):
        return {**rows[0], 'machine': machine, 'order': way[0], 'pagefile': way[1], 'seed': 1,
                'read_wrong': wrong, 'boot': boot}

    linear, guided = cells.PAIR
    made = [side('pairs-fast', linear, 100, 'a'), side('pairs-fast', guided, 5, 'a'),
            side('pairs-slow', linear, 100, 'b'), side('pairs-slow', guided, 0, 'c')]
    check([pair[0] for pair in results.paired(made)] == ['pairs-fast'], results.paired(made))
    check('| 1 of 1 | 20 × |' in results.pairs(made), results.pairs(made))


def check_determinism(experiment, wanted):
    """The same seed, the same container; beside each other is the one that cannot promise it."""
    roots = {runs.cell_of(r): r['root'] for r in experiment.runs.rows}
    again = [c for c in wanted if c.seed == 1 and c.pagefile != cells.CONCURRENT and
             c.order in cells.BEST]
    with ThreadPoolExecutor(experiment.jobs) as pool:
        for cell, row in zip(again, pool.map(experiment.once, again)):
            check(row['root'] == roots[cell], f'{cell}: another root the second time')
    check(len(set(roots.values())) == len(roots), 'two cells have the same root')


def quick(experiment, pairs):
    wanted = cells.plan(['small', 'link-small'], pairs, 2, 0)
    check({order for order, _ in pairs} == set(cells.ORDERS), f'orders are missing: {pairs}')
    check({'before', 'after', 'concurrent'} <= {timing for _, timing in pairs},
          f'timings are missing: {pairs}')
    experiment.run_all(wanted)
    rows = runs.read(experiment.runs.path)
    check_rows(rows, wanted)
    check_truth(rows)
    check_windows([r for r in rows if r['part'] == 'sim'])
    check_link(rows)
    check_pairs(rows)
    check_determinism(experiment, wanted)
    experiment.report()
    check(results.fill('before\n<!-- table orders small -->\nold\n<!-- end -->\nafter\n', rows).count('|') > 20,
          'the table is empty')
    check((experiment.out / 'compare.html').stat().st_size > 10000, 'the comparison is empty')
    check(len(list((experiment.out / 'figures').glob('small-*.svg'))) >= 3, 'figures are missing')
    print(f'note: experiment: {results.headline(rows)}')


def arguments():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    a.add_argument('build', type=Path)
    a.add_argument('out', type=Path)
    a.add_argument('--only', action='append', default=[], metavar='PART')
    a.add_argument('--seeds', type=int, default=3, help='for each cell of a simulated machine')
    a.add_argument('--runs', type=int, default=3, help='for each cell of the guest; 3 are 20 pairs')
    a.add_argument('--jobs', type=int, default=min(os.cpu_count(), 4))
    a.add_argument('--plan', action='store_true', help='only say what would run, and how long')
    a.add_argument('--quick', action='store_true', help='a small machine, and checks: the test')
    a.add_argument('--write-results', action='store_true',
                   help='also put tables and figures into docs/RESULTS.md')
    a.add_argument('--no-run', action='store_true',
                   help='only make tables and figures of what runs.csv has, of whatever program')
    a.add_argument('--no-pages', action='store_true', help='make no compare*.html, which takes minutes')
    return a.parse_args()


def main():
    o = arguments()
    if o.quick:
        shutil.rmtree(o.out, ignore_errors=True)
    experiment = Experiment(o.build.resolve(), o.out.resolve(), o.jobs)
    if o.no_run:
        experiment.runs.rows = runs.read(experiment.runs.path)
        finish(experiment, o)
        return
    pairs = cells.combinations(experiment.ramseal)
    if o.quick:
        quick(experiment, pairs)
        return
    machines = chosen(o.only)
    if not (TOP / 'out/kernel/release').exists():
        print('out/kernel is missing, so is the guest: run build/kernel')
        machines = [m for m in machines if cells.part_of(m) == 'sim']
    wanted = cells.plan(machines, pairs, o.seeds, o.runs)
    show_plan([c for c in wanted if not experiment.is_done(c)], o.jobs, experiment.seconds())
    if o.plan:
        return
    experiment.run_all(wanted)
    experiment.runs.reload()
    finish(experiment, o)


def finish(experiment, o):
    experiment.report(not o.no_pages)
    if o.write_results:
        results.write(TOP / 'docs', experiment.runs.rows, experiment.out / 'figures')
    failed = [r for r in experiment.runs.rows if r['outcome'] != 'ok']
    print(f'{len(experiment.runs.rows)} runs in {experiment.runs.path}, {len(failed)} of them failed')
    for row in experiment.runs.rows:
        if row['safe_but_wrong']:
            # METHOD.md, 9: changed and changed back, which nobody can see.
            print(f'{" ".join(map(str, runs.cell_of(row)))}: {row["safe_but_wrong"]} of {row["safe"]} '
                  'pages that are called safe are wrong')


if __name__ == '__main__':
    try:
        main()
    except KeyboardInterrupt:
        sys.exit('interrupted: what ended is in runs.csv, and the next time goes on there')
