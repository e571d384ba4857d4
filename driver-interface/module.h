/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by devices of third-party kernel modules, which are read by a separate process
 * (reader_process.h).
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_MODULE_H
#define RAMSEAL_DRIVER_INTERFACE_MODULE_H

#include "driver-interface/linux.h"
#include "driver-interface/reader_process.h"

struct module_drv {
	struct linux_drv base;
	struct reader_process *reader;
	struct reader_opening how;
};

/*
 * The device opened, /proc/iomem as maps[0], and /proc/kpageflags. `missing` as in linux_open().
 * ST_NOT_MINE if begin() found that the device does not know its request; other errors are in the
 * message.
 */
enum status module_open(const struct drv_ops *ops, const struct reader_device *device,
			const char *path, const char *missing, struct module_drv **ret,
			struct err *e);

/* drv_ops.read and drv_ops.close. */
struct drv_result module_read(struct drv *d, uint64_t addr, void *buf, size_t len);
void module_close(struct drv *d);

/* Common to all their drv_ops. */
#define MODULE_OPS                                                                                 \
	.read_max = DRV_READ_PAGES, .withhold = linux_withhold, .maps_again = linux_maps_again,    \
	.close = module_close

#endif
