/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `ramseal read` says about a page: where it was found, when, and whether it can be trusted.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_READ_PAGE_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_READ_PAGE_H

#include <jansson.h>

#include "agent/examine/process/file_pages.h"
#include "agent/examine/process/process.h"
#include "agent/examine/virtual/virtual.h"

/* The memory that the page belongs to. */
struct read_page_context {
	uint64_t begun; /* the container's first moment, monotonic ns */
	const struct virtual_info *info;
	const struct opened_process *process; /* NULL: not Windows, or its VADs are not known */
	const struct file_pages *files;       /* NULL: pages of mapped files are not wanted */
};

/* One line, safe to print. */
#define READ_PAGE_TEXT_MAX 2048
void read_page_text(const struct read_page_context *r, const struct virtual_page *p,
		    char ret[static READ_PAGE_TEXT_MAX]);

/* As read-1.schema.json has it. NULL if out of memory. */
json_t *read_page_json(const struct read_page_context *r, const struct virtual_page *p);

#endif
