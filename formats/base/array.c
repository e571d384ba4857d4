/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/array.h"

#include <stdint.h>
#include <stdlib.h>

void *array_grow(void *at, size_t *room, size_t size)
{
	const size_t more = *room ? 2 * *room : 16;
	void *moved;

	if (*room > SIZE_MAX / 2 || more > SIZE_MAX / size)
		return NULL;
	moved = realloc(at, more * size);
	if (moved)
		*room = more;
	return moved;
}
