/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source "sim", for drv_add_source(): sim.c, or left_out.c in a build with -Dsimulator=false.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_SIMULATOR_H
#define RAMSEAL_AGENT_SIMULATOR_SIMULATOR_H

#include "driver-interface/drv.h"

extern const struct drv_ops sim_ops;

#endif
