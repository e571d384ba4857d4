# SPDX-License-Identifier: Apache-2.0
"""
A small object store that is stricter than most: it checks the signature of every request against
its own reading of Signature Version 4, the hash of every body, the order, size and ETag of every
part, checksums where they were announced, and conditions. What it is told to do wrong it does: see
`Faults` in store_server.py. Nothing in here is shared with ramseal.
"""

import base64
import datetime
import email.utils
import hashlib
import hmac
import itertools
import re
import time
import urllib.parse
import xml.etree.ElementTree
import xml.sax.saxutils

import store_server
from store_server import Refusal

ID, SECRET, TOKEN = 'AKIDTESTTESTTESTTEST', 'sEcReT/+KeyOfTheTests0123456789abcdefXYZ', ''
LEAST_PART = 5 << 20


class Upload:
    def __init__(self, key, checksums):
        self.key, self.checksums, self.parts, self.lock = key, checksums, {}, None


class Store(store_server.Store):
    """`google`: as Cloud Storage's XML API: any condition is passed over, SHA-256 is not known."""

    def __init__(self, buckets=('evidence',), token='', region='us-east-1', least_part=LEAST_PART, google=False):
        self.google, self.may_look = google, True
        self.buckets = {name: {} for name in buckets}
        super().__init__()
        self.uploads = {}
        self.token, self.region, self.least_part = token, region, least_part
        self.read_only, self.may_list, self.may_see_locks, self.announces = False, True, True, True
        self.object_lock = 'enabled'  # or 'off', or 'passed over' by a store that knows none
        self.locks = {}  # (bucket, key): (mode, until)
        self.exists_first = False  # a condition is looked at before the upload is
        self.names = itertools.count(1)


def quote(text):
    return urllib.parse.quote(text, safe='-_.~')


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class Handler(store_server.Handler):
    # Signature

    def canonical(self, signed, payload):
        path, _, query = self.path.partition('?')
        fields = sorted((k, v) for k, _, v in (f.partition('=') for f in query.split('&') if f))
        return '\n'.join([self.command, path, '&'.join(f'{k}={v}' for k, v in fields),
                          *(f'{name}:{" ".join(self.headers[name].split())}' for name in signed),
                          '', ';'.join(signed), payload])

    def check_signature(self, payload):
        got = re.fullmatch(r'AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?'
                           r'SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})',
                           self.headers.get('authorization', ''))
        if not got:
            raise Refusal(403, 'AccessDenied')
        identity, day, region, signed, signature = got.groups()
        if identity != ID:
            raise Refusal(403, 'InvalidAccessKeyId')
        if region != self.store.region:
            raise Refusal(400, 'AuthorizationHeaderMalformed',
                          f'<Region>{self.store.region}</Region>')
        signed = signed.split(';')
        must = {'host', 'x-amz-date', 'x-amz-content-sha256'} | {
            name.lower() for name in self.headers if name.lower().startswith('x-amz-')}
        if signed != sorted(signed) or not must <= set(signed):
            raise Refusal(403, 'AccessDenied')
        when = self.headers['x-amz-date']
        scope = f'{day}/{region}/s3/aws4_request'
        text = '\n'.join(['AWS4-HMAC-SHA256', when, scope, hashlib.sha256(
            self.canonical(signed, payload).encode()).hexdigest()])
        key = sign(sign(sign(sign(('AWS4' + SECRET).encode(), day), region), 's3'), 'aws4_request')
        if not hmac.compare_digest(sign(key, text).hex(), signature) or when[:8] != day:
            raise Refusal(403, 'SignatureDoesNotMatch')
        now = time.time() + self.store.faults.clock_ahead
        then = datetime.datetime.strptime(when + '+0000', '%Y%m%dT%H%M%SZ%z').timestamp()
        if abs(now - then) > 900:
            raise Refusal(403, 'RequestTimeTooSkewed')
        token = self.headers.get('x-amz-security-token', '')
        if token != self.store.token:
            raise Refusal(400 if token else 403, 'ExpiredToken' if token else 'AccessDenied')

    # Answers

    def refusal(self, r):
        body = (f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{r.code}</Code>'
                f'<Message>told by a test</Message>{r.extra}</Error>').encode()
        return r.status, body, [('Content-Type', 'application/xml')]

    def check(self, body):
        if 'transfer-encoding' in self.headers:
            raise Refusal(501, 'NotImplemented')
        payload = self.headers.get('x-amz-content-sha256', '')
        self.check_signature(payload)
        if payload != hashlib.sha256(body).hexdigest():
            raise Refusal(400, 'XAmzContentSHA256Mismatch')

    def act(self, path, query, body):
        self.check(body)
        bucket, _, key = urllib.parse.unquote(path[1:]).partition('/')
        if bucket not in self.store.buckets:
            raise Refusal(404, 'NoSuchBucket')
        objects = self.store.buckets[bucket]
        if self.store.google and any('checksum' in name.lower() for name in self.headers):
            raise Refusal(400, 'InvalidArgument')
        if self.command == 'HEAD':
            if not self.store.may_look:
                raise Refusal(403, 'AccessDenied')
            if key not in objects:
                raise Refusal(404, 'NoSuchKey')
            return 200, b'', [('Content-Length', str(len(objects[key])))]
        if self.store.read_only:
            raise Refusal(403, 'AccessDenied')
        if self.command == 'GET' and 'uploads' in query and not key:
            return self.list_uploads(bucket, query.get('prefix', ''))
        if self.command == 'GET' and 'retention' in query:
            return self.retention(bucket, key)
        if self.command == 'POST' and 'uploads' in query:
            return self.create(key)
        if self.store.exists_first and self.command == 'POST':
            self.check_condition(objects, key)
        upload = self.store.uploads.get(query.get('uploadId'))
        if not upload or upload.key != (bucket, key):
            raise Refusal(404, 'NoSuchUpload')
        if self.command == 'PUT':
            return self.take_part(upload, int(query['partNumber']), body)
        if self.command == 'POST':
            return self.complete(upload, query['uploadId'], objects, key, body)
        if self.command == 'DELETE':
            del self.store.uploads[query['uploadId']]
            return 204, b'', ()
        return self.list_parts(upload, int(query.get('part-number-marker', 0)))

    def create(self, key):
        bucket = urllib.parse.unquote(self.path.split('?')[0][1:]).partition('/')[0]
        name = f'upload/{next(self.store.names)}+=&"id'
        algorithm = self.headers.get('x-amz-checksum-algorithm', '') if self.store.announces else ''
        upload = Upload((bucket, key), algorithm == 'SHA256')
        upload.lock = self.asked_lock()
        self.store.uploads[name] = upload
        escaped = name.replace('&', '&amp;').replace('"', '&quot;')
        body = (f'<?xml version="1.0"?>\n<InitiateMultipartUploadResult xmlns="http://s3.amazonaws'
                f'.com/doc/2006-03-01/"><Key>x</Key><UploadId>{escaped}</UploadId>'
                f'</InitiateMultipartUploadResult>').encode()
        return 200, body, [('x-amz-checksum-algorithm', algorithm)] if algorithm else ()

    def asked_lock(self):
        mode, until = (self.headers.get(f'x-amz-object-lock-{what}') for what in ('mode', 'retain-until-date'))
        if not mode and not until or self.store.object_lock == 'passed over':
            return None
        if self.store.object_lock == 'off':
            raise Refusal(400, 'InvalidRequest')
        if mode not in ('GOVERNANCE', 'COMPLIANCE') or not until:
            raise Refusal(400, 'InvalidArgument')
        then = datetime.datetime.strptime(until + '+0000', '%Y-%m-%dT%H:%M:%SZ%z').timestamp()
        if then <= time.time() + self.store.faults.clock_ahead:
            raise Refusal(400, 'InvalidArgument')
        return mode, until

    def retention(self, bucket, key):
        if not self.store.may_see_locks:
            raise Refusal(403, 'AccessDenied')
        if (bucket, key) not in self.store.locks:
            raise Refusal(404, 'NoSuchObjectLockConfiguration')
        mode, until = self.store.locks[bucket, key]
        return 200, (f'<Retention xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Mode>{mode}</Mode>'
                     f'<RetainUntilDate>{until[:-1]}.000Z</RetainUntilDate></Retention>').encode(), ()

    def list_uploads(self, bucket, prefix):
        if not self.store.may_list:
            raise Refusal(403, 'AccessDenied')
        found = sorted((u.key[1], name) for name, u in self.store.uploads.items()
                       if u.key[0] == bucket and u.key[1].startswith(prefix))
        escape = xml.sax.saxutils.escape
        uploads = ''.join(
            f'<Upload><Key>{escape(key)}</Key><UploadId>{escape(name)}</UploadId><Initiator><ID>x</ID>'
            f'<DisplayName>Key</DisplayName></Initiator><StorageClass>STANDARD</StorageClass>'
            f'<Initiated>2026-11-22T17:00:00.000Z</Initiated></Upload>'
            for key, name in found)
        return 200, (f'<ListMultipartUploadsResult><Bucket>{bucket}</Bucket><KeyMarker/><Prefix>'
                     f'{escape(prefix)}</Prefix><IsTruncated>false</IsTruncated>{uploads}'
                     f'</ListMultipartUploadsResult>').encode(), ()

    def take_part(self, upload, number, body):
        if not 1 <= number <= 10000:
            raise Refusal(400, 'InvalidArgument')
        digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
        if upload.checksums and self.headers.get('x-amz-checksum-sha256') != digest:
            raise Refusal(400, 'BadDigest')
        md5 = hashlib.md5(body)
        told = self.headers.get('content-md5')
        if told is not None and told != base64.b64encode(md5.digest()).decode():
            raise Refusal(400, 'BadDigest')
        if (upload.lock or self.store.google) and not told and not upload.checksums:
            raise Refusal(400, 'InvalidRequest')
        etag = f'"{md5.hexdigest()}"'
        upload.parts[number] = (etag, digest, body)
        return 200, b'', [('ETag', etag)]

    def list_parts(self, upload, after, page=3):
        numbers = [n for n in sorted(upload.parts) if n > after]
        parts = ''.join(
            f'<Part><PartNumber>{n}</PartNumber><ETag>{etag.replace(chr(34), "&quot;")}</ETag>'
            f'<Size>{len(body)}</Size>'
            + ('' if self.store.google else f'<ChecksumSHA256>{digest}</ChecksumSHA256>') + '</Part>'
            for n in numbers[:page] for etag, digest, body in [upload.parts[n]])
        more = str(len(numbers) > page).lower()
        return 200, (f'<ListPartsResult><IsTruncated>{more}</IsTruncated>{parts}'
                     f'</ListPartsResult>').encode(), ()

    def check_condition(self, objects, key):
        condition = None if self.store.google else self.headers.get('if-none-match')
        if condition and self.store.faults.no_conditions:
            raise Refusal(501, 'NotImplemented')
        if condition == '*' and key in objects:
            raise Refusal(412, 'PreconditionFailed')

    def complete(self, upload, name, objects, key, body):
        self.check_condition(objects, key)
        if self.store.faults.error_in_200:
            self.store.faults.error_in_200 -= 1
            return 200, b'  \n<?xml version="1.0"?><Error><Code>InternalError</Code></Error>', ()
        named = {'s3': 'http://s3.amazonaws.com/doc/2006-03-01/'}
        listed = xml.etree.ElementTree.fromstring(body).findall('s3:Part', named)
        numbers = [int(p.findtext('s3:PartNumber', None, named)) for p in listed]
        if not listed or numbers != sorted(set(numbers)):
            raise Refusal(400, 'InvalidPartOrder')
        whole = []
        for p, number in zip(listed, numbers):
            etag, digest, content = upload.parts.get(number, ('', '', b''))
            if p.findtext('s3:ETag', None, named) != etag:
                raise Refusal(400, 'InvalidPart')
            if upload.checksums and p.findtext('s3:ChecksumSHA256', None, named) != digest:
                raise Refusal(400, 'InvalidPart')
            whole.append(content)
        sizes = [len(content) for content in whole]
        if any(size < self.store.least_part for size in sizes[:-1]):
            raise Refusal(400, 'EntityTooSmall')
        if len(set(sizes[:-1])) > 1 or sizes[-1] > sizes[0]:  # as Cloudflare R2
            raise Refusal(400, 'InvalidPart')
        objects[key] = b''.join(whole)
        del self.store.uploads[name]
        if upload.lock:
            self.store.locks[upload.key] = upload.lock
        if self.store.faults.said_of_done:
            return 200, self.store.faults.said_of_done.pop(0), ()
        return 200, b'<CompleteMultipartUploadResult/>', ()


class Server(store_server.Server):
    def __init__(self, store, tls=None):
        super().__init__(Handler, store, tls)
