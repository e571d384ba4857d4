/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual memory of one address space, out of a container: through the copy of its page tables
 * that is chosen, by figures 2 and 3 of "Forensic analysis of Windows user space applications through
 * heap allocations" (Cohen, 2015). Each page comes with its entry, with where its content was found
 * and when it was captured, and with the verdict that smear_measure() counts for it.
 */
#ifndef RAMSEAL_AGENT_SMEAR_VIRTUAL_H
#define RAMSEAL_AGENT_SMEAR_VIRTUAL_H

#include "agent/smear/smear.h"

#define GIVEN_MAP(X)                                                                               \
	X(GIVEN_NOTHING, "none") /* .why says why */                                               \
	X(GIVEN_MEMORY, "memory")                                                                  \
	X(GIVEN_PAGE_FILE, "page-file")                                                            \
	X(GIVEN_ZEROS, "zeros") /* the entry says so; nothing was captured */

enum given {
#define X(name, text) name,
	GIVEN_MAP(X)
#undef X
		GIVENS
};

const char *given_name(enum given g);

/* One page, or neighbouring pages of which nothing can be given for the same reason. */
struct virtual_page {
	uint64_t va;
	uint64_t pages;
	enum given given;
	const uint8_t *bytes; /* PAGE_SIZE of them, valid for the call; NULL: GIVEN_NOTHING */
	const char *why;      /* GIVEN_NOTHING: for people */
	const char *stream;   /* GIVEN_MEMORY and GIVEN_PAGE_FILE: its name in the container */
	const char *doubt;    /* verdict VERDICT_SLOT_MAP: why; else NULL */
	bool damaged;         /* GIVEN_NOTHING because the container is */
	unsigned level;       /* of the table where the way ends; 0: no root */
	bool judged;          /* the verdict and the members behind it of `row` are set */
	struct smear_row row; /* .va and .pages as above; .pte, .raw and .seen always */
};

struct virtual_plan {
	struct blob *in; /* as struct smear_plan */
	const struct rsz_reader *reader;
	const json_t *manifest;
	size_t cached;

	enum copy copy; /* through which tables */
	bool by_dtb;    /* else by pid */
	uint32_t pid;
	uint64_t dtb;
	const void *notes; /* the source's ELF notes, as the manifest has them; or NULL */
	size_t notes_size;
	uint64_t va; /* any byte */
	uint64_t length;
	/* Called for all pages that hold a part of it, in order. */
	enum status (*page)(void *context, const struct virtual_page *p, struct err *e);
	void *context;
};

struct virtual_result {
	enum paging_mode mode;
	enum discover_os os;
	struct layout_choice layout;
	uint64_t dtb;
	bool known;  /* it is one of the address spaces that were found */
	bool listed; /* then: */
	uint32_t pid;
	char *name;
	bool still;             /* an image's: nobody can say how far its pages belong together */
	bool assumed_levels;    /* nothing says how many levels the tables have */
	uint64_t given[GIVENS]; /* pages */
	uint64_t trust[TRUST_KINDS]; /* of those that were given */
	uint64_t damaged;            /* of GIVEN_NOTHING */
};

/*
 * ST_INPUT: no tables, no such process, no table at `dtb`. ST_USAGE: an address that the machine does
 * not have. ST_OK also where nothing could be given. `ret` is to be freed in any case; all but the
 * counts is set before the first page.
 */
enum status virtual_read(const struct virtual_plan *plan, struct virtual_result *ret,
			 struct err *e);
void virtual_result_deinit(struct virtual_result *r);

#endif
