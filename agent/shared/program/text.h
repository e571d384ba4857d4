/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that people read: amounts, durations, and bytes from elsewhere made harmless.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_TEXT_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "512 B", "64.0 KiB", "1.9 GiB": four digits at most. */
#define TEXT_SIZE_MAX 16
void text_size(uint64_t bytes, char ret[static TEXT_SIZE_MAX]);

/* "0:07", "12:34", "1:02:03", "-:--" for UINT64_MAX; above 99 hours ">99 h". */
#define TEXT_DURATION_MAX 16
void text_duration(uint64_t seconds, char ret[static TEXT_DURATION_MAX]);

/*
 * The length of the character at `p`; 0 if it is not a character, or one for which
 * utf8_is_hidden().
 */
size_t text_plain_length(const void *p, size_t left);

/*
 * Makes one line that a terminal shows as it is: the bytes of hidden characters (utf8_is_hidden())
 * and bytes that are not UTF-8 become \xNN. Cuts what does not fit. For reading only: backslashes
 * are not doubled.
 */
void text_printable(const char *text, char *ret, size_t size);

/*
 * How many columns of a terminal valid UTF-8 takes at most: each character beyond ASCII counts as
 * two, because none is wider (East Asian Width, Unicode Standard Annex 11).
 */
size_t text_columns(const char *text);
size_t text_columns_of(const char *text, size_t n); /* of its first bytes */

/*
 * The end of `text` that fits in so many columns, with "..." in front if something was cut. The
 * file name is at the end of a path.
 */
void text_tail(const char *text, size_t columns, char *ret, size_t size);

/* strndup(), which Windows' C library lacks. */
char *text_copy(const char *text, size_t len);

/*
 * Converts `digits` hexadecimal digits (an even number) to digits / 2 bytes; false if a character
 * is not a digit.
 */
bool text_from_hex(const char *text, size_t digits, uint8_t *ret);

#endif
