/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/kernel/discover.h"

#include <string.h>

#include "agent/shared/kernel/discover_internal.h"
#include "agent/shared/kernel/candidates.h"

const char *dtb_origin_name(enum dtb_origin o)
{
	return NAME_IN(DTB_ORIGIN_MAP, o, "unknown");
}

const char *discover_os_name(enum discover_os os)
{
	return os == OS_WINDOWS ? "windows" : os == OS_LINUX ? "linux" : "unknown";
}

void discover_hints_from_drv(struct discover_hints *h, const struct drv_info *info)
{
	h->has_cr3 = info->has_cr3;
	h->cr3 = info->cr3;
	h->five_levels = info->five_levels;
	h->has_kernel_base = info->has_kernel_base;
	h->kernel_base = info->kernel_base;
	h->notes = info->notes;
	h->notes_size = info->notes_size;
}

struct virt paging__kernel_space(const struct discovery_search *s)
{
	return (struct virt){
		.mem = s->mem,
		.mode = s->d->mode,
		.dtb = s->d->walk_dtb,
		.ignore = s->d->ignore,
		.budget = s->budget,
	};
}

/*
 * The kernel
 */

/*
 * Nobody told anything: every page is asked whether it is VMCOREINFO, or names itself as a Windows
 * root does, from the bottom, because Windows has its kernel's root in the first 16 MiB. VMCOREINFO
 * and a root that maps an ntoskrnl settle it; the first root that does not is kept for the end,
 * when nothing better was found.
 */
#define ROOTS_TRIED_MAX 16

struct candidate_search {
	const struct discovery_search *s;
	struct vmcoreinfo v;
	uint64_t left;  /* pages that may be searched */
	uint64_t first; /* candidate */
	unsigned candidates;
	bool done;
};

/* One that is none may lead everywhere: what it costs must leave enough for the others. */
static enum status check_candidate(struct candidate_search *l, struct err *e)
{
	struct walk_budget *all = l->s->budget;
	const uint64_t part = all->pages / (2 * ROOTS_TRIED_MAX);
	struct walk_budget budget = { part, all->deadline, all->now };
	const struct discovery_search s = { l->s->mem, l->s->hints, &budget, l->s->d };
	const enum status st = paging__check_windows(&s, &l->done, e);

	all->pages -= part - budget.pages;
	return st;
}

static enum status check_candidate_page(struct candidate_search *l, uint64_t pa, struct err *e)
{
	struct discovery *d = l->s->d;
	enum status st;

	if (l->candidates == ROOTS_TRIED_MAX ||
	    !paging__take_windows_root(l->s, pa, DTB_SELF_REFERENCE))
		return ST_OK;
	st = check_candidate(l, e);
	if (l->done)
		return st;
	if (!l->candidates++)
		l->first = pa;
	d->os = OS_UNKNOWN;
	d->kernel_dtb = d->walk_dtb = 0;
	d->kernel_dtb_origin = DTB_NONE;
	d->self_index = NO_INDEX;
	d->windows = (struct windows_kernel){ 0 };
	return st;
}

static enum status check_candidate_memory(struct candidate_search *l, const uint8_t *page,
					  uint64_t pa, struct err *e)
{
	if (vmcoreinfo_from_page(&l->v, page) && paging__take_vmcoreinfo(l->s, &l->v)) {
		l->s->d->vmcoreinfo_from_memory = true;
		l->s->d->vmcoreinfo_page = pa;
		l->done = true;
	} else if (self_map_index(page, pa, 0) != NO_INDEX) {
		return check_candidate_page(l, pa, e);
	}
	return ST_OK;
}

/* As many pages as the search and the budget have, PHYSMEM_RUN at most. */
static size_t take_candidate_run(struct candidate_search *l)
{
	const size_t most = (size_t)MIN(l->left, PHYSMEM_RUN);
	size_t n = 0;

	while (n < most && walk_budget_take(l->s->budget))
		n++;
	l->left -= n;
	return n;
}

static enum status search_range_for_root(struct candidate_search *l, struct range r, uint8_t *buf,
					 struct err *e)
{
	struct physmem_page when[PHYSMEM_RUN];
	enum status st = ST_OK;
	size_t n;

	for (uint64_t pa = r.first; pa < r.last && !l->done && !st; pa += n * PAGE_SIZE) {
		n = take_candidate_run(l);
		n = n ? physmem_read_run(l->s->mem, pa, buf, n, when) : 0;
		if (!n)
			break;
		for (size_t i = 0; i < n && !l->done && !st; i++)
			if (when[i].readable)
				st = check_candidate_memory(l, buf + i * PAGE_SIZE,
							    pa + i * PAGE_SIZE, e);
	}
	return st;
}

static enum status search_ranges(struct candidate_search *l, struct err *e)
{
	const struct range_list *ranges = l->s->mem->ranges;
	_cleanup_free_ uint8_t *buf = malloc(PHYSMEM_RUN * PAGE_SIZE);
	enum status st = buf ? ST_OK : err_nomem(e);

	for (size_t i = 0; i < ranges->count && !l->done && !st; i++)
		st = search_range_for_root(l, ranges->at[i], buf, e);
	return st;
}

/* All of them were found already, as they lie. */
static enum status search_candidates(struct candidate_search *l, struct err *e)
{
	const struct candidates *c = l->s->hints->candidates;
	uint8_t page[PAGE_SIZE];
	enum status st = ST_OK;
	size_t i;

	for (i = 0; i < c->count && !l->done && !st && walk_budget_take(l->s->budget); i++)
		if (physmem_read_page(l->s->mem, c->at[i], page, NULL))
			st = check_candidate_memory(l, page, c->at[i], e);
	l->s->d->searched = !st && (l->done || i == c->count) && c->complete && !c->full;
	return st;
}

static enum status search_for_candidates(const struct discovery_search *s, struct err *e)
{
	_cleanup_free_ struct candidate_search *l = calloc(1, sizeof(*l));
	const uint64_t limit = s->hints->search_pages;
	enum status st;

	if (!l)
		return err_nomem(e);
	l->s = s;
	l->left = limit ? limit : UINT64_MAX;
	st = s->hints->candidates ? search_candidates(l, e) : search_ranges(l, e);
	if (!st && !l->done && l->candidates && !limit)
		paging__take_windows_root(s, l->first, DTB_SELF_REFERENCE);
	return st;
}

static enum status find_kernel(const struct discovery_search *s, struct err *e)
{
	_cleanup_free_ struct vmcoreinfo *v = malloc(sizeof(*v));

	if (!v)
		return err_nomem(e);
	if (s->hints->notes && vmcoreinfo_from_notes(v, s->hints->notes, s->hints->notes_size) &&
	    paging__take_vmcoreinfo(s, v))
		return ST_OK;
	/*
	 * Of Windows only roots of four levels are known, and a fifth one would be taken for such.
	 */
	if (s->hints->five_levels)
		return ST_OK;
	if (s->hints->has_cr3 && paging__take_windows_root(s, s->hints->cr3, DTB_SOURCE))
		return ST_OK;
	if (paging__search_low_stub(s))
		return ST_OK;
	return search_for_candidates(s, e);
}

/*
 * List and scan together
 */

static int compare_address(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The roots that a list names, sorted. */
struct listed {
	uint64_t *at;
	size_t count;
};

static enum status listed_init(struct listed *l, const struct process_list *list, struct err *e)
{
	*l = (struct listed){ .at = calloc(2 * list->count + 1, sizeof(*l->at)) };
	if (!l->at)
		return err_nomem(e);
	for (size_t i = 0; i < list->count; i++) {
		const struct process *p = &list->at[i];

		if (p->has_dtb)
			l->at[l->count++] = p->dtb;
		if (p->user_dtb)
			l->at[l->count++] = p->user_dtb;
	}
	qsort(l->at, l->count, sizeof(*l->at), compare_address);
	return ST_OK;
}

static bool is_listed_process(const struct listed *l, uint64_t pa)
{
	return bsearch(&pa, l->at, l->count, sizeof(*l->at), compare_address) != NULL;
}

/* A root begins a page: the low bits tell the processes apart that had it one after the other. */
static uint64_t root_of_process(const struct process *p)
{
	return (p->dtb & PTE_FRAME) | p->pid % PAGE_SIZE;
}

static void keep_space(struct discovery *d, struct address_space a)
{
	d->spaces[d->n_spaces++] = a;
}

/*
 * Windows' roots all look alike. One that was found by its look alone is the kernel's if it has
 * no user half, and may be any process's if it has.
 */
static bool knows_kernel_root(const struct discovery_search *s)
{
	uint8_t page[PAGE_SIZE];

	return s->d->kernel_dtb_origin != DTB_SELF_REFERENCE ||
	       (physmem_read_page(s->mem, s->d->kernel_dtb, page, NULL) && !root_user_print(page));
}

/* The kernel's own root, unless a process of the list (System) has it. */
static void add_kernel(const struct discovery_search *s)
{
	struct discovery *d = s->d;

	for (size_t i = 0; i < d->list.count; i++)
		if (d->list.at[i].has_dtb && d->list.at[i].dtb == d->kernel_dtb)
			return;
	keep_space(d, (struct address_space){
			      .process = { .has_dtb = true, .dtb = d->kernel_dtb },
			      .scanned = root_scan_find(&d->roots, d->kernel_dtb),
			      .kernel = knows_kernel_root(s),
		      });
	d->unlisted += d->spaces[0].scanned && !d->spaces[0].kernel;
}

/* The scan did not find a root that is there: what an image lacks, no scan finds. */
static bool is_missed(const struct discovery_search *s, uint64_t dtb)
{
	uint8_t page[PAGE_SIZE];

	return physmem_read_page(s->mem, dtb, page, NULL);
}

/* What is in `earlier`, if there is one, should have been found by a scan made since. */
static void add_listed_processes(const struct discovery_search *s, bool scanned,
				 const struct listed *earlier)
{
	struct discovery *d = s->d;

	for (size_t i = 0; i < d->list.count; i++) {
		struct address_space a = { .process = d->list.at[i], .listed = true };
		const struct root *r;

		if (a.process.has_dtb) {
			r = root_scan_find(&d->roots, a.process.dtb);
			a.scanned = r != NULL;
			a.kernel = a.process.dtb == d->kernel_dtb;
			if (r && !a.process.user_dtb)
				a.process.user_dtb = r->twin;
			d->unscanned += scanned && !r &&
					(!earlier ||
					 is_listed_process(earlier, root_of_process(&a.process))) &&
					is_missed(s, a.process.dtb);
		}
		keep_space(d, a);
	}
}

/* The name of a helper's root, or NULL. */
static const char *helper_name(const struct discovery *d, uint64_t pa)
{
	for (size_t i = 0; i < d->n_helpers; i++)
		if (d->helpers[i].dtb == pa)
			return d->helpers[i].name;
	/* real_mode_header's trampoline_pgd must lie where a starting processor can reach it. */
	return d->os == OS_LINUX && pa < 0x100000 ? "trampoline_pgd" : NULL;
}

static struct address_space found_by_scan(const struct discovery *d, const struct root *r)
{
	struct address_space a = {
		.process = { .has_dtb = true, .dtb = r->pa, .user_dtb = r->twin },
		.scanned = true,
	};
	const char *name = helper_name(d, r->pa);

	if (name) {
		a.kernel = true;
		snprintf(a.process.name, sizeof(a.process.name), "%s", name);
	}
	return a;
}

/* Roots without user pages are the kernel's, or lie in freed memory: counted, not listed. */
static void add_unlisted(struct discovery *d, const struct listed *l)
{
	for (size_t i = 0; i < d->roots.count; i++) {
		const struct root *r = &d->roots.at[i];
		struct address_space a;

		if (r->user_table || r->pa == d->kernel_dtb || is_listed_process(l, r->pa))
			continue;
		if (!r->user) {
			d->idle_roots++;
			continue;
		}
		a = found_by_scan(d, r);
		d->unlisted += !a.kernel;
		keep_space(d, a);
	}
}

/* The processes of an earlier list with their roots, sorted; a root may be another's by now. */
static enum status earlier_init(struct listed *l, const struct discovery_search *s, struct err *e)
{
	const struct discovery *before = s->hints->before;

	*l = (struct listed){ 0 };
	if (!s->hints->watch || !before)
		return ST_OK;
	l->at = calloc(before->list.count + 1, sizeof(*l->at));
	if (!l->at)
		return err_nomem(e);
	for (size_t i = 0; i < before->list.count; i++)
		if (before->list.at[i].has_dtb)
			l->at[l->count++] = root_of_process(&before->list.at[i]);
	qsort(l->at, l->count, sizeof(*l->at), compare_address);
	return ST_OK;
}

/*
 * Who is not in a list that is not whole may be in the part that is not there, and a root that
 * could not be read is somebody's all the same.
 */
static bool has_all_roots(const struct process_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->at[i].lost_dtb)
			return false;
	return process_list_is_whole(l);
}

static enum status add_spaces(const struct discovery_search *s, const struct listed *now,
			      struct err *e)
{
	struct discovery *d = s->d;
	struct listed earlier;
	enum status st = earlier_init(&earlier, s, e);
	size_t known;

	if (st)
		return st;
	add_kernel(s);
	add_listed_processes(s, d->roots.complete, earlier.at ? &earlier : NULL);
	free(earlier.at);
	known = d->n_spaces;
	add_unlisted(d, now);
	if (d->unlisted && d->self_index == NO_INDEX)
		st = paging__mark_copies(s, known, e);
	d->unlisted -= d->copies;
	if (has_all_roots(&d->list)) {
		d->hidden = d->unlisted;
		d->unlisted = 0;
	}
	return st;
}

static enum status merge_spaces(const struct discovery_search *s, struct err *e)
{
	struct discovery *d = s->d;
	struct listed now;
	enum status st = listed_init(&now, &d->list, e);

	if (st)
		return st;
	d->spaces = calloc(1 + d->list.count + d->roots.count, sizeof(*d->spaces));
	st = d->spaces ? add_spaces(s, &now, e) : err_nomem(e);
	free(now.at);
	return st;
}

static enum status list_spaces(const struct discovery_search *s, struct err *e)
{
	return s->d->os == OS_WINDOWS ? paging__discover_windows(s, e)
				      : paging__discover_linux(s, e);
}

static enum status scan_candidates(const struct discovery_search *s,
				   const struct root_scan_options *o, struct err *e)
{
	const struct candidates *c = s->hints->candidates;
	struct root_scan *r = &s->d->roots;
	enum status st;

	if (o->mode == PAGING_PAE)
		return ST_OK;
	r->pages = c->pages;
	r->unreadable = c->unreadable;
	st = root_scan_some(s->mem, o, c->at, c->count, r, e);
	r->complete = r->complete && c->complete && !c->full;
	return st;
}

static enum status scan_for_roots(const struct discovery_search *s, struct err *e)
{
	const struct root_scan_options o = {
		.mode = s->d->mode,
		.kernel_dtb = s->d->walk_dtb,
		.self_index = s->d->self_index,
		.ignore = s->d->ignore,
		.budget = s->budget,
	};

	if (s->hints->candidates)
		return scan_candidates(s, &o, e);
	if (s->hints->watch)
		return root_watch_confirm(s->hints->watch, s->mem, s->budget, &s->d->roots, e);
	return s->hints->skip_scan ? ST_OK : root_scan(s->mem, &o, &s->d->roots, e);
}

/* What does not change while a machine runs. */
static enum status recall_discovery(struct discovery *d, const struct discovery *before,
				    struct err *e)
{
	struct vmcoreinfo *v = NULL;

	if (before->vmcoreinfo) {
		v = malloc(sizeof(*v));
		if (!v)
			return err_nomem(e);
		*v = *before->vmcoreinfo;
	}
	*d = *before;
	d->vmcoreinfo = v;
	d->list = (struct process_list){ 0 };
	d->roots = (struct root_scan){ 0 };
	d->spaces = NULL;
	d->n_spaces = d->hidden = d->unlisted = d->copies = d->unscanned = d->idle_roots = 0;
	return ST_OK;
}

static enum status try_discovery(const struct discovery_search *s, struct err *e)
{
	const struct discovery *before = s->hints->before;
	enum status st = before && before->os != OS_UNKNOWN ? recall_discovery(s->d, before, e)
							    : find_kernel(s, e);

	if (st || s->d->os == OS_UNKNOWN || s->hints->kernel_only)
		return st;
	st = list_spaces(s, e);
	if (!st)
		st = scan_for_roots(s, e);
	return st ? st : merge_spaces(s, e);
}

enum status discover(struct physmem *m, const struct discover_hints *h, struct walk_budget *budget,
		     struct discovery *ret, struct err *e)
{
	struct walk_budget unlimited = WALK_UNLIMITED;
	const struct discovery_search s = { m, h, budget ? budget : &unlimited, ret };
	const uint64_t begin = s.budget->now ? s.budget->now() : 0;
	const uint64_t pages = s.budget->pages;
	enum status st;

	*ret = (struct discovery){ .self_index = NO_INDEX };
	st = try_discovery(&s, e);
	ret->pages_read = pages - s.budget->pages;
	ret->ns = s.budget->now ? s.budget->now() - begin : 0;
	if (st)
		discovery_deinit(ret);
	return st;
}

void discovery_deinit(struct discovery *d)
{
	free(d->vmcoreinfo);
	free(d->spaces);
	process_list_deinit(&d->list);
	root_scan_deinit(&d->roots);
	*d = (struct discovery){ .self_index = NO_INDEX };
}

bool discovery_next_root(const struct discovery *d, struct root_cursor *c, uint64_t *ret)
{
	while (c->space < d->n_spaces) {
		const struct address_space *a = &d->spaces[c->space];
		const struct process *p = &a->process;
		const bool user = c->user;

		c->user = !user;
		c->space += user;
		if (!a->copy && (user ? p->user_dtb != 0 : p->has_dtb)) {
			*ret = user ? p->user_dtb : p->dtb;
			return true;
		}
	}
	return false;
}
