/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "auto": several sources as one. Each page is asked of the first source; what it cannot give is
 * asked of the next, and so on. A source that died is not asked again.
 */
#include <inttypes.h>
#include <string.h>

#include "driver-interface/parts.h"
#include "driver-interface/source.h"

#define CHAIN_MAX   8

/* Pages of one retry: its states are kept on the stack. */
#define RETRY_PAGES 256

struct chain {
	struct drv drv;
	struct drv *sources[CHAIN_MAX];
	size_t count;
	char note[512];
	char path[256];
};

static void chain_close(struct drv *d)
{
	struct chain *c = (struct chain *)d;

	for (size_t i = 0; i < c->count; i++)
		drv_close(c->sources[i]);
	drv__deinit(d);
	free(c);
}

static void note_parts(struct chain *c, size_t i, uint64_t addr, size_t pages,
		       const struct page_status *status)
{
	if (c->drv.noting_parts)
		parts_note(c->drv.parts, c->sources[i]->info.source, addr, pages, status);
}

/*
 * Whether a later source's answer is better than what stands. A source that fills with zeros what
 * it cannot read must not turn a page that failed elsewhere into zeros.
 */
static bool improves(struct page_status now, struct page_status then, bool silent_zero)
{
	if (then.state == PAGE_DATA)
		return !(now.state == PAGE_UNREADABLE && silent_zero);
	if (now.state == PAGE_UNREADABLE)
		return false;
	if (then.state == PAGE_UNREADABLE)
		return true;
	return now.detail == SKIP_SOURCE_FAILED;
}

static enum status retry(struct chain *c, size_t i, uint64_t addr, uint8_t *buf, size_t pages,
			 struct page_status *status, struct err *e)
{
	struct drv *s = c->sources[i];
	struct page_status then[RETRY_PAGES];
	enum status st = drv_read_pages(s, addr, buf, pages, then, NULL);

	if (st && st != ST_SOURCE_FAILED)
		return err_add(e, st, "%s", s->info.source);
	for (size_t k = 0; k < pages; k++) {
		const bool zero = s->info.silent && then[k].state == PAGE_DATA &&
				  bytes_are_zero(buf + k * PAGE_SIZE, PAGE_SIZE);

		if (improves(status[k], then[k], zero))
			status[k] = then[k];
		else if (then[k].state == PAGE_DATA)
			then[k] = status[k];
	}
	note_parts(c, i, addr, pages, then);
	return ST_OK;
}

/* Asks source `i` for every page that is not data yet. */
static enum status retry_missing(struct chain *c, size_t i, uint64_t addr, uint8_t *buf,
				 size_t pages, struct page_status *status, struct err *e)
{
	enum status st = ST_OK;

	for (size_t at = 0, n; at < pages && !st; at += MAX(n, 1)) {
		for (n = 0; at + n < pages && n < RETRY_PAGES && status[at + n].state != PAGE_DATA;
		     n++)
			;
		if (n)
			st = retry(c, i, addr + at * PAGE_SIZE, buf + at * PAGE_SIZE, n,
				   status + at, e);
	}
	return st;
}

static enum status chain_read_pages(struct drv *d, uint64_t addr, void *buf, size_t pages,
				    struct page_status *status, struct err *e)
{
	struct chain *c = (struct chain *)d;
	bool first = true, alive = false;
	enum status st = ST_OK;

	for (size_t i = 0; i < pages; i++)
		status[i] = (struct page_status){ PAGE_SKIPPED, SKIP_SOURCE_FAILED };
	for (size_t i = 0; i < c->count && !st; i++) {
		struct drv *s = c->sources[i];

		if (s->dead)
			continue;
		if (first) {
			st = drv_read_pages(s, addr, buf, pages, status, NULL);
			if (!st || st == ST_SOURCE_FAILED) {
				note_parts(c, i, addr, pages, status);
				st = ST_OK;
			}
		} else {
			st = retry_missing(c, i, addr, buf, pages, status, e);
		}
		first = false;
		alive |= !s->dead;
	}
	if (!st && !alive) {
		d->dead = true;
		return err_set(e, ST_SOURCE_FAILED,
			       "every source has failed, the last at or behind 0x%" PRIx64, addr);
	}
	return st;
}

/* Takes over a map, unless the same one told the same before. */
static enum status copy_map(struct drv *d, const struct drv_map *m, struct err *e)
{
	_cleanup_ranges_ struct range_list copy = { 0 };
	struct range_faults faults = m->faults;
	enum status st;

	for (size_t i = 0; i < d->info.n_maps; i++)
		if (!strcmp(d->info.maps[i].origin, m->origin) &&
		    range_list_same(&d->info.maps[i].ranges, &m->ranges))
			return ST_OK;
	if (d->info.n_maps == DRV_MAPS_MAX)
		return ST_OK;
	st = range_list_copy(&copy, &m->ranges, e);
	if (!st)
		st = drv__add_map(d, m->origin, &copy, e);
	if (!st)
		d->info.maps[d->info.n_maps - 1].faults = faults;
	return st;
}

/* Appends "name: text" to a list, as far as there is room; a cut ends in "...". */
static void append(char *list, size_t room, const char *separator, const char *name,
		   const char *text)
{
	const size_t len = strlen(list);
	const int n = snprintf(list + len, room - len, "%s%s%s%s", len ? separator : "", name,
			       text ? ": " : "", text ? text : "");

	if (n >= 0 && (size_t)n >= room - len)
		memcpy(list + room - 4, "...", 4);
}

/* What one source knows, the chain knows; where two do, the first is believed. */
static enum status merge_info(struct chain *c, const struct drv_info *s, struct err *e)
{
	struct drv_info *i = &c->drv.info;
	enum status st = ST_OK;

	append(c->path, sizeof(c->path), ", ", s->path, NULL);
	if (s->note)
		append(c->note, sizeof(c->note), "; ", s->source, s->note);
	i->silent |= s->silent;
	if (s->has_cr3 && !i->has_cr3)
		i->has_cr3 = true, i->cr3 = s->cr3;
	if (s->has_kernel_base && !i->has_kernel_base)
		i->has_kernel_base = true, i->kernel_base = s->kernel_base;
	if (s->has_kernel_phys && !i->has_kernel_phys)
		i->has_kernel_phys = true, i->kernel_phys = s->kernel_phys;
	if (s->has_direct_map && !i->has_direct_map)
		i->has_direct_map = true, i->direct_map = s->direct_map;
	if (s->notes && !i->notes)
		i->notes = s->notes, i->notes_size = s->notes_size;
	for (size_t k = 0; k < s->n_facts; k++)
		drv__fact(&c->drv, s->facts[k].name, "%s", s->facts[k].value);
	for (size_t k = 0; k < s->n_maps && !st; k++)
		st = copy_map(&c->drv, &s->maps[k], e);
	return st;
}

/* Of every source that is asked twice. */
static enum status chain_maps_again(struct drv *d, struct drv_maps *ret, struct err *e)
{
	struct chain *c = (struct chain *)d;
	enum status st = ST_OK;

	for (size_t i = 0; i < c->count && !st; i++) {
		_cleanup_drv_maps_ struct drv_maps one = { 0 };

		st = drv_maps_again(c->sources[i], &one, e);
		for (size_t k = 0; !st && k < one.count && ret->count < DRV_MAPS_MAX; k++)
			st = drv__maps_add(ret, one.at[k].origin, &one.at[k].ranges, e);
	}
	return st;
}

static const struct drv_ops chain_ops = {
	.name = "auto",
	.summary = "every source that answers, the next where one fails",
	.read_max = DRV_READ_LARGE,
	.read_pages = chain_read_pages,
	.maps_again = chain_maps_again,
	.close = chain_close,
};

/* One clause for each source that did not answer. */
struct refusals {
	char text[ERR_MESSAGE_MAX];
	bool privilege;
};

static enum status try_source(struct chain *c, const struct drv_ops *ops, struct refusals *no,
			      struct err *e)
{
	struct err why = ERR_INIT;
	struct drv *s = NULL;
	const enum status st = ops->open(ops->default_path, &s, &why);

	if (st == ST_NOMEM)
		return err_nomem(e);
	if (st) {
		no->privilege |= st == ST_NO_PRIVILEGE;
		append(no->text, sizeof(no->text), "; ", ops->name,
		       why.message[0] ? why.message : status_text(st));
		return ST_OK;
	}
	c->sources[c->count++] = s;
	return merge_info(c, &s->info, e);
}

static enum status fill(struct chain *c, const struct drv_ops *const *table, struct err *e)
{
	struct refusals no = { 0 };
	enum status st = drv__init(&c->drv, &chain_ops, "", e);

	for (; *table && c->count < CHAIN_MAX && !st; table++)
		if ((*table)->automatic)
			st = try_source(c, *table, &no, e);
	if (st)
		return st;
	if (!c->count)
		return err_set(e, no.privilege ? ST_NO_PRIVILEGE : ST_NO_SOURCE,
			       "no source of memory answers: %s",
			       no.text[0] ? no.text : "this system has none that is automatic");
	c->drv.info.path = c->path;
	c->drv.info.note = c->note[0] ? c->note : NULL;
	c->drv.info.error_numbers = c->sources[0]->info.error_numbers;
	return ST_OK;
}

enum status chain_open(const struct drv_ops *const *table, struct drv **ret, struct err *e)
{
	struct chain *c = calloc(1, sizeof(*c));
	enum status st;

	if (!c)
		return err_nomem(e);
	st = fill(c, table, e);
	if (st) {
		chain_close(&c->drv);
		return st;
	}
	*ret = &c->drv;
	return ST_OK;
}
