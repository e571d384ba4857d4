# SPDX-License-Identifier: Apache-2.0
"""
What the stores of the tests have in common: requests one by one, each written down, and what a store is
told to do wrong. What a request means is the store's own: see s3_server.py and azblob_server.py.
"""

import email.utils
import http.server
import re
import threading
import time
import urllib.parse


class Faults:
    """What goes wrong next. Each is taken away when it happened, unless it stays."""

    def __init__(self):
        # (pattern of "METHOD query", status, code or bytes of the body, headers), once each
        self.answers = []
        self.clock_ahead = 0  # seconds
        self.drop_after = []  # patterns: the request is carried out, and its answer is not sent
        self.garbage = []     # patterns: what comes is no HTTP
        self.said_of_done = []  # in place of what a completion that was carried out answers
        self.error_in_200 = 0  # so many completions answer 200 with an error in the body
        self.no_conditions = False
        # (pattern, n): behind the first n that fit, a request waits until `go_on`; who sends them comes no further.
        self.hold, self.go_on = None, threading.Event()


class Refusal(Exception):
    def __init__(self, status, code, extra=''):
        super().__init__(code)
        self.status, self.code, self.extra = status, code, extra


class Store:
    def __init__(self):
        self.requests, self.faults = [], Faults()
        self.connections = []  # the ports that the requests came from
        self.lock = threading.Lock()


def taken(patterns, what, key=lambda p: p):
    """The first that fits, which is taken away; or None."""
    found = next((p for p in patterns if re.search(key(p), what)), None)
    if found:
        patterns.remove(found)
    return found


class Handler(http.server.BaseHTTPRequestHandler):
    """
    A store has `act(path, query, body)`, which returns (status, body, headers) or raises Refusal, and
    `refusal(r)`, which returns the same for an error.
    """

    protocol_version = 'HTTP/1.1'
    timeout = 60

    def log_message(self, *_):
        pass

    @property
    def store(self):
        return self.server.store

    def date_time_string(self, timestamp=None):
        return email.utils.formatdate(time.time() + self.store.faults.clock_ahead, usegmt=True)

    def answer(self, status, body=b'', headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if not any(name == 'Content-Length' for name, _ in headers):
            self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)

    def as_told(self, status, code, headers):
        if not code or isinstance(code, bytes):
            return status, code or b'', headers
        status, body, own = self.refusal(Refusal(status, code))
        return status, body, [*own, *headers]

    def reply_to(self, path, query, body):
        try:
            return self.act(path, dict(urllib.parse.parse_qsl(query, True)), body)
        except Refusal as r:
            return self.refusal(r)

    def wait_if_held(self, what):
        faults = self.store.faults
        with self.store.lock:
            if not faults.hold or not re.search(faults.hold[0], what):
                return
            pattern, left = faults.hold
            faults.hold = pattern, left - 1
        if left <= 0:
            faults.go_on.wait()

    def handle_any(self):
        length = int(self.headers.get('content-length', 0))
        body = self.rfile.read(length)
        if len(body) != length:  # cut off: no server carries that out
            self.close_connection = True
            return
        path, _, query = self.path.partition('?')
        what, faults = f'{self.command} {query}', self.store.faults
        self.wait_if_held(what)
        with self.store.lock:
            self.store.requests.append((self.command, self.path, dict(self.headers)))
            self.store.connections.append(self.client_address[1])
            told = taken(faults.answers, what, lambda a: a[0])
            if not told and taken(faults.garbage, what):
                self.close_connection = True
                self.wfile.write(b'<html>Log in to this network first</html>')
                return
            reply = self.as_told(*told[1:]) if told else self.reply_to(path, query, body)
            dropped = not told and reply[0] < 300 and taken(faults.drop_after, what)
        if dropped:
            self.close_connection = True
        else:
            self.answer(*reply)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, handler, store, tls=None):
        super().__init__(('127.0.0.1', 0), handler)
        self.store, self.tls = store, tls
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def finish_request(self, request, client_address):
        if not self.tls:
            return super().finish_request(request, client_address)
        # In the connection's own thread.
        with self.tls.wrap_socket(request, server_side=True) as wrapped:
            return super().finish_request(wrapped, client_address)

    def handle_error(self, request, client_address):
        pass  # a connection that was cut off is what the tests are about

    @property
    def port(self):
        return self.server_address[1]
