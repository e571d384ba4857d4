# SPDX-License-Identifier: Apache-2.0
"""Certificates of 127.0.0.1 that sign themselves, made by the stock openssl."""

import shutil
import ssl
import subprocess

OPENSSL = shutil.which('openssl')


def make(folder, name, *more):
    """NAME.pem and NAME.key in the folder. Returns the path of the certificate."""
    pem = folder / f'{name}.pem'
    subprocess.run([OPENSSL, 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256',
                    '-nodes', '-keyout', pem.with_suffix('.key'), '-out', pem, '-days', '2', '-subj',
                    '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost', *more],
                   check=True, capture_output=True)
    return pem


def server(pem):
    """What a server of ours needs, to be that of the certificate."""
    ret = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ret.load_cert_chain(pem, pem.with_suffix('.key'))
    return ret
