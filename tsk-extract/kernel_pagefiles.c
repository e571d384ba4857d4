/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/kernel_pagefiles.h"

#include <stdlib.h>

#include "formats/base/bytes.h"
#include "tsk-extract/registry.h"

#define ENTRY_SIZE 32
#define AT_TOTAL   4
#define AT_IN_USE  8
#define AT_LENGTH  16
#define AT_NAME    24

struct kernel_pagefiles kernel_pagefiles_begin(const void *list, size_t size, uint64_t base)
{
	return (struct kernel_pagefiles){ .list = list, .size = size, .base = base };
}

/* The entry at k->at, whole with its name, and k->at moved on; NULL: there is none. */
static const uint8_t *take_entry(struct kernel_pagefiles *k, const uint8_t **ret_name)
{
	const uint8_t *entry;
	uint64_t name;
	uint32_t next;

	if (!range_fits(k->at, ENTRY_SIZE, k->size))
		return NULL;
	entry = k->list + k->at;
	name = get_le64(entry + AT_NAME) - k->base;
	if (get_le16(entry + AT_LENGTH) && !range_fits(name, get_le16(entry + AT_LENGTH), k->size))
		return NULL;
	*ret_name = get_le16(entry + AT_LENGTH) ? k->list + name : entry;
	next = get_le32(entry);
	k->at = next && next <= k->size - k->at ? k->at + next : SIZE_MAX;
	return entry;
}

/* The next one that has a name. Those without one have no number here, and take none. */
static const uint8_t *next_named(struct kernel_pagefiles *k, const uint8_t **ret_name)
{
	const uint8_t *entry;

	while ((entry = take_entry(k, ret_name)) && get_le16(entry + AT_LENGTH) < 2)
		k->nameless++;
	return entry;
}

bool kernel_pagefiles_next(struct kernel_pagefiles *k, struct kernel_pagefile *ret,
			   enum status *ret_st)
{
	const uint8_t *name, *entry = next_named(k, &name);

	*ret_st = ST_OK;
	if (!entry)
		return false;
	*ret = (struct kernel_pagefile){
		.name = registry_utf8(name, get_le16(entry + AT_LENGTH) / 2),
		.total = get_le32(entry + AT_TOTAL),
		.in_use = get_le32(entry + AT_IN_USE),
	};
	*ret_st = ret->name ? ST_OK : ST_NOMEM;
	return ret->name != NULL;
}

enum number_origin kernel_pagefiles_origin(struct kernel_pagefiles k)
{
	const uint8_t *name;
	size_t n = 0;

	while (next_named(&k, &name))
		n++;
	return n == 1 ? NUMBER_KNOWN : NUMBER_ASSUMED;
}
