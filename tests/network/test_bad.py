#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What is wrong before anything is sent, for each kind of address: servers that are none, states and recipients
that are none, disks that are full. One clear line, the right exit code, nothing left, no secret.
(What servers refuse is in the tests of each.) Usage: test_bad.py RAMSEAL
"""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import receiver  # noqa: E402
import s3_server  # noqa: E402
from targets import clean  # noqa: E402

RAMSEAL = os.path.abspath(sys.argv.pop(1))
SMALL = 'sim:desktop,ram=64M,allocated=20M,resident=10M,trimmed=5M,others=5M,processes=3,cache=2M'
MIB = 1 << 20
SECRET = 'SeCrEtOfTheTests'
PIN = 'sha256//' + 43 * 'A' + '='


class BadServer:
    """Does one thing with every connection, when the first byte has come."""

    def __init__(self, what):
        self.what, self.kept = what, []
        self.asked = threading.Event()
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
                self.what(self, connection)
            except OSError:
                if self.listener.fileno() < 0:
                    return

    def close(self):
        self.listener.close()
        for connection in self.kept:
            connection.close()

    def says(text):  # pylint: disable=no-self-argument
        def answer(self, connection):
            with connection:
                connection.recv(1)
                self.asked.set()
                connection.sendall(text)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
        return answer

    def hangs_up(self, connection):
        with connection:
            connection.recv(65536)
        self.asked.set()

    def breaks(self, connection):
        with connection:
            connection.recv(1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        self.asked.set()

    def is_silent(self, connection):
        self.kept.append(connection)
        connection.recv(1)
        self.asked.set()


GARBAGE = BadServer.says(b'\0\1garbage\r\n\r\n' * 100)
A_PAGE = BadServer.says(b'HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\n\r\n<html>')


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)
        (self.at / 'file.rsz').write_bytes(bytes(100000))
        receiver.new_key(RAMSEAL, self.at / 'key')
        self.port = 1
        self.before = set(os.listdir(self.at))

    def environment(self):
        return clean(AWS_ACCESS_KEY_ID='AKIDTEST', AWS_SECRET_ACCESS_KEY=SECRET,
                     AWS_ENDPOINT_URL=f'http://127.0.0.1:{self.port}')

    def addresses(self):
        """Each kind, with the arguments that send there."""
        at = f'127.0.0.1:{self.port}'
        for name, text in (('az', f'azblob:http://{at}/c/b?sp=rcw&sig={SECRET}'),
                           ('http', f'http://{at}/x?sig={SECRET}'), ('https', f'https://{at}/x?sig={SECRET}')):
            (self.at / name).write_text(text)
            self.before.add(name)
        acquire = ('acquire', '-q', '-s', SMALL)
        yield 's3', (*acquire, '-o', 's3://bucket/x')
        yield 'azblob', (*acquire, '--to', '@az')
        yield 'http', ('upload', 'file.rsz', '--to', '@http')
        yield 'https', ('upload', 'file.rsz', '--to', '@https', '--pin', PIN)
        yield 'tls', (*acquire, '-o', f'tls://{at}', '--pin', PIN, '--client-key', '@key')

    def start(self, args, **more):
        ret = subprocess.Popen([RAMSEAL, *map(str, args)], cwd=self.at, stderr=subprocess.PIPE,
                               stdout=subprocess.PIPE, env=self.environment(), text=True, **more)
        self.addCleanup(ret.communicate)
        self.addCleanup(ret.kill)
        return ret

    def ended(self, process, code, *patterns):
        """One line for each pattern, and nothing else anywhere."""
        out, err = process.communicate(timeout=900)
        lines = err.splitlines()
        self.assertEqual((process.returncode, out), (code, ''), err)
        self.assertEqual(len(lines), len(patterns), err)
        for line, pattern in zip(lines, patterns):
            self.assertRegex(line, pattern)
        self.assertNotIn(SECRET, err)
        self.assertEqual(set(os.listdir(self.at)), self.before)

    def serve(self, what):
        server = BadServer(what)
        self.addCleanup(server.close)
        self.port = server.port
        return server


class Servers(Case):
    def test_what_is_no_such_server(self):
        self.serve(GARBAGE)
        says = {'https': 'TLS failed: .*invalid SSL record', 'tls': None}
        for name, args in self.addresses():
            with self.subTest(name):
                if says.get(name, '') is not None:
                    self.ended(self.start(args), 6, says.get(name, 'the answer is not HTTP'))

    def test_another_web_server(self):
        self.serve(A_PAGE)
        says = {'s3': 'no such bucket', 'azblob': 'no such container', 'http': 'no such directory'}
        for name, args in self.addresses():
            if name in says:
                with self.subTest(name):
                    self.ended(self.start(args), 6, says[name] + r'.*\(HTTP 404\)')

    def insists(self, what, says):
        """It may be the way there: tried again, said once, and a signal ends that."""
        server = self.serve(what)
        for name, args in self.addresses():
            if name not in says:
                continue
            with self.subTest(name):
                server.asked.clear()
                process = self.start(args)
                if says[name]:
                    self.assertRegex(process.stderr.readline(), says[name])
                self.assertTrue(server.asked.wait(900))
                process.send_signal(signal.SIGTERM)
                self.ended(process, 8, 'interrupted')

    def test_who_breaks_off(self):
        for what in (BadServer.hangs_up, BadServer.breaks):
            broke = 'warning: .*(broke|closed without an answer).*; trying again'
            self.insists(what, {'s3': broke, 'azblob': broke, 'http': broke,
                                'https': 'warning: .*TLS failed: .*; trying again',
                                'tls': 'warning: .*: TLS.*; trying again'})

    def test_who_says_nothing(self):
        self.insists(BadServer.is_silent, dict.fromkeys(('s3', 'azblob', 'http', 'https', 'tls'), ''))

    def test_no_tls_at_all(self):
        self.insists(GARBAGE, {'tls': "the other end does not speak TLS: is it 'ramseal receive'\\?; trying again"})

    def test_nobody_there(self):
        with socket.socket() as taken:  # by us, so that nobody else listens there
            taken.bind(('127.0.0.1', 0))
            self.port = taken.getsockname()[1]
            for name, args in self.addresses():
                with self.subTest(name):
                    process = self.start(args)
                    self.assertRegex(process.stderr.readline(), 'warning: .*onnect.*refused.*; trying again')
                    process.send_signal(signal.SIGTERM)
                    self.ended(process, 8, 'interrupted')


class States(Case):
    """`upload --finish FILE`."""

    def finish(self, text, code, pattern):
        if text is not None:
            (self.at / 'state').write_text(text)
            self.before.add('state')
        self.ended(self.start(('upload', '--finish', 'state')), code, pattern)
        self.assertTrue(text is None or (self.at / 'state').read_text() == text)

    def test_what_is_no_state(self):
        self.finish(None, 9, 'state: .*No such file')
        for text in ('', 'garbage', '[]', '{}', '{"address": "s3://b/k"}', '\0' * 100, '[' * 100000,
                     '{"ramseal": "1", "address": 1, "state": {}}'):
            with self.subTest(text[:40]):
                self.finish(text, 9, 'state: .*is not a state file of an upload')

    def test_states_that_do_not_fit(self):
        def state(address, **state):
            return json.dumps({'ramseal': '0.1.0', 'address': address, 'state': state})
        for text, code, pattern in (
                (state('s3://b/k'), 9, 'not for an upload to s3'),
                (state('s3://b/k', upload=7, region='x', part_size=1 << 23), 9, 'not for an upload to s3'),
                (state('s3://b/k', upload='a', region='../x', part_size=1 << 23), 9, 'not for an upload to s3'),
                (state('nowhere:x'), 9, 'state: names no address'),
                (state('azblob:http://127.0.0.1:1/c/b'), 2, 'names? .*no|needs a URL with a SAS'),
                (state('tls://127.0.0.1:1'), 2, '--client-key|--pin|by itself')):
            with self.subTest(text):
                self.finish(text, code, pattern)


class Recipients(Case):
    """Nothing is asked of the server before what was said makes sense."""

    def test_recipients_that_are_none(self):
        store = s3_server.Store()
        server = s3_server.Server(store)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.port = server.port
        (self.at / 'empty').write_text('# nobody\n')
        (self.at / 'bad').write_text('# one\nage1nonsense\n')
        self.before |= {'empty', 'bad'}
        for args, code, pattern in (
                (('--recipient', 'somebody'), 2, 'not an age recipient'),
                (('--recipient', 'age1' + 58 * 'q'), 2, 'recipient'),
                (('--recipients-file', 'none'), 9, 'none: .*No such file'),
                (('--recipients-file', 'empty'), 9, 'empty: .*no recipient'),
                (('--recipients-file', 'bad'), 9, 'bad: line 2: .*recipient')):
            with self.subTest(args):
                self.ended(self.start(('acquire', '-q', '-s', SMALL, '-o', 's3://evidence/x', *args)), code, pattern)
        self.assertEqual(store.requests, [])


class Disks(Case):
    @unittest.skipUnless(os.geteuid() == 0, 'needs root, to mount a small disk')
    def test_a_full_disk_for_what_waits(self):
        """What waits stays in memory: reading waits, and nothing is lost."""
        disk = self.at / 'disk'
        disk.mkdir()
        if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', disk], capture_output=True,
                          check=False).returncode:
            self.skipTest('cannot mount here')
        self.addCleanup(subprocess.run, ['umount', '-l', disk], check=False)
        self.before.add('disk')
        store = s3_server.Store()
        server = s3_server.Server(store)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.port = server.port
        env = self.environment() | {'AWS_ACCESS_KEY_ID': s3_server.ID, 'AWS_SECRET_ACCESS_KEY': s3_server.SECRET}
        how = ('-q', '-s', SMALL, '--level', 'store', '-t1', '-o')
        done = subprocess.run([RAMSEAL, 'acquire', *how, 's3://evidence/x', '--spool', disk, '--spool-size', '16M',
                               '--bwlimit', '32M'], cwd=self.at, env=env, capture_output=True, text=True,
                              timeout=900, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count('\n'), 1, done.stderr)
        self.assertRegex(done.stderr, 'warning: .*disk.*No space left')
        # The warning is in the container's log.
        (self.at / 'fetched.rsz').write_bytes(store.buckets['evidence']['x'])
        done = subprocess.run([RAMSEAL, 'verify', '-q', 'fetched.rsz'], cwd=self.at, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b''))
        self.assertEqual(os.listdir(disk), [])


if __name__ == '__main__':
    unittest.main()
