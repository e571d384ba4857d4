/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/paging/roots.h"

#include <pthread.h>
#include <string.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"

/* What of an entry says which table it names: accessed and dirty bits come and go. */
#define NAMES (PTE_FRAME | PTE_PRESENT)

static uint64_t table_entry_at(const uint8_t *table, size_t i)
{
	return get_le64(table + 8 * i);
}

/* FNV-1a over what is named and where: equal for a root and its twin, whatever the flags are. */
uint64_t root_user_print(const uint8_t *table)
{
	uint64_t print = UINT64_C(0xcbf29ce484222325);
	bool any = false;

	for (size_t i = 0; i < ROOT_HALF; i++) {
		const uint64_t raw = table_entry_at(table, i);

		if (!(raw & PTE_PRESENT))
			continue;
		any = true;
		print = (print ^ ((raw & PTE_FRAME) | i)) * UINT64_C(0x100000001b3);
	}
	return any ? print : 0;
}

/*
 * Whether any entry does, without a branch for each: nearly every page of a memory is asked, and
 * none does. An entry that does has nothing left of what is compared, and only that becomes
 * negative.
 */
static bool has_self_entry(const uint8_t *table, uint64_t pa, uint64_t ignore)
{
	const uint64_t compared = (PTE_FRAME & ~ignore) | PTE_PRESENT | PTE_LARGE;
	const uint64_t itself = pa | PTE_PRESENT;
	uint64_t less = 0;

	for (size_t i = ROOT_HALF; i < TABLE_ENTRIES; i++)
		less |= ((table_entry_at(table, i) ^ itself) & compared) - 1;
	return less >> 63;
}

uint32_t self_map_index(const uint8_t *table, uint64_t pa, uint64_t ignore)
{
	if (!has_self_entry(table, pa, ignore))
		return NO_INDEX;
	for (uint32_t i = ROOT_HALF; i < TABLE_ENTRIES; i++) {
		const uint64_t raw = table_entry_at(table, i);

		if ((raw & PTE_PRESENT) && !(raw & PTE_LARGE) && (raw & PTE_FRAME & ~ignore) == pa)
			return i;
	}
	return NO_INDEX;
}

static void kernel_half_init(struct kernel_half *k, const uint8_t *table,
			     const struct root_scan_options *o)
{
	*k = (struct kernel_half){ .self_index = o->self_index, .ignore = o->ignore };
	for (size_t i = 0; i < ROOT_HALF; i++) {
		const uint64_t raw = table_entry_at(table, ROOT_HALF + i);

		if (!(raw & PTE_PRESENT) || ROOT_HALF + i == o->self_index)
			continue;
		k->at[i] = raw & NAMES;
		k->count++;
	}
}

static struct root measure_root(const struct kernel_half *k, const uint8_t *page, uint64_t pa)
{
	struct root r = { .pa = pa };

	for (size_t i = 0; i < ROOT_HALF; i++)
		r.user += page[8 * i] & 1U;
	for (size_t i = 0; i < ROOT_HALF; i++) {
		const uint64_t raw = table_entry_at(page, ROOT_HALF + i);

		if (!(raw & PTE_PRESENT))
			continue;
		if (ROOT_HALF + i == k->self_index)
			r.self = (raw & PTE_FRAME & ~k->ignore) == pa;
		else if ((raw & NAMES) == k->at[i])
			r.shared++;
		else
			r.other++;
	}
	r.user_print = root_user_print(page);
	return r;
}

/*
 * With a self-map, naming oneself at the kernel's own index is proof enough, if anything of the
 * kernel is shared: sessions and hyperspace differ from process to process. Without one, Linux
 * copies the whole kernel half into every root (sync_global_pgds(), pgd_ctor()), and only the LDT
 * slot of PTI may differ.
 */
static bool is_root(const struct kernel_half *k, const struct root *r)
{
	if (k->self_index != NO_INDEX)
		return r->self && r->shared >= 1 + k->count / 4;
	return k->count && 4 * r->shared >= 3 * k->count && r->other <= 2;
}

/* Most pages are no tables at all: some of the kernel's entries must be where they belong. */
static bool worth_measuring(const struct kernel_half *k, const uint8_t *page, uint64_t pa)
{
	unsigned asked = 0, met = 0;

	if (k->self_index != NO_INDEX)
		return (table_entry_at(page, k->self_index) & PTE_FRAME & ~k->ignore) == pa;
	for (size_t i = 0; i < ROOT_HALF && asked < 8; i++) {
		if (!k->at[i])
			continue;
		asked++;
		met += (table_entry_at(page, ROOT_HALF + i) & NAMES) == k->at[i];
	}
	return met;
}

static enum status add_root(struct root_scan *s, const struct root *r, struct err *e)
{
	if (s->count == ROOTS_MAX) {
		s->full = true;
		return ST_OK;
	}
	if (!ARRAY_ROOM(s->at, s->count, s->room))
		return err_nomem(e);
	s->at[s->count++] = *r;
	return ST_OK;
}

static enum status ask_page(const struct kernel_half *k, const uint8_t *page, uint64_t pa,
			    struct root_scan *s, struct err *e)
{
	struct root r;

	if (!worth_measuring(k, page, pa))
		return ST_OK;
	r = measure_root(k, page, pa);
	return is_root(k, &r) ? add_root(s, &r, e) : ST_OK;
}

/* One run of pages, as far as the budget goes; *done says how far that was. */
static enum status scan_run(struct physmem *m, const struct root_scan_options *o,
			    const struct kernel_half *k, uint64_t pa, uint8_t *buf,
			    struct root_scan *s, size_t *done, struct err *e)
{
	struct physmem_page when[PHYSMEM_RUN];
	size_t pages = 0;
	enum status st = ST_OK;

	while (pages < PHYSMEM_RUN && walk_budget_take(o->budget))
		pages++;
	*done = pages ? physmem_read_run(m, pa, buf, pages, when) : 0;
	for (size_t i = 0; i < *done && !st; i++, pa += PAGE_SIZE, buf += PAGE_SIZE) {
		s->pages++;
		s->unreadable += !when[i].readable;
		if (when[i].readable)
			st = ask_page(k, buf, pa, s, e);
	}
	return st;
}

/*
 * PTI allocates two pages for a root: the kernel's at an even frame, what runs in user mode behind
 * it
 * (arch/x86/include/asm/pgtable.h, PTI_PGTABLE_SWITCH_BIT). The twin has the user half and hardly
 * anything of the kernel's.
 */
static void find_twin(struct physmem *m, struct root *r)
{
	uint8_t page[PAGE_SIZE];
	const uint64_t twin = r->pa + PAGE_SIZE;

	if (r->pa % (2 * PAGE_SIZE) || !r->user_print || !physmem_read_page(m, twin, page, NULL) ||
	    root_user_print(page) != r->user_print)
		return;
	r->twin = twin;
}

static void find_twins(struct physmem *m, struct root_scan *s)
{
	for (size_t i = 0; i < s->count; i++)
		find_twin(m, &s->at[i]);
	/* Where the kernel's half is small enough, twins were taken for roots themselves. */
	for (size_t i = 0; i + 1 < s->count; i++)
		if (s->at[i].twin && s->at[i + 1].pa == s->at[i].twin)
			s->at[i + 1].user_table = true;
}

enum status root_scan(struct physmem *m, const struct root_scan_options *o, struct root_scan *ret,
		      struct err *e)
{
	_cleanup_free_ uint8_t *buf = malloc(PHYSMEM_RUN * PAGE_SIZE);
	struct kernel_half k;
	enum status st = ST_OK;

	*ret = (struct root_scan){ 0 };
	if (!buf)
		return err_nomem(e);
	if (o->mode == PAGING_PAE)
		return err_set(e, ST_USAGE, "PAE roots cannot be recognised by their content");
	if (!physmem_read_page(m, o->kernel_dtb & PTE_FRAME, buf, NULL))
		return ST_OK;
	kernel_half_init(&k, buf, o);
	for (size_t i = 0; i < m->ranges->count && !st; i++) {
		const struct range *r = &m->ranges->at[i];
		size_t done = 0;

		for (uint64_t pa = r->first; !st && pa < r->last; pa += done * PAGE_SIZE) {
			st = scan_run(m, o, &k, pa, buf, ret, &done, e);
			if (!done)
				return st;
		}
	}
	ret->complete = !st;
	if (o->self_index == NO_INDEX)
		find_twins(m, ret);
	return st;
}

enum status root_scan_some(struct physmem *m, const struct root_scan_options *o, const uint64_t *at,
			   size_t count, struct root_scan *ret, struct err *e)
{
	uint8_t page[PAGE_SIZE];
	struct kernel_half k;
	enum status st = ST_OK;

	if (o->mode == PAGING_PAE)
		return err_set(e, ST_USAGE, "PAE roots cannot be recognised by their content");
	if (!physmem_read_page(m, o->kernel_dtb & PTE_FRAME, page, NULL))
		return ST_OK;
	kernel_half_init(&k, page, o);
	for (size_t i = 0; i < count && !st; i++) {
		if (!walk_budget_take(o->budget))
			return ST_OK;
		if (physmem_read_page(m, at[i], page, NULL))
			st = ask_page(&k, page, at[i], ret, e);
	}
	ret->complete = !st;
	if (o->self_index == NO_INDEX)
		find_twins(m, ret);
	return st;
}

bool root_watch_begin(struct root_watch *w, struct physmem *m, const struct root_scan_options *o)
{
	uint8_t page[PAGE_SIZE];

	*w = (struct root_watch){ 0 };
	if (o->mode == PAGING_PAE || !physmem_read_page(m, o->kernel_dtb & PTE_FRAME, page, NULL))
		return false;
	kernel_half_init(&w->half, page, o);
	return true;
}

/* Whoever reads memory must not stop for want of memory here. */
static void watch_one(struct root_watch *w, const uint8_t *page, uint64_t pa)
{
	if (ask_page(&w->half, page, pa, &w->seen, NULL))
		w->seen.full = true;
}

void root_watch_show(struct root_watch *w, const uint8_t *bytes, const struct page_status *status,
		     size_t pages, uint64_t pa)
{
	static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
	uint64_t unreadable = 0;

	for (size_t i = 0; i < pages; i++) {
		const uint8_t *page = bytes + i * PAGE_SIZE;
		const uint64_t at = pa + i * PAGE_SIZE;

		unreadable += status[i].state != PAGE_DATA;
		if (status[i].state != PAGE_DATA || !worth_measuring(&w->half, page, at))
			continue;
		pthread_mutex_lock(&adding);
		watch_one(w, page, at);
		pthread_mutex_unlock(&adding);
	}
	pthread_mutex_lock(&adding);
	w->seen.pages += pages - unreadable;
	w->seen.unreadable += unreadable;
	pthread_mutex_unlock(&adding);
}

void root_watch_page(struct root_watch *w, const uint8_t *page, uint64_t pa)
{
	root_watch_show(w, page, &(struct page_status){ .state = PAGE_DATA }, 1, pa);
}

void root_watch_deinit(struct root_watch *w)
{
	root_scan_deinit(&w->seen);
}

static int compare_root_places(const void *a, const void *b)
{
	const struct root *x = a, *y = b;

	return x->pa < y->pa ? -1 : x->pa > y->pa;
}

/* By address, each once: a page that was captured twice was shown twice. */
static void sort_roots(struct root_scan *s)
{
	size_t kept = 0;

	if (!s->count)
		return;
	qsort(s->at, s->count, sizeof(*s->at), compare_root_places);
	for (size_t i = 1; i < s->count; i++)
		if (s->at[i].pa != s->at[kept].pa)
			s->at[++kept] = s->at[i];
	s->count = kept + 1;
}

enum status root_watch_confirm(const struct root_watch *w, struct physmem *m,
			       struct walk_budget *budget, struct root_scan *ret, struct err *e)
{
	uint8_t page[PAGE_SIZE];
	enum status st = ST_OK;

	*ret = w->seen;
	ret->at = NULL;
	ret->count = ret->room = 0;
	for (size_t i = 0; i < w->seen.count && !st; i++) {
		const uint64_t pa = w->seen.at[i].pa;

		if (!walk_budget_take(budget))
			ret->complete = false;
		else if (physmem_read_page(m, pa, page, NULL))
			st = ask_page(&w->half, page, pa, ret, e);
	}
	sort_roots(ret);
	if (!st && w->half.self_index == NO_INDEX)
		find_twins(m, ret);
	return st;
}

void root_scan_deinit(struct root_scan *s)
{
	free(s->at);
	*s = (struct root_scan){ 0 };
}

const struct root *root_scan_find(const struct root_scan *s, uint64_t pa)
{
	const size_t i = FIRST_WHERE(k, s->count, s->at[k].pa >= pa);

	return i < s->count && s->at[i].pa == pa ? &s->at[i] : NULL;
}
