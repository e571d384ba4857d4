/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/output/output.h"

#include "agent/shared/output/output_sink.h"
#include "agent/shared/program/address.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"

/* Asked in this order; what only looks at the path, and not at what is there, comes first. */
static const struct output_ops *const table[] = {
	&stdout_sink,
	&pipe_sink,
	&device_sink,
	&file_sink,
};

static enum status write_counted(struct sink *s, const void *p, size_t len, struct err *e)
{
	struct output *o = (struct output *)s;
	const enum status st = o->ops->write(o, p, len, e);

	if (!st)
		o->bytes += len;
	return st;
}

static enum status skip_counted(struct sink *s, uint64_t len, struct err *e)
{
	struct output *o = (struct output *)s;
	const enum status st = o->ops->skip(o, len, e);

	if (!st)
		o->bytes += len;
	return st;
}

static enum status cut_counted(struct sink *s, uint64_t len, struct err *e)
{
	struct output *o = (struct output *)s;
	const enum status st = o->ops->cut(o, len, e);

	if (!st)
		o->bytes = len;
	return st;
}

static enum status rewrite_uncounted(struct sink *s, uint64_t offset, const void *p, size_t len,
				     struct err *e)
{
	struct output *o = (struct output *)s;

	return o->ops->rewrite(o, offset, p, len, e);
}

void output_init(struct output *o, const struct output_ops *ops, struct output *below)
{
	*o = (struct output){
		.sink = { .write = write_counted,
			  .skip = ops->skip ? skip_counted : NULL,
			  .cut = ops->cut ? cut_counted : NULL,
			  .rewrite = ops->rewrite ? rewrite_uncounted : NULL },
		.ops = ops,
		.below = below,
	};
}

/*
 * The first one from `o` downwards that has the operation; the lowest has all that can be asked so.
 */
#define ASK(o, operation)                                                                          \
	({                                                                                         \
		__typeof__(o) asked_ = (o);                                                        \
		while (!asked_->ops->operation && asked_->below)                                   \
			asked_ = asked_->below;                                                    \
		asked_;                                                                            \
	})

static const struct output *lowest_output(const struct output *o)
{
	while (o->below)
		o = o->below;
	return o;
}

/* An estimate may be wrong by so much and the room still do: a quarter. */
static uint64_t with_margin(uint64_t likely)
{
	return likely + likely / 4;
}

enum output_room output_fits(uint64_t room, const struct output_need *need)
{
	if (room < need->least)
		return ROOM_TOO_LITTLE;
	if (room >= need->most)
		return ROOM_ENOUGH;
	if (!need->likely)
		return ROOM_DOUBTFUL;
	if (room < need->likely)
		return ROOM_SHORT;
	return room < with_margin(need->likely) ? ROOM_TIGHT : ROOM_ENOUGH;
}

enum output_room output_room_verdict(uint64_t room, const struct output_need *need,
				     const char *path, struct err *e)
{
	const enum output_room ret = output_fits(room, need);
	char have[TEXT_SIZE_MAX], least[TEXT_SIZE_MAX], likely[TEXT_SIZE_MAX], most[TEXT_SIZE_MAX];

	if (ret == ROOM_ENOUGH)
		return ret;
	text_size(room, have);
	text_size(need->least, least);
	text_size(need->likely, likely);
	text_size(need->most, most);
	if (ret == ROOM_TOO_LITTLE)
		err_set(e, ST_OUTPUT,
			"%s: may need %s, has room for only %s; use --force to try anyway", path,
			least, have);
	else if (need->likely)
		err_set(e, ST_OUTPUT,
			"%s: has room for %s, may need about %s (estimated from a sample), or %s "
			"if nothing compresses",
			path, have, likely, most);
	else
		err_set(e, ST_OUTPUT, "%s: has room for %s, may need %s if nothing compresses",
			path, have, most);
	return ret;
}

enum status output_check_room(uint64_t room, const struct output_need *need, bool force,
			      const char *path, struct err *e)
{
	struct err why = ERR_INIT;
	const enum output_room r =
		force ? ROOM_ENOUGH : output_room_verdict(room, need, path, &why);

	if (r == ROOM_TOO_LITTLE)
		return err_set(e, ST_OUTPUT, "%s", why.message);
	if (r != ROOM_ENOUGH)
		log_warning("room", "%s", why.message);
	return ST_OK;
}

static enum status open_any_output(const struct output_options *options, struct output **ret,
				   struct err *e)
{
	if (is_address(options->path))
		return options->network
			       ? options->open_address(options, ret, e)
			       : err_set(e, ST_USAGE,
					 "is an address; this command writes only to files");
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const enum status st = table[i]->open(options, ret, e);

		if (st != ST_NOT_MINE)
			return st;
	}
	return err_set(e, ST_OUTPUT, "%s: was replaced while it was opened", options->path);
}

enum status output_open(const struct output_options *options, struct output **ret, struct err *e)
{
	struct output_options placed = *options;
	_cleanup_free_ char *path = NULL;
	struct output *o = NULL;
	uint64_t room;
	enum status st = output_place(options, &path, e);

	placed.path = path;
	if (!st)
		st = open_any_output(&placed, &o, e);

	if (!st && output_room(o, &room))
		st = output_check_room(room, &options->need, options->force, output_name(o), e);
	if (st) {
		output_destroy(o);
		return st;
	}
	*ret = o;
	return ST_OK;
}

void output_destroy(struct output *o)
{
	while (o) {
		struct output *below = o->below;

		o->ops->destroy(o);
		o = below;
	}
}

struct sink *output_sink(struct output *o)
{
	return &o->sink;
}

struct blob *output_blob(struct output *o)
{
	return o->ops->blob ? o->ops->blob(o, o->bytes) : NULL;
}

bool output_room(const struct output *o, uint64_t *ret)
{
	o = ASK(o, room);
	return o->ops->room && o->ops->room(o, ret);
}

double output_backlog(const struct output *o)
{
	o = ASK(o, backlog);
	return o->ops->backlog ? o->ops->backlog(o) : 0;
}

enum status output_check(const struct output *o, struct err *e)
{
	o = ASK(o, check);
	return o->ops->check ? o->ops->check(o, e) : ST_OK;
}

enum status output_commit(struct output *o, struct err *e)
{
	struct output *does = ASK(o, commit);
	const enum status st = does->ops->commit(does, e);

	for (; !st && o; o = o->below)
		o->committed = true;
	return st;
}

enum status output_keep(struct output *o, struct err *e)
{
	o = ASK(o, keep);
	return o->ops->keep(o, e);
}

void output_discard(struct output *o)
{
	if (o->committed)
		return;
	o = ASK(o, discard);
	if (o->ops->discard)
		o->ops->discard(o);
}

bool output_is_file(const struct output *o)
{
	return lowest_output(o)->ops->is_file;
}

bool output_is_disk(const struct output *o)
{
	return lowest_output(o)->ops->is_disk;
}

bool output_is_at(const struct output *o, const char *path)
{
	o = ASK(o, is_at);
	return o->ops->is_at(o, path);
}

const char *output_name(const struct output *o)
{
	o = ASK(o, path);
	return o->ops->path(o);
}

const char *output_where(const struct output *o)
{
	o = ASK(o, where);
	return o->ops->where ? o->ops->where(o) : output_name(o);
}

bool output_holds(const struct output *o)
{
	o = ASK(o, holds);
	return !o->ops->holds || o->ops->holds(o);
}

enum status output_kept(const struct output *o, struct err *e)
{
	o = ASK(o, kept);
	return o->ops->kept ? o->ops->kept(o, e) : ST_OK;
}

json_t *output_file_json(const char *role, const char *name, uint64_t bytes, const char *sha256,
			 const char *root)
{
	return json_fields(JSON_FIELDS(field_text("role", role), field_text("name", name),
				       field_u64("bytes", bytes), field_text("sha256", sha256),
				       field_text("root", root)));
}

json_t *output_json(const struct output *o)
{
	o = ASK(o, json);
	return o->ops->json ? o->ops->json(o) : NULL;
}

uint64_t output_bytes(const struct output *o)
{
	return lowest_output(o)->bytes;
}
