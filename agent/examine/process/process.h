/* SPDX-License-Identifier: Apache-2.0 */
/* One Windows process in a container: its EPROCESS, its VADs, and access to its memory. */
#ifndef RAMSEAL_AGENT_EXAMINE_PROCESS_PROCESS_H
#define RAMSEAL_AGENT_EXAMINE_PROCESS_PROCESS_H

#include "agent/examine/process/eprocess.h"
#include "agent/examine/process/modules.h"
#include "agent/examine/process/sections.h"
#include "agent/examine/process/symbol_set.h"
#include "agent/examine/process/threads.h"
#include "agent/examine/virtual/peek.h"
#include "agent/shared/kernel/processes.h"

struct process_facts {
	uint32_t pid;
	char name[PROCESS_NAME_MAX]; /* raw bytes, not trusted */
	uint32_t build;              /* of Windows; 0: not known */
	const char *layout;          /* the column of eprocess_layouts[] */
	const char *layout_reason;   /* until process_close() */
	const struct eprocess_layout *fields;
	uint64_t eprocess;
	uint64_t peb;         /* 0: it has none, or that page is lost */
	bool no_peb;          /* its EPROCESS says so: System, and others that run no program */
	bool wow64;           /* it runs a 32-bit program; then: */
	uint64_t peb32;       /* 0: not to be had */
	uint64_t create_time; /* FILETIME; 0: not known */
	uint64_t parent;      /* PID; 0: not known */
	uint64_t threads;     /* address of ThreadListHead; 0: not known */
	uint64_t vad_root;    /* address of VadRoot */
};

/*
 * Opens the address space that is chosen in `v` as that of `pid`. `v` is borrowed until
 * process_close(): until then no other address space may be chosen in it, and it also looks up
 * pages in the VADs (virtual_set_vads()). ST_INPUT: it is not Windows, the EPROCESS was not found,
 * or a symbol file belongs to something else.
 *
 * `symbols`: files that were given, or NULL. Borrowed; filled in with what each file belongs to.
 */
struct opened_process;
enum status process_open(struct virtual_memory *v, uint32_t pid, struct symbol_set *symbols,
			 struct opened_process **ret, struct err *e);
void process_close(struct opened_process *p); /* NULL is fine */

const struct process_facts *process_facts(const struct opened_process *p);
const struct vad_list *process_vads(const struct opened_process *p);
/* By the VADs: what the pages are that have no entry of their own. */
const struct section_parts *process_sections(const struct opened_process *p);

/*
 * True if the page at `va` belongs to a mapped file. *ret is then the file's name, as in struct
 * vad, and the offset if it is known.
 */
struct process_file {
	const char *name; /* until process_close() */
	bool has_offset;
	uint64_t offset;
	bool image; /* loaded as a program: pages can have been relocated */
};
bool process_file_of(const struct opened_process *p, uint64_t va, struct process_file *ret);

/* The handle that it was opened on, for whole pages with everything that is known about each. */
struct virtual_memory *process_memory(const struct opened_process *p);

/* Its user half and the kernel's. */
struct peek *process_peek(const struct opened_process *p);

/* Its modules, by the loader's lists and its VADs. ST_NOMEM; free `ret` in any case. */
enum status process_modules(const struct opened_process *p, struct modules *ret, struct err *e);

/*
 * ImagePathName and CommandLine from its start, as unicode_string_read() returns them; NULL: not to
 * be had. Release them with free(). The program itself may have changed both.
 */
struct process_start {
	char *image, *command_line;
};
void process_start_read(const struct opened_process *p, struct process_start *ret);
void process_start_deinit(struct process_start *s);

/* Private memory that was allocated as writable, sorted and joined: heaps are nowhere else. */
enum status process_private_ranges(const struct opened_process *p, struct range_list *ret,
				   struct err *e);
/* Its threads. ST_NOMEM; free `ret` in any case. */
enum status process_threads(const struct opened_process *p, struct threads *ret, struct err *e);

/*
 * Names what lies at `va` in one of these modules or in the kernel, with symbols where there are
 * any.
 */
void process_address_text(const struct opened_process *p, const struct modules *m, uint64_t va,
			  char ret[static SYMBOL_TEXT_MAX]);

/* Every process in the kernel's list, in its order. */
const struct process_list *process_others(const struct opened_process *p);

#endif
