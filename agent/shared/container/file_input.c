/* SPDX-License-Identifier: Apache-2.0 */
/* A regular file or a disk: it can be read anywhere, locked, and changed where it is. */
#include "agent/shared/container/input.h"
#include "agent/shared/output/output_target.h"

#include <unistd.h>

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

static bool is_there(const char *path)
{
	return path && !access(path, F_OK);
}

/* An acquisition that was cut off has left its container under another name. */
static enum status say_partial(const char *path, enum status st, struct err *e)
{
	_cleanup_free_ char *partial = target_partial_path(path, 1);
	const struct err why = *e;

	if (is_there(path) || !is_there(partial))
		return st;
	return err_set(e, st, "%.240s; %.200s is there: `ramseal seal` closes it", why.message,
		       partial);
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
		return say_partial(o->path, st, e);
	}
	f->input = (struct input){ .ops = &file_input, .blob = &f->file.blob, .fd = f->file.fd };
	*ret = &f->input;
	return ST_OK;
}

const struct input_ops file_input = { .name = "file",
				      .open = file_input_open,
				      .close = file_input_close };
