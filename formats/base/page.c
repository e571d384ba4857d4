/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/page.h"

#include <string.h>

const char *page_state_name(uint32_t state)
{
	static const char *const names[PAGE_STATES] = {
		[PAGE_DATA] = "data",       [PAGE_ZERO] = "zero", [PAGE_UNREADABLE] = "unreadable",
		[PAGE_SKIPPED] = "skipped", [PAGE_HOLE] = "hole",
	};

	return state < PAGE_STATES ? names[state] : "unknown";
}

const char *skip_reason_name(uint32_t reason)
{
	static const char *const names[SKIP_REASONS] = {
		[SKIP_NOT_CAPTURED] = "not captured",
		[SKIP_NOT_MAPPED] = "not offered by the source",
		[SKIP_SOURCE_FAILED] = "the source had failed",
		[SKIP_INTERRUPTED] = "interrupted",
		[SKIP_BEYOND_INIT] = "beyond the initialised size",
	};

	return reason < SKIP_REASONS && names[reason] ? names[reason] : "unknown";
}

/*
 * Blocks of 64 bytes, OR-ed together, so that the compiler turns them into vector loads and a page
 * with data is left at its first block.
 */
bool bytes_are_zero(const void *p, size_t len)
{
	const uint8_t *at = p;

	for (const uint8_t *end = at + len; at < end; at += 64) {
		uint64_t w[8];
		uint64_t any = 0;

		memcpy(w, at, sizeof(w));
		for (size_t i = 0; i < ARRAY_SIZE(w); i++)
			any |= w[i];
		if (any)
			return false;
	}
	return true;
}
