#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Opens reports in headless Chromium: nothing is complained about; what stands where, how wide it is and
what can be told apart is measured; light is light and dark is dark, and it can be printed. The
screenshots stay in FOLDER, for people to look at.
Usage: test_report_browser.py RAMSEAL FOLDER
"""

import json
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

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[1] / 'sim')]
import report_data as data  # noqa: E402
from chromium import TIMEOUT, Chromium  # noqa: E402
from sampled import drawn  # noqa: E402

RAMSEAL = os.path.abspath(sys.argv.pop(1))
# -Dsimulator=false
needs_simulator = unittest.skipIf(os.environ.get('RAMSEAL_SIMULATOR') == '0', 'built without simulated machines')
FOLDER = Path(sys.argv.pop(1)).resolve()
SKIPPED_EXIT = 77  # what meson takes for "skipped"
WIDTHS = drawn((1280, 768), 1, 'wide') + drawn((420, 360), 1, 'narrow')

UNFOLD = "document.querySelectorAll('details').forEach(d => d.open = true)"

# Each of these asks the page for what is wrong with it: an empty list is right.

# What is wider than its place: the page, or something in it that would have to be scrolled.
TOO_WIDE = """
[document.documentElement, ...document.querySelectorAll('.scroll, figure, table, svg.fig, p, td, th')]
    .filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth ||
                 e.getBoundingClientRect().right > innerWidth + 1)
    .map(e => `${e.tagName} ${e.className.baseVal || e.className} ${e.textContent.slice(0, 60)}`)
"""

# Text that reaches over the edge of its drawing, which cuts it off.
CLIPPED = """
[...document.querySelectorAll('svg.fig text')].filter(t => t.getClientRects().length).filter(t => {
    const box = t.getBoundingClientRect(), svg = t.ownerSVGElement.getBoundingClientRect();
    return box.left < svg.left - .5 || box.right > svg.right + .5 ||
           box.top < svg.top - .5 || box.bottom > svg.bottom + .5;
}).map(t => `${t.ownerSVGElement.querySelector('title').textContent}: ${t.textContent}`)
"""

# Labels of one axis or legend that run into each other.
COLLIDING = """
[...document.querySelectorAll('svg.fig')].flatMap(svg => {
    const texts = [...svg.querySelectorAll('text:not(.halo)')].filter(t => t.getClientRects().length)
        .map(t => [t, t.getBoundingClientRect()]);
    return texts.flatMap(([a, x], i) => texts.slice(i + 1).filter(([b, y]) =>
        Math.min(x.right, y.right) - Math.max(x.left, y.left) > 1 &&
        Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top) > 4
    ).map(([b]) => `${svg.querySelector('title').textContent}: ${a.textContent} | ${b.textContent}`));
})
"""

# Letters that are too small to be read.
SMALL = """
[...document.querySelectorAll('svg.fig text')].filter(t => t.getClientRects().length).filter(t =>
    parseFloat(getComputedStyle(t).fontSize) * t.ownerSVGElement.getBoundingClientRect().width /
    t.ownerSVGElement.viewBox.baseVal.width < 9).map(t => t.textContent)
"""

# What is judged by its colour alone, or by a colour that does not stand out (WCAG 2.1, 1.4.3).
JUDGED_BADLY = """
(() => {
    const parse = c => c.match(/[\\d.]+/g).slice(0, 3).map(Number);
    const light = c => { const [r, g, b] = parse(c).map(v => v / 255).map(v =>
        v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
        return .2126 * r + .7152 * g + .0722 * b; };
    const behind = e => { for (; e; e = e.parentElement) {
        const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)|transparent/.test(c)) return c; }
        return 'rgb(255, 255, 255)'; };
    const words = { good: /^✓ \\S/, fair: /^! \\S/, bad: /^✗ \\S/ };
    return [...document.querySelectorAll('.judged')].filter(e => {
        const [kind] = Object.keys(words).filter(k => e.classList.contains(k));
        const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
        return !words[kind].test(e.textContent) || (a + .05) / (b + .05) < 4.5;
    }).map(e => `${e.className}: ${e.textContent}`);
})()
"""


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


def acquired(name, *options):
    """A container that ramseal made of a simulated machine."""
    path = FOLDER / f'{name}.rsz'
    subprocess.run([RAMSEAL, 'acquire', '-q', '--source',
                    'sim:desktop,ram=128M,allocated=80M,resident=50M,trimmed=25M,others=30M,cache=8M,'
                    'pagefile0=96M,activity=1000,pressure=100', *options, '-o', path], check=True,
                   timeout=TIMEOUT)
    return path


def svchost(name, files):
    """The same of the process whose heaps the 2015 paper walks, with and without its page file."""
    path = FOLDER / f'{name}.rsz'
    subprocess.run([RAMSEAL, 'acquire', '-q', '--source', f'sim:cohen2015heaps,live_files={files}', '-o', path],
                   check=True, timeout=TIMEOUT)
    return path


@needs_simulator
def fleet():
    """Summaries of hosts that ended in every way, with long names, and a file that is none."""
    folder = FOLDER / 'fleet'
    folder.mkdir()
    for i in range(40):
        name = data.EVIL if i == 3 else f'host{i % 30}.anamewithoutaplacetobreakit.example.org'
        doc = {'schema': 'ramseal-summary-1', 'exit_code': i % 12, 'error': data.EVIL if i % 12 else None,
               'duration_ns': i * 10**10, 'output': 'anamewithoutaplacetobreakit' * 4, 'root': f'{i:064x}', 'sealed': i % 3 > 0,
               'bytes_written': i << 30, 'memory': {'bytes': i << 32}, 'tool': {'version': '1', 'sha256': 'a' * 64},
               'machine': {'host': {'name': name, 'boot_id': f'{i:036}'},
                           'os': {'kernel': 'Linux', 'kernel_release': f'6.{i % 3}.anamewithoutaplacetobreakit'}},
               'missing': {'unreadable_pages': i, 'skipped_pages': i * 10**6, 'unacquired_bytes': 0, 'files': 1}}
        (folder / f'{i}.json').write_text(json.dumps(doc))
        (folder / f'{i}.info.json').write_text(json.dumps({'schema': 'ramseal-info-1', 'root': doc['root'],
                                                           'smear': {'safe': 10**6, 'at-risk': i, 'wrong': 1}}))
    (folder / 'none.json').write_text('{')
    return folder


def usual_fleet():
    """50 hosts as they are in a company: names of usual length, one in three did not end well."""
    folder = FOLDER / 'fleet-usual'
    folder.mkdir()
    ends = [(0, None)] * 33 + [(3, None)] * 6 + [(8, 'interrupted by a signal')] * 3 + [
        (6, '/mnt/evidence/host.rsz: No space left on device')] * 2 + [
        (4, 'no source of physical memory: kernel lockdown is in force'), (12, 'another acquisition is running'),
        (10, 'it took longer than it may'), (5, 'the source failed'), (7, 'a hash does not match'),
        (9, '/etc/hosts: is not an image')]
    for i, (code, error) in enumerate(ends):
        doc = {'schema': 'ramseal-summary-1', 'exit_code': code, 'error': error, 'sealed': code in (0, 3),
               'duration_ns': (i % 7 + 1) * 77 * 10**9, 'output': f'/mnt/evidence/host{i:02}.rsz', 'root': f'{i:064x}',
               'bytes_written': i % 5 + 1 << 31, 'memory': {'bytes': 1 << 33 + i % 5}, 'tool': {'version': '1'},
               'machine': {'host': {'name': f'ber-web-{i:02}.corp.example.org', 'boot_id': f'{i:036}'},
                           'os': {'kernel': 'Linux', 'kernel_release': f'6.{i % 4}.0-49-amd64'}},
               'missing': {'unreadable_pages': i if code == 3 else 0, 'skipped_pages': 0, 'unacquired_bytes': 0, 'files': 0}}
        (folder / f'{i}.json').write_text(json.dumps(doc))
    return folder


class Browser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        made = {name: FOLDER / f'{name}.rsz' for name in ('linear', 'guided', 'tables', 'failed', 'cut')}
        many = [f'a process with a long name {i}' for i in range(30)]
        made['linear'].write_bytes(data.container())
        made['guided'].write_bytes(data.container(late=9 * data.SECOND, order='guided', names=many,
                                                  outcome=0, holes=0))
        made['tables'].write_bytes(data.container(passes=[], outcome=0, holes=0, silent=False))
        made['failed'].write_bytes(data.container(passes=['before'], outcome=6, holes=9))
        made['cut'].write_bytes(data.container()[:-20_000])
        made['long'] = FOLDER / ('anamewithoutaplacetobreakit' * 3 + '.rsz')
        made['long'].write_bytes(data.container(passes=[]))
        made['sim'] = acquired('sim')
        made['sim-linear'] = acquired('sim-linear', '--order', 'linear')
        cls.pages = {name: [path] for name, path in made.items()}
        cls.pages['one'] = cls.pages.pop('linear')
        cls.pages['several'] = [made[name] for name in ('linear', 'guided')]
        cls.pages['all'] = list(made.values())
        cls.pages['none'] = [made['tables'], made['failed']]
        cls.pages['fleet'] = [fleet()]
        cls.pages['fleet-usual'] = [usual_fleet()]
        for name, files in (('process', 1), ('process-lost', 0)):
            cls.pages[name] = ['--pid', '1148', svchost(name, files)]
        cls.pages['process-empty'] = ['--pid', '4', FOLDER / 'process.rsz']
        for name, inputs in cls.pages.items():
            done = subprocess.run([RAMSEAL, 'report', '-q', *inputs, '-o', FOLDER / f'{name}.html'],
                                  timeout=TIMEOUT, stderr=subprocess.DEVNULL)
            assert done.returncode in (0, 3, 7), name
        cls.browser = cls.enterClassContext(Chromium())

    def open(self, name, width=1280, dark=False):
        self.browser.open(FOLDER / f'{name}.html', width, dark)
        self.assertEqual(self.browser.console, [])

    def texts(self, selector):
        return self.browser.value(f"[...document.querySelectorAll('{selector}')]"
                                  ".filter(e => e.getClientRects().length).map(e => e.innerText)")

    def dom(self, name):
        self.open(name)
        return self.browser.value('document.documentElement.outerHTML')

    # --- what is there ---

    def test_one(self):
        dom = self.dom('one')
        self.assertNotIn('<script', dom)
        self.assertNotIn('<img', dom)
        self.assertEqual(dom.count('<figure'), dom.count('</figure>'))
        for form in ('wide', 'narrow'):
            self.assertEqual(dom.count(f'class="fig {form}"'), 9)
        for title in ('Physical address against capture time', 'Distribution of mapping windows',
                      'Transitions of page states', 'Processes by pages at risk',
                      'Page states by process'):
            self.assertIn(f'<title>{title}</title>', dom)
        self.assertIn('&lt;script&gt;alert(1)', dom)

    def test_several(self):
        dom = self.dom('several')
        self.assertEqual(dom.count('class="fig wide"'), 4)
        self.assertNotIn('class="fig', self.dom('none'))

    def test_what_it_would_complain_about(self):
        """The check can fail: a script is refused by the page's own policy, and the console says so."""
        text = (FOLDER / 'one.html').read_text(encoding='utf-8')
        with tempfile.TemporaryDirectory(prefix='ramseal-test-') as folder:
            bad = Path(folder) / 'bad.html'
            bad.write_text(re.sub('<body>', '<body><script>document.title = "run"</script>', text),
                           encoding='utf-8')
            self.browser.open(bad)
        self.assertNotEqual(self.browser.console, [])
        self.assertNotEqual(self.browser.value('document.title'), 'run')

    # --- what comes first ---

    def test_outcome_is_first_and_largest(self):
        for name, headline in (('one', '! Complete, with gaps'), ('guided', '✓ Complete'),
                               ('failed', '✗ Sealed, but incomplete'), ('cut', '✗ Cut off'),
                               ('several', '! 1 of 2 complete and sealed')):
            self.open(name)
            for width in (1280, 420):
                with self.subTest(name, width=width):
                    self.browser.show(width)
                    self.assertEqual(self.texts('.headline'), [headline])
                    sizes = self.browser.value("""
                        [...document.querySelectorAll('body *')].filter(e => e.getClientRects().length)
                            .map(e => [parseFloat(getComputedStyle(e).fontSize),
                                       e.closest('.outcome') != null])
                    """)
                    largest = max(size for size, _ in sizes)
                    self.assertEqual({inside for size, inside in sizes if size == largest}, {True})
                    order = self.browser.value("""
                        ['h1', '.outcome', '.cards', 'nav', 'main'].map(s => document.querySelector(s))
                            .filter(e => e).map(e => e.getBoundingClientRect().top)
                    """)
                    self.assertEqual(order, sorted(order))
                    # It is seen without scrolling.
                    self.assertLess(order[1], 300)

    # --- what holds of every page ---

    def test_every_page(self):
        """Each is loaded once, which takes longer than all that is asked of it."""
        for name in self.pages:
            self.open(name)
            self.check_links(name)
            self.check_judged(name)
            self.check_room(name)

    def check_links(self, name):
        """Few lead on."""
        with self.subTest(name):
            links = self.texts('nav a')
            self.assertTrue(3 <= len(links) <= 6, links)
            self.assertLessEqual(len(links), len(self.texts('h2')))

    def check_judged(self, name):
        """By sign, word and colour."""
        for dark in (False, True):
            with self.subTest(name, dark=dark):
                self.browser.show(dark=dark)
                self.assertGreaterEqual(self.browser.value(
                    "document.querySelectorAll('.judged').length"), 1)
                self.assertEqual(self.browser.value(JUDGED_BADLY), [])

    def check_room(self, name):
        """Nothing is wider than the window, no label is cut off, meets another, or is too small."""
        for unfold, asked in ('0', {'too small': SMALL, 'colliding': COLLIDING}), \
                             (UNFOLD, {'too wide': TOO_WIDE, 'cut off': CLIPPED}):
            self.browser.value(unfold)
            for width in WIDTHS:
                self.browser.show(width)
                for what, question in asked.items():
                    with self.subTest(name, width=width, what=what):
                        self.assertEqual(self.browser.value(question), [])

    def test_cells_say_their_column_on_a_small_screen(self):
        self.open('one', 420)
        self.browser.value(UNFOLD)
        self.assertEqual(self.browser.value("""
            [...document.querySelectorAll('.rows td')].filter(e => e.getClientRects().length)
                .filter(e => getComputedStyle(e, '::before').content.length < 3)
                .map(e => e.textContent)
        """), [])

    def test_fleet_is_short_on_a_small_screen_and_whole_on_a_large_one(self):
        self.open('fleet-usual', 420)
        self.assertLess(self.browser.value('document.documentElement.scrollHeight'), 4000)
        seen = "document.querySelector('#hosts').innerText.match(/ber-web-/g)?.length"
        self.assertEqual(self.browser.value(seen), None)
        self.browser.value("document.querySelector('#hosts summary').click()")
        self.assertEqual(self.browser.value(seen), 50)
        self.open('fleet-usual', 1280)
        self.assertEqual(self.browser.value(seen), 50)
        # No name breaks: each is one line.
        self.assertEqual(self.browser.value("""
            [...document.querySelectorAll('#hosts tbody th')].filter(e => e.getBoundingClientRect().height > 32)
                .map(e => e.textContent)
        """), [])

    # --- light, dark, paper ---

    def test_screenshots(self):
        looks = [(page, width, dark) for page in self.pages for width in (1280, 420) for dark in (False, True)]
        for page, width, dark in drawn(looks, 4, 'screenshots'):
            self.open(page, width, dark)
            path = FOLDER / f'{page}-{width}-{"dark" if dark else "light"}.png'
            self.browser.screenshot(path)
            self.assertGreater(path.stat().st_size, 10_000)

    def test_light_and_dark(self):
        found = []
        for name, dark in (('light', False), ('dark', True)):
            path = FOLDER / f'top-{name}.png'
            self.open('one', dark=dark)
            self.browser.screenshot(path, height=700, scale=.25)
            found.append(pixels(path))
        light, dark = found
        self.assertEqual((light[:2], dark[:2]), ((320, 175),) * 2)
        self.assertGreater(sum(light[2]) / len(light[2]), 200)
        self.assertLess(sum(dark[2]) / len(dark[2]), 80)

    def test_prints(self):
        for page in ('one', 'several'):
            path = FOLDER / f'{page}.pdf'
            self.open(page, dark=True)
            self.browser.pdf(path)
            pdf = path.read_bytes()
            self.assertTrue(pdf.startswith(b'%PDF-'))
            pages = len(re.findall(rb'/Type\s*/Page\b(?!s)', pdf))
            self.assertTrue(2 <= pages <= 30, pages)

    def test_paper_is_light_and_wide(self):
        """Whatever the screen: its colours are those of the light page, its figures the wide ones."""
        self.open('one', 420, dark=True)
        self.browser.call('Emulation.setEmulatedMedia', media='print')
        self.addCleanup(self.browser.call, 'Emulation.setEmulatedMedia', media='')
        self.assertEqual(self.browser.value('getComputedStyle(document.body).backgroundColor'),
                         'rgb(255, 255, 255)')
        self.assertEqual(self.browser.value(JUDGED_BADLY), [])
        # Definitions stand in two columns, and no figure is so high that half a page stays empty before it.
        self.assertEqual(self.browser.value(
            "[...document.querySelectorAll('dl')].filter(e => getComputedStyle(e).columnCount != 2).length"), 0)
        self.assertLess(self.browser.value(
            "Math.max(...[...document.querySelectorAll('svg.wide')].map(e => e.getBoundingClientRect().height))"), 340)
        self.assertEqual(self.browser.value(
            "[...document.querySelectorAll('svg.narrow')].filter(e => e.getClientRects().length).length"), 0)


if __name__ == '__main__':
    if not shutil.which('chromium'):
        print('no chromium here')
        sys.exit(SKIPPED_EXIT)
    unittest.main()
