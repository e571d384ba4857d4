# SPDX-License-Identifier: Apache-2.0
"""
Run by a Python that has volatility3: what its layers over a container hold, through ours.

    read_in_volatility3.py LAYER-FOLDER CONTAINER pages DTB < ADDRESSES    SHA-256 of each page of Windows
    read_in_volatility3.py LAYER-FOLDER CONTAINER linux DTB < ADDRESSES    the same of Linux
    read_in_volatility3.py LAYER-FOLDER CONTAINER scan TEXT                where physical memory has it
    read_in_volatility3.py LAYER-FOLDER IMAGE valid END                    its valid pages below END

IMAGE may also be what volatility3 has layers for. DTB, END and addresses are hexadecimal, one address a
line; "-" is a page that cannot be read.
"""

import hashlib
import sys

import volatility3.plugins
from volatility3 import framework
from volatility3.framework import contexts, exceptions
from volatility3.framework.configuration import requirements
from volatility3.framework.layers import crash, elf, lime, physical, scanners

PAGE = 4096


def physical_layer(folder, container):
    """(the layer, our module)"""
    volatility3.plugins.__path__.insert(0, folder)
    framework.import_file('volatility3.plugins.ramseal', 'ramseal.py')
    ours = sys.modules['volatility3.plugins.ramseal']
    context = contexts.Context()
    context.config['file.location'] = requirements.URIRequirement.location_from_file(container)
    context.add_layer(physical.FileLayer(context, 'file', 'file'))
    for stacker in (ours.RamsealStacker, crash.WindowsCrashDumpStacker, lime.LimeStacker, elf.Elf64Stacker):
        memory = stacker.stack(context, 'file')
        if memory:
            context.add_layer(memory)
            return memory, ours
    return context.layers['file'], ours


def linux(memory, ours, dtb):
    pages(memory, ours, dtb, ours.RamsealIntel32e)


def pages(memory, ours, dtb, kind=None):
    context = memory.context
    context.config['space.memory_layer'] = memory.name
    context.config['space.page_map_offset'] = int(dtb, 16)
    space = (kind or ours.RamsealWindowsIntel32e)(context, 'space', 'space')
    for line in sys.stdin:
        address = int(line, 16)
        try:
            said = hashlib.sha256(space.read(address, PAGE)).hexdigest()
        except exceptions.InvalidAddressException:
            said = '-'
        # What is valid can be read, and nothing else.
        assert space.is_valid(address, PAGE) == (said != '-'), hex(address)
        print(f'{address:#x} {said}')


def scan(memory, _, text):
    for address in memory.scan(memory.context, scanners.BytesScanner(text.encode())):
        print(hex(address))


def valid(memory, _, end):
    for address in range(0, int(end, 16), PAGE):
        if memory.is_valid(address, PAGE):
            print(hex(address))


def main():
    folder, container, what, argument = sys.argv[1:]
    {'pages': pages, 'linux': linux, 'scan': scan, 'valid': valid}[what](*physical_layer(folder, container), argument)


if __name__ == '__main__':
    main()
