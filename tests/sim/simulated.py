# SPDX-License-Identifier: Apache-2.0
"""
A simulated machine, acquired, and what is true of it.

Set RAMSEAL and SIM_TRUTH first, the paths of the programs.
"""

import csv
import json
import subprocess
import tempfile

RAMSEAL = SIM_TRUTH = None
TIMEOUT = 1800

# States whose pages lie somewhere; sim_truth speaks of no others.
PLACED = ('valid', 'transition', 'page-file')


class Failed(Exception):
    pass


def run(*args, **more):
    return subprocess.run([str(a) for a in args], capture_output=True, timeout=TIMEOUT, **more)


def output_of(*args):
    """What a program that must succeed has printed."""
    done = run(*args)
    if done.returncode:
        raise Failed(f'{args[0]} {args[1]} ended with {done.returncode}: '
                     f'{done.stderr.decode(errors="replace")}')
    return done.stdout


def acquire(spec, container, account, *options):
    """Acquires a machine, and keeps its account; returns the summary."""
    done = run(RAMSEAL, 'acquire', '-q', '--log-json', '--force', '--source',
               f'sim:{spec},truth={account}', '-o', container, *options)
    if done.returncode:
        raise Failed(f'acquire ended with {done.returncode}: {done.stderr.decode()}')
    return json.loads(done.stderr.splitlines()[-1])


def smear(container):
    return json.loads(output_of(RAMSEAL, 'smear', '--json', container))


def truth(container, account):
    return json.loads(output_of(SIM_TRUTH, container, account))


def lines_of(*args, said=None):
    """The lines of what a program prints, as they come: some have millions. `said` gets its stderr."""
    with tempfile.TemporaryFile('w+') as err:
        with subprocess.Popen([str(a) for a in args], stdout=subprocess.PIPE, stderr=err,
                              text=True) as process:
            yield from process.stdout
        err.seek(0)
        text = err.read()
    if process.returncode:
        raise Failed(f'{args[0]} {args[1]} ended with {process.returncode}: {text}')
    if said is not None:
        said.append(text)


def main_pid(account):
    with open(account) as f:
        return next(int(line.split(',')[1]) for line in f if line.startswith('main,'))


def truth_of(container, account, pid):
    """{virtual address: row of sim_truth}"""
    rows = csv.DictReader(lines_of(SIM_TRUTH, container, account, pid))
    return {int(row['va'], 16): row for row in rows}


def verdict_of(row, captured):
    """
    Of a row of sim_truth: the verdict of the capture that was begun at this time (the text of
    `captured_ns`), or `missing`.
    """
    verdicts = dict(c.split(':') for c in row['captures'].split())
    return verdicts[captured] if captured else 'missing'


def mappings(container, pid):
    """What smear says of each mapping of the image's own tables."""
    rows = csv.DictReader(lines_of(RAMSEAL, 'smear', '--mappings', pid, container))
    return (row for row in rows if row['copy'] == 'image')


def wrong(verdicts):
    return sum(n for verdict, n in verdicts.items() if verdict != 'right')
