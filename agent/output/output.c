/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/output/output.h"

#include <errno.h>
#include <string.h>

#include "agent/host/host.h"
#include "agent/output/output_target.h"
#include "agent/program/clock.h"
#include "agent/program/log.h"
#include "agent/program/text.h"
#include "formats/base/os.h"

struct output {
	struct sink sink;
	struct fd_sink file; /* what `sink` writes to */
	struct target target;
	bool force;
	bool committed;
	uint64_t bytes;
	uint64_t reserve; /* kept free behind what is written; 0: none, or given back */
	uint64_t kept;    /* a file has room up to there, kept for it */
	uint64_t room;    /* of a disk */
	struct blob blob; /* for output_blob() */
};

/* Room is kept in steps, so that not every write has to ask for it. */
#define RESERVE_STEP ((uint64_t)4 << 20)

char *target_partial_path(const char *path, unsigned n)
{
	char *partial = NULL;

	if ((n > 1 ? asprintf(&partial, "%s.%u%s", path, n, PARTIAL_SUFFIX)
		   : asprintf(&partial, "%s%s", path, PARTIAL_SUFFIX)) < 0)
		return NULL;
	return partial;
}

char *target_complete_name(const char *path)
{
	const size_t len = strlen(path), suffix = strlen(PARTIAL_SUFFIX);
	_cleanup_free_ char *name = NULL;
	struct err e = ERR_INIT;

	if (len <= suffix || strcmp(path + len - suffix, PARTIAL_SUFFIX) != 0 ||
	    strchr("/\\:", path[len - suffix - 1]))
		return strdup(path);
	name = strdup(path);
	if (!name)
		return NULL;
	name[len - suffix] = '\0';
	if (!target_rename(path, name, &e))
		return take_ptr(name);
	log_warning("name-kept", "%s is complete, but keeps its name: %s", path, e.message);
	return strdup(path);
}

void target_tell_partials(const char *path, const char *partial)
{
	log_warning("unfinished-output",
		    "%s%s exists: an unfinished output. It stays as it is; this one is %s until it "
		    "is complete",
		    path, PARTIAL_SUFFIX, partial);
}

/* `end` is where the reserve ends. */
static enum status keep_in_file(struct output *o, uint64_t end, struct err *e)
{
	enum status st = target_reserve(&o->target, o->bytes, end + RESERVE_STEP, NULL);

	if (!st) {
		o->kept = end + RESERVE_STEP;
		return ST_OK;
	}
	if (st == ST_OUTPUT)
		st = target_reserve(&o->target, o->bytes, end, e);
	if (!st)
		o->kept = end;
	if (st != ST_NOT_MINE)
		return st;
	o->reserve = 0;
	return ST_OK;
}

/* ST_OUTPUT, as on a full disk, if `len` more bytes leave too little room for the end. */
static enum status keep_reserve(struct output *o, size_t len, struct err *e)
{
	const uint64_t end = o->bytes + len + o->reserve;

	if (!o->reserve || end <= o->kept)
		return ST_OK;
	if (o->target.kind == TARGET_FILE)
		return keep_in_file(o, end, e);
	if (end > o->room)
		return err_from_errno(e, ST_OUTPUT, ENOSPC, "%s: write", o->target.path);
	return ST_OK;
}

static enum status write_counted(struct sink *s, const void *p, size_t len, struct err *e)
{
	struct output *o = (struct output *)s;
	enum status st = keep_reserve(o, len, e);

	if (!st)
		st = sink_write(&o->file.sink, p, len, e);
	if (!st)
		o->bytes += len;
	return st;
}

/* Holes only in a regular file: a disk keeps its old content where nothing is written. */
static enum status skip_counted(struct sink *s, uint64_t len, struct err *e)
{
	struct output *o = (struct output *)s;
	const enum status st = target_hole(&o->target, len, o->bytes + len, e);

	if (!st)
		o->bytes += len;
	return st;
}

static enum status cut_counted(struct sink *s, uint64_t len, struct err *e)
{
	struct output *o = (struct output *)s;
	/* To make the file shorter would give away the room that was kept for it. */
	const bool kept = o->kept || o->target.kind == TARGET_BLOCK;
	const enum status st =
		kept ? target_seek(&o->target, len, e) : target_cut(&o->target, len, e);

	if (!st) {
		o->bytes = len;
		o->reserve = 0;
	}
	return st;
}

/* Gives back what was kept and not used, and what a cut has left. */
static enum status give_back(struct output *o, struct err *e)
{
	if (!o->kept || o->target.fd < 0)
		return ST_OK;
	o->kept = 0;
	return target_cut(&o->target, o->bytes, e);
}

static enum status read_back(struct blob *b, uint64_t off, void *p, size_t len, size_t *got,
			     struct err *e)
{
	const struct output *o = (struct output *)((char *)b - offsetof(struct output, blob));
	ssize_t n = 1;

	for (*got = 0; *got < len && n; *got += (size_t)n) {
		n = os_pread(o->target.fd, (uint8_t *)p + *got, MIN(len - *got, IO_MAX),
			     off + *got);
		if (n < 0)
			return err_from_errno(e, ST_INPUT, errno, "%s: read", o->target.path);
	}
	return ST_OK;
}

struct blob *output_blob(struct output *o)
{
	if (o->target.kind == TARGET_STREAM)
		return NULL;
	o->blob = (struct blob){ .read_at = read_back, .size = o->bytes };
	return &o->blob;
}

char *output_default_path(const char *suffix)
{
	char name[HOST_NAME_SIZE], time[CLOCK_FILE_NAME_SIZE];
	char *path;

	host_name(name);
	clock_file_name(clock_wall_ns(), time);
	if (asprintf(&path, "%s-%s%s", name, time, suffix) < 0)
		return NULL;
	return path;
}

static enum status open_target(const struct output_options *o, struct target *ret, struct err *e)
{
	_cleanup_free_ char *standard = NULL;

	if (o->path && !strcmp(o->path, "-"))
		return target_open_stdout(ret, e);
	if (!o->path && !(standard = output_default_path(o->suffix ? o->suffix : ".rsz")))
		return err_nomem(e);
	return target_open(o->path ? o->path : standard, o->force, o->inputs, ret, e);
}

/* An estimate may be wrong by so much and the room still do: a quarter. */
static uint64_t with_margin(uint64_t likely)
{
	return likely + likely / 4;
}

enum output_room output_judge_room(uint64_t room, const struct output_need *need, const char *path,
				   struct err *e)
{
	char have[TEXT_SIZE_MAX], least[TEXT_SIZE_MAX], likely[TEXT_SIZE_MAX], most[TEXT_SIZE_MAX];

	text_size(room, have);
	text_size(need->least, least);
	text_size(need->likely, likely);
	text_size(need->most, most);
	if (room < need->least) {
		err_set(e, ST_OUTPUT,
			"%s: may need %s, has room for %s; --force tries all the same", path, least,
			have);
		return ROOM_TOO_LITTLE;
	}
	if (room >= need->most || (need->likely && room >= with_margin(need->likely)))
		return ROOM_ENOUGH;
	if (need->likely)
		err_set(e, ST_OUTPUT,
			"%s: has room for %s, may need about %s (estimated from a sample), and %s "
			"if nothing compresses",
			path, have, likely, most);
	else
		err_set(e, ST_OUTPUT, "%s: has room for %s, may need %s if nothing compresses",
			path, have, most);
	return ROOM_DOUBTFUL;
}

enum status output_check_room(uint64_t room, const struct output_need *need, bool force,
			      const char *path, struct err *e)
{
	struct err why = ERR_INIT;
	const enum output_room r = force ? ROOM_ENOUGH : output_judge_room(room, need, path, &why);

	if (r == ROOM_TOO_LITTLE)
		return err_set(e, ST_OUTPUT, "%s", why.message);
	if (r == ROOM_DOUBTFUL)
		log_warning("room", "%s", why.message);
	return ST_OK;
}

enum status output_open(const struct output_options *options, struct output **ret, struct err *e)
{
	struct output *o = calloc(1, sizeof(*o));
	enum status st;

	if (!o)
		return err_nomem(e);
	st = open_target(options, &o->target, e);
	if (!st && target_room(&o->target, &o->room))
		st = output_check_room(o->room, &options->need, options->force, o->target.path, e);
	if (st) {
		output_destroy(o);
		return st;
	}
	o->sink.write = write_counted;
	if (o->target.kind == TARGET_FILE) {
		o->sink.skip = skip_counted;
		o->sink.cut = cut_counted;
	}
	if (o->target.kind == TARGET_FILE || (o->target.kind == TARGET_BLOCK && o->room))
		o->reserve = options->reserve;
	if (o->reserve)
		o->sink.cut = cut_counted;
	o->force = options->force;
	/* With a reserve it gets its name also when the disk is full. */
	fd_sink_init(&o->file, o->target.fd, options->reserve ? o->target.path : output_where(o));
	*ret = o;
	return ST_OK;
}

void output_destroy(struct output *o)
{
	if (!o)
		return;
	if (!o->committed && o->bytes)
		give_back(o, NULL);
	else if (!o->committed)
		target_remove_partial(&o->target);
	target_deinit(&o->target);
	free(o);
}

struct sink *output_sink(struct output *o)
{
	return &o->sink;
}

enum status output_commit(struct output *o, struct err *e)
{
	enum status st = give_back(o, e);

	if (!st)
		st = target_close(&o->target, e);

	if (!st && o->target.kind == TARGET_FILE)
		st = target_publish(&o->target, o->force, e);
	if (!st)
		o->committed = true;
	return st;
}

enum status output_keep(struct output *o, struct err *e)
{
	const enum status st = give_back(o, e);

	return st ? st : target_close(&o->target, e);
}

void output_discard(struct output *o)
{
	if (!o->committed)
		target_remove_partial(&o->target);
}

bool output_is_file(const struct output *o)
{
	return o->target.kind == TARGET_FILE;
}

bool output_is_at(const struct output *o, const char *path)
{
	return target_is_at(&o->target, path);
}

const char *output_name(const struct output *o)
{
	return o->target.path;
}

const char *output_where(const struct output *o)
{
	return o->target.partial && !o->committed ? o->target.partial : o->target.path;
}

uint64_t output_bytes(const struct output *o)
{
	return o->bytes;
}
