/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RAMSEAL_AGENT_COMMANDS_COMPLETION_H
#define RAMSEAL_AGENT_COMMANDS_COMPLETION_H

#include "agent/shared/program/cli.h"

enum shell { SHELL_BASH, SHELL_ZSH, SHELL_FISH, SHELL_POWERSHELL };

/* Writes a script that completes commands, options, their values and file names in this shell. */
void completion_write(const struct program *p, enum shell shell, FILE *to);

#endif
