/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/process/unicode_string.h"

#include <stdlib.h>

#include "formats/base/bytes.h"
#include "formats/base/defs.h"
#include "tsk-extract/registry.h"

char *unicode_string_read(const struct memory_view *m, uint64_t va, bool wide)
{
	_cleanup_free_ uint8_t *units = NULL;
	uint16_t length, room;
	uint64_t buffer;

	if (!view_u16(m, va, &length) || !view_u16(m, va + 2, &room) ||
	    !view_pointer(m, va + (wide ? 8 : 4), wide, &buffer) || length % 2 || length > room)
		return NULL;
	units = malloc(length ? length : 1);
	if (!units || !view_read(m, buffer, units, length))
		return NULL;
	for (size_t i = 0; i < length; i += 2)
		if (!get_le16(units + i))
			return registry_utf8(units, i / 2);
	return registry_utf8(units, length / 2);
}
