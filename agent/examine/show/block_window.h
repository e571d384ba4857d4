/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a block word by word: address, bytes as they lie in memory, text, what it points to. */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_BLOCK_WINDOW_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_BLOCK_WINDOW_H

#include "agent/examine/heap/block_list.h"
#include "agent/examine/show/heap_session.h"

/* It has room for 512 words of 64 bits. */
#define BLOCK_WINDOW_MAX 4096

struct block_window {
	const struct heap_session *session;
	const struct block_list *list;
	const struct heap_allocation *block;
	uint64_t first, end; /* bytes of the block; words begin at .first */
	uint64_t mark;       /* the word with this address is marked */
};

/* The bytes around `va`, which lies in the block: `before` of them in front of its word. */
void block_window_around(struct block_window *w, uint64_t va, uint64_t before, uint64_t bytes);

/* The header goes before a block's first bytes; with what it says, if its heap's key is known. */
void block_window_print_header(const struct block_window *w);
/* On a terminal that is too narrow, what a word points to comes on a line of its own. */
void block_window_print(const struct block_window *w);

/* As "header" and "words" of heap-block-1.schema.json; NULL if out of memory. */
json_t *block_window_header_json(const struct block_window *w);
json_t *block_window_json(const struct block_window *w);

#endif
