#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
table.py KERNEL WORK DATA TABLE [--write]

Asks every original driver everything (answers.py), and compares what comes with TABLE; with
--write, writes it there. What stands before and behind the tables is in table-head.md and
table-tail.md. Ends with 77, Meson's "skipped", where the drivers are not to be had.
"""

import argparse
import difflib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import answers  # noqa: E402
import answers_reads  # noqa: E402
from lab import Lab, imports  # noqa: E402
from originals import IOSPACE, MODES, ORIGINALS, PHYSICAL, PTE  # noqa: E402

SKIPPED = 77

SECTIONS = [
    ('Loading', answers.LOADING),
    ('Requests', answers.REQUESTS),
    ('Modes', answers.CHOICES),
    *[(f'Reads in mode {MODES[mode]}', answers_reads.section_of(mode))
      for mode in (PTE, PHYSICAL, IOSPACE)],
    ('Mode IOSPACE on other versions of Windows', answers_reads.IOSPACES),
    ('Threads, handles, the processor', answers_reads.TOGETHER),
]


def ask_all(kernel, work, original, file):
    """[[answer to each question] for each section], and how often each export was called."""
    lab = Lab(kernel, Path(work) / original.file, original, file)
    try:
        given = [[lab.ask(function, *args) for _, function, *args in questions]
                 for _, questions in SECTIONS]
    finally:
        lab.close()
    return given, (imports(file), lab.calls)


def row(cells):
    return '| ' + ' | '.join(cells) + ' |\n'


def table(head, rows):
    return row(head) + row(['---'] * len(head)) + ''.join(row(cells) for cells in rows)


def is_same_code(file, other):
    """Of two files of one driver: all that is loaded, but the headers."""
    first, end = 0x400, 0x6A00
    return file.read_bytes()[first:end] == other.read_bytes()[first:end]


def files_section(columns, attested):
    rows = [[o.name, f'`{o.file}`', f'`{o.sha256}`'] for o in [*columns, attested]]
    return ('## Files\n\n' + table(['driver', 'file', 'SHA-256'], rows) +
            '\nThe two files of 1.6.3 hold the same code; their headers and signatures differ.\n')


def use_text(lab_calls, name):
    imported, calls = lab_calls
    if calls.get(name):
        return 'called' if name in imported else 'looked up, called'
    return 'imported' if name in imported else ''


def imports_section(columns, calls):
    """What each driver imports, and whether it called that while it was asked all this."""
    names = sorted({name for imported, called in calls for name in {*imported, *called}},
                   key=str.lower)
    rows = [[f'`{name}`'] + [use_text(c, name) for c in calls] for name in names]
    return '\n## Imports\n\n' + table(['function', *(o.name for o in columns)], rows)


def render(columns, attested, results):
    text = (HERE / 'table-head.md').read_text() + files_section(columns, attested)
    for s, (title, questions) in enumerate(SECTIONS):
        rows = [[question[0], *(given[s][q] for given, _ in results)]
                for q, question in enumerate(questions)]
        text += f'\n## {title}\n\n' + table(['', *(o.name for o in columns)], rows)
    return (text + imports_section(columns, [calls for _, calls in results]) + '\n' +
            (HERE / 'table-tail.md').read_text())


def as_json(columns, results):
    """{driver: {section: {question: answer}}}"""
    return {column.name: {title: {question[0]: answer
                                  for question, answer in zip(questions, section)}
                          for (title, questions), section in zip(SECTIONS, answers_of)}
            for column, (answers_of, _) in zip(columns, results)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ('kernel', 'work', 'data', 'table'):
        parser.add_argument(name)
    parser.add_argument('--write', action='store_true')
    parser.add_argument('--json', help='write all answers there, too')
    o = parser.parse_args()
    data = os.environ.get('RAMSEAL_TEST_DATA') or o.data
    files = {original.name: original.path(data) for original in ORIGINALS}
    if None in files.values():
        print(f'{data}/winpmem: no original drivers: skipped')
        sys.exit(SKIPPED)
    columns = [original for original in ORIGINALS if original.name != '1.6.3 attested']
    assert is_same_code(files['1.6.3'], files['1.6.3 attested'])
    with ThreadPoolExecutor(len(columns)) as pool:
        results = list(pool.map(lambda c: ask_all(o.kernel, o.work, c, files[c.name]), columns))
    text = render(columns, ORIGINALS[1], results)
    if o.json:
        Path(o.json).write_text(json.dumps(as_json(columns, results), indent=1))
    if o.write:
        Path(o.table).write_text(text)
        return
    stored = Path(o.table).read_text()
    if text != stored:
        sys.stdout.writelines(difflib.unified_diff(stored.splitlines(True), text.splitlines(True),
                                                   o.table, 'what the drivers answer now', n=0))
        print(f'{o.table} is stale: build/winpmem-table writes it anew')
        sys.exit(1)


if __name__ == '__main__':
    main()
