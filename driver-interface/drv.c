/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/drv.h"

#include <string.h>

#include "driver-interface/parts.h"
#include "driver-interface/source.h"
#include "formats/base/left.h"
#include "formats/base/words.h"

const struct drv_ops *const *drv_table = drv_system_table;
const char *(*drv_stop)(void);

/* As many as a system has, and a few of the program's own. */
#define SOURCES_MAX 16

void drv_add_source(const struct drv_ops *ops)
{
	static const struct drv_ops *table[SOURCES_MAX + 1];
	size_t n = 0;

	for (; drv_table[n] && n < SOURCES_MAX - 1; n++)
		table[n] = drv_table[n];
	table[n] = ops;
	drv_table = table;
}

/* The ops called `name` (`len` characters), or NULL. */
static const struct drv_ops *find_ops(const char *name, size_t len)
{
	for (const struct drv_ops *const *ops = drv_table; *ops; ops++)
		if (strlen((*ops)->name) == len && memcmp((*ops)->name, name, len) == 0)
			return *ops;
	return NULL;
}

const char *drv_source_name(size_t i)
{
	if (!i)
		return "auto";
	return drv_table[i - 1] ? drv_table[i - 1]->name : NULL;
}

static const char *source_name_at(const void *of, size_t i)
{
	return drv_source_name(i);
}

static enum status err_no_such_source(const char *name, size_t len, struct err *e)
{
	char all[200], hint[WORDS_HINT_MAX];

	words_join(source_name_at, NULL, ", ", " or ", all, sizeof(all));
	words_hint(source_name_at, NULL, "", name, len, hint);
	return err_set(e, ST_USAGE, "unknown source \"%.*s\"%s; the sources are %s",
		       (int)MIN(len, 100), name, hint, all);
}

const char *drv_kind_name(enum drv_kind kind)
{
	switch (kind) {
	case DRV_OWN:
		return "part of the kernel";
	case DRV_MODULE:
		return "a module";
	case DRV_HAZARD:
		return "a hazard";
	case DRV_DEAD:
		break;
	}
	return "not a running machine";
}

/* Of NAME in "NAME:PATH". */
static size_t source_name_length(const char *spec)
{
	return strcspn(spec, ":");
}

const char *drv_error_meaning(uint32_t error)
{
	switch (error) {
	case DRV_POISONED:
		return "the hardware has lost it (poisoned)";
	case DRV_UNMAPPED:
		return "not in the kernel's direct map (memfd_secret, not accepted, freed)";
	default:
		return NULL;
	}
}

bool drv_is_live(const char *spec)
{
	const struct drv_ops *ops = find_ops(spec, source_name_length(spec));

	return ops ? ops->kind != DRV_DEAD : strcmp(spec, "auto") == 0;
}

enum status drv_open(const char *spec, struct drv **ret, struct err *e)
{
	const char *colon = strchr(spec, ':');
	const size_t len = source_name_length(spec);
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
	if (d && drv_is_abandoned(d))
		left_keep(d);
	else if (d)
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
	return d->ops->maps_again && !drv_is_abandoned(d) ? d->ops->maps_again(d, ret, e) : ST_OK;
}

/* --- pages that must not be read ----------------------------------------------------------- */

void drv_withheld_deinit(struct drv_withheld *w)
{
	range_list_deinit(&w->offline);
	range_list_deinit(&w->poisoned);
	range_list_deinit(&w->holes);
	*w = (struct drv_withheld){ 0 };
}

static enum status add_withheld_pages(struct drv_withheld *w, struct range_list *l, uint64_t addr,
				      size_t pages, struct err *e)
{
	struct range *last = l->count ? &l->at[l->count - 1] : NULL;

	if (last && last->last + 1 == addr)
		last->last += pages * PAGE_SIZE;
	else if (l->count < DRV_WITHHELD_MAX)
		return range_list_add(l, addr, addr + pages * PAGE_SIZE - 1, e);
	else
		w->untold += pages;
	return ST_OK;
}

/* Pages that are asked for at once, on the stack. */
#define WITHHELD_PAGES 512

static enum status add_map_range(struct drv *d, struct range r, struct drv_withheld *ret,
				 struct err *e)
{
	struct page_status status[WITHHELD_PAGES];
	enum status st = ST_OK;

	for (uint64_t addr = r.first; addr < r.last && !st;) {
		const size_t n = (size_t)MIN((r.last - addr) / PAGE_SIZE + 1, WITHHELD_PAGES);

		d->ops->withhold(d, addr, n, status);
		for (size_t i = 0; i < n && !st; i++, addr += PAGE_SIZE)
			if (status[i].state == PAGE_UNREADABLE)
				st = add_withheld_pages(ret, &ret->poisoned, addr, 1, e);
			else if (status[i].state != PAGE_DATA)
				st = add_withheld_pages(ret, &ret->offline, addr, 1, e);
	}
	return st;
}

static enum status add_holes(struct drv *d, struct range r, struct drv_withheld *ret, struct err *e)
{
	enum status st = ST_OK;
	size_t n;

	for (uint64_t addr = r.first; addr < r.last && !st; addr += n * PAGE_SIZE) {
		bool hole;

		n = d->ops->look(d, addr, (size_t)((r.last - addr) / PAGE_SIZE + 1), &hole);
		if (hole)
			st = add_withheld_pages(ret, &ret->holes, addr, n, e);
	}
	return st;
}

/* Linux takes a page that is poisoned out of the map, too (set_mce_nospec()): it is told once. */
static enum status subtract_withheld(struct range_list *l, const struct range_list *without,
				     struct err *e)
{
	_cleanup_ranges_ struct range_list all = *l;

	*l = (struct range_list){ 0 };
	return range_list_subtract(&all, without, l, e);
}

enum status drv_withheld(struct drv *d, struct drv_withheld *ret, struct err *e)
{
	const struct range_list *l = &d->info.maps[0].ranges;
	const bool ask = !drv_is_abandoned(d);
	enum status st = ST_OK;

	ret->known = ask && d->ops->withhold && d->info.withholds;
	ret->holes_known = ask && d->ops->look && d->info.finds_holes;
	for (size_t i = 0; i < l->count && !st; i++) {
		if (ret->known)
			st = add_map_range(d, l->at[i], ret, e);
		if (!st && ret->holes_known)
			st = add_holes(d, l->at[i], ret, e);
	}
	if (!st)
		st = subtract_withheld(&ret->holes, &ret->offline, e);
	return st ? st : subtract_withheld(&ret->holes, &ret->poisoned, e);
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
