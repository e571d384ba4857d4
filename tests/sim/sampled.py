# SPDX-License-Identifier: Apache-2.0
"""
How many of many cases alike are tried: all of them by `meson test --setup whole`, else some, others in each run.
The seed that they are drawn by is printed, and RAMSEAL_SEED sets it.
"""

import os
import random

WHOLE = os.environ.get('RAMSEAL_WHOLE') == '1'
SEED = int(os.environ.get('RAMSEAL_SEED') or random.randrange(1000000))
DRAW = random.Random(SEED)
SAID = []


def sample(cases, of=4):
    """One of each `of`, in their order; or all of them."""
    if WHOLE or len(cases) < 2:
        return cases
    if not SAID:
        SAID.append(print(f'note: sampled with RAMSEAL_SEED={SEED}', flush=True))
    drawn = DRAW.sample(range(len(cases)), (len(cases) + of - 1) // of)
    return [cases[i] for i in sorted(drawn)]
