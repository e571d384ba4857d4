/* SPDX-License-Identifier: Apache-2.0 */
/* What stands for sim.c in a build with -Dsimulator=false. */
#include "agent/simulator/simulator.h"

static enum status sim_left_out(const char *path, struct drv **ret, struct err *e)
{
	return err_set(e, ST_NO_SOURCE, "this ramseal was built without simulated machines");
}

const struct drv_ops sim_ops = {
	.name = "sim",
	.summary = "left out of this build",
	.kind = DRV_DEAD,
	.reason = "a machine that does not exist",
	.open = sim_left_out,
};
