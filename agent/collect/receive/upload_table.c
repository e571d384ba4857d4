/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/receive/upload_table.h"

#include <string.h>

#include "agent/shared/program/random.h"
#include "agent/shared/program/text.h"
#include "formats/base/bytes.h"

#define CHAINS_FIRST 64

enum status upload_table_init(struct upload_table *t, struct err *e)
{
	*t = (struct upload_table){ .n_chains = CHAINS_FIRST };
	t->chains = calloc(t->n_chains, sizeof(struct upload *));
	return t->chains ? random_bytes(t->seed, sizeof(t->seed), e) : err_nomem(e);
}

static void free_upload(struct upload *u)
{
	upload_close(u);
	free(u->path);
	free(u);
}

void upload_table_deinit(struct upload_table *t)
{
	while (t->first) {
		struct upload *u = t->first;

		t->first = u->next;
		free_upload(u);
	}
	free(t->chains);
	*t = (struct upload_table){ 0 };
}

/* The finalizer of SplitMix64 (Steele, Lea, Flood, 2014): each bit of it depends on all. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static struct upload **chain_of(const struct upload_table *t, const char *id)
{
	uint8_t bytes[FRAME_ID_SIZE] = { 0 };

	(void)text_from_hex(id, 2 * sizeof(bytes), bytes);
	return &t->chains[mix(mix(get_le64(bytes) ^ t->seed[0]) +
			      (get_le64(bytes + 8) ^ t->seed[1])) %
			  t->n_chains];
}

struct upload *upload_table_find(const struct upload_table *t, const char *id)
{
	struct upload *u = strlen(id) == UPLOAD_ID_HEX - 1 ? *chain_of(t, id) : NULL;

	while (u && strcmp(u->id, id) != 0)
		u = u->chained;
	return u;
}

static void put_into_chain(const struct upload_table *t, struct upload *u)
{
	struct upload **at = chain_of(t, u->id);

	u->chained = *at;
	*at = u;
}

/* As many chains as uploads, at least. */
static enum status grow(struct upload_table *t, struct err *e)
{
	struct upload **more;

	if (t->n < t->n_chains)
		return ST_OK;
	more = calloc(2 * t->n_chains, sizeof(struct upload *));
	if (!more)
		return err_nomem(e);
	free(t->chains);
	t->chains = more;
	t->n_chains *= 2;
	for (struct upload *u = t->first; u; u = u->next)
		put_into_chain(t, u);
	return ST_OK;
}

enum status upload_table_add(struct upload_table *t, struct upload *u, struct err *e)
{
	const enum status st = grow(t, e);

	if (st)
		return st;
	u->before = NULL;
	u->next = t->first;
	if (t->first)
		t->first->before = u;
	t->first = u;
	put_into_chain(t, u);
	t->n++;
	return ST_OK;
}

void upload_table_remove(struct upload_table *t, struct upload *u)
{
	struct upload **at = chain_of(t, u->id);

	while (*at != u)
		at = &(*at)->chained;
	*at = u->chained;
	if (u->before)
		u->before->next = u->next;
	else
		t->first = u->next;
	if (u->next)
		u->next->before = u->before;
	t->n--;
	free_upload(u);
}
