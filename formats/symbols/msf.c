/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/symbols/msf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"

#define MSF_MAGIC_SIZE    32
#define MSF_SUPERBLOCK    56

/* Microsoft's reader takes 512 to 4096, and LLVM's up to 32768 since large files have them. */
#define MSF_BLOCK_MIN     512
#define MSF_BLOCK_MAX     32768

/* A kernel's has some 1000 streams and 12 MB: its directory 20 KB, its types 4 MB. */
#define MSF_DIRECTORY_MAX ((uint32_t)16 << 20)
#define MSF_STREAM_MAX    ((uint32_t)32 << 20)

static uint32_t msf_blocks(const struct msf *m, uint32_t size)
{
	return size / m->block_size + (size % m->block_size != 0);
}

/* `list`: the numbers of the blocks; there are as many as `size` needs. */
static enum status read_msf_blocks(const struct msf *m, const uint8_t *list, uint8_t *to,
				   uint32_t size, struct err *e)
{
	enum status st = ST_OK;

	for (uint32_t done = 0; done < size && !st; list += 4) {
		const uint32_t block = get_le32(list), n = MIN(size - done, m->block_size);

		if (!block || block >= m->blocks)
			return err_set(e, ST_INPUT, "names block %" PRIu32 " of %" PRIu32, block,
				       m->blocks);
		st = blob_read(m->in, (uint64_t)block * m->block_size, to + done, n, e);
		done += n;
	}
	return st == ST_CORRUPT ? ST_INPUT : st;
}

static enum status read_msf_superblock(struct msf *m, uint32_t *ret_list, struct err *e)
{
	static const char magic[MSF_MAGIC_SIZE] = "Microsoft C/C++ MSF 7.00\r\n\x1a"
						  "DS\0\0";
	uint8_t head[MSF_SUPERBLOCK];
	enum status st;

	if (m->in->size == BLOB_ENDLESS || m->in->size < sizeof(head))
		return ST_NOT_MINE;
	st = blob_read(m->in, 0, head, sizeof(head), e);
	if (st)
		return st;
	if (memcmp(head, magic, sizeof(magic)) != 0)
		return ST_NOT_MINE;
	m->block_size = get_le32(head + 32);
	m->blocks = get_le32(head + 40);
	m->directory_size = get_le32(head + 44);
	*ret_list = get_le32(head + 52);
	if (m->block_size < MSF_BLOCK_MIN || m->block_size > MSF_BLOCK_MAX ||
	    (m->block_size & (m->block_size - 1)))
		return err_set(e, ST_INPUT, "has blocks of %" PRIu32 " bytes", m->block_size);
	if (m->directory_size < 4 || m->directory_size > MSF_DIRECTORY_MAX)
		return err_set(e, ST_INPUT, "has a directory of %" PRIu32 " bytes",
			       m->directory_size);
	return ST_OK;
}

/*
 * The list of the directory's blocks is in the block that the superblock names. Directories that
 * need more of them, where the two makers differ, have 4 MiB and more with the usual blocks.
 */
enum status msf__open(struct blob *in, struct msf *m, struct err *e)
{
	_cleanup_free_ uint8_t *list = NULL;
	uint32_t first, n;
	enum status st;

	*m = (struct msf){ .in = in };
	st = read_msf_superblock(m, &first, e);
	if (st)
		return st;
	n = msf_blocks(m, m->directory_size);
	if (n > m->block_size / 4)
		return err_set(e, ST_INPUT, "has a directory of %" PRIu32 " blocks", n);
	list = malloc((size_t)n * 4);
	m->directory = malloc(m->directory_size);
	if (!list || !m->directory)
		return err_nomem(e);
	st = blob_read(m->in, (uint64_t)first * m->block_size, list, (size_t)n * 4, e);
	if (!st)
		st = read_msf_blocks(m, list, m->directory, m->directory_size, e);
	if (st)
		return err_add(e, st == ST_CORRUPT ? ST_INPUT : st, "the directory");
	m->streams = get_le32(m->directory);
	if (m->streams > (m->directory_size - 4) / 4)
		return err_set(e, ST_INPUT, "the directory has no room for %" PRIu32 " streams",
			       m->streams);
	return ST_OK;
}

static uint32_t msf_stream_size(const struct msf *m, uint32_t i)
{
	const uint32_t size = i < m->streams ? get_le32(m->directory + 4 + (size_t)i * 4) : 0;

	return size == MSF_NO_STREAM ? 0 : size;
}

enum status msf__read(const struct msf *m, uint32_t number, struct msf_stream *ret, struct err *e)
{
	uint64_t at = 4 + (uint64_t)m->streams * 4;
	const uint32_t size = msf_stream_size(m, number);
	enum status st;

	*ret = (struct msf_stream){ 0 };
	if (!size)
		return ST_OK;
	for (uint32_t i = 0; i < number; i++)
		at += (uint64_t)msf_blocks(m, msf_stream_size(m, i)) * 4;
	if (size > MSF_STREAM_MAX || size > m->in->size ||
	    !range_fits(at, (uint64_t)msf_blocks(m, size) * 4, m->directory_size))
		return err_set(e, ST_INPUT,
			       "msf_stream %" PRIu32 " of %" PRIu32 " bytes is not there", number,
			       size);
	ret->at = malloc(size);
	if (!ret->at)
		return err_nomem(e);
	ret->size = size;
	st = read_msf_blocks(m, m->directory + at, ret->at, size, e);
	return st ? err_add(e, st, "msf_stream %" PRIu32, number) : ST_OK;
}

void msf__close(struct msf *m)
{
	free(m->directory);
}
