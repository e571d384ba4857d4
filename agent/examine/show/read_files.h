/* SPDX-License-Identifier: Apache-2.0 */
/* --file-pages of `ramseal read`: where pages of mapped files come from. */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_READ_FILES_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_READ_FILES_H

#include <jansson.h>

#include "agent/examine/process/file_pages.h"
#include "agent/shared/program/cli.h"

struct read_file_options {
	struct cli_strings from;
	uint64_t offset; /* in sectors of 512 bytes */
};

/* For CLI_GROUP(…, struct read_file_options). */
extern const struct option_group read_file_option_group;

/* *ret NULL: no files are wanted. ST_USAGE, and the errors of file_origins_open(); borrows `o`. */
enum status read_files_open(const struct cli *cli, const struct read_file_options *o,
			    struct file_origins **ret, struct err *e);

/* ST_OUTPUT if the output path is a disk that is read or, without `force`, lies on a live one. */
enum status read_files_check_target(const struct file_origins *o, const char *path, bool force,
				    struct err *e);

/* Nanoseconds since 1970, as all times of a container are; 0 stays 0. */
uint64_t read_files_filetime(uint64_t ns);

/* "of "disk.raw", at another time than the memory (same volume and size)". */
void read_files_text(const struct file_page_source *s, char *ret, size_t size);

/* As common-1.schema.json's "file_source". NULL if out of memory. */
json_t *read_files_json(const struct file_page_source *s);

#endif
