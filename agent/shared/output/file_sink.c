/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A regular file, NAME.partial until it is complete. What it is asked to keep free for its end, the
 * file system reserves for it, where it can promise room.
 */
#include "agent/shared/output/output_sink.h"
#include "agent/shared/output/output_target.h"

struct file_output {
	struct output output;
	struct target target;
	struct fd_sink fd;
	struct target_blob blob;
	bool force;
	uint64_t reserve; /* kept free behind what is written; 0: none, or given back */
	uint64_t kept;    /* the file has room up to there, kept for it */
};

/* Room is kept in steps, so that not every write has to ask for it. */
#define RESERVE_STEP ((uint64_t)4 << 20)

/* `end` is where the reserve ends. */
static enum status file_keep_room(struct file_output *f, uint64_t end, struct err *e)
{
	const uint64_t from = f->output.bytes;
	enum status st = target_reserve(&f->target, from, end + RESERVE_STEP, NULL);

	if (!st) {
		f->kept = end + RESERVE_STEP;
		return ST_OK;
	}
	if (st == ST_OUTPUT)
		st = target_reserve(&f->target, from, end, e);
	if (!st)
		f->kept = end;
	if (st != ST_NOT_MINE)
		return st;
	f->reserve = 0;
	return ST_OK;
}

/* ST_OUTPUT, as on a full disk, if `len` more bytes leave too little room for the end. */
static enum status file_write(struct output *o, const void *p, size_t len, struct err *e)
{
	struct file_output *f = (struct file_output *)o;
	const uint64_t end = o->bytes + len + f->reserve;
	enum status st = ST_OK;

	if (f->reserve && end > f->kept)
		st = file_keep_room(f, end, e);
	if (!st)
		st = target_write(&f->target, &f->fd.sink, p, len, e);
	return st ? st : target_pace(&f->target, o->bytes + len, e);
}

static enum status file_skip(struct output *o, uint64_t len, struct err *e)
{
	struct file_output *f = (struct file_output *)o;

	return target_hole(&f->target, len, o->bytes + len, e);
}

static enum status file_cut(struct output *o, uint64_t len, struct err *e)
{
	struct file_output *f = (struct file_output *)o;
	/* To make the file shorter would give away the room that was kept for it. */
	const enum status st =
		f->kept ? target_seek(&f->target, len, e) : target_cut(&f->target, len, e);

	if (!st)
		f->reserve = 0;
	f->target.begun = MIN(f->target.begun, len & ~(uint64_t)(PAGE_SIZE - 1));
	f->target.settled = MIN(f->target.settled, f->target.begun);
	return st;
}

/* What of it was on the disk already stays in the page cache until the end: it is little. */
static enum status file_rewrite(struct output *o, uint64_t offset, const void *p, size_t len,
				struct err *e)
{
	struct file_output *f = (struct file_output *)o;

	return target_rewrite(&f->target, &f->fd.sink, offset, p, len, o->bytes, e);
}

static struct blob *file_read_back(struct output *o, uint64_t size)
{
	struct file_output *f = (struct file_output *)o;

	return target_blob_of(&f->blob, &f->target, size);
}

static bool file_room(const struct output *o, uint64_t *ret)
{
	return target_room(&((const struct file_output *)o)->target, ret);
}

/* Gives back what was kept and not used, and what a cut has left. */
static enum status file_give_back(struct file_output *f, struct err *e)
{
	if (!f->kept || f->target.fd < 0)
		return ST_OK;
	f->kept = 0;
	return target_cut(&f->target, f->output.bytes, e);
}

static enum status file_keep(struct output *o, struct err *e)
{
	struct file_output *f = (struct file_output *)o;
	const enum status st = file_give_back(f, e);

	return st ? st : target_close(&f->target, e);
}

static enum status file_commit(struct output *o, struct err *e)
{
	struct file_output *f = (struct file_output *)o;
	const enum status st = file_keep(o, e);

	return st ? st : target_publish(&f->target, f->force, e);
}

static void file_discard(struct output *o)
{
	target_remove_partial(&((struct file_output *)o)->target);
}

/* What ends early stays, unless it is empty. */
static void file_destroy(struct output *o)
{
	struct file_output *f = (struct file_output *)o;

	if (!o->committed && o->bytes)
		file_give_back(f, NULL);
	else if (!o->committed)
		target_remove_partial(&f->target);
	target_deinit(&f->target);
	free(f);
}

static bool file_is_at(const struct output *o, const char *path)
{
	return target_has_name(&((const struct file_output *)o)->target, path);
}

static const char *file_path(const struct output *o)
{
	return ((const struct file_output *)o)->target.path;
}

static const char *file_where(const struct output *o)
{
	const struct target *t = &((const struct file_output *)o)->target;

	return t->partial && !o->committed ? t->partial : t->path;
}

static enum status file_sink_open(const struct output_options *options, struct output **ret,
				  struct err *e)
{
	struct target_facts facts;
	struct file_output *f;
	enum status st = target_inspect(options->path, options->force, options->inputs, &facts, e);

	if (st || facts.is != PATH_IS_FILE)
		return st ? st : ST_NOT_MINE;
	f = calloc(1, sizeof(*f));
	if (!f)
		return err_nomem(e);
	output_init(&f->output, &file_sink, NULL);
	f->force = options->force;
	f->reserve = options->reserve;
	st = target_create(options->path, options->lean, &f->target, e);
	if (st) {
		file_destroy(&f->output);
		return st;
	}
	f->target.shown = f->reserve ? f->target.path : f->target.partial;
	if (options->paced)
		target_step_back(&f->target);
	if (options->lean)
		target_leave_cache(&f->target);
	/* With a reserve it gets its name also when the disk is full. */
	fd_sink_init(&f->fd, f->target.fd, f->target.shown);
	*ret = &f->output;
	return ST_OK;
}

const struct output_ops file_sink = {
	.name = "file",
	.is_file = true,
	.open = file_sink_open,
	.write = file_write,
	.skip = file_skip,
	.cut = file_cut,
	.rewrite = file_rewrite,
	.blob = file_read_back,
	.room = file_room,
	.commit = file_commit,
	.keep = file_keep,
	.discard = file_discard,
	.destroy = file_destroy,
	.is_at = file_is_at,
	.path = file_path,
	.where = file_where,
};
