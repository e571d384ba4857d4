#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Every target, and every command that is given secrets: they reach the server, and are seen nowhere
else: on no command line, in no output, log, state, spool, statement or manifest. Usage: test_secrets.py
RAMSEAL
"""

import base64
import contextlib
import http.client
import http.server
import json
import os
import signal
import subprocess
import threading
import time
import unittest
import urllib.parse
from pathlib import Path

import azblob_server
import s3_server
import upload_case
from upload_case import MIB, RAMSEAL, SESSION, SMALL

PROXY_PASSWORD = 'pRoXyPaSs%2FwOrD-of-the-tests'
PRESIGNED = 'PrEsIgNeDsIgNaTuReOfTheTests0123456789'
# Both are for all to see, in tests/gen/age_recipe.h.
IDENTITY = 'AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX'
RECIPIENT = 'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj'


class Relay(http.server.BaseHTTPRequestHandler):
    """A proxy for http:// that wants a password."""
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def do_any(self):
        self.server.seen.append(self.headers.get('proxy-authorization', ''))
        url = urllib.parse.urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get('content-length', 0)))
        c = http.client.HTTPConnection(url.netloc, timeout=900)
        c.putrequest(self.command, urllib.parse.urlunsplit(('', '', *url[2:])), skip_host=True,
                     skip_accept_encoding=True)
        for name, value in self.headers.items():
            if not name.lower().startswith('proxy-'):
                c.putheader(name, value)
        c.endheaders(body)
        answer = c.getresponse()
        content = answer.read()
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() != 'content-length' or self.command == 'HEAD':
                self.send_header(name, value)
        if self.command != 'HEAD':
            self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        c.close()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_any


class Shelf(http.server.BaseHTTPRequestHandler):
    """Takes what a presigned URL allows."""
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def do_any(self):
        content = self.rfile.read(int(self.headers.get('content-length', 0)))
        path, _, query = self.path.partition('?')
        self.server.seen.append(query)
        status = 403 if self.server.refuses else 404
        if self.command == 'PUT' and not self.server.refuses:
            self.server.objects[path], status = content, 201
        self.send_response(status)
        self.send_header('Content-Length', '0')
        self.end_headers()

    do_PUT = do_HEAD = do_any


# What each of them gives a command: arguments, variables of the environment, and what nobody may see.

class Target:
    streams = resumes = True  # it can be acquired to, and what was killed completed
    state = True

    def __init__(self, case):
        self.case, self.args, self.env = case, [], {}
        self.secrets, self.files, self.address = [], {}, None
        self.start()

    def file(self, name, text):
        """Beside the folder of the command, where everything is searched."""
        path = self.case.kept / name
        path.write_text(text)
        return f'@{path}'

    def to(self):
        """Where to: an operand or an option."""
        return [self.address]

    def serve(self, server, **more):
        vars(server).update(more)
        self.case.addCleanup(server.server_close)
        self.case.addCleanup(server.shutdown)
        return server

    def thread(self, handler, **more):
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
        server.daemon_threads, server.handle_error = True, lambda *_: None
        threading.Thread(target=self.serve(server, **more).serve_forever, daemon=True).start()
        return server.server_address[1]


class S3(Target):
    token, google, scheme = SESSION, False, 's3'

    def start(self):
        self.store = s3_server.Store(token=self.token, google=self.google,
                                     region='auto' if self.google else 'us-east-1')
        self.port = self.serve(s3_server.Server(self.store)).port
        self.address = f'{self.scheme}://evidence/x.rsz'
        self.secrets = [s3_server.ID, s3_server.SECRET] + [self.token] * bool(self.token)
        self.give_keys({'AWS_ACCESS_KEY_ID': s3_server.ID, 'AWS_SECRET_ACCESS_KEY': s3_server.SECRET,
                        'AWS_SESSION_TOKEN': self.token or None, 'AWS_ENDPOINT_URL': f'http://127.0.0.1:{self.port}'})

    def give_keys(self, keys):
        self.env = keys

    def hold(self):
        self.store.faults.hold = '^PUT .*partNumber=', 1

    def moving(self):
        return any(u.parts for u in list(self.store.uploads.values()))

    def refuse(self):
        self.store.faults.answers = [('', 403, 'AccessDenied', ())] * 20

    def content(self):
        return self.store.buckets['evidence'].pop('x.rsz', None)

    def check_reached(self):
        self.case.assertTrue(all(s3_server.ID in h['authorization'] and
                                 h.get('x-amz-security-token', '') == self.token
                                 for _, _, h in self.requests()))

    def requests(self):
        return [(m, p, {k.lower(): v for k, v in h.items()}) for m, p, h in self.store.requests]


class S3Proxied(S3):
    """Keys in a file, and a proxy."""

    def give_keys(self, keys):
        self.seen = []
        port = self.thread(Relay, seen=self.seen)
        text = ''.join(f'{name} = {value}\n' for name, value in keys.items() if value)
        proxy = f'http://agent:{PROXY_PASSWORD}@127.0.0.1:{port}'
        self.args = ['--keys', self.file('keys', text), '--proxy', self.file('proxy', proxy)]
        self.secrets += [PROXY_PASSWORD, urllib.parse.unquote(PROXY_PASSWORD)]

    def check_reached(self):
        super().check_reached()
        password = base64.b64encode(f'agent:{urllib.parse.unquote(PROXY_PASSWORD)}'.encode()).decode()
        self.case.assertIn(f'Basic {password}', self.seen)


class Google(S3):
    token, google, scheme = '', True, 'gs'


class Azure(Target):
    def start(self):
        self.store = azblob_server.Store(rights='rcw')
        self.port = self.serve(azblob_server.Server(self.store)).port
        url = f'azblob:http://127.0.0.1:{self.port}/evidence/x.rsz?{self.store.sas}'
        self.given = ['--to', self.file('to', url)]
        self.secrets = [azblob_server.SIGNATURE]

    def to(self):
        return self.given

    def hold(self):
        self.store.faults.hold = '^PUT .*comp=block&', 2  # the probe and a block

    def moving(self):
        blob = self.store.containers['evidence'].get('x.rsz')
        return blob and len(blob.waiting) > 1  # one is the probe

    def refuse(self):
        self.store.faults.answers = [('', 403, 'AuthenticationFailed', ())] * 20

    def content(self):
        blob = self.store.containers['evidence'].pop('x.rsz', None)
        return blob and blob.content

    def check_reached(self):
        self.case.assertTrue(all(urllib.parse.quote(azblob_server.SIGNATURE, safe='') in path
                                 for _, path, _ in self.store.requests))


class Presigned(Target):
    streams = resumes = False

    def start(self):
        self.shelf = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Shelf)
        threading.Thread(target=self.serve(self.shelf, seen=[], objects={}, refuses=False).serve_forever,
                         daemon=True).start()
        url = f'http://127.0.0.1:{self.shelf.server_address[1]}/x.rsz?X-Amz-Signature={PRESIGNED}'
        self.given = ['--to', self.file('to', url)]
        self.secrets = [PRESIGNED]

    def to(self):
        return self.given

    def refuse(self):
        self.shelf.refuses = True

    def content(self):
        return self.shelf.objects.pop('/x.rsz', None)

    def check_reached(self):
        self.case.assertIn(f'X-Amz-Signature={PRESIGNED}', self.shelf.seen)


class Receiver(Target):
    resumes = state = False

    def start(self):
        self.folder = self.case.kept / 'received'
        self.folder.mkdir()
        pin = {}
        for name in ('receiver.key', 'sender.key'):
            done = subprocess.run([RAMSEAL, 'receive', '--new-key', self.case.kept / name], capture_output=True)
            self.case.assertEqual(done.returncode, 0, done.stderr)
            pin[name] = done.stdout.decode().strip()
        self.process = subprocess.Popen(
            [RAMSEAL, 'receive', '--log-json', '--listen', '127.0.0.1:0', '--key', self.case.kept / 'receiver.key',
             '--dir', self.folder, '--sender', pin['sender.key']], stderr=subprocess.PIPE)
        self.case.addCleanup(self.end)
        first = json.loads(self.process.stderr.readline())
        self.address = f'tls://{first["address"]}'
        pem = (self.case.kept / 'sender.key').read_text()
        self.secrets = [line for line in pem.splitlines() if '-----' not in line and len(line) > 20]
        self.case.assertTrue(self.secrets)
        self.args = ['--pin', first['pin'], '--client-key', f'@{self.case.kept / "sender.key"}']

    def end(self):
        """What it has said is searched, too."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.case.seen['the receiver'] = self.process.communicate(timeout=900)[1]

    def refuse(self):
        self.args[1] = 'sha256//' + 43 * 'A' + '='

    def moving(self):
        return any(p.stat().st_size > MIB for p in self.folder.rglob('*') if p.is_file())

    def content(self):
        found = [p for p in self.folder.rglob('*.rsz') if p.is_file()]
        return found[0].read_bytes() if found else None

    def check_reached(self):
        self.end()
        self.case.assertIsNotNone(self.content())


class Secrets(upload_case.Case):
    def setUp(self):
        super().setUp()
        self.kept = self.at / 'kept'  # what holds the secrets, and may
        self.work = self.at / 'work'
        self.kept.mkdir()
        self.work.mkdir()
        self.seen = {}  # what was looked at: bytes

    def environment_of(self, target):
        return {**self.environment(AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None, AWS_ENDPOINT_URL=None),
                **{k: v for k, v in target.env.items() if v}}

    def look_at(self, name, process, target):
        """While it runs: what every user of the machine can see, and what waits on its disk."""
        at = Path(f'/proc/{process.pid}')
        with contextlib.suppress(OSError):
            self.seen[f'{name}: command line'] = (at / 'cmdline').read_bytes()
            if not target.env:  # whoever gives keys in variables finds them there
                self.seen[f'{name}: environment'] = (at / 'environ').read_bytes()
            for fd in (at / 'fd').iterdir():
                with contextlib.suppress(OSError):
                    if os.readlink(fd).startswith(str(self.work)):
                        self.seen[f'{name}: an open file'] = fd.read_bytes()
        for path in self.work.rglob('*'):
            with contextlib.suppress(OSError):
                self.seen[f'{name}: {path.name}'] = path.read_bytes() if path.is_file() else b''

    def run_and_look(self, name, target, *args, kill=None):
        process = subprocess.Popen(self.command(*args), cwd=self.work, env=self.environment_of(target),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out = []
        reader = threading.Thread(target=lambda: out.extend(process.communicate(timeout=900)))
        reader.start()
        while reader.is_alive():
            self.look_at(name, process, target)
            if kill and kill():
                process.kill()
            time.sleep(0.05)
        self.seen[f'{name}: stdout'], self.seen[f'{name}: stderr'] = out
        self.seen[f'{name}: arguments'] = b' '.join(os.fsencode(str(a)) for a in args)
        return process.returncode, out[1]

    def expect(self, code, got):
        self.assertEqual(got[0], code, got[1])

    def find_in(self, text, secret):
        quoted = urllib.parse.quote(secret, safe='')
        forms = {secret, quoted, urllib.parse.quote_plus(secret), secret.replace('/', '\\/'),
                 base64.b64encode(secret.encode()).decode().rstrip('=')[:-1], secret.encode().hex()}
        return [form for form in forms if form.encode() in text]

    def search(self, target):
        for name, text in self.seen.items():
            for secret in target.secrets:
                self.assertEqual(self.find_in(text, secret), [], name)

    def look_into(self, name, content):
        """The container that came there: its manifest and its log."""
        path = self.kept / 'fetched.rsz'
        path.write_bytes(content)
        for stream in ('manifest', 'log'):
            done = subprocess.run([RAMSEAL, 'extract', '-q', '-S', stream, '-o', '-', path], capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout)
            self.seen[f'{name}: {stream}'] = done.stdout
        path.unlink()

    def acquire(self, target):
        (self.work / 'spool').mkdir()
        image = self.kept / 'image'
        image.write_bytes(os.urandom(10 * MIB))  # a machine that is not simulated says more of itself
        how = ('-s', f'file:{image}', '--level', 'store', '-t1', '--spool', 'spool', '--spool-size', '1M')
        for log in ('--verbose', '--log-json'):
            name = f'acquire {log}'
            state = ['--upload-state', 'state'] if target.state else []
            got = self.run_and_look(name, target, log, 'acquire', *how, *target.to(), *target.args, *state,
                                    '--statement', 'statement', '--summary', 'summary', '--bwlimit', '10M', '--force')
            self.expect(0, got)
            self.look_into(name, target.content())
            self.assertIn(f'{name}: an open file', self.seen)
            self.assertEqual(f'{name}: state' in self.seen, target.state)
            (self.work / 'statement').unlink()
            summary = self.work / 'summary'
            self.assertEqual(json.loads(summary.read_text())['outputs'][0]['role'], 'container')
            self.seen[f'{name}: the whole summary'] = summary.read_bytes()
            summary.unlink()
        self.assertEqual(os.listdir(self.work), ['spool'])
        (self.work / 'spool').rmdir()

    def kill_and_finish(self, target):
        for how in ('state', 'address'):
            target.hold()
            got = self.run_and_look(f'killed, {how}', target, 'acquire', '-s', SMALL, '--level', 'store',
                                    *target.to(), *target.args, '--upload-state', 'state', kill=target.moving)
            target.store.faults.hold = None
            self.expect(-signal.SIGKILL, got)
            operand = ['state'] if how == 'state' else []
            if how == 'state':
                operand += [a for a in target.to() if a.startswith(('--to', '@'))]
            else:
                operand = [a for a in target.to() if a != '-o']
                (self.work / 'state').unlink()
            self.expect(0, self.run_and_look(f'upload --finish, {how}', target, '--verbose', 'upload', '--finish',
                                             *operand, *target.args))
            self.assertIsNotNone(target.content())
        self.expect(6, self.run_and_look('nothing to finish', target, 'upload', '--finish', *operand, *target.args))

    def everything(self, kind):
        target = kind(self)
        operand = target.to()
        target.to = lambda: operand if operand[0] == '--to' else ['-o', *operand]
        (self.kept / 'a.rsz').write_bytes(self.local['1'])
        if target.streams:
            self.acquire(target)
        if target.resumes:
            self.kill_and_finish(target)
        self.expect(0, self.run_and_look('upload', target, '--verbose', 'upload', self.kept / 'a.rsz', *operand,
                                         *target.args, *(['--force'] if kind is Google else [])))
        target.check_reached() if kind is not Receiver else None
        self.expect(0 if target.streams else 2,
                    self.run_and_look('check', target, 'check', '-s', SMALL, *target.to(), *target.args))
        target.refuse()
        for args in (('acquire', '-s', SMALL, *target.to()), ('upload', self.kept / 'a.rsz', *operand)):
            code, err = self.run_and_look(f'{args[0]}, refused', target, '--verbose', *args, *target.args)
            self.assertIn(code, (2, 6), err)
        if kind is Receiver:
            target.check_reached()
        self.assertGreater(len(self.seen), 12)
        self.search(target)

    def detach(self, target, keys, **more):
        """Begins, and looks at the process that goes on; ends when that does."""
        state = self.work / 'state.json'
        target.store.faults.hold = '^PUT .*partNumber=', 0
        done = subprocess.run(self.command('acquire', '--detach', '--state', state, '-s', SMALL, '--level', '1', '-t1',
                                           *keys, '-o', *target.to()), cwd=self.work, capture_output=True, timeout=900,
                              **more)
        self.expect(0, (done.returncode, done.stderr))
        at = Path(f'/proc/{json.loads(done.stdout)["pid"]}')
        self.seen['command line'] = (at / 'cmdline').read_bytes()
        if keys:
            self.seen['environment'] = (at / 'environ').read_bytes()
        target.store.faults.go_on.set()
        ended = subprocess.run(self.command('status', '--wait', '--json', '--state', state), capture_output=True,
                               timeout=900)
        self.expect(0, (ended.returncode, ended.stdout))
        self.seen.update({'stdout': done.stdout, 'stderr': done.stderr, 'status': ended.stdout,
                          'state': state.read_bytes()})

    def test_detached(self):
        """However a secret comes, it reaches the process that goes on; and nobody sees it there."""
        for way in 'variables', 'file', 'descriptor', 'stdin':
            with self.subTest(way):
                target = S3(self)
                text = '\n'.join(f'{k} = {v}' for k, v in target.env.items() if k != 'AWS_ENDPOINT_URL')
                clean = {**self.environment_of(target), **{k: '' for k in target.env if k != 'AWS_ENDPOINT_URL'}}
                keys = self.file('keys', text)
                with open(keys[1:], 'rb') as opened:
                    if way == 'variables':
                        self.detach(target, [], env=self.environment_of(target))
                    elif way == 'file':
                        self.detach(target, ['--keys', keys], env=clean)
                    elif way == 'descriptor':
                        self.detach(target, ['--keys', f'fd:{opened.fileno()}'], env=clean, pass_fds=[opened.fileno()])
                    else:
                        self.detach(target, ['--keys', '-'], env=clean, stdin=opened)
                self.assertTrue(target.content() == self.local['1'])
                self.search(target)

    def file(self, name, text):
        path = self.kept / name
        path.write_text(text)
        return f'@{path}'

    def test_a_secret_would_be_found(self):
        for secret in (s3_server.SECRET, SESSION, azblob_server.SIGNATURE, PROXY_PASSWORD):
            for text in (secret, urllib.parse.quote(secret, safe=''), json.dumps(secret), secret.encode().hex(),
                         base64.b64encode(secret.encode()).decode()):
                self.assertTrue(self.find_in(f'x{text}y'.encode(), secret), text)

    def test_an_identity(self):
        """Commands that read an encrypted container, also with one that is damaged."""
        target = Target.__new__(Target)
        target.env, target.secrets = {}, [IDENTITY[:-1], IDENTITY[20:60]]
        (self.kept / 'identity').write_text(IDENTITY + '\n')
        (self.kept / 'damaged').write_text(IDENTITY[:-1] + 'Q\n')
        self.expect(0, self.run_and_look('acquire', target, 'acquire', '-q', '-s', SMALL, '--recipient', RECIPIENT,
                                         '-o', 'a.rsz.age'))
        for command in (['verify'], ['info'], ['report', '-o', 'report.html'], ['export', '-o', 'raw'],
                        ['extract', '-S', 'log', '-o', '-'], ['extract', '-S', 'manifest', '-o', '-']):
            name = ' '.join(command)
            self.expect(0, self.run_and_look(name, target, '--verbose', *command, '--identity',
                                             self.kept / 'identity', 'a.rsz.age'))
            code, err = self.run_and_look(f'{name}, damaged', target, '--verbose', *command, '--identity',
                                          self.kept / 'damaged', 'a.rsz.age')
            self.assertIn(code, (2, 9), err)
        self.search(target)


for kind in (S3, S3Proxied, Google, Azure, Presigned, Receiver):
    def test(self, kind=kind):
        self.everything(kind)
    setattr(Secrets, f'test_{kind.__name__.lower()}', test)


if __name__ == '__main__':
    unittest.main()
