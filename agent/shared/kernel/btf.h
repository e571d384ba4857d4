/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BTF, the kernel's own description of its types (include/uapi/linux/btf.h, version 1): just enough
 * to ask where a member lies. The bytes come from memory that others control, and nothing in them
 * is believed.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_BTF_H
#define RAMSEAL_AGENT_SHARED_KERNEL_BTF_H

#include <stdbool.h>

#include "formats/base/err.h"

/* As a kernel has it: 5 MB in Debian's 6.1. */
#define BTF_SIZE_MAX ((size_t)64 << 20)

struct btf {
	const uint8_t *types;
	size_t types_len;
	const char *strings; /* strings_len bytes, the last of them NUL */
	size_t strings_len;
	uint32_t *offsets; /* of type 1 .. count within `types` */
	uint32_t count;
};

/* `p` is borrowed until btf_deinit(). ST_CORRUPT if it is not BTF, or cut short. */
enum status btf_init(struct btf *b, const void *p, size_t len, struct err *e);
void btf_deinit(struct btf *b);

/* The size that a header claims for the whole, from its first 24 bytes; 0 if it is no header. */
#define BTF_HEADER_SIZE 24
size_t btf_claimed_size(const void *header);

/*
 * Where `member` lies in `struct type`, in bytes, also if it is within anonymous structures and
 * unions. `member` may be a path: "thread.sp". False if there is none, or it is a bit field.
 */
bool btf_offset(const struct btf *b, const char *type, const char *member, uint32_t *ret);

/* The value of an enumerator, whatever its enumeration is called. False if there is none. */
bool btf_enumerator(const struct btf *b, const char *name, uint32_t *ret);

/* How many elements the array has that is this member of `struct type`. False if it is none. */
bool btf_elements(const struct btf *b, const char *type, const char *member, uint32_t *ret);

/* sizeof(struct type). */
bool btf_size(const struct btf *b, const char *type, uint32_t *ret);

#endif
