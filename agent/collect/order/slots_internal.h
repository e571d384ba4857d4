/* SPDX-License-Identifier: Apache-2.0 */
/* What slots.c, which the feed calls, shares with slots_reader.c. */
#ifndef RAMSEAL_AGENT_COLLECT_ORDER_SLOTS_INTERNAL_H
#define RAMSEAL_AGENT_COLLECT_ORDER_SLOTS_INTERNAL_H

#include <pthread.h>

#include "agent/collect/order/cache_lookups.h"
#include "agent/collect/order/read_cost.h"
#include "agent/collect/order/slots.h"

/*
 * What lies between two wanted ones and was not read yet is kept; else it is dropped, and read
 * along only where that takes no longer than another request (read_cost.h), or nobody knows.
 */
#define SLOTS_GAP_PAGES   8
/* Wanted at once at most: some groups' worth, 32 MiB. Later they would not be near any more. */
#define SLOTS_WANTS_MAX   8192
/* Pages that are read in one go: a piece. */
#define SLOTS_STAGE_PAGES CACHE_LOOKUPS_MAX

struct slots_area {
	struct slots_file file;
	uint64_t pages;  /* whole ones; 0: there is no such file */
	uint64_t *read;  /* one bit each: read, or being read */
	uint64_t *again; /* likewise, and it had been read before */
	uint64_t *due;   /* likewise: wanted, or being read */
};

struct slot_want {
	uint32_t round; /* what was asked for together; the newest is the nearest */
	uint32_t file;
	uint64_t page;
};

/* Whose the stage is. */
enum stage_state {
	STAGE_EMPTY,   /* the feed's */
	STAGE_READING, /* the reader's */
	STAGE_FULL,    /* the feed's, to go out */
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

	/* What is read in one go, of one file; the extents say what, before it is. */
	struct rsz_extent extents[SLOTS_STAGE_PAGES];
	size_t n_extents;
	struct page_status pages[SLOTS_STAGE_PAGES];
	void *memory;
	uint8_t *data; /* in it, on a page, as unbuffered devices want it */
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

/* What the thread and the feed wait by. slots__deinit_reader(), behind slots__end_reader(). */
void slots__init_reader(struct slots *s);
void slots__deinit_reader(struct slots *s);
/* ST_SYSTEM: there is no thread to be had. */
enum status slots__start_reader(struct slots *s, struct err *e);
/* Waits for a read that goes on. Nothing if there is no thread. */
void slots__end_reader(struct slots *s);

/* Reads what the stage's extents say, on the caller's thread. */
void slots__read_stage(struct slots *s);

enum stage_state slots__state(struct slots *s);
void slots__set_state(struct slots *s, enum stage_state state);

/*
 * For at most `most` ns while the thread reads; UINT64_MAX: for as long as it takes. Returns how
 * long it was.
 */
uint64_t slots__wait(struct slots *s, uint64_t most);

#endif
