/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/room.h"

#include <string.h>

#include "agent/collect/acquire/missing.h"
#include "agent/collect/acquire/preflight.h"
#include "formats/rsz/rsz_writer.h"

#define END_ROOM     ((uint64_t)512 << 10)
/* A container of nothing, with a manifest that names many ranges. */
#define NOTHING_ROOM ((uint64_t)1 << 20)

uint64_t room_reserve(uint64_t memory_bytes)
{
	return END_ROOM + missing_room(memory_bytes);
}

/*
 * If nothing compresses: each page with its extent, its run and its entry of the index (64 bytes),
 * in a record with others, which is less than 1/32 more. And each page table up to six times more:
 * in the passes before and after, behind what it names, and up to three times because it has
 * changed; tables are rarely 1/64 of the memory, so that is 3/32.
 */
static uint64_t at_most(uint64_t memory_bytes, uint64_t file_bytes)
{
	const uint64_t content = memory_bytes + file_bytes;

	return content + content / 32 + memory_bytes / 32 * 3 + NOTHING_ROOM;
}

struct output_need room_need(uint64_t memory_bytes, uint64_t file_bytes)
{
	return (struct output_need){
		.least = room_reserve(memory_bytes),
		.most = at_most(memory_bytes, file_bytes),
	};
}

struct room_sample {
	struct rsz_encoder *encoder;
	struct rsz_frame frame;
	uint64_t seen, stored; /* bytes */
};

enum status room_sample_create(int level, struct room_sample **ret, struct err *e)
{
	struct room_sample *s = calloc(1, sizeof(*s));
	enum status st = s ? rsz_encoder_create(level, PROBE_BYTES, &s->encoder, e) : err_nomem(e);

	if (!st)
		st = rsz_frame_init(&s->frame, PROBE_BYTES, 1, e);
	if (st) {
		room_sample_destroy(s);
		return st;
	}
	*ret = s;
	return ST_OK;
}

void room_sample_destroy(struct room_sample *s)
{
	if (!s)
		return;
	rsz_encoder_destroy(s->encoder);
	rsz_frame_deinit(&s->frame);
	free(s);
}

void room_sample_see(void *sample, uint8_t *data, const struct page_status *status, size_t pages)
{
	struct room_sample *s = sample;
	struct page_status copy[PROBE_BYTES / PAGE_SIZE];
	struct rsz_extent x = { .length = (uint32_t)(pages * PAGE_SIZE) };
	struct rsz_chunk c = {
		.paged = true,
		.extents = &x,
		.n_extents = 1,
		.length = x.length,
		.pages = copy,
		.n_pages = pages,
		.data = data,
	};

	memcpy(copy, status, pages * sizeof(*copy));
	if (rsz_encode(s->encoder, &c, &s->frame, NULL))
		return;
	s->seen += x.length;
	s->stored += s->frame.header_length + s->frame.stored;
}

/* Pieces of a file, as many as keep the whole in a few MiB. */
#define FILE_PLACES 16

void room_sample_file(struct room_sample *s, struct disk *d, const struct pagefile *p)
{
	const uint64_t step = MAX(p->size / FILE_PLACES / PAGE_SIZE * PAGE_SIZE, PROBE_BYTES);
	_cleanup_free_ uint8_t *buf = malloc(PROBE_BYTES);
	struct page_status status[PROBE_BYTES / PAGE_SIZE];
	struct extract *x = NULL;
	struct extract_piece piece;

	if (!buf || pagefile_open(d, p, 0, &x, NULL))
		return;
	for (uint64_t at = 0; at < p->size; at += step)
		if (!extract_read(x, at, buf, PROBE_BYTES, status, &piece, NULL))
			room_sample_see(s, buf, status, piece.length / PAGE_SIZE);
	extract_close(x);
}

uint64_t room_sample_bytes(const struct room_sample *s)
{
	return s ? s->seen : 0;
}

/* What could not be looked at is taken not to compress. */
static uint64_t scale_by_sample(const struct room_sample *s, uint64_t bytes)
{
	return s && s->seen ? (uint64_t)((double)bytes * (double)s->stored / (double)s->seen)
			    : bytes;
}

/* Beside the chunks: page tables that are taken again, compressed, and records of a page each. */
#define BESIDE 64

struct output_need room_estimate(const struct room_sample *memory, uint64_t memory_bytes,
				 const struct room_sample *files, uint64_t file_bytes)
{
	struct output_need ret = room_need(memory_bytes, file_bytes);

	if (room_sample_bytes(memory))
		ret.likely = MIN(ret.most, scale_by_sample(memory, memory_bytes) +
						   memory_bytes / BESIDE +
						   scale_by_sample(files, file_bytes));
	return ret;
}
