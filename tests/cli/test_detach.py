#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
acquire --detach, status and stop, and surroundings that wish an acquisition no good: kills, closed
descriptors, no terminal, masks, odd locales, an empty chroot, read-only file systems. What needs root is
skipped without it. Usage: test_detach.py RAMSEAL

No test waits for time to pass: an acquisition into a FIFO goes on when, and only as far as, it is read.
"""

import contextlib
import itertools
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

RAMSEAL = os.path.abspath(sys.argv.pop(1))
SIMULATOR = os.environ.get('RAMSEAL_SIMULATOR') != '0'  # -Dsimulator
STATIC = os.environ.get('RAMSEAL_IS_STATIC') == '1'
ROOT = os.geteuid() == 0
MIB = 1 << 20
COMPLETE, USAGE, NO_SOURCE, OUTPUT, INTERRUPTED, INPUT, RUNNING, DIED = 0, 2, 4, 6, 8, 9, 12, 13
LINE_MAX = 2000  # what a channel that keeps 2 KB shows whole
SIMULATED = ('sim:desktop,ram=64M,allocated=20M,resident=12M,trimmed=4M,others=4M,processes=3,cache=2M,'
             'pagefile0=16M,seed=5')

can_unshare = ROOT and not subprocess.run(['unshare', '--mount', 'true'], capture_output=True).returncode
needs_namespace = unittest.skipUnless(can_unshare, 'needs root, and a mount namespace')
needs_simulator = unittest.skipUnless(SIMULATOR, 'built without simulated machines')


def run(*args, **more):
    more = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, 'timeout': 250, **more}
    return subprocess.run([RAMSEAL, *map(str, args)], **more)


def wait_for(what):
    end = time.monotonic() + 900
    while not what():
        assert time.monotonic() < end, 'it has not come to that within minutes'
        time.sleep(0.01)


def is_full(fifo):
    """One that somebody reads from."""
    end = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    poll = select.poll()
    poll.register(end, select.POLLOUT)
    full = not poll.poll(0)
    os.close(end)
    return full


def is_alive(pid):
    """While any thread is: a process whose first one is a zombie still has its files, and so its lock."""
    try:
        for task in Path(f'/proc/{pid}/task').iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if (task / 'stat').read_text().rpartition(')')[2].split()[0] not in 'ZX':
                    return True
    except (FileNotFoundError, ProcessLookupError):
        pass
    return False


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-detach-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)
        self.image = self.at / 'image'
        self.image.write_bytes(os.urandom(8 * MIB))
        self.state = self.at / 'state.json'
        self.out = self.at / 'out.rsz'
        self.fifo = self.at / 'fifo'

    def command(self, *more, source=None, out=None, state=None):
        return ['acquire', '--detach', '--state', str(state or self.state), '--source', source or f'file:{self.image}',
                '-o', str(out or self.out), *map(str, more)]

    def detach(self, *args, code=COMPLETE, **more):
        """Begins; returns what it said: of a failure the error, else the object."""
        options = {k: more.pop(k) for k in ('source', 'out', 'state') if k in more}
        done = run(*self.command(*args, **options), **more)
        self.assertEqual(done.returncode, code, done)
        if code:
            self.assertEqual(done.stdout, b'')
            return done.stderr
        self.assertEqual((done.stdout.count(b'\n'), done.stderr), (1, b''))
        self.assertLessEqual(len(done.stdout), LINE_MAX)
        said = json.loads(done.stdout)
        self.addCleanup(self.end, said['pid'])
        return said

    def end(self, pid):
        with contextlib.suppress(ProcessLookupError):
            if is_alive(pid) and Path(f'/proc/{pid}/exe').resolve() == Path(RAMSEAL).resolve():
                os.kill(pid, signal.SIGKILL)

    def status(self, code, *args, state=None, **more):
        done = run('status', '--json', '--state', state or self.state, *args, **more)
        self.assertEqual((done.returncode, done.stderr), (code, b''), done)
        said = json.loads(done.stdout)
        self.assertEqual(list(said)[:2], ['schema', 'state'])
        self.assertEqual(said['schema'], 'ramseal-status-1')
        return said

    def verify(self, path=None, code=COMPLETE):
        done = run('verify', path or self.out)
        self.assertEqual(done.returncode, code, done.stderr)

    def blocked(self, *args, **more):
        """
        One that has begun, and goes on when the FIFO is read: what it said, and a function that reads it
        to its end.
        """
        os.mkfifo(self.fifo)
        got = bytearray()
        begun, go_on = threading.Event(), threading.Event()

        def read():
            with open(self.fifo, 'rb', buffering=0) as fifo:
                # Else what is still to come could fit, if it is stopped soon.
                wait_for(lambda: is_full(self.fifo))
                begun.set()
                go_on.wait()
                while piece := fifo.read(MIB):
                    got.extend(piece)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()

        def drain():
            go_on.set()
            reader.join(250)
            self.assertFalse(reader.is_alive())
            return bytes(got)

        self.addCleanup(go_on.set)
        said = self.detach(*args, out=self.fifo, **more)
        self.assertTrue(begun.wait(900))
        return said, drain


class Detached(Case):
    def test_it_goes_on_and_ends_as_one_that_was_waited_for(self):
        said = self.detach()
        self.assertEqual(list(said), ['schema', 'pid', 'state', 'output'])
        self.assertEqual((said['schema'], said['state'], said['output']),
                         ('ramseal-detached-1', str(self.state), str(self.out)))
        ended = self.status(COMPLETE, '--wait')
        self.assertEqual((ended['state'], ended['pid'], ended['exit_code'], ended['outcome'], ended['error'],
                          ended['where']), ('ended', said['pid'], 0, 'complete', None, str(self.out)))
        self.verify()
        shown = run('verify', '--json', self.out).stdout
        self.assertIn(ended['root'].encode(), shown)
        line = run('status', '--state', self.state)
        self.assertEqual((line.returncode, line.stdout.count(b'\n'), line.stderr), (0, 1, b''))
        self.assertIn(b'ended: exit code 0, complete', line.stdout)
        wait_for(lambda: not is_alive(said['pid']))

    def test_while_it_runs(self):
        said, drain = self.blocked()
        seen = self.status(RUNNING)
        self.assertEqual((seen['state'], seen['pid'], seen['output'], seen['exit_code']),
                         ('running', said['pid'], str(self.fifo), None))
        line = run('status', '--state', self.state)
        self.assertEqual((line.returncode, line.stdout.count(b'\n')), (RUNNING, 1))
        self.assertIn(b'running: process %d since ' % said['pid'], line.stdout)
        self.assertEqual(self.status(RUNNING, '--wait=1')['state'], 'running')
        # How far it is, by the reader of the file, and not only when something happens.
        wait_for(lambda: self.status(RUNNING)['progress'])
        self.assertEqual(self.status(RUNNING)['progress']['label'], 'memory')
        content = drain()
        self.status(COMPLETE, '--wait')
        self.out.write_bytes(content)
        self.verify()

    def test_what_fails_early_fails_as_without(self):
        taken = self.at / 'taken'
        taken.write_bytes(b'x')
        for args, code in (({'source': 'file:/does/not/exist'}, INPUT), ({'source': 'nonsense'}, USAGE),
                           ({'source': 'crash:/does/not/exist', 'state': self.state}, NO_SOURCE),
                           ({'out': taken}, OUTPUT), ({'out': '/does/not/exist/x'}, OUTPUT)):
            with self.subTest(args):
                command = self.command(**args)
                plain = run(*(c for c in command if c != '--detach'))
                detached = run(*command)
                self.assertEqual((detached.returncode, detached.stdout), (code, b''), detached)
                self.assertEqual(detached.stderr.splitlines(), plain.stderr.splitlines()[-1:])
                self.assertEqual(self.status(code)['state'], 'ended')
                self.state.unlink()

    def test_wrong_lines(self):
        for args in (['--detach', '-o', '-'], ['--detach', '--statement', '-'], ['--detach', '--order', 'none']):
            done = run('acquire', '--source', f'file:{self.image}', '--state', self.state, *args)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count(b'\n')), (USAGE, b'', 1))
            self.assertFalse(self.state.exists())
        for args in (['--wait', '5'], ['--wait=0'], ['--wait=x'], ['x']):
            self.assertEqual(run('status', '--state', self.state, *args).returncode, USAGE)

    def test_no_state(self):
        for command in 'status', 'stop':
            done = run(command, '--state', self.state)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count(b'\n')), (INPUT, b'', 1))
            for content in (b'', b'[]', b'{}', b'{"schema": 1}', b'\xff', b'{' * 70000,
                            b'{"schema": "ramseal-state-1", "exit_code": 70000}'):
                self.state.write_bytes(content)
                done = run(command, '--state', self.state)
                self.assertEqual((done.returncode, done.stdout, done.stderr.count(b'\n')), (INPUT, b'', 1))
            self.state.unlink()

    def test_a_state_that_lies_is_no_danger_to_a_terminal(self):
        self.state.write_text(json.dumps({'schema': 'ramseal-state-1', 'pid': -1, 'begin': '\x1b[2J', 'where': 'a\nb',
                                          'progress': {'label': '\x1b', 'bytes': -5, 'total_bytes': 'x'}}))
        done = run('status', '--state', self.state)
        self.assertEqual((done.returncode, done.stdout.count(b'\n')), (DIED, 1))
        self.assertNotIn(b'\x1b', done.stdout)

    def test_relative_paths_and_images(self):
        done = run('acquire', '--detach', '--state', 's', '--source', 'file:image', '--format', 'lime', '-o', 'x.lime',
                   cwd=self.at)
        said = json.loads(done.stdout)
        self.assertEqual((said['state'], said['output']), (f'{self.at}/s', f'{self.at}/x.lime'))
        self.status(COMPLETE, '--wait', state=said['state'])
        self.assertEqual((self.at / 'x.lime').read_bytes()[32:], self.image.read_bytes())

    def test_the_object_stays_short_however_long_the_paths_are(self):
        deep = self.at
        while len(os.fsencode(deep)) < 3500:
            deep /= 'ä' * 100
        deep.mkdir(parents=True)
        said = self.detach(out=deep / 'evidence.rsz')
        self.assertTrue(said['output'].startswith('...') and said['output'].endswith('/evidence.rsz'))
        self.status(COMPLETE, '--wait')
        self.verify(deep / 'evidence.rsz')
        # A state that could not be named whole could not be found again: that is said before anything begins.
        error = self.detach(state=deep / 'state.json', out=self.at / 'second.rsz', code=USAGE)
        self.assertEqual(error.count(b'\n'), 1)
        self.assertFalse((self.at / 'second.rsz').exists())

    def test_what_is_made_is_private(self):
        for umask in 0o000, 0o077, 0o777:
            with self.subTest(umask):
                name = f'{umask:o}'
                self.detach(out=self.at / name, state=self.at / f'{name}.json',
                            preexec_fn=lambda umask=umask: os.umask(umask))
                self.status(COMPLETE, '--wait', state=self.at / f'{name}.json')
                for path in (self.at / f'{name}.json', self.at / f'{name}.json.lock'):
                    self.assertEqual(path.stat().st_mode & 0o777, 0o600)
                self.assertEqual((self.at / name).stat().st_mode & 0o177, 0)
                if ROOT:
                    self.verify(self.at / name)

    def test_links_are_not_followed(self):
        victim = self.at / 'victim'
        victim.write_bytes(b'victim')
        lock = Path(f'{self.state}.lock')
        lock.symlink_to(victim)
        self.detach(code=OUTPUT)
        lock.unlink()
        lock.hardlink_to(victim)
        self.detach(code=OUTPUT)
        lock.unlink()
        self.state.symlink_to(victim)
        self.detach(code=OUTPUT)
        self.assertTrue(self.state.is_symlink())
        self.assertEqual(victim.read_bytes(), b'victim')

    def test_a_state_replaces_nothing_but_a_state(self):
        """Whoever writes --state for --statement, or for the source, loses nothing."""
        image = self.image.read_bytes()
        self.assertIn(b'overwrites nothing else', self.detach(state=self.image, code=OUTPUT))
        self.assertEqual(self.image.read_bytes(), image)
        lock = Path(f'{self.state}.lock')
        lock.write_bytes(b'4711\n')  # somebody else's way to lock
        self.detach(code=OUTPUT)
        self.assertEqual(lock.read_bytes(), b'4711\n')
        lock.unlink()
        self.detach('--force', out=self.state, code=OUTPUT)
        self.detach('--force', '--summary', self.state, code=OUTPUT)
        self.state.unlink(missing_ok=True)
        self.detach()
        self.status(COMPLETE, '--wait')
        self.out.unlink()
        self.detach()  # what was a state may be one again
        self.status(COMPLETE, '--wait')

    def test_stop(self):
        said, drain = self.blocked()
        done = []
        stop = threading.Thread(target=lambda: done.append(run('stop', '--state', self.state)))
        stop.start()
        wait_for(lambda: self.status(RUNNING)['stopping'] == 'SIGTERM')
        self.assertIn(b', stopping: SIGTERM; ', run('status', '--state', self.state).stdout)
        content = drain()
        stop.join(250)
        self.assertEqual((done[0].returncode, done[0].stderr), (INTERRUPTED, b''), done)
        self.assertIn(b'ended: exit code 8', done[0].stdout)
        self.assertEqual(self.status(INTERRUPTED)['state'], 'ended')
        self.out.write_bytes(content)
        self.verify(code=10)
        # It has ended: there is nobody to stop, and how it ended is the answer.
        self.assertEqual(run('stop', '--state', self.state).returncode, INTERRUPTED)


class Kills(Case):
    def shell(self, *more, **options):
        """A session of its own, as a channel makes one; its only process is the shell."""
        line = ' '.join(self.command(*more, **options))
        return subprocess.Popen(['sh', '-c', f'{RAMSEAL} {line}; sleep 600'], start_new_session=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def kill_group(self, shell):
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait(900)
        shell.stdout.close()
        shell.stderr.close()

    def test_of_the_process_group(self):
        os.mkfifo(self.fifo)
        fd = os.open(self.fifo, os.O_RDWR)  # so that its open does not wait, and its writes do
        self.addCleanup(os.close, fd)
        shell = self.shell(out=self.fifo)
        said = json.loads(shell.stdout.readline())
        self.addCleanup(self.end, said['pid'])
        self.assertNotEqual(os.getsid(said['pid']), shell.pid)
        self.kill_group(shell)
        self.assertEqual(self.status(RUNNING)['pid'], said['pid'])
        threading.Thread(target=self.drop, args=[self.fifo], daemon=True).start()
        self.status(COMPLETE, '--wait')

    def drop(self, path):
        with open(path, 'rb', buffering=0) as f:
            while f.read(MIB):
                pass

    def test_before_it_has_begun(self):
        """Nobody was told, but it was asked for: the state knows of it."""
        os.mkfifo(self.fifo)
        shell = self.shell(out=self.fifo)  # waits for somebody who reads
        wait_for(self.state.exists)
        wait_for(lambda: self.status(RUNNING)['phase'] == 'opening')
        self.kill_group(shell)
        self.assertEqual(self.status(RUNNING)['state'], 'running')
        self.drop(self.fifo)
        self.status(COMPLETE, '--wait')

    def test_a_request_to_stop_is_passed_on(self):
        os.mkfifo(self.fifo)
        parent = subprocess.Popen([RAMSEAL, *self.command(out=self.fifo)], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
        wait_for(self.state.exists)
        parent.send_signal(signal.SIGHUP)  # a terminal that goes away is none
        time.sleep(1)
        self.assertIsNone(parent.poll())
        parent.send_signal(signal.SIGTERM)
        out, error = parent.communicate(timeout=900)
        self.assertEqual((parent.returncode, out, error.count(b'\n')), (INTERRUPTED, b'', 1), error)
        self.status(INTERRUPTED)

    def test_of_itself(self):
        said, _ = self.blocked()
        os.kill(said['pid'], signal.SIGKILL)
        seen = self.status(DIED, '--wait')
        self.assertEqual((seen['state'], seen['exit_code']), ('died', None))
        for command in 'status', 'stop':
            done = run(command, '--state', self.state)
            self.assertEqual((done.returncode, done.stdout.count(b'\n'), done.stderr), (DIED, 1, b''))
            self.assertIn(b'died: process %d' % said['pid'], done.stdout)
        self.detach()  # in its place
        self.status(COMPLETE, '--wait')

    def test_of_itself_before_it_has_begun(self):
        os.mkfifo(self.fifo)
        parent = subprocess.Popen([RAMSEAL, *self.command(out=self.fifo)], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
        wait_for(self.state.exists)
        os.kill(self.status(RUNNING)['pid'], signal.SIGKILL)
        out, error = parent.communicate(timeout=900)
        self.assertEqual((parent.returncode, out, error.count(b'\n')), (DIED, b'', 1))
        self.status(DIED)

    def test_a_number_that_somebody_else_has_now(self):
        said, _ = self.blocked()
        os.kill(said['pid'], signal.SIGKILL)
        wait_for(lambda: not is_alive(said['pid']))
        bystander = subprocess.Popen(['sleep', '600'])
        self.addCleanup(bystander.wait)
        self.addCleanup(bystander.kill)
        state = json.loads(self.state.read_text())
        state['pid'] = bystander.pid
        self.state.write_text(json.dumps(state))
        self.assertEqual(self.status(DIED)['state'], 'died')
        self.assertEqual(run('stop', '--state', self.state).returncode, DIED)
        self.assertIsNone(bystander.poll())

    def test_a_lie_about_the_number_while_one_runs(self):
        """The process that holds the lock is asked, whatever the file says."""
        said, drain = self.blocked()
        bystander = subprocess.Popen(['sleep', '600'])
        self.addCleanup(bystander.wait)
        self.addCleanup(bystander.kill)
        self.state.write_text(json.dumps({**json.loads(self.state.read_text()), 'pid': bystander.pid}))
        self.assertEqual(self.status(RUNNING)['pid'], said['pid'])
        threading.Thread(target=drain, daemon=True).start()
        done = run('stop', '--state', self.state)
        self.assertIn(done.returncode, (INTERRUPTED, COMPLETE))
        self.assertIsNone(bystander.poll())

    def test_signals_that_are_blocked(self):
        said, drain = self.blocked(preexec_fn=lambda: signal.pthread_sigmask(
            signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]))
        os.kill(said['pid'], signal.SIGTERM)
        drain()
        self.status(INTERRUPTED, '--wait')


class Several(Case):
    def test_who_looks_disturbs_nobody(self):
        self.state.write_text('{"schema": "ramseal-state-1"}')
        ends, wrong = threading.Event(), []

        def look():
            while not ends.is_set():
                done = run('status', '--json', '--state', self.state)
                seen = json.loads(done.stdout or '{}')
                # None of these died but the first, which has no number.
                if done.returncode not in (COMPLETE, RUNNING, DIED) or (seen['state'] == 'died' and seen['pid']):
                    wrong.append(done)

        lookers = [threading.Thread(target=look) for _ in range(4)]
        for l in lookers:
            l.start()
        for i in range(10):
            self.detach(out=self.at / str(i))
            self.status(COMPLETE, '--wait')
        ends.set()
        for l in lookers:
            l.join(250)
        self.assertEqual(wrong, [])

    def test_of_those_who_race_one_wins(self):
        os.mkfifo(self.fifo)
        fd = os.open(self.fifo, os.O_RDWR)
        self.addCleanup(os.close, fd)
        racers = [subprocess.Popen([RAMSEAL, *self.command(out=self.fifo)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE) for _ in range(6)]
        ended = [(*r.communicate(timeout=900), r.returncode) for r in racers]
        codes = sorted(code for _, _, code in ended)
        said = [json.loads(out) for out, _, code in ended if not code]
        for s in said:
            self.addCleanup(self.end, s['pid'])
        self.assertEqual(codes, [COMPLETE] + 5 * [RUNNING])
        for out, error, code in ended:
            if code:
                self.assertEqual((out, error.count(b'\n')), (b'', 1))
        self.assertEqual(self.status(RUNNING)['pid'], said[0]['pid'])

    def in_own_run(self, script, code=0):
        """As on a machine where nothing else runs: its /run is a tmpfs that nobody else sees."""
        done = subprocess.run(['unshare', '--mount', 'sh', '-ec', 'mount -t tmpfs -o mode=755 none /run; ' + script],
                              cwd=self.at, capture_output=True, timeout=900,
                              env={**os.environ, 'R': RAMSEAL, 'IMAGE': str(self.image)})
        self.assertEqual(done.returncode, code, done)
        return done

    @needs_namespace
    def test_of_this_machine_one_at_a_time(self):
        # A /proc/kcore of ours is this machine's own memory, as far as can be told; and an output that
        # nobody reads yet lets the first one wait for as long as the test needs.
        vaddr, paddr = 0xffff888000100000, 0x100000
        (self.at / 'kcore').write_bytes(
            struct.pack('<16sHHIQQQIHHHHHHIIQQQQQQ', b'\x7fELF\2\1\1', 4, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0,
                        1, 7, 120, vaddr, paddr, MIB, MIB, 4096) + bytes(MIB))
        done = self.in_own_run('''
            mkfifo fifo
            $R acquire -s kcore:kcore -o fifo & first=$!
            until test -s /run/ramseal/acquire.json; do sleep 0.1; done
            stat -c '%a %U' /run/ramseal /run/ramseal/host.lock /run/ramseal/acquire.json
            $R status || echo "status $?"
            checked() { echo "seen $($R check -s kcore:kcore -o fourth.rsz | grep -c '^no: another acquisition')"; }
            checked
            for more in '' '--detach' '--detach --state own.json'; do
                $R acquire -s kcore:/does/not/exist -o second.rsz $more || echo "code $?"
            done
            # Beside it: the place of the state is taken, so that one needs its own.
            $R acquire -s kcore:/does/not/exist -o second.rsz --allow-second || echo "code $?"
            $R acquire -s kcore:/does/not/exist -o second.rsz --allow-second --detach || echo "code $?"
            $R acquire -s kcore:/does/not/exist -o second.rsz --allow-second --detach --state own.json || echo "code $?"
            # An image is no memory of this machine.
            $R acquire -q -s file:$IMAGE -o third.rsz && echo third
            kill -9 $first
            wait $first || :
            checked
            $R status || echo "status $?"
            $R acquire -s kcore:/does/not/exist -o second.rsz || echo "code $?"
            $R status || echo "status $?"
            ''')
        self.assertEqual([line for line in done.stdout.decode().splitlines()
                          if line.startswith(('code', 'status', 'seen', 'third', '700', '600'))],
                         ['700 root', '600 root', '600 root', 'status 12', 'seen 1', 'code 12', 'code 12', 'code 12',
                          'code 4', 'code 12', 'code 4', 'third', 'seen 0', 'status 13', 'code 4', 'status 4'], done)
        self.assertIn(b'another acquisition is running on this machine (process ', done.stderr)

    @needs_namespace
    def test_the_default_place_and_where_there_is_none(self):
        done = self.in_own_run('$R acquire --detach -s file:$IMAGE -o 1.rsz; $R status --wait; '
                               'test ! -e /run/ramseal/host.lock')
        self.assertEqual(json.loads(done.stdout.splitlines()[0])['state'], '/run/ramseal/acquire.json')
        for spoiled, why in (('mount -o remount,ro /run', b'Read-only'),
                             ('mkdir -m 777 /run/ramseal', b'others may write'),
                             ('ln -s /tmp /run/ramseal', b'/run/ramseal'),
                             ('mkdir -p x; mount --bind x /run', b'on a disk')):
            with self.subTest(spoiled):
                # Without --detach that is no reason not to acquire: it ends with its own 4, and says why if asked.
                done = self.in_own_run(f'{spoiled}; $R acquire -v -s kcore:/does/not/exist -o a.rsz', NO_SOURCE)
                self.assertIn(b'cannot lock this machine against other acquisitions', done.stderr)
                self.assertIn(why, done.stderr)
                # With it nobody could find it again.
                done = self.in_own_run(f'{spoiled}; $R acquire --detach -s file:$IMAGE -o b.rsz', OUTPUT)
                self.assertEqual((done.stdout, done.stderr.count(b'\n')), (b'', 1))
                self.assertIn(b'--state', done.stderr)
                done = self.in_own_run(f'{spoiled}; $R acquire --detach --state own.json -s file:$IMAGE -o c.rsz; '
                                       '$R status --state own.json --wait; rm -r c.rsz x || :')


class Surroundings(Case):
    def test_descriptors_that_are_closed(self):
        """
        Nothing that is written goes into a descriptor that was reused: what was acquired is the same, and
        nothing else is in any file.
        """
        known = None
        for n, closed in enumerate(c for k in range(4) for c in itertools.combinations(range(3), k)):
            for detached in False, True:
                with self.subTest(closed=closed, detached=detached):
                    name, state = self.at / f'{n}-{detached}.rsz', self.at / f'{n}-{detached}.json'
                    source = SIMULATED if SIMULATOR else f'file:{self.image}'
                    args = self.command(source=source, out=name, state=state)
                    line = ' '.join(f"'{a}'" for a in args if detached or a != '--detach')
                    shut = ' '.join(f'{fd}<&-' if fd == 0 else f'{fd}>&-' for fd in closed)
                    with open(self.at / 'shown', 'w+b') as shown:
                        done = subprocess.run(['sh', '-c', f'exec "{RAMSEAL}" {line} {shut}'], stdout=shown,
                                              stderr=shown, timeout=900)
                    # Detached, it begins all the same; but that could not be said.
                    ended = self.status(COMPLETE, '--wait', state=state)
                    self.assertEqual(done.returncode, OUTPUT if detached and 1 in closed else COMPLETE)
                    self.assertEqual(ended['where'], str(name))
                    self.verify(name)
                    if SIMULATOR:
                        known = known or name.read_bytes()
                        self.assertEqual(name.read_bytes(), known)
                    self.assertEqual({p.name for p in self.at.glob(f'{n}-{detached}*')},
                                     {name.name, state.name, f'{state.name}.lock'})
                    name.unlink()

    def test_nothing_is_kept_that_somebody_waits_for(self):
        read, write = os.pipe()
        spare = os.open(self.image, os.O_RDONLY)
        try:
            # That detach() returns shows it of stdout and stderr.
            said, drain = self.blocked(pass_fds=[write, spare])
            os.close(write)
            write = None
            self.assertTrue(select.select([read], [], [], 900)[0], 'the pipe is still open')
            self.assertEqual(os.read(read, 1), b'')
            links = {int(p.name): os.readlink(p) for p in Path(f'/proc/{said["pid"]}/fd').iterdir()}
            self.assertEqual([links[fd] for fd in range(3)], 3 * ['/dev/null'])
            self.assertNotIn(spare, links)
            drain()
            self.status(COMPLETE, '--wait')
        finally:
            for fd in read, write, spare:
                if fd is not None:
                    os.close(fd)

    def test_a_descriptor_that_an_argument_names(self):
        """It is ours until what it names is open."""
        with open(self.image, 'rb') as image:
            fd = image.fileno()
            self.detach(source=f'file:/dev/fd/{fd}', pass_fds=[fd])
            self.status(COMPLETE, '--wait')
        self.verify()
        shown = run('export', '-q', '--format', 'raw', '-o', self.at / 'raw', self.out)
        self.assertEqual(shown.returncode, COMPLETE, shown.stderr)
        self.assertEqual((self.at / 'raw').read_bytes(), self.image.read_bytes())

    def test_no_terminal(self):
        self.detach(start_new_session=True, stdin=subprocess.DEVNULL)
        self.status(COMPLETE, '--wait')
        self.verify()

    def test_a_terminal_that_goes_away(self):
        os.mkfifo(self.fifo)
        fd = os.open(self.fifo, os.O_RDWR)
        self.addCleanup(os.close, fd)
        pid, terminal = pty.fork()
        if not pid:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it would be ignored
            os.execv('/bin/sh', ['sh', '-c', f'{RAMSEAL} {" ".join(self.command(out=self.fifo))}; sleep 600'])
        wait_for(lambda: self.state.exists() and self.status(RUNNING)['phase'] == 'acquiring')
        running = self.status(RUNNING)['pid']
        self.addCleanup(self.end, running)
        os.close(terminal)  # SIGHUP to all of the session
        os.waitpid(pid, 0)
        self.assertEqual(Path(f'/proc/{running}/stat').read_text().rpartition(')')[2].split()[4], '0')  # tty_nr
        self.assertEqual(self.status(RUNNING)['state'], 'running')
        threading.Thread(target=Kills.drop, args=[self, self.fifo], daemon=True).start()
        self.status(COMPLETE, '--wait')

    @needs_simulator
    def test_locales_and_time_zones(self):
        known = None
        for n, odd in enumerate(({'LC_ALL': 'tr_TR.UTF-8'}, {'LC_ALL': 'de_DE', 'LANG': 'xx'}, {'LC_ALL': '/etc/passwd'},
                                 {'TZ': 'Pacific/Kiritimati'}, {'TZ': ':/etc/passwd'}, {'TZ': '<+99>-99:59:59'}, {})):
            with self.subTest(odd):
                env = {k: v for k, v in os.environ.items() if not k.startswith(('LC_', 'LANG', 'TZ'))}
                name, state = self.at / f'{n}.rsz', self.at / f'{n}.json'
                before = time.strftime('%Y-%m-%dT%H:%M', time.gmtime())
                self.detach(source=SIMULATED, out=name, state=state, env={**env, **odd})
                begin = self.status(COMPLETE, '--wait', state=state)['begin']
                after = time.strftime('%Y-%m-%dT%H:%M', time.gmtime())
                self.assertTrue(before <= begin[:16] <= after and begin.endswith('Z'), begin)
                known = known or name.read_bytes()
                self.assertEqual(name.read_bytes(), known)

    def test_an_empty_environment(self):
        self.detach(env={})
        self.status(COMPLETE, '--wait')
        self.verify()

    @unittest.skipUnless(ROOT and STATIC, 'needs root, and a static program')
    def test_a_chroot_with_nothing_but_the_program(self):
        """No /dev, /proc, /run, /tmp, libraries, and no descriptors either."""
        root = self.at / 'root'
        root.mkdir()
        shutil.copy(RAMSEAL, root / 'ramseal')
        shutil.copy(self.image, root / 'image')

        def enter(closed):
            os.chroot(root)
            os.chdir('/')
            for fd in closed:
                os.close(fd)

        for detached, closed in itertools.product((False, True), ((), (0, 2), (0, 1, 2))):
            with self.subTest(detached=detached, closed=closed):
                done = subprocess.run(['/ramseal', 'acquire', *['--detach'] * detached, '--state', '/s.json',
                                       '-s', 'file:/image', '-o', '/out.rsz'], capture_output=True, timeout=900,
                                      preexec_fn=lambda closed=closed: enter(closed))
                self.status(COMPLETE, '--wait', state=root / 's.json')
                self.assertEqual(done.returncode, OUTPUT if detached and 1 in closed else COMPLETE, done)
                self.verify(root / 'out.rsz')
                self.assertEqual({p.name for p in root.iterdir()},
                                 {'ramseal', 'image', 'out.rsz', 's.json', 's.json.lock'})
                for name in 'out.rsz', 's.json', 's.json.lock':
                    (root / name).unlink()

    @needs_namespace
    def test_a_root_that_is_read_only(self):
        """Only the target can be written to: neither /run nor /tmp nor the current folder."""
        done = subprocess.run(['unshare', '--mount', 'sh', '-ec', '''
            mkdir target
            for at in / /run /tmp; do
                if mountpoint -q $at; then mount -o remount,bind,ro $at; fi
            done
            if touch new /run/new /new 2>/dev/null; then exit 99; fi
            mount -t tmpfs none target
            "$R" acquire -v -s file:"$IMAGE" -o "$AT"/target/a.rsz
            "$R" acquire --detach --state "$AT"/target/s -s file:"$IMAGE" -o "$AT"/target/b.rsz
            "$R" status --wait --state "$AT"/target/s
            for name in a b; do "$R" verify -q "$AT"/target/$name.rsz; done
            '''], cwd=self.at, capture_output=True, timeout=900,
                              env={**os.environ, 'R': RAMSEAL, 'IMAGE': str(self.image), 'AT': str(self.at)})
        self.assertEqual(done.returncode, 0, done)
        self.assertIn(b'ended: exit code 0', done.stdout)


if __name__ == '__main__':
    unittest.main()
