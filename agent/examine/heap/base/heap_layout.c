/* SPDX-License-Identifier: Apache-2.0 */
/* Where the members lie (sources: heap.h), and what their values can be. */
#include "agent/examine/heap/base/heap_internal.h"

const struct heap_layout heap__wide = {
	.wide = true,
	.unit = 16,
	.header = 8,
	.segment_signature = 0x10,
	.segment_entry = 0x18,
	.segment_heap = 0x28,
	.pages = 0x38,
	.first = 0x40,
	.last = 0x48,
	.uncommitted_pages = 0x50,
	.holes = 0x60,
	.flags = 0x70,
	.encode_mask = 0x7c,
	.encoding = 0x88, /* the struct is at 80; these are the bytes that headers have */
	.descriptor_segment = 0x10,
	.descriptor_address = 0x20,
	.virtual_commit = 0x20,
	.virtual_reserve = 0x28,
	.virtual_chunk = 0x30,
	.virtual_data = 0x40,
	.user_context = 0x188,
	.segment_context = 0x38,
	.family = {
		{ 0xa0, 0xc8, 0xd8, 0x118, 0x128 },
		{ 0x98, 0xc0, 0xd0, 0x110, 0x120 },
	},
	.front = {
		{ { 0x178, 0x182, 0x188 } },
		{ { 0x198, 0x1a2, 0x238 }, { 0x178, 0x182, 0x218 }, { 0x170, 0x17a, 0x210 } },
	},
	.lfh = {
		{ .signature = 0x18, .first = 0x20, .sub_user_blocks = 8, .sub_depth = 0x10,
		  .sub_block_size = 0x18, .sub_block_count = 0x1c, .head = 0x40 },
		{ .signature = 0x14, .offsets = 0x18, .bitmap_size = 0x20, .bitmap_pointer = 0x28,
		  .bitmap = 0x30, .sub_user_blocks = 8, .sub_depth = 0x20, .sub_block_size = 0x24,
		  .sub_block_count = 0x28, .head = 0x18 },
	},
};

const struct heap_layout heap__narrow = {
	.unit = 8,
	.header = 0,
	.segment_signature = 0x8,
	.segment_entry = 0x10,
	.segment_heap = 0x18,
	.pages = 0x20,
	.first = 0x24,
	.last = 0x28,
	.uncommitted_pages = 0x2c,
	.holes = 0x38,
	.flags = 0x40,
	.encode_mask = 0x4c,
	.encoding = 0x50,
	.descriptor_segment = 0x8,
	.descriptor_address = 0x10,
	.virtual_commit = 0x10,
	.virtual_reserve = 0x14,
	.virtual_chunk = 0x18,
	.virtual_data = 0x20,
	.user_context = 0xdc,
	.segment_context = 0x24,
	.family = {
		{ 0x64, 0x78, 0x80, 0xa0, 0xa8 },
		{ 0x60, 0x74, 0x7c, 0x9c, 0xa4 },
	},
	.front = {
		{ { 0xd4, 0xda, 0 } },
		{ { 0xe4, 0xea, 0 }, { 0xd4, 0xda, 0 }, { 0xd0, 0xd6, 0 } },
	},
	.lfh = {
		{ .signature = 0xc, .first = 0x10, .sub_user_blocks = 4, .sub_depth = 8,
		  .sub_block_size = 0x10, .sub_block_count = 0x14, .head = 0x24 },
		{ .signature = 0xc, .offsets = 0x10, .bitmap_size = 0x14, .bitmap_pointer = 0x18,
		  .bitmap = 0x1c, .sub_user_blocks = 4, .sub_depth = 0x10, .sub_block_size = 0x14,
		  .sub_block_count = 0x18, .head = 0xc },
	},
};

bool heap__plausible(uint64_t va, bool wide, uint64_t alignment)
{
	return va >= ALLOCATION_GRANULARITY && va < (wide ? USER_LIMIT_WIDE : USER_LIMIT_NARROW) &&
	       va % alignment == 0;
}
