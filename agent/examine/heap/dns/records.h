/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises records of the DNS resolver's cache by their shape alone. DNS_RECORD is documented and
 * the same in all versions (Microsoft, windns.h, DNS_RECORDW); what points to one is neither. So
 * this finds records, too, that nothing points to any more.
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
	uint32_t ttl;  /* seconds, as the server sent it */
	uint64_t next; /* address of the answer's next record; 0: none */
	char name[DNS_NAME_MAX];
	/* "192.0.2.1", "2001:db8::1" or the target's name; empty: it cannot be read. */
	char data[DNS_NAME_MAX];
};

/*
 * True if the `size` bytes at `va` begin with a record: a type listed above, data as long as the
 * type demands, a valid host name, and no contradiction. `wide`: it belongs to 64-bit code.
 */
bool dns_record_read(const struct memory_view *m, uint64_t va, uint64_t size, bool wide,
		     struct dns_record *ret);

/* Reads a host name in UTF-16, as names are kept. False: none is there, or not all of it. */
bool dns_name_read(const struct memory_view *m, uint64_t va, char ret[static DNS_NAME_MAX]);

#endif
