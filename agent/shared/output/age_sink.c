/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/output/age_sink.h"

#include "agent/shared/output/output_sink.h"
#include "agent/shared/output/output_target.h"

#include <string.h>

struct age_output {
	struct output output;
	struct age_writer *writer;
	bool discarded;
	bool spent; /* the end alone may follow, and somebody knows */
};

static struct age_writer *writer_of(const struct output *o)
{
	return ((const struct age_output *)o)->writer;
}

static enum status age_write(struct output *o, const void *p, size_t len, struct err *e)
{
	return age_writer_write(writer_of(o), p, len, e);
}

/*
 * What is there stays; but the room for the end is given back by this, and after a read the one
 * below learns where it goes on.
 */
static enum status age_cut(struct output *o, uint64_t len, struct err *e)
{
	struct age_output *a = (struct age_output *)o;
	enum status st;

	if (len != o->bytes || age_writer_is_over(a->writer))
		return err_set(e, ST_OUTPUT, "what was encrypted cannot be taken back");
	st = sink_cut(output_sink(o->below), age_writer_stored(a->writer), e);
	if (!st)
		a->spent = true;
	return st;
}

static struct blob *age_read_back(struct output *o, uint64_t size)
{
	struct blob *below = output_blob(o->below), *ret;

	if (!below || age_writer_is_over(writer_of(o)))
		return NULL;
	ret = age_writer_blob(writer_of(o), below);
	ret->size = MIN(ret->size, size);
	return ret;
}

static enum status age_check(const struct output *o, struct err *e)
{
	return age_writer_is_full(writer_of(o), e) && !((const struct age_output *)o)->spent
		       ? ST_OUTPUT
		       : ST_OK;
}

static enum status age_commit(struct output *o, struct err *e)
{
	const enum status st = age_writer_end(writer_of(o), e);

	return st ? st : output_commit(o->below, e);
}

static void age_discard(struct output *o)
{
	((struct age_output *)o)->discarded = true;
	output_discard(o->below);
}

static enum status age_keep(struct output *o, struct err *e)
{
	const enum status st = age_writer_end(writer_of(o), e);

	return st ? st : output_keep(o->below, e);
}

/* What ended early gets an end of its own, so that what was held back can be read. */
static void age_destroy(struct output *o)
{
	struct age_output *a = (struct age_output *)o;

	if (o->bytes && !a->discarded && !age_writer_is_over(a->writer))
		(void)age_writer_end(a->writer, NULL);
	age_writer_destroy(a->writer);
	free(a);
}

static const struct output_ops age_sink = {
	.name = "age",
	.write = age_write,
	.cut = age_cut,
	.blob = age_read_back,
	.check = age_check,
	.commit = age_commit,
	.keep = age_keep,
	.discard = age_discard,
	.destroy = age_destroy,
};

void age_sink_need(struct output_need *need)
{
	/* Of each 64 KiB the tag: 1/4096. */
	need->least += AGE_SINK_RESERVE;
	need->likely += need->likely / 4096;
	need->most += need->most / 4096 + AGE_SINK_RESERVE;
}

static enum status refuse_encrypted_disk(const char *name, struct err *e)
{
	return err_set(e, ST_OUTPUT,
		       "%s: is a disk, so the end of the encrypted data would be unknown: write to "
		       "a file on it",
		       name);
}

enum status age_sink_check_path(const char *path, struct err *e)
{
	struct err why = ERR_INIT;
	struct target_facts facts;

	if (target_inspect(path, true, NULL, &facts, &why) || facts.is != PATH_IS_DISK)
		return ST_OK;
	return refuse_encrypted_disk(path, e);
}

enum status age_sink_put_on(struct output **o, const struct age_recipients *to, struct err *e)
{
	struct age_output *a;
	enum status st;

	if (output_is_disk(*o))
		return refuse_encrypted_disk(output_name(*o), e);
	a = calloc(1, sizeof(*a));
	st = a ? age_writer_create(output_sink(*o), to, &a->writer, e) : err_nomem(e);
	if (st) {
		free(a);
		return st;
	}
	output_init(&a->output, &age_sink, *o);
	*o = &a->output;
	return ST_OK;
}

bool age_sink_lacks_suffix(const char *path)
{
	static const char suffix[] = ".age";
	const size_t n = strlen(path), len = sizeof(suffix) - 1;
	struct err why = ERR_INIT;
	struct target_facts facts;

	if (!strcmp(path, "-") || target_inspect(path, true, NULL, &facts, &why) ||
	    facts.is != PATH_IS_FILE)
		return false;
	return n < len || strcmp(path + n - len, suffix) != 0;
}
