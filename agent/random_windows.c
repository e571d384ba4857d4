/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/random.h"

#include <windows.h>

#include <bcrypt.h>

enum status random_bytes(void *p, size_t len, struct err *e)
{
	const NTSTATUS failed =
		BCryptGenRandom(NULL, p, (ULONG)len, BCRYPT_USE_SYSTEM_PREFERRED_RNG);

	if (BCRYPT_SUCCESS(failed))
		return ST_OK;
	return err_set(e, ST_SYSTEM, "no random numbers: status 0x%08lx", (unsigned long)failed);
}
