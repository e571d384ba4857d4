/* SPDX-License-Identifier: Apache-2.0 */
/* The walks through the three copies of the tables, space by space. */
#include <stdlib.h>

#include "agent/examine/smear/smear_internal.h"
#include "agent/shared/program/interrupt.h"
#include "formats/base/bytes.h"

/*
 * Walking
 */

/* Table pages that one space may have in the image, where a torn entry leads into anything. */
#define IMAGE_FACTOR  4
#define IMAGE_LEAST   4096

/*
 * Table pages that the walks of all spaces together may read. Each is read once where tables are
 * whole (a shared one a few times); beyond a multiple of that, somebody is playing with us.
 */
#define BUDGET_FACTOR 16

void smear__begin_budget(struct analysis *m)
{
	const uint64_t tables = m->copy[COPY_BEFORE].set.pages + m->copy[COPY_AFTER].set.pages +
				(m->image_only ? m->copy[COPY_IMAGE].set.pages : 0);

	for (size_t i = 0; i < COPIES; i++)
		m->copy[i].budget = (struct walk_budget){
			.pages = SMEAR__BUDGET_LEAST + BUDGET_FACTOR * tables,
			.deadline = UINT64_MAX,
		};
}

static void begin_copy(struct analysis *m, enum copy copy, uint64_t dtb,
		       struct walk_options options, struct walk_set *set)
{
	struct source *s = &m->copy[copy];

	options.mode = m->ret->spaces.mode;
	options.ignore = m->ret->spaces.ignore;
	leaves_begin(&s->leaves, &s->tables.mem, set, &options, dtb,
		     copy == COPY_IMAGE && m->earlier.cursor ? &m->earlier : NULL);
}

static void begin_budgeted(struct analysis *m, enum copy copy, uint64_t dtb,
			   struct walk_budget *budget)
{
	const struct walk_options options = {
		.last = paging_user_last(m->ret->spaces.mode),
		.budget = budget,
	};

	begin_copy(m, copy, dtb, options, &m->copy[copy].set);
}

bool smear__has_copy(const struct smear_id *id, enum copy copy)
{
	switch (copy) {
	case COPY_BEFORE:
		return id->fate == FATE_LIVED || id->fate == FATE_ENDED;
	case COPY_AFTER:
		return id->fate == FATE_LIVED || id->fate == FATE_BORN;
	default:
		return id->image;
	}
}

static bool is_open(const struct analysis *m, enum copy copy)
{
	return m->copy[copy].cursor != NULL;
}

static int compare_stored(const void *a, const void *b)
{
	const struct stored_space *x = a, *y = b;

	if (x->extent != y->extent)
		return x->extent < y->extent ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* By the root; of several copies the first that has it. */
static uint64_t find_stored(const struct analysis *m, const struct smear_id *id)
{
	const uint64_t root = paging_root(m->ret->spaces.mode, id->dtb);
	struct rsz_segment seg;

	for (size_t i = 0; i < COPIES; i++)
		if (is_open(m, (enum copy)i) && smear__has_copy(id, (enum copy)i) &&
		    rsz_reader_next(m->plan->reader, m->copy[i].stream, root, &seg) &&
		    seg.address <= root)
			return seg.extent;
	return UINT64_MAX;
}

enum status smear__order_spaces(struct analysis *m, struct err *e)
{
	const struct smear_spaces *s = &m->ret->spaces;

	m->order = calloc(MAX(s->count, 1), sizeof(*m->order));
	if (!m->order)
		return err_nomem(e);
	for (size_t i = 0; i < s->count; i++)
		m->order[i] = (struct stored_space){ i, find_stored(m, &s->at[i]) };
	qsort(m->order, s->count, sizeof(*m->order), compare_stored);
	return ST_OK;
}

/*
 * The page of a root may have been another's when the image came to it: the process had ended, or
 * had not begun. Its words would lead into anything, by the terabyte. All roots name the same
 * tables for the kernel's half of the address space, but for few entries: the image's copy has to
 * name most of what the pass's does. PAE roots have four entries; there it is left to what they
 * name.
 */
static bool image_has_root(struct analysis *m, const struct smear_id *id)
{
	const enum copy pass = smear__has_copy(id, COPY_BEFORE) ? COPY_BEFORE : COPY_AFTER;
	const uint64_t root = paging_root(m->ret->spaces.mode, id->dtb);
	uint8_t seen[PAGE_SIZE], there[PAGE_SIZE];
	size_t named = 0, same = 0;

	if (m->ret->spaces.mode == PAGING_PAE || !is_open(m, pass) ||
	    !physmem_read_page(&m->copy[pass].mem.mem, root, seen, NULL) ||
	    !physmem_read_page(&m->copy[COPY_IMAGE].mem.mem, root, there, NULL))
		return true; /* the walk will tell */
	for (size_t i = TABLE_ENTRIES / 2; i < TABLE_ENTRIES; i++) {
		const uint64_t a = get_le64(seen + 8 * i), b = get_le64(there + 8 * i);

		if (!(a & PTE_PRESENT))
			continue;
		named++;
		same += (b & PTE_PRESENT) && !((a ^ b) & PTE_FRAME);
	}
	return 2 * same >= named;
}

/* What the passes have bounds it. */
static void begin_image(struct analysis *m, const struct smear_id *id)
{
	struct source *s = &m->copy[COPY_IMAGE];
	const uint64_t most = IMAGE_LEAST + IMAGE_FACTOR * id->pass_tables;

	s->share = s->budget;
	if (!m->image_only)
		s->share.pages = MIN(s->share.pages, most);
	s->budget.pages -= s->share.pages;
	begin_budgeted(m, COPY_IMAGE, id->dtb, &s->share);
}

void smear__begin_walks(struct analysis *m, const struct smear_id *id, bool image)
{
	for (size_t i = 0; i < COPIES; i++)
		leaves_clear(&m->copy[i].leaves);
	m->copy[COPY_IMAGE].share.pages = 0;
	if (is_open(m, COPY_BEFORE) && smear__has_copy(id, COPY_BEFORE))
		begin_budgeted(m, COPY_BEFORE, id->dtb, &m->copy[COPY_BEFORE].budget);
	if (is_open(m, COPY_AFTER) && smear__has_copy(id, COPY_AFTER))
		begin_budgeted(m, COPY_AFTER, id->dtb, &m->copy[COPY_AFTER].budget);
	if (!image || !smear__has_copy(id, COPY_IMAGE))
		return;
	if (image_has_root(m, id))
		begin_image(m, id);
	else
		m->copy[COPY_IMAGE].leaves.stop = WALK_NO_ROOT;
}

/* 64 MiB of addresses: at most 16,384 entries of each copy, unless a 1 GiB page stretches it. */
#define SLICE_BYTES (UINT64_C(1) << 26)

bool smear__next_slice(struct analysis *m, uint64_t *last)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < COPIES; i++) {
		next = MIN(next, leaves_next_va(&m->copy[i].leaves));
		leaves_next_slice(&m->copy[i].leaves);
	}
	*last = next | (SLICE_BYTES - 1);
	return next != UINT64_MAX;
}

enum status smear__take_slice(struct analysis *m, uint64_t last, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < COPIES && !st; i++)
		st = leaves_take(&m->copy[i].leaves, last, e);
	if (!st && interrupted())
		st = interrupt_status(e);
	return st;
}

void smear__end_walks(struct analysis *m)
{
	struct source *s = &m->copy[COPY_IMAGE];

	s->budget.pages += s->share.pages;
	s->share.pages = 0;
}

enum status smear__walk_range(struct analysis *m, const struct smear_id *id, uint64_t first,
			      uint64_t last, struct err *e)
{
	const struct walk_options options = { .first = first, .last = last };

	for (size_t i = 0; i < COPIES; i++) {
		const enum copy c = (enum copy)i;

		leaves_clear(&m->copy[i].leaves);
		if (is_open(m, c) && (c == COPY_IMAGE || smear__has_copy(id, c)))
			begin_copy(m, c, id->dtb, options, NULL);
	}
	return smear__take_slice(m, UINT64_MAX, e);
}
