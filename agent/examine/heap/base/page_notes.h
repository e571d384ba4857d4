/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk of an NT heap needs only a few words of each page, but it needs them by address.
 * Reading pages in that order would decode the same chunks of the container again and again. So
 * the words are noted beforehand, for 1 GiB of the heap's addresses at a time, while the pages are
 * read in the order in which they are stored. The notes of 1 GiB take about 25 MiB.
 *
 * Noted of each page:
 * - chunk headers that are valid under the heap's key;
 * - words that hold the heap's address, which identify the head of the LFH;
 * - the end of an extended block's header (nt/extended.c), and the word that may be its trace;
 * - the first bytes of a possible container of LFH blocks, up to the end of its bitmap;
 * - small internal blocks, in which LFH subsegments lie;
 * - the last byte of each possible header of an LFH block.
 * If one of these is not noted, it is not there; anything else is read from the page itself. So
 * the answers are the same with and without notes. A page that would need too many notes (hostile
 * bytes can look like anything) has none.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_BASE_PAGE_NOTES_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_BASE_PAGE_NOTES_H

#include "agent/examine/heap/base/heap_internal.h"

/* Notes are 16-bit words; one page has at most: */
#define NOTE_WORDS  (PAGE_SIZE / 2)

/* The unit, in bytes, in which parts of a page are noted. */
#define NOTE_PIECE  4
#define NOTE_PIECES (PAGE_SIZE / NOTE_PIECE)

/* A segment, or the part of it in the window. */
struct notes_part {
	uint64_t first, last;
	size_t page; /* in struct heap_notes.pages */
	bool wide;
	uint64_t heap;
	uint8_t key[HEAP_KEY_SIZE];
};

struct heap_notes {
	struct notes_part *parts; /* by address */
	size_t n_parts, parts_room;
	size_t last; /* the part that was looked up last */
	uint32_t *pages;
	size_t n_pages;
	uint16_t *words;
	size_t n_words, words_room;
	size_t window; /* pages; nt/notes.c */
	uint64_t left; /* pages that may still be read */
	/* Of the page being noted: */
	uint64_t wanted[NOTE_PIECES / 64];
	uint16_t made[NOTE_WORDS];
	size_t n_made;
	bool too_much;
};

/* The part that contains the address; NULL: none. */
struct notes_part *heap__notes_part(struct heap_notes *n, uint64_t va);

/* For struct view_visitor: notes the pages that belong to a part. ST_END: no room. */
enum status heap__note_pages(void *context, uint64_t va, uint64_t pages, const uint8_t *bytes,
			     struct err *e);

#endif
