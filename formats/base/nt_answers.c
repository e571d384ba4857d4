/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/nt_answers.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/page.h"

struct nt_list nt_list_over(const void *answer, size_t len)
{
	return (struct nt_list){
		.at = answer,
		.len = len,
		.address = (uint64_t)(uintptr_t)answer,
	};
}

/* UNICODE_STRING: length, room, 4 bytes of padding, address. */
static struct nt_text text_in(const struct nt_list *l, const uint8_t *s)
{
	const size_t len = get_le16(s) & ~(size_t)1;
	const uint64_t offset = get_le64(s + 8) - l->address;

	if (!len || !range_fits(offset, len, l->len))
		return (struct nt_text){ 0 };
	return (struct nt_text){ .at = l->at + offset, .len = len };
}

/*
 * The entry that is next, of `size` bytes at least; each begins with the distance to the next one.
 */
static const uint8_t *take_entry(struct nt_list *l, size_t size)
{
	const uint8_t *p;
	size_t step;

	if (!range_fits(l->next, size, l->len))
		return NULL;
	p = l->at + l->next;
	step = get_le32(p);
	l->next = step && step < l->len - l->next ? l->next + step : l->len;
	return p;
}

/* SYSTEM_PROCESS_INFORMATION: as much as is read. */
#define PROCESS_NAME 56
#define PROCESS_PID  80
#define PROCESS_SIZE 88

bool nt_process_next(struct nt_list *l, struct nt_process *ret)
{
	const uint8_t *p = take_entry(l, PROCESS_SIZE);

	if (!p)
		return false;
	*ret = (struct nt_process){
		.pid = get_le64(p + PROCESS_PID),
		.name = text_in(l, p + PROCESS_NAME),
	};
	return true;
}

#define PAGE_FILE_NAME 16
#define PAGE_FILE_SIZE 32

bool nt_page_file_next(struct nt_list *l, struct nt_page_file *ret)
{
	const uint8_t *p = take_entry(l, PAGE_FILE_SIZE);

	if (!p)
		return false;
	*ret = (struct nt_page_file){
		.total = get_le32(p + 4),
		.in_use = get_le32(p + 8),
		.peak = get_le32(p + 12),
		.name = text_in(l, p + PAGE_FILE_NAME),
	};
	return ret->name.at || get_le16(p + PAGE_FILE_NAME) < 2;
}

/*
 * SYSTEM_HANDLE_INFORMATION_EX: their number and 8 bytes, then the entries: object, process,
 * handle, granted access, back trace, type, attributes.
 */
#define HANDLES_FIRST 16
#define HANDLE_SIZE   40

bool nt_handle_next(struct nt_list *l, struct nt_handle *ret)
{
	const uint8_t *p;
	uint64_t index;

	if (!l->next)
		l->next = HANDLES_FIRST;
	if (!range_fits(l->next, HANDLE_SIZE, l->len))
		return false;
	index = (l->next - HANDLES_FIRST) / HANDLE_SIZE;
	if (index >= get_le64(l->at))
		return false;
	p = l->at + l->next;
	l->next += HANDLE_SIZE;
	*ret = (struct nt_handle){
		.pid = get_le64(p + 8),
		.value = get_le64(p + 16),
		.access = get_le32(p + 24),
		.type = get_le16(p + 30),
	};
	return true;
}

/* RTL_PROCESS_MODULES: their number, and on an address of 8 RTL_PROCESS_MODULE_INFORMATION[]. */
#define MODULES_FIRST 8
#define MODULE_BASE   16
#define MODULE_LENGTH 24
#define MODULE_PATH   40
#define MODULE_SIZE   296

bool nt_kernel_read(const void *answer, size_t len, struct nt_kernel *ret)
{
	const uint8_t *p = answer;

	if (len < MODULES_FIRST + MODULE_SIZE || !get_le32(p))
		return false;
	p += MODULES_FIRST;
	ret->base = get_le64(p + MODULE_BASE);
	ret->size = get_le32(p + MODULE_LENGTH);
	memcpy(ret->path, p + MODULE_PATH, sizeof(ret->path));
	ret->path[sizeof(ret->path) - 1] = '\0';
	return true;
}

/* Version and number of ranges; V1 has 32 bits for the number, V2 flags and then 64. */
#define RANGES_V1  8
#define RANGES_V2  16
#define RANGE_SIZE 16

static enum status add_answer_range(const uint8_t *p, uint64_t i, struct range_list *ret,
				    struct err *e)
{
	const uint64_t first = get_le64(p), pages = get_le64(p + 8);
	const uint64_t most = PHYS_LIMIT >> PAGE_SHIFT;

	if (!pages || !range_fits(first, pages, most))
		return err_set(e, ST_CORRUPT,
			       "range %" PRIu64 ", 0x%" PRIx64 " pages from 0x%" PRIx64
			       ", makes no sense",
			       i, pages, first);
	return range_list_add(ret, first << PAGE_SHIFT, ((first + pages) << PAGE_SHIFT) - 1, e);
}

enum status nt_ranges_read(const void *answer, size_t len, struct range_list *ret, struct err *e)
{
	const uint8_t *p = answer;
	const uint32_t version = len >= RANGES_V1 ? get_le32(p) : 0;
	const size_t front = version == 2 ? RANGES_V2 : RANGES_V1;
	enum status st = ST_OK;
	uint64_t n;

	if ((version != 1 && version != 2) || len < front)
		return err_set(e, ST_CORRUPT, "%zu bytes are not a list of ranges", len);
	n = version == 2 ? get_le64(p + 8) : get_le32(p + 4);
	if (!n || n > (len - front) / RANGE_SIZE)
		return err_set(e, ST_CORRUPT, "%" PRIu64 " ranges in %zu bytes", n, len);
	for (uint64_t i = 0; i < n && !st; i++)
		st = add_answer_range(p + front + i * RANGE_SIZE, i, ret, e);
	return st;
}

bool nt_boot_read(const void *answer, size_t len, struct nt_boot *ret)
{
	const uint8_t *p = answer;

	if (len < NT_BOOT_FRONT)
		return false;
	memcpy(ret->id, p, sizeof(ret->id));
	ret->firmware = get_le32(p + sizeof(ret->id));
	return true;
}

bool nt_code_integrity_read(const void *answer, size_t len, uint32_t *ret_options)
{
	if (len < NT_CODE_INTEGRITY_SIZE)
		return false;
	*ret_options = get_le32((const uint8_t *)answer + 4);
	return true;
}

bool nt_isolation_read(const void *answer, size_t len, uint32_t *ret_flags)
{
	if (len < 2)
		return false;
	*ret_flags = get_le16(answer);
	return true;
}

/*
 * KvaShadowEnabled is bit 0; bits 4 and 5 say that it is required, and that these are told at all;
 * InvalidPteBit is in bits 6 to 11.
 */
bool nt_kva_shadow_read(const void *answer, size_t len, struct nt_kva_shadow *ret)
{
	uint32_t flags;

	if (len < NT_KVA_SHADOW_SIZE)
		return false;
	flags = get_le32(answer);
	*ret = (struct nt_kva_shadow){
		.on = flags & 1,
		.told = flags >> 5 & 1,
		.invalid_pte_bit = flags >> 6 & 0x3f,
		.flags = flags,
	};
	return true;
}

#define VERSION_NEEDED 16

/* The high bits of a build number say "free build" in what some functions return. */
bool nt_version_read(const void *answer, size_t len, struct nt_version *ret)
{
	const uint8_t *p = answer;

	if (len < VERSION_NEEDED)
		return false;
	*ret = (struct nt_version){
		.major = get_le32(p + 4),
		.minor = get_le32(p + 8),
		.build = get_le32(p + 12) & 0xffff,
	};
	return ret->major != 0;
}
