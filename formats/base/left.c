/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/left.h"

#include <stdatomic.h>
#include <stdlib.h>

struct left {
	struct left *next;
	void *at;
};

static _Atomic(struct left *) all;

void left_keep(void *p)
{
	struct left *l = p ? malloc(sizeof(*l)) : NULL;

	if (!l)
		return;
	*l = (struct left){ .next = atomic_load(&all), .at = p };
	while (!atomic_compare_exchange_weak(&all, &l->next, l))
		;
}
