#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
The lines of build/fleet/edr/README.md, each in every channel of its table: what takes longer than the channel allows is
killed, what a line leaves behind in its process group is killed, and of the output only the end is seen.
Usage: test_edr.py RAMSEAL
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'network')]
import hosts  # noqa: E402
from fault_proxy import FaultProxy  # noqa: E402
from receiver import Receiver, new_key, wait_for  # noqa: E402

README = HERE.parent.parent / 'build/fleet/edr/README.md'
SMALL = 'sim:desktop,ram=64M,allocated=20M,resident=10M,trimmed=5M,others=5M,processes=3,cache=2M'
# A host that is acquired does not build and test beside it: a channel waits so many times as long here.
PATIENCE = 10
COMPLETE, RUNNING, KILLED = 0, 12, -signal.SIGKILL


def lines():
    """Those to be typed, in their order."""
    section = README.read_text().split('## The lines')[1].split('## ')[0]
    return re.findall(r'^    (.*)$', section, re.M)


def channels():
    """[name, seconds, bytes]"""
    rows = re.findall(r'^\| ([^|]+) \| (\d+) \| (\d+) \|', README.read_text(), re.M)
    return [(name, PATIENCE * int(seconds), int(size)) for name, seconds, size in rows]


class Channel:
    """Runs commands in a folder, as a shell of an agent does."""

    def __init__(self, at, seconds, size):
        self.at, self.seconds, self.size = at, seconds, size

    def run(self, line):
        """(exit code, what is seen of the output)"""
        shell = subprocess.Popen(['sh', '-c', line], cwd=self.at, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, start_new_session=True,
                                 env={'PATH': '/usr/bin:/bin', 'XDG_RUNTIME_DIR': str(self.at)})
        try:
            # Until nobody has the pipe open any more: a channel waits for that, too.
            said = shell.communicate(timeout=self.seconds)[0]
            self._kill(shell.pid)
        except subprocess.TimeoutExpired:
            self._kill(shell.pid)
            said = shell.communicate()[0]
        return shell.returncode, said[-self.size:]

    def _kill(self, group):
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Edr(unittest.TestCase):
    def folder(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        self.addCleanup(folder.cleanup)
        shutil.copy(RAMSEAL, Path(folder.name) / 'ramseal')
        return Path(folder.name)

    def line(self, line, **changes):
        """The same of a simulated machine."""
        for old, new in changes.items():
            line = line.replace(old.replace('_', ' '), new)
        return re.sub(r'^(\./ramseal (check|acquire))', rf'\1 -s {SMALL}', line)

    def test_there_are_lines_and_channels(self):
        self.assertEqual(sum(line.startswith('./ramseal') for line in lines()), 4)
        self.assertGreaterEqual(len(channels()), 6)

    def test_lines(self):
        for name, *limits in channels():
            with self.subTest(name):
                at = self.folder()
                self.check_lines(Channel(at, *limits), at)
                self.assertEqual([path.name for path in at.iterdir() if path.is_file()], [])

    def check_lines(self, channel, at):
        for line in lines():
            code, said = channel.run(self.line(line))
            while 'status' in line and code == RUNNING:
                code, said = channel.run(line)
            self.assertEqual(code, COMPLETE, (line, said))
            if '--detach' in line:
                self.assertEqual(json.loads(said)['schema'], 'ramseal-detached-1')
            if '--json' in line:
                self.assertEqual(json.loads(said)['state'], 'ended')
            if line.startswith('sha256sum'):
                self.assertEqual(len(said.splitlines()), 2)
                done = subprocess.run([RAMSEAL, 'verify', '-q', at / 'memory.rsz'], capture_output=True)
                self.assertEqual(done.returncode, COMPLETE)

    def sent(self, at):
        """A receiver behind a link that is dead until it is told otherwise, and the options that lead there."""
        (at / 'received').mkdir()
        sender = new_key(RAMSEAL, at / 'sender')
        new_key(RAMSEAL, at / 'receiver')
        receiver = Receiver(RAMSEAL, at / 'received', at / 'receiver', [sender])
        self.addCleanup(receiver.end)
        proxy = FaultProxy(receiver.port)
        self.addCleanup(proxy.close)
        proxy.dead_after = 1 << 16
        return proxy, f'-o tls://127.0.0.1:{proxy.port} --pin {receiver.pin} --client-key @sender'

    def acquire(self):
        return next(line for line in lines() if ' acquire ' in line)

    def test_it_outlives_the_channel(self):
        for name, *limits in channels():
            with self.subTest(name):
                at = self.folder()
                proxy, options = self.sent(at)
                channel = Channel(at, *limits)
                code, said = channel.run(self.line(self.acquire()).replace('-o memory.rsz', options))
                self.assertEqual(code, COMPLETE, said)
                wait_for(lambda proxy=proxy: proxy.dead)
                self.assertEqual(channel.run('./ramseal status')[0], RUNNING)
                proxy.dead_after, proxy.dead = None, False
                code = RUNNING
                while code in (RUNNING, KILLED):  # by the channel's limit, which says nothing of the acquisition
                    code = channel.run('./ramseal status --wait')[0]
                self.assertEqual(code, COMPLETE)
                received, = (at / 'received').glob('*.rsz')
                done = subprocess.run([RAMSEAL, 'verify', '-q', received], capture_output=True)
                self.assertEqual(done.returncode, COMPLETE)

    def test_the_limit_is_one(self):
        """Without --detach the channel kills it."""
        at = self.folder()
        _, options = self.sent(at)
        line = self.line(self.acquire()).replace('-o memory.rsz', options).replace('--detach', '-q')
        self.assertEqual(Channel(at, 3, 4096).run('exec ' + line)[0], KILLED)
        self.assertEqual(list((at / 'received').glob('*.rsz')), [])


def main():
    global RAMSEAL
    RAMSEAL = Path(sys.argv.pop(1)).absolute()
    if os.getuid():
        print('not root, whose default state is in /run')
        return 77
    if subprocess.run(['unshare', '--net', '--mount', 'true'], capture_output=True).returncode:
        print('no namespaces here')
        return 77
    hosts.enter()
    subprocess.run(['mount', '-t', 'tmpfs', 'none', '/run'], check=True)
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    unittest.main()
    return 0


if __name__ == '__main__':
    sys.exit(main())
