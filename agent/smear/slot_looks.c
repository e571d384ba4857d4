/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/smear/slot_looks.h"

/* One look, the newest or an older one. */
struct look_at {
	uint32_t state; /* enum page_state */
	struct content content;
};

static bool is_held(uint32_t state)
{
	return state == PAGE_DATA || state == PAGE_ZERO;
}

/* From the newest to the oldest; `i` counts from 0. False behind the last. */
static bool look_number(const struct captures *looks, uint64_t at, size_t i, struct look_at *ret)
{
	const struct capture *c = captures_from(looks, at);
	size_t n;
	const struct older_page *older = captures_older(looks, at, &n);

	if (!c || c->range.first > at || i > n)
		return false;
	if (!i) {
		*ret = (struct look_at){ c->state, { { c->start, c->end }, true, NULL } };
		return true;
	}
	older += n - i;
	*ret = (struct look_at){ older->state, { { older->start, older->end }, true, older } };
	return true;
}

enum slot_look slot_looks_before(const struct captures *looks, uint64_t at, const struct stand *s,
				 const struct rsz_times *read)
{
	enum slot_look ret = SLOT_NOT_LOOKED;
	struct look_at look;

	for (size_t i = 0; look_number(looks, at, i, &look); i++) {
		if (!stand_has(s, &look.content.when) || look.content.when.end > read->start)
			continue;
		/* Once written, it stays so as long as the entry stands. */
		if (look.state == PAGE_HOLE)
			return SLOT_WRITTEN;
		ret = SLOT_STILL_CACHED;
	}
	return ret;
}

bool slot_looks_content(const struct captures *looks, uint64_t at, const struct stand *s,
			struct content *ret)
{
	struct look_at look;

	for (size_t i = 0; look_number(looks, at, i, &look); i++) {
		if (!is_held(look.state) || !stand_has(s, &look.content.when))
			continue;
		*ret = look.content;
		return true;
	}
	return false;
}
