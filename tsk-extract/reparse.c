/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/reparse.h"

#include <inttypes.h>
#include <stdio.h>

#include "formats/base/bytes.h"

#define HEAD_SIZE     8 /* tag, length of the data, reserved */
#define TAG_WOF       0x80000017
#define TAG_SURROGATE 0x20000000 /* IsReparseTagNameSurrogate(): another name, no content */
#define WOF_VERSION   1
#define WOF_BY_WIM    1
#define WOF_BY_FILE   2
#define WOF_DATA_SIZE 16
#define REPARSE_MAX   (16 * 1024) /* MAXIMUM_REPARSE_DATA_BUFFER_SIZE */

/* Cloud files: the number of the provider's instance is in the tag. */
#define CLOUD_MASK    0xffff0fff

static const struct {
	uint32_t tag;
	uint32_t mask;
	const char *where;
} tags[] = {
	{ 0x80000013, UINT32_MAX, "deduplicated: its content is in the volume's chunk store" },
	{ 0x9000001a, CLOUD_MASK, "a cloud file: its content was not downloaded" },
	{ 0x80000021, UINT32_MAX, "a cloud file (OneDrive): its content was not downloaded" },
	{ 0x80000015, UINT32_MAX, "a cloud file (placeholder): its content was not downloaded" },
	{ 0x8000001e, UINT32_MAX, "tiered (Azure File Sync): its content was not downloaded" },
	{ 0x9000001c, UINT32_MAX, "projected (ProjFS): its content is its provider's" },
	{ 0x80000007, UINT32_MAX, "single-instanced: its content is in the SIS Common Store" },
	{ 0xc0000004, UINT32_MAX, "in hierarchical storage: its content was moved away" },
	{ 0x80000006, UINT32_MAX, "in hierarchical storage: its content was moved away" },
	{ 0x80000008, UINT32_MAX, "backed by a WIM file, which has its content" },
	{ 0x80000018, UINT32_MAX, "a container's (WCI): its content is in a lower layer" },
	{ 0x90001018, UINT32_MAX, "a container's (WCI): its content is in a lower layer" },
	{ 0x8000001b, UINT32_MAX, "an app execution alias, without content" },
	{ 0x80000023, UINT32_MAX, "a socket, without content" },
	{ 0xa000000c, UINT32_MAX, "a symbolic link, which is not followed" },
	{ 0xa000001d, UINT32_MAX, "a symbolic link of WSL, which is not followed" },
	{ 0xa0000003, UINT32_MAX, "a mount point, which is not followed" },
};

static void describe(struct reparse *r)
{
	for (size_t i = 0; i < ARRAY_SIZE(tags); i++)
		if ((r->tag & tags[i].mask) == tags[i].tag) {
			snprintf(r->where, sizeof(r->where), "%s", tags[i].where);
			return;
		}
	snprintf(r->where, sizeof(r->where), "a reparse point with the unknown tag 0x%08" PRIx32,
		 r->tag);
}

/* WOF has two providers: files that are compressed where they are, and files in a WIM. */
static void describe_wof(struct reparse *r, const uint8_t *data, size_t size)
{
	const uint32_t provider = size >= HEAD_SIZE ? get_le32(data + 4) : 0;

	if (provider == WOF_BY_WIM) {
		snprintf(r->where, sizeof(r->where), "backed by a WIM file, which has its content");
	} else if (provider != WOF_BY_FILE || size < WOF_DATA_SIZE ||
		   get_le32(data) != WOF_VERSION || get_le32(data + 8) != WOF_VERSION ||
		   get_le32(data + 12) >= WOF_ALGORITHMS) {
		snprintf(r->where, sizeof(r->where),
			 "compressed by WOF in a way that is not known");
	} else {
		r->is_wof = true;
		r->algorithm = (enum wof_algorithm)get_le32(data + 12);
		snprintf(r->where, sizeof(r->where), "compressed by WOF");
	}
}

static enum status load_value(struct mft *n, uint64_t number, uint8_t *ret, size_t *ret_size,
			      struct err *e)
{
	static const struct name unnamed;
	_cleanup_stream_ struct mft_stream s = { 0 };
	enum status st = mft_stream_load(n, number, ATTRIBUTE_REPARSE_POINT, &unnamed, &s, e);

	*ret_size = 0;
	if (st)
		return st;
	if (s.size < HEAD_SIZE || s.size > HEAD_SIZE + REPARSE_MAX)
		return err_set(e, ST_CORRUPT, "is of %" PRIu64 " bytes", s.size);
	*ret_size = (size_t)s.size;
	return mft_stream_read(n, &s, 0, ret, *ret_size, e);
}

enum status reparse_load(struct mft *n, uint64_t number, struct reparse *ret, struct err *e)
{
	uint8_t value[HEAD_SIZE + REPARSE_MAX];
	struct err why = ERR_INIT;
	size_t size;
	const enum status st = load_value(n, number, value, &size, &why);

	*ret = (struct reparse){ 0 };
	if (st == ST_INPUT)
		return ST_OK;
	if (st) {
		snprintf(ret->where, sizeof(ret->where), "of unknown kind: its reparse point %.80s",
			 why.message);
		return err_set(e, st, "$REPARSE_POINT %s", why.message);
	}
	ret->tag = get_le32(value);
	ret->is_link = ret->tag & TAG_SURROGATE;
	if (ret->tag == TAG_WOF)
		describe_wof(ret, value + HEAD_SIZE,
			     MIN((size_t)get_le16(value + 4), size - HEAD_SIZE));
	else
		describe(ret);
	return ST_OK;
}
