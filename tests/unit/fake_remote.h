/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A remote in memory that fails as it is told, and a time that passes only in pauses.
 */
#ifndef RAMSEAL_TESTS_UNIT_FAKE_REMOTE_H
#define RAMSEAL_TESTS_UNIT_FAKE_REMOTE_H

#include <pthread.h>

#include "agent/collect/stores/uploader.h"

/* What the next put does. */
struct fake_answer {
	enum {
		FAKE_TAKES,  /* all of it */
		FAKE_BREAKS, /* behind `at` bytes, which it has */
		FAKE_BUSY,   /* as a 503 does; `wait_ms` */
		FAKE_REFUSES,
		FAKE_LIES, /* acknowledges a byte too much */
	} is;
	size_t at;
	unsigned wait_ms;
	bool forgets; /* it has lost what it had not acknowledged */
};

struct fake {
	struct remote remote;
	struct remote_ops ops; /* what the kind at hand has */
	uint8_t *kept;         /* what it has */
	uint64_t received, acknowledged;
	uint64_t take_most; /* of a put, where it can be less than that; 0: all */

	/* NULL: takes all. Called in the uploader's thread. */
	struct fake_answer (*answer)(struct fake *f, const struct remote_piece *p);
	unsigned begin_failures, finish_failures, abandon_failures; /* to come */
	bool is_full; /* and says so when it fails to begin */
	bool begin_refuses, finish_refuses;
	bool where_is_behind;                /* where() knows less than it has acknowledged */
	uint64_t put_takes_ns, end_takes_ns; /* finish() and whole() */
	unsigned first_checkpoint_ms;        /* takes so long, really */
	unsigned whole_failures;             /* to come */
	bool whole_answers; /* they are answers, and not an end of the connection */
	uint64_t has;       /* resume() finds */

	unsigned puts, checkpoints, abandons, finishes, wheres;
	uint64_t finished; /* bytes, of the last finish */
	bool sealed, finished_well, last_seen;
	uint64_t last_end; /* of the piece that was called the last */

	/* The time, and the pauses that were made. */
	pthread_mutex_t lock;
	uint64_t now_ns, pauses, shortest_pause, longest_pause;
	uint32_t seed;
	struct uploader_time time;
};

/* So much can be sent to it. */
#define FAKE_ROOM ((size_t)1 << 20)

/*
 * As a store of numbered pieces: no where(), no settle(). With `stream`: bytes one behind another,
 * of which it acknowledges what settle() asks for, or each fourth piece.
 */
struct fake *fake_create(bool stream, size_t piece);
/* After the uploader is gone: a fake outlives its destroy(). */
void fake_free(struct fake *f);

uint32_t fake_draw(struct fake *f); /* of its seed */

#endif
