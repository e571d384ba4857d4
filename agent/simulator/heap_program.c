/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program at work on a heap: it allocates a few sizes again and again and others now and then,
 * frees some, and writes text, numbers, bytes and pointers. In the end each block that is not to
 * leak can be reached from a root, most of them through others.
 */
#include <string.h>

#include "agent/simulator/heap_build.h"

#define POPULAR          16  /* sizes that most blocks have */
#define DEPTH            8   /* a block is referred to from one of the latest so many */
#define ROOTS            32  /* of so many blocks one is kept outside the heap */
#define SLOTS_MAX        8   /* pointers of the writer's that a block can hold */
#define RUN              100 /* blocks that are made and freed together */
#define SIZE_MAX_DEFAULT 0x8000
#define LARGE_WRITTEN    0x10000

struct program {
	struct sim_heap_builder *b;
	uint32_t min, max;
	uint32_t popular[POPULAR];
	uint32_t *live; /* numbers of blocks in use */
	size_t count;
};

/* Evenly over the powers of two, as sizes are. */
static uint32_t draw_size(struct program *p, uint32_t max)
{
	uint64_t *random = &p->b->random;
	uint32_t bits = 1;

	if (max / 2 < p->min)
		return p->min + (uint32_t)sim_below(random, max - p->min + 1);
	while (bits < 31 && max >> bits)
		bits++;
	for (;;) {
		const uint32_t top = UINT32_C(1) << sim_below(random, bits);
		const uint32_t size = top + (uint32_t)sim_below(random, top);

		if (size >= p->min && size <= max)
			return size;
	}
}

static const char *const words[] = {
	"C:\\Windows\\System32\\",
	"svchost.exe",
	"\\Device\\HarddiskVolume2",
	"SOFTWARE\\Microsoft",
	"https://",
	"Content-Type: text/html",
	"LocalService",
	"{00000000-0000-0000-C000-000000000046}",
};

static void fill_text(uint64_t *random, uint8_t *at, uint64_t size, unsigned width)
{
	for (uint64_t i = 0; i + width < size;) {
		const char *word = words[sim_below(random, ARRAY_SIZE(words))];

		for (; *word && i + width < size; word++, i += width) {
			at[i] = (uint8_t)*word;
			if (width == 2)
				at[i + 1] = 0;
		}
	}
}

static void fill_block(struct program *p, uint32_t block, uint64_t size)
{
	uint64_t *random = &p->b->random;
	const unsigned kind = (unsigned)sim_below(random, 5);
	uint8_t *at;

	if (block == SIM_HEAP_NO_BLOCK)
		return;
	at = sim__heap_bytes(p->b, block);
	memset(at, 0, size);
	if (kind < 2)
		fill_text(random, at, size, kind + 1);
	else if (kind == 2)
		for (uint64_t i = 0; i + 8 <= size; i += 8)
			put_le64(at + i, sim_draw(random));
	else if (kind == 3)
		for (uint64_t i = 0; i + 4 <= size; i += 4)
			put_le32(at + i, (uint32_t)sim_below(random, 1000));
}

static void allocate_block(struct program *p)
{
	const bool popular = sim_below(&p->b->random, 10) < 7;
	const uint32_t size =
		popular ? p->popular[sim_below(&p->b->random, POPULAR)] : draw_size(p, p->max);
	const uint32_t block = sim__heap_alloc(p->b, size);

	fill_block(p, block, size);
	p->live[p->count++] = block;
}

static void free_one(struct program *p)
{
	const size_t i = sim_below(&p->b->random, p->count);

	sim__heap_free(p->b, p->live[i]);
	p->live[i] = p->live[--p->count];
}

static void shuffle_live_blocks(struct program *p)
{
	for (size_t i = p->count; i > 1; i--) {
		const size_t with = sim_below(&p->b->random, i);
		const uint32_t kept = p->live[i - 1];

		p->live[i - 1] = p->live[with];
		p->live[with] = kept;
	}
}

/*
 * From one of the blocks live[first] to live[last - 1] to live[to], at one of its first words that
 * has none yet. False: there was no room.
 */
static bool refer_forward(struct program *p, uint8_t *used, size_t first, size_t last, size_t to)
{
	struct sim_heap_builder *b = p->b;
	const size_t from = first + sim_below(&b->random, last - first);
	const struct block *source = &b->blocks[p->live[from]];
	const struct block *target = &b->blocks[p->live[to]];
	uint64_t into = 0;

	if (used[from] == SLOTS_MAX || source->requested / b->pointer <= used[from])
		return false;
	if (sim_below(&b->random, 16) == 0)
		into = sim_below(&b->random, target->requested);
	sim__heap_refer(b, p->live[from], (uint64_t)used[from] * b->pointer, p->live[to], into);
	used[from]++;
	return true;
}

/* The first `leaks` of the blocks leak; each third is referred to by the one before it. */
static bool connect_blocks(struct program *p)
{
	struct sim_heap_builder *b = p->b;
	const size_t leaks = MIN(p->count, b->plan.leaks);
	_cleanup_free_ uint8_t *used = calloc(p->count + 1, 1);

	if (!used)
		return false;
	shuffle_live_blocks(p);
	for (size_t i = 2; i < leaks; i += 3)
		refer_forward(p, used, i - 1, i, i);
	for (size_t i = leaks; i < p->count; i++) {
		const size_t first = i > leaks + DEPTH ? i - DEPTH : leaks;
		bool linked = false;

		for (unsigned tries = i < leaks + b->plan.kept ? 0 : 4;
		     tries && !linked && i > first; tries--)
			linked =
				sim_below(&b->random, ROOTS) && refer_forward(p, used, first, i, i);
		if (!linked)
			sim__heap_root(b, p->live[i]);
	}
	return true;
}

/*
 * As a document that is closed: blocks that were made one after the other are freed so, and leave
 * free chunks full of headers of before.
 */
static void release_runs(struct program *p, uint64_t runs)
{
	const size_t before = p->count;

	for (uint64_t i = 0; i < runs * (RUN + 1) && !p->b->failed; i++)
		allocate_block(p);
	if (p->b->failed)
		return;
	for (uint64_t i = 0; i < runs * (RUN + 1); i++)
		if (i % (RUN + 1) < RUN)
			sim__heap_free(p->b, p->live[before + i]);
	for (uint64_t i = 0; i < runs; i++) /* one of each stays */
		p->live[before + i] = p->live[before + i * (RUN + 1) + RUN];
	p->count = before + runs;
}

static void take_large(struct program *p, uint64_t size)
{
	const uint32_t block = sim__heap_alloc(p->b, size);

	/* What is large is hardly ever written as a whole. */
	fill_block(p, block, p->b->hp ? MIN(size, LARGE_WRITTEN) : size);
	p->live[p->count++] = block;
}

/* A segment heap's: pages of a segment of each context, and what is too large for both. */
static void take_large_of_each(struct program *p, uint32_t count)
{
	static const uint32_t least[] = { 0x20001, 0x80000, 0x7f0001 };
	uint32_t spare = SIM_HEAP_NO_BLOCK;

	for (uint32_t i = 0; i < count && !p->b->failed; i++) {
		const uint64_t size = least[i % 3] + sim_below(&p->b->random, 0x50000);

		if (i < 3) /* it will leave a hole */
			spare = sim__heap_alloc(p->b, size);
		take_large(p, size);
		if (i < 3 && !p->b->failed)
			sim__heap_free(p->b, spare);
	}
}

static bool run_program(struct program *p)
{
	const struct sim_heap_plan *plan = &p->b->plan;
	const uint64_t runs =
		MIN(plan->allocations, plan->allocations * plan->released / 100 / RUN);

	for (size_t i = 0; i < POPULAR; i++)
		p->popular[i] = draw_size(p, MAX(p->min, MIN(p->max, 1024)));
	while (p->count < plan->allocations - runs && !p->b->failed) {
		allocate_block(p);
		if (plan->churn && p->count && sim_below(&p->b->random, 100) < 2 * plan->churn)
			free_one(p);
	}
	release_runs(p, runs);
	if (p->b->hp)
		take_large_of_each(p, plan->virtual_blocks);
	for (uint32_t i = 0; !p->b->hp && i < plan->virtual_blocks && !p->b->failed; i++)
		take_large(p, 0x100000 + sim_below(&p->b->random, 0x100000));
	return p->b->failed || connect_blocks(p);
}

/*
 * Pointers to leaks that are left in free chunks, as many as there are: who takes free memory for
 * the program's finds no leak. Behind a chunk's links, where a freed block's bytes stay.
 */
static void leave_traces(struct program *p)
{
	struct sim_heap_builder *b = p->b;
	const size_t leaks = MIN(p->count, b->plan.leaks);
	size_t k = 0;

	for (size_t s = 0; s < b->segment_count; s++)
		for (uint32_t i = b->segments[s].first; i != NO_CHUNK; i = b->chunks[i].after) {
			const struct chunk *c = &b->chunks[i];
			const uint64_t bytes = (uint64_t)c->size * b->unit;

			if (k == leaks || c->state != CHUNK_FREE ||
			    bytes < b->header + 4 * b->pointer)
				continue;
			put_heap_pointer(b,
					 sim__heap_segment(b, i)->bytes +
						 (uint64_t)c->at * b->unit + b->header +
						 2 * b->pointer,
					 b->blocks[p->live[k++]].address);
		}
}

static bool make_heap_hole(struct sim_heap_builder *b, unsigned bin)
{
	for (uint32_t i = b->bins[bin]; i != NO_CHUNK; i = b->chunks[i].bin_after)
		if (sim__chunk_decommit(b, i))
			return true;
	return false;
}

/* The largest free chunks first. */
static void make_holes(struct sim_heap_builder *b)
{
	uint32_t left = b->plan.holes;

	for (unsigned bin = BINS; left && bin-- > PAGE_SIZE / 16;)
		while (left && make_heap_hole(b, bin))
			left--;
}

enum status sim__heap_work(struct sim_heap_builder *b, struct err *e)
{
	const struct sim_heap_plan *plan = &b->plan;
	struct program p = { .b = b,
			     .min = plan->size_min ? plan->size_min : 1,
			     .max = plan->size_max ? plan->size_max : SIZE_MAX_DEFAULT };
	_cleanup_free_ uint32_t *live = NULL;

	if (p.max < p.min)
		return err_set(e, ST_USAGE, "size_max is below size_min");
	if (plan->allocations >= UINT32_MAX / 64)
		return err_set(e, ST_USAGE, "too many allocations");
	live = calloc(plan->allocations * (1 + 2 * plan->released / 100 + 1) +
			      plan->virtual_blocks + 1,
		      sizeof(*live));
	if (!live)
		return err_set(e, ST_NOMEM, "a program's heap");
	p.live = live;
	if (!run_program(&p))
		return err_set(e, ST_NOMEM, "a program's heap");
	if (!b->failed) {
		make_holes(b);
		leave_traces(&p);
	}
	return ST_OK;
}

/*
 * Heaps that go on
 */

#define TRIES 4096

/* One that is in use; virtual ones stay. SIM_HEAP_NO_BLOCK: there are too few. */
static uint32_t pick_busy(struct sim_heap_builder *b)
{
	for (unsigned i = 0; i < TRIES && b->block_count; i++) {
		const uint32_t block = (uint32_t)sim_below(&b->random, b->block_count);

		if (b->blocks[block].busy && b->blocks[block].kind != SIM_HEAP_VIRTUAL)
			return block;
	}
	return SIM_HEAP_NO_BLOCK;
}

/* As often the one as the other, and new blocks are as large as those that are there. */
bool sim__heap_step(struct sim_heap_builder *b, struct sim_heap_event *ret)
{
	const uint32_t like = pick_busy(b);
	const bool frees = sim_below(&b->random, 2);
	uint32_t block = like;

	if (like == SIM_HEAP_NO_BLOCK)
		return false;
	if (frees) {
		sim__heap_free(b, block);
	} else {
		struct program p = { .b = b };
		const uint64_t size = b->blocks[like].requested;

		block = sim__heap_alloc(b, size);
		fill_block(&p, block, size);
	}
	if (!b->failed)
		sim__heap_rewrite(b);
	if (b->failed)
		return false;
	*ret = (struct sim_heap_event){ .address = b->blocks[block].address,
					.requested = b->blocks[block].requested,
					.kind = b->blocks[block].kind,
					.freed = frees };
	return true;
}
