# SPDX-License-Identifier: Apache-2.0
"""
A TCP proxy in front of a server: it cuts connections behind a number of bytes, lets them stall, and
throttles. It never changes or repeats a byte.
"""

import random
import socket
import threading
import time


class FaultProxy:
    """
    `cuts`: so many connections more are cut, each behind a random number of bytes that went out or
    came back: a quarter of them behind a few, the others anywhere up to `within`. `rate`: bytes per
    second, 0 for no limit. `dead`: nothing moves; it becomes true when more than `dead_after` bytes have passed.
    """

    def __init__(self, port, seed=1):
        self.target, self.draw = port, random.Random(seed)
        self.cuts = self.made = 0
        self.within = 1 << 20
        self.rate = 0
        self.dead = False
        self.dead_after = None
        self.lock = threading.Lock()
        self.passed = 0
        self.listener = socket.create_server(('127.0.0.1', 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def next_cut(self):
        with self.lock:
            if self.cuts <= 0:
                return None
            self.cuts -= 1
            self.made += 1
            early = [0, 1, self.draw.randrange(2000)]
            return self.draw.choice(early if self.draw.randrange(4) == 0
                                    else [self.draw.randrange(self.within)])

    def serve(self, client):
        try:
            server = socket.create_connection(('127.0.0.1', self.target))
        except OSError:
            client.close()
            return
        budget = [self.next_cut()]
        back = threading.Thread(target=self.pump, args=(server, client, budget), daemon=True)
        back.start()
        self.pump(client, server, budget)
        back.join()
        client.close()
        server.close()

    def pump(self, a, b, budget):
        try:
            while data := a.recv(16384):
                while self.dead:
                    time.sleep(0.05)
                if budget[0] is not None:
                    kept = data[:budget[0]]
                    budget[0] -= len(data)
                    if budget[0] <= 0:
                        b.sendall(kept)
                        raise ConnectionError
                with self.lock:
                    self.passed += len(data)
                    self.dead |= self.dead_after is not None and self.passed > self.dead_after
                if self.rate:
                    time.sleep(len(data) / self.rate)
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            for s in (a, b):
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self):
        self.listener.close()
