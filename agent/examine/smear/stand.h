/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long an entry is known to have stood, and which of a page's captures to take for it:
 * METHOD.md, section 5.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_SMEAR_STAND_H
#define RAMSEAL_AGENT_EXAMINE_SMEAR_STAND_H

#include "agent/examine/smear/mapping_run.h"

/*
 * From the first to the last of the neighbouring observations that agree with an entry, the way to
 * it included; monotonic ns. The span is empty if `since` is not below `until`.
 */
struct stand {
	uint64_t since; /* the first of them was over */
	uint64_t until; /* the last began */
	/* The same for its own copy alone: the readings of its tables in the memory. */
	uint64_t own_since;
	uint64_t own_until;
};

/* Of the entry that `copy` has; `m` has the leaves that the run points to. */
struct stand stand_of(const struct analysis *m, const struct mapping_run *p, enum copy copy);

/* One capture of a page: the newest, or an older one. */
struct content {
	struct rsz_times when;
	bool readable;
	const struct older_page *older; /* NULL: the newest */
};

/* True if the whole capture was made while the entry stood. */
bool stand_has(const struct stand *s, const struct rsz_times *when);

/*
 * The span from the first to the last moment at which entry, prototype (or zero times) and content
 * were read; where the entry was read more than once, by the nearest reading. ns.
 */
uint64_t stand_window(const struct analysis *m, const struct view *v, enum copy copy,
		      const struct rsz_times *proto, const struct rsz_times *when);

/*
 * Which capture of one page to take: the newest, `c`, or one of `n` older ones. First choice is one
 * made among the readings of its own tables, then one made while the entry stood, then the one with
 * the shortest window.
 */
struct content stand_choose(const struct analysis *m, const struct view *v, enum copy copy,
			    const struct stand *s, const struct capture *c,
			    const struct older_page *older, size_t n);

#endif
