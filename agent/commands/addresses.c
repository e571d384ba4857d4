/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/stores/remote.h"
#include "agent/commands/commands.h"

static void put_target_row(const char *form, const char *help, FILE *to)
{
	cli_put_wrapped(to, (size_t)fprintf(to, "  %s", form), help);
}

static void put_address_rows(FILE *to)
{
	for (const struct remote_ops *const *kind = remote_kinds; *kind; kind++)
		if ((*kind)->form)
			put_target_row((*kind)->form, (*kind)->help, to);
}

/* Without the network there are none. */
void command_put_addresses(FILE *to)
{
	if (remote_kinds[0])
		fputs("Addresses:\n", to);
	put_address_rows(to);
}

void command_put_targets(FILE *to)
{
	fputs("Targets for --output:\n", to);
	put_target_row("FILE",
		       "a file, which is called FILE.partial until it is complete; or a device "
		       "or a pipe",
		       to);
	put_target_row("DIRECTORY",
		       "a new file in it, <host>-<UTC time>.rsz. An address that ends "
		       "in '/' works the same way, and an image source gives its own name "
		       "in place of the host's",
		       to);
	put_target_row("-", "stdout", to);
	put_address_rows(to);
}
