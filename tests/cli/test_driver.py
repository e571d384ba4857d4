#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`driver inspect` and `driver files`: the drivers that people have, set against made-up hosts in every state of Windows' policies."""
import copy
import functools
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RAMSEAL = sys.argv.pop(1)
DATA = Path(os.environ.get('RAMSEAL_TEST_DATA') or Path(__file__).resolve().parents[2] / '../shared/data') / 'winpmem'
AUDIT = '{784C4414-79F4-4C32-A6A5-F0FB42A51D0D}'
ENFORCED = '{8F9CB695-5D48-48D6-A329-7202B44607E3}'
COMPLETE, USAGE, BLOCKED, INPUT, RESTARTS, UNKNOWN = 0, 2, 4, 9, 14, 15
CODES = {'loads': COMPLETE, 'blocked': BLOCKED, 'restarts-evaluation': RESTARTS, 'unknown': UNKNOWN}

ATTESTED, CROSS, TEST = 'winpmem-2.0.1-x64.sys', 'winpmem-1.6.3-x64.sys', 'winpmem-4.1-test-x64.sys'
BOTH = 'winpmem-1.6.3-attestation-x64.sys'

FOLDER = 'C:\\Windows\\System32\\CodeIntegrity\\CiPolicies\\Active'
COUNTERS = {'NumBootSessions': 2, 'LatestBootId': 7, 'StatusEventTimestamp': 134302774184006535,
            'SystemUptime': 51 * 36000000000}


def policy_file(name, **more):
    return {'id': name, 'path': f'{FOLDER}\\{name}.cip', 'version': '10.0.29611.0', 'audit': name == AUDIT, **more}


def activated(name, **more):
    return {'id': 3099, 'policy': name, 'since_boot': True, 'time': '2026-11-20T05:30:12.000000042Z', 'hashes': [], **more}


def ci(files=(), events=(), problem=None, citool=None, **more):
    doc = {'policy_folder': {'path': FOLDER, 'count': len(files), 'problem': None}, 'policy_files': list(files),
           'efi_folder': None, 'efi_files': [],
           'events': {'log': 'Microsoft-Windows-CodeIntegrity/Operational', 'list': list(events), 'problem': problem}}
    if citool is not None:
        doc['citool'] = {'policies': [{'id': i.lower().strip('{}'), 'enforced': e, 'authorized': a} for i, e, a in citool]}
    return {**doc, **more}


def host(build=26200, integrity=1, secure_boot=False, counters=None, context=(), installation='Client', **more):
    """What `check --json` prints there, as far as it matters."""
    security = {'code_integrity': {'value': integrity, 'names': []}, 'secure_boot': secure_boot}
    if secure_boot is None:
        del security['secure_boot']
    doc = {'machine': {'os': {'id': 'windows', 'build': build, 'installation': installation}, 'security': security},
           'context': {'security': {'vulnerable_driver_blocklist': False, **dict(context)}}}
    if counters is not None:
        doc['context']['driver_evaluation'] = counters
    if 'code_integrity' not in more:
        more['code_integrity'] = ci()
    return {**doc, **more}


EVALUATED = ci([policy_file(AUDIT)], [activated(AUDIT)])
IN_FORCE = ci([policy_file(AUDIT), policy_file(ENFORCED)], [activated(AUDIT), activated(ENFORCED)])
NOT_NAMED = {'allows': 'no', 'denies': 'no'}

# A host's name: the host, what becomes of each driver; `?` behind a verdict: it is only probable.
L, R, B, U = 'loads', 'restarts-evaluation', 'blocked', 'unknown'
HOSTS = {
    'Windows 10': (host(19045), L, L, L + '?', B),
    'Windows 10 with test signing': (host(19045, 3), L, L, L + '?', L),
    'Windows 10 with Secure Boot': (host(19045, secure_boot=True), L, L, B + '?', B),
    'Windows 8.1 with Secure Boot': (host(9600, secure_boot=True), L, L, L + '?', B),
    'Windows 10 that tells nothing': (host(19045, secure_boot=None, code_integrity=None), L, L, L + '?', B),
    'Windows 11 23H2': (host(22631), L, L, L + '?', B),
    'code integrity off': (host(26200, 0, code_integrity=IN_FORCE), L, L, L, L),
    'Server 2022 with Secure Boot': (host(20348, secure_boot=True, installation='Server Core'), B + '?', B + '?', B + '?', B),
    'WHQL enforcement': (host(19045, 0x4001), B + '?', B + '?', B + '?', B),
    'WHQL enforcement, and the policy enforced': (host(26200, 0x4001, code_integrity=IN_FORCE), L + '?', L + '?', B + '?', B),
    'WHQL enforcement, audit only': (host(19045, 0xc001), L, L, L + '?', B),
    '25H2 without the policy': (host(), L + '?', L + '?', L + '?', B),
    'citool: none in force': (host(code_integrity=ci(citool=[(AUDIT, False, True)])), L, L, L + '?', B),
    '25H2, evaluation, by events': (host(counters=COUNTERS, code_integrity=EVALUATED), L + '?', L + '?', R + '?', B),
    'evaluation, by files and counters': (host(counters=COUNTERS, code_integrity=ci([policy_file(AUDIT)])),
                                          L + '?', L + '?', R + '?', B),
    'evaluation, by citool': (host(code_integrity=ci(citool=[(AUDIT, True, True), (ENFORCED, False, False)])),
                              L + '?', L + '?', R + '?', B),
    'evaluation, and test signing': (host(26200, 3, code_integrity=EVALUATED), L + '?', L + '?', R + '?', R + '?'),
    'evaluation, not on its allow list': (
        host(code_integrity=ci([policy_file(AUDIT, **NOT_NAMED)], [activated(AUDIT)])), L + '?', L + '?', R, B),
    'evaluation, and an allow list by names': (
        host(code_integrity=ci([policy_file(AUDIT, by_name=True, **NOT_NAMED)], [activated(AUDIT)])),
        L + '?', L + '?', R + '?', B),
    'enforced, not on its allow list': (
        host(code_integrity=ci([policy_file(ENFORCED, **NOT_NAMED)], [activated(ENFORCED)])), L + '?', L + '?', B, B),
    'evaluation, on its allow list': (
        host(code_integrity=ci([policy_file(AUDIT, allows='yes')], [activated(AUDIT)])), L + '?', L + '?', L + '?', B),
    '25H2, enforced, by events': (host(code_integrity=IN_FORCE), L + '?', L + '?', B + '?', B),
    'enforced, by citool': (host(code_integrity=ci(citool=[(AUDIT, True, True), (ENFORCED, True, True)])),
                            L + '?', L + '?', B + '?', B),
    'enforced, but not authorized': (host(code_integrity=ci(citool=[(AUDIT, True, True), (ENFORCED, True, False)])),
                                     L + '?', L + '?', R + '?', B),
    'enforced on build 22631 all the same': (host(22631, code_integrity=IN_FORCE), L + '?', L + '?', B + '?', B),
    'only the file of the enforcement': (host(code_integrity=ci([policy_file(ENFORCED)])), L + '?', L + '?', U, B),
    'only the file of the evaluation': (host(code_integrity=ci([policy_file(AUDIT)])), L + '?', L + '?', U, B),
    'only the counters': (host(counters=COUNTERS), L + '?', L + '?', U, B),
    'activated before the last boot': (host(code_integrity=ci([policy_file(AUDIT)], [activated(AUDIT, since_boot=False)])),
                                       L + '?', L + '?', U, B),
    'a file on the EFI partition': (host(code_integrity=ci(efi_files=[policy_file(ENFORCED)])), L + '?', L + '?', U, B),
    'nobody could ask': (host(code_integrity=None), L + '?', L + '?', U, B),
    'a folder that cannot be read': (
        host(code_integrity=ci(policy_folder={'path': FOLDER, 'count': 0, 'problem': 'Access is denied (error 5)'})),
        L + '?', L + '?', U, B),
    'memory integrity': (host(19045, 0x401, code_integrity=ci(block_list={'denies': 'no', 'by_name': False})),
                         L + '?', L + '?', L + '?', B),
    'Smart App Control': (host(19045, context={'smart_app_control': 1}), L + '?', L + '?', L + '?', B),
    'block list names it': (
        host(22631, context={'vulnerable_driver_blocklist': True}, code_integrity=ci(block_list={'denies': 'yes'})),
        B, B, B, B),
    'block list may name it': (
        host(22631, context={'vulnerable_driver_blocklist': True}, code_integrity=ci(block_list={'denies': 'maybe'})),
        U, U, U, B),
    'block list is off, and names it': (host(22631, code_integrity=ci(block_list={'denies': 'yes'})), L, L, L + '?', B),
    'block list cannot be read': (
        host(22631, context={'vulnerable_driver_blocklist': True}, code_integrity=ci(block_list={'problem': 'is cut short'})),
        L + '?', L + '?', L + '?', B),
    'a policy of the organisation': (
        host(19045, code_integrity=ci([policy_file('{11111111-2222-3333-4444-555555555555}')])), U, U, U, B),
    'one that audits': (
        host(19045, code_integrity=ci([policy_file('{11111111-2222-3333-4444-555555555555}', audit=True)])),
        L, L, L + '?', B),
    'one that allows it': (
        host(19045, code_integrity=ci([policy_file('{11111111-2222-3333-4444-555555555555}', allows='yes')])),
        L + '?', L + '?', L + '?', B),
    'one that denies it': (
        host(19045, code_integrity=ci([policy_file('{11111111-2222-3333-4444-555555555555}', denies='yes')])),
        B + '?', B + '?', B + '?', B),
}


def run(*args, env=None):
    return subprocess.run([RAMSEAL, 'driver', 'inspect', *args], capture_output=True, text=True, env=env)


class Driver(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)

    def host_file(self, doc):
        path = self.at / 'host.json'
        path.write_text(doc if isinstance(doc, str) else json.dumps(doc))
        return path

    def driver(self, name):
        path = DATA / name
        if not path.exists():
            self.skipTest(f'{path} is not there')
        return path

    def forecast(self, name, doc, *args):
        """Of a host: the whole answer, whose exit code fits the verdict."""
        doc = copy.deepcopy(doc)
        # What policies say of a driver counts for that one alone.
        doc.setdefault('driver', {'sha256': self.inspect(name)['driver']['sha256']})
        ran = run(self.driver(name), '--host', self.host_file(doc), '--json', *args)
        self.assertEqual(ran.stderr, '')
        answer = json.loads(ran.stdout)
        self.assertEqual(ran.returncode, CODES[answer['forecast']['verdict']])
        return answer['forecast']

    @functools.cache
    def inspect(self, name):
        ran = run(self.driver(name), '--json')
        self.assertEqual(ran.returncode, COMPLETE, ran.stderr)
        return json.loads(ran.stdout)

    def test_signatures_without_a_host(self):
        want = {ATTESTED: ['cross-signed', 'attested'], BOTH: ['cross-signed', 'attested'], CROSS: ['cross-signed'],
                TEST: ['test']}
        for name, classes in want.items():
            with self.subTest(name):
                answer = self.inspect(name)
                self.assertNotIn('forecast', answer)
                self.assertEqual([s['class'] for s in answer['driver']['signers']], classes)
                self.assertEqual({s['covers_file'] for s in answer['driver']['signers']}, {True})
                text = run(self.driver(name)).stdout
                for c in classes:
                    self.assertIn(f'({c}', text)
                self.assertNotIn('forecast', text)

    def test_table(self):
        for what, (doc, *wants) in HOSTS.items():
            for name, want in zip((ATTESTED, BOTH, CROSS, TEST), wants):
                with self.subTest(f'{what}: {name}'):
                    f = self.forecast(name, doc)
                    self.assertEqual(f['verdict'] + '?' * (not f['certain'] and f['verdict'] != U), want, f)
                    self.assertTrue(all(len(r['text']) > 15 for r in f['reasons']))
                    self.assertEqual(f['help'] is None, f['verdict'] == L)

    def files(self, *args):
        ran = subprocess.run([RAMSEAL, 'driver', 'files', '--json', *args], capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stderr), (COMPLETE, ''))
        return json.loads(ran.stdout)['files']

    def test_published_files_are_what_inspect_shows(self):
        listed = self.files()
        self.assertEqual(len(listed), 4)
        for name, one in zip((ATTESTED, BOTH, CROSS, TEST), listed):
            driver = self.inspect(name)['driver']
            self.assertEqual(driver['published'], one)
            self.assertEqual((driver['sha256'], driver['version']), (one['sha256'], one['version']))
            self.assertIn(one['path'], run(self.driver(name)).stdout)
        (self.at / 'x.sys').write_bytes(self.driver(CROSS).read_bytes() + bytes(8))
        self.assertIsNone(json.loads(run(self.at / 'x.sys', '--json').stdout)['driver']['published'])
        text = subprocess.run([RAMSEAL, 'driver', 'files'], capture_output=True, text=True).stdout
        for one in listed:
            self.assertIn(one['sha256'], text)
        self.assertNotIn('forecast', text)

    def test_forecast_of_published_files(self):
        """The same as for the files themselves, of which the host was not asked."""
        for what, (doc, *_) in HOSTS.items():
            doc = {**copy.deepcopy(doc), 'driver': {'sha256': '00' * 32}}
            listed = self.files('--host', self.host_file(doc))
            for name, one in zip((ATTESTED, BOTH, CROSS, TEST), listed):
                with self.subTest(f'{what}: {name}'):
                    want = self.forecast(name, doc)
                    self.assertEqual([one['forecast'][k] for k in ('verdict', 'certain', 'class')],
                                     [want[k] for k in ('verdict', 'certain', 'class')])
        text = subprocess.run([RAMSEAL, 'driver', 'files', '--host', self.host_file(host())], capture_output=True,
                              text=True).stdout
        self.assertEqual(text.count('  forecast: will '), 4)

    def test_changed_driver(self):
        """Also where nothing else is asked, and by each of its signatures."""
        content = bytearray(self.driver(ATTESTED).read_bytes())
        content[0x1000] ^= 1
        (self.at / 'x.sys').write_bytes(content)
        ran = run(self.at / 'x.sys', '--host', self.host_file(host(19045)))
        self.assertEqual(ran.returncode, BLOCKED)
        self.assertIn('forecast: will be blocked, because the file was changed after it was signed', ran.stdout)
        self.assertEqual(ran.stdout.count('over this file: no'), 2)
        # A kernel that does not say that it checks signatures may take anything.
        ran = run(self.at / 'x.sys', '--host', self.host_file(host(19045, None)))
        self.assertEqual(ran.returncode, BLOCKED)
        self.assertIn('forecast: will probably be blocked, because the file was changed', ran.stdout)

    def test_lines(self):
        """One clear line each."""
        def line(name, doc):
            ran = run(self.driver(name), '--host', self.host_file(doc))
            self.assertEqual(ran.stderr, '')
            return ran.stdout.splitlines()[-1]
        self.assertRegex(line(CROSS, HOSTS['25H2, evaluation, by events'][0]),
                         '^forecast: will probably load and restart this host.s evaluation of the Windows Driver Policy, '
                         'because .*2 boots and 51 hours so far.*may be on its allow list.*; use a driver that Microsoft')
        self.assertRegex(line(ATTESTED, HOSTS['25H2, enforced, by events'][0]),
                         '^forecast: will probably load, because .*cross-signed first and attested in a nested')
        self.assertRegex(line(CROSS, HOSTS['25H2, enforced, by events'][0]),
                         '^forecast: will probably be blocked, because .*is enforced .event 3099 .*allow list.*hypervisor')
        self.assertRegex(line(CROSS, HOSTS['nobody could ask'][0]), '^forecast: may or may not load, because ')
        self.assertRegex(line(TEST, HOSTS['Windows 10'][0]), '^forecast: will be blocked, because it is test-signed')
        self.assertRegex(line(CROSS, HOSTS['Windows 10'][0]), '^forecast: will probably load, because it is cross-signed$')

    def test_log_that_cannot_be_opened(self):
        doc = host(code_integrity=ci(problem='Microsoft-Windows-CodeIntegrity/Operational: Access denied (error 5)'))
        lines = run(self.driver(CROSS), '--host', self.host_file(doc)).stdout.splitlines()
        self.assertEqual([line for line in lines if 'Access denied' in line],
                         ['not read: Microsoft-Windows-CodeIntegrity/Operational: Access denied (error 5)'])

    def test_which_list_was_asked(self):
        asked = {'denies': 'no', 'by_name': False, 'path': 'C:\\Windows\\System32\\CodeIntegrity\\driversipolicy.p7b',
                 'version': '10.0.27770.0'}
        f = self.forecast(ATTESTED, host(22631, context={'vulnerable_driver_blocklist': True},
                                         code_integrity=ci(block_list=asked)))
        (text,) = [r['text'] for r in f['reasons'] if r['what'] == 'block-list']
        self.assertIn('driversipolicy.p7b, version 10.0.27770.0', text)
        self.assertIn('not the longer one that Microsoft publishes', text)

    def test_missing_facts_are_named(self):
        def texts(doc, name=CROSS):
            return ' | '.join(r['text'] for r in self.forecast(name, doc)['reasons'])
        self.assertIn('SystemUptime is missing among its counters',
                      texts(host(counters={**COUNTERS, 'SystemUptime': None}, code_integrity=EVALUATED)))
        self.assertIn('NumBootSessions is missing among its counters', texts(host(counters={}, code_integrity=EVALUATED)))
        self.assertIn('its counters are not known', texts(host(code_integrity=EVALUATED)))
        self.assertIn('The log cannot be opened (error 5)',
                      texts(host(counters=COUNTERS, code_integrity=ci(problem='The log cannot be opened (error 5)'))))
        self.assertIn('could not be asked: is cut short', texts(HOSTS['block list cannot be read'][0]))
        self.assertIn('Access is denied (error 5)', texts(HOSTS['a folder that cannot be read'][0]))
        self.assertIn('test signing is on', texts(host(19045, code_integrity=None, machine={'os': {'id': 'windows'}}), TEST))

    def test_events_about_this_driver(self):
        hash_ = self.inspect(CROSS)['driver']['authenticode_sha256']
        blocked = {'id': 3077, 'policy': ENFORCED, 'time': '2026-11-20T05:30:12Z', 'hashes': [hash_.upper()]}
        f = self.forecast(CROSS, host(19045, code_integrity=ci(events=[blocked])))
        self.assertEqual((f['verdict'], f['certain']), (B, False))
        self.assertIn('2026-11-20T05:30:12Z', f['reasons'][-1]['text'])
        f = self.forecast(CROSS, host(19045, code_integrity=ci(events=[{**blocked, 'id': 3076, 'policy': AUDIT}])))
        self.assertEqual(f['verdict'], R)
        f = self.forecast(ATTESTED, host(19045, code_integrity=ci(events=[blocked])))
        self.assertEqual(f['verdict'], L)

    def test_what_was_asked_about_another_driver_is_forgotten(self):
        doc = host(22631, context={'vulnerable_driver_blocklist': True}, code_integrity=ci(block_list={'denies': 'yes'}))
        self.assertEqual(self.forecast(ATTESTED, doc)['verdict'], B)
        self.assertEqual(self.forecast(ATTESTED, {**doc, 'driver': {'sha256': '0' * 64}})['verdict'], L)
        self.assertEqual(self.forecast(ATTESTED, {**doc, 'driver': None})['verdict'], L)

    def test_host_that_is_no_windows(self):
        ran = run(self.driver(ATTESTED), '--host', self.host_file({'machine': {'os': {'id': 'debian'}}}), '--json')
        self.assertEqual((ran.returncode, ran.stderr), (COMPLETE, ''))
        self.assertNotIn('forecast', json.loads(ran.stdout))

    def check_refused(self, code, want, *args):
        ran = run(*args)
        self.assertEqual((ran.returncode, ran.stdout), (code, ''))
        self.assertEqual(len(ran.stderr.splitlines()), 1, ran.stderr)
        self.assertIn(want, ran.stderr)

    def test_bad_input(self):
        driver = self.driver(ATTESTED)
        for doc, want in (('', 'is no JSON'), ('{', 'is no JSON'), ('[]', "is not the output of 'check --json'"),
                          ('{}', "is not the output of 'check --json'"), ('{"machine": 7}', "is not the output"),
                          ('\ufeff{}', "is not the output")):
            with self.subTest(doc):
                self.check_refused(INPUT, want, driver, '--host', self.host_file(doc))
        self.check_refused(INPUT, 'No such file', driver, '--host', self.at / 'none')
        self.check_refused(INPUT, 'is neither a Windows program', self.host_file('MZ'))
        self.check_refused(INPUT, 'No such file', self.at / 'none.sys')
        self.check_refused(USAGE, '--policy needs --host', driver, '--policy', 'x.cip')
        content = driver.read_bytes()
        (self.at / 'cut.sys').write_bytes(content[:-100])
        self.check_refused(INPUT, 'its signature is damaged', self.at / 'cut.sys')

    def test_facts_of_another_kind_harm_nothing(self):
        """Any value may be of any kind: a line, and an exit code that is one of ours."""
        odd = [None, True, 7, -1, 1.5, '', 'x', [], [None], {}, {'id': 3}, [[]]]
        driver, good = self.driver(CROSS), host(counters=COUNTERS, code_integrity=IN_FORCE)
        for path in (['machine'], ['context'], ['code_integrity'], ['code_integrity', 'policy_files'],
                     ['code_integrity', 'events'], ['code_integrity', 'events', 'list'],
                     ['context', 'driver_evaluation', 'SystemUptime'], ['machine', 'os', 'build'],
                     ['code_integrity', 'policy_folder', 'problem'], ['code_integrity', 'block_list'],
                     ['code_integrity', 'citool']):
            for value in odd:
                doc = copy.deepcopy(good)
                at = doc
                for key in path[:-1]:
                    at = at[key]
                at[path[-1]] = value
                ran = run(driver, '--host', self.host_file(doc))
                self.assertIn(ran.returncode, (COMPLETE, BLOCKED, INPUT, RESTARTS, UNKNOWN), (path, value, ran.stderr))

    def test_policy_that_was_copied(self):
        driver = self.driver(CROSS)
        corpus = Path(__file__).resolve().parents[1] / 'fuzz/corpus/ci_policy'
        for name, want in (('raw', None), ('signed', None), ('cut', 'are cut short or damaged')):
            with self.subTest(name):
                path = self.at / f'{AUDIT}.cip'
                path.write_bytes((corpus / name).read_bytes())
                ran = run(driver, '--host', self.host_file(host(code_integrity=EVALUATED)), '--policy', path, '--json')
                self.assertEqual((ran.returncode, ran.stderr), (RESTARTS, ''))
                (file,) = json.loads(ran.stdout)['code_integrity']['policy_files']
                if want:
                    self.assertIn(want, file['problem'])
                    self.assertNotIn('allows', file)
                    text = run(driver, '--host', self.host_file(host(code_integrity=EVALUATED)), '--policy', path).stdout
                    self.assertIn(f'not read: {path}: its rules are cut short or damaged\n', text)
                    self.assertIn('may be on its allow list (its rules are cut short or damaged)', text)
                else:
                    self.assertEqual((file['name'], file['version'], file['allows']), ('Audit Policy', '10.29611.0.0', 'no'))
        path.write_bytes(b'')
        ran = run(driver, '--host', self.host_file(host(code_integrity=EVALUATED)), '--policy', path, '--json')
        self.assertEqual(json.loads(ran.stdout)['code_integrity']['policy_files'][0]['problem'], 'is empty')


if __name__ == '__main__':
    unittest.main(verbosity=2)
