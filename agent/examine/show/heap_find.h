/* SPDX-License-Identifier: Apache-2.0 */
/* ramseal heap --find and --referrers: where something is, and in which block. */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_FIND_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_FIND_H

#include "agent/examine/show/heap_blocks.h"

/*
 * Where something was found, and the block that this is in; with p->windows its words there.
 * `more`: further fields for JSON, or NULL.
 */
enum status heap_tell_place(struct block_printer *p, const struct block_list *l, uint64_t at,
			    const struct json_field *more, struct err *e);

/* Counts a page that has no bytes: there is none, it is on its file's disk, or it is lost. */
void heap_count_missing(const struct peek_page *page, uint64_t *on_disk, uint64_t *lost);

/* ST_UNREADABLE: so many pages could not be searched. */
enum status heap_search_outcome(const struct heap_session *s, uint64_t lost, struct err *e);

/* Pointers of a 32-bit program lead to `va`: it is in a block of its, or an address of its. */
bool heap_is_narrow(const struct heap_session *s, const struct block_list *l, uint64_t va);

/* Every word with the value `va`. */
enum status heap_referrers(struct block_printer *p, const struct heap_session *s,
			   const struct block_list *l, uint64_t va, struct err *e);

/*
 * Every place that holds `what`: a text, searched for as UTF-16 and then as UTF-8, or "hex:" and
 * digits. ST_USAGE: it is neither, or longer than HEAP_FIND_MAX bytes.
 */
#define HEAP_FIND_MAX 256
#define HEAP_FIND_HEX "hex:"
enum status heap_find(struct block_printer *p, const struct heap_session *s,
		      const struct block_list *l, const char *what, struct err *e);
/* The blocks that hold it, in whole or in part, each once, as the printer prints blocks. */
enum status heap_find_blocks(struct block_printer *p, const struct heap_session *s,
			     const struct block_list *l, const char *what, struct err *e);

#endif
