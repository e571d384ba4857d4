/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The DNS resolver's cache in the heaps of a process: records, which are known by their shape
 * (records.h), and the entries that lead to them, one for each name. How an entry is laid out is
 * nowhere documented and differs from build to build; here it is learnt from the records that are
 * there: three entries that have a pointer to a record at one place, and to the record's name at
 * another, tell both for all. A hash table leads to entries: the block that refers to most of them,
 * and what its chains reach. An entry of the table can have a name and no record: such a name was
 * asked for, and there is none, or no answer yet. Nothing but the table tells it from any other
 * block with a text. That something is not in the table is never known: a chain ends with the first
 * entry of it that is missing.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_DNS_CACHE_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_DNS_CACHE_H

#include "agent/examine/heap/block_list.h"
#include "agent/examine/heap/dns/records.h"

/* More than any cache has; what goes on is none. The same for entries and for references. */
#define DNS_RECORDS_MAX  ((size_t)1 << 20)

/* So many pages of blocks are searched for references: 256 GiB, once or twice. */
#define DNS_SEARCHED_MAX (UINT64_C(1) << 26)

/* What leads to a record's first byte. A block that is no record can be an entry of the cache. */
enum dns_linked {
	DNS_LINKED_NOT,
	DNS_LINKED_FROM_RECORD,
	DNS_LINKED_FROM_BLOCK,
};

struct dns_found {
	const struct heap_allocation *block;
	enum dns_linked linked;
	const struct heap_allocation *entry; /* that leads to it; NULL: none is known to */
	bool in_table;                       /* the table leads to the entry; false: nobody knows */
};

struct dns_cache {
	struct dns_found *records; /* by rising address */
	size_t count, room;
	/* Only where there is a table: */
	const struct heap_allocation **unanswered; /* entries without a record, by rising address */
	size_t unanswered_count, unanswered_room;
	uint32_t name_at; /* where in an entry the pointer to its name is */
	const struct heap_allocation
		*table; /* NULL: none was found, or too few entries to learn from */
};

struct dns_cache_sources {
	const struct memory_view *memory;
	const struct block_list *list; /* sorted, with free blocks; borrowed as long as the cache */
	bool (*wide)(const void *context, size_t heap); /* of 64-bit code */
	const void *context;
};

/*
 * ST_NOMEM, ST_INTERRUPTED. What can't be read is not there, and whoever owns the memory says so.
 * What *ret has is for dns_cache_deinit(), also after an error.
 */
enum status dns_cache_find(const struct dns_cache_sources *s, struct dns_cache *ret, struct err *e);
void dns_cache_deinit(struct dns_cache *c);

/* A record of the cache once more; and the name of an entry that has none. False: it is gone. */
bool dns_cache_record(const struct dns_cache_sources *s, const struct dns_found *f,
		      struct dns_record *ret);
bool dns_cache_unanswered(const struct dns_cache_sources *s, const struct dns_cache *c, size_t i,
			  char ret[static DNS_NAME_MAX]);

#endif
