/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/virtual/memory_view.h"

#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/page.h"

/* The part of [va, va + size) in its first page; NULL: it can't be had. */
static const uint8_t *first_part(const struct memory_view *m, uint64_t va, size_t size,
				 size_t *ret_part)
{
	const size_t within = va % PAGE_SIZE;
	const uint8_t *page = m->page(m->context, va - within);

	*ret_part = MIN(size, PAGE_SIZE - within);
	return page ? page + within : NULL;
}

/* Nothing is written before all of it is known to be there: a caller's value is never half new. */
static bool all_there(const struct memory_view *m, uint64_t va, size_t size)
{
	for (size_t part; size; va += part, size -= part)
		if (!first_part(m, va, size, &part))
			return false;
	return true;
}

bool view_read(const struct memory_view *m, uint64_t va, void *to, size_t size)
{
	uint8_t *at = to;
	size_t part;
	const uint8_t *from;

	if (!size)
		return true;
	if (va + (size - 1) < va)
		return false;
	if (va % PAGE_SIZE + size > PAGE_SIZE && !all_there(m, va, size))
		return false;
	for (; size; va += part, at += part, size -= part) {
		from = first_part(m, va, size, &part);
		if (!from)
			return false;
		memcpy(at, from, part);
	}
	return true;
}

bool view_u16(const struct memory_view *m, uint64_t va, uint16_t *ret)
{
	uint8_t raw[2];

	if (!view_read(m, va, raw, sizeof(raw)))
		return false;
	*ret = get_le16(raw);
	return true;
}

bool view_u32(const struct memory_view *m, uint64_t va, uint32_t *ret)
{
	uint8_t raw[4];

	if (!view_read(m, va, raw, sizeof(raw)))
		return false;
	*ret = get_le32(raw);
	return true;
}

bool view_u64(const struct memory_view *m, uint64_t va, uint64_t *ret)
{
	uint8_t raw[8];

	if (!view_read(m, va, raw, sizeof(raw)))
		return false;
	*ret = get_le64(raw);
	return true;
}

bool view_pointer(const struct memory_view *m, uint64_t va, bool wide, uint64_t *ret)
{
	uint32_t narrow;

	if (wide)
		return view_u64(m, va, ret);
	if (!view_u32(m, va, &narrow))
		return false;
	*ret = narrow;
	return true;
}
