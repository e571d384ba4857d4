#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Time of volatility3's windows.pslist on a container beside the same on its raw export.

    bench_volatility3.py RAMSEAL FOLDER [--rounds N]

The machine is simulated, with 2 GiB; it is made once, in FOLDER. Each number is the median of N rounds in
which the two take turns, with everything in the page cache; "cpu" is the time of volatility3's processor.
Needs RAMSEAL_PEERS, as tests/formats/test_volatility3.py does.
"""
import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'formats'))
import isf_simulated  # noqa: E402
import volatility  # noqa: E402


def made(ramseal, folder):
    container, raw = folder / 'volatility3.rsz', folder / 'volatility3.raw'
    if not raw.exists():
        for command in (['acquire', '-s', 'sim:desktop', '-o', container],
                        ['export', '-o', raw, container]):
            subprocess.run([ramseal, command[0], '-q', '-f', *command[1:]], check=True)
    return {'container': container, 'raw': raw}


def timed(folder, symbols, image, *plugin):
    """(seconds, seconds of the processor)"""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = volatility.vol(folder, symbols, '-f', image, *plugin)
    took, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    p = argparse.ArgumentParser()
    p.add_argument('ramseal')
    p.add_argument('folder', type=Path)
    p.add_argument('--rounds', type=int, default=5)
    a = p.parse_args()
    if volatility.missing():
        print(volatility.missing())
        return
    a.folder = a.folder.resolve()  # volatility3 runs in it
    a.folder.mkdir(parents=True, exist_ok=True)
    symbols = a.folder / 'symbols'
    isf_simulated.write(symbols, 10)
    images = made(os.path.abspath(a.ramseal), a.folder)
    results = {name: [] for name in images}
    timed(a.folder, symbols, images['raw'], 'windows.pslist')  # its cache of symbols
    for _ in range(a.rounds):
        for name, image in images.items():
            results[name].append(timed(a.folder, symbols, image, 'windows.pslist'))
    for name, found in results.items():
        took, cpu = (statistics.median(f[i] for f in found) for i in (0, 1))
        print(f'windows.pslist, {name:9}  {took:.2f} s, cpu {cpu:.2f} s')


if __name__ == '__main__':
    main()
