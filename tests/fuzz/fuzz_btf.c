/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/shared/kernel/btf.h"
#include "agent/shared/kernel/processes.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = ERR_INIT;
	struct linux_offsets o;
	struct btf b;
	const enum status st = btf_init(&b, data, size, &e);
	uint32_t off;

	MUST(st == ST_OK || (st == ST_CORRUPT && e.message[0]));
	if (!st) {
		MUST(b.types_len <= size && b.strings_len <= size && b.count <= size / 12);
		linux_offsets_from_btf(&o, &b);
		btf_offset(&b, "task_struct", "tasks.prev.x", &off);
		btf_offset(&b, "", "", &off);
		btf_size(&b, "task_struct", &off);
	}
	btf_deinit(&b);
	return 0;
}
