/* SPDX-License-Identifier: Apache-2.0 */
/* Who asked for which block: see the header. */
#include "agent/simulator/traces.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"

#define RESERVED_PAGES 0x100 /* 64 MiB, if nobody says otherwise ("Preparing to use UMDH") */
#define ENTRIES_MAIN   400
#define ENTRIES        60
#define DEPTH_MIN      4
#define DEPTH_MAX      32 /* BackTrace[] */

/* _STACK_TRACE_DATABASE */
#define BUCKETS        137 /* hash chains, 10 bytes (hexadecimal) each */
#define BUCKETS_AT     0x2d8
#define ENTRIES_AT     0x1000

/* _RTL_STACK_TRACE_ENTRY */
#define INDEX          0xc
#define DEPTH          0xe
#define FRAMES         0x10

struct database {
	uint64_t va;
	uint8_t *bytes;
	uint32_t next; /* where the next entry goes */
	size_t count;
};

static uint64_t draw_frame(struct sim_making *x, const struct sim_image *image)
{
	const uint64_t code = (uint64_t)image->text_pages * PAGE_SIZE;

	return image->base + PAGE_SIZE + 0x20 + sim_below(&x->in->random, code - 0x20);
}

/* The library that no loader's list has is in some traces of a process that maps it. */
static const struct sim_image *draw_image(struct sim_making *x)
{
	const uint64_t kind = sim_below(&x->in->random, 8);

	if (kind == 0 && x->process % 3 == 2)
		return &x->in->unlisted;
	return kind < 3 ? &x->in->kernel32 : x->program;
}

/* From the allocator up to where threads begin. */
static void draw_frames(struct sim_making *x, uint64_t *frames, uint32_t depth)
{
	for (uint32_t i = 1; i + 2 < depth; i++)
		frames[i] = draw_frame(x, draw_image(x));
	frames[0] = draw_frame(x, &x->in->ntdll);
	frames[depth - 2] = x->in->kernel32.base + PAGE_SIZE + 0x14;
	frames[depth - 1] = x->in->ntdll.base + PAGE_SIZE + 0x11;
}

void sim__traces_tell(const struct sim_making *x, uint64_t entry, const uint64_t *frames,
		      uint32_t depth)
{
	FILE *out = x->in->m->told;

	if (!out)
		return;
	fprintf(out, "trace-entry,%" PRIu32 ",0x%" PRIx64 ",", x->p->pid, entry);
	for (uint32_t i = 0; i < depth; i++)
		fprintf(out, "%s0x%" PRIx64, i ? " " : "", frames[i]);
	fprintf(out, "\n");
}

/* Traces that came in later are in front of their chain. */
static void put_trace_entry(struct sim_making *x, struct database *d, bool page_heap)
{
	uint64_t *random = &x->in->random, frames[DEPTH_MAX], sum = 0;
	const bool deep = sim_below(random, 16) == 0;
	const uint32_t depth =
		deep ? DEPTH_MAX - 1 : DEPTH_MIN + (uint32_t)sim_below(random, DEPTH_MAX / 2);
	const uint64_t va = d->va + d->next;
	uint8_t *at = d->bytes + d->next, *bucket;

	draw_frames(x, frames, depth);
	for (uint32_t i = 0; i < depth; i++) {
		put_le64(at + FRAMES + 8 * i, frames[i]);
		sum += frames[i];
	}
	bucket = d->bytes + BUCKETS_AT + 0x10 * (sum % BUCKETS);
	put_le64(at, get_le64(bucket)); /* HashChain */
	put_le64(bucket, va);
	put_le16(at + 8, (uint16_t)(1 + sim_below(random, 0x7ff))); /* TraceCount */
	if (page_heap) {
		put_le16(at + INDEX, (uint16_t)(d->count + 1));
		put_le16(at + DEPTH, (uint16_t)depth);
	} else {
		put_le32(at + INDEX, depth);
	}
	d->next += (FRAMES + 8 * depth + 0xf) & ~0xfu;
	x->traces[d->count++] = va;
	/* EntryIndexArray grows down from the end of the reserved range. */
	put_le64(d->bytes + RESERVED_PAGES * PAGE_SIZE - 8 * d->count, va);
	sim__traces_tell(x, va, frames, depth);
}

static void put_database_head(const struct database *d)
{
	const uint64_t end = d->va + RESERVED_PAGES * PAGE_SIZE;

	put_le64(d->bytes + 0x78, d->va); /* LowerMemoryStart */
	put_le64(d->bytes + 0x88, d->va); /* CommitBase */
	put_le64(d->bytes + 0x90, d->va + (d->next + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE);
	put_le64(d->bytes + 0x98, end - (8 * d->count + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE);
	put_le64(d->bytes + 0xa0, d->va + d->next); /* NextFreeLowerMemory, and UpperMemory */
	put_le64(d->bytes + 0xa8, end - 8 * d->count);
	put_le32(d->bytes + 0xb0, (uint32_t)(40 * d->count)); /* NumberOfEntriesLookedUp, Added */
	put_le32(d->bytes + 0xb4, (uint32_t)d->count);
	put_le64(d->bytes + 0xb8, end); /* EntryIndexArray: one before the first */
	put_le32(d->bytes + 0xc0, (uint32_t)d->count);
	put_le32(d->bytes + 0x2d0, BUCKETS);
}

/* Committed at both ends, reserved in between. */
static bool add_database_region(struct sim_making *x, struct database *d)
{
	struct sim_region r = { .va = d->va, .pages = RESERVED_PAGES, .bytes = d->bytes };
	struct sim_vad vad = { .first = SIM_VPN(d->va),
			       .last = SIM_VPN(d->va) + RESERVED_PAGES - 1,
			       .protection = SIM_RW };
	const uint32_t low = (uint32_t)((d->next + PAGE_SIZE - 1) / PAGE_SIZE);
	const uint32_t high = (uint32_t)(8 * d->count + PAGE_SIZE - 1) / PAGE_SIZE;
	struct err e;

	vad.charge = low + high;
	r.committed = calloc(RESERVED_PAGES, 1);
	if (!r.committed || !sim__vads_add(&x->vads, &vad)) {
		free(r.bytes);
		free(r.committed);
		return false;
	}
	memset(r.committed, 1, low);
	memset(r.committed + RESERVED_PAGES - high, 1, high);
	return sim__regions_add(&x->p->regions, &r, &e) == ST_OK;
}

enum status sim__traces_make(struct sim_making *x, bool page_heap, struct err *e)
{
	const size_t count = x->process == x->in->m->main ? ENTRIES_MAIN : ENTRIES;
	struct database d = { .va = sim__making_place(x, RESERVED_PAGES), .next = ENTRIES_AT };

	d.bytes = calloc(RESERVED_PAGES, PAGE_SIZE);
	x->traces = calloc(count, sizeof(*x->traces));
	if (!d.bytes || !x->traces) {
		free(d.bytes);
		return err_nomem(e);
	}
	while (d.count < count)
		put_trace_entry(x, &d, page_heap);
	put_database_head(&d);
	x->n_traces = count;
	put_le64(x->ntdll_bytes + TRACES_AT, d.va);
	put_le32(x->peb_bytes + 0xbc,
		 get_le32(x->peb_bytes + 0xbc) | FLG_USER_STACK_TRACE_DB); /* NtGlobalFlag */
	return add_database_region(x, &d)
		       ? ST_OK
		       : err_set(e, ST_USAGE, "there is no room for stack traces");
}
