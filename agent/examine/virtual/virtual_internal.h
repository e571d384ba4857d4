/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handle. virtual.c opens it, virtual_frames.c reads the pages that entries name, virtual_why.c
 * says why a page has no content, and virtual_pages.c passes pages to the reader.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_VIRTUAL_VIRTUAL_INTERNAL_H
#define RAMSEAL_AGENT_EXAMINE_VIRTUAL_VIRTUAL_INTERNAL_H

#include "agent/examine/smear/mapping.h"
#include "agent/examine/virtual/virtual.h"

/* What is cached of the compression store and of its pages (virtual_store.c). */
struct virtual_store;

/*
 * Each has a chunk of its own; more would only wait for each other, since one at a time may call
 * back.
 */
#define SWEEP_THREADS_MAX 2

struct virtual_memory {
	struct space_request request;
	struct virtual_info info;
	struct smear_plan plan;
	struct analysis *m;
	struct smear smear;           /* what m fills in */
	const struct smear_id *known; /* which of m's spaces this is; NULL: none */
	struct smear_space space;
	struct physmem_rsz mem;      /* the chosen tables, and the memory where they are silent */
	struct physmem_cache tables; /* the same */
	struct rsz_cursor *cursor;
	struct virt virt;
	struct virtual_store *store; /* NULL: not asked for yet */
	uint64_t store_globals;      /* 0: nobody knows */
	/* For sweeps, one per thread; NULL: not needed so far. */
	struct rsz_cursor *sweep_cursors[SWEEP_THREADS_MAX];
	/* State of the current read: */
	const struct virtual_rows *rows; /* wanted instead of pages; or NULL */
	struct virtual_vads vads;        /* .range is NULL: nobody knows them */
	struct virtual_files files;      /* .page is NULL: nobody has them */
	uint64_t proto_page;             /* the page of prototype entries read last, */
	bool proto_read;                 /* if one was, */
	bool proto_there;                /* and can be had: */
	uint8_t protos[PAGE_SIZE];
	struct rsz_times proto_when;
	const struct virtual_reader *reader;
	struct virtual_counts *counts;
	uint64_t next; /* the first page that has not been told of */
	bool through;  /* the last page of all addresses was told of: .next is 0 again */
};

/*
 * The page at `va` of the address space with the root `dtb`: in memory, in transition or in a page
 * file. Prototype entries are not followed. Call smear__need_layout() first. False: it can't be
 * had.
 */
bool virtual__read_page(struct virtual_memory *v, uint64_t dtb, uint64_t va, uint8_t *page,
			struct rsz_times *when);

/* Where the bytes of an entry's page are stored; false if they are in no stream. */
bool virtual__locate_page(const struct virtual_memory *v, const struct pte *p, uint32_t *ret_stream,
			  uint64_t *ret_address);
/*
 * Reads the first page of a captured row, from the capture that it names. ST_END: it has no
 * content. ST_CORRUPT: the container is damaged there.
 */
enum status virtual__read_captured(struct virtual_memory *v, const struct smear_row *row,
				   uint8_t *buf, struct err *e);

/* Reads a prototype entry. Call smear__need_layout() first. False: it can't be had. */
bool virtual__read_prototype(struct virtual_memory *v, uint64_t va, struct pte *ret,
			     struct rsz_times *when);
/*
 * Replaces the mapping's entry by what its prototype entry leads to. The mapping is unchanged if
 * that entry cannot be read or its place is unknown.
 */
void virtual__follow_prototype(struct virtual_memory *v, struct mapping *x);

/* True for addresses that no VAD can cover. A process of a 32-bit Windows can have up to 3 GiB. */
bool virtual__is_kernel_address(const struct virtual_memory *v, uint64_t va);

/* Why an entry gives no page; for people. */
const char *virtual__why(const struct virtual_memory *v, const struct smear_row *row);

/*
 * Explains pages from `va` on for which no entry says anything, by how the walk of the tables
 * ended. That includes entries above the page table that are not present: Windows pages out page
 * tables, and their entries are not searched for.
 */
enum status virtual__explain(struct virtual_memory *v, uint64_t va, struct virtual_page *ret,
			     struct err *e);

/*
 * The page of a key of the compression store. *ret_why: NULL, or why it can't be had. `when` covers
 * all pages that were read for it, from the first to the last.
 */
enum status virtual__read_store(struct virtual_memory *v, uint64_t key, uint8_t *page,
				struct rsz_times *when, const char **ret_why, struct err *e);
void virtual__free_store(struct virtual_store *s); /* NULL is fine */

#endif
