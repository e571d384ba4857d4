/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The DNS resolver's cache in svchost's heaps: a hash table of chains of entries, one for each
 * name; each entry points to the records of its answer. DNS_RECORD is public (windns.h,
 * DNS_RECORDW). The table and the entries are not: those of 7 and 10 come from Rekall
 * (google/rekall 55d1925), the kind of table in each build from MemProcFS (ufrisk/MemProcFS
 * c3aa810, m_sys_netdns.c). Neither says where an entry of 10 keeps its name, or how entries of 8
 * and 24H2 look. x64 only.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_HEAP_DNS_H
#define RAMSEAL_AGENT_SIMULATOR_HEAP_DNS_H

#include "agent/simulator/heap.h"

#define SIM_DNS_NAME_MAX 64

enum sim_dns_place {
	SIM_DNS_LINKED,   /* the table leads to it */
	SIM_DNS_UNLINKED, /* its entry is in use, but no longer in a chain */
	SIM_DNS_FREED     /* its blocks were freed and may be partly overwritten */
};

/* A record, or a name without one. */
struct sim_dns_record {
	uint64_t entry;   /* its address */
	uint64_t address; /* of the DNS_RECORD; 0: none, the name does not exist */
	char name[SIM_DNS_NAME_MAX];
	char target[SIM_DNS_NAME_MAX]; /* of a CNAME, PTR, MX or SRV */
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
 * Makes `names` names from the seed. `cache` holds the table and the entries, `records` the rest;
 * both may be the same heap. ST_USAGE: x86, or no names. sim__heap_finish() reports a full heap.
 */
enum status sim__heap_dns(struct sim_heap_builder *cache, struct sim_heap_builder *records,
			  uint32_t names, struct sim_dns *ret, struct err *e);

#endif
