#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
The Ansible role of build/fleet, over ssh, on hosts made of namespaces, and on others that are down, full, or
where nobody is root. One of the scenarios is tried each time, drawn by a seed that is printed, and all by
`meson test --setup whole`. Usage: test_ansible.py RAMSEAL SERVERS [unittest's arguments]
"""

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
sys.path[:0] = [str(HERE), str(HERE.parent / 'network'), str(HERE.parent / 'sim')]
import hosts  # noqa: E402
from receiver import Receiver, new_key  # noqa: E402
from sampled import WHOLE, drawn  # noqa: E402

ANSIBLE = HERE.parent.parent / 'build/fleet/ansible'
SMALL = 'sim:desktop,ram=64M,allocated=20M,resident=10M,trimmed=5M,others=5M,processes=3,cache=2M'
DOWN = f'{hosts.NET}.200'
TIMEOUT = 900
SKIPPED_EXIT = 77
COMPLETE, PARTIAL = 0, 10
# In some of the others nothing is acquired, or nothing becomes of it.
OFTEN = ['test_1_fleet', 'test_3_sent_elsewhere', 'test_4_connections_are_lost']


class Fleet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-')  # short: a socket of ssh lies below
        cls.addClassCleanup(folder.cleanup)
        cls.at = Path(folder.name)
        cls.at.chmod(0o755)
        (cls.at / 'lan').mkdir()
        cls.lan = hosts.Lan(SERVERS, cls.at / 'lan')
        cls.addClassCleanup(cls.lan.stop)

    def setUp(self):
        self.before = {}
        self.results = self.at / 'results'
        shutil.rmtree(self.results, ignore_errors=True)

    # --- what test_guest.py adds ---

    def more_machines(self):
        """{name: its variables}"""
        return {}

    def more_keys(self):
        """(address, port, public key) of their sshd."""
        return ()

    def check_more(self):
        """Their containers."""

    # --- helpers ---

    def ssh_arguments(self, timeout):
        return (f'-F none -o UserKnownHostsFile={self.lan.known_hosts(self.more_keys())} -o BatchMode=yes '
                f'-o IdentitiesOnly=yes -o ConnectTimeout={timeout}')

    def play(self, machines, *args, **variables):
        """Runs the playbook for {name: its variables}; returns what it said, and its exit code."""
        inventory = {'all': {'children': {'ramseal': {'hosts': machines}}, 'vars': {
            'ansible_ssh_private_key_file': str(self.lan.key),
            'ansible_ssh_common_args': self.ssh_arguments(timeout=10),
            'ansible_python_interpreter': '/usr/bin/python3',
            'ramseal_binary': str(RAMSEAL), 'ramseal_results': str(self.results), 'ramseal_poll': 1,
            'ramseal_source': SMALL, 'ramseal_reconnect': 3, **variables}}}
        (self.at / 'inventory.json').write_text(json.dumps(inventory))
        done = subprocess.run(
            ['ansible-playbook', '-i', self.at / 'inventory.json', *args, ANSIBLE / 'site.yml'], cwd=self.at,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT,
            env={'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'HOME': str(self.at), 'LC_ALL': 'C.UTF-8',
                 'ANSIBLE_CONFIG': str(ANSIBLE / 'ansible.cfg'), 'ANSIBLE_SSH_CONTROL_PATH_DIR': str(self.at / 'cp'),
                 'ANSIBLE_SSH_ARGS': '-o ControlMaster=auto -o ControlPersist=60s -o ServerAliveInterval=5',
                 'ANSIBLE_NOCOLOR': '1'})
        return done.stdout, done.returncode

    def named(self, said):
        """{host: how it went}, as the end of the play has it."""
        end = said.split('TASK [Sum up]')[1]
        return {name: json.loads(f'"{how}"') for name, how in re.findall(r'^ +"(\w+): (.*)",?$', end, re.M)}

    def left(self, host):
        """Whatever is there that was not there before."""
        return host.inside('find', '/var/tmp', '/tmp', '/home', '/root', '/run', '-ignore_readdir_race', '-mindepth',
                           '1').split()

    def verify(self, path):
        return subprocess.run([RAMSEAL, 'verify', '-q', path], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=TIMEOUT).returncode

    def check_collected(self, *names):
        """The containers are whole, and the fleet page names their hosts."""
        page = (self.results / 'fleet.html').read_text()
        for name in names:
            self.assertEqual(self.verify(self.results / name / f'{name}.rsz'), COMPLETE, name)
            self.assertEqual((self.results / name).stat().st_mode & 0o777, 0o700)
            summary = json.loads((self.results / name / 'summary.json').read_text())
            self.assertEqual(summary['exit_code'], COMPLETE, summary)
            self.assertIn(name, page)

    def new(self, name, **kwargs):
        host = self.lan.host(name, **kwargs)
        self.addCleanup(host.stop)
        self.before[name] = self.left(host)
        return host

    def check_nothing_is_left(self):
        for host in self.lan.hosts:
            if host.name in self.before:
                self.assertEqual(self.left(host), self.before[host.name], host.name)

    # --- tests ---

    def test_1_fleet(self):
        """What can be acquired is, whatever becomes of the others; and each of these is named."""
        machines = {'web': self.new('web').variables(),
                    'mail': self.new('mail', user='tester', sudo=True).variables(),
                    'full': self.new('full', disk=room_for_the_program()).variables(),
                    'plain': {**self.new('plain', user='tester').variables(), 'ramseal_become': False,
                              'ramseal_source': 'auto'},
                    'down': {'ansible_host': DOWN},
                    **self.more_machines()}
        said, code = self.play(machines)
        named = self.named(said)
        self.assertEqual(code, 2, said)
        self.assertEqual(sorted(named), sorted(machines), said)
        self.assertRegex(said, 'failed: full, plain, down"')
        for name in set(machines) - {'full', 'plain', 'down'}:
            self.assertRegex(named[name], r'^exit code 0: .*; verified$')
        self.assertRegex(named['full'], r'^exit code 6: .*(room|space)')
        self.assertRegex(named['plain'], r'^exit code 4: ')
        self.assertRegex(named['down'], r'^cannot be reached: .*No route to host')
        self.check_collected(*set(machines) - {'full', 'plain', 'down'})
        self.check_more()
        self.check_nothing_is_left()

    def test_2_check_mode(self):
        host = self.new('shown')
        said, code = self.play({'shown': host.variables()}, '--check')
        self.assertEqual(code, 0, said)
        self.assertRegex(self.named(said)['shown'], '^exit code 0')
        self.assertRegex(said, '"memory: 63.6 MiB in 2 ranges')
        self.assertFalse(self.results.exists())
        self.check_nothing_is_left()

    def receiver(self, *options):
        """The variables that lead there; the folder `received` has what arrives."""
        folder = tempfile.TemporaryDirectory(dir=self.at)
        self.addCleanup(folder.cleanup)
        at, self.received = Path(folder.name), Path(folder.name) / 'received'
        self.received.mkdir()
        sender = new_key(RAMSEAL, at / 'sender')
        new_key(RAMSEAL, at / 'receiver')
        receiver = Receiver(RAMSEAL, self.received, at / 'receiver', [sender], listen=f'{hosts.NET}.1:0')
        self.addCleanup(receiver.end)
        return {'ramseal_address': f'tls://{hosts.NET}.1:{receiver.port}',
                'ramseal_client_key': (at / 'sender').read_text(),
                'ramseal_options': ['--pin', receiver.pin, *options]}

    def test_3_sent_elsewhere(self):
        """The key of the sender arrives where it belongs, and is nowhere to be seen."""
        there = self.receiver()
        said, code = self.play({'sent': self.new('sent').variables()}, '-vvv', **there)
        self.assertEqual(code, 0, said)
        for line in there['ramseal_client_key'].splitlines()[1:-1]:
            self.assertNotIn(line, said)
        received, = self.received.glob('*.rsz')
        self.assertEqual(self.verify(received), COMPLETE)
        self.assertEqual([path.name for path in (self.results / 'sent').iterdir()], ['summary.json'])
        self.check_nothing_is_left()

    def test_4_connections_are_lost(self):
        """Whatever becomes of the connections, it goes on, is found again, and comes home."""
        host = self.new('remote')
        lost = hosts.Saboteur(host, '/var/tmp/ramseal-*/state.json', 6)
        self.addCleanup(lost.end)
        said, code = self.play({'remote': host.variables()}, ramseal_reconnect=15)
        lost.end()
        self.assertEqual(code, 0, said)
        self.assertGreaterEqual(lost.count, 3)
        self.check_collected('remote')
        self.check_nothing_is_left()

    def test_5_the_time_is_over(self):
        """It is told to seal what it has, which is a result; the link is slow enough to be sure of it."""
        there = self.receiver('--level', 'store', '--bwlimit', '512K', '--spool-size', '4M')
        said, code = self.play({'late': self.new('late').variables()}, ramseal_timeout=1, **there)
        self.assertEqual(code, 0, said)
        self.assertRegex(self.named(said)['late'], '^exit code 8: ')
        received, = self.received.glob('*.rsz')
        self.assertEqual(self.verify(received), PARTIAL)
        self.check_nothing_is_left()

    def test_6_the_host_goes_away(self):
        """Nothing is removed that nobody has, and it is said where it is."""
        host = self.new('gone')
        away = hosts.Away(host, '/var/tmp/ramseal-*/state.json')
        self.addCleanup(away.end)
        said, code = self.play({'gone': host.variables(), 'stays': self.new('stays').variables()})
        away.end()
        self.assertEqual(code, 2, said)
        self.assertRegex(self.named(said)['gone'], 'everything is left in (/var/tmp/ramseal-[^ ]*)')
        folder = self.named(said)['gone'].rsplit(' ', 1)[1]
        self.assertIn(f'{folder}/gone.rsz', self.left(host))
        self.check_collected('stays')

    def test_7_the_wrong_program(self):
        said, code = self.play({'pinned': self.new('pinned').variables()}, ramseal_sha256='0' * 64)
        self.assertEqual(code, 2, said)
        self.assertRegex(self.named(said)['pinned'], 'not the file whose SHA-256 is 0000')
        self.check_nothing_is_left()


def room_for_the_program():
    """In KiB, with not enough for a container."""
    return f'{(os.stat(RAMSEAL).st_size >> 10) + 300}k'


def missing():
    """Why this cannot be tried here, or ''."""
    return hosts.missing(SERVERS, 'ansible-playbook', 'sudo')


def main():
    global RAMSEAL, SERVERS
    RAMSEAL, SERVERS = Path(sys.argv.pop(1)).absolute(), Path(sys.argv.pop(1)).absolute()
    if missing():
        print(missing())
        return SKIPPED_EXIT
    hosts.enter()
    if not WHOLE and len(sys.argv) == 1:
        sys.argv += [f'Fleet.{name}' for name in drawn(OFTEN, 1, 'scenario')]
    unittest.main()
    return 0


if __name__ == '__main__':
    sys.exit(main())
