/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/process_choice.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum status process_choice_parse(const char *text, void *at, struct err *e)
{
	struct process_choice *c = at;
	char *end = NULL;
	uint64_t n = 0;

	*c = (struct process_choice){ 0 };
	errno = 0;
	if (isdigit((unsigned char)*text))
		n = strtoull(text, &end, text[0] == '0' && (text[1] | 0x20) == 'x' ? 16 : 10);
	if (!end || *end)
		c->name = text;
	if (!*text || *text == '-' || (!c->name && (errno || n > UINT32_MAX)))
		return err_set(e, ST_USAGE,
			       "takes a number from 0 to %" PRIu32 ", or a process's name",
			       UINT32_MAX);
	c->pid = c->name ? 0 : (uint32_t)n;
	return ST_OK;
}

void process_choice_text(const struct process_choice *c, char ret[static PROCESS_CHOICE_TEXT])
{
	if (!c->name) {
		snprintf(ret, PROCESS_CHOICE_TEXT, "%" PRIu32, c->pid);
		return;
	}
	snprintf(ret, PROCESS_CHOICE_TEXT, "%s", c->name);
	for (char *at = ret; *at; at++)
		if (!isalnum((unsigned char)*at) && *at != '.' && *at != '-')
			*at = '_';
}
