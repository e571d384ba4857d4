/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/random.h"

#include "formats/base/bcrypt.h"

enum status random_bytes(void *p, size_t len, struct err *e)
{
	struct bcrypt dll;
	NTSTATUS failed;
	const enum status st = bcrypt_load(&dll, e);

	if (st)
		return st;
	failed = dll.BCryptGenRandom(NULL, p, (ULONG)len, BCRYPT_USE_SYSTEM_PREFERRED_RNG);
	if (BCRYPT_SUCCESS(failed))
		return ST_OK;
	return err_set(e, ST_SYSTEM, "no random numbers: status 0x%08lx", (unsigned long)failed);
}
