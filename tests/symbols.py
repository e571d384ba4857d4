#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
No test defines a symbol that the program defines: what a test runs is the program's code, and never something that the
linker has put in its place. Looks at the objects in the build folder.
Usage: symbols.py BUILD
"""
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

PROGRAM = ('formats', 'driver-interface', 'tsk-extract', 'agent')
# A kernel of its own, which nothing of the program is linked with.
APART = ('tests/winpmem/nt_kernel.p',)


def is_sanitizers(name):
    return name.startswith(('__odr_asan', '__asan', '___asan', '__sanitizer'))


def definitions(build, objects):
    """{symbol: objects that define it for others}"""
    ret = defaultdict(set)
    if not objects:
        return ret
    done = subprocess.run(['nm', '-A', '-P', '-g', '--defined-only', *map(str, objects)], capture_output=True,
                          text=True, check=True)
    for line in done.stdout.splitlines():
        path, rest = line.rsplit(': ', 1)
        symbol = rest.split()[0]
        if not is_sanitizers(symbol):
            ret[symbol].add(str(Path(path).relative_to(build)))
    return ret


def main():
    build = Path(sys.argv[1])
    program = [o for part in PROGRAM for o in (build / part).glob('**/*.o')]
    # Sources of the program that a test compiles for itself are named by their way from there.
    tests = [o for o in (build / 'tests').glob('**/*.o')
             if '.._' not in o.name and not str(o.relative_to(build)).startswith(APART)]
    ours, theirs = definitions(build, program), definitions(build, tests)
    if len(ours) < 500 or len(theirs) < 20:
        sys.exit(f'{len(ours)} symbols of the program and {len(theirs)} of tests: these are not all')
    twice = sorted((ours.keys() & theirs.keys()) - {'main'})
    for symbol in twice:
        print(f'{symbol}: defined in {", ".join(sorted(theirs[symbol]))} and in {", ".join(sorted(ours[symbol]))}')
    print(f'{len(ours)} symbols of the program, {len(theirs)} of tests, {len(twice)} of both')
    return 1 if twice else 0


if __name__ == '__main__':
    sys.exit(main())
