/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/heap/base/stack_trace.h"

#include "formats/base/defs.h"

struct entry_layout {
	uint8_t index, depth, frames;
};

static const struct entry_layout layout64 = { 0xc, 0xe, 0x10 };
static const struct entry_layout layout32 = { 0x8, 0xa, 0xc };

/* Addresses of code from `at` on, up to the first that is none. */
static uint32_t read_frames(const struct memory_view *m, const struct range_list *code, bool wide,
			    uint64_t at, struct stack_trace *ret)
{
	uint32_t n = 0;

	while (n < STACK_TRACE_FRAMES_MAX &&
	       view_pointer(m, at + n * (wide ? 8 : 4), wide, &ret->at[n]) &&
	       range_list_find(code, ret->at[n]))
		n++;
	return n;
}

bool stack_trace_read(const struct memory_view *m, const struct range_list *code, bool wide,
		      uint64_t at, uint16_t frames, struct stack_trace *ret)
{
	const struct entry_layout *l = wide ? &layout64 : &layout32;
	uint16_t index, depth;
	uint32_t there;

	ret->count = 0;
	if (frames) {
		if (frames > STACK_TRACE_FRAMES_MAX || read_frames(m, code, wide, at, ret) < frames)
			return false;
		ret->count = frames;
		return true;
	}
	if (!at || !view_u16(m, at + l->index, &index) || !view_u16(m, at + l->depth, &depth))
		return false;
	there = read_frames(m, code, wide, at + l->frames, ret);
	/* The other of the two is the entry's own number, and may be small by chance. */
	if (there && (depth == there || index == there))
		ret->count = there;
	else if (depth && depth < there)
		ret->count = depth;
	else if (index && index < there)
		ret->count = index;
	return ret->count > 0;
}
