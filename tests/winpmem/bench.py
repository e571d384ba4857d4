#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
bench.py KERNEL RAMSEAL WORK DATA GUEST-KERNEL GUEST-RAMSEAL

How fast each original driver hands out memory, in each mode, as `ramseal check` measures it (not of
IOSPACE, which is a hazard that it does not read); and how much of the time is spent in the driver, and
in the kernel's functions that it calls. Beside it
/proc/kcore in the guest of tests/vm. All that is emulated: only one line compares with another.
"""

import json
import os
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from machine import Machine  # noqa: E402  (it knows where vm is)
from originals import IOSPACE, MODES, ORIGINALS, PHYSICAL, PTE  # noqa: E402
from vm import Guest  # noqa: E402

MIB = 1 << 20
RUNS = 5
SKIPPED = 77


def rate_of(text):
    """MiB/s of what `ramseal check --json` has read"""
    return json.loads(text)['probe']['bytes_per_second'] / MIB


def check(m, mode):
    name = 'winpmem' if mode == PTE else 'winpmem-' + MODES[mode].lower()
    return rate_of(m.run([RAMSEAL, 'check', '--json', '--no-pagefile', '--source',
                          f'{name}:{m.path()}', '-o', WORK / 'none.rsz']).stdout)


def shares(m, h):
    """
    Of the time that the machine takes to read all RAM, 1 MiB at a time: the driver's own code, and
    what it calls. The rest is the I/O manager's.
    """
    before = m.counters()
    for first, size in m.ram():
        for at in range(max(first, 4096), first + size, MIB):
            assert m.read(h, at, min(MIB, first + size - at)).status == 0
    driver, kernel, all_of_it = (m.counters()[name] - before[name] for name in
                                 ('driver_ticks', 'kernel_ticks', 'request_ticks'))
    return driver / all_of_it, kernel / all_of_it


def measure(m, original, mode):
    """Medians. The driver is loaded each time, because 4.x takes one mode."""
    rates, rows = [], []
    for _ in range(RUNS + 1):
        assert m.load(original.path(DATA)) == 0
        rates.append(check(m, mode))
        h = m.open()
        rows.append(shares(m, h))
        m.close_all()
        m.unload()
    # The first run is QEMU's translation of the driver.
    return statistics.median(rates[1:]), *map(statistics.median, zip(*rows[1:]))


def kcore():
    with Guest(GUEST_KERNEL, WORK / 'guest', {'bin/ramseal': GUEST_RAMSEAL}) as guest:
        return statistics.median([
            rate_of(guest.run('ramseal check --json --no-pagefile --source kcore -o /tmp/x').out)
            for _ in range(RUNS + 1)][1:])


def main():
    print(f'{"driver":10} {"mode":9} {"MiB/s":>8} {"driver":>8} {"kernel":>8}')
    with Machine(KERNEL, WORK / 'machine') as m:
        for original in ORIGINALS:
            if original.name == '1.6.3 attested':
                continue
            for mode in (PTE, PHYSICAL, IOSPACE):
                rate, driver, kernel = measure(m, original, mode)
                rate = f'{rate:.1f}' if rate else '-'
                print(f'{original.name:10} {MODES[mode]:9} {rate:>8} {driver:8.0%} {kernel:8.0%}',
                      flush=True)
    print(f'{"/proc/kcore, in a guest":20} {kcore():8.1f}')


if __name__ == '__main__':
    KERNEL, RAMSEAL, WORK, DATA, GUEST_KERNEL, GUEST_RAMSEAL = map(Path, sys.argv[1:7])
    DATA = Path(os.environ.get('RAMSEAL_TEST_DATA') or DATA)
    if not all(original.path(DATA) for original in ORIGINALS):
        print(f'{DATA}/winpmem: no original drivers: skipped')
        sys.exit(SKIPPED)
    main()
