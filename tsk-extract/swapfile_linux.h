/* SPDX-License-Identifier: Apache-2.0 */
/* A swap file in use on this machine, as its file system and the kernel have it. Internal. */
#ifndef RAMSEAL_TSK_EXTRACT_SWAPFILE_LINUX_H
#define RAMSEAL_TSK_EXTRACT_SWAPFILE_LINUX_H

#include <linux/fiemap.h>

#include "tsk-extract/reader.h"
#include "tsk-extract/slot_map.h"

/*
 * Where the slots of the file lie, and the path of the device that they lie on, to be freed.
 * `in_use`: the bytes that /proc/swaps has for it. ST_INPUT and why, if that cannot be said; then
 * nothing is to be freed. One block of the device is read, the file's header. Nothing is written,
 * and delayed allocations are not forced.
 *
 * The slots are to be read from the device: the kernel writes to them past the file system, for
 * which the extents of a file that fallocate(2) made stay unwritten and read as zeros.
 */
enum status swapfile_map(const char *path, uint64_t in_use, struct slot_map *ret, char **ret_device,
			 struct err *e);

/*
 * Its parts, for tests.
 */

/*
 * Appends `n` extents of FIEMAP. *from: where the next ones begin, at first 0; *last: there are
 * none. ST_INPUT for what is nowhere on the device as it is.
 */
enum status swapfile__take_extents(const struct fiemap_extent *x, size_t n, struct extent_list *to,
				   uint64_t *from, bool *last, struct err *e);

/* True if the device has these bytes where the file's first blocks lie. */
bool swapfile__has_header(struct reader *device, const struct extent_list *blocks,
			  const uint8_t header[static SWAP_HEADER_SIZE]);

#endif
