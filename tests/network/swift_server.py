#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
OpenStack Swift as an S3 store: Debian's proxy, account, container and object servers with s3api and tempauth,
in one process and one folder, on ports of the loopback that were free. Prints the proxy's port. Ends with
its stdin. Needs Debian's python3-swift, and Debian's Python. Usage: swift_server.py FOLDER
"""

import os
import socket
import sys
from pathlib import Path

USER, KEY = 'test:tester', 'kEyOfTheTests+/0123456789'

COMMON = '''
[DEFAULT]
swift_dir = {at}
devices = {at}/node
mount_check = false
log_udp_host = 127.0.0.1
log_udp_port = {log}
# Nothing hangs on how fast the machine is.
conn_timeout = 60
node_timeout = 600
recoverable_node_timeout = 600
container_update_timeout = 600
'''

PROXY = COMMON + '''
[pipeline:main]
pipeline = catch_errors gatekeeper cache listing_formats s3api tempauth slo dlo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
conn_timeout = 60
node_timeout = 600
recoverable_node_timeout = 600
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:cache]
paste.filter_factory = swift_server:cache
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
max_upload_part_num = 10000
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = {key} .admin
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
'''

BACKEND = COMMON + '''
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
conn_timeout = 60
node_timeout = 600
container_update_timeout = 600
'''


class Cache:
    """What memcached would be, for one process."""

    def __init__(self):
        self.kept = {}

    def get(self, key, *_, **__):
        return self.kept.get(key)

    def set(self, key, value, *_, **__):
        self.kept[key] = value

    def delete(self, key, *_, **__):
        self.kept.pop(key, None)

    def incr(self, key, delta=1, *_, **__):
        self.kept[key] = int(self.kept.get(key, 0)) + delta
        return self.kept[key]


def cache(*_, **__):
    kept = Cache()

    def around(app):
        def call(env, start_response):
            env['swift.cache'] = kept
            return app(env, start_response)
        return call
    return around


def make_rings(at, ports):
    from swift.common.ring import RingBuilder
    for kind, port in ports.items():
        ring = RingBuilder(2, 1, 1)
        ring.add_dev({'id': 0, 'region': 1, 'zone': 1, 'ip': '127.0.0.1', 'port': port, 'device': 'disk',
                      'weight': 1, 'replication_ip': '127.0.0.1', 'replication_port': port})
        ring.rebalance()
        ring.get_ring().save(str(at / f'{kind}.ring.gz'))


def main(at):
    import eventlet
    from eventlet import tpool
    eventlet.patcher.monkey_patch(all=True)
    from swift.common import utils, wsgi

    (at / 'node/disk').mkdir(parents=True)
    (at / 'swift.conf').write_text('[swift-hash]\nswift_hash_path_suffix = tests\n')
    utils.set_swift_dir(str(at))
    log = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    log.bind(('127.0.0.1', 0))
    sockets = {kind: eventlet.listen(('127.0.0.1', 0)) for kind in ('proxy', 'account', 'container', 'object')}
    ports = {kind: s.getsockname()[1] for kind, s in sockets.items()}
    make_rings(at, {kind: port for kind, port in ports.items() if kind != 'proxy'})
    for kind, s in sockets.items():
        conf = at / f'{kind}.conf'
        conf.write_text((PROXY if kind == 'proxy' else BACKEND).format(
            at=at, kind=kind, key=KEY, log=log.getsockname()[1]))
        # As swift.common.wsgi.run_server() has it, which is for a process of its own.
        app = wsgi.loadapp(str(conf), global_conf={'log_name': kind})
        eventlet.spawn(wsgi.wsgi.server, s, app, utils.NullLogger(), protocol=wsgi.SwiftHttpProtocol,
                       capitalize_response_headers=False)
    print(ports['proxy'], flush=True)
    tpool.execute(sys.stdin.read)
    os._exit(0)


if __name__ == '__main__':
    main(Path(sys.argv[1]))
