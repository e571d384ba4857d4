# SPDX-License-Identifier: Apache-2.0
"""
runs.csv: a line for each run, written as soon as it ended, so that an experiment that was interrupted
goes on where it was. Several experiments may write to it at the same time. Windows are nanoseconds;
`pages` are of 4 KiB.
"""

import contextlib
import csv
import fcntl
import os

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
    'truly_wrong',  # in all states, as a flat image has them; of these: not the process's own, and
    'foreign', 'kernel',  # the kernel's
    'read_wrong',  # by the capture that `ramseal read` takes for each; of these:
    'risk_but_wrong',  # called at risk
    'safe_but_wrong',  # called safe: must be 0
    'other_captures',  # mappings of which a flat image has another one than `read` takes
    'changed',  # addresses whose entry is another one in the pass after than in the pass before
    'all_mappings', 'all_at_risk', 'all_wrong', 'all_truly_wrong', 'all_changed',
    'wall_ns', 'memory_ns', 'bytes_read', 'bytes_again', 'peak_bytes',
    # Captured again because an entry had changed, not because of a bound, and the same of slots.
    'retaken_pages', 'not_retaken', 'slots_again', 'slots_dropped',
    'seconds',  # that the run took here, with everything that was done with it
)
# `processes`: MAPPINGS:AT-RISK:OTHER-CAPTURES:WRONG of each that lived, the last in a flat image. `boot`:
# which of the guest's boots it was, for runs that are to be compared with each other.
TEXTS = ('frame_octaves', 'slot_octaves', 'processes', 'boot', 'root', 'tool', 'program')
FIELDS = (*Cell._fields, 'outcome', 'problem', 'clock', *NUMBERS, *TEXTS)
WINDOWS = [f'{name}_{key}' for name in ('frame', 'slot') for key in WINDOW[1:]]
OPTIONAL = {'all_truly_wrong', 'kernel', 'peak_bytes', *WINDOWS}  # what not every machine has


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
        self.rows = []
        with self._locked():
            self._load()

    @contextlib.contextmanager
    def _locked(self):
        with open(self.path.with_suffix('.lock'), 'w') as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            yield

    def _load(self):
        """What the file has by now. The caller holds the lock."""
        try:
            rows = read(self.path) if self.path.exists() else []
        except ValueError:  # of a version with other columns
            rows = None
        self.rows = [row for row in rows or [] if row['program'] == self.program]
        self.stale = rows is None or len(self.rows) < len(rows)

    def reload(self):
        with self._locked():
            self._load()

    def _write_all(self):
        partial = self.path.with_suffix('.partial')
        with open(partial, 'w', newline='') as f:
            out = csv.DictWriter(f, FIELDS)
            out.writeheader()
            out.writerows(self.rows)
        os.replace(partial, self.path)

    def done(self, cell):
        return any(cell_of(row) == cell and row['outcome'] == 'ok' for row in self.rows)

    def are_paired(self, wanted):
        """All of these cells ended well, in one boot."""
        rows = [r for r in self.rows if cell_of(r) in wanted and r['outcome'] == 'ok']
        return len(rows) == len(wanted) and len({r['boot'] for r in rows}) == 1

    def add(self, cell, row):
        row = {**dict.fromkeys(FIELDS), **cell._asdict(), 'program': self.program, **row}
        with self._locked():
            self._load()
            self.rows = [r for r in self.rows if cell_of(r) != cell] + [row]
            self.rows.sort(key=lambda r: cell_of(r))
            if self.stale:
                os.replace(self.path, self.path.with_suffix('.old.csv'))
            self._write_all()


def read(path):
    """ValueError for what is not such a file."""
    with open(path, newline='') as f:
        reader = csv.DictReader(f, strict=True)
        if tuple(reader.fieldnames or ()) != FIELDS:
            raise ValueError(f'{path}: other columns')
        return [parse(row) for row in reader]
