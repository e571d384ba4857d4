# SPDX-License-Identifier: Apache-2.0
"""
A TCP proxy in front of a server: it cuts connections behind a number of bytes, loses answers, lets
connections stall, and throttles. It never changes or repeats a byte.
"""

import random
import socket
import threading
import time


class Link:
    """One connection: how many bytes it has left (None: no end), and whether an answer is owed."""

    def __init__(self, budget):
        self.budget, self.asked, self.cut = budget, False, False


class FaultProxy:
    """
    `cuts`: so many connections more are cut, each behind a random number of bytes that went out or
    came back: a quarter of them behind a few, the others anywhere up to `within`. One that ends before
    does not count. With `mercy`, of so many that were cut in a row the next one lasts for `whole` bytes at
    least: whoever waits longer after each failure would wait for hours else.
    `lose`: the numbers of answers that are lost, counted over all connections: whatever comes back
    first after something went out. The connection ends there.
    `moments`: (bytes, what) in order: called when so many bytes have passed, and before they go on. What
    it returns, if true, ends the connection: after a kill there is more in the sockets otherwise.
    `rate`: bytes per second, 0 for no limit. `dead`: nothing moves; it becomes true when more than
    `dead_after` bytes have passed.
    """

    def __init__(self, port, seed=1):
        self.target, self.draw = port, random.Random(seed)
        self.cuts = self.made = self.row = 0
        self.within, self.mercy, self.whole = 1 << 20, 0, 0
        self.lose, self.answers, self.lost = set(), 0, 0
        self.moments = []
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

    def next_budget(self):
        with self.lock:
            if self.cuts <= 0:
                return None
            self.cuts -= 1
            if self.mercy and self.row >= self.mercy:
                self.row = 0
                return self.whole + self.draw.randrange(self.within)
            self.row += 1
            early = [0, 1, self.draw.randrange(2000)]
            return self.draw.choice(early if self.draw.randrange(4) == 0
                                    else [self.draw.randrange(self.within)])

    def serve(self, client):
        try:
            server = socket.create_connection(('127.0.0.1', self.target))
        except OSError:
            client.close()
            return
        link = Link(self.next_budget())
        back = threading.Thread(target=self.pump, args=(server, client, link, True), daemon=True)
        back.start()
        self.pump(client, server, link, False)
        back.join()
        client.close()
        server.close()
        with self.lock:
            if link.budget is not None and not link.cut:
                self.cuts += 1
                self.row = max(self.row - 1, 0)

    def is_lost(self, link, back):
        """Under the lock."""
        if not back:
            link.asked = True
        elif link.asked:
            link.asked = False
            self.answers += 1
            if self.answers - 1 in self.lose:
                self.lost += 1
                return True
        return False

    def let_pass(self, link, data, back):
        """What of it goes on; the connection ends if that is not all."""
        due = []
        with self.lock:
            if self.is_lost(link, back):
                return b''
            if link.budget is not None:
                data, left = data[:link.budget], link.budget - len(data)
                if left <= 0 and not link.cut:
                    link.cut = True
                    self.made += 1
                link.budget = max(left, 0)
            self.passed += len(data)
            self.dead |= self.dead_after is not None and self.passed > self.dead_after
            while self.moments and self.passed >= self.moments[0][0]:
                due.append(self.moments.pop(0)[1])
        if any([what() for what in due]):
            link.cut = True
            return b''
        return data

    def pump(self, a, b, link, back):
        try:
            while data := a.recv(16384):
                while self.dead:
                    time.sleep(0.05)
                kept = self.let_pass(link, data, back)
                if self.rate:
                    time.sleep(len(kept) / self.rate)
                b.sendall(kept)
                if link.cut or len(kept) < len(data):
                    raise ConnectionError
            b.shutdown(socket.SHUT_WR)
        except OSError:
            for s in (a, b):
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self):
        self.listener.close()
