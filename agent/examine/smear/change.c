/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/smear/change.h"

const char *change_name(enum change c)
{
	static const char *const names[CHANGES] = {
#define X(name, text) [name] = text,
		CHANGE_MAP(X)
#undef X
	};

	return (unsigned)c < CHANGES ? names[c] : "?";
}

static bool same_target(const struct pte *a, const struct pte *b)
{
	return a->frame == b->frame && a->file == b->file && a->slot == b->slot &&
	       a->address == b->address;
}

/* Both name frames. */
static enum change change_of_frames(const struct pte *a, const struct pte *b, bool same_rights)
{
	if (a->frame != b->frame)
		return CHANGE_REMAPPED;
	if (a->state == b->state)
		return same_rights ? CHANGE_STABLE : CHANGE_RIGHTS;
	if (b->state == PTE_TRANSITION)
		return CHANGE_TRIMMED;
	return a->state == PTE_TRANSITION ? CHANGE_RECALLED : CHANGE_RIGHTS;
}

enum change change_of(const struct pte *a, const struct pte *b, bool same_rights)
{
	const enum place from = pte_place(a), to = pte_place(b);

	if (from == PLACE_FRAME && to == PLACE_FRAME)
		return change_of_frames(a, b, same_rights);
	if (from == PLACE_FRAME && to == PLACE_SLOT)
		return CHANGE_PAGED_OUT;
	if (from == PLACE_SLOT && to == PLACE_FRAME)
		return CHANGE_PAGED_IN;
	if (from == PLACE_NONE && to != PLACE_NONE)
		return CHANGE_APPEARED;
	if (from != PLACE_NONE && to == PLACE_NONE)
		return CHANGE_GONE;
	if (from == PLACE_NONE && (a->state != b->state || !same_target(a, b)))
		return CHANGE_OTHER;
	if (!same_target(a, b) || a->state != b->state)
		return CHANGE_MOVED;
	return same_rights ? CHANGE_STABLE : CHANGE_RIGHTS;
}
