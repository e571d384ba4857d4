/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of the resolver's cache in both widths, of which the input overwrites words. What is
 * called a record has a name that a host can have, and texts that end.
 */
#include <string.h>

#include "agent/heap/dns.h"
#include "tests/fuzz/changes.h"
#include "tests/fuzz/fuzz.h"

#define RECORDS UINT64_C(0x10000)
#define APART   0x80
#define NAMES   UINT64_C(0x20f80) /* some end on the next page */

static const struct {
	uint16_t type, length, length32;
} kinds[] = { { 1, 4, 4 },  { 2, 8, 4 },   { 5, 8, 4 },    { 6, 40, 32 },
	      { 12, 8, 4 }, { 15, 16, 8 }, { 28, 16, 16 }, { 33, 16, 12 } };

#define KINDS  (sizeof(kinds) / sizeof(*kinds))
#define PLACES (PAGE_SIZE / 16)

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_over(data, size);
	const uint8_t room = cur_u8(&c), missing = cur_u8(&c);
	const struct memory_view view = { vm_view, &memory };
	struct changes changes;

	if (!memory.count)
		make_records();
	changes_make(&changes, &memory, missing, &c);
	for (uint64_t i = 0; i < 2 * PLACES; i++) {
		const bool wide = i < PLACES;
		const uint64_t at = RECORDS + 16 * (i % PLACES);
		struct dns_record r;

		if (dns_record_read(&view, at, room, wide, &r))
			check(&r, wide);
	}
	changes_undo(&changes);
	return 0;
}
