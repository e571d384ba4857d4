/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between Windows' strings and C's. */
#ifndef WINPMEM_KERNEL_NT_STRINGS_H
#define WINPMEM_KERNEL_NT_STRINGS_H

#include "kernel.h"

/* The text stays the caller's. */
struct unicode_string nt_string(wchar *text);

/* Cuts what does not fit, and turns what is not ASCII into question marks. NULL is empty. */
void nt_to_ascii(const struct unicode_string *s, char *ret, size_t room);

#endif
