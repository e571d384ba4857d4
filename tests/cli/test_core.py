#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A crash leaves no core file, which would hold keys and the host's memory. Usage: test_core.py RAMSEAL"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

RAMSEAL = os.path.abspath(sys.argv.pop(1))
NOBODY = 65534
os.environ.pop('RAMSEAL_DUMPABLE', None)
WAIT_SECONDS = 900


def want_a_core():
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))


class Core(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-core-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)
        (self.at / 'image').write_bytes(bytes(range(256)) * 4096 * 8)

    def started(self, program=RAMSEAL, **more):
        """An acquisition that waits, because nobody reads the pipe that it writes to."""
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        with os.fdopen(write, 'wb') as out:
            process = subprocess.Popen([program, 'acquire', '-q', '--level', 'store', '--nice', '10', '--source',
                                        f'file:{self.at}/image', '-o', '-'], stdout=out, stderr=subprocess.DEVNULL,
                                       cwd=self.at, **more)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.read(read, 1)  # it is under way
        return process

    def test_no_core_after_a_crash(self):
        for number in signal.SIGSEGV, signal.SIGABRT:
            process = self.started(preexec_fn=want_a_core)
            process.send_signal(number)
            status = os.waitpid(process.pid, 0)[1]
            process.returncode = -number
            self.assertFalse(os.WCOREDUMP(status))
            self.assertEqual([p.name for p in self.at.iterdir()], ['image'])

    def test_where_cores_are_piped(self):
        """There the limit does not count, but that the process is not dumpable (core(5)): its files are root's."""
        process = self.started(preexec_fn=want_a_core)
        limits = Path(f'/proc/{process.pid}/limits').read_text()
        self.assertRegex(limits, r'Max core file size +0 +0 ')
        if os.geteuid():
            self.assertEqual(os.stat(f'/proc/{process.pid}/environ').st_uid, 0)

    @unittest.skipIf(os.geteuid(), 'root alone can become somebody else')
    def test_of_somebody_else(self):
        os.chmod(self.at, 0o777)
        program = self.at / 'ramseal'
        shutil.copy(RAMSEAL, program)
        process = self.started(program, user=NOBODY, group=NOBODY, extra_groups=[], preexec_fn=want_a_core)
        self.assertEqual(os.stat(f'/proc/{process.pid}/environ').st_uid, 0)
        process.send_signal(signal.SIGSEGV)
        self.assertEqual(process.wait(), -signal.SIGSEGV)
        self.assertEqual(sorted(p.name for p in self.at.iterdir()), ['image', 'ramseal'])

    def test_who_debugs_asks_for_it(self):
        process = self.started(preexec_fn=want_a_core, env={**os.environ, 'RAMSEAL_DUMPABLE': '1'})
        wanted = resource.getrlimit(resource.RLIMIT_CORE)[1]
        shown = 'unlimited' if wanted == resource.RLIM_INFINITY else str(wanted)
        self.assertRegex(Path(f'/proc/{process.pid}/limits').read_text(), f'Max core file size +{shown} ')

    @unittest.skipIf(os.geteuid(), 'root alone can become somebody else')
    def test_what_it_reads_of_itself(self):
        """Root's or not, it finds what it has read and written, and offers itself to the kernel, detached or not."""
        os.chmod(self.at, 0o777)
        program = self.at / 'ramseal'
        shutil.copy(RAMSEAL, program)
        for more in [], ['--detach', '--state', self.at / 'state']:
            out = self.at / 'out.rsz'
            subprocess.run([program, 'acquire', '-q', '-f', '--source', f'file:{self.at}/image', '-o', out, *more],
                           check=True, user=NOBODY, group=NOBODY, extra_groups=[], stdout=subprocess.DEVNULL)
            if more:
                subprocess.run([program, 'status', '--wait', '--state', self.at / 'state'], check=True, user=NOBODY,
                               group=NOBODY, extra_groups=[], stdout=subprocess.DEVNULL)
            said = json.loads(subprocess.run([RAMSEAL, 'info', '--json', out], check=True, capture_output=True).stdout)
            self.assertGreater(said['usage']['io']['read_bytes'], 8 << 20, said['usage'])

        process = self.started(program, user=NOBODY, group=NOBODY, extra_groups=[])
        until = time.monotonic() + WAIT_SECONDS
        while Path(f'/proc/{process.pid}/oom_score_adj').read_text() != '1000\n':
            self.assertLess(time.monotonic(), until, 'it does not offer itself')
            time.sleep(0.02)


if __name__ == '__main__':
    unittest.main()
