/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/paging/walk.h"

#include <string.h>

#include "formats/base/bytes.h"

/* Each level of a table decides on nine bits of an address, above the twelve of the page. */
static unsigned level_shift(unsigned level)
{
	return PAGE_SHIFT + 9 * (level - 1);
}

uint64_t paging_canonical(enum paging_mode mode, uint64_t va)
{
	const unsigned spare = mode == PAGING_5_LEVEL ? 7 : 16;

	if (mode == PAGING_PAE)
		return va & UINT32_MAX;
	return (uint64_t)((int64_t)(va << spare) >> spare);
}

/* PAE: CR3 holds a 32-byte aligned address below 4 GiB (Intel SDM vol. 3, table 4-7). */
uint64_t paging_root(enum paging_mode mode, uint64_t cr3)
{
	return mode == PAGING_PAE ? cr3 & 0xffffffe0 : cr3 & PTE_FRAME;
}

/* 1 GiB pages need four levels or more; a PAE level 3 entry has no large bit at all. */
static bool level_has_large(enum paging_mode mode, unsigned level)
{
	return level == 2 || (level == 3 && mode != PAGING_PAE);
}

/*
 * In an entry of a large page bit 12 is PAT, and those from there to the frame must be 0 (Intel SDM
 * vol. 3, tables 4-16 and 4-18): the processor would not use it. Few words that are no entry pass
 * as one.
 */
#define PTE_LARGE_PAT UINT64_C(0x1000)

struct entry entry_judge(enum paging_mode mode, unsigned level, uint64_t va, size_t i, uint64_t raw,
			 uint64_t ignore)
{
	struct entry e = { .kind = ENTRY_ZERO, .size = UINT64_C(1) << level_shift(level) };

	e.va = paging_canonical(mode, va + ((uint64_t)i << level_shift(level)));
	if (!raw)
		return e;
	e.kind = ENTRY_ABSENT;
	if (!(raw & PTE_PRESENT))
		return e;
	e.frame = raw & PTE_FRAME & ~ignore;
	if (level == 1) {
		e.kind = ENTRY_LEAF;
	} else if (!(raw & PTE_LARGE)) {
		e.kind = ENTRY_TABLE;
	} else if (level_has_large(mode, level) && !(e.frame & (e.size - 1) & ~PTE_LARGE_PAT)) {
		e.kind = ENTRY_LEAF;
		e.frame &= ~(e.size - 1);
	} else {
		e.kind = ENTRY_RESERVED;
	}
	return e;
}

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

void walk_begin(struct walk *w, struct physmem *mem, struct walk_set *set,
		const struct walk_options *options, uint64_t dtb)
{
	w->counts = (struct walk_counts){ 0 };
	w->stop = WALK_COMPLETE;
	w->mem = mem;
	w->set = set;
	w->options = *options;
	w->root = paging_root(options->mode, dtb);
	w->top = (unsigned)options->mode;
	w->root_va = 0;
	w->level = 0;
	w->begun = false;
}

void walk_begin_at(struct walk *w, struct physmem *mem, struct walk_set *set,
		   const struct walk_options *options, unsigned level, uint64_t pa, uint64_t va)
{
	walk_begin(w, mem, set, options, 0);
	w->root = pa;
	w->root_va = va;
	w->top = level;
}

static enum walk_event skip_entry(struct walk *w, struct walk_skip s)
{
	w->counts.skipped[s.reason]++;
	w->skip = s;
	return WALK_SKIP;
}

static enum walk_event out_of_budget(struct walk *w)
{
	w->stop = WALK_OUT_OF_BUDGET;
	w->level = 0;
	return WALK_END;
}

static bool is_on_walk_path(const struct walk *w, uint64_t pa)
{
	for (unsigned l = w->level; l && l <= w->top; l++)
		if (w->at[l].pa == pa)
			return true;
	return false;
}

/*
 * Goes down into the table that `s` speaks of, or says why not. PAE roots share their page with the
 * roots of other processes, so that it is not marked as seen.
 */
static enum walk_event enter_table_below(struct walk *w, struct walk_skip s)
{
	const uint64_t page = s.target & ~(uint64_t)(PAGE_SIZE - 1);
	const bool pae_root = w->options.mode == PAGING_PAE && s.level == 3;
	const bool marks = w->set && !pae_root;
	struct walk__level *t = &w->at[s.level];

	s.reason = WALK_OUTSIDE;
	if (!range_list_find(w->mem->ranges, page))
		return skip_entry(w, s);
	s.reason = WALK_SELF;
	if (w->set && is_on_walk_path(w, page))
		return skip_entry(w, s);
	s.reason = WALK_SEEN;
	if (marks && walk_set_has(w->set, page))
		return skip_entry(w, s);
	if (!walk_budget_take(w->options.budget))
		return out_of_budget(w);
	if (marks)
		walk_set_mark(w->set, page);
	s.reason = WALK_UNREADABLE;
	if (!physmem_read_page(w->mem, page, t->bytes, &t->when))
		return skip_entry(w, s);
	t->pa = page;
	t->va = s.va;
	t->next = 0;
	t->base = pae_root ? s.target % PAGE_SIZE / 8 : 0;
	t->end = pae_root ? 4 : TABLE_ENTRIES;
	w->level = s.level;
	w->counts.tables[s.level]++;
	w->table = (struct walk_table){ s.level, page, s.va, t->bytes, t->when };
	return WALK_TABLE;
}

static enum walk_event enter_root(struct walk *w)
{
	const struct walk_skip s = { .level = w->top, .target = w->root, .va = w->root_va };
	enum walk_event event;

	w->begun = true;
	event = enter_table_below(w, s);
	if (event == WALK_SKIP)
		w->stop = WALK_NO_ROOT;
	return event;
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
	if (e.va > w->options.last || e.va + (e.size - 1) < w->options.first)
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

enum walk_event walk_next(struct walk *w)
{
	if (!w->begun)
		return enter_root(w);
	while (w->level) {
		enum walk_event event;

		if (w->at[w->level].next == w->at[w->level].end) {
			leave_table(w);
			continue;
		}
		event = step_table(w);
		if (event != WALK_END)
			return event;
	}
	return WALK_END;
}

/*
 * Translation
 */

void virt_find(const struct virt *v, uint64_t va, struct virt_end *ret)
{
	struct entry e = { .kind = ENTRY_TABLE, .frame = paging_root(v->mode, v->dtb) };

	*ret = (struct virt_end){ .entry = e };
	for (unsigned level = (unsigned)v->mode; level; level--) {
		const unsigned bits = v->mode == PAGING_PAE && level == 3 ? 2 : 9;
		const size_t i = (va >> level_shift(level)) & ((1U << bits) - 1);
		uint8_t page[PAGE_SIZE];
		struct physmem_page when;

		if (!walk_budget_take(v->budget) ||
		    !physmem_read_page(v->mem, e.frame & ~(uint64_t)(PAGE_SIZE - 1), page, &when))
			return;
		ret->raw = get_le64(page + e.frame % PAGE_SIZE + 8 * i);
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
