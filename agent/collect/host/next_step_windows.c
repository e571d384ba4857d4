/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/next_step.h"

/* What the driver or the rights of this process lack, the reasons say already. */
const char *next_step_text(const struct next_step_facts *f)
{
	return "'ramseal check' says which driver to get; or, if this is a virtual machine, have "
	       "its hypervisor write a dump, and read that with --source file:DUMP";
}

const char *host_next_step(void)
{
	return next_step_text(&(struct next_step_facts){ 0 });
}
