#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
acquire to stdout, through ssh, to a real sshd on the loopback: the file there is, byte for byte, the local
one, or a container that was cut off and can be closed. Usage: test_ssh.py RAMSEAL SERVERS
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import servers  # noqa: E402
from fault_proxy import FaultProxy  # noqa: E402

RAMSEAL = os.path.abspath(sys.argv.pop(1))
SERVERS = Path(sys.argv.pop(1)).absolute()
MIB = 1 << 20
SMALL = 'sim:desktop,ram=64M,allocated=20M,resident=10M,trimmed=5M,others=5M,processes=3,cache=2M'
ACQUIRE = (RAMSEAL, 'acquire', '-q', '-s', SMALL, '--level', 'store', '-t1', '-o')
WAIT = 900


def run(*args):
    return subprocess.run([str(a) for a in args], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=WAIT)


class Ssh(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        cls.addClassCleanup(folder.cleanup)
        cls.at = Path(folder.name)
        done = run(*ACQUIRE, cls.at / 'local.rsz')
        if done.returncode:
            raise AssertionError(done.stderr)
        cls.local = (cls.at / 'local.rsz').read_bytes()
        # Its user is another one: nothing else of this folder is theirs.
        cls.at.chmod(0o711)
        (cls.at / 'sshd').mkdir()
        cls.sshd = servers.Sshd(SERVERS, cls.at / 'sshd')
        cls.addClassCleanup(cls.sshd.stop)

    def setUp(self):
        self.there = self.sshd.own / 'x.rsz'
        self.addCleanup(self.there.unlink, missing_ok=True)

    def start(self, *more, **where):
        """Both programs, as a shell's pipe starts them."""
        ssh = subprocess.Popen([*self.sshd.client(**where), f'cat >{self.there}'],
                               stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        ramseal = subprocess.Popen([*ACQUIRE, '-', *more], stdin=subprocess.DEVNULL, stdout=ssh.stdin,
                                   stderr=subprocess.PIPE)
        ssh.stdin.close()  # ramseal's alone
        ssh.stdin = None
        for process in (ramseal, ssh):
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
        return ramseal, ssh

    def slow(self):
        proxy = FaultProxy(self.sshd.port)
        self.addCleanup(proxy.close)
        proxy.rate = 8 * MIB
        return proxy

    def finish(self, ramseal, ssh):
        """(ramseal's exit code, what it said, ssh's exit code)"""
        said = ramseal.communicate(timeout=WAIT)[1].decode()
        ssh.communicate(timeout=WAIT)
        return ramseal.returncode, said, ssh.returncode

    def wait_for(self, size):
        until = time.monotonic() + WAIT
        while not self.there.exists() or self.there.stat().st_size < size:
            self.assertLess(time.monotonic(), until, 'it never came so far')
            time.sleep(0.02)

    def check_cut(self):
        """What arrived is readable as far as it goes, and `seal` closes it."""
        folder = tempfile.TemporaryDirectory(dir=self.at)
        self.addCleanup(folder.cleanup)
        cut, raw = Path(folder.name) / 'cut.rsz', Path(folder.name) / 'cut.raw'
        shutil.copy(self.there, cut)
        content = cut.read_bytes()
        self.assertTrue(content == self.local[:len(content)])
        self.assertLess(len(content), len(self.local))
        self.assertEqual(run(RAMSEAL, 'verify', cut).returncode, 7)
        self.assertEqual(run(RAMSEAL, 'info', cut).returncode, 0)
        done = run(RAMSEAL, 'seal', cut)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(run(RAMSEAL, 'verify', cut).returncode, 10)
        done = run(RAMSEAL, 'export', '-q', '--format', 'raw', '-o', raw, cut)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertGreater(raw.stat().st_size, 0)

    def test_what_arrives_is_the_local_file(self):
        self.assertEqual(self.finish(*self.start()), (0, '', 0))
        self.assertTrue(self.there.read_bytes() == self.local, 'differs')

    def test_a_stranger_gets_nowhere(self):
        stranger = self.at / 'stranger'
        run('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', stranger)
        code, said, ssh = self.finish(*self.start(key=stranger))
        self.assertEqual((code, ssh), (6, 255), said)
        self.assertFalse(self.there.exists())

    def cut_midway(self, cut):
        proxy = self.slow()
        ramseal, ssh = self.start(port=proxy.port)
        self.wait_for(4 * MIB)
        cut(ssh)
        code, said, ended = self.finish(ramseal, ssh)
        self.assertEqual(code, 6, said)
        self.assertEqual(said.count('\n'), 1, said)
        self.assertRegex(said, 'not sealed; stdout has all complete records: stdout: write: Broken pipe')
        self.assertNotEqual(ended, 0)
        self.check_cut()

    def test_connection_ends_midway(self):
        self.cut_midway(lambda _: self.sshd.kill_sessions())

    def test_ssh_is_killed_midway(self):
        self.cut_midway(lambda ssh: ssh.kill())

    def test_a_signal_seals_and_the_end_arrives(self):
        proxy = self.slow()
        ramseal, ssh = self.start(port=proxy.port)
        self.wait_for(4 * MIB)
        ramseal.send_signal(signal.SIGTERM)
        code, said, ended = self.finish(ramseal, ssh)
        self.assertEqual((code, ended), (8, 0), said)
        self.assertEqual(run(RAMSEAL, 'verify', self.copied()).returncode, 10)

    def copied(self):
        """The file there belongs to somebody else, whose folder it is in."""
        path = self.at / 'copied.rsz'
        self.addCleanup(path.unlink)
        return shutil.copy(self.there, path)


def main():
    missing = servers.missing(SERVERS, 'ssh', 'sshd')
    if missing:
        print(missing)
        return 77
    unittest.main()
    return 0


if __name__ == '__main__':
    sys.exit(main())
