/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/mount/process.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/examine/smear/print.h"
#include "agent/shared/container/manifest_read.h"
#include "agent/shared/program/log.h"
#include "formats/base/array.h"

/*
 * The text of pages.csv is made in pieces, one for so many addresses: at most 16,384 lines. What is
 * kept is where each piece begins, and the one that was read last.
 */
#define PIECE_BYTES (UINT64_C(1) << 26)

/* Chunks to keep, of memory and of page files each; what they take together is bounded, too. */
#define CHUNKS_MAX  256

struct piece {
	struct range range; /* of addresses, all within one multiple of PIECE_BYTES */
	uint64_t offset;    /* in pages.csv */
};

struct address_spaces {
	struct smear_input *in;
	const struct gap_view *gaps;
	size_t cache;
	pthread_mutex_t lock; /* for all below, and what processes have found out */
	uint8_t *notes;
	struct virtual_memory *v;
	const struct process_files *chosen;
	/* A piece of text. */
	const struct process_files *text_of;
	size_t text_piece;
	char *text;
	size_t text_size;
};

struct process_files {
	struct address_spaces *spaces;
	const struct smear_id *id;
	bool mapped; /* these are known: */
	struct range_list ranges;
	bool measured; /* and these: */
	struct piece *pieces;
	size_t n_pieces;
	uint64_t csv_size;
};

enum status address_spaces_create(struct smear_input *in, const struct gap_view *gaps, size_t cache,
				  struct address_spaces **ret, struct err *e)
{
	struct address_spaces *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(e);
	s->in = in;
	s->gaps = gaps;
	s->cache = cache;
	pthread_mutex_init(&s->lock, NULL);
	*ret = s;
	return ST_OK;
}

void address_spaces_destroy(struct address_spaces *s)
{
	if (!s)
		return;
	virtual_close(s->v);
	pthread_mutex_destroy(&s->lock);
	free(s->notes);
	free(s->text);
	free(s);
}

/*
 * What a process has
 */

static enum status choose_process(struct process_files *p, struct err *e)
{
	struct address_spaces *s = p->spaces;
	enum status st;

	if (s->chosen == p)
		return ST_OK;
	s->chosen = NULL;
	st = virtual_choose(s->v, p->id, e);
	if (!st)
		s->chosen = p;
	return st;
}

/*
 * Walks go on without what there was no memory to decode. Once that has happened, no file of a
 * process is given any more: an error is better than a file that lacks pages and does not say so.
 */
static enum status spaces_answer(const struct address_spaces *s, enum status st, struct err *e)
{
	return container_answer(&s->in->container, st, e);
}

/* One that has no tables has nothing mapped. */
static enum status find_mapped(struct process_files *p, struct err *e)
{
	struct range_list found = { 0 };
	bool cut = false;
	enum status st;

	if (p->mapped)
		return ST_OK;
	st = choose_process(p, e);
	if (!st)
		st = virtual_mapped(p->spaces->v, &found, &cut, e);
	st = spaces_answer(p->spaces, st, e);
	if (st && st != ST_INPUT) {
		range_list_deinit(&found);
		return st;
	}
	if (st)
		log_warning("no-tables", "%s; its memory is empty here", e->message);
	if (cut)
		log_warning("tables-cut",
			    "process %" PRIu32 " has more page tables than any process needs; "
			    "some of what they map is left out",
			    p->id->pid);
	p->ranges = found;
	p->mapped = true;
	return ST_OK;
}

/*
 * pages.csv
 */

static enum status print_csv_row(void *context, const struct smear_row *row, struct err *e)
{
	smear_print_row(row, context);
	return ST_OK;
}

/* Piece 0 is the line that names the columns. */
static enum status print_piece(struct process_files *p, size_t i, FILE *out, struct err *e)
{
	const struct virtual_rows rows = { print_csv_row, out };
	const struct range *r = &p->pieces[i].range;

	if (i)
		return virtual_read_rows(p->spaces->v, r->first, range_bytes(*r), &rows, e);
	smear_print_rows_head(out);
	return ST_OK;
}

/* Puts it into spaces->text. */
static enum status make_text(struct process_files *p, size_t i, struct err *e)
{
	struct address_spaces *s = p->spaces;
	FILE *out;
	enum status st = choose_process(p, e);

	if (st || (s->text_of == p && s->text_piece == i))
		return st;
	free(s->text);
	s->text_of = NULL;
	s->text = NULL;
	out = open_memstream(&s->text, &s->text_size);
	if (!out)
		return err_nomem(e);
	st = spaces_answer(s, print_piece(p, i, out, e), e);
	if (fclose(out) && !st)
		st = err_nomem(e);
	if (st)
		return st;
	s->text_of = p;
	s->text_piece = i;
	return ST_OK;
}

static enum status add_piece(struct process_files *p, size_t *room, struct range r, struct err *e)
{
	if (p->n_pieces == *room) {
		const size_t more = *room ? 2 * *room : 16;
		struct piece *at = realloc(p->pieces, more * sizeof(*at));

		if (!at)
			return err_nomem(e);
		p->pieces = at;
		*room = more;
	}
	p->pieces[p->n_pieces++] = (struct piece){ .range = r };
	return ST_OK;
}

/* From the first to the last mapping in each multiple of PIECE_BYTES. */
static enum status cut_pieces(struct process_files *p, struct err *e)
{
	size_t room = 0;
	enum status st = add_piece(p, &room, (struct range){ 0, 0 }, e);

	for (size_t i = 0; i < p->ranges.count && !st; i++) {
		const struct range r = p->ranges.at[i];

		for (uint64_t at = r.first, last; at <= r.last && !st; at = last + 1) {
			struct piece *back = &p->pieces[p->n_pieces - 1];

			last = MIN(r.last, at | (PIECE_BYTES - 1));
			if (p->n_pieces > 1 && back->range.first / PIECE_BYTES == at / PIECE_BYTES)
				back->range.last = last;
			else
				st = add_piece(p, &room, (struct range){ at, last }, e);
		}
	}
	return st;
}

static enum status measure_csv(struct process_files *p, struct err *e)
{
	enum status st = p->measured ? ST_OK : find_mapped(p, e);

	if (st || p->measured)
		return st;
	free(p->pieces);
	p->pieces = NULL;
	p->n_pieces = 0;
	p->csv_size = 0;
	st = cut_pieces(p, e);
	for (size_t i = 0; i < p->n_pieces && !st; i++) {
		p->pieces[i].offset = p->csv_size;
		st = make_text(p, i, e);
		if (!st)
			p->csv_size += p->spaces->text_size;
	}
	p->measured = !st;
	return st;
}

static enum status csv_measure(struct node *n, struct node_facts *ret, struct err *e)
{
	struct process_files *p = n->own;
	enum status st;

	pthread_mutex_lock(&p->spaces->lock);
	st = measure_csv(p, e);
	*ret = (struct node_facts){ p->csv_size, p->csv_size };
	pthread_mutex_unlock(&p->spaces->lock);
	return st;
}

static size_t find_piece(const struct process_files *p, uint64_t at)
{
	return FIRST_WHERE(i, p->n_pieces, p->pieces[i].offset > at) - 1;
}

/* The same container gives the same text; a damaged one may not, and that is no end. */
static enum status copy_csv(struct process_files *p, uint64_t at, uint8_t *buf, size_t len,
			    struct err *e)
{
	enum status st = measure_csv(p, e);

	for (size_t n; len && !st; len -= n, buf += n, at += n) {
		const size_t i = find_piece(p, at);
		const size_t into = (size_t)(at - p->pieces[i].offset);

		n = 0;
		st = make_text(p, i, e);
		if (st)
			break;
		if (into >= p->spaces->text_size)
			return err_set(e, ST_CORRUPT, "the container has changed");
		n = MIN(len, p->spaces->text_size - into);
		memcpy(buf, p->spaces->text + into, n);
	}
	return st;
}

static enum status csv_read(struct node *n, uint64_t at, uint8_t *buf, size_t len, struct err *e)
{
	struct process_files *p = n->own;
	enum status st;

	pthread_mutex_lock(&p->spaces->lock);
	st = copy_csv(p, at, buf, len, e);
	pthread_mutex_unlock(&p->spaces->lock);
	return st;
}

/*
 * memory
 */

static enum status memory_measure(struct node *n, struct node_facts *ret, struct err *e)
{
	struct process_files *p = n->own;
	struct address_spaces *s = p->spaces;
	enum status st;

	pthread_mutex_lock(&s->lock);
	st = find_mapped(p, e);
	*ret = (struct node_facts){ virtual_info(s->v)->user_last + 1,
				    range_list_bytes(&p->ranges) };
	pthread_mutex_unlock(&s->lock);
	return st;
}

static bool memory_next_data(struct node *n, uint64_t at, struct range *ret)
{
	struct process_files *p = n->own;
	size_t i;
	bool found;

	pthread_mutex_lock(&p->spaces->lock);
	found = !find_mapped(p, &(struct err)ERR_INIT);
	i = found ? range_list_from(&p->ranges, at) : 0;
	found = found && i < p->ranges.count;
	if (found)
		*ret = p->ranges.at[i];
	pthread_mutex_unlock(&p->spaces->lock);
	return found;
}

/* Where the bytes of a read go. */
struct memory_read {
	const struct gap_view *gaps;
	uint64_t first;
	uint64_t last;
	uint8_t *buf;
};

static void copy_page_part(const struct memory_read *r, uint64_t va, const uint8_t *page)
{
	const uint64_t from = MAX(va, r->first);
	const uint64_t to = MIN(va + (PAGE_SIZE - 1), r->last);

	memcpy(r->buf + (from - r->first), page + (from - va), (size_t)(to - from + 1));
}

static enum status copy_virtual_page(void *context, const struct virtual_page *v, struct err *e)
{
	const struct memory_read *r = context;
	uint8_t filled[PAGE_SIZE] = { 0 };

	if (v->bytes) {
		copy_page_part(r, v->va, v->bytes);
		return ST_OK;
	}
	if (v->damaged)
		return err_set(e, ST_CORRUPT, "%s", v->why);
	if (r->gaps->fail)
		return err_set(e, ST_END, "%s", v->why);
	image_fill_page(filled, &r->gaps->missing);
	for (uint64_t i = 0; i < v->pages; i++)
		copy_page_part(r, v->va + i * PAGE_SIZE, filled);
	return ST_OK;
}

static enum status read_mapped(struct process_files *p, uint64_t at, uint8_t *buf, size_t len,
			       struct err *e)
{
	const struct memory_read r = { p->spaces->gaps, at, at + (len - 1), buf };
	const struct virtual_reader reader = { copy_virtual_page, (void *)(uintptr_t)&r };
	struct virtual_counts counts = { 0 };

	return spaces_answer(p->spaces, virtual_read(p->spaces->v, at, len, &reader, &counts, e),
			     e);
}

/* What has no entry is a hole; /proc/PID/mem fails there, and so does this if gaps do. */
static enum status read_process_ranges(struct process_files *p, uint64_t at, uint8_t *buf,
				       size_t len, struct err *e)
{
	enum status st = find_mapped(p, e);

	if (!st && p->ranges.count)
		st = choose_process(p, e);
	for (size_t n; len && !st; len -= n, buf += n, at += n) {
		const size_t i = range_list_from(&p->ranges, at);
		const struct range *r = i < p->ranges.count ? &p->ranges.at[i] : NULL;

		if (r && r->first <= at) {
			n = (size_t)MIN(len, r->last - at + 1);
			st = read_mapped(p, at, buf, n, e);
			continue;
		}
		n = r ? (size_t)MIN(len, r->first - at) : len;
		if (p->spaces->gaps->fail)
			return err_set(e, ST_END, "no entry: not mapped");
		memset(buf, 0, n);
	}
	return st;
}

static enum status memory_read(struct node *n, uint64_t at, uint8_t *buf, size_t len, struct err *e)
{
	struct process_files *p = n->own;
	enum status st;

	pthread_mutex_lock(&p->spaces->lock);
	st = read_process_ranges(p, at, buf, len, e);
	pthread_mutex_unlock(&p->spaces->lock);
	return st;
}

/* The other file of the folder borrows it. */
static void free_process(void *own)
{
	struct process_files *p = own;

	range_list_deinit(&p->ranges);
	free(p->pieces);
	free(p);
}

static const struct node_ops memory_ops = {
	.measure = memory_measure,
	.read = memory_read,
	.next_data = memory_next_data,
	.free = free_process,
};

static const struct node_ops csv_ops = { .measure = csv_measure, .read = csv_read };

/*
 * Which there are
 */

/* A process that is to get a folder. */
struct listed {
	uint32_t pid;
	const struct smear_id *id; /* the tables that it runs in */
	bool shares;               /* they are counted for another one */
};

static int compare_listed(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->id->dtb > y->id->dtb) - (x->id->dtb < y->id->dtb);
}

static const struct smear_id *find_tables(const struct smear_spaces *l, uint64_t dtb)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->at[i].dtb == dtb)
			return &l->at[i];
	return NULL;
}

static size_t collect_listed(const struct smear_spaces *l, struct listed *ret)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < l->count; i++)
		if (l->at[i].listed)
			ret[n++] = (struct listed){ l->at[i].pid, &l->at[i], false };
	for (size_t i = 0; i < l->n_sharers; i++) {
		const struct smear_id *id = find_tables(l, l->sharers[i].dtb);

		if (id)
			ret[n++] = (struct listed){ l->sharers[i].pid, id, true };
	}
	if (n)
		qsort(ret, n, sizeof(*ret), compare_listed);
	/* A sharer may be there twice. */
	for (size_t i = 0; i < n; i++)
		if (!i || compare_listed(&ret[i], &ret[kept - 1]) ||
		    ret[i].shares != ret[kept - 1].shares)
			ret[kept++] = ret[i];
	return kept;
}

static void name_process(const struct listed *l, bool same_pid, char ret[static NODE_NAME_MAX])
{
	char text[NODE_NAME_MAX];

	if (l->shares || !l->id->name)
		snprintf(text, sizeof(text), "%" PRIu32, l->pid);
	else
		snprintf(text, sizeof(text), "%" PRIu32 "-%.150s", l->pid, l->id->name);
	if (same_pid)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "-0x%" PRIx64,
			 l->id->dtb);
	node_make_name(text, ret);
}

static enum status add_space_folder(struct address_spaces *s, struct node *folder, const char *name,
				    const struct smear_id *id, struct err *e)
{
	struct process_files *p = calloc(1, sizeof(*p));
	struct node *own;
	enum status st;

	if (!p)
		return err_nomem(e);
	p->spaces = s;
	p->id = id;
	st = node_add_folder(folder, name, &own, e);
	if (st) {
		free(p);
		return st;
	}
	st = node_add_file(own, "memory", &memory_ops, p, e);
	if (!st)
		st = node_add_file(own, "pages.csv", &csv_ops, p, e);
	return st ? st : node_finish(own, e);
}

static enum status add_space_folders(struct address_spaces *s, struct node *folder, struct err *e)
{
	const struct smear_spaces *l = virtual_spaces(s->v);
	_cleanup_free_ struct listed *at = calloc(l->count + l->n_sharers + 1, sizeof(*at));
	const size_t n = at ? collect_listed(l, at) : 0;
	char name[NODE_NAME_MAX];
	enum status st = at ? ST_OK : err_nomem(e);

	for (size_t i = 0; i < n && !st; i++) {
		const bool same = (i && at[i - 1].pid == at[i].pid) ||
				  (i + 1 < n && at[i + 1].pid == at[i].pid);

		name_process(&at[i], same, name);
		st = add_space_folder(s, folder, name, at[i].id, e);
	}
	return st;
}

static enum status open_virtual(struct address_spaces *s, struct err *e)
{
	struct virtual_plan plan = {
		.in = s->in->container.blob,
		.reader = s->in->container.reader,
		.manifest = s->in->lines,
		.cached = CHUNKS_MAX,
		.cached_bytes = MAX(s->cache / 2, 1),
		.chosen_later = true,
		.copy = COPY_IMAGE,
	};
	enum status st = manifest_get_notes(container_event(&s->in->container, "begin"), &s->notes,
					    &plan.notes_size, e);

	plan.notes = s->notes;
	return st ? st : virtual_open(&plan, &s->v, e);
}

enum status address_spaces_list(struct address_spaces *s, struct node *folder, struct err *e)
{
	enum status st, finished;

	pthread_mutex_lock(&s->lock);
	st = open_virtual(s, e);
	if (!st)
		st = add_space_folders(s, folder, e);
	st = spaces_answer(s, st, e);
	pthread_mutex_unlock(&s->lock);
	finished = node_finish(folder, e);
	return st ? st : finished;
}
