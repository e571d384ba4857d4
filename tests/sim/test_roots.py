#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The containers of four simulated machines, byte for byte as roots.json has them: nobody changes what is
written, or what the manifest says, unseen. Usage: test_roots.py RAMSEAL

Each is also acquired without compression, which gives the same bytes with every libzstd (tried with 1.5.4 and
1.5.7). Compressed ones are those of the version that roots.json names, and are compared where that is linked.

Where such a change is wanted, `test_roots.py RAMSEAL --write` writes roots.json anew; it belongs into the
same commit. Debian 12 has the libzstd that roots.json names.
"""
import hashlib
import json
import os
import re
import sys
import tempfile
import unittest

import simulated

simulated.RAMSEAL = os.path.abspath(sys.argv[1])
EXPECTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'roots.json')
SMALL = ('desktop,ram=128M,allocated=80M,resident=44M,trimmed=24M,others=30M,processes=10,cache=8M,'
         'pressure=100,bandwidth=80M,pagefile0=96M,pagefile1=64M')
MACHINES = {
    'seed 1, linear': (f'{SMALL},seed=1', '--order', 'linear'),
    'seed 2, guided, read by three threads': (f'{SMALL},seed=2,activity=1000', '--order', 'guided', '-t', 3),
    'seed 3, guided, with page files': (f'{SMALL},seed=3,live_files=1', '--pagefile', 'guided'),
    'seed 4, with what processes hold, guided': (f'{SMALL},seed=4,windows=7,inside=1,heaps=2', '--order', 'guided'),
}


STORED = ('--level', 'store')
COMPRESSED = {'seed 3, guided, with page files': ('--level', '3')}


def libzstd():
    said = simulated.run(simulated.RAMSEAL, '--version', '--verbose').stdout.decode()
    return re.search(r'(?m)^ +libzstd (\S+)( \(Debian [^)]*\))?:', said)[1]


def acquired(spec, *options):
    with tempfile.TemporaryDirectory(prefix='ramseal-roots-') as folder:
        container = os.path.join(folder, 'a.rsz')
        root = simulated.acquire(spec, container, os.path.join(folder, 'a.csv'), *options)['root']
        with open(container, 'rb') as f:
            return {'root': root, 'sha256': hashlib.file_digest(f, 'sha256').hexdigest()}


class Roots(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        with open(EXPECTED) as f:
            cls.expected = json.load(f)

    def check(self, kind, level):
        expected = self.expected[kind]
        self.assertEqual(sorted(expected), sorted(MACHINES))
        for name, machine in MACHINES.items():
            with self.subTest(name):
                self.assertEqual(acquired(*machine, *level(name)), expected[name],
                                 'wanted? tests/sim/test_roots.py RAMSEAL --write')

    def test_same_bytes_as_ever(self):
        self.check('stored', lambda name: STORED)

    def test_same_bytes_as_ever_compressed(self):
        if libzstd() != self.expected['libzstd']:
            self.skipTest(f'roots.json has those of libzstd {self.expected["libzstd"]}, and this is {libzstd()}')
        self.check('compressed', lambda name: COMPRESSED.get(name, ()))


def everything():
    return {
        'libzstd': libzstd(),
        'compressed': {name: acquired(*machine, *COMPRESSED.get(name, ())) for name, machine in MACHINES.items()},
        'stored': {name: acquired(*machine, *STORED) for name, machine in MACHINES.items()},
    }


if __name__ == '__main__':
    if sys.argv[2:] == ['--write']:
        with open(EXPECTED, 'w') as out:
            json.dump(everything(), out, indent=1)
            out.write('\n')
    else:
        del sys.argv[1]
        unittest.main(verbosity=2)
