/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/smear/smear.h"

#include <string.h>

#include "agent/examine/smear/mapping.h"
#include "agent/examine/smear/slot_lookups.h"

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
		if (verdict_trust((enum verdict)v) < TRUSTS)
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
static enum verdict classify_mapping_entry(const struct analysis *m, const struct smear_id *id,
					   const struct mapping_run *p, enum copy copy)
{
	const struct view *b = &p->view[COPY_BEFORE], *a = &p->view[COPY_AFTER];

	if (p->view[copy].pte.state == PTE_COMPRESSED)
		return VERDICT_STORE;
	if (p->view[copy].pte.state == PTE_MIGRATION)
		return VERDICT_MOVING;
	if (p->view[copy].pte.state == PTE_UNKNOWN)
		return VERDICT_UNKNOWN;
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

/* Where what holds at `at`, which is in no capture, ends: `next` is the capture behind it. */
static uint64_t gap_end(const struct mapping *j, const struct capture *next,
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
 * The order of times is right whatever the counter does, but it may have gone forward by as much as
 * it was seen to go back.
 */
static bool has_settled(const struct analysis *m, uint64_t ns)
{
	const uint64_t wrong = m->ret->clock_back_ns;

	return ns >= SLOT_SETTLE_NS && ns - SLOT_SETTLE_NS >= wrong;
}

/*
 * A slot that was read while its entry stood. Linux writes it only then: the swap cache was seen to
 * have let go of the page, which it does behind the writing, or to have it; or else nobody knows,
 * and it is given time to settle, unless its page may be one that is never written.
 */
static enum verdict classify_written(const struct mapping *j, uint64_t at,
				     const struct rsz_times *when)
{
	const enum slot_lookup lookup =
		j->lookups ? slot_lookups_before(j->lookups, at, &j->stand, when)
			   : SLOT_NOT_LOOKED_UP;

	if (lookup == SLOT_NOT_LOOKED_UP)
		return j->look_needed || !has_settled(j->m, when->start - j->stand.since)
			       ? VERDICT_SLOT
			       : VERDICT_SAFE;
	return lookup == SLOT_WRITTEN ? VERDICT_SAFE : VERDICT_SWAP_CACHE;
}

/* Content that was captured while the entry stood. */
static enum verdict classify_time(const struct mapping *j, uint64_t at,
				  const struct rsz_times *when)
{
	if (j->entry == VERDICT_MOVING || j->entry == VERDICT_IMAGE)
		return j->entry;
	if (stand_has(&j->stand, when))
		return j->slot && j->m->entries.os == OS_LINUX ? classify_written(j, at, when)
							       : VERDICT_SAFE;
	return j->entry == VERDICT_SAFE ? VERDICT_OUT_OF_TIME : j->entry;
}

/* What content is worth that is there. */
static enum verdict classify_captured(const struct mapping *j, uint64_t at,
				      const struct rsz_times *when)
{
	enum verdict v = classify_time(j, at, when);

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

static const struct found_captures *find_captures(const struct mapping *j, uint64_t at,
						  uint64_t last)
{
	struct found_captures *f = &j->m->found;

	if (f->captures == j->captures && f->at == at && f->last == last)
		return f;
	*f = (struct found_captures){ .captures = j->captures, .at = at, .last = last };
	f->found = captures_from(j->captures, at, last, &f->newest);
	if (f->found)
		f->older = captures_older_from(j->captures, at, &f->n_older);
	return f;
}

/* Which capture of the page at `at` is taken; `last` is moved to where that is another matter. */
static struct content choose_capture(const struct mapping *j, const struct found_captures *f,
				     uint64_t at, uint64_t *last, uint64_t *captures)
{
	const struct capture *c = &f->newest;
	const struct content newest = { { c->start, c->end }, capture_is_readable(c), NULL };
	const struct older_page *older = f->older;

	*captures = newest.readable;
	if (older && older->address > at) {
		*last = MIN(*last, older->address - 1);
		older = NULL;
	}
	if (!older)
		return newest;
	*last = MIN(*last, at | (PAGE_SIZE - 1));
	*captures += f->n_older;
	/* Of an image that says how its file was read, and nothing of the machine. */
	if (j->m->ret->still)
		return newest;
	return stand_choose(j->m, &j->run.view[j->copy], j->copy, &j->stand, c, older, f->n_older);
}

/*
 * Where the slot is not the page's for certain, but the swap cache had the page while the entry
 * stood: that is the page, whatever the slot holds, and wherever it lies.
 */
static void take_cached(const struct mapping *j, uint64_t at, struct verdict_span *span)
{
	struct content content;

	if (j->followed || j->entry == VERDICT_MOVING || j->entry == VERDICT_IMAGE ||
	    span->verdict == VERDICT_SAFE ||
	    !slot_lookups_content(j->lookups, at, &j->stand, &content))
		return;
	span->verdict = VERDICT_CACHE_FRAME;
	span->captured = span->has_window = true;
	span->captures++;
	span->stream = j->lookups_stream;
	span->content = content;
	span->window = stand_window(j->m, &j->run.view[j->copy], j->copy, &j->times, &content.when);
}

/* `c` is the newest capture of what `content` may be an older one of. */
static bool is_zeros(const struct capture *c, const struct content *content)
{
	return (content->older ? content->older->state : c->state) == PAGE_ZERO;
}

/* Of content from `at` to `last`, as much as is of one kind. */
static struct verdict_span classify_stored(const struct mapping *j, uint64_t at, uint64_t last)
{
	const struct found_captures *f = find_captures(j, at, last);
	const struct capture *c = f->found ? &f->newest : NULL;
	const struct range *ram = range_list_find(j->ranges, at);
	const struct view *v = &j->run.view[j->copy];
	struct verdict_span ret = { .verdict = ram ? VERDICT_MISSING : VERDICT_OUTSIDE,
				    .stream = j->stream };
	uint64_t end;

	if (c && c->range.first <= at) {
		end = c->range.last;
		ret.verdict = c->state == PAGE_UNREADABLE ? VERDICT_UNREADABLE : VERDICT_MISSING;
		ret.content = choose_capture(j, f, at, &end, &ret.captures);
	} else {
		end = gap_end(j, c, ram, at, last);
	}
	ret.pages = (end - at + 1) >> PAGE_SHIFT;
	if (!ret.content.readable)
		return ret;
	ret.captured = true;
	ret.has_window = !j->m->ret->still && ret.content.when.end;
	if (ret.has_window)
		ret.window = stand_window(j->m, v, j->copy, &j->times, &ret.content.when);
	ret.verdict = classify_captured(j, at, &ret.content.when);
	if (is_zeros(c, &ret.content) && !j->slot && smear__is_hole(j->m, at, &end)) {
		ret.verdict = VERDICT_UNMAPPED;
		ret.pages = (end - at + 1) >> PAGE_SHIFT;
	}
	if (ret.verdict == VERDICT_SAFE && j->zeros_doubt && is_zeros(c, &ret.content))
		ret.verdict = VERDICT_SLOT;
	return ret;
}

static struct verdict_span classify_span(const struct mapping *j, uint64_t at, uint64_t last)
{
	struct verdict_span ret;

	if (!j->lookups)
		return classify_stored(j, at, last);
	ret = classify_stored(j, at, at | (PAGE_SIZE - 1));
	take_cached(j, at, &ret);
	return ret;
}

/* False, and the result says so, if all that may be spent is spent. */
bool smear__take_work(struct analysis *m, uint64_t steps)
{
	m->ret->cut |= m->work < steps;
	m->work -= MIN(m->work, steps);
	return !m->ret->cut;
}

/*
 * What it is judged by
 */

void smear__begin_judging(struct mapping *j)
{
	j->entry = classify_mapping_entry(j->m, &j->space->id, &j->run, j->copy);
	j->stand = stand_of(j->m, &j->run, j->copy);
}

static void name_pages(struct analysis *m, struct walk_set *named, struct walk_set *several,
		       uint64_t first, uint64_t pages)
{
	if (!smear__take_work(m, pages))
		return;
	for (uint64_t i = 0; i < pages; i++) {
		const uint64_t at = first + i * PAGE_SIZE;

		if (range_list_find(named->ranges, at) && walk_set_mark(named, at))
			walk_set_mark(several, at);
	}
}

/* Who names which page is counted of the image's tables, and for nobody who reads. */
static bool counts_names(const struct mapping *j)
{
	return j->copy == COPY_IMAGE && !j->m->request;
}

static void begin_frame(struct mapping *j)
{
	j->captures = j->m->memory;
	j->stream = j->m->memory_stream;
	j->ranges = &j->m->ram;
	j->first = j->run.view[j->copy].pte.frame;
	if (counts_names(j))
		name_pages(j->m, &j->m->named, &j->m->several, j->first, j->run.pages);
}

/* Why there is no content for any of its pages; VERDICT_SAFE: there may be. */
static enum verdict why_no_slot(const struct pte *p, const struct slot_file *f)
{
	if (p->state == PTE_COMPRESSED)
		return VERDICT_STORE;
	if (p->slot >> 40) /* 2^52 bytes: no file is that long */
		return VERDICT_OUTSIDE;
	if (f && f->slots && p->slot >= f->slots) /* what is behind them is none */
		return VERDICT_OUTSIDE;
	return f && f->captures ? VERDICT_SAFE : VERDICT_NO_FILE;
}

static void begin_slot(struct mapping *j, struct slot_file *f)
{
	j->captures = f->captures;
	j->stream = f->stream;
	j->lookups = f->lookups;
	j->lookups_stream = f->lookups_stream;
	j->ranges = &f->ranges;
	j->map_doubt = f->doubt != NULL;
	j->zeros_doubt = f->zram;
	j->look_needed = j->m->ret->slots_doubt_looked;
	j->slot_doubt = f->assumed || (j->m->ret->slots_doubt && !j->look_needed);
	j->first = j->run.view[j->copy].pte.slot * PAGE_SIZE;
	if (counts_names(j))
		name_pages(j->m, &f->named, &f->several, j->first, j->run.pages);
}

/* What names no page: is there reason to doubt that it names none? */
static enum verdict classify_no_place(const struct mapping *j)
{
	const struct pte *p = &j->run.view[j->copy].pte;
	enum verdict v = j->entry;

	if (v == VERDICT_SAFE && j->followed)
		v = VERDICT_PROTOTYPE;
	if ((v == VERDICT_SAFE || v == VERDICT_IMAGE) && p->needs_vad)
		v = VERDICT_VAD;
	/* Who counts what is safe wants pages that are there. */
	if (v == VERDICT_SAFE && p->state != PTE_DEMAND_ZERO)
		v = VERDICT_NO_CONTENT;
	return v;
}

/* False: all its pages are `ret`, and there is no content to look at. */
static bool begin_content(struct mapping *j, struct verdict_span *ret)
{
	const struct pte *p = &j->run.view[j->copy].pte;
	struct slot_file *f;

	*ret = (struct verdict_span){ .pages = j->run.pages };
	switch (pte_place(p)) {
	case PLACE_FRAME:
		begin_frame(j);
		return true;
	case PLACE_SLOT:
		f = p->file < PTE_FILES_MAX ? &j->m->files[p->file] : NULL;
		j->slot = true;
		ret->verdict = why_no_slot(p, f);
		if (ret->verdict == VERDICT_SAFE)
			begin_slot(j, f);
		return ret->verdict == VERDICT_SAFE;
	default:
		ret->verdict = classify_no_place(j);
		return false;
	}
}

bool mapping_judge(struct mapping *j, struct verdict_span *ret)
{
	if (!j->begun) {
		j->begun = true;
		j->over = !begin_content(j, ret);
		if (j->over)
			return true;
	}
	j->over = j->over || j->judged == j->run.pages || !smear__take_work(j->m, 1);
	if (j->over)
		return false;
	*ret = classify_span(j, j->first + j->judged * PAGE_SIZE,
			     j->first + (j->run.pages * PAGE_SIZE - 1));
	ret->offset = j->judged;
	j->judged += ret->pages;
	return true;
}

struct smear_row mapping_row(const struct mapping *j, const struct verdict_span *span)
{
	const struct view *v = &j->run.view[j->copy];
	struct smear_row row = {
		.copy = j->copy,
		.id = &j->space->id,
		.va = j->run.va + span->offset * PAGE_SIZE,
		.pages = span->pages,
		.pte = v->pte,
		.verdict = span->verdict,
		.change = j->run.change[PAIR_BEFORE_AFTER],
		.window = span->window,
		.raw = v->leaf->raw,
		.followed = j->followed,
		.proto = j->proto,
		.seen = { v->table->start, v->table->end },
		.captured = span->captured,
		.content = span->content.when,
		.older = span->content.older,
		.captures = span->captures,
		.stream = span->stream,
	};

	if (pte_place(&row.pte) == PLACE_SLOT)
		row.pte.slot += span->offset;
	else if (pte_place(&row.pte) == PLACE_FRAME)
		row.pte.frame += span->offset * PAGE_SIZE;
	return row;
}
