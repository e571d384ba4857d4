/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/simulator/leaker.h"

#include <string.h>

#include "agent/simulator/heap.h"
#include "agent/simulator/traces.h"
#include "formats/base/bytes.h"

/* Multiples of 64 KiB, of which the text has addresses but KERNELBASE's. */
#define APP            0x00ef0000
#define KERNELBASE     0x75310000
#define KERNEL32       0x75d30000
#define NTDLL          0x76e80000

#define PROCESS_HEAP   0x00410000
#define PROCESS_COMMIT 0x14000
#define FOREIGN_HEAP   0x00600000
#define FOREIGN_COMMIT 0x2000
#define FOREIGN_END    0x00601e00

#define UNIT           8
#define HEADER         8
#define EXTRA          16 /* with a stack trace */

/* Blocks whose addresses the text has, and the foreign one. */
#define EARLY_SIZE     32
#define FOREIGN_AT     0x00601508
#define FOREIGN_SIZE   128
#define FREED_SIZE     40

static const uint32_t early[] = { 0x0041fc28, 0x0041fca0, 0x00421cd0 };

/* What program and CRT asked for once traces were kept; the last one is at 0x00422bb0. */
#define CALLS_AT    0x00422518
#define CALL_FRAMES 4

/* Return addresses between RtlAllocateHeap's and those that all have; 0: no more. */
struct call {
	uint32_t size;
	uint32_t frames[CALL_FRAMES];
};

static const struct call win32_calls[] = {
	{ 0xcc, { 0x00ef3adc } },
	{ 0x123, { KERNELBASE + 0x7589, 0x00ef3b39 } },
	{ 0x456, { KERNELBASE + 0x7613, 0x00ef3b96 } },
	{ 0x80, { 0x00ef3bfa } },
};

static const struct call crt_calls[] = {
	{ 77, { 0x00ef9c4a, 0x00ef9a91, 0x00ef8d07, 0x00ef3c53 } },
	{ 89, { 0x00ef9c4a, 0x00ef9a91, 0x00ef3ca6 } },
};

#define CALLS       (ARRAY_SIZE(win32_calls) + ARRAY_SIZE(crt_calls))

/* RtlAllocateHeap's, and behind main()'s __tmainCRTStartup, mainCRTStartup and the thread's. */
#define FRAME_FIRST 0x76eab234
static const uint32_t frames_last[] = { 0x00efb998, 0x00efb7df, 0x75d31174, 0x76e8b3f5,
					0x76e8b3c8 };

/* Words of app.exe's code, at multiples of four: the addresses of all leaks. */
static const struct sim_code_word code[] = {
	{ 0x13a4, 0x0041fc28 }, { 0x2418, 0x0041fca0 }, { 0x24f0, 0x00421cd0 },
	{ 0x3ae0, CALLS_AT },   { 0x3b3c, 0x00422600 }, { 0x5d08, 0x00422740 },
	{ 0x5d88, 0x00422bb0 }, { 0x9064, FOREIGN_AT },
};

/* _CrtMemBlockHeader of 32 bits; four bytes more follow the data. */
#define CRT_HEADER   32
#define CRT_PREVIOUS 4
#define CRT_SIZE     16
#define CRT_USE      20
#define CRT_REQUEST  24
#define CRT_GAP      28
#define CRT_GAP_SIZE 4
#define NORMAL_BLOCK 1
#define CRT_BLOCK    2

/* The CRT's own, before main(): so many bytes each. */
static const uint32_t crt_startup[] = { 0x480, 0x54, 0x21c };

/* _pFirstBlock, the newest, and _pLastBlock in app.exe's data. */
#define CRT_FIRST_AT 0x40
#define CRT_LAST_AT  0x44

#define LOG_PAGES    1
#define ENTRY_FRAMES 0xc

/* A heap that is filled from its start upwards. */
struct filling {
	struct sim_heap_builder *b;
	uint64_t *random;
	uint64_t next;           /* where the next chunk is */
	uint32_t last;           /* block that the next may be referred to from */
	uint32_t newest, oldest; /* of the CRT's list */
	uint32_t requests;
};

bool sim__leaker_is(const struct sim_making *x)
{
	return x->in->m->spec.leaker && x->process == x->in->m->main;
}

/* Or the program is still before its calls. */
static bool has_called(const struct sim_making *x)
{
	return x->in->m->spec.leaker == 1;
}

void sim__leaker_program(struct sim_image *image)
{
	image->path = "\\Projects\\app\\Debug\\app.exe";
	image->base = APP;
	image->text_pages = 12;
	image->words = code;
	image->n_words = ARRAY_SIZE(code);
}

void sim__leaker_libraries(struct sim_inside *in)
{
	in->ntdll32.base = NTDLL;
	in->ntdll32.text_pages = 44;
	in->kernel32_32.base = KERNEL32;
	in->kernelbase32 = (struct sim_image){ .path = "\\Windows\\SysWOW64\\KERNELBASE.dll",
					       .base = KERNELBASE,
					       .text_pages = 8,
					       .data_pages = 1,
					       .library = true,
					       .narrow = true };
}

/*
 * Stack traces
 */

static uint32_t collect_frames(const struct call *c, uint64_t *ret)
{
	uint32_t n = 0;

	ret[n++] = FRAME_FIRST;
	for (size_t i = 0; i < CALL_FRAMES && c->frames[i]; i++)
		ret[n++] = c->frames[i];
	for (size_t i = 0; i < ARRAY_SIZE(frames_last); i++)
		ret[n++] = frames_last[i];
	return n;
}

static const struct call *call_of(size_t i)
{
	const size_t first = ARRAY_SIZE(win32_calls);

	return i < first ? &win32_calls[i] : &crt_calls[i - first];
}

/* The log: entry after entry. */
static bool make_traces(struct sim_making *x)
{
	const uint64_t va = sim__making_place(x, LOG_PAGES);
	uint8_t *bytes = sim__making_private(x, va, LOG_PAGES, 0, LOG_PAGES);
	uint32_t at = 0;

	x->traces = calloc(CALLS, sizeof(*x->traces));
	if (!bytes || !x->traces)
		return false;
	for (size_t i = 0; i < CALLS && has_called(x); i++) {
		uint64_t frames[1 + CALL_FRAMES + ARRAY_SIZE(frames_last)];
		const uint32_t n = collect_frames(call_of(i), frames);

		put_le32(bytes + at + 8, n);
		for (uint32_t k = 0; k < n; k++)
			put_le32(bytes + at + ENTRY_FRAMES + 4 * k, (uint32_t)frames[k]);
		x->traces[x->n_traces++] = va + at;
		sim__traces_tell(x, va + at, frames, n);
		at += (ENTRY_FRAMES + 4 * n + 7) & ~7u;
	}
	return true;
}

/*
 * Blocks
 */

/* The next block, with a trace or without (0). SIM_HEAP_NO_BLOCK: it is not where it has to be. */
static uint32_t take_traced_block(struct filling *f, uint64_t size, uint64_t trace)
{
	const uint64_t before = HEADER + (trace ? EXTRA : 0);
	const uint32_t block =
		trace ? sim__heap_alloc_traced(f->b, size, trace) : sim__heap_alloc(f->b, size);
	uint64_t at;

	if (block == SIM_HEAP_NO_BLOCK)
		return block;
	at = sim__heap_address(f->b, block) - before;
	if (f->next && at != f->next)
		return SIM_HEAP_NO_BLOCK;
	f->next = at + (size + before + UNIT - 1) / UNIT * UNIT;
	return block;
}

/* What the program has in use: every eighth block is known to it, the others to the one before. */
static bool make_used_block(struct filling *f, uint64_t size)
{
	const uint32_t block = take_traced_block(f, size, 0);
	uint8_t *at;

	if (block == SIM_HEAP_NO_BLOCK)
		return false;
	at = sim__heap_bytes(f->b, block);
	for (uint64_t i = 0; i < size; i++)
		at[i] = (uint8_t)('a' + sim_draw(f->random) % 26);
	if (f->last != SIM_HEAP_NO_BLOCK && sim_below(f->random, 8))
		sim__heap_refer(f->b, f->last, 0, block, 0);
	else
		sim__heap_root(f->b, block);
	f->last = block;
	return true;
}

/* Until a block without trace would be at this address. */
static bool fill_to(struct filling *f, uint64_t address)
{
	if (!f->next && !make_used_block(f, UNIT))
		return false;
	while (f->next < address - HEADER) {
		const uint64_t left = address - HEADER - f->next;
		const uint64_t chunk = left < 0x200 ? left : 0x20 + UNIT * sim_below(f->random, 40);

		if (!make_used_block(f, chunk - HEADER))
			return false;
	}
	return f->next == address - HEADER;
}

/* The builder takes a block that nothing refers to for a leak. */
static bool leak_block(struct filling *f, uint64_t size, uint64_t trace)
{
	const uint32_t block = take_traced_block(f, size, trace);

	if (block == SIM_HEAP_NO_BLOCK)
		return false;
	memset(sim__heap_bytes(f->b, block), 0, size);
	return true;
}

static bool leak_at(struct filling *f, uint64_t address, uint64_t size)
{
	return fill_to(f, address) && leak_block(f, size, 0);
}

/* A block of the debug CRT's, for so many bytes, at the head of its list. */
static bool take_crt(struct filling *f, uint32_t size, uint32_t kind, uint64_t trace)
{
	const uint32_t block = take_traced_block(f, CRT_HEADER + size + CRT_GAP_SIZE, trace);
	uint8_t *at;

	if (block == SIM_HEAP_NO_BLOCK)
		return false;
	at = sim__heap_bytes(f->b, block);
	memset(at, 0, CRT_GAP);
	put_le32(at + CRT_SIZE, size);
	put_le32(at + CRT_USE, kind);
	put_le32(at + CRT_REQUEST, ++f->requests);
	memset(at + CRT_GAP, 0xfd, CRT_GAP_SIZE);
	memset(at + CRT_HEADER, 0xcd, size);
	memset(at + CRT_HEADER + size, 0xfd, CRT_GAP_SIZE);
	if (f->newest == SIM_HEAP_NO_BLOCK) {
		f->oldest = block;
	} else {
		sim__heap_refer(f->b, block, 0, f->newest, 0);
		sim__heap_refer(f->b, f->newest, CRT_PREVIOUS, block, 0);
	}
	f->newest = block;
	return true;
}

/* What it had of the early leaks stays in it when it is freed, behind the links of free chunks. */
static uint32_t take_owner(struct filling *f)
{
	const uint32_t block = take_traced_block(f, FREED_SIZE, 0);

	if (block == SIM_HEAP_NO_BLOCK)
		return block;
	memset(sim__heap_bytes(f->b, block), 0, FREED_SIZE);
	for (size_t i = 0; i < ARRAY_SIZE(early); i++)
		put_le32(sim__heap_bytes(f->b, block) + 2 * UNIT + 4 * i, early[i]);
	return block;
}

static bool fill_calls(struct filling *f, const uint64_t *traces)
{
	const size_t first = ARRAY_SIZE(win32_calls);

	for (size_t i = 0; i < CALLS; i++)
		if (i < first ? !leak_block(f, win32_calls[i].size, traces[i])
			      : !take_crt(f, crt_calls[i - first].size, NORMAL_BLOCK, traces[i]))
			return false;
	return true;
}

/* `traces`: of the calls; NULL: there were none yet. */
static bool fill_process_heap(struct filling *f, const uint64_t *traces)
{
	uint32_t owner;

	for (size_t i = 0; i < ARRAY_SIZE(crt_startup); i++)
		if (!fill_to(f, PROCESS_HEAP + 0x4008 * (i + 1)) ||
		    !take_crt(f, crt_startup[i], CRT_BLOCK, 0))
			return false;
	if (!leak_at(f, early[0], EARLY_SIZE) || !leak_at(f, early[1], EARLY_SIZE))
		return false;
	owner = take_owner(f);
	if (owner == SIM_HEAP_NO_BLOCK || !leak_at(f, early[2], EARLY_SIZE) ||
	    !fill_to(f, CALLS_AT - EXTRA) || (traces && !fill_calls(f, traces)))
		return false;
	sim__heap_free(f->b, owner);
	return true;
}

static bool fill_foreign_heap(struct filling *f)
{
	return leak_at(f, FOREIGN_AT, FOREIGN_SIZE) && fill_to(f, FOREIGN_END);
}

/*
 * Heaps
 */

/* The head of the list is in the program's data, at its own place there. */
static void put_crt_head(struct sim_making *x, uint64_t newest, uint64_t oldest, struct sim_heap *h)
{
	const uint64_t data = APP + (uint64_t)x->program->data_at * PAGE_SIZE;

	put_le32(x->program_bytes + CRT_FIRST_AT, (uint32_t)newest);
	put_le32(x->program_bytes + CRT_LAST_AT, (uint32_t)oldest);
	for (size_t i = 0; i < h->root_count; i++)
		if (h->roots[i] == newest)
			h->roots[i] = h->roots[--h->root_count];
	for (size_t i = 0; i < h->count; i++)
		if (h->allocations[i].address == newest)
			h->allocations[i].referrer = data + CRT_FIRST_AT;
}

static enum status finish_heap(struct sim_making *x, uint32_t index, struct filling *f,
			       struct err *e)
{
	const bool crt = f->newest != SIM_HEAP_NO_BLOCK;
	struct sim_heap h = { 0 };
	uint64_t newest = 0, oldest = 0;
	enum status st;

	if (crt) {
		sim__heap_root(f->b, f->newest);
		newest = sim__heap_address(f->b, f->newest);
		oldest = sim__heap_address(f->b, f->oldest);
	}
	st = sim__heap_finish(f->b, &h, e);
	f->b = NULL;
	if (!st && crt)
		put_crt_head(x, newest, oldest, &h);
	if (!st)
		st = sim__making_heap(x, index, true, &h, e);
	sim__heap_deinit(&h);
	return st;
}

static enum status make_leaker_heap(struct sim_making *x, uint32_t index, struct err *e)
{
	const bool own = index == 1;
	const struct sim_heap_plan plan = {
		.layout = SIM_HEAP_7,
		.x86 = true,
		.seed = sim_draw(&x->in->random),
		.base = own ? PROCESS_HEAP : FOREIGN_HEAP,
		.reserve = own ? 0x100000 : 0x10000,
		.commit = own ? PROCESS_COMMIT : FOREIGN_COMMIT,
		.index = index,
		.lfh_key = x->lfh_key,
	};
	struct filling f = {
		.random = &x->in->random,
		.last = SIM_HEAP_NO_BLOCK,
		.newest = SIM_HEAP_NO_BLOCK,
		.oldest = SIM_HEAP_NO_BLOCK,
	};
	enum status st = sim__heap_create(&plan, &f.b, e);

	if (!st && !(own ? fill_process_heap(&f, has_called(x) ? x->traces : NULL)
			 : fill_foreign_heap(&f)))
		st = err_set(e, ST_USAGE, "the leaks cannot be where they were");
	if (!st)
		st = finish_heap(x, index, &f, e);
	if (f.b)
		sim__heap_destroy(f.b);
	return st;
}

enum status sim__leaker_make(struct sim_making *x, struct err *e)
{
	enum status st = make_traces(x) ? ST_OK : err_nomem(e);

	for (uint32_t i = 1; i <= 2 && !st; i++)
		st = make_leaker_heap(x, i, e);
	return st;
}
