# SPDX-License-Identifier: Apache-2.0
"""
runs.csv: a line for each run, written as soon as it ended, so that an experiment that was interrupted
goes on where it was. Windows are nanoseconds; `pages` are of 4 KiB.
"""

import csv
import os
import threading

from cells import Cell

# Of the process that the machine is about (swapper.exe of cohen2015, pressure in the guest), by the
# image's own tables; with `all_`, of every process that lived from the first pass to the second.
WINDOW = ('pages', 'median_ns', 'p95_ns', 'max_ns')
TRUST = ('safe', 'at_risk', 'wrong')
TRUTH = ('judged', 'wrong')
STATES = ('valid', 'transition', 'slot')

NUMBERS = (
    *(f'frame_{name}' for name in WINDOW), *(f'slot_{name}' for name in WINDOW),
    'mappings', *TRUST,  # by the verdict of `ramseal smear`
    *(f'frames_{name}' for name in TRUST), *(f'slots_{name}' for name in TRUST),
    *(f'{state}_{name}' for state in STATES for name in TRUTH),  # by the oracle
    'read_wrong',  # by the capture that `ramseal read` takes for each, and not the newest
    'truly_wrong',  # in all states; of these: not the process's own, and the kernel's
    'foreign', 'kernel',
    'safe_but_wrong',  # called safe, and wrong: must be 0
    'all_mappings', 'all_at_risk', 'all_wrong', 'all_truly_wrong',
    'wall_ns', 'memory_ns', 'bytes_read', 'bytes_again', 'peak_bytes',
)
TEXTS = ('frame_octaves', 'slot_octaves', 'root', 'tool', 'program')
FIELDS = (*Cell._fields, 'outcome', 'problem', 'clock', *NUMBERS, *TEXTS)
WINDOWS = [f'{name}_{key}' for name in ('frame', 'slot') for key in WINDOW[1:]]
OPTIONAL = {'read_wrong', 'all_truly_wrong', 'kernel', 'peak_bytes', *WINDOWS}  # what not every machine has


def parse(row):
    """A line as it was: numbers are numbers again, and None where there is none."""
    for name in NUMBERS:
        row[name] = int(row[name]) if row[name] else None
    row['seed'] = int(row['seed'])
    return row


def cell_of(row):
    return Cell(**{name: row[name] for name in Cell._fields})


class Runs:
    def __init__(self, path, program):
        """`program` is the hash of what is tried: lines of another one are put aside."""
        self.path = path
        self.program = program
        self.lock = threading.Lock()
        rows = read(path) if path.exists() else []
        self.rows = [row for row in rows if row['program'] == program]
        self.stale = len(self.rows) < len(rows)

    def _write_all(self):
        partial = self.path.with_suffix('.partial')
        with open(partial, 'w', newline='') as f:
            out = csv.DictWriter(f, FIELDS)
            out.writeheader()
            out.writerows(self.rows)
        os.replace(partial, self.path)

    def done(self, cell):
        return any(cell_of(row) == cell and row['outcome'] == 'ok' for row in self.rows)

    def add(self, cell, row):
        row = {**dict.fromkeys(FIELDS), **cell._asdict(), 'program': self.program, **row}
        with self.lock:
            self.rows = [r for r in self.rows if cell_of(r) != cell] + [row]
            self.rows.sort(key=lambda r: cell_of(r))
            if self.stale:
                os.replace(self.path, self.path.with_suffix('.old.csv'))
                self.stale = False
            self._write_all()


def read(path):
    """ValueError for what is not such a file."""
    with open(path, newline='') as f:
        reader = csv.DictReader(f, strict=True)
        if tuple(reader.fieldnames or ()) != FIELDS:
            raise ValueError(f'{path}: other columns')
        return [parse(row) for row in reader]
