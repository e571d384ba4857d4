# SPDX-License-Identifier: Apache-2.0
"""
guest/zoo.c in a guest, and whether what a container has of its pages, and says of them, is true: by the marks that
the program left, by /proc/PID/pagemap, and by the VM's own memory.
"""

import csv
import json
import struct
from collections import Counter, namedtuple

import acquired
import marked
import vm
from acquired import COMPLETE, GAPS, PAGE, pages

# What a machine needs for all kinds: protection keys, a piece of RAM that is a persistent device, and secrets on 6.1.
# The modules are asked for with `filesystems`.
CPU = 'pku=on'
DAX_AT, DAX_SIZE = 0x101000000, '8M'
WORDS = f'secretmem.enable=1 memmap={DAX_SIZE}!{DAX_AT:#x}'
MODULES = ('ext4', 'nd_e820', 'nd_pmem')
DISK_SIZE = 8 * marked.MIB
ZRAM_SIZE = '4M'

TABLE = 512 * PAGE
MAGIC = b'RSZOO\r\n\0'
EFAULT, EHWPOISON = 14, 133  # include/uapi/asm-generic/errno-base.h, errno.h

# Documentation/admin-guide/mm/pagemap.rst
PRESENT, FRAME = 1 << 63, (1 << 55) - 1
KPF_HWPOISON = 1 << 19

# How an entry looks and what the container has behind it.
HAS = 'has'  # the content, and it is safe
SWAPPED = 'swapped'  # the content, out of the swap area or the swap cache
CACHED = 'cached'  # no table leads to what is in the page cache or, of shmem, in swap
NOTHING = 'nothing'
OUTSIDE = 'outside'  # the frame is no RAM
UNREADABLE = 'unreadable'

Kind = namedtuple('Kind', 'state content')
KINDS = {
    **dict.fromkeys((
        'hugetlb', 'thp', 'thp-zero', 'mthp', 'anonymous', 'zero', 'shared', 'lazily-freed', 'droppable', 'sealed',
        'memfd', 'private-file', 'copied', 'protection-key', 'guard-beside', 'guard-fresh-beside',
        'guard-shared-beside', 'ksm', 'softly-offlined', 'uffd-wp', 'ring-io_uring', 'ring-perf', 'ring-packets',
        'swap-and-back', 'leader-ended'), Kind('valid', HAS)),
    **dict.fromkeys(('prot-none', 'uffd-rwp'), Kind('prot-none', HAS)),
    **dict.fromkeys(('untouched', 'uffd-missing'), Kind('empty', NOTHING)),
    **dict.fromkeys(('forgotten', 'uffd-minor', 'swap-shared'), Kind('empty', CACHED)),
    **dict.fromkeys(('guard', 'guard-fresh', 'guard-shared', 'uffd-wp-fresh', 'uffd-wp-hugetlb', 'uffd-poison',
                     'swap-uffd-wp'), Kind('marker', NOTHING)),
    **dict.fromkeys(('poison', 'poison-shared', 'hugetlb-poison'), Kind('poisoned', NOTHING)),
    **dict.fromkeys(('swap', 'swap-thp', 'swap-uffd-wp-private', 'zram'), Kind('swap', SWAPPED)),
    'dax': Kind('valid', OUTSIDE),
    'secret': Kind('valid', UNREADABLE),
}

# Since when a kernel has what not each has.
SINCE = {
    'mthp': (6, 8), 'droppable': (6, 11), 'sealed': (6, 10), 'guard': (6, 13), 'guard-fresh': (6, 13),
    'guard-shared': (6, 15), 'uffd-wp-fresh': (6, 4), 'uffd-poison': (6, 6), 'uffd-rwp': (7, 3),
}

# What can be wrong with a page. The first two may never be.
SAFE_BUT_WRONG = 'called safe, and not what it is'
ZEROS_FOR_CONTENT = 'zeros in the container, content in the VM'
WRONG = 'content that is another\'s'
NO_CONTENT = 'content that is there is not found'
FROM_NOWHERE = 'content where there is none'
STATE = 'its entry is called something else'
NOT_SAFE = 'right, not safe, though nothing moved'
SAFE_NOTHING = 'safe, without content'
REASON = 'the reason why there is no content is another'
NO_PROCESS = 'the process is not found'

# Now and then, on a busy host, the rights of such an entry differ between the copies, and it is at risk by that; why
# they differ is not known.
CHANGING = ('uffd-rwp',)

Region = namedtuple('Region', 'pid kind at pages truth mark')
Seen = namedtuple('Seen', 'kind trust verdict')  # of a page: verdict 'right', 'wrong', 'zeros' or 'none'


def content(region, index):
    """What the process has in that page; None: nothing, or nothing that matters."""
    if region.truth in ('own', 'same'):
        return MAGIC + struct.pack('<Q', region.mark << 32 | (index if region.truth == 'own' else 0)) * 511
    return None if region.truth == 'none' else bytes(PAGE)


class Zoo:
    """The program at work, until end()."""

    def __init__(self, guest, work, disk):
        """`disk`: the device in the guest, which becomes a swap area."""
        self.guest, self.work, self.disk = guest, work, disk
        self.version = guest.version
        # On a machine with two nodes the kernel takes rights away from pages now and then, to see who uses them.
        guest.check('echo 0 >/proc/sys/kernel/numa_balancing')
        guest.load('virtio_blk', 'zram')
        guest.check(f'mkswap {disk} && echo {ZRAM_SIZE} >/sys/block/zram0/disksize && mkswap /dev/zram0')
        self._mount_dax()
        said = guest.check(f'zoo {disk} /dev/zram0 /root/dax/file >/tmp/zoo 2>&1 & '
                           'until grep -q ready /tmp/zoo || ! kill -0 $!; do sleep 0.1; done; cat /tmp/zoo')
        self.regions, self.lacking = [], {}
        for line in said.splitlines():
            pid, kind, *more = line.split(maxsplit=2)
            if kind == 'ready':
                self.pid = int(pid)
            elif kind == 'lacks':
                self.lacking.setdefault(*more[0].split(maxsplit=1))
            else:
                at, count, truth, mark = more[0].split()
                self.regions.append(Region(int(pid), kind, int(at, 16), int(count), truth, int(mark)))

    def _mount_dax(self):
        """ext4 wants crc32c, which it asks for by name."""
        self.guest.load('crc32c_generic', 'ext4', 'nd_pmem', 'nd_e820')
        self.guest.check('until [ -e /dev/pmem0 ]; do sleep 0.1; done; '
                         'mke2fs -b 4096 /dev/pmem0 >/dev/null && mkdir -p /root/dax && '
                         'mount -t ext4 -o dax=always /dev/pmem0 /root/dax')

    def end(self):
        pids = {region.pid for region in self.regions}
        self.guest.check(f'kill -KILL {" ".join(map(str, pids))}; '
                         f'while kill -0 {self.pid} 2>/dev/null; do sleep 0.1; done; '
                         f'swapoff {self.disk} && swapoff /dev/zram0 && umount /root/dax')

    def of(self, pid):
        return [region for region in self.regions if region.pid == pid]

    def span(self, pid):
        """(first, last + 1) of all regions of a process, in whole tables, of which pagemap has whole pages."""
        first, end = (edge([region.at + n * region.pages * PAGE for region in self.of(pid)])
                      for edge, n in ((min, 0), (max, 1)))
        return first // TABLE * TABLE, -(-end // TABLE) * TABLE

    def pagemap(self):
        """{(pid, address): entry}"""
        found = {}
        for pid in {region.pid for region in self.regions}:
            first, end = self.span(pid)
            path = self.work / 'pagemap'
            # Where the first thread has ended, only another one has it.
            self.guest.check(f'dd if=/proc/{pid}/task/$(ls /proc/{pid}/task | sort -n | tail -n 1)/pagemap '
                             f'bs={PAGE} skip={first // TABLE} count={(end - first) // TABLE} of=/dev/container '
                             'status=none', container=path)
            entries = struct.unpack(f'<{(end - first) // PAGE}Q', path.read_bytes())
            found.update(((pid, first + i * PAGE), entry) for i, entry in enumerate(entries) if entry)
        return found

    def frames(self, pagemap, kind):
        """PFNs of the pages of that kind."""
        entries = [pagemap.get((region.pid, region.at + i * PAGE), 0)
                   for region in self.regions if region.kind == kind for i in range(region.pages)]
        return {entry & FRAME for entry in entries if entry & PRESENT}

    def poisoned(self, ram):
        """PFNs that the kernel calls poisoned."""
        path = self.work / 'kpageflags'
        self.guest.check('dd if=/proc/kpageflags of=/dev/container bs=65536 status=none', container=path)
        flags = path.read_bytes()
        return {pfn for pfn in pages(ram) if struct.unpack_from('<Q', flags, 8 * pfn)[0] & KPF_HWPOISON}


class Checks:
    """For a test with `guest`, `work`, `ram`, save_memory(), acquire() and opened()."""

    def acquire_zoo(self, zoo, options):
        """
        Once, with everything that is needed to judge it; sets `holes` and `poisoned`, which have no content, and
        `truth`: what the program asks for makes the kernel patch its own text.
        """
        pagemap, before = zoo.pagemap(), self.save_memory('before')
        self.truth, self.holes = before, zoo.frames(pagemap, 'secret')
        self.poisoned = zoo.poisoned(self.ram)
        path = self.acquire(options, GAPS)
        after, again = self.save_memory('after'), zoo.pagemap()
        # What is the same before and behind it has not moved meanwhile.
        zoo.stood = {at: entry for at, entry in pagemap.items() if again.get(at) == entry}
        zoo.memory = after
        zoo.constant = {pfn for pfn in pages(self.ram) if before.page(pfn) == after.page(pfn)}
        return self.opened(path)

    # --- kinds ---

    def check_zoo_is_whole(self, zoo):
        """Each kind is there, or its kernel is too old."""
        kinds = {region.kind for region in zoo.regions}
        self.assertLessEqual(kinds, set(KINDS))
        lacking = {kind for kind, since in SINCE.items() if zoo.version < since}
        beside = {f'{kind}-beside' for kind in lacking if kind.startswith('guard')}
        self.assertEqual(set(zoo.lacking), lacking, zoo.lacking)
        self.assertEqual(set(KINDS) - kinds, lacking | beside)

    # --- what the container has ---

    def read_zoo(self, zoo, image, pid, tables):
        """{address: what `ramseal read --json` says}, and its bytes; None: it does not find the process."""
        first, end = zoo.span(pid)
        out = self.work / 'zoo.bytes'
        done = acquired.ramseal('read', '--pid', pid, '--va', hex(first), '--length', end - first, '--tables', tables,
                                '--json', '--force', '-o', out, image.path)
        if f'no process {pid} ' in done.stderr:
            return None
        self.assertIn(done.returncode, (COMPLETE, GAPS), done.stderr)
        self.addCleanup(out.unlink, missing_ok=True)
        rows = {int(row['va'], 16) + i * PAGE: row
                for row in marked.documents(done.stdout) for i in range(row['pages'])}
        with open(out, 'rb') as f:
            return rows, f.read()

    def check_page(self, zoo, region, index, row, got):
        """What is wrong with it, and how it counts."""
        kind, mine = KINDS[region.kind], content(region, index)
        stood = (region.pid, region.at + index * PAGE) in zoo.stood
        trust, why = row.get('trust'), row.get('why', '')
        if row['content'] == 'none':
            verdict = 'none'
        else:
            verdict = 'right' if got == mine else 'wrong' if any(got) else 'zeros'
        wrong = set()
        if verdict in ('wrong', 'zeros'):
            wrong.add(SAFE_BUT_WRONG if trust == 'safe' else FROM_NOWHERE if mine is None else WRONG)
        if verdict == 'none' and trust == 'safe':
            wrong.add(SAFE_NOTHING)
        if row['state'] != kind.state:
            wrong.add(STATE)
        if kind.content in (HAS, SWAPPED):
            if verdict == 'none':
                wrong.add(NO_CONTENT)
            elif trust != 'safe' and stood and not (region.kind in CHANGING and row.get('change') == 'rights'):
                wrong.add(NOT_SAFE)
        if kind.content == CACHED and verdict == 'none' and 'page cache' not in why:
            wrong.add(REASON)
        if kind.content == NOTHING and 'not a table' in why:
            wrong.add(REASON)
        if kind.content in (OUTSIDE, UNREADABLE) and row.get('verdict') != kind.content:
            wrong.add(REASON)
        return wrong, Seen(region.kind, trust, verdict)

    def judge_zoo(self, zoo, image):
        """Defects, {(kind, defect): pages}; of the image's tables also what was seen, {Seen: pages}."""
        defects, seen = Counter(), Counter()
        for pid in {region.pid for region in zoo.regions}:
            for tables in 'before', 'after', 'image':
                found = self.read_zoo(zoo, image, pid, tables)
                for region in zoo.of(pid):
                    if found is None:
                        defects[region.kind, NO_PROCESS] += region.pages
                        seen[Seen(region.kind, None, 'none')] += region.pages * (tables == 'image')
                        continue
                    rows, got = found
                    for i in range(region.pages):
                        at = region.at + i * PAGE
                        offset = at - zoo.span(pid)[0]
                        wrong, this = self.check_page(zoo, region, i, rows[at], got[offset:offset + PAGE])
                        if wrong:
                            print(f'{tables} copy, {region.kind}: {", ".join(sorted(wrong))}: {rows[at]}')
                        defects.update((region.kind, defect) for defect in wrong)
                        seen[this] += tables == 'image'
        return defects, +seen

    def check_mappings(self, zoo, image):
        """
        What `smear --mappings` calls safe is where pagemap has it, if that has not moved, and there the VM itself has
        what the program wrote.
        """
        regions = {region.at + i * PAGE: (region, i) for region in zoo.of(zoo.pid) for i in range(region.pages)}
        done = acquired.ramseal('smear', '--mappings', zoo.pid, image.path)
        self.assertEqual(done.returncode, COMPLETE, done.stderr)
        compared = 0
        for row in csv.DictReader(done.stdout.splitlines()):
            if row['trust'] != 'safe' or not row['frame']:
                continue
            for n in range(int(row['pages'])):
                at, pfn = int(row['va'], 16) + n * PAGE, int(row['frame'], 16) // PAGE + n
                entry = zoo.stood.get((zoo.pid, at), 0)
                if at not in regions or not entry & PRESENT:
                    continue
                region, i = regions[at]
                self.assertEqual(pfn, entry & FRAME, f'{region.kind}, {row}')
                if pfn in zoo.constant:
                    self.assertEqual(zoo.memory.page(pfn), content(region, i), f'{region.kind}, {row}')
                    compared += 1
        self.assertGreater(compared, 3 * 1500)
        return compared

    def check_no_zeros(self, zoo, image):
        """
        No page of the program is zeros in the container, also those that no table names. (Another's may have been zeros
        for a moment, though it has the same content before and after.)
        """
        own = {pfn for pfn in zoo.constant if zoo.memory.page(pfn).startswith(MAGIC)}
        self.assertGreater(len(own), 1000)
        lost = [hex(pfn) for pfn in own - image.unreadable - image.skipped if not any(image.memory.page(pfn))]
        self.assertEqual(lost, [], ZEROS_FOR_CONTENT)

    def check_secrets(self, zoo, image):
        """They are no zeros and no data, and it is said why, and which."""
        self.assertGreater(len(self.holes), 0)
        errors = {}
        for part in image.info['unreadable']:
            errors.setdefault(part['error'], set()).update(pages([(part['first'], part['last'])]))
        self.assertEqual(errors, {EFAULT: self.holes, EHWPOISON: self.poisoned})
        withheld = image.info['withheld']
        self.assertTrue(withheld['known'] and withheld['holes_known'])
        for name, expected in ('holes', self.holes), ('poisoned', self.poisoned):
            self.assertEqual(set(pages((r['first'], r['last']) for r in withheld[name])), expected)
        said = acquired.ramseal('info', image.path).stdout
        self.assertIn(f'{len(self.holes)} pages: not in the kernel\'s direct map', said)
        # The VM has them.
        held = {content(region, i) for region in zoo.regions if region.kind == 'secret' for i in range(region.pages)}
        self.assertEqual({zoo.memory.page(pfn) for pfn in self.holes}, held)

    # --- all of it ---

    def check_zoo(self, zoo, image):
        self.check_zoo_is_whole(zoo)
        self.check_secrets(zoo, image)
        self.check_no_zeros(zoo, image)
        compared = self.check_mappings(zoo, image)
        defects, seen = self.judge_zoo(zoo, image)
        self.tell_zoo(seen, compared)
        self.assertEqual(dict(defects), {})

    def tell_zoo(self, seen, compared):
        """A table in the log of the test, and the sums of it for build/test."""
        columns = ('pages', 'right', 'safe', 'at risk', 'none', 'wrong')
        table = {}
        for page, count in seen.items():
            row = table.setdefault(page.kind, Counter())
            row['pages'] += count
            row[page.verdict if page.verdict in ('right', 'none') else 'wrong'] += count
            if page.verdict == 'right':
                row['safe' if page.trust == 'safe' else 'at risk'] += count
        print(f'{"kind":22}' + ''.join(f'{column:>9}' for column in columns))
        for kind in KINDS:
            if kind in table:
                print(f'{kind:22}' + ''.join(f'{table[kind][column]:9}' for column in columns))
        total = sum(table.values(), Counter())
        print(f'note: zoo: {len(table)} kinds of memory, ' +
              ', '.join(f'{total[column]} {column}' for column in columns) +
              f'; {compared} safe mappings compared with the VM\'s memory')
