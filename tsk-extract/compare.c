/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/compare.h"

#include <string.h>

#include "formats/base/os.h"

#define PIECE_PAGES (EXTRACT_BUFFER / PAGE_SIZE)

struct compare_run {
	struct extract *x;
	struct reader *other;
	struct comparison *to;
	uint8_t *a, *b;
	struct page_status status[PIECE_PAGES];
};

/* *ret_good: pages that the other way gave; of the file's own, the status tells. */
static enum status read_both_ways(struct compare_run *c, uint64_t offset, size_t size,
				  size_t *ret_good, struct err *e)
{
	struct extract_piece piece;
	size_t good = 0;
	const enum status st = extract_read(c->x, offset, c->a, size, c->status, &piece, e);

	reader_read(c->other, offset, c->b, size, &good);
	*ret_good = good / PAGE_SIZE;
	return st;
}

static enum status look_again(struct compare_run *c, uint64_t offset, struct err *e)
{
	size_t good;
	const enum status st = read_both_ways(c, offset, PAGE_SIZE, &good, e);

	if (st)
		return st;
	if (!good || c->status[0].state != PAGE_DATA) {
		c->to->unread++;
	} else if (!memcmp(c->a, c->b, PAGE_SIZE)) {
		c->to->settled++;
	} else {
		c->to->different++;
		c->to->first_different = MIN(c->to->first_different, offset);
	}
	return ST_OK;
}

static enum status compare_piece(struct compare_run *c, uint64_t offset, size_t pages,
				 struct err *e)
{
	bool differs[PIECE_PAGES] = { false };
	size_t good;
	enum status st = read_both_ways(c, offset, pages * PAGE_SIZE, &good, e);

	for (size_t i = 0; i < pages && !st; i++) {
		const size_t at = i * PAGE_SIZE;

		if (i >= good || c->status[i].state != PAGE_DATA)
			c->to->unread++;
		else if (memcmp(c->a + at, c->b + at, PAGE_SIZE) != 0)
			differs[i] = true;
		else
			c->to->same++;
	}
	for (size_t i = 0; i < pages && !st; i++)
		if (differs[i])
			st = look_again(c, offset + i * PAGE_SIZE, e);
	return st;
}

enum status compare_file(struct extract *x, struct reader *other, struct comparison *ret,
			 struct err *e)
{
	const uint64_t size = extract_now(x)->size;
	const uint64_t end = MIN(size, other->size) / PAGE_SIZE * PAGE_SIZE;
	struct compare_run *c = calloc(1, sizeof(*c));
	enum status st = ST_OK;

	if (!c)
		return err_nomem(e);
	*ret = (struct comparison){ .first_different = UINT64_MAX,
				    .other_size = size != other->size };
	c->x = x;
	c->other = other;
	c->to = ret;
	c->a = os_buffer(EXTRACT_BUFFER);
	c->b = os_buffer(EXTRACT_BUFFER);
	if (!c->a || !c->b)
		st = err_nomem(e);
	for (uint64_t at = 0; at < end && !st; at += EXTRACT_BUFFER)
		st = compare_piece(c, at, (size_t)(MIN(end - at, EXTRACT_BUFFER) / PAGE_SIZE), e);
	os_buffer_free(c->a);
	os_buffer_free(c->b);
	free(c);
	return st;
}
