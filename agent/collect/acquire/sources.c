/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/sources.h"

#include "agent/shared/program/cli.h"
#include "driver-interface/drv.h"

static void print_source_row(const struct drv_ops *ops, FILE *to)
{
	char text[400];

	if (ops->kind == DRV_DEAD)
		snprintf(text, sizeof(text), "%s", ops->summary);
	else
		snprintf(text, sizeof(text), "%s; %s: %s", ops->summary, drv_kind_name(ops->kind),
			 ops->reason);
	cli_put_wrapped(to, (size_t)fprintf(to, "  %s", ops->name), text);
}

static void put_sources(bool automatic, FILE *to)
{
	for (const struct drv_ops *const *ops = drv_table; *ops; ops++)
		if ((*ops)->automatic == automatic)
			print_source_row(*ops, to);
}

void sources_put_notes(FILE *to)
{
	cli_put_notes(to, "Sources that \"auto\" tries in this order, each for the pages that "
			  "those before it lack:\n");
	put_sources(true, to);
	cli_put_notes(to, "Sources that are used only if you name them:\n");
	put_sources(false, to);
}
