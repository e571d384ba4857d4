/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_CAGE_COMMAND_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_CAGE_COMMAND_H

#include "agent/shared/program/cli.h"

/*
 * Into the cage of agent/shared/program/cage.h, for good: from a command that parses what strangers
 * wrote, once it has read its secrets and before it opens the first of that. What its command line
 * names can be read, and its outputs can be made (agent/shared/output/deputy.h). No command does
 * that which acquires, sends or receives: what holds a parser must never hold up an acquisition.
 *
 * `by_name`: a library makes the outputs by their names (E01). Then whatever is in their folders
 * can be written.
 *
 * Windows: nothing yet.
 */
void cage_command(const struct cli *cli, bool by_name);

#endif
