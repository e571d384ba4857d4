/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows: what deputy.h is on Linux, and more. A process in a cage (cage_windows.c) can open
 * nothing by name, so the process that started it does that: it parses nothing, looks at each
 * request by rules made of the command line, and passes back a handle or an error.
 *
 * In the cage, the functions of Windows that take a name ask it by themselves, whoever calls them:
 * libewf has no other. The linker puts ours in their place (--wrap, agent/meson.build).
 */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_DEPUTY_WINDOWS_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_DEPUTY_WINDOWS_H

#include <stdbool.h>
#include <windows.h>

#include "formats/base/defs.h"

enum deputy_access {
	DEPUTY_READ,  /* this file; of a folder, all that is below it */
	DEPUTY_PARTS, /* and those beside it with the same name up to the last dot */
	DEPUTY_WRITE, /* a device or a named pipe, which is there */
	/* New files whose names begin with this one's; in a folder, of any name. */
	DEPUTY_MAKE,
};

struct deputy_rules {
	struct deputy_rule {
		wchar_t *path; /* full, without \\?\ */
		enum deputy_access access;
		bool is_folder;
		bool replaces; /* DEPUTY_MAKE: a new file may take the place of one like that */
	} *at;
	size_t count;
};

/* False: out of memory. */
bool deputy_rules_add(struct deputy_rules *r, const char *path, enum deputy_access access,
		      bool replaces);
void deputy_rules_deinit(struct deputy_rules *r);

/* The pipes between the two. */
struct deputy_pipes {
	HANDLE requests, answers;
};

/*
 * The one outside: answers until the other end is closed. False: it never became ready, and has
 * parsed nothing.
 */
bool deputy_serve(const struct deputy_rules *r, const struct deputy_pipes *p, HANDLE caged);

/* The one in the cage: from now on names are asked for; NULL: no more. `p` must stay. */
void deputy_begin_asking(const struct deputy_pipes *p);
/* For deputy_serve(). False: there is nobody. */
bool deputy_say_ready(void);

/* As CreateFileW(), and not by the deputy. */
HANDLE deputy_open_directly(const wchar_t *path, DWORD access);

#endif
