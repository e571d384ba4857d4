# SPDX-License-Identifier: Apache-2.0
"""
Servers of others, as build/servers unpacks them or as they are installed, run as an ordinary user with
nothing of this machine's configuration.
"""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

WAIT = 900
# Whom root becomes: as root, servers want users and folders that only their packages make.
NOBODY = 65534
LIBRARIES = 'usr/lib/x86_64-linux-gnu'
# What sshd starts for each connection, since OpenSSH 9.8 and 10.0, and the options of sshd that name it.
SSHD_PARTS = {'SshdSessionPath': 'sshd-session', 'SshdAuthPath': 'sshd-auth'}


def sshd_parts(folder):
    """{option: program}, of those that this sshd has. It would look for them where its package is installed."""
    found = {option: shutil.which(name, path=f'{folder}/usr/lib/openssh:/usr/lib/openssh')
             for option, name in SSHD_PARTS.items()}
    return {option: path for option, path in found.items() if path}


def missing(folder, *names):
    """Why the servers of these names cannot be run, or ''."""
    gone = [name for name in names if not _find(folder, name)]
    if gone:
        return f'no {", ".join(gone)} (build/servers)'
    if os.getuid() == 0 and subprocess.run(['unshare', '--mount', 'true'], capture_output=True).returncode:
        return 'cannot mount here'
    return ''


def _find(folder, name):
    return shutil.which(name, path=f'{folder}/usr/sbin:{folder}/usr/bin:/usr/sbin:/usr/bin')


class Server:
    """
    `servers`: where build/servers put them. `at`: an empty folder, whose parents everybody may pass, for keys
    and configuration. `user`: who runs it. `own`: a folder that the user may write to.
    """

    mounts = ''  # further commands of a shell with `at` as its $0, in front of the server's start as root

    def __init__(self, servers, at):
        self.servers, self.at = Path(servers), Path(at)
        self.own = self.at / 'own'
        self.own.mkdir()
        self.log = self.at / 'log'
        self.process = None
        with socket.create_server(('127.0.0.1', 0)) as s:
            self.port = s.getsockname()[1]
        if os.getuid():
            self.user = pwd.getpwuid(os.getuid()).pw_name
            return
        self.user = 'tester'  # known to the server alone
        self.at.chmod(0o755)
        (self.at / 'servers').mkdir()
        (self.at / 'passwd').write_text(f'tester:x:{NOBODY}:{NOBODY}::{self.own}:/bin/sh\n')
        self.give(self.own)

    def give(self, path):
        """To the user."""
        if os.getuid() == 0:
            os.chown(path, NOBODY, NOBODY)

    def command(self, name, *arguments):
        """The arguments of a process that runs this program as the user."""
        ends = ['setpriv', '--pdeathsig', 'KILL']
        if os.getuid():
            return [*ends, _find(self.servers, name), *arguments]
        program = self.as_seen(_find(self.servers, name))
        return ['unshare', '--mount', 'sh', '-c',
                'mount --bind "$0/passwd" /etc/passwd && mount --bind "$1" "$0/servers" && shift && '
                f'{self.mounts} exec "$@"',
                self.at, self.servers, *ends, '--reuid', str(NOBODY), '--regid', str(NOBODY),
                '--clear-groups', program, *arguments]

    def as_seen(self, path):
        """By the user, who may not pass the folders that the tree is in."""
        return path if os.getuid() else path.replace(str(self.servers), str(self.at / 'servers'), 1)

    def environment(self):
        top = self.servers if os.getuid() else self.at / 'servers'
        return {'PATH': '/usr/sbin:/usr/bin:/sbin:/bin',
                'LD_LIBRARY_PATH': f'{top}/{LIBRARIES}:{top}/{LIBRARIES}/samba'}

    def start(self, name, *arguments):
        """Until it listens on its port."""
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(self.command(name, *arguments), stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, env=self.environment())
        until = time.monotonic() + WAIT
        while time.monotonic() < until and self.process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(('127.0.0.1', self.port)):
                return
            time.sleep(0.05)
        raise RuntimeError(f'{name} does not answer: {self.log.read_text()}')

    def sessions(self):
        """The processes that serve connections, with what they have started."""
        found, of = [], [self.process.pid]
        while of:
            pid = of.pop()
            with contextlib.suppress(FileNotFoundError):
                below = Path(f'/proc/{pid}/task/{pid}/children').read_text().split()
                found += map(int, below)
                of += map(int, below)
        return found

    def kill_sessions(self):
        for pid in self.sessions():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Sshd(Server):
    """OpenSSH's, for one key. `private_key`, `known_hosts`: what the client needs."""

    def __init__(self, servers, at):
        super().__init__(servers, at)
        self.private_key, self.known_hosts = self.at / 'client', self.at / 'known_hosts'
        for name in 'host', 'client':
            subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', self.at / name],
                           check=True, stdin=subprocess.DEVNULL)
        self.give(self.at / 'host')
        # By a name of its own, whatever address and port the client sees.
        self.known_hosts.write_text('sshd ' + (self.at / 'host.pub').read_text())
        (self.at / 'config').write_text(
            f'ListenAddress 127.0.0.1\nPort {self.port}\nHostKey {self.at}/host\n'
            f'AuthorizedKeysFile {self.at}/client.pub\nAuthenticationMethods publickey\n'
            'UsePAM no\nStrictModes no\nPidFile none\n'
            + ''.join(f'{option} {self.as_seen(path)}\n' for option, path in sshd_parts(servers).items()))
        self.start('sshd', '-D', '-e', '-f', self.at / 'config')

    def client(self, host='127.0.0.1', port=None, key=None, known_hosts=None):
        """The arguments of ssh that lead here, without a command."""
        options = ('BatchMode=yes', 'IdentitiesOnly=yes', 'HostKeyAlias=sshd', 'LogLevel=ERROR',
                   'StrictHostKeyChecking=yes', 'GlobalKnownHostsFile=none',
                   f'UserKnownHostsFile={known_hosts or self.known_hosts}')
        return ['ssh', '-F', 'none', '-i', str(key or self.private_key), '-p', str(port or self.port),
                *(word for option in options for word in ('-o', option)), f'{self.user}@{host}']


class Smbd(Server):
    """
    Samba's, with one share, 'evidence', which is the folder `own`, for one user and password. `small`: a disk
    of so many MiB in that folder, as this process sees it, or None where only root may mount one.
    """

    PASSWORD = 'sEcReToFtHeShArE'

    def __init__(self, servers, at, small_mib):
        super().__init__(servers, at)
        (self.own / 'small').mkdir()
        self.mounts = f'mount -t tmpfs -o size={small_mib}m,mode=777 none "$0/own/small" &&'
        folders = [f'{what} = {self.at}/state' for what in
                   ('lock directory', 'state directory', 'cache directory', 'pid directory', 'private dir',
                    'ncalrpc dir')]
        (self.at / 'state').mkdir()
        self.give(self.at / 'state')
        (self.at / 'config').write_text('\n'.join((
            '[global]', 'interfaces = 127.0.0.1', 'bind interfaces only = yes',
            f'smb ports = {self.port}', 'server role = standalone server', 'disable netbios = yes',
            'disable spoolss = yes', 'load printers = no', 'server min protocol = SMB3',
            'passdb backend = tdbsam', f'log file = {self.at}/state/log', 'log level = 1', *folders,
            '[evidence]', f'path = {self.own}', 'read only = no')) + '\n')
        done = subprocess.run(
            self.command('pdbedit', '-s', self.at / 'config', '-a', '-t', '-u', self.user),
            input=f'{self.PASSWORD}\n' * 2, capture_output=True, text=True, env=self.environment())
        if done.returncode:
            raise RuntimeError(f'pdbedit: {done.stderr}')
        self.start('smbd', '--foreground', '--no-process-group', '--debug-stdout', '-s', self.at / 'config')
        self.small = None if os.getuid() else Path(f'/proc/{self.process.pid}/root{self.own}/small')

    def stop(self):
        """It and what serves its connections."""
        if self.process.poll() is None:
            self.kill_sessions()
            super().stop()
