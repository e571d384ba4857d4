/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image/elf_core.h"
#include "tests/fuzz/fuzz.h"

/* Touches every byte, so that the sanitizers see one that is not there. */
static void touch(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		(void)*(const volatile uint8_t *)(p + i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = ERR_INIT;
	struct elf_core c;
	struct mem_blob b;

	mem_blob_init(&b, data, size);
	const enum status st = elf_core_init(&c, &b.blob, &e);
	MUST(!st || e.message[0]);
	/* Overlapping notes may be counted twice, never more often than there are headers. */
	MUST(c.n_loads <= size / (c.xen ? sizeof(uint64_t) : ELF_PHDR_SIZE) &&
	     c.notes_size <= ELF_NOTES_MAX);
	for (size_t i = 0; i < c.n_loads; i++)
		MUST(c.loads[i].memsz && c.loads[i].filesz <= c.loads[i].memsz);

	size_t len = 0;
	uint64_t hex;
	int64_t decimal;
	const uint8_t *text = elf_note_find(c.notes, c.notes_size, "VMCOREINFO", &len);
	if (text) {
		touch(text, len);
		vmcoreinfo_hex(text, len, "SYMBOL(_stext)", &hex);
		vmcoreinfo_decimal(text, len, "NUMBER(phys_base)", &decimal);
	}
	/* The text parsers alone, over anything. */
	vmcoreinfo_hex(data, size, "KERNELOFFSET", &hex);
	vmcoreinfo_decimal(data, size, "K", &decimal);
	text = elf_note_find(data, size, "VMCOREINFO", &len);
	if (text)
		touch(text, len);
	elf_core_deinit(&c);
	return 0;
}
