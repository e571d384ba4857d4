/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory for the page-table code: whole pages inside known ranges, each readable or not,
 * with the time at which it was read. It hides what is behind it: a driver, the streams of a
 * container, the memory of a test.
 */
#ifndef RAMSEAL_AGENT_SHARED_PAGING_PHYSMEM_H
#define RAMSEAL_AGENT_SHARED_PAGING_PHYSMEM_H

#include "driver-interface/drv.h"
#include "formats/rsz/rsz_reader.h"

/* When a page was read, in monotonic ns, and whether it was readable. Times are 0 if unknown. */
struct physmem_page {
	bool readable;
	uint64_t start;
	uint64_t end;
};

struct physmem {
	/*
	 * Reads `pages` pages at `pa` into `buf`; all of them lie within `ranges`. The bytes of an
	 * unreadable page are undefined. Errors of a source become unreadable pages, so that walks
	 * continue with the rest.
	 */
	void (*read)(struct physmem *m, uint64_t pa, uint8_t *buf, size_t pages,
		     struct physmem_page *ret);
	const struct range_list *ranges; /* tidy; outlives this */
};

/*
 * One page. False if `pa` is not page-aligned, is outside the ranges, or cannot be read. `ret` may
 * be NULL.
 */
bool physmem_read_page(struct physmem *m, uint64_t pa, uint8_t *buf, struct physmem_page *ret);

/*
 * Up to `pages` pages from `pa` on, as far as the range that holds `pa` goes. Returns how many were
 * tried; 0 if `pa` lies in no range.
 */
size_t physmem_read_run(struct physmem *m, uint64_t pa, uint8_t *buf, size_t pages,
			struct physmem_page *ret);

/* Pages per read when going through all memory: 64 KiB. */
#define PHYSMEM_RUN 16

/* Bytes at any physical address, which may cross pages. False if one of the pages is missing. */
bool physmem_read(struct physmem *m, uint64_t pa, void *buf, size_t len);

/* A live source. The drv stays the caller's, and is read on the calling thread. */
struct physmem_drv {
	struct physmem mem;
	struct drv *drv;
	uint64_t (*now)(void);
};

/* `now` is the clock for capture times: clock_mono_ns() except in tests. */
void physmem_drv_init(struct physmem_drv *m, struct drv *d, uint64_t (*now)(void));

/*
 * The same memory with a cache of recent pages, because translating addresses reads the same few
 * tables again and again. Not for walks of a running machine whose capture times matter.
 */
#define PHYSMEM_CACHE 64 /* pages; by the low bits of the frame number */

struct physmem_cache {
	struct physmem mem;
	struct physmem *under;      /* borrowed */
	uint64_t pa[PHYSMEM_CACHE]; /* UINT64_MAX: nothing */
	struct physmem_page page[PHYSMEM_CACHE];
	uint8_t (*bytes)[PAGE_SIZE];
};

enum status physmem_cache_init(struct physmem_cache *c, struct physmem *under, struct err *e);
void physmem_cache_deinit(struct physmem_cache *c);
/* Empties the cache. */
void physmem_cache_forget(struct physmem_cache *c);

/*
 * Streams of a container, tried in order: the first one that has the page is used, so {tables,
 * memory} is the machine as it was when the tables were read.
 */
#define PHYSMEM_STREAMS_MAX 3

struct physmem_rsz {
	struct physmem mem;
	struct rsz_cursor *cursor; /* borrowed; a thread's own */
	uint32_t streams[PHYSMEM_STREAMS_MAX];
	size_t n_streams;
	struct range_list ranges; /* of all the streams */
};

enum status physmem_rsz_init(struct physmem_rsz *m, const struct rsz_reader *r,
			     struct rsz_cursor *c, const uint32_t *streams, size_t n_streams,
			     struct err *e);
void physmem_rsz_deinit(struct physmem_rsz *m);

/* Pages already in memory, for tests and fuzzers. Unlisted pages are missing. */
struct physmem_piece {
	uint64_t pa;
	const uint8_t *bytes; /* PAGE_SIZE of them */
};

struct physmem_pieces {
	struct physmem mem;
	const struct physmem_piece *at; /* sorted by pa; borrowed */
	size_t count;
	uint64_t reads; /* pages asked for so far; also the time of the next one */
};

void physmem_pieces_init(struct physmem_pieces *m, const struct physmem_piece *at, size_t count,
			 const struct range_list *ranges);

#endif
