# SPDX-License-Identifier: Apache-2.0
"""
The pages of guest/pressure.c, a disk for them to be swapped to, and whether what a container has of
them is their own.
"""

import csv
import json
import struct
import time
import zlib
from pathlib import Path

import acquired
import vm
from acquired import COMPLETE, PAGE, Image

MIB = 1 << 20
SECTOR = 512
AREA = '/dev/vda1'
AREA_AT = MIB
MAGIC = b'RSMARK\r\n'


# Something that is on its way comes in the end, or never.
WAIT_SECONDS = 900


def wait_for(condition, what):
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise vm.GuestError(f'in vain: {what}')
        time.sleep(0.1)


def make_disk(path, size):
    """A disk with an MBR and one partition of that size, of type 0x82 (Linux swap)."""
    entry = struct.pack('<B3sB3sII', 0, b'', 0x82, b'', AREA_AT // SECTOR, size // SECTOR)
    with open(path, 'wb') as f:
        f.write(bytes(446) + entry + bytes(48) + b'\x55\xaa')
        f.truncate(AREA_AT + size)


class Program:
    """guest/pressure.c in a guest, at work, with its pages written."""

    def __init__(self, guest, pages, timeout=900, area=AREA):
        """`area`: None if there is one already."""
        if area:
            guest.check(f'modprobe virtio_blk && mkswap {area} && swapon {area}')
        said = guest.check(f'rm -f /tmp/said; pressure {pages} >/tmp/said & '
                           'while ! [ -s /tmp/said ]; do sleep 0.1; done; cat /tmp/said',
                           timeout=timeout)
        self.pid = said.split()[0]
        self.at = int(said.split()[1], 16)
        self.pages = pages

    def has(self, address):
        return self.at <= address < self.at + self.pages * PAGE

    def sequence(self, page):
        """The sequence number of a whole page of it; None if it is none."""
        if not page.startswith(MAGIC):
            return None
        sequence, address = struct.unpack_from('<QQ', page, 8)
        adler, = struct.unpack_from('<Q', page, PAGE - 8)
        whole = adler == zlib.adler32(page[:PAGE - 8])
        return sequence if whole and address == self.at + sequence * PAGE else None

    def verdict(self, page, address):
        """Whether a page is its own of that address, whatever else was written to it, or what it is."""
        sequence = (address - self.at) // PAGE
        if page[:24] == MAGIC + struct.pack('<QQ', sequence, address):
            return 'right'
        if page.startswith(MAGIC):
            return 'moved'
        return 'other' if page.count(0) < PAGE else 'zero'


    def slots(self, guest, path):
        """
        {sequence: (number of the swap area, slot)} of its pages that are swapped out, as their page
        table entries have it (Documentation/admin-guide/mm/pagemap.rst). `path`: a file to work with.
        """
        first, count = self.at // PAGE * 8 // PAGE, self.pages * 8 // PAGE
        guest.check(f'dd if=/proc/{self.pid}/pagemap of=/dev/container bs={PAGE} '
                    f'skip={first} count={count}', container=path)
        entries = struct.unpack(f'<{self.pages}Q', path.read_bytes())
        return {sequence: (e & 0x1f, e >> 5 & (1 << 50) - 1)
                for sequence, e in enumerate(entries) if e >> 62 & 1}


class Area:
    """The swap area by slot; a slot has the size of a page."""

    def __init__(self, path, offset=0):
        self.bytes = memoryview(Path(path).read_bytes())[offset:]
        self.slots = len(self.bytes) // PAGE

    def __getitem__(self, slot):
        return bytes(self.bytes[slot * PAGE:(slot + 1) * PAGE])


class Acquired(Image):
    """A container with swap areas; .swap is that of the partition, if it has it."""

    def __init__(self, test, path):
        super().__init__(test, path)
        test.assertEqual(self.verified.returncode, COMPLETE, self.verified.stderr)
        self.streams = {s['name']: s for s in self.info['streams']}
        self.swap = Area(self.stream(test, AREA)) if AREA in self.streams else None

    def stream(self, test, name):
        path = self.path.with_suffix('.' + name.split('/')[-1])
        path.unlink(missing_ok=True)
        done = acquired.ramseal('extract', '--quiet', '--force', '--hash', 'none', '--stream', name, '-o', path,
                                self.path)
        test.assertEqual(done.returncode, COMPLETE, done.stderr)
        test.addCleanup(path.unlink, missing_ok=True)
        return path


def _flat(image, row):
    """What a flat image has where a mapping leads: the newest capture. Zeros if that is nothing."""
    try:
        return (image.memory.page(int(row['frame'], 16) // PAGE) if row['frame']
                else image.swap[int(row['slot'], 16)])
    except KeyError:
        return bytes(PAGE)


def judge(test, image, program, flat=False, copies=('before', 'image', 'after')):
    """
    {(copy, state, trust, verdict): pages} of the program's pages, by what `ramseal smear` says of every
    mapping, and by the marks that the program left in what `ramseal read` gives for it, or a flat image.
    State is 'valid' or 'slot'. `copies`: of the page tables, that are asked for.
    """
    done = acquired.ramseal('smear', '--mappings', program.pid, image.path)
    test.assertEqual(done.returncode, COMPLETE, done.stderr)
    found, verdicts = {}, {}
    for row in csv.DictReader(done.stdout.splitlines()):
        address, copy = int(row['va'], 16), row['copy']
        if not program.has(address) or copy not in copies:
            continue
        test.assertEqual(row['pages'], '1')
        if flat:
            verdict = program.verdict(_flat(image, row), address)
        else:
            if copy not in verdicts:
                verdicts[copy] = [verdict for *_, verdict in read(test, image, program, copy)]
            verdict = verdicts[copy][(address - program.at) // PAGE]
        key = (copy, 'valid' if row['frame'] else 'slot', row['trust'], verdict or 'missing')
        found[key] = found.get(key, 0) + 1
    return found


def documents(text):
    """
    The objects in many lines of JSON. json.loads() checks an object against its schema (tests/documents), which takes
    a millisecond; so only the first of each kind is checked: with other members, state, content, trust or verdict.
    """
    decode, seen = json.JSONDecoder().decode, set()
    for line in text.splitlines():
        found = decode(line)
        kind = (*found, *map(found.get, ('state', 'content', 'trust', 'verdict')))
        if kind not in seen:
            seen.add(kind)
            json.loads(line)
        yield found


def read(test, image, program, tables='image'):
    """
    [(sequence, what `ramseal read --json` says of it, what its bytes are)] of the program's pages, by its
    page tables in the image or in a pass. Bytes are 'right' and so on; None: there are none.
    """
    path = image.path.with_suffix('.bytes')
    done = acquired.ramseal('read', '--pid', program.pid, '--va', hex(program.at), '--length', program.pages * PAGE,
                            '--tables', tables, '--json', '--force', '-o', path, image.path)
    test.assertIn(done.returncode, (COMPLETE, acquired.GAPS), done.stderr)
    test.addCleanup(path.unlink, missing_ok=True)
    rows = []
    with open(path, 'rb') as f:
        for page in documents(done.stdout):
            for i in range(page['pages']):
                address = int(page['va'], 16) + i * PAGE
                verdict = program.verdict(f.read(PAGE), address)
                rows.append(((address - program.at) // PAGE, page,
                             verdict if page['content'] != 'none' else None))
    test.assertEqual(len(rows), program.pages)
    return rows
