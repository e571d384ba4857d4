/* SPDX-License-Identifier: Apache-2.0 */
/* --symbols, of the commands that look into a process. */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_SYMBOL_OPTIONS_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_SYMBOL_OPTIONS_H

#include "agent/examine/process/symbol_set.h"
#include "agent/shared/program/cli.h"
#include "agent/shared/program/json.h"

struct symbol_options {
	struct cli_strings files;
	bool force;
};

/* For CLI_GROUP(…, struct symbol_options). */
extern const struct option_group symbol_option_group;

/* ST_INPUT, ST_USAGE. Call symbol_set_deinit() in any case. */
enum status symbol_options_open(const struct symbol_options *o, struct symbol_set *ret,
				struct err *e);

/* Says which file was used for what, and warns about those that were forced. */
void symbol_options_tell(const struct symbol_set *s);

/* As common-1.schema.json's "symbols". NULL if out of memory. */
json_t *symbol_options_json(const struct symbol_set *s);

#endif
