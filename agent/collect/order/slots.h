/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots of page files and swap areas that page tables name, read right behind the tables: what
 * `--pagefile guided` adds to the guided order. The pieces go into the streams of the files,
 * through the pipeline of the memory; what was not read here is copied with the rest of its file.
 *
 * A slow disk must not hold up the memory. So a thread of its own reads, the feed waits for it only
 * so much (a fifth of the time), the newest is read first, and what is wanted beyond a bound is
 * dropped: it is no loss but of nearness. Reading on the caller's thread would be simpler, but a
 * disk that hangs would hang the memory then, too. Where time is virtual it is done so all the
 * same: nothing depends on threads there, and the same machine is the same container.
 *
 * One thread calls all of this, but for the reading. The files are the caller's, and theirs alone
 * to read between slots_create() and slots_end(). Memory: some 1.2 MiB, and three bits for each
 * page of the files; 2.2 MiB more to look into the swap cache (cache_lookups.h).
 */
#ifndef RAMSEAL_AGENT_COLLECT_ORDER_SLOTS_H
#define RAMSEAL_AGENT_COLLECT_ORDER_SLOTS_H

#include "agent/collect/capture/stream_pass.h"
#include "agent/shared/kernel/entry_reader.h"
#include "agent/shared/kernel/swap_cache.h"
#include "tsk-extract/extract.h"

struct slots;

struct slots_file {
	struct extract *source;       /* borrowed until slots_destroy() */
	uint32_t stream;              /* declared */
	struct stream_result *result; /* borrowed likewise */
	/* The same for what the swap cache holds of it; unused if nothing is looked up. */
	uint32_t cache_stream;
	struct stream_result *cache_result;
};

struct slots_counts {
	uint64_t read;      /* pages */
	uint64_t again;     /* of them: they had been read before, for somebody else */
	uint64_t failed;    /* could not even be tried */
	uint64_t dropped;   /* wanted, but left to the rest: too many at once */
	uint64_t waited_ns; /* that the memory waited for them */
	/* Of those that the swap cache was asked for: */
	uint64_t absent;    /* it did not have, so that the slot had been written */
	uint64_t held;      /* it had, so that this was captured */
	uint64_t busy;      /* it was reading back from the slot */
	uint64_t zeros;     /* was only noted to be zeros, so that these were captured */
	uint64_t untold;    /* could not be told */
	uint64_t lookup_ns; /* that looking took, of the memory's time */
};

/*
 * `entries` tells how entries are to be read; it is copied. `patient`: what is wanted is read at
 * once, however long that takes. ST_NOMEM, or ST_SYSTEM if there is no thread to be had.
 */
enum status slots_create(const struct entry_reader *entries, bool patient, struct slots **ret,
			 struct err *e);
/* NULL is fine. Waits for a read that goes on. */
void slots_destroy(struct slots *s);
/* Instead, if a lookup in the swap cache hangs and was abandoned: keeps what it may write to. */
void slots_leave(struct slots *s);

/*
 * Before anything is wanted: right before slots are read, the swap cache is asked for them, and
 * what it says goes into a stream beside the file's (formats/SPEC.md, kind 9). The cache becomes
 * the slots'. ST_NOMEM, and it has gone.
 */
enum status slots_use_cache(struct slots *s, struct swap_cache *cache, struct err *e);

/*
 * `number` (below PTE_FILES_MAX) is what entries call the file. False in *ret: there is one of that
 * number already, and this one stays the caller's. Before anything is wanted. ST_NOMEM.
 */
enum status slots_add_file(struct slots *s, uint32_t number, const struct slots_file *f, bool *ret,
			   struct err *e);

/*
 * How many slots the entries of a table of level 1 name that were not read yet. All of these may be
 * called with NULL: then there are none.
 */
size_t slots_count(struct slots *s, const uint8_t *table);
/*
 * Asks for them, and once more for those that were read before, where an entry came to name them
 * since: bit n of `changed` says so of entries 8n to 8n+7. Returns how many are to come: they are
 * due.
 */
size_t slots_want(struct slots *s, const uint8_t *table, uint64_t changed);
/* True while one that it names is due. What is dropped, or cannot be read, is not due any more. */
bool slots_due(struct slots *s, const uint8_t *table);

/*
 * A piece of what was read, for the pipeline; begins to read more. If there is none it waits,
 * within bounds. False: go on without.
 */
bool slots_next(struct slots *s, struct stream_piece *p);
/*
 * The same behind the memory: waits for what is being read, and gives up what is only wanted. From
 * false on the files are the caller's.
 */
bool slots_end(struct slots *s, struct stream_piece *p);

/* Was this page (of 4 KiB) of file `number` read here? */
bool slots_has(const struct slots *s, uint32_t number, uint64_t page);
struct slots_counts slots_counts(const struct slots *s);

#endif
