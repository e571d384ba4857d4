#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What can be said of WINDOWS-CHECKLIST.ps1 without PowerShell, which Debian has not: each line for ramseal is one
that its option parser takes, and what the filter calls private is what it should be.

    test_checklist.py WINE RAMSEAL.EXE [unittest options]
"""
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

WINE, EXE = (sys.argv.pop(1) for _ in range(2))
TESTS = Path(__file__).resolve().parent.parent
SCRIPT = (TESTS / 'WINDOWS-CHECKLIST.ps1').read_text()
LINES = re.findall(r"\(?\bRamseal '([^']*)'", SCRIPT)
PRIVATE = [(pattern, re.sub(r'\$\{(\d)\}', r'\\g<\1>', put))
           for pattern, put in re.findall(r"^    @\('(.*?)', '(.*?)'\),?$", SCRIPT, re.M)]


def hide(text):
    for pattern, put in PRIVATE:
        text = re.sub(pattern, put, text)
    return text


class Lines(unittest.TestCase):
    def refused(self, lines):
        """Those that the parser does not take. --help at the end: nothing is done."""
        with tempfile.TemporaryDirectory() as folder:
            batch = Path(folder) / 'lines.bat'
            batch.write_text('@echo off\r\n' + ''.join(
                f'"{windows(EXE)}" {line} --help >nul\r\nif errorlevel 1 echo refused {i}\r\n'
                for i, line in enumerate(lines)))
            ran = subprocess.run([WINE, 'cmd', '/c', windows(batch)], stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, timeout=900)
        return [lines[int(n)] for n in re.findall(r'refused (\d+)', ran.stdout.decode())]

    def test_each_line_is_understood(self):
        lines = [line.replace('{driver}', '"C:\\t\\a driver.sys"').replace('{work}', 'E:\\t').replace('{pid}', '17')
                 for line in LINES]
        wrong = ['check --jsom', 'pagefiles --compare=1', 'herp --json']
        self.assertEqual(self.refused(lines + wrong), wrong)

    def test_no_line_is_missed(self):
        self.assertGreaterEqual(len(LINES), 12)
        # Whoever calls it otherwise, with a variable, escapes the test above.
        calls = re.findall(r'(?<![-$\w.])Ramseal (.)', SCRIPT)
        self.assertEqual(calls, ["'"] * len(LINES))

    def test_what_leaves_a_trace_asks(self):
        steps = re.split(r'^if \(', SCRIPT, flags=re.M)[1:]
        self.assertEqual(len(steps), 9)
        for step in steps:
            quiet = re.search(r"Test-Step \d+ '[^']*' ''\)", step)
            traces = re.search(r"Ramseal '(?:acquire|driver (?:load|unload)|pagefiles [^']*--compare)|AllocHGlobal|Read-WholeFile \(", step)
            self.assertEqual(not quiet, bool(traces), step[:60])

    def test_brackets_close_and_names_are_in_order(self):
        code = re.sub(r"'[^'\n]*'|\"(?:`.|[^\"\n])*\"|(?m:(?<!\S)#.*$)", '""', SCRIPT)
        for left, right in ('()', '{}', '[]'):
            self.assertEqual(code.count(left), code.count(right), left)
        self.assertEqual([int(n) for n in re.findall(r'Test-Step (\d+) ', SCRIPT)], list(range(1, 10)))
        self.assertTrue(SCRIPT.isascii(), 'PowerShell 5.1 takes a file without a mark for ANSI')
        # Only Save-Answer writes below -Answers, and it hides.
        self.assertEqual(len(re.findall(r'WriteAllText|Out-File|Set-Content|Add-Content', SCRIPT)), 1)
        self.assertIn('(Hide-Private $Text)', SCRIPT)


class Filter(unittest.TestCase):
    HIDDEN = (
        ('S-1-5-21-1004336348-1177238915-682003330-512', 'SID'),
        (r'C:\Users\jane.doe\Desktop\winpmem.sys', r'C:\Users\USER\Desktop\winpmem.sys'),
        (r'"C:\\Users\\Jane Doe\\x.sys"', r'"C:\\Users\\USER\\x.sys"'),
        ('{"user": "CORP\\\\jane"}', '{"user": "HIDDEN"}'),
        ('"boot_id":  "308774de-557f-436e-bf83-5707c6c79375",', '"boot_id":  "HIDDEN",'),
        (r'\\?\Volume{2d8f3a4e-0000-0000-0000-100000000000}\pagefile.sys', r'\\?\Volume{GUID}\pagefile.sys'),
        ('00:1A:2b:3c:4d:5e 00-1a-2b-3c-4d-5e', 'MAC MAC'),
        ('192.168.10.255 and fe80::1c2:3 and 2001:db8:0:0:1:2:3:4', 'ADDRESS and ADDRESS and ADDRESS'),
        ('jane@corp.example.org', 'MAIL'),
    )
    # What the answers are for.
    KEPT = (
        '10.0.26100.4349', '2026-11-28T06:48:16.494Z', r'C:\pagefile.sys', r'C:\Windows\System32\drivers\x.sys',
        'b1b866f7cf86bd2bbbd8beca081e9df836911d938fd129cd615cfcb04399212b', '"version": "2.0.1"',
        '"subject": "Microsoft Windows Hardware Compatibility Publisher"', '"pid": 4', '0xfffff80012345000',
        r'\Device\HarddiskVolume3\t\ramseal.exe',
    )

    def test_private_things_go(self):
        self.assertGreater(len(PRIVATE), 7)
        for text, left in self.HIDDEN:
            self.assertEqual(hide(text), left)

    def test_what_is_asked_for_stays(self):
        for text in self.KEPT:
            self.assertEqual(hide(text), text)

    def test_twice_is_once(self):
        text = '\n'.join(t for t, _ in self.HIDDEN) + '\n'.join(self.KEPT)
        self.assertEqual(hide(hide(text)), hide(text))

    def test_a_document_stays_a_document(self):
        document = {'user': 'a', 'paths': [r'C:\Users\x\y', r'\\?\Volume{2d8f3a4e-0000-0000-0000-100000000000}\p'],
                    'sid': 'S-1-5-18', 'at': '10.1.2.3', 'n': 3}
        self.assertEqual(json.loads(hide(json.dumps(document))), {
            'user': 'HIDDEN', 'paths': [r'C:\Users\USER\y', r'\\?\Volume{GUID}\p'], 'sid': 'SID', 'at': 'ADDRESS',
            'n': 3})

    def test_fields_with_names_are_not_asked_for(self):
        lists = re.findall(r'@\((\'(?:go|written_by|layout)\'.*?)\)', SCRIPT, re.S)
        asked = re.findall(r"'([a-z_.]+)'", ''.join(lists))
        self.assertGreater(len(asked), 40)
        for field in asked:
            self.assertNotIn(field, ('host', 'machine', 'machine.host', 'machine.process', 'process', 'output',
                                     'file', 'streams', 'context', 'processes_compared', 'system',
                                     'system.host_name', 'spaces'))


def windows(path):
    return 'Z:' + str(Path(path).resolve()).replace('/', '\\')


if __name__ == '__main__':
    unittest.main()
