/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/iomem: the kernel's own map of physical addresses, and so of RAM.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_IOMEM_H
#define RAMSEAL_DRIVER_INTERFACE_IOMEM_H

#include "formats/base/range.h"

/*
 * Appends every "System RAM", "System RAM (virtio_mem)", "System RAM (kmem)", at any depth, as the
 * text has them: not tidy, ends inclusive. Entries inside a RAM range ("Kernel code") are part of
 * it. Other lines are not checked; a RAM line that makes no sense is ST_CORRUPT with its number.
 * ST_NO_PRIVILEGE if all addresses are hidden (the kernel prints zeros to those without
 * CAP_SYS_ADMIN, kernel/resource.c r_show()), ST_NO_SOURCE if there is no RAM in it.
 */
enum status iomem_parse(const char *text, size_t len, struct range_list *ret, struct err *e);

/* The same for the file, whatever its size. */
enum status iomem_read(struct range_list *ret, struct err *e);

/*
 * The file that iomem_read() reads: "/proc/iomem", or what was set here, for tests and for maps
 * carried over from elsewhere. Borrowed, also by every drv opened later; NULL restores the default.
 */
const char *iomem_path(void);
void iomem_set_path(const char *path);

#endif
