/* SPDX-License-Identifier: Apache-2.0 */
/* A regular file or a disk: it can be read anywhere, locked, and changed where it is. */
#include "agent/shared/container/input.h"
#include "agent/shared/output/output_target.h"

struct file_input {
	struct input input;
	struct file_blob file;
};

static void file_input_close(struct input *in)
{
	struct file_input *f = (struct file_input *)in;

	file_blob_deinit(&f->file);
	free(f);
}

static enum status open_locked(struct file_input *f, const struct input_options *o, struct err *e)
{
	int fd;
	enum status st = target_open_existing(o->path, o->change, &fd, e);

	if (!st)
		st = file_blob_take(&f->file, fd, e);
	if (!st)
		st = target_lock(fd, !o->change, e);
	return st ? err_add(e, st, "%s", o->path) : ST_OK;
}

static enum status file_input_open(const struct input_options *o, struct input **ret, struct err *e)
{
	struct file_input *f = calloc(1, sizeof(*f));
	enum status st;

	if (!f)
		return err_nomem(e);
	f->file.fd = -1;
	if (o->lock || o->change)
		st = open_locked(f, o, e);
	else
		st = file_blob_open(&f->file, o->path, e);
	if (st) {
		file_input_close(&f->input);
		return st;
	}
	f->input = (struct input){ .ops = &file_input, .blob = &f->file.blob, .fd = f->file.fd };
	*ret = &f->input;
	return ST_OK;
}

const struct input_ops file_input = { .name = "file",
				      .open = file_input_open,
				      .close = file_input_close };
