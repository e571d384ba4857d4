/* SPDX-License-Identifier: Apache-2.0 */
/* The value of --pid: a PID, or the name of a process (smear_spaces_pid()). */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_PROCESS_CHOICE_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_PROCESS_CHOICE_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"

struct process_choice {
	uint32_t pid;
	const char *name; /* borrowed from argv; NULL: by PID */
};

#define PROCESS_CHOICE_VALUE "PID|NAME"

/* For CLI_PARSED. What begins with a digit is a PID if it is a number to its end. */
enum status process_choice_parse(const char *text, void *at, struct err *e);

/* "1234" or "svchost.exe", for a file's name. */
#define PROCESS_CHOICE_TEXT 64
void process_choice_text(const struct process_choice *c, char ret[static PROCESS_CHOICE_TEXT]);

#endif
