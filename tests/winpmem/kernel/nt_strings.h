/* SPDX-License-Identifier: Apache-2.0 */
/* Between Windows' strings and the kernel's own. */
#ifndef WINPMEM_KERNEL_NT_STRINGS_H
#define WINPMEM_KERNEL_NT_STRINGS_H

#include "kernel.h"

/* The text stays the caller's. */
struct unicode_string nt_string(wchar *text);

/* Cut if it does not fit; what is not ASCII becomes a question mark. NULL is empty. */
void nt_to_ascii(const struct unicode_string *s, char *ret, size_t room);

#endif
