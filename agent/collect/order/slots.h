/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads slots of page files and swap areas right after the page tables that refer to them:
 * `--pagefile guided` in the guided order. The pieces go through the memory's pipeline into the
 * streams of the files; what is not read here is copied with the rest of its file.
 *
 * A slow disk must not delay the memory. So a separate thread reads, the feed waits for it only a
 * fifth of the time, the newest request is read first, and requests beyond a bound are dropped,
 * which only costs closeness in time. Reading on the caller's thread would be simpler, but a disk
 * that hangs would then hang the memory too. In virtual time it is done anyway: nothing depends on
 * threads there, and the same machine gives the same container.
 *
 * One thread calls all of this. The files are the caller's, but only the slots read them between
 * slots_create() and slots_end(). Memory: about 1.2 MiB and three bits for each page of the files;
 * 2.2 MiB more for the swap cache (cache_lookups.h).
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
	/* The same for its pages in the swap cache; unused without lookups. */
	uint32_t cache_stream;
	struct stream_result *cache_result;
};

struct slots_counts {
	uint64_t read;      /* pages */
	uint64_t again;     /* of those, pages read before for another entry */
	uint64_t failed;    /* could not even be tried */
	uint64_t dropped;   /* dropped because too many were wanted at once */
	uint64_t waited_ns; /* time that the memory waited for them */
	/* Results of lookups in the swap cache: */
	uint64_t absent;    /* not there, so the slot had been written */
	uint64_t held;      /* there, and captured */
	uint64_t busy;      /* being read back from the slot */
	uint64_t zeros;     /* only noted to be zeros, which were captured */
	uint64_t untold;    /* could not be told */
	uint64_t lookup_ns; /* time that lookups took from the memory */
};

/*
 * `entries` says how to read entries; it is copied. `patient`: slots are read at once, however long
 * that takes. ST_NOMEM, or ST_SYSTEM if no thread can be started.
 */
enum status slots_create(const struct entry_reader *entries, bool patient, struct slots **ret,
			 struct err *e);
/* NULL is fine. Waits for a running read. */
void slots_destroy(struct slots *s);
/* Instead, if a lookup in the swap cache hangs and was abandoned: keeps what it may write to. */
void slots_leave(struct slots *s);

/*
 * Call before any slot is wanted: makes the swap cache be asked for slots right before they are
 * read; results go into a stream beside the file's (formats/SPEC.md, kind 9). Takes ownership of
 * the cache, even on ST_NOMEM.
 */
enum status slots_use_cache(struct slots *s, struct swap_cache *cache, struct err *e);

/*
 * `number` (below PTE_FILES_MAX) is the file's number in entries. False in *ret: that number is
 * taken, and this file stays the caller's. Call before any slot is wanted. ST_NOMEM.
 */
enum status slots_add_file(struct slots *s, uint32_t number, const struct slots_file *f, bool *ret,
			   struct err *e);

/*
 * How many unread slots the entries of a level-1 table refer to. All of these functions accept
 * NULL: then there are none.
 */
size_t slots_count(struct slots *s, const uint8_t *table);
/*
 * Asks for them, and again for slots already read if their entry has changed since: bit n of
 * `changed` stands for entries 8n to 8n+7. Returns how many are now due.
 */
size_t slots_want(struct slots *s, const uint8_t *table, uint64_t changed);
/* True while any of its slots is due. Dropped and unreadable slots are no longer due. */
bool slots_due(struct slots *s, const uint8_t *table);

/*
 * The next piece that was read, for the pipeline; starts reading more. If there is none, waits
 * within bounds. False: go on without one.
 */
bool slots_next(struct slots *s, struct stream_piece *p);
/*
 * The same after the memory: waits for running reads and drops other requests. Once it returns
 * false, the files are the caller's again.
 */
bool slots_end(struct slots *s, struct stream_piece *p);

/* Was this page (of 4 KiB) of file `number` read here? */
bool slots_has(const struct slots *s, uint32_t number, uint64_t page);
struct slots_counts slots_counts(const struct slots *s);

#endif
