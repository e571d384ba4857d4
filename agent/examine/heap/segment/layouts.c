/* SPDX-License-Identifier: Apache-2.0 */
/* Segment heaps: layouts by build, and the descriptors that a segment begins with. */
#include "agent/examine/heap/segment/segment_internal.h"
#include "formats/base/bytes.h"

/*
 * Newest first. Of 26100, MemProcFS has no constant in the signatures; where that is wrong, the key
 * comes from VS chunks (keys.c).
 */
const struct segment_layout segment__layouts[SEGMENT_LAYOUTS] = {
	{ .name = "26100",
	  .contexts = 0x140,
	  .vs = 0x2c0,
	  .lfh = 0x340,
	  .vs_mark = 0x24,
	  .lfh_bitmap = 0x40,
	  .lfh_whole = true },
	{ .name = "20348",
	  .contexts = 0x140,
	  .vs = 0x2c0,
	  .lfh = 0x380,
	  .vs_mark = 0x22,
	  .lfh_bitmap = 0x30,
	  .constant = PAGE_SEGMENT_CONSTANT },
	{ .name = "17763",
	  .contexts = 0x100,
	  .vs = 0x280,
	  .lfh = 0x340,
	  .vs_mark = 0x22,
	  .lfh_bitmap = 0x30,
	  .constant = PAGE_SEGMENT_CONSTANT },
};

bool segment__range(struct heap_pages *p, const struct page_segment *s,
		    const struct segment_context *c, unsigned index, struct page_range *ret)
{
	const uint8_t *d = heap__at(p, s->at + (uint64_t)index * DESCRIPTOR_SIZE, DESCRIPTOR_SIZE);

	if (!d)
		return false;
	*ret = (struct page_range){
		.at = s->at + ((uint64_t)index << c->shift),
		.unused = get_le32(d + 4),
		.flags = d[0x18],
		.units = d[0x1f] <= SEGMENT_DESCRIPTORS - index ? d[0x1f] : 0,
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

	return (struct segment_context){
		.at = heap + l->contexts + i * SEGMENT_CONTEXT_SIZE,
		.size = (uint64_t)SEGMENT_DESCRIPTORS << shift,
		.shift = shift,
		.first = i ? 1 : 2,
	};
}
