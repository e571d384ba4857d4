/* SPDX-License-Identifier: Apache-2.0 */
/* By which layout a Linux kernel wrote its absent entries: its version, and what they look like. */
#include <inttypes.h>
#include <stdio.h>

#include "agent/shared/paging/pte.h"
#include "agent/shared/paging/walk.h"

/* Of the entries: torn tables have some that no kernel wrote. */
#define IMPOSSIBLE_LEAST 8 /* so many must contradict, */
#define IMPOSSIBLE_SHARE 8 /* and more than one in so many; the rest is so many times as likely */

static bool is_known_ram(const struct pte_facts *f, uint64_t pa)
{
	return f->ranges && range_list_find(f->ranges, pa);
}

static void add_prot_none(struct linux_pte_evidence *ev, unsigned level, uint64_t raw)
{
	const bool plain = is_known_ram(&ev->facts, linux_pte_kept_frame(level, raw, false));
	const bool inverted = is_known_ram(&ev->facts, linux_pte_kept_frame(level, raw, true));

	ev->prot_none++;
	ev->plain_in_ram += plain && !inverted;
	ev->inverted_in_ram += inverted && !plain;
}

/* Most entries name a swap area, by both readings: they are asked once. */
static void tally_swap(struct linux_pte_tally *t, const struct linux_pte_layout *l,
		       const struct pte_facts *f, unsigned level, uint64_t raw)
{
	const unsigned type = raw >> l->type_shift & (LINUX_PTE_TYPES - 1);
	const bool same = type < linux_pte_areas(l, true);
	enum pte_fit fit[2];

	for (size_t i = 0; i < 2; i++) {
		const struct linux_pte_context c = { .layout = l,
						     .device_private = i,
						     .five_levels = f->five_levels };

		fit[i] = i && same ? fit[0] : linux_pte_fit(&c, f, level, raw);
		if (type < linux_pte_areas(l, i))
			t->areas[i] |= UINT32_C(1) << type;
	}
	t->good += fit[0] == FIT_GOOD || fit[1] == FIT_GOOD;
	t->neither += fit[0] == FIT_NONE && fit[1] == FIT_NONE;
	for (size_t i = 0; i < 2; i++)
		t->only[i] += fit[i] == FIT_GOOD && fit[!i] == FIT_NONE;
}

void linux_pte_evidence_add(struct linux_pte_evidence *ev, unsigned level, uint64_t raw)
{
	if (!raw || (raw & PTE_PRESENT) || level > 3)
		return;
	ev->entries++;
	if (linux_pte_keeps_frame(level, raw)) {
		add_prot_none(ev, level, raw);
		return;
	}
	ev->swap++;
	for (size_t i = 0; i < linux_pte_layout_count; i++)
		tally_swap(&ev->tally[i], &linux_pte_layouts[i], &ev->facts, level, raw);
}

/*
 * The layout
 */

#define NO_ROW SIZE_MAX

/* The newest row that is not newer than the kernel. */
static size_t row_of_version(uint32_t version)
{
	size_t row = NO_ROW;

	for (size_t i = 0; i < linux_pte_layout_count; i++)
		if (linux_pte_layouts[i].since <= version)
			row = i;
	return row;
}

static uint64_t prot_none_of(const struct linux_pte_evidence *ev, bool inverted)
{
	return inverted ? ev->inverted_in_ram : ev->plain_in_ram;
}

/* So many against, and so many for it. */
static bool outweighs_clearly(uint64_t against, uint64_t for_it)
{
	return against >= IMPOSSIBLE_LEAST && against / IMPOSSIBLE_SHARE > for_it;
}

/* Some row leaves far less unexplained. */
static bool is_explained_elsewhere(const struct linux_pte_evidence *ev, size_t row)
{
	for (size_t i = 0; i < linux_pte_layout_count; i++)
		if (ev->tally[i].neither <= ev->tally[row].neither / IMPOSSIBLE_SHARE)
			return true;
	return false;
}

static bool is_impossible(const struct linux_pte_evidence *ev, size_t row)
{
	const bool inverted = linux_pte_layouts[row].inverted;
	const uint64_t neither = ev->tally[row].neither;

	if (outweighs_clearly(prot_none_of(ev, !inverted), prot_none_of(ev, inverted)))
		return true;
	return neither >= IMPOSSIBLE_LEAST && neither > ev->swap / IMPOSSIBLE_SHARE &&
	       is_explained_elsewhere(ev, row);
}

static uint64_t entries_explained(const struct linux_pte_evidence *ev, size_t row)
{
	return ev->tally[row].good + prot_none_of(ev, linux_pte_layouts[row].inverted);
}

/* The oldest of those that explain most. */
static size_t best_row(const struct linux_pte_evidence *ev)
{
	size_t best = 0;

	for (size_t i = 1; i < linux_pte_layout_count; i++)
		if (entries_explained(ev, i) > entries_explained(ev, best))
			best = i;
	return best;
}

static bool same_geometry(const struct linux_pte_layout *a, const struct linux_pte_layout *b)
{
	return a->type_shift == b->type_shift && a->offset_shift == b->offset_shift &&
	       a->offset_bits == b->offset_bits && a->inverted == b->inverted;
}

/* Types that two readings take for different things. */
static uint32_t types_apart(const struct linux_pte_layout *a, bool a_device,
			    const struct linux_pte_layout *b, bool b_device)
{
	uint32_t ret = 0;

	if (!same_geometry(a, b))
		return UINT32_MAX;
	for (unsigned t = 0; t < LINUX_PTE_TYPES; t++)
		if (linux_pte_state_of_type(a, a_device, t) !=
		    linux_pte_state_of_type(b, b_device, t))
			ret |= UINT32_C(1) << t;
	return ret;
}

/*
 * CONFIG_DEVICE_PRIVATE
 */

/* One reading explains entries that the other cannot, and not the other way round. */
static enum pte_option option_of_entries(const struct linux_pte_tally *t)
{
	if (t->only[1] > IMPOSSIBLE_SHARE * t->only[0])
		return OPTION_ON;
	return t->only[0] > IMPOSSIBLE_SHARE * t->only[1] ? OPTION_OFF : OPTION_UNTOLD;
}

static void say_option_doubt(struct linux_pte_choice *ret, bool told, uint64_t against)
{
	snprintf(ret->doubt, sizeof(ret->doubt),
		 "%" PRIu64 " entries say that the kernel has %s CONFIG_DEVICE_PRIVATE, which "
		 "contradicts what is known of it",
		 against, told ? "no" : "the option");
}

/* By the facts, unless many entries contradict them; otherwise by the entries. */
static void choose_option(const struct linux_pte_evidence *ev, size_t row,
			  struct linux_pte_choice *ret)
{
	const struct linux_pte_tally *t = &ev->tally[row];
	const enum pte_option told = ev->facts.device_private;
	const struct linux_pte_layout *l = &linux_pte_layouts[row];

	ret->device_private = told ? told : option_of_entries(t);
	if (told && outweighs_clearly(t->only[told == OPTION_OFF], t->only[told == OPTION_ON])) {
		say_option_doubt(ret, told == OPTION_ON, t->only[told == OPTION_OFF]);
		ret->device_private = OPTION_UNTOLD;
	}
	ret->context.device_private = ret->device_private == OPTION_ON;
	if (!ret->device_private)
		ret->context.unsure |= types_apart(l, false, l, true);
}

/*
 * Both
 */

/* What rows that explain as much read otherwise. */
static uint32_t types_in_doubt(const struct linux_pte_evidence *ev, size_t best, bool device)
{
	uint32_t ret = 0;

	for (size_t i = 0; i < linux_pte_layout_count; i++)
		if (entries_explained(ev, i) == entries_explained(ev, best))
			ret |= types_apart(&linux_pte_layouts[best], device, &linux_pte_layouts[i],
					   device);
	return ret;
}

static void say_reason(const struct linux_pte_evidence *ev, const char *by,
		       struct linux_pte_choice *ret)
{
	snprintf(ret->reason, sizeof(ret->reason),
		 "%" PRIu64 " absent entries, %" PRIu64 " of them PROT_NONE (%" PRIu64
		 " name RAM as they stand, %" PRIu64 " inverted), %" PRIu64 " swap or special; %s",
		 ev->entries, ev->prot_none, ev->plain_in_ram, ev->inverted_in_ram, ev->swap, by);
}

static void say_version_doubt(const struct linux_pte_evidence *ev, struct linux_pte_choice *ret)
{
	const uint32_t v = ev->facts.version;

	snprintf(ret->doubt, sizeof(ret->doubt),
		 "entries of page tables are not those of Linux %" PRIu32 ".%" PRIu32
		 ", which the kernel is said to be; they are read as layout %s, and what other "
		 "layouts that fit take for something else is unknown",
		 v / 100, v % 100, ret->context.layout->name);
}

void linux_pte_choose(const struct linux_pte_evidence *ev, struct linux_pte_choice *ret)
{
	const size_t told = row_of_version(ev->facts.version);
	const bool lies = told != NO_ROW && is_impossible(ev, told);
	const bool by_version = told != NO_ROW && !lies;
	const size_t row = by_version ? told : best_row(ev);

	*ret = (struct linux_pte_choice){ 0 };
	ret->by_version_only = by_version && !ev->swap && !entries_explained(ev, row);
	if (!by_version && !entries_explained(ev, row)) {
		snprintf(ret->reason, sizeof(ret->reason), "no entry tells the layouts apart");
		return;
	}
	ret->context.layout = &linux_pte_layouts[row];
	ret->context.five_levels = ev->facts.five_levels;
	choose_option(ev, row, ret);
	if (!by_version)
		ret->context.unsure |= types_in_doubt(ev, row, ret->context.device_private);
	if (lies)
		say_version_doubt(ev, ret);
	say_reason(ev, by_version ? "the kernel's version decided" : "they decided", ret);
	ret->areas = ev->tally[row].areas[ret->context.device_private] & ~ret->context.unsure;
}
