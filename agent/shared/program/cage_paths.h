/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a cage lets through: those that the command line names. */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_CAGE_PATHS_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_CAGE_PATHS_H

#include "agent/shared/program/cli.h"

/* Calls `fn` for every path on the command line; for operands, without an option. */
void cage_each_path(const struct cli *cli,
		    void (*fn)(void *arg, const struct option_def *o, const char *path), void *arg);

#endif
