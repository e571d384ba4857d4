/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/kcore as one reader has it open: its segments, and which of them are RAM. The kernel has
 * one buffer for each time that it was opened (file->private_data: open_kcore(), and
 * read_kcore_iter(), which copies through it; 6.12), without a lock: two concurrent reads from one
 * descriptor get each other's pages. So each reading thread has its own.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_KCORE_VIEW_H
#define RAMSEAL_DRIVER_INTERFACE_KCORE_VIEW_H

#include "driver-interface/direct_map.h"
#include "driver-interface/extents.h"
#include "formats/base/io.h"

/* Zero-initialise, but for file.fd, which is -1 until it is open. */
struct kcore_view {
	struct drv *of; /* the source it belongs to, for its maps and its failure */
	struct file_blob file;
	struct elf_core core;
	struct extents ram;
	uint16_t phnum;         /* of the headers that `ram` is from */
	uint64_t direct;        /* virtual address of physical address 0; 0: not known */
	struct direct_map *map; /* NULL: its tables are not known; freed with it */
};

/* Opens the file and reads its headers: ST_NO_SOURCE, ST_NO_PRIVILEGE, ST_CORRUPT. */
enum status kcore_view_open(struct kcore_view *v, struct drv *of, const char *path, struct err *e);
void kcore_view_deinit(struct kcore_view *v);

/*
 * Opens the same file for another reader; NULL on failure. `as` does not change and stays in use.
 */
struct kcore_view *kcore_view_again(const struct kcore_view *as);
void kcore_view_destroy(struct kcore_view *v); /* NULL is fine */

/* Finds RAM in the segments, and appends it to `map`. `iomem` is empty if it could not be read. */
enum status kcore_view_find_ram(struct kcore_view *v, const struct range_list *iomem,
				struct range_list *map, struct err *e);

/*
 * As drv_ops.read(), but with zeros and no error for what the kernel cannot or will not read. `arg`
 * is a struct kcore_view.
 */
struct drv_result kcore_view_segments(void *arg, uint64_t addr, void *buf, size_t len);

/* As drv_ops.read(): if the direct map is known, its holes are errors. */
struct drv_result kcore_view_read(struct kcore_view *v, uint64_t addr, void *buf, size_t len);

#endif
