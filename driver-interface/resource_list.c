/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/resource_list.h"

#include "formats/base/bytes.h"

/* CmResourceType of a descriptor (wdm.h). */
#define TYPE_MEMORY          3
#define TYPE_DEVICE_SPECIFIC 5
#define TYPE_MEMORY_LARGE    7

/* Flags of a large one: its 32-bit length counts units of 2^8, 2^16 or 2^32 bytes. */
#define MEMORY_LARGE_40      0x0200
#define MEMORY_LARGE_48      0x0400
#define MEMORY_LARGE_64      0x0800

/* Behind the type, the share disposition and the flags: what the union holds on x64, pack(4). */
#define UNION_SIZE           16

/* Bytes of a memory descriptor; 0 for what is none. */
static uint64_t memory_length(unsigned type, unsigned flags, uint32_t length)
{
	if (type == TYPE_MEMORY)
		return length;
	if (type != TYPE_MEMORY_LARGE)
		return 0;
	switch (flags & (MEMORY_LARGE_40 | MEMORY_LARGE_48 | MEMORY_LARGE_64)) {
	case MEMORY_LARGE_40:
		return (uint64_t)length << 8;
	case MEMORY_LARGE_48:
		return (uint64_t)length << 16;
	case MEMORY_LARGE_64:
		return (uint64_t)length << 32;
	default:
		return 0;
	}
}

static enum status parse_descriptor(struct cursor *c, struct range_list *ret, struct err *e)
{
	const unsigned type = cur_u8(c);
	const unsigned share = cur_u8(c);
	const unsigned flags = cur_le16(c);
	const uint8_t *u = cur_bytes(c, UNION_SIZE);
	uint64_t first, length;

	(void)share;
	if (!u)
		return ST_OK;
	/* Its data follows the descriptor. */
	if (type == TYPE_DEVICE_SPECIFIC)
		cur_bytes(c, get_le32(u));
	first = get_le64(u);
	length = memory_length(type, flags, get_le32(u + 8));
	if (!length || length - 1 > UINT64_MAX - first)
		return ST_OK;
	return range_list_add(ret, first, first + (length - 1), e);
}

/* CM_FULL_RESOURCE_DESCRIPTOR: interface type, bus number, then the partial list. */
static enum status parse_full(struct cursor *c, struct range_list *ret, struct err *e)
{
	enum status st = ST_OK;
	uint32_t count;

	cur_bytes(c, 4 + 4 + 2 + 2);
	count = cur_le32(c);
	for (uint32_t i = 0; i < count && !c->bad && !st; i++)
		st = parse_descriptor(c, ret, e);
	return st;
}

enum status resource_list_parse(const void *p, size_t len, struct range_list *ret, struct err *e)
{
	struct cursor c = cursor_over(p, len);
	const uint32_t count = cur_le32(&c);
	const size_t before = ret->count;
	enum status st = ST_OK;

	for (uint32_t i = 0; i < count && !c.bad && !st; i++)
		st = parse_full(&c, ret, e);
	if (st)
		return st;
	if (c.bad)
		return err_set(e, ST_CORRUPT, "the list of resources is cut short");
	if (ret->count == before)
		return err_set(e, ST_NO_SOURCE, "the list of resources names no memory");
	return ST_OK;
}
