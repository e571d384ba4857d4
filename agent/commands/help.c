/* SPDX-License-Identifier: Apache-2.0 */
/* ramseal help: what --help prints, for those who ask in words. */
#include "agent/commands/commands.h"

static enum status help_run(struct cli *cli, struct err *e);

const struct command command_help = {
	.name = "help",
	.group = GROUP_HELP,
	.summary = "show the commands, or how to use one",
	.examples = { { "Show all commands", "%s help" },
		      { "Show how to use one", "%s help acquire" } },
	.operands = { .text = "COMMAND", .min = 0, .max = 1, .command = true },
	.run = help_run,
};

static enum status help_run(struct cli *cli, struct err *e)
{
	const struct command *c;
	enum status st;

	if (!cli->n_operands) {
		cli_help_program(cli->program, stdout);
		return ST_OK;
	}
	st = cli_find_command(cli, cli->operands[0], &c, e);
	if (!st)
		cli_help_command(cli->program, c, stdout);
	return st;
}
