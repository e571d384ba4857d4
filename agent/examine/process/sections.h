/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the VADs of a process say of each page of its addresses: which prototype entry it has, and
 * where it is in which file. All that takes reading is read once, here.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_PROCESS_SECTIONS_H
#define RAMSEAL_AGENT_EXAMINE_PROCESS_SECTIONS_H

#include "agent/examine/process/vads.h"

/* Neighbouring pages of a view whose prototype entries lie behind each other. */
struct section_part {
	uint64_t start, end; /* first and last byte */
	uint64_t prototype;  /* of the first page */
	uint64_t subsection; /* that has it */
	bool has_offset;
	uint64_t offset;   /* in the file, of the first page */
	bool has_end;      /* images: */
	uint64_t file_end; /* behind the last byte of the file that its pages have */
	size_t vad;        /* which one of the list */
};

/* Of all VADs: those of a process have some hundred modules with ten parts each. */
#define SECTION_PARTS_MAX ((size_t)1 << 20)

/* From one subsection to the next, of all views together: four for each part that there can be. */
#define SECTION_STEPS_MAX ((size_t)1 << 22)

struct section_parts {
	struct section_part *at; /* in order of addresses */
	size_t count;
	size_t room;
	size_t steps; /* from subsection to subsection */
	bool cut;     /* SECTION_PARTS_MAX, or SECTION_STEPS_MAX */
};

/* ST_OK also where subsections are lost: then pages have no part. ST_NOMEM. */
enum status section_parts_read(const struct memory_view *m, const struct vad_list *l,
			       struct section_parts *ret, struct err *e);
void section_parts_deinit(struct section_parts *s);

/* The part that `va` is in, or NULL. */
const struct section_part *section_part_find(const struct section_parts *s, uint64_t va);

#endif
