/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/kernel/prints.h"

#include <stdlib.h>

#include "agent/shared/paging/walk.h"
#include "formats/base/bytes.h"

#define BLOCK     1024 /* prints that are allocated together */
#define BLOCKS    (PRINTS_MAX / BLOCK)
#define INDEX_MIN 1024
#define LINE      8 /* entries */
#define LINES     (TABLE_ENTRIES / LINE)
#define MIX       UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / phi, odd */

struct print {
	uint64_t pa;
	uint64_t place; /* level and address */
	uint16_t line[LINES];
};

static uint64_t mix_word(uint64_t h, uint64_t word)
{
	h = (h ^ word) * MIX;
	return h ^ h >> 29;
}

static uint64_t table_place_of(const struct printed_table *t)
{
	return t->va | t->level; /* addresses of tables are multiples of 2 MiB */
}

static uint16_t fingerprint_line(const struct entry_reader *entries, const uint8_t *bytes)
{
	uint64_t h = 0;

	for (size_t i = 0; i < LINE; i++)
		h = mix_word(h, entry_hard_bits(entries, get_le64(bytes + 8 * i)));
	return (uint16_t)(h >> 48);
}

static struct print *print_at(const struct table_prints *p, size_t n)
{
	return &p->blocks[n / BLOCK][n % BLOCK];
}

/* Where in the index a table is, or is to be. */
static size_t find_print(const struct table_prints *p, uint64_t pa)
{
	size_t at = (size_t)(mix_word(0, pa) >> 20) & (p->room - 1);

	while (p->index[at] && print_at(p, p->index[at] - 1)->pa != pa)
		at = (at + 1) & (p->room - 1);
	return at;
}

/* The index stays half empty. */
static bool grow_index(struct table_prints *p)
{
	const struct table_prints old = *p;

	if (2 * p->count < p->room)
		return true;
	p->room = old.room ? 2 * old.room : INDEX_MIN;
	p->index = calloc(p->room, sizeof(*p->index));
	if (!p->index) {
		*p = old;
		return false;
	}
	for (size_t i = 0; i < old.room; i++)
		if (old.index[i])
			p->index[find_print(p, print_at(p, old.index[i] - 1)->pa)] = old.index[i];
	free(old.index);
	return true;
}

static bool grow_prints(struct table_prints *p)
{
	struct print **block;

	if (p->count == PRINTS_MAX || !grow_index(p))
		return false;
	if (!p->blocks)
		p->blocks = calloc(BLOCKS, sizeof(struct print *));
	if (!p->blocks)
		return false;
	block = &p->blocks[p->count / BLOCK];
	if (!*block)
		*block = malloc(BLOCK * sizeof(**block));
	return *block;
}

void table_prints_add(struct table_prints *p, const struct printed_table *t)
{
	struct print *to;
	size_t at;

	if (!grow_prints(p))
		return;
	at = find_print(p, t->pa);
	if (!p->index[at])
		p->index[at] = (uint32_t)++p->count;
	to = print_at(p, p->index[at] - 1);
	to->pa = t->pa;
	to->place = table_place_of(t);
	for (size_t i = 0; i < LINES; i++)
		to->line[i] = fingerprint_line(&p->entries, t->bytes + i * LINE * 8);
}

uint64_t table_prints_changed(const struct table_prints *p, const struct printed_table *t)
{
	const size_t at = p && p->room ? find_print(p, t->pa) : 0;
	const struct print *was;
	uint64_t ret = 0;

	if (!p || !p->room || !p->index[at])
		return UINT64_MAX;
	was = print_at(p, p->index[at] - 1);
	if (was->place != table_place_of(t))
		return UINT64_MAX;
	for (size_t i = 0; i < LINES; i++)
		if (fingerprint_line(&p->entries, t->bytes + i * LINE * 8) != was->line[i])
			ret |= UINT64_C(1) << i;
	return ret;
}

void table_prints_deinit(struct table_prints *p)
{
	for (size_t i = 0; p->blocks && i < BLOCKS; i++)
		free(p->blocks[i]);
	free(p->blocks);
	free(p->index);
	*p = (struct table_prints){ 0 };
}
