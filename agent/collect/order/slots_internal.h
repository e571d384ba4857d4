/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by slots.c, which the feed calls, and slots_reader.c. */
#ifndef RAMSEAL_AGENT_COLLECT_ORDER_SLOTS_INTERNAL_H
#define RAMSEAL_AGENT_COLLECT_ORDER_SLOTS_INTERNAL_H

#include <pthread.h>

#include "agent/collect/order/cache_lookups.h"
#include "agent/collect/order/read_cost.h"
#include "agent/collect/order/slots.h"

/*
 * Unread slots between two wanted ones are read along and kept. Others are read along and dropped
 * if that takes no longer than another request (read_cost.h) or the cost is not known.
 */
#define SLOTS_GAP_PAGES   8
/*
 * The most slots wanted at once: several groups' worth, 32 MiB. Later ones would no longer be close
 * in time.
 */
#define SLOTS_WANTS_MAX   8192
/* Pages read at once: one piece. */
#define SLOTS_STAGE_PAGES CACHE_LOOKUPS_MAX

struct slots_area {
	struct slots_file file;
	uint64_t pages;  /* whole pages; 0: there is no such file */
	uint64_t *read;  /* one bit each: read, or being read */
	uint64_t *again; /* likewise: read before, and again */
	uint64_t *due;   /* likewise: wanted, or being read */
};

struct slot_want {
	uint32_t round; /* requests made together; the newest are closest in time */
	uint32_t file;
	uint64_t page;
};

/* Who owns the stage. */
enum stage_state {
	STAGE_EMPTY,   /* the feed's */
	STAGE_READING, /* the reader's */
	STAGE_FULL,    /* the feed's, to be emitted */
};

struct slots {
	struct entry_reader entries;
	bool patient;
	struct slots_area files[PTE_FILES_MAX];
	struct slot_want wants[SLOTS_WANTS_MAX];
	size_t n_wants;
	bool sorted;
	uint32_t round;
	struct slots_counts counts;
	uint64_t begun; /* monotonic ns of the first request; 0: none yet */

	/* One read from one file; the extents are set before it. */
	struct rsz_extent extents[SLOTS_STAGE_PAGES];
	size_t n_extents;
	struct page_status pages[SLOTS_STAGE_PAGES];
	void *memory;
	uint8_t *data; /* page-aligned, as unbuffered devices need it */
	uint32_t file;
	struct read_cost cost;         /* of the files; the reader's */
	struct cache_lookups *lookups; /* in the swap cache, by the feed's thread; NULL: none */

	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t asked;
	pthread_cond_t done;
	clockid_t clock; /* that `done` waits by */
	enum stage_state state;
	bool quit;
};

static inline uint64_t slots__end_of(const struct rsz_extent *x)
{
	return x->address + x->length;
}

/* Initialises the lock and conditions. Call slots__deinit_reader() after slots__end_reader(). */
void slots__init_reader(struct slots *s);
void slots__deinit_reader(struct slots *s);
/* ST_SYSTEM: no thread can be started. */
enum status slots__start_reader(struct slots *s, struct err *e);
/* Waits for a running read. Does nothing without a thread. */
void slots__end_reader(struct slots *s);

/* Reads the stage's extents on the caller's thread. */
void slots__read_stage(struct slots *s);

enum stage_state slots__state(struct slots *s);
void slots__set_state(struct slots *s, enum stage_state state);

/*
 * Waits at most `most` ns while the thread reads; UINT64_MAX: as long as it takes. Returns how long
 * it waited.
 */
uint64_t slots__wait(struct slots *s, uint64_t most);

#endif
