#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
acquire and upload to a store of block blobs: one of ours, over a link that breaks, and Azurite, where
that is installed (build/npm does it). Usage: test_azblob.py RAMSEAL
"""

import base64
import contextlib
import email.utils
import hashlib
import hmac
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / 'sim'))
import upload_case  # noqa: E402
from azblob_server import SIGNATURE, Blob, Server, Store  # noqa: E402
from fault_proxy import FaultProxy  # noqa: E402
from sampled import drawn  # noqa: E402
from upload_case import MIB, SMALL, pieces  # noqa: E402

# The store's own, and the probe is one of them.
BLOCKS = '^PUT .*comp=block&'
AZURITE = Path(__file__).resolve().parents[2] / 'out/npm/node_modules/.bin/azurite-blob'


class Case(upload_case.Case):
    def serve(self, **how):
        self.store = Store(**how)
        self.server = Server(self.store)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.port = self.server.port

    @property
    def blobs(self):
        return self.store.containers['evidence']

    def url(self, name, sas=None):
        return f'azblob:http://127.0.0.1:{self.port}/evidence/{name}?{sas or self.store.sas}'

    @contextlib.contextmanager
    def started(self, *more, blocks):
        """The store takes so many blocks and the probe; it is killed at the end."""
        self.store.faults.hold = BLOCKS, blocks + 1
        with subprocess.Popen(self.command('acquire', '-q', '-s', SMALL, '--level', 'store', '-t1',
                                           *self.secret(self.url('x')), *more),
                              cwd=self.at, env=self.environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            yield process
            process.kill()
            process.communicate()
        self.assertEqual(process.returncode, -9)
        self.store.faults.hold = None

    def wait_for(self, what):
        until = time.monotonic() + 900
        while not what():
            self.assertLess(time.monotonic(), until, 'it never came so far')
            time.sleep(0.02)

    def secret(self, text):
        """The arguments of a secret address."""
        path = self.at / 'to'
        path.write_text(text)
        return '--to', f'@{path}'

    def acquire(self, *more, to=None, level='1', **how):
        done = self.run_it('acquire', '-q', '--log-json', '-s', SMALL, '--level', level, '-t1',
                           *self.secret(to or self.url('mem.rsz')), *more, **how)
        (self.at / 'to').unlink()
        self.assertNotIn(SIGNATURE[:20].encode(), done.stdout + done.stderr)
        return done

    def check_blob(self, name, level):
        content = self.blobs[name].content
        self.assertEqual(len(content), len(self.local[level]))
        self.assertTrue(content == self.local[level], 'differs')

    def count(self, method, part):
        return sum(m == method and part in path for m, path, _ in self.store.requests)


class Whole(Case):
    def test_the_blob_is_the_local_file(self):
        for rights in drawn(('rcwd', 'c'), 1, 'rights') + drawn(('cw', 'w'), 1, 'rights to replace'):
            with self.subTest(rights):
                self.serve(rights=rights)
                done = self.acquire(level='store')
                self.assertEqual(done.returncode, 0, done.stderr)
                self.check_blob('mem.rsz', 'store')
                self.assertEqual(os.listdir(self.at), [])
                said = self.summary(done)
                self.assertEqual(said['output'], f'azblob:http://127.0.0.1:{self.port}/evidence/mem.rsz')
                self.assertEqual(said['upload']['retries'], 0)
                self.assertEqual(self.count('PUT', 'comp=block&'), pieces(self.local['store']) + 1)
                # Who may not look claims the name with the first block.
                self.assertEqual(self.store.lists, 2 if rights in ('cw', 'w') else 1)

    def test_a_file_that_is_there(self):
        path = self.at / 'there.rsz'
        path.write_bytes(self.local['store'])
        done = self.run_it('upload', path, *self.secret(self.url('a%20b/c.rsz')))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_blob('a b/c.rsz', 'store')


class Broken(Case):
    def test_answers_that_pass(self):
        faults = self.store.faults
        for step in ('^HEAD', '^PUT .*comp=block&', '^PUT .*comp=blocklist'):
            faults.answers += [(step, 500, 'InternalError', ()), (step, 429, '', [('Retry-After', '1')])]
        faults.answers += [('comp=block&', 400, 'Md5Mismatch', ()), ('comp=blocklist', 503, 'ServerBusy', ())]
        done = self.acquire()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(faults.answers, [])
        self.check_blob('mem.rsz', '1')

    def test_answers_that_get_lost(self):
        """The list was taken: then the name is ours, and that is found out."""
        for rights in ('rcwd', 'cw'):
            self.serve(rights=rights)
            self.store.faults.drop_after = ['comp=block&', 'comp=blocklist', 'comp=blocklist']
            done = self.acquire()
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.store.faults.drop_after, [])
            self.check_blob('mem.rsz', '1')

    def test_a_lost_answer_that_nobody_can_look_for(self):
        self.serve(rights='c')
        self.store.faults.drop_after = ['comp=blocklist']
        done = self.acquire()
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn('does not allow a check', self.last_line(done))
        self.assertNotIn('exists', self.last_line(done))
        self.check_blob('mem.rsz', '1')

    def refused(self, pattern, code, done):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertRegex(self.last_line(done), pattern)
        self.assertEqual(os.listdir(self.at), [])

    def test_a_lost_answer_is_no_leave_to_replace(self):
        """No list of ours was taken, and somebody else's blob came meanwhile: it stays."""
        self.serve(rights='cw')
        other = Blob()
        other.content, other.etag, other.committed = b'old', '"1"', {'b3RoZXI=': b'old'}
        self.store.faults.answers = [('comp=blocklist', 500, 'OperationTimedOut', ())]
        self.blobs['x'] = other
        self.refused('exists; choose another name, or --force replaces it', 6, self.acquire(to=self.url('x')))
        self.assertEqual(self.blobs['x'].content, b'old')

    def test_what_is_refused_at_the_beginning(self):
        sas = self.store.sas
        self.refused('the SAS is wrong, or has expired', 6, self.acquire(to=self.url('x', sas.replace('sig=s', 'sig=x'))))
        self.refused('no such container', 6, self.acquire(to=self.url('x').replace('/evidence/', '/nowhere/')))
        self.refused('needs a URL with a SAS', 2, self.acquire(to=self.url('x', 'sv=1')))
        self.refused('more than a SAS', 2, self.acquire(to=self.url('x', sas + '&comp=block')))
        self.refused('names no CONTAINER/BLOB', 2, self.acquire(to=self.url('')))
        self.refused('unencrypted', 2, self.acquire(to='azblob:http://192.0.2.1/a/b?' + sas))
        self.serve(rights='r')
        self.refused('does not allow writing', 2, self.acquire())
        self.serve(rights='cw')
        self.store.faults.answers = [('^PUT', 403, 'AuthorizationSourceIPMismatch', ())]
        self.refused('for a different client address', 6, self.acquire())

    def test_nothing_is_replaced_unless_that_is_asked_for(self):
        for rights in ('rcwd', 'cw', 'c'):
            with self.subTest(rights):
                self.serve(rights=rights)
                old = self.blobs.setdefault('x', Blob())
                old.content, old.etag = b'old', '"1"'
                self.refused('exists', 6, self.acquire(to=self.url('x')))
                self.assertEqual(old.content, b'old')
                if 'w' in rights:
                    done = self.acquire('--force', to=self.url('x'))
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.check_blob('x', '1')

    def test_a_refusal_midway_completes_what_arrived(self):
        number = base64.b64encode(b'-0000003-').decode()
        self.store.faults.answers = [(f'comp=block&.*{number}', 403, 'AuthenticationFailed', ())]
        done = self.acquire(level='store')
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertRegex(self.last_line(done), 'SAS is wrong.*first 24.0 MiB were completed')
        self.assertTrue(self.blobs['mem.rsz'].content == self.local['store'][:24 * MIB])

    def blocks(self):
        blob = self.blobs.get('x')
        return blob and len(blob.committed) + len(blob.waiting) - 1  # and the probe

    def test_killed_and_finished_from_the_state(self):
        for least in (1, 3):
            with self.subTest(least):
                self.serve()
                with self.started('--upload-state', 'state', blocks=least):
                    self.wait_for(lambda n=least: (self.blocks() or 0) == n)
                self.assertNotIn(SIGNATURE[:20], (self.at / 'state').read_text())
                done = self.run_it('upload', '--finish', 'state', *self.secret(self.url('x')))
                self.assertEqual(done.returncode, 0, done.stderr)
                content = self.blobs['x'].content
                self.assertGreaterEqual(len(content), least * 8 * MIB)
                self.assertTrue(content == self.local['store'][:len(content)])
                self.assertEqual(os.listdir(self.at), ['to'])

    def test_thousands_that_wait_are_finished(self):
        """The list is longer than any other answer, and not in the order of their numbers."""
        self.serve()
        run, n = '0123456789abcdef', 13000
        blob = self.blobs['x'] = Blob()
        content = os.urandom(n)
        for i in range(n):
            name = base64.b64encode(f'ramseal-{run}-{i:07}-'.encode()).decode()
            blob.waiting[name] = content[i:i + 1]
        (self.at / 'state').write_text(json.dumps(
            {'address': self.url('x').partition('?')[0], 'state': {'run': run, 'piece_size': 1}}))
        done = self.run_it('upload', '--finish', 'state', *self.secret(self.url('x')))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(blob.content == content)

    def check_prefix(self, least):
        content = self.blobs['x'].content
        self.assertGreaterEqual(len(content), least * 8 * MIB)
        self.assertTrue(content == self.local['store'][:len(content)])

    def test_killed_and_finished_by_the_address(self):
        """The names of the blocks tell all that is needed."""
        for least in (1, 3):
            with self.subTest(least):
                self.serve()
                with self.started(blocks=least):
                    self.wait_for(lambda n=least: (self.blocks() or 0) == n)
                self.assertEqual(os.listdir(self.at), ['to'])
                done = self.run_it('upload', '--finish', *self.secret(self.url('x')))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.check_prefix(least)
                done = self.run_it('upload', '--finish', *self.secret(self.url('x')))
                self.assertEqual(done.returncode, 6, done.stderr)
                self.assertIn(b'no unfinished upload of this name', done.stderr)

    def runs(self):
        """Whose blocks wait, but for the probes."""
        names = [base64.b64decode(name) for name in list(self.blobs.get('x', Blob()).waiting)]
        return {name[8:24] for name in names if b'-9999999-' not in name}

    def test_several_are_unfinished(self):
        for n in (1, 2):
            with self.started(blocks=1):
                self.wait_for(lambda n=n: len(self.runs()) == n)
        done = self.run_it('upload', '--finish', *self.secret(self.url('x')))
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn(b'2 unfinished uploads of this name', done.stderr)
        runs = re.findall(rb'--upload-id ([0-9a-f]{16})\n', done.stderr)
        self.assertEqual(len(set(runs)), 2, done.stderr)
        done = self.run_it('upload', '--finish', '--upload-id', runs[1].decode(), *self.secret(self.url('x')))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_prefix(1)

    def test_killed_behind_a_list_and_finished(self):
        """What was committed is proven ours, and what came later is added."""
        for how in ('state', 'address'):
            with self.subTest(how):
                self.serve(rights='cw')
                given = ['state'] if how == 'state' else []
                with self.started(*(['--upload-state'] + given if given else []), blocks=2):
                    self.wait_for(lambda: self.store.lists and (self.blobs['x'].waiting))
                self.assertTrue(self.blobs['x'].content == self.local['store'][:8 * MIB])
                self.store.rights = 'rcw'
                done = self.run_it('upload', '--finish', *given, *self.secret(self.url('x')))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.check_prefix(2)

    def test_what_took_the_name_after_the_kill_stays(self):
        self.serve(rights='cw')
        with self.started('--upload-state', 'state', blocks=2):
            self.wait_for(lambda: self.store.lists)
        self.store.rights = 'rcw'
        blob = self.blobs['x']
        blob.content, blob.etag, blob.committed, blob.waiting = bytes(8 * MIB), '"x"', {'b3RoZXI=': b''}, {}
        done = self.run_it('upload', '--finish', 'state', *self.secret(self.url('x')))
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn(b'exists', done.stderr)
        self.assertEqual(blob.content, bytes(8 * MIB))
        self.assertIn('state', os.listdir(self.at))

    def test_finishing_needs_the_right_to_read(self):
        self.serve(rights='cw')
        with self.started(blocks=2):
            self.wait_for(lambda: self.blocks())
        done = self.run_it('upload', '--finish', *self.secret(self.url('x')))
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn(b'sp=rcw', done.stderr)


class Locked(Case):
    def test_the_policy_comes_behind_the_last_list(self):
        self.serve(rights='rcwi')
        self.store.faults.drop_after = ['comp=immutabilityPolicies']
        for mode, theirs in (('compliance', 'Locked'), ('governance', 'Unlocked')):
            done = self.acquire('--object-lock', f'{mode}:2089-12-31', to=self.url(mode))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check_blob(mode, '1')
            self.assertEqual(self.blobs[mode].policy, (theirs, 'Sat, 31 Dec 2089 00:00:00 GMT'))
            self.assertEqual(self.summary(done)['upload']['object_lock'],
                             {'mode': mode, 'until': '2089-12-31T00:00:00Z', 'kept': True})
        self.assertEqual(self.store.faults.drop_after, [])

    def test_what_is_refused(self):
        self.serve(rights='rcw')
        done = self.acquire('--object-lock', 'governance:90d')
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn('sp=cwi', self.last_line(done))
        self.serve(rights='rcwi')
        for until, immutable in (('2020-01-01', True), ('90d', False)):
            self.store.immutable = immutable
            done = self.acquire('--object-lock', f'governance:{until}', '--force')
            self.assertEqual(done.returncode, 6, done.stderr)
            self.assertIn('complete, but the lock is not confirmed: the store refused the lock', self.last_line(done))
            self.assertTrue(self.summary(done)['sealed'])
            self.check_blob('mem.rsz', '1')

    def test_days_by_the_clock_of_the_store(self):
        """Also where its first answer was lost, and nothing was asked before."""
        self.serve(rights='cwi')
        self.store.faults.clock_ahead = 7 * 86400
        self.store.faults.drop_after = ['comp=block&']
        done = self.acquire('--object-lock', 'governance:90d')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.store.faults.drop_after, [])
        there = email.utils.parsedate_to_datetime(self.blobs['mem.rsz'].policy[1])
        self.assertLess(abs(there.timestamp() - time.time() - 97 * 86400), 3600)

    def test_finished_and_locked(self):
        self.serve(rights='rcwi')
        with self.started('--upload-state', 'state', '--object-lock', 'governance:90d', blocks=2):
            self.wait_for(lambda: self.count('PUT', 'comp=block&') == 3)
        said = json.loads((self.at / 'state').read_text())['object_lock']['until']
        done = self.run_it('upload', '--finish', 'state', *self.secret(self.url('x')))
        self.assertEqual(done.returncode, 0, done.stderr)
        there = email.utils.parsedate_to_datetime(self.blobs['x'].policy[1])
        self.assertEqual(there.strftime('%Y-%m-%dT%H:%M:%SZ'), said)
        self.assertLess(abs(there.timestamp() - time.time() - 90 * 86400), 3600)


class Slow(Case):
    """In the suite `long`: a minute goes by."""

    @unittest.skipUnless(os.environ.get('RAMSEAL_TEST_LONG'), 'in the suite long')
    def test_a_list_every_minute(self):
        self.serve()
        with subprocess.Popen(self.command('acquire', '-q', '-s', SMALL, '--level', 'store', '-t1',
                                           *self.secret(self.url('x')), '--bwlimit', '600K'),
                              cwd=self.at, env=self.environment(), stderr=subprocess.PIPE) as process:
            until = time.monotonic() + 900
            while not self.store.lists and time.monotonic() < until:
                time.sleep(.5)
            process.kill()
        content = self.blobs['x'].content
        self.assertTrue(content and content == self.local['store'][:len(content)])


@unittest.skipUnless(AZURITE.exists(), f'no Azurite in {AZURITE.parent}: build/npm installs it')
@unittest.skipUnless(shutil.which('node'), 'no node')
class Azurite(Case):
    """Microsoft's own emulator. Account and key are the ones that its documentation has."""

    ACCOUNT = 'devstoreaccount1'
    KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='

    @classmethod
    def setUpClass(cls):
        """One for all tests, which have names of their own in it."""
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        cls.addClassCleanup(folder.cleanup)
        with socket.create_server(('127.0.0.1', 0)) as s:
            cls.port = s.getsockname()[1]
        process = subprocess.Popen([AZURITE, '--blobPort', str(cls.port), '--inMemoryPersistence',
                                    '--disableTelemetry', '--skipApiVersionCheck', '--silent'],
                                   cwd=folder.name, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.terminate)
        until = time.monotonic() + 900
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                socket.create_connection(('127.0.0.1', cls.port)).close()
                break
            time.sleep(.1)

    def serve(self):
        self.assertIn(self.ask('PUT', f'/evidence?restype=container&{self.account_sas()}'), (201, 409))

    def sas(self, resource, rights):
        """A service SAS of a blob ("Create a service SAS", version 2018-11-09)."""
        fields = [rights, '', '2037-01-01T00:00:00Z', f'/blob/{self.ACCOUNT}{resource}', '', '', '',
                  '2018-11-09', 'b', '', '', '', '', '', '']
        signature = base64.b64encode(hmac.new(base64.b64decode(self.KEY), '\n'.join(fields).encode(),
                                              hashlib.sha256).digest()).decode()
        return urllib.parse.urlencode({'sv': '2018-11-09', 'sr': 'b', 'sp': rights, 'se': fields[2], 'sig': signature})

    def account_sas(self):
        """For making the container ("Create an account SAS")."""
        text = '\n'.join([self.ACCOUNT, 'rwdlac', 'b', 'sco', '', '2037-01-01T00:00:00Z', '', '', '2018-11-09', ''])
        signature = base64.b64encode(hmac.new(base64.b64decode(self.KEY), text.encode(), hashlib.sha256).digest()).decode()
        return urllib.parse.urlencode({'sv': '2018-11-09', 'ss': 'b', 'srt': 'sco', 'sp': 'rwdlac',
                                       'se': '2037-01-01T00:00:00Z', 'sig': signature})

    def ask(self, method, path, body=None):
        c = http.client.HTTPConnection('127.0.0.1', self.port, timeout=900)
        c.request(method, f'/{self.ACCOUNT}{path}', body, {'Content-Length': str(len(body or b''))})
        r = c.getresponse()
        self.content = r.read()
        c.close()
        return r.status

    def url(self, name, rights='rcw'):
        return (f'azblob:http://127.0.0.1:{self.port}/{self.ACCOUNT}/evidence/{name}?'
                + self.sas(f'/evidence/{name}', rights))

    def test_whole(self):
        large = drawn(('rcw', 'w', 'cw'), 1, 'rights at Azurite')
        for rights in ('rcw', 'w', 'cw'):
            level = 'store' if rights in large else '1'
            with self.subTest(rights, level=level):
                done = self.acquire(level=level, to=self.url(rights, rights))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.ask('GET', f'/evidence/{rights}?{self.account_sas()}'), 200)
                self.assertTrue(self.content == self.local[level])
                done = self.acquire(to=self.url(rights, rights))
                self.assertEqual(done.returncode, 6, done.stderr)
                self.assertIn('exists', self.last_line(done))

    def proxied(self, **how):
        proxy = FaultProxy(self.port)
        self.addCleanup(proxy.close)
        for name, value in how.items():
            setattr(proxy, name, value)
        return proxy

    def content_of(self, name):
        self.assertEqual(self.ask('GET', f'/evidence/{name}?{self.account_sas()}'), 200)
        return self.content

    def test_killed_and_finished(self):
        proxy = self.proxied()
        process = None
        proxy.moments = [(30 * MIB, lambda: process.kill() or True)]
        through = self.url('x').replace(f':{self.port}/', f':{proxy.port}/')
        with proxy.lock:
            process = subprocess.Popen(self.command('acquire', '-q', '-s', SMALL, '--level', 'store', '-t1',
                                                    *self.secret(through), '--upload-state', 'state'),
                                       cwd=self.at, env=self.environment())
        self.assertEqual(process.wait(900), -9)
        done = self.run_it('upload', '--finish', 'state', *self.secret(self.url('x')))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.content_of('x') == self.local['store'][:24 * MIB])

    def test_answers_that_get_lost(self):
        for number in range(100):
            with self.subTest(lost=number):
                proxy = self.proxied(lose={number})
                through = self.url(str(number)).replace(f':{self.port}/', f':{proxy.port}/')
                done = self.acquire(to=through)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(self.content_of(str(number)) == self.local['1'])
            if not proxy.lost:
                break
        self.assertGreaterEqual(number, 4)


if __name__ == '__main__':
    unittest.main()
