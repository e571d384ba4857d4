/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of the DNS resolver's cache, known by their shape alone: DNS_RECORD is documented and the
 * same in all versions (Microsoft, windns.h, DNS_RECORDW), what leads to it is neither. So records
 * that nothing leads to any more are found, too.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_DNS_RECORDS_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_DNS_RECORDS_H

#include "agent/examine/virtual/memory_view.h"

#define DNS_NAME_MAX 256     /* RFC 1035 2.3.4: 255 octets, and a NUL */
#define DNS_TTL_MAX  1209600 /* seconds: no resolver of Windows keeps one for two weeks */

/* Types whose data is decoded. */
#define DNS_TYPE_MAP(X)                                                                            \
	X(DNS_A, 1, "A")                                                                           \
	X(DNS_NS, 2, "NS")                                                                         \
	X(DNS_CNAME, 5, "CNAME")                                                                   \
	X(DNS_SOA, 6, "SOA")                                                                       \
	X(DNS_PTR, 12, "PTR")                                                                      \
	X(DNS_MX, 15, "MX")                                                                        \
	X(DNS_AAAA, 28, "AAAA")                                                                    \
	X(DNS_SRV, 33, "SRV")

enum dns_type {
#define X(name, number, text) name = (number),
	DNS_TYPE_MAP(X)
#undef X
};

const char *dns_type_name(enum dns_type t);

struct dns_record {
	enum dns_type type;
	uint32_t flags;
	uint32_t ttl;  /* seconds, as it was answered */
	uint64_t next; /* address of the answer's next record; 0: none */
	char name[DNS_NAME_MAX];
	/* "192.0.2.1", "2001:db8::1" or the name that it leads to; empty: that can't be had. */
	char data[DNS_NAME_MAX];
};

/*
 * Whether the `size` bytes at `va` begin with a record: a type of the list, data as long as the
 * type has, a name that a host can have, and nothing that contradicts it. `wide`: of 64-bit code.
 */
bool dns_record_read(const struct memory_view *m, uint64_t va, uint64_t size, bool wide,
		     struct dns_record *ret);

/* Text of UTF-16, as names are kept. False: no name of a host is there, or not all of it. */
bool dns_name_read(const struct memory_view *m, uint64_t va, char ret[static DNS_NAME_MAX]);

#endif
