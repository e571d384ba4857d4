/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Further fields of EPROCESS, besides those that the list of processes needs (agent/shared/paging):
 * one column of a table, chosen by checking it against several processes.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_PROCESS_EPROCESS_H
#define RAMSEAL_AGENT_EXAMINE_PROCESS_EPROCESS_H

#include "agent/examine/process/vads.h"

/* Offsets; 0: not known. */
struct eprocess_layout {
	const char *name;
	const char *source;
	uint32_t first_build, last_build;
	uint16_t pid;
	uint16_t create_time; /* FILETIME */
	uint16_t parent;      /* InheritedFromUniqueProcessId */
	uint16_t section_base;
	uint16_t peb;
	uint16_t wow64;
	bool wow64_is_peb; /* the 32-bit PEB itself; else what begins with its address */
	uint16_t object_table;
	uint16_t name_field; /* ImageFileName */
	uint16_t threads;    /* ThreadListHead */
	uint16_t vad_root;
};

extern const struct eprocess_layout eprocess_layouts[];
extern const size_t eprocess_layout_count;

/* What is already known about the kernel and its processes. */
struct eprocess_evidence {
	uint32_t pid; /* offsets of UniqueProcessId and ImageFileName; 0: not known */
	uint32_t name;
	uint32_t build;          /* 0: not known */
	const uint64_t *objects; /* EPROCESSes */
	size_t count;
	/*
	 * What the kernel's symbols say; NULL: there are none, or they describe another kind of
	 * tree. They are used unless a column of the tables fits more processes.
	 */
	const struct eprocess_layout *fields;
	const struct vad_layout *vads;
	bool doubtful; /* the symbols may not match this kernel */
};

#define EPROCESS_REASON_MAX 160

struct eprocess_choice {
	const struct eprocess_layout *layout; /* NULL: none fits */
	const struct vad_layout *vads;
	size_t processes; /* that were asked */
	size_t votes;     /* for this column; 0: the build number or the symbols alone chose */
	bool symbols;     /* it is what the symbols say */
	char reason[EPROCESS_REASON_MAX];
};

/* At most this many processes are checked. */
#define EPROCESS_SAMPLES 12

/* `m`: the kernel's half. ST_OK also where nothing was found; ST_NOMEM. */
enum status eprocess_choose(const struct memory_view *m, const struct eprocess_evidence *ev,
			    struct eprocess_choice *ret, struct err *e);

#endif
