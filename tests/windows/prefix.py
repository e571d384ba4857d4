# SPDX-License-Identifier: Apache-2.0
"""A Windows of its own, as Wine has it."""

import os
import subprocess


class Prefix:
    def __init__(self, wine, path):
        """`wine` runs a Windows program; `path` is made by start()."""
        self.wine = str(wine)
        self.path = path
        self.env = {**os.environ, 'WINEPREFIX': str(path), 'LC_ALL': 'C.UTF-8'}
        self.awake = None

    def run(self, *args, **more):
        more = {'capture_output': True, 'timeout': 600, 'stdin': subprocess.DEVNULL, 'env': self.env, **more}
        return subprocess.run([self.wine, *map(str, args)], **more)

    def start(self):
        self.path.mkdir(parents=True)
        # Makes the prefix. Its services get the time that a loaded machine needs.
        ran = self.run('reg', 'add', 'HKLM\\System\\CurrentControlSet\\Control', '/v',
                       'ServicesPipeTimeout', '/t', 'REG_SZ', '/d', '300000', '/f',
                       capture_output=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert ran.returncode == 0, self.path.with_name(self.path.name + '.log').read_text(errors='replace')
        self._server('-k')
        self._server('-w')
        self._stay_awake()

    def restart(self):
        """All programs and drivers are gone, as when Windows restarts."""
        self.stop()
        self._stay_awake()

    def _stay_awake(self):
        # As long as a program runs, the services do. They hold what its descriptors are, and
        # whoever waits for the end of a pipe must not be the one who started them.
        self.awake = subprocess.Popen([self.wine, 'cmd', '/c', 'echo up & pause'], env=self.env,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL)
        assert self.awake.stdout.readline().strip() == b'up'

    def stop(self):
        self.awake.stdin.write(b'\n')
        self.awake.stdin.close()
        self.awake.wait(timeout=900)
        self.awake.stdout.close()
        self._server('-k')
        self._server('-w')

    def _server(self, option):
        self.run('--server', option, capture_output=False, timeout=900)
