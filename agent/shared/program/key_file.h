/* SPDX-License-Identifier: Apache-2.0 */
/* A small text file of keys, in locked memory that is wiped when it is freed. */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_KEY_FILE_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_KEY_FILE_H

#include "formats/base/err.h"

#define KEY_FILE_MAX ((size_t)256 << 10) /* bytes: more keys than anybody has */

struct key_text {
	char *at; /* not NUL-terminated */
	size_t len;
};

/*
 * Also reads a FIFO, such as a shell's <(...). ST_INPUT, with the path but nothing of the content.
 */
enum status key_file_read(const char *path, struct key_text *ret, struct err *e);
void key_text_wipe(struct key_text *t); /* fine on { 0 } */

#endif
