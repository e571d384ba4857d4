/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/smear/smear.h"

#include <string.h>

#include "agent/smear/piece.h"
#include "agent/smear/slot_looks.h"
#include "agent/smear/stand.h"

#define NAMES(function, type, map, count)                                                          \
	const char *function(type v)                                                               \
	{                                                                                          \
		static const char *const names[] = { map(NAME) };                                  \
                                                                                                   \
		return (unsigned)v < (count) ? names[v] : "?";                                     \
	}

#define TRUST_NAMES(X)   TRUST_MAP(X) X(TRUST_NOT_APPLICABLE, "not-applicable")
#define NAME(name, text) [name] = text,
NAMES(copy_name, enum copy, COPY_MAP, COPIES)
NAMES(trust_name, enum trust, TRUST_NAMES, TRUST_KINDS)
#undef NAME
#define NAME(name, text, from, to) [name] = text,
NAMES(pair_name, enum pair, PAIR_MAP, PAIRS)
#undef NAME
#define NAME(name, text) [name] = text,
NAMES(numbering_name, enum numbering, NUMBERING_MAP, NUMBERINGS)
#undef NAME
#define NAME(name, trust, text) [name] = text,
NAMES(verdict_name, enum verdict, VERDICT_MAP, VERDICTS)
#undef NAME

enum trust verdict_trust(enum verdict v)
{
	static const enum trust trusts[] = {
#define X(name, trust, text) [name] = trust,
		VERDICT_MAP(X)
#undef X
	};

	return (unsigned)v < VERDICTS ? trusts[v] : TRUST_AT_RISK;
}

void copy_trust(const struct copy_sums *c, uint64_t ret[static TRUSTS])
{
	memset(ret, 0, TRUSTS * sizeof(*ret));
	for (size_t v = 0; v < VERDICTS; v++)
		if (v != VERDICT_IMAGE)
			ret[verdict_trust((enum verdict)v)] += c->frames[v] + c->slots[v];
}

uint64_t copy_not_applicable(const struct copy_sums *c)
{
	return c->frames[VERDICT_IMAGE] + c->slots[VERDICT_IMAGE];
}

/*
 * Judging a page that one copy's entry names
 */

/* What is to be said of an entry where nothing shows that its content was captured in time. */
static enum verdict judge_entry(const struct measure *m, const struct smear_id *id,
				const struct piece *p, enum copy copy)
{
	const struct view *b = &p->view[COPY_BEFORE], *a = &p->view[COPY_AFTER];

	if (p->view[copy].pte.state == PTE_COMPRESSED)
		return VERDICT_STORE;
	if (p->view[copy].pte.state == PTE_MIGRATION)
		return VERDICT_MOVING;
	if (m->ret->still)
		return VERDICT_IMAGE;
	if (m->one_pass)
		return VERDICT_ONE_PASS;
	if (id->fate != FATE_LIVED || p->change[PAIR_BEFORE_AFTER] != CHANGE_STABLE || !b->leaf ||
	    !a->leaf)
		return VERDICT_CHANGED;
	if (copy == COPY_IMAGE && (p->change[PAIR_BEFORE_IMAGE] != CHANGE_STABLE ||
				   p->change[PAIR_IMAGE_AFTER] != CHANGE_STABLE))
		return VERDICT_TORN;
	return b->table->same && a->table->same ? VERDICT_SAFE : VERDICT_PATH;
}

/* Neighbouring pages of a mapping whose content was captured together, or is missing together. */
struct part {
	uint64_t offset; /* in the piece, in pages */
	uint64_t pages;
	enum verdict verdict;
	uint64_t window;
	bool has_window;
	bool captured;   /* and is readable, */
	uint32_t stream; /* in this */
	struct content content;
	uint64_t captures; /* that can be read */
};

/* What one piece of one copy is judged by. */
struct judgement {
	struct measure *m;
	struct smear_space *space;
	const struct piece *piece;
	enum copy copy;
	const struct captures *captures;
	uint32_t stream;
	const struct captures *looks; /* what the swap cache held of the slots, if anybody looked */
	uint32_t looks_stream;
	const struct range_list *ranges; /* where there can be content */
	enum verdict entry;              /* judge_entry()'s */
	struct stand stand;              /* of the entry; unless it is an image's */
	bool slot;
	bool map_doubt;
	bool slot_doubt;
	bool followed;          /* the piece has what a prototype came to */
	uint64_t proto;         /* its address, and */
	struct rsz_times times; /* when it was captured */
};

static bool is_row_wanted(const struct judgement *j)
{
	const struct smear_plan *plan = j->m->plan;

	if (j->m->look)
		return j->copy == j->m->look->copy;
	return plan->row && j->space->id.listed && j->space->id.pid == plan->row_pid;
}

static enum status tell_one(const struct judgement *j, const struct part *part, struct err *e)
{
	const struct smear_plan *plan = j->m->plan;
	const struct view *v = &j->piece->view[j->copy];
	struct smear_row row = {
		.copy = j->copy,
		.id = &j->space->id,
		.va = j->piece->va + part->offset * PAGE_SIZE,
		.pages = part->pages,
		.pte = v->pte,
		.verdict = part->verdict,
		.change = j->piece->change[PAIR_BEFORE_AFTER],
		.window = part->window,
		.raw = v->leaf->raw,
		.followed = j->followed,
		.proto = j->proto,
		.seen = { v->table->start, v->table->end },
		.captured = part->captured,
		.content = part->content.when,
		.older = part->content.older,
		.captures = part->captures,
		.stream = part->stream,
	};

	if (!is_row_wanted(j))
		return ST_OK;
	if (pte_place(&row.pte) == PLACE_SLOT)
		row.pte.slot += part->offset;
	else if (pte_place(&row.pte) == PLACE_FRAME)
		row.pte.frame += part->offset * PAGE_SIZE;
	return j->m->look ? j->m->look->row(j->m->look, &row, e)
			  : plan->row(plan->context, &row, e);
}

static enum status count_part(const struct judgement *j, const struct part *part, struct err *e)
{
	const struct leaf_table *t = j->piece->view[j->copy].table;
	struct copy_sums *sums = &j->space->copy[j->copy];
	const enum trust trust = verdict_trust(part->verdict);

	/* What the swap cache held is in no flat copy of the area. */
	if (part->content.older || part->verdict == VERDICT_CACHE_FRAME)
		sums->older += part->pages;
	if (j->copy == COPY_IMAGE && !t->known && !t->held && trust < TRUSTS)
		j->space->torn[trust] += part->pages;
	(j->slot ? sums->slots : sums->frames)[part->verdict] += part->pages;
	if (part->has_window)
		windows_add(&j->m->copy[j->copy].windows[j->slot ? WINDOW_SLOTS : WINDOW_FRAMES],
			    part->window, part->pages);
	return tell_one(j, part, e);
}

/* Where what holds at `at`, which is in no capture, ends: `next` is the capture behind it. */
static uint64_t gap_end(const struct judgement *j, const struct capture *next,
			const struct range *ram, uint64_t at, uint64_t last)
{
	if (next)
		last = MIN(last, next->range.first - 1);
	if (ram)
		return MIN(last, ram->last);
	for (size_t i = 0; i < j->ranges->count; i++)
		if (j->ranges->at[i].first > at)
			return MIN(last, j->ranges->at[i].first - 1);
	return last;
}

/*
 * A slot that was read while its entry stood. Linux writes it only then: the swap cache was seen to
 * have let go of the page, which it does behind the writing, or to have it; or else nobody knows,
 * and it is given time to settle.
 */
static enum verdict judge_written(const struct judgement *j, uint64_t at,
				  const struct rsz_times *when)
{
	const enum slot_look look =
		j->looks ? slot_looks_before(j->looks, at, &j->stand, when) : SLOT_NOT_LOOKED;

	if (look == SLOT_NOT_LOOKED)
		return when->start - j->stand.since < SLOT_SETTLE_NS ? VERDICT_SLOT : VERDICT_SAFE;
	return look == SLOT_WRITTEN ? VERDICT_SAFE : VERDICT_SWAP_CACHE;
}

/* Content that was captured while the entry stood. */
static enum verdict judge_time(const struct judgement *j, uint64_t at, const struct rsz_times *when)
{
	if (j->entry == VERDICT_MOVING || j->entry == VERDICT_IMAGE)
		return j->entry;
	if (stand_has(&j->stand, when))
		return j->slot && j->m->entries.os == OS_LINUX ? judge_written(j, at, when)
							       : VERDICT_SAFE;
	return j->entry == VERDICT_SAFE ? VERDICT_OUT_OF_TIME : j->entry;
}

/* What content is worth that is there. */
static enum verdict judge_captured(const struct judgement *j, uint64_t at,
				   const struct rsz_times *when)
{
	enum verdict v = judge_time(j, at, when);

	if ((v == VERDICT_SAFE || v == VERDICT_IMAGE || v == VERDICT_SLOT ||
	     v == VERDICT_SWAP_CACHE) &&
	    j->map_doubt)
		v = VERDICT_SLOT_MAP;
	if ((v == VERDICT_SAFE || v == VERDICT_IMAGE) && j->slot_doubt)
		v = VERDICT_SLOT;
	if (v == VERDICT_SAFE && j->followed)
		v = VERDICT_PROTOTYPE;
	return v;
}

/* Which capture of the page at `at` is taken; `last` is moved to where that is another matter. */
static struct content choose(const struct judgement *j, const struct capture *c, uint64_t at,
			     uint64_t *last, uint64_t *captures)
{
	const struct content newest = { { c->start, c->end }, capture_is_readable(c), NULL };
	size_t n;
	const struct older_page *older = captures_older_from(j->captures, at, &n);

	*captures = newest.readable;
	if (older && older->address > at) {
		*last = MIN(*last, older->address - 1);
		older = NULL;
	}
	if (!older)
		return newest;
	*last = MIN(*last, at | (PAGE_SIZE - 1));
	*captures += n;
	/* Of an image that says how its file was read, and nothing of the machine. */
	if (j->m->ret->still)
		return newest;
	return stand_choose(j->m, &j->piece->view[j->copy], j->copy, &j->stand, c, older, n);
}

/*
 * Where the slot is not the page's for certain, but the swap cache had the page while the entry
 * stood: that is the page, whatever the slot holds, and wherever it lies.
 */
static void take_cached(const struct judgement *j, uint64_t at, struct part *part)
{
	struct content content;

	if (j->followed || j->entry == VERDICT_MOVING || j->entry == VERDICT_IMAGE ||
	    part->verdict == VERDICT_SAFE || !slot_looks_content(j->looks, at, &j->stand, &content))
		return;
	part->verdict = VERDICT_CACHE_FRAME;
	part->captured = part->has_window = true;
	part->captures++;
	part->stream = j->looks_stream;
	part->content = content;
	part->window =
		stand_window(j->m, &j->piece->view[j->copy], j->copy, &j->times, &content.when);
}

/* Of content from `at` to `last`, as much as is of one kind. */
static struct part judge_stored(const struct judgement *j, uint64_t at, uint64_t last)
{
	const struct capture *c = captures_from(j->captures, at);
	const struct range *ram = range_list_find(j->ranges, at);
	const struct view *v = &j->piece->view[j->copy];
	struct part ret = { .verdict = ram ? VERDICT_MISSING : VERDICT_OUTSIDE,
			    .stream = j->stream };
	uint64_t end;

	if (c && c->range.first <= at) {
		end = MIN(last, c->range.last);
		ret.verdict = c->state == PAGE_UNREADABLE ? VERDICT_UNREADABLE : VERDICT_MISSING;
		ret.content = choose(j, c, at, &end, &ret.captures);
	} else {
		end = gap_end(j, c, ram, at, last);
	}
	ret.pages = (end - at + 1) >> PAGE_SHIFT;
	if (!ret.content.readable)
		return ret;
	ret.captured = true;
	ret.has_window = !j->m->ret->still;
	if (ret.has_window)
		ret.window = stand_window(j->m, v, j->copy, &j->times, &ret.content.when);
	ret.verdict = judge_captured(j, at, &ret.content.when);
	return ret;
}

static struct part judge_part(const struct judgement *j, uint64_t at, uint64_t last)
{
	struct part ret;

	if (!j->looks)
		return judge_stored(j, at, last);
	ret = judge_stored(j, at, at | (PAGE_SIZE - 1));
	take_cached(j, at, &ret);
	return ret;
}

/* False, and the result says so, if all that may be spent is spent. */
static bool take_work(struct measure *m, uint64_t steps)
{
	m->ret->cut |= m->work < steps;
	m->work -= MIN(m->work, steps);
	return !m->ret->cut;
}

static enum status judge_content(const struct judgement *j, uint64_t first, struct err *e)
{
	const uint64_t last = first + (j->piece->pages * PAGE_SIZE - 1);
	struct part part;
	enum status st = ST_OK;

	for (uint64_t done = 0; done < j->piece->pages && !st; done += part.pages) {
		if (!take_work(j->m, 1))
			break;
		part = judge_part(j, first + done * PAGE_SIZE, last);
		part.offset = done;
		st = count_part(j, &part, e);
	}
	return st;
}

static void name_pages(struct measure *m, struct walk_set *named, struct walk_set *several,
		       uint64_t first, uint64_t pages)
{
	if (!take_work(m, pages))
		return;
	for (uint64_t i = 0; i < pages; i++) {
		const uint64_t at = first + i * PAGE_SIZE;

		if (range_list_find(named->ranges, at) && walk_set_mark(named, at))
			walk_set_mark(several, at);
	}
}

static enum status judge_frame(struct judgement *j, struct err *e)
{
	const struct pte *p = &j->piece->view[j->copy].pte;

	j->captures = j->m->memory;
	j->stream = j->m->memory_stream;
	j->ranges = &j->m->ram;
	if (j->copy == COPY_IMAGE)
		name_pages(j->m, &j->m->named, &j->m->several, p->frame, j->piece->pages);
	return judge_content(j, p->frame, e);
}

static enum status judge_slot(struct judgement *j, struct err *e)
{
	const struct pte *p = &j->piece->view[j->copy].pte;
	struct slot_file *f = p->file < PTE_FILES_MAX ? &j->m->files[p->file] : NULL;
	struct part part = { .pages = j->piece->pages, .verdict = VERDICT_NO_FILE };

	j->slot = true;
	if (p->state == PTE_COMPRESSED)
		part.verdict = VERDICT_STORE;
	else if (p->slot >> 40) /* 2^52 bytes: no file is that long */
		part.verdict = VERDICT_OUTSIDE;
	else if (f && f->slots && p->slot >= f->slots) /* what is behind them is none */
		part.verdict = VERDICT_OUTSIDE;
	if (part.verdict != VERDICT_NO_FILE || !f || !f->captures)
		return count_part(j, &part, e);
	j->captures = f->captures;
	j->stream = f->stream;
	j->looks = f->looks;
	j->looks_stream = f->looks_stream;
	j->ranges = &f->ranges;
	j->map_doubt = f->doubt != NULL;
	j->slot_doubt = f->assumed || j->m->ret->slots_doubt;
	if (j->copy == COPY_IMAGE)
		name_pages(j->m, &f->named, &f->several, p->slot * PAGE_SIZE, j->piece->pages);
	return judge_content(j, p->slot * PAGE_SIZE, e);
}

/* What names no page: is there reason to doubt that it names none? */
static enum status tell_entry(const struct judgement *j, struct err *e)
{
	const struct pte *p = &j->piece->view[j->copy].pte;
	struct part part = { .pages = j->piece->pages, .verdict = j->entry };

	if (!j->m->look)
		return ST_OK;
	if (part.verdict == VERDICT_SAFE && j->followed)
		part.verdict = VERDICT_PROTOTYPE;
	if ((part.verdict == VERDICT_SAFE || part.verdict == VERDICT_IMAGE) && p->needs_vad)
		part.verdict = VERDICT_VAD;
	return tell_one(j, &part, e);
}

/* Puts what a prototype entry comes to in its place. */
static void follow(struct judgement *j, struct piece *p)
{
	const struct look *l = j->m->look;
	struct pte *pte = &p->view[j->copy].pte;

	if (!l || j->copy != l->copy || pte->state != PTE_PROTOTYPE)
		return;
	j->proto = pte->address;
	j->followed = l->follow(l, pte, &j->times);
}

enum status smear__judge(struct measure *m, struct smear_space *s, const struct piece *p,
			 enum copy copy, struct err *e)
{
	struct piece piece = *p;
	struct judgement j = { .m = m, .space = s, .piece = &piece, .copy = copy };
	const struct view *v = &piece.view[copy];

	if (!v->leaf)
		return ST_OK;
	s->copy[copy].state[v->pte.state] += p->pages;
	j.entry = judge_entry(m, &s->id, p, copy);
	j.stand = stand_of(m, p, copy);
	follow(&j, &piece);
	switch (pte_place(&v->pte)) {
	case PLACE_FRAME:
		return judge_frame(&j, e);
	case PLACE_SLOT:
		return judge_slot(&j, e);
	default:
		return tell_entry(&j, e);
	}
}
