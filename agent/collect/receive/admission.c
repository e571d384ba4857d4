/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/receive/admission.h"

#include <string.h>

#include "agent/shared/program/clock.h"
#include "agent/shared/program/random.h"

/* More than there can be guests: silent, shaking hands, leaving and at most 256 senders. */
#define SOURCES           2048

/* Each handshake, and the sender's way back and forth, is faster, unless something is wrong. */
#define YOUNG_NS          NS_PER_SECOND

#define KNOWN_NS          (3600 * NS_PER_SECOND)

/* As OpenSSH's: they add up, and from the least on they count. */
#define PENALTY_LEAST_S   15
#define PENALTY_NOISE_S   1
#define PENALTY_KEY_S     5
#define PENALTY_DAWDLED_S 10

struct source {
	uint8_t address[SOCKET_SOURCE_SIZE];
	bool used;
	bool always_known;
	unsigned guests[GUEST_LEAVING + 1]; /* of each stage */
	unsigned n;                         /* all of them */
	uint64_t known_until_ns;
	uint64_t penalty_until_ns; /* what has added up is over then */
	bool penalised;            /* it was so much that it counts until then */
};

struct admission {
	struct admission_options options;
	struct guest *guests;
	unsigned count[GUEST_LEAVING + 1]; /* of each stage */
	struct source sources[SOURCES];
};

enum status admission_create(const struct admission_options *o, struct admission **ret,
			     struct err *e)
{
	struct admission *a = calloc(1, sizeof(*a));

	if (!a)
		return err_nomem(e);
	a->options = *o;
	*ret = a;
	return ST_OK;
}

void admission_destroy(struct admission *a)
{
	free(a);
}

static bool is_known(const struct source *s, uint64_t now)
{
	return s->always_known || now < s->known_until_ns;
}

static bool is_penalised(const struct source *s, uint64_t now)
{
	return s->penalised && now < s->penalty_until_ns && !is_known(s, now);
}

/*
 * Sources
 */

static bool is_in_known_range(const struct admission *a,
			      const uint8_t address[static SOCKET_SOURCE_SIZE])
{
	for (size_t i = 0; i < a->options.n_known; i++)
		if (socket_range_has(&a->options.known[i], address))
			return true;
	return false;
}

/* What is remembered of it is over first. */
static uint64_t remembered_until(const struct source *s)
{
	return s->used ? MAX(s->known_until_ns, s->penalty_until_ns) : 0;
}

/* There is always one without guests. */
static struct source *source_of_address(struct admission *a, const char *address)
{
	uint8_t key[SOCKET_SOURCE_SIZE];
	struct source *spare = NULL;

	socket_source(address, key);
	for (size_t i = 0; i < SOURCES; i++) {
		struct source *s = &a->sources[i];

		if (s->used && !memcmp(s->address, key, sizeof(key)))
			return s;
		if (!s->n && (!spare || remembered_until(s) < remembered_until(spare)))
			spare = s;
	}
	*spare = (struct source){ .used = true, .always_known = is_in_known_range(a, key) };
	memcpy(spare->address, key, sizeof(key));
	return spare;
}

static void punish(const struct admission *a, struct source *s, unsigned seconds, uint64_t now)
{
	const uint64_t most = now + a->options.penalty_s * NS_PER_SECOND;

	if (now >= s->penalty_until_ns) {
		s->penalty_until_ns = now;
		s->penalised = false;
	}
	s->penalty_until_ns = MIN(s->penalty_until_ns + seconds * NS_PER_SECOND, most);
	s->penalised |= s->penalty_until_ns - now >= PENALTY_LEAST_S * NS_PER_SECOND;
}

static unsigned seconds_of(enum offence what)
{
	switch (what) {
	case OFFENCE_NONE:
		break;
	case OFFENCE_NOISE:
		return PENALTY_NOISE_S;
	case OFFENCE_KEY:
		return PENALTY_KEY_S;
	case OFFENCE_DAWDLED:
		return PENALTY_DAWDLED_S;
	}
	return 0;
}

/*
 * Guests
 */

static void count_guest(struct admission *a, const struct guest *g, int by)
{
	a->count[g->stage] += (unsigned)by;
	g->source->guests[g->stage] += (unsigned)by;
}

static void move(struct admission *a, struct guest *g, enum guest_stage to, uint64_t now)
{
	count_guest(a, g, -1);
	g->stage = to;
	g->since_ns = now;
	count_guest(a, g, 1);
}

struct search {
	enum guest_stage stage;
	const struct source *only; /* NULL: of all sources */
	bool spare_known;
	uint64_t before_ns; /* those that have the stage since then */
	uint64_t now_ns;
};

/* A few of each: who has a key that may send, or its address, is not to lock others out. */
static bool is_spared(const struct source *s, uint64_t now)
{
	return is_known(s, now) && s->guests[GUEST_STARTING] <= ADMISSION_KEPT;
}

static bool fits_search(const struct search *q, const struct guest *g)
{
	return g->stage == q->stage && (!q->only || g->source == q->only) &&
	       (g->since_ns <= q->before_ns || is_penalised(g->source, q->now_ns)) &&
	       !(q->spare_known && is_spared(g->source, q->now_ns));
}

/* Does `a` make way before `b`? */
static bool goes_first(const struct search *q, const struct guest *a, const struct guest *b)
{
	const bool penalty = is_penalised(a->source, q->now_ns);
	const unsigned n = a->source->guests[q->stage], other = b->source->guests[q->stage];

	if (penalty != is_penalised(b->source, q->now_ns))
		return penalty;
	if (n != other)
		return n > other;
	return a->since_ns < b->since_ns;
}

static struct guest *choose_guest(const struct admission *a, const struct search *q)
{
	struct guest *ret = NULL;

	for (struct guest *g = a->guests; g; g = g->next)
		if (fits_search(q, g) && (!ret || goes_first(q, g, ret)))
			ret = g;
	return ret;
}

struct guest *admission_come(struct admission *a, struct guest *g, const char *address,
			     uint64_t now_ns)
{
	struct guest *leaves = NULL;

	if (a->count[GUEST_SILENT] >= ADMISSION_SILENT_MOST)
		leaves = choose_guest(a, &(struct search){ .stage = GUEST_SILENT,
							   .before_ns = now_ns,
							   .now_ns = now_ns });
	if (leaves)
		move(a, leaves, GUEST_LEAVING, now_ns);
	*g = (struct guest){ .next = a->guests,
			     .source = source_of_address(a, address),
			     .stage = GUEST_SILENT,
			     .since_ns = now_ns };
	a->guests = g;
	g->source->n++;
	count_guest(a, g, 1);
	return leaves;
}

static uint32_t draw(const struct admission *a)
{
	uint32_t ret;

	if (a->options.draw)
		return a->options.draw(a->options.arg);
	return random_bytes(&ret, sizeof(ret), NULL) ? (uint32_t)clock__mono_ns() : ret;
}

/* As should_drop_connection() of OpenSSH's sshd.c. */
static bool must_drop_early(const struct admission *a)
{
	const struct admission_options *o = &a->options;
	const unsigned n = a->count[GUEST_STARTING];

	if (n < o->start || n >= o->full)
		return n >= o->full;
	return draw(a) % 100 < o->rate + (100 - o->rate) * (n - o->start) / (o->full - o->start);
}

/* One more than there may be. False: the newcomer has no place. */
static bool make_room_for_guest(const struct admission *a, const struct guest *g, uint64_t now,
				struct guest **ret_leaves)
{
	const bool known = is_known(g->source, now);
	const unsigned n = a->count[GUEST_STARTING], full = a->options.full;
	const struct search others = { .stage = GUEST_STARTING,
				       .spare_known = true,
				       .before_ns = n < full ? now - MIN(now, YOUNG_NS) : now,
				       .now_ns = now };
	struct search any = others;

	*ret_leaves = choose_guest(a, &others);
	if (*ret_leaves || n < full || (known && n < full + ADMISSION_KEPT))
		return true;
	any.spare_known = false;
	if (known)
		*ret_leaves = choose_guest(a, &any);
	return *ret_leaves != NULL;
}

bool admission_start(struct admission *a, struct guest *g, uint64_t now_ns,
		     struct guest **ret_leaves)
{
	struct source *s = g->source;
	const unsigned most = a->options.per_source;
	bool ret = true;

	*ret_leaves = NULL;
	if (most && s->guests[GUEST_STARTING] >= most)
		*ret_leaves = choose_guest(a, &(struct search){ .stage = GUEST_STARTING,
								.only = s,
								.before_ns = now_ns,
								.now_ns = now_ns });
	else if (must_drop_early(a))
		ret = make_room_for_guest(a, g, now_ns, ret_leaves);
	if (*ret_leaves)
		move(a, *ret_leaves, GUEST_LEAVING, now_ns);
	if (ret)
		move(a, g, GUEST_STARTING, now_ns);
	return ret;
}

void admission_welcome(struct admission *a, struct guest *g, uint64_t now_ns)
{
	(void)a;
	g->source->known_until_ns = now_ns + KNOWN_NS;
}

void admission_expect(struct admission *a, const char *address, uint64_t now_ns)
{
	source_of_address(a, address)->known_until_ns = now_ns + KNOWN_NS;
}

void admission_seat(struct admission *a, struct guest *g, uint64_t now_ns)
{
	move(a, g, GUEST_SEATED, now_ns);
}

void admission_unseat(struct admission *a, struct guest *g, uint64_t now_ns)
{
	move(a, g, GUEST_STARTING, now_ns);
}

void admission_go(struct admission *a, struct guest *g, enum offence what, uint64_t now_ns)
{
	struct guest **at = &a->guests;

	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	count_guest(a, g, -1);
	g->source->n--;
	if (seconds_of(what) && a->options.penalty_s)
		punish(a, g->source, seconds_of(what), now_ns);
}

struct guest *admission_oldest_silent(const struct admission *a)
{
	struct guest *ret = NULL;

	for (struct guest *g = a->guests; g; g = g->next)
		if (g->stage == GUEST_SILENT && (!ret || g->since_ns < ret->since_ns))
			ret = g;
	return ret;
}
