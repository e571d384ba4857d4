/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/container/witness.h"

#include <string.h>

#define STEP ((size_t)64 * 1024)

struct reading {
	enum status (*fn)(void *arg, json_t *line, struct err *e);
	void *arg;
	uint64_t strange, good;
	char line[WITNESS_LINE_MAX];
	size_t len; /* so far; WITNESS_LINE_MAX: it is too long */
};

static enum status end_line(struct reading *r, struct err *e)
{
	json_t *line = r->len < WITNESS_LINE_MAX
			       ? json_loadb(r->line, r->len, JSON_REJECT_DUPLICATES, NULL)
			       : NULL;
	enum status st = ST_OK;

	if (json_is_object(line)) {
		r->good++;
		st = r->fn(r->arg, line, e);
	} else {
		r->strange++;
	}
	json_decref(line);
	r->len = 0;
	return st;
}

static enum status take_witness_text(struct reading *r, const char *p, size_t len, struct err *e)
{
	enum status st = ST_OK;

	for (; len && !st; p++, len--) {
		if (*p == '\n')
			st = end_line(r, e);
		else if (r->len < WITNESS_LINE_MAX)
			r->line[r->len++] = *p;
	}
	return st;
}

static enum status read_witness_lines(struct reading *r, struct blob *in, struct err *e)
{
	_cleanup_free_ char *buf = malloc(STEP);
	enum status st = buf ? ST_OK : err_nomem(e);
	size_t got = 1;

	for (uint64_t at = 0; !st && got; at += got) {
		st = in->read_at(in, at, buf, STEP, &got, e);
		if (!st)
			st = take_witness_text(r, buf, got, e);
	}
	return st;
}

enum status witness_read(struct blob *in, enum status (*fn)(void *arg, json_t *line, struct err *e),
			 void *arg, uint64_t *ret_strange, bool *ret_ends, struct err *e)
{
	struct reading *r = calloc(1, sizeof(*r));
	enum status st;

	if (!r)
		return err_nomem(e);
	r->fn = fn;
	r->arg = arg;
	st = read_witness_lines(r, in, e);
	*ret_ends = !r->len;
	if (!st && r->len)
		st = end_line(r, e);
	*ret_strange = r->strange;
	if (!st && r->strange && !r->good)
		st = err_set(e, ST_INPUT, "is not a log of ramseal receive");
	free(r);
	return st;
}

struct witness_log {
	struct witness_line *lines; /* by_container() */
	size_t n, room;
};

static const char *witness_text(json_t *line, const char *key)
{
	const char *text = json_string_value(json_object_get(line, key));

	return text ? text : "";
}

static enum status add_witness_line(struct witness_log *l, const struct witness_line *line,
				    struct err *e)
{
	if (l->n == l->room) {
		const size_t room = l->room ? 2 * l->room : 64;
		struct witness_line *grown = realloc(l->lines, room * sizeof(*grown));

		if (!grown)
			return err_nomem(e);
		l->lines = grown;
		l->room = room;
	}
	l->lines[l->n] = *line;
	l->lines[l->n].number = l->n;
	l->n++;
	return ST_OK;
}

static enum status take_line(void *arg, json_t *line, struct err *e)
{
	const char *container = witness_text(line, "container");
	const json_int_t whole = json_integer_value(json_object_get(line, "whole_bytes"));
	struct witness_line l = { .whole = whole > 0 ? (uint64_t)whole : 0 };

	if (strcmp(witness_text(line, "event"), "complete") != 0 ||
	    strlen(container) != sizeof(l.container) - 1)
		return ST_OK;
	snprintf(l.container, sizeof(l.container), "%s", container);
	snprintf(l.time, sizeof(l.time), "%s", witness_text(line, "time"));
	snprintf(l.peer, sizeof(l.peer), "%s", witness_text(line, "peer"));
	snprintf(l.root, sizeof(l.root), "%s", witness_text(line, "root"));
	return add_witness_line(arg, &l, e);
}

static bool has_line_root(const struct witness_line *l)
{
	return l->root[strspn(l->root, "0")] != '\0';
}

/* Those with a root first; otherwise as they were written. */
static int by_container(const void *a, const void *b)
{
	const struct witness_line *x = a, *y = b;
	const int order = strcmp(x->container, y->container);

	if (order || has_line_root(x) != has_line_root(y))
		return order ? order : has_line_root(y) - has_line_root(x);
	return (x->number > y->number) - (x->number < y->number);
}

enum status witness_log_open(const char *path, struct witness_log **ret, struct err *e)
{
	struct witness_log *l = calloc(1, sizeof(*l));
	struct file_blob in;
	uint64_t strange;
	bool ends;
	enum status st = l ? file_blob_open(&in, path, e) : err_nomem(e);

	if (st) {
		free(l);
		return err_add(e, st, "%s", path);
	}
	st = witness_read(&in.blob, take_line, l, &strange, &ends, e);
	file_blob_deinit(&in);
	if (st) {
		witness_log_close(l);
		return err_add(e, st, "%s", path);
	}
	if (l->n)
		qsort(l->lines, l->n, sizeof(*l->lines), by_container);
	*ret = l;
	return ST_OK;
}

void witness_log_close(struct witness_log *l)
{
	if (!l)
		return;
	free(l->lines);
	free(l);
}

/* The first line whose container is not before `id`. */
static size_t find_first_line(const struct witness_log *l, const char *id)
{
	size_t from = 0, to = l->n;

	while (from < to) {
		const size_t middle = from + (to - from) / 2;

		if (strcmp(l->lines[middle].container, id) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

void witness_find(const struct witness_log *l, const char *id, struct witnessed *ret)
{
	const size_t first = find_first_line(l, id);

	*ret = (struct witnessed){ .lines = l->lines ? l->lines + first : NULL };
	for (size_t i = first; i < l->n && !strcmp(l->lines[i].container, id); i++) {
		if (has_line_root(&l->lines[i]))
			ret->n++;
		else
			ret->without_root++;
	}
}

/*
 * Lines with another root, by the number of bytes that it is over.
 */

static int by_length(const void *a, const void *b)
{
	const struct witness_line *const *x = a, *const *y = b;

	return ((*x)->whole > (*y)->whole) - ((*x)->whole < (*y)->whole);
}

static void note_witness(struct witnessed *w, const struct witness_line *l, bool agrees)
{
	if (agrees) {
		w->same = l;
		return;
	}
	if (!w->other || l < w->other)
		w->other = l;
	w->others++;
}

/* The payloads were checked, and so the headers say it all. */
static enum status compare_parts(struct witnessed *w, const struct witness_line *const *parts,
				 size_t n, struct blob *in, struct err *e)
{
	struct rsz_scan *scan = NULL;
	struct rsz_record rec;
	enum status st = rsz_scan_create(in, &scan, e);
	size_t i = 0;

	while (!st && i < n) {
		char root[SHA256_HEX_SIZE] = "";
		uint8_t bytes[SHA256_SIZE];
		uint64_t end;

		st = rsz_scan_next(scan, &rec, e);
		if (st)
			break;
		end = rec.offset + rec.header_length + rec.stored;
		if (parts[i]->whole == end) {
			rsz_scan_root(scan, bytes);
			sha256_hex(bytes, root);
		}
		for (; i < n && parts[i]->whole <= end; i++)
			note_witness(w, parts[i], !strcmp(parts[i]->root, root));
	}
	for (; i < n && st == ST_END; i++)
		note_witness(w, parts[i], false);
	rsz_scan_destroy(scan);
	return st == ST_END ? ST_OK : st;
}

enum status witness_compare(struct witnessed *w, struct blob *in, bool again,
			    const struct rsz_scan_result *end, struct err *e)
{
	_cleanup_free_ const struct witness_line **parts = calloc(w->n + 1, sizeof(*parts));
	const struct witness_line *whole = NULL;
	char root[SHA256_HEX_SIZE];
	enum status st = ST_OK;
	size_t n = 0;

	if (!parts)
		return err_nomem(e);
	sha256_hex(end->root, root);
	for (size_t i = 0; i < w->n; i++) {
		const struct witness_line *l = &w->lines[i];

		if (!strcmp(l->root, root))
			whole = whole ? whole : l;
		else if (l->whole < end->whole && again)
			parts[n++] = l;
		else if (l->whole < end->whole || end->end != RSZ_END_SEALED)
			w->unknown++;
		else
			note_witness(w, l, false);
	}
	qsort(parts, n, sizeof(*parts), by_length);
	if (n)
		st = compare_parts(w, parts, n, in, e);
	if (whole)
		w->same = whole;
	return st;
}
