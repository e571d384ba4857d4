#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What a static program opens and loads when it looks a name up and talks TLS to it: nothing of the host's resolver but its
name servers, no configuration of a TLS library, no CA store, and no module.
Usage: test_opened.py ONCE VERSION-OF-C-ARES
"""
import re
import shutil
import subprocess
import sys

# The name servers; the time zone, which glibc reads before it makes a date of anything; random numbers, of c-ares
# 1.18; its own name, which every static program of glibc reads.
MAY_BE_OPENED = {'/etc/resolv.conf', '/etc/localtime', '/dev/urandom', '/proc/self/exe'}
# c-ares 1.34 always opens these, and takes nothing from them that an option has said already (agent/collect/wire/names.c).
if sys.argv[2].startswith('1.34.'):
    MAY_BE_OPENED |= {'/etc/nsswitch.conf', '/etc/netsvc.conf', '/etc/svc.conf'}


def main():
    if not shutil.which('strace'):
        print('there is no strace')
        return 77
    done = subprocess.run(['strace', '-f', '-qq', '-e', 'trace=file,%process', sys.argv[1]], capture_output=True,
                          text=True, timeout=900)
    if 'PTRACE' in done.stderr and not done.stdout:
        print('strace is not allowed to trace here')
        return 77
    if done.returncode or done.stdout != '200 ok\n':
        sys.exit(f'{sys.argv[1]}: {done.returncode} {done.stdout} {done.stderr[-500:]}')
    begun = done.stderr.split('\n', 1)[1]  # behind the execve() of the program itself
    named = set(re.findall(r'(?<!\w)(?:open|openat|openat2|stat|newfstatat|access|readlink|execve)\w*\('
                           r'(?:AT_FDCWD, )?"([^"]*)"', begun))
    wrong = sorted(named - MAY_BE_OPENED)
    print('opened:', *sorted(named & MAY_BE_OPENED))
    if '/etc/resolv.conf' not in named:
        sys.exit('not even the name servers were read: this trace shows nothing')
    if wrong:
        sys.exit('and it should not have: ' + ' '.join(wrong))
    return 0


if __name__ == '__main__':
    sys.exit(main())
