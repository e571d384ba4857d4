/* SPDX-License-Identifier: Apache-2.0 */
/* The compression store of a container: what pagestore.c reads it through. */
#include <stdlib.h>
#include <string.h>

#include "agent/examine/virtual/pagestore.h"
#include "agent/examine/virtual/virtual_internal.h"

/* Trees, chunks and regions come again and again. A power of two. */
#define KEPT 64

struct kept_page {
	bool used;
	bool there;
	uint64_t dtb, va;
	struct rsz_times when;
	uint8_t bytes[PAGE_SIZE];
};

struct virtual_store {
	struct virtual_memory *v;
	struct pagestore pages;
	bool found;
	struct rsz_times when; /* of what was read for the page under way */
	struct kept_page kept[KEPT];
};

static void add_times(struct rsz_times *to, const struct rsz_times *t)
{
	to->start = to->end ? MIN(to->start, t->start) : t->start;
	to->end = MAX(to->end, t->end);
}

static const uint8_t *read_store_page(struct virtual_store *s, uint64_t dtb, uint64_t va)
{
	struct kept_page *k = &s->kept[((va >> PAGE_SHIFT) ^ (va >> 18)) % KEPT];

	if (!k->used || k->dtb != dtb || k->va != va) {
		k->used = true;
		k->dtb = dtb;
		k->va = va;
		k->there = virtual__read_page(s->v, dtb, va, k->bytes, &k->when);
	}
	if (!k->there)
		return NULL;
	add_times(&s->when, &k->when);
	return k->bytes;
}

/* Its own root's kernel half is everybody's. */
static const uint8_t *kernel_page(void *context, uint64_t va)
{
	struct virtual_store *s = context;

	return va >> 63 ? read_store_page(s, s->v->virt.dtb, va) : NULL;
}

static const uint8_t *store_user_page(void *context, uint64_t dtb, uint64_t va)
{
	struct virtual_store *s = context;

	return read_store_page(s, paging_root(s->v->virt.mode, dtb), va);
}

static bool is_known_space(void *context, uint64_t dtb)
{
	const struct virtual_store *s = context;
	const struct smear_spaces *spaces = virtual_spaces(s->v);
	const uint64_t root = paging_root(s->v->virt.mode, dtb);

	for (size_t i = 0; i < spaces->count; i++)
		if (spaces->at[i].dtb == root)
			return true;
	return false;
}

static enum status find_store_manager(struct virtual_store *s, struct err *e)
{
	struct range writable[WINDOWS_SECTIONS_MAX];
	struct pagestore_plan plan = {
		.kernel = { kernel_page, s },
		.user = store_user_page,
		.known = is_known_space,
		.context = s,
		.writable = writable,
		.globals = s->v->store_globals,
	};
	struct discovery d;
	const enum status st = virtual_discover(s->v, &d, e);

	if (st)
		return st;
	plan.build = d.windows.version.build;
	if (d.windows.base)
		plan.n_writable = windows_writable(&s->v->virt, &d.windows, writable);
	discovery_deinit(&d);
	s->found = pagestore_find(&s->pages, &plan);
	s->pages.plan.writable = NULL;
	s->pages.plan.n_writable = 0;
	return ST_OK;
}

enum status virtual__read_store(struct virtual_memory *v, uint64_t key, uint8_t *page,
				struct rsz_times *when, const char **ret_why, struct err *e)
{
	enum pagestore_answer a = PAGESTORE_NONE;
	enum status st = ST_OK;

	if (!v->store) {
		v->store = calloc(1, sizeof(*v->store));
		if (!v->store)
			return err_nomem(e);
		v->store->v = v;
		st = find_store_manager(v->store, e);
		if (st)
			return st;
	}
	v->store->when = (struct rsz_times){ 0 };
	if (v->store->found && key <= UINT32_MAX)
		a = pagestore_read(&v->store->pages, (uint32_t)key, page);
	*when = v->store->when;
	*ret_why = a == PAGESTORE_GIVEN ? NULL : pagestore_why(a);
	return ST_OK;
}

void virtual_set_store(struct virtual_memory *v, uint64_t globals)
{
	virtual__free_store(v->store);
	v->store = NULL;
	v->store_globals = globals;
}

void virtual__free_store(struct virtual_store *s)
{
	free(s);
}
