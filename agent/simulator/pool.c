/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/simulator/pool.h"

#include <string.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"

/* Behind the EPROCESS structures, and behind the section's prototype entries (machine.h). */
#define NONPAGED    (SIM_POOL + UINT64_C(0x10000000))
#define PAGED       (SIM_PAGED_POOL + UINT64_C(0x1000000))

#define BLOCK_PAGES 64
#define BLOCK_BYTES ((uint64_t)BLOCK_PAGES * PAGE_SIZE)
#define HEADER      16

void sim__pools_init(struct sim_pools *p, struct machine *m)
{
	*p = (struct sim_pools){ .m = m, .next = { NONPAGED, PAGED }, .mapped = NONPAGED };
}

static uint8_t *nonpaged_at(struct sim_pools *p, uint64_t va)
{
	for (; p->mapped <= va; p->mapped += PAGE_SIZE)
		if (!sim__kernel_map(p->m, p->mapped))
			return NULL;
	return sim__kernel_bytes(p->m, va);
}

static uint8_t *paged_at(struct sim_pools *p, uint64_t va)
{
	const uint64_t at = va - PAGED;

	if (at / BLOCK_BYTES == p->n_blocks) {
		if (!ARRAY_ROOM(p->blocks, p->n_blocks, p->room))
			return NULL;
		p->blocks[p->n_blocks] = calloc(1, BLOCK_BYTES);
		if (!p->blocks[p->n_blocks])
			return NULL;
		p->n_blocks++;
	}
	return p->blocks[at / BLOCK_BYTES] + at % BLOCK_BYTES;
}

uint8_t *sim__pool_take(struct sim_pools *p, enum sim_pool kind, size_t size, const char tag[4],
			uint64_t *va)
{
	const size_t whole = HEADER + (size + 15) / 16 * 16;
	uint64_t at = p->next[kind];
	uint8_t *header;

	if (whole > PAGE_SIZE)
		return NULL;
	if (at % PAGE_SIZE + whole > PAGE_SIZE)
		at = (at / PAGE_SIZE + 1) * PAGE_SIZE;
	header = kind == POOL_PAGED ? paged_at(p, at) : nonpaged_at(p, at);
	if (!header)
		return NULL;
	p->next[kind] = at + whole;
	header[2] = (uint8_t)(whole / 16);              /* BlockSize */
	header[3] = kind == POOL_PAGED ? 1 + 2 : 0 + 2; /* PoolType, and that it is in use */
	memcpy(header + 4, tag, 4);
	*va = at + HEADER;
	return header + HEADER;
}

enum status sim__pools_finish(struct sim_pools *p, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < p->n_blocks && !st; i++) {
		struct sim_region r = { .va = PAGED + i * BLOCK_BYTES,
					.pages = BLOCK_PAGES,
					.bytes = p->blocks[i] };

		p->blocks[i] = NULL;
		st = sim__regions_add(&p->m->processes[0].regions, &r, e);
	}
	return st;
}

void sim__pools_deinit(struct sim_pools *p)
{
	for (size_t i = 0; i < p->n_blocks; i++)
		free(p->blocks[i]);
	free(p->blocks);
	*p = (struct sim_pools){ 0 };
}
