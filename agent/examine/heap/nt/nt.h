/* SPDX-License-Identifier: Apache-2.0 */
/* The NT heap (segments, key, page notes, walks), and page heap. */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_NT_NT_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_NT_NT_H

#include "agent/examine/heap/base/heap_internal.h"

/*
 * Moves a busy block's address past the extension, if any, between its header `c` and its data.
 */
void heap__extend(struct heap_walk *w, const struct chunk *c, struct heap_allocation *a);
/* The same for an internal block: neither the trace nor the requested size is set. */
void heap__extend_own(struct heap_walk *w, const struct chunk *c, struct heap_allocation *a);

/* False: no segment begins there. */
bool heap__read_segment(struct heaps *h, uint64_t base, bool wide, struct heap_segment *ret);
enum status heap__add_segment(struct heaps *h, const struct heap_segment *s, struct err *e);
/* Finds the other segments once the heads of all heaps are read. ST_NOMEM. */
enum status heap__find_segments(struct heaps *h, struct err *e);
/* Sorts by heap, then base, and drops duplicates. Needed after segments were added. */
void heap__sort_segments(struct heaps *h);
/* Finds heaps and segments that nothing names and whose first page is missing (unnamed.c). */
enum status heap__find_unnamed(struct heaps *h, struct err *e);

/* Adds the ranges of the segments of all NT heaps. ST_NOMEM. */
enum status heap__add_segment_ranges(const struct heaps *h, struct range_list *ret, struct err *e);

/* The heap's segments: the first of them, and their number. */
const struct heap_segment *heap__segments(const struct heaps *h, uint64_t heap, size_t *ret_count);

/*
 * Recovers the key from the segments' chunk headers by voting. *ret_found is false if there are too
 * few headers, or they disagree. ST_NOMEM.
 */
enum status heap__recover_key(struct heap_pages *p, const struct heap_layout *l,
			      const struct heap_segment *segments, size_t count, uint8_t *ret_key,
			      bool *ret_found, struct err *e);

/*
 * Opens the notes of pages, which save reading them in order of address (page_notes.h).
 */
enum status heap__open_notes(struct heaps *h, struct err *e);
/* Frees the notes' memory; they are made again when needed. */
void heap__drop_notes(struct heaps *h);
/* Makes the notes for a walk from `va` on. */
enum status heap__note(struct heap_walk *w, uint64_t va);

/*
 * Finds all blocks of full page heap, and the heaps that they name, outside `taken`: the ranges of
 * the heaps' segments, tidy and joined.
 */
enum status heap__find_page_blocks(struct heaps *h, const struct range_list *taken, struct err *e);
enum status heap__walk_page_blocks(struct heap_walk *w);

enum status heap__walk_back_end(struct heap_walk *w);
enum status heap__walk_lfh(struct heap_walk *w);
enum status heap__walk_virtual(struct heap_walk *w);

#endif
