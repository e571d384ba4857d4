/* SPDX-License-Identifier: Apache-2.0 */
/* Maps btrfs's logical addresses to the device. Internal: for swapfile_linux.c. */
#ifndef RAMSEAL_TSK_EXTRACT_BTRFS_LINUX_H
#define RAMSEAL_TSK_EXTRACT_BTRFS_LINUX_H

#include <linux/btrfs.h>

#include "tsk-extract/extent.h"

/*
 * FIEMAP gives logical addresses on btrfs (extent_fiemap() in fs/btrfs/extent_io.c of Linux 6.1).
 * Turns those in `blocks`, all of kind EXTENT_DISK, into addresses on the device, and returns the
 * device's path, to be freed. `fd`: a file of that file system. ST_INPUT for what swapon refuses
 * (btrfs_swap_activate()): more than one device, a profile other than "single"; or, without
 * CAP_SYS_ADMIN, because the chunks cannot be read.
 */
enum status btrfs_place(int fd, struct extent_list *blocks, char **ret_device, struct err *e);

/*
 * Its parts, for tests.
 */

/* A chunk: a range of logical addresses, and its place if there is only one. */
struct btrfs_place {
	uint64_t logical;
	uint64_t length;
	uint64_t profile; /* bits of BTRFS_BLOCK_GROUP_PROFILE_MASK; 0: "single" */
	uint64_t device;
	uint64_t physical;
};

/* Zero-initialise; .at is the caller's to free. */
struct btrfs_chunks {
	struct btrfs_place *at;
	size_t count;
	size_t room;
};

/*
 * Appends the chunks that a search has found (BTRFS_IOC_TREE_SEARCH; struct btrfs_chunk in
 * linux/btrfs_tree.h). *last: the address of the last one; the next search continues after it.
 */
enum status btrfs__take_items(struct btrfs_chunks *to, const struct btrfs_ioctl_search_args *a,
			      uint64_t *last, struct err *e);
enum status btrfs__place_all(const struct btrfs_chunks *l, struct extent_list *blocks,
			     uint64_t *ret_device, struct err *e);

#endif
