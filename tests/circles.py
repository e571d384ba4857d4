#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
In these folders no file needs another one that needs it, be it over a third: whoever reads one from the ground up never has
to know what comes later. Looks at which object defines what the others use.
Usage: circles.py BUILD
"""
import subprocess
import sys
from pathlib import Path

FOLDERS = ('agent/examine/heap',)


def symbols(objects, kind):
    """{symbol: names of the objects that define it, or use it}"""
    ret = {}
    done = subprocess.run(['nm', '-A', '-P', '-g', kind, *map(str, objects)], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        path, rest = line.rsplit(': ', 1)
        ret.setdefault(rest.split()[0], set()).add(Path(path).name.removesuffix('.c.o'))
    return ret


def needs(objects):
    """{name: names of the others whose symbols it uses}"""
    defined = symbols(objects, '--defined-only')
    ret = {}
    for symbol, users in symbols(objects, '--undefined-only').items():
        for user in users:
            ret.setdefault(user, set()).update(defined.get(symbol, set()) - {user})
    return ret


def circle(graph):
    """Names that need each other, in order; [] if there are none."""
    done, way = set(), []

    def visit(name):
        if name in way:
            return way[way.index(name):]
        if name in done:
            return []
        way.append(name)
        for other in sorted(graph.get(name, ())):
            found = visit(other)
            if found:
                return found
        done.add(way.pop())
        return []

    return next(filter(None, (visit(name) for name in sorted(graph))), [])


def main():
    build = Path(sys.argv[1])
    bad = False
    for folder in FOLDERS:
        part, rest = folder.split('/', 1)
        objects = sorted((build / part).glob(f'*.a.p/{rest.replace("/", "_")}_*.o'))
        graph = needs(objects)
        if len(objects) < 10 or not any(graph.values()):
            sys.exit(f'{folder}: {len(objects)} objects: these are not all')
        found = circle(graph)
        print(f'{folder}: {len(objects)} files, {sum(map(len, graph.values()))} arrows',
              f'; a circle: {" -> ".join([*found, found[0]])}' if found else '')
        bad |= bool(found)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
