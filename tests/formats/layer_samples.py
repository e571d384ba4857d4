# SPDX-License-Identifier: Apache-2.0
"""Containers for the tests of formats/volatility3, and what ramseal itself says of them."""

import csv
import json
import random
import struct
import subprocess
from pathlib import Path

PAGE = 4096
STREAM, CHUNK, MEMORY = 2, 3, 1  # SPEC.md: types of records, a kind of stream
LAYER = Path(__file__).resolve().parents[2] / 'formats/volatility3'

# A machine whose frames and slots change hands while its tables are read, so that pages have several
# captures, and which page is right for an entry is a question.
BUSY = ('sim:desktop,ram=96M,allocated=56M,resident=32M,trimmed=16M,others=20M,processes=10,cache=6M,pressure=100,'
        'bandwidth=40M,pagefile0=64M,pagefile1=48M,live_files=1,race=64,start=0,exit=0')
MAIN = '224'  # the PID of its main process


def run(ramseal, *arguments, codes=(0,), binary=False):
    done = subprocess.run([ramseal, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=900)
    assert done.returncode in codes, (arguments, done.returncode, done.stderr)
    return done.stdout if binary else done.stdout.decode()


def busy_machine(ramseal, folder, seed):
    """(container, {pid: (name, DTB)}) by the machine's own account."""
    container, truth = Path(folder) / 'busy.rsz', Path(folder) / 'truth.csv'
    run(ramseal, 'acquire', '-q', '-s', f'{BUSY},seed={seed},truth={truth}', '--order', 'guided',
        '--pagefile', 'guided', '-o', container)
    rows = [row for row in csv.reader(truth.read_text().splitlines()) if row[0] == 'process']
    return container, {row[1]: (row[2], row[3]) for row in rows}


def lime(path, ranges, cut=0):
    """A LiME image whose pages are zeros or have their own address; `cut` bytes of its end are missing."""
    with open(path, 'wb') as file:
        for first, last in ranges:
            file.write(struct.pack('<IIQQ8x', 0x4C694D45, 1, first, last))
            for at in range(first, last, PAGE):
                file.write(bytes(PAGE) if at // PAGE % 3 == 0 else struct.pack('<Q', at) * (PAGE // 8))
        file.truncate(file.tell() - cut)


def records(data):
    """(offset, header length, stored bytes, type) of each record of a good container."""
    at = 0
    while at < len(data):
        size, = struct.unpack_from('<I', data, at + 4)
        kind, = struct.unpack_from('<H', data, at + 12)
        stored, = struct.unpack_from('<I', data, at + 48)
        yield at, size + 8, stored, kind
        at += size + 8 + stored


def damaged(data, seed, count):
    """The bytes of a good container with one bit wrong in so many payloads of memory."""
    data, memory, chunks = bytearray(data), None, []
    for at, header, stored, kind in records(data):
        number, field = struct.unpack_from('<II', data, at + 96)
        if kind == STREAM and field == MEMORY:
            memory = number
        if kind == CHUNK and number == memory and stored > 2000:
            chunks.append(at + header + stored // 2)
    for at in random.Random(seed).sample(chunks, count):
        data[at] ^= 0x10
    return bytes(data)


# One with a process whose pages are in memory, in page files and in the compression store.
STORED = ('sim:cohen2015,windows=10,build=19045,ram=192M,allocated=48M,resident=12M,trimmed=8M,others=16M,cache=8M,'
          'pagefile0=64M,live_files=1,activity=0,inside=1,compressed=1500')


def stored_machine(ramseal, folder, seed):
    """(container, PID and DTB of the process)"""
    container, truth = Path(folder) / 'stored.rsz', Path(folder) / 'stored.csv'
    run(ramseal, 'acquire', '-q', '-s', f'{STORED},seed={seed},truth={truth}', '--pagefile', 'before', '-o', container)
    rows = csv.reader(truth.read_text().splitlines())
    return container, next((r[1], r[3]) for r in rows if r[0] == 'process' and r[2] == 'swapper.exe')


def as_read(ramseal, container, dtb):
    """{address: (what `ramseal read` says of the page, its bytes or None)} of the user half, where it has an entry."""
    space = ('read', '-q', '--dtb', dtb)
    said = run(ramseal, *space, '--va', 0, '-n', '128T', '--json', container, codes=(0, 3))
    rows = map(json.loads, said.splitlines())
    found = {int(row['va'], 16) + i * PAGE: row for row in rows if row['state'] != 'empty' for i in range(row['pages'])}
    spans = []
    for va in found:
        if spans and va - spans[-1][1] < 1 << 20:
            spans[-1][1] = va + PAGE
        else:
            spans.append([va, va + PAGE])
    data = {}
    for first, end in spans:
        content = run(ramseal, *space, '--va', hex(first), '-n', end - first, '-o', '-', container, codes=(0, 3),
                      binary=True)
        data.update({va: content[va - first:va - first + PAGE] for va in range(first, end, PAGE)})
    return {va: (row, None if row['content'] == 'none' else data[va]) for va, row in found.items()}


class Flat:
    """What `ramseal export` makes of a container's stream: bytes(address, length), and where it has gaps."""

    def __init__(self, ramseal, container, folder, stream='memory', codes=(0, 3)):
        self.path = Path(folder) / 'flat.raw'
        run(ramseal, 'export', '-q', '-f', '-S', stream, '--hash', 'none', '-o', self.path, container, codes=codes)
        said = json.loads(Path(f'{self.path}.gaps.json').read_text())
        self.listed = said
        self.captured = [(r['first'], r['last'] + 1) for r in said['ranges']]
        self.gaps = [(r['first'], r['last'] + 1) for kind in ('unreadable', 'skipped')
                     for r in said[kind]]
        self.data = self.path.read_bytes()

    def page(self, address):
        """None: nothing is known of it."""
        if not any(a <= address < b for a, b in self.captured) or \
           any(a <= address < b for a, b in self.gaps):
            return None
        return self.data[address:address + PAGE]
