/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/process/mapped_file.h"

#include <string.h>

#include "formats/base/bytes.h"

/* FILE_OBJECT and VPB of x64 (wdm.h, as mingw-w64 11 has it, ddk/wdm.h). */
#define FILE_OBJECT_VPB     0x10
#define FILE_OBJECT_CONTEXT 0x18
#define VPB_TYPE            10
#define VPB_SERIAL          0x18

/*
 * FsContext begins with FSRTL_COMMON_FCB_HEADER, which has to be the beginning of an advanced one
 * (ntifs.h, and what Microsoft says there on both). A valid length of -1 is one that the file
 * system does not keep ("FSRTL_ADVANCED_FCB_HEADER", ValidDataLength).
 */
#define FCB_FLAGS           4
#define FCB_ADVANCED        0x40
#define FCB_ALLOCATION      0x18
#define FCB_SIZE            0x20
#define FCB_VALID           0x28
#define FCB_HEADER          0x30

static bool is_object_pointer(uint64_t va)
{
	return va >> 47 == 0x1ffff && va % 8 == 0;
}

static void read_volume_serial(const struct memory_view *m, uint64_t object,
			       struct mapped_file *ret)
{
	uint64_t vpb;
	uint16_t type;

	ret->has_serial = view_u64(m, object + FILE_OBJECT_VPB, &vpb) && is_object_pointer(vpb) &&
			  view_u16(m, vpb, &type) && type == VPB_TYPE &&
			  view_u32(m, vpb + VPB_SERIAL, &ret->serial) && ret->serial;
}

static void read_size(const struct memory_view *m, uint64_t object, struct mapped_file *ret)
{
	uint8_t h[FCB_HEADER];
	uint64_t context, allocated, valid;

	if (!view_u64(m, object + FILE_OBJECT_CONTEXT, &context) || !is_object_pointer(context) ||
	    !view_read(m, context, h, sizeof(h)) || !(h[FCB_FLAGS] & FCB_ADVANCED))
		return;
	allocated = get_le64(h + FCB_ALLOCATION);
	ret->size = get_le64(h + FCB_SIZE);
	valid = get_le64(h + FCB_VALID);
	ret->has_size = ret->size && ret->size <= allocated && allocated <= INT64_MAX &&
			(valid <= ret->size || valid >= INT64_MAX);
}

static bool read_mapped_view(void *context, uint64_t va, void *p, size_t len)
{
	return view_read(context, va, p, len);
}

void mapped_file_read(const struct memory_view *m, uint64_t object, uint64_t image,
		      struct mapped_file *ret)
{
	const struct pe_memory memory = { read_mapped_view, (void *)(uintptr_t)m };

	*ret = (struct mapped_file){ 0 };
	if (is_object_pointer(object)) {
		read_volume_serial(m, object, ret);
		read_size(m, object, ret);
	}
	ret->has_header = image && pe_program(&memory, image, &ret->header);
}

struct bytes {
	const uint8_t *at;
	size_t size;
};

static bool read_header_bytes(void *context, uint64_t at, void *p, size_t len)
{
	const struct bytes *b = context;

	if (!range_fits(at, len, b->size))
		return false;
	memcpy(p, b->at + at, len);
	return true;
}

/* Headers lie in a file as they do in memory, at its beginning. */
bool mapped_file_header(const uint8_t *bytes, size_t size, struct pe_program *ret)
{
	struct bytes b = { bytes, size };
	const struct pe_memory memory = { read_header_bytes, &b };

	return pe_program(&memory, 0, ret);
}

bool mapped_file_same_header(const struct pe_program *a, const struct pe_program *b)
{
	return a->time_date_stamp == b->time_date_stamp && a->size == b->size &&
	       a->checksum == b->checksum && a->narrow == b->narrow;
}
