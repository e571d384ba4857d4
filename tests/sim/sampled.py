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


def draw(what):
    """A generator of numbers, which for each `what` is another one, whatever else is drawn."""
    say_seed()
    return random.Random(f'{SEED} {what}')


def drawn(cases, count, what):
    """So many of them, in their order; or all of them."""
    if WHOLE or count >= len(cases):
        return list(cases)
    return [cases[i] for i in sorted(draw(what).sample(range(len(cases)), count))]


def say_seed():
    if not SAID:
        SAID.append(print(f'note: sampled with RAMSEAL_SEED={SEED}', flush=True))


def sample(cases, of=4):
    """One of each `of`, in their order; or all of them."""
    if WHOLE or len(cases) < 2:
        return cases
    say_seed()
    chosen = DRAW.sample(range(len(cases)), (len(cases) + of - 1) // of)
    return [cases[i] for i in sorted(chosen)]
