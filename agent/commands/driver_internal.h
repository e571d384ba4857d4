/* SPDX-License-Identifier: Apache-2.0 */
/* Between driver.c, which inspects a file anywhere, and driver_loaded.c, for Windows. */
#ifndef RAMSEAL_AGENT_COMMANDS_DRIVER_INTERNAL_H
#define RAMSEAL_AGENT_COMMANDS_DRIVER_INTERNAL_H

#include "agent/commands/commands.h"

struct driver_command {
	const char *folder;
	const char *host;            /* JSON of `check`, of the host that the driver is for */
	struct cli_strings policies; /* files of policies that are asked about it */
	bool json;
	bool risk;
	bool citool;
};

/* "status", "load", "unload" or "cleanup". */
enum status driver__run_loaded(const struct driver_command *o, const char *action, const char *file,
			       struct err *e);

#endif
