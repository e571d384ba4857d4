#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`ramseal upload FILE` to a URL that takes a PUT: a server of ours that answers as it is told, nginx with
WebDAV, by TLS, and `rclone serve webdav`. Usage: test_put.py RAMSEAL
"""

import base64
import hashlib
import http.server
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import certificates  # noqa: E402
from certificates import OPENSSL  # noqa: E402
from fault_proxy import FaultProxy  # noqa: E402

RAMSEAL = os.path.abspath(sys.argv.pop(1))
RCLONE = shutil.which('rclone')
NGINX = shutil.which('nginx') or shutil.which('nginx', path='/usr/sbin')
MIB = 1 << 20


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def reply(self, status, headers=()):
        self.send_response(status)
        for header in headers:
            self.send_header(*header)
        if not any(name == 'Content-Length' for name, *_ in headers):
            self.send_header('Content-Length', '0')
        self.end_headers()

    def do_HEAD(self):
        there = self.server.objects.get(self.path)
        if self.server.heads:
            self.reply(*self.server.heads.pop(0))
        elif there is None:
            self.reply(404)
        else:
            self.reply(200, [('Content-Length', str(len(there))), *self.server.proof(there)])

    def do_PUT(self):
        length = int(self.headers['Content-Length'])
        body = self.rfile.read(length)
        self.server.puts.append((self.path, dict(self.headers)))
        if len(body) != length:
            return
        if self.server.answers:
            self.reply(*self.server.answers.pop(0))
            return
        if self.headers['If-None-Match'] == '*' and self.path in self.server.objects:
            self.reply(412)
            return
        self.server.objects[self.path] = body
        if self.server.lost:
            self.server.lost -= 1
            self.close_connection = True
            return
        self.reply(201)


def etag(content):
    return [('ETag', f'"{hashlib.md5(content).hexdigest()}"')]


def digest(content):
    text = base64.b64encode(hashlib.sha256(content).digest()).decode()
    return [('ETag', '"0123456789abcdef0123456789abcdef"'), ('Repr-Digest', f'sha-512=:x:, sha-256=:{text}:')]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)
        self.content = os.urandom(5 * MIB + 17)
        self.file = self.at / 'mem.rsz'
        self.file.write_bytes(self.content)

    def upload(self, address, *more):
        (self.at / 'to').write_text(address + '\n')
        return subprocess.run([RAMSEAL, 'upload', self.file, '--to', f'@{self.at / "to"}', *more],
                              capture_output=True, timeout=900, cwd=self.at)

    def refused(self, pattern, done, code=6):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stderr.count(b'\n'), 1, done.stderr)
        self.assertRegex(done.stderr.decode(), pattern)
        self.assertNotIn(b'SeCrEt', done.stderr + done.stdout)


class Put(Case):
    def setUp(self):
        super().setUp()
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.handle_error = lambda *_: None
        self.server.objects, self.server.puts = {}, []
        self.server.heads, self.server.answers, self.server.lost = [], [], 0
        self.server.proof = etag
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.port = self.server.server_address[1]
        self.url = f'http://127.0.0.1:{self.port}/in/mem.rsz?sig=SeCrEt%2F'

    def check(self):
        self.assertTrue(self.server.objects['/in/mem.rsz?sig=SeCrEt%2F'] == self.content)

    def test_a_file_arrives_whole(self):
        done = self.upload(self.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check()
        (_, headers), = self.server.puts
        self.assertEqual(headers['if-none-match'], '*')
        self.assertNotIn('Transfer-Encoding', headers)
        self.assertNotIn('Expect', headers)
        self.assertNotIn(b'SeCrEt', done.stderr + done.stdout)

    def test_a_signed_address_that_lets_nobody_look(self):
        self.server.heads = [(403,)]
        done = self.upload(self.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check()

    def test_nothing_is_replaced(self):
        self.server.heads = [(200,)]
        self.refused('exists; choose another name', self.upload(self.url))
        self.server.answers = [(412,)]
        self.refused('exists; choose another name', self.upload(self.url))
        done = self.upload(self.url, '--force')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn('if-none-match', self.server.puts[-1][1])
        self.check()

    def test_what_passes_is_asked_again(self):
        self.server.heads = [(500,)]
        self.server.answers = [(503, [('Retry-After', '1')]), (500,), (429,)]
        done = self.upload(self.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check()

    def test_what_does_not_pass_is_said(self):
        for status, pattern in ((403, 'does not allow this'), (413, 'of this size'),
                                (405, 'does not accept PUT'), (507, 'is full'), (307, 'redirects'),
                                (418, 'refuses .HTTP 418')):
            self.server.answers = [(status, [('Location', 'http://127.0.0.1:1/SeCrEt')])]
            self.refused(pattern, self.upload(self.url))
        self.assertEqual(self.server.objects, {})

    def test_an_answer_that_is_lost(self):
        """What the server then says of the bytes may prove that they are ours."""
        for proof in (etag, digest):
            self.server.objects.clear()
            self.server.proof, self.server.lost = proof, 1
            done = self.upload(self.url)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check()
        self.server.objects.clear()
        self.server.lost = 1
        self.server.heads = [(404,), (503,)]
        done = self.upload(self.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.server.heads, [])

    def test_an_answer_that_is_lost_and_nothing_proves_whose_it_is(self):
        length = ('Content-Length', str(len(self.content)))
        for heads in ([(404,), (200, [length])], [(404,), (200, [length, *digest(b'other')])],
                      [(404,), (200, [length, *etag(b'other')])], [(404,), (403,)]):
            self.server.objects.clear()
            self.server.heads, self.server.lost = heads, 1
            done = self.upload(self.url)
            self.assertEqual(done.returncode, 6, done.stderr)
            self.assertRegex(done.stderr.decode(), 'may be this file.*compare the SHA-256')
        self.server.objects.clear()
        self.server.heads, self.server.lost = [(404,), (404,)], 1
        done = self.upload(self.url)
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertRegex(done.stderr.decode(), 'it does not exist any more: send it again')
        self.server.objects.clear()
        self.server.heads, self.server.lost = [(404,), (200, [('Content-Length', '7')])], 1
        done = self.upload(self.url)
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertRegex(done.stderr.decode(), 'exists; choose another name')

    def test_cuts(self):
        proxy = FaultProxy(self.port, seed=3)
        self.addCleanup(proxy.close)
        proxy.cuts = 6
        self.url = self.url.replace(str(self.port), str(proxy.port))
        done = self.upload(self.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check()

    def test_what_has_no_length_is_refused_before_anything_is_read(self):
        (self.at / 'to').write_text(self.url)
        done = subprocess.run([RAMSEAL, 'acquire', '-q', '-s', f'file:{self.file}', '--to',
                               f'@{self.at / "to"}'], capture_output=True, timeout=900)
        self.refused('must know its length', done, 2)
        self.assertEqual(self.server.puts, [])

    def test_what_is_to_be_read_and_is_no_file(self):
        self.file.unlink()
        self.refused('upload: [^:]*mem.rsz: No such file', self.upload(self.url), 9)
        self.file = self.at / 'to'
        done = self.upload('not an address')
        self.refused('takes a file that holds an address', done, 2)


@unittest.skipUnless(NGINX and OPENSSL, 'nginx or openssl is not installed')
class Nginx(Case):
    """Real TLS: a pin, a CA, and neither of them right."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-nginx-')
        cls.addClassCleanup(folder.cleanup)
        cls.nginx = Path(folder.name)
        cls.nginx.chmod(0o755)
        for name in ('server', 'other'):
            certificates.make(cls.nginx, name)
        with http.server.HTTPServer(('127.0.0.1', 0), None) as free, \
                http.server.HTTPServer(('127.0.0.1', 0), None) as other:
            cls.port, cls.strict = free.server_address[1], other.server_address[1]
        (cls.nginx / 'root').mkdir(mode=0o777)
        (cls.nginx / 'nginx.conf').write_text(f'''
            daemon off; pid {cls.nginx}/pid; error_log {cls.nginx}/log;
            user {'root' if os.geteuid() == 0 else ''}{';' if os.geteuid() == 0 else '#'}
            events {{}}
            http {{
                access_log off; client_body_temp_path {cls.nginx}/tmp;
                proxy_temp_path {cls.nginx}/t1; fastcgi_temp_path {cls.nginx}/t2;
                uwsgi_temp_path {cls.nginx}/t3; scgi_temp_path {cls.nginx}/t4;
                server {{
                    listen 127.0.0.1:{cls.port} ssl; client_max_body_size 16m;
                    ssl_certificate {cls.nginx}/server.pem;
                    ssl_certificate_key {cls.nginx}/server.key;
                    root {cls.nginx}/root; dav_methods PUT; create_full_put_path on;
                    location /small/ {{ client_max_body_size 1m; }}
                    location /readonly/ {{ dav_methods off; }}
                    location /moved/ {{ return 307 https://localhost:{cls.port}/new; }}
                }}
                server {{
                    listen 127.0.0.1:{cls.strict} ssl; client_max_body_size 16m;
                    ssl_certificate {cls.nginx}/server.pem;
                    ssl_certificate_key {cls.nginx}/server.key;
                    ssl_verify_client on; ssl_client_certificate {cls.nginx}/other.pem;
                    root {cls.nginx}/root; dav_methods PUT;
                }}
            }}''')
        cls.process = subprocess.Popen([NGINX, '-c', cls.nginx / 'nginx.conf', '-p', cls.nginx],
                                       stderr=subprocess.DEVNULL)
        cls.addClassCleanup(cls.stop)

    @classmethod
    def stop(cls):
        cls.process.terminate()
        cls.process.wait()

    def send(self, path, *more, port=None):
        return subprocess.run([RAMSEAL, 'upload', self.file, f'https://127.0.0.1:{port or self.port}{path}',
                               *more], capture_output=True, timeout=900, cwd=self.at)

    def pin(self, name):
        return certificates.pin(self.nginx / f'{name}.pem')

    def test_pinned_or_by_a_ca(self):
        done = self.send('/a/b/pinned.rsz', '--pin', self.pin('server'))
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.send('/by-ca.rsz', '--ca', self.nginx / 'server.pem')
        self.assertEqual(done.returncode, 0, done.stderr)
        for path in ('a/b/pinned.rsz', 'by-ca.rsz'):
            self.assertTrue((self.nginx / 'root' / path).read_bytes() == self.content)
        self.refused('exists', self.send('/by-ca.rsz', '--ca', self.nginx / 'server.pem'))

    def test_a_server_that_is_another(self):
        self.refused('not the pinned one', self.send('/x', '--pin', self.pin('other')))
        self.refused('certificate', self.send('/x', '--ca', self.nginx / 'other.pem'))
        self.refused('with --pin, or its CA with --ca', self.send('/x'), 2)
        self.refused('holds no PEM', self.send('/x', '--ca', self.file), 9)

    def test_who_has_to_show_a_certificate(self):
        """The server's own is not the one that it takes from others."""
        def as_(name):
            return '--client-cert', self.nginx / f'{name}.pem', '--client-key', f'@{self.nginx}/{name}.key'
        pin = ('--pin', self.pin('server'))
        done = self.send('/mutual.rsz', *pin, *as_('other'), port=self.strict)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.nginx / 'root/mutual.rsz').read_bytes() == self.content)
        self.refused('--client-cert', self.send('/x', *pin, port=self.strict))
        self.refused('--client-cert', self.send('/x', *pin, *as_('server'), port=self.strict))
        self.assertFalse((self.nginx / 'root/x').exists())

    def test_what_nginx_refuses(self):
        pin = self.pin('server')
        self.refused('of this size', self.send('/small/x', '--pin', pin))
        self.refused('does not accept PUT', self.send('/readonly/x', '--pin', pin))
        self.refused('redirects', self.send('/moved/x', '--pin', pin))

    def test_answers_that_get_lost(self):
        """nginx knows no condition: what has the name by then is ours, and is written again."""
        for number in range(100):
            proxy = FaultProxy(self.port)
            self.addCleanup(proxy.close)
            proxy.lose = {number}
            with self.subTest(lost=number):
                done = self.send(f'/lost{number}', '--pin', self.pin('server'), port=proxy.port)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue((self.nginx / f'root/lost{number}').read_bytes() == self.content)
            if not proxy.lost:
                break
        self.assertGreaterEqual(number, 2)


@unittest.skipUnless(RCLONE, 'rclone is not installed')
class Rclone(Case):
    """A WebDAV server that writes to the name itself, and keeps what came before a cut."""

    def setUp(self):
        super().setUp()
        self.root = self.at / 'root'
        self.root.mkdir()
        clean = {'PATH': os.environ['PATH'], 'HOME': str(self.at)}
        process = subprocess.Popen([RCLONE, 'serve', 'webdav', '--config', '/dev/null', '-v', '--addr',
                                    '127.0.0.1:0', self.root], env=clean, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        line = next(line for line in process.stderr if 'started on' in line)
        self.port = int(re.search(r'127\.0\.0\.1:(\d+)', line)[1])

    def send(self, name, *more, port=None):
        return self.upload(f'http://127.0.0.1:{port or self.port}/{name}', *more)

    def check(self, name):
        self.assertTrue((self.root / name).read_bytes() == self.content)

    def test_whole(self):
        done = self.send('a%20b.rsz')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check('a b.rsz')
        self.refused('exists; choose another name', self.send('a%20b.rsz'))
        (self.root / 'a b.rsz').write_bytes(b'other')
        done = self.send('a%20b.rsz', '--force')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check('a b.rsz')
        self.refused('no such directory', self.send('none/x'))

    def broken(self, **how):
        proxy = FaultProxy(self.port, seed=3)
        self.addCleanup(proxy.close)
        for name, value in how.items():
            setattr(proxy, name, value)
        return proxy

    def test_cuts(self):
        proxy = self.broken(cuts=4, within=5 * MIB)
        done = self.send('x', port=proxy.port)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(proxy.made, 3)  # one connection looked, and is kept
        self.check('x')

    def test_answers_that_get_lost(self):
        for number in range(100):
            proxy = self.broken(lose={number})
            with self.subTest(lost=number):
                done = self.send(f'x{number}', port=proxy.port)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.check(f'x{number}')
            if not proxy.lost:
                break
        self.assertEqual(number, 2)


if __name__ == '__main__':
    unittest.main()
