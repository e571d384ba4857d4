/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/interrupt.h"

#include <stdatomic.h>
#include <stddef.h>

/* Lock-free, and so safe in a handler and between threads (C17 7.14.1.1). */
static _Atomic(const char *) asked_by;

bool interrupt_ask(const char *name)
{
	const char *nobody = NULL;

	return atomic_compare_exchange_strong(&asked_by, &nobody, name);
}

void interrupt_forget(void)
{
	atomic_store(&asked_by, NULL);
}

bool interrupted(void)
{
	return atomic_load(&asked_by) != NULL;
}

const char *interrupt_name(void)
{
	return atomic_load(&asked_by);
}
