/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux: creates, renames and removes output files for a process in a cage (agent/shared/program/
 * cage.h): a child forked earlier, which parses nothing. Whatever happens in the cage, the deputy
 * creates only new files, in the folders of the command line, and renames and removes only those:
 * other files there, often the evidence itself, stay untouched.
 */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_DEPUTY_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_DEPUTY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * One place for each output. `replaces`: with --force, a new file may replace one whose name is the
 * last component of `path` or begins with it; in a folder, any file.
 */
struct deputy_place {
	const char *path;
	bool is_folder;
	bool replaces;
};

/* Starts the deputy, which ends with us. False: there is none. */
bool deputy_begin(const struct deputy_place *places, size_t count);

/* Is there one? Then these behave like the system calls they are named after. */
bool deputy_serves(void);

/* Creates a file, O_RDWR and accessible only to its owner; -1 and errno. */
int deputy_create(int directory, const char *name);
/* 0 or an errno. */
int deputy_rename(int directory, const char *from, const char *to, bool replace);
int deputy_unlink(int directory, const char *name);
/* EWOULDBLOCK: another process writes to it. */
int deputy_is_idle(int directory, const char *name);

#endif
