/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of a range, in order, to who reads it. */
#include <inttypes.h>

#include "agent/examine/virtual/virtual_internal.h"

/* As much as is walked at once: what is kept of a walk grows with it. */
#define STEP_BYTES (UINT64_C(1) << 30)

bool virtual_table_is_lost(const struct virtual_page *p)
{
	/* An entry above the page table that is not present is of a table that is paged out. */
	return p->level != 1 && !p->has_verdict && p->row.raw;
}

bool virtual_page_is_absent(const struct virtual_page *p)
{
	if (p->given != GIVEN_NOTHING || virtual_table_is_lost(p))
		return false;
	if (p->row.pte.state != PTE_EMPTY)
		return p->row.pte.state == PTE_DECOMMITTED;
	/* A section may be reserved, too: then its prototype entry is empty. */
	return p->row.followed || p->vad == VAD_SAYS_RESERVED || p->vad == VAD_SAYS_UNMAPPED;
}

/*
 * Telling of pages
 */

static enum status hand_out(struct virtual_memory *v, const struct virtual_page *p, struct err *e)
{
	v->counts->given[p->given] += p->pages;
	v->counts->damaged += p->damaged ? p->pages : 0;
	if (p->given != GIVEN_NOTHING)
		v->counts->trust[verdict_trust(p->row.verdict)] += p->pages;
	v->next = p->va + p->pages * PAGE_SIZE;
	v->through = !v->next;
	return v->reader->page(v->reader->context, p, e);
}

static enum status give_nothing(struct virtual_memory *v, const struct smear_row *row,
				struct err *e)
{
	const struct virtual_page p = {
		.va = row->va,
		.pages = row->pages,
		.why = virtual__why(v, row),
		.level = 1,
		.has_verdict = true,
		.row = *row,
	};

	return hand_out(v, &p, e);
}

static enum status give_page(struct virtual_memory *v, const struct smear_row *row, struct err *e)
{
	uint8_t bytes[PAGE_SIZE] = { 0 };
	struct virtual_page p = {
		.va = row->va,
		.pages = 1,
		.given = GIVEN_ZEROS,
		.bytes = bytes,
		.level = 1,
		.has_verdict = true,
		.row = *row,
	};
	enum status st = ST_OK;

	if (row->verdict == VERDICT_SLOT_MAP)
		p.doubt = v->m->files[row->pte.file].doubt;
	if (row->captured) {
		p.given = row->stream == v->m->memory_stream ? GIVEN_MEMORY : GIVEN_PAGE_FILE;
		p.stream = rsz_reader_stream(v->m->plan->reader, row->stream)->name;
	}
	if (v->reader->unread) {
		p.bytes = NULL;
		p.pages = row->pages;
	} else if (row->captured) {
		st = virtual__read_captured(v, row, bytes, e);
	}
	if (st && st != ST_CORRUPT && st != ST_END)
		return st;
	if (st) {
		p.given = GIVEN_NOTHING;
		p.bytes = NULL;
		p.stream = NULL;
		p.damaged = st == ST_CORRUPT;
		p.why = "the container is damaged there";
	}
	return hand_out(v, &p, e);
}

/* Neighbours that the store does not give for the same reason. */
static enum status give_missing(struct virtual_memory *v, const struct smear_row *row,
				uint64_t from, uint64_t end, const char *why, struct err *e)
{
	struct virtual_page p = {
		.va = row->va + from * PAGE_SIZE,
		.pages = end - from,
		.why = why,
		.level = 1,
		.has_verdict = true,
		.row = *row,
	};

	p.row.va = p.va;
	p.row.pages = p.pages;
	p.row.pte.slot += from;
	v->counts->store_missing += p.pages;
	return from == end ? ST_OK : hand_out(v, &p, e);
}

static enum status give_compressed(struct virtual_memory *v, const struct smear_row *row,
				   uint64_t i, const uint8_t *bytes, const struct rsz_times *when,
				   struct err *e)
{
	const struct rsz_times *seen = &row->seen;
	struct virtual_page p = {
		.va = row->va + i * PAGE_SIZE,
		.pages = 1,
		.given = GIVEN_COMPRESSED,
		.bytes = bytes,
		.level = 1,
		.has_verdict = true,
		.row = *row,
	};

	p.row.va = p.va;
	p.row.pages = 1;
	p.row.pte.slot += i;
	p.row.content = *when;
	if (!v->info.still)
		p.row.window = MAX(seen->end, when->end) - MIN(seen->start, when->start);
	return hand_out(v, &p, e);
}

static enum status give_from_store(struct virtual_memory *v, const struct smear_row *row,
				   struct err *e)
{
	uint8_t bytes[PAGE_SIZE];
	const char *why, *last = NULL;
	struct rsz_times when;
	enum status st = ST_OK;
	uint64_t from = 0;

	for (uint64_t i = 0; i < row->pages && !st; i++) {
		st = virtual__read_store(v, row->pte.slot + i, bytes, &when, &why, e);
		if (!st && why != last) {
			if (last)
				st = give_missing(v, row, from, i, last, e);
			from = i;
			last = why;
		}
		if (!st && !why)
			st = give_compressed(v, row, i, bytes, &when, e);
	}
	return st || !last ? st : give_missing(v, row, from, row->pages, last, e);
}

/*
 * Pages of mapped files
 */

static bool is_in_file(const struct virtual_memory *v, const struct smear_row *row)
{
	return v->files.page && !v->reader->unread && row->followed &&
	       (row->pte.state == PTE_SUBSECTION || row->pte.state == PTE_FILE_BACKED);
}

/* So many pages of a row, from its page `from` on. */
static struct virtual_page page_of_row(const struct smear_row *row, uint64_t from, uint64_t pages)
{
	struct virtual_page p = {
		.va = row->va + from * PAGE_SIZE,
		.pages = pages,
		.level = 1,
		.has_verdict = true,
		.row = *row,
	};

	p.row.va = p.va;
	p.row.pages = pages;
	p.row.proto += 8 * from; /* their prototype entries lie behind each other */
	return p;
}

/* Neighbours that their file does not give for the same reason. */
static enum status give_no_file(struct virtual_memory *v, const struct smear_row *row,
				uint64_t from, uint64_t end, const char *why, struct err *e)
{
	struct virtual_page p = page_of_row(row, from, end - from);

	p.why = why;
	return from == end ? ST_OK : hand_out(v, &p, e);
}

static enum status give_file_page(struct virtual_memory *v, const struct smear_row *row, uint64_t i,
				  const struct virtual_file_page *f, struct err *e)
{
	struct virtual_page p = page_of_row(row, i, 1);

	p.given = GIVEN_FILE;
	p.bytes = f->bytes;
	p.doubt = f->doubt;
	p.row.verdict = VERDICT_FILE;
	return hand_out(v, &p, e);
}

static enum status give_from_file(struct virtual_memory *v, const struct smear_row *row,
				  struct err *e)
{
	uint8_t bytes[PAGE_SIZE];
	const char *last = NULL;
	enum status st = ST_OK;
	uint64_t from = 0;

	for (uint64_t i = 0; i < row->pages && !st; i++) {
		struct virtual_file_page f = {
			.va = row->va + i * PAGE_SIZE,
			.pte = &row->pte,
			.proto = row->proto + 8 * i,
			.bytes = bytes,
		};

		st = v->files.page(v->files.context, &f, e);
		if (!st && f.why != last) {
			if (last)
				st = give_no_file(v, row, from, i, last, e);
			from = i;
			last = f.why;
		}
		if (!st && !f.why)
			st = give_file_page(v, row, i, &f, e);
	}
	return st || !last ? st : give_no_file(v, row, from, row->pages, last, e);
}

static bool has_content(const struct smear_row *row)
{
	return row->captured || row->pte.state == PTE_DEMAND_ZERO;
}

/* Neighbours that are equally empty are one. */
static bool is_as_empty(const struct virtual_page *p, const struct virtual_page *q)
{
	return p->why == q->why && p->row.raw == q->row.raw && p->has_verdict == q->has_verdict &&
	       p->row.verdict == q->row.verdict && p->row.change == q->row.change;
}

/*
 * Pages without an entry, through the VADs
 */

/* Where the page of a prototype entry lies, and whether it was captured there. */
static enum verdict find_content(const struct virtual_memory *v, struct smear_row *row)
{
	const bool slot = pte_place(&row->pte) == PLACE_SLOT;
	const struct slot_file *f =
		slot && row->pte.file < PTE_FILES_MAX ? &v->m->files[row->pte.file] : NULL;
	const struct captures *captures =
		slot ? f && f->captures ? f->captures : NULL : v->m->memory;
	struct capture c;
	uint64_t at;

	if (row->pte.state == PTE_COMPRESSED)
		return VERDICT_STORE;
	if (!captures || !virtual__locate_page(v, &row->pte, &row->stream, &at))
		return VERDICT_NO_FILE;
	if (!range_list_find(slot ? &f->ranges : &v->m->ram, at))
		return VERDICT_OUTSIDE;
	if (!captures_from(captures, at, at | (PAGE_SIZE - 1), &c) || c.range.first > at)
		return VERDICT_MISSING;
	if (!capture_is_readable(&c))
		return c.state == PAGE_UNREADABLE ? VERDICT_UNREADABLE : VERDICT_MISSING;
	row->captured = true;
	row->captures = 1;
	row->content = (struct rsz_times){ c.start, c.end };
	return v->smear.still ? VERDICT_IMAGE : VERDICT_PROTOTYPE;
}

/*
 * The first of `pages`, whose prototype entry is there, with those behind it that are in the same
 * state and have no content. What is there is never safe: VADs were not compared with what they
 * were before or later.
 */
static enum status give_by_prototype(struct virtual_memory *v, struct smear_row *row,
				     uint64_t pages, uint64_t prototype, struct err *e)
{
	struct rsz_times when;
	struct pte next;
	const enum status st = smear__need_layout(v->m, e);

	if (st)
		return st;
	row->proto = prototype;
	row->pages = 1;
	row->followed = virtual__read_prototype(v, prototype, &row->pte, &when);
	row->verdict = v->smear.still ? VERDICT_IMAGE : VERDICT_PROTOTYPE;
	if (!row->followed) {
		/* Nor can be had what lies in the same page of the kernel. */
		row->pte = (struct pte){ .state = PTE_VAD_PROTOTYPE };
		row->pages = MIN(pages, (PAGE_SIZE - prototype % PAGE_SIZE + 7) / 8);
	} else if (pte_place(&row->pte) != PLACE_NONE) {
		row->verdict = find_content(v, row);
	}
	if (has_content(row))
		return give_page(v, row, e);
	while (row->followed && pte_place(&row->pte) == PLACE_NONE && row->pages < pages &&
	       virtual__read_prototype(v, prototype + 8 * row->pages, &next, &when) &&
	       next.raw == row->pte.raw)
		row->pages++;
	return is_in_file(v, row) ? give_from_file(v, row, e) : give_nothing(v, row, e);
}

static enum status give_no_page(struct virtual_memory *v, struct virtual_page *p, const char *why,
				struct err *e)
{
	p->why = why;
	return hand_out(v, p, e);
}

/* Committed and never touched: each of them is zeros. */
static enum status give_zeros(struct virtual_memory *v, struct smear_row *row, struct err *e)
{
	const uint64_t pages = row->pages;
	enum status st = ST_OK;

	row->pte.state = PTE_DEMAND_ZERO;
	row->verdict = v->smear.still ? VERDICT_IMAGE : VERDICT_VAD;
	if (v->reader->unread)
		return give_page(v, row, e);
	row->pages = 1;
	for (uint64_t i = 0; i < pages && !st; i++, row->va += PAGE_SIZE)
		st = give_page(v, row, e);
	return st;
}

/* Pages without an entry, `p`: what their VAD says of as many of them as it has one answer for. */
static enum status give_by_vad(struct virtual_memory *v, struct virtual_page *p, struct err *e)
{
	uint64_t pages = 1, prototype = 0;
	const enum vad_answer answer = v->vads.range(v->vads.context, p->va, &pages, &prototype);
	struct smear_row row = p->row;

	p->pages = p->row.pages = row.pages = MIN(p->pages, pages);
	p->vad = answer;
	switch (answer) {
	case VAD_SAYS_SECTION:
		return give_by_prototype(v, &row, p->pages, prototype, e);
	case VAD_SAYS_ZEROS:
		return give_zeros(v, &row, e);
	case VAD_SAYS_RESERVED:
		return give_no_page(v, p, "reserved by its VAD, and not committed", e);
	case VAD_SAYS_UNMAPPED:
		return give_no_page(v, p, "no entry and no VAD: not mapped", e);
	default:
		return give_no_page(v, p, p->why, e);
	}
}

static bool is_for_vad(const struct virtual_memory *v, const struct virtual_page *p)
{
	return v->vads.range && p->level && !p->row.raw && p->row.pte.state == PTE_EMPTY &&
	       !virtual__is_kernel_address(v, p->va);
}

/*
 * A run of them, which was explained once: a VAD may have an answer for each page. They lie in the
 * user half, so that no end wraps.
 */
static enum status give_run_by_vad(struct virtual_memory *v, const struct virtual_page *run,
				   struct err *e)
{
	const uint64_t end = run->va + run->pages * PAGE_SIZE;
	enum status st = ST_OK;

	while (!st && v->next < end) {
		struct virtual_page p = *run;

		p.va = p.row.va = v->next;
		p.pages = p.row.pages = (end - v->next) >> PAGE_SHIFT;
		st = give_by_vad(v, &p, e);
	}
	return st;
}

/* From v->next up to `last`. */
static enum status give_gap(struct virtual_memory *v, uint64_t last, struct err *e)
{
	enum status st = ST_OK;

	while (!st && !v->through && v->next <= last) {
		const uint64_t left = ((last - v->next) >> PAGE_SHIFT) + 1;
		struct virtual_page p, q;

		st = virtual__explain(v, v->next, &p, e);
		while (!st && p.pages < left) {
			st = virtual__explain(v, v->next + p.pages * PAGE_SIZE, &q, e);
			if (st || !is_as_empty(&p, &q))
				break;
			p.pages += q.pages;
		}
		if (st)
			break;
		p.pages = MIN(p.pages, left);
		p.row.va = p.va;
		p.row.pages = p.pages;
		st = is_for_vad(v, &p) ? give_run_by_vad(v, &p, e) : hand_out(v, &p, e);
	}
	return st;
}

static enum status give_row(struct virtual_memory *v, const struct smear_row *row, struct err *e)
{
	struct smear_row one = *row;
	enum status st = row->va ? give_gap(v, row->va - 1, e) : ST_OK;

	if (!st && row->pte.state == PTE_COMPRESSED && !v->reader->unread)
		return give_from_store(v, row, e);
	if (!st && is_in_file(v, row))
		return give_from_file(v, row, e);
	if (!st && !has_content(row))
		return give_nothing(v, row, e);
	if (!st && v->reader->unread)
		return give_page(v, row, e);
	one.pages = 1;
	for (uint64_t i = 0; i < row->pages && !st; i++) {
		st = give_page(v, &one, e);
		one.va += PAGE_SIZE;
		if (pte_place(&row->pte) == PLACE_FRAME)
			one.pte.frame += PAGE_SIZE;
		else if (pte_place(&row->pte) == PLACE_SLOT)
			one.pte.slot++;
	}
	return st;
}

static enum status take_mapping(struct virtual_memory *v, struct mapping *x, struct err *e)
{
	struct verdict_span span;
	enum status st = ST_OK;

	virtual__follow_prototype(v, x);
	while (!st && mapping_judge(x, &span)) {
		const struct smear_row row = mapping_row(x, &span);

		st = v->rows ? v->rows->row(v->rows->context, &row, e) : give_row(v, &row, e);
	}
	return st;
}

static enum status take_mappings(struct virtual_memory *v, uint64_t first, uint64_t last,
				 struct err *e)
{
	struct mapping_walk w;
	struct mapping x;
	enum status st = mapping_walk_range(&w, v->m, &v->space, v->request.copy, first, last, e);

	while (!st) {
		st = mapping_next(&w, &x, e);
		if (st)
			return st == ST_END ? ST_OK : st;
		st = take_mapping(v, &x, e);
	}
	return st;
}

/* The pages that [va, va + length) touches: their first and last byte. */
static enum status check_addresses(enum paging_mode mode, uint64_t va, uint64_t length,
				   uint64_t *first, uint64_t *last, struct err *e)
{
	if (!length || length - 1 > UINT64_MAX - va)
		return err_set(e, ST_USAGE,
			       "0x%" PRIx64 " and a length of %" PRIu64
			       " reach beyond the last address",
			       va, length);
	*last = va + (length - 1);
	if (paging_canonical(mode, va) != va || paging_canonical(mode, *last) != *last ||
	    va >> 63 != *last >> 63)
		return err_set(e, ST_USAGE,
			       "0x%" PRIx64 "-0x%" PRIx64
			       " is not a virtual address: tables of %d levels do not reach it",
			       va, *last, (int)mode);
	*first = va & ~(uint64_t)(PAGE_SIZE - 1);
	*last |= PAGE_SIZE - 1;
	return ST_OK;
}

/* What lies between the mappings is told only to who wants pages. */
static enum status visit_steps(struct virtual_memory *v, uint64_t first, uint64_t end,
			       struct err *e)
{
	enum status st;
	uint64_t last;

	v->next = first;
	v->through = false;
	do {
		last = MIN(end, first | (STEP_BYTES - 1));
		st = take_mappings(v, first, last, e);
		if (!st && !v->rows)
			st = give_gap(v, last, e);
		first = last + 1;
	} while (!st && last != end);
	return st;
}

enum status virtual_read(struct virtual_memory *v, uint64_t va, uint64_t length,
			 const struct virtual_reader *reader, struct virtual_counts *counts,
			 struct err *e)
{
	uint64_t first = 0, end = 0;
	const enum status st = check_addresses(v->info.mode, va, length, &first, &end, e);

	v->rows = NULL;
	v->reader = reader;
	v->counts = counts;
	return st ? st : visit_steps(v, first, end, e);
}

enum status virtual_read_rows(struct virtual_memory *v, uint64_t va, uint64_t length,
			      const struct virtual_rows *rows, struct err *e)
{
	uint64_t first = 0, end = 0;
	const enum status st = check_addresses(v->info.mode, va, length, &first, &end, e);

	v->rows = rows;
	return st ? st : visit_steps(v, first, end, e);
}
