# SPDX-License-Identifier: Apache-2.0
"""Whether a process has taken a signal that it was sent: until then it goes on as if there were none."""

import time
from pathlib import Path

WAIT = 900


def wait_until_taken(pid, number):
    until = time.monotonic() + WAIT
    while True:
        lines = dict(line.split(':\t', 1) for line in Path(f'/proc/{pid}/status').read_text().splitlines())
        if not int(lines['ShdPnd'], 16) >> (number - 1) & 1:
            return
        assert time.monotonic() < until, 'the signal was not taken'
        time.sleep(0.01)
