# SPDX-License-Identifier: Apache-2.0
"""
A small store of block blobs that is stricter than most: rights of the SAS for each request, names of
blocks, Content-MD5, conditions, and what becomes of blocks that a list does not name (Azure Blob
Storage REST API: Put Block, Put Block List, Get Block List). What it is told to do wrong it does: see
`Faults` in store_server.py. Nothing in here is shared with ramseal.
"""

import base64
import email.utils
import hashlib
import itertools
import time
import urllib.parse
import xml.etree.ElementTree

import store_server
from store_server import Refusal

SIGNATURE = 'sEcReTsIgNaTuReOfTheTests0123456789abcdefgh='


class Blob:
    """`content` is None, and `etag` '', as long as no list was put."""

    def __init__(self):
        self.content, self.etag = None, ''
        self.committed, self.waiting = {}, {}  # name: bytes
        self.policy = None  # (mode, until)


class Store(store_server.Store):
    def __init__(self, rights='rcwd'):
        super().__init__()
        self.rights, self.containers, self.immutable = rights, {'evidence': {}}, True
        self.lists = 0
        self.etags = itertools.count(1)

    @property
    def sas(self):
        return (f'sv=2021-08-06&sr=c&sp={self.rights}&se=2037-01-01T00%3A00%3A00Z'
                f'&sig={urllib.parse.quote(SIGNATURE, safe="")}')


class Handler(store_server.Handler):
    def refusal(self, r):
        body = f'<?xml version="1.0" encoding="utf-8"?><Error><Code>{r.code}</Code></Error>'.encode()
        return r.status, body, [('x-ms-error-code', r.code)]

    def need(self, *rights):
        if not any(right in self.store.rights for right in rights):
            raise Refusal(403, 'AuthorizationPermissionMismatch')

    def check_sum(self, body):
        if self.headers.get('content-md5') != base64.b64encode(hashlib.md5(body).digest()).decode():
            raise Refusal(400, 'Md5Mismatch')

    def act(self, path, query, body):
        if query.get('sig') != SIGNATURE or query.get('sp') != self.store.rights:
            raise Refusal(403, 'AuthenticationFailed')
        if self.headers.get('x-ms-version', '') < '2019-12-12' or 'transfer-encoding' in self.headers:
            raise Refusal(400, 'InvalidHeaderValue')
        container, _, name = urllib.parse.unquote(path[1:]).partition('/')
        if container not in self.store.containers:
            raise Refusal(404, 'ContainerNotFound')
        blobs = self.store.containers[container]
        what = query.get('comp')
        if self.command == 'PUT' and what == 'block':
            return self.put_block(blobs.setdefault(name, Blob()), query['blockid'], body)
        blob = blobs.get(name)
        if self.command == 'PUT' and what == 'blocklist':
            return self.put_list(blob or Blob(), body)
        if self.command == 'GET' and what == 'blocklist':
            self.need('r')
            if not blob or blob.content is None and not blob.waiting:
                raise Refusal(404, 'BlobNotFound')
            return self.get_list(blob, query['blocklisttype'])
        if not blob or blob.content is None:
            self.need('r' if self.command == 'HEAD' else 'd')
            raise Refusal(404, 'BlobNotFound')
        if self.command == 'PUT' and what == 'immutabilityPolicies':
            return self.set_policy(blob)
        if self.command == 'HEAD':
            self.need('r')
            return 200, b'', [('Content-Length', str(len(blob.content))), ('ETag', blob.etag)]
        self.need('d')
        self.check_conditions(blob)
        del blobs[name]
        return 202, b'', ()

    def check_conditions(self, blob):
        there = blob.content is not None
        if self.headers.get('if-none-match') == '*' and there:
            raise Refusal(409, 'BlobAlreadyExists')
        match = self.headers.get('if-match')
        if match is not None and (not there or match != blob.etag):
            raise Refusal(412, 'ConditionNotMet')

    def put_block(self, blob, name, body):
        self.need('w', 'c')
        self.check_sum(body)
        if not body or len(base64.b64decode(name, validate=True)) > 64:
            raise Refusal(400, 'InvalidQueryParameterValue')
        if any(len(other) != len(name) for other in blob.waiting):
            raise Refusal(400, 'InvalidBlobOrBlock')
        blob.waiting[name] = body
        return 201, b'', ()

    def put_list(self, blob, body):
        self.need('w', 'c')
        self.check_sum(body)
        self.check_conditions(blob)
        if blob.policy:
            raise Refusal(409, 'BlobImmutableDueToPolicy')
        if blob.content is not None and 'w' not in self.store.rights:
            raise Refusal(403, 'UnauthorizedBlobOverwrite')
        blocks = {}
        for element in xml.etree.ElementTree.fromstring(body):
            where = {'Committed': [blob.committed], 'Uncommitted': [blob.waiting],
                     'Latest': [blob.waiting, blob.committed]}[element.tag]
            found = next((w[element.text] for w in where if element.text in w), None)
            if found is None:
                raise Refusal(400, 'InvalidBlockList')
            blocks[element.text] = found
        blob.content = b''.join(blocks.values())
        blob.committed, blob.waiting = blocks, {}
        blob.etag = f'"0x8D{next(self.store.etags)}"'
        self.store.lists += 1
        return 201, b'', [('ETag', blob.etag)]

    def set_policy(self, blob):
        """Set Blob Immutability Policy."""
        self.need('i')
        if not self.store.immutable:
            raise Refusal(409, 'FeatureNotEnabled')
        if self.headers['x-ms-version'] < '2020-06-12':
            raise Refusal(400, 'InvalidHeaderValue')
        mode, until = (self.headers[f'x-ms-immutability-policy-{what}'] for what in ('mode', 'until-date'))
        then = email.utils.parsedate_to_datetime(until)
        if (mode not in ('Locked', 'Unlocked') or email.utils.format_datetime(then, usegmt=True) != until
                or then.timestamp() <= time.time()):
            raise Refusal(400, 'InvalidHeaderValue')
        blob.policy = (mode, until)
        return 200, b'', ()

    def get_list(self, blob, kind):
        def part(tag, blocks):
            return f'<{tag}>' + ''.join(f'<Block><Name>{name}</Name><Size>{len(b)}</Size></Block>'
                                        for name, b in sorted(blocks.items())) + f'</{tag}>'
        body = '<?xml version="1.0" encoding="utf-8"?><BlockList>'
        if kind in ('committed', 'all'):
            body += part('CommittedBlocks', blob.committed)
        if kind in ('uncommitted', 'all'):
            body += part('UncommittedBlocks', blob.waiting)
        return 200, (body + '</BlockList>').encode(), ()


class Server(store_server.Server):
    def __init__(self, store, tls=None):
        super().__init__(Handler, store, tls)
