#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs fuzzers one after the other, each for some minutes of processor time, and says what they saw.

    tests/fuzz/run.py [-m MINUTES] BUILD [NAME...]

BUILD is a build folder made with -Dfuzzing=true. What is new goes to BUILD/fuzz/NAME, so that the next
run goes on from there; an input that crashes, leaks, or takes more than a minute by the clock goes to
BUILD/fuzz/finds. The files of tests/fuzz/corpus are only read.
"""
import argparse
import os
import pathlib
import re
import resource
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SLICE = 60    # seconds by the clock, which is what libFuzzer can be told
TIMEOUT = 60  # by the clock, too: on a busy machine an input of a second's work can take ten


def corpus_of(name):
    own = HERE / 'corpus' / name
    return own if own.is_dir() else HERE / 'corpus' / name.split('_')[0]


def cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Fuzzer:
    def __init__(self, build, name):
        self.name = name
        self.program = build / 'tests' / 'fuzz' / f'fuzz_{name}'
        self.found = build / 'fuzz' / name
        self.finds = build / 'fuzz' / 'finds'
        for folder in (self.found, self.finds):
            folder.mkdir(parents=True, exist_ok=True)
        self.runs = 0

    def run(self, *options):
        """Returns (ended well, last "cov: N ft: N")."""
        p = subprocess.run([self.program, *options, f'-timeout={TIMEOUT}', '-rss_limit_mb=1024',
                            '-print_final_stats=1', f'-artifact_prefix={self.finds}/{self.name}-',
                            self.found, corpus_of(self.name)],
                           stderr=subprocess.PIPE, encoding='utf-8', errors='replace', check=False)
        executed = re.findall(r'number_of_executed_units: (\d+)', p.stderr)
        self.runs += int(executed[-1]) if executed else 0
        seen = re.findall(r'cov: (\d+) ft: (\d+)', p.stderr)
        if p.returncode:
            (self.finds / f'{self.name}.log').write_text(p.stderr)
        return not p.returncode, '/'.join(seen[-1]) if seen else '-'

    def fuzz(self, seconds):
        good, before = self.run('-runs=0')
        start, self.runs = cpu(), 0
        while good and cpu() - start < seconds:
            good, _ = self.run(f'-max_total_time={SLICE}')
        spent, runs = cpu() - start, self.runs
        after = self.run('-runs=0')[1]
        print(f'{self.name:14} {runs / max(spent, 0.01):9.0f} {spent / 60:8.1f} {before:>12} '
              f'{after:>12}   {"" if good else "see " + str(self.finds)}', flush=True)
        return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('-m', '--minutes', type=float, default=5)
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('names', nargs='*')
    args = parser.parse_args()
    names = args.names or sorted(p.name[5:] for p in (args.build / 'tests' / 'fuzz').glob('fuzz_*')
                                 if p.is_file())
    os.nice(19 - os.nice(0))
    print(f'{"fuzzer":14} {"runs/s":>9} {"minutes":>8} {"before":>12} {"after":>12}   (edges/features)')
    return 0 if all([Fuzzer(args.build.resolve(), n).fuzz(60 * args.minutes) for n in names]) else 1


sys.exit(main())
