/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/drv.h"

#include <string.h>

#include "driver-interface/parts.h"
#include "driver-interface/source.h"
#include "formats/base/words.h"

/* The ops called `name` (`len` characters), or NULL. */
static const struct drv_ops *find_ops(const char *name, size_t len)
{
	for (const struct drv_ops *const *ops = drv_table; *ops; ops++)
		if (strlen((*ops)->name) == len && memcmp((*ops)->name, name, len) == 0)
			return *ops;
	return NULL;
}

static const char *source_at(const void *of, size_t i)
{
	(void)of;
	if (!i)
		return "auto";
	return drv_table[i - 1] ? drv_table[i - 1]->name : NULL;
}

static enum status err_no_such_source(const char *name, size_t len, struct err *e)
{
	char all[200];

	words_join(source_at, NULL, ", ", " or ", all, sizeof(all));
	return err_set(e, ST_USAGE, "there is no source \"%.*s\"; there are %s", (int)MIN(len, 100),
		       name, all);
}

enum status drv_open(const char *spec, struct drv **ret, struct err *e)
{
	const char *colon = strchr(spec, ':');
	const size_t len = colon ? (size_t)(colon - spec) : strlen(spec);
	const struct drv_ops *ops = find_ops(spec, len);
	const char *path;
	struct drv *d = NULL;
	enum status st;

	if (!colon && strcmp(spec, "auto") == 0)
		return chain_open(drv_table, ret, e);
	if (!ops)
		return err_no_such_source(spec, len, e);
	path = colon ? colon + 1 : ops->default_path;
	if (!path || !*path)
		return err_set(e, ST_USAGE, "source %s needs a path (%s:PATH)", ops->name,
			       ops->name);
	st = ops->open(path, &d, e);
	if (st) {
		/* The user named it: there is no next one to try. */
		return err_add(e, st == ST_NOT_MINE ? ST_NO_SOURCE : st, "%s", ops->name);
	}
	*ret = d;
	return ST_OK;
}

void drv_close(struct drv *d)
{
	if (d)
		d->ops->close(d);
}

void drv_maps_deinit(struct drv_maps *m)
{
	for (size_t i = 0; i < m->count; i++)
		range_list_deinit(&m->at[i].ranges);
	m->count = 0;
}

enum status drv_maps_again(struct drv *d, struct drv_maps *ret, struct err *e)
{
	return d->ops->maps_again ? d->ops->maps_again(d, ret, e) : ST_OK;
}

void drv_note_parts(struct drv *d, bool on)
{
	if (on && !d->parts)
		d->parts = parts_create(&d->info.maps[0].ranges);
	d->noting_parts = on && d->parts;
}

const struct drv_part *drv_parts(const struct drv *d, size_t *ret_count)
{
	*ret_count = 0;
	return d->parts ? parts_list(d->parts, ret_count) : NULL;
}
