/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the Linux devices share, on top of source.h.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_LINUX_H
#define RAMSEAL_DRIVER_INTERFACE_LINUX_H

#include "driver-interface/source.h"

/* A source that is a descriptor and nothing else. */
struct fd_drv {
	struct drv drv;
	int fd;
	bool zeros_in_low_memory; /* devmem's: the kernel hides RAM below 1 MiB */
};

/*
 * Opens for reading. ST_NO_SOURCE if nothing is there (with `missing`, which says what to do about
 * it, or NULL), ST_NO_PRIVILEGE if we may not: the message names kernel lockdown if that is on.
 */
enum status linux_open(const char *path, const char *missing, int *ret, struct err *e);

/*
 * "kernel lockdown (confidentiality mode) forbids it" where lockdown is on, else "run as root".
 * Static.
 */
const char *linux_refusal(void);

/* drv__init(), the device opened, and /proc/iomem as maps[0]. */
enum status linux_open_device(const struct drv_ops *ops, const char *path, const char *missing,
			      struct fd_drv **ret, struct err *e);
void linux_close_device(struct drv *d);

#endif
