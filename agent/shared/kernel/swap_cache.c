/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/kernel/swap_cache.h"

#include <string.h>

#include "agent/shared/kernel/process_list.h"
#include "agent/shared/kernel/swap_cache_internal.h"
#include "formats/base/bytes.h"

/*
 * swp_entry_t as page->private has it (include/linux/swapops.h): the type above SWP_TYPE_SHIFT,
 * which is BITS_PER_XA_VALUE - MAX_SWAPFILES_SHIFT.
 */
#define TYPE_SHIFT  58

/* Pages of the largest folio that is swapped as one: HPAGE_PMD_NR. */
#define FOLIO_PAGES 512

/* Slots that change while they are looked at are looked at so often. */
#define ATTEMPTS    3

/* Pages of the kernel's that were read in one round: nodes, tables and struct pages. */
#define SEEN        256

/*
 * The newest version whose tables were read (Linux 7.3.4). What a newer one has in them for a page
 * that is not cached may mean something else; a page that is cached says by itself which it is.
 */
#define TABLES_READ 703

struct seen_page {
	uint64_t va;
	uint64_t round; /* in which it was read */
	bool readable;
	uint8_t bytes[PAGE_SIZE];
};

/*
 * Reading
 */

/* The page at `va`, as it was when this round first asked for it. */
static const struct seen_page *see_page(struct swap_cache *c, uint64_t va)
{
	const uint64_t number = va >> PAGE_SHIFT;
	struct seen_page *p = &c->seen[(number ^ number >> 8) % SEEN];
	uint64_t pa;

	va &= ~(uint64_t)(PAGE_SIZE - 1);
	if (p->round == c->round && p->va == va)
		return p;
	p->va = va;
	p->round = c->round;
	p->readable = paging__is_pointer(&c->space, va) && virt_translate(&c->space, va, &pa) &&
		      physmem_read_page(c->mem, pa, p->bytes, NULL);
	return p;
}

bool swap_cache__word(struct swap_cache *c, uint64_t va, uint64_t *ret)
{
	const struct seen_page *p = va % 8 ? NULL : see_page(c, va);

	if (!p || !p->readable)
		return false;
	*ret = get_le64(p->bytes + va % PAGE_SIZE);
	return true;
}

bool swap_cache__half_word(struct swap_cache *c, uint64_t va, uint32_t *ret)
{
	const struct seen_page *p = va % 4 ? NULL : see_page(c, va);

	if (!p || !p->readable)
		return false;
	*ret = get_le32(p->bytes + va % PAGE_SIZE);
	return true;
}

bool swap_cache__byte(struct swap_cache *c, uint64_t va, uint8_t *ret)
{
	const struct seen_page *p = see_page(c, va);

	if (p->readable)
		*ret = p->bytes[va % PAGE_SIZE];
	return p->readable;
}

static bool add_step(struct swap_trace *t, uint64_t word)
{
	if (t->n == ARRAY_SIZE(t->words))
		return false;
	t->words[t->n++] = word;
	return true;
}

bool swap_cache__step(struct swap_cache *c, struct swap_trace *t, uint64_t va, uint64_t *ret)
{
	return swap_cache__word(c, va, ret) && add_step(t, *ret);
}

/*
 * Pages
 */

static bool page_frame(const struct swap_cache *c, uint64_t page, uint64_t *ret)
{
	const uint64_t offset = page - c->vmemmap;

	if (page < c->vmemmap || offset % c->layout.page ||
	    offset / c->layout.page >= PHYS_LIMIT >> PAGE_SHIFT)
		return false;
	*ret = offset / c->layout.page << PAGE_SHIFT;
	return true;
}

static bool has_page_flag(uint64_t flags, uint32_t bit)
{
	return bit < 64 && flags >> bit & 1;
}

/*
 * A large folio's pages: up to 6.5 each of them has its own entry in `private`, and since then the
 * first has the first one's (folio->swap). In both the cache may name the first page for all.
 */
static bool is_page_of(struct swap_cache *c, const struct swap_lookup *want, uint64_t first,
		       uint64_t flags, uint64_t delta)
{
	const uint64_t entry = (uint64_t)want->file << TYPE_SHIFT | want->slot;
	uint64_t private;

	return has_page_flag(flags, c->layout.head_bit) ||
	       (swap_cache__word(c, first + delta * c->layout.page + c->layout.private, &private) &&
		private == entry);
}

/*
 * What a table names is the first page of a folio, and has this flag from when it comes into the
 * cache until it goes. Trees have named other pages, too, which have none.
 */
static bool is_out_of_cache(const struct swap_cache *c, uint64_t flags)
{
	return c->by_tables && !has_page_flag(flags, c->layout.swapcache_bit);
}

enum swap_cache_state swap_cache__page(struct swap_cache *c, const struct swap_lookup *want,
				       uint64_t page, struct swap_trace *t)
{
	const uint64_t slots = (UINT64_C(1) << TYPE_SHIFT) - 1;
	uint64_t flags, private, delta;

	if (!page_frame(c, page, &t->frame) ||
	    !swap_cache__word(c, page + c->layout.flags, &flags) ||
	    !swap_cache__step(c, t, page + c->layout.private, &private))
		return SWAP_CACHE_UNKNOWN;
	delta = want->slot - (private & slots);
	if (private >> TYPE_SHIFT != want->file || delta >= FOLIO_PAGES ||
	    (delta && !is_page_of(c, want, page, flags, delta)) || is_out_of_cache(c, flags))
		return SWAP_CACHE_UNKNOWN;
	t->frame += delta << PAGE_SHIFT;
	/* Until then it is being read from the slot (mm/page_io.c). */
	return has_page_flag(flags, c->layout.uptodate_bit) ? SWAP_CACHE_HELD : SWAP_CACHE_BUSY;
}

/*
 * Areas
 */

bool swap_cache__area(struct swap_cache *c, const struct swap_lookup *want, struct swap_trace *t,
		      uint64_t *ret)
{
	uint32_t slots;
	uint8_t type;

	return swap_cache__step(c, t, c->areas + UINT64_C(8) * want->file, ret) &&
	       swap_cache__byte(c, *ret + c->layout.area_type, &type) && type == want->file &&
	       swap_cache__half_word(c, *ret + c->layout.area_max, &slots) && want->slot < slots;
}

/* A bit of the area's bitmap. False if it cannot be read. */
static bool is_noted_as_zeros(struct swap_cache *c, const struct swap_lookup *want,
			      struct swap_trace *t, bool *ret)
{
	uint64_t area, map, word;

	if (!swap_cache__area(c, want, t, &area) ||
	    !swap_cache__step(c, t, area + c->layout.zeromap, &map) ||
	    !swap_cache__word(c, map + want->slot / 64 * 8, &word))
		return false;
	*ret = word >> want->slot % 64 & 1;
	/* Its neighbours may change. */
	return add_step(t, *ret);
}

static void trace_slot(struct swap_cache *c, const struct swap_lookup *want, struct swap_trace *t)
{
	enum swap_cache_state state;
	bool zeros;

	memset(t, 0, sizeof(*t));
	if (want->file >= PTE_FILES_MAX)
		return;
	state = c->by_tables ? swap_cache__by_table(c, want, t) : swap_cache__by_tree(c, want, t);
	if (c->zeros == SWAP_ZEROS_MAP &&
	    (state == SWAP_CACHE_ABSENT || state == SWAP_CACHE_BUSY)) {
		if (!is_noted_as_zeros(c, want, t, &zeros))
			state = SWAP_CACHE_UNKNOWN;
		else if (zeros)
			state = SWAP_CACHE_ZEROS;
	}
	t->state = state;
}

/*
 * Looking
 */

static enum status make_room_for_slots(struct swap_cache *c, size_t n, struct err *e)
{
	if (n <= c->n_traces)
		return ST_OK;
	free(c->traces);
	c->n_traces = 0;
	c->traces = malloc(n * sizeof(*c->traces));
	if (!c->traces)
		return err_nomem(e);
	c->n_traces = n;
	return ST_OK;
}

static bool is_untold(const struct swap_lookup *l)
{
	return l->state == SWAP_CACHE_UNKNOWN;
}

/* Where the kernel maps an area's tables may change, too. */
static void begin_round(struct swap_cache *c)
{
	c->round++;
	physmem_cache_forget(&c->tables);
}

/* The bytes of what was found: a frame's, or zeros. */
static bool take_cached_bytes(struct swap_cache *c, const struct swap_trace *t, uint8_t *bytes)
{
	if (t->state == SWAP_CACHE_ZEROS)
		memset(bytes, 0, PAGE_SIZE);
	return t->state == SWAP_CACHE_ZEROS ||
	       (t->state == SWAP_CACHE_HELD && physmem_read_page(c->mem, t->frame, bytes, NULL));
}

/* Everything once, the frames, and everything once more. */
static void lookup_once(struct swap_cache *c, struct swap_lookup *lookups, size_t n, uint8_t *bytes)
{
	struct swap_trace again;

	begin_round(c);
	for (size_t i = 0; i < n; i++)
		if (is_untold(&lookups[i]))
			trace_slot(c, &lookups[i], &c->traces[i]);
	for (size_t i = 0; i < n; i++)
		if (is_untold(&lookups[i]))
			lookups[i].readable =
				take_cached_bytes(c, &c->traces[i], bytes + i * PAGE_SIZE);
	begin_round(c);
	for (size_t i = 0; i < n; i++) {
		if (!is_untold(&lookups[i]) || c->traces[i].state == SWAP_CACHE_UNKNOWN)
			continue;
		trace_slot(c, &lookups[i], &again);
		if (memcmp(&again, &c->traces[i], sizeof(again)))
			continue;
		lookups[i].state = (enum swap_cache_state)again.state;
		lookups[i].frame = again.frame;
	}
}

enum status swap_cache_lookup(struct swap_cache *c, struct swap_lookup *lookups, size_t n,
			      uint8_t *bytes, struct err *e)
{
	enum status st = make_room_for_slots(c, n, e);
	size_t open = n;

	for (size_t i = 0; i < n; i++)
		lookups[i].state = SWAP_CACHE_UNKNOWN;
	for (unsigned k = 0; k < ATTEMPTS && open && !st; k++) {
		lookup_once(c, lookups, n, bytes);
		open = 0;
		for (size_t i = 0; i < n; i++)
			open += is_untold(&lookups[i]);
	}
	return st;
}

/*
 * Life
 */

/* A BTF that lies must not lead the reading astray. */
static bool is_sound(const struct linux_swap_layout *l)
{
	return l->pages && l->page && l->page % 8 == 0 && l->page < PAGE_SIZE &&
	       l->flags % 8 == 0 && l->flags < PAGE_SIZE && l->private % 8 == 0 &&
	       l->private < PAGE_SIZE &&
	       (l->tables ? swap_cache__table_is_sound(l) : swap_cache__tree_is_sound(l));
}

static const char *find_missing_symbol(const struct discovery *d)
{
	if (d->linux_offsets.swap.tables)
		return d->swap_areas ? NULL : "the kernel's symbol swap_info was not found";
	if (!d->swapper_spaces && !d->swap_ops)
		return "the kernel's symbols swapper_spaces and swap_aops were not found";
	if (!d->swapper_spaces)
		return "the kernel's symbol swapper_spaces was not found";
	return d->swap_ops ? NULL : "the kernel's symbol swap_aops was not found";
}

static const char *find_lack(const struct discovery *d)
{
	const struct linux_swap_layout *l = &d->linux_offsets.swap;
	const char *symbol;

	if (d->os != OS_LINUX)
		return "this is not Linux";
	symbol = find_missing_symbol(d);
	if (symbol)
		return symbol;
	if (!d->vmemmap)
		return "it is not known where the kernel has its struct pages";
	if (l->tables && !l->cluster_slots)
		return "the kernel's BTF does not say how many slots a table of its swap cache has";
	return is_sound(l) ? NULL : "the kernel's BTF lacks some of what is needed";
}

/*
 * A kernel that has neither is older than 6.12 (mm/page_io.c, swap_writepage()). Where entries of a
 * table have the flag is known of the versions that were read.
 */
static enum swap_zeros find_zeros(const struct discovery *d, bool known_tables)
{
	const struct linux_swap_layout *l = &d->linux_offsets.swap;

	if (l->has_zeromap)
		return l->areas && d->swap_areas && l->zeromap % 8 == 0 ? SWAP_ZEROS_MAP
									: SWAP_ZEROS_UNKNOWN;
	if (!l->tables)
		return l->areas ? SWAP_ZEROS_WRITTEN : SWAP_ZEROS_UNKNOWN;
	return known_tables && !l->has_zero_bitmap ? SWAP_ZEROS_FLAG : SWAP_ZEROS_UNKNOWN;
}

bool swap_cache_tells_zeros(const struct swap_cache *c)
{
	return c->zeros != SWAP_ZEROS_UNKNOWN;
}

static void take_layout(struct swap_cache *c, const struct discovery *d)
{
	const uint32_t version = d->vmcoreinfo ? vmcoreinfo_version(d->vmcoreinfo) : 0;

	c->layout = d->linux_offsets.swap;
	c->spaces = d->swapper_spaces;
	c->ops = d->swap_ops;
	c->areas = d->swap_areas;
	c->vmemmap = d->vmemmap;
	c->by_tables = c->layout.tables;
	c->known_tables = c->by_tables && version && version <= TABLES_READ;
	c->zeros = find_zeros(d, c->known_tables);
}

enum status swap_cache_create(struct physmem *mem, const struct discovery *d,
			      struct swap_cache **ret, const char **why, struct err *e)
{
	struct swap_cache *c;
	enum status st;

	*ret = NULL;
	*why = find_lack(d);
	if (*why)
		return ST_OK;
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_nomem(e);
	c->mem = mem;
	take_layout(c, d);
	st = physmem_cache_init(&c->tables, mem, e);
	c->seen = calloc(SEEN, sizeof(*c->seen));
	if (!c->seen)
		st = err_nomem(e);
	if (st) {
		swap_cache_destroy(c);
		return st;
	}
	c->space = (struct virt){
		.mem = &c->tables.mem, .mode = d->mode, .dtb = d->walk_dtb, .ignore = d->ignore
	};
	*ret = c;
	return ST_OK;
}

void swap_cache_destroy(struct swap_cache *c)
{
	if (!c)
		return;
	physmem_cache_deinit(&c->tables);
	free(c->seen);
	free(c->traces);
	free(c);
}
