/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/receive/seats.h"

#include <stdlib.h>
#include <string.h>

#include "agent/shared/program/clock.h"
#include "agent/shared/program/timed_cond.h"

/* A session that is told to go is between two frames, or in the middle of a sync. */
#define EVICTION_S 15

enum status seats_init(struct seats *s, pthread_mutex_t *lock, unsigned max, unsigned quiet_s,
		       struct err *e)
{
	*s = (struct seats){ .max = max, .quiet_ns = quiet_s * NS_PER_SECOND, .lock = lock };
	s->clock = timed_cond_init(&s->released);
	s->at = calloc(max, sizeof(struct upload *));
	return s->at ? ST_OK : err_nomem(e);
}

void seats_deinit(struct seats *s)
{
	free(s->at);
	pthread_cond_destroy(&s->released);
}

void seats_give(struct seats *s, struct upload *u, atomic_bool *owner)
{
	if (!u->owner)
		s->at[s->count++] = u;
	u->owner = owner;
	u->heard_ns = clock__mono_ns();
}

void seats_release(struct seats *s, struct upload *u)
{
	unsigned i = 0;

	while (s->at[i] != u)
		i++;
	s->at[i] = s->at[--s->count];
	u->owner = NULL;
	u->left_ns = clock__mono_ns();
	pthread_cond_broadcast(&s->released);
}

static bool has_free_seat(const struct seats *s)
{
	return s->count < s->max;
}

static enum status check_free_seat(const struct seats *s, struct frame_refused *why)
{
	return has_free_seat(s) ? ST_OK
				: frame_refuse(why, REFUSED_BUSY,
					       "it is already serving --max-senders senders");
}

static unsigned count_of_key(const struct seats *s, const char *pin)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->count; i++)
		n += !strcmp(s->at[i]->peer, pin);
	return n;
}

static bool is_quiet(const struct seats *s, const struct upload *u, uint64_t now)
{
	return now - u->heard_ns >= s->quiet_ns;
}

/* NULL: everyone stays. If several could go, the one that has been silent longest does. */
static struct upload *least_worthy(const struct seats *s, const char *pin)
{
	const unsigned mine = count_of_key(s, pin);
	const uint64_t now = clock__mono_ns();
	struct upload *ret = NULL;

	for (unsigned i = 0; i < s->count; i++) {
		struct upload *u = s->at[i];

		if (atomic_load(u->owner) ||
		    (!is_quiet(s, u, now) && count_of_key(s, u->peer) <= mine + 1))
			continue;
		if (!ret || u->heard_ns < ret->heard_ns)
			ret = u;
	}
	return ret;
}

enum status seats_make_room(struct seats *s, const char *pin, struct frame_refused *why)
{
	const struct timespec until = timed_cond_until(s->clock, EVICTION_S * NS_PER_SECOND);
	struct upload *leaves = has_free_seat(s) ? NULL : least_worthy(s, pin);
	int late = 0;

	if (leaves)
		atomic_store(leaves->owner, true);
	while (leaves && !has_free_seat(s) && !late)
		late = pthread_cond_timedwait(&s->released, s->lock, &until);
	return check_free_seat(s, why);
}

enum status seats_take_over(struct seats *s, struct upload *u, struct frame_refused *why)
{
	const struct timespec until = timed_cond_until(s->clock, EVICTION_S * NS_PER_SECOND);
	int late = 0;

	u->waited_for++;
	while (u->owner && !late) {
		atomic_store(u->owner, true);
		late = pthread_cond_timedwait(&s->released, s->lock, &until);
	}
	u->waited_for--;
	if (u->owner)
		return frame_refuse(why, REFUSED_BUSY, "another connection is sending this upload");
	/* Somebody else may have been quicker. */
	return check_free_seat(s, why);
}
