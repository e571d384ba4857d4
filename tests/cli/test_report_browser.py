#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Opens reports in headless Chromium: nothing is complained about, the figures are there, light is light
and dark is dark, and it can be printed. The screenshots stay in FOLDER, for people to look at.
Usage: test_report_browser.py RAMSEAL FOLDER
"""

import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import report_data as data  # noqa: E402

RAMSEAL = os.path.abspath(sys.argv.pop(1))
FOLDER = Path(sys.argv.pop(1)).resolve()
SKIPPED_EXIT = 77  # what meson takes for "skipped"
TIMEOUT = 900      # for a start of the browser on a machine that does much else
DARK = '--blink-settings=preferredColorScheme=0'


def chromium(*args):
    """What it says on stderr (its own log and the page's console), and what it prints."""
    with tempfile.TemporaryDirectory(prefix='ramseal-chromium-') as profile:
        done = subprocess.run(
            ['chromium', '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic',
             '--no-first-run', '--disable-background-networking', '--disable-dev-shm-usage',
             '--hide-scrollbars', '--enable-logging=stderr', f'--user-data-dir={profile}', *args],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT)
    if done.returncode:
        raise AssertionError(f'chromium ended with {done.returncode}: {done.stderr[-2000:]}')
    return done.stderr.decode(errors='replace'), done.stdout.decode(errors='replace')


def console(log):
    """The lines that the page itself caused."""
    return [line for line in log.splitlines() if ':CONSOLE' in line]


def pixels(path):
    """(width, height, [brightness of some pixels]) of a PNG: 8 bits, RGB or RGBA (ISO/IEC 15948)."""
    png, at, packed = path.read_bytes(), 8, b''
    while at < len(png):
        length, kind = struct.unpack_from('>I4s', png, at)
        body = png[at + 8:at + 8 + length]
        if kind == b'IHDR':
            width, height, depth, colour = struct.unpack_from('>IIBB', body)
        elif kind == b'IDAT':
            packed += body
        at += 12 + length
    assert depth == 8 and colour in (2, 6), 'another kind of PNG'
    step = 3 if colour == 2 else 4
    raw, stride = zlib.decompress(packed), width * step
    above, found = bytearray(stride), []
    for y in range(height):
        kind, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for i in range(stride):
            left = line[i - step] if i >= step else 0
            corner = above[i - step] if i >= step else 0
            if kind == 4:
                near = left + above[i] - corner
                by = [abs(near - left), abs(near - above[i]), abs(near - corner)]
                guess = (left, above[i], corner)[by.index(min(by))]
            else:
                guess = (0, left, above[i], (left + above[i]) // 2)[kind]
            line[i] = line[i] + guess & 0xff
        above = line
        found += [sum(line[x * step:x * step + 3]) / 3 for x in range(0, width, 7)]
    return width, height, found


class Browser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        paths = []
        for name, more in (('linear', {}), ('guided', {'late': 9 * data.SECOND, 'order': 'guided'})):
            paths.append(FOLDER / f'{name}.rsz')
            paths[-1].write_bytes(data.container(**more))
        for out, inputs in (('one.html', paths[:1]), ('several.html', paths)):
            subprocess.run([RAMSEAL, 'report', '-q', *inputs, '-o', FOLDER / out], check=True,
                           timeout=TIMEOUT)

    def dom(self, name):
        log, dom = chromium('--dump-dom', f'file://{FOLDER / name}')
        self.assertEqual(console(log), [])
        self.assertNotIn('<script', dom)
        self.assertNotIn('<img', dom)
        return dom

    def test_one(self):
        dom = self.dom('one.html')
        self.assertEqual(dom.count('<figure'), dom.count('</figure>'))
        self.assertEqual(dom.count('class="fig wide"'), 7)
        for title in ('Physical address against capture time', 'How mapping windows are distributed',
                      'Transitions of page states', 'Processes by pages at risk',
                      'Page states by process'):
            self.assertIn(f'<title>{title}</title>', dom)
        self.assertIn('&lt;script&gt;alert(1)', dom)

    def test_several(self):
        dom = self.dom('several.html')
        self.assertEqual(dom.count('class="fig wide"'), 4)

    def test_what_it_would_complain_about(self):
        """The check can fail: a script is refused by the page's own policy, and the console says so."""
        text = (FOLDER / 'one.html').read_text(encoding='utf-8')
        with tempfile.TemporaryDirectory(prefix='ramseal-test-') as folder:
            bad = Path(folder) / 'bad.html'
            bad.write_text(re.sub('<body>', '<body><script>document.title = "run"</script>', text),
                           encoding='utf-8')
            log, dom = chromium('--dump-dom', f'file://{bad}')
        self.assertNotEqual(console(log), [])
        self.assertNotIn('<title>run', dom)

    def screenshot(self, name, page, height, *more):
        path = FOLDER / name
        log, _ = chromium(f'--window-size=1120,{height}', f'--screenshot={path}', *more,
                          f'file://{FOLDER / page}')
        self.assertEqual(console(log), [])
        self.assertGreater(path.stat().st_size, 10_000)
        return path

    def test_screenshots(self):
        for page in ('one', 'several'):
            self.screenshot(f'{page}-light.png', f'{page}.html', 6500)
            self.screenshot(f'{page}-dark.png', f'{page}.html', 6500, DARK)

    def test_light_and_dark(self):
        light, dark = (pixels(self.screenshot(f'top-{name}.png', 'one.html', 700, *more))
                       for name, more in (('light', []), ('dark', [DARK])))
        self.assertEqual(light[:2], dark[:2])
        self.assertGreater(sum(light[2]) / len(light[2]), 200)
        self.assertLess(sum(dark[2]) / len(dark[2]), 80)

    def test_prints(self):
        for page in ('one', 'several'):
            path = FOLDER / f'{page}.pdf'
            log, _ = chromium(f'--print-to-pdf={path}', '--no-pdf-header-footer',
                              f'file://{FOLDER / page}.html')
            self.assertEqual(console(log), [])
            pdf = path.read_bytes()
            self.assertTrue(pdf.startswith(b'%PDF-'))
            pages = len(re.findall(rb'/Type\s*/Page\b(?!s)', pdf))
            self.assertTrue(2 <= pages <= 30, pages)


if __name__ == '__main__':
    if not shutil.which('chromium'):
        print('no chromium here')
        sys.exit(SKIPPED_EXIT)
    unittest.main()
