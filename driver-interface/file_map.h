/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of a raw image's bytes; file_map.c has the format. */
#ifndef RAMSEAL_DRIVER_INTERFACE_FILE_MAP_H
#define RAMSEAL_DRIVER_INTERFACE_FILE_MAP_H

#include "driver-interface/drv.h"

/*
 * A text file with the addresses, or NULL. Set it before anything is opened. An image that has its
 * own addresses is then refused.
 */
extern const char *drv_map_file;

/* True for an image without addresses of its own. */
bool drv_is_raw(const struct drv_info *info);

#endif
