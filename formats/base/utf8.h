/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as in RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef RAMSEAL_BASE_UTF8_H
#define RAMSEAL_BASE_UTF8_H

#include <stdbool.h>

#include "formats/base/defs.h"

/* The length of the character at `p` (`left` bytes follow), or 0 if it is not one. */
size_t utf8_length(const void *p, size_t left);

bool utf8_valid(const void *p, size_t len);

/* For a character that utf8_length() accepted. */
uint32_t utf8_code_point(const void *p, size_t length);

/*
 * Must a character not be shown as it is? True for a control character (C0, DEL, C1, which some
 * terminals obey), a format character of Unicode (category Cf: joiners, marks and overrides of
 * direction, tags), a line or paragraph separator, a variation selector, a filler, or what XML does
 * not allow (XML 1.0, 2.2). Terminals, JSON, file names and reports all use this list.
 */
bool utf8_is_hidden(uint32_t code_point);

#endif
