/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/resource_list.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct range_list l = { 0 };
	struct err e = ERR_INIT;
	const enum status st = resource_list_parse(data, size, &l, &e);

	MUST(!st || e.message[0]);
	MUST(st == ST_OK || st == ST_CORRUPT || st == ST_NO_SOURCE);
	MUST(st || l.count);
	/* A descriptor is 20 bytes. */
	MUST(l.count <= size / 20);
	for (size_t i = 0; i < l.count; i++)
		MUST(l.at[i].first <= l.at[i].last);
	range_list_deinit(&l);
	return 0;
}
