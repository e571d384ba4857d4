/* SPDX-License-Identifier: Apache-2.0 */
/* What cli.c, which parses, cli_help.c and cli_wrap.c share. */
#ifndef RAMSEAL_AGENT_PROGRAM_CLI_INTERNAL_H
#define RAMSEAL_AGENT_PROGRAM_CLI_INTERNAL_H

#include "agent/program/cli.h"

/*
 * The command's own i-th option; NULL behind the last. *ret_at is where its value goes in the
 * command's values.
 */
const struct option_def *cli__own_option(const struct command *c, size_t i, size_t *ret_at);

/* How wide help may be there. */
size_t cli__width(FILE *to);

/* For words_join() and the like: cli_suggestion() of a struct option_def. */
const char *cli__suggestion_at(const void *of, size_t i);

#endif
