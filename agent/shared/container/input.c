/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/container/input.h"

#include <string.h>

#include "agent/shared/container/age_input.h"

/* Asked in this order; what only looks at the path comes first. */
static const struct input_ops *const table[] = {
	&stdin_input,
	&file_input,
};

const char *input_name(const char *path)
{
	return strcmp(path, "-") != 0 ? path : "stdin";
}

static enum status open_any_input(const struct input_options *o, struct input **ret, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const enum status st = table[i]->open(o, ret, e);

		if (st != ST_NOT_MINE)
			return st;
	}
	return err_set(e, ST_INPUT, "%s: cannot be read as a container", o->path);
}

enum status input_open(const struct input_options *o, struct input **ret, struct err *e)
{
	struct input *in = NULL;
	enum status st = open_any_input(o, &in, e);

	if (!st && in->forward && (!o->forward || o->lock || o->change)) {
		input_close(in);
		return err_set(e, ST_INPUT, "%s: can only be read forward: save it to a file first",
			       input_name(o->path));
	}
	if (!st)
		st = age_input_put_on(&in, o, e);
	if (!st && in->encrypted && o->change)
		st = err_set(e, ST_OUTPUT,
			     "%s: is encrypted, and cannot be changed in place: use --output FILE",
			     input_name(o->path));
	if (st)
		input_close(in);
	else
		*ret = in;
	return st;
}

void input_close(struct input *in)
{
	if (in)
		in->ops->close(in);
}
