#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What a database feels of an acquisition, in the guest of tests/vm.

    bench_load.py KERNEL-FOLDER RAMSEAL DATABASE [--rounds N]

SQLite (tests/vm/guest/database.c) commits transactions as fast as it can, two clients on the disk that
the container is written to. Each round has windows with and without an acquisition, in turn; what is
counted is the transactions in a window by its time, as a part of what the two windows without one
around it had. Tables have medians and extremes of the rounds.

The machine is QEMU's emulation with its clock tied to executed instructions (-icount): guest time
passes as the guest gets on, and what else runs on the host makes the run longer, but not the guest
slower. It has one CPU (with that clock a second one does not come up), which is the hardest case:
what the acquisition takes, the database lacks. The disk is limited to a rate, in the host's time. Real
disks and CPUs have other numbers; the order of the rows is what carries over.
"""

import argparse
import collections
import json
import os
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'vm'))
import acquired  # noqa: E402
import areas  # noqa: E402
import vm  # noqa: E402

MIB = 1 << 20
RAM_MIB = 160
CLIENTS = 2
ROWS = 20000
QUIET_S = 10
DISK_BYTES, DISK_REQUESTS = 64 * MIB, 2000  # a second
TIMEOUT = 1800
MACHINE = vm.MEASURED._replace(
    options=('-smp', '1', '-icount', 'shift=2'),
    drive=f',throttling.bps-total={DISK_BYTES},throttling.iops-total={DISK_REQUESTS}')

# `group`: the control group, where 'database' is the database's own.
Mode = collections.namedtuple('Mode', 'name options group')
MODES = (
    Mode('default', '', 'database'),
    Mode('--fast', '--fast', 'database'),
    Mode('default, in another group', '', 'other'),
    Mode('--fast, in another group', '--fast', 'other'),
)

Window = collections.namedtuple('Window', 'seconds rate worst_s')
Row = collections.namedtuple('Row', 'part seconds worst_s median_ns p95_ns max_ns at_risk')


class Load:
    def __init__(self, guest, work):
        self.guest = guest
        self.work = work

    def start(self):
        self.guest.load('virtio_blk', 'crc32c_generic', 'ext4')
        self.guest.check('mkdir /disk /groups && mount -t ext4 /dev/vda /disk && '
                         'mount -t cgroup2 cgroup2 /groups && '
                         'echo +cpu >/groups/cgroup.subtree_control && '
                         'mkdir /groups/database /groups/other /disk/db')
        self.guest.check('(echo 0 >/groups/database/cgroup.procs; exec database run /disk/db '
                         f'{CLIENTS} {ROWS} /tmp/counts) >/tmp/ready 2>/tmp/failed & '
                         'until [ -s /tmp/ready ] || [ -s /tmp/failed ]; do sleep 1; done; '
                         '! cat /tmp/failed | grep .', timeout=TIMEOUT)
        # The first seconds are slow, before the database and the file system have grown to their size.
        self.acquisition(MODES[1])
        self.smear()

    def window(self, command):
        """What the database did while that ran."""
        out = self.guest.check(f'database count /tmp/counts; {command} && database count /tmp/counts',
                               timeout=TIMEOUT)
        (begin, before, _), (end, after, worst) = (map(int, line.split())
                                                   for line in out.splitlines())
        seconds = (end - begin) / 1e9
        return Window(seconds, (after - before) / seconds, worst / 1e9)

    def quiet(self):
        return self.window(f'sleep {QUIET_S}')

    def acquisition(self, mode):
        return self.window(f'(echo 0 >/groups/{mode.group}/cgroup.procs; exec ramseal acquire -q '
                           f'--source kcore {mode.options} -o /disk/out.rsz)')

    def smear(self):
        """Windows and risk of the mappings in the container that was written last."""
        here = self.work / 'out.rsz'
        self.guest.check('echo 1 >/groups/database/cgroup.freeze; cat /disk/out.rsz >/dev/container; '
                         'rm /disk/out.rsz; echo 0 >/groups/database/cgroup.freeze', container=here,
                         timeout=TIMEOUT)
        done = acquired.ramseal('smear', '--json', here)
        here.unlink()
        image = json.loads(done.stdout)['total']['copies']['image']
        window = image['window']
        return window['median_ns'], window['p95_ns'], window['max_ns'], image['trust']['at-risk']

    def round(self, modes):
        """A Row for each mode; and the transactions a second that there are without."""
        rows, before = {}, self.quiet()
        rates = [before.rate]
        print(f'  {before.rate:.0f} transactions a second without', flush=True)
        for mode in modes:
            during = self.acquisition(mode)
            smear = self.smear()
            after = self.quiet()
            print(f'  {mode.name}: {during.rate:.0f} transactions a second for {during.seconds:.1f} s; '
                  f'then {after.rate:.0f} without', flush=True)
            rows[mode.name] = Row(2 * during.rate / (before.rate + after.rate), during.seconds,
                                  during.worst_s, *smear)
            before = after
            rates.append(after.rate)
        return rows, rates


def spread(values, form):
    return (f'{form(statistics.median(values))} ({form(min(values))}-{form(max(values))})')


def milliseconds(ns):
    return f'{ns / 1e6:.3g}'


COLUMNS = '{:<26} {:>20} {:>20} {:>20} {:>22} {:>22} {:>24} {:>22}'


def show(rounds):
    print(COLUMNS.format('acquire', 'transactions', 'takes', 'longest transaction', 'median window',
                         '95 % below', 'longest window', 'pages at risk'))
    print(COLUMNS.format('', '% of those without', 's', 's', 'ms', 'ms', 'ms', ''))
    for mode in MODES:
        rows = [r[mode.name] for r, _ in rounds]

        def column(what, form):
            return spread([getattr(row, what) for row in rows], form)
        print(COLUMNS.format(mode.name, column('part', lambda x: f'{100 * x:.1f}'),
                             column('seconds', lambda x: f'{x:.1f}'),
                             column('worst_s', lambda x: f'{x:.2f}'),
                             column('median_ns', milliseconds), column('p95_ns', milliseconds),
                             column('max_ns', milliseconds), column('at_risk', lambda x: f'{x:.0f}')),
              flush=True)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument('kernel', type=Path)
    arguments.add_argument('ramseal', type=os.path.abspath)
    arguments.add_argument('database', type=os.path.abspath)
    arguments.add_argument('--rounds', type=int, default=5)
    o = arguments.parse_args()
    if not (o.kernel / 'release').exists():
        print(f'{o.kernel} is missing: run build/kernel')
        return 77  # meson: skipped
    acquired.PROGRAM = o.ramseal
    work, rounds = Path('load').resolve(), []
    disk = areas.make_image(Path('load.img').resolve(), 'ext4-4k', 1024 * MIB)
    files = {'bin/ramseal': o.ramseal, 'bin/database': o.database}
    try:
        with vm.Guest(o.kernel, work, files, disk=disk, ram_mib=RAM_MIB, filesystems=('ext4',),
                      machine=MACHINE) as guest:
            load = Load(guest, work)
            load.start()
            for i in range(o.rounds):
                turn = i % len(MODES)
                rounds.append(load.round(MODES[turn:] + MODES[:turn]))
    finally:
        disk.unlink()
    rates = [rate for _, quiet in rounds for rate in quiet]
    print(f'{RAM_MIB} MiB, 1 CPU, {CLIENTS} clients; without an acquisition '
          f'{spread(rates, lambda x: f"{x:.0f}")} transactions a second; {o.rounds} rounds')
    show(rounds)
    return 0


if __name__ == '__main__':
    sys.exit(main())
