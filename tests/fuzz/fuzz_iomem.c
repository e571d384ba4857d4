/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/iomem.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct range_list l = { 0 };
	struct err e = ERR_INIT;
	const enum status st = iomem_parse((const char *)data, size, &l, &e);

	MUST(!st || e.message[0]);
	MUST(st || l.count);
	for (size_t i = 0; i < l.count; i++)
		MUST(l.at[i].first <= l.at[i].last);
	/* And the rules of a tidy map, whatever the ranges were. */
	range_list_tidy(&l, NULL);
	for (size_t i = 0; i < l.count; i++) {
		MUST(l.at[i].first % PAGE_SIZE == 0 && (l.at[i].last + 1) % PAGE_SIZE == 0);
		MUST(l.at[i].first < l.at[i].last && l.at[i].last < PHYS_LIMIT);
		MUST(!i || l.at[i].first > l.at[i - 1].last);
	}
	range_list_deinit(&l);
	return 0;
}
