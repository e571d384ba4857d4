# SPDX-License-Identifier: Apache-2.0
"""Certificates of servers, made by OpenSSL."""

import base64
import hashlib
import ssl
import subprocess


def make(folder, name, names='IP:127.0.0.1'):
    """NAME.pem and NAME.key in `folder`, for the given alternative names of the server."""
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256',
                    '-nodes', '-keyout', folder / f'{name}.key', '-out', folder / f'{name}.pem',
                    '-days', '2', '-subj', '/CN=localhost', '-addext', f'subjectAltName={names}'],
                   check=True, capture_output=True)


def pin(certificate):
    """Of its key, as --pin takes it."""
    key = subprocess.run(['openssl', 'x509', '-in', certificate, '-pubkey', '-noout'], check=True,
                         capture_output=True).stdout
    der = base64.b64decode(b''.join(key.splitlines()[1:-1]))
    return 'sha256//' + base64.b64encode(hashlib.sha256(der).digest()).decode()


def context(folder, name):
    """Of a server that has what make() made."""
    ret = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ret.load_cert_chain(folder / f'{name}.pem', folder / f'{name}.key')
    return ret
