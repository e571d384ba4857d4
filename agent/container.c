/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/container.h"

#include <stdio.h>
#include <string.h>

#include "agent/acquire/manifest.h"
#include "agent/program/log.h"

/*
 * A container may hold gigabytes of text in a few kilobytes, so the manifest is read piece by piece,
 * and of its lines only those are parsed that are asked for. A line with a hundred thousand ranges
 * has 10 MB and three values for each of them. In memory a value takes some 250 bytes at worst.
 */
#define MANIFEST_BYTES_MAX ((size_t)64 << 20)
#define LINE_BYTES_MAX     ((size_t)16 << 20)
#define LINE_VALUES_MAX    ((size_t)1 << 19)

static const char *const event_names[CONTAINER_EVENTS] = { "begin", "end", "sealed_later" };

/* Not less than the JSON values in the text. */
static size_t count_values(const char *text, size_t len)
{
	size_t n = 1;

	for (size_t i = 0; i < len; i++)
		n += text[i] == '{' || text[i] == '[' || text[i] == ',';
	return n;
}

/* More lines of the wanted events than any acquisition writes. */
#define LINES_MAX ((size_t)4096)

/* The line that the pieces read so far have begun. */
struct line {
	char *text;
	size_t len;
	size_t room;
	bool lost; /* too long */

	/* NULL: the first line of each event goes into the container; else these go in here. */
	json_t *list;
	const char *const *names; /* ended by NULL */
};

static bool is_named(const char *const *names, const char *event)
{
	for (; *names; names++)
		if (!strcmp(*names, event))
			return true;
	return false;
}

/* Every line of the events that are wanted, until there are too many. */
static void collect_line(struct line *l)
{
	json_t *line;
	const char *event;

	if (json_array_size(l->list) >= LINES_MAX ||
	    count_values(l->text, l->len) > LINE_VALUES_MAX)
		return;
	line = json_loadb(l->text, l->len, JSON_REJECT_DUPLICATES, NULL);
	event = json_string_value(json_object_get(line, "event"));
	if (event && is_named(l->names, event))
		json_array_append(l->list, line);
	json_decref(line);
}

/* Are the `n` bytes at `what` among the `len` bytes at `text`? memmem() is not in C. */
static bool has_text(const char *text, size_t len, const char *what, size_t n)
{
	const char *const end = text + len;

	while ((size_t)(end - text) >= n && (text = memchr(text, what[0], (size_t)(end - text)))) {
		if ((size_t)(end - text) >= n && !memcmp(text, what, n))
			return true;
		text++;
	}
	return false;
}

/* True if the line can be of an event that is not known yet. */
static bool may_matter(const struct container *c, const char *text, size_t len)
{
	if (len < strlen("{\"event\":\"end\"}"))
		return false;
	for (size_t i = 0; i < CONTAINER_EVENTS; i++) {
		char quoted[32];
		const int n = snprintf(quoted, sizeof(quoted), "\"%s\"", event_names[i]);

		if (!c->events[i] && has_text(text, len, quoted, (size_t)n))
			return true;
	}
	return false;
}

/* What is no JSON object is left out. */
static void take_line(struct container *c, const char *text, size_t len)
{
	json_t *line;
	const char *event;

	if (!may_matter(c, text, len) || count_values(text, len) > LINE_VALUES_MAX)
		return;
	line = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	event = json_string_value(json_object_get(line, "event"));
	for (size_t i = 0; event && i < CONTAINER_EVENTS; i++)
		if (!c->events[i] && !strcmp(event, event_names[i]))
			c->events[i] = json_incref(line);
	json_decref(line);
}

static enum status line_append(struct line *l, const char *text, size_t len, struct err *e)
{
	if (l->lost || len > LINE_BYTES_MAX - l->len) {
		l->lost = true;
		return ST_OK;
	}
	if (len > l->room - l->len) {
		const size_t room = MAX(l->len + len, MIN(2 * l->room, LINE_BYTES_MAX));
		char *longer = realloc(l->text, room);

		if (!longer)
			return err_nomem(e);
		l->text = longer;
		l->room = room;
	}
	memcpy(l->text + l->len, text, len);
	l->len += len;
	return ST_OK;
}

static void line_end(struct container *c, struct line *l)
{
	if (l->len && !l->lost && l->list)
		collect_line(l);
	else if (l->len && !l->lost)
		take_line(c, l->text, l->len);
	l->len = 0;
	l->lost = false;
}

static enum status take_piece(struct container *c, struct line *l, const char *text, size_t len,
			      struct err *e)
{
	while (len) {
		const char *end = memchr(text, '\n', len);
		const size_t n = end ? (size_t)(end - text) : len;
		const enum status st = line_append(l, text, n, e);

		if (st)
			return st;
		if (!end)
			break;
		line_end(c, l);
		text = end + 1;
		len -= n + 1;
	}
	return ST_OK;
}

/*
 * A damaged piece costs the lines that it has a part of, and no others: behind it a line is taken to
 * begin, because a rest of one is no JSON object.
 */
static enum status read_lines(struct container *c, struct rsz_cursor *cursor, uint32_t stream,
			      struct line *l, struct err *e)
{
	const uint8_t *text;
	uint64_t at = 0;
	size_t len = 0;

	for (size_t all = 0; all < MANIFEST_BYTES_MAX; all += len) {
		enum status st = rsz_cursor_next_text(cursor, stream, &at, &text, &len, e);

		if (!st)
			st = take_piece(c, l, (const char *)text, len, e);
		else if (st == ST_CORRUPT)
			l->len = l->lost = 0;
		if (st && st != ST_CORRUPT) {
			line_end(c, l);
			return st == ST_END ? ST_OK : st;
		}
	}
	return ST_OK;
}

static enum status load_manifest(struct container *c, struct line *l, struct err *e)
{
	struct rsz_cursor *cursor = NULL;
	uint32_t stream;
	enum status st;

	if (container_find_kind(c, RSZ_KIND_MANIFEST, &stream, NULL))
		return ST_OK; /* cut off before it was declared */
	st = rsz_cursor_create(c->reader, 1, &cursor, e);
	if (!st)
		st = read_lines(c, cursor, stream, l, e);
	rsz_cursor_destroy(cursor);
	free(l->text);
	return st;
}

enum status container_lines(struct container *c, const char *const *names, json_t **ret,
			    struct err *e)
{
	struct line line = { .list = json_array(), .names = names };
	const enum status st = line.list ? load_manifest(c, &line, e) : err_nomem(e);

	if (st)
		json_decref(line.list);
	else
		*ret = line.list;
	return st;
}

enum status container_open(const char *path, struct container *ret, struct err *e)
{
	enum status st;

	*ret = (struct container){ .file.fd = -1 };
	st = file_blob_open(&ret->file, path, e);
	if (st)
		return st;
	st = rsz_reader_open(&ret->file.blob, RSZ_TRUST_NOTHING, &ret->reader, e);
	if (!st)
		st = load_manifest(ret, &(struct line){ 0 }, e);
	if (st) {
		container_close(ret);
		return err_add(e, st, "%s", path);
	}
	return ST_OK;
}

enum status container_open_manifest(struct blob *in, struct container *ret, struct err *e)
{
	enum status st;

	*ret = (struct container){ .file.fd = -1 };
	st = rsz_reader_open_plain(in, &ret->reader, e);
	if (!st)
		st = load_manifest(ret, &(struct line){ 0 }, e);
	if (st)
		container_close(ret);
	return st;
}

void container_close(struct container *c)
{
	for (size_t i = 0; i < CONTAINER_EVENTS; i++)
		json_decref(c->events[i]);
	rsz_reader_close(c->reader);
	file_blob_deinit(&c->file);
	*c = (struct container){ .file.fd = -1 };
}

json_t *container_event(const struct container *c, const char *event)
{
	for (size_t i = 0; i < CONTAINER_EVENTS; i++)
		if (!strcmp(event_names[i], event))
			return c->events[i];
	return NULL;
}

static bool is_sealed(const struct container *c)
{
	return rsz_reader_end(c->reader)->end == RSZ_END_SEALED;
}

/*
 * Pages that could not be read are gaps within an acquisition that is complete. Its last line comes
 * behind all else: where it is, sealing later has added an end and no more.
 */
bool container_is_complete(const struct container *c)
{
	const json_t *code = json_object_get(container_event(c, "end"), "exit_code");

	return is_sealed(c) && json_is_integer(code) &&
	       (json_integer_value(code) == EXIT_COMPLETE || json_integer_value(code) == EXIT_GAPS);
}

json_t *container_acquisition_json(const struct container *c)
{
	static const char *const keys[] = { "exit_code", "outcome", "message", "sleeps", NULL };
	const json_t *line = container_event(c, "end");
	json_t *o = line ? json_object() : json_null();

	for (const char *const *key = keys; line && *key; key++)
		json_object_set(o, *key, json_object_get(line, *key));
	return o;
}

enum status container_judge(const struct container *c, struct err *e)
{
	const json_t *line = container_event(c, "end");
	const char *outcome = json_string_value(json_object_get(line, "outcome"));
	const char *message = json_string_value(json_object_get(line, "message"));
	uint32_t memory;

	if (!line || !outcome)
		return err_set(e, ST_PARTIAL, "the acquisition did not come to its end");
	if (!container_is_complete(c))
		return err_set(e, ST_PARTIAL, "acquisition: %.150s%s%.300s", outcome,
			       message && *message ? ": " : "", message ? message : "");
	if (container_find_kind(c, RSZ_KIND_MEMORY, &memory, NULL))
		return err_set(e, ST_PARTIAL, "holds no memory");
	return ST_OK;
}

json_t *container_end_json(const struct container *c)
{
	const struct rsz_scan_result *end = rsz_reader_end(c->reader);
	const bool later = is_sealed(c) && container_event(c, "sealed_later");

	return json_pack("{s:s, s:o, s:o}", "end", later ? "sealed later" : rsz_end_name(end->end),
			 "reason", json_text(end->reason), "acquisition",
			 container_acquisition_json(c));
}

/* The parts of a range that no record has. */
static enum status add_missing(const struct rsz_reader *r, uint32_t stream, const struct range *of,
			       struct range_list *ret, struct err *e)
{
	uint64_t at = of->first;
	struct rsz_segment seg;
	enum status st = ST_OK;

	while (!st && at <= of->last && rsz_reader_next(r, stream, at, &seg) &&
	       seg.address <= of->last) {
		if (seg.address > at)
			st = range_list_add(ret, at, seg.address - 1, e);
		at = seg.address + seg.length;
	}
	return st || at > of->last ? st : range_list_add(ret, at, of->last, e);
}

enum status container_missing(const struct container *c, struct range_list *ret, struct err *e)
{
	_cleanup_ranges_ struct range_list map = { 0 };
	uint32_t stream = UINT32_MAX;
	enum status st = manifest_get_map(container_event(c, "begin"), &map, e);

	container_find_kind(c, RSZ_KIND_MEMORY, &stream, NULL);
	for (size_t i = 0; i < map.count && !st; i++)
		st = add_missing(c->reader, stream, &map.at[i], ret, e);
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

enum status container_find_name(const struct container *c, const char *name, uint32_t *ret,
				struct err *e)
{
	char names[256];

	for (uint32_t i = 0; i < rsz_reader_streams(c->reader); i++) {
		if (!strcmp(rsz_reader_stream(c->reader, i)->name, name)) {
			*ret = i;
			return ST_OK;
		}
	}
	list_names(c, names, sizeof(names));
	return err_set(e, ST_INPUT, "holds no stream \"%.100s\"; it has %s", name, names);
}
