#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What it takes to send while acquiring, beside doing one after the other, and beside curl.

    bench_network.py RAMSEAL KERNEL CACHE [--image FILE] [--scratch FOLDER] [--runs N] [--only WORD]

In each run, one after the other and on the same image in page cache: `acquire` into /dev/null,
`ramseal upload` of the finished container, `curl -T` of it to the same server, and `acquire` straight
to the server. Ratios are of each run, and the table has their medians with the extremes. The aim is
that the last takes at most 1.1 times the slower of the first two. With --bwlimit (32 MiB/s) the link
is the slower one.

Servers are on this machine and share its processors with the client: `receive`, and nginx, which
takes a PUT by itself, and in front of which requests look like S3's and Azure's; it checks nothing
of them, so that it is not what is measured. What it keeps is in memory where there is room.
Last: what age costs, into /dev/null.
"""

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections import namedtuple
from http.server import HTTPServer
from pathlib import Path

from bench import MIB, Job, once, options, scratch_folder
from image import image

NGINX = shutil.which('nginx') or shutil.which('nginx', path='/usr/sbin')
CURL = shutil.which('curl')
LIMIT = '32M'
AIM = 1.1
SAS = 'sv=2021-08-06&sr=c&sp=cw&sig=' + 'A' * 43 + '%3D'
KEYS = {'AWS_ACCESS_KEY_ID': 'bench', 'AWS_SECRET_ACCESS_KEY': 'none'}

# `to`: what ramseal is given; `url`: what curl is, or None. `streams`: acquire can go there.
Target = namedtuple('Target', 'name to url streams', defaults=(None, True))

# Parts are answered 201, with a tag; so are other requests: a 200 would become a 304 where nothing is
# to be replaced (If-None-Match).
CONF = '''
daemon off; pid {at}/pid; error_log {at}/log; {user}
worker_processes 1;
events {{}}
http {{
    access_log off; client_max_body_size 0; client_body_temp_path {at}/tmp;
    proxy_temp_path {at}/t1; fastcgi_temp_path {at}/t2; uwsgi_temp_path {at}/t3; scgi_temp_path {at}/t4;
    map $request_method $tag {{ PUT '"e"'; default ''; }}
    server {{
        listen 127.0.0.1:{port}; root {at}/root; dav_methods PUT DELETE; create_full_put_path on;
        location /s3/ {{
            add_header ETag $tag always;
            if ($request_method = POST) {{ return 201 "<R><UploadId>u</UploadId></R>"; }}
            if ($request_method = HEAD) {{ return 404; }}
        }}
        location /az/ {{ if ($request_method = HEAD) {{ return 404; }} }}
    }}
}}
'''


def free_port():
    with HTTPServer(('127.0.0.1', 0), None) as free:
        return free.server_address[1]


@contextlib.contextmanager
def nginx(at):
    if not NGINX:
        print('nginx is not installed: only `receive` is measured')
        yield None
        return
    at.mkdir()
    (at / 'root').mkdir(mode=0o777)
    port = free_port()
    user = 'user root;' if os.geteuid() == 0 else ''
    (at / 'nginx.conf').write_text(CONF.format(at=at, port=port, user=user))
    process = subprocess.Popen([NGINX, '-c', at / 'nginx.conf', '-p', at], stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        yield port
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def receiver(ramseal, at):
    """(port, pin)"""
    at.mkdir()
    subprocess.run([ramseal, 'receive', '--new-key', at / 'key'], check=True, stdout=subprocess.DEVNULL)
    (at / 'kept').mkdir()
    process = subprocess.Popen([ramseal, 'receive', '--log-json', '--listen', '127.0.0.1:0', '--key', at / 'key',
                                '--dir', at / 'kept', '--any-sender', '--max-total', '1T'], stderr=subprocess.PIPE)
    try:
        said = next(line for line in map(json.loads, process.stderr) if 'pin' in line)
        yield int(said['address'].rsplit(':', 1)[1]), said['pin']
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


class Bench:
    def __init__(self, o, source, scratch):
        self.o, self.source, self.scratch = o, str(source), scratch
        self.container = scratch / 'finished.rsz'
        self.made = 0

    def acquire(self, *to):
        return Job([[self.o.ramseal, 'acquire', '-q', '--source', f'file:{self.source}', *map(str, to)]])

    def fresh(self, target):
        """A name that nothing has, and no more on the disk than one object."""
        for folder in ('nginx/root', 'receiver/kept'):
            for left in (self.scratch / folder).glob('**/*.rsz*'):
                left.unlink()
        self.made += 1
        return [part.format(n=self.made) for part in target]

    def addressed(self, target):
        path = self.scratch / 'address'
        to = self.fresh(target.to)
        if to[0] == '--to':
            path.write_text(to[1])
            return ['--to', f'@{path}', *to[2:]]
        return to

    def upload(self, target, *more):
        to = self.addressed(target)
        if to[0] == '-o':  # an operand there
            to = [to[1], *to[2:]]
        return Job([[self.o.ramseal, 'upload', '-q', str(self.container), *to, *more]])

    def round(self, target, limit):
        """Seconds of (acquire, upload, curl, acquire to there); None for what cannot be."""
        more = ['--bwlimit', limit] if limit else []
        local = once(self.acquire('--force', '-o', '/dev/null')).wall
        upload = once(self.upload(target, *more)).wall
        curl = both = None
        if target.url and CURL:
            url, = self.fresh([target.url])
            rate = ['--limit-rate', limit] if limit else []
            curl = once(Job([[CURL, '-sf', *rate, '-T', str(self.container), url]])).wall
        if target.streams:
            both = once(self.acquire(*[a for a in self.addressed(target)], *more)).wall
        return local, upload, curl, both

    def show(self, target, limit):
        rounds = [self.round(target, limit) for _ in range(self.o.runs + 1)][1:]
        local, upload, curl, both = zip(*rounds)
        rate = self.container.stat().st_size / MIB / statistics.median(upload)
        slower = [b / max(a, u) for a, u, _, b in rounds if b]
        against = [u / c for _, u, c, _ in rounds if c]
        print(COLUMNS.format(f'{target.name}{", " + limit + "/s" if limit else ""}', number(local),
                             number(upload), number(curl), f'{rate:.0f}', spread(against), number(both),
                             spread(slower), AIM if slower else ''), flush=True)

    def age(self):
        recipient = subprocess.run(['age-keygen'], capture_output=True, text=True).stderr.split()[-1]
        both = [(once(self.acquire('--force', '-o', '/dev/null')),
                 once(self.acquire('--force', '-o', '/dev/null', '--recipient', recipient)))
                for _ in range(self.o.runs + 1)][1:]
        print(f'age, into /dev/null: wall {spread([b.wall / a.wall for a, b in both])} of what it takes '
              f'without, cpu {spread([b.cpu / a.cpu for a, b in both])}')


COLUMNS = '{:<26} {:>9} {:>9} {:>9} {:>7} {:>17} {:>9} {:>17} {:>5}'


def number(times):
    return '-' if times[0] is None else f'{statistics.median(times):.2f}'


def spread(ratios):
    if not ratios:
        return '-'
    return f'{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})'


def targets(web, port, pin):
    yield Target('tls://, receive', ['-o', f'tls://127.0.0.1:{port}', '--pin', pin])
    if not web:
        return
    os.environ.update(KEYS, AWS_ENDPOINT_URL=f'http://127.0.0.1:{web}')
    base = f'http://127.0.0.1:{web}'
    yield Target('s3://, nginx', ['-o', 's3://s3/{n}.rsz'], base + '/s3/{n}.rsz')
    yield Target('azblob:, nginx', ['--to', f'azblob:{base}/az/{{n}}.rsz?{SAS}'], base + '/az/{n}.rsz')
    yield Target('http://, nginx', ['--to', base + '/put/{n}.rsz'], base + '/put/{n}.rsz', False)


def run(o, source, scratch):
    os.chdir(scratch)  # where the states of uploads go
    bench = Bench(o, source, scratch)
    once(bench.acquire('-o', bench.container))
    print(f'{source}: {source.stat().st_size / MIB:.0f} MiB, container {bench.container.stat().st_size / MIB:.0f} '
          f'MiB; {o.runs} runs; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs')
    print(COLUMNS.format('', 'acquire', 'upload', 'curl -T', 'upload', 'upload : curl', 'acquire', 'of the slower', 'aim'))
    print(COLUMNS.format('to', '/dev/null', 'alone', '', 'MiB/s', '', 'to there', 'of both', ''), flush=True)
    with nginx(scratch / 'nginx') as web, receiver(o.ramseal, scratch / 'receiver') as (port, pin):
        for target in targets(web, port, pin):
            for limit in (None, LIMIT):
                if o.only in target.name:
                    bench.show(target, limit)
    if o.only in 'age' and shutil.which('age-keygen'):
        bench.age()


def main():
    o = options(runs=5, rows='targets')
    source = (o.image or image(o.kernel, o.cache)).resolve()
    scratch = scratch_folder(o.scratch, o.cache, 3 * source.stat().st_size).resolve()
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        run(o, source, scratch)
    finally:
        shutil.rmtree(scratch)
    return 0


if __name__ == '__main__':
    sys.exit(main())
