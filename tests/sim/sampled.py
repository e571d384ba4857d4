# SPDX-License-Identifier: Apache-2.0
"""What a program with sanitizers is tried on: all takes three times as long with it."""

import os

SANITIZED = os.environ.get('RAMSEAL_SANITIZED') == '1'


def sample(cases):
    """Every third with sanitizers, or all of them."""
    return cases[::3] if SANITIZED else cases
