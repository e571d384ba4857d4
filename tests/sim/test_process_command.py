#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
ramseal process on simulated machines, whose own account it is compared with: each process, its
modules and its threads, of each build that the simulator knows.

	test_process_command.py RAMSEAL
"""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_truth  # noqa: E402: beside this
from machine_case import BUILDS, WITH_WOW64, MachineCase, run  # noqa: E402


class Machine(MachineCase):
    def acquire(self, settings):
        super().acquire(f'ram=64M,processes=6,{settings}')
        return process_truth.read(self.account)

    def ask(self, pid, code=0):
        done = run('process', self.container, '--pid', pid, '--json')
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def check(self, truth, said):
        self.assertEqual((said['pid'], said['name']), (truth.pid, truth.name))
        self.assertEqual(int(said['eprocess'], 0), truth.eprocess)
        self.assertEqual(int(said['peb'], 0), truth.peb)
        self.assertFalse(said['no_peb'])
        self.assertEqual(said['peb32'] and int(said['peb32'], 0), truth.peb32)
        self.assertEqual(said['loader_list32'], 'closed' if truth.peb32 else None)
        self.assertEqual(said['parent'], truth.parent or None)
        self.assertEqual(said['created_ns'], truth.created * 100 - 11644473600 * 10**9)
        self.assertTrue(said['image'].endswith(truth.name))
        self.assertIn(truth.name, said['command_line'])
        self.assertEqual(said['loader_list'], 'closed')
        self.assertEqual(said['thread_list'], 'closed')
        modules = {int(m['base'], 0): m for m in said['modules']}
        self.assertEqual(sorted(modules), sorted(m.base for m in truth.modules))
        for m in truth.modules:
            got = modules[m.base]
            self.assertEqual((got['size'], got['bits']), (m.size, m.bits))
            self.assertTrue(got['path'].endswith(m.path), (got['path'], m.path))
            self.assertEqual((got['listed'], got['mapped']), (m.seen != 'vad', m.seen != 'loader'))
            self.assertEqual(got['finding'] is None, m.seen == 'both')
            if got['pdb']:
                guid = bytes.fromhex(m.guid)
                text = (guid[3::-1] + guid[5:3:-1] + guid[7:5:-1] + guid[8:]).hex().upper()
                self.assertIn(got['pdb']['guid'], (text, m.guid.upper()))
                self.assertEqual(got['pdb']['age'], m.age)
        threads = {t['tid']: t for t in said['threads']}
        self.assertEqual(sorted(threads), sorted(t.tid for t in truth.threads))
        for t in truth.threads:
            got = threads[t.tid]
            self.assertEqual([int(got[k], 0) for k in ('ethread', 'teb', 'stack_limit', 'stack_base', 'start')],
                             [t.ethread, t.teb, t.limit, t.base, t.start])
            self.assertEqual(int(got['rsp'], 0), t.rsp)
            narrow = truth.threads32.get(t.tid)
            self.assertEqual([got.get(k) for k in ('stack32_limit', 'stack32_base')],
                             [hex(narrow.limit), hex(narrow.base)] if narrow else [None, None])
        return sum(m['pdb'] is not None for m in said['modules'])


class Process(Machine):
    def test_each_process_of_each_build(self):
        for build, narrow in [(b, 0) for b in BUILDS] + [(b, 4) for b in WITH_WOW64]:
            with self.subTest(build=build, narrow=narrow):
                windows = 7 if build == 7601 else 10
                _, processes = self.acquire(f'windows={windows},build={build},ghosts=1,threads=5,wow64={narrow}')
                pdbs = hidden = ghosts = 0
                self.assertEqual(sum(p.peb32 is not None for p in processes.values()), narrow)
                for p in processes.values():
                    if p.pid == 4:
                        continue
                    pdbs += self.check(p, self.ask(p.pid))
                    hidden += sum(m.seen == 'vad' for m in p.modules)
                    ghosts += sum(m.seen == 'loader' for m in p.modules)
                self.assertTrue(pdbs and hidden and ghosts, (pdbs, hidden, ghosts))

    def test_what_is_in_the_page_file_is_found_there(self):
        _, processes = self.acquire('windows=10,region_paged=60,region_transition=20,pool_paged=60,wow64=4')
        for p in processes.values():
            if p.pid != 4:
                self.check(p, self.ask(p.pid))

    def test_without_the_page_file_what_is_lost_is_said(self):
        for narrow in (0, 4):
            with self.subTest(narrow=narrow):
                self.check_without_the_page_file(narrow)

    def check_without_the_page_file(self, narrow):
        _, processes = self.acquire('windows=10,live_files=0,region_paged=60,region_transition=20,pool_paged=60,'
                                    f'wow64={narrow}')
        codes = set()
        for p in processes.values():
            if p.pid == 4:
                continue
            done = run('process', self.container, '--pid', p.pid, '--json')
            codes.add(done.returncode)
            if done.returncode == 9:
                self.assertEqual(done.stderr.count(b'\n'), 1)
                continue
            said = json.loads(done.stdout)
            # Nothing that is not there.
            bases, tids = {m.base for m in p.modules}, {t.tid for t in p.threads}
            self.assertLessEqual({int(m['base'], 0) for m in said['modules']}, bases)
            self.assertLessEqual({t['tid'] for t in said['threads']}, tids)
            self.assertEqual(said['loader_list32'] is not None, p.peb32 is not None)
            lists = said['loader_list'] == (said['loader_list32'] or 'closed') == 'closed'
            self.assertEqual(done.returncode, 0 if lists and said['thread_list'] == 'closed' and
                             said['vads_whole'] else 3, said)
            hidden = {m.base for m in p.modules if m.seen == 'vad'}
            for m in said['modules']:
                if m['finding'] and 'in no module list' in m['finding']:
                    self.assertTrue(lists)
                    self.assertIn(int(m['base'], 0), hidden)
        self.assertIn(3, codes)

    def test_system_has_no_peb_and_lost_nothing(self):
        for windows in (7, 10):
            self.acquire(f'windows={windows}')
            said = self.ask(4)
            self.assertEqual((said['no_peb'], said['peb'], said['modules'], said['threads']), (True, None, [], []))
            done = run('process', self.container, '--pid', 4)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('0 modules; it has no PEB', done.stdout.decode())
            done = run('report', self.container, '--pid', 4, '-o', '-')
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(b'It has no PEB', done.stdout)
            self.assertFalse(b'could not be followed to' in done.stdout)

    def test_text_is_one_line_each(self):
        _, processes = self.acquire('windows=10')
        p = next(p for p in processes.values() if p.pid != 4 and any(m.seen == 'vad' for m in p.modules))
        done = run('process', self.container, '-p', p.pid)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.decode().splitlines()
        self.assertEqual(sum(line.startswith('0x') for line in lines), len(p.modules))
        self.assertEqual(sum('! mapped, but in no module list' in line for line in lines), 1)
        self.assertEqual(sum(' start 0x' in line for line in lines), len(p.threads))
        self.assertEqual([line for line in lines if len(line) > 80 and '\\' not in line], [])
        for m in p.modules:
            self.assertTrue(any(line.startswith('0x') and line.endswith(m.path) for line in lines), m)

    def test_what_it_is_not_for(self):
        self.acquire('windows=10')
        for args, code, text in ((['--pid', 5], 9, 'no process'), ([], 2, 'needs --pid')):
            done = run('process', self.container, *args)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(text, done.stderr.decode())
            self.assertEqual(done.stderr.count(b'\n'), 1)


if __name__ == '__main__':
    unittest.main(verbosity=2)
