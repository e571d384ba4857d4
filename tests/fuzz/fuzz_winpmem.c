/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver tells of itself; the first 8 bytes are what Windows says it uses. */
#include "driver-interface/winpmem.h"
#include "formats/base/bytes.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct winpmem_info i = { 0 };
	struct err e = ERR_INIT;
	uint64_t end = 0;
	enum status st;

	if (size < 8)
		return 0;
	st = winpmem_parse_info(data + 8, size - 8, get_le64(data), &i, &e);
	MUST(st == ST_OK || st == ST_CORRUPT);
	MUST(!st || (e.message[0] && !i.ranges.count));
	MUST(st || (i.ranges.count && (i.kpcrs == 32 || i.kpcrs == 64)));
	MUST(i.ranges.count * 16 <= size && i.build <= 0xffff);
	MUST(i.cr3 % PAGE_SIZE == 0 && i.cr3 < PHYS_LIMIT && i.kernel_base % PAGE_SIZE == 0);
	for (size_t k = 0; k < i.ranges.count; k++) {
		const struct range r = i.ranges.at[k];

		MUST(r.first >= end && r.first % PAGE_SIZE == 0);
		MUST(r.last > r.first && r.last < PHYS_LIMIT && (r.last + 1) % PAGE_SIZE == 0);
		end = r.last + 1;
	}
	winpmem_info_deinit(&i);
	return 0;
}
