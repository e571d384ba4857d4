/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the walk of an NT heap asks of a page is a few words of it. So they are noted, of a GiB of
 * the heap's addresses at a time, while its pages come in the order in which they are stored: by
 * address, a page here and a page there, the same chunks of the container would be decoded again
 * and again. 1 GiB of heap is some 25 MiB of notes.
 *
 * Of each page are noted:
 * - chunk headers that are right, decoded by the heap's key;
 * - words that hold the heap's address, by which the LFH's head is known;
 * - what ends an extended block's header (nt/extended.c), and the word that can be its trace;
 * - the first bytes of what can be a container of LFH blocks, up to the end of its bitmap;
 * - small blocks of the heap's own, in which LFH subsegments lie;
 * - the last bytes of what can be headers of LFH blocks.
 * Who looks for one of these where there is no note of it knows that it is none; who asks for
 * something else reads the page. So the answers are the same with and without notes. A page of
 * which too much would have to be noted, as bytes can be made to look, has none.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_BASE_PAGE_NOTES_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_BASE_PAGE_NOTES_H

#include "agent/examine/heap/base/heap_internal.h"

/* Notes are made of words of 16 bits; of one page at most: */
#define NOTE_WORDS  (PAGE_SIZE / 2)

/* What is wanted of a page is in pieces of so many bytes. */
#define NOTE_PIECE  4
#define NOTE_PIECES (PAGE_SIZE / NOTE_PIECE)

/* A segment, or as much of it as lies in the window. */
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
	size_t last; /* the part that was asked for last */
	uint32_t *pages;
	size_t n_pages;
	uint16_t *words;
	size_t n_words, words_room;
	size_t window; /* pages; nt/notes.c */
	uint64_t left; /* pages that may still be asked for */
	/* Of the page that is noted: */
	uint64_t wanted[NOTE_PIECES / 64];
	uint16_t made[NOTE_WORDS];
	size_t n_made;
	bool too_much;
};

/* The part that has the address; NULL: none. */
struct notes_part *heap__notes_part(struct heap_notes *n, uint64_t va);

/* A struct view_visitor's: notes those of the pages that are of a part. ST_END: no room. */
enum status heap__note_pages(void *context, uint64_t va, uint64_t pages, const uint8_t *bytes,
			     struct err *e);

#endif
