/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/displaced.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/shared/kernel/linux_info.h"
#include "agent/shared/paging/roots.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "formats/base/bytes.h"

#define NS_MAX      (60 * NS_PER_SECOND)
#define RUN_PAGES   64

/* Two may be a page and its copy; each root gives a vote for each entry of its upper half. */
#define ROOTS_LEAST 3
#define VOTES_MAX   ((size_t)1 << 16)

/* System's own entries and a few more: a table of the kernel's pages has many. */
#define UPPER_MAX   128
#define PTE_WRITE   UINT64_C(0x2)

struct vote {
	uint32_t index;
	uint32_t count;
	int64_t distance;
	uint64_t upper; /* what else the kernel's half has is the same in all roots */
};

struct displaced_votes {
	struct vote at[VOTES_MAX]; /* a hash table */
	size_t used;
};

/*
 * A root of a Windows process: its lower half has tables for user mode, its upper half some for the
 * kernel alone, and nothing else. Page tables of other levels have both kinds in one half.
 */
static bool is_like_root(const uint8_t *page, size_t *ret_upper)
{
	const uint64_t table = PTE_PRESENT | PTE_WRITE;
	size_t lower = 0, upper = 0;

	for (size_t i = 0; i < TABLE_ENTRIES; i++) {
		const uint64_t raw = get_le64(page + 8 * i);
		const bool user = i < ROOT_HALF;

		if (!raw)
			continue;
		if ((raw & table) != table || raw & PTE_LARGE || !(raw & PTE_FRAME) ||
		    (user && !(raw & PTE_USER)))
			return false;
		lower += user;
		upper += !user;
	}
	*ret_upper = upper;
	return lower && upper >= 2 && upper <= UPPER_MAX;
}

static uint64_t mix_vote(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

/* Sums, so that one entry can be taken out again. */
static uint64_t print_of_entry(size_t i, uint64_t raw)
{
	return mix_vote(mix_vote(1, i), raw & PTE_FRAME);
}

static void cast_vote(struct displaced_votes *v, const struct vote *x)
{
	size_t k =
		(size_t)mix_vote(mix_vote(x->index, (uint64_t)x->distance), x->upper) % VOTES_MAX;

	for (;; k = (k + 1) % VOTES_MAX) {
		struct vote *at = &v->at[k];

		if (!at->count) {
			if (v->used >= VOTES_MAX / 2)
				return;
			v->used++;
			*at = *x;
		} else if (at->index != x->index || at->distance != x->distance ||
			   at->upper != x->upper) {
			continue;
		}
		at->count++;
		return;
	}
}

static void vote_of_page(struct displaced_votes *v, const uint8_t *page, uint64_t pa)
{
	uint64_t print = 0;
	size_t upper;

	if (!is_like_root(page, &upper))
		return;
	for (size_t i = ROOT_HALF; i < TABLE_ENTRIES; i++) {
		const uint64_t raw = get_le64(page + 8 * i);

		print += raw ? print_of_entry(i, raw) : 0;
	}
	for (size_t i = ROOT_HALF; i < TABLE_ENTRIES; i++) {
		const uint64_t raw = get_le64(page + 8 * i);
		const struct vote x = { (uint32_t)i, 0, (int64_t)(pa - (raw & PTE_FRAME)),
					print - print_of_entry(i, raw) };

		if (raw && !(raw & PTE_USER) && x.distance)
			cast_vote(v, &x);
	}
}

static void count_displaced(const struct displaced_votes *v, struct displaced *ret)
{
	for (size_t k = 0; k < VOTES_MAX; k++) {
		if (v->at[k].count <= ret->roots)
			continue;
		ret->roots = v->at[k].count;
		ret->distance = v->at[k].distance;
	}
}

static void look_for_vmcoreinfo(struct physmem *m, const uint8_t *page, struct displaced *ret)
{
	static const char *const names[] = { "init_top_pgt", "swapper_pg_dir", "init_level4_pgt" };
	uint8_t root[PAGE_SIZE];
	struct vmcoreinfo v;
	struct linux_uts uts;
	uint64_t va, pa;
	bool named = false;
	const char *release;
	size_t len = 0;

	if (ret->vmcoreinfo || !vmcoreinfo_from_page(&v, page))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(names) && !named; i++)
		named = vmcoreinfo_symbol(&v, names[i], &va);
	if (!named || !vmcoreinfo_image_pa(&v, va, &pa) || pa % PAGE_SIZE ||
	    vmcoreinfo_uts(&v, m, &uts))
		return;
	/* The last entry has the kernel's own image. */
	if (physmem_read_page(m, pa, root, NULL) && get_le64(root + 8 * 511) & PTE_PRESENT)
		return;
	ret->vmcoreinfo = true;
	release = vmcoreinfo_release(&v, &len);
	snprintf(ret->release, sizeof(ret->release), "%.*s", (int)MIN(len, 64),
		 release ? release : "");
}

struct displaced_run {
	struct drv *source;
	struct physmem_drv mem;
	struct displaced found;
	struct displaced_votes votes;
	uint8_t pages[RUN_PAGES * PAGE_SIZE];
	struct physmem_page status[RUN_PAGES];
};

static void look_at_range(struct displaced_run *r, struct range range, uint64_t deadline)
{
	struct physmem *m = &r->mem.mem;
	uint64_t left = range_bytes(range) / PAGE_SIZE;

	for (uint64_t pa = range.first; left;) {
		const size_t n =
			physmem_read_run(m, pa, r->pages, (size_t)MIN(left, RUN_PAGES), r->status);

		if (!n || interrupted() || clock_mono_ns() > deadline)
			return;
		for (size_t i = 0; i < n; i++) {
			const uint8_t *page = r->pages + i * PAGE_SIZE;

			if (!r->status[i].readable)
				continue;
			vote_of_page(&r->votes, page, pa + i * PAGE_SIZE);
			look_for_vmcoreinfo(m, page, &r->found);
		}
		pa += n * PAGE_SIZE;
		left -= n;
	}
}

static enum status run_displaced(void *arg, struct err *e)
{
	struct displaced_run *r = arg;
	const uint64_t deadline = clock_mono_ns() + NS_MAX;

	(void)e;
	physmem_drv_init(&r->mem, r->source, clock_mono_ns);
	for (size_t i = 0; i < r->mem.mem.ranges->count; i++)
		look_at_range(r, r->mem.mem.ranges->at[i], deadline);
	count_displaced(&r->votes, &r->found);
	return ST_OK;
}

enum status displaced_look(const struct reading *reading, struct drv *source, struct displaced *ret,
			   struct err *e)
{
	const bool was_left = drv_is_abandoned(source);
	struct displaced_run *r = calloc(1, sizeof(*r));
	enum status st;

	*ret = (struct displaced){ 0 };
	if (!r)
		return err_nomem(e);
	r->source = source;
	st = reading_run(reading, run_displaced, r, e);
	if (!was_left && drv_is_abandoned(source)) /* a thread that was left behind is inside */
		return st;
	*ret = r->found;
	ret->looked = true;
	free(r);
	return st;
}

bool displaced_is_sure(const struct displaced *d)
{
	return d->roots >= ROOTS_LEAST || d->vmcoreinfo;
}

void displaced_text(const struct displaced *d, struct err *ret)
{
	static const char then[] = "parts of the image are missing, in another order or behind "
				   "something else, and its addresses are wrong (use --map to say "
				   "where they belong)";

	if (d->roots >= ROOTS_LEAST)
		err_set(ret, ST_UNREADABLE,
			"%" PRIu64 " roots of page tables stand 0x%" PRIx64 " bytes %s where they "
			"name themselves: %s",
			d->roots, (uint64_t)(d->distance < 0 ? -d->distance : d->distance),
			d->distance < 0 ? "before" : "behind", then);
	else
		err_set(ret, ST_UNREADABLE,
			"it has the VMCOREINFO of a Linux kernel (%s), and not the page tables "
			"where that says they are: %s",
			d->release[0] ? d->release : "of unknown release", then);
}
