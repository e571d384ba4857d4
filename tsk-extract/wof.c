/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/wof.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/lzx.h"
#include "formats/base/xpress_huffman.h"

struct wof {
	struct mft *mft;
	struct mft_stream stream;
	enum wof_algorithm algorithm;
	uint64_t size; /* of the file */
	uint64_t chunks;
	uint64_t table;  /* bytes of it */
	size_t entry;    /* bytes of an entry */
	uint8_t *packed; /* room for a chunk as it is stored */
};

static const struct {
	const char *name;
	uint32_t unit;
} algorithms[WOF_ALGORITHMS] = {
	[WOF_XPRESS4K] = { "xpress4k", 4096 },
	[WOF_LZX] = { "lzx", LZX_CHUNK },
	[WOF_XPRESS8K] = { "xpress8k", 8192 },
	[WOF_XPRESS16K] = { "xpress16k", 16384 },
};

const char *wof_algorithm_name(enum wof_algorithm a)
{
	return algorithms[a].name;
}

uint64_t wof_unit_size(const struct wof *w)
{
	return algorithms[w->algorithm].unit;
}

const struct mft_stream *wof_stream(const struct wof *w)
{
	return &w->stream;
}

static struct name stream_name(void)
{
	uint8_t on_disk[2 * (sizeof(WOF_STREAM) - 1)];
	struct name ret;

	for (size_t i = 0; i < sizeof(WOF_STREAM) - 1; i++)
		put_le16(on_disk + 2 * i, (uint8_t)WOF_STREAM[i]);
	name_from_disk(on_disk, sizeof(WOF_STREAM) - 1, &ret);
	return ret;
}

static enum status wof_fill(struct wof *w, uint64_t number, struct err *e)
{
	const struct name name = stream_name();
	enum status st = mft_stream_load(w->mft, number, ATTRIBUTE_DATA, &name, &w->stream, e);

	if (st)
		return st;
	if (w->stream.flags & (ATTRIBUTE_COMPRESSED | ATTRIBUTE_ENCRYPTED))
		return err_set(e, ST_CORRUPT, "is compressed or encrypted by NTFS, too");
	w->chunks = (w->size + wof_unit_size(w) - 1) / wof_unit_size(w);
	w->entry = w->size > UINT32_MAX ? 8 : 4;
	w->table = w->chunks ? (w->chunks - 1) * w->entry : 0;
	if (w->table >= w->stream.size)
		return err_set(e, ST_CORRUPT, "has %" PRIu64 " bytes, less than its table",
			       w->stream.size);
	w->packed = malloc((size_t)wof_unit_size(w));
	return w->packed ? ST_OK : err_nomem(e);
}

enum status wof_open(struct mft *n, uint64_t number, enum wof_algorithm algorithm, uint64_t size,
		     struct wof **ret, struct err *e)
{
	struct wof *w = calloc(1, sizeof(*w));
	enum status st;

	if (!w)
		return err_nomem(e);
	w->mft = n;
	w->algorithm = algorithm;
	w->size = size;
	st = wof_fill(w, number, e);
	if (st) {
		wof_close(w);
		return err_add(e, st, WOF_STREAM);
	}
	*ret = w;
	return ST_OK;
}

void wof_close(struct wof *w)
{
	if (!w)
		return;
	mft_stream_deinit(&w->stream);
	free(w->packed);
	free(w);
}

/* Where chunk `i` is, behind the table; for the one behind the last, where the stream ends. */
static enum status find_wof_chunk(struct wof *w, uint64_t i, uint64_t *ret, struct err *e)
{
	uint8_t entry[8];
	enum status st = ST_OK;

	*ret = i ? w->stream.size - w->table : 0;
	if (!i || i >= w->chunks)
		return ST_OK;
	st = mft_stream_read(w->mft, &w->stream, (i - 1) * w->entry, entry, w->entry, e);
	if (!st)
		*ret = w->entry == 8 ? get_le64(entry) : get_le32(entry);
	return st;
}

static bool decode(const struct wof *w, size_t packed, uint8_t *to, size_t len)
{
	if (packed == len)
		memcpy(to, w->packed, len);
	else if (w->algorithm == WOF_LZX)
		return lzx_decode(w->packed, packed, to, len);
	else
		return xpress_huffman_decode(w->packed, packed, to, len);
	return true;
}

enum status wof_read(struct wof *w, uint64_t off, void *buf, size_t len, struct err *e)
{
	const uint64_t chunk = off / wof_unit_size(w);
	uint64_t first, end;
	enum status st = find_wof_chunk(w, chunk, &first, e);

	if (!st)
		st = find_wof_chunk(w, chunk + 1, &end, e);
	if (st)
		return st;
	if (first >= end || end - first > len || end > w->stream.size - w->table)
		return err_set(e, ST_CORRUPT, "chunk %" PRIu64 " is at %" PRIu64 " to %" PRIu64,
			       chunk, first, end);
	st = mft_stream_read(w->mft, &w->stream, w->table + first, w->packed, (size_t)(end - first),
			     e);
	if (!st && !decode(w, (size_t)(end - first), buf, len))
		st = err_set(e, ST_CORRUPT, "chunk %" PRIu64 " cannot be decompressed", chunk);
	return st;
}
