/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/proof/timestamp.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = ERR_INIT;
	struct timestamp t;
	const enum status st = timestamp_parse(data, size, &t, &e);

	MUST(st == ST_OK || st == ST_INPUT);
	MUST(!st == !e.message[0]);
	if (st)
		return 0;
	/* It cannot be over both. */
	MUST(timestamp_check(&t, "hello\n", 6, NULL) || timestamp_check(&t, "hallo\n", 6, NULL));
	return 0;
}
