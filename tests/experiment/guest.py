# SPDX-License-Identifier: Apache-2.0
"""
A real kernel under memory pressure (tests/vm), acquired from inside while a program of marked pages
rewrites them and is swapped. One boot serves many runs; what fails boots anew.
"""

import json
import shutil
import sys
import uuid
from collections import namedtuple
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / 'vm'))
import acquired  # noqa: E402
import marked  # noqa: E402
import measure  # noqa: E402
import vm  # noqa: E402
from marked import MIB, PAGE  # noqa: E402

# Of a guest's RAM the kernel takes some 120 MiB; what is wanted of the rest is more than there is, and so
# some of it is in the swap area at any time. A page that was brought in again keeps its slot for a while:
# the area has room for all.
Size = namedtuple('Size', 'ram_mib area_mib wanted_mib')
SMALL = Size(256, 224, {'low': 160, 'normal': 220, 'high': 300})
SIZES = {'guest': Size(384, 320, {'normal': 320, 'high': 420}),
         'pairs-fast': SMALL, 'pairs-slow': SMALL}
RUN_TIMEOUT = 1200

# Of the disk, by the name of the machine. Slow is a tenth of a hard disk's speed, as the processors are of
# a real one's.
SPEEDS = {'pairs-slow': ',throttling.bps-total=16777216,throttling.iops-total=500'}


class Judge(ExitStack):
    """What tests/vm/acquired.py and marked.py want of a test, for something that is none."""

    @staticmethod
    def assertEqual(a, b, message=''):
        if a != b:
            raise vm.GuestError(f'{a!r} is not {b!r} {message}')

    @staticmethod
    def assertIn(a, b, message=''):
        if a not in b:
            raise vm.GuestError(f'{a!r} is not one of {b!r} {message}')

    def addCleanup(self, function, *args, **kwargs):
        self.callback(function, *args, **kwargs)


class Guests:
    """The guest of the pressure that was asked for last."""

    def __init__(self, kernel, ramseal, pressure, work):
        self.kernel = kernel
        self.files = {'bin/ramseal': ramseal, 'bin/pressure': pressure}
        self.work = work
        self.guest = self.program = self.boot = None
        self.started = None  # (machine, pressure)
        acquired.PROGRAM = ramseal

    def stop(self):
        if self.guest:
            self.guest.__exit__()
        self.guest = None

    def start(self, cell):
        """Of machine and pressure it is the same boot for as long as it lives."""
        wanted = (cell.machine, cell.pressure)
        if self.guest and self.started == wanted:
            return
        self.stop()
        self.work.mkdir(parents=True, exist_ok=True)
        disk = self.work / 'disk'
        disk.unlink(missing_ok=True)
        size = SIZES[cell.machine]
        wanted_mib = size.wanted_mib[cell.pressure]
        marked.make_disk(disk, max(size.area_mib, wanted_mib + 8) * MIB)
        machine = vm.MEASURED._replace(drive=SPEEDS.get(cell.machine, ''))
        guest = vm.Guest(self.kernel, self.work / 'vm', self.files, disk=disk, ram_mib=size.ram_mib,
                         machine=machine)
        self.guest = guest.__enter__()
        self.started, self.boot = wanted, uuid.uuid4().hex[:8]
        self.program = marked.Program(guest, wanted_mib * MIB // PAGE, timeout=900)

    def acquire(self, options, container):
        # After a run the program has the memory back that ramseal took, and goes on.
        self.guest.check(f'kill -CONT {self.program.pid}; sleep 2')
        # --fast: orders are compared as docs/RESULTS.md has them, and nothing pauses.
        done = self.guest.run('ramseal acquire --quiet --log-json --fast --source kcore '
                              f'{" ".join(options)} -o - >/dev/container',
                              container=container, timeout=RUN_TIMEOUT)
        # What is done with the container needs the host's processors.
        self.guest.check(f'kill -STOP {self.program.pid}')
        if done.code:
            raise vm.GuestError(f'acquire ended with {done.code}: {done.err}')
        return json.loads(done.err.splitlines()[-1])

    def run(self, cell, options, container):
        """Everything that runs.csv has of it; vm.GuestError, and the guest is gone."""
        try:
            self.start(cell)
            summary = self.acquire(options, container)
        except BaseException:
            self.stop()
            raise
        smear = measure.simulated.smear(container)
        with Judge() as judge:
            image = marked.Acquired(judge, container)
            read, flat = (marked.judge(judge, image, self.program, flat, ('image',))
                          for flat in (False, True))
        row = measure.smear_of(smear, int(self.program.pid))
        return {
            'clock': 'real', 'boot': self.boot, 'peak_bytes': summary['usage']['peak_rss'], **row,
            **measure.cost_of(measure.info_of(container), summary), **truth_row(flat),
            'read_wrong': wrong_of(read), 'safe_but_wrong': wrong_of(read, 'safe'),
            'risk_but_wrong': wrong_of(read, 'at-risk'),
            'processes': measure.processes_text(
                [(row['safe'] + row['at_risk'], row['at_risk'], row['other_captures'],
                  wrong_of(flat))]),
        }


def wrong_of(found, trust=None):
    """Pages by the image's own tables that are not right."""
    return sum(n for (copy, _, of, verdict), n in found.items()
               if copy == 'image' and verdict != 'right' and trust in (None, of))


def truth_row(found):
    """The image's own tables, by the marks."""
    image = {key[1:]: n for key, n in found.items() if key[0] == 'image'}
    wrong = {key: n for key, n in image.items() if key[2] != 'right'}
    row = {'transition_judged': 0, 'transition_wrong': 0}  # Linux has no such state
    for state in ('valid', 'slot'):
        row[f'{state}_judged'] = sum(n for key, n in image.items() if key[0] == state)
        row[f'{state}_wrong'] = sum(n for key, n in wrong.items() if key[0] == state)
    row['truly_wrong'] = sum(wrong.values())
    row['foreign'] = sum(n for key, n in wrong.items() if key[2] == 'other')
    return row


def clean(work):
    shutil.rmtree(work, ignore_errors=True)
