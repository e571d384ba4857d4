# SPDX-License-Identifier: Apache-2.0
"""Certificates of servers that sign themselves, made by the stock openssl."""

import base64
import hashlib
import shutil
import ssl
import subprocess

OPENSSL = shutil.which('openssl')


def make(folder, name, *more, names='IP:127.0.0.1,DNS:localhost'):
    """NAME.pem and NAME.key in the folder, for these names. Returns the path of the certificate."""
    pem = folder / f'{name}.pem'
    subprocess.run([OPENSSL, 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256',
                    '-nodes', '-keyout', pem.with_suffix('.key'), '-out', pem, '-days', '2', '-subj',
                    '/CN=localhost', '-addext', f'subjectAltName={names}', *more],
                   check=True, capture_output=True)
    return pem


def pin(pem):
    """Of its key, as --pin takes it."""
    key = subprocess.run([OPENSSL, 'x509', '-in', pem, '-pubkey', '-noout'], check=True,
                         capture_output=True).stdout
    der = base64.b64decode(b''.join(key.splitlines()[1:-1]))
    return 'sha256//' + base64.b64encode(hashlib.sha256(der).digest()).decode()


def context(pem):
    """What a server of ours needs, to be that of the certificate."""
    ret = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ret.load_cert_chain(pem, pem.with_suffix('.key'))
    return ret
