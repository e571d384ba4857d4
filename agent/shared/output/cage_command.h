/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_CAGE_COMMAND_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_CAGE_COMMAND_H

#include "agent/shared/program/cli.h"

/*
 * Into the cage of agent/shared/program/cage.h, for good: for commands that parse untrusted input,
 * after they have read their secrets and before they open the input. Files from the command line
 * can be read, and outputs created (agent/shared/output/deputy.h). Commands that acquire, send or
 * receive never do this: confining a parser must not endanger an acquisition.
 *
 * `by_name`: a library creates the outputs by name (E01). Then everything in their folders is
 * writable.
 *
 * Windows: the cage is another process (agent/shared/program/cage_windows.h), which begins with
 * main() and comes here, too. The one that calls this first then never returns from it, unless
 * there is no such process: call it before anything was printed. With `by_name` there is none.
 */
void cage_command(const struct cli *cli, bool by_name);

#endif
