/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When each physical address was captured, reduced to a grid of fixed size. Whatever the size of
 * the machine and the order, the drawing stays below 2 MB and this structure below 50 KiB.
 *
 * Two walks over the chunks' headers: timeline_scale() for each chunk, then timeline_fix(), then
 * timeline_mark() for each.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_KIT_TIMELINE_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_KIT_TIMELINE_H

#include "agent/examine/report/kit/svg.h"
#include "formats/rsz/rsz_reader.h"

#define TIMELINE_COLUMNS 384
#define TIMELINE_ROWS    180
#define TIMELINE_WORDS   (TIMELINE_COLUMNS / 64)
#define TIMELINE_BINS    4096
#define TIMELINE_BANDS   8

/* What a mark stands for; the series of its colour is in timeline.c. */
enum timeline_kind {
	TIMELINE_BEFORE, /* page tables, before the memory */
	TIMELINE_MEMORY,
	TIMELINE_AGAIN, /* memory that was captured before */
	TIMELINE_AFTER, /* page tables, after the memory */
	TIMELINE_UNREADABLE,
	TIMELINE_SKIPPED,
	TIMELINE_KINDS
};

/* A stretch of addresses that is drawn without a break, in these rows. */
struct timeline_band {
	uint64_t first, last;
	unsigned low, high; /* rows from the bottom; `high` is one past the last */
};

/* Zero-initialise. */
struct timeline {
	uint64_t start, end;         /* of all captures that have a time, monotonic ns */
	unsigned shift;              /* a bin is 2^shift bytes; grows with the addresses */
	uint8_t bins[TIMELINE_BINS]; /* 1: something was captured in it */
	struct timeline_band bands[TIMELINE_BANDS];
	size_t n_bands;
	uint64_t cells[TIMELINE_KINDS][TIMELINE_ROWS][TIMELINE_WORDS];
	bool has[TIMELINE_KINDS];
};

/* `kind` is the stream's, enum rsz_kind; those that are not physical widen the times only. */
void timeline_scale(struct timeline *t, uint32_t kind, const struct rsz_chunk *c);
void timeline_fix(struct timeline *t);
void timeline_mark(struct timeline *t, uint32_t kind, const struct rsz_chunk *c);

/* A stream below the plot. Nothing is drawn for one without times. */
struct timeline_lane {
	const char *name;
	uint32_t kind;
	uint64_t start, end;
};

void timeline_draw(struct doc *d, const struct timeline *t, const struct timeline_lane *lanes,
		   size_t n_lanes, enum svg_form form);

/* What a cell of the plot covers: nanoseconds, and bytes of address in the widest band. */
uint64_t timeline_cell_ns(const struct timeline *t);
uint64_t timeline_cell_bytes(const struct timeline *t);

/* Internal: what measuring and drawing share. */

/* Rows between two bands, so that the labels of both addresses can be read. */
#define TIMELINE__BREAK 8

static inline uint64_t timeline__band_bytes(const struct timeline_band *b)
{
	return b->last - b->first + 1;
}

/* The row of an address, with its fraction. */
double timeline__row(const struct timeline_band *b, uint64_t address);

#endif
