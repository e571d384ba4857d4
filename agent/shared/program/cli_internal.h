/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by cli.c, which parses, cli_find.c, cli_help.c and cli_wrap.c. */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_CLI_INTERNAL_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_CLI_INTERNAL_H

#include "agent/shared/program/cli.h"

/*
 * The command's own i-th option, or NULL. *ret_at is the offset of its value in the command's
 * values.
 */
const struct option_def *cli__own_option(const struct command *c, size_t i, size_t *ret_at);

/*
 * The index for cli_option() of the option with this name or abbreviation of `length` characters,
 * or with this letter. ST_USAGE, with a suggestion.
 */
enum status cli__find_long(const struct cli *cli, const char *name, size_t length, size_t *ret,
			   struct err *e);
enum status cli__find_letter(const struct cli *cli, char letter, size_t *ret, struct err *e);

/* The width for help on this output. */
size_t cli__width(FILE *to);

/* As cli_put_wrapped(), but explanations begin at `column`, unless lines are too narrow. */
void cli__put_explained(FILE *to, size_t at, size_t column, const char *text);

/* Indented by `indent`; lines after the first by four more. */
void cli__put_paragraph(FILE *to, size_t indent, const char *text);

/* For words_join() and similar: cli_suggestion() of a struct option_def. */
const char *cli__suggestion_at(const void *of, size_t i);

#endif
