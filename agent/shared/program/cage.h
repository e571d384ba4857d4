/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux: limits what this process can access from now on, for good, whatever code runs in it,
 * before it parses untrusted input. Containers, disks, registry hives and images come from
 * suspects, and we read them as root.
 *
 * The process itself is confined, not a child: by then it has read its options and secrets, only
 * parsing and printing are left, and nothing must continue outside. A child's streams, signals and
 * exit code would have to be forwarded, and it could access just as much.
 *
 * Landlock allows only the files from the command line; seccomp only the system calls for reading,
 * computing and printing: no socket, no other process, no program, no kernel interface.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_CAGE_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_CAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/base/defs.h"

enum cage_access {
	CAGE_READ,  /* a file; or all below a folder */
	CAGE_LIST,  /* the names in a folder */
	CAGE_WRITE, /* a device or a FIFO, to open for writing */
	CAGE_MAKE,  /* anything in a folder: see cage_command.h */
};

/* Zero-initialise. */
struct cage_plan {
	struct cage_rule {
		int fd; /* O_PATH */
		enum cage_access access;
	} *at;
	size_t count;
	bool writes; /* files may be opened for writing, where a rule says so */
	bool lost;   /* out of memory: there will be no rules */
};

/* Missing or unusable paths are left out: opening them will report it. */
void cage_allow(struct cage_plan *p, const char *path, enum cage_access access);

/* What confines us, with a reason for each part that is missing. */
struct cage {
	bool files; /* Landlock */
	bool calls; /* seccomp */
};

/* Confines this and all later threads. Open files stay open. Frees the plan's members. */
struct cage cage_enter(struct cage_plan *p);

#endif
