/* SPDX-License-Identifier: Apache-2.0 */
/* The NT heap: its segments, its key, the notes of its pages, its walks; and page heap. */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_NT_NT_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_NT_NT_H

#include "agent/examine/heap/base/heap_internal.h"

/*
 * Moves a busy block's address behind what lies between its header, which `c` is, and its data, if
 * anything does.
 */
void heap__extend(struct heap_walk *w, const struct chunk *c, struct heap_allocation *a);
/* The same of a block of the heap's own: what asked for it, and for how much, is not told. */
void heap__extend_own(struct heap_walk *w, const struct chunk *c, struct heap_allocation *a);

/* False: no segment begins there, whatever it is instead. */
bool heap__read_segment(struct heaps *h, uint64_t base, bool wide, struct heap_segment *ret);
enum status heap__add_segment(struct heaps *h, const struct heap_segment *s, struct err *e);
/* Once the heads of all heaps are read: the other segments, each once. ST_NOMEM. */
enum status heap__find_segments(struct heaps *h, struct err *e);
/* By heap, then base, no two of one place: after more have been added. */
void heap__sort_segments(struct heaps *h);
/* Heaps and segments that nothing names and whose first page is missing (unnamed.c). */
enum status heap__find_unnamed(struct heaps *h, struct err *e);

/* Adds where the segments of all NT heaps lie. ST_NOMEM. */
enum status heap__add_segment_ranges(const struct heaps *h, struct range_list *ret, struct err *e);

/* The segments of the heap: the first, and how many. */
const struct heap_segment *heap__segments(const struct heaps *h, uint64_t heap, size_t *ret_count);

/*
 * The key from the segments' chunk headers, by voting; *ret_found is false: too few headers, or
 * they disagree. ST_NOMEM.
 */
enum status heap__recover_key(struct heap_pages *p, const struct heap_layout *l,
			      const struct heap_segment *segments, size_t count, uint8_t *ret_key,
			      bool *ret_found, struct err *e);

/*
 * Notes of pages that are asked for by address, so that they need not be read so (page_notes.h).
 */
enum status heap__open_notes(struct heaps *h, struct err *e);
/* They take memory, and are made again when they are needed. */
void heap__drop_notes(struct heaps *h);
/* The heap is about to be walked from `va` on. */
enum status heap__note(struct heap_walk *w, uint64_t va);

/*
 * All blocks of full page heap, and the heaps that they name. None lies in `taken`, where heaps
 * have segments, tidy and joined.
 */
enum status heap__find_page_blocks(struct heaps *h, const struct range_list *taken, struct err *e);
enum status heap__walk_page_blocks(struct heap_walk *w);

enum status heap__walk_back_end(struct heap_walk *w);
enum status heap__walk_lfh(struct heap_walk *w);
enum status heap__walk_virtual(struct heap_walk *w);

#endif
