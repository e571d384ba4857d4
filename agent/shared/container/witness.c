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

static enum status take_text(struct reading *r, const char *p, size_t len, struct err *e)
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

static enum status read_lines(struct reading *r, struct blob *in, struct err *e)
{
	_cleanup_free_ char *buf = malloc(STEP);
	enum status st = buf ? ST_OK : err_nomem(e);
	size_t got = 1;

	for (uint64_t at = 0; !st && got; at += got) {
		st = in->read_at(in, at, buf, STEP, &got, e);
		if (!st)
			st = take_text(r, buf, got, e);
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
	st = read_lines(r, in, e);
	*ret_ends = !r->len;
	if (!st && r->len)
		st = end_line(r, e);
	*ret_strange = r->strange;
	if (!st && r->strange && !r->good)
		st = err_set(e, ST_INPUT, "is no log of ramseal receive");
	free(r);
	return st;
}

struct search {
	const char *id;
	struct witnessed *ret;
	size_t room;
};

static const char *text_of(json_t *line, const char *key)
{
	const char *text = json_string_value(json_object_get(line, key));

	return text ? text : "";
}

static enum status add(struct search *s, const struct witness_line *line, struct err *e)
{
	struct witnessed *w = s->ret;

	if (w->n == s->room) {
		const size_t room = s->room ? 2 * s->room : 4;
		struct witness_line *grown = realloc(w->lines, room * sizeof(*grown));

		if (!grown)
			return err_nomem(e);
		w->lines = grown;
		s->room = room;
	}
	w->lines[w->n++] = *line;
	return ST_OK;
}

static enum status look(void *arg, json_t *line, struct err *e)
{
	struct search *s = arg;
	const json_int_t whole = json_integer_value(json_object_get(line, "whole_bytes"));
	struct witness_line l = { .whole = whole > 0 ? (uint64_t)whole : 0 };

	if (strcmp(text_of(line, "event"), "complete") != 0 ||
	    strcmp(text_of(line, "container"), s->id) != 0)
		return ST_OK;
	snprintf(l.time, sizeof(l.time), "%s", text_of(line, "time"));
	snprintf(l.peer, sizeof(l.peer), "%s", text_of(line, "peer"));
	snprintf(l.root, sizeof(l.root), "%s", text_of(line, "root"));
	if (l.root[strspn(l.root, "0")])
		return add(s, &l, e);
	s->ret->without_root++;
	return ST_OK;
}

enum status witness_find(const char *path, const char *id, struct witnessed *ret, struct err *e)
{
	struct search s = { .id = id, .ret = ret };
	struct file_blob in;
	uint64_t strange;
	bool ends;
	enum status st = file_blob_open(&in, path, e);

	*ret = (struct witnessed){ 0 };
	if (st)
		return err_add(e, st, "%s", path);
	st = witness_read(&in.blob, look, &s, &strange, &ends, e);
	file_blob_deinit(&in);
	if (st)
		witness_deinit(ret);
	return st ? err_add(e, st, "%s", path) : ST_OK;
}

void witness_deinit(struct witnessed *w)
{
	free(w->lines);
	*w = (struct witnessed){ 0 };
}

/*
 * Lines with another root, by the number of bytes that it is over.
 */

static int by_length(const void *a, const void *b)
{
	const struct witness_line *const *x = a, *const *y = b;

	return ((*x)->whole > (*y)->whole) - ((*x)->whole < (*y)->whole);
}

static void take(struct witnessed *w, const struct witness_line *l, bool agrees)
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
			take(w, parts[i], !strcmp(parts[i]->root, root));
	}
	for (; i < n && st == ST_END; i++)
		take(w, parts[i], false);
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
			take(w, l, false);
	}
	qsort(parts, n, sizeof(*parts), by_length);
	if (n)
		st = compare_parts(w, parts, n, in, e);
	if (whole)
		w->same = whole;
	return st;
}
