/* SPDX-License-Identifier: Apache-2.0 */
/* A swap file in use on this machine, according to its file system and the kernel. Internal. */
#ifndef RAMSEAL_TSK_EXTRACT_SWAPFILE_LINUX_H
#define RAMSEAL_TSK_EXTRACT_SWAPFILE_LINUX_H

#include <linux/fiemap.h>

#include "tsk-extract/reader.h"
#include "tsk-extract/slot_map.h"

/*
 * The location of the file's slots, and the path of their device, to be freed. `in_use`: its bytes
 * in /proc/swaps. ST_INPUT, with the reason, if that is not known; then there is nothing to free.
 * Reads one block of the device, the file's header. Writes nothing, and does not force delayed
 * allocations.
 *
 * Read the slots from the device: the kernel bypasses the file system, to which the extents of a
 * file made with fallocate(2) stay unwritten and read as zeros.
 */
enum status swapfile_map(const char *path, uint64_t in_use, struct slot_map *ret, char **ret_device,
			 struct err *e);

/*
 * Its parts, for tests.
 */

/*
 * Appends `n` extents of FIEMAP. *from: where the next ones begin, 0 at first; *last: there are no
 * more. ST_INPUT for extents that are not on the device as they are.
 */
enum status swapfile__take_extents(const struct fiemap_extent *x, size_t n, struct extent_list *to,
				   uint64_t *from, bool *last, struct err *e);

/* True if the device has these bytes at the file's first blocks. */
bool swapfile__has_header(struct reader *device, const struct extent_list *blocks,
			  const uint8_t header[static SWAP_HEADER_SIZE]);

#endif
