# SPDX-License-Identifier: Apache-2.0
"""A `ramseal receive` on the loopback."""

import json
import signal
import subprocess
import threading
import time

WAIT = 900


def new_key(ramseal, path):
    """Its pin."""
    done = subprocess.run([ramseal, 'receive', '--new-key', path], capture_output=True, timeout=WAIT)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


def wait_for(what):
    until = time.monotonic() + WAIT
    while not (ret := what()):
        if time.monotonic() > until:
            raise AssertionError('nothing happened')
        time.sleep(0.02)
    return ret


class Receiver:
    """
    Takes files into the folder `at`, from `senders`, whom their pins name, or from anybody. Its lines of JSON
    are in `lines`.
    """

    def __init__(self, ramseal, at, key, senders, *args, listen='127.0.0.1:0'):
        senders = ([a for pin in senders for a in ('--sender', pin)] if senders
                   else ['--any-sender', '--max-total', '1G'])
        self.lines, self.err = [], []
        self.process = subprocess.Popen(
            [ramseal, 'receive', '--log-json', '--listen', listen, '--key', str(key), '--dir', str(at),
             *senders, *args], stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        wait_for(lambda: self.lines or self.process.poll() is not None)
        if not self.lines or 'pin' not in self.lines[0]:
            raise AssertionError(self.lines)
        self.pin = self.lines[0]['pin']
        self.port = int(self.lines[0]['address'].rsplit(':', 1)[1])

    def read(self):
        for line in self.process.stderr:
            self.lines.append(json.loads(line))

    def events(self, name):
        return [line for line in self.lines if line['event'] == name]

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(WAIT)
        self.end()
        return self.process.returncode
