/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/container/stated.h"

#include <inttypes.h>
#include <string.h>

#include "agent/shared/program/json.h"
#include "agent/shared/program/text.h"
#include "formats/base/bytes.h"
#include "formats/base/utc.h"

/* Where differences come together; without memory `failed`. */
struct differences {
	json_t *list;
	bool failed;
};

static void note_difference(struct differences *d, const char *line, const char *stated,
			    const char *found)
{
	json_t *one =
		json_fields(JSON_FIELDS(field_text("line", line), field_text("statement", stated),
					field_text("container", found)));

	if (!one || json_array_append_new(d->list, one))
		d->failed = true;
}

/* What the container does not say, it does not contradict. */
static void compare_text(struct differences *d, const char *line, const char *stated,
			 const char *found)
{
	if (found && strcmp(stated, found) != 0)
		note_difference(d, line, stated, found);
}

static void compare_bytes(struct differences *d, const char *line, const void *stated,
			  const void *found, size_t len)
{
	char is[SHA256_HEX_SIZE], was[SHA256_HEX_SIZE];

	bytes_to_hex(stated, len, was);
	bytes_to_hex(found, len, is);
	compare_text(d, line, was, is);
}

static void compare_number(struct differences *d, const char *line, uint64_t stated, uint64_t found)
{
	char is[24], was[24];

	snprintf(was, sizeof(was), "%" PRIu64, stated);
	snprintf(is, sizeof(is), "%" PRIu64, found);
	compare_text(d, line, was, is);
}

static void compare_time(struct differences *d, const char *line, uint64_t stated, uint64_t found)
{
	char is[UTC_RFC3339_SIZE], was[UTC_RFC3339_SIZE];

	utc_rfc3339(stated, was);
	utc_rfc3339(found, is);
	compare_text(d, line, was, is);
}

/* A text of the manifest, cut as the statement cuts it; NULL if it has none. */
static const char *manifest_text(const json_t *begin, const char *object, const char *key,
				 statement_text buffer)
{
	const char *text = json_string_value(json_object_get(json_object_get(begin, object), key));

	if (!text)
		return NULL;
	statement_set_text(buffer, text);
	return buffer;
}

/* Of an image, "host" is not known, and "made_on" is where ramseal ran. */
static const char *stated_host_of(const json_t *begin, statement_text buffer)
{
	const json_t *made_on = json_object_get(begin, "made_on");

	return manifest_text(made_on ? made_on : begin, "host", "name", buffer);
}

static enum statement_outcome outcome_of(const struct container *told)
{
	const json_t *code = json_object_get(container_event(told, "end"), "exit_code");

	return statement_outcome_of(!container_event(told, "sealed_later"),
				    json_is_integer(code) ? json_integer_value(code)
							  : EXIT_INTERNAL);
}

static void compare_content(struct differences *d, const struct statement *s,
			    const struct container *told, const struct rsz_scan_result *end)
{
	const json_t *begin = container_event(told, "begin");
	statement_text text;
	uint8_t hash[SHA256_SIZE];

	if (!s->has_root)
		note_difference(d, "root", NULL, "is sealed");
	else
		compare_bytes(d, "root", s->root, end->root, SHA256_SIZE);
	if (s->has_root)
		compare_number(d, "size", s->size, end->whole);
	compare_text(d, "outcome", statement_outcome_name(s->outcome),
		     statement_outcome_name(outcome_of(told)));
	compare_text(d, "source", s->source, manifest_text(begin, "source", "name", text));
	compare_text(d, "host", s->host, stated_host_of(begin, text));
	compare_time(d, "begin", s->begin_wall, told->identity.wall);
	compare_number(d, "begin_mono_ns", s->begin_mono, told->identity.mono);
	statement_set_text(text, told->identity.text);
	compare_text(d, "tool", s->tool, text);
	if (s->has_tool_hash && manifest_text(begin, "tool", "sha256", text) &&
	    text_from_hex(text, 2 * sizeof(hash), hash))
		compare_bytes(d, "tool_sha256", s->tool_sha256, hash, SHA256_SIZE);
}

json_t *stated_differences(const struct statement *s, const struct container *told,
			   const struct rsz_scan_result *end, bool whole)
{
	struct differences d = { .list = json_array() };

	if (!d.list)
		return NULL;
	compare_bytes(&d, "container", s->container, told->identity.id, RSZ_ID_SIZE);
	if (whole)
		compare_content(&d, s, told, end);
	if (d.failed) {
		json_decref(d.list);
		return NULL;
	}
	return d.list;
}
