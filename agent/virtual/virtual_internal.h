/* SPDX-License-Identifier: Apache-2.0 */
/* The handle, for what opens it (virtual.c) and what gives its pages (virtual_pages.c). */
#ifndef RAMSEAL_AGENT_VIRTUAL_VIRTUAL_INTERNAL_H
#define RAMSEAL_AGENT_VIRTUAL_VIRTUAL_INTERNAL_H

#include "agent/smear/smear_internal.h"
#include "agent/virtual/virtual.h"

struct virtual_memory {
	struct mapping_visitor visitor; /* the first: callbacks get it back */
	struct virtual_info info;
	struct smear_plan plan;
	struct analysis *m;
	struct smear smear; /* what m fills in */
	struct smear_space space;
	struct physmem_rsz mem; /* the chosen tables, and the memory where they are silent */
	struct rsz_cursor *cursor;
	struct virt virt;
	/* Of the read that is under way: */
	const struct virtual_rows *rows; /* wanted instead of pages; or NULL */
	struct virtual_vads vads;        /* .range is NULL: nobody knows them */
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

/* struct mapping_visitor's. */
bool virtual__follow(const struct mapping_visitor *l, uint64_t va, struct pte *pte,
		     struct rsz_times *when, uint64_t *proto);
enum status virtual__take_row(const struct mapping_visitor *l, const struct smear_row *row,
			      struct err *e);

#endif
