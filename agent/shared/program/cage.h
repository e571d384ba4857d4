/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux: what this process can reach from now on, for good, whatever runs in it: before it parses
 * what a stranger wrote. Containers, disks, registry hives and images come from suspects, and we
 * read them as root.
 *
 * The process itself goes in, and no child of it: it has read its options and secrets by then, what
 * is left to do is to parse and to print, and there is nothing outside that must go on. A child
 * would need its streams, signals and exit code carried back and forth, and would reach no less.
 *
 * Landlock leaves it the files that the command line names; seccomp the system calls that reading,
 * computing and printing take: no socket, no other process, no program, no kernel interface.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_CAGE_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_CAGE_H

#include <stdbool.h>

#include "agent/shared/program/cli.h"

enum cage_access {
	CAGE_READ,  /* a file; or all below a folder */
	CAGE_LIST,  /* the names in a folder */
	CAGE_WRITE, /* a device or a FIFO: it is opened for writing */
	CAGE_MAKE,  /* anything in a folder: see cage_command.h for who needs that */
};

/* Zero-initialise. */
struct cage_plan {
	struct cage_rule {
		int fd; /* O_PATH */
		enum cage_access access;
	} *at;
	size_t count;
	bool writes; /* files may be opened for writing, where a rule says so */
	bool lost;   /* memory ran out: there will be no rules */
};

/* What does not exist, or cannot be named, is left out: who opens it will be told. */
void cage_allow(struct cage_plan *p, const char *path, enum cage_access access);

/* Calls `fn` for every path that stands on the command line; for an operand without an option. */
void cage_each_path(const struct cli *cli,
		    void (*fn)(void *arg, const struct option_def *o, const char *path), void *arg);

/* What there is to hold us; of one there may be none, for what it lacks. */
struct cage {
	bool files; /* Landlock */
	bool calls; /* seccomp */
};

/*
 * Goes in, with all threads that will be. Files that are open stay open. Frees what the plan has.
 */
struct cage cage_enter(struct cage_plan *p);

#endif
