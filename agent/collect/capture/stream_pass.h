/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes pages from a feed through the pipeline into a stream of a container. The feed decides what
 * is read, in which order and how often: memory.c has the one for RAM, files.c the one for page
 * files.
 */
#ifndef RAMSEAL_AGENT_COLLECT_CAPTURE_STREAM_PASS_H
#define RAMSEAL_AGENT_COLLECT_CAPTURE_STREAM_PASS_H

#include "agent/collect/capture/sealer.h"
#include "agent/shared/container/tally.h"
#include "agent/shared/program/progress.h"

/* The piece that is read, compressed and hashed at once. Larger pieces hardly compress better. */
#define STREAM_CHUNK   ((size_t)1 << 20)

/* Pages without bytes need no buffer, so one piece may name as many as a chunk can. */
#define STREAM_SKIP    ((size_t)RSZ_CONTENT_MAX)

/* Scattered pages share a piece, each with a time of its own. */
#define STREAM_EXTENTS (STREAM_CHUNK / PAGE_SIZE)

struct stream_result;

struct stream_piece {
	/* To be filled: at least one, in the order of `pages` and `data`. */
	struct rsz_extent *extents; /* room for STREAM_EXTENTS */
	size_t n_extents;
	/* At most STREAM_CHUNK bytes together, or STREAM_SKIP if no page is data. */
	struct page_status *pages; /* to be filled, one per page */
	uint8_t *data;             /* to be filled where pages are data: STREAM_CHUNK bytes */
	/* Its destination: the plan's stream and result, unless the feed changes that. */
	uint32_t stream;
	struct stream_result *result;
	/*
	 * read() comes later: only its destination and the addresses and lengths of its extents are
	 * filled.
	 */
	bool unread;
};

/*
 * Appends `x` and moves its pages from page `from` of the piece's data to page `at`, which is not
 * after it: for feeds that read more than they keep.
 */
void stream_piece_keep(struct stream_piece *p, const struct rsz_extent *x, size_t from, size_t at);

struct stream_feed {
	/* The next piece; ST_END, or a status that ends the pass. One thread. */
	enum status (*next)(struct stream_feed *f, struct stream_piece *p, struct err *e);
	/*
	 * Reads a piece that next() left `unread`, and fills the rest of it, whatever happens.
	 * Called on several workers' threads at once, while next() goes on. NULL: no piece is left
	 * unread.
	 */
	void (*read)(struct stream_feed *f, struct stream_piece *p, unsigned worker);
};

struct reading;

struct stream_plan {
	struct stream_feed *feed;
	/* The watchdog over the source that the feed reads; NULL: it reads none. */
	const struct reading *reading;
	/*
	 * A source whose clock advances while its link is busy (drv_ops.output); NULL: time is
	 * real.
	 */
	struct drv *paced;
	struct sealer *sealer;
	uint32_t stream;
	int level;       /* zstd's, or RSZ_LEVEL_STORE; with level_auto the first one */
	bool level_auto; /* see governor.h */
	unsigned threads;
	enum progress_mode progress;
	const char *label; /* for the progress */
	uint64_t total;    /* bytes, likewise */
};

/* Zero-initialise. */
struct stream_result {
	struct tally tally;
	uint64_t bytes; /* of pages that were read */
	uint64_t start; /* monotonic ns: before the first read, and after the last */
	uint64_t end;
	int level;            /* at the end */
	unsigned level_moves; /* how often it was changed */
};

void stream_result_deinit(struct stream_result *r);

/*
 * Runs until the feed ends. On failure the container ends with the last whole chunk: ST_OUTPUT,
 * ST_NOMEM, or the feed's status. If a read was abandoned (reading.h), the feed must not be freed.
 * Two passes may run at once on one sealer.
 */
enum status stream_pass(const struct stream_plan *plan, struct stream_result *ret, struct err *e);

#endif
