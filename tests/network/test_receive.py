#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`ramseal receive` and senders over the loopback, through a proxy that breaks the connection: what arrives is,
byte for byte, what was sent, whatever is cut, stopped or killed on the way.
Usage: test_receive.py RAMSEAL SEND_FILE [TEST...]
"""
import contextlib
import ctypes
import functools
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from crowd import PING, Crowd, hello  # noqa: E402
from fault_proxy import FaultProxy  # noqa: E402
from receiver import WAIT, Receiver, new_key, wait_for  # noqa: E402

RAMSEAL = os.path.abspath(sys.argv.pop(1))
SEND_FILE = os.path.abspath(sys.argv.pop(1))
RECIPIENT = 'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj'
CUTS = int(os.environ.get('RAMSEAL_TEST_CUTS', '12'))
KILLS = int(os.environ.get('RAMSEAL_TEST_KILLS', '4'))
# Frames (PROTOCOL.md, section 2).
WELCOME, DATA, ACK = 2, 3, 4
SMALL = 'sim:desktop,ram=64M,allocated=20M,resident=10M,trimmed=5M,others=5M,processes=3,cache=2M'
# A sample sends the beginning of a container; `long` the whole.
LARGE = 10 << 20 if CUTS < 100 else None


def run(*args, **more):
    return subprocess.run([str(a) for a in args], capture_output=True, timeout=900, **more)


@functools.cache
def acquired(level):
    """The container of the simulated machine, which is the same each time."""
    with tempfile.TemporaryDirectory(prefix='ramseal-test-') as folder:
        path = Path(folder) / 'a.rsz'
        done = run(RAMSEAL, 'acquire', '-q', '-s', SMALL, '--level', level, '-t1', '-o', path)
        assert done.returncode == 0, done.stderr
        return path.read_bytes()


class Case(unittest.TestCase):
    level, end = '1', 'sealed'

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        cls.addClassCleanup(folder.cleanup)
        cls.base = Path(folder.name)
        cls.container = cls.base / 'a.rsz'
        cls.bytes = acquired(cls.level)
        if cls.level == 'store' and LARGE:
            cls.bytes = cls.bytes[:LARGE]
            cls.end = 'early'
        cls.container.write_bytes(cls.bytes)
        cls.pins = {name: new_key(RAMSEAL, cls.base / name) for name in ('receiver', 'sender', 'other')}

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)

    def receiver(self, *args, senders=('sender',), **more):
        ret = Receiver(RAMSEAL, self.at, self.base / 'receiver', [self.pins[s] for s in senders], *args, **more)
        self.addCleanup(ret.end)
        return ret

    def proxy(self, port, **how):
        ret = FaultProxy(port)
        self.addCleanup(ret.close)
        for name, value in how.items():
            setattr(ret, name, value)
        return ret

    def sender(self, port, file=None, key='sender', pin='receiver', end=None):
        ret = subprocess.Popen(
            [SEND_FILE, f'tls://127.0.0.1:{port}', self.pins[pin],
             str(self.base / key) if key else '-', str(file or self.container), end or self.end],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        def end_it():
            if ret.poll() is None:
                ret.kill()
            ret.communicate()
        self.addCleanup(end_it)
        return ret

    def pem(self, key):
        pem = self.base / f'{key}.pem'
        if not pem.exists():
            done = run('openssl', 'req', '-x509', '-new', '-key', self.base / key, '-subj', '/CN=x', '-days', '1',
                       '-out', pem)
            self.assertEqual(done.returncode, 0, done.stderr)
        return pem

    def connect(self, port, version, key=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = context.maximum_version = version
        if key:
            context.load_cert_chain(self.pem(key), self.base / key)
        return context.wrap_socket(socket.create_connection(('127.0.0.1', port), timeout=WAIT))

    def finish(self, sender):
        """How often it had to try again."""
        out, err = sender.communicate(timeout=900)
        self.assertEqual((sender.returncode, err), (0, ''))
        return int(out)

    def refused(self, *args, **more):
        sender = self.sender(*args, **more)
        err = sender.communicate(timeout=900)[1]
        self.assertEqual(sender.returncode, 1)
        self.assertEqual(err.count('\n'), 1)
        return err

    def log(self, event):
        lines = (self.at / 'witness.jsonl').read_text().splitlines()
        return [line for line in map(json.loads, lines) if line['event'] == event]

    def arrived(self, count=1, bytes_=None):
        """As they were sent, checked, logged, and nothing else is there."""
        files = sorted(self.at.glob('*.rsz'))
        self.assertEqual(len(files), count)
        for file in files:
            self.assertEqual(file.stat().st_mode & 0o777, 0o600)
            self.assertTrue(file.read_bytes() == (bytes_ or self.bytes), 'other bytes')
        self.assertEqual(sorted(line['file'] for line in self.log('complete')),
                         [file.name for file in files])
        self.assertEqual(len(list(self.at.iterdir())), count + 1)
        return files


class Whole(Case):
    def test_arrives_and_is_witnessed(self):
        receiver = self.receiver('--once')
        self.assertEqual(self.finish(self.sender(receiver.port)), 0)
        self.assertEqual(receiver.process.wait(WAIT), 0)
        file, = self.arrived()
        line, = self.log('complete')
        self.assertEqual((line['verified'], line['sealed'], line['peer'], line['bytes']),
                         ('sealed', True, self.pins['sender'], len(self.bytes)))
        verify = json.loads(run(RAMSEAL, 'verify', '--json', file).stdout)
        self.assertEqual(line['root'], verify['root'])
        self.assertEqual(bytes.fromhex(line['container']), self.bytes[16:32])

    def test_several_at_once(self):
        receiver = self.receiver(senders=('sender', 'other'))
        senders = [self.sender(receiver.port, key=('sender', 'other')[i % 2]) for i in range(5)]
        for sender in senders:
            self.finish(sender)
        self.arrived(5)
        self.assertEqual(receiver.stop(), 0)

    def test_early_end_can_be_sealed_later(self):
        short = self.base / 'short'
        short.write_bytes(self.bytes[:-1000])
        receiver = self.receiver()
        self.finish(self.sender(receiver.port, short, end='early'))
        file, = self.arrived(bytes_=self.bytes[:-1000])
        self.assertEqual(self.log('complete')[0]['verified'], 'cut off')
        self.assertEqual(run(RAMSEAL, 'seal', file).returncode, 0)
        self.assertEqual(run(RAMSEAL, 'verify', file).returncode, 0)

    def test_names_of_senders_are_no_paths(self):
        receiver = self.receiver()
        sender = subprocess.run(
            [SEND_FILE, f'tls://127.0.0.1:{receiver.port}/../../../tmp/x\x1b[31m', self.pins['receiver'],
             str(self.base / 'sender'), str(self.container), 'sealed'], capture_output=True)
        self.assertEqual(sender.returncode, 0, sender.stderr)
        self.arrived()
        self.assertEqual(self.log('complete')[0]['name'], '../../../tmp/x\x1b[31m')
        self.assertNotIn(b'\x1b', (self.at / 'witness.jsonl').read_bytes())


class Witness(Case):
    def verify(self, file, *args):
        return run(RAMSEAL, 'verify', *args, '--witness', self.at / 'witness.jsonl', file)

    def receive(self, file, end='sealed', key='sender'):
        receiver = self.receiver('--once', senders=(key,))
        self.finish(self.sender(receiver.port, file, key=key, end=end))
        receiver.process.wait(WAIT)
        return next(self.at.glob('*.rsz'))

    def test_log_is_held_against_a_container(self):
        file = self.receive(self.container)
        done = self.verify(self.container)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout.decode(), '; witnessed 20.* from ' + re.escape(self.pins['sender']))
        told = json.loads(self.verify(file, '--json').stdout)['witnessed']
        self.assertEqual(told['peer'], self.pins['sender'])
        # A container that was made again has the same bytes, another one has not.
        other = self.base / 'other.rsz'
        self.assertEqual(run(RAMSEAL, 'acquire', '-q', '-s', SMALL + ',seed=2', '-o', other).returncode, 0)
        done = self.verify(other)
        self.assertEqual(done.returncode, 11)
        self.assertIn(b'has not seen this container', done.stderr)
        self.assertIsNone(json.loads(self.verify(other, '--json').stdout)['witnessed'])

    def test_another_root_is_told(self):
        self.receive(self.container)
        log = self.at / 'witness.jsonl'
        text = log.read_text()
        root = self.log('complete')[0]['root']
        log.write_text(text.replace(root, root[::-1]))
        done = self.verify(self.container)
        self.assertEqual(done.returncode, 11)
        self.assertIn(b'with another root', done.stderr)

    def test_received_unsealed_and_sealed_later(self):
        short = self.base / 'short'
        short.write_bytes(self.bytes[:-1000])
        file = self.receive(short, end='early')
        self.assertEqual(run(RAMSEAL, 'seal', file).returncode, 0)
        done = self.verify(file)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b'; its first ', done.stdout)
        self.assertIn(b' bytes witnessed 20', done.stdout)
        # A pipe cannot be read twice.
        done = run('sh', '-c', 'cat "$1" | "$2" verify --witness "$3" -', 'sh', file, RAMSEAL,
                   self.at / 'witness.jsonl')
        self.assertEqual(done.returncode, 9)
        self.assertIn(b'if it is a file', done.stderr)

    def test_who_sends_it_altered_is_contradicted(self):
        """The same id, and a root that fits: as good a container as the one that came first."""
        self.receive(self.container)
        altered = self.base / 'altered.rsz'
        altered.write_bytes(self.bytes[:-1000])
        self.assertEqual(run(RAMSEAL, 'seal', altered).returncode, 0)
        self.assertEqual(run(RAMSEAL, 'verify', altered).returncode, 0)
        self.receive(altered, key='other')
        first, later = self.log('complete')
        self.assertEqual(first['container'], later['container'])
        for file, mine, theirs in ((altered, later, first), (self.container, first, later)):
            done = self.verify(file)
            self.assertEqual((done.returncode, done.stderr.count(b'\n')), (11, 1))
            self.assertIn('has also seen this container with another root: %s at %s from %s' %
                          (theirs['root'], theirs['time'], theirs['peer']), done.stderr.decode())
            told = json.loads(self.verify(file, '--json').stdout)
            self.assertEqual((told['witnessed']['peer'], told['witnessed_otherwise']['peer']),
                             (mine['peer'], theirs['peer']))

    @unittest.skipUnless(shutil.which('age-keygen'), 'age is not installed')
    def test_what_is_encrypted_is_compared_by_its_hash(self):
        key, file = self.base / 'key', self.base / 'encrypted'
        run('age-keygen', '-o', key)
        recipient = re.search('age1[a-z0-9]+', key.read_text()).group()
        self.assertEqual(run(RAMSEAL, 'acquire', '-q', '-s', SMALL, '--recipient', recipient, '-o', file).returncode, 0)
        receiver = self.receiver('--once')
        done = run(RAMSEAL, 'upload', '-q', file, f'tls://127.0.0.1:{receiver.port}', '--pin', receiver.pin,
                   '--client-key', f'@{self.base}/sender')
        self.assertEqual(done.returncode, 0, done.stderr)
        receiver.process.wait(WAIT)
        line = self.log('complete')[0]
        self.assertRegex(line['name'], r'\.rsz\.age$')
        self.assertEqual((line['root'], line['sha256']), (None, hashlib.sha256(file.read_bytes()).hexdigest()))
        receiver.end()
        self.assertIsNone(receiver.events('receive-complete')[0]['root'])
        done = self.verify(file, '--identity', key)
        self.assertEqual((done.returncode, done.stderr.count(b'\n')), (9, 1))
        self.assertIn(b'compare its SHA-256', done.stderr)

    def test_log_is_read_once_for_all_files(self):
        """It may be long, and there may be many files."""
        files = [self.receive(self.container)] * 3
        libc = ctypes.CDLL(None, use_errno=True)
        watch = libc.inotify_init1(os.O_CLOEXEC)
        self.addCleanup(os.close, watch)
        log = os.fsencode(self.at / 'witness.jsonl')
        self.assertGreaterEqual(libc.inotify_add_watch(watch, log, 0x30), 0)  # IN_OPEN, IN_CLOSE_NOWRITE
        done = run(RAMSEAL, 'verify', '--witness', self.at / 'witness.jsonl', *files)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count(b'; witnessed 20'), 3)
        self.assertEqual(len(os.read(watch, 4096)), 2 * 16)  # of each one event, without a name

    def test_what_is_no_log(self):
        done = run(RAMSEAL, 'verify', '--witness', __file__, self.container)
        self.assertEqual((done.returncode, done.stderr.count(b'\n')), (9, 1))
        self.assertIn(b'is not a log of ramseal receive', done.stderr)


class Broken(Case):
    level = 'store'

    def test_random_cuts(self):
        receiver = self.receiver()
        # So near to each other that all of them come before the end.
        proxy = self.proxy(receiver.port, cuts=CUTS, within=min(1 << 20, len(self.bytes) // CUTS))
        again = self.finish(self.sender(proxy.port))
        self.assertEqual(proxy.made, CUTS)
        self.assertGreaterEqual(again, CUTS - 1)  # one may have come behind DONE
        self.arrived()
        self.assertEqual(len(self.log('began')), 1)

    def test_cuts_of_several_at_once(self):
        receiver = self.receiver('--max-senders', '3')
        proxy = self.proxy(receiver.port, cuts=CUTS)
        senders = [self.sender(proxy.port) for _ in range(3)]
        for sender in senders:
            self.finish(sender)
        self.arrived(3)

    def test_receiver_is_killed(self):
        receiver = self.receiver()
        proxy = self.proxy(receiver.port, rate=4 << 20)
        sender = self.sender(proxy.port)
        for _ in range(KILLS):
            before = proxy.passed
            wait_for(lambda: proxy.passed > before + (1 << 20) or sender.poll() is not None)
            receiver.end()
            receiver = self.receiver(listen=f'127.0.0.1:{receiver.port}')
        proxy.rate = 0
        self.finish(sender)
        self.arrived()
        self.assertEqual(len(self.log('began')), 1)

    def test_sender_is_killed(self):
        receiver = self.receiver()
        proxy = self.proxy(receiver.port, dead_after=3 << 20)
        sender = self.sender(proxy.port)
        wait_for(lambda: proxy.dead)
        sender.kill()
        proxy.dead_after, proxy.dead = None, False
        wait_for(lambda: self.log('broke_off'))
        partial, = self.at.glob('*.partial')
        kept = partial.read_bytes()
        self.assertEqual(kept, self.bytes[:len(kept)])
        self.assertEqual(self.log('broke_off')[0]['bytes'], len(kept))
        self.assertEqual(run(RAMSEAL, 'verify', partial).returncode, 7)
        # It may come back: nobody seals it under the receiver.
        self.assertEqual(run(RAMSEAL, 'seal', partial).returncode, 6)
        self.assertEqual(receiver.stop(), 0)
        self.assertEqual(run(RAMSEAL, 'seal', partial).returncode, 0)
        self.assertEqual(run(RAMSEAL, 'verify', str(partial)[:-len('.partial')]).returncode, 10)

    def test_receiver_is_told_to_stop(self):
        receiver = self.receiver()
        proxy = self.proxy(receiver.port, dead_after=3 << 20)
        sender = self.sender(proxy.port)
        wait_for(lambda: proxy.dead)
        self.assertEqual(receiver.stop(), 8)
        receiver = self.receiver(listen=f'127.0.0.1:{receiver.port}')
        proxy.dead_after, proxy.dead = None, False
        self.finish(sender)
        self.arrived()

    def test_a_second_receiver_has_no_place(self):
        self.receiver()
        done = run(RAMSEAL, 'receive', '--listen', '127.0.0.1:0', '--key', self.base / 'receiver',
                   '--any-sender', '--max-total', '1G', '--dir', self.at)
        self.assertEqual(done.returncode, 6)
        self.assertIn(b'witness.jsonl: another process', done.stderr)


class Acquire(Case):
    """The program itself as the sender: the simulated machine makes the same container each time."""
    level = 'store'

    def acquire(self, port, *more, level='store'):
        ret = subprocess.Popen(
            [RAMSEAL, 'acquire', '-q', '-s', SMALL, '--level', level, '-t1',
             '-o', f'tls://127.0.0.1:{port}', '--pin', self.pins['receiver'],
             '--client-key', f'@{self.base}/sender', *more], stderr=subprocess.PIPE, text=True)
        self.addCleanup(ret.communicate)
        self.addCleanup(ret.kill)
        return ret

    def is_the_local_one(self, process):
        err = process.communicate(timeout=900)[1]
        self.assertEqual(process.returncode, 0, err)
        self.arrived(bytes_=acquired('store'))
        self.assertEqual(self.log('complete')[0]['verified'], 'sealed')

    def test_names_say_what_is_encrypted(self):
        receiver = self.receiver()
        for more, want in (((), r'\.rsz$'), (('--recipient', RECIPIENT), r'\.rsz\.age$')):
            self.acquire(receiver.port, *more, level='1').communicate(timeout=900)
            self.assertRegex(self.log('complete')[-1]['name'], want)

    def test_cuts(self):
        receiver = self.receiver()
        proxy = self.proxy(receiver.port, cuts=3)
        self.is_the_local_one(self.acquire(proxy.port))
        self.assertEqual(proxy.made, 3)

    def test_receiver_is_killed(self):
        receiver = self.receiver()
        proxy = self.proxy(receiver.port, rate=20 << 20)
        process = self.acquire(proxy.port)
        wait_for(lambda: proxy.passed > 5 << 20)
        receiver.end()
        receiver = self.receiver(listen=f'127.0.0.1:{receiver.port}')
        proxy.rate = 0
        self.is_the_local_one(process)
        self.assertEqual(len(self.log('began')), 1)

    def test_stopped_early(self):
        """What was read until the signal is sealed, as in a file."""
        receiver = self.receiver()
        proxy = self.proxy(receiver.port, rate=4 << 20)
        process = self.acquire(proxy.port)
        wait_for(lambda: proxy.passed > 2 << 20)
        process.send_signal(signal.SIGTERM)
        proxy.rate = 0
        process.communicate(timeout=900)
        self.assertIn(process.returncode, (0, 8))
        line, = self.log('complete')
        self.assertEqual((line['sealed'], line['verified']), (True, 'sealed'))
        self.assertEqual(run(RAMSEAL, 'verify', self.at / line['file']).returncode,
                         0 if process.returncode == 0 else 10)


class Strangers(Case):
    """Who is not expected gets nowhere, and the receiver goes on."""

    def setUp(self):
        super().setUp()
        self.one = self.receiver()

    def tearDown(self):
        self.finish(self.sender(self.one.port))
        self.arrived()
        self.assertEqual(self.one.stop(), 0)
        # Whose key is unknown is told of once, as a caller: no sender of ours was refused.
        if self._testMethodName == 'test_keys':
            self.assertEqual(self.one.events('receive-refused'), [])

    def nothing_came(self):
        self.assertEqual([p.name for p in self.at.iterdir()], ['witness.jsonl'])
        self.assertEqual((self.at / 'witness.jsonl').read_bytes(), b'')

    def test_keys(self):
        self.assertIn("this sender's key is unknown to it (ours is " + self.pins['other'],
                      self.refused(self.one.port, key='other'))
        self.assertIn('--client-key', self.refused(self.one.port, key=None))
        self.assertIn("the other end's key is not the expected one: " + self.pins['receiver'],
                      self.refused(self.one.port, pin='sender'))
        self.nothing_came()
        wait_for(lambda: self.pins['other'] in
                 ' '.join(line['message'] for line in self.one.events('receive-caller')))

    def connect(self, version, key=None):
        return super().connect(self.one.port, version, key)

    def test_tls_1_2(self):
        with self.assertRaises(ssl.SSLError):
            self.connect(ssl.TLSVersion.TLSv1_2)
        self.nothing_came()

    def test_without_a_key(self):
        with contextlib.suppress(OSError), self.connect(ssl.TLSVersion.TLSv1_3) as s:
            s.sendall(b'ramseal')
            self.assertEqual(s.recv(100), b'')
        self.nothing_came()

    def test_openssl_with_the_key(self):
        """An independent client is understood, and its certificate is the key alone."""
        with self.connect(ssl.TLSVersion.TLSv1_3, 'sender') as s:
            s.sendall(b'GET / HTTP/1.1\r\n\r\n')
            answer = s.recv(1000)
        self.assertEqual(answer[:4], b'\x08\0\0\0')
        self.assertIn(b'not a ramseal frame', answer)
        self.nothing_came()

    def test_openssl_with_another_key(self):
        with self.connect(ssl.TLSVersion.TLSv1_3, 'other') as s:
            answer = s.recv(1000)
        self.assertEqual(answer[:4], b'\x08\0\0\0')
        self.assertEqual(answer[8], 13)
        self.nothing_came()

    def test_garbage(self):
        for garbage in (b'', b'GET / HTTP/1.1\r\n\r\n', os.urandom(5000), b'\x16\x03\x01\xff\xff' * 1000):
            with contextlib.suppress(OSError):
                with socket.create_connection(('127.0.0.1', self.one.port), timeout=WAIT) as s:
                    s.sendall(garbage)
                    s.shutdown(socket.SHUT_WR)
                    while s.recv(1000):
                        pass
        self.nothing_came()


class Crowded(Case):
    """Many others call, or hold places: an acquisition beside them comes through all the same."""

    @contextlib.contextmanager
    def crowd(self, *args):
        crowd = Crowd(*args)
        try:
            yield crowd
        finally:
            crowd.process.kill()
            crowd.process.communicate()

    @contextlib.contextmanager
    def hog(self, port, key, places):
        """Takes so many places, sends nothing but PING, and comes back when it is told to go."""
        over = threading.Event()
        self.pem(key)

        def hold(number):
            while not over.is_set():
                with contextlib.suppress(OSError), self.connect(port, ssl.TLSVersion.TLSv1_3, key) as s:
                    s.settimeout(0.2)
                    s.sendall(hello(number))
                    while not over.is_set():
                        with contextlib.suppress(TimeoutError):
                            if not s.recv(1000):
                                break
                        s.sendall(PING)
                over.wait(1)
        threads = [threading.Thread(target=hold, args=(i,)) for i in range(places)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()

    def command(self, port, source=SMALL):
        return [RAMSEAL, 'acquire', '-q', '-s', source, '--level', '1', '-t1', '-o', f'tls://127.0.0.1:{port}',
                '--pin', self.pins['receiver'], '--client-key', f'@{self.base}/sender']

    def acquire(self, port, source=SMALL, quietly=True):
        """In seconds. Quietly: it was heard when it called first."""
        began = time.monotonic()
        done = run(*self.command(port, source))
        self.assertEqual(done.returncode, 0, done.stderr)
        if quietly:
            self.assertEqual(done.stderr, b'')
        return time.monotonic() - began

    def test_who_finds_no_place_is_told(self):
        """All places are kept for others, who use them."""
        receiver = self.receiver('--max-startups', '1:100:1', '--known', '127.0.0.2/31')
        with self.crowd(receiver.port, 0, 8, 2, 3, 0.2):
            sender = subprocess.Popen(self.command(receiver.port), stderr=subprocess.PIPE, text=True)
            self.addCleanup(sender.communicate)
            self.addCleanup(sender.kill)
            line = sender.stderr.readline()
        self.assertIn('the receiver has no place free; trying again', line)
        err = sender.communicate(timeout=900)[1]
        self.assertEqual((sender.returncode, err), (0, ''))
        self.arrived(bytes_=acquired('1'))

    def test_callers_without_a_key(self):
        receiver = self.receiver('--max-startups', '2:100:4')
        with self.crowd(receiver.port, 40, 12) as crowd:
            self.acquire(receiver.port)
            self.arrived(bytes_=acquired('1'))
            self.assertGreaterEqual(crowd.end(), 12 - 4)  # half handshakes that made way

    def frame(self, s):
        """Type and body."""
        def take(n):
            data = b''
            while len(data) < n:
                part = s.recv(n - len(data))
                self.assertNotEqual(part, b'', 'it has hung up')
                data += part
            return data
        kind, size = struct.unpack('<II', take(8))
        return kind, take(size)

    def test_who_has_an_upload_makes_way_for_no_handshake(self):
        """And of what it sent before it fell silent, it hears that it is on the disk."""
        receiver = self.receiver('--max-startups', '2:100:4')
        with self.connect(receiver.port, ssl.TLSVersion.TLSv1_3, 'sender') as s:
            s.sendall(hello(1))
            self.assertEqual(self.frame(s)[0], WELCOME)
            s.sendall(struct.pack('<IIQ', DATA, 8 + 1000, 0) + self.bytes[:1000])
            self.assertEqual(self.frame(s), (ACK, struct.pack('<Q', 1000)))
            # From its own address, and later than it: the oldest of a source goes first.
            with self.crowd(receiver.port, 0, 12) as crowd:
                self.acquire(receiver.port)
                self.assertGreaterEqual(crowd.end(), 12 - 4)
            s.sendall(struct.pack('<IIQ', DATA, 8 + 500, 1000) + self.bytes[1000:1500])
            self.assertEqual(self.frame(s), (ACK, struct.pack('<Q', 1500)))
        self.assertEqual(len(receiver.events('receive-began')), 2)

    def test_a_sender_who_sends_nothing(self):
        receiver = self.receiver('--max-senders', '2', senders=('sender', 'other'))
        with self.hog(receiver.port, 'other', 2):
            wait_for(lambda: len(receiver.events('receive-began')) >= 2)
            self.acquire(receiver.port)
        self.arrived(bytes_=acquired('1'))

    @unittest.skipUnless(CUTS >= 100, 'takes minutes, and a machine to itself: in the suite `long`')
    def test_the_largest_crowd(self):
        """Within twice the time that it takes alone: from elsewhere, and from the same address."""
        source = SMALL.replace('ram=64M', 'ram=1G').replace('others=5M', 'others=600M')
        for first, last in ((2, 101), (1, 1)):
            receiver = self.receiver(senders=('sender', 'other'))
            alone, beside = [], []
            for _ in range(3):
                alone.append(self.acquire(receiver.port, source, False))
                with self.crowd(receiver.port, 500, 200, first, last, 1), self.hog(receiver.port, 'other', 8):
                    beside.append(self.acquire(receiver.port, source, False))
            print(f'from {last - first + 1} addresses: alone {alone}, beside {beside}')
            self.assertEqual(receiver.stop(), 0)
            self.assertLess(sorted(beside)[1], 2 * sorted(alone)[1])


class Limits(Case):
    def test_largest_file(self):
        receiver = self.receiver('--max-size', '64K')
        self.assertIn('its --max-size is 65536 bytes', self.refused(receiver.port))
        partial, = self.at.glob('*.partial')
        self.assertLessEqual(partial.stat().st_size, 65536)

    def to(self, receiver, *args):
        return run(RAMSEAL, *args, f'tls://127.0.0.1:{receiver.port}', '--pin', self.pins['receiver'],
                   '--client-key', f'@{self.base}/sender')

    def test_what_is_too_large_is_not_begun(self):
        receiver = self.receiver('--max-size', '64K')
        done = self.to(receiver, 'upload', self.container)
        self.assertEqual(done.returncode, 6)
        self.assertIn(b'accepts 65536 bytes per file (its --max-size), and this one has %d' % len(self.bytes),
                      done.stderr)
        self.assertEqual(list(self.at.glob('*.partial')), [])
        # What may be too large is warned of.
        done = self.to(receiver, 'acquire', '-q', '-s', SMALL, '-o')
        self.assertEqual(done.returncode, 6)
        self.assertIn(b'accepts 64.0 KiB per file (its --max-size), and up to ', done.stderr)

    def test_any_sender(self):
        receiver = self.receiver(senders=())
        self.finish(self.sender(receiver.port, key=None))
        self.arrived()

    @unittest.skipUnless(os.geteuid() == 0, 'needs root, to mount a small disk')
    def test_full_disk(self):
        done = run('mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', self.at)
        if done.returncode:
            self.skipTest('cannot mount here')
        self.addCleanup(run, 'umount', '-l', self.at)
        filler = self.at / 'filler'
        filler.write_bytes(bytes(512 << 10))
        receiver = self.receiver()
        sender = self.sender(receiver.port)
        wait_for(lambda: receiver.events('receive-refused'))
        self.assertIn('disk is full', receiver.events('receive-refused')[0]['message'])
        self.assertEqual(run('mount', '-o', 'remount,size=64m', self.at).returncode, 0)
        self.finish(sender)
        filler.unlink()
        self.arrived()


class Usage(Case):
    def wrong(self, *args, code=2):
        done = run(RAMSEAL, 'receive', *args)
        self.assertEqual((done.returncode, done.stderr.count(b'\n')), (code, 1), done.stderr)
        return done.stderr.decode()

    def test_wrong_command_lines(self):
        key = ('--key', self.base / 'receiver')
        anybody = ('--any-sender', '--max-total', '1M')
        self.assertIn('--listen', self.wrong(*key, '--any-sender'))
        self.assertIn('--key', self.wrong('-l', '1', '--any-sender'))
        self.assertIn('--sender', self.wrong('-l', '1', *key))
        self.assertIn('needs --max-total', self.wrong('-l', '1', *key, '--any-sender'))
        self.assertIn('takes sha256//', self.wrong('-l', '1', *key, '--sender', 'sha256//AAAA'))
        self.assertIn('takes PORT', self.wrong('-l', 'localhost:1', *key, *anybody))
        for startups in ('10', '10:30', '0:30:100', '10:101:100', '10:30:9', '10:30:100:1', 'a:b:c', '10:30:1001'):
            self.assertIn('START:RATE:FULL', self.wrong('-l', '1', *key, *anybody, '--max-startups', startups))
        self.assertIn('takes ADDRESS', self.wrong('-l', '1', *key, *anybody, '--known', 'host'))
        text = __file__[:-len('test_receive.py')] + 'meson.build'
        self.assertIn('not a private key', self.wrong('-l', '1', '--key', text, *anybody))
        self.wrong('-l', '127.0.0.1:0', *key, *anybody, '--dir', self.at / 'none', code=6)

    def test_keys_are_not_replaced(self):
        before = (self.base / 'other').read_bytes()
        self.assertIn('exists', self.wrong('--new-key', self.base / 'other', code=6))
        self.assertEqual((self.base / 'other').read_bytes(), before)
        self.assertEqual((self.base / 'other').stat().st_mode & 0o777, 0o600)

    def test_pins_are_those_of_openssl(self):
        done = run('sh', '-c', f'openssl pkey -in {self.base}/other -pubout -outform der | '
                   'openssl dgst -sha256 -binary | base64')
        self.assertEqual('sha256//' + done.stdout.decode().strip(), self.pins['other'])

    def test_keys_of_openssl(self):
        for name, how in (('ec', ('-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-384')),
                          ('rsa', ('-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'))):
            done = run('openssl', 'genpkey', *how, '-out', self.base / name)
            self.assertEqual(done.returncode, 0, done.stderr)
            receiver = Receiver(RAMSEAL, self.at, self.base / name, [self.pins['sender']], '--once')
            self.pins[name] = receiver.pin
            self.finish(self.sender(receiver.port, pin=name))
            self.assertEqual(receiver.process.wait(WAIT), 0)
            receiver.end()
        self.arrived(2)


if __name__ == '__main__':
    unittest.main()
