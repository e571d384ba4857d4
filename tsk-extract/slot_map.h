/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which part of a swap file each of its slots is. Linux numbers the slots of a swap partition by
 * their offset, but those of a swap file by its blocks on the device: swapon goes through the
 * file's physical extents in the order of the file, joins those that are adjacent on the device,
 * and numbers the whole, aligned pages of each. If blocks are smaller than a page (ext4 with 1 or 2
 * KiB, XFS), the ends of an extent that do not fill a page are left out, and from there on slot n
 * is not at offset n * 4096 of the file.
 *
 * Sources, read in Linux 6.1.192 and 6.12.117: setup_swap_extents() in mm/swapfile.c calls
 *	fs/iomap/swapfile.c, iomap_swapfile_add_extent() (XFS, and ext4 in both);
 *	fs/btrfs/inode.c, btrfs_add_swap_extent(), which does the same with its own extents;
 *	mm/page_io.c, generic_swapfile_activate(), for file systems without swap_activate(): block
 *	by block, with the same pages in the same order.
 * The limits of a file are in its header (read_swap_header()): last_page, and no bad pages.
 */
#ifndef RAMSEAL_TSK_EXTRACT_SLOT_MAP_H
#define RAMSEAL_TSK_EXTRACT_SLOT_MAP_H

#include "tsk-extract/extent.h"

/* Zero-initialise; slot_map_deinit() frees and zeroes. */
struct slot_map {
	/* Including slot 0, which is never used; 0: the positions are not known. */
	uint64_t slots;
	/*
	 * The whole file, without gaps. `file`: PAGE_SIZE times the slot, and after the last slot
	 * the parts that are not slots, in the order of the file. `disk`: bytes on the file
	 * system's device.
	 */
	struct extent_list extents;
	size_t fragments; /* pieces of the file */
};

void slot_map_deinit(struct slot_map *m);

/* Facts about a swap file besides its extents. */
struct slot_facts {
	uint64_t size;      /* bytes of the file */
	uint64_t last_page; /* from its header */
	uint64_t in_use;    /* bytes: the size in /proc/swaps, without slot 0 */
};

/*
 * `blocks`: the file's location on the device, settled (extent.h) for its size. ST_INPUT, with the
 * reason, if it has holes, or if the number of slots differs from the kernel's.
 */
enum status slot_map_make(const struct extent_list *blocks, const struct slot_facts *facts,
			  struct slot_map *ret, struct err *e);

bool slot_map_same(const struct slot_map *a, const struct slot_map *b);

/* Layout of the header: union swap_header in include/linux/swap.h, of both versions above. */
#define SWAP_HEADER_SIZE 4096

/* `last_page` of a file's first SWAP_HEADER_SIZE bytes. ST_INPUT if swapon would reject them. */
enum status swap_header_parse(const uint8_t *header, uint64_t *ret_last_page, struct err *e);

#endif
