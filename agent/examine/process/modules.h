/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modules of a process: those in its loader's list, and the images that its VADs show as
 * mapped. Either can occur without the other, because a program can be mapped by hand, removed from
 * the list, or listed without being there; such differences are reported.
 *
 * Layouts are the same in all builds from 7 SP1 to 24H2 (Microsoft's public symbols of ntdll as
 * phnt has them: winsiderss/systeminformer 103cc43, phnt/include/ntldr.h, ntpsapi.h, ntpebteb.h).
 */
#ifndef RAMSEAL_AGENT_EXAMINE_PROCESS_MODULES_H
#define RAMSEAL_AGENT_EXAMINE_PROCESS_MODULES_H

#include "agent/examine/virtual/memory_view.h"
#include "agent/shared/kernel/processes.h"
#include "formats/base/err.h"

/* No real process has nearly as many; a longer list is not a list. */
#define MODULES_MAX      8192

/*
 * Bytes of all paths together: a thousand times as much as any process has. Further paths are not
 * read.
 */
#define MODULE_NAMES_MAX ((size_t)64 << 20)

struct module {
	uint64_t base;
	uint64_t size; /* bytes: SizeOfImage of the list, else what is mapped */
	char *path;    /* the list's, else the mapped file's; NULL: neither can be read. Any text */
	bool narrow;   /* of the 32-bit loader's list, or an image of 32 bits */
	bool listed;
	bool mapped;      /* an image VAD begins at .base */
	bool has_headers; /* then: */
	struct pe_program program;
};

struct modules {
	struct module *at; /* by rising .base */
	size_t count, room;
	size_t names; /* bytes that all paths take */
	/* How far the lists could be followed. A process without WoW64 has no second list. */
	enum list_end end, narrow_end;
};

/* An image that is mapped somewhere. */
struct mapped_image {
	uint64_t base, size;
	const char *path; /* NULL: not known */
};

struct modules_plan {
	const struct memory_view *memory;
	uint64_t peb, peb32; /* 0: there is none */
	const struct mapped_image *mapped;
	size_t n_mapped;
};

/* Fails only with ST_NOMEM; free `ret` in any case. */
enum status modules_find(const struct modules_plan *plan, struct modules *ret, struct err *e);
void modules_deinit(struct modules *m);

/* True if the loader's lists were followed to their end. `wow64`: there should be two. */
bool modules_know_listed(const struct modules *m, bool wow64);
/*
 * How module list and mappings disagree, as text. NULL: they do not, or it is unknown because VADs
 * (`know_mapped`) or lists are lost.
 */
const char *module_finding(const struct module *m, bool know_mapped, bool know_listed);

/* The module that `va` lies in; NULL: none. */
const struct module *modules_at(const struct modules *m, uint64_t va);
/* What follows the last separator of its path; "?" if it has no path. */
const char *module_name(const struct module *m);

#endif
