/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/source.h"

const struct drv_ops *const drv_table[] = { &file_ops, NULL };
