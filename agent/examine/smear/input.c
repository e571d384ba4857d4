/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/smear/input.h"

/* `st`: of opening the container. */
static enum status read_smear_lines(enum status st, const char *path, struct smear_input *ret,
				    struct err *e)
{
	static const char *const events[] = { "begin", "tables", "file", "end", NULL };

	ret->lines = NULL;
	if (st)
		return st;
	st = container_lines(&ret->container, events, &ret->lines, e);
	if (!st)
		return ST_OK;
	container_close(&ret->container);
	return err_add(e, st, "%s", input_name(path));
}

enum status smear_input_open(const char *path, const struct age_identities *x,
			     struct smear_input *ret, struct err *e)
{
	return read_smear_lines(container_open(path, x, &ret->container, e), path, ret, e);
}

enum status smear_input_open_outline(const char *path, const struct age_identities *x,
				     struct smear_input *ret, struct container_sums *sums,
				     struct err *e)
{
	return read_smear_lines(container_open_outline(path, x, &ret->container, sums, e), path,
				ret, e);
}

void smear_input_close(struct smear_input *i)
{
	json_decref(i->lines);
	container_close(&i->container);
	i->lines = NULL;
}

struct smear_plan smear_input_plan(struct smear_input *i)
{
	return (struct smear_plan){
		.in = i->container.blob,
		.reader = i->container.reader,
		.manifest = i->lines,
		.outline = i->container.outline != NULL,
	};
}
