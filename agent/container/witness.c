/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/container/witness.h"

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
	const char *id, *root;
	struct witnessed *ret;
};

static const char *text_of(json_t *line, const char *key)
{
	const char *text = json_string_value(json_object_get(line, key));

	return text ? text : "";
}

static enum status look(void *arg, json_t *line, struct err *e)
{
	const struct search *s = arg;
	struct witnessed *w = s->ret;
	const json_int_t whole = json_integer_value(json_object_get(line, "whole_bytes"));

	if (strcmp(text_of(line, "event"), "complete") != 0 ||
	    strcmp(text_of(line, "container"), s->id) != 0 || w->same_root)
		return ST_OK;
	w->known = true;
	w->same_root = !strcmp(text_of(line, "root"), s->root);
	w->whole = whole > 0 ? (uint64_t)whole : 0;
	snprintf(w->time, sizeof(w->time), "%s", text_of(line, "time"));
	snprintf(w->peer, sizeof(w->peer), "%s", text_of(line, "peer"));
	snprintf(w->root, sizeof(w->root), "%s", text_of(line, "root"));
	return ST_OK;
}

enum status witness_find(const char *path, const char *id, const char *root, struct witnessed *ret,
			 struct err *e)
{
	struct search s = { .id = id, .root = root, .ret = ret };
	struct file_blob in;
	uint64_t strange;
	bool ends;
	enum status st = file_blob_open(&in, path, e);

	*ret = (struct witnessed){ 0 };
	if (st)
		return err_add(e, st, "%s", path);
	st = witness_read(&in.blob, look, &s, &strange, &ends, e);
	file_blob_deinit(&in);
	return st ? err_add(e, st, "%s", path) : ST_OK;
}
