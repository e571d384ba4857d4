/* SPDX-License-Identifier: Apache-2.0 */
/* ramseal version: what --version prints, for those who ask in words. */
#include "agent/commands/commands.h"

static enum status version_run(struct cli *cli, struct err *e);

const struct command command_version = {
	.name = "version",
	.group = GROUP_HELP,
	.summary = "show the version; with --verbose also the libraries",
	.examples = { { "Show the version", "%s version" },
		      { "Show the libraries in this executable and their licences too",
			"%s version --verbose" } },
	.run = version_run,
};

static enum status version_run(struct cli *cli, struct err *e)
{
	cli_version(cli->program, cli->globals.verbose, stdout);
	return ST_OK;
}
