# SPDX-License-Identifier: Apache-2.0
"""volatility3 from the folder RAMSEAL_PEERS, run with formats/volatility3 as its plugins."""

import os
import subprocess
import sys
from pathlib import Path

LAYER = Path(__file__).resolve().parents[2] / 'formats/volatility3'
SKIPPED_EXIT = 77  # what meson takes for "skipped"


def source():
    """Where volatility3 is; None."""
    folder = Path(os.environ.get('RAMSEAL_PEERS') or '/nonexistent') / 'volatility3'
    return folder if (folder / 'vol.py').exists() else None


def interpreter():
    """A Python that has what volatility3 needs: this one, or Debian's. None."""
    for python in (sys.executable, '/usr/bin/python3'):
        if Path(python).exists() and not subprocess.run([python, '-c', 'import pefile'],
                                                        stderr=subprocess.DEVNULL).returncode:
            return python
    return None


def missing():
    """Why it cannot be run; None: it can."""
    if not source():
        return 'volatility3 is missing: RAMSEAL_PEERS does not name a folder that has its source'
    return None if interpreter() else 'no Python here has pefile, which volatility3 needs'


def skip_without():
    """Ends a test as skipped."""
    why = missing()
    if why:
        print(why)
        sys.exit(SKIPPED_EXIT)


def python(script, *arguments, ramseal='', **kwargs):
    environment = {**os.environ, 'PYTHONPATH': str(source()), 'PYTHONDONTWRITEBYTECODE': '1', 'RAMSEAL': str(ramseal)}
    done = subprocess.run([interpreter(), str(script), *map(str, arguments)], capture_output=True,
                          text=True, timeout=900, env=environment, **kwargs)
    assert done.returncode == 0, done.stderr
    return done


def vol(folder, symbols, *arguments, layer=LAYER, **variables):
    """A run with caches in `folder` and symbols in `symbols`, offline."""
    environment = {**os.environ, 'PYTHONPATH': '', 'PYTHONDONTWRITEBYTECODE': '1', **variables}
    cache = Path(folder) / 'cache'
    cache.mkdir(exist_ok=True)
    return subprocess.run([interpreter(), source() / 'vol.py', '--offline', '-q', '--cache-path', cache,
                           '-p', layer, '-s', symbols, *map(str, arguments)], capture_output=True,
                          text=True, timeout=900, env=environment, cwd=folder,
                          stdin=subprocess.DEVNULL)
