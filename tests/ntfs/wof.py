# SPDX-License-Identifier: Apache-2.0
"""Streams as CompactOS and `compact /exe` write them, compressed by wimlib.

A file in a WIM is stored as such a stream: a table of where each chunk but the first begins, then the
chunks, each compressed for itself or, where that does not help, as it is.
"""
import hashlib
import os
import random
import shutil
import struct
import subprocess
import tempfile

# What WOF calls each algorithm (Windows' ntifs.h, FILE_PROVIDER_COMPRESSION_...), and its chunk.
XPRESS4K, LZX, XPRESS8K, XPRESS16K = range(4)
CHUNK = {XPRESS4K: 4096, LZX: 32768, XPRESS8K: 8192, XPRESS16K: 16384}
HAVE_WIMLIB = shutil.which('wimlib-imagex')


def compress(data, algorithm):
    """What the stream WofCompressedData of a file with this content holds."""
    with tempfile.TemporaryDirectory(prefix='ramseal-wim-') as folder:
        source, wim = os.path.join(folder, 'source'), os.path.join(folder, 'a.wim')
        os.mkdir(source)
        with open(os.path.join(source, 'file'), 'wb') as f:
            f.write(data)
        subprocess.run(['wimlib-imagex', 'capture', source, wim, '--no-acls', '--threads=1',
                        '--compress=' + ('LZX' if algorithm == LZX else 'XPRESS'),
                        f'--chunk-size={CHUNK[algorithm]}'], check=True, capture_output=True)
        with open(wim, 'rb') as f:
            return resource(f.read(), hashlib.sha1(data).digest())


def resource(wim, digest):
    """The bytes of the file with that SHA-1. Layout: Microsoft's "WIM File Format" of 2007."""
    size, at, _ = struct.unpack_from('<QQQ', wim, 48)
    size &= (1 << 56) - 1
    for entry in range(at, at + size, 50):
        packed, place, _, _, _, sha1 = struct.unpack_from('<QQQHI20s', wim, entry)
        if sha1 == digest:
            if not packed >> 56 & 4:
                raise ValueError('wimlib stored it without compression')
            return wim[place:place + (packed & ((1 << 56) - 1))]
    raise ValueError('there is no such file')


def program(size, seed=1):
    """Something like a program: words that repeat, calls to few places, zeros, and what is random."""
    r = random.Random(seed)
    words = [r.randbytes(r.randrange(2, 12)) for _ in range(300)]
    out = bytearray()
    while len(out) < size:
        kind = r.randrange(10)
        if kind < 4:
            out += b''.join(r.choices(words, k=200))
        elif kind < 8:
            for _ in range(150):
                out += r.choice(words)
                # A call: E8, and how far it is to one of twenty places.
                out += b'\xe8' + struct.pack('<i', r.randrange(20) * 4096 - len(out))
        elif kind == 8:
            out += bytes(r.randrange(20000))
        else:
            out += r.randbytes(r.randrange(12000))
    return bytes(out[:size])
