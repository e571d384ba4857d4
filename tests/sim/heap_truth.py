# SPDX-License-Identifier: Apache-2.0
"""
What a simulated machine says of the heaps of its processes (process_truth=FILE,
agent/simulator/inside.h).
"""

import csv
from pathlib import Path


class Heaps:
    def __init__(self, path):
        self.heaps, self.busy, self.referrers, self.leaked, self.pids = {}, {}, {}, {}, []
        # Of each block in use the entry of the stack trace database, None if nobody knows; and of each entry
        # the return addresses.
        self.traces, self.entries = {}, {}
        # Of page heap: address of the data: requested and actual size, state (busy, freed or stale), entry.
        self.page_blocks = {}
        # Blocks that only a thread leads to: user-stack, register or kernel-stack, and where the pointer is.
        self.stack_roots = {}
        # Of each process, of each of its heaps by its number, where it has memory: (first byte, last byte).
        self.regions = {}
        for kind, *f in csv.reader(Path(path).read_text(encoding='utf-8').splitlines()):
            if kind == 'heap':
                if f[0] not in self.pids:
                    self.pids.append(f[0])
                self.heaps.setdefault(f[0], {})[int(f[2], 0)] = f
            elif kind == 'heap-region':
                self.regions.setdefault(f[0], {}).setdefault(f[1], []).append((int(f[2], 0), int(f[3], 0)))
            elif kind == 'trace':
                self.traces.setdefault(f[0], {})[int(f[2], 0)] = int(f[3], 0) or None
            elif kind == 'stack-root':
                self.stack_roots.setdefault(f[0], {})[int(f[2], 0)] = (f[3], int(f[4], 0))
            elif kind == 'page-block':
                self.page_blocks.setdefault(f[0], {})[int(f[2], 0)] = (
                    int(f[3]), int(f[4]), f[5], int(f[6], 0) or None)
            elif kind == 'trace-entry':
                self.entries.setdefault(f[0], {})[int(f[1], 0)] = [int(a, 0) for a in f[2].split()]
            elif kind == 'allocation' and f[5] != 'own' and f[6] != 'free':
                self.busy.setdefault(f[0], {})[int(f[2], 0)] = (int(f[3]), f[5])
                if f[6] == 'leaked':
                    self.leaked.setdefault(f[0], set()).add(int(f[2], 0))
                if int(f[7], 0):
                    self.referrers.setdefault(f[0], {})[int(f[2], 0)] = int(f[7], 0)
