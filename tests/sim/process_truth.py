# SPDX-License-Identifier: Apache-2.0
"""
What a simulated machine says of its processes (process_truth=FILE, agent/simulator/inside.h).
"""

import collections
import csv


def number(text):
    return int(text, 0)


class Process:
    def __init__(self, fields):
        self.pid, self.name = number(fields[0]), fields[1]
        self.eprocess, self.peb, self.created, self.parent = (number(f) for f in fields[2:6])
        self.vads, self.modules, self.threads, self.pages = [], [], [], []
        self.peb32, self.threads32 = None, {}


Vad = collections.namedtuple('Vad', 'first last type protection node file')
Module = collections.namedtuple('Module', 'base size seen guid age path bits')
Thread = collections.namedtuple('Thread', 'tid ethread teb limit base start rsp')
Thread32 = collections.namedtuple('Thread32', 'teb limit base')
Pages = collections.namedtuple('Pages', 'first last valid transition paged zero none')


def read(path):
    """The build, and the processes by PID. Kinds of lines that are not known here are passed over."""
    processes, build, whole = {}, None, False
    for kind, *f in csv.reader(open(path, encoding='utf-8', newline='')):
        if kind == 'build':
            build = number(f[0])
        elif kind == 'process':
            processes[number(f[0])] = Process(f)
        whole = kind == 'end'
    for kind, *f in csv.reader(open(path, encoding='utf-8', newline='')):
        if kind == 'vad':
            processes[number(f[0])].vads.append(
                Vad(number(f[1]), number(f[2]), f[3], number(f[4]), number(f[5]), f[6] or None))
        elif kind == 'module':
            processes[number(f[0])].modules.append(
                Module(number(f[1]), number(f[2]), f[3], f[4], number(f[5]), f[6], number(f[7])))
        elif kind == 'wow64':
            processes[number(f[0])].peb32 = number(f[1])
        elif kind == 'thread32':
            processes[number(f[0])].threads32[number(f[1])] = Thread32(*map(number, f[2:5]))
        elif kind == 'thread':
            processes[number(f[0])].threads.append(Thread(*map(number, f[1:8])))
        elif kind == 'pages':
            processes[number(f[0])].pages.append(Pages(*map(number, f[1:8])))
    assert whole, f'{path} is cut'
    return build, processes
