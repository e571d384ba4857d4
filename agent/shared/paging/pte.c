/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/paging/pte.h"

const char *pte_state_name(enum pte_state s)
{
	static const char *const names[PTE_STATES] = {
#define X(name, text) [name] = text,
		PTE_STATE_MAP(X)
#undef X
	};

	return (unsigned)s < PTE_STATES ? names[s] : "?";
}
