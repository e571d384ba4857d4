/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
 */
#ifndef RAMSEAL_BASE_UTF8_H
#define RAMSEAL_BASE_UTF8_H

#include <stdbool.h>

#include "formats/base/defs.h"

/* The length of the character at `p` (`left` bytes follow), or 0 if it is not one. */
size_t utf8_length(const void *p, size_t left);

bool utf8_valid(const void *p, size_t len);

#endif
