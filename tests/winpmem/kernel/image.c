/* SPDX-License-Identifier: Apache-2.0 */
#include "image.h"

#include "cpu.h"
#include "gate.h"
#include "paging.h"

#define IMAGES_MAX     4
#define IMAGE_GAP      0x100000 /* between images */
#define IMAGE_SLOTS    64

#define RELOC_ABSOLUTE 0
#define RELOC_DIR64    10

#define IMPORT_ORDINAL ((uint64_t)1 << 63)

struct pe_import {
	uint32_t names, time, forwarder, dll, addresses;
};

struct pe_reloc_block {
	uint32_t rva, size;
	uint16_t entry[];
};

static struct image *images[IMAGES_MAX];
static unsigned next_slot;

const struct image *image_at(uint64_t address)
{
	for (unsigned i = 0; i < IMAGES_MAX; i++)
		if (images[i] && address >= images[i]->base &&
		    address - images[i]->base < images[i]->pages * PAGE_SIZE)
			return images[i];
	return NULL;
}

bool image_contains(uint64_t address)
{
	return image_at(address) != NULL;
}

/* --- checks --- */

static const struct pe_headers *headers_of(const uint8_t *file, size_t len)
{
	uint32_t at;
	const struct pe_headers *h;

	if (len < DOS_HEADER_AT + 4 || file[0] != (DOS_SIGNATURE & 0xff) ||
	    file[1] != DOS_SIGNATURE >> 8)
		return NULL;
	memcpy(&at, file + DOS_HEADER_AT, 4);
	if (at > len || len - at < sizeof(*h))
		return NULL;
	h = (const struct pe_headers *)(file + at);
	if (h->signature != PE_SIGNATURE || h->file.machine != PE_MACHINE_AMD64 ||
	    h->optional.magic != PE_MAGIC_64 || h->optional.subsystem != PE_NATIVE ||
	    h->optional.section_alignment != PAGE_SIZE ||
	    h->optional.image_size > IMAGE_PAGES_MAX * PAGE_SIZE || h->optional.headers_size > len)
		return NULL;
	return h;
}

/*
 * As CheckSumMappedFile(): the sum of all 16-bit words except the checksum itself, plus the length.
 */
static uint32_t checksum_of(const uint8_t *file, size_t len, const uint8_t *own)
{
	const size_t skip = (size_t)(own - file);
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i += 2) {
		if (i >= skip && i < skip + 4)
			continue;
		sum += file[i] | (i + 1 < len ? (uint32_t)file[i + 1] << 8 : 0);
		sum = (sum & 0xffff) + (sum >> 16);
	}
	sum = (sum & 0xffff) + (sum >> 16);
	return sum + (uint32_t)len;
}

static const struct pe_section *sections(const struct pe_headers *h)
{
	return (const struct pe_section *)((const uint8_t *)&h->optional + h->file.optional_size);
}

/* --- mapping --- */

static unsigned protection(uint32_t characteristics)
{
	return (characteristics & PE_SECTION_WRITE ? MAP_WRITE : 0) |
	       (characteristics & PE_SECTION_EXECUTE ? MAP_EXECUTE : 0);
}

static bool copy_sections(const uint8_t *file, size_t len, const struct pe_headers *h,
			  const struct image *image)
{
	const struct pe_section *s = sections(h);

	memcpy(image_rva(image, 0), file, h->optional.headers_size);
	for (unsigned i = 0; i < h->file.sections; i++, s++) {
		if (s->raw > len || s->raw_size > len - s->raw ||
		    s->rva > image->pages * PAGE_SIZE ||
		    s->raw_size > image->pages * PAGE_SIZE - s->rva)
			return false;
		memcpy(image_rva(image, s->rva), file + s->raw, s->raw_size);
	}
	return true;
}

static void protect_sections(const struct image *image)
{
	const struct pe_section *s = sections(image->headers);

	map_protect(image->base, 0);
	for (unsigned i = 0; i < image->headers->file.sections; i++, s++)
		for (uint32_t at = 0; at < s->virtual_size; at += PAGE_SIZE)
			map_protect(image->base + s->rva + at, protection(s->characteristics));
}

static bool relocate(const struct image *image)
{
	const struct pe_directory *const d =
		&image->headers->optional.directory[PE_DIRECTORY_RELOC];
	const uint64_t delta = image->base - image->headers->optional.image_base;

	for (uint32_t at = 0; at + sizeof(struct pe_reloc_block) <= d->size;) {
		const struct pe_reloc_block *const b = image_rva(image, d->rva + at);

		for (size_t i = 0; i < (b->size - sizeof(*b)) / 2; i++) {
			if (b->entry[i] >> 12 == RELOC_DIR64)
				*(uint64_t *)image_rva(image, b->rva + (b->entry[i] & 0xfff)) +=
					delta;
			else if (b->entry[i] >> 12 != RELOC_ABSOLUTE)
				return false;
		}
		at += b->size;
	}
	return true;
}

static bool link_imports(const struct image *image)
{
	const struct pe_directory *const d =
		&image->headers->optional.directory[PE_DIRECTORY_IMPORT];
	bool all = true;

	for (const struct pe_import *i = image_rva(image, d->rva); d->size && i->dll; i++) {
		const uint64_t *name = image_rva(image, i->names ? i->names : i->addresses);
		const void **address = image_rva(image, i->addresses);

		for (; *name; name++, address++) {
			/* a hint, and the name */
			const char *const text = image_rva(image, *name + 2);

			*address = *name & IMPORT_ORDINAL ? NULL : export_address(text);
			if (!*address) {
				say("import that nobody has: %s", text);
				all = false;
			}
		}
	}
	return all;
}

static bool map_image(const struct pe_headers *h, struct image *image)
{
	unsigned slot = 0;

	while (slot < IMAGES_MAX && images[slot])
		slot++;
	if (slot == IMAGES_MAX)
		return false;
	*image = (struct image){
		/* A new place each time, so that a stale pointer into an old image faults. */
		.base = DRIVERS_VA + (uint64_t)(next_slot++ % IMAGE_SLOTS) * IMAGE_GAP,
		.pages = (uint32_t)(ROUND_UP(h->optional.image_size, PAGE_SIZE) / PAGE_SIZE),
	};
	for (uint32_t i = 0; i < image->pages; i++) {
		image->frames[i] = frame_take();
		map(image->base + i * PAGE_SIZE, image->frames[i], MAP_WRITE);
	}
	memset(image_rva(image, 0), 0, image->pages * PAGE_SIZE);
	mailbox.counters.image_pages += image->pages;
	images[slot] = image;
	return true;
}

/* These drivers change their own page table entries, and must have put them back. */
static void drop_page(struct image *image, uint32_t n)
{
	const uint64_t va = image->base + n * PAGE_SIZE;
	const uint64_t now = unmap(va);

	if (now != image->frames[n])
		complain("page %lx of the image is mapped to %lx instead of %lx", va, now,
			 image->frames[n]);
	frame_free(image->frames[n]);
	image->frames[n] = 0;
	mailbox.counters.image_pages--;
}

void image_unload(struct image *image)
{
	for (unsigned i = 0; i < IMAGES_MAX; i++)
		if (images[i] == image)
			images[i] = NULL;
	for (uint32_t i = 0; i < image->pages; i++)
		if (image->frames[i])
			drop_page(image, i);
}

void image_discard_init(struct image *image)
{
	const struct pe_section *s = sections(image->headers);

	for (unsigned i = 0; i < image->headers->file.sections; i++, s++)
		for (uint32_t at = 0;
		     s->characteristics & PE_SECTION_DISCARDABLE && at < s->virtual_size;
		     at += PAGE_SIZE)
			drop_page(image, (s->rva + at) / PAGE_SIZE);
}

ntstatus image_load(const uint8_t *file, size_t len, struct image *ret)
{
	const struct pe_headers *const h = headers_of(file, len);
	ntstatus status = STATUS_SUCCESS;

	if (!h)
		return STATUS_INVALID_IMAGE_FORMAT;
	if (checksum_of(file, len, (const uint8_t *)&h->optional.checksum) != h->optional.checksum)
		return STATUS_IMAGE_CHECKSUM_MISMATCH;
	if (!map_image(h, ret))
		return STATUS_INSUFFICIENT_RESOURCES;
	ret->headers =
		(const struct pe_headers *)(ret->base + (uint64_t)((const uint8_t *)h - file));
	if (!copy_sections(file, len, h, ret) || !relocate(ret))
		status = STATUS_INVALID_IMAGE_FORMAT;
	else if (!link_imports(ret))
		status = STATUS_DRIVER_ENTRYPOINT_NOT_FOUND;
	else
		protect_sections(ret);
	if (status)
		image_unload(ret);
	return status;
}
