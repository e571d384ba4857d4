#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
acquire and upload to an object store of ours, over a link that breaks: what arrives is, byte for
byte, what a local file would have been, or a container that was cut off and can be closed. The
simulated machine makes the same container each time. Usage: test_upload.py RAMSEAL
"""

import os
import re
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'cli')]
import certificates  # noqa: E402
import s3_server  # noqa: E402
from fault_proxy import FaultProxy  # noqa: E402
from pending import wait_until_taken  # noqa: E402
from upload_case import MIB, RECIPIENT, SESSION, SMALL, Case, pieces  # noqa: E402

PARTS = '^PUT .*partNumber='


class Whole(Case):
    def test_the_object_is_the_local_file(self):
        done = self.acquire(level='store')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_object('case 1/mem.rsz', 'store')
        self.check_nothing_left()
        said = self.summary(done)
        self.assertEqual(said['output'], 's3://evidence/case 1/mem.rsz')
        self.assertTrue(said['sealed'])
        self.assertEqual(said['bytes_written'], len(self.local['store']))
        self.assertEqual(said['upload']['sent'], len(self.local['store']))
        self.assertEqual(said['upload']['retries'], 0)
        puts = [path for method, path, _ in self.store.requests if method == 'PUT']
        self.assertEqual(len(puts), pieces(self.local['store']))
        self.assertGreater(len(puts), 3)

    def test_a_folder_gets_the_name_that_a_file_would_have(self):
        done = self.acquire(to='s3://evidence/inbox/')
        self.assertEqual(done.returncode, 0, done.stderr)
        key, = self.objects
        self.assertRegex(key, r'^inbox/\S+-\d{8}T\d{6}Z\.rsz$')
        done = self.acquire('--recipient', RECIPIENT, to='s3://evidence/encrypted/')
        self.assertEqual(done.returncode, 0, done.stderr)
        key = max(self.objects, key=len)
        self.assertRegex(key, r'^encrypted/\S+-\d{8}T\d{6}Z\.rsz\.age$')

    def test_keys_from_a_file_a_descriptor_and_the_environment(self):
        self.serve(token=SESSION, region='eu-north-7')
        keys = self.at / 'keys'
        keys.write_text(f'[default]\naws_access_key_id = {s3_server.ID}\n'
                        f'aws_secret_access_key={s3_server.SECRET}\n'
                        f'aws_session_token = {SESSION}\nregion = eu-north-7\n'
                        f'endpoint_url = http://127.0.0.1:{self.port}\n')
        none = {k: v for k, v in self.environment().items() if not k.startswith('AWS_')}
        done = self.acquire('--keys', f'@{keys}', to='s3://evidence/1', env=none)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(keys) as f:
            done = self.acquire('--keys', f'fd:{f.fileno()}', to='s3://evidence/2', env=none,
                                pass_fds=[f.fileno()])
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(keys) as f:
            done = self.acquire('--keys', '-', to='s3://evidence/3', env=none, stdin=f)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.acquire(to='s3://evidence/4', env=self.environment(
            AWS_SESSION_TOKEN=SESSION, AWS_DEFAULT_REGION='eu-north-7'))
        self.assertEqual(done.returncode, 0, done.stderr)
        # Where the store is may stand elsewhere than the keys; the file has the last word.
        done = self.acquire('--keys', f'@{keys}', to='s3://evidence/5', env=dict(
            none, AWS_REGION='x', AWS_ENDPOINT_URL='http://127.0.0.1:1'))
        self.assertEqual(done.returncode, 0, done.stderr)
        keys.write_text(''.join(keys.read_text().splitlines(True)[:4]))
        done = self.acquire('--keys', f'@{keys}', to='s3://evidence/6', env=dict(
            none, AWS_REGION='eu-north-7', AWS_ENDPOINT_URL=f'http://127.0.0.1:{self.port}'))
        self.assertEqual(done.returncode, 0, done.stderr)
        for key in '123456':
            self.check_object(key, '1')

    def test_what_needs_encoding_is_encoded(self):
        key = "ä/b c+d=e&f?g#h%41'()*~.rsz"
        done = self.acquire(to=f's3://evidence/{key}')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_object(key, '1')

    def test_a_file_that_is_there(self):
        path = self.at / 'there.rsz'
        path.write_bytes(self.local['store'])
        done = self.run_it('upload', path, 's3://evidence/a')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_object('a', 'store')
        self.assertEqual(os.listdir(self.at), ['there.rsz'])

    def test_memory_that_is_more_than_was_asked_for_is_said(self):
        done = self.acquire('--spool-size', '1M')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b'take 16.0 MiB of memory', done.stderr)
        self.assertEqual(self.summary(done)['upload']['spool_bytes'], 16 * MIB)

    def test_what_waits_goes_to_disk(self):
        folder = self.at / 'spool'
        folder.mkdir()
        done = self.acquire('--spool', folder, '--spool-size', '16M', '--bwlimit', '24M', level='store')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_object('case 1/mem.rsz', 'store')
        self.assertEqual(os.listdir(folder), [])
        self.assertGreater(self.summary(done)['upload']['spooled_most'], 16 * MIB)

    def test_what_is_asked_for_is_sent_no_faster(self):
        begin = time.monotonic()
        done = self.acquire('--bwlimit', '8M', level='store')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(time.monotonic() - begin, len(self.local['store']) / (8 * MIB) - 0.5)


class Broken(Case):
    """The link, and the other end."""

    def proxied(self, **how):
        proxy = FaultProxy(self.server.port, **how)
        self.addCleanup(proxy.close)
        self.port = proxy.port
        return proxy

    def test_answers_that_pass(self):
        """Each at every step: the beginning, a part, the end."""
        faults = self.store.faults
        for step in ('^POST uploads', '^PUT .*partNumber=1&', '^POST uploadId'):
            faults.answers += [(step, 500, 'InternalError', ()), (step, 503, 'SlowDown',
                               [('Retry-After', '1')]), (step, 429, '', ())]
        done = self.acquire()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(faults.answers, [])
        self.check_object('case 1/mem.rsz', '1')

    def test_answers_that_get_lost(self):
        """What was asked has been done; of a completion the upload is gone by then, or the name is taken."""
        for hidden, first in ((False, False), (False, True), (True, True)):
            with self.subTest(hidden=hidden, exists_first=first):
                self.serve()
                self.store.may_look, self.store.exists_first = not hidden, first
                self.store.faults.drop_after = ['^PUT .*partNumber=1&', '^POST uploadId']
                done = self.acquire()
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.store.faults.drop_after, [])
                self.check_object('case 1/mem.rsz', '1')
                self.check_nothing_left()

    def test_a_lost_answer_that_nobody_can_look_for(self):
        self.store.may_look = False
        self.store.faults.drop_after = ['^POST uploadId']
        done = self.acquire()
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn('do not allow checking whether it succeeded', self.last_line(done))
        self.assertNotIn('exists', self.last_line(done))
        self.check_object('case 1/mem.rsz', '1')

    def test_a_lost_answer_is_no_leave_to_take_what_is_another_s(self):
        """The completion was not done, and somebody took the name meanwhile with as many bytes."""
        other = bytes(len(self.local['1']))
        self.store.exists_first = True
        self.store.faults.answers = [('^HEAD', 404, '', ()), ('^POST uploadId', 500, 'InternalError', ())]
        self.objects['x'] = other
        done = self.acquire(to='s3://evidence/x')
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertRegex(self.last_line(done), 'exists; choose another name, or --force replaces it')
        self.assertEqual(self.objects['x'], other)

    def test_what_is_no_http_at_the_end(self):
        """
        The store has answered before: something is between us, and goes away again. What ends the
        upload has a connection of its own each time, on which nothing is sent twice unnoticed.
        """
        self.store.faults.garbage = ['^POST uploadId']
        done = self.acquire()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.store.faults.garbage, [])
        ports = self.store.connections
        self.assertEqual(len(set(ports[:-2])), 1)
        self.assertEqual(len(set(ports)), 3)
        self.check_object('case 1/mem.rsz', '1')

    def test_an_error_in_a_200(self):
        self.store.faults.error_in_200 = 1
        done = self.acquire()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_object('case 1/mem.rsz', '1')

    def test_a_200_that_does_not_say_what_was_done(self):
        """Whether it was, or was not."""
        pages = (b'', b'<html><body>Log in</body></html>', b'<!DOCTYPE html><html></html>',
                 b'<Error><Code>' + b'x' * 100 + b'</Code></Error>',
                 b'<CompleteMultipartUploadResult><ETag>cut sho')
        for number, page in enumerate(pages):
            self.store.faults.answers = [('^POST uploadId', 200, page, ())]
            self.store.faults.said_of_done = [page]
            done = self.acquire(to=f's3://evidence/{number}')
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check_object(str(number), '1')
            self.assertEqual(self.store.faults.said_of_done, [])
        self.check_nothing_left()

    def test_clocks_that_are_a_day_off(self):
        for ahead in (-86400, 86400):
            self.store.faults.clock_ahead = ahead
            done = self.acquire(to=f's3://evidence/{ahead}')
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check_object(str(ahead), '1')

    def test_a_region_that_the_store_corrects(self):
        self.serve(region='mars-1')
        done = self.acquire()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_object('case 1/mem.rsz', '1')

    def test_a_store_without_conditions(self):
        self.store.faults.no_conditions = True
        done = self.acquire()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_object('case 1/mem.rsz', '1')

    def refused(self, pattern, code, done):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertRegex(self.last_line(done), pattern)
        self.assertNotIn(s3_server.SECRET.encode(), done.stdout + done.stderr)
        self.check_nothing_left()

    def test_what_is_refused_at_the_beginning(self):
        wrong = self.environment(AWS_SECRET_ACCESS_KEY='wrong')
        self.refused('the secret key is wrong', 6, self.acquire(env=wrong))
        wrong = self.environment(AWS_ACCESS_KEY_ID='AKIDWRONG')
        self.refused('does not know the access key', 6, self.acquire(env=wrong))
        wrong = self.environment(AWS_SESSION_TOKEN='old')
        self.refused('token has expired', 6, self.acquire(env=wrong))
        wrong = self.environment(AWS_SECRET_ACCESS_KEY=None)
        self.refused('needs keys: AWS_ACCESS_KEY_ID', 2, self.acquire(env=wrong))
        wrong = self.environment(AWS_ENDPOINT_URL='http://192.0.2.1')
        self.refused('unencrypted', 2, self.acquire(env=wrong))
        self.refused('no such bucket', 6, self.acquire(to='s3://nowhere/x'))
        self.refused('not s3://BUCKET/KEY', 2, self.acquire(to='s3://evidence'))
        self.refused("'ftp:' is none of s3", 2, self.acquire(to='ftp://evidence/x'))
        self.refused(r'\(did you mean azblob\?\)', 2, self.acquire(to='azblub://evidence/x'))
        self.store.read_only = True
        self.refused('the keys do not allow this', 6, self.acquire())

    def test_nothing_is_replaced_unless_that_is_asked_for(self):
        self.objects['x'] = b'old'
        self.refused('exists; choose another name, or --force replaces it', 6, self.acquire(to='s3://evidence/x'))
        self.assertEqual(self.objects['x'], b'old')
        done = self.acquire('--force', to='s3://evidence/x')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_object('x', '1')

    def test_what_takes_the_name_meanwhile_stays(self):
        """The parts are there then: the name is what is wrong."""
        self.store.faults.answers = [('^HEAD', 404, '', ())]
        self.objects['x'] = b'old'
        done = self.acquire(to='s3://evidence/x')
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertRegex(self.last_line(done), r"exists.*'ramseal upload --finish' with this address")
        self.assertEqual(self.objects['x'], b'old')
        self.assertEqual(os.listdir(self.at), [])
        done = self.run_it('upload', '--finish', 's3://evidence/x', '--force')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_object('x', '1')
        self.check_nothing_left()

    def test_a_refusal_midway_completes_what_arrived(self):
        self.store.faults.answers = [('partNumber=4&', 403, 'ExpiredToken', ())]
        done = self.acquire(level='store')
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertRegex(self.last_line(done), 'token has expired.*first 24.0 MiB were completed')
        whole = self.local['store']
        self.assertTrue(self.objects['case 1/mem.rsz'] == whole[:24 * MIB])
        self.check_nothing_left()
        self.check_closes(self.objects['case 1/mem.rsz'])

    def check_closes(self, content):
        """A container that was cut off, which `seal` closes."""
        path = self.at / 'fetched.rsz'
        path.write_bytes(content)
        self.assertEqual(self.run_it('verify', path).returncode, 7)
        done = self.run_it('seal', '--help')
        self.assertEqual(done.returncode, 0)
        done = self.run_it('seal', path)
        self.assertIn(done.returncode, (0, 3, 10), done.stderr)
        self.assertIn(self.run_it('verify', path).returncode, (0, 10))

    def start(self, *more):
        return subprocess.Popen(self.command('acquire', '-q', '-s', SMALL, '--level', 'store', '-t1',
                                             '-o', 's3://evidence/x', *more), cwd=self.at,
                                env=self.environment(), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def wait_for(self, what):
        until = time.monotonic() + 900
        while not what():
            self.assertLess(time.monotonic(), until, 'it never came so far')
            time.sleep(0.02)

    def parts(self):
        return [n for u in list(self.store.uploads.values()) for n in list(u.parts)]

    def killed(self, least, *more):
        """So many parts had arrived."""
        self.store.faults.hold = PARTS, least
        with self.start(*more) as process:
            self.wait_for(lambda: len(self.parts()) == least)
            process.kill()
            process.communicate()
        self.assertEqual(process.returncode, -signal.SIGKILL)
        self.store.faults.hold = None

    def check_finished(self, done, least):
        self.assertEqual(done.returncode, 0, done.stderr)
        content = self.objects.pop('x')
        self.assertGreaterEqual(len(content), least * 8 * MIB)
        self.assertEqual(len(content) % (8 * MIB), 0)
        self.assertTrue(content == self.local['store'][:len(content)])
        self.check_nothing_left()
        self.check_closes(content)
        (self.at / 'fetched.rsz').unlink()

    def test_killed_and_finished_by_the_address(self):
        """Nothing was written where it was killed; the store knows what is unfinished."""
        for least in (1, 4):
            with self.subTest(parts=least):
                self.killed(least)
                self.assertEqual(os.listdir(self.at), [])
                self.store.uploads['other'] = s3_server.Upload(('evidence', 'x2'), True)
                done = self.run_it('upload', '--finish', 's3://evidence/x')
                del self.store.uploads['other']
                self.check_finished(done, least)

    def test_killed_and_finished_from_the_state(self):
        """Also with keys that may not list."""
        self.killed(4, '--upload-state', 'state')
        self.assertEqual(os.listdir(self.at), ['state'])
        self.assertEqual((self.at / 'state').stat().st_mode & 0o777, 0o600)
        self.store.may_list = False
        done = self.run_it('upload', '--finish', 's3://evidence/x')
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn(b'the keys do not allow this', done.stderr)
        self.check_finished(self.run_it('upload', '--finish', 'state'), 4)

    def test_several_are_unfinished(self):
        """Then none is taken, until one is named."""
        for n in (1, 2):
            self.store.faults.hold = PARTS, 1
            with self.start() as process:
                self.wait_for(lambda n=n: sum(bool(u.parts) for u in list(self.store.uploads.values())) == n)
                process.kill()
                process.communicate()
        self.store.faults.hold = None
        first, _ = self.store.uploads
        done = self.run_it('upload', '--finish', 's3://evidence/x')
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn(b'2 unfinished uploads of this name', done.stderr)
        names = re.findall(rb'since 2026-11-22T17:00:00.000Z: --upload-id (\S+)', done.stderr)
        self.assertEqual(len(names), 2, done.stderr)
        self.assertEqual(len(self.store.uploads), 2)
        self.assertNotIn('x', self.objects)
        done = self.run_it('upload', '--finish', 's3://evidence/x', '--upload-id', names[0].decode())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(first, self.store.uploads)
        del self.objects['x']
        done = self.run_it('upload', '--finish', 's3://evidence/x')  # the other one
        self.check_finished(done, 1)

    def test_nothing_is_unfinished(self):
        done = self.run_it('upload', '--finish', 's3://evidence/x')
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn(b'no unfinished upload of this name', done.stderr)
        for args, says in (((), b'needs an ADDRESS'),
                           (('https://127.0.0.1/x', '--pin', 'sha256//' + 43 * 'A' + '='), b'upload it again'),
                           (('s3://evidence/x', 's3://evidence/y'), b'only one operand'),
                           (('nowhere', '--upload-id', 'x'), b'works with an address'),
                           (('nowhere',), b'No such file')):
            done = self.run_it('upload', '--finish', *args)
            self.assertIn(done.returncode, (2, 9), done.stderr)
            self.assertIn(says, done.stderr)

    def test_killed_before_anything_arrived(self):
        self.store.faults.answers = [('^PUT', 503, '', ())] * 100
        with self.start() as process:
            self.wait_for(lambda: any(m == 'PUT' for m, _, _ in self.store.requests))
            process.kill()
            process.communicate()
        done = self.run_it('upload', '--finish', 's3://evidence/x')
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn(b'nothing had arrived', done.stderr)
        self.check_nothing_left()

    def test_a_signal_seals_what_there_is_and_sends_it(self):
        # What waits in memory, and what has arrived, are less than there is to be read.
        self.store.faults.hold = PARTS, 1
        with self.start('--spool-size', '16M') as process:
            self.wait_for(lambda: len(self.parts()) == 1)
            process.send_signal(signal.SIGTERM)
            wait_until_taken(process.pid, signal.SIGTERM)
            self.store.faults.go_on.set()
            _, err = process.communicate(timeout=900)
        self.assertEqual(process.returncode, 8, err)
        path = self.at / 'fetched.rsz'
        path.write_bytes(self.objects['x'])
        self.assertEqual(self.run_it('verify', path).returncode, 10)
        self.assertEqual(self.store.uploads, {})

    def test_memory_is_bounded_while_nothing_moves(self):
        proxy = self.proxied()
        proxy.dead_after = 9 * MIB
        with self.start('--spool-size', '16M') as process:
            self.wait_for(lambda: proxy.dead)
            time.sleep(3)  # in which it could take more than it may
            status = Path(f'/proc/{process.pid}/status').read_text()
            peak = int(re.search(r'VmHWM:\s+(\d+) kB', status)[1]) * 1024
            proxy.dead_after, proxy.dead = None, False
            _, err = process.communicate(timeout=900)
        self.assertEqual(process.returncode, 0, err)
        self.check_object('x', 'store')
        self.assertLess(peak, 16 * MIB + 96 * MIB)


@unittest.skipUnless(certificates.OPENSSL, 'openssl is not installed')
class Tls(Case):
    def setUp(self):
        super().setUp()
        for name in ('server', 'other'):
            certificates.make(self.at, name)
        server = s3_server.Server(self.store, certificates.context(self.at / 'server.pem'))
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.proxy = FaultProxy(server.port, seed=5)
        self.addCleanup(self.proxy.close)
        self.https = self.environment(AWS_ENDPOINT_URL=f'https://127.0.0.1:{self.proxy.port}')

    def test_cuts_change_nothing_here_either(self):
        self.proxy.cuts, self.proxy.within = 6, 12 * MIB
        done = self.acquire('--ca', self.at / 'server.pem', level='store', env=self.https)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.proxy.made, 6)
        self.check_object('case 1/mem.rsz', 'store')

    def test_who_is_not_to_be_trusted(self):
        done = self.acquire('--ca', self.at / 'other.pem', env=self.https)
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn('certificate is not trusted', self.last_line(done))
        done = self.acquire('--pin', 'sha256//' + 43 * 'A' + '=', env=self.https)
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn('not the pinned one', self.last_line(done))
        done = self.acquire(env=self.https)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn('--pin', self.last_line(done))
        self.assertEqual(self.store.requests, [])


class CommandLine(Case):
    def test_an_address_that_is_a_secret_is_refused_in_argv(self):
        for address in ('https://host/x?sig=SeCrEt', 'https://user:SeCrEt@host/x'):
            for args in (('acquire', '-s', SMALL, '-o', address), ('upload', 'file', address)):
                done = self.run_it(*args)
                self.assertEqual(done.returncode, 2)
                self.assertIn(b'--to @FILE', done.stderr)
                self.assertNotIn(b'SeCrEt', done.stderr + done.stdout)

    def test_an_address_that_is_too_long_is_said_to_be_so(self):
        done = self.acquire(to='s3://evidence/' + 17000 * 'x')
        self.assertEqual(done.returncode, 2)
        self.assertIn('16384 bytes at most', self.last_line(done))

    def test_what_goes_to_files_only(self):
        (self.at / 'a.rsz').write_bytes(self.local['1'])
        for args in (('acquire', '-s', SMALL, '-F', 'raw', '-o', 's3://b/k'),
                     ('acquire', '-s', SMALL, '-F', 'e01', '-o', 's3://b/k'),
                     ('export', 'a.rsz', '-o', 's3://b/k')):
            done = self.run_it(*args)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(b'only to files', done.stderr)
        self.assertEqual(os.listdir(self.at), ['a.rsz'])

    def test_check_names_the_address_and_does_not_try_it(self):
        """It takes what acquire takes, and refuses what that would refuse before it asks anybody."""
        how = ('-s', SMALL, '--spool-size', '32M', '--bwlimit', '1M', '--object-lock', 'governance:9d')
        done = self.run_it('check', *how, '-o', 's3://evidence/x')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b'output: s3://evidence/x\n', done.stdout)
        self.assertRegex(self.run_it('check', '-s', SMALL, '-o', 's3://evidence/in/').stdout,
                         rb'output: s3://evidence/in/\S+-\d{8}T\d{6}Z\.rsz\n')
        to = self.at / 'to'
        to.write_text('https://127.0.0.1/x?sig=SeCrEt')
        none = self.environment(AWS_ACCESS_KEY_ID=None)
        for args, env, code, says in (
                (('-o', 's3://evidence/x'), none, 2, b'no: s3: needs keys'),
                (('-o', 's3://evidence'), None, 2, b'no: the address is not s3://BUCKET/KEY'),
                (('-o', 'tls://127.0.0.1:7'), None, 2, b'no: tls:// needs --pin'),
                (('--to', f'@{to}', '--pin', 'sha256//' + 43 * 'A' + '='), None, 2, b'no: https: a PUT must know')):
            done = self.run_it('check', '-s', SMALL, *args, env=env)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(says, done.stdout)
            self.assertNotIn(b'SeCrEt', done.stdout + done.stderr)
        for args in (('-o', 'https://user:SeCrEt@host/x'), ('-o', 'x.rsz', '--bwlimit', '1M'),
                     ('-o', 's3://evidence/x', '--to', f'@{to}'), ('-o', 's3://evidence/x', '--recipient', 'age1')):
            done = self.run_it('check', '-s', SMALL, *args)
            self.assertEqual((done.returncode, done.stdout), (2, b''), done.stderr)
            self.assertNotIn(b'SeCrEt', done.stderr)
        self.assertEqual(self.store.requests, [])

    def test_an_encrypted_one_has_its_own_name_in_a_folder(self):
        recipient = 'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj'
        done = self.run_it('check', '-s', SMALL, '-o', 's3://evidence/in/', '--recipient', recipient)
        self.assertRegex(done.stdout, rb'output: s3://evidence/in/\S+Z\.rsz\.age\n')
        done = self.acquire('--recipient', recipient, to='s3://evidence/in/')
        self.assertEqual(done.returncode, 0, done.stderr)
        key, = self.objects
        self.assertRegex(key, r'^in/\S+-\d{8}T\d{6}Z\.rsz\.age$')

    def test_a_proxy_and_its_password(self):
        """A proxy that forwards requests for http:// is a server that gets them."""
        proxy = self.at / 'proxy'
        proxy.write_text(f'http://user:SeCrEt@127.0.0.1:{self.port}\n')
        env = self.environment(AWS_ENDPOINT_URL='http://127.0.0.1:1')
        done = self.acquire('--proxy', proxy.read_text().strip(), env=env)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(b'--proxy @FILE', done.stderr)
        self.assertNotIn(b'SeCrEt', done.stderr)
        self.acquire('--proxy', f'@{proxy}', env=env)
        asked = self.store.requests[0]
        self.assertEqual(asked[0], 'HEAD')
        self.assertTrue(asked[1].startswith('http://127.0.0.1:1/evidence/'), asked)
        self.assertTrue(asked[2]['Proxy-Authorization'].startswith('Basic '), asked)

    def test_options_without_an_address_are_a_mistake(self):
        for args in (('--bwlimit', '1M'), ('--pin', 'sha256//x'), ('--spool', '/tmp')):
            done = self.run_it('acquire', '-s', SMALL, '-o', 'file.rsz', *args)
            self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(os.listdir(self.at), [])


if __name__ == '__main__':
    unittest.main()
