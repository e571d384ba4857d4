/* SPDX-License-Identifier: Apache-2.0 */
/* The order of preference on Windows. "file" is never automatic. */
#include "driver-interface/source.h"

const struct drv_ops *const drv_table[] = { &file_ops, NULL };
