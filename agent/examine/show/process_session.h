/* SPDX-License-Identifier: Apache-2.0 */
/* One process of a container, open and with its VADs read, for the commands that look into it. */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_PROCESS_SESSION_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_PROCESS_SESSION_H

#include "agent/examine/process/process.h"
#include "agent/examine/show/process_choice.h"
#include "agent/examine/show/symbol_options.h"
#include "agent/examine/smear/input.h"
#include "agent/shared/program/cli.h"

struct process_options {
	struct process_choice who;
	size_t tables; /* of copy_choices[] */
	struct symbol_options symbols;
};

/* For CLI_GROUP(…, struct process_options). */
extern const struct option_group process_option_group;

#define COPY_CHOICE_HELP                                                                           \
	"use the page tables in the memory image itself, or the copies read before or after it"

/* The choices of --tables: the image's first, because it is the default. */
extern const char *const copy_choices[];
extern const enum copy copy_of_choice[];

struct process_session {
	const char *path;
	struct smear_input in;
	uint8_t *notes;
	struct virtual_memory *memory;
	struct opened_process *process;
	struct symbol_set symbols;
};

/*
 * ST_USAGE without --pid; errors name the file. Warns about what the kernel's lists leave
 * uncertain. Call process_session_close() only after ST_OK.
 */
enum status process_session_open(struct cli *cli, const struct process_options *o,
				 const struct age_identities *x, struct process_session *ret,
				 struct err *e);
/* The same for another container than the first operand. */
enum status process_session_open_at(struct cli *cli, const char *path,
				    const struct process_options *o, const struct age_identities *x,
				    struct process_session *ret, struct err *e);
/* Returns `st` or ST_NOMEM, like container_answer(). */
enum status process_session_close(struct process_session *s, enum status st, struct err *e);

#endif
