# SPDX-License-Identifier: Apache-2.0
"""
A small object store that is stricter than most: it checks the signature of every request against
its own reading of Signature Version 4, the hash of every body, the order, size and ETag of every
part, checksums where they were announced, and conditions. What it is told to do wrong it does: see
`Faults`. Nothing in here is shared with ramseal.
"""

import base64
import datetime
import email.utils
import hashlib
import hmac
import http.server
import itertools
import re
import threading
import time
import urllib.parse
import xml.etree.ElementTree
import xml.sax.saxutils

ID, SECRET, TOKEN = 'AKIDTESTTESTTESTTEST', 'sEcReT/+KeyOfTheTests0123456789abcdefXYZ', ''
LEAST_PART = 5 << 20


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


class Upload:
    def __init__(self, key, checksums):
        self.key, self.checksums, self.parts, self.lock = key, checksums, {}, None


class Store:
    """`google`: as Cloud Storage's XML API: any condition is passed over, SHA-256 is not known."""

    def __init__(self, buckets=('evidence',), token='', region='us-east-1', least_part=LEAST_PART, google=False):
        self.google, self.may_look = google, True
        self.buckets = {name: {} for name in buckets}
        self.uploads, self.faults, self.requests = {}, Faults(), []
        self.connections = []  # the ports that the requests came from
        self.token, self.region, self.least_part = token, region, least_part
        self.read_only, self.may_list, self.may_see_locks, self.announces = False, True, True, True
        self.object_lock = 'enabled'  # or 'off', or 'passed over' by a store that knows none
        self.locks = {}  # (bucket, key): (mode, until)
        self.lock = threading.Lock()
        self.names = itertools.count(1)


class Refusal(Exception):
    def __init__(self, status, code, extra=''):
        super().__init__(code)
        self.status, self.code, self.extra = status, code, extra


def quote(text):
    return urllib.parse.quote(text, safe='-_.~')


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    timeout = 60

    def log_message(self, *_):
        pass

    def date_time_string(self, timestamp=None):
        return email.utils.formatdate(time.time() + self.store.faults.clock_ahead, usegmt=True)

    @property
    def store(self):
        return self.server.store

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

    def answer(self, status, body=b'', headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if self.command != 'HEAD':
            self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)

    def refuse(self, r):
        body = (f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{r.code}</Code>'
                f'<Message>told by a test</Message>{r.extra}</Error>').encode()
        self.answer(r.status, body, [('Content-Type', 'application/xml')])

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get('content-length', 0)))
        if 'transfer-encoding' in self.headers:
            return self.refuse(Refusal(501, 'NotImplemented'))
        path, _, query = self.path.partition('?')
        what = f'{self.command} {query}'
        faults = self.store.faults
        with self.store.lock:
            self.store.requests.append((self.command, self.path, dict(self.headers)))
            self.store.connections.append(self.client_address[1])
            told = next((a for a in faults.answers if re.search(a[0], what)), None)
            if told:
                faults.answers.remove(told)
                body = told[2]
                if body and isinstance(body, str):
                    body = f'<Error><Code>{body}</Code></Error>'.encode()
                return self.answer(told[1], body or b'', told[3])
            for pattern in [p for p in faults.garbage if re.search(p, what)]:
                faults.garbage.remove(pattern)
                self.close_connection = True
                return self.wfile.write(b'<html>Log in to this network first</html>')
            drop = next((p for p in faults.drop_after if re.search(p, what)), None)
            try:
                payload = self.headers.get('x-amz-content-sha256', '')
                self.check_signature(payload)
                if payload != hashlib.sha256(body).hexdigest():
                    raise Refusal(400, 'XAmzContentSHA256Mismatch')
                reply = self.act(path, dict(urllib.parse.parse_qsl(query, True)), body)
            except Refusal as r:
                return self.refuse(r)
            if drop:
                faults.drop_after.remove(drop)
                self.close_connection = True
                self.connection.close()
                return None
        return self.answer(*reply)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any

    def act(self, path, query, body):
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

    def complete(self, upload, name, objects, key, body):
        condition = None if self.store.google else self.headers.get('if-none-match')
        if condition and self.store.faults.no_conditions:
            raise Refusal(501, 'NotImplemented')
        if condition == '*' and key in objects:
            raise Refusal(412, 'PreconditionFailed')
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


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, store, tls=None, handler=Handler):
        super().__init__(('127.0.0.1', 0), handler)
        self.store, self.tls = store, tls
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def finish_request(self, request, client_address):
        if self.tls:  # in the connection's own thread
            request = self.tls.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def handle_error(self, request, client_address):
        pass  # a connection that was cut off is what the tests are about

    @property
    def port(self):
        return self.server_address[1]
