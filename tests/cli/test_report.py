#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`ramseal report`: that the page is well-formed, holds everything itself, says what is so, and lets
nothing through that an image says. Usage: test_report.py RAMSEAL
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import report_data as data  # noqa: E402
import write_rsz as rsz  # noqa: E402
from report_data import EVIL, PAGE, SECOND  # noqa: E402
from report_page import Page, Tables, strangers  # noqa: E402

RAMSEAL = os.path.abspath(sys.argv.pop(1))
# -Dsimulator=false
needs_simulator = unittest.skipIf(os.environ.get('RAMSEAL_SIMULATOR') == '0', 'built without simulated machines')
SECTIONS = ['acquisition', 'timeline', 'unreadable', 'smear', 'windows', 'moments', 'transitions', 'processes',
            'states', 'integrity', 'glossary']
WITHOUT_TABLES = ['acquisition', 'timeline', 'integrity', 'glossary']
FIGURES = ['timeline', 'windows', 'curves', 'spread', 'verdicts', 'transitions', 'processes', 'states']


def run(*args):
    return subprocess.run([RAMSEAL, *map(str, args)], capture_output=True, timeout=900)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)
        self.made = 0

    def container(self, **more):
        self.made += 1
        path = self.at / f'{self.made}.rsz'
        path.write_bytes(data.container(**more))
        return path

    def write(self, *args, code=0):
        """The report's text."""
        out = self.at / 'out'
        done = run('report', '--quiet', *args, '--force', '-o', out)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, b'')
        self.assertEqual(done.stderr.count(b'\n'), code != 0, done.stderr)
        return out.read_text(encoding='utf-8')

    def page(self, *args, code=0):
        text = self.write(*args, code=code)
        page = Page(text)
        self.assertEqual(page.faults, [])
        self.check_alone(text, page)
        return page

    def check_alone(self, text, page):
        """It loads nothing, runs nothing, and every link leads to a place in it."""
        self.assertEqual(strangers(text, page), [])

    def one_line(self, code, *args):
        done = run('report', *args)
        self.assertEqual((done.returncode, done.stderr.count(b'\n')), (code, 1), done)
        self.assertRegex(done.stderr, rb'^ramseal: report: \S')
        self.assertEqual(done.stdout, b'')
        return done.stderr.decode()


class OnePage(Case):
    def test_has_every_section_and_figure(self):
        page = self.page(self.container())
        self.assertEqual([s for s in page.sections if s], SECTIONS)
        self.assertEqual(page.tags.count('figure'), 9)
        self.assertEqual(page.tags.count('svg'), 1 + 2 * 9)  # wide and narrow, and the patterns
        # Every word that is explained is explained once, and what is shown leads to its words.
        self.assertGreater(len({link for link in page.links if link.startswith('#d-')}), 25)

    def test_says_what_is_measured(self):
        path = self.container()
        page = self.page(path)
        smear = json.loads(run('smear', '--json', path).stdout)
        for copy in ('before', 'image', 'after'):
            sums = smear['total']['copies'][copy]
            numbers = [f'{sums["tables"]:,}'] + [f'{sums["trust"][t]:,}'
                                                 for t in ('safe', 'at-risk', 'wrong')]
            row = re.escape(copy) + r' +' + r' +(?:[\d.]+ % +)?'.join(map(re.escape, numbers))
            self.assertRegex(page.text('smear'), row)
            window = sums['window']
            self.assertGreaterEqual(window['median_ns'], 10**6)
            for time in (window['median_ns'], window['p95_ns'], window['max_ns']):
                shown = f'{time / 1e6:.1f} ms' if time < SECOND else f'{time / 1e9:.3f} s'
                self.assertIn(shown, page.text('windows'))
                self.assertIn(shown, page.text('smear'))
        self.assertIn('order linear: 4,711 pages read by way of page tables, 2 captured again',
                      page.text('acquisition'))
        self.assertIn('3 are hidden from the list of processes; of the processes listed, 1 was',
                      page.text('smear'))
        self.assertRegex(page.text('acquisition'), r'wall time 5\.000 s')
        changed = smear['total']['transitions']['before-after']['changes']
        same = changed.get('stable', 0) + changed.get('rights', 0)
        self.assertIn(f'{100 - 100 * same / sum(changed.values()):.1f} % of the pages in page tables had changed',
                      page.text('acquisition'))
        self.assertRegex(page.text('acquisition'), r'read again 8\.0 KiB \(8\.0 KiB: a page table that')
        self.assertIn('cannot report unreadable', page.text('acquisition'))
        self.assertIn('5' * 64, page.text('integrity'))
        root = json.loads(run('info', '--json', path).stdout)['root']
        self.assertIn(root, page.text('integrity'))
        self.assertIn(f'@bottom-left{{content:"root {root}"', self.write(path))

    def test_share_of_safe_pages_is_judged_with_its_reason(self):
        path = self.container()
        trust = json.loads(run('smear', '--json', path).stdout)['total']['copies']['image']['trust']
        share = 100 * trust['safe'] / sum(trust.values())
        worst = max('at-risk', 'wrong', key=trust.get)
        said = {'at-risk': 'may hold something else', 'wrong': 'are not in this container'}[worst]
        word = 'good' if share >= 95 else 'fair' if share >= 50 else 'poor'
        text = self.page(path).text('')
        self.assertIn(f'{share:.1f} % of user pages safe', text)
        self.assertRegex(text, rf'[✓!✗] {word}: {100 * trust[worst] / sum(trust.values()):.1f} % {said}')

    def check_usable(self, path):
        """At risk, whoever reads it; or only a flat image has another capture: two numbers, told apart."""
        text, said = self.page(path, code=0).text(''), json.loads(run('smear', '--json', path).stdout)
        lived = [s['copies']['image']['trust'] for s in said['spaces'] if s['fate'] == 'lived']
        judged = [t for t in lived if t['safe'] + t['at-risk']]
        by_read = sum(100 * t['at-risk'] <= t['safe'] + t['at-risk'] for t in judged)
        usable = said['advice']['usable']
        self.assertIn(f'{by_read} of {len(judged)} processes usable with ramseal read', text)
        if by_read < len(judged):
            self.assertIn(f'{len(judged) - by_read} have more than 1 % at risk', text)
        self.assertIn('as many in a flat image' if usable == by_read else f' {usable} in a flat image', text)
        return by_read, usable

    def test_reasons_not_to_use_a_process(self):
        self.assertEqual(self.check_usable(self.container()), (0, 0))

    @needs_simulator
    def test_reasons_of_a_simulated_machine(self):
        path = self.at / 'sim.rsz'
        done = run('acquire', '-q', '-s', 'sim:desktop,ram=64M,allocated=20M,resident=10M,trimmed=5M,others=10M,'
                   'processes=8,cache=2M,activity=3000,pressure=120', '-o', path)
        self.assertEqual(done.returncode, 0, done.stderr)
        by_read, usable = self.check_usable(path)
        self.assertGreater(by_read, usable)

    def test_at_risk_by_time_is_what_single_mappings_say(self):
        path = self.container(names=['one'])
        rows = [line.split(',') for line in run('smear', '--mappings', 7, path).stdout.decode().splitlines()[1:]]
        # copy, va, pages, state, raw, frame, file, slot, change, trust, verdict, window, captured
        frames = [(row[9], int(row[2])) for row in rows if row[0] == 'image' and row[5] and row[12]]
        table, = Tables(self.write(path)).sections['moments']
        self.assertEqual(sum(int(row[1]) for row in table[1:]), sum(n for _, n in frames))
        self.assertEqual(sum(int(row[2].split()[0]) for row in table[1:]), sum(n for t, n in frames if t == 'at-risk'))
        self.assertGreater(sum(int(row[2].split()[0]) for row in table[1:]), 0)

    def test_strip_of_memory(self):
        root = ElementTree.fromstring(re.search(r'<svg class="fig wide".*?<title>Physical memory by address.*?</svg>',
                                                self.write(self.container(holes=2)), re.S)[0])
        marks = {f'url(#p{i})': 0 for i in range(8)}
        for rect in root.iter('rect'):
            if 'fill' in rect.attrib:
                marks[rect.attrib['fill']] += float(rect.attrib['width'])
        whole = float(root.find("rect[@class='block']").attrib['width'])
        # 254 pages of 256 captured, two of them twice, two missing; two cells to a page.
        self.assertAlmostEqual(marks['url(#p0)'] / whole, 254 / 256, 2)
        self.assertAlmostEqual(marks['url(#p1)'] / whole, 2 / 256, 2)
        self.assertAlmostEqual(marks['url(#p2)'] / whole, 2 / 256, 2)
        text = ' '.join(root.itertext())
        for part in ('1016.0 KiB', '8.0 KiB or more', '8.0 KiB ', '0x100000', '0x200000'):
            self.assertIn(part, text)
        caption = self.page(self.container(holes=2)).text('acquisition')
        self.assertIn('1 unreadable, 1 skipped, 0 in no record. The source cannot report', caption)

    def test_times_are_to_the_second_and_in_full_elsewhere(self):
        text = self.page(self.container()).text('acquisition')
        self.assertRegex(text, r'begun \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC')
        self.assertRegex(text, r'Times in full.*begun \d{4}-\S+\.\d{9}Z.*wall time 5,000,000,000 ns')

    def test_verdicts_by_process(self):
        path = self.container()
        text = self.page(path).text('processes')
        for space in json.loads(run('smear', '--json', path).stdout)['spaces']:
            trust = space['copies']['image']['trust']
            self.assertIn(f'[{space["pid"]}]', text)
            self.assertIn(f'{trust["at-risk"]} at risk, {trust["wrong"]} wrong', text)
            self.assertGreater(trust['at-risk'], 0)
            self.assertGreater(trust['wrong'], 0)

    def test_transitions_are_counted(self):
        path = self.container(names=['one'])
        text = self.page(path).text('transitions')
        states = json.loads(run('smear', '--json', path).stdout)['total']['transitions']
        self.assertGreater(len(states['before-after']['states']), 3)
        for pair in states['before-after']['states']:
            self.assertIn(pair['from'], text)
            self.assertIn(pair['to'], text)

    def test_hostile_names_are_text(self):
        text = self.write(self.container(), '--label', EVIL)
        page = Page(text)
        self.assertNotIn('<script', text)
        self.assertNotIn('<img', text)
        for hidden in '\u202e\u200b\x1b':
            self.assertNotIn(hidden, text)
        # Whoever reads it sees what the name was.
        self.assertIn(EVIL, page.text('acquisition'))
        self.assertIn(r'gpj\u{202e}.exe\u{200b}\x1b[2J', page.text('processes'))
        self.assertIn('Memory acquisition of ' + EVIL, page.text(''))

    def test_hostile_names_that_are_no_utf8(self):
        path = self.at / os.fsdecode(b'<b>\xff.rsz')
        path.write_bytes(data.container())
        page = self.page(path)
        self.assertIn(r'<b>\xff.rsz', page.text('acquisition'))

    def test_pages_without_content(self):
        page = self.page(self.container(holes=2))
        text = page.text('unreadable')
        self.assertIn('0x0000001c0000 - 0x0000001c0fff', text)
        self.assertIn('error 14 (errno)', text)
        self.assertIn('skipped', text)
        self.assertIn('2 pages unreadable or skipped', page.text(''))
        self.assertIn('1 page was unreadable and 1 was skipped', page.text(''))
        page = self.page(self.container(holes=0))
        self.assertNotIn('unreadable', page.sections)
        self.assertIn('0 pages unreadable or skipped', page.text(''))

    def test_what_is_many_is_summed(self):
        names = [f'process {i} <&>' for i in range(70)]
        with_many = self.container(names=names)
        page = self.page(with_many)
        self.assertIn('50 others', page.text('processes'))
        self.assertIn('is the sum of the 50', page.text('processes'))
        self.assertIn('10 others', page.text('processes'))  # in the table
        self.assertEqual(page.text('states').count('50 others'), 2)  # wide and narrow
        self.assertLess(len(self.write(with_many)), 400_000)
        # A range for every other page: there is room for 32 here, and 100 are shown.
        self.assertNotIn('more ranges', self.page(self.container(holes=32)).text('unreadable'))

    def test_more_ranges_than_are_shown(self):
        data_ram, data.RAM = data.RAM, (data.RAM[0], 0x3fffff)
        try:
            text = self.page(self.container(holes=150)).text('unreadable')
        finally:
            data.RAM = data_ram
        self.assertIn('50 more ranges', text)
        self.assertEqual(text.count('error 14'), 50)


class Outcome(Case):
    """The first thing that is said, and what it is judged by."""

    def headline(self, page):
        """Between the time of its beginning and the reasons."""
        return re.search(r' begun \S+ \S+ UTC ([✓!✗] .*?) (?:The|It) ', page.text(''))[1]

    def test_complete(self):
        path = self.container(outcome=0, holes=0, silent=False)
        page = self.page(path)
        self.assertEqual(self.headline(page), '✓ Complete')
        self.assertIn('recorded no gap. The container is sealed. All its hashes were checked and match',
                      page.text(''))
        page = self.page(path, '--no-verify')
        self.assertEqual(self.headline(page), '✓ Complete')
        self.assertIn("not all hashes of the contents were checked.", page.text(''))
        self.assertNotIn('All', page.text('integrity').split('To prove')[0])
        self.assertIn('compare its root with the one noted at the time', page.text('integrity'))

    def test_gaps(self):
        page = self.page(self.container())
        self.assertEqual(self.headline(page), '! Complete, with gaps')
        self.assertIn('Its source cannot report unreadable pages', page.text(''))

    def test_unsealed(self):
        path = self.container(closed=False)
        page = self.page(path, code=7)
        self.assertIn('@bottom-left{content:"not whole; root so far ', self.write(path, code=7))
        self.assertEqual(self.headline(page), '✗ Not sealed')
        self.assertIn('The container is unsealed: ', page.text(''))
        self.assertIn('is whole; all hashes were checked', page.text(''))
        self.assertIn('at risk', page.text('processes'))

    def test_sealed_later(self):
        path = self.container(closed=False)
        done = run('seal', path)
        self.assertEqual(done.returncode, 0, done.stderr)
        page = self.page(path)
        self.assertEqual(self.headline(page), '! Complete, with gaps')
        self.assertIn('was not sealed by the acquisition but later', page.text(''))

    def test_cut(self):
        path = self.container()
        path.write_bytes(path.read_bytes()[:-10_000])
        for options in ([], ['--no-verify']):
            self.assertEqual(self.headline(self.page(path, *options, code=7)), '✗ Cut off')

    def test_damaged_content(self):
        path = self.container()
        whole = path.read_bytes()
        at = whole.index(b'page 7')
        path.write_bytes(whole[:at] + b'PAGE' + whole[at + 4:])
        page = self.page(path, code=7)
        self.assertEqual(self.headline(page), '✗ Damaged')
        self.assertIn('The container is damaged: ', page.text(''))
        # Not looked at, not claimed.
        self.assertNotRegex(self.page(path, '--no-verify').text(''), r'(?i)all (its )?hashes were')

    def test_acquisition_that_did_not_complete(self):
        page = self.page(self.container(outcome=8, holes=0))
        self.assertEqual(self.headline(page), '✗ Sealed, but incomplete')
        self.assertIn('did not complete: ended <so>. Its message: ' + EVIL, page.text(''))
        # It is not known what else there would have been.
        self.assertNotIn('0 pages unreadable or skipped', page.text(''))
        self.assertIn('of memory read, of 1.0 MiB', page.text(''))
        page = self.page(self.container(outcome=None))
        self.assertEqual(self.headline(page), '✗ Sealed, but incomplete')
        self.assertIn('did not finish', page.text(''))

    def test_what_verify_does_not_call_all_of_it(self):
        """The acquisition finished, by its own account, and there is no memory."""
        text = data.manifest([], [], 'host', 'linear', 0, False)
        path = self.at / 'empty.rsz'
        path.write_bytes(rsz.assemble([
            rsz.begin(), rsz.stream(0, 7, 0, b'manifest'), rsz.chunk(0, [(0, len(text))], [], text),
            rsz.Rec(rsz.INDEX), rsz.Rec(rsz.CLOSE)]))
        done = run('verify', path)
        self.assertEqual(done.returncode, 10)
        self.assertIn(b': sealed, but incomplete: ', done.stdout)
        page = self.page(path)
        self.assertEqual(self.headline(page), '✗ Sealed, but incomplete')
        self.assertIn('finished, but is incomplete: it holds no memory.', page.text(''))
        self.assertIn('256 pages of the map of RAM are in no record.', page.text(''))
        self.assertNotIn('in no record', self.page(self.container()).text(''))

    def test_machine_without_a_name(self):
        page = self.page(self.container(host='(none)'), '--label', 'evidence 7')
        self.assertIn('Memory acquisition of evidence 7', page.text(''))


class WithoutTables(Case):
    """What there is nothing to say about is not there, and why is said once."""

    @needs_simulator
    def test_without_page_tables(self):
        path = self.at / 'plain.rsz'
        done = run('acquire', '-q', '--pagetables=none', '-s', 'sim:desktop,ram=64M,allocated=20M,'
                   'resident=10M,trimmed=5M,others=5M,processes=3,cache=2M', '-o', path)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = self.write(path)
        page = Page(text)
        self.assertEqual([s for s in page.sections if s], WITHOUT_TABLES)
        self.assertEqual(text.lower().count('not known ('), 1)
        self.assertIn('Whether page tables and pages match is not known (', page.text(''))
        for section in page.sections:
            self.assertIn(f'href="#{section}"' if section not in ('', 'timeline') else '', text)

    def test_one_pass_only(self):
        page = self.page(self.container(passes=['before']))
        self.assertNotIn('smear', page.sections)
        self.assertIn('is not known (', page.text(''))


class Usage(Case):
    def test_bad_input(self):
        out = self.at / 'out'
        noise = self.at / 'noise'
        noise.write_bytes(os.urandom(10000))
        for path in (noise, self.at / 'missing', self.at):
            self.one_line(9, path, '-o', out)
            self.one_line(9, self.container(), path, '-o', out)
        self.assertFalse(out.exists())

    def test_command_lines(self):
        path = self.container()
        for args in ([path, path], ['-o', self.at / 'out'], [path, '-o', '-', '--figure', 'nonsense'],
                     [path, path, '-o', '-', '--figure', 'timeline'],
                     [path, '-o', '-', '--label', 'a', '--label', 'b'],
                     [*[path] * 17, '-o', '-']):
            self.assertIn('--help', self.one_line(2, *args))

    def test_existing_files_stay(self):
        path = self.container()
        out = self.at / 'out'
        out.write_bytes(b'precious')
        self.one_line(6, path, '-o', out)
        self.assertEqual(out.read_bytes(), b'precious')
        before = path.read_bytes()
        self.one_line(6, path, '-o', path, '--force')
        self.assertEqual(path.read_bytes(), before)
        self.one_line(6, path, '-o', '/dev/full')

    def test_stdout(self):
        path = self.container()
        done = run('report', '-q', path, '-o', '-')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(Page(done.stdout.decode()).faults, [])
        again = run('report', '-q', path, '-o', '-')
        self.assertEqual(done.stdout, again.stdout, 'the same container gives the same page')


class Several(Case):
    def test_side_by_side(self):
        paths = [self.container(), self.container(order='guided <x>', late=6 * SECOND)]
        page = self.page(*paths, '--label', 'a & <b>')
        self.assertEqual([s for s in page.sections if s],
                         ['compared', 'windows', 'verdicts', 'runs', 'glossary'])
        self.assertIn('! 0 of 2 complete and sealed', page.text(''))
        text = page.text('compared')
        self.assertIn('a & <b>', text)
        self.assertIn('2.rsz', text)
        self.assertRegex(text, r'order linear +guided <x>')
        self.assertRegex(text, r'wall time 5\.000 s +5\.000 s +× 1')
        for path, at in zip(paths, (0, 1)):
            image = json.loads(run('smear', '--json', path).stdout)['total']['copies']['image']
            self.assertIn(f'{image["trust"]["at-risk"]:,}', text)
        self.assertEqual(page.text('runs').count('all hashes checked'), 2)

    def measured(self, paths):
        """(share at risk, median window) of each, by `smear`."""
        found = []
        for path in paths:
            image = json.loads(run('smear', '--json', path).stdout)['total']['copies']['image']
            found.append((100 * image['trust']['at-risk'] / sum(image['trust'].values()),
                          image['window']['median_ns']))
        return found

    def test_repeated_runs_are_one_family(self):
        """Its median and range; who did better, and by how much, is what `smear` says of each."""
        after, runs = data.AFTER, []
        try:
            for changed in (4, 3, 1, 0, 4):  # entries that differ from before to after
                data.AFTER = [data.frame(9 + i) if i < changed else entry for i, entry in enumerate(data.BEFORE)]
                runs.append(self.container())
        finally:
            data.AFTER = after
        late, quiet = [*runs[:2], runs[4]], runs[2:4]
        labels = ['-l', 'busy', '-l', 'busy', '-l', 'quiet', '-l', 'quiet', '-l', 'busy']
        text = self.write(*runs, *labels)
        page = Page(text)
        self.assertEqual(page.faults, [])
        risks = [[risk for risk, _ in self.measured(paths)] for paths in (late, quiet)]
        self.assertGreater(min(risks[0]), max(risks[1]))
        worse, better = (f'{statistics.median(r):.1f} % ({min(r):.1f} % to {max(r):.1f} %)' for r in risks)
        self.assertIn(f'quiet did better than busy: {better} of the pages are at risk, not {worse}; '
                      'the median mapping window is ', page.text(''))
        mixed = self.page(*runs, '-l', 'a', '-l', 'b', '-l', 'b', '-l', 'a', '-l', 'b').text('')
        self.assertIn('No clear difference between a and b, whose runs overlap: ', mixed)
        families, each = Tables(text).sections['compared']
        self.assertEqual(families[:2], [['', 'busy', 'quiet'], ['runs', '3', '2']])
        self.assertEqual(each[0], ['', 'busy', 'busy', 'quiet', 'quiet', 'busy'])
        row, = (row for row in families if row[0] == 'at risk')
        self.assertIn(worse, row[1])
        self.assertIn(better, row[2])
        curves = re.search(r'<svg class="fig wide".{1,200}Mapping windows of several acquisitions.*?</svg>', text, re.S)[0]
        self.assertEqual([len(re.findall(f'class="line thin l{i}"', curves)) for i in range(3)], [3, 2, 0])
        self.assertIn('busy, 3 runs: median', curves)

    def test_what_is_alike_is_not_ranked(self):
        text = self.page(*[self.container()] * 2, '-l', 'a', '-l', 'b').text('')
        self.assertIn('No difference between a and b: 42.9 % of the pages are at risk in both', text)
        self.assertIn('With one run of a kind it is not known how much runs differ by chance', text)
        text = self.page(self.container(passes=[]), self.container(passes=[]), '--no-verify').text('')
        self.assertNotIn('did better', text)
        self.assertNotIn('difference', text)

    def test_with_one_that_has_no_tables(self):
        page = self.page(self.container(), self.container(passes=[]), '--no-verify')
        self.assertIn('not known', page.text('compared'))
        self.assertIn('Left out: 1', page.text('windows'))
        page = self.page(self.container(passes=[]), self.container(passes=[]), '--no-verify')
        self.assertEqual([s for s in page.sections if s], ['compared', 'runs', 'glossary'])
        self.assertNotIn('not known', page.text('compared'))

    def test_with_one_that_is_not_whole(self):
        page = self.page(self.container(), self.container(closed=False), code=7)
        self.assertIn('✗ Not sealed', page.text('runs'))
        self.assertIn('✗ Not sealed', page.text(''))


class Figures(Case):
    def svg(self, *args):
        text = self.write(*args)
        root = ElementTree.fromstring(text)
        self.assertEqual(root.tag, '{http://www.w3.org/2000/svg}svg')
        for element in root.iter():
            self.assertNotIn('script', element.tag)
            self.assertEqual([a for a in element.attrib if a.startswith('on') or 'href' in a], [])
        return root

    def test_each_is_a_file_of_its_own(self):
        path = self.container()
        said = run('report', '--help').stdout.decode()
        for name in FIGURES:
            self.assertIn(name, said)
            root = self.svg(path, '--figure', name)
            text = ' '.join(root.itertext())
            self.assertGreater(len(list(root.iter())), 25, name)
            self.assertNotIn('\x1b', text)

    def test_of_several(self):
        paths = [self.container(), self.container(late=9 * SECOND)]
        for name in ('windows', 'curves', 'spread', 'verdicts'):
            text = ' '.join(self.svg(*paths, '--figure', name, '-l', 'x<y', '-l', EVIL).itertext())
            self.assertIn('x<y', text)
            self.assertIn(EVIL[:12], text)

    def test_of_what_is_not_there(self):
        path = self.container(passes=[])
        self.one_line(9, path, '--figure', 'windows', '-o', self.at / 'out')
        self.svg(path, '--figure', 'timeline')


if __name__ == '__main__':
    unittest.main()
