/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings of threads of some build, of which the input overwrites words. Whatever comes of it names
 * each thread once, and no stack that ends before it begins.
 */
#include "agent/examine/process/threads.h"
#include "tests/fuzz/changes.h"
#include "tests/fuzz/fuzz.h"

#define KERNEL   UINT64_C(0xffffa80000000000)
#define EPROCESS (KERNEL + 0x1000)
#define ETHREAD  (KERNEL + 0x10000)
#define STACK    (KERNEL + 0x90000)
#define TEB      UINT64_C(0x7ef00000)
#define PID      1148
#define THREADS  4

/*
 * The same public records as the reader's (agent/examine/process/threads.c), copied a second time.
 */
static const struct build {
	uint16_t head, cid, start, link;
	uint16_t stack_base, kernel_stack, frame, teb, process;
} builds[] = {
	{ 0x308, 0x3b8, 0x418, 0x428, 0x278, 0x38, 0x1d8, 0xb8, 0x210 }, /* 7 SP1 */
	{ 0x470, 0x620, 0x678, 0x688, 0x38, 0x58, 0x90, 0xf0, 0x220 },   /* 8.1 */
	{ 0x488, 0x638, 0x690, 0x6a8, 0x38, 0x58, 0x90, 0xf0, 0x220 },   /* 17763 */
	{ 0x5e0, 0x478, 0x4d0, 0x4e8, 0x38, 0x58, 0x90, 0xf0, 0x220 },   /* 19041 */
	{ 0x370, 0x508, 0x560, 0x578, 0x38, 0x58, 0x90, 0xf0, 0x220 },   /* 26100 */
	{ 0x308, 0x3b0, 0x410, 0x420, 0x278, 0x38, 0x1d8, 0xb8, 0x210 }, /* 7 */
	{ 0x470, 0x398, 0x3f0, 0x400, 0x38, 0x58, 0x90, 0xf0, 0x220 },   /* 8 */
	{ 0x480, 0x628, 0x680, 0x690, 0x38, 0x58, 0x90, 0xf0, 0x220 },   /* 10240 */
	{ 0x488, 0x638, 0x690, 0x6a0, 0x38, 0x58, 0x90, 0xf0, 0x220 },   /* 15063 */
};

#define BUILDS (sizeof(builds) / sizeof(*builds))

static struct vm memories[BUILDS];

static void put_teb(struct vm *m, uint64_t teb, uint64_t n)
{
	vm_put(m, teb + 0x30, teb, 8);
	vm_put(m, teb + 8, 0x300000 + 0x100000 * n, 8);
	vm_put(m, teb + 0x10, 0x2fd000 + 0x100000 * n, 8);
	vm_put(m, teb + 0x2018, teb + 0x2000, 4);
	vm_put(m, teb + 0x2004, 0x150000 + 0x10000 * n, 4);
	vm_put(m, teb + 0x2008, 0x14e000 + 0x10000 * n, 4);
}

static void make_ring(struct vm *m, const struct build *b)
{
	const uint64_t head = EPROCESS + b->head;
	uint64_t back = head;

	for (uint64_t i = 0; i < THREADS; i++) {
		const uint64_t object = ETHREAD + PAGE_SIZE * i, teb = TEB + 0x4000 * i;

		vm_put(m, back, object + b->link, 8);
		vm_put(m, object + b->link + 8, back, 8);
		vm_put(m, object + b->process, EPROCESS, 8);
		vm_put(m, object + b->cid, PID, 8);
		vm_put(m, object + b->cid + 8, 2000 + 4 * i, 8);
		vm_put(m, object + b->start, 0x77001234, 8);
		vm_put(m, object + b->teb, teb, 8);
		vm_put(m, object + b->stack_base, STACK, 8);
		vm_put(m, object + b->kernel_stack, STACK - 0x800, 8);
		vm_put(m, object + b->frame, STACK - 0x200, 8);
		put_teb(m, teb, i);
		back = object + b->link;
	}
	vm_put(m, back, head, 8);
	vm_put(m, head + 8, back, 8);
	vm_put(m, STACK - 0x200 + 0x168, 0x7700aaaa, 8);
	vm_put(m, STACK - 0x200 + 0x170, 0x33, 2);
	vm_put(m, STACK - 0x200 + 0x180, 0x2ff000, 8);
}

static void check(const struct threads *t, const struct threads_plan *plan)
{
	MUST(t->count <= THREADS_MAX && t->end < LIST_ENDS);
	MUST(!t->layout == !t->count);
	for (size_t i = 0; i < t->count; i++) {
		const struct thread *x = &t->at[i];

		MUST(!(x->teb >> 63));
		MUST(!x->has_stack || (x->stack_limit < x->stack_base && !(x->stack_base >> 63)));
		MUST(x->has_stack || (!x->stack_base && !x->narrow_base));
		MUST(x->narrow_base ? x->narrow_limit < x->narrow_base : !x->narrow_limit);
		MUST(plan->wow64 || !x->narrow_base);
		MUST(x->has_frame || (!x->rip && !x->rsp));
		for (size_t k = 0; k < i && t->count <= 64; k++)
			MUST(t->at[k].object != x->object);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_over(data, size);
	const uint8_t which = cur_u8(&c), missing = cur_u8(&c);
	struct vm *m = &memories[which % BUILDS];
	const struct memory_view view = { vm_view, m };
	const struct threads_plan plan = {
		.memory = &view,
		.eprocess = EPROCESS,
		.pid = PID,
		.wow64 = which & 0x80,
	};
	struct changes changes;
	struct threads found;

	if (!m->count)
		make_ring(m, &builds[which % BUILDS]);
	changes_make(&changes, m, missing, &c);
	MUST(!threads_find(&plan, &found, NULL));
	check(&found, &plan);
	threads_deinit(&found);
	changes_undo(&changes);
	return 0;
}
