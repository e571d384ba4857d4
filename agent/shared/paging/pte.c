/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/paging/pte.h"

const char *pte_state_name(enum pte_state s)
{
	return NAME_IN(PTE_STATE_MAP, s, "?");
}
