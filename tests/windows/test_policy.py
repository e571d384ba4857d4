#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ramseal.exe finds out of a Windows' policies on drivers, under Wine with a registry and files that are made up.

    test_policy.py WINE RAMSEAL.EXE CITOOL.EXE [unittest options]

The forecast itself is tested on Linux (tests/cli/test_driver.py): here it is what it rests on.
"""
import json
import os
import shutil
import sys
import unittest
from pathlib import Path

from prefix import Prefix

WINE, EXE, CITOOL = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
TOP = Path('policy').resolve()
HOST = Prefix(WINE, TOP / 'prefix')
C = HOST.path / 'drive_c'
SYSTEM = C / 'windows/system32'
ACTIVE = SYSTEM / 'CodeIntegrity/CiPolicies/Active'
SOURCES = Path(__file__).resolve().parents[2]
CORPUS = SOURCES / 'tests/fuzz/corpus/ci_policy'
DRIVERS = Path(os.environ.get('RAMSEAL_TEST_DATA') or SOURCES / '../shared/data') / 'winpmem'
AUDIT = '{784C4414-79F4-4C32-A6A5-F0FB42A51D0D}'
ENFORCED = '{8F9CB695-5D48-48D6-A329-7202B44607E3}'
EVALUATION = 'HKLM\\SYSTEM\\CurrentControlSet\\Control\\CI\\WhqlOnlyEvaluation'
CODES = {'loads': 0, 'blocked': 4, 'restarts-evaluation': 14, 'unknown': 15}


def reg(*args):
    ran = HOST.run('reg', *args, '/f')
    assert ran.returncode == 0, ran.stderr


class Policy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(TOP, ignore_errors=True)
        HOST.start()

    @classmethod
    def tearDownClass(cls):
        HOST.stop()

    def setUp(self):
        for path in SYSTEM / 'CodeIntegrity', C / 'EFI':
            shutil.rmtree(path, ignore_errors=True)
        for name in 'citool.exe', 'citool.json':
            (SYSTEM / name).unlink(missing_ok=True)
        HOST.run('reg', 'delete', EVALUATION, '/f')

    def driver(self, name):
        path = DRIVERS / name
        if not path.exists():
            self.skipTest(f'{path} is not there')
        return 'Z:' + str(path.resolve()).replace('/', '\\')

    def inspect(self, name='winpmem-1.6.3-x64.sys', *args):
        ran = HOST.run(EXE, 'driver', 'inspect', self.driver(name), '--json', *args)
        self.assertEqual(ran.stderr, b'')
        doc = json.loads(ran.stdout)
        self.assertEqual(ran.returncode, CODES[doc['forecast']['verdict']])
        return doc

    def file(self, name, content='raw', folder=ACTIVE):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((CORPUS / content).read_bytes() if content in os.listdir(CORPUS) else content)

    def test_nothing_is_there(self):
        doc = self.inspect()
        ci = doc['code_integrity']
        self.assertRegex(doc['driver']['trust'], '^(trusted|0x[0-9a-f]{8})$')
        self.assertEqual((ci['policy_files'], ci['efi_folder'], ci['efi_files']), ([], None, []))
        self.assertEqual(ci['policy_folder']['path'].lower(), 'c:\\windows\\system32\\codeintegrity\\cipolicies\\active')
        self.assertIsNone(ci['policy_folder']['problem'])
        self.assertIn('driversipolicy.p7b', ci['block_list']['problem'])
        self.assertNotIn('citool', ci)

    def test_files_are_read_where_they_are(self):
        self.file(AUDIT.lower() + '.cip', 'signed')
        self.file(ENFORCED + '.cip', 'cut')
        self.file('{11111111-2222-3333-4444-555555555555}.cip', b'')
        self.file('readme.txt', b'x')
        self.file(ENFORCED + '.cip', 'raw', C / 'EFI/Microsoft/Boot/CiPolicies/Active')
        self.file('driversipolicy.p7b', 'raw', SYSTEM / 'CodeIntegrity')
        self.file('SiPolicy.p7b', 'empty', SYSTEM / 'CodeIntegrity')
        ci = self.inspect()['code_integrity']
        files = {f['id'].upper(): f for f in ci['policy_files']}
        self.assertEqual((len(files), ci['policy_folder']['count']), (4, 3))
        self.assertTrue(files['{A244370E-44C9-4C06-B551-F6016E563076}']['path'].endswith('SiPolicy.p7b'))
        good = files[AUDIT]
        self.assertEqual((good['name'], good['version'], good['audit'], good['signed'], good['allows']),
                         ('Audit Policy', '10.29611.0.0', True, True, 'no'))
        self.assertEqual(good['bytes'], (CORPUS / 'signed').stat().st_size)
        self.assertIn('cut short', files[ENFORCED]['problem'])
        self.assertEqual(files['{11111111-2222-3333-4444-555555555555}']['problem'], 'is empty')
        self.assertEqual([f['id'] for f in ci['efi_files']], [ENFORCED])
        self.assertIn('EFI', ci['efi_folder']['path'])
        self.assertEqual(ci['block_list']['denies'], 'no')

    def test_check_says_which_file_to_get(self):
        ran = HOST.run(EXE, 'check', '--json', '-o', 'C:\\x.rsz')
        doc = json.loads(ran.stdout)
        self.assertEqual([f['version'] for f in doc['driver_files']], ['2.0.1', '1.6.3', '1.6.3', '4.1.0'])
        (finding,) = [f for f in doc['findings'] if f['what'] == 'driver-file']
        self.assertIn('the driver file to try first here is WinPmem 2.0.1, winpmem_x64.sys', finding['text'])
        self.assertIn(doc['driver_files'][0]['sha256'], finding['text'])
        listed = HOST.run(EXE, 'driver', 'files', '--json')
        self.assertEqual(json.loads(listed.stdout)['files'], doc['driver_files'])

    def test_counters_and_the_file_of_the_audit_policy(self):
        self.file(AUDIT + '.cip')
        reg('add', EVALUATION, '/v', 'NumBootSessions', '/t', 'REG_DWORD', '/d', '2')
        reg('add', EVALUATION, '/v', 'SystemUptime', '/t', 'REG_QWORD', '/d', str(51 * 36000000000))
        doc = self.inspect()
        self.assertEqual(doc['forecast']['driver_policy'], 'evaluation')
        if doc['driver_policy']['signatures_checked'] is not False:  # Wine checks none, and may say so
            (text,) = [r['text'] for r in doc['forecast']['reasons'] if r['what'] == 'driver-policy']
            self.assertIn('2 boots and 51 hours so far', text)
        # A counter that is missing, and one of another kind, are null.
        reg('delete', EVALUATION, '/v', 'NumBootSessions')
        reg('add', EVALUATION, '/v', 'LatestBootId', '/t', 'REG_SZ', '/d', 'many')
        context = json.loads(HOST.run(EXE, 'context', '--json').stdout)
        self.assertEqual(context['driver_evaluation'],
                         {'NumBootSessions': None, 'LatestBootId': None, 'StatusEventTimestamp': None,
                          'SystemUptime': 51 * 36000000000})

    def test_log_that_cannot_be_opened(self):
        """Wine has no log of this name."""
        events = self.inspect()['code_integrity']['events']
        self.assertEqual((events['log'], events['list']), ('Microsoft-Windows-CodeIntegrity/Operational', []))
        if events['problem'] is not None:
            self.assertRegex(events['problem'], '^Microsoft-Windows-CodeIntegrity/Operational: ')
            self.assertNotIn('%', events['problem'])

    def citool(self, text):
        shutil.copy(CITOOL, SYSTEM / 'citool.exe')
        (SYSTEM / 'citool.json').write_text(text)

    def test_citool_runs_only_if_it_is_asked_for(self):
        self.citool(json.dumps({'Policies': [
            {'PolicyID': ENFORCED.strip('{}').lower(), 'IsEnforced': True, 'IsAuthorized': True, 'VersionString': '10.0.1.0'},
            {'PolicyID': AUDIT.strip('{}').lower(), 'IsEnforced': False, 'IsAuthorized': False}]}))
        self.assertNotIn('citool', self.inspect()['code_integrity'])
        doc = self.inspect('winpmem-1.6.3-x64.sys', '--citool')
        self.assertEqual(len(doc['code_integrity']['citool']['policies']), 2)
        self.assertEqual(doc['forecast']['driver_policy'], 'enforced')
        self.citool('Access is denied.\r\n')
        self.assertIn('did not print', self.inspect('winpmem-1.6.3-x64.sys', '--citool')['code_integrity']['citool']['problem'])
        (SYSTEM / 'citool.exe').unlink()
        self.assertIn('citool.exe', self.inspect('winpmem-1.6.3-x64.sys', '--citool')['code_integrity']['citool']['problem'])

    def test_check_has_it_for_other_machines(self):
        self.file(AUDIT + '.cip')
        ran = HOST.run(EXE, 'check', '--json', '--no-pagefile', '-o', 'C:\\x.rsz', '--driver',
                       self.driver('winpmem-2.0.1-x64.sys'))
        doc = json.loads(ran.stdout)
        self.assertEqual([f['id'] for f in doc['code_integrity']['policy_files']], [AUDIT])
        self.assertIn(doc['driver_forecast']['verdict'], CODES)
        self.assertIn('driver-forecast', [f['what'] for f in doc['findings']])
        self.assertEqual(len(doc['driver']['authenticode_sha256']), 64)
        host = TOP / 'host.json'
        host.write_bytes(ran.stdout)
        again = self.inspect('winpmem-2.0.1-x64.sys', '--host', 'Z:' + str(host).replace('/', '\\'))
        self.assertEqual(again['code_integrity'], doc['code_integrity'])


if __name__ == '__main__':
    os.makedirs(TOP, exist_ok=True)
    unittest.main(verbosity=2)
