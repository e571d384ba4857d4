/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks with more in front of them than a header, as the debugging flag +ust makes all of them:
 *
 *	block         its header; UnusedBytes is 40 | how many units lie between
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

#define EXTENDED_MASK 0x3f /* units */
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

/*
 * UnusedBytes of a virtual block is 4 in any case. The article takes that for the number of units;
 * DbgHelpUtils meets two. What lies before the data tells which.
 */
static const uint8_t virtual_units[] = { 2, 4 };

static uint8_t units_of_virtual(struct heap_pages *p, const struct heap_layout *l, uint64_t block)
{
	for (size_t i = 0; i < ARRAY_SIZE(virtual_units); i++) {
		const uint8_t units = virtual_units[i];
		const uint8_t *end = heap__at(p, block + (uint64_t)units * l->unit + l->header, 8);
		const uint16_t kind = end ? get_le16(end) : 0;

		if ((kind == INLINE_TRACE || kind == POINTED_TRACE) && ends_extension(end, units))
			return units;
	}
	return 0;
}

void heap__extend(struct heap_walk *w, uint64_t block, uint8_t unused, struct heap_allocation *a)
{
	const struct heap_layout *l = w->l;
	const bool is_virtual = a->place == PLACE_VIRTUAL;
	uint8_t units = unused & CHUNK_EXTENDED ? unused & EXTENDED_MASK : 0;
	const uint8_t *end;
	uint64_t between, gone, whole;

	if (!units && is_virtual)
		units = units_of_virtual(w->p, l, block);
	between = (uint64_t)units * l->unit;
	if (!units || between >= a->size)
		return;
	end = heap__extension_end(w->p, l, block + between + l->header);
	if (end && !ends_extension(end, units)) {
		w->stats->contradictions++;
		return;
	}
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
		take_trace(w->p, l, block, between, copy, a);
	}
}
