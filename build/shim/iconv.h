/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As much of POSIX iconv() as libhivex calls: between UTF-8, UTF-16LE and Latin-1. Windows has none,
 * and Debian no library for it.
 */
#ifndef SHIM_ICONV_H
#define SHIM_ICONV_H

#include <stddef.h>

/* libhivex keeps it as an iconv_t *, which gcc 14 takes for no type of ours. */
typedef void *iconv_t;

/* (iconv_t)-1 with EINVAL for any other encoding. */
iconv_t iconv_open(const char *to, const char *from);
/*
 * As POSIX says, but for the number of irreversible conversions: there are none, what cannot be
 * written in the target's encoding is EILSEQ.
 */
size_t iconv(iconv_t c, char **in, size_t *in_left, char **out, size_t *out_left);
int iconv_close(iconv_t c);

#endif
