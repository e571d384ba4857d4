#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What smear does to the list of a heap's blocks, in an order of acquisition and while the program goes on
allocating and freeing (heap_writes of the simulated machine, agent/simulator/live.h).

    tests/experiment/heap_smear.py RAMSEAL [--seeds N] [--writes N,N...] [--builds N,N...]

Prints the table of docs/RESULTS.md. A block is "there" if it was in use at that address, with that size
and from that part of the heap, at any time from the start of the acquisition on. Exit code 1: a block was listed
that never was there, as certain.
"""
import argparse
import csv
import itertools
import json
import os
import subprocess
import sys
import tempfile

MACHINE = ('sim:cohen2015,ram=256M,resident=60M,allocated=100M,trimmed=30M,others=30M,cache=30M,pagefile0=200M,processes=4,'
           'inside=1,heaps=3,heap_blocks=16000,heap_lfh=40,live_files=1,region_paged=20,region_transition=20,pool_paged=0,'
           'activity=100')
# With the same work on the heaps and nothing else that moves: what writing does alone.
STILL = 'touch=0,write=0,alloc=0,free=0,start=0,exit=0,pressure=0,trim=0,region_paged=0,region_transition=0'
MACHINES = {'moving': '', 'still': STILL + ','}
ORDERS = (('linear', ['--order', 'linear']), ('guided', []))


def acquire(ramseal, folder, options, settings):
    container = os.path.join(folder, 'c.rsz')
    if os.path.exists(container):
        os.remove(container)
    source = f'{MACHINE},{settings},process_truth={folder}/account,heap_log={folder}/log'
    done = subprocess.run([ramseal, 'acquire', '-q', '--source', source, *options, '-o', container],
                          stderr=subprocess.PIPE, encoding='utf-8', check=False)
    if done.returncode not in (0, 3):
        sys.exit(done.stderr)
    return container


class Truth:
    """Of the main process: blocks as (address, requested, kind)."""
    def __init__(self, folder, pid):
        start, sizes = set(), {}
        for row in csv.reader(open(f'{folder}/account', encoding='utf-8')):
            if row[0] == 'allocation' and int(row[1]) == pid and row[7] != 'free' and row[6] != 'own':
                start.add((int(row[3], 0), int(row[4]), row[6]))
        now, ever, stayed = set(start), set(start), set(start)
        self.steps = self.stopped = 0
        for row in csv.reader(open(f'{folder}/log', encoding='utf-8')):
            block = (int(row[4], 0), int(row[5]), row[6])
            if row[3] == 'stopped':
                self.stopped += 1
                continue
            self.steps += 1
            if row[3] == 'alloc':
                assert block not in now
                now.add(block)
                ever.add(block)
            else:
                now.remove(block)
                stayed.discard(block)
        self.ever, self.stayed = ever, stayed
        for a, size, kind in ever:
            sizes.setdefault((a, kind), set()).add(size)
        self.sizes = sizes


def main_process(folder):
    best = {}
    for row in csv.reader(open(f'{folder}/account', encoding='utf-8')):
        if row[0] == 'allocation':
            best[int(row[1])] = best.get(int(row[1]), 0) + 1
    return max(best, key=best.get)


def judge(ramseal, folder, container):
    pid = main_process(folder)
    truth = Truth(folder, pid)
    done = subprocess.run([ramseal, 'heap', container, '--pid', str(pid), '-A', '--json'], capture_output=True, check=False)
    ret = dict.fromkeys(('stayed', 'found', 'passing', 'passing_found', 'listed', 'invented', 'islands', 'contradictions',
                         'resynchronised', 'unlinked', 'lost'), 0)
    ret.update(stayed=len(truth.stayed), passing=len(truth.ever) - len(truth.stayed), steps=truth.steps,
               stopped=truth.stopped, opened=done.returncode in (0, 3))
    if not ret['opened']:
        return ret
    stayed_at = {(a, k): s for a, s, k in truth.stayed}
    found = set()
    for line in done.stdout.splitlines():
        row = json.loads(line)
        if row['state'] != 'busy':
            continue
        at = int(row['address'], 0), row['place']
        ret['listed'] += 1
        sizes = truth.sizes.get(at, ())
        right = row['requested'] in sizes if row['requested'] is not None else bool(sizes)
        if not right:
            ret['invented'] += not row.get('island', False)
            ret['islands'] += bool(row.get('island', False))
            ret.setdefault('examples', []).append((row, sorted(sizes)))
        elif row['requested'] is None:
            found.add(at)
        elif stayed_at.get(at) == row['requested']:
            found.add(at)
        else:
            ret['passing_found'] += 1
    ret['found'] = len(found & stayed_at.keys())
    said = subprocess.run([ramseal, 'heap', container, '--pid', str(pid), '--json'], capture_output=True, check=False)
    for heap in json.loads(said.stdout)['heaps']:
        for what in ('contradictions', 'resynchronised', 'unlinked', 'lost'):
            ret[what] += heap[what]
    return ret


def percent(part, whole):
    return f'{100 * part / whole:.1f} %' if whole else '–'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('ramseal')
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--writes', default='0,100,1000,5000')
    parser.add_argument('--builds', default='7601,19045')
    parser.add_argument('--machines', default='moving,still')
    parser.add_argument('--examples', type=int, default=0)
    args = parser.parse_args()
    bad = 0
    print('| build | pages | steps a second | order | runs | steps meanwhile | stayed: listed | came or went: listed | listed '
          '| never there | contradictions | resynchronised | unlinked |')
    print('|---|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|')
    with tempfile.TemporaryDirectory() as folder:
        cells = itertools.product(args.builds.split(','), args.machines.split(','), args.writes.split(','), ORDERS)
        for build, machine, writes, (order, options) in cells:
            sums = {}
            for seed in range(1, args.seeds + 1):
                windows = 7 if build == '7601' else 10
                container = acquire(args.ramseal, folder, options, f'{MACHINES[machine]}windows={windows},build={build},'
                                    f'seed={seed},heap_writes={writes}')
                one = judge(args.ramseal, folder, container)
                for row, sizes in one.pop('examples', [])[:args.examples]:
                    print('never there:', row, sizes, file=sys.stderr)
                for what, n in one.items():
                    sums[what] = sums.get(what, 0) + n
            bad += sums['invented']
            notes = [f'{n} {what}' for what, n in (('heaps stopped', sums['stopped']), ('marked as islands', sums['islands']),
                                                   ('processes not found', args.seeds - sums['opened'])) if n]
            print(f'| {build} | {machine} | {int(writes):,} | `{order}` | {args.seeds} | {sums["steps"]:,} | '
                  f'{percent(sums["found"], sums["stayed"])} of {sums["stayed"]:,} | '
                  f'{percent(sums["passing_found"], sums["passing"])} of {sums["passing"]:,} | '
                  f'{sums["listed"]:,} | {sums["invented"]} | {sums["contradictions"]:,} | '
                  f'{sums["resynchronised"]:,} | {sums["unlinked"] // 1024:,} KiB |' + '; '.join(notes), flush=True)
    return bad != 0


if __name__ == '__main__':
    sys.exit(main())
