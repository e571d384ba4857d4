# SPDX-License-Identifier: Apache-2.0
"""Makes NTFS volumes byte by byte.

mkntfs and ntfs-3g make proper volumes; a forged one has whatever a test needs: fifty thousand
fragments, clusters of 2 MiB, an extension record that is missing, a run behind the end. Nothing is
mounted and no rights are needed. Layout: Linux 6.1 fs/ntfs3/ntfs.h.

    v = Volume(64 << 20, cluster=4096)
    f = v.file('pagefile.sys', runs=[(1000, 4), (None, 2), (2000, 1)])
    v.write('image.raw')
    f.content()            # what reading it must yield
"""
import struct
from array import array

MFT, VOLUME, ROOT, BITMAP, BOOT, SECURE, UPCASE = 0, 3, 5, 6, 7, 9, 10
FIRST_USER = 24
STANDARD_INFORMATION, LIST, FILE_NAME, VOLUME_NAME, VOLUME_INFORMATION = 0x10, 0x20, 0x30, 0x60, 0x70
DATA, INDEX_ROOT, INDEX_ALLOCATION, INDEX_BITMAP, REPARSE_POINT = 0x80, 0x90, 0xa0, 0xb0, 0xc0
COMPRESSED, SPARSE = 0x0001, 0x8000
# 2001-02-03 04:05:06 UTC as a FILETIME, for every time of every file.
TIME = 126256395060000000


def pad8(data):
    return data + bytes(-len(data) % 8)


def words(seed, first, count):
    """Bytes that name their place: 8-byte words of seed and index."""
    base = (seed & 0xffff) << 40
    return array('Q', range(base + first, base + first + count)).tobytes()


def signed(n):
    length = 1
    while not -(1 << (8 * length - 1)) <= n < 1 << (8 * length - 1):
        length += 1
    return n.to_bytes(length, 'little', signed=True)


def encode_run(count, delta):
    length = signed(count)
    offset = b'' if delta is None else signed(delta)
    return bytes([len(offset) << 4 | len(length)]) + length + offset


def encode_runs(runs):
    """Mapping pairs of [(lcn or None for a hole, clusters)]."""
    out, last = [], 0
    for lcn, count in runs:
        out.append(encode_run(count, None if lcn is None else lcn - last))
        last = last if lcn is None else lcn
    return b''.join(out) + b'\0'


class Attribute:
    def __init__(self, kind, value=None, runs=None, name='', size=None, init=None, flags=0, first=0,
                 cluster=0, unit=0):
        self.kind, self.value, self.runs, self.name = kind, value, runs, name
        self.size, self.init, self.flags, self.first = size, init, flags, first
        self.cluster, self.unit, self.id = cluster, unit, 0

    def pack(self):
        name = self.name.encode('utf-16-le')
        if self.value is not None:
            at = 24 + len(pad8(name))
            body = pad8(name) + pad8(self.value)
            return struct.pack('<IIBBHHHIHH', self.kind, 24 + len(body), 0, len(name) // 2, 24,
                               self.flags, self.id, len(self.value), at, 0) + body
        clusters = sum(n for _, n in self.runs)
        head = 72 if self.flags & (COMPRESSED | SPARSE) else 64
        body = pad8(name) + pad8(encode_runs(self.runs))
        sizes = (0, 0, 0)
        if self.first == 0:
            sizes = (self.allocated, self.size, self.init)
        packed = struct.pack('<IIBBHHHQQHHIQQQ', self.kind, head + len(body), 1, len(name) // 2,
                             head, self.flags, self.id, self.first,
                             (self.first + clusters - 1) & (2**64 - 1), head + len(pad8(name)),
                             self.unit, 0, *sizes)
        return packed + bytes(head - 64) + body


class File:
    def __init__(self, volume, number, name, seed):
        self.volume, self.number, self.name, self.seed = volume, number, name, seed
        self.runs, self.size, self.init, self.value = [], 0, 0, None

    def content(self, raw_tail=False):
        """What the file system would show."""
        if self.value is not None:
            return self.value
        out, at, cluster = bytearray(), 0, self.volume.cluster
        for lcn, count in self.runs:
            out += (bytes(count * cluster) if lcn is None
                    else words(self.seed, at // 8, count * cluster // 8))
            at += count * cluster
        end = self.size if raw_tail else min(self.init, self.size)
        return bytes(out[:end]) + bytes(self.size - end)


class Volume:
    def __init__(self, size, cluster=4096, sector=512, record=1024, mft_runs=None, label='forged',
                 upcase=True, content=True, mft_list=False, mirror=None, secure=b'',
                 serial=0x1122334455667788):
        self.size, self.cluster, self.sector, self.record = size, cluster, sector, record
        self.clusters = size // cluster
        self.label = label
        self.serial = serial
        self.upcase = upcase
        self.mirror = mirror        # the cluster of $MFTMirr; None: it says where $MFT is
        self.secure = secure        # content of $Secure:$SDS
        self.mft_list = mft_list    # all but the first of mft_runs are in record 15
        self.write_content = content
        self.records = {}    # number -> (sequence, flags, base reference, [Attribute])
        self.patches = []    # (offset, bytes), applied last
        self.spoil = []      # record numbers whose update sequence is broken
        self.files = []
        self.next = FIRST_USER
        self.mft_runs = mft_runs
        self.entries = []    # of the root: (record, name)
        self.extra_records = 0
        self.system_files_done = lambda: None    # what a test does to their records

    def reference(self, number):
        return number | self.records[number][0] << 48 if number in self.records else number | 1 << 48

    def new_record(self, flags=1, base=0, sequence=1):
        number, self.next = self.next, self.next + 1
        self.records[number] = (sequence, flags, base, [])
        return number

    def add(self, number, attribute):
        attributes = self.records[number][3]
        attribute.id = len(attributes) + 1
        attribute.cluster = self.cluster
        attributes.append(attribute)
        return attribute

    def file_name(self, number, name, parent=ROOT, namespace=1):
        text = name.encode('utf-16-le', 'surrogatepass')
        return (struct.pack('<QQQQQQQII', parent | (ROOT if parent == ROOT else 1) << 48, TIME, TIME, TIME, TIME, 0, 0, 0x20, 0)
                + bytes([len(text) // 2, namespace]) + text)

    def begin(self, name, seed=None):
        number = self.new_record()
        f = File(self, number, name, number if seed is None else seed)
        self.add(number, Attribute(STANDARD_INFORMATION, struct.pack('<QQQQI', *[TIME] * 4, 0x26)
                                   + bytes(36)))
        self.add(number, Attribute(FILE_NAME, self.file_name(number, name)))
        self.entries.append((number, name))
        self.files.append(f)
        return f

    def stored(self, name, data, flags=0):
        """A non-resident file of these bytes, in no folder yet."""
        count = -(-len(data) // self.cluster)
        lcn = self.free_clusters(count)
        f = self.begin(name)
        f.value, f.size = data, len(data)
        self.entries.pop()
        self.add(f.number, Attribute(DATA, None, [(lcn, count)], '', len(data), len(data),
                                     flags)).allocated = count * self.cluster
        self.patches.append((lcn * self.cluster, data))
        return f

    def reparse(self, name, size, tag, data=b'', stream=None, runs=None, attributes=0x620):
        """A file of `size` bytes that are a hole, or in `runs`; `stream`: (name, bytes) beside it."""
        f = self.begin(name)
        f.size = f.init = size
        runs = runs if runs is not None else [(None, -(-size // self.cluster))] if size else []
        f.runs = runs
        self.records[f.number][3][0].value = struct.pack('<QQQQI', *[TIME] * 4, attributes) + bytes(36)
        if size:
            self.add(f.number, Attribute(DATA, None, runs, '', size, size, SPARSE)).allocated = (
                sum(n for _, n in runs) * self.cluster)
        else:
            self.add(f.number, Attribute(DATA, b''))
        if stream:
            lcn = self.free_clusters(-(-len(stream[1]) // self.cluster))
            if len(stream[1]) < 300:
                self.add(f.number, Attribute(DATA, stream[1], name=stream[0]))
            else:
                count = -(-len(stream[1]) // self.cluster)
                self.add(f.number, Attribute(DATA, None, [(lcn, count)], stream[0], len(stream[1]),
                                             len(stream[1]))).allocated = count * self.cluster
                self.patches.append((lcn * self.cluster, stream[1]))
        self.add(f.number, Attribute(REPARSE_POINT, struct.pack('<IHH', tag, len(data), 0) + data))
        return f

    def folder(self, name, children):
        """Of [(record, name)]; returns its own."""
        number = self.new_record(flags=3)
        self.add(number, Attribute(FILE_NAME, self.file_name(number, name)))
        node = b''
        for child in children:
            for a in self.records[child[0]][3]:
                if a.kind == FILE_NAME:
                    a.value = self.file_name(*child, parent=number)
            node += self.index_entry(*child)
        node += struct.pack('<QHHHHI', 0, 16, 0, 2, 0, 0)[:16]
        root = struct.pack('<IIIBBBB', FILE_NAME, 1, 4096, 1, 0, 0, 0)
        root += struct.pack('<IIII', 16, 16 + len(node), 16 + len(node), 0) + node
        self.add(number, Attribute(INDEX_ROOT, root, name='$I30'))
        return number, name

    def nested(self, path, data):
        """A non-resident file of these bytes, in folders that are made for it."""
        *folders, name = path.split('/')
        f = self.stored(name, data)
        child = (f.number, name)
        for folder in reversed(folders):
            child = self.folder(folder, [child])
        self.entries.append(child)
        return f

    def tree(self, files):
        """{path: bytes}, in folders that they share. Returns {path: File}."""
        made, folders = {}, {}
        for path, data in files.items():
            *way, name = path.split('/')
            made[path] = self.stored(name, data)
            folders.setdefault(tuple(way), []).append((made[path].number, name))
            for i in range(len(way)):
                folders.setdefault(tuple(way[:i]), [])
        for way in sorted(folders, key=len, reverse=True):
            children = sorted(folders[way], key=lambda c: c[1].upper())
            if way:
                folders[way[:-1]].append(self.folder(way[-1], children))
            else:
                self.entries += children
        return made

    def resident(self, name, value, stream=''):
        f = self.begin(name)
        f.value, f.size = value, len(value)
        self.add(f.number, Attribute(DATA, value, name=stream))
        return f

    def file(self, name, runs, size=None, init=None, stream='', per_record=None, list_resident=None,
             drop=(), flags=0, runs_on_disk=None):
        """One non-resident stream.

        per_record: runs in each extension record; with it there is an $ATTRIBUTE_LIST. drop:
        indexes of extension records that are not written. runs_on_disk: what the record says, if
        that is not where the content goes.
        """
        f = self.begin(name)
        f.runs = runs
        allocated = sum(n for _, n in runs) * self.cluster
        f.size = allocated if size is None else size
        f.init = f.size if init is None else init
        if any(lcn is None for lcn, _ in runs):
            flags |= SPARSE
        told = runs if runs_on_disk is None else runs_on_disk
        pieces = [told] if not per_record else [told[i:i + per_record]
                                                for i in range(0, len(told), per_record)]
        first, entries = 0, []
        for i, piece in enumerate(pieces):
            number = f.number
            if per_record:
                number = self.new_record(base=f.number | 1 << 48)
            a = self.add(number, Attribute(DATA, None, piece, stream, f.size, f.init, flags, first))
            a.allocated = allocated
            entries.append((DATA, first, number, a.id, stream))
            first += sum(n for _, n in piece)
            if i in drop:
                del self.records[number]
        if per_record:
            self.attribute_list(f, entries, list_resident)
        return f

    def attribute_list(self, f, entries, resident=None):
        own = [(a.kind, 0, f.number, a.id, a.name) for a in self.records[f.number][3]]
        out = b''
        for kind, first, number, ident, name in own + entries:
            text = name.encode('utf-16-le')
            body = struct.pack('<IHBBQQH', kind, len(pad8(bytes(26) + text)), len(text) // 2, 26,
                               first, number | 1 << 48, ident) + text
            out += pad8(body)
        if resident or (resident is None and len(out) < 300):
            self.add(f.number, Attribute(LIST, out))
            return
        lcn = self.free_clusters(-(-len(out) // self.cluster))
        a = self.add(f.number, Attribute(LIST, None, [(lcn, -(-len(out) // self.cluster))], '',
                                         len(out), len(out)))
        a.allocated = -(-len(out) // self.cluster) * self.cluster
        self.patches.append((lcn * self.cluster, out))

    def free_clusters(self, count):
        """From the end of the volume, where no test puts files."""
        self.top = getattr(self, 'top', self.clusters - 1) - count
        return self.top

    # ---- writing

    def pack_record(self, number, whole=False):
        sequence, flags, base, attributes = self.records[number]
        body = b''.join(a.pack() for a in sorted(attributes, key=lambda a: (a.kind, a.name)))
        body += struct.pack('<II', 0xffffffff, 0)
        words_ = self.record // 512 + 1
        first = (48 + 2 * words_ + 7) // 8 * 8
        head = struct.pack('<4sHHQHHHHIIQHHI', b'FILE', 48, words_, 0, sequence, 1, first, flags,
                           first + len(body), self.record, base, 99, 0, number)
        out = head + bytes(first - len(head)) + body
        assert len(out) <= self.record, f'record {number} needs {len(out)} bytes'
        return self.fix(out + bytes(self.record - len(out)), 48, number in self.spoil and not whole)

    @staticmethod
    def fix(data, at, spoil=False):
        data, usn = bytearray(data), b'\x07\x00'
        data[at:at + 2] = usn
        for i in range(len(data) // 512):
            end = (i + 1) * 512 - 2
            data[at + 2 * (i + 1):at + 2 * (i + 2)] = data[end:end + 2]
            data[end:end + 2] = b'\x99\x99' if spoil and i else usn
        return bytes(data)

    def index_entry(self, number, name, flags=0):
        key = self.file_name(number, name)
        body = pad8(struct.pack('<QHHHH', self.reference(number), 0, len(key), flags, 0) + key)
        return body[:8] + struct.pack('<H', len(body)) + body[10:]

    def index_blocks(self):
        block, out, now = 4096, [], b''
        last = struct.pack('<QHHHH', 0, 16, 0, 2, 0)
        for number, name in self.entries:
            entry = self.index_entry(number, name)
            if len(now) + len(entry) > block - 24 - 40 - 16:
                out.append(now)
                now = b''
            now += entry
        out.append(now)
        packed = []
        for i, entries in enumerate(out):
            node = entries + last
            head = struct.pack('<4sHHQQ', b'INDX', 40, 9, 0, i)
            head += struct.pack('<IIII', 40, 40 + len(node), block - 24, 0)
            data = head + bytes(24) + node
            packed.append(self.fix(data + bytes(block - len(data)), 40))
        return b''.join(packed)

    def system_files(self):
        def system(number, name, *attributes):
            self.records[number] = (max(number, 1), 1, 0, [])
            self.add(number, Attribute(STANDARD_INFORMATION,
                                       struct.pack('<QQQQI', *[TIME] * 4, 6) + bytes(36)))
            self.add(number, Attribute(FILE_NAME, self.file_name(number, name)))
            for a in attributes:
                self.add(number, a)

        def stored(kind, data, name=''):
            count = max(1, -(-len(data) // self.cluster))
            lcn = self.free_clusters(count)
            self.patches.append((lcn * self.cluster, data))
            a = Attribute(kind, None, [(lcn, count)], name, len(data), len(data))
            a.allocated = count * self.cluster
            return a

        count = max(self.next, FIRST_USER) + self.extra_records
        size = -(-count * self.record // self.cluster) * self.cluster
        runs = self.mft_runs or [(self.mft_lcn(), size // self.cluster)]
        if sum(n for _, n in runs) * self.cluster < count * self.record:
            raise ValueError('mft_runs are too short')
        mft = Attribute(DATA, None, runs, '', sum(n for _, n in runs) * self.cluster,
                        sum(n for _, n in runs) * self.cluster)
        mft.allocated = mft.size
        system(MFT, '$MFT', mft)
        if self.mft_list:
            mft.runs, rest = runs[:1], runs[1:]
            self.records[15] = (1, 1, MFT | 1 << 48, [])
            more = self.add(15, Attribute(DATA, None, rest, first=runs[0][1]))
            self.attribute_list(File(self, MFT, '$MFT', 0), [(DATA, more.first, 15, more.id, '')])
        system(VOLUME, '$Volume', Attribute(VOLUME_NAME, self.label.encode('utf-16-le')),
               Attribute(VOLUME_INFORMATION, bytes(8) + b'\x03\x01\0\0'))
        system(BITMAP, '$Bitmap', stored(DATA, b'\xff' * min(-(-self.clusters // 8), 65536)))
        if self.secure:
            system(SECURE, '$Secure', stored(DATA, self.secure, '$SDS'))
        if self.upcase:
            self.add_upcase(system, stored)
        self.entries.append((MFT, '$MFT'))
        if self.secure:
            self.entries.append((SECURE, '$Secure'))
        blocks = self.index_blocks()
        root = struct.pack('<IIIBBBB', FILE_NAME, 1, 4096, 1, 0, 0, 0)
        root += struct.pack('<IIII', 16, 40, 40, 1) + struct.pack('<QHHHHQ', 0, 24, 0, 3, 0, 0)
        bits = (1 << len(blocks) // 4096) - 1
        system(ROOT, '.', Attribute(INDEX_ROOT, root, name='$I30'),
               stored(INDEX_ALLOCATION, blocks, '$I30'),
               Attribute(INDEX_BITMAP, bits.to_bytes(-(-bits.bit_length() // 64) * 8 or 8, 'little'),
                         name='$I30'))
        self.records[ROOT] = (ROOT, 3, 0, self.records[ROOT][3])
        self.system_files_done()
        return runs

    @staticmethod
    def add_upcase(system, stored):
        upper = [chr(c).upper() if not 0xd800 <= c < 0xe000 else '??' for c in range(65536)]
        table = array('H', (ord(u) if len(u) == 1 else c for c, u in enumerate(upper)))
        system(UPCASE, '$UpCase', stored(DATA, table.tobytes()))

    def mft_lcn(self):
        return max(1, 8192 // self.cluster)

    def boot_sector(self, mft_lcn):
        per = self.cluster // self.sector
        boot = bytearray(512)
        boot[0:11] = b'\xeb\x52\x90NTFS    '
        struct.pack_into('<HB', boot, 11, self.sector,
                         per if per <= 128 else 256 - (per.bit_length() - 1))
        boot[21] = 0xf8
        struct.pack_into('<QQQ', boot, 40, self.clusters * per - 1 + (1 if per > 1 else 0), mft_lcn,
                         self.mirror or mft_lcn)

        def size(n):
            return n // self.cluster if n >= self.cluster else 256 - (n.bit_length() - 1)
        boot[64], boot[68] = size(self.record), size(4096)
        struct.pack_into('<Q', boot, 72, self.serial)
        boot[510:512] = b'\x55\xaa'
        return bytes(boot)

    def write(self, out, at=0):
        """`out`: a path, or a file opened for writing; the volume begins at byte `at`."""
        if isinstance(out, str):
            with open(out, 'wb') as f:
                return self.write(f, at)
        runs = self.system_files()
        mft = [lcn * self.cluster + i for lcn, n in runs
               for i in range(0, n * self.cluster, min(self.cluster, 512))]
        out.truncate(max(at + self.size, out.seek(0, 2)))

        def put(offset, data):
            if 0 <= offset < self.size:
                out.seek(at + offset)
                out.write(data[:self.size - offset])
        put(0, self.boot_sector(runs[0][0]))
        step = min(self.cluster, 512)
        for number in self.records:
            data = self.pack_record(number)
            for i in range(0, self.record, step):
                put(mft[(number * self.record + i) // step], data[i:i + step])
            if self.mirror and number < 4:
                put(self.mirror * self.cluster + number * self.record,
                    self.pack_record(number, whole=True))
        for f in self.files:
            done = 0
            for lcn, count in f.runs:
                if lcn is not None and self.write_content:
                    put(lcn * self.cluster, words(f.seed, done // 8, count * self.cluster // 8))
                done += count * self.cluster
        for offset, data in self.patches:
            put(offset, data)


def gpt_disk(path, volumes, sector=512, gap=2048, guids=None):
    """A GPT disk with `volumes` one after the other. Returns the byte offset of each."""
    import zlib
    offsets, entries, lba = [], b'', gap
    for i, v in enumerate(volumes):
        sectors = -(-v.size // sector)
        entries += (bytes.fromhex('a2a0d0ebe5b9334487c068b6b72699c7') + (guids[i] if guids else bytes([i + 1] * 16))
                    + struct.pack('<QQQ', lba, lba + sectors - 1, 0)
                    + f'volume {i}'.encode('utf-16-le').ljust(72, b'\0'))
        offsets.append(lba * sector)
        lba += -(-sectors // gap) * gap
    entries = entries.ljust(128 * 128, b'\0')
    total = lba + gap

    def header(mine, other, table):
        h = struct.pack('<8sIIIIQQQQ16sQIII', b'EFI PART', 0x10000, 92, 0, 0, mine, other, 34,
                        total - 34, bytes(range(16)), table, 128, 128, zlib.crc32(entries))
        return h[:16] + struct.pack('<I', zlib.crc32(h)) + h[20:]
    table_sectors = len(entries) // sector
    with open(path, 'wb') as f:
        f.truncate(total * sector)
        f.seek(446)
        f.write(struct.pack('<B3sB3sII', 0, b'\0\2\0', 0xee, b'\xff' * 3, 1,
                            min(total - 1, 0xffffffff)))
        f.seek(510)
        f.write(b'\x55\xaa')
        f.seek(sector)
        f.write(header(1, total - 1, 2))
        f.seek(2 * sector)
        f.write(entries)
        f.seek((total - 1 - table_sectors) * sector)
        f.write(entries)
        f.seek((total - 1) * sector)
        f.write(header(total - 1, 1, total - 1 - table_sectors))
        for v, offset in zip(volumes, offsets):
            v.write(f, offset)
    return offsets


def mbr_disk(path, volumes, gap=2048, signature=0xdeadbeef):
    """The same with an MBR of up to four primary partitions."""
    offsets, lba = [], gap
    with open(path, 'wb') as f:
        for i, v in enumerate(volumes):
            sectors = -(-v.size // 512)
            f.seek(446 + 16 * i)
            f.write(struct.pack('<B3sB3sII', 0, b'\0' * 3, 7, b'\0' * 3, lba, sectors))
            offsets.append(lba * 512)
            lba += -(-sectors // gap) * gap
        f.seek(440)
        f.write(struct.pack('<I', signature))
        f.seek(510)
        f.write(b'\x55\xaa')
        f.truncate(lba * 512)
        for v, offset in zip(volumes, offsets):
            v.write(f, offset)
    return offsets
