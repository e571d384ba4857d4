/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/nt.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"

/* An answer that grows while it is asked for; more than this is none. */
#define ANSWER_MAX ((size_t)64 << 20)
#define TRIES      8

/*
 * So much more room than was wanted: modules are loaded, and ranges added, between two questions.
 */
#define SPARE      ((size_t)16 << 10)

static bool is_too_small(uint32_t status)
{
	return status == NT_INFO_LENGTH_MISMATCH || status == NT_BUFFER_TOO_SMALL;
}

/* A structure of a known size; one that is longer here is asked for once more, as long as it is. */
static uint32_t query_fixed(struct nt *nt, enum nt_class class, uint8_t *buf, size_t known,
			    size_t room, size_t *ret_len)
{
	uint32_t status;

	memset(buf, 0, room);
	*ret_len = 0;
	status = nt->ops->query(nt, class, buf, known, ret_len);
	if (is_too_small(status) && *ret_len && *ret_len <= room && *ret_len != known)
		status = nt->ops->query(nt, class, buf, *ret_len, ret_len);
	*ret_len = MIN(*ret_len, room);
	return status;
}

enum nt_tells nt_secure_kernel(struct nt *nt)
{
	uint8_t answer[8 * NT_ISOLATION_SIZE];
	uint32_t flags = 0;
	size_t len = 0;
	const uint32_t status =
		query_fixed(nt, NT_ISOLATION, answer, NT_ISOLATION_SIZE, sizeof(answer), &len);

	if (status == NT_INVALID_INFO_CLASS || status == NT_NOT_IMPLEMENTED)
		return NT_NO;
	if (status || !nt_isolation_read(answer, len, &flags))
		return NT_UNKNOWN;
	return flags & NT_SECURE_KERNEL ? NT_YES : NT_NO;
}

/* The answer, for free(); NULL: none. */
static uint8_t *query_list(struct nt *nt, enum nt_class class, size_t *ret_len)
{
	size_t room = SPARE;

	for (int i = 0; i < TRIES && room <= ANSWER_MAX; i++) {
		uint8_t *buf = calloc(1, room);
		uint32_t status;

		if (!buf)
			return NULL;
		*ret_len = 0;
		status = nt->ops->query(nt, class, buf, room, ret_len);
		*ret_len = MIN(*ret_len, is_too_small(status) ? ANSWER_MAX : room);
		if (!status)
			return buf;
		free(buf);
		if (!is_too_small(status))
			return NULL;
		room = MAX(2 * room, *ret_len + SPARE);
	}
	return NULL;
}

bool nt_kernel(struct nt *nt, struct nt_kernel *ret)
{
	_cleanup_free_ uint8_t *modules = NULL;
	size_t len = 0;

	nt->ops->privileges(nt, true);
	modules = query_list(nt, NT_MODULES, &len);
	nt->ops->privileges(nt, false);
	return modules && nt_kernel_read(modules, len, ret);
}

enum nt_tells nt_five_levels(struct nt *nt)
{
	struct nt_cpu cpu = { 0 };
	struct nt_kernel kernel;

	nt->ops->cpu(nt, &cpu);
	if (!cpu.can_la57)
		return NT_NO;
	if (cpu.highest_user >> 47)
		return NT_YES;
	if (!nt_kernel(nt, &kernel))
		return NT_UNKNOWN;
	return strstr(kernel.path, "la57") ? NT_YES : NT_NO;
}

unsigned nt_phys_bits(struct nt *nt)
{
	struct nt_cpu cpu = { 0 };

	nt->ops->cpu(nt, &cpu);
	return cpu.phys_bits && cpu.phys_bits < 52 ? cpu.phys_bits : 52;
}

/*
 * SUPERFETCH_INFORMATION: version, magic, class, 4 bytes of padding, the buffer's address and
 * length, padding. The buffer's first number is the version of the list that is wanted.
 */
static uint32_t ask_ranges(struct nt *nt, uint32_t version, uint8_t *buf, size_t room,
			   size_t *ret_len)
{
	uint8_t ask[NT_SUPERFETCH_SIZE] = { 0 };

	put_le32(ask, NT_SUPERFETCH_VERSION);
	put_le32(ask + 4, NT_SUPERFETCH_MAGIC);
	put_le32(ask + 8, NT_SUPERFETCH_RANGES);
	put_le64(ask + 16, (uint64_t)(uintptr_t)buf);
	put_le32(ask + 24, (uint32_t)room);
	put_le32(buf, version);
	*ret_len = 0;
	return nt->ops->query(nt, NT_SUPERFETCH, ask, sizeof(ask), ret_len);
}

/* In this version, with as much room as it wants. *ret_status: why not. */
static enum status read_ranges(struct nt *nt, uint32_t version, struct range_list *ret,
			       uint32_t *ret_status, struct err *e)
{
	size_t room = 64, len = 0;

	for (int i = 0; i < TRIES && room <= ANSWER_MAX; i++) {
		_cleanup_free_ uint8_t *buf = calloc(1, room);

		if (!buf)
			return err_nomem(e);
		*ret_status = ask_ranges(nt, version, buf, room, &len);
		if (!*ret_status)
			return nt_ranges_read(buf, room, ret, e);
		if (!is_too_small(*ret_status))
			break;
		room = MAX(2 * room, MIN(len, ANSWER_MAX) + SPARE);
	}
	return err_set(e, ST_NO_SOURCE, "Windows reports no map of its RAM (status 0x%" PRIx32 ")",
		       *ret_status);
}

enum status nt_ranges(struct nt *nt, struct range_list *ret, struct err *e)
{
	uint32_t status = 0;
	enum status st;

	nt->ops->privileges(nt, true);
	st = read_ranges(nt, 1, ret, &status, e);
	if (st == ST_NO_SOURCE)
		st = read_ranges(nt, 2, ret, &status, e);
	nt->ops->privileges(nt, false);
	return st;
}
