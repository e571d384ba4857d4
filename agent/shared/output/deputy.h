/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux: who makes, names and removes output files for a process in a cage (agent/shared/program/
 * cage.h): a child that was forked before, and that nothing is parsed in. Whatever happens to the
 * process in the cage, the deputy makes only new files, in the folders that the command line names,
 * and renames and removes none but those: what lies beside them, the evidence itself most often,
 * stays as it is.
 */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_DEPUTY_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_DEPUTY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * For one of each output. `replaces`: --force, a new file may take the place of one that has the
 * last component of `path` for its name, or that and more behind it; of a folder, of any.
 */
struct deputy_place {
	const char *path;
	bool is_folder;
	bool replaces;
};

/* False: there is none. It ends with us. */
bool deputy_begin(const struct deputy_place *places, size_t count);

/* Is there one? Then these are as the system calls that they are named for. */
bool deputy_serves(void);

/* A new file, O_RDWR and for its owner alone; -1 and errno. */
int deputy_create(int directory, const char *name);
/* 0 or an errno. */
int deputy_rename(int directory, const char *from, const char *to, bool replace);
int deputy_unlink(int directory, const char *name);
/* EWOULDBLOCK: another process writes to it. */
int deputy_is_idle(int directory, const char *name);

#endif
