/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A raw image: the byte at physical address A stands at offset A. Holes between ranges and pages of
 * zeros become holes in the file, if the file system supports that.
 */
#ifndef RAMSEAL_FORMATS_RAW_H
#define RAMSEAL_FORMATS_RAW_H

#include "formats/image/image.h"

extern const struct image_format raw_format;

#endif
