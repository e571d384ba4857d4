/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/simulator/images.h"

#include <string.h>

#include "formats/base/bytes.h"

#define PAGE32       ((uint32_t)PAGE_SIZE)
#define PE_HEADER    0xe8
#define HEADERS_SIZE 0x400
#define RDATA_PAGES  2
#define RDATA_SIZE   0x1d37 /* no whole sectors: the rest of its last page is zeros */
#define DEBUG_AT     0x10   /* in .rdata */
#define RSDS_AT      0x40
#define RELOCS_AT    0x200
#define POINTER_AT   0x7f8      /* in each page of code and constants, if there are relocations; */
#define CROSSING     2          /* and in all of code but the last, so many bytes before its end */
#define REST         0x6b1      /* bytes of the file that are not mapped, as of a signature */
#define TIME_STAMP   0x55c73a00 /* August 2015 */
#define SECTIONS     3

#define CODE_FLAGS   0x60000020 /* code, executable, readable */
#define CONST_FLAGS  0x40000040 /* initialised data, readable */
#define DATA_FLAGS   0xc0000040 /* and writable */

const char *sim__image_name(const struct sim_image *image)
{
	return strrchr(image->path, '\\') + 1;
}

static void put_section_header(uint8_t *at, const char *name, const struct sim_section *s,
			       uint32_t part, uint32_t flags)
{
	uint32_t page = 0;

	for (uint32_t i = 0; i < part; i++)
		page += s->part[i].pages;
	memcpy(at, name, strlen(name));
	put_le32(at + 8, s->part[part].pages * PAGE32);
	put_le32(at + 12, page * PAGE32);
	put_le32(at + 16, s->part[part].file_size);
	put_le32(at + 20, s->part[part].file_at);
	put_le32(at + 36, flags);
}

void sim__image_put_base(const struct sim_image *image, uint8_t *headers, uint64_t base)
{
	uint8_t *optional = headers + PE_HEADER + 24;

	if (image->narrow)
		put_le32(optional + 28, (uint32_t)base);
	else
		put_le64(optional + 24, base);
}

static void put_image_pointer(const struct sim_image *image, uint8_t *at, uint64_t to)
{
	if (image->narrow)
		put_le32(at, (uint32_t)to);
	else
		put_le64(at, to);
}

void sim__image_put_pointers(const struct sim_image *image, uint8_t *bytes, uint64_t base)
{
	for (uint32_t page = 1; page < image->data_at && image->linked != image->base; page++) {
		uint8_t *at = bytes + (size_t)page * PAGE_SIZE;

		put_image_pointer(image, at + POINTER_AT, base + PAGE_SIZE + 0x20);
		if (page < image->text_pages)
			put_image_pointer(image, at + PAGE_SIZE - CROSSING,
					  base + PAGE_SIZE + 0xfff0);
	}
}

/* "The .reloc Section": a block for each page, with its two pointers, or one and an empty word. */
static void put_relocations(const struct sim_image *image, uint8_t *directory, uint8_t *rdata)
{
	const uint32_t count = image->data_at - 1, kind = image->narrow ? 3 : 10;

	put_le32(directory, (1 + image->text_pages) * PAGE32 + RELOCS_AT);
	put_le32(directory + 4, count * 12);
	for (uint32_t i = 0; i < count; i++) {
		uint8_t *at = rdata + RELOCS_AT + 12 * i;

		put_le32(at, (1 + i) * PAGE32);
		put_le32(at + 4, 12);
		put_le16(at + 8, (uint16_t)(kind << 12 | POINTER_AT));
		put_le16(at + 10,
			 (uint16_t)(1 + i < image->text_pages ? kind << 12 | (PAGE32 - CROSSING)
							      : 0));
	}
}

/* What PE32+ and PE32 do not have at the same place; where the data directories are. */
static uint8_t *put_width(const struct sim_image *image, uint8_t *pe)
{
	uint8_t *optional = pe + 24;

	put_le16(pe + 4, image->narrow ? 0x14c : 0x8664); /* x86, AMD64 */
	put_le16(pe + 20, image->narrow ? 224 : 240);     /* SizeOfOptionalHeader */
	put_le16(pe + 22, (image->library ? 0x2000 : 0) | (image->narrow ? 0x102 : 0x22));
	put_le16(optional, image->narrow ? 0x10b : 0x20b);
	sim__image_put_base(image, pe - PE_HEADER, image->base);
	return optional + (image->narrow ? 96 : 112);
}

static void put_image_headers(const struct sim_image *image, uint8_t *page)
{
	const uint32_t rdata = 1 + image->text_pages;
	uint8_t *pe = page + PE_HEADER, *optional = pe + 24;
	uint8_t *directories = put_width(image, pe), *table = directories + 16 * 8;

	memcpy(page, "MZ", 2);
	put_le32(page + 0x3c, PE_HEADER);
	memcpy(pe, "PE\0\0", 4);
	put_le16(pe + 6, SECTIONS);
	put_le32(pe + 8, TIME_STAMP);
	put_le32(optional + 16, image->entry);
	put_le32(optional + 32, PAGE_SIZE); /* alignments */
	put_le32(optional + 36, SIM_SECTOR);
	put_le32(optional + 56, image->section.pages * PAGE32);
	put_le32(optional + 60, HEADERS_SIZE);
	put_le32(optional + 64, TIME_STAMP ^ image->section.pages << 8); /* CheckSum */
	put_le16(optional + 68, 3);                                      /* console */
	put_le32(directories - 4, 16);
	put_le32(directories + 48, rdata * PAGE32 + DEBUG_AT);
	put_le32(directories + 52, 28);
	if (image->linked != image->base)
		put_relocations(image, directories + 40, page + rdata * PAGE32);
	put_section_header(table, ".text", &image->section, 1, CODE_FLAGS);
	put_section_header(table + 40, ".rdata", &image->section, 2, CONST_FLAGS);
	put_section_header(table + 80, ".data", &image->section, 3, DATA_FLAGS);
}

/* The name of the PDB is that of the image. */
static void put_image_debug(const struct sim_image *image, uint8_t *rdata)
{
	const uint32_t rva = (1 + image->text_pages) * PAGE32;
	const char *name = sim__image_name(image);
	uint8_t *entry = rdata + DEBUG_AT, *record = rdata + RSDS_AT;
	int len;

	put_le32(entry + 4, TIME_STAMP);
	put_le32(entry + 12, 2); /* CodeView */
	put_le32(entry + 20, rva + RSDS_AT);
	put_le32(entry + 24, image->section.part[2].file_at + RSDS_AT);
	memcpy(record, "RSDS", 4);
	memcpy(record + 4, image->guid, sizeof(image->guid));
	put_le32(record + 20, image->age);
	len = sprintf((char *)record + 24, "%.*s.pdb", (int)strcspn(name, "."), name);
	put_le32(entry + 16, 24 + (uint32_t)len + 1);
}

/* Code is nothing that runs: words that are drawn, and those that it is to have. */
static void put_image_bytes(struct sim_image *image, uint8_t *bytes, uint64_t *random)
{
	const size_t text = PAGE_SIZE, rdata = text + image->text_pages * PAGE32;

	for (size_t at = text; at < rdata + RDATA_PAGES * PAGE32; at += 8)
		put_le64(bytes + at, sim_draw(random));
	for (size_t i = 0; i < image->n_words; i++)
		put_le32(bytes + image->words[i].at, image->words[i].word);
	for (size_t i = 0; i < sizeof(image->guid); i += 8)
		put_le64(image->guid + i, sim_draw(random));
	memset(bytes + rdata, 0, 0x100);
	memset(bytes + rdata + RDATA_SIZE, 0, RDATA_PAGES * PAGE_SIZE - RDATA_SIZE);
	put_image_headers(image, bytes);
	sim__image_put_pointers(image, bytes, image->base);
	put_image_debug(image, bytes + rdata);
}

/* The data's last page is longer than what the file has of it. */
static void lay_out_image(struct sim_image *image)
{
	struct sim_section *s = &image->section;
	const uint32_t text = HEADERS_SIZE, rdata = text + image->text_pages * PAGE32;
	const uint32_t data = rdata + (RDATA_SIZE + SIM_SECTOR - 1) / SIM_SECTOR * SIM_SECTOR;
	const struct sim_part parts[] = {
		{ .pages = 1, .file_size = HEADERS_SIZE },
		{ .pages = image->text_pages,
		  .file_at = text,
		  .file_size = rdata - text,
		  .executable = true },
		{ .pages = RDATA_PAGES, .file_at = rdata, .file_size = RDATA_SIZE },
		{ .pages = image->data_pages,
		  .file_at = data,
		  .file_size = image->data_pages * PAGE32 - 3 * SIM_SECTOR,
		  .writable = true },
	};

	s->image = true;
	s->parts = ARRAY_SIZE(parts);
	memcpy(s->part, parts, sizeof(parts));
	image->data_at = 1 + image->text_pages + RDATA_PAGES;
	s->pages = image->data_at + image->data_pages;
	s->file_size = data + parts[3].file_size + REST;
	image->entry = PAGE32 + 0x10;
	image->age = 1;
}

enum status sim__image_make(struct sim_image *image, struct sim_pools *pools, uint64_t *random,
			    struct err *e)
{
	uint8_t *bytes;

	lay_out_image(image);
	image->linked = !pools->m->spec.relocated ? image->base
			: image->narrow           ? UINT64_C(0x10000000)
						  : UINT64_C(0x180000000);
	/* Its leaks are those of the text only where all headers are there to be read. */
	image->section.resident = pools->m->spec.leaker;
	snprintf(image->section.path, sizeof(image->section.path), "%s", image->path);
	bytes = calloc(image->section.pages, PAGE_SIZE);
	if (!bytes)
		return err_nomem(e);
	put_image_bytes(image, bytes, random);
	return sim__section_make(&image->section, bytes, pools, random, e);
}
