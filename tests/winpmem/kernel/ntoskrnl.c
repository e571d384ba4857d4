/* SPDX-License-Identifier: Apache-2.0 */
#include "ntoskrnl.h"

#include "gate.h"
#include "image.h"

#define HEADERS_SIZE 0x4000
#define PE_AT        0x80
#define EXPORTS_AT   0x400

struct pe_exports {
	uint32_t characteristics, time;
	uint16_t major, minor;
	uint32_t name, base, functions, names;
	uint32_t addresses, name_addresses, ordinals;
};

static uint8_t headers[HEADERS_SIZE] __attribute__((section(".nt_headers"), aligned(PAGE_SIZE)));

static uint32_t rva(const void *at)
{
	return (uint32_t)((const uint8_t *)at - nt_image);
}

static char *put_text(char *to, const char *text)
{
	memcpy(to, text, strlen(text) + 1);
	return to + strlen(text) + 1;
}

/* Writes the directory, its three tables, and the names. */
static uint32_t put_exports(unsigned count)
{
	struct pe_exports *const e = (struct pe_exports *)(headers + EXPORTS_AT);
	uint32_t *const addresses = (uint32_t *)(e + 1);
	uint32_t *const names = addresses + count;
	uint16_t *const ordinals = (uint16_t *)(names + count);
	char *text = (char *)(ordinals + count);

	*e = (struct pe_exports){
		.name = rva(text),
		.base = 1,
		.functions = count,
		.names = count,
		.addresses = rva(addresses),
		.name_addresses = rva(names),
		.ordinals = rva(ordinals),
	};
	text = put_text(text, "ntoskrnl.exe");
	for (unsigned i = 0; i < count; i++) {
		const char *const name = export_at(i)->name;

		if ((uint8_t *)text + strlen(name) >= headers + sizeof(headers))
			bug_check(NULL, HOST_CANNOT, count, 0, 0, 0);
		addresses[i] = rva(export_address(name));
		names[i] = rva(text);
		ordinals[i] = (uint16_t)i;
		text = put_text(text, name);
	}
	return rva(text) - EXPORTS_AT;
}

void ntoskrnl_show(bool on)
{
	*(uint16_t *)headers = on ? DOS_SIGNATURE : 0;
}

void ntoskrnl_init(void)
{
	struct pe_headers *const h = (struct pe_headers *)(headers + PE_AT);

	ntoskrnl_show(true);
	*(uint32_t *)(headers + DOS_HEADER_AT) = PE_AT;
	h->signature = PE_SIGNATURE;
	h->file.machine = PE_MACHINE_AMD64;
	h->file.optional_size = sizeof(h->optional);
	h->optional.magic = PE_MAGIC_64;
	h->optional.image_base = (uint64_t)nt_image;
	h->optional.section_alignment = PAGE_SIZE;
	h->optional.image_size = rva(kernel_end);
	h->optional.headers_size = HEADERS_SIZE;
	h->optional.subsystem = PE_NATIVE;
	h->optional.directories = PE_DIRECTORIES;
	h->optional.directory[PE_DIRECTORY_EXPORT] =
		(struct pe_directory){ EXPORTS_AT, put_exports(exports_count()) };
}
