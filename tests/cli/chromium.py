# SPDX-License-Identifier: Apache-2.0
"""
One headless Chromium that opens pages, measures them and takes pictures, through the DevTools protocol
over two pipes (--remote-debugging-pipe: a JSON object and a zero byte for each message).

    with Chromium() as browser:
        browser.open(path, width=420, dark=True)
        browser.value('document.documentElement.scrollWidth')
        browser.screenshot(png)
        browser.console   # what the page caused to be said

It asks pages from outside: their own policy, which forbids scripts, stays in force.
"""

import base64
import json
import os
import select
import subprocess
import tempfile
import time
from pathlib import Path

TIMEOUT = 900  # for an answer on a machine that does much else


class Chromium:
    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(prefix='ramseal-chromium-')
        theirs, self.out = os.pipe()
        self.into, theirs_out = os.pipe()
        # The protocol wants them as 3 and 4, which may be any of the four.
        high = [os.dup(fd) for fd in (theirs, theirs_out)]
        for fd in (theirs, theirs_out):
            os.close(fd)
        self.process = subprocess.Popen(
            ['sh', '-c', f'exec 3<&{high[0]} 4>&{high[1]}; exec "$@"', 'sh', 'chromium',
             '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
             '--disable-background-networking', '--disable-dev-shm-usage', '--hide-scrollbars',
             '--remote-debugging-pipe', f'--user-data-dir={self.profile.name}', 'about:blank'],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=high)
        for fd in high:
            os.close(fd)
        self.sent, self.buffer, self.session, self.loaded, self.console = 0, b'', None, False, []

    def __enter__(self):
        target, = (t['targetId'] for t in self.call('Target.getTargets')['targetInfos']
                   if t['type'] == 'page')
        self.session = self.call('Target.attachToTarget', targetId=target,
                                 flatten=True)['sessionId']
        for domain in ('Page', 'Log', 'Runtime'):
            self.call(f'{domain}.enable')
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for fd in (self.out, self.into):
            os.close(fd)
        self.profile.cleanup()

    def message(self):
        deadline = time.monotonic() + TIMEOUT
        while b'\0' not in self.buffer:
            if not select.select([self.into], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise TimeoutError('chromium does not answer')
            more = os.read(self.into, 1 << 16)
            if not more:
                raise EOFError('chromium has ended')
            self.buffer += more
        message, self.buffer = self.buffer.split(b'\0', 1)
        return json.loads(message)

    def event(self, message):
        method, about = message.get('method'), message.get('params', {})
        if method == 'Page.loadEventFired':
            self.loaded = True
        elif method == 'Log.entryAdded':
            self.console.append(about['entry']['text'])
        elif method in ('Runtime.consoleAPICalled', 'Runtime.exceptionThrown'):
            self.console.append(str(about))

    def call(self, method, **params):
        self.sent += 1
        wanted = {'id': self.sent, 'method': method, 'params': params}
        if self.session:
            wanted['sessionId'] = self.session
        os.write(self.out, json.dumps(wanted).encode() + b'\0')
        while True:
            message = self.message()
            if message.get('id') == self.sent:
                if 'error' in message:
                    raise RuntimeError(f'{method}: {message["error"]}')
                return message['result']
            self.event(message)

    def show(self, width=1280, dark=False):
        """The page that is there, in a window of that width: to load it once more takes longer."""
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=900,
                  deviceScaleFactor=1, mobile=False)
        self.call('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])

    def open(self, path, width=1280, dark=False):
        """Loads it in a window of that width, without what the page before it said."""
        self.show(width, dark)
        self.loaded, self.console = False, []
        self.call('Page.navigate', url=Path(path).resolve().as_uri())
        while not self.loaded:
            self.event(self.message())

    def value(self, expression):
        done = self.call('Runtime.evaluate', expression=expression, returnByValue=True)
        if 'exceptionDetails' in done:
            raise RuntimeError(str(done['exceptionDetails']))
        return done['result'].get('value')

    def screenshot(self, path, height=None, scale=1):
        """The page's whole width; of its height all, or what is given."""
        width, whole = self.value('[innerWidth, document.documentElement.scrollHeight]')
        shot = self.call('Page.captureScreenshot', format='png', captureBeyondViewport=True,
                         clip={'x': 0, 'y': 0, 'width': width, 'height': height or whole,
                               'scale': scale})
        Path(path).write_bytes(base64.b64decode(shot['data']))

    def pdf(self, path):
        printed = self.call('Page.printToPDF', preferCSSPageSize=True)
        Path(path).write_bytes(base64.b64decode(printed['data']))
