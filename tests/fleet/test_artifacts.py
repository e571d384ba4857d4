#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
What build/fleet has for others to run: the Velociraptor artifacts and the Kubernetes manifest against schemas of what
is documented, the systemd unit as systemd reads it, and the role as Ansible documents it. Usage: test_artifacts.py RAMSEAL
"""

import copy
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
FLEET = HERE.parent.parent / 'build/fleet'
SKIPPED_EXIT = 77
ASKS = {'when', 'until', 'failed_when', 'changed_when', 'that'}  # keywords of Ansible's
GOOD = {0, 3, 5, 7, 8}


def run(*args, **kwargs):
    return subprocess.run([str(a) for a in args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=900, **kwargs)


def schema(name):
    return jsonschema.Draft202012Validator(json.loads((HERE / f'schemas/{name}.schema.json').read_text()))


def options_of(command):
    """Those that this command of ramseal has, by its help."""
    return set(re.findall(r'(?<![\w-])--[a-z][a-z-]*', run(RAMSEAL, command, '--help').stdout)) | {
        f'-{letter}' for letter in re.findall(r'^  -(\w),', run(RAMSEAL, command, '--help').stdout, re.M)}


class Test(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)

    def check_options(self, command, words):
        """ramseal has every option that it is given."""
        given = {word.split('=')[0] for word in words if re.match(r'--?[a-z]', word)}
        self.assertGreater(len(given), 0)
        self.assertLessEqual(given, options_of(command))


class Velociraptor(Test):
    def setUp(self):
        super().setUp()
        (self.at / 'driver').write_bytes(b'a driver')
        (self.at / 'exe').write_bytes(b'a program')
        self.check = schema('velociraptor')

    def pin(self, *files):
        done = run(FLEET / 'velociraptor/pin', *files, self.at / 'out')
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        return {path.stem: yaml.safe_load(path.read_text()) for path in sorted((self.at / 'out').iterdir())}

    def test_all(self):
        artifacts = self.pin(RAMSEAL, self.at / 'exe', self.at / 'driver')
        self.assertEqual(sorted(artifacts), [f'{system}.Memory.Ramseal{kind}' for system in ('Linux', 'Windows')
                                             for kind in ('', '.Direct')])
        for name, artifact in artifacts.items():
            with self.subTest(name):
                self.check.validate(artifact)
                self.assertEqual(artifact['name'], name)
                self.check_artifact(artifact)

    def check_artifact(self, artifact):
        hashes = {tool['name']: tool['expected_hash'] for tool in artifact['tools']}
        files = {'RamsealLinux': RAMSEAL, 'RamsealWindows': self.at / 'exe', 'RamsealDriver': self.at / 'driver'}
        for name, value in hashes.items():
            self.assertEqual(value, hashlib.sha256(files[name].read_bytes()).hexdigest())
        self.assertGreater(artifact['resources']['timeout'], 600)
        query, = (source['query'] for source in artifact['sources'])
        self.assertEqual(set(map(int, re.search(r'LET Good <= \((.*)\)', query)[1].split(','))), GOOD)
        self.assertRegex(query, r'ReturnCode IN Good, then=Uploads')
        # Every tool that is fetched is one that is pinned.
        self.assertEqual(set(re.findall(r"Tool='(\w+)'", query)), set(hashes))
        words = re.search(r"argv=\((.*?)\) \+", query, re.S)[1]
        self.check_options('acquire', [word for word in re.findall(r"'([^']*)'", words) if word != '--driver'])
        self.check_balance(query)

    def check_balance(self, query):
        """Not VQL's grammar, for which there is no parser here, but what is most easily got wrong."""
        opened = []
        text = re.sub(r"//.*|'[^']*'|\"[^\"]*\"", '', query)
        for character in re.sub(r'[^][(){}]', '', text):
            if character in '([{':
                opened.append(character)
            else:
                self.assertEqual(opened.pop() + character in ('()', '[]', '{}'), True, text)
        self.assertEqual(opened, [])

    def test_without_a_driver(self):
        self.assertEqual(sorted(self.pin(RAMSEAL, '-', '-')), ['Linux.Memory.Ramseal', 'Linux.Memory.Ramseal.Direct'])

    def test_the_schema_refuses(self):
        """What Velociraptor does not know, and a hash that is none: as the files are before they are pinned."""
        artifact = self.pin(RAMSEAL, '-', '-')['Linux.Memory.Ramseal']
        for change in ({'resource': {}}, {'implied_permissions': ['ROOT']}, {'type': 'DAEMON'},
                       {'tools': [{'name': 'x', 'sha256': '0' * 64}]}, {'resources': {'timeout': '4h'}}):
            with self.subTest(change):
                self.assertFalse(self.check.is_valid({**artifact, **change}))
        unpinned = yaml.safe_load((FLEET / 'velociraptor/Linux.Memory.Ramseal.yaml').read_text())
        self.assertFalse(self.check.is_valid(unpinned))


class Kubernetes(Test):
    def setUp(self):
        super().setUp()
        self.check = schema('kubernetes')
        self.documents = list(yaml.safe_load_all((FLEET / 'kubernetes/node-memory.yaml').read_text()))
        self.pod, = (d for d in self.documents if d['kind'] == 'Pod')
        self.container, = self.pod['spec']['containers']

    def test_manifest(self):
        for document in self.documents:
            self.check.validate(document)
        self.assertEqual(self.container['resources']['requests'], self.container['resources']['limits'])
        self.assertTrue(self.container['securityContext']['privileged'])
        self.assertEqual(self.pod['spec']['restartPolicy'], 'Never')
        self.assertEqual(self.pod['spec']['tolerations'], [{'operator': 'Exists'}])
        self.check_options(self.container['args'][0], self.container['args'][1:])

    def test_line_without_a_manifest(self):
        readme = (FLEET / 'kubernetes/README.md').read_text()
        line, = re.findall(r'^    (kubectl debug .*)$', readme, re.M)
        self.assertIn(' --profile=sysadmin ', line)
        words = line.split(' -- /ramseal ')[1].split()
        self.check_options(words[0], words[1:])

    def test_what_is_mounted_is_there(self):
        volumes = {volume['name'] for volume in self.pod['spec']['volumes']}
        mounts = {mount['name']: mount['mountPath'] for mount in self.container['volumeMounts']}
        self.assertEqual(volumes, set(mounts))
        files = [arg.split('=', 1)[1].lstrip('@') for arg in self.container['args'] if '=' in arg and '/' in arg]
        for path in (path for path in files if path.startswith('/')):
            self.assertIn(str(Path(path).parent), mounts.values())
        secret, = (d for d in self.documents if d['kind'] == 'Secret')
        self.assertEqual(list(secret['stringData']), ['keys'])

    def test_the_schema_refuses(self):
        for change in (lambda c: c.update(privileged=True), lambda c: c['securityContext'].update(privileged='yes'),
                       lambda c: c['resources'].update(limit={}), lambda c: c['args'].append(3),
                       lambda c: c['resources']['limits'].update(memory='512 MB')):
            pod = copy.deepcopy(self.pod)
            change(pod['spec']['containers'][0])
            self.assertFalse(self.check.is_valid(pod))
        for change in (lambda s: s.update(nodename='x'), lambda s: s.update(restartPolicy='never'),
                       lambda s: s['volumes'][0].update(hostPath={'path': '/'})):
            pod = copy.deepcopy(self.pod)
            change(pod['spec'])
            self.assertFalse(self.check.is_valid(pod))


@unittest.skipUnless(shutil.which('systemd-analyze'), 'no systemd-analyze')
class Systemd(Test):
    UNIT = FLEET / 'systemd/ramseal.service'

    def verify(self, text):
        path = self.at / 'ramseal.service'
        path.write_text(text.replace('/usr/bin/ramseal', str(RAMSEAL)))
        return run('systemd-analyze', 'verify', '--man=no', path)

    def test_unit(self):
        done = self.verify(self.UNIT.read_text())
        # It also looks at units of the host that this one is beside.
        ours = [line for line in done.stderr.splitlines() if 'ramseal' in line]
        self.assertEqual((done.returncode, ours), (0, []))
        command = re.search(r'^ExecStart=(.*)$', self.UNIT.read_text(), re.M)[1].split()
        self.check_options(command[1], command[2:])

    def test_it_would_notice(self):
        self.assertIn('TimeoutStop', self.verify(self.UNIT.read_text() + 'TimeoutStop=1\n').stderr)

    def test_run(self):
        """The line of README.md, as far as it is said that it runs here."""
        line, = re.findall(r'^    (systemd-run .*)$', (FLEET / 'systemd/README.md').read_text(), re.M)
        words = line.replace('"3 5 7 8"', '3,5,7,8').split()
        program = next(i for i, word in enumerate(words) if word.endswith('/ramseal'))
        self.check_options(words[program + 1], words[program + 2:])
        if os.getuid() or Path('/proc/1/comm').read_text() != 'systemd\n':
            self.skipTest('not root, or systemd is not PID 1')
        sim = 'sim:desktop,ram=64M,allocated=20M,resident=10M,trimmed=5M,others=5M,processes=3,cache=2M'
        line = (line.replace('/usr/local/sbin/ramseal acquire', f'{RAMSEAL} acquire -s {sim}')
                .replace('/mnt/evidence', str(self.at)).replace('--collect', '--collect --wait')
                .replace('--unit=ramseal', '--unit=ramseal-test'))
        done = run('sh', '-c', line)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(run(RAMSEAL, 'verify', self.at / 'host.rsz').returncode, 0)


@unittest.skipUnless(shutil.which('ansible-doc'), 'no ansible')
class Ansible(Test):
    ROLE = FLEET / 'ansible/roles/ramseal'

    def test_every_variable_is_documented(self):
        done = run('ansible-doc', '-t', 'role', '-r', self.ROLE.parent, '--json', 'ramseal',
                   env={'PATH': '/usr/bin:/bin', 'HOME': str(self.at), 'LC_ALL': 'C.UTF-8'})
        self.assertEqual(done.returncode, 0, done.stderr)
        options = json.loads(done.stdout)['ramseal']['entry_points']['main']['options']
        defaults = yaml.safe_load((self.ROLE / 'defaults/main.yml').read_text())
        self.assertEqual(sorted(options), sorted(defaults))
        for name, value in defaults.items():
            if not (isinstance(value, str) and '{{' in value):
                self.assertEqual(options[name]['default'], value, name)

    def test_fetch_never_becomes_somebody_else(self):
        """With `become` it reads the whole container into memory, twice (ansible#31194)."""
        seen = 0
        for path in self.ROLE.glob('tasks/*_linux.yml'):
            for task in yaml.safe_load(path.read_text()):
                if 'ansible.builtin.fetch' in task:
                    seen += 1
                    self.assertIs(task['become'], False, task)
        self.assertGreater(seen, 0)

    def expressions(self, part, bare=False):
        """Jinja's, of a part of a YAML file; what asks a question is an expression without braces."""
        if isinstance(part, dict):
            for key, value in part.items():
                yield from self.expressions(value, key in ASKS)
        elif isinstance(part, list):
            for value in part:
                yield from self.expressions(value, bare)
        elif isinstance(part, str):
            yield '{{ ' + part + ' }}' if bare and '{{' not in part else part

    def test_every_expression_can_be_parsed(self):
        """Also those that only a host with Windows has evaluated, of which there is none here."""
        for path in (FLEET / 'ansible').rglob('*.yml'):
            expressions = list(self.expressions(yaml.safe_load(path.read_text())))
            for expression in expressions:
                with self.subTest(path.name, expression=expression):
                    jinja2.Environment().parse(expression)
            if path.match('tasks/collect_*.yml'):
                self.assertGreater(sum('{{' in expression for expression in expressions), 5)

    def test_what_stays_on_windows(self):
        """A folder is removed there once all that it holds is here, or has been sent."""
        tasks = yaml.safe_load((self.ROLE / 'tasks/collect_windows.yml').read_text())
        keep, = (task['ansible.builtin.set_fact']['ramseal_keep'] for task in tasks
                 if 'ansible.builtin.set_fact' in task)
        environment = NativeEnvironment()
        environment.filters['bool'] = bool
        fetched = {'changed': True}, {'changed': False}
        missing = {'msg': 'the remote file does not exist, not transferring, ignored'}
        skipped = {'changed': False, 'skipped': True}
        for summary, container, streams, sent, expected in (
                *((have, also, True, False, False) for have in fetched for also in fetched),
                (fetched[0], missing, True, False, True), (missing, fetched[0], True, False, True),
                (fetched[0], skipped, False, True, False), (fetched[0], skipped, False, False, True),
                (missing, skipped, False, True, True)):
            with self.subTest(summary=summary, container=container, streams=streams, sent=sent):
                self.assertIs(environment.from_string(keep).render(
                    ramseal_fetched_summary=summary, ramseal_fetched=container, ramseal_streams=streams,
                    ramseal_is_sent=sent), expected)

    def test_both_systems_have_the_same_steps(self):
        names = [path.name.rsplit('_', 1)[0] for path in self.ROLE.glob('tasks/*_*.yml')]
        self.assertEqual({name: names.count(name) for name in names}, dict.fromkeys(names, 2))


if __name__ == '__main__':
    RAMSEAL = Path(sys.argv.pop(1)).absolute()
    try:
        import jinja2
        import jsonschema
        import yaml
        from jinja2.nativetypes import NativeEnvironment
    except ImportError as e:
        print(e)
        sys.exit(SKIPPED_EXIT)
    unittest.main()
