#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Callers who hold places: sockets on which nothing is said, and handshakes that stop behind their first word.
Whoever is hung up on calls again, at once or after a pause.
Usage: crowd.py PORT IDLE HALF FIRST LAST PAUSE
They call from 127.0.0.FIRST to 127.0.0.LAST in turn; PAUSE is in seconds, -1: half handshakes never call again.
Prints "ready" when all have called, and ends with its standard input: how often they were hung up on.
"""
import itertools
import selectors
import socket
import ssl
import struct
import subprocess
import sys
import time


def client_hello():
    """The first word of a client of TLS 1.3."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    out = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), out).do_handshake()
    except ssl.SSLWantReadError:
        return out.read()


def hello(number):
    """Of a sender: the frame (PROTOCOL.md, section 2)."""
    body = b'ramseal\n' + struct.pack('<HHI16sQQ', 1, 0, 0, bytes([number] * 16), 0, 0)
    return struct.pack('<II', 1, len(body)) + body


PING = struct.pack('<II', 5, 0)


class Crowd:
    """One in a process of its own, for a test."""

    def __init__(self, port, idle, half, first=1, last=1, pause=-1):
        self.process = subprocess.Popen(
            [sys.executable, __file__, *map(str, (port, idle, half, first, last, pause))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == 'ready\n'

    def end(self):
        """How often they were hung up on."""
        out, _ = self.process.communicate()
        return int(out)


class Callers:
    def __init__(self, port, addresses, pause):
        self.port, self.addresses, self.pause = port, itertools.cycle(addresses), pause
        self.word = client_hello()
        self.hung_up = 0
        self.selector = selectors.DefaultSelector()
        self.later = []  # (when, what it says), in order

    def call(self, word):
        s = socket.socket()
        s.setblocking(False)
        s.bind((f'127.0.0.{next(self.addresses)}', 0))
        s.connect_ex(('127.0.0.1', self.port))
        self.selector.register(s, selectors.EVENT_READ | (selectors.EVENT_WRITE if word else 0), word)

    def event(self, key, mask):
        """True: it goes on."""
        if mask & selectors.EVENT_WRITE:
            self.selector.modify(key.fileobj, selectors.EVENT_READ, key.data)
            try:
                key.fileobj.sendall(key.data)
            except OSError:
                return False
        try:
            return not mask & selectors.EVENT_READ or key.fileobj.recv(65536) != b''
        except BlockingIOError:
            return True
        except OSError:
            return False

    def hang_up(self, key):
        self.selector.unregister(key.fileobj)
        key.fileobj.close()
        self.hung_up += 1
        if self.pause >= 0 or not key.data:
            self.later.append((time.monotonic() + max(self.pause, 0), key.data))

    def step(self):
        while self.later and self.later[0][0] <= time.monotonic():
            self.call(self.later.pop(0)[1])
        for key, mask in self.selector.select(0.05):
            if key.data is None:
                return False
            if not self.event(key, mask):
                self.hang_up(key)
        return True


def main():
    port, idle, half, first, last = map(int, sys.argv[1:6])
    callers = Callers(port, range(first, last + 1), float(sys.argv[6]))
    for i in range(idle + half):
        callers.call(callers.word if i >= idle else b'')
        callers.step()
    print('ready', flush=True)
    callers.selector.register(sys.stdin, selectors.EVENT_READ, None)
    while callers.step():
        pass
    print(callers.hung_up)


if __name__ == '__main__':
    main()
