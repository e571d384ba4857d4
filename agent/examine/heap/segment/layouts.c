/* SPDX-License-Identifier: Apache-2.0 */
/* Segment heaps: layouts by build, and the descriptors that a segment begins with. */
#include "agent/examine/heap/segment/segment_internal.h"
#include "formats/base/bytes.h"

#define DESCRIPTOR_FLAGS 0x18 /* RangeFlags */

/*
 * To 15063 there are segments of one size, and what is a context's later on is the heap's. Of
 * 15063, records have the head, which is 14393's; what else is 14393's is inferred (and of 10240
 * and 10586 the same).
 */
static const struct segment_context_layout no_contexts = { 0 };
static const struct segment_context_layout contexts_16299 = { 0x68, 0x20, 0x50, 0x58, 0x60 };
static const struct segment_context_layout contexts_17134 = { 0x78, 0x20, 0x50, 0x58, 0x70 };
static const struct segment_context_layout contexts_17763 = { 0xc0, 0x48, 0x18, 0x20, 0x38 };

/* Yason: 1 of the LFH, 2 committed, 4 allocated, 8 first, 20 VS (hexadecimal). */
static const struct segment_range_layout ranges_14393 = { 6, 0x1b, 0x02, 8, 0xc, 0xd, 0x2c };
static const struct segment_range_layout ranges_16299 = { 4, 0x1f, 0, 2, 3, 0xb, 0xf };

/* What 20348 has, and what others have instead. */
#define SINCE_20348                                                                                \
	.context = &contexts_17763, .range = &ranges_16299, .contexts = 0x140, .vs = 0x2c0,        \
	.lfh = 0x380, .large = 0x48, .large_committed = 0x60, .vs_mark = 0x22, .lfh_bitmap = 0x30, \
	.constant = PAGE_SEGMENT_CONSTANT
#define SINCE_17763                                                                                \
	.context = &contexts_17763, .range = &ranges_16299, .contexts = 0x100, .vs = 0x280,        \
	.large = 0x48, .large_committed = 0x60, .vs_mark = 0x22, .lfh_bitmap = 0x30,               \
	.constant = PAGE_SEGMENT_CONSTANT

/*
 * Newest first. Of 26100, MemProcFS has no constant in the signatures; where that is wrong, the key
 * comes from VS chunks (keys.c). 17763 has the earlier of its two in its first release (.107), the
 * other one from .475 on at the latest: both were seen in heaps of these.
 */
const struct segment_layout segment__layouts[SEGMENT_LAYOUTS] = {
	{ .name = "26100",
	  .context = &contexts_17763,
	  .range = &ranges_16299,
	  .contexts = 0x140,
	  .vs = 0x2c0,
	  .lfh = 0x340,
	  .large = 0x48,
	  .large_committed = 0x60,
	  .vs_mark = 0x24,
	  .lfh_bitmap = 0x40,
	  .lfh_whole = true },
	{ .name = "20348", SINCE_20348, .tried = true },
	{ .name = "17763", SINCE_17763, .lfh = 0x340, .tried = true },
	{ .name = "17763-rtm", SINCE_17763, .lfh = 0x300, .tried = true },
	{ .name = "17134",
	  .context = &contexts_17134,
	  .range = &ranges_16299,
	  .contexts = 0x70,
	  .vs = 0x188,
	  .lfh = 0x200,
	  .large = 0x50,
	  .large_committed = 0x68,
	  .vs_mark = 0x22,
	  .lfh_bitmap = 0x30,
	  .constant = PAGE_SEGMENT_CONSTANT },
	{ .name = "16299",
	  .context = &contexts_16299,
	  .range = &ranges_16299,
	  .contexts = 0x70,
	  .vs = 0x168,
	  .lfh = 0x1e0,
	  .large = 0x50,
	  .large_committed = 0x68,
	  .vs_mark = 0x22,
	  .lfh_bitmap = 0x30,
	  .constant = PAGE_SEGMENT_CONSTANT },
	{ .name = "14393",
	  .context = &no_contexts,
	  .range = &ranges_14393,
	  .vs = 0xb0,
	  .lfh = 0x120,
	  .back_end = 0x38,
	  .list = 0x60,
	  .large = 0x38,
	  .large_committed = 0x50,
	  .vs_mark = 0x22,
	  .lfh_bitmap = 0x30,
	  .constant = PAGE_SEGMENT_CONSTANT },
};

static enum range_kind range_kind_of(const struct segment_range_layout *l, uint8_t flags)
{
	flags &= (uint8_t)~l->other;
	if (!(flags & l->first))
		return RANGE_REST;
	return flags == l->first   ? RANGE_FREE
	       : flags == l->plain ? RANGE_PLAIN
	       : flags == l->lfh   ? RANGE_LFH
	       : flags == l->vs    ? RANGE_VS
				   : RANGE_OTHER;
}

bool segment__range(struct heap_pages *p, const struct segment_layout *l,
		    const struct page_segment *s, const struct segment_context *c, unsigned index,
		    struct page_range *ret)
{
	const struct segment_range_layout *r = l->range;
	const uint8_t *d = heap__at(p, s->at + (uint64_t)index * DESCRIPTOR_SIZE, DESCRIPTOR_SIZE);

	if (!d)
		return false;
	*ret = (struct page_range){
		.at = s->at + ((uint64_t)index << c->shift),
		.unused = r->unused % 4 ? get_le16(d + r->unused) : get_le32(d + r->unused),
		.kind = range_kind_of(r, d[DESCRIPTOR_FLAGS]),
		.units = d[r->units] <= SEGMENT_DESCRIPTORS - index ? d[r->units] : 0,
	};
	ret->size = (uint64_t)ret->units << c->shift;
	return true;
}

/*
 * What contexts are where the head can't be had: 1 MiB in units of 4 KiB, and 16 MiB of 64 (M. V.
 * Yason, "Windows 10 Segment Heap Internals", for the first; MemProcFS reads both so).
 */
struct segment_context segment__usual_context(uint64_t heap, const struct segment_layout *l,
					      unsigned i)
{
	const uint8_t shift = i ? 16 : 12;
	const uint64_t at = heap + l->contexts + i * l->context->size;

	if (i && !l->context->size)
		return (struct segment_context){ 0 };
	return (struct segment_context){
		.at = at,
		.list = at + (l->context->size ? l->context->list : l->list),
		.size = (uint64_t)SEGMENT_DESCRIPTORS << shift,
		.shift = shift,
		.first = i ? 1 : 2,
	};
}
