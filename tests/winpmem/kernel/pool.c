/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include "gate.h"
#include "paging.h"

#define POOL_PAGES 0x40000 /* of virtual memory: 1 GiB */
#define POOL_ROUND 0x200
#define ALIGNMENT  16
#define LISTED_MAX 20
#define OWN_TAG    0x6c6e726bu /* "krnl" */
#define BAD_FREE   0x46        /* bug check 0xC2: not the address of a block */
#define WRONG_TAG  0x0a        /* a block of another tag */

/* Directly in front of each block. */
struct header {
	uint64_t magic; /* the block's address, turned round */
	uint64_t size;
	uint32_t tag, pages;
	uint64_t caller; /* where the driver asked for it */
};

static uint8_t used[POOL_PAGES];
static struct region pool = {
	.base = POOL_VA, .pages = POOL_PAGES, .round = POOL_ROUND, .used = used
};
static uint64_t junk_now = 0xcdcdcdcdcdcdcdcdu;

void pool_set_junk(uint64_t junk)
{
	junk_now = junk;
}

static void fill(uint64_t *at, uint64_t end)
{
	while ((uint64_t)at < end)
		*at++ = junk_now;
}

static void *allocate(uint64_t size, uint32_t tag)
{
	const uint64_t bytes = sizeof(struct header) + ROUND_UP(size, ALIGNMENT);
	const uint32_t pages = (uint32_t)(ROUND_UP(bytes, PAGE_SIZE) / PAGE_SIZE);
	const struct gate_frame *const f = gate_top();
	uint64_t base, block;

	if (bytes < size || bytes / PAGE_SIZE > POOL_PAGES)
		return NULL;
	base = region_take(&pool, pages);
	if (!base)
		return NULL;
	map_new(base, pages, MAP_WRITE);
	block = base + pages * PAGE_SIZE - ROUND_UP(size, ALIGNMENT);
	fill((uint64_t *)block, base + pages * PAGE_SIZE);
	((struct header *)block)[-1] = (struct header){
		.magic = ~block, .size = size, .tag = tag, .pages = pages, .caller = f ? f->rip : 0
	};
	return (void *)block;
}

void *pool_allocate_own(uint64_t size)
{
	return allocate(size, OWN_TAG);
}

void *pool_allocate(uint64_t size, uint32_t tag)
{
	void *const block = allocation_fails() ? NULL : allocate(size, tag);

	if (block) {
		mailbox.counters.pool_blocks++;
		mailbox.counters.pool_bytes += size;
	}
	return block;
}

static void release(struct header *h, uint64_t block)
{
	const uint32_t pages = h->pages;
	const uint64_t base = block + ROUND_UP(h->size, ALIGNMENT) - pages * PAGE_SIZE;

	if (h->tag != OWN_TAG) {
		mailbox.counters.pool_blocks--;
		mailbox.counters.pool_bytes -= h->size;
	}
	h->magic = 0;
	unmap_free(base, pages);
	region_free(&pool, base, pages);
}

void pool_free(void *block, uint32_t tag)
{
	struct header *const h = (struct header *)block - 1;
	const uint64_t at = (uint64_t)block;

	if (!block || at % ALIGNMENT || !is_mapped((uint64_t)h) || h->magic != ~at)
		bug_check(NULL, BAD_POOL_CALLER, BAD_FREE, at, 0, 0);
	if (tag && tag != h->tag)
		bug_check(NULL, BAD_POOL_CALLER, WRONG_TAG, at, h->tag, tag);
	release(h, at);
}

static void say_block(const struct header *h)
{
	const char *const t = (const char *)&h->tag;

	say("pool: left: %c%c%c%c, %lu bytes, allocated from %lx", t[0], t[1], t[2], t[3], h->size,
	    h->caller);
}

/* Finds blocks by the headers on their pages. */
void pool_list(void)
{
	unsigned lines = 0;

	for (uint32_t n = 0; n < pool.round && lines < LISTED_MAX; n++) {
		const uint64_t page = POOL_VA + (uint64_t)n * PAGE_SIZE;

		for (uint64_t at = page; used[n] && at < page + PAGE_SIZE; at += ALIGNMENT) {
			const struct header *const h = (const struct header *)at;

			if (h->magic == ~(at + sizeof(*h)) && h->tag != OWN_TAG) {
				say_block(h);
				lines++;
			}
		}
	}
}
