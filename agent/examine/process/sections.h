/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the VADs of a process say about each page of its addresses: which prototype entry it has,
 * and where in which file it is. Everything is read once, here.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_PROCESS_SECTIONS_H
#define RAMSEAL_AGENT_EXAMINE_PROCESS_SECTIONS_H

#include "agent/examine/process/vads.h"

/* Neighbouring pages of a view whose prototype entries follow each other. */
struct section_part {
	uint64_t start, end; /* first and last byte */
	uint64_t prototype;  /* of the first page */
	uint64_t subsection; /* that has it */
	bool has_offset;
	uint64_t offset;   /* in the file, of the first page */
	bool has_end;      /* images: */
	uint64_t file_end; /* one past the last byte of the file in its pages */
	size_t vad;        /* which one of the list */
};

/* For all VADs together: a process has about a hundred modules with ten parts each. */
#define SECTION_PARTS_MAX ((size_t)1 << 20)

/* Steps from one subsection to the next, in all views together: four for each possible part. */
#define SECTION_STEPS_MAX ((size_t)1 << 22)

struct section_parts {
	struct section_part *at; /* in order of addresses */
	size_t count;
	size_t room;
	size_t steps; /* from subsection to subsection */
	bool cut;     /* SECTION_PARTS_MAX, or SECTION_STEPS_MAX */
};

/* ST_OK also where subsections are lost; their pages then have no part. ST_NOMEM. */
enum status section_parts_read(const struct memory_view *m, const struct vad_list *l,
			       struct section_parts *ret, struct err *e);
void section_parts_deinit(struct section_parts *s);

/* The part that `va` is in, or NULL. */
const struct section_part *section_part_find(const struct section_parts *s, uint64_t va);

#endif
