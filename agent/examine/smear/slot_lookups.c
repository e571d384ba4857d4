/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/smear/slot_lookups.h"

/* One look, the newest or an older one. */
struct dated_lookup {
	uint32_t state; /* enum page_state */
	struct content content;
};

static bool is_held(uint32_t state)
{
	return state == PAGE_DATA || state == PAGE_ZERO;
}

/* From the newest to the oldest; `i` counts from 0. False behind the last. */
static bool lookup_number(const struct captures *lookups, uint64_t at, size_t i,
			  struct dated_lookup *ret)
{
	struct capture c;
	size_t n;
	const struct older_page *older = captures_older(lookups, at, &n);

	if (i > n || !captures_from(lookups, at, at | (PAGE_SIZE - 1), &c))
		return false;
	if (!i) {
		*ret = (struct dated_lookup){ c.state, { { c.start, c.end }, true, NULL } };
		return true;
	}
	older += n - i;
	*ret = (struct dated_lookup){ older->state, { { older->start, older->end }, true, older } };
	return true;
}

enum slot_lookup slot_lookups_before(const struct captures *lookups, uint64_t at,
				     const struct stand *s, const struct rsz_times *read)
{
	enum slot_lookup ret = SLOT_NOT_LOOKED_UP;
	struct dated_lookup lookup;

	for (size_t i = 0; lookup_number(lookups, at, i, &lookup); i++) {
		if (!stand_has(s, &lookup.content.when) || lookup.content.when.end > read->start)
			continue;
		/* Once written, it stays so as long as the entry stands. */
		if (lookup.state == PAGE_HOLE)
			return SLOT_WRITTEN;
		ret = SLOT_STILL_CACHED;
	}
	return ret;
}

bool slot_lookups_content(const struct captures *lookups, uint64_t at, const struct stand *s,
			  struct content *ret)
{
	struct dated_lookup lookup;

	for (size_t i = 0; lookup_number(lookups, at, i, &lookup); i++) {
		if (!is_held(lookup.state) || !stand_has(s, &lookup.content.when))
			continue;
		*ret = lookup.content;
		return true;
	}
	return false;
}
