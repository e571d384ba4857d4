#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Small changes to the program, each of which at least one named test must notice. The changes are in the *.toml beside
this file. They are tried one after the other in a copy of the tree below out/mutants; what was tried is remembered as
long as neither the change nor the tree becomes another.
"""

import argparse
import fcntl
import hashlib
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
AT = SOURCE / 'out' / 'mutants'
TREE = AT / 'tree'
BUILD = AT / 'build'
VERDICTS = AT / 'verdicts.json'
# What scripts of the tree put below out/: what a build makes, and what tests take if it is there.
MADE = ('libraries', 'sources')
FOUND = ('servers', 'npm', 'kernel')
# How long a test has at least: a mutant may be slower, and so may a machine.
LEAST_S = 600
FIELDS = {'name': str, 'file': str, 'old': str, 'new': str, 'tests': list}


class Broken(Exception):
    """A mutant that cannot be judged: an error of the mutant."""


class Mutant:
    def __init__(self, area, entry):
        self.area = area
        self.name, self.file, self.old, self.new, self.tests = (entry[key] for key in FIELDS)

    def __str__(self):
        return f'{self.area}: {self.name}'

    def apply(self, text):
        found = text.count(self.old)
        if found != 1:
            raise Broken(f'does not apply: the old text is in {self.file} {found} times')
        return text.replace(self.old, self.new)

    def key(self, tree):
        return digest(json.dumps([tree, self.file, self.old, self.new, self.tests]).encode())


def digest(data):
    return hashlib.sha256(data).hexdigest()


#
# The mutants
#

def faults_of(area, entry):
    """What is wrong with an entry's own text."""
    name = f'{area}: {entry.get("name", "a mutant without a name")}'
    wrong = [key for key, kind in FIELDS.items() if not isinstance(entry.get(key), kind)]
    if wrong or entry.keys() - FIELDS.keys():
        return [f'{name}: wants {", ".join(FIELDS)}, and nothing else']
    if not entry['tests'] or not all(isinstance(t, str) for t in entry['tests']):
        return [f'{name}: names no test']
    return [f'{name}: changes nothing'] if entry['old'] == entry['new'] else []


def load():
    """All mutants, and what is wrong with those that are none."""
    mutants, faults = [], []
    for path in sorted(Path(__file__).parent.glob('*.toml')):
        with open(path, 'rb') as f:
            entries = tomllib.load(f).get('mutant', [])
        for entry in entries:
            wrong = faults_of(path.stem, entry)
            faults += wrong
            if not wrong:
                mutants.append(Mutant(path.stem, entry))
    names = [m.name for m in mutants]
    faults += [f'{n}: two mutants have this name' for n in sorted({n for n in names if names.count(n) > 1})]
    return mutants, faults


def tests_of(build):
    """{name: what Meson knows of the test}, of a build folder."""
    with open(build / 'meson-info' / 'intro-tests.json') as f:
        return {t['name']: t for t in json.load(f)}


def has_all_tests(build):
    """Tests of the network and of simulated machines are not in a build without these."""
    with open(build / 'meson-info' / 'intro-buildoptions.json') as f:
        options = {o['name']: o['value'] for o in json.load(f)}
    return options['network'] and options['simulator']


def check(mutants, build):
    """Do all apply, and are there the tests that they name?"""
    faults = []
    for m in mutants:
        try:
            m.apply((SOURCE / m.file).read_text())
        except OSError as e:
            faults.append(f'{m}: {e}')
        except Broken as e:
            faults.append(f'{m}: {e}')
    if build and has_all_tests(build):
        known = tests_of(build)
        faults += [f'{m}: there is no test "{t}"' for m in mutants for t in m.tests if t not in known]
    return faults


#
# The copy of the tree
#

def listed():
    """Paths of the tree's files: what git has or would take, and without git all but out/."""
    if (SOURCE / '.git').exists():
        done = subprocess.run(['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'], cwd=SOURCE,
                              stdout=subprocess.PIPE, check=True)
        paths = [os.fsdecode(p) for p in done.stdout.split(b'\0') if p]
    else:
        paths = [str(p.relative_to(SOURCE)) for p in SOURCE.rglob('*')]
    return sorted(p for p in set(paths) if Path(p).parts[0] not in ('out', '.git') and (SOURCE / p).is_file())


def write(path, data):
    """With a new time, so that what was built from it before is built anew."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def refresh():
    """Makes the copy what the tree is now, and touches nothing else. Returns the hash of all files but the mutants."""
    paths = listed()
    sums = hashlib.sha256()
    for p in paths:
        data, to = (SOURCE / p).read_bytes(), TREE / p
        if not to.is_file() or to.read_bytes() != data:
            write(to, data)
        shutil.copymode(SOURCE / p, to)
        if not p.startswith('tests/mutants/'):
            sums.update(f'{p}\0{digest(data)}\n'.encode())
    wanted = set(paths)
    for old in [p for p in TREE.rglob('*') if p.is_file() and not p.is_symlink()]:
        name = str(old.relative_to(TREE))
        if name not in wanted and not name.startswith('out/'):
            old.unlink()
    share()
    return sums.hexdigest()


def share():
    (TREE / 'out').mkdir(exist_ok=True)
    for name in MADE:
        (SOURCE / 'out' / name).mkdir(parents=True, exist_ok=True)
    for name in MADE + FOUND:
        link = TREE / 'out' / name
        if (SOURCE / 'out' / name).exists() and not link.is_symlink():
            link.symlink_to(SOURCE / 'out' / name)


def environment():
    """Without what `meson test` gives to the tests of another build folder."""
    ours = ('MALLOC_PERTURB_', 'GLIBC_TUNABLES', 'PYTHONPATH', 'RAMSEAL_SIMULATOR', 'RAMSEAL_NETWORK', 'RAMSEAL_WHOLE')
    ret = {k: v for k, v in os.environ.items() if k not in ours and not k.startswith('MESON_')}
    ret.setdefault('RAMSEAL_TEST_DATA', str(SOURCE.parent / 'shared' / 'data'))
    return ret


def run(*command, **more):
    """(exit code, what it said)"""
    with subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors='replace', env=environment(), **more) as p:
        try:
            said = p.communicate()[0]
        except BaseException:
            p.terminate()  # Meson ends its tests then
            p.wait()
            raise
    return p.returncode, said


def configure():
    failed, said = run('sh', '-euc', '. build/lib.sh; configure ../build -Dwerror=true -Doptimization=0 -Ddebug=false',
                       cwd=TREE)
    if failed:
        sys.exit(f'{said}mutants.py: the copy of the tree cannot be configured')


#
# Building and testing
#

class Bench:
    """The build folder, and what its tests need."""

    def __init__(self, jobs):
        self.jobs = jobs
        # With what changed in meson.build, should something have.
        if run('ninja', '-C', BUILD, 'build.ninja')[0]:
            sys.exit('mutants.py: the build folder cannot be made anew; remove out/mutants')
        self.tests = tests_of(BUILD)
        with open(BUILD / 'meson-info' / 'intro-targets.json') as f:
            self.files = {t['id']: t['filename'] for t in json.load(f)}

    def targets(self, names):
        """What the tests are, and what they run, as ninja calls it."""
        ids = [i for n in names for i in self.tests[n]['depends']]
        files = {f for i in ids for f in self.files.get(i, [])}
        return sorted(os.path.relpath(f, BUILD) for f in files)

    def build(self, names):
        """None, or what the compiler says."""
        targets = self.targets(names)
        if not targets:
            return None
        failed, said = run('ninja', '-C', BUILD, f'-j{self.jobs}', *targets)
        return said if failed else None

    def test(self, name):
        """The result as Meson calls it: OK, FAIL, SKIP, TIMEOUT, …; tests of the suite `long` do not run."""
        limit = self.tests[name]['timeout']
        log = BUILD / 'meson-logs' / 'mutant.json'
        log.unlink(missing_ok=True)
        run('meson', 'test', '-C', BUILD, '--no-rebuild', '--logbase', 'mutant', '--timeout-multiplier',
            max(4, math.ceil(LEAST_S / limit)), name)
        results = [json.loads(line)['result'] for line in log.read_text().splitlines()] if log.exists() else []
        return results[0] if len(results) == 1 else 'did not run'


    def said(self):
        log = BUILD / 'meson-logs' / 'mutant.txt'
        return tail(log.read_text(errors='replace')) if log.exists() else ''


class Verdicts:
    """What is known, by a key, in a file that is whole at every moment."""

    def __init__(self, forget):
        self.known = {}
        if VERDICTS.exists() and not forget:
            self.known = json.loads(VERDICTS.read_text())

    def keep(self, key, what):
        self.known[key] = what
        new = VERDICTS.with_suffix('.new')
        new.write_text(json.dumps(self.known, indent=1))
        new.replace(VERDICTS)


def tail(text, lines=25):
    return '\n'.join('    ' + line for line in text.splitlines()[-lines:])


def passing(bench, verdicts, tree, names):
    """Of these tests those that pass on the unchanged tree: no others can notice anything."""
    ret = []
    for name in names:
        key = digest(json.dumps([tree, name]).encode())
        result = verdicts.known.get(key)
        if not result:
            begin = time.monotonic()
            result = bench.test(name)
            print(f'unchanged: {name}: {result}, {time.monotonic() - begin:.0f} s', flush=True)
            if result in ('OK', 'SKIP'):
                verdicts.keep(key, result)
        if result == 'OK':
            ret.append(name)
        elif result != 'SKIP':
            print(f'error: {name} fails on the unchanged tree, and can judge no mutant\n{bench.said()}', flush=True)
    return ret


def judge(bench, m, tests):
    """The verdict in words: by which test it was killed, or that it survived."""
    if not tests:
        raise Broken('no test of it passes here on the unchanged tree')
    path = TREE / m.file
    was = path.read_bytes()
    try:
        write(path, m.apply(was.decode()).encode())
        said = bench.build(tests)
        if said:
            raise Broken(f'does not build\n{tail(said)}')
        for name in tests:
            result = bench.test(name)
            if result != 'OK':
                return f'killed by {name}' + (' (timeout)' if result == 'TIMEOUT' else '')
        return 'survived'
    finally:
        write(path, was)


def judge_all(bench, verdicts, tree, mutants):
    """[(mutant, verdict)]; a line for each."""
    left = [m for m in mutants if m.key(tree) not in verdicts.known]
    names = sorted({t for m in left for t in m.tests if t in bench.tests})
    if names:
        said = bench.build(names)
        if said:
            sys.exit(f'{said}mutants.py: the unchanged tree does not build')
    good = set(passing(bench, verdicts, tree, names))
    ret = []
    for m in mutants:
        key, begin = m.key(tree), time.monotonic()
        verdict = verdicts.known.get(key)
        again = verdict is not None
        if not again:
            try:
                verdict = judge(bench, m, [t for t in m.tests if t in good])
                verdicts.keep(key, verdict)
            except Broken as e:
                verdict = f'broken: {e}'
        print(f'{m}: {verdict}' + (' (known)' if again else f', {time.monotonic() - begin:.0f} s'), flush=True)
        ret.append((m, verdict))
    return ret


def report(results, begin):
    """The survivors, and the last line; how many are not killed."""
    def count(what):
        return sum(verdict.startswith(what) for _, verdict in results)

    for what in ('broken', 'survived'):
        for m, verdict in results:
            if verdict.startswith(what):
                print(f'{what}: {m} ({m.file}; {", ".join(m.tests)})')
    print(f'{len(results)} mutants: {count("killed")} killed, {count("survived")} survived, {count("broken")} broken, '
          f'in {(time.monotonic() - begin) / 60:.1f} minutes')
    return len(results) - count('killed')


def lock():
    """One at a time: all have the same tree."""
    AT.mkdir(parents=True, exist_ok=True)
    held = open(AT / 'lock', 'w')
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit('mutants.py: another one is running')
    return held


def chosen(mutants, o):
    if o.only:
        mutants = [m for m in mutants if re.search(o.only, str(m))]
    if o.sample and o.sample < len(mutants):
        seed = o.seed if o.seed is not None else random.randrange(1 << 32)
        print(f'--sample {o.sample} --seed {seed}')
        mutants = random.Random(seed).sample(mutants, o.sample)
    # What was changed is built again: those of one file one after the other, that is half of it.
    return sorted(mutants, key=lambda m: (m.area, m.file))


def options():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('--only', metavar='PATTERN', help='those whose "AREA: NAME" has this regular expression')
    p.add_argument('--sample', type=int, metavar='N', help='so many, drawn')
    p.add_argument('--seed', type=int, help='draw the same as another run')
    p.add_argument('--again', action='store_true', help='forget what is known')
    p.add_argument('--jobs', type=int, default=os.cpu_count(), metavar='N', help='of ninja')
    p.add_argument('--list', action='store_true', help='print them, and whether they apply')
    p.add_argument('--check', nargs='?', type=Path, const=SOURCE / 'out' / 'dev', metavar='BUILD',
                   help='only whether each applies, and whether the build folder (default: out/dev) has its tests')
    return p.parse_args()


def main():
    o, begin = options(), time.monotonic()
    mutants, faults = load()
    build = o.check if o.check and (o.check / 'meson-info').exists() else None
    faults += check(mutants, build)
    if o.list:
        print('\n'.join(map(str, chosen(mutants, o))))
    if faults:
        sys.exit('\n'.join(faults))
    if o.list or o.check:
        return 0
    held = lock()
    tree = refresh()
    configure()
    results = judge_all(Bench(o.jobs), Verdicts(o.again), tree, chosen(mutants, o))
    held.close()
    return 1 if report(results, begin) else 0


if __name__ == '__main__':
    sys.exit(main())
