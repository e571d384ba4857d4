/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/kernel_pagefiles.h"

#include "tsk-extract/registry.h"

struct kernel_pagefiles kernel_pagefiles_begin(const void *list, size_t size, uint64_t base)
{
	return (struct kernel_pagefiles){ .list = { list, size, base, 0 } };
}

/* The next one that has a name. Those without one have no number here, and take none. */
static bool next_named(struct kernel_pagefiles *k, struct nt_page_file *ret)
{
	while (nt_page_file_next(&k->list, ret)) {
		if (ret->name.len)
			return true;
		k->nameless++;
	}
	return false;
}

bool kernel_pagefiles_next(struct kernel_pagefiles *k, struct kernel_pagefile *ret,
			   enum status *ret_st)
{
	struct nt_page_file f;

	*ret_st = ST_OK;
	if (!next_named(k, &f))
		return false;
	*ret = (struct kernel_pagefile){
		.name = registry_utf8(f.name.at, f.name.len / 2),
		.total = f.total,
		.in_use = f.in_use,
	};
	*ret_st = ret->name ? ST_OK : ST_NOMEM;
	return ret->name != NULL;
}

enum number_origin kernel_pagefiles_origin(struct kernel_pagefiles k)
{
	struct nt_page_file f;
	size_t n = 0;

	while (next_named(&k, &f))
		n++;
	return n == 1 ? NUMBER_KNOWN : NUMBER_ASSUMED;
}
