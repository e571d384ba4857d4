/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever is read as a statement is what would be written for it, byte by byte. */
#include <string.h>

#include "formats/proof/statement.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char again[STATEMENT_MAX];
	struct err e = ERR_INIT;
	struct statement s;
	const enum status st = statement_parse(data, size, &s, &e);

	MUST(st == ST_OK || st == ST_INPUT);
	MUST(!st || e.message[0]);
	if (st)
		return 0;
	MUST(s.has_root == (s.outcome != STATEMENT_UNSEALED));
	MUST(statement_write(&s, again) == size && !memcmp(again, data, size));
	return 0;
}
