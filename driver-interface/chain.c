/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "auto": several sources as one. Each page is asked of the first source; what it cannot give is
 * asked of the next, and so on. A source that died is not asked again. A source is opened when
 * those before it have left a page that may be read, and not before: what nobody needs is not
 * touched.
 */
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "driver-interface/parts.h"
#include "driver-interface/source.h"

#define CHAIN_MAX   8

/* Pages of one retry: their states are kept on the stack. */
#define RETRY_PAGES 256

struct chain {
	struct drv drv;
	struct drv *sources[CHAIN_MAX];
	atomic_size_t count;
	const struct drv_ops *const *next; /* in the table: not tried yet */
	char note[512];
	char path[256];
	pthread_mutex_t opening; /* guards the above; `count` may be read at any time */
	pthread_mutex_t one;     /* held by who reads a source that is not info.parallel */
};

static void chain_close(struct drv *d)
{
	struct chain *c = (struct chain *)d;

	for (size_t i = 0; i < c->count; i++)
		drv_close(c->sources[i]);
	pthread_mutex_destroy(&c->opening);
	pthread_mutex_destroy(&c->one);
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
static bool improves_status(struct page_status now, struct page_status then, bool silent_zero)
{
	if (then.state == PAGE_DATA)
		return !(now.state == PAGE_UNREADABLE && silent_zero);
	if (now.state == PAGE_UNREADABLE)
		return false;
	if (then.state == PAGE_UNREADABLE)
		return true;
	return now.detail == SKIP_SOURCE_FAILED;
}

/* Who reads: a thread beside others, or DRV_BESIDE. */
struct chain_reader {
	struct chain *c;
	unsigned number;
};

/*
 * Waits until nobody else reads a source that takes one reader. False: one of those reads was given
 * up, and will hold its source for ever.
 */
static bool wait_for_turn(struct chain *c)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	while (pthread_mutex_trylock(&c->one)) {
		if (drv_is_abandoned(&c->drv))
			return false;
		nanosleep(&ms, NULL);
	}
	return true;
}

/* As drv_read_pages() of one of the sources. */
static enum status read_from_source(const struct chain_reader *by, struct drv *s, uint64_t addr,
				    void *buf, size_t pages, struct page_status *status,
				    struct err *e)
{
	enum status st;

	if (by->number == DRV_BESIDE)
		return drv_read_pages(s, addr, buf, pages, status, e);
	if (s->info.parallel)
		return drv_read_pages_beside(s, by->number, addr, buf, pages, status, e);
	if (!wait_for_turn(by->c)) {
		for (size_t i = 0; i < pages; i++)
			status[i] = (struct page_status){ PAGE_SKIPPED, SKIP_SOURCE_FAILED };
		return ST_SOURCE_FAILED;
	}
	st = drv_read_pages_beside(s, by->number, addr, buf, pages, status, e);
	pthread_mutex_unlock(&by->c->one);
	return st;
}

static enum status retry_pages(const struct chain_reader *by, size_t i, uint64_t addr, uint8_t *buf,
			       size_t pages, struct page_status *status, struct err *e)
{
	struct drv *s = by->c->sources[i];
	struct page_status then[RETRY_PAGES];
	enum status st = read_from_source(by, s, addr, buf, pages, then, NULL);

	if (st && st != ST_SOURCE_FAILED)
		return err_add(e, st, "%s", s->info.source);
	for (size_t k = 0; k < pages; k++) {
		const bool zero = s->info.silent && then[k].state == PAGE_DATA &&
				  bytes_are_zero(buf + k * PAGE_SIZE, PAGE_SIZE);

		if (improves_status(status[k], then[k], zero))
			status[k] = then[k];
		else if (then[k].state == PAGE_DATA)
			then[k] = status[k];
	}
	note_parts(by->c, i, addr, pages, then);
	return ST_OK;
}

/* Takes over a map, unless the same one told the same before. */
static enum status take_over_map(struct drv *d, const struct drv_map *m, struct err *e)
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
static void append_reason(char *list, size_t room, const char *separator, const char *name,
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

	append_reason(c->path, sizeof(c->path), ", ", s->path, NULL);
	if (s->note) {
		append_reason(c->note, sizeof(c->note), "; ", s->source, s->note);
		i->note = c->note;
	}
	if (s->odd && !i->odd)
		i->odd = s->odd;
	if (s->lost && !i->lost)
		i->lost = s->lost;
	i->silent |= s->silent;
	i->withholds |= s->withholds;
	i->finds_holes |= s->finds_holes;
	i->grows |= s->grows;
	i->five_levels |= s->five_levels;
	if (s->has_machine && !i->has_machine)
		i->has_machine = true, i->machine = s->machine;
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
		st = take_over_map(&c->drv, &s->maps[k], e);
	return st;
}

/* --- opening ------------------------------------------------------------------------------- */

/* One clause for each source that did not answer. */
struct refusals {
	char privilege[ERR_MESSAGE_MAX]; /* those that lack rights stand first */
	char others[ERR_MESSAGE_MAX];
	char names[128];
};

static void add_refusal(struct refusals *no, const char *name, enum status st, const char *why)
{
	char *list = st == ST_NO_PRIVILEGE ? no->privilege : no->others;

	append_reason(list, ERR_MESSAGE_MAX, "; ", name, why[0] ? why : status_text(st));
	append_reason(no->names, sizeof(no->names), ", ", name, NULL);
}

/*
 * Opens the next automatic source that answers; for holes of the direct map alone, none that reads
 * through that. False: there is none left, or `st` says why.
 */
static bool open_next(struct chain *c, bool holes, struct refusals *no, enum status *st,
		      struct err *e)
{
	while (*c->next && c->count < CHAIN_MAX) {
		const struct drv_ops *ops = *c->next;
		struct err why = ERR_INIT;
		struct drv *s = NULL;

		if (ops->automatic && holes && ops->by_direct_map)
			return false;
		c->next++;
		if (!ops->automatic)
			continue;
		*st = ops->open(ops->default_path, &s, &why);
		if (!*st) {
			s->watch = &c->drv.own_watch;
			s->beside = c->drv.own_beside;
			*st = merge_info(c, &s->info, e);
			c->sources[c->count] = s;
			c->count++; /* from now on others see it */
			return !*st;
		}
		if (*st == ST_NOMEM) {
			err_nomem(e);
			return false;
		}
		if (no)
			add_refusal(no, ops->name, *st, why.message);
		*st = ST_OK;
	}
	return false;
}

/* The i-th source of those that answer; NULL: there is none, or `st` says why. */
static struct drv *chain_source_at(struct chain *c, size_t i, bool holes, enum status *st,
				   struct err *e)
{
	struct drv *ret = NULL;
	bool more = true;

	pthread_mutex_lock(&c->opening);
	while (more && i >= c->count)
		more = open_next(c, holes, NULL, st, e);
	if (i < c->count)
		ret = c->sources[i];
	pthread_mutex_unlock(&c->opening);
	return ret;
}

/* --- reading ------------------------------------------------------------------------------- */

/* Of the sources all ask the same system: the first that can does. */
static void chain_withhold(struct drv *d, uint64_t addr, size_t pages, struct page_status *status)
{
	struct chain *c = (struct chain *)d;

	for (size_t i = 0; i < c->count; i++)
		if (c->sources[i]->info.withholds) {
			c->sources[i]->ops->withhold(c->sources[i], addr, pages, status);
			return;
		}
	for (size_t i = 0; i < pages; i++)
		status[i] = (struct page_status){ PAGE_DATA, 0 };
}

static size_t chain_look(struct drv *d, uint64_t addr, size_t pages, bool *ret_hole)
{
	struct chain *c = (struct chain *)d;

	for (size_t i = 0; i < c->count; i++)
		if (c->sources[i]->info.finds_holes)
			return c->sources[i]->ops->look(c->sources[i], addr, pages, ret_hole);
	*ret_hole = false;
	return pages;
}

static bool is_unmapped(struct page_status s)
{
	return s.state == PAGE_UNREADABLE && s.detail == DRV_UNMAPPED;
}

/* Of at most RETRY_PAGES pages, what nobody has given yet, though it may be read. */
struct missing {
	bool page[RETRY_PAGES];
	bool any;
	bool others; /* than holes of the direct map */
};

static void find_missing(struct chain *c, uint64_t addr, size_t pages,
			 const struct page_status *status, struct missing *ret)
{
	struct page_status may[RETRY_PAGES];

	*ret = (struct missing){ 0 };
	for (size_t i = 0; i < pages; i++)
		ret->any |= ret->page[i] = status[i].state != PAGE_DATA;
	if (!ret->any)
		return;
	ret->any = false;
	chain_withhold(&c->drv, addr, pages, may);
	for (size_t i = 0; i < pages; i++) {
		ret->any |= ret->page[i] = ret->page[i] && may[i].state == PAGE_DATA;
		ret->others |= ret->page[i] && !is_unmapped(status[i]);
	}
}

/* Asks the i-th source for what is missing, in runs; but not for what it cannot have. */
static enum status ask_another(const struct chain_reader *by, size_t i, uint64_t addr, uint8_t *buf,
			       size_t pages, struct page_status *status, const struct missing *m,
			       struct err *e)
{
	const struct drv *s = by->c->sources[i];
	enum status st = ST_OK;

	for (size_t at = 0, n; at < pages && !st && !s->dead; at += MAX(n, 1)) {
		for (n = 0; at + n < pages && m->page[at + n] &&
			    !(s->ops->by_direct_map && is_unmapped(status[at + n]));
		     n++)
			;
		if (n)
			st = retry_pages(by, i, addr + at * PAGE_SIZE, buf + at * PAGE_SIZE, n,
					 status + at, e);
	}
	return st;
}

/* Asks the sources from the i-th on, one behind the other, for what is missing of RETRY_PAGES. */
static enum status ask_the_others(const struct chain_reader *by, size_t i, uint64_t addr,
				  uint8_t *buf, size_t pages, struct page_status *status,
				  struct err *e)
{
	struct chain *c = by->c;
	struct missing m;
	enum status st = ST_OK;

	for (find_missing(c, addr, pages, status, &m); m.any && !st; i++) {
		if (!chain_source_at(c, i, !m.others, &st, e))
			break;
		st = ask_another(by, i, addr, buf, pages, status, &m, e);
		find_missing(c, addr, pages, status, &m);
	}
	return st;
}

/* The first that lives is asked for everything. Returns its number, or that of nobody. */
static size_t ask_the_first(const struct chain_reader *by, uint64_t addr, void *buf, size_t pages,
			    struct page_status *status, enum status *st, struct err *e)
{
	struct chain *c = by->c;
	struct drv *s;
	size_t i = 0;

	while ((s = chain_source_at(c, i, false, st, e)) && s->dead)
		i++;
	if (!s)
		return i;
	*st = read_from_source(by, s, addr, buf, pages, status, e);
	if (*st == ST_SOURCE_FAILED)
		*st = ST_OK;
	if (!*st)
		note_parts(c, i, addr, pages, status);
	return i;
}

static bool is_chain_dead(struct chain *c)
{
	bool ret = true;

	pthread_mutex_lock(&c->opening);
	for (const struct drv_ops *const *left = c->next; *left && ret; left++)
		ret = !(*left)->automatic;
	for (size_t i = 0; i < c->count && ret; i++)
		ret = c->sources[i]->dead;
	pthread_mutex_unlock(&c->opening);
	return ret;
}

/* What the last one died of, where it is known. */
static enum status report_chain_death(const struct chain *c, uint64_t addr, struct err *e)
{
	const struct drv *last = c->sources[c->count - 1];

	return err_set(e, ST_SOURCE_FAILED,
		       "every source has failed, the last at or after 0x%" PRIx64 "%s%s%s%s", addr,
		       last->death ? ": " : "", last->death ? last->path : "",
		       last->death ? ": " : "", last->death ? last->death : "");
}

static enum status chain_read_pages(struct drv *d, unsigned reader, uint64_t addr, void *buf,
				    size_t pages, struct page_status *status, struct err *e)
{
	struct chain *c = (struct chain *)d;
	const struct chain_reader by = { c, reader };
	enum status st = ST_OK;
	size_t first;

	for (size_t i = 0; i < pages; i++)
		status[i] = (struct page_status){ PAGE_SKIPPED, SKIP_SOURCE_FAILED };
	first = ask_the_first(&by, addr, buf, pages, status, &st, e);
	for (size_t at = 0, n; at < pages && !st; at += n) {
		n = MIN(pages - at, RETRY_PAGES);
		st = ask_the_others(&by, first + 1, addr + at * PAGE_SIZE,
				    (uint8_t *)buf + at * PAGE_SIZE, n, status + at, e);
	}
	if (st || !is_chain_dead(c))
		return st;
	d->dead = true;
	return report_chain_death(c, addr, e);
}

static bool has_map(const struct drv_maps *m, const char *origin)
{
	for (size_t i = 0; i < m->count; i++)
		if (!strcmp(m->at[i].origin, origin))
			return true;
	return false;
}

/* Of every source that is asked twice; two that name the same origin say the same. */
static enum status chain_maps_again(struct drv *d, struct drv_maps *ret, struct err *e)
{
	struct chain *c = (struct chain *)d;
	enum status st = ST_OK;

	for (size_t i = 0; i < c->count && !st; i++) {
		_cleanup_drv_maps_ struct drv_maps one = { 0 };

		st = drv_maps_again(c->sources[i], &one, e);
		for (size_t k = 0; !st && k < one.count && ret->count < DRV_MAPS_MAX; k++)
			if (!has_map(ret, one.at[k].origin))
				st = drv__maps_add(ret, one.at[k].origin, &one.at[k].ranges, e);
	}
	return st;
}

static const struct drv_ops chain_ops = {
	.name = "auto",
	.summary = "each usable source in turn; where one fails, the next takes over",
	.kind = DRV_OWN,
	.reason = "never a source with a hazard",
	.read_max = DRV_READ_LARGE,
	.read_pages = chain_read_pages,
	.withhold = chain_withhold,
	.look = chain_look,
	.maps_again = chain_maps_again,
	.close = chain_close,
};

/*
 * Where this process lacks something that every source asks for, that alone is what has to be
 * said.
 */
static enum status refuse_all_sources(struct refusals *no, const struct drv_ops *const *table,
				      struct err *e)
{
	const char *lacks = drv__lacks();

	if (no->privilege[0] && lacks)
		return err_set(e, ST_NO_PRIVILEGE, "%s (tried %s)", lacks, no->names);
	for (; *table; table++)
		if ((*table)->kind == DRV_HAZARD && drv_is_there(*table))
			append_reason(
				no->others, sizeof(no->others), "; ", (*table)->name,
				"is there, but used only if it is named, because it is a hazard");
	return err_set(e, no->privilege[0] ? ST_NO_PRIVILEGE : ST_NO_SOURCE,
		       "no source of memory is usable: %s%s%s",
		       no->names[0] ? no->privilege : "none is used automatically on this system",
		       no->privilege[0] && no->others[0] ? "; " : "", no->others);
}

static enum status chain_fill(struct chain *c, const struct drv_ops *const *table, struct err *e)
{
	struct refusals no = { 0 };
	enum status st = drv__init(&c->drv, &chain_ops, "", e);

	c->next = table;
	pthread_mutex_init(&c->opening, NULL);
	pthread_mutex_init(&c->one, NULL);
	if (!st && !open_next(c, false, &no, &st, e) && !st)
		st = refuse_all_sources(&no, table, e);
	if (st)
		return st;
	c->drv.info.path = c->path;
	c->drv.info.error_numbers = c->sources[0]->info.error_numbers;
	c->drv.info.parallel = c->sources[0]->info.parallel;
	return ST_OK;
}

enum status chain_open(const struct drv_ops *const *table, struct drv **ret, struct err *e)
{
	struct chain *c = calloc(1, sizeof(*c));
	enum status st;

	if (!c)
		return err_nomem(e);
	st = chain_fill(c, table, e);
	if (st) {
		chain_close(&c->drv);
		return st;
	}
	*ret = &c->drv;
	return ST_OK;
}
