/* SPDX-License-Identifier: Apache-2.0 */
/* Where the bytes of raw images belong; file_map.c says how. */
#ifndef RAMSEAL_DRIVER_INTERFACE_FILE_MAP_H
#define RAMSEAL_DRIVER_INTERFACE_FILE_MAP_H

#include "driver-interface/drv.h"

/*
 * A text file that says it; NULL: nobody does. Set before anything is opened. An image that says so
 * itself is refused then.
 */
extern const char *drv_map_file;

/* It is an image of bytes alone: nothing in it says where they belong. */
bool drv_is_raw(const struct drv_info *info);

#endif
