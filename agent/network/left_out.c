/* SPDX-License-Identifier: Apache-2.0 */
/* What stands for this folder in a program that is built with -Dnetwork=false. */
#include "agent/network/network.h"
#include "agent/network/remote.h"

bool network_built_in(void)
{
	return false;
}

const struct remote_ops *const remote_kinds[] = { NULL };
