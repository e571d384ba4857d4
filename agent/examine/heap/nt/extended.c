/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks with more in front of them than a header, as the debugging flag +ust makes all of them:
 *
 *	block         its header; UnusedBytes is 40 | how many units lie between; of a virtual
 *	              block, whose UnusedBytes is always 4, SegmentOffset is
 *	block + unit  the address of the stack trace, or from one unit further on its frames
 *	data - 8      u16 kind of trace (1, 2), u16 frames that lie here, u16 unused bytes of
 *	              the block, u8 those units again, u8 05
 *
 * "Leak Checking" (adeyblue, 18 January 2010) has kinds and frames of Vista and 7;
 * shanepowell/DbgHelpUtils c62b5a8, heap_entry.cpp, the same of 10 as it met it: two units, kind 1,
 * no frames, and the address.
 */
#include <string.h>

#include "agent/examine/heap/base/stack_trace.h"
#include "agent/examine/heap/nt/nt.h"
#include "formats/base/bytes.h"

#define INLINE_TRACE  1
#define POINTED_TRACE 2

/* What lies between header and data; false: nothing that is known. */
static void take_trace(struct heap_pages *p, const struct heap_layout *l, uint64_t block,
		       uint64_t between, const uint8_t *end, struct heap_allocation *a)
{
	const uint16_t kind = get_le16(end), frames = get_le16(end + 2);
	const uint64_t word = l->unit / 2;
	uint64_t at;

	if (kind != INLINE_TRACE && kind != POINTED_TRACE)
		return;
	if (kind == INLINE_TRACE && frames) {
		/* They begin one unit later, and end before what was read here. */
		if (frames > STACK_TRACE_FRAMES_MAX ||
		    2 * l->unit + frames * word > between + l->header)
			return;
		a->trace = block + 2 * l->unit;
		a->frames = frames;
	} else if (heap__pointer(p, block + l->unit, l->wide, &at) &&
		   heap__plausible(at, l->wide, word)) {
		a->trace = at;
	}
}

/* Whether the 8 bytes before the data, with so much before them, say that they belong to it. */
static bool ends_extension(const uint8_t *end, uint8_t units)
{
	return end[6] == units && end[7] == EXTENSION_END;
}

/* Its units, and what ends it if that can be had; 0: none, or what is there denies it. */
static uint8_t find_extension(struct heap_walk *w, uint64_t block, uint8_t units, uint64_t size,
			      const uint8_t **ret_end)
{
	const uint64_t between = (uint64_t)units * w->l->unit;

	if (!units || between >= size)
		return 0;
	*ret_end = heap__extension_end(w->p, w->l, block + between + w->l->header);
	if (!*ret_end || ends_extension(*ret_end, units))
		return units;
	w->stats->contradictions++;
	return 0;
}

static uint8_t units_of(const struct chunk *c, bool is_virtual)
{
	if (is_virtual)
		return c->offset;
	return c->unused & CHUNK_EXTENDED ? c->unused & CHUNK_UNITS : 0;
}

void heap__extend_own(struct heap_walk *w, const struct chunk *c, struct heap_allocation *a)
{
	const uint8_t *end;
	const uint64_t between =
		(uint64_t)find_extension(w, c->at, units_of(c, false), a->size, &end) * w->l->unit;

	a->address += between;
	a->size -= between;
}

void heap__extend(struct heap_walk *w, const struct chunk *c, struct heap_allocation *a)
{
	const struct heap_layout *l = w->l;
	const bool is_virtual = a->place == PLACE_VIRTUAL;
	const uint8_t *end;
	const uint8_t units = find_extension(w, c->at, units_of(c, is_virtual), a->size, &end);
	uint64_t between, gone, whole;

	if (!units)
		return;
	between = (uint64_t)units * l->unit;
	/* What has to be unused: header and extension, without what lies in the next header. */
	whole = a->size + 8;
	gone = between + 8;
	a->address += between;
	a->size -= between;
	a->requested = MIN(a->requested, a->size);
	if (end && !is_virtual && get_le16(end + 4) >= gone && get_le16(end + 4) <= whole) {
		a->requested = whole - get_le16(end + 4);
		a->has_requested = true;
	}
	if (end) {
		uint8_t copy[8];

		memcpy(copy, end, sizeof(copy));
		take_trace(w->p, l, c->at, between, copy, a);
	}
}
