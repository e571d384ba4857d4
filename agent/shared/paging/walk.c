/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/paging/walk.h"

#include <string.h>

#include "formats/base/bytes.h"

/*
 * The set
 */

enum status walk_set_init(struct walk_set *s, const struct range_list *ranges, struct err *e)
{
	*s = (struct walk_set){ .ranges = ranges };
	s->before = calloc(ranges->count + 1, sizeof(*s->before));
	if (!s->before)
		return err_nomem(e);
	for (size_t i = 0; i < ranges->count; i++) {
		s->before[i] = s->pages;
		s->pages += range_bytes(ranges->at[i]) >> PAGE_SHIFT;
	}
	s->bits = calloc((size_t)(s->pages / 64 + 1), sizeof(*s->bits));
	if (!s->bits) {
		walk_set_deinit(s);
		return err_nomem(e);
	}
	return ST_OK;
}

void walk_set_deinit(struct walk_set *s)
{
	free(s->bits);
	free(s->before);
	*s = (struct walk_set){ 0 };
}

void walk_set_clear(struct walk_set *s)
{
	memset(s->bits, 0, (size_t)(s->pages / 64 + 1) * sizeof(*s->bits));
	s->marked = 0;
}

/* The number of a page among all pages of the ranges, or UINT64_MAX. */
static uint64_t page_number(const struct walk_set *s, uint64_t pa)
{
	const struct range *r = range_list_find(s->ranges, pa);

	if (!r)
		return UINT64_MAX;
	return s->before[r - s->ranges->at] + ((pa - r->first) >> PAGE_SHIFT);
}

bool walk_set_has(const struct walk_set *s, uint64_t pa)
{
	const uint64_t n = page_number(s, pa);

	return n == UINT64_MAX || (s->bits[n / 64] >> n % 64 & 1);
}

bool walk_set_mark(struct walk_set *s, uint64_t pa)
{
	const uint64_t n = page_number(s, pa);

	if (n == UINT64_MAX || (s->bits[n / 64] >> n % 64 & 1))
		return true;
	s->bits[n / 64] |= UINT64_C(1) << n % 64;
	s->marked++;
	return false;
}

bool walk_budget_spent(const struct walk_budget *b)
{
	if (!b)
		return false;
	return !b->pages || (b->now && b->deadline != UINT64_MAX && b->now() >= b->deadline);
}

bool walk_budget_take(struct walk_budget *b)
{
	if (walk_budget_spent(b))
		return false;
	if (b)
		b->pages--;
	return true;
}

/*
 * The walk
 */

const char *walk_reason_name(enum walk_reason r)
{
	static const char *const names[WALK_REASONS] = {
		[WALK_SEEN] = "seen",         [WALK_SELF] = "self",
		[WALK_OUTSIDE] = "outside",   [WALK_UNREADABLE] = "unreadable",
		[WALK_RESERVED] = "reserved",
	};

	return (unsigned)r < WALK_REASONS ? names[r] : "unknown";
}

static void add_walk_root(struct walk *w, uint64_t dtb, uint64_t va)
{
	w->roots[w->n_roots++] = (struct walk__root){ paging_root(w->options.mode, dtb), va };
}

static void walk_init(struct walk *w, struct physmem *mem, struct walk_set *set,
		      const struct walk_options *options)
{
	w->counts = (struct walk_counts){ 0 };
	w->stop = WALK_COMPLETE;
	w->mem = mem;
	w->set = set;
	w->options = *options;
	w->format = paging_format(options->mode);
	w->n_roots = 0;
	w->next_root = 0;
	w->top = w->format->levels;
	w->level = 0;
}

void walk_begin(struct walk *w, struct physmem *mem, struct walk_set *set,
		const struct walk_options *options, uint64_t dtb)
{
	const enum paging_mode mode = options->mode;
	const uint64_t upper = options->kernel_dtb;

	walk_init(w, mem, set, options);
	if (!w->format->pair) {
		add_walk_root(w, dtb, 0);
		return;
	}
	if (dtb != upper && options->first <= paging_user_last(mode))
		add_walk_root(w, dtb, 0);
	if (upper && options->last >= paging_kernel_first(mode))
		add_walk_root(w, upper, paging_kernel_first(mode));
}

void walk_begin_at(struct walk *w, struct physmem *mem, struct walk_set *set,
		   const struct walk_options *options, unsigned level, uint64_t pa, uint64_t va)
{
	walk_init(w, mem, set, options);
	w->roots[w->n_roots++] = (struct walk__root){ pa, va };
	w->top = level;
}

static enum walk_event skip_entry(struct walk *w, struct walk_skip s)
{
	/* That the kernel's end was seen with another process is as it should be. */
	if (s.level == w->top && (s.reason != WALK_SEEN || w->next_root == 1))
		w->stop = WALK_NO_ROOT;
	w->counts.skipped[s.reason]++;
	w->skip = s;
	return WALK_SKIP;
}

static enum walk_event out_of_budget(struct walk *w)
{
	w->stop = WALK_OUT_OF_BUDGET;
	w->level = 0;
	w->next_root = w->n_roots;
	return WALK_END;
}

/* True if it belongs to a table above `level` on the way to it. */
static bool is_on_walk_path(const struct walk *w, unsigned level, uint64_t pa)
{
	for (unsigned l = level + 1; l <= w->top; l++)
		if (pa >= w->at[l].table && pa - w->at[l].table < w->at[l].parts * PAGE_SIZE)
			return true;
	return false;
}

/* `page` is in memory, and not yet a table of this walk. */
static enum walk_event read_table_page(struct walk *w, struct walk_skip s, uint64_t page)
{
	struct walk__level *t = &w->at[s.level];

	s.reason = WALK_UNREADABLE;
	if (!physmem_read_page(w->mem, page, t->bytes, &t->when))
		return skip_entry(w, s);
	t->pa = page;
	t->va = s.va;
	t->next = 0;
	w->level = s.level;
	w->counts.tables[s.level]++;
	w->table = (struct walk_table){ s.level, page, s.va, t->bytes, t->when };
	return WALK_TABLE;
}

/*
 * Reads the page of a table that `s` speaks of, or says why not. Roots that are smaller than a page
 * share it with the roots of other processes, so that it is not marked as seen.
 */
static enum walk_event enter_table_page(struct walk *w, struct walk_skip s)
{
	const uint64_t page = s.target & ~(uint64_t)(PAGE_SIZE - 1);
	const bool small = paging_entries(w->format, s.level) < TABLE_ENTRIES;
	const bool marks = w->set && !small;

	s.reason = WALK_OUTSIDE;
	if (!range_list_find(w->mem->ranges, page))
		return skip_entry(w, s);
	s.reason = WALK_SELF;
	if (w->set && is_on_walk_path(w, s.level, page))
		return skip_entry(w, s);
	s.reason = WALK_SEEN;
	if (marks && walk_set_has(w->set, page))
		return skip_entry(w, s);
	if (!walk_budget_take(w->options.budget))
		return out_of_budget(w);
	if (marks)
		walk_set_mark(w->set, page);
	return read_table_page(w, s, page);
}

static bool is_out_of_bounds(const struct walk *w, uint64_t va, uint64_t size)
{
	return va > w->options.last || va + (size - 1) < w->options.first;
}

/*
 * The next page of a table that has several; any of them may be missing. WALK_END: nothing in it is
 * asked for.
 */
static enum walk_event enter_next_page(struct walk *w)
{
	struct walk__level *t = &w->at[w->level];
	const unsigned shift = paging_shift(w->format, w->level);
	const struct walk_skip s = {
		.level = w->level,
		.target = t->table + t->entered * PAGE_SIZE,
		.va = t->table_va + ((uint64_t)(t->entered * TABLE_ENTRIES) << shift),
	};

	t->entered++;
	if (is_out_of_bounds(w, s.va, (uint64_t)TABLE_ENTRIES << shift))
		return WALK_END;
	return enter_table_page(w, s);
}

/*
 * Goes down into the table that `s` speaks of, or says why not. WALK_END: it has several pages,
 * which follow.
 */
static enum walk_event enter_table_below(struct walk *w, struct walk_skip s)
{
	const size_t entries = paging_entries(w->format, s.level);
	struct walk__level *t = &w->at[s.level];

	t->table = s.target & ~(uint64_t)(PAGE_SIZE - 1);
	t->table_va = s.va;
	t->parts = MAX(entries / TABLE_ENTRIES, (size_t)1);
	t->entered = t->parts == 1;
	t->base = entries < TABLE_ENTRIES ? s.target % PAGE_SIZE / 8 : 0;
	t->end = MIN(entries, TABLE_ENTRIES - t->base);
	if (t->parts == 1)
		return enter_table_page(w, s);
	s.reason = WALK_SELF;
	if (w->set && is_on_walk_path(w, s.level, t->table))
		return skip_entry(w, s);
	t->next = t->end;
	w->level = s.level;
	return WALK_END;
}

static enum walk_event enter_root(struct walk *w)
{
	const struct walk__root *r = &w->roots[w->next_root++];

	return enter_table_below(
		w, (struct walk_skip){ .level = w->top, .target = r->pa, .va = r->va });
}

static enum walk_event tell_leaf(struct walk *w, const struct walk_leaf *l)
{
	if (l->entry.kind == ENTRY_LEAF)
		w->counts.leaves[l->level]++;
	else
		w->counts.absent[l->level]++;
	w->leaf = *l;
	return w->options.tables_only ? WALK_END : WALK_LEAF;
}

/* The next entry of the current table. WALK_END: there is nothing to tell of it. */
static enum walk_event step_table(struct walk *w)
{
	struct walk__level *t = &w->at[w->level];
	const size_t i = t->next++;
	const size_t at = (t->base + i) * 8;
	const uint64_t raw = get_le64(t->bytes + at);
	struct walk_skip s;
	struct entry e;

	if (!raw) /* most are */
		return WALK_END;
	e = entry_judge(w->options.mode, w->level, t->va, i, raw, w->options.ignore);
	if (is_out_of_bounds(w, e.va, e.size))
		return WALK_END;
	s = (struct walk_skip){ WALK_RESERVED, w->level - 1, raw, t->pa + at, e.va, e.frame };
	if (e.kind == ENTRY_TABLE)
		return enter_table_below(w, s);
	if (e.kind == ENTRY_RESERVED)
		return skip_entry(w, s);
	return tell_leaf(w, &(struct walk_leaf){ e, w->level, raw, t->pa + at, t->when });
}

static void leave_table(struct walk *w)
{
	w->level = w->level == w->top ? 0 : w->level + 1;
}

/* WALK_END: go on. */
static enum walk_event step_walk(struct walk *w)
{
	const struct walk__level *t = &w->at[w->level];

	if (!w->level)
		return enter_root(w);
	if (t->next < t->end)
		return step_table(w);
	if (t->entered < t->parts)
		return enter_next_page(w);
	leave_table(w);
	return WALK_END;
}

enum walk_event walk_next(struct walk *w)
{
	while (w->level || w->next_root < w->n_roots) {
		const enum walk_event event = step_walk(w);

		if (event != WALK_END)
			return event;
	}
	return WALK_END;
}

/*
 * Translation
 */

/* The root for an address; false: the space has none for that end. */
static bool root_for(const struct virt *v, uint64_t va, uint64_t *ret)
{
	const bool pair = paging_format(v->mode)->pair;
	const bool upper = pair && va > paging_user_last(v->mode);

	if (pair && (upper ? !v->kernel_dtb : v->dtb == v->kernel_dtb))
		return false;
	*ret = paging_root(v->mode, upper ? v->kernel_dtb : v->dtb);
	return true;
}

void virt_find(const struct virt *v, uint64_t va, struct virt_end *ret)
{
	const struct paging_format *f = paging_format(v->mode);
	struct entry e = { .kind = ENTRY_TABLE };
	const bool any = root_for(v, va, &e.frame);

	*ret = (struct virt_end){ .entry = e };
	for (unsigned level = any ? f->levels : 0; level; level--) {
		const size_t i = va >> paging_shift(f, level) & (paging_entries(f, level) - 1);
		const uint64_t at = e.frame + 8 * i;
		uint8_t page[PAGE_SIZE];
		struct physmem_page when;

		if (!walk_budget_take(v->budget) ||
		    !physmem_read_page(v->mem, at & ~(uint64_t)(PAGE_SIZE - 1), page, &when))
			return;
		ret->raw = get_le64(page + at % PAGE_SIZE);
		e = entry_judge(v->mode, level, 0, i, ret->raw, v->ignore);
		e.va = va & ~(e.size - 1);
		ret->entry = e;
		ret->level = level;
		ret->when = when;
		if (e.kind != ENTRY_TABLE)
			return;
	}
}

/* `*left`: how many bytes from `va` on lie in the same leaf, one behind the other in memory. */
static bool translate_with_rest(const struct virt *v, uint64_t va, uint64_t *ret, uint64_t *left)
{
	struct virt_end end;

	if (paging_canonical(v->mode, va) != va)
		return false;
	virt_find(v, va, &end);
	if (end.entry.kind != ENTRY_LEAF)
		return false;
	*ret = end.entry.frame + (va & (end.entry.size - 1));
	*left = end.entry.size - (va & (end.entry.size - 1));
	return true;
}

bool virt_translate(const struct virt *v, uint64_t va, uint64_t *ret)
{
	uint64_t left;

	return translate_with_rest(v, va, ret, &left);
}

/* Whole pages of what is read at once, such as types and symbols. */
#define READ_RUN 32

static size_t read_virt_pages(const struct virt *v, uint64_t pa, uint8_t *out, size_t pages)
{
	struct physmem_page status[READ_RUN];
	size_t n = 0;

	while (n < MIN(pages, (size_t)READ_RUN) && walk_budget_take(v->budget))
		n++;
	n = physmem_read_run(v->mem, pa, out, n, status);
	for (size_t i = 0; i < n; i++)
		if (!status[i].readable)
			return 0;
	return n;
}

/* Within a leaf. */
static bool read_leaf(const struct virt *v, uint64_t pa, uint8_t *out, size_t len)
{
	while (len) {
		size_t part = MIN(len, PAGE_SIZE - (size_t)(pa % PAGE_SIZE));

		if (pa % PAGE_SIZE == 0 && len >= 2 * PAGE_SIZE) {
			part = read_virt_pages(v, pa, out, len / PAGE_SIZE) * PAGE_SIZE;
			if (!part)
				return false;
		} else if (!walk_budget_take(v->budget) || !physmem_read(v->mem, pa, out, part)) {
			return false;
		}
		out += part;
		pa += part;
		len -= part;
	}
	return true;
}

bool virt_read(const struct virt *v, uint64_t va, void *buf, size_t len)
{
	uint8_t *out = buf;

	while (len) {
		uint64_t pa, left;
		size_t part;

		if (!translate_with_rest(v, va, &pa, &left))
			return false;
		part = (size_t)MIN(len, left);
		if (!read_leaf(v, pa, out, part))
			return false;
		out += part;
		va += part;
		len -= part;
	}
	return true;
}

bool virt_u64(const struct virt *v, uint64_t va, uint64_t *ret)
{
	uint8_t b[8];

	if (!virt_read(v, va, b, sizeof(b)))
		return false;
	*ret = get_le64(b);
	return true;
}

bool virt_u32(const struct virt *v, uint64_t va, uint32_t *ret)
{
	uint8_t b[4];

	if (!virt_read(v, va, b, sizeof(b)))
		return false;
	*ret = get_le32(b);
	return true;
}
