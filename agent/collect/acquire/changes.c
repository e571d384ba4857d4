/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/changes.h"

#include <inttypes.h>
#include <string.h>

#include "agent/collect/capture/manifest.h"
#include "agent/collect/order/order.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"

void memory_changes_deinit(struct memory_changes *c)
{
	drv_maps_deinit(&c->now);
	while (c->n_again)
		drv_close(c->again[--c->n_again]);
	drv_withheld_deinit(&c->before);
	range_list_deinit(&c->withheld);
	range_list_deinit(&c->returned);
	range_list_deinit(&c->added);
	range_list_deinit(&c->removed);
	range_list_deinit(&c->acquired);
	range_list_deinit(&c->missing);
}

enum status changes_begin(struct memory_changes *c, struct drv *d, struct err *e)
{
	const enum status st = drv_withheld(d, &c->before, e);
	const uint64_t offline = range_list_bytes(&c->before.offline) / PAGE_SIZE;
	const uint64_t poisoned = range_list_bytes(&c->before.poisoned) / PAGE_SIZE;
	const uint64_t holes = range_list_bytes(&c->before.holes) / PAGE_SIZE;

	if (!st && (offline || poisoned))
		log_warning("pages-withheld",
			    "%" PRIu64 " pages are offline, unplugged or in a balloon, and %" PRIu64
			    " poisoned: they are not read",
			    offline, poisoned);
	if (!st && holes)
		log_warning("pages-unmapped",
			    "%" PRIu64 " pages are not in the kernel's direct map, as those of "
			    "memfd_secret: what reads as zeros there counts as unreadable",
			    holes);
	return st;
}

/* --- maps ---------------------------------------------------------------------------------- */

static const struct drv_map *find_map(const struct drv_map *maps, size_t count, const char *origin)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(maps[i].origin, origin))
			return &maps[i];
	return NULL;
}

/* Replaces *ret by what of `a` is not in `b`. */
static enum status subtract_ranges(const struct range_list *a, const struct range_list *b,
				   struct range_list *ret, struct err *e)
{
	range_list_deinit(ret);
	return range_list_subtract(a, b, ret, e);
}

static enum status find_changes(struct memory_changes *c, const struct range_list *then,
				const struct range_list *now, struct err *e)
{
	enum status st = subtract_ranges(now, then, &c->added, e);

	if (!st)
		st = subtract_ranges(then, now, &c->removed, e);
	return st ? st : subtract_ranges(&c->added, &c->acquired, &c->missing, e);
}

enum status changes_sample(struct memory_changes *c, struct drv *d, struct err *e)
{
	const struct drv_map *map;
	enum status st;

	drv_maps_deinit(&c->now);
	st = drv_maps_again(d, &c->now, e);
	if (st)
		return st;
	map = find_map(c->now.at, c->now.count, d->info.maps[0].origin);
	return map ? find_changes(c, &d->info.maps[0].ranges, &map->ranges, e) : ST_OK;
}

/* --- what was added ------------------------------------------------------------------------ */

static bool open_added_memory(struct memory_changes *c, const char *spec)
{
	struct err why = ERR_INIT;

	if (c->n_again == CHANGES_ROUNDS)
		return false;
	if (drv_open(spec, &c->again[c->n_again], &why)) {
		log_warning("memory-not-acquired", "memory was added but cannot be read: %s",
			    why.message);
		return false;
	}
	c->n_again++;
	return true;
}

struct drv *changes_source(const struct memory_changes *c, struct drv *d)
{
	return c->n_again ? c->again[c->n_again - 1] : d;
}

static enum status acquire_missing(struct memory_changes *c, const struct memory_plan *plan,
				   struct memory_result *ret, struct err *e)
{
	struct memory_plan rest = *plan;
	enum status st;

	rest.source = c->again[c->n_again - 1];
	rest.ranges = &c->missing;
	rest.order = &linear_order;
	st = memory_acquire(&rest, ret, e);
	if (st)
		return st;
	range_list_deinit(&c->missing);
	return range_list_copy(&c->acquired, &c->added, e);
}

enum status changes_acquire(struct memory_changes *c, struct drv *d, const char *spec,
			    const struct memory_plan *plan, struct memory_result *ret,
			    struct err *e)
{
	enum status st = changes_sample(c, d, e);

	while (!st && c->missing.count && d->info.grows && !ret->stopped &&
	       open_added_memory(c, spec)) {
		st = acquire_missing(c, plan, ret, e);
		if (!st)
			st = changes_sample(c, d, e);
	}
	return st;
}

enum status changes_ranges(const struct memory_changes *c, const struct drv *d,
			   struct range_list *ret, struct err *e)
{
	enum status st = range_list_copy(ret, &d->info.maps[0].ranges, e);

	for (size_t i = 0; i < c->added.count && !st; i++)
		st = range_list_add(ret, c->added.at[i].first, c->added.at[i].last, e);
	range_list_tidy(ret, NULL);
	return st;
}

/* --- the end ------------------------------------------------------------------------------- */

static enum status add_ranges(struct range_list *ret, const struct range_list *l, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < l->count && !st; i++)
		st = range_list_add(ret, l->at[i].first, l->at[i].last, e);
	return st;
}

/* All kinds in one list: what a page is withheld for may change, too. */
static enum status join_withheld(const struct drv_withheld *w, struct range_list *ret,
				 struct err *e)
{
	enum status st = range_list_copy(ret, &w->offline, e);

	if (!st)
		st = add_ranges(ret, &w->poisoned, e);
	if (!st)
		st = add_ranges(ret, &w->holes, e);
	range_list_tidy(ret, NULL);
	range_list_join(ret);
	return st;
}

/* Where one list has its limit, differences mean nothing. */
static enum status compare_withheld(struct memory_changes *c, const struct drv_withheld *after,
				    struct err *e)
{
	_cleanup_ranges_ struct range_list then = { 0 }, now = { 0 };
	enum status st;

	if (c->before.known != after->known || c->before.holes_known != after->holes_known ||
	    c->before.untold || after->untold)
		return ST_OK;
	st = join_withheld(&c->before, &then, e);
	if (!st)
		st = join_withheld(after, &now, e);
	if (!st)
		st = subtract_ranges(&now, &then, &c->withheld, e);
	return st ? st : subtract_ranges(&then, &now, &c->returned, e);
}

static void warn_of_change(const struct range_list *l, const char *event, const char *what)
{
	char size[TEXT_SIZE_MAX];

	if (!l->count)
		return;
	text_size(range_list_bytes(l), size);
	log_warning(event, "%s of memory %s during the acquisition", size, what);
}

static void report_map(const struct drv_info *info, const struct drv_map *now)
{
	const struct drv_map *then = find_map(info->maps, info->n_maps, now->origin);

	if (!then || !range_list_same(&then->ranges, &now->ranges))
		log_warning("map-changed",
			    "%s lists other RAM than before; both lists are recorded", now->origin);
}

enum status changes_end(struct memory_changes *c, struct drv *d, struct err *e)
{
	struct drv_withheld after = { 0 };
	enum status st = drv_withheld(d, &after, e);

	if (!st)
		st = compare_withheld(c, &after, e);
	drv_withheld_deinit(&after);
	for (size_t i = 0; i < c->now.count; i++)
		report_map(&d->info, &c->now.at[i]);
	warn_of_change(&c->acquired, "memory-added", "were added, and acquired,");
	warn_of_change(&c->missing, "memory-missing", "was added but not acquired");
	warn_of_change(&c->removed, "memory-removed", "was removed");
	warn_of_change(&c->withheld, "memory-withheld",
		       "went offline, were poisoned or left the direct map");
	warn_of_change(&c->returned, "memory-returned", "came back");
	return st;
}

enum status changes_outcome(const struct memory_changes *c, struct err *e)
{
	char size[TEXT_SIZE_MAX];

	if (!c->missing.count)
		return ST_OK;
	text_size(range_list_bytes(&c->missing), size);
	return err_set(e, ST_UNREADABLE,
		       "%s of memory was added during the acquisition and is missing; its "
		       "addresses are recorded",
		       size);
}

json_t *changes_parts_json(const struct memory_changes *c, const struct drv *d)
{
	json_t *list = manifest_parts(d);

	for (size_t i = 0; list && i < c->n_again; i++) {
		json_t *more = manifest_parts(c->again[i]);

		json_array_extend(list, more);
		json_decref(more);
	}
	return list;
}

json_t *changes_withheld_json(const struct memory_changes *c)
{
	return json_pack("{s:b, s:o, s:o, s:b, s:o, s:I}", "known", c->before.known, "offline",
			 json_ranges(&c->before.offline), "poisoned",
			 json_ranges(&c->before.poisoned), "holes_known", c->before.holes_known,
			 "holes", json_ranges(&c->before.holes), "untold_pages",
			 (json_int_t)c->before.untold);
}

json_t *changes_json(const struct memory_changes *c)
{
	if (!c->added.count && !c->removed.count && !c->withheld.count && !c->returned.count)
		return NULL;
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "added", json_ranges(&c->added), "missing",
			 json_ranges(&c->missing), "removed", json_ranges(&c->removed), "withheld",
			 json_ranges(&c->withheld), "returned", json_ranges(&c->returned));
}
