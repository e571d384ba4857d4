/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/cage_paths.h"

#include <string.h>

#include "agent/shared/program/cli_internal.h"

/* By what --help calls it, as completion does. */
static bool names_a_path(const char *value)
{
	static const char *const words[] = { "FILE", "LOG", "DEV", "FROM", "DIR" };

	for (size_t i = 0; value && i < ARRAY_SIZE(words); i++)
		if (!strncmp(value, words[i], strlen(words[i])))
			return true;
	return false;
}

void cage_each_path(const struct cli *cli,
		    void (*fn)(void *arg, const struct option_def *o, const char *path), void *arg)
{
	const struct operands_def *operands = &cli->command->operands;
	const struct option_def *o;
	size_t at;

	for (size_t i = 0; (o = cli__own_option(cli->command, i, &at)); i++) {
		const void *value = (const uint8_t *)cli->values + at;
		const struct cli_strings *several = value;

		if (!cli->given[i] || !names_a_path(o->value))
			continue;
		if (o->kind == OPTION_STRING)
			fn(arg, o, *(const char *const *)value);
		for (size_t k = 0; o->kind == OPTION_STRINGS && k < several->count; k++)
			fn(arg, o, several->at[k]);
	}
	/* "inspect FILE.sys": what is chosen from a list is no path. */
	if (names_a_path(operands->text) || (operands->choices && strstr(operands->text, "FILE")))
		for (size_t i = operands->choices != NULL; i < cli->n_operands; i++)
			fn(arg, NULL, cli->operands[i]);
}
