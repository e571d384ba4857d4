/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/container/manifest_lines.h"

#include <stdio.h>
#include <string.h>

/*
 * A line with a hundred thousand ranges has 10 MB and three values for each of them. In memory a
 * value takes some 250 bytes at worst.
 */
#define MANIFEST_BYTES_MAX ((size_t)64 << 20)
#define LINE_BYTES_MAX     ((size_t)16 << 20)
#define LINE_VALUES_MAX    ((size_t)1 << 19)

const char *const manifest_event_names[MANIFEST_EVENTS] = { "begin", "end", "sealed_later" };

/* Not less than the JSON values in the text. */
static size_t count_json_values(const char *text, size_t len)
{
	size_t n = 1;

	for (size_t i = 0; i < len; i++)
		n += text[i] == '{' || text[i] == '[' || text[i] == ',';
	return n;
}

/* More lines of the wanted events than any acquisition writes. */
#define LINES_MAX ((size_t)4096)

static bool is_event_named(const char *const *names, const char *event)
{
	for (; *names; names++)
		if (!strcmp(*names, event))
			return true;
	return false;
}

/* Every line of the events that are wanted, until there are too many. */
static void collect_line(struct manifest_lines *l)
{
	json_t *line;
	const char *event;

	if (json_array_size(l->list) >= LINES_MAX ||
	    count_json_values(l->text, l->len) > LINE_VALUES_MAX)
		return;
	line = json_loadb(l->text, l->len, JSON_REJECT_DUPLICATES, NULL);
	event = json_string_value(json_object_get(line, "event"));
	if (event && is_event_named(l->names, event))
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
static bool may_matter(const struct manifest_lines *l, const char *text, size_t len)
{
	if (len < strlen("{\"event\":\"end\"}"))
		return false;
	for (size_t i = 0; i < MANIFEST_EVENTS; i++) {
		char quoted[32];
		const int n = snprintf(quoted, sizeof(quoted), "\"%s\"", manifest_event_names[i]);

		if (!l->events[i] && has_text(text, len, quoted, (size_t)n))
			return true;
	}
	return false;
}

/* What is no JSON object is left out. */
static void take_manifest_line(struct manifest_lines *l, const char *text, size_t len)
{
	json_t *line;
	const char *event;

	if (!may_matter(l, text, len) || count_json_values(text, len) > LINE_VALUES_MAX)
		return;
	line = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	event = json_string_value(json_object_get(line, "event"));
	for (size_t i = 0; event && i < MANIFEST_EVENTS; i++)
		if (!l->events[i] && !strcmp(event, manifest_event_names[i]))
			l->events[i] = json_incref(line);
	json_decref(line);
}

static enum status line_append(struct manifest_lines *l, const char *text, size_t len,
			       struct err *e)
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

void manifest_lines_end(struct manifest_lines *l)
{
	if (l->len && !l->lost && l->list)
		collect_line(l);
	else if (l->len && !l->lost)
		take_manifest_line(l, l->text, l->len);
	l->len = 0;
	l->lost = false;
}

enum status manifest_lines_take(struct manifest_lines *l, const char *text, size_t len,
				struct err *e)
{
	if (l->taken >= MANIFEST_BYTES_MAX)
		return ST_END;
	l->taken += len;
	while (len) {
		const char *end = memchr(text, '\n', len);
		const size_t n = end ? (size_t)(end - text) : len;
		const enum status st = line_append(l, text, n, e);

		if (st)
			return st;
		if (!end)
			break;
		manifest_lines_end(l);
		text = end + 1;
		len -= n + 1;
	}
	return ST_OK;
}

enum status manifest_lines_miss(struct manifest_lines *l, size_t len)
{
	if (l->taken >= MANIFEST_BYTES_MAX)
		return ST_END;
	l->taken += len;
	l->len = l->lost = 0;
	return ST_OK;
}

void manifest_lines_deinit(struct manifest_lines *l)
{
	free(l->text);
	l->text = NULL;
	l->len = l->room = 0;
}
