/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the DNS resolver's cache in the heaps of a process: records, recognised by their shape
 * (records.h), and the entries that point to them, one for each name. The layout of an entry is
 * undocumented and differs between builds, so it is learnt from the records: three entries with a
 * pointer to a record at one offset, and to the record's name at another, settle both offsets. The
 * hash table is the block that refers to most entries; its chains lead to more. An entry of the
 * table may have a name but no record: the name was queried, and has no address or no answer yet.
 * Only the table tells such an entry from any other block with text. It is never known that
 * something is not in the table: a chain ends at the first entry that is missing.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_DNS_CACHE_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_DNS_CACHE_H

#include "agent/examine/heap/block_list.h"
#include "agent/examine/heap/dns/records.h"

/* More than any cache has: the search stops there. Limits entries and references, too. */
#define DNS_RECORDS_MAX  ((size_t)1 << 20)

/* At most this many pages of blocks are searched for references: 256 GiB, once or twice. */
#define DNS_SEARCHED_MAX (UINT64_C(1) << 26)

/* What points to a record's first byte. A block that is not a record may be a cache entry. */
enum dns_linked {
	DNS_LINKED_NOT,
	DNS_LINKED_FROM_RECORD,
	DNS_LINKED_FROM_BLOCK,
};

struct dns_found {
	const struct heap_allocation *block;
	enum dns_linked linked;
	const struct heap_allocation *entry; /* that points to it; NULL: none known */
	bool in_table;                       /* the table leads to the entry; false: unknown */
};

struct dns_cache {
	struct dns_found *records; /* by rising address */
	size_t count, room;
	/* Only if a table was found: */
	const struct heap_allocation **unanswered; /* entries without a record, by rising address */
	size_t unanswered_count, unanswered_room;
	uint32_t name_at;                    /* offset in an entry of the pointer to its name */
	const struct heap_allocation *table; /* NULL: not found, or too few entries to learn from */
};

struct dns_cache_sources {
	const struct memory_view *memory;
	const struct block_list *list; /* sorted, with free blocks; borrowed as long as the cache */
	bool (*wide)(const void *context, size_t heap); /* the heap belongs to 64-bit code */
	const void *context;
};

/*
 * ST_NOMEM, ST_INTERRUPTED. Memory that cannot be read is skipped; the caller, who owns it, reports
 * that. *ret needs dns_cache_deinit() even after an error.
 */
enum status dns_cache_find(const struct dns_cache_sources *s, struct dns_cache *ret, struct err *e);
void dns_cache_deinit(struct dns_cache *c);

/* Reads a record again, or the name of an entry. False: it cannot be read now. */
bool dns_cache_record(const struct dns_cache_sources *s, const struct dns_found *f,
		      struct dns_record *ret);
bool dns_cache_entry_name(const struct dns_cache_sources *s, const struct dns_cache *c,
			  const struct heap_allocation *entry, char ret[static DNS_NAME_MAX]);
bool dns_cache_unanswered(const struct dns_cache_sources *s, const struct dns_cache *c, size_t i,
			  char ret[static DNS_NAME_MAX]);

#endif
