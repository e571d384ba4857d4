/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resolver's cache in both widths, of which the input overwrites words: records, entries that
 * lead to them or to none, and tables. What is called a record has a name that a host can have, and
 * texts that end; what is called an entry is a busy block that is none.
 */
#include <string.h>

#include "agent/examine/heap/dns/cache.h"
#include "tests/fuzz/changes.h"
#include "tests/fuzz/fuzz.h"

#define RECORDS UINT64_C(0x10000)
#define APART   0x80
#define NAMES   UINT64_C(0x20f80) /* some end on the next page */
#define ENTRIES UINT64_C(0x30000)
#define TABLES  UINT64_C(0x30f00) /* over the end of a page */

static const struct {
	uint16_t type, length, length32;
} kinds[] = { { 1, 4, 4 },  { 2, 8, 4 },   { 5, 8, 4 },    { 6, 40, 32 },
	      { 12, 8, 4 }, { 15, 16, 8 }, { 28, 16, 16 }, { 33, 16, 12 } };

#define KINDS    (sizeof(kinds) / sizeof(*kinds))
#define PLACES   (PAGE_SIZE / 16)

/* Of each width: one for each record, and two without one. */
#define OF_WIDTH (KINDS + 2)
#define ENTRY    0x40
#define TABLE    0x80
#define BLOCKS   (2 * KINDS + 2 * OF_WIDTH + 2)

static struct vm memory;

static uint64_t put_name(uint64_t va, const char *name)
{
	for (size_t i = 0; i <= strlen(name); i++)
		vm_put(&memory, va + 2 * i, (uint8_t)name[i], 2);
	return va;
}

/* A record of each type and width, each of which leads to the next. */
static void make_records(void)
{
	const uint64_t name = put_name(NAMES, "_ldap._tcp.www.example.com"),
		       other = put_name(NAMES + 0x60, "front-2.example.net");

	for (size_t i = 0; i < 2 * KINDS; i++) {
		const bool wide = i < KINDS;
		const size_t word = wide ? 8 : 4;
		const uint64_t at = RECORDS + APART * i, data = at + (wide ? 0x20 : 0x18);

		vm_put(&memory, at, at + APART, word);
		vm_put(&memory, at + word, name, word);
		vm_put(&memory, at + 2 * word, kinds[i % KINDS].type, 2);
		vm_put(&memory, at + 2 * word + 2,
		       wide ? kinds[i % KINDS].length : kinds[i % KINDS].length32, 2);
		vm_put(&memory, at + 2 * word + 4, 0x2009, 4);
		vm_put(&memory, at + 2 * word + 8, 3600, 4);
		if (kinds[i % KINDS].type == 1 || kinds[i % KINDS].type == 28)
			vm_put(&memory, data, UINT64_C(0x10002c0), 8);
		else
			vm_put(&memory, data, other, word);
	}
}

/* Next, name, record; every other is reached from the one before, the rest from the table. */
static void make_entries(void)
{
	for (size_t i = 0; i < 2 * OF_WIDTH; i++) {
		const bool wide = i < OF_WIDTH;
		const size_t word = wide ? 8 : 4, k = i % OF_WIDTH;
		const uint64_t at = ENTRIES + ENTRY * i,
			       record = RECORDS + APART * (k + !wide * KINDS);

		vm_put(&memory, at + 2 * word, NAMES, word);
		vm_put(&memory, at + 3 * word, k < KINDS ? record : 0, word);
		if (k % 3)
			vm_put(&memory, at - ENTRY, at, word);
		else
			vm_put(&memory, TABLES + TABLE * !wide + word * k, at, word);
	}
}

static struct heap_allocation blocks[BLOCKS];
static struct block_list list = { .at = blocks, .with_free = true };

/* Heap 0 is of 32-bit code, heap 1 of the other. */
static void put_block(uint64_t va, uint64_t size, bool wide)
{
	blocks[list.count++] = (struct heap_allocation){
		.address = va, .size = size, .heap = wide, .state = BLOCK_BUSY
	};
}

static void make_blocks(void)
{
	for (size_t i = 0; i < 2 * KINDS; i++)
		put_block(RECORDS + APART * i, APART, i < KINDS);
	for (size_t i = 0; i < 2 * OF_WIDTH; i++)
		put_block(ENTRIES + ENTRY * i, ENTRY, i < OF_WIDTH);
	for (size_t i = 0; i < 2; i++)
		put_block(TABLES + TABLE * i, TABLE, !i);
}

static bool is_wide(const void *context, size_t heap)
{
	(void)context;
	return heap == 1;
}

static void check(const struct dns_record *r, bool wide)
{
	MUST(strcmp(dns_type_name(r->type), "?") != 0);
	MUST(r->ttl <= DNS_TTL_MAX);
	MUST(r->next % 4 == 0 && !(r->next >> (wide ? 47 : 32)));
	MUST(*r->name && memchr(r->name, '\0', sizeof(r->name)));
	MUST(memchr(r->data, '\0', sizeof(r->data)));
	for (const char *c = r->name; *c; c++)
		MUST(*c > ' ' && *c < 0x7f);
	for (const char *c = r->data; *c; c++)
		MUST(*c > ' ' && *c < 0x7f);
}

static void check_cache(const struct memory_view *view)
{
	const struct dns_cache_sources s = { view, &list, is_wide, NULL };
	struct dns_cache c;
	struct dns_record r;

	MUST(dns_cache_find(&s, &c, NULL) == ST_OK);
	MUST(!c.table || c.table->state == BLOCK_BUSY);
	MUST(c.table || !c.unanswered_count);
	for (size_t i = 0; i < c.count; i++) {
		const struct dns_found *f = &c.records[i];

		MUST(!i || f->block->address > f[-1].block->address);
		MUST(dns_cache_record(&s, f, &r));
		check(&r, is_wide(NULL, f->block->heap));
		MUST(!f->in_table || (f->entry && c.table));
		MUST(!f->entry || (f->entry->state == BLOCK_BUSY && f->entry != f->block));
	}
	for (size_t i = 0; i < c.unanswered_count; i++) {
		char name[DNS_NAME_MAX];

		MUST(c.unanswered[i]->state == BLOCK_BUSY);
		MUST(dns_cache_unanswered(&s, &c, i, name));
		MUST(*name && memchr(name, '\0', sizeof(name)));
	}
	dns_cache_deinit(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_over(data, size);
	const uint8_t room = cur_u8(&c), missing = cur_u8(&c);
	const struct memory_view view = { vm_view, &memory };
	struct changes changes;

	if (!memory.count) {
		make_records();
		make_entries();
		make_blocks();
	}
	changes_make(&changes, &memory, missing, &c);
	for (uint64_t i = 0; i < 2 * PLACES; i++) {
		const bool wide = i < PLACES;
		const uint64_t at = RECORDS + 16 * (i % PLACES);
		struct dns_record r;

		if (dns_record_read(&view, at, room, wide, &r))
			check(&r, wide);
	}
	for (size_t i = 0; i < list.count; i++)
		blocks[i].state = room >> i % 8 & 1 ? BLOCK_FREE : BLOCK_BUSY;
	check_cache(&view);
	changes_undo(&changes);
	return 0;
}
