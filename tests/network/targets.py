# SPDX-License-Identifier: Apache-2.0
"""
The table of all targets: a server of each kind, how ramseal is told to send there, and what arrived. `port` is
that of whatever stands before the server. A target lives in a folder of its own, and once.
"""

import os
import subprocess

import azblob_server
import certificates
import put_server
import receiver
import s3_server

MIB = 1 << 20


def clean(**more):
    """No proxy, key or region of whoever runs the tests."""
    return {k: v for k, v in os.environ.items()
            if not k.lower().endswith('_proxy') and not k.startswith('AWS_')} | more


class Target:
    """Of stores: what is left there can be completed by `upload --finish`."""

    piece = 8 * MIB  # what is not acknowledged before it is whole
    whole = False    # nothing is kept of what was not sent whole
    needs = None     # what has to be installed

    def __init__(self, ramseal, at):
        self.ramseal, self.at = ramseal, at
        self.state = at / 'state'
        self.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    @property
    def port(self):
        return self.server.port

    def environment(self, port):
        return clean()

    def secret(self, address):
        """An address that nobody may see in argv."""
        (self.at / 'to').write_text(address)
        return ['--to', f'@{self.at / "to"}']

    def send(self, port, container, how):
        """The arguments: an acquisition, or of what takes finished files only the upload of one."""
        return ['acquire', '-q', *how, *self.name(port), '--upload-state', self.state]

    def finish(self):
        """
        After a kill: completes what is there. What arrived then, None if that is nothing; the program has
        to say the same.
        """
        if not self.state.exists():
            return self.content()
        where = self.name(self.port)
        done = subprocess.run([self.ramseal, 'upload', '--finish', self.state,
                               *(where if where[0] == '--to' else ())], capture_output=True, timeout=900,
                              env=self.environment(self.port), cwd=self.at, check=False)
        content = self.content()
        if done.returncode == 0:
            assert content is not None and not self.state.exists(), done.stderr
            return content
        assert done.returncode == 6 and done.stderr.count(b'\n') == 1, done.stderr
        # Killed behind the completion, and before the state went.
        told = b'has been completed' if content is not None else b'nothing had arrived'
        assert told in done.stderr, done.stderr
        return content


class S3(Target):
    def start(self):
        self.store = s3_server.Store()
        self.server = s3_server.Server(self.store)

    def environment(self, port):
        return clean(AWS_ACCESS_KEY_ID=s3_server.ID, AWS_SECRET_ACCESS_KEY=s3_server.SECRET,
                     AWS_ENDPOINT_URL=f'http://127.0.0.1:{port}')

    def name(self, port):
        return ['-o', 's3://evidence/x']

    def content(self):
        return self.store.buckets['evidence'].get('x')

    def left(self):
        """What nobody would find any more: an upload without parts costs nothing."""
        return [name for name, upload in self.store.uploads.items() if upload.parts]


class AzBlob(Target):
    def start(self):
        self.store = azblob_server.Store()
        self.server = azblob_server.Server(self.store)

    def name(self, port):
        return self.secret(f'azblob:http://127.0.0.1:{port}/evidence/x?{self.store.sas}')

    def content(self):
        blob = self.store.containers['evidence'].get('x')
        return blob and blob.content

    def left(self):
        return list(self.store.containers['evidence'].get('x').waiting)


class Put(Target):
    """Over TLS, because that is what such an address is."""

    whole = True
    needs = certificates.OPENSSL or 'openssl'

    def start(self):
        self.pem = certificates.make(self.at, 'server')
        self.store = put_server.Store()
        self.server = put_server.Server(self.store, certificates.context(self.pem))

    def send(self, port, container, how):
        return ['upload', container, *self.secret(f'https://127.0.0.1:{port}/x?sig=y'), '--ca', self.pem]

    def content(self):
        return self.store.objects.get('/x?sig=y')

    def finish(self):
        """Whole or nothing; the file is still there."""
        return self.content()

    def left(self):
        return []

    def forget(self):
        self.store.objects.clear()


class Tls(Target):
    """The receiver completes by itself: what ended early is in its folder."""

    piece = 0

    def start(self):
        self.folder = self.at / 'received'
        self.folder.mkdir()
        self.pins = {name: receiver.new_key(self.ramseal, self.at / name) for name in ('there', 'here')}
        self.server = receiver.Receiver(self.ramseal, self.folder, self.at / 'there', [self.pins['here']])

    def close(self):
        self.server.end()

    def send(self, port, container, how):
        return ['acquire', '-q', *how, '-o', f'tls://127.0.0.1:{port}', '--pin', self.pins['there'],
                '--client-key', f'@{self.at / "here"}']

    def content(self):
        file = next(self.folder.glob('*.rsz'), None)
        return file and file.read_bytes()

    def finish(self):
        self.server.stop()
        file = next((f for f in self.folder.iterdir() if f.suffix in ('.rsz', '.partial')), None)
        return file and file.read_bytes()

    def left(self):
        return [f.name for f in self.folder.iterdir() if f.suffix not in ('.rsz', '.jsonl')]
