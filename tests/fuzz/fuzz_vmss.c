/* SPDX-License-Identifier: Apache-2.0 */
/* A .vmss or .vmsn, as it comes. */
#include "formats/base/range.h"
#include "formats/image/vmss.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vmss_map map;
	struct mem_blob b;

	mem_blob_init(&b, data, size);
	if (vmss_read(&b.blob, &map, NULL))
		return 0;
	MUST(map.count <= VMSS_REGIONS_MAX);
	for (size_t i = 0; i < map.count; i++) {
		MUST(map.at[i].size && map.at[i].size <= PHYS_LIMIT);
		MUST(map.at[i].address <= PHYS_LIMIT && map.at[i].offset <= PHYS_LIMIT);
	}
	return 0;
}
