#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Volumes that mkntfs and ntfs-3g made, read through the MFT and compared with icat and the mount.

    test_formatted.py NTFS_TOOL [unittest options]

Mounting needs root and FUSE; what needs it is skipped without.
"""
import contextlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.abspath(sys.argv.pop(1))
MIB = 1 << 20
CAN_MOUNT = os.geteuid() == 0 and os.path.exists('/dev/fuse') and shutil.which('ntfs-3g')


def run(*args, **more):
    return subprocess.run([str(a) for a in args], check=True, capture_output=True, timeout=900,
                          **more)


@unittest.skipUnless(shutil.which('mkntfs'), 'mkntfs (ntfs-3g) is not installed')
class Formatted(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='ramseal-ntfs-')
        self.addCleanup(shutil.rmtree, self.folder)
        self.image = os.path.join(self.folder, 'image.raw')
        self.random = random.Random(1)

    def format(self, size, *options):
        with open(self.image, 'wb') as f:
            f.truncate(size)
        run('mkntfs', '-q', '-F', '-Q', '-L', 'Prüfung', *options, self.image)

    @contextlib.contextmanager
    def mounted(self, *options):
        at = os.path.join(self.folder, 'mount')
        os.makedirs(at, exist_ok=True)
        run('ntfs-3g', '-o', ','.join(('streams_interface=windows', *options)), self.image, at)
        try:
            yield at
        finally:
            run('umount', at)

    def cat(self, path, image=None):
        p = subprocess.run([TOOL, 'cat', '-', path, image or self.image], capture_output=True,
                           timeout=900)
        self.assertEqual(p.returncode, 0, p.stderr.decode())
        return p.stdout

    def info(self, path):
        line = run(TOOL, 'info', '-', path, self.image).stdout.decode().splitlines()[0]
        return {k: int(v) for k, v in re.findall(r'(\w+)=(\d+)', line)}

    def check(self, path, want):
        gone = subprocess.run([TOOL, 'cat', '-', 'no such file', self.image], capture_output=True)
        self.assertEqual(gone.stderr.decode(), 'ntfs_tool: no such file: there is no "no such file"\n',
                         'no index is damaged here')
        got = self.cat(path)
        self.assertEqual(len(got), len(want))
        self.assertTrue(got == want, f'{path} differs')
        if shutil.which('icat') and ':' not in path:
            other = run('icat', '-f', 'ntfs', self.image, self.info(path)['record']).stdout
            self.assertTrue(got == other, 'icat differs')

    def fill(self, at, size):
        """Files of `size` bytes until the volume is full; then every other one is deleted."""
        names = []
        try:
            while True:
                names.append(os.path.join(at, f'f{len(names)}'))
                with open(names[-1], 'wb') as f:
                    f.write(bytes(size))
        except OSError:
            pass
        for name in names[::2]:
            with contextlib.suppress(FileNotFoundError):
                os.remove(name)

    def test_geometries(self):
        if not shutil.which('ntfscp'):
            self.skipTest('ntfscp is not installed')
        want = self.random.randbytes(MIB + 77)
        source = os.path.join(self.folder, 'source')
        with open(source, 'wb') as f:
            f.write(want)
        for options in (('-c', 512), ('-c', 1024), ('-c', 4096), ('-c', 65536),
                        ('-s', 4096, '-c', 4096)):
            with self.subTest(options=options):
                self.format(64 * MIB, *options)
                run('ntfscp', '-q', self.image, source, 'pagefile.sys')
                self.check('pagefile.sys', want)
                listed = run(TOOL, 'volumes', self.image).stdout.decode()
                self.assertIn('label=Prüfung', listed)

    @unittest.skipUnless(CAN_MOUNT, 'needs root, FUSE and ntfs-3g')
    def test_page_file_on_a_full_volume(self):
        self.format(24 * MIB, '-c', 4096)
        want = b''
        with self.mounted() as at:
            self.fill(at, 4096)
            with open(os.path.join(at, 'pagefile.sys'), 'wb', buffering=0) as f:
                with contextlib.suppress(OSError):
                    while True:
                        page = self.random.randbytes(4096)
                        want += page[:f.write(page)]
        self.check('pagefile.sys', want)
        info = self.info('PAGEFILE.SYS')
        self.assertGreater(info['fragments'], 300, info)
        self.assertGreater(info['records'], 1, info)

    @unittest.skipUnless(CAN_MOUNT, 'needs root, FUSE and ntfs-3g')
    def test_sparse_streams_and_names(self):
        self.format(32 * MIB)
        with self.mounted() as at:
            with open(os.path.join(at, 'sparse'), 'wb') as f:
                f.seek(3 * MIB)
                f.write(b'end')
            os.makedirs(os.path.join(at, 'Ordner', 'ünter'))
            with open(os.path.join(at, 'Ordner', 'ünter', 'Datei'), 'wb') as f:
                f.write(b'x' * 5000)
            with open(os.path.join(at, 'Ordner', 'ünter', 'Datei:strom'), 'wb') as f:
                f.write(b'y' * 100000)
        self.check('sparse', bytes(3 * MIB) + b'end')
        self.check('ordner/ÜNTER/datei', b'x' * 5000)
        self.check('Ordner\\ünter\\Datei:STROM', b'y' * 100000)

    @unittest.skipUnless(CAN_MOUNT, 'needs root, FUSE and ntfs-3g')
    def test_compressed(self):
        self.format(64 * MIB, '-C')
        words_ = [self.random.randbytes(8) for _ in range(50)]
        want = b''.join(self.random.choices(words_, k=200000)) + self.random.randbytes(300000)
        with self.mounted('compression') as at:
            with open(os.path.join(at, 'packed'), 'wb') as f:
                f.write(want)
        self.assertEqual(self.info('packed')['compressed'], 1)
        self.check('packed', want)

    @unittest.skipUnless(CAN_MOUNT and shutil.which('losetup'), 'needs root and losetup')
    def test_block_device(self):
        self.format(32 * MIB)
        want = self.random.randbytes(3 * MIB + 1)
        with self.mounted() as at:
            with open(os.path.join(at, 'pagefile.sys'), 'wb') as f:
                f.write(want)
        try:
            device = run('losetup', '--find', '--show', self.image).stdout.decode().strip()
        except subprocess.CalledProcessError as e:
            self.skipTest(e.stderr.decode().strip())
        try:
            self.assertTrue(self.cat('pagefile.sys', device) == want)
        finally:
            run('losetup', '-d', device)


if __name__ == '__main__':
    unittest.main()
