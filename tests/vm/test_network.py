#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Acquires a running Debian kernel over a link that is slow to answer and loses packets: to an object store, to
a store of block blobs, to `ramseal receive`, through ssh, and into a file on an SMB share. What arrives is compared
with the VM's own memory.

    test_network.py KERNEL-FOLDER RAMSEAL HOLDER SERVERS [unittest's arguments]

The guest reaches five ports of one address, which QEMU hands to servers on the loopback, and nothing else. Each class
is one boot: Link, with `receive` alone, for every run of the tests, and Network, which has them all. A line that begins with "note: " is a measurement; build/test shows it.
"""

import json
import re
import shlex
import struct
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'network')]
import acquired  # noqa: E402
import azblob_server  # noqa: E402
import certificates  # noqa: E402
import s3_server  # noqa: E402
import servers  # noqa: E402
import vm  # noqa: E402
from acquired import COMPLETE, OUTPUT, PAGE, VERIFY, pages  # noqa: E402
from case import SKIPPED_EXIT, GuestCase, arguments, run_tests  # noqa: E402
from receiver import Receiver, new_key  # noqa: E402

# QEMU's user-mode network (docs/system/devices/net.rst): where the guest is, its way to elsewhere, which
# leads nowhere here, and the address that stands for the servers.
GUEST, GATEWAY, HOST = '10.0.2.15', '10.0.2.2', '10.0.2.100'
S3, AZBLOB, TLS, SSH, SMB = PORTS = 443, 444, 7007, 22, 445
LINK = 'delay 20ms loss 1%'
# The guest has less memory than the usual spool and two pieces of an upload take.
ACQUIRE = 'ramseal acquire --quiet --source kcore'
SPOOL = '--spool-size 16M'
TIMEOUT = 1800
# What cifs asks the kernel's crypto API for, by modules' names (its MODULE_SOFTDEP, fs/smb/client/cifsfs.c, 6.1).
CIFS = ('cmac', 'sha512_generic', 'ccm', 'ctr', 'gcm', 'ghash-generic')
SHARE = '/root/share'  # outside the folders that are looked at afterwards
SMALL_MIB = 8
RAM_MIB = 192  # its programs and their libraries take more than is usual
MIB = 1 << 20


class Link(GuestCase):
    """To one server."""
    NAME, RAM_MIB = 'link', vm.RAM_MIB + 16

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix='ramseal-test-')
        cls.addClassCleanup(folder.cleanup)
        cls.at = Path(folder.name)
        cls.at.chmod(0o711)  # sshd has a folder in it
        ports = cls.serve()
        cls.start(KERNEL, cls.NAME, {'bin/ramseal': RAMSEAL, 'bin/holder': HOLDER, **cls.files()},
                  ram_mib=cls.RAM_MIB, filesystems=cls.modules(),
                  machine=vm.Machine(options=cls.network(ports), words='ipv6.disable=1'))
        cls.connect()
        cls.there = cls.guest.check('ls / /etc')
        cls.hold()

    @classmethod
    def files(cls):
        return {'root/sender': cls.at / 'sender', **vm.with_libraries('sbin/tc', '/usr/sbin/tc')}

    @classmethod
    def modules(cls):
        return ()

    @classmethod
    def serve(cls):
        """{port as the guest sees it: port on the loopback}"""
        (cls.at / 'received').mkdir()
        cls.sender = new_key(RAMSEAL, cls.at / 'sender')
        new_key(RAMSEAL, cls.at / 'receiver')
        cls.receiver = Receiver(RAMSEAL, cls.at / 'received', cls.at / 'receiver', [cls.sender])
        cls.addClassCleanup(cls.receiver.end)
        return {TLS: cls.receiver.port}

    @classmethod
    def network(cls, ports):
        forwards = ','.join(f'guestfwd=tcp:{HOST}:{port}-cmd:/bin/busybox nc 127.0.0.1 {to}'
                            for port, to in ports.items())
        return ('-netdev', f'user,id=net,restrict=on,ipv6=off,{forwards}',
                '-device', 'virtio-net-pci,netdev=net,romfile=',
                # The headers of all frames.
                '-object', f'filter-dump,id=dump,netdev=net,maxlen=64,file={cls.NAME}/frames.pcap')

    @classmethod
    def connect(cls):
        cls.guest.check('modprobe virtio_net && modprobe sch_netem && '
                        f'ip addr add {GUEST}/24 dev eth0 && ip link set eth0 up && '
                        f'ip route add default via {GATEWAY}')
        # Busybox has a tc too, which knows no netem.
        cls.guest.check(f'/sbin/tc qdisc add dev eth0 root netem {LINK}')
        # The kernel patches its text when a network is first used: before that text is compared.
        cls.guest.check(f'nc {HOST} {TLS} </dev/null >/dev/null')

    # --- helpers ---

    def counter(self, group, name):
        """Of the guest's /proc/net/snmp."""
        names, values = (line.split() for line in
                         self.guest.check(f'grep {group}: /proc/net/snmp').splitlines())
        return int(values[names.index(name)])

    def send(self, command):
        """Runs what sends a container; it leaves nothing in the guest but that."""
        begun, again = time.monotonic(), self.counter('Tcp', 'RetransSegs')
        done = self.guest.run(command, timeout=TIMEOUT)
        self.took = time.monotonic() - begun
        self.again = self.counter('Tcp', 'RetransSegs') - again
        self.assertEqual((done.code, done.err), (COMPLETE, ''))
        self.assertEqual(self.guest.check('ls / /etc'), self.there)
        return done

    def check_arrived(self, name, content, cached=0):
        """The container is whole and sealed, and the VM's own memory."""
        after = self.save_memory('after')
        path = self.work / f'{name}.rsz'
        path.write_bytes(content)
        image = self.opened(path)
        self.assertEqual(image.info['exit_code'], COMPLETE)
        everything = list(pages(image.ranges))
        self.assertEqual(set(everything), set(pages(self.ram)))
        self.check_constant_memory(image)
        same = self.check_mostly_same(image, after, everything, cached)
        print(f'note: {name}: {len(content) / MIB:.0f} MiB in {self.took:.0f} s, {self.again} segments '
              f'sent again; {100 * same / len(everything):.1f} % of the pages are what the VM held then')

    # --- tests ---

    def test_1_receiver(self):
        self.send(f'{ACQUIRE} {SPOOL} --pin {self.receiver.pin} --client-key @/root/sender '
                  f'-o tls://{HOST}:{TLS}')
        received, = (self.at / 'received').glob('*.rsz')
        log = self.at / 'received/witness.jsonl'
        done = acquired.ramseal('verify', '--json', '--witness', log, received)
        self.assertEqual(done.returncode, COMPLETE, done.stderr)
        self.assertEqual(json.loads(done.stdout)['witnessed']['peer'], self.sender)
        self.check_arrived('tls', received.read_bytes())

    def test_7_the_link_was_bad(self):
        said = self.guest.check('/sbin/tc -s qdisc show dev eth0')
        self.assertIn('netem', said)
        self.assertGreater(int(re.search(r'dropped (\d+)', said)[1]), 0, said)
        self.assertGreater(self.counter('Tcp', 'RetransSegs'), 0)

    def test_8_nobody_else_was_asked(self):
        """In the guest there are no name servers and no roots to trust; it sends nothing but to the servers."""
        self.assertEqual(self.guest.check('ls /etc').split(), ['passwd'])
        sent = {frame for frame in frames(self.work / 'frames.pcap') if frame[0] == GUEST}
        self.assertGreater(len(sent), 0)
        self.assertLessEqual(sent, {(GUEST, 'tcp', f'{HOST}:{port}') for port in PORTS})


class Network(Link):
    """Long: to each server."""
    NAME, RAM_MIB = 'network', RAM_MIB

    @classmethod
    def files(cls):
        return {
            'root/ca.pem': cls.at / 'server.pem',
            'root/to': cls.at / 'to',
            'root/client': cls.sshd.private_key,
            'root/known_hosts': cls.sshd.known_hosts,
            **vm.with_libraries('bin/ssh', '/usr/bin/ssh'),
            **super().files(),
        }

    @classmethod
    def modules(cls):
        return ('cifs', *CIFS)

    @classmethod
    def serve(cls):
        pem = certificates.make(cls.at, 'server', names=f'IP:{HOST}')
        tls = certificates.context(pem)
        cls.s3, cls.azblob = s3_server.Store(), azblob_server.Store()
        s3, azblob = s3_server.Server(cls.s3, tls), azblob_server.Server(cls.azblob, tls)
        (cls.at / 'to').write_text(
            f'azblob:https://{HOST}:{AZBLOB}/evidence/live.rsz?{cls.azblob.sas}\n')
        for name in 'sshd', 'smbd':
            (cls.at / name).mkdir()
        cls.sshd = servers.Sshd(SERVERS, cls.at / 'sshd')
        cls.addClassCleanup(cls.sshd.stop)
        cls.smbd = servers.Smbd(SERVERS, cls.at / 'smbd', SMALL_MIB)
        cls.addClassCleanup(cls.smbd.stop)
        for server in s3, azblob:
            cls.addClassCleanup(server.server_close)
            cls.addClassCleanup(server.shutdown)
        return {S3: s3.port, AZBLOB: azblob.port, SSH: cls.sshd.port, SMB: cls.smbd.port, **super().serve()}

    def test_2_object_store(self):
        self.send(f'AWS_ENDPOINT_URL=https://{HOST}:{S3} AWS_ACCESS_KEY_ID={s3_server.ID} '
                  f'AWS_SECRET_ACCESS_KEY={s3_server.SECRET} '
                  f'{ACQUIRE} {SPOOL} --ca /root/ca.pem -o s3://evidence/live.rsz')
        self.assertEqual(self.s3.uploads, {})
        self.check_arrived('s3', self.s3.buckets['evidence']['live.rsz'])

    def test_3_block_blob(self):
        self.send(f'{ACQUIRE} {SPOOL} --pin {certificates.pin(self.at / "server.pem")} --to @/root/to')
        self.check_arrived('azblob', self.azblob.containers['evidence']['live.rsz'].content)

    def test_4_ssh(self):
        there = self.sshd.own / 'live.rsz'
        ssh = self.sshd.client(HOST, SSH, '/root/client', '/root/known_hosts')
        done = self.send(f'{{ {ACQUIRE} -o -; echo $? >&2; }} 2>/tmp/said | '
                         f'{shlex.join([*ssh, f"cat >{there}"])} && cat /tmp/said')
        self.assertEqual(done.out, f'{COMPLETE}\n')
        self.check_arrived('ssh', there.read_bytes())

    def mount(self):
        self.guest.load(*CIFS, 'cifs')
        self.guest.check(f'mkdir -p {SHARE} && mount -t cifs -o username={self.smbd.user},'
                         f'password={servers.Smbd.PASSWORD},vers=3.1.1 '
                         f'//{HOST}/evidence {SHARE}')
        self.addCleanup(self.guest.check, f'umount -l {SHARE} && rmdir {SHARE}')

    def test_5_share(self):
        self.mount()
        self.send(f'{ACQUIRE} -o {SHARE}/live.rsz')
        self.assertEqual([path.name for path in self.smbd.own.glob('*rsz*')], ['live.rsz'])
        content = (self.smbd.own / 'live.rsz').read_bytes()
        self.check_arrived('smb', content, cached=len(content) // PAGE)

    def test_6_share_is_full(self):
        """The guest's kernel takes what the share has no room for; that is known when it is synced."""
        if not self.smbd.small:
            self.skipTest('not root')
        self.mount()
        done = self.guest.run(f'{ACQUIRE} -o {SHARE}/small/full.rsz', timeout=TIMEOUT)
        self.assertEqual(done.code, OUTPUT, done.err)
        self.check_one_line(done.err)
        self.assertIn('No space left on device', done.err)
        there, = self.smbd.small.iterdir()
        self.assertEqual(there.name, 'full.rsz.partial')
        self.assertEqual(acquired.ramseal('verify', there).returncode, VERIFY)


def frames(path):
    """(source, protocol, destination) of each IPv4 packet, and whatever else is no ARP, in a file of libpcap."""
    dotted = '.'.join
    content = path.read_bytes()
    at = 24
    while at + 16 <= len(content):
        size = struct.unpack_from('<I', content, at + 8)[0]
        frame = content[at + 16:at + 16 + size]
        at += 16 + size
        kind, = struct.unpack_from('>H', frame, 12)
        if kind == 0x0806:  # ARP
            continue
        if kind != 0x0800:
            yield GUEST, f'{kind:#06x}', ''
            continue
        packet = frame[14:]
        source, destination = dotted(map(str, packet[12:16])), dotted(map(str, packet[16:20]))
        if packet[9] == 6:
            port, = struct.unpack_from('>H', packet, (packet[0] & 15) * 4 + 2)
            yield source, 'tcp', f'{destination}:{port}'
        else:
            yield source, str(packet[9]), destination


def main():
    global KERNEL, RAMSEAL, HOLDER, SERVERS
    KERNEL, RAMSEAL, HOLDER, SERVERS = arguments(4)
    only_link = sys.argv[5:] and all(name.split('.')[0] == 'Link' for name in sys.argv[5:])
    missing = servers.missing(SERVERS, 'tc', *(() if only_link else ('ssh', 'sshd', 'smbd', 'openssl')))
    if missing:
        print(missing)
        sys.exit(SKIPPED_EXIT)
    run_tests(4)


if __name__ == '__main__':
    main()
