/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/output/cage_command.h"

/*
 * A restricted token and a job object hold a process from its start, so that it would have to be
 * another one, with the files that are open already; SetProcessMitigationPolicy() alone takes no
 * file away. That is not there yet.
 */
void cage_command(const struct cli *cli, bool by_name)
{
}
