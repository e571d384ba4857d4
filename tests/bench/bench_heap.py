#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What `heap`, `vad` and `process` take of a process with 1,000,000 allocations in a heap of 1 GiB.

    bench_heap.py RAMSEAL FOLDER [--rounds N] [--container FILE]

The machine is simulated, with 4 GiB and a page file, and acquired by its tables; it is made once, in
FOLDER, which takes minutes. --container is one that was made so before. Each row is the median of N rounds,
with the container in the page cache: seconds, seconds of the processor, and the most memory.

Of other tools MemProcFS lists a heap's allocations (VMMDLL_Map_GetHeapAlloc), with Microsoft's symbols; it
finds no kernel in a simulated machine (formats/README.md), so nothing is measured beside it. Of volatility3's
plugins only windows.memmap does the like of a command here (`vad --pages`: where each page of a process is).
Both are run on the machine of bench_volatility3.py, if RAMSEAL_PEERS is set as tests/formats/test_volatility3.py
wants it.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'formats'))
import bench_volatility3  # noqa: E402
import isf_simulated  # noqa: E402
import volatility  # noqa: E402

MACHINE = ('sim:desktop,seed=3,ram=4G,processes=6,inside=1,heaps=1,heap_blocks=1000000,heap_max=16384,'
           'heap_leaks=20,live_files=1,pagefile0=2G')
COMMANDS = (('heap',), ('heap', '--allocations', '--csv'), ('heap', '--allocations', '--json'),
            ('heap', '--leaks'), ('heap', '--pages'), ('vad',), ('vad', '--pages'), ('process',))


def run(*command):
    """(seconds, seconds of the processor, MiB); what it says goes nowhere."""
    begin = time.monotonic()
    with subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as p:
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode not in (0, 3):
        raise SystemExit(f'bench_heap: {command[1]} ended with {p.returncode}')
    return time.monotonic() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def row(name, rounds):
    took, cpu, *room = (statistics.median(values) for values in zip(*rounds))
    print(f'{name:32} {took:7.2f} s, cpu {cpu:7.2f} s' + ''.join(f', {r:5.0f} MiB' for r in room), flush=True)


def pids(ramseal, container):
    said = subprocess.run([ramseal, 'info', '--json', container], capture_output=True, check=True).stdout
    return sorted({p['pid'] for p in json.loads(said)['address_spaces'] if not p['kernel']})


def largest(ramseal, container):
    """How many busy blocks the process has that has the most, and its number."""
    found = []
    for pid in pids(ramseal, container):
        done = subprocess.run([ramseal, 'heap', '--pid', str(pid), '--json', container],
                              capture_output=True, check=False)
        if done.returncode in (0, 3):
            found.append((sum(b['blocks'] for h in json.loads(done.stdout)['heaps'] for b in h['blocks']
                              if b['state'] == 'busy'), pid))
    return max(found)


def beside_volatility3(ramseal, folder, rounds):
    if volatility.missing():
        print(volatility.missing())
        return
    container = bench_volatility3.made(ramseal, folder)['container']
    symbols = folder / 'symbols'
    isf_simulated.write(symbols, 10)
    pid = pids(ramseal, container)[-1]
    ours, theirs = [], []
    bench_volatility3.timed(folder, symbols, container, 'windows.pslist')  # its cache of symbols
    for _ in range(rounds):
        ours.append(run(ramseal, 'vad', '--pages', '--pid', pid, container))
        theirs.append(bench_volatility3.timed(folder, symbols, container, 'windows.memmap', '--pid', str(pid)))
    print(f'process {pid} of {container.name}:')
    row('vad --pages', ours)
    row('volatility3 windows.memmap', theirs)


def main():
    p = argparse.ArgumentParser()
    p.add_argument('ramseal', type=os.path.abspath)
    p.add_argument('folder', type=Path)
    p.add_argument('--rounds', type=int, default=3)
    p.add_argument('--container', type=Path)
    a = p.parse_args()
    a.folder = a.folder.resolve()
    a.folder.mkdir(parents=True, exist_ok=True)
    container = a.container or a.folder / 'heap.rsz'
    if not container.exists():
        run(a.ramseal, 'acquire', '-q', '-f', '--read-timeout', 3600, '-s', MACHINE, '-o', container)
    blocks, pid = largest(a.ramseal, container)
    print(f'process {pid} of {container.name}, {blocks} busy blocks:')
    results = {c: [] for c in COMMANDS}
    for _ in range(a.rounds):
        for c in COMMANDS:
            results[c].append(run(a.ramseal, c[0], '--pid', pid, *c[1:], container))
    for c, found in results.items():
        row(' '.join(c), found)
    beside_volatility3(a.ramseal, a.folder, a.rounds)


if __name__ == '__main__':
    main()
