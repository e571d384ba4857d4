/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/smear/stand.h"

static const struct stand none = { .since = UINT64_MAX, .own_since = UINT64_MAX };

static bool copies_agree(const struct analysis *m, const struct mapping_run *p, enum pair pair,
			 enum copy x, enum copy y)
{
	const struct view *a = &p->view[x], *b = &p->view[y];

	return a->leaf && b->leaf && p->change[pair] == CHANGE_STABLE &&
	       leaves_same_way(&m->copy[x].leaves, a->table, &m->copy[y].leaves, b->table);
}

/*
 * Both passes have the entry, and the image's own reading, which lies between, has another one: it
 * changed and changed back. Where the image has no such entry at all, nothing was observed.
 */
static bool changed_between(const struct analysis *m, const struct mapping_run *p)
{
	return p->view[COPY_IMAGE].leaf &&
	       !copies_agree(m, p, PAIR_BEFORE_IMAGE, COPY_BEFORE, COPY_IMAGE);
}

/* An entry of a pass has its twin in the other pass, unless the image contradicts the two. */
static struct stand stand_of_passes(const struct analysis *m, const struct mapping_run *p)
{
	struct stand s = none;

	if (!copies_agree(m, p, PAIR_BEFORE_AFTER, COPY_BEFORE, COPY_AFTER) ||
	    changed_between(m, p))
		return none;
	s.since = p->view[COPY_BEFORE].table->since;
	s.until = p->view[COPY_AFTER].table->until;
	return s;
}

/*
 * An entry of the image: its newest reading, and before it as many readings as agree with it
 * without a break, and before them the pass before, unless something between the two said
 * otherwise. Behind the newest reading there is only the pass after.
 */
static struct stand stand_of_image(const struct analysis *m, const struct mapping_run *p)
{
	const struct view *v = &p->view[COPY_IMAGE];
	const struct leaf_table *t = v->table;
	const bool held = t->held && v->leaf->same;
	const bool broken = t->broken || v->leaf->same < t->n_readings;
	struct stand s = { .since = t->since, .until = t->until, .own_since = UINT64_MAX };

	if (held) {
		const size_t first = t->first_reading + t->n_readings - v->leaf->same;

		s.own_since = MAX(t->held_since,
				  times_known_by(&m->copy[COPY_IMAGE].leaves.readings[first]));
		s.own_until = t->until;
		s.since = s.own_since;
	}
	if (!broken && copies_agree(m, p, PAIR_BEFORE_IMAGE, COPY_BEFORE, COPY_IMAGE))
		s.since = p->view[COPY_BEFORE].table->since;
	if (copies_agree(m, p, PAIR_IMAGE_AFTER, COPY_IMAGE, COPY_AFTER))
		s.until = p->view[COPY_AFTER].table->until;
	return s;
}

struct stand stand_of(const struct analysis *m, const struct mapping_run *p, enum copy copy)
{
	return copy == COPY_IMAGE ? stand_of_image(m, p) : stand_of_passes(m, p);
}

/* A time of 0 is one that nobody knows. */
static bool is_between(const struct rsz_times *when, uint64_t since, uint64_t until)
{
	return since && when->start && when->start >= since && when->end <= until;
}

bool stand_has(const struct stand *s, const struct rsz_times *when)
{
	return is_between(when, s->since, s->until);
}

static uint64_t span_of_both(struct rsz_times a, const struct rsz_times *b)
{
	return MAX(a.end, b->end) - MIN(a.start, b->start);
}

uint64_t stand_window(const struct analysis *m, const struct view *v, enum copy copy,
		      const struct rsz_times *proto, const struct rsz_times *when)
{
	const struct leaf_table *t = v->table;
	struct rsz_times content = *when;
	uint64_t best;

	if (proto->end) {
		content.start = MIN(content.start, proto->start);
		content.end = MAX(content.end, proto->end);
	}
	best = span_of_both(content, &(struct rsz_times){ t->start, t->end });
	for (unsigned i = 1; copy == COPY_IMAGE && i <= v->leaf->same; i++)
		best = MIN(best, span_of_both(content,
					      &m->copy[copy].leaves.readings[t->first_reading +
									     t->n_readings - i]));
	return best;
}

static unsigned rank_of_time(const struct stand *s, const struct rsz_times *when)
{
	return is_between(when, s->own_since, s->own_until) ? 2 : stand_has(s, when);
}

struct content stand_choose(const struct analysis *m, const struct view *v, enum copy copy,
			    const struct stand *s, const struct capture *c,
			    const struct older_page *older, size_t n)
{
	const struct rsz_times no_proto = { 0 };
	struct content best = { .when = { c->start, c->end }, .readable = capture_is_readable(c) };
	unsigned best_rank = rank_of_time(s, &best.when);
	uint64_t best_window = stand_window(m, v, copy, &no_proto, &best.when);

	/* From the newest to the oldest: of equals the newest stays. */
	while (n-- > 0) {
		const struct rsz_times when = { older[n].start, older[n].end };
		const unsigned r = rank_of_time(s, &when);
		const uint64_t window = stand_window(m, v, copy, &no_proto, &when);

		if (best.readable && (r < best_rank || (r == best_rank && window >= best_window)))
			continue;
		best = (struct content){ when, true, &older[n] };
		best_rank = r;
		best_window = window;
	}
	return best;
}
