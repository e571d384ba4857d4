/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/receive/store_log.h"

#include <string.h>

#include "agent/shared/program/text.h"
#include "formats/base/bytes.h"

static const char *log_line_text(json_t *line, const char *key)
{
	const char *text = json_string_value(json_object_get(line, key));

	return text ? text : "";
}

static uint64_t log_line_number(json_t *line, const char *key)
{
	const json_int_t n = json_integer_value(json_object_get(line, key));

	return n > 0 ? (uint64_t)n : 0;
}

static bool hex_of(json_t *line, const char *key, size_t bytes, uint8_t *ret)
{
	const char *text = log_line_text(line, key);

	return strlen(text) == 2 * bytes && text_from_hex(text, 2 * bytes, ret);
}

/* A name of ours, and no path: whoever can write the log cannot lead us elsewhere. */
static bool is_our_file(const char *file, const char *id)
{
	const size_t time = strspn(file, "0123456789TZ");

	return strlen(file) < UPLOAD_FILE_SIZE && time && file[time] == '-' &&
	       !strncmp(file + time + 1, id, UPLOAD_ID_HEX - 1) &&
	       strspn(file + time + UPLOAD_ID_HEX, ".agedtrsz") ==
		       strlen(file + time + UPLOAD_ID_HEX);
}

static enum status find_or_add(struct upload_table *t, const char *id, struct upload **ret,
			       struct err *e)
{
	struct upload *u = upload_table_find(t, id);
	enum status st;

	*ret = u;
	if (u)
		return ST_OK;
	u = calloc(1, sizeof(*u));
	if (!u)
		return err_nomem(e);
	u->fd = u->state = -1;
	snprintf(u->id, sizeof(u->id), "%s", id);
	st = upload_table_add(t, u, e);
	if (st)
		free(u);
	else
		*ret = u;
	return st;
}

/* Again, if it was forgotten because it held nothing. */
static void take_beginning(struct upload *u, json_t *line)
{
	snprintf(u->file, sizeof(u->file), "%s", log_line_text(line, "file"));
	snprintf(u->peer, sizeof(u->peer), "%s", log_line_text(line, "peer"));
	snprintf(u->address, sizeof(u->address), "%s", log_line_text(line, "address"));
	snprintf(u->name, sizeof(u->name), "%s", log_line_text(line, "name"));
}

static bool take_finding(json_t *line, enum finding *ret)
{
	for (int v = FOUND_NO_CONTAINER; v <= FOUND_ENCRYPTED; v++)
		if (!strcmp(log_line_text(line, "verified"), finding_name((enum finding)v))) {
			*ret = (enum finding)v;
			return true;
		}
	return false;
}

static void take_complete(struct upload *u, json_t *line)
{
	struct frame_done *d = &u->done;

	d->total = log_line_number(line, "bytes");
	d->whole = log_line_number(line, "whole_bytes");
	d->records = log_line_number(line, "records");
	if (!hex_of(line, "root", SHA256_SIZE, d->root))
		memset(d->root, 0, SHA256_SIZE);
	u->complete =
		take_finding(line, &d->finding) && hex_of(line, "sha256", SHA256_SIZE, d->sha256);
}

enum status store_log_take(void *arg, json_t *line, struct err *e)
{
	const char *event = log_line_text(line, "event"), *id = log_line_text(line, "id");
	const bool complete = !strcmp(event, "complete");
	uint8_t bytes[FRAME_ID_SIZE];
	struct upload *u = NULL;
	enum status st;

	if (!complete && strcmp(event, "began") != 0)
		return ST_OK;
	if (!hex_of(line, "id", sizeof(bytes), bytes) ||
	    !is_our_file(log_line_text(line, "file"), id))
		return ST_OK;
	st = find_or_add(arg, id, &u, e);
	if (st)
		return st;
	if (!complete || !u->file[0])
		take_beginning(u, line);
	if (complete)
		take_complete(u, line);
	return ST_OK;
}

enum status store_log_began(struct journal *j, const struct upload *u, const char *address,
			    struct err *e)
{
	return journal_write(j, "began",
			     JSON_FIELDS(field_text("id", u->id), field_text("peer", u->peer),
					 field_text("address", address),
					 field_text("file", u->file), field_text("name", u->name),
					 field_u64("expected", u->expected)),
			     e);
}

enum status store_log_broke_off(struct journal *j, const struct upload *u,
				const struct store_peer *peer, struct err *e)
{
	return journal_write(j, "broke_off",
			     JSON_FIELDS(field_text("id", u->id), field_text("peer", u->peer),
					 field_text("address", peer->address),
					 field_u64("bytes", u->durable)),
			     e);
}

enum status store_log_complete(struct journal *j, const struct upload *u, bool sealed,
			       const struct checked *found, const struct store_peer *peer,
			       struct err *e)
{
	const bool checked =
		u->done.finding != FOUND_NO_CONTAINER && u->done.finding != FOUND_ENCRYPTED;
	char sha256[SHA256_HEX_SIZE], root[SHA256_HEX_SIZE], container[2 * RSZ_ID_SIZE + 1];
	char file[UPLOAD_FILE_SIZE];
	const char *has;

	sha256_hex(found->sha256, sha256);
	bytes_to_hex(found->end.id, sizeof(found->end.id), container);
	upload_choose_name(u, u->done.finding, file);
	/* Damage in a payload: the headers go on, but not the hashes (container_verify()). */
	has = checked ? upload_root_text(found->end.root, root) : NULL;
	return journal_write(
		j, "complete",
		JSON_FIELDS(field_text("id", u->id), field_text("peer", u->peer),
			    field_text("address", peer->address), field_text("name", u->name),
			    field_text("file", file), field_u64("bytes", u->done.total),
			    field_text("sha256", sha256), field_bool("sealed", sealed),
			    field_text("verified", finding_name(u->done.finding)),
			    field_u64("whole_bytes", u->done.whole),
			    field_u64("records", u->done.records), field_text("root", has),
			    field_text("container", checked ? container : NULL)),
		e);
}
