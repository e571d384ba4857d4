/* SPDX-License-Identifier: Apache-2.0 */
/* ISF files and PDBs, which symbols_open() tells apart. */
#include <string.h>

#include "formats/symbols/symbols.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const fields[] = { "Left",           "Node", "Node.Right",
					      "Loop.Loop.Prot", "Prot", "Last" };
	struct symbols_field f;
	struct err e = ERR_INIT;
	struct symbols_id id;
	struct symbols *s;
	struct mem_blob b;
	const char *name;
	uint64_t bytes;
	uint32_t rva;

	mem_blob_init(&b, data, size);
	const enum status st = symbols_open(&b.blob, &s, &e);
	MUST(st == ST_OK || st == ST_INPUT);
	MUST(!st || e.message[0]);
	if (st)
		return 0;
	if (symbols_id(s, &id))
		MUST(strlen(id.guid) == SYMBOLS_GUID_SIZE - 1);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (symbols_field(s, "_VAD", fields[i], &f))
			MUST(f.bit + f.bits <= 64);
	symbols_size(s, "_VAD", &bytes);
	symbols_address(s, "SmGlobals", &rva);
	if (symbols_name(s, 0x5020, &name, &rva))
		MUST(name && rva <= 0x5020);
	symbols_close(s);
	return 0;
}
