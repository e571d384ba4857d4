# SPDX-License-Identifier: Apache-2.0
"""
A server that takes a PUT, as an address presigned by an object store does: conditions (RFC 9110, 13.1), an ETag
that is the MD5, nothing without a length. What it is told to do wrong it does: see `Faults` in
store_server.py.
"""

import hashlib

import store_server
from store_server import Refusal


class Store(store_server.Store):
    def __init__(self):
        super().__init__()
        self.objects = {}


class Handler(store_server.Handler):
    def refusal(self, r):
        return r.status, b'', ()

    def act(self, path, query, body):
        objects, path = self.store.objects, self.path
        if self.command == 'PUT':
            if 'content-length' not in self.headers or 'transfer-encoding' in self.headers:
                raise Refusal(411, '')
            if self.headers.get('if-none-match') == '*' and path in objects:
                raise Refusal(412, '')
            status = 204 if path in objects else 201
            objects[path] = body
            return status, b'', ()
        if path not in objects:
            raise Refusal(404, '')
        return 200, objects[path], [('ETag', f'"{hashlib.md5(objects[path]).hexdigest()}"')]


class Server(store_server.Server):
    def __init__(self, store, tls=None):
        super().__init__(Handler, store, tls)
