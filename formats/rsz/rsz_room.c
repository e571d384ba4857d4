/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A new page of 4 KiB is a fault, and in some virtual machines the first touch of each is an exit
 * to the host: 5 ms for a MiB were measured, while to decompress it and compute its SHA-256 took 1.
 * With huge pages it was 0.15 ms.
 */
#include "formats/rsz/rsz_room.h"

#include <stdbool.h>
#include <stdlib.h>

#include "formats/base/os.h"

/* What a chunk has at most, usually. */
#define PLACE     ((size_t)1 << 20)
#define IN_BLOCK  (OS_HUGE_BUFFER / PLACE)
#define BLOCK_MAX 4096 /* 8 GiB */

struct rsz__room {
	uint8_t **blocks;
	size_t n_blocks;
	size_t max_blocks;
	uint8_t **left; /* places that nobody has */
	size_t n_left;
};

struct rsz__room *rsz__room_create(size_t bytes)
{
	const size_t blocks = MIN(bytes / OS_HUGE_BUFFER, (size_t)BLOCK_MAX);
	struct rsz__room *r = blocks ? calloc(1, sizeof(*r)) : NULL;

	if (!r)
		return NULL;
	r->max_blocks = blocks;
	r->blocks = calloc(blocks, sizeof(*r->blocks));
	r->left = calloc(blocks * IN_BLOCK, sizeof(*r->left));
	if (r->blocks && r->left)
		return r;
	rsz__room_destroy(r);
	return NULL;
}

void rsz__room_destroy(struct rsz__room *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_blocks; i++)
		os_buffer_free(r->blocks[i]);
	free(r->blocks);
	free(r->left);
	free(r);
}

static bool add_room_block(struct rsz__room *r)
{
	uint8_t *block = r->n_blocks < r->max_blocks ? os_huge_buffer() : NULL;

	if (!block)
		return false;
	r->blocks[r->n_blocks++] = block;
	for (size_t i = IN_BLOCK; i > 0; i--)
		r->left[r->n_left++] = block + (i - 1) * PLACE;
	return true;
}

uint8_t *rsz__room_take(struct rsz__room *r, size_t len)
{
	/* A small chunk would waste most of a place. */
	if (!r || len > PLACE || len <= PLACE / 2 || (!r->n_left && !add_room_block(r)))
		return malloc(len);
	return r->left[--r->n_left];
}

static bool is_in_room(const struct rsz__room *r, const uint8_t *p)
{
	for (size_t i = 0; i < r->n_blocks; i++)
		if (p >= r->blocks[i] && p < r->blocks[i] + OS_HUGE_BUFFER)
			return true;
	return false;
}

void rsz__room_give(struct rsz__room *r, uint8_t *p)
{
	if (p && r && is_in_room(r, p))
		r->left[r->n_left++] = p;
	else
		free(p);
}
