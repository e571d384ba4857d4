/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The export table of a loaded PE32+ image, and which PDB belongs to it ("PE Format", Microsoft,
 * sections
 * "Optional Header", "The .edata Section" and "The .debug Section"), read through page tables, and
 * out of its file where memory has it not. Nothing is believed; no loop is longer than a binary
 * search, than DEBUG_ENTRIES_MAX or than PE_SECTIONS_MAX.
 */
#include <stdio.h>
#include <string.h>

#include "agent/shared/kernel/pe.h"
#include "formats/base/bytes.h"

#define MACHINE_I386     0x14c
#define MACHINE_AMD64    0x8664
#define MAGIC_PE32       0x10b
#define MAGIC_PE32P      0x20b
#define LFANEW_MAX       0x1000
#define IMAGE_MAX        (UINT32_C(64) << 20) /* a kernel's */

/* Up to and with the first data directory, which is the export table's. */
#define HEADERS_SIZE     (24 + 112 + 8)
/* 8 bytes each; their number stands in the 4 bytes before. */
#define DIRECTORIES      (24 + 112)
#define DIRECTORIES_PE32 (24 + 96)

#define SECTION_SIZE     40
#define SECTION_WRITE    UINT32_C(0x80000000) /* IMAGE_SCN_MEM_WRITE */

/* Bytes [va, va + len) of the image are at `offset` of the file. */
struct pe_section {
	uint32_t va, len, offset;
};

struct pe_image {
	struct pe_memory mem;
	uint64_t base;
	uint32_t max;         /* more than that is no image of the kind that is looked for */
	uint32_t directories; /* where they are, behind .headers */
	struct pe_file *file; /* NULL: there is none, or it is another image's */
	struct pe_section sections[PE_SECTIONS_MAX];
	size_t n_sections;
	uint32_t headers; /* of "PE\0\0"; like all below, relative to base */
	uint32_t size;
	uint32_t name;      /* of the image itself */
	uint32_t functions; /* array of u32 */
	uint32_t n_functions;
	uint32_t names;    /* array of u32, sorted by what it points at */
	uint32_t ordinals; /* array of u16 */
	uint32_t n_names;
};

static bool read_from_file(const struct pe_image *pe, uint64_t rva, void *p, size_t len)
{
	for (size_t i = 0; i < pe->n_sections; i++) {
		const struct pe_section *s = &pe->sections[i];

		if (rva < s->va || !range_fits(rva - s->va, len, s->len))
			continue;
		if (blob_read(pe->file->blob, s->offset + (rva - s->va), p, len, NULL))
			return false;
		pe->file->used = true;
		return true;
	}
	return false;
}

static bool pe_read(const struct pe_image *pe, uint64_t va, void *p, size_t len)
{
	return pe->mem.read(pe->mem.context, va, p, len);
}

/* What does not change while an image runs: its headers and what is read-only in it. */
static bool read_rva(const struct pe_image *pe, uint64_t rva, void *p, size_t len)
{
	return range_fits(rva, len, pe->size) &&
	       (pe_read(pe, pe->base + rva, p, len) || read_from_file(pe, rva, p, len));
}

/* Of the kind that is looked for: of 32 bits only where any program's will do. */
static bool is_pe(struct pe_image *pe, const uint8_t h[static HEADERS_SIZE])
{
	const bool narrow = get_le16(h + 4) == MACHINE_I386 && get_le16(h + 24) == MAGIC_PE32;
	const bool wide = get_le16(h + 4) == MACHINE_AMD64 && get_le16(h + 24) == MAGIC_PE32P;

	pe->directories = narrow ? DIRECTORIES_PE32 : DIRECTORIES;
	return !memcmp(h, "PE\0\0", 4) && (wide || (narrow && pe->max > IMAGE_MAX));
}

static bool open_headers(struct pe_image *pe, uint32_t *ret_exports)
{
	uint8_t dos[64], h[HEADERS_SIZE];
	uint32_t at;

	if (!pe_read(pe, pe->base, dos, sizeof(dos)) || memcmp(dos, "MZ", 2) != 0)
		return false;
	at = get_le32(dos + 0x3c);
	if (at > LFANEW_MAX || !pe_read(pe, pe->base + at, h, sizeof(h)) || !is_pe(pe, h))
		return false;
	pe->headers = at;
	pe->size = get_le32(h + 24 + 56);
	*ret_exports = get_le32(h + pe->directories);
	return pe->size <= pe->max;
}

/* Is the file that of the image in memory, by what differs from build to build? */
static bool is_same_image(const struct pe_image *pe, const uint8_t *h)
{
	uint8_t ours[HEADERS_SIZE];

	return pe_read(pe, pe->base + pe->headers, ours, sizeof(ours)) &&
	       get_le32(h + 8) == get_le32(ours + 8) &&             /* TimeDateStamp */
	       get_le32(h + 24 + 56) == get_le32(ours + 24 + 56) && /* SizeOfImage */
	       get_le32(h + 24 + 64) == get_le32(ours + 24 + 64);   /* CheckSum */
}

/*
 * The section table of the file. Without one, or with one of another image, memory is all there is.
 */
static void open_pe_file(struct pe_image *pe, struct pe_file *file)
{
	uint8_t dos[64], h[HEADERS_SIZE], s[SECTION_SIZE];
	uint64_t at;

	if (!file || blob_read(file->blob, 0, dos, sizeof(dos), NULL))
		return;
	at = get_le32(dos + 0x3c);
	if (blob_read(file->blob, at, h, sizeof(h), NULL) || memcmp(h, "PE\0\0", 4) != 0 ||
	    !is_same_image(pe, h))
		return;
	pe->file = file;
	at += 24 + (uint64_t)get_le16(h + 20);
	for (size_t i = 0; i < MIN(get_le16(h + 6), (size_t)PE_SECTIONS_MAX);
	     i++, at += sizeof(s)) {
		if (blob_read(file->blob, at, s, sizeof(s), NULL))
			return;
		/*
		 * Behind the bytes of the file a section is filled with zeros: they are not asked
		 * for.
		 */
		pe->sections[pe->n_sections++] = (struct pe_section){
			.va = get_le32(s + 12),
			.len = MIN(get_le32(s + 8), get_le32(s + 16)),
			.offset = get_le32(s + 20),
		};
	}
}

static bool open_exports(struct pe_image *pe, uint32_t exports)
{
	uint8_t d[40];

	if (!exports || !read_rva(pe, exports, d, sizeof(d)))
		return false;
	pe->name = get_le32(d + 12);
	pe->n_functions = get_le32(d + 20);
	pe->n_names = get_le32(d + 24);
	pe->functions = get_le32(d + 28);
	pe->names = get_le32(d + 32);
	pe->ordinals = get_le32(d + 36);
	return true;
}

static bool read_virt(void *context, uint64_t va, void *p, size_t len)
{
	return virt_read(context, va, p, len);
}

struct pe_memory pe_memory_of(const struct virt *v)
{
	return (struct pe_memory){ read_virt, (void *)(uintptr_t)v };
}

static bool open_pe_image(struct pe_image *pe, const struct virt *v, uint64_t base,
			  struct pe_file *file, uint32_t *ret_exports)
{
	*pe = (struct pe_image){ .mem = pe_memory_of(v), .base = base, .max = IMAGE_MAX };
	if (!open_headers(pe, ret_exports))
		return false;
	open_pe_file(pe, file);
	return true;
}

#define EXPORT_NAME_MAX 64

/* As much of a string as fits. Reading stops at the page's end if the next one is missing. */
static bool read_string(const struct pe_image *pe, uint32_t rva, char ret[EXPORT_NAME_MAX])
{
	const size_t part = MIN(EXPORT_NAME_MAX - 1, PAGE_SIZE - (pe->base + rva) % PAGE_SIZE);

	memset(ret, 0, EXPORT_NAME_MAX);
	return read_rva(pe, rva, ret, EXPORT_NAME_MAX - 1) || read_rva(pe, rva, ret, part);
}

static bool name_at(const struct pe_image *pe, uint32_t i, char ret[EXPORT_NAME_MAX])
{
	uint8_t rva[4];

	return read_rva(pe, pe->names + UINT64_C(4) * i, rva, sizeof(rva)) &&
	       read_string(pe, get_le32(rva), ret);
}

static bool exported_function(const struct pe_image *pe, uint32_t i, uint64_t *ret)
{
	uint8_t ordinal[2], rva[4];

	if (!read_rva(pe, pe->ordinals + UINT64_C(2) * i, ordinal, sizeof(ordinal)) ||
	    get_le16(ordinal) >= pe->n_functions ||
	    !read_rva(pe, pe->functions + UINT64_C(4) * get_le16(ordinal), rva, sizeof(rva)) ||
	    get_le32(rva) >= pe->size)
		return false;
	*ret = pe->base + get_le32(rva);
	return true;
}

bool pe_export(const struct virt *v, uint64_t base, struct pe_file *file, const char *name,
	       uint64_t *ret)
{
	char text[EXPORT_NAME_MAX];
	struct pe_image pe;
	uint32_t exports, low = 0, high;

	if (!open_pe_image(&pe, v, base, file, &exports) || !open_exports(&pe, exports))
		return false;
	high = pe.n_names;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		int order;

		if (!name_at(&pe, middle, text))
			return false;
		order = strcmp(name, text);
		if (!order)
			return exported_function(&pe, middle, ret);
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return false;
}

/*
 * Which PDB it was built with
 */

#define DIRECTORY_RELOCS  5
#define DIRECTORY_DEBUG   6
#define DEBUG_ENTRY       28 /* IMAGE_DEBUG_DIRECTORY */
#define DEBUG_ENTRIES_MAX 32 /* ntoskrnl has fewer than ten */
#define DEBUG_CODEVIEW    2  /* IMAGE_DEBUG_TYPE_CODEVIEW */

/*
 * What a CodeView entry leads to: "RSDS", GUID, age, and the PDB's name with a NUL behind it. The
 * name may be a path. LLVM has it as PDB70DebugInfo (llvm/Object/CVDebugRecord.h).
 */
#define RSDS_NAME         24
#define PDB_PATH_MAX      512

/* Address and size of a data directory. */
static bool read_data_directory(const struct pe_image *pe, uint32_t index, uint32_t *ret,
				uint32_t *ret_size)
{
	const uint64_t at = (uint64_t)pe->headers + pe->directories;
	uint8_t number[4], d[8];

	if (!read_rva(pe, at - 4, number, sizeof(number)) || get_le32(number) <= index ||
	    !read_rva(pe, at + UINT64_C(8) * index, d, sizeof(d)))
		return false;
	*ret = get_le32(d);
	*ret_size = get_le32(d + 4);
	return true;
}

static bool debug_directory(const struct pe_image *pe, uint32_t *ret, uint32_t *ret_count)
{
	uint32_t size;

	if (!read_data_directory(pe, DIRECTORY_DEBUG, ret, &size))
		return false;
	*ret_count = MIN(size / DEBUG_ENTRY, (uint32_t)DEBUG_ENTRIES_MAX);
	return true;
}

/* As much of the name as is there, without the folders. Empty if its page is not. */
static void read_pdb_name(const struct pe_image *pe, uint64_t rva, size_t len,
			  char ret[static PE_PDB_MAX])
{
	char path[PDB_PATH_MAX] = "";
	const char *name = path;
	size_t got = 0;

	len = MIN(len, sizeof(path) - 1);
	while (got < len && !memchr(path, 0, got)) {
		const size_t part = MIN(len - got, PAGE_SIZE - (pe->base + rva + got) % PAGE_SIZE);

		if (!read_rva(pe, rva + got, path + got, part))
			break;
		got += part;
	}
	/* Without its end it is another name. */
	if (!memchr(path, 0, got))
		path[0] = '\0';
	for (const char *c = path; *c; c++)
		if (*c == '\\' || *c == '/')
			name = c + 1;
	if (strlen(name) < PE_PDB_MAX)
		memcpy(ret, name, strlen(name) + 1);
}

static bool read_rsds(const struct pe_image *pe, uint32_t rva, uint32_t len, struct pe_pdb *ret)
{
	uint8_t h[RSDS_NAME];

	if (len < sizeof(h) || !read_rva(pe, rva, h, sizeof(h)) || memcmp(h, "RSDS", 4) != 0)
		return false;
	*ret = (struct pe_pdb){ .age = get_le32(h + 20) };
	memcpy(ret->guid, h + 4, sizeof(ret->guid));
	read_pdb_name(pe, rva + (uint64_t)RSDS_NAME, len - RSDS_NAME, ret->name);
	return true;
}

static bool find_pdb(const struct pe_image *pe, struct pe_pdb *ret)
{
	uint32_t at, count;
	uint8_t d[DEBUG_ENTRY];

	if (!debug_directory(pe, &at, &count))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (read_rva(pe, at + (uint64_t)DEBUG_ENTRY * i, d, sizeof(d)) &&
		    get_le32(d + 12) == DEBUG_CODEVIEW &&
		    read_rsds(pe, get_le32(d + 20), get_le32(d + 16), ret))
			return true;
	return false;
}

bool pe_pdb(const struct virt *v, uint64_t base, struct pe_file *file, struct pe_pdb *ret)
{
	struct pe_image pe;
	uint32_t exports;

	return open_pe_image(&pe, v, base, file, &exports) && find_pdb(&pe, ret);
}

bool pe_program(const struct pe_memory *m, uint64_t base, struct pe_program *ret)
{
	struct pe_image pe = { .mem = *m, .base = base, .max = UINT32_MAX };
	uint8_t h[HEADERS_SIZE];
	uint32_t exports;

	*ret = (struct pe_program){ 0 };
	if (!open_headers(&pe, &exports) || !read_rva(&pe, pe.headers, h, sizeof(h)))
		return false;
	ret->size = pe.size;
	ret->time_date_stamp = get_le32(h + 8);
	ret->checksum = get_le32(h + 24 + 64);
	ret->narrow = pe.directories == DIRECTORIES_PE32;
	ret->image_base = ret->narrow ? get_le32(h + 24 + 28) : get_le64(h + 24 + 24);
	if (!read_data_directory(&pe, DIRECTORY_RELOCS, &ret->relocations_rva, &ret->relocations))
		ret->relocations = 0;
	ret->has_pdb = find_pdb(&pe, &ret->pdb);
	return true;
}

bool pe_pdb_record(const struct virt *v, uint64_t va, struct pe_pdb *ret)
{
	const uint32_t len = RSDS_NAME + PDB_PATH_MAX;
	const struct pe_image pe = { .mem = pe_memory_of(v), .base = va, .size = len };

	return read_rsds(&pe, 0, len, ret);
}

/*
 * The kernel is not always linked under the name that it is loaded by. These are its names on all
 * versions (volatility3, volatility3/framework/constants/windows/__init__.py, KERNEL_MODULE_NAMES);
 * two of them are 32-bit ones.
 */
bool pe_pdb_is_ntoskrnl(const struct pe_pdb *pdb)
{
	static const char *const names[] = { "ntkrnlmp.pdb", "ntoskrnl.pdb" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(pdb->name, names[i]))
			return true;
	return false;
}

/* Where the export table is not there, or not its name, the PDB's name has to do. */
bool pe_is_ntoskrnl(const struct virt *v, uint64_t base, struct pe_file *file, uint32_t *ret_size)
{
	char text[EXPORT_NAME_MAX];
	struct pe_image pe;
	struct pe_pdb pdb;
	uint32_t exports;

	if (!open_pe_image(&pe, v, base, file, &exports))
		return false;
	*ret_size = pe.size;
	if (open_exports(&pe, exports) && read_string(&pe, pe.name, text))
		return !strcmp(text, "ntoskrnl.exe");
	return exports && find_pdb(&pe, &pdb) && pe_pdb_is_ntoskrnl(&pdb);
}

bool pe_writable(const struct pe_memory *m, uint64_t base, struct range *ret, size_t max,
		 size_t *ret_count)
{
	struct pe_image pe = { .mem = *m, .base = base, .max = UINT32_MAX };
	uint8_t h[HEADERS_SIZE], s[SECTION_SIZE];
	uint32_t exports;
	uint64_t at;

	*ret_count = 0;
	if (!open_headers(&pe, &exports) || !read_rva(&pe, pe.headers, h, sizeof(h)))
		return false;
	at = pe.headers + 24 + (uint64_t)get_le16(h + 20);
	for (size_t i = 0; i < MIN(get_le16(h + 6), (size_t)PE_SECTIONS_MAX); i++) {
		uint32_t va, len;

		if (*ret_count == max)
			break;
		if (!read_rva(&pe, at + i * sizeof(s), s, sizeof(s)))
			return false;
		va = get_le32(s + 12);
		len = get_le32(s + 8);
		if ((get_le32(s + 36) & SECTION_WRITE) && len && range_fits(va, len, pe.size))
			ret[(*ret_count)++] = (struct range){ base + va, base + va + (len - 1) };
	}
	return true;
}

void pe_guid_text(const uint8_t guid[static PE_GUID_SIZE], char ret[static PE_GUID_TEXT])
{
	snprintf(ret, PE_GUID_TEXT, "%08X%04X%04X", (unsigned)get_le32(guid),
		 (unsigned)get_le16(guid + 4), (unsigned)get_le16(guid + 6));
	for (size_t i = 8; i < PE_GUID_SIZE; i++)
		snprintf(ret + 2 * i, 3, "%02X", (unsigned)guid[i]);
}
