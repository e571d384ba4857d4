/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk: it has a size, and keeps its old content where nothing is written, so that there are no
 * holes. It is written where it is, and what ends early stays there.
 */
#include <errno.h>

#include "agent/shared/output/output_sink.h"
#include "agent/shared/output/output_target.h"

struct device_output {
	struct output output;
	struct target target;
	struct fd_sink fd;
	struct target_blob blob;
	bool measured; /* its size is known */
	uint64_t size;
	bool reserves;
	uint64_t reserve; /* kept free behind what is written; 0: none, or given back */
};

/* ST_OUTPUT, as on a full disk, if `len` more bytes leave too little room for the end. */
static enum status device_write(struct output *o, const void *p, size_t len, struct err *e)
{
	struct device_output *d = (struct device_output *)o;
	enum status st;

	if (d->reserve && o->bytes + len + d->reserve > d->size)
		return err_from_errno(e, ST_OUTPUT, ENOSPC, "%s: write", d->target.path);
	st = sink_write(&d->fd.sink, p, len, e);
	return st ? st : target_pace(&d->target, o->bytes + len, e);
}

/* Only what may fail for the reserve's sake is worth to be taken back. */
static enum status device_cut(struct output *o, uint64_t len, struct err *e)
{
	struct device_output *d = (struct device_output *)o;
	enum status st;

	if (!d->reserves)
		return err_set(e, ST_OUTPUT, "what was written cannot be taken back");
	st = target_seek(&d->target, len, e);
	if (!st)
		d->reserve = 0;
	d->target.begun = MIN(d->target.begun, len & ~(uint64_t)(PAGE_SIZE - 1));
	d->target.settled = MIN(d->target.settled, d->target.begun);
	return st;
}

static struct blob *device_read_back(struct output *o, uint64_t size)
{
	struct device_output *d = (struct device_output *)o;

	return target_blob_of(&d->blob, &d->target, size);
}

static bool device_room(const struct output *o, uint64_t *ret)
{
	const struct device_output *d = (const struct device_output *)o;

	*ret = d->size;
	return d->measured;
}

static enum status device_commit(struct output *o, struct err *e)
{
	return target_close(&((struct device_output *)o)->target, e);
}

static void device_destroy(struct output *o)
{
	struct device_output *d = (struct device_output *)o;

	target_deinit(&d->target);
	free(d);
}

static bool device_is_at(const struct output *o, const char *path)
{
	return target_is_device(&((const struct device_output *)o)->target, path);
}

static const char *device_path(const struct output *o)
{
	return ((const struct device_output *)o)->target.path;
}

static enum status device_open(const struct output_options *options, struct output **ret,
			       struct err *e)
{
	struct target_facts facts;
	struct device_output *d;
	enum status st = target_inspect(options->path, options->force, options->inputs, &facts, e);

	if (st || facts.is != PATH_IS_DISK)
		return st ? st : ST_NOT_MINE;
	d = calloc(1, sizeof(*d));
	if (!d)
		return err_nomem(e);
	output_init(&d->output, &device_sink, NULL);
	st = target_open_device(options->path, &facts, &d->target, e);
	if (st) {
		device_destroy(&d->output);
		return st;
	}
	d->measured = target_disk_size(&d->target, &d->size);
	d->reserve = d->measured && d->size ? options->reserve : 0;
	d->reserves = d->reserve;
	if (options->paced)
		target_step_back(&d->target);
	if (options->lean)
		target_leave_cache(&d->target);
	fd_sink_init(&d->fd, d->target.fd, d->target.path);
	*ret = &d->output;
	return ST_OK;
}

const struct output_ops device_sink = {
	.name = "device",
	.is_disk = true,
	.open = device_open,
	.write = device_write,
	.cut = device_cut,
	.blob = device_read_back,
	.room = device_room,
	.commit = device_commit,
	.keep = device_commit,
	.destroy = device_destroy,
	.is_at = device_is_at,
	.path = device_path,
};
