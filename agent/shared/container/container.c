/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/container/container.h"

#include <stdio.h>
#include <string.h>

#include "agent/shared/container/manifest_read.h"
#include "agent/shared/container/sums.h"
#include "agent/shared/program/json.h"
#include "formats/base/words.h"

static enum status read_manifest_lines(struct rsz_cursor *cursor, uint32_t stream,
				       struct manifest_lines *l, struct err *e)
{
	const uint8_t *text;
	uint64_t at = 0;
	size_t len = 0;
	enum status st = ST_OK;

	while (!st) {
		st = rsz_cursor_next_text(cursor, stream, &at, &text, &len, e);
		if (!st)
			st = manifest_lines_take(l, (const char *)text, len, e);
		else if (st == ST_CORRUPT)
			st = manifest_lines_miss(l, len);
	}
	manifest_lines_end(l);
	return st == ST_END ? ST_OK : st;
}

static enum status load_manifest(struct container *c, struct manifest_lines *l, struct err *e)
{
	struct rsz_cursor *cursor = NULL;
	uint32_t stream;
	enum status st;

	if (container_find_kind(c, RSZ_KIND_MANIFEST, &stream, NULL))
		return ST_OK; /* cut off before it was declared */
	st = rsz_cursor_create(c->reader, 1, &cursor, e);
	if (!st)
		st = read_manifest_lines(cursor, stream, l, e);
	rsz_cursor_destroy(cursor);
	manifest_lines_deinit(l);
	return st;
}

enum status container_lines(struct container *c, const char *const *names, json_t **ret,
			    struct err *e)
{
	struct manifest_lines lines = { .list = json_array(), .names = names };
	const enum status st = lines.list ? load_manifest(c, &lines, e) : err_nomem(e);

	if (st)
		json_decref(lines.list);
	else
		*ret = lines.list;
	return st;
}

static enum status open_container_reader(struct container *c, struct container_sums *sums,
					 struct err *e)
{
	uint32_t memory;
	enum status st = ST_OK;

	c->blob = c->in->blob;
	if (c->in->forward) {
		st = outline_read(c->blob, &c->outline, e);
		c->blob = st ? NULL : outline_blob(c->outline);
	}
	if (!st && sums)
		st = container_sums_open(c->blob, &c->reader, sums, e);
	else if (!st)
		st = rsz_reader_open(c->blob, RSZ_TRUST_NOTHING, &c->reader, e);
	if (st)
		return st;
	c->end = *rsz_reader_end(c->reader);
	c->identity = *rsz_reader_identity(c->reader);
	c->has_memory = !container_find_kind(c, RSZ_KIND_MEMORY, &memory, NULL);
	return load_manifest(c, &(struct manifest_lines){ .events = c->events }, e);
}

/* `sums`: NULL if they are not wanted. */
static enum status open_container_input(const struct input_options *o, struct container *ret,
					struct container_sums *sums, struct err *e)
{
	enum status st;

	*ret = (struct container){ 0 };
	st = input_open(o, &ret->in, e);
	if (st)
		return st;
	st = open_container_reader(ret, sums, e);
	if (!st)
		return ST_OK;
	container_close(ret);
	return err_add(e, st, "%s", input_name(o->path));
}

enum status container_open(const char *path, const struct age_identities *x, struct container *ret,
			   struct err *e)
{
	const struct input_options how = { .path = path, .identities = x };

	return open_container_input(&how, ret, NULL, e);
}

enum status container_open_outline(const char *path, const struct age_identities *x,
				   struct container *ret, struct container_sums *sums,
				   struct err *e)
{
	const struct input_options how = { .path = path, .forward = true, .identities = x };

	return open_container_input(&how, ret, sums, e);
}

void container_close(struct container *c)
{
	for (size_t i = 0; i < MANIFEST_EVENTS; i++)
		json_decref(c->events[i]);
	rsz_reader_close(c->reader);
	outline_destroy(c->outline);
	input_close(c->in);
	*c = (struct container){ 0 };
}

enum status container_answer(const struct container *c, enum status st, struct err *e)
{
	if (st == ST_INTERRUPTED || st == ST_OUTPUT || st == ST_NOMEM)
		return st;
	return rsz_reader_starved(c->reader, e) ? ST_NOMEM : st;
}

json_t *container_event(const struct container *c, const char *event)
{
	for (size_t i = 0; i < MANIFEST_EVENTS; i++)
		if (!strcmp(manifest_event_names[i], event))
			return c->events[i];
	return NULL;
}

static bool is_container_sealed(const struct container *c)
{
	return c->end.end == RSZ_END_SEALED;
}

/*
 * Pages that could not be read are gaps within an acquisition that is complete. Its last line comes
 * behind all else: where it is, sealing later has added an end and no more.
 */
bool container_is_complete(const struct container *c)
{
	const json_t *code = json_object_get(container_event(c, "end"), "exit_code");

	return is_container_sealed(c) && json_is_integer(code) &&
	       (json_integer_value(code) == EXIT_COMPLETE || json_integer_value(code) == EXIT_GAPS);
}

json_t *container_acquisition_json(const struct container *c)
{
	static const char *const keys[] = { "exit_code", "outcome",     "message",
					    "sleeps",    "clock_steps", NULL };
	const json_t *line = container_event(c, "end");
	json_t *o = line ? json_object() : json_null();

	for (const char *const *key = keys; line && *key; key++)
		json_object_set(o, *key, json_object_get(line, *key));
	return o;
}

enum status container_outcome(const struct container *c, struct err *e)
{
	const json_t *line = container_event(c, "end");
	const char *outcome = json_string_value(json_object_get(line, "outcome"));
	const char *message = json_string_value(json_object_get(line, "message"));

	if (!line || !outcome)
		return err_set(e, ST_PARTIAL, "the acquisition did not finish");
	if (!container_is_complete(c))
		return err_set(e, ST_PARTIAL, "acquisition: %.150s%s%.300s", outcome,
			       message && *message ? ": " : "", message ? message : "");
	if (!c->has_memory)
		return err_set(e, ST_PARTIAL, "holds no memory");
	return ST_OK;
}

json_t *container_end_json(const struct container *c)
{
	const struct rsz_scan_result *end = &c->end;
	const bool later = is_container_sealed(c) && container_event(c, "sealed_later");

	return json_pack("{s:s, s:o, s:o}", "end", later ? "sealed later" : rsz_end_name(end->end),
			 "reason", json_text(end->reason), "acquisition",
			 container_acquisition_json(c));
}

/* The parts of a range that are not in `has`, which is in order. */
static enum status add_missing_parts(const struct range_list *has, const struct range *of,
				     struct range_list *ret, struct err *e)
{
	uint64_t at = of->first;
	enum status st = ST_OK;

	for (size_t i = 0; !st && i < has->count && has->at[i].first <= of->last; i++) {
		if (has->at[i].last < at)
			continue;
		if (has->at[i].first > at)
			st = range_list_add(ret, at, has->at[i].first - 1, e);
		at = has->at[i].last + 1;
	}
	return st || at > of->last ? st : range_list_add(ret, at, of->last, e);
}

enum status container_missing(const struct container *c, struct range_list *ret, struct err *e)
{
	_cleanup_ranges_ struct range_list map = { 0 }, has = { 0 };
	uint32_t stream = UINT32_MAX;
	enum status st = manifest_get_map(container_event(c, "begin"), &map, e);

	if (!st && !container_find_kind(c, RSZ_KIND_MEMORY, &stream, NULL))
		st = rsz_reader_ranges(c->reader, stream, &has, e);
	for (size_t i = 0; i < map.count && !st; i++)
		st = add_missing_parts(&has, &map.at[i], ret, e);
	return st;
}

enum status container_find_kind(const struct container *c, enum rsz_kind kind, uint32_t *ret,
				struct err *e)
{
	for (uint32_t i = 0; i < rsz_reader_streams(c->reader); i++) {
		if (rsz_reader_stream(c->reader, i)->kind == (uint32_t)kind) {
			*ret = i;
			return ST_OK;
		}
	}
	return err_set(e, ST_INPUT, "holds no stream of %s", rsz_kind_name(kind));
}

/* "memory", "pagefile.sys", …: as many as there is room for. */
static void list_names(const struct container *c, char *ret, size_t size)
{
	const size_t count = rsz_reader_streams(c->reader);
	size_t len = 0;

	ret[0] = '\0';
	for (uint32_t i = 0; i < count; i++) {
		const char *name = rsz_reader_stream(c->reader, i)->name;

		if (strlen(name) + sizeof("\"\", …") > size - len) {
			snprintf(ret + len, size - len, "…");
			return;
		}
		len += (size_t)snprintf(ret + len, size - len, "\"%s\"%s", name,
					i + 1 < count ? ", " : "");
	}
	if (!count)
		snprintf(ret, size, "none");
}

static const char *stream_at(const void *of, size_t i)
{
	const struct container *c = of;

	return i < rsz_reader_streams(c->reader) ? rsz_reader_stream(c->reader, (uint32_t)i)->name
						 : NULL;
}

enum status container_find_name(const struct container *c, const char *name, uint32_t *ret,
				struct err *e)
{
	char names[256], hint[WORDS_HINT_MAX];

	for (uint32_t i = 0; i < rsz_reader_streams(c->reader); i++) {
		if (!strcmp(rsz_reader_stream(c->reader, i)->name, name)) {
			*ret = i;
			return ST_OK;
		}
	}
	list_names(c, names, sizeof(names));
	words_hint(stream_at, c, "", name, strlen(name), hint);
	return err_set(e, ST_INPUT, "holds no stream \"%.100s\"%s; it has %s", name, hint, names);
}
