/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux: small files in /proc, /sys and /etc, and the lines in them.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_PROC_FILE_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_PROC_FILE_H

#include <jansson.h>

/* In front of every path that is read; a test sets it. */
extern const char *proc_file_root;

/*
 * The first 256 KiB of a file, NUL-terminated, for free(); NULL if it cannot be read. `ret_len` may
 * be NULL.
 */
char *proc_file_read(const char *path, size_t *ret_len);

/*
 * What stands behind `key` and `separator` on the line that begins with them: a slice of `text`,
 * without blanks at its ends; NULL if there is none.
 */
const char *proc_file_value(const char *text, const char *key, char separator, size_t *ret_len);

/* The same as a JSON text. */
json_t *proc_file_text(const char *text, const char *key, char separator);

/* "MemTotal:   16316412 kB" as bytes; NULL if there is no such line. */
json_t *proc_file_kib(const char *text, const char *key);

#endif
