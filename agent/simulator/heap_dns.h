/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache of the DNS resolver, as svchost's heaps hold it: a table of chains of entries, one for
 * each name, and behind an entry the records of the answer. DNS_RECORD is public (windns.h,
 * DNS_RECORDW). Table and entries are not: 7's and 10's are Rekall's (google/rekall 55d1925), the
 * kind of table by build MemProcFS' (ufrisk/MemProcFS c3aa810, m_sys_netdns.c). Neither tells where
 * the name of an entry of 10 lies, and how entries of 8 and of 24H2 look. x64 only.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_HEAP_DNS_H
#define RAMSEAL_AGENT_SIMULATOR_HEAP_DNS_H

#include "agent/simulator/heap.h"

#define SIM_DNS_NAME_MAX 64

enum sim_dns_place {
	SIM_DNS_LINKED,   /* the table leads to it */
	SIM_DNS_UNLINKED, /* its entry is in use, and in no chain any more */
	SIM_DNS_FREED     /* its blocks were freed; bytes of them may have been used again */
};

/* A record, or a name without one. */
struct sim_dns_record {
	uint64_t entry;   /* addresses; of the entry, ... */
	uint64_t address; /* ... of the DNS_RECORD; 0: there is none, as the name does not exist */
	char name[SIM_DNS_NAME_MAX];
	char target[SIM_DNS_NAME_MAX]; /* what a CNAME, a PTR, an MX or an SRV leads to */
	uint8_t data[16];              /* of A (4) and AAAA (16) */
	uint16_t type;
	uint32_t ttl;
	uint8_t place; /* enum sim_dns_place */
};

struct sim_dns {
	uint64_t table;
	uint32_t buckets;
	struct sim_dns_record *records; /* to be freed */
	size_t count;
};

/*
 * So many names, made from the seed. `cache` holds the table and the entries, `records` the rest;
 * both may be the same. ST_USAGE: x86, or no names. A heap that is full tells so when it is
 * finished.
 */
enum status sim__heap_dns(struct sim_heap_builder *cache, struct sim_heap_builder *records,
			  uint32_t names, struct sim_dns *ret, struct err *e);

#endif
