/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the pages of a process are: the table of page states of "Forensic analysis of Windows user
 * space applications through heap allocations" (Cohen, 2015), with additions for containers.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_PROCESS_STATES_H
#define RAMSEAL_AGENT_EXAMINE_PROCESS_STATES_H

#include "agent/examine/process/process.h"

/* Prototype entries are followed: a page is where they say it is. */
#define PLACE_STATE_MAP(X)                                                                         \
	X(PAGES_VALID, "valid")           /* the hardware maps it, and it was captured */          \
	X(PAGES_TRANSITION, "transition") /* it is on its way out of memory, and was captured */   \
	X(PAGES_PAGE_FILE, "page_file")   /* and that part of the file was captured */             \
	X(PAGES_COMPRESSED, "compressed") /* in the store of compressed memory */                  \
	X(PAGES_ZEROS, "demand_zero")     /* committed, and never touched */                       \
	X(PAGES_FILE, "file")             /* only the mapped file on its disk has it */            \
	X(PAGES_RESERVED, "reserved")     /* an address, and no page */                            \
	X(PAGES_MISSING, "not_captured")  /* its place is known, but was not captured */           \
	X(PAGES_UNKNOWN, "unknown")       /* the tables or prototypes that knew it are lost */

enum pages_state {
#define X(name, text) name,
	PLACE_STATE_MAP(X)
#undef X
		PAGES_STATES
};

const char *pages_state_name(enum pages_state s);

/* Pages of 4 KiB. Zero-initialise; each call adds to it. */
struct pages_counts {
	uint64_t state[PAGES_STATES];
	uint64_t prototype; /* of all of these: by a prototype entry */
	/* Pages with content, zeros included, as virtual_read() judges them. */
	uint64_t trust[TRUST_KINDS];
	uint64_t verdict[VERDICTS];
	uint64_t judged[PAGES_STATES][TRUST_KINDS]; /* .trust by state */
};

void pages_counts_add(struct pages_counts *to, const struct pages_counts *c);
/* .trust for the pages that hold data: valid, in transition or in the page file. */
void pages_counts_data_trust(const struct pages_counts *c, uint64_t ret[static TRUST_KINDS]);
/* The sum of all states. */
uint64_t pages_counts_sum(const struct pages_counts *c);

/* The state of a group of neighbouring pages, as virtual_read() reports them. */
enum pages_state pages_state_of(const struct virtual_page *p);

/* Counts all pages of [start, end], both in the user half. Their content is not read. */
enum status process_count_pages(struct opened_process *p, uint64_t start, uint64_t end,
				struct pages_counts *ret, struct err *e);

/* The counts of a whole process. Zero-initialise. */
struct process_pages {
	struct pages_counts *each; /* one for each VAD, in their order */
	struct pages_counts total; /* and of .outside */
	struct range_list outside; /* pages with entries that are in no VAD */
};

/* ST_INTERRUPTED. Call process_pages_deinit() in any case. */
enum status process_count_all(struct opened_process *p, struct process_pages *ret, struct err *e);
void process_pages_deinit(struct process_pages *p);

/* Pages that have an entry but are in no VAD. ST_OK even if some tables were not walked. */
enum status process_mapped_outside(struct opened_process *p, struct range_list *ret, struct err *e);

#endif
