/* SPDX-License-Identifier: Apache-2.0 */
/* What stands for this folder in a program that is built with -Dnetwork=false. */
#include "agent/network/network.h"

bool network_built_in(void)
{
	return false;
}
