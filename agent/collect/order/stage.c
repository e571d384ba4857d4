/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/order/stage.h"

#include <string.h>

bool batch_init(struct batch *b)
{
	b->bytes = malloc(STREAM_EXTENTS * sizeof(*b->bytes));
	return b->bytes;
}

void batch_deinit(struct batch *b)
{
	free(b->bytes);
}

bool batch_has_room(const struct batch *b, size_t n)
{
	return STREAM_EXTENTS - b->n >= n;
}

void batch_add(struct batch *b, const struct rsz_extent *x, const uint8_t *bytes)
{
	memcpy(b->bytes[b->n], bytes, PAGE_SIZE);
	b->extents[b->n++] = *x;
}

bool batch_has(const struct batch *b, uint64_t address)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->extents[i].address == address)
			return true;
	return false;
}

void batch_emit(struct batch *b, struct stream_piece *p)
{
	memcpy(p->data, b->bytes, b->n * PAGE_SIZE);
	memcpy(p->extents, b->extents, b->n * sizeof(*b->extents));
	for (size_t i = 0; i < b->n; i++)
		p->pages[i] = (struct page_status){ .state = PAGE_DATA };
	p->n_extents = b->n;
	b->n = 0;
}

bool stage_init(struct stage *stage)
{
	struct stream_piece *p = &stage->piece;

	p->extents = malloc(STAGE_PAGES * sizeof(*p->extents));
	p->pages = malloc(STAGE_PAGES * sizeof(*p->pages));
	p->data = malloc(STAGE_PAGES * PAGE_SIZE);
	return p->extents && p->pages && p->data;
}

void stage_deinit(struct stage *stage)
{
	free(stage->piece.extents);
	free(stage->piece.pages);
	free(stage->piece.data);
}

void stage_emit(struct stage *stage, struct stream_piece *p)
{
	const struct stream_piece *from = &stage->piece;
	size_t at = 0;

	while (stage->extent < from->n_extents && p->n_extents < STREAM_EXTENTS) {
		struct rsz_extent *x = &from->extents[stage->extent];
		const size_t n = MIN(rsz_extent_pages(x), STREAM_CHUNK / PAGE_SIZE - at);

		if (!n)
			break;
		memcpy(p->data + at * PAGE_SIZE, from->data + stage->page * PAGE_SIZE,
		       n * PAGE_SIZE);
		memcpy(p->pages + at, from->pages + stage->page, n * sizeof(*p->pages));
		p->extents[p->n_extents] = *x;
		p->extents[p->n_extents++].length = (uint32_t)(n * PAGE_SIZE);
		x->address += n * PAGE_SIZE;
		x->length -= (uint32_t)(n * PAGE_SIZE);
		stage->extent += !x->length;
		stage->page += n;
		at += n;
	}
	if (stage->extent == from->n_extents) {
		stage->piece.n_extents = 0;
		stage->pages = stage->extent = stage->page = 0;
	}
}
