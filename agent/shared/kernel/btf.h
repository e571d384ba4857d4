/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BTF, the kernel's own description of its types (include/uapi/linux/btf.h, version 1): just enough
 * to find the offset of a member. The bytes come from memory that others control, and are
 * untrusted.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_BTF_H
#define RAMSEAL_AGENT_SHARED_KERNEL_BTF_H

#include <stdbool.h>

#include "formats/base/err.h"

/* A kernel's own has 5 MB in Debian's 6.1. */
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

/* The total size that a header claims in its first 24 bytes; 0 if it is not a header. */
#define BTF_HEADER_SIZE 24
size_t btf_claimed_size(const void *header);

/*
 * The offset of `member` in `struct type` in bytes, even inside anonymous structures and unions.
 * `member` may be a path: "thread.sp". False if there is none or it is a bit field.
 */
bool btf_offset(const struct btf *b, const char *type, const char *member, uint32_t *ret);

/* The value of an enumerator of any enumeration. False if there is none. */
bool btf_enumerator(const struct btf *b, const char *name, uint32_t *ret);

/* The number of elements of this array member of `struct type`. False if it is not an array. */
bool btf_elements(const struct btf *b, const char *type, const char *member, uint32_t *ret);

/* sizeof(struct type). */
bool btf_size(const struct btf *b, const char *type, uint32_t *ret);

#endif
