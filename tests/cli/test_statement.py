#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What an acquisition says of its container, and a container held against that.
Usage: test_statement.py RAMSEAL SOURCE-ROOT
"""
import base64
import calendar
import hashlib
import http.server
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
import threading
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from test_acquire import RAMSEAL, Case, memory, needs_simulator, run  # noqa: E402

HEX = '[0-9a-f]'
# The example of C2SP's age.md.
IDENTITY = 'AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX\n'
RECIPIENT = 'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj'
SIMULATED = 'sim:cohen2015,ram=64M,resident=8M,allocated=16M,trimmed=4M,others=4M,cache=2M'
TIME = r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z'
FORM = re.compile(
    'ramseal statement 1\n'
    f'container: {HEX}{{32}}\n'
    f'(root: {HEX}{{64}}\n)?'
    r'size: \d+' '\n'
    'name: .+\n'
    'outcome: (complete|gaps|stopped|unsealed)\n'
    'source: .+\n'
    'host: .+\n'
    f'begin: {TIME}\nend: {TIME}\n'
    r'begin_mono_ns: \d+' '\n' r'end_mono_ns: \d+' '\n'
    'tool: ramseal .+\n'
    f'(tool_sha256: {HEX}{{64}}\n)?')


def lines(text):
    return dict(line.split(': ', 1) for line in text.splitlines()[1:])


class StatementCase(Case):
    def stated(self, name='out.rsz', pages=64, *args):
        """A container, and its statement: path of each."""
        statement = self.at / f'{name}.statement'
        path, _ = self.acquire(self.file('image', memory(pages)), name, 0, '--statement', statement,
                               *args)
        self.assertRegex(statement.read_text(), FORM)
        return path, statement

    def verified(self, path, code, *args, **more):
        done = run('verify', '-t', '1', *args, path, **more)
        self.assertEqual(done.returncode, code, done)
        self.assertEqual(done.stderr.count(b'\n'), 1 if code else 0, done.stderr)
        return done.stdout.decode(), done.stderr.decode()

    def begin(self, path):
        """The first line of the manifest."""
        done = run('extract', '-q', '--stream', 'manifest', '-o', '-', path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout.splitlines()[0])


class Acquired(StatementCase):
    def test_it_says_what_the_container_is(self):
        before = time.time_ns()
        path, statement = self.stated()
        said = lines(statement.read_text())
        self.assertEqual(said['container'], self.begin(path)['container'])
        self.assertIn(f"root {said['root']};", self.verify(path).stdout.decode())
        self.assertEqual(int(said['size']), path.stat().st_size)
        self.assertEqual(said['name'], 'out.rsz')
        self.assertEqual(said['outcome'], 'complete')
        self.assertEqual(said['source'], 'file')
        self.assertEqual(said['host'], socket.gethostname())
        with open(RAMSEAL, 'rb') as program:
            self.assertEqual(said['tool_sha256'], hashlib.sha256(program.read()).hexdigest())
        self.assertLess(said['begin'], said['end'])
        # Both of one clock, which began with the machine.
        self.assertLess(0, int(said['end_mono_ns']) - int(said['begin_mono_ns']), said)
        self.assertLess(int(said['end_mono_ns']), time.clock_gettime_ns(time.CLOCK_BOOTTIME), said)
        self.assertEqual(time.strftime('%Y', time.gmtime(before / 10**9)), said['begin'][:4])

    def test_the_size_is_that_of_what_is_sealed(self):
        """Not of the file that it is encrypted in."""
        path, statement = self.stated('out.rsz.age', 64, '--recipient', RECIPIENT)
        key = self.file('key', IDENTITY.encode())
        size = int(lines(statement.read_text())['size'])
        self.assertLess(size, path.stat().st_size)
        self.verified(path, 0, '--identity', key, '--statement', statement)
        other = self.file('other', statement.read_bytes().replace(b'size: %d' % size, b'size: %d' % (size + 1)))
        self.assertIn('size', self.verified(path, 11, '--identity', key, '--statement', other)[0])

    def test_root_that_was_written_down(self):
        path, statement = self.stated()
        root = lines(statement.read_text())['root']
        other = root[:-1] + ('1' if root[-1] == '0' else '0')
        self.assertIn(f'root {root};', self.verified(path, 0, '--root', root)[0])
        self.verified(path, 0, '--root', root.upper())
        self.assertTrue(json.loads(self.verified(path, 0, '--json', '--root', root)[0])['root_matches'])
        self.assertIn(f'the root is {root}, and not the one of --root', self.verified(path, 11, '--root', other)[1])
        self.assertIs(json.loads(self.verified(path, 11, '--json', '--root', other)[0])['root_matches'], False)
        for bad in root[:-1], root + '0', root[:-1] + 'g', '':
            self.assertIn('64 hexadecimal digits', self.verified(path, 2, '--root', bad)[1])
        self.assertIn('about one container', self.verified(path, 2, '--root', root, path)[1])
        cut = self.file('cut', path.read_bytes()[:-1])
        self.verified(cut, 7, '--root', other)  # what is lost comes first

    def test_nothing_is_written_unless_asked(self):
        path, _ = self.acquire(self.file('image', memory(16)))
        self.assertEqual(sorted(p.name for p in self.at.iterdir()), ['image', 'out.rsz'])
        self.assertTrue(path.exists())

    def test_the_json_summary_has_it(self):
        done = run('acquire', '--log-json', '--source', f'file:{self.file("image", memory(16))}',
                   '-o', self.at / 'out.rsz', '--statement', '-')
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = json.loads(done.stderr.splitlines()[-1])
        self.assertEqual(summary['statement'], done.stdout.decode())
        self.assertRegex(summary['statement'], FORM)
        self.assertEqual(lines(summary['statement'])['root'], summary['root'])

    def test_of_a_container_on_stdout(self):
        statement = self.at / 'statement'
        done = run('acquire', '-q', '--source', f'file:{self.file("image", memory(16))}', '-o', '-',
                   '--statement', statement)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = lines(statement.read_text())
        self.assertEqual((said['name'], int(said['size'])), ('stdout', len(done.stdout)))

    def test_hostile_names_stay_one_line(self):
        name = b'a\\b\n\xff.rsz'
        statement = self.at / 'statement'
        done = run('acquire', '-q', '--source', f'file:{self.file("image", memory(16))}', '-o',
                   os.fsdecode(os.fsencode(self.at) + b'/' + name), '--statement', statement)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(lines(statement.read_text())['name'], 'a\\\\b\\x0a\\xff.rsz')

    @needs_simulator
    def test_of_a_simulated_machine(self):
        statement = self.at / 'statement'
        done = run('acquire', '-q', '--source', SIMULATED, '-o', self.at / 'out.rsz',
                   '--statement', statement)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        said = lines(statement.read_text())
        self.assertEqual(said['source'], 'sim')
        self.assertEqual(said['outcome'], 'complete' if done.returncode == 0 else 'gaps')
        self.assertNotIn('tool_sha256', said)

    def broken_off(self, breaking):
        """What is said of an acquisition into a pipe whose reader breaks it off, and its exit code."""
        statement = self.at / 'statement'
        image = self.file('image', memory(20000))
        os.mkfifo(self.at / 'fifo')
        with subprocess.Popen([RAMSEAL, 'acquire', '-q', '-l', 'store', '--source', f'file:{image}',
                               '-o', self.at / 'fifo', '--statement', statement],
                              stderr=subprocess.DEVNULL) as child:
            with open(self.at / 'fifo', 'rb') as end:
                size = len(end.read(1 << 20))
                size += breaking(child, end)
            return child.wait(), size, lines(statement.read_text())

    def test_stopped(self):
        """On a SIGTERM the container is sealed, and the statement says that not all is in it."""
        def terminate(child, end):
            child.send_signal(signal.SIGTERM)
            return len(end.read())

        code, size, said = self.broken_off(terminate)
        self.assertEqual((code, said['outcome'], int(said['size'])), (8, 'stopped', size))

    def test_unsealed(self):
        """Nobody reads to the end: there is no root, and the statement does not name one."""
        code, _, said = self.broken_off(lambda child, end: 0)
        self.assertEqual((code, said['outcome']), (6, 'unsealed'))
        self.assertNotIn('root', said)


def changed(statement, line, value):
    """The statement with another value in one line; None: without it."""
    text = statement.read_text()
    new = re.sub(f'^{line}: .*\n', '' if value is None else f'{line}: {value}\n', text, flags=re.M)
    assert new != text
    statement.write_text(new)


class Verified(StatementCase):
    def test_what_agrees(self):
        path, statement = self.stated()
        shown, _ = self.verified(path, 0, '--statement', statement)
        self.assertIn('\n  statement: agrees with the container\n', shown)
        said = json.loads(run('verify', '--json', '--statement', statement, path).stdout)
        self.assertIs(said['statement']['agrees'], True)
        self.assertEqual(said['statement']['differences'], [])
        self.assertIsNone(said['statement']['signature'])
        # A file can be called otherwise, and can come from a pipe.
        renamed = path.rename(self.at / 'renamed.rsz')
        with open(renamed, 'rb') as container:
            self.verified('-', 0, '--statement', statement, stdin=container)

    @needs_simulator
    def test_what_agrees_of_a_simulated_machine(self):
        """Its source, and no host and no tool's hash in the manifest."""
        for seed in (1, 2):
            statement = self.at / f'{seed}.statement'
            done = run('acquire', '-q', '--source', f'{SIMULATED},seed={seed}',
                       '-o', self.at / f'{seed}.rsz', '--statement', statement)
            self.assertIn(done.returncode, (0, 3), done.stderr)
            self.verified(self.at / f'{seed}.rsz', 0, '--statement', statement)
        shown, _ = self.verified(self.at / '1.rsz', 11, '--statement', self.at / '2.statement')
        self.assertIn('  statement: root is ', shown)

    def test_every_line_that_differs_is_named(self):
        path, statement = self.stated()
        text = statement.read_text()
        for line, value in (('container', '0' * 32), ('root', '0' * 64), ('size', '1'),
                            ('outcome', 'gaps'), ('source', 'kcore'), ('host', 'another'),
                            ('begin', '2020-01-01T00:00:00.000000000Z'), ('begin_mono_ns', '7'),
                            ('tool', 'ramseal 0.0.1'), ('tool_sha256', 'f' * 64)):
            with self.subTest(line):
                statement.write_text(text)
                changed(statement, line, value)
                shown, error = self.verified(path, 11, '--statement', statement)
                self.assertIn(f'\n  statement: {line} is {value}, but in the container ', shown)
                self.assertEqual(shown.count('statement: '), 1)
                self.assertIn(f'out.rsz.statement: {line} is ', error)
                said = json.loads(run('verify', '--json', '--statement', statement, path).stdout)
                self.assertEqual([d['line'] for d in said['statement']['differences']], [line])
                self.assertEqual(said['statement']['differences'][0]['statement'], value)

    def test_another_container_of_the_same_memory(self):
        path, statement = self.stated()
        other, _ = self.stated('other.rsz')
        shown, _ = self.verified(other, 11, '--statement', statement)
        for line in ('container', 'root', 'begin'):
            self.assertIn(f'  statement: {line} is ', shown)
        self.verified(path, 0, '--statement', statement)

    def test_damage_comes_before_what_is_stated(self):
        path, statement = self.stated()
        whole = path.read_bytes()
        path.write_bytes(whole[:-100])
        shown, _ = self.verified(path, 7, '--statement', statement)
        self.assertIn('  statement: is for this container; nothing else was compared\n', shown)
        path.write_bytes(whole[:5000] + b'\xff' + whole[5001:])
        shown, _ = self.verified(path, 7, '--statement', statement)
        self.assertNotIn('agrees', shown)

    def test_a_statement_without_a_root_vouches_for_nothing(self):
        path, statement = self.stated()
        changed(statement, 'root', None)
        changed(statement, 'outcome', 'unsealed')
        shown, error = self.verified(path, 11, '--statement', statement)
        self.assertIn('vouches for nothing', shown)
        self.assertIn('has no root', error)

    def test_what_was_sealed_later(self):
        """The acquisition did not seal it, as its statement says: that does not differ."""
        path, statement = self.stated()
        path.write_bytes(path.read_bytes()[:-100])
        self.assertEqual(run('seal', '-q', path).returncode, 0)
        changed(statement, 'root', None)
        changed(statement, 'outcome', 'unsealed')
        said = json.loads(run('verify', '--json', '--statement', statement, path).stdout)
        self.assertEqual([d['line'] for d in said['statement']['differences']], ['root'])

    def test_what_is_no_statement(self):
        path, statement = self.stated()
        text = statement.read_bytes()
        for content in (b'', b'hello\n', text + b'\n', text[:-1], text.replace(b'\n', b'\r\n'), text * 1000,
                        text.replace(b'statement 1', b'statement 2'), path.read_bytes()[:1000]):
            statement.write_bytes(content)
            shown, error = self.verified(path, 9, '--statement', statement)
            self.assertEqual(shown, '')
            self.assertIn('out.rsz.statement: ', error)
        self.verified(path, 9, '--statement', self.at / 'missing')
        self.verified(path, 9, '--statement', self.at)

    def test_options_that_need_others(self):
        path, statement = self.stated()
        for args in (('--signature', 'x', '--signers', 'y'), ('--timestamp', 'x'), ('--signers', 'y'),
                     ('--statement', statement, '--signature', 'x'), ('--signer', 'x'),
                     ('--statement', statement, '--signers', 'x'), ('--statement', statement, path)):
            self.verified(path, 2, *args)


@unittest.skipUnless(shutil.which('ssh-keygen'), 'no ssh-keygen')
class Signed(StatementCase):
    """Each case is put to ssh-keygen -Y verify, too, which must say the same."""

    def key(self, name, *kind):
        subprocess.run(['ssh-keygen', '-q', '-t', *(kind or ['ed25519']), '-N', '', '-C', name, '-f',
                        self.at / name], check=True)
        return (self.at / f'{name}.pub').read_text()

    def sign(self, key, file, name_space='ramseal', *args):
        signature = Path(f'{file}.sig')
        signature.unlink(missing_ok=True)
        subprocess.run(['ssh-keygen', '-q', '-Y', 'sign', '-n', name_space, '-f', self.at / key, *args, file],
                       check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return signature

    def judged(self, code, part, statement, signature, lines, signer=None, keygen=None):
        """What verify says; `part` is in its line. `keygen`: what ssh-keygen thinks, if not the same."""
        signers = self.file('signers', lines.encode())
        shown, error = self.verified(self.path, code, '--statement', statement, '--signature', signature,
                                     '--signers', signers, *(['--signer', signer] if signer else []))
        self.assertIn(part, error if code == 9 else shown)
        with open(statement, 'rb') as message:
            said = subprocess.run(['ssh-keygen', '-Y', 'verify', '-n', 'ramseal', '-f', signers, '-I',
                                   signer or 'alice@example.org', '-s', signature], stdin=message,
                                  capture_output=True)
        self.assertEqual(said.returncode == 0, code == 0 if keygen is None else keygen, said)
        return shown

    def setUp(self):
        super().setUp()
        self.path, self.statement = self.stated()
        self.alice = 'alice@example.org ' + self.key('alice')

    def test_good(self):
        signature = self.sign('alice', self.statement)
        shown = self.judged(0, '  signature: good, by alice@example.org (line 1 ', self.statement, signature, self.alice)
        key = subprocess.run(['ssh-keygen', '-l', '-f', self.at / 'alice.pub'], capture_output=True, check=True)
        self.assertIn(key.stdout.split()[1].decode(), shown)
        self.judged(0, 'good', self.statement, self.sign('alice', self.statement, 'ramseal', '-O', 'hashalg=sha256'),
                    self.alice)
        said = json.loads(run('verify', '--json', '--statement', self.statement, '--signature', signature,
                              '--signers', self.at / 'signers', self.path).stdout)['statement']['signature']
        self.assertEqual((said['good'], said['signer']), (True, 'alice@example.org'))

    def test_the_container_is_another(self):
        """A good signature over a good statement, which is not about this container."""
        signature = self.sign('alice', self.statement)
        self.path, _ = self.stated('other.rsz')
        self.judged(11, 'good, by alice', self.statement, signature, self.alice, keygen=True)

    def test_tampered_statement(self):
        signature = self.sign('alice', self.statement)
        changed(self.statement, 'name', 'another')
        self.judged(11, 'not good: ', self.statement, signature, self.alice)

    def test_wrong_name_space(self):
        self.judged(11, 'is for "file", not for "ramseal"', self.statement,
                    self.sign('alice', self.statement, 'file'), self.alice)

    def test_wrong_signer(self):
        mallory = self.key('mallory')
        signature = self.sign('mallory', self.statement)
        self.judged(11, 'no line has this key', self.statement, signature, self.alice)
        self.judged(11, 'no line has this key', self.statement, signature,
                    self.alice + 'mallory@example.org ' + mallory, 'alice@example.org')
        self.judged(0, 'good, by mallory', self.statement, signature,
                    self.alice + 'mallory@example.org ' + mallory, 'mallory@example.org')
        self.judged(11, 'no line has this key', self.statement, signature, '')

    def test_options_of_a_signer(self):
        signature = self.sign('alice', self.statement)
        key = self.alice.split(' ', 1)[1]
        for options, code, part in (
                ('namespaces="ramseal"', 0, 'good'), ('namespaces="git,ram*"', 0, 'good'),
                ('namespaces="git"', 11, 'namespaces='), ('namespaces="*,!ramseal"', 11, 'namespaces='),
                ('valid-after="20200101"', 0, 'good'), ('valid-after="20370101"', 11, 'not valid yet'),
                ('valid-before="20370101"', 0, 'good'), ('valid-before="20200101"', 11, 'no longer valid'),
                ('valid-after="20200101",valid-before="20210101Z",namespaces="ramseal"', 11, 'no longer'),
                ('cert-authority', 11, 'no line has this key')):
            with self.subTest(options):
                self.judged(code, part, self.statement, signature, f'*@example.org {options} {key}')

    def test_lines_that_cannot_be_read(self):
        signature = self.sign('alice', self.statement)
        for line in ('alice@example.org\n', 'alice@example.org ssh-ed25519 AAAA\n',
                     'alice@example.org valid-after="yesterday" ' + self.alice.split(' ', 1)[1],
                     'alice@example.org valid-after="20270101",valid-before="20260101" ' + self.alice.split(' ', 1)[1],
                     'alice@example.org namespaces=ramseal ' + self.alice.split(' ', 1)[1],
                     'alice@example.org colour="red" ' + self.alice.split(' ', 1)[1]):
            # They are passed over, and named if no other line will do.
            self.judged(0, 'line 3 ', self.statement, signature, '# comment\n' + line + self.alice)
            self.judged(9, 'line 2: ', self.statement, signature, '# comment\n' + line + self.alice.replace('AAAAC', 'AAAAB'))

    def test_garbage(self):
        good = self.sign('alice', self.statement).read_text()
        for text in ('', 'hello', good[:100], good.replace('BEGIN', 'BEGAN'), good.replace('U1NI', 'AAAA'),
                     '\0' * 100000):
            self.judged(9, '.sig: ', self.statement, self.file('bad.sig', text.encode()), self.alice)
        middle = len(good) - 50  # of the signature proper
        flipped = good[:middle] + ('A' if good[middle] != 'A' else 'B') + good[middle + 1:]
        self.verified(self.path, 11, '--statement', self.statement, '--signature',
                      self.file('bad.sig', flipped.encode()), '--signers', self.file('signers', self.alice.encode()))

    def test_other_keys_are_ssh_keygens(self):
        for kind in (('rsa', '-b', '2048'), ('ecdsa',)):
            key = self.key(kind[0], *kind)
            self.judged(9, 'ssh-keygen -Y verify', self.statement, self.sign(kind[0], self.statement),
                        'alice@example.org ' + key, keygen=True)

    @unittest.skipUnless(shutil.which('openssl'), 'no openssl')
    def test_a_security_token(self):
        """No token is at hand: its signature is made as PROTOCOL.u2f says, and ssh-keygen has to like it."""
        def string(data):
            return struct.pack('>I', len(data)) + data

        private = self.at / 'token.pem'
        subprocess.run(['openssl', 'genpkey', '-algorithm', 'ed25519', '-out', private], check=True)
        public = subprocess.run(['openssl', 'pkey', '-in', private, '-pubout', '-outform', 'DER'],
                                check=True, capture_output=True).stdout[-32:]
        kind = b'sk-ssh-ed25519@openssh.com'
        key = string(kind) + string(public) + string(b'ssh:')
        signed = b'SSHSIG' + string(b'ramseal') + string(b'') + string(b'sha512') + string(
            hashlib.sha512(self.statement.read_bytes()).digest())
        presence = b'\1' + struct.pack('>I', 7)
        message = self.file('message', hashlib.sha256(b'ssh:').digest() + presence + hashlib.sha256(signed).digest())
        made = subprocess.run(['openssl', 'pkeyutl', '-sign', '-inkey', private, '-rawin', '-in', message],
                              check=True, capture_output=True).stdout
        for seen, code in ((presence, 0), (b'\1' + struct.pack('>I', 8), 11)):
            blob = b'SSHSIG' + struct.pack('>I', 1) + string(key) + string(b'ramseal') + string(b'') + string(
                b'sha512') + string(string(kind) + string(made) + seen)
            text = base64.encodebytes(blob).decode()
            signature = self.file('token.sig', f'-----BEGIN SSH SIGNATURE-----\n{text}-----END SSH SIGNATURE-----\n'.encode())
            self.judged(code, 'good', self.statement, signature,
                        f'alice@example.org {kind.decode()} {base64.b64encode(key).decode()}\n')


AUTHORITY = """[req]
distinguished_name = name
prompt = no
x509_extensions = uses
[name]
CN = Time stamps for a test
[uses]
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping
[tsa]
default_tsa = here
[here]
serial = {at}/serial
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256, sha384, sha512
ess_cert_id_alg = sha256
"""


@unittest.skipUnless(shutil.which('openssl'), 'no openssl')
class StampedCase(StatementCase):
    """An authority of openssl's own."""

    def setUp(self):
        super().setUp()
        self.file('serial', b'01\n')
        self.config = self.file('authority.cnf', AUTHORITY.format(at=self.at).encode())
        self.openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-config',
                     self.config, '-keyout', self.at / 'key', '-out', self.at / 'ca', '-days', '30')

    def openssl(self, *args):
        done = subprocess.run(['openssl', *map(str, args)], capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def answer(self, query):
        """What the authority answers to these bytes."""
        return self.openssl('ts', '-reply', '-config', self.config, '-queryfile', self.file('query', query),
                            '-signer', self.at / 'ca', '-inkey', self.at / 'key')

    def stamp(self, statement, *digest):
        query = self.openssl('ts', '-query', '-data', statement, *(digest or ['-sha256']), '-cert')
        return self.file('answer.tsr', self.answer(query))

    def likes(self, statement, stamp):
        done = subprocess.run(['openssl', 'ts', '-verify', '-data', statement, '-in', stamp, '-CAfile', self.at / 'ca'],
                              capture_output=True)
        return done.returncode == 0


class Stamped(StampedCase):
    def setUp(self):
        super().setUp()
        self.path, self.statement = self.stated()

    def judged(self, code, part, stamp):
        shown, error = self.verified(self.path, code, '--statement', self.statement, '--timestamp', stamp)
        self.assertIn(part, error if code == 9 else shown)

    def test_good(self):
        for digest in ('-sha256', '-sha512'):
            before = time.time()
            stamp = self.stamp(self.statement, digest)
            self.assertTrue(self.likes(self.statement, stamp))
            self.judged(0, '  time stamp: for this statement, and says 20', stamp)
            said = json.loads(run('verify', '--json', '--statement', self.statement, '--timestamp', stamp,
                                  self.path).stdout)['statement']['timestamp']
            self.assertIs(said['over_statement'], True)
            self.assertIs(said['signer_checked'], False)
            at = calendar.timegm(time.strptime(said['time'][:19], '%Y-%m-%dT%H:%M:%S'))
            self.assertTrue(before - 2 <= at <= time.time() + 2, said)

    def test_over_another_statement(self):
        stamp = self.stamp(self.file('another', b'hello'))
        self.assertFalse(self.likes(self.statement, stamp))
        self.judged(11, '  time stamp: not good: ', stamp)
        stamp = self.stamp(self.statement)
        changed(self.statement, 'name', 'another')
        self.judged(11, 'stamps other bytes', stamp)

    def test_other_hashes_are_openssls(self):
        stamp = self.stamp(self.statement, '-sha384')
        self.assertTrue(self.likes(self.statement, stamp))
        self.judged(9, 'openssl ts -verify', stamp)

    def test_refused(self):
        refusal = self.answer(self.openssl('ts', '-query', '-data', self.statement, '-md5'))
        self.judged(9, 'the time-stamping authority refused: status 2, badAlg: Message digest', self.file('no.tsr', refusal))

    def test_garbage(self):
        good = self.stamp(self.statement).read_bytes()
        for content in (b'', b'<html>', good[:-1], good + b'\0', good[:40], good[9:], bytes(2 << 20)):
            self.judged(9, 'bad.tsr: ', self.file('bad.tsr', content))


class Authority(http.server.BaseHTTPRequestHandler):
    """Answers as the server's `answer(query)` says: a status and bytes; None: nothing at all, ever."""

    def do_POST(self):
        query = self.rfile.read(int(self.headers['Content-Length']))
        self.server.asked.append((self.path, self.headers['Content-Type'], query))
        said = self.server.answer(query)
        if said is None:
            self.server.end.wait()
            return
        status, content = said
        self.send_response(status)
        self.send_header('Content-Type', 'application/timestamp-reply')
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


HAS_NETWORK = b'Network: yes' in run('--version', '--verbose').stdout


@unittest.skipUnless(HAS_NETWORK, 'built without the network')
class AskedForATimestamp(StampedCase):
    def serve(self, answer, certificate=None):
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Authority)
        server.answer, server.asked, server.end = answer, [], threading.Event()
        server.daemon_threads = True
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={'poll_interval': .05})
        thread.start()
        for end in (server.server_close, thread.join, server.shutdown, server.end.set):
            self.addCleanup(end)
        self.server = server
        return f'http{"s" if certificate else ""}://127.0.0.1:{server.server_port}/tsa?who=me'

    def stamped(self, url, code=0, *args):
        """Acquires, with a time stamp from there: the last line of the log."""
        done = run('acquire', '--log-json', '--source', f'file:{self.file("image", memory(16))}', '-o',
                   self.at / 'out.rsz', '--statement', self.at / 'statement', '--timestamp-url', url, *args)
        self.assertEqual(done.returncode, code, done.stderr)
        self.log = [json.loads(line) for line in done.stderr.splitlines()]
        return self.log[-1]

    def missing(self, url, why, *args):
        """The container is whole, the statement is there, and it is said why there is no time stamp."""
        said = self.stamped(url, 0, *args)
        self.assertIn(why, said['timestamp']['problem'])
        self.assertIsNone(said['timestamp']['file'])
        self.assertEqual([line['event'] for line in self.log if line['level'] == 'warning'], ['timestamp-missing'])
        self.assertFalse([p.name for p in self.at.iterdir() if 'statement.tsr' in p.name])
        self.verified(self.at / 'out.rsz', 0, '--statement', self.at / 'statement')
        for name in ('out.rsz', 'statement'):
            (self.at / name).unlink()

    def test_good(self):
        said = self.stamped(self.serve(lambda query: (200, self.answer(query))))
        stamp = self.at / 'statement.tsr'
        self.assertEqual(said['timestamp'], {'file': str(stamp), 'problem': None})
        self.assertEqual(said['statement'], (self.at / 'statement').read_text())
        self.assertTrue(self.likes(self.at / 'statement', stamp))
        self.verified(self.at / 'out.rsz', 0, '--statement', self.at / 'statement', '--timestamp', stamp)
        (path, kind, query), = self.server.asked
        self.assertEqual((path, kind), ('/tsa?who=me', 'application/timestamp-query'))
        self.assertEqual(query, self.openssl('ts', '-query', '-data', self.at / 'statement', '-sha256', '-no_nonce',
                                             '-cert'))

    def test_once_more_where_that_may_help(self):
        answers = [(503, b''), None]
        url = self.serve(lambda query: answers[0] if len(self.server.asked) == 1 else (200, self.answer(query)))
        self.stamped(url)
        self.assertEqual(len(self.server.asked), 2)

    def test_what_is_no_time_stamp(self):
        refusal = self.answer(self.openssl('ts', '-query', '-data', self.config, '-md5'))
        another = self.stamp(self.config).read_bytes()
        for answer, why in (((404, b'no'), 'HTTP 404'), ((500, b''), 'HTTP 500'), ((200, b'<html>'), 'is not an answer'),
                            ((200, b''), 'is not an answer'), ((302, b''), 'HTTP 302'), ((200, refusal), 'refused: status 2'),
                            ((200, another), 'stamps other bytes'), ((200, bytes(3 << 20)), '')):
            with self.subTest(why):
                self.missing(self.serve(lambda query, answer=answer: answer), why)

    def test_nobody_there(self):
        url = self.serve(lambda query: None)
        self.server.server_close()
        self.missing(url, 'cannot connect')

    def test_a_signal_ends_the_waiting(self):
        url = self.serve(lambda query: None)
        child = subprocess.Popen([RAMSEAL, 'acquire', '-q', '--source', f'file:{self.file("image", memory(16))}', '-o',
                                  self.at / 'out.rsz', '--statement', self.at / 'statement', '--timestamp-url', url],
                                 stderr=subprocess.PIPE)
        while not self.server.asked:
            time.sleep(.05)
        child.send_signal(signal.SIGINT)
        error = child.stderr.read()
        child.stderr.close()
        self.assertEqual(child.wait(), 0, error)
        self.assertIn(b'no time stamp: ', error)
        self.verified(self.at / 'out.rsz', 0, '--statement', self.at / 'statement')

    def test_over_tls_only_who_is_trusted(self):
        def certificate(name):
            made = self.at / f'{name}.pem'
            self.openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=tsa',
                         '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', self.at / 'tls.key', '-out', made, '-days', '30')
            made.write_bytes(made.read_bytes() + (self.at / 'tls.key').read_bytes())
            return made

        mine, other = certificate('mine'), certificate('other')
        url = self.serve(lambda query: (200, self.answer(query)), mine)
        self.missing(url, 'certificate', '--timestamp-ca', other)
        self.assertEqual(self.server.asked, [])
        self.stamped(url, 0, '--timestamp-ca', mine)
        self.assertTrue(self.likes(self.at / 'statement', self.at / 'statement.tsr'))

    def test_before_anything_is_read(self):
        image, statement = self.file('image', memory(16)), self.at / 'statement'
        start = ('acquire', '-q', '--source', f'file:{image}', '-o', self.at / 'out.rsz')
        url = 'http://127.0.0.1:1/'
        for args, code in ((('--timestamp-url', url), 2), (('--statement', '-', '--timestamp-url', url), 2),
                           (('--statement', statement, '--timestamp-url', 'https://127.0.0.1:1/'), 2),
                           (('--statement', statement, '--timestamp-url', 'ftp://127.0.0.1/'), 2),
                           (('--statement', statement, '--timestamp-ca', image), 2),
                           (('--statement', statement, '--timestamp-url', url, '--timestamp-ca', image), 2),
                           (('--statement', statement, '--timestamp-url', 'https://127.0.0.1:1/',
                             '--timestamp-ca', self.at / 'no'), 9),
                           (('--statement', statement, '--timestamp-url', 'https://127.0.0.1:1/',
                             '--timestamp-ca', image), 2)):
            with self.subTest(args):
                self.one_line(run(*start, *args), code)
        (self.at / 'statement.tsr').write_bytes(b'precious')
        self.one_line(run(*start, '--statement', statement, '--timestamp-url', url), 6)
        self.assertEqual((self.at / 'statement.tsr').read_bytes(), b'precious')
        self.assertFalse((self.at / 'out.rsz').exists())


@unittest.skipIf(HAS_NETWORK, 'built with the network')
class WithoutNetwork(StatementCase):
    def test_no_time_stamp_is_asked_for(self):
        done = run('acquire', '-q', '--source', f'file:{self.file("image", memory(16))}', '-o', self.at / 'out.rsz',
                   '--statement', self.at / 'statement', '--timestamp-url', 'http://127.0.0.1:1/')
        self.one_line(done, 2)
        self.assertIn(b'built without the network', done.stderr)
        self.assertEqual([p.name for p in self.at.iterdir()], ['image'])


class AcquiredBadly(StatementCase):
    def refused(self, code, message, *args):
        image = self.at / 'image'
        if not image.exists():
            image.write_bytes(memory(16))
        before = sorted(self.at.iterdir())
        done = run('acquire', '-q', '--source', f'file:{image}', *args)
        self.one_line(done, code)
        self.assertIn(message, done.stderr.decode())
        self.assertEqual(sorted(self.at.iterdir()), before)

    def test_before_anything_is_read(self):
        out, there = self.at / 'out.rsz', self.file('there', b'precious')
        self.refused(6, 'there', '-o', out, '--statement', there)
        self.assertEqual(there.read_bytes(), b'precious')
        self.refused(6, 'container and statement', '-o', out, '--statement', out)
        self.refused(6, 'container and statement', '-o', out, '--statement', out, '--force')
        self.refused(6, 'image', '-o', out, '--statement', self.at / 'image', '--force')
        self.refused(6, 'missing', '-o', out, '--statement', self.at / 'missing/statement')
        self.refused(2, 'cannot be combined', '-o', '-', '--statement', '-')
        self.refused(2, 'is about a container', '-F', 'raw', '-o', out, '--statement', '-')

    @unittest.skipUnless(os.path.exists('/dev/full'), 'no /dev/full')
    def test_a_statement_that_is_lost(self):
        done = run('acquire', '-q', '--source', f'file:{self.file("image", memory(16))}', '-o',
                   self.at / 'out.rsz', '--statement', '/dev/full')
        self.one_line(done, 6)
        self.assertIn(b'the container is sealed, but its statement is lost', done.stderr)
        self.verify(self.at / 'out.rsz')


if __name__ == '__main__':
    unittest.main(verbosity=2)
