#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What an acquisition says of its container, and a container held against that.
Usage: test_statement.py RAMSEAL SOURCE-ROOT
"""
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
from test_acquire import RAMSEAL, Case, memory, needs_simulator, run  # noqa: E402

HEX = '[0-9a-f]'
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
        self.assertLess(int(said['begin_mono_ns']), int(said['end_mono_ns']))
        self.assertEqual(time.strftime('%Y', time.gmtime(before / 10**9)), said['begin'][:4])

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
        done = run('acquire', '-q', '--source', 'sim:cohen2015,ram=64M,resident=8M,allocated=16M,trimmed=4M,others=4M,cache=2M', '-o', self.at / 'out.rsz',
                   '--statement', statement)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        said = lines(statement.read_text())
        self.assertEqual(said['source'], 'sim')
        self.assertEqual(said['outcome'], 'complete' if done.returncode == 0 else 'gaps')
        self.assertNotIn('tool_sha256', said)

    def test_stopped(self):
        """On a SIGTERM the container is sealed, and the statement says that not all is in it."""
        statement = self.at / 'statement'
        image = self.file('image', memory(20000))
        os.mkfifo(self.at / 'fifo')
        child = subprocess.Popen([RAMSEAL, 'acquire', '-q', '-l', 'store', '--source', f'file:{image}',
                                  '-o', self.at / 'fifo', '--statement', statement],
                                 stderr=subprocess.PIPE)
        with open(self.at / 'fifo', 'rb') as end:
            container = end.read(1 << 20)
            child.send_signal(signal.SIGTERM)
            container += end.read()
        self.assertEqual(child.wait(), 8, child.stderr.read())
        child.stderr.close()
        said = lines(statement.read_text())
        self.assertEqual((said['outcome'], int(said['size'])), ('stopped', len(container)))

    def test_unsealed(self):
        """Nobody reads to the end: there is no root, and the statement does not name one."""
        statement = self.at / 'statement'
        image = self.file('image', memory(20000))
        os.mkfifo(self.at / 'fifo')
        child = subprocess.Popen([RAMSEAL, 'acquire', '-q', '-l', 'store', '--source', f'file:{image}',
                                  '-o', self.at / 'fifo', '--statement', statement],
                                 stderr=subprocess.PIPE)
        with open(self.at / 'fifo', 'rb') as end:
            end.read(1 << 20)
        self.assertEqual(child.wait(), 6, child.stderr.read())
        child.stderr.close()
        said = lines(statement.read_text())
        self.assertEqual(said['outcome'], 'unsealed')
        self.assertNotIn('root', said)


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
        self.refused(6, 'the statement', '-o', out, '--statement', out)
        self.refused(6, 'the statement', '-o', out, '--statement', out, '--force')
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
