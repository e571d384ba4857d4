/* SPDX-License-Identifier: Apache-2.0 */
/* What blocks hold, for people: their first bytes, a text in them, and where their words point. */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_BLOCK_CONTENT_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_BLOCK_CONTENT_H

#include "agent/examine/show/heap_session.h"

/* "heap 4", by its place in the process's list; without one "heap 0x11d0000". */
#define HEAP_NAME_TEXT 32
void heap_name_text(const struct heap_info *i, char ret[static HEAP_NAME_TEXT]);

/*
 * What a word points to: "heap 4, +0x10 of 88 bytes at 0x11e2870", "+0x40 of this block",
 * "dnsrslvr.dll+0x1234"; "" if nothing is known there. `own`: the block that holds the word; NULL:
 * none. Printable.
 */
#define WORD_NOTE_TEXT (SYMBOL_TEXT_MAX + HEAP_NAME_TEXT)
void word_note_text(const struct heap_session *s, const struct block_list *l,
		    const struct heap_allocation *own, uint64_t word,
		    char ret[static WORD_NOTE_TEXT]);

/* A few bytes of memory, as far as they could be read. */
#define MEMORY_PART_MAX 4096
struct memory_part {
	uint8_t bytes[MEMORY_PART_MAX]; /* 0 where they are lost */
	size_t size;
	struct {
		size_t first, end;
		bool lost;
	} pages[2]; /* one without bytes is unused */
};

/* At most MEMORY_PART_MAX bytes, of which no more are read. */
void memory_part_read(const struct heap_session *s, uint64_t va, uint64_t size,
		      struct memory_part *ret);
bool memory_part_is_lost(const struct memory_part *m, size_t at);

/* False: stdout is a terminal, and a line of so many columns does not fit. */
bool line_has_room(size_t columns);

/* The first bytes of a block. */
void block_head_read(const struct heap_session *s, const struct heap_allocation *a,
		     struct memory_part *ret);

/*
 * `columns` bytes from `from` on in memory order, "??" where they are lost, and then as text;
 * blanks from `to` on.
 */
#define BYTES_TEXT(columns) (4 * (columns) + 4)
void memory_part_text(const struct memory_part *m, size_t from, size_t to, size_t columns,
		      char *ret, size_t size);

/*
 * The longest text in some bytes, of printable ASCII characters: at least four that end with a NUL
 * or with the bytes, or twelve. False: there is none.
 */
struct block_text {
	size_t at, count; /* bytes from the beginning; characters */
	bool wide;        /* UTF-16; else ASCII */
};
bool block_text_find(const struct memory_part *m, struct block_text *ret);

/* So many of its characters, and "..." where it goes on. */
#define BLOCK_TEXT_SHOWN      56
#define BLOCK_TEXT_SIZE(most) ((most) + 4)
void block_text_copy(const struct memory_part *m, const struct block_text *t, size_t most,
		     char *ret, size_t size);

/* Indented lines below a block's own: first bytes, text, and what its first words point to. */
void block_preview_print(const struct heap_session *s, const struct block_list *l,
			 const struct heap_allocation *a);
/* The same as "preview" of heap-block-1.schema.json; NULL if out of memory. */
json_t *block_preview_json(const struct heap_session *s, const struct block_list *l,
			   const struct heap_allocation *a);

#endif
