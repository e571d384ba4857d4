#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The program without simulator and network has nothing of either in it, by its symbols.
Usage: test_evidence.py RAMSEAL EVIDENCE
"""

import re
import subprocess
import sys
import unittest

RAMSEAL, EVIDENCE = sys.argv.pop(1), sys.argv.pop(1)
# Of libcurl, Mbed TLS, c-ares, and across files of agent/simulator.
OTHERS = re.compile(r'(curl|mbedtls|psa|ares|sim_)_\w+')


def of_others(program):
    said = subprocess.run(['nm', program], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1] for line in said.splitlines()}
    return sorted(name for name in names if OTHERS.fullmatch(name))


class Evidence(unittest.TestCase):
    def test_nothing_of_simulator_and_network(self):
        self.assertGreater(len(of_others(RAMSEAL)), 500)
        self.assertEqual(of_others(EVIDENCE), [])


if __name__ == '__main__':
    unittest.main(verbosity=2)
