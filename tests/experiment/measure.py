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


def _changed(space):
    """Addresses whose entries differ between the passes, whichever way."""
    changes = space['transitions']['before-after']['changes']
    return sum(n for change, n in changes.items() if change != 'stable')


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
        'wrong': trust['wrong'], 'changed': _changed(space),
        'all_changed': sum(map(_changed, lived)), 'other_captures': image['older_captures'],
        'all_mappings': sum(sum(_trust(s).values()) for s in lived),
        'all_at_risk': sum(_trust(s)['at-risk'] for s in lived),
        'all_wrong': sum(_trust(s)['wrong'] for s in lived),
    }


def cost_of(info, summary):
    """What it took. What was read again is what was captured beyond each page once."""
    captured = sum(s['captured_bytes'] for s in info['streams'] if s['kind'] in READ)
    memory, = (s for s in info['streams'] if s['kind'] == MEMORY)
    order = summary['order']
    slots = order.get('slots', {})
    return {
        'root': info['root'], 'tool': info['written_by'], 'wall_ns': summary['duration_ns'],
        'memory_ns': memory['end_ns'] - memory['start_ns'], 'bytes_read': captured,
        'bytes_again': memory['captured_bytes'] - 4096 * sum(memory['pages'].values()),
        'retaken_pages': order.get('retaken_pages', 0), 'not_retaken': order.get('not_retaken', 0),
        'slots_again': slots.get('again', 0), 'slots_dropped': slots.get('dropped', 0),
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
    Pages of the process that are not its own by the capture that `read` takes for each, and how many of
    them smear calls safe, and at risk.
    """
    rows = simulated.lines_of(simulated.RAMSEAL, 'smear', '--mappings', pid, container)
    names = next(rows).rstrip('\n').split(',')
    va, state, trust, when = (names.index(n) for n in ('va', 'state', 'trust', 'captured_ns'))
    wrong = {}
    for row in rows:
        if not row.startswith('image,'):  # `copy` comes first; of millions the passes have two thirds
            continue
        row = row.rstrip('\n').split(',')
        captures = pages.get(int(row[va], 16))
        if captures is None or row[state] not in simulated.PLACED:
            continue
        if f'{row[when]}:right' not in captures.split():
            wrong[row[trust]] = wrong.get(row[trust], 0) + 1
    return {'read_wrong': sum(wrong.values()), 'safe_but_wrong': wrong.get('safe', 0),
            'risk_but_wrong': wrong.get('at-risk', 0)}


def processes_of(smear, truth):
    """
    Of each process that lived: what is there, and how much of it is at risk, another capture in a flat
    image, and wrong there.
    """
    wrong = {pid: n for pid, _, n in truth}
    found = []
    for space in smear['spaces']:
        if space['fate'] == 'lived' and space.get('pid') in wrong:
            trust = _trust(space)
            found.append((trust['safe'] + trust['at-risk'], trust['at-risk'],
                          space['copies']['image']['older_captures'], wrong[space['pid']]))
    return processes_text(found)


def processes_text(found):
    return ' '.join(':'.join(map(str, of)) for of in found)


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
    smear = simulated.smear(container)
    return {
        'clock': 'virtual',
        **smear_of(smear, pid), **cost_of(info_of(container), summary),
        **truth_row(truth), **read_of(container, pid, pages),
        'processes': processes_of(smear, truth['processes']),
    }
