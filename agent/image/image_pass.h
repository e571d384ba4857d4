/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns pages into an image: the pipeline reads, encodes and checks them, and they are put in order
 * of address. Pages come from a struct image_pages: a container (export) or a source of memory
 * (acquire --format).
 */
#ifndef RAMSEAL_AGENT_IMAGE_IMAGE_PASS_H
#define RAMSEAL_AGENT_IMAGE_IMAGE_PASS_H

#include "agent/image/gather.h"
#include "agent/shared/container/tally.h"
#include "agent/shared/program/pipeline.h"
#include "agent/shared/program/progress.h"
#include "formats/image/image.h"
#include "formats/rsz/rsz_reader.h"

/* Fills a page without content in an image, repeatedly. */
struct fill_pattern {
	uint8_t bytes[16];
	size_t length; /* 1..16 */
};

/* The default patterns: texts of sixteen characters, so that they line up in a hex dump. */
extern const struct fill_pattern image_unreadable_fill, image_skipped_fill;
/* For virtual memory about which nothing is known. */
extern const struct fill_pattern image_missing_fill;

void image_fill_page(uint8_t *page, const struct fill_pattern *f);

/* Fills the page with `unreadable` or `skipped` if it is such a page; true if so. */
bool image_fill_gap(uint8_t *page, struct page_status s, const struct fill_pattern *unreadable,
		    const struct fill_pattern *skipped);

/* The error number in lists of gaps for pages whose chunk is damaged. No system call uses it. */
#define IMAGE_DAMAGED_CHUNK UINT32_MAX

struct image_pages {
	/*
	 * Fills `data` and `status`. ST_CORRUPT: these pages are damaged, go on; the message in `e`
	 * is kept. ST_SOURCE_FAILED: the states are valid, but nothing more will come. Any other
	 * failure ends the pass.
	 */
	enum status (*read)(struct image_pages *p, unsigned worker, uint64_t address, uint8_t *data,
			    size_t pages, struct page_status *status, struct err *e);
	/*
	 * How many of the `pages` pages at `address` are lost together when something is damaged:
	 * at least one. NULL if read() never returns ST_CORRUPT.
	 */
	size_t (*together)(struct image_pages *p, uint64_t address, size_t pages);
	struct pipeline_filler filler; /* the reader, if that is one thread */
	/* True if it gave up a read, so its buffer must stay. NULL: it never does. */
	bool (*gave_up)(const struct image_pages *p);
	bool parallel; /* all workers may call read() at once; otherwise one thread calls it */
};

/* Pages of a stream of a container. */
struct container_pages {
	struct image_pages pages;
	const struct rsz_reader *reader;
	uint32_t stream;
	struct gather *gather;
	struct rsz_times times[PIPELINE_WORKERS_MAX]; /* of the pages that each worker has read */
};

enum status container_pages_init(struct container_pages *p, const struct rsz_reader *r,
				 uint32_t stream, unsigned threads, struct err *e);
void container_pages_deinit(struct container_pages *p);

struct image_plan {
	struct image_pages *pages;
	struct image_writer *writer; /* its spec says which pages there are */
	struct fill_pattern unreadable;
	struct fill_pattern skipped;
	enum progress_mode progress;
	const char *phase; /* for the progress: "export" */
};

/* Zero-initialise. */
struct image_result {
	struct tally tally; /* of all pages in the spec, including those not reached */
	/*
	 * Skipped pages that are listed but are not gaps, because the file system shows zeros
	 * there.
	 */
	uint64_t zeros_skipped;
	uint64_t damaged; /* pages whose chunk failed its check; also counted as unreadable */
	struct err why;   /* the first such failure */
};

void image_result_deinit(struct image_result *r);

/*
 * ST_OK even with damaged chunks: their pages get the unreadable pattern and are counted.
 * ST_INTERRUPTED or ST_SOURCE_FAILED: the image ends early, and missing pages are counted as
 * skipped. In these three cases the writer is finished.
 */
enum status image_pass(const struct image_plan *plan, struct image_result *ret, struct err *e);

#endif
