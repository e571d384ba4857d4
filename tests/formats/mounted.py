# SPDX-License-Identifier: Apache-2.0
"""A container as a folder, for tests that open what is in it with other programs."""

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path


def missing():
    """Why nothing can be mounted; None: it can."""
    if not os.access('/dev/fuse', os.R_OK | os.W_OK):
        return '/dev/fuse cannot be opened: nothing can be mounted here'
    return 'fusermount3 is missing, and we are not root' if os.geteuid() and not shutil.which('fusermount3') else None


@contextlib.contextmanager
def mounted(ramseal, container, folder):
    """The folder, while the container is mounted there."""
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    process = subprocess.Popen([ramseal, 'mount', '-f', '-q', container, folder])
    try:
        end = time.monotonic() + 900
        while not os.path.ismount(folder):
            assert process.poll() is None and time.monotonic() < end, f'{container} could not be mounted'
            time.sleep(0.02)
        yield folder
    finally:
        process.terminate()
        process.wait()
