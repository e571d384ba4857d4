# SPDX-License-Identifier: Apache-2.0
"""
A page of `ramseal report` as tests read it: its tags, texts and tables, and whether it is alone.
"""

import html.parser
import re

VOID = {'meta', 'link', 'br'}
ALLOWED = {'html', 'head', 'meta', 'link', 'title', 'style', 'body', 'header', 'main', 'footer', 'nav',
           'section', 'h1', 'h2', 'h3', 'p', 'a', 'b', 'br', 'code', 'span', 'bdi', 'div', 'figure',
           'figcaption', 'details', 'summary', 'table', 'caption', 'thead', 'tbody', 'tr', 'th', 'td',
           'ul', 'li', 'time', 'dl', 'dt', 'dd', 'svg', 'g', 'defs', 'pattern', 'rect', 'path', 'circle', 'text'}


class Page(html.parser.HTMLParser):
    """Tags, attributes and text by section; every tag must be closed in its turn."""

    def __init__(self, text):
        super().__init__()
        self.open, self.faults, self.tags, self.ids, self.links = [], [], [], [], []
        self.parts, self.section, self.attributes = {'': []}, '', set()
        self.feed(text)
        self.close()
        self.sections = {name: ''.join(parts) for name, parts in self.parts.items()}
        if self.open:
            self.faults.append(f'not closed: {self.open}')

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == 'id':
                self.ids.append(value)
            if name in ('href', 'src', 'xlink:href', 'action', 'data'):
                self.links.append(value)
            if tag == 'section' and name == 'id':
                self.section = value
                self.parts[value] = []
        if tag in ('td', 'th', 'p', 'text', 'br', 'dt', 'b', 'span'):
            self.parts[self.section].append(' ')

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f'</{tag}> at {self.getpos()}')
        if tag == 'section':
            self.section = ''

    def handle_data(self, text):
        if self.open and self.open[-1] != 'style':
            self.parts[self.section].append(text)

    def text(self, section=None):
        return re.sub(r'\s+', ' ', self.sections[section] if section is not None
                      else ' '.join(self.sections.values()))


def strangers(text, page):
    """What loads or runs something in it, or leads to a place that it does not have: nothing."""
    found = sorted(set(page.tags) - ALLOWED) + [name for name in page.attributes if name.startswith('on')]
    found += sorted({i for i in page.ids if page.ids.count(i) > 1})
    found += [link for link in page.links
              if link != 'data:,' and not (link[0] == '#' and link[1:] in page.ids)]
    found += sorted(set(re.findall(r'url\(#?[^)]*', text)) - {f'url(#p{i}' for i in range(8)})
    if '@import' in text or "default-src 'none'" not in text:
        found.append('its style, or its policy')
    return found


class Tables(html.parser.HTMLParser):
    """By the section: [its tables: [rows: [texts of the cells]]], the head being the first row."""

    def __init__(self, text):
        super().__init__()
        self.sections, self.section, self.cell = {}, None, None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == 'section':
            self.section = self.sections.setdefault(dict(attrs)['id'], [])
        elif self.section is None:
            return
        elif tag == 'table':
            self.section.append([])
        elif tag == 'tr':
            self.section[-1].append([])
        elif tag in ('td', 'th'):
            self.cell = ''
        elif tag == 'br' and self.cell is not None:
            self.cell += ' '

    def handle_endtag(self, tag):
        if tag in ('td', 'th') and self.cell is not None:
            self.section[-1][-1].append(self.cell)
            self.cell = None

    def handle_data(self, text):
        if self.cell is not None:
            self.cell += text
