/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory map in a .vmss or .vmsn, what VMware saves beside a .vmem when a machine is suspended
 * or a snapshot is made: the .vmem has its RAM banks end to end.
 *
 * VMware does not document it. This follows Volatility 3 (2.5, layers/vmware.py) and crash
 * (vmware_vmss.c, written by VMware): a header, groups, and in the group "memory" the tags
 * "regionsCount", "regionPageNum", "regionPPN" and "regionSize", in pages.
 */
#ifndef RAMSEAL_FORMATS_IMAGE_VMSS_H
#define RAMSEAL_FORMATS_IMAGE_VMSS_H

#include "formats/base/io.h"

/* All in bytes. */
struct vmss_region {
	uint64_t offset;  /* in the .vmem */
	uint64_t address; /* of memory */
	uint64_t size;
};

/* VMware writes two or three; more than this is invalid. */
#define VMSS_REGIONS_MAX 64

struct vmss_map {
	struct vmss_region at[VMSS_REGIONS_MAX];
	size_t count; /* 0: all of the memory is one region, which begins at 0 */
};

/* ST_NOT_MINE: not such a file. ST_CORRUPT: its map makes no sense. */
enum status vmss_read(struct blob *b, struct vmss_map *ret, struct err *e);

#endif
