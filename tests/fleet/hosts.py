# SPDX-License-Identifier: Apache-2.0
"""
Hosts with a network, a disk and an sshd of their own, made of namespaces: they share this machine's kernel and its
programs, and nothing that is written. Only as root.

    lan = Lan(servers, folder)             # in a network namespace of the test's own, see enter()
    host = lan.host('web', user='tester', sudo=True)
    lan.inventory()                        # for Ansible
"""

import contextlib
import glob
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / 'network'))
from servers import sshd_parts  # noqa: E402

WAIT = 900
NET = '10.77.0'
LIBRARIES = 'usr/lib/x86_64-linux-gnu'
INSIDE = 'RAMSEAL_TEST_INSIDE'

# What a host is, as its first process sees it: $1 its folder, $2 the size of its disk, $3 its name, $4 its
# address, $5 what build/servers has unpacked, $6 sshd. The tree may lie below what is hidden.
HOST = '''
mkdir -p "$5"; mount -t tmpfs none /mnt; mkdir /mnt/servers; mount --bind "$5" /mnt/servers
cp -R "$1" /mnt/host; cp "$1/../client.pub" /mnt/host; cp -p "$1"/shadow "$1"/sudoers /mnt/host
mount -t tmpfs none /run; mkdir /run/sshd /run/lock
mount -t tmpfs -o mode=1777 none /tmp; mount -t tmpfs -o mode=1777,size="$2" none /var/tmp
mount -t tmpfs none /home; mount -t tmpfs -o mode=700 none /root
mkdir /home/tester; chown 1000:1000 /home/tester
for name in passwd group shadow sudoers hosts; do
    mount --bind "/mnt/host/$name" /etc/$name
done
hostname "$3"
ip link set lo up
until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
ip addr add "$4/24" dev eth0; ip link set eth0 up
exec "$6" -D -e -f /mnt/host/sshd_config
'''


def enter():
    """Goes on with a network and mounts of its own: no packet leaves, and no other process sees the hosts."""
    if os.environ.get(INSIDE):
        return
    os.environ[INSIDE] = '1'
    os.execvp('unshare', ['unshare', '--net', '--mount', '--', *sys.orig_argv])


def missing(servers, *programs):
    """Why there can be no such hosts, or ''."""
    if os.getuid():
        return 'not root'
    gone = [name for name in ('ip', 'unshare', 'sshd', 'ssh-keygen', *programs) if not find(servers, name)]
    if gone:
        return f'no {", ".join(gone)}'
    tried = subprocess.run(['unshare', '--net', '--mount', '--pid', '--fork', '--uts', 'sh', '-c',
                            'ip link add ramseal0 type veth peer name ramseal1 && '
                            'ip link add ramseal2 type bridge && mount -t tmpfs none /mnt'],
                           capture_output=True, text=True)
    return f'no namespaces here: {tried.stderr.strip()}' if tried.returncode else ''


def find(servers, name):
    return shutil.which(name, path=f'{servers}/usr/sbin:{servers}/usr/bin:/usr/local/sbin:/usr/local/bin:'
                                   '/usr/sbin:/usr/bin:/sbin:/bin')


def run(*args, **kwargs):
    done = subprocess.run([str(a) for a in args], stdin=subprocess.DEVNULL, capture_output=True, text=True, **kwargs)
    if done.returncode:
        raise RuntimeError(f'{args} ended with {done.returncode}: {done.stderr}')
    return done


class Host:
    def __init__(self, lan, name, number, user, sudo, disk):
        self.lan, self.name, self.user = lan, name, user
        self.address, self.port = f'{NET}.{number}', 22
        self.at = lan.at / name
        self.at.mkdir()
        self.log = self.at / 'log'
        self._configure(sudo)
        with open(self.log, 'wb') as log:
            self.process = subprocess.Popen(
                ['setpriv', '--pdeathsig', 'KILL', 'unshare', '--net', '--mount', '--pid', '--uts', '--fork',
                 '--kill-child', '--mount-proc', 'sh', '-euc', HOST, 'host', self.at, disk, name, self.address,
                 lan.servers, self._inside(find(lan.servers, 'sshd'))],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'LD_LIBRARY_PATH': f'/mnt/servers/{LIBRARIES}'})
        self._connect(number)

    def _inside(self, program):
        """Where the host has a program that build/servers unpacked."""
        return program.replace(str(self.lan.servers), '/mnt/servers', 1)

    def _configure(self, sudo):
        at = self.at
        run('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', at / 'host_key')
        (at / 'passwd').write_text('root:x:0:0::/root:/bin/sh\ntester:x:1000:1000::/home/tester:/bin/sh\n'
                                   'sshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n')
        (at / 'group').write_text('root:x:0:\ntester:x:1000:\nnogroup:x:65534:\n')
        (at / 'hosts').write_text(f'127.0.0.1 localhost\n{self.address} {self.name}\n')
        (at / 'shadow').write_text('root:*:19000::::::\ntester:*:19000::::::\n')
        (at / 'sudoers').write_text('tester ALL=(ALL) NOPASSWD: ALL\n' if sudo else '')
        for name, mode in ('shadow', 0o600), ('sudoers', 0o440):
            (at / name).chmod(mode)
        (at / 'sshd_config').write_text(
            f'ListenAddress {self.address}\nHostKey /mnt/host/host_key\nAuthorizedKeysFile /mnt/host/client.pub\n'
            'AuthenticationMethods publickey\nUsePAM no\nStrictModes no\nPidFile none\n'
            'Subsystem sftp internal-sftp\n'
            + ''.join(f'{option} {self._inside(path)}\n' for option, path in sshd_parts(self.lan.servers).items()))

    def _inner(self):
        """The host's first process, as seen from here; only its own network is not ours."""
        children = Path(f'/proc/{self.process.pid}/task/{self.process.pid}/children').read_text().split()
        return int(children[0]) if children else 0

    def _connect(self, number):
        until = time.monotonic() + WAIT
        while not (self._inner() and os.readlink(f'/proc/{self._inner()}/ns/net') !=
                   os.readlink('/proc/self/ns/net')):
            self._check(until)
        run('ip', 'link', 'add', f'host{number}', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', self._inner())
        run('ip', 'link', 'set', f'host{number}', 'master', 'lan', 'up')
        while True:
            with contextlib.suppress(OSError), socket.create_connection((self.address, self.port), 1):
                return
            self._check(until)

    def _check(self, until):
        if self.process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f'{self.name} does not come up: {self.log.read_text()}')
        time.sleep(0.05)

    def inside(self, *command):
        """Runs a command there, as root, without ssh; returns what it says."""
        return run('nsenter', '--target', self._inner(), '--all', '--root', *command).stdout

    def has(self, pattern):
        """Whether a file is there whose name a shell's pattern takes. Asked so often that it starts no process."""
        return bool(glob.glob(f'/proc/{self._inner()}/root{pattern}'))

    def kill_sessions(self):
        """Those of sshd, but nothing that they have started. How many."""
        sessions = Path(f'/proc/{self._inner()}/task/{self._inner()}/children').read_text().split()
        for pid in sessions:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        return len(sessions)

    def pull_cable(self):
        run('ip', 'link', 'set', f'host{self.address.rsplit(".", 1)[1]}', 'down')

    def variables(self):
        return {'ansible_host': self.address, 'ansible_port': self.port, 'ansible_user': self.user}

    def public_key(self):
        return (self.at / 'host_key.pub').read_text()

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Saboteur:
    """
    Ends every connection to a host's sshd, again and again, from when a file is there whose name a shell's `pattern`
    takes, until `most` have been ended or it is told to end. `count`: how many. On a machine where a question takes
    longer than there is between two, nothing would ever be through without that limit.
    """

    EVERY = 1.2  # seconds

    def __init__(self, host, pattern, most):
        self.host, self.pattern, self.most = host, pattern, most
        self.count, self.ended = 0, threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.host.has(self.pattern):
            if self.ended.wait(0.05):
                return
        while self.count < self.most and not self.ended.wait(self.EVERY):
            self.count += self.host.kill_sessions()

    def end(self):
        self.ended.set()
        self.thread.join()


class Away:
    """Pulls a host's cable out as soon as a file is there whose name a shell's `pattern` takes."""

    def __init__(self, host, pattern):
        self.host, self.pattern, self.ended = host, pattern, threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.ended.wait(0.05):
            if self.host.has(self.pattern):
                self.host.pull_cable()
                return

    def end(self):
        self.ended.set()
        self.thread.join()


class Lan:
    """Of hosts, in a network namespace that enter() has made. `at`: an empty folder that everybody may pass."""

    def __init__(self, servers, at):
        self.servers, self.at, self.hosts = Path(servers), Path(at), []
        self.key = self.at / 'client'
        run('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', self.key)
        for command in ('link set lo up', 'link add lan type bridge', f'addr add {NET}.1/24 dev lan',
                        'link set lan up'):
            run('ip', *command.split())

    def host(self, name, user='root', sudo=False, disk='256m'):
        host = Host(self, name, len(self.hosts) + 2, user, sudo, disk)
        self.hosts.append(host)
        return host

    def known_hosts(self, more=()):
        """`more`: (address, port, public key)."""
        lines = [f'{host.address} {host.public_key()}' for host in self.hosts]
        lines += [f'[{address}]:{port} {key}' for address, port, key in more]
        path = self.at / 'known_hosts'
        path.write_text(''.join(lines))
        return path

    def stop(self):
        for host in self.hosts:
            with contextlib.suppress(ProcessLookupError):
                os.kill(host.process.pid, signal.SIGKILL)
            host.stop()
