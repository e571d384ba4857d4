/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the bytes of a hive to what it says. The header's checksum is made right, so that mutations
 * are not all refused there; a hive is taken as a SOFTWARE and as a SYSTEM hive at once.
 */
#include <string.h>

#include "agent/collect/host/context.h"
#include "formats/base/bytes.h"
#include "tests/fuzz/fuzz.h"
#include "tsk-extract/hive.h"

#define CHECKSUM 508

static void fix_checksum(uint8_t *hive)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < CHECKSUM; i += 4)
		sum ^= get_le32(hive + i);
	put_le32(hive + CHECKSUM, sum);
}

static void look_around(struct hive *h)
{
	struct registry *r = hive_registry(h);
	struct hive_names names;
	struct hive_mount mount;
	json_t *context = NULL;
	FILE *null = fopen("/dev/null", "w");

	MUST(null);
	hive_pagefiles(h, &names, NULL);
	hive_mount(h, 'c', &mount);
	if (!context_read(r, r, &context, NULL)) {
		MUST(json_is_object(json_object_get(context, "security")));
		context_print(context, null);
		json_decref(context);
	}
	fclose(null);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	struct hive *h = NULL;
	struct mem_blob b;

	MUST(copy);
	memcpy(copy, data, size);
	if (size >= CHECKSUM + 4)
		fix_checksum(copy);
	mem_blob_init(&b, copy, size);
	if (!hive_load_blob(&b.blob, "hive", NULL, &h, NULL))
		look_around(h);
	hive_close(h);
	free(copy);
	return 0;
}
