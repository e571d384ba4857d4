# SPDX-License-Identifier: Apache-2.0
"""
One run: a machine acquired, and everything that runs.csv has of it.
"""

import json
import sys
from pathlib import Path

sys.path += [str(Path(__file__).parent.parent / name) for name in ('sim', 'vm')]
import simulated  # noqa: E402

NOT_THERE = ('outside', 'unreadable', 'missing', 'no-file')  # verdicts that mean wrong (METHOD.md, 5)
MEMORY = 'physical memory'
READ = (MEMORY, 'page tables before', 'page tables after', 'page file')


def windows(name, window):
    row = {f'{name}_pages': window['pages'], f'{name}_octaves': ' '.join(
        f'{max(o["from_ns"], 1).bit_length() - 1}:{o["pages"]}' for o in window['histogram'])}
    for key in ('median_ns', 'p95_ns', 'max_ns'):
        row[f'{name}_{key}'] = window[key] if window['pages'] else None
    return row


def trusts(name, verdicts):
    wrong = sum(verdicts.get(v, 0) for v in NOT_THERE)
    safe = verdicts.get('safe', 0)
    return {f'{name}_safe': safe, f'{name}_wrong': wrong,
            f'{name}_at_risk': sum(verdicts.values()) - safe - wrong}


def _trust(space):
    return space['copies']['image']['trust']


def smear_of(smear, pid):
    """What `ramseal smear --json` says of one process, and of all that lived."""
    space, = (s for s in smear['spaces'] if s.get('pid') == pid and s['fate'] == 'lived')
    image = space['copies']['image']
    lived = [s for s in smear['spaces'] if s['fate'] == 'lived']
    trust = image['trust']
    return {
        **windows('frame', image['window']), **windows('slot', image['slot_window']),
        **trusts('frames', image['frames']), **trusts('slots', image['slots']),
        'mappings': sum(trust.values()), 'safe': trust['safe'], 'at_risk': trust['at-risk'],
        'wrong': trust['wrong'],
        'all_mappings': sum(sum(_trust(s).values()) for s in lived),
        'all_at_risk': sum(_trust(s)['at-risk'] for s in lived),
        'all_wrong': sum(_trust(s)['wrong'] for s in lived),
    }


def cost_of(info, summary):
    """What it took. What was read again is what was captured beyond each page once."""
    captured = sum(s['captured_bytes'] for s in info['streams'] if s['kind'] in READ)
    memory, = (s for s in info['streams'] if s['kind'] == MEMORY)
    return {
        'root': info['root'], 'tool': info['written_by'], 'wall_ns': summary['duration_ns'],
        'memory_ns': memory['end_ns'] - memory['start_ns'], 'bytes_read': captured,
        'bytes_again': memory['captured_bytes'] - 4096 * sum(memory['pages'].values()),
    }


def info_of(container):
    return json.loads(simulated.output_of(simulated.RAMSEAL, 'info', '--json', container))


# --- the simulator ---

def truth_of(container, account, pid):
    """
    What sim_truth says of all, and of the process {virtual address: {time: verdict} of each capture of
    what it names}.
    """
    said = []
    rows = simulated.lines_of(simulated.SIM_TRUTH, container, account, pid, said=said)
    next(rows)
    pages = {int(va, 16): captures.rstrip('\n')
             for va, *_, captures in (row.split(',') for row in rows)}
    return json.loads(said[0]), pages


def read_of(container, pid, pages):
    """
    Pages of the process that are not its own by the capture that `read` takes for each, and those of
    them that smear calls safe.
    """
    rows = simulated.lines_of(simulated.RAMSEAL, 'smear', '--mappings', pid, container)
    names = next(rows).rstrip('\n').split(',')
    copy, va, state, trust, when = (names.index(n) for n in ('copy', 'va', 'state', 'trust',
                                                             'captured_ns'))
    wrong = safe = 0
    for row in rows:
        row = row.rstrip('\n').split(',')
        captures = pages.get(int(row[va], 16)) if row[copy] == 'image' else None
        if captures is None or row[state] not in simulated.PLACED:
            continue
        if f'{row[when]}:right' not in captures.split():
            wrong += 1
            safe += row[trust] == 'safe'
    return {'read_wrong': wrong, 'safe_but_wrong': safe}


def truth_row(truth):
    main = truth['main']
    row = {}
    for name, state in (('valid', 'valid'), ('transition', 'transition'), ('slot', 'page-file')):
        row[f'{name}_judged'] = sum(main[state].values())
        row[f'{name}_wrong'] = simulated.wrong(main[state])
    row['truly_wrong'] = sum(simulated.wrong(v) for v in main.values())
    row['all_truly_wrong'] = sum(simulated.wrong(v) for v in truth['all'].values())
    row['kernel'] = sum(v['kernel'] for v in main.values())
    row['foreign'] = sum(v['foreign'] + v['kernel'] + v['other'] for v in main.values())
    return row


def simulated_run(spec, options, container, account):
    summary = simulated.acquire(spec, container, account, *options)
    pid = simulated.main_pid(account)
    truth, pages = truth_of(container, account, pid)
    return {
        'clock': 'virtual',
        **smear_of(simulated.smear(container), pid), **cost_of(info_of(container), summary),
        **truth_row(truth), **read_of(container, pid, pages),
    }
