#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
The same as test_ansible.py, with a real kernel among the hosts: a guest in QEMU, whose memory is acquired while it
runs and compared with the VM's own. Usage: test_guest.py KERNEL-FOLDER RAMSEAL HOLDER SERVERS

The guest has Debian's sshd and Python, the former from build/servers. What takes most of the time is that Ansible
starts Python for each of its tasks, on an emulated CPU.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'vm')]
import hosts  # noqa: E402
import test_ansible  # noqa: E402
import vm  # noqa: E402
from acquired import pages  # noqa: E402
from case import SKIPPED_EXIT, GuestCase, arguments  # noqa: E402
from servers import sshd_parts  # noqa: E402: hosts knows where

# QEMU's user-mode network (docs/system/devices/net.rst).
GUEST = '10.0.2.15'
RAM_MIB = 256  # its programs and their libraries take more than is usual
MIB = 1 << 20
PYTHON = 'python{}.{}'.format(*sys.version_info)
# Not of the language, or for nobody who runs modules.
LEFT_OUT = ('config-3.*', 'test', 'idlelib', 'lib2to3', 'pydoc_data', 'distutils', 'ensurepip', 'tkinter')


def disk_with(folder, path, mib):
    subprocess.run(['truncate', '-s', f'{mib}M', path], check=True)
    subprocess.run(['/sbin/mke2fs', '-q', '-t', 'ext4', '-O', '^has_journal', *(['-d', folder] if folder else []),
                    path], check=True)
    return path


def with_libraries(servers, inside, program):
    """As vm.with_libraries(), of a program whose libraries may not be installed."""
    os.environ['LD_LIBRARY_PATH'] = f'{servers}/{hosts.LIBRARIES}'
    try:
        files = vm.with_libraries(inside, program)
    finally:
        del os.environ['LD_LIBRARY_PATH']
    usual = str(Path(str(servers).lstrip('/')) / 'usr') + '/'
    return {name.replace(usual, '') if name.startswith(usual) else name: path for name, path in files.items()}


class Live(GuestCase, test_ansible.Fleet):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        at = cls.at / 'guest'
        at.mkdir()
        shutil.copytree(f'/usr/lib/{PYTHON}', at / 'usr/lib' / PYTHON, symlinks=True,
                        ignore=shutil.ignore_patterns(*LEFT_OUT))
        usr = disk_with(at / 'usr', at / 'usr.img', 64)
        scratch = disk_with(None, at / 'scratch.img', 256)
        hosts.run('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', at / 'host_key')
        parts = sshd_parts(SERVERS)
        (at / 'sshd_config').write_text(
            'HostKey /etc/host_key\nAuthorizedKeysFile /etc/client.pub\nAuthenticationMethods publickey\n'
            'UsePAM no\nStrictModes no\nPidFile none\nSubsystem sftp internal-sftp\nLoginGraceTime 0\n'
            + ''.join(f'{option} /sbin/{Path(path).name}\n' for option, path in parts.items()))
        with socket.create_server(('127.0.0.1', 0)) as s:
            cls.port = s.getsockname()[1]
        cls.start(KERNEL, 'guest', {
            'bin/holder': HOLDER,
            'etc/host_key': at / 'host_key',
            'etc/client.pub': f'{cls.lan.key}.pub',
            'etc/sshd_config': at / 'sshd_config',
            **with_libraries(SERVERS, 'sbin/sshd', hosts.find(SERVERS, 'sshd')),
            **{name: path for part in parts.values()
               for name, path in with_libraries(SERVERS, f'sbin/{Path(part).name}', part).items()},
            **vm.with_libraries('bin/python3', f'/usr/bin/{PYTHON}'),
        }, ram_mib=RAM_MIB, filesystems=('ext4',), disk=[usr, scratch], machine=vm.Machine(
            options=('-netdev', 'user,id=net,restrict=on,ipv6=off,'
                     f'hostfwd=tcp:127.0.0.1:{cls.port}-{GUEST}:22',
                     '-device', 'virtio-net-pci,netdev=net,romfile='),
            words='ipv6.disable=1'))
        cls.public_key = (at / 'host_key.pub').read_text()
        cls.connect()
        cls.hold()

    @classmethod
    def connect(cls):
        cls.guest.load('virtio_blk', 'virtio_net', 'crc32c_generic', 'ext4')
        cls.guest.check('mkdir -p /usr /var/tmp /run/sshd && mount -t ext4 -o ro /dev/vda /usr && '
                        'mount -t ext4 /dev/vdb /var/tmp && rmdir /var/tmp/lost+found && '
                        'chmod 600 /etc/host_key && echo sshd:x:100:65534::/:/bin/false >>/etc/passwd && '
                        f'ip link set lo up && ip addr add {GUEST}/24 dev eth0 && ip link set eth0 up')
        cls.guest.check('/sbin/sshd -f /etc/sshd_config')
        # The kernel patches its text when a network is first used: before that text is compared.
        cls.guest.check('python3 -c "import json, hashlib, subprocess"')
        until = time.monotonic() + vm.BOOT_TIMEOUT
        while cls.banner()[:4] != b'SSH-':
            assert time.monotonic() < until, 'no sshd'

    @classmethod
    def banner(cls):
        with socket.create_connection(('127.0.0.1', cls.port), vm.BOOT_TIMEOUT) as s:
            return s.recv(100)

    # --- what test_ansible.Fleet asks ---

    def more_machines(self):
        return {'live': {
            'ansible_host': '127.0.0.1', 'ansible_port': self.port, 'ansible_user': 'root',
            'ansible_python_interpreter': '/bin/python3', 'ramseal_become': False, 'ramseal_source': 'kcore',
            'ramseal_poll': 5,
            'ansible_ssh_common_args': self.ssh_arguments(timeout=900)}}

    def more_keys(self):
        return [('127.0.0.1', self.port, self.public_key)]

    def check_more(self):
        """The running kernel's text and the pages of a program of ours are the VM's own."""
        image = self.opened(self.results / 'live/live.rsz')
        self.assertEqual(set(pages(image.ranges)), set(pages(self.ram)))
        self.check_constant_memory(image)
        self.assertEqual(self.guest.check('ls -A /var/tmp /root /tmp'), self.there)

    def setUp(self):
        super().setUp()
        self.there = self.guest.check('ls -A /var/tmp /root /tmp')


def main():
    global KERNEL, HOLDER, SERVERS
    KERNEL, test_ansible.RAMSEAL, HOLDER, SERVERS = arguments(4)
    test_ansible.SERVERS = SERVERS
    why = test_ansible.missing() or ('' if Path('/usr/bin', PYTHON).exists() else f'no {PYTHON}')
    if why:
        print(why)
        sys.exit(SKIPPED_EXIT)
    hosts.enter()
    unittest.main(argv=[sys.argv[0], '--verbose', 'Live.test_1_fleet'])


if __name__ == '__main__':
    main()
