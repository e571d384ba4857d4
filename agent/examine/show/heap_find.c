/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/heap_find.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/examine/show/block_content.h"
#include "agent/examine/show/block_window.h"
#include "agent/examine/show/heap_roots.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"
#include "formats/base/bytes.h"
#include "tsk-extract/name.h"

/* As a global variable's. */
static void put_outside(const struct heap_session *s, uint64_t at)
{
	char place[HEAP_PLACE_TEXT];

	heap_place_text(s, at, place);
	lines_print(stdout, 4, "0x%012" PRIx64 "  in no known allocation%s%s", at,
		    modules_at(&s->modules, at) ? "; " : "",
		    modules_at(&s->modules, at) ? place : "");
}

#define WINDOW_BEFORE 32 /* bytes that --referrers shows in front of a reference */
#define WINDOW_BYTES  96

static void put_referrer(struct block_printer *p, const struct block_list *l,
			 const struct heap_allocation *a, uint64_t at)
{
	struct block_window w = { .session = p->session, .list = l, .block = a };
	char note[WORD_NOTE_TEXT];

	word_note_text(p->session, l, NULL, at, note);
	lines_print(stdout, 4, "0x%012" PRIx64 "  %s", at, note);
	if (!p->windows)
		return;
	block_window_around(&w, at, WINDOW_BEFORE, WINDOW_BYTES);
	block_window_print(&w);
}

static json_t *reference_json(struct block_printer *p, const struct heap_allocation *a, uint64_t at)
{
	struct block_worth w;
	json_t *o;

	if (!a)
		return json_fields(JSON_FIELDS(
			FIELD_SCHEMA("heap-block"), field_made("reference", heap_hex(at)),
			field_made("outside", heap_place_json(p->session, at))));
	block_judge(p, a, &w);
	o = block_json(p, a, &w);
	if (!json_add_fields(o, JSON_FIELDS(field_made("reference", heap_hex(at)),
					    field_u64("offset", at - a->address))))
		return json_decref(o), NULL;
	return o;
}

enum status heap_tell_place(struct block_printer *p, const struct block_list *l, uint64_t at,
			    const struct json_field *more, struct err *e)
{
	const struct heap_allocation *a = block_list_find(l, at);
	json_t *o;

	if (p->json) {
		o = reference_json(p, a, at);
		if (more && !json_add_fields(o, more))
			return json_decref(o), err_nomem(e);
		return json_print(o, JSON_COMPACT, e);
	}
	if (a)
		put_referrer(p, l, a, at);
	else
		put_outside(p->session, at);
	return ST_OK;
}

/* Bytes that are looked for at multiples of `step`. */
struct needle {
	uint8_t bytes[HEAP_FIND_MAX];
	size_t size;
	size_t step;
	uint64_t places;      /* where they were found */
	uint64_t pages, lost; /* that were searched, and that could not be */
	uint64_t on_disk;     /* that only a mapped file has */
	bool *blocks; /* of the list: set for those with a part of it. NULL: places are told */
};

/* Every block that has some of what was found. */
static void mark_blocks(const struct block_list *l, uint64_t at, const struct needle *n)
{
	const struct heap_allocation *a = block_list_before(l, at);

	for (size_t i = a ? (size_t)(a - l->at) : 0;
	     i < l->count && l->at[i].address < at + n->size; i++)
		if (l->at[i].address + block_bytes(&l->at[i]) > at)
			n->blocks[i] = true;
}

static enum status search_bytes(struct block_printer *p, const struct block_list *l, uint64_t va,
				const uint8_t *bytes, size_t len, struct needle *n, struct err *e)
{
	enum status st = ST_OK;

	for (size_t at = 0; at + n->size <= len && !st; at += n->step)
		if (bytes[at] == n->bytes[0] && !memcmp(bytes + at, n->bytes, n->size)) {
			n->places++;
			if (n->blocks)
				mark_blocks(l, va + at, n);
			else
				st = heap_tell_place(p, l, va + at, NULL, e);
		}
	return st;
}

void heap_count_missing(const struct peek_page *page, uint64_t *on_disk, uint64_t *lost)
{
	if (page && page->absent)
		return;
	if (page && (page->state == PTE_SUBSECTION || page->state == PTE_FILE_BACKED))
		++*on_disk;
	else
		++*lost;
}

/*
 * Page by page; what may lie across an end is kept for the next one. It is copied, because a page
 * is only there until something else is read.
 */
static enum status search_needle_in_range(struct block_printer *p, const struct block_list *l,
					  const struct range *r, struct needle *n, struct err *e)
{
	uint8_t bytes[HEAP_FIND_MAX + PAGE_SIZE];
	const size_t across = n->step == 1 ? n->size - 1 : 0;
	size_t kept = 0;
	enum status st = ST_OK;

	for (uint64_t va = r->first; va < r->last && !st; va += PAGE_SIZE) {
		const struct peek_page *page = peek_page(p->session->peek, va);

		if (interrupted())
			return interrupt_status(e);
		if (!page || !page->bytes) {
			heap_count_missing(page, &n->on_disk, &n->lost);
			kept = 0;
			continue;
		}
		n->pages++;
		memcpy(bytes + kept, page->bytes, PAGE_SIZE);
		st = search_bytes(p, l, va - kept, bytes, kept + PAGE_SIZE, n, e);
		memmove(bytes, bytes + kept + PAGE_SIZE - across, across);
		kept = across;
	}
	return st;
}

static enum status search_needle(struct block_printer *p, const struct block_list *l,
				 struct needle *n, struct err *e)
{
	struct heap_roots all;
	enum status st = heap_writable_find(p->session, &all, e);

	for (size_t i = 0; i < all.ranges.count && !st; i++)
		st = search_needle_in_range(p, l, &all.ranges.at[i], n, e);
	heap_roots_deinit(&all);
	return st;
}

enum status heap_search_outcome(const struct heap_session *s, uint64_t lost, struct err *e)
{
	return lost ? err_set(e, ST_UNREADABLE,
			      "%s: %" PRIu64
			      " pages could not be searched; their contents are not known",
			      s->process->path, lost)
		    : ST_OK;
}

/* What was not searched may hold it, too. */
static enum status tell_search(const struct heap_session *s, const struct needle *n, struct err *e)
{
	log_result_with(JSON_FIELDS(field_u64("places", n->places),
				    field_u64("pages_searched", n->pages),
				    field_u64("pages_lost", n->lost),
				    field_u64("pages_on_disk_only", n->on_disk)),
			"summary",
			"%" PRIu64 " place%s in %" PRIu64 " pages; %" PRIu64
			" pages could not be read, %" PRIu64 " are only in mapped files",
			n->places, n->places == 1 ? "" : "s", n->pages, n->lost, n->on_disk);
	return heap_search_outcome(s, n->lost, e);
}

bool heap_is_narrow(const struct heap_session *s, const struct block_list *l, uint64_t va)
{
	const struct heap_allocation *a = block_list_find(l, va);

	/* Code of 32 bits can refer to any address of its own half, block or not. */
	return a ? !heaps_at(s->heaps, a->heap)->wide
		 : process_facts(s->process->process)->peb32 && va <= UINT32_MAX;
}

enum status heap_referrers(struct block_printer *p, const struct heap_session *s,
			   const struct block_list *l, uint64_t va, struct err *e)
{
	struct needle n = { .size = heap_is_narrow(s, l, va) ? 4 : 8 };

	enum status st;

	n.step = n.size;
	put_le64(n.bytes, va);
	st = search_needle(p, l, &n, e);
	return st ? st : tell_search(s, &n, e);
}

/*
 * Content
 */

static bool parse_needle_hex(const char *hex, struct needle *ret)
{
	const size_t digits = strlen(hex);

	ret->size = digits / 2;
	return digits && digits % 2 == 0 && ret->size <= HEAP_FIND_MAX &&
	       text_from_hex(hex, digits, ret->bytes);
}

/* As UTF-16, which is what most texts of Windows are. */
static bool parse_wide(const char *text, struct needle *ret)
{
	struct name units;

	if (!name_from_utf8(text, strlen(text), &units) || 2 * units.count > HEAP_FIND_MAX)
		return false;
	for (size_t i = 0; i < units.count; i++)
		put_le16(ret->bytes + 2 * i, units.unit[i]);
	ret->size = 2 * units.count;
	return true;
}

/* As UTF-16, then as it was given. */
static enum status find_text(struct block_printer *p, const struct block_list *l, const char *what,
			     struct needle *n, struct err *e)
{
	struct needle bytes = { .step = 1, .size = strlen(what), .blocks = n->blocks };
	enum status st = search_needle(p, l, n, e);

	memcpy(bytes.bytes, what, bytes.size);
	st = st ? st : search_needle(p, l, &bytes, e);
	n->places += bytes.places;
	return st;
}

/* A text or bytes. `blocks`: as in struct needle. */
static enum status search_content(struct block_printer *p, const struct block_list *l,
				  const char *what, bool *blocks, struct needle *n, struct err *e)
{
	const bool hex = !strncmp(what, HEAP_FIND_HEX, strlen(HEAP_FIND_HEX));

	*n = (struct needle){ .step = 1, .blocks = blocks };
	if (hex && !parse_needle_hex(what + strlen(HEAP_FIND_HEX), n))
		return err_set(e, ST_USAGE, "--find: '%s' is not 1 to %d bytes as hex:4d5a", what,
			       HEAP_FIND_MAX);
	if (!hex && (!*what || strlen(what) > HEAP_FIND_MAX || !parse_wide(what, n)))
		return err_set(e, ST_USAGE,
			       "--find: needs 1 to %d characters, of at most %d bytes as UTF-8",
			       HEAP_FIND_MAX / 2, HEAP_FIND_MAX);
	return hex ? search_needle(p, l, n, e) : find_text(p, l, what, n, e);
}

enum status heap_find(struct block_printer *p, const struct heap_session *s,
		      const struct block_list *l, const char *what, struct err *e)
{
	struct needle n;
	const enum status st = search_content(p, l, what, NULL, &n, e);

	return st ? st : tell_search(s, &n, e);
}

enum status heap_find_blocks(struct block_printer *p, const struct heap_session *s,
			     const struct block_list *l, const char *what, struct err *e)
{
	_cleanup_free_ bool *blocks = calloc(MAX(l->count, 1), sizeof(*blocks));
	struct needle n;
	enum status st = blocks ? search_content(p, l, what, blocks, &n, e) : err_nomem(e);

	for (size_t i = 0; i < l->count && !st; i++)
		if (blocks[i])
			st = block_printer_take(p, &l->at[i], e);
	if (!st)
		st = block_printer_end(p, e);
	return st ? st : tell_search(s, &n, e);
}
