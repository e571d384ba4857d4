#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What a slow or a dead link does to an acquisition: memory stays within the spool, --level auto
follows, and `check --probe-link` says beforehand how fast it is. Usage: test_link.py RAMSEAL
"""

import json
import os
import random
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import azblob_server  # noqa: E402
import upload_case  # noqa: E402
from fault_proxy import FaultProxy  # noqa: E402

MIB = 1 << 20
DEAD_S = int(os.environ.get('RAMSEAL_TEST_DEAD', '0'))  # so long the link is dead, at least
SPOOL = 16 * MIB  # two parts of S3
# curl, TLS and the system's own: what may be on top of the spool.
BESIDE = 8 * MIB
# Some 130 MiB, uncompressed: far more than the spool.
MACHINE = ('sim:desktop,ram=128M,allocated=40M,resident=20M,trimmed=10M,others=20M,processes=5,'
           'cache=10M')


def status(pid, name):
    """Bytes of a line of /proc/PID/status; 0 once the process has ended."""
    try:
        lines = Path(f'/proc/{pid}/status').read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), 0)


def ticks(pid):
    """Of processor time that it has had."""
    fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return int(fields[11]) + int(fields[12])


class Case(upload_case.Case):
    def proxied(self):
        proxy = FaultProxy(self.server.port)
        self.addCleanup(proxy.close)
        self.port = proxy.port
        return proxy

    def start(self, *more):
        process = subprocess.Popen(self.command('acquire', '-q', '--log-json', *more), cwd=self.at,
                                   env=self.environment(), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def ended(self, process):
        err = process.communicate(timeout=900)[1]
        self.assertEqual(process.returncode, 0, err)
        return json.loads([line for line in err.splitlines() if b'"summary"' in line][-1])

    def peak(self, process):
        """The most that was resident, of one that runs to its end."""
        most = 0
        while process.poll() is None:
            most = max(most, status(process.pid, 'VmHWM:'))
            time.sleep(0.005)
        self.ended(process)
        return most


class Dead(Case):
    def wait_until_idle(self, process):
        """It has nothing more to do: it takes no processor time."""
        seen = []  # two seconds, on a machine that may have others to serve
        while process.poll() is None and (len(seen) < 3 or len(set(seen[-3:])) > 1):
            seen.append(ticks(process.pid))
            time.sleep(1)
        self.assertIsNone(process.poll(), 'it did not wait for the link')

    def test_memory_is_bounded_by_the_spool(self):
        acquire = ('-s', MACHINE, '--level', 'store', '-t1', '--spool-size', str(SPOOL))
        local = self.peak(self.start(*acquire[:-2], '-o', 'local.rsz'))
        proxy = self.proxied()
        proxy.dead_after = 5 * MIB
        process = self.start(*acquire, '-o', 's3://evidence/x')
        while not proxy.dead:
            self.assertIsNone(process.poll(), 'it ended while the link was dead')
            time.sleep(0.01)
        self.wait_until_idle(process)
        until = time.monotonic() + DEAD_S
        while True:
            most = status(process.pid, 'VmHWM:')
            self.assertLess(most, local + SPOOL + BESIDE)
            if time.monotonic() > until:
                break
            time.sleep(1)
        print(f'note: dead link: {most / MIB:.1f} MiB at most, {local / MIB:.1f} MiB into a file, '
              f'spool {SPOOL // MIB} MiB')
        proxy.dead_after = None
        proxy.dead = False
        said = self.ended(process)
        self.assertEqual(said['upload']['spool_bytes'], SPOOL)
        self.assertEqual(said['upload']['spooled_most'], SPOOL)
        self.assertGreater(said['upload']['waits'], 0)
        # Otherwise nothing here was about memory.
        self.assertGreater(len(self.objects['x']), 6 * SPOOL)
        self.assertTrue((self.at / 'local.rsz').read_bytes() == self.objects['x'])


class Level(Case):
    def acquire_image(self, level, *more):
        image = self.at / 'image'
        image.write_bytes(random.Random(1).randbytes(40 * MIB))
        process = self.start('-s', f'file:{image}', '--level', level, '-t1', '--spool-size', str(SPOOL),
                             *more)
        self.ended(process)

    def manifest(self, path):
        shown = subprocess.run([upload_case.RAMSEAL, 'extract', '-q', '-S', 'manifest', '-o', '-', path],
                               capture_output=True, check=True)
        lines = [json.loads(line) for line in shown.stdout.splitlines()]
        memory, = (line['memory'] for line in lines if 'level_moves' in line.get('memory', ()))
        return memory

    def arrived(self):
        path = self.at / 'arrived.rsz'
        path.write_bytes(self.objects['x'])
        return path

    def test_auto_rises_while_the_link_is_slow(self):
        self.proxied().rate = 8 * MIB
        self.acquire_image('auto', '-o', 's3://evidence/x')
        memory = self.manifest(self.arrived())
        self.assertGreater(memory['level'], 1)
        self.assertLessEqual(memory['level'], 6)
        self.assertGreaterEqual(memory['level_moves'], memory['level'] - 1)

    def test_a_level_that_is_given_stays(self):
        self.proxied().rate = 8 * MIB
        self.acquire_image('1', '-o', 's3://evidence/x')
        memory = self.manifest(self.arrived())
        self.assertEqual((memory['level'], memory['level_moves']), (1, 0))


class Probe(Case):
    def check(self, *more, code=0, to=('-o', 's3://evidence/x')):
        done = self.run_it('check', '--json', '-s', upload_case.SMALL, *to, *more)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def findings(self, said):
        return {f['what']: f['text'] for f in said['findings']}

    def check_measured(self, said):
        self.assertNotIn('link', self.findings(said))
        link = said['link']
        self.assertGreater(link['bytes_per_second'], 0)
        self.assertLessEqual(0, link['bytes'])
        self.assertLessEqual(link['bytes'], link['sent_bytes'])
        self.assertLessEqual(link['sent_bytes'], 64 * MIB)
        self.assertEqual(said['send_seconds'], said['output_estimate'] // link['bytes_per_second'])
        self.assertEqual(said['acquire_seconds'],
                         max(said['send_seconds'], said['seconds_at_least']))


class ProbeS3(Probe):
    def test_nothing_is_sent_unless_that_is_asked_for(self):
        said = self.check()
        self.assertNotIn('link', said)
        self.assertEqual(self.store.requests, [])
        done = self.run_it('check', '-s', upload_case.SMALL, '-o', 's3://evidence/x')
        self.assertIn(b'link: not measured (--probe-link)\n', done.stdout)

    def test_the_link_is_measured_and_nothing_is_left(self):
        said = self.check('--probe-link')
        self.check_measured(said)
        self.assertNotIn('link-left', self.findings(said))
        self.assertEqual(self.objects, {})
        self.assertEqual(self.store.uploads, {})
        self.assertEqual(os.listdir(self.at), [])
        done = self.run_it('check', '-s', upload_case.SMALL, '-o', 's3://evidence/x', '--probe-link')
        self.assertRegex(done.stdout, rb'link: \S+ \w+/s as measured over .*; sending takes about ')
        self.assertRegex(done.stdout, rb'acquisition: about \S+; (reading the memory|sending) takes longest')

    def test_googles_store_is_measured_too(self):
        self.serve(google=True, region='auto')
        self.check_measured(self.check('--probe-link', to=('-o', 'gs://evidence/x')))
        self.assertEqual((self.objects, self.store.uploads), ({}, {}))

    def test_what_is_sent_keeps_to_its_limits(self):
        said = self.check('--probe-link', '--bwlimit', '1M')
        self.check_measured(said)
        self.assertLess(said['link']['bytes_per_second'], 2 * MIB)
        self.assertLess(said['link']['sent_bytes'], 16 * MIB)

    def test_a_slow_link_is_what_takes_longest(self):
        self.proxied().rate = MIB // 4
        done = self.run_it('check', '-s', f'{upload_case.SMALL},bandwidth=10G', '--probe-link',
                           '-o', 's3://evidence/x')
        self.assertIn(b'; sending takes longest', done.stdout)

    def test_what_cannot_be_taken_back_is_said(self):
        self.store.faults.answers = [('^DELETE', 403, 'AccessDenied', ())]
        said = self.check('--probe-link')
        self.check_measured(said)
        self.assertIn('stays there', self.findings(said)['link-left'])
        self.assertEqual(len(self.store.uploads), 1)

    def test_what_would_keep_acquire_from_beginning(self):
        self.objects['x'] = b'old'
        said = self.check('--probe-link', code=6)
        self.assertIn('exists; choose another name', self.findings(said)['link'])
        self.check_measured(self.check('--probe-link', '--force'))
        self.assertEqual(self.objects, {'x': b'old'})
        self.store.read_only = True
        said = self.check('--probe-link', to=('-o', 's3://evidence/y'), code=6)
        self.assertIn('do not allow this', self.findings(said)['link'])
        none = self.environment(AWS_SECRET_ACCESS_KEY=None)
        done = self.run_it('check', '-s', upload_case.SMALL, '-o', 's3://evidence/x', env=none)
        self.assertEqual(done.returncode, 2, done.stderr)

    def test_a_link_that_breaks_is_no_measurement(self):
        self.store.faults.answers = [('partNumber=2&', 500, 'InternalError', ())]
        said = self.check('--probe-link')
        self.assertNotIn('link', said)
        self.assertIn('link', self.findings(said))
        self.assertEqual(self.store.uploads, {})

    def test_below_a_folder_a_name_is_chosen(self):
        said = self.check('--probe-link', to=('-o', 's3://evidence/inbox/'))
        self.assertRegex(said['output'], r'^s3://evidence/inbox/\S+\.rsz$')
        self.check_measured(said)


class ProbeAzblob(Probe):
    def serve(self, **how):
        self.store = azblob_server.Store(rights='cw')
        self.server = azblob_server.Server(self.store)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.port = self.server.port

    def test_no_blob_is_left(self):
        secret = self.at / 'to'
        secret.write_text(f'azblob:http://127.0.0.1:{self.port}/evidence/x?{self.store.sas}')
        said = self.check('--probe-link', to=('--to', f'@{secret}'))
        self.check_measured(said)
        self.assertEqual(said['output'], f'azblob:http://127.0.0.1:{self.port}/evidence/x')
        self.assertIn('within a week', self.findings(said)['link-left'])
        self.assertEqual(self.store.lists, 0)


class ProbeReceiver(Probe):
    def receive(self):
        done = self.run_it('receive', '--new-key', 'key')
        self.assertEqual(done.returncode, 0, done.stderr)
        folder = self.at / 'kept'
        folder.mkdir()
        process = subprocess.Popen(
            self.command('receive', '--log-json', '--listen', '127.0.0.1:0', '--key', 'key', '--dir', folder,
                         '--any-sender', '--max-total', '1G'), cwd=self.at, stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        said = next(line for line in map(json.loads, process.stderr) if 'pin' in line)
        return folder, said['address'].rsplit(':', 1)[1], said['pin']

    def test_the_receiver_keeps_a_file_that_is_no_container(self):
        folder, port, pin = self.receive()
        said = self.check('--probe-link', '--pin', pin, to=('-o', f'tls://127.0.0.1:{port}'))
        self.check_measured(said)
        self.assertIn('no container', self.findings(said)['link-left'])
        kept, = (path for path in folder.iterdir() if path.name != 'witness.jsonl')
        self.assertEqual(kept.suffix, '.data')
        self.assertEqual(kept.stat().st_size, said['link']['sent_bytes'])
        log = (folder / 'witness.jsonl').read_text()
        self.assertIn('a measurement of the link', log)


if __name__ == '__main__':
    unittest.main()
