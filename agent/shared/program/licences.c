/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/licences.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

enum status licences_print(FILE *to, struct err *e)
{
	_cleanup_free_ char *text = malloc(licences_size);
	size_t n;

	if (!text)
		return err_nomem(e);
	n = ZSTD_decompress(text, licences_size, licences_packed, licences_packed_size);
	if (ZSTD_isError(n) || n != licences_size)
		return err_set(e, ST_CORRUPT, "the licences in this executable are damaged");
	errno = 0;
	if (fwrite(text, 1, n, to) != n)
		return err_from_errno(e, ST_OUTPUT, errno ? errno : EIO, "stdout");
	return ST_OK;
}
