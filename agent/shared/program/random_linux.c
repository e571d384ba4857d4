/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/random.h"

#include <errno.h>
#include <sys/random.h>

/* Up to 256 bytes come at once or not at all (getrandom(2)). */
enum status random_bytes(void *p, size_t len, struct err *e)
{
	if (getrandom(p, len, 0) == (ssize_t)len)
		return ST_OK;
	return err_from_errno(e, ST_SYSTEM, errno, "no random numbers");
}
