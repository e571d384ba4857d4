/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: ETHREAD, TEB, their stacks in both modes. */
#include <inttypes.h>

#include "agent/simulator/inside.h"
#include "agent/simulator/making.h"
#include "agent/simulator/wow64.h"
#include "formats/base/bytes.h"

/* Nine tenths of a megabyte of a stack were never used, nor committed. */
#define STACK_PAGES  64
#define STACK_USED   5
#define KERNEL_STACK 6 /* pages */
#define TRAP_FRAME   0x190
#define TID_STEP     4

static void link_thread(struct sim_making *x, uint64_t links)
{
	struct machine *m = x->in->m;
	const uint64_t head = x->eprocess + x->in->layout->threads;
	const uint64_t last = get_le64(sim__kernel_bytes(m, head + 8));

	put_le64(sim__kernel_bytes(m, links), head);
	put_le64(sim__kernel_bytes(m, links + 8), last);
	put_le64(sim__kernel_bytes(m, last), links);
	put_le64(sim__kernel_bytes(m, head + 8), links);
}

/* As a system call leaves it: most registers, and a stack above which the kernel has gone on. */
static bool put_kernel_stack(struct sim_making *x, uint8_t *thread, uint64_t rsp, uint64_t rip)
{
	struct sim_inside *in = x->in;
	const struct sim_layout *l = in->layout;
	const uint64_t limit = in->stacks, base = limit + KERNEL_STACK * PAGE_SIZE;
	const uint64_t frame = base - 0x200 - TRAP_FRAME, top = frame - 0x180;
	uint8_t *at;

	for (uint64_t va = limit; va < base; va += PAGE_SIZE)
		if (!sim__kernel_map(in->m, va))
			return false;
	in->stacks = base + PAGE_SIZE;
	put_le64(thread + l->stack_limit, limit);
	put_le64(thread + l->stack_base, base);
	put_le64(thread + l->kernel_stack, top);
	put_le64(thread + l->trap_frame, frame);
	for (uint64_t va = top; va < frame; va += 8)
		put_le64(sim__kernel_bytes(in->m, va), sim_draw(&in->random) & 0xffff);
	at = sim__kernel_bytes(in->m, frame);
	put_le64(at + 0x38, rip); /* Rcx, as syscall leaves it */
	put_le64(at + 0x168, rip);
	put_le16(at + 0x170, 0x33); /* SegCs: user mode */
	put_le64(at + 0x180, rsp);
	put_le16(at + 0x188, 0x2b);
	return true;
}

static void put_teb(struct sim_making *x, uint8_t *teb, uint64_t va, uint32_t tid, uint64_t stack)
{
	const uint64_t base = stack + STACK_PAGES * PAGE_SIZE;

	put_le64(teb + 8, base);
	put_le64(teb + 0x10, base - STACK_USED * PAGE_SIZE);
	put_le64(teb + 0x30, va);
	put_le64(teb + 0x40, x->p->pid);
	put_le64(teb + 0x48, tid);
	put_le64(teb + 0x60, x->peb);
	put_le64(teb + 0x1478, stack); /* DeallocationStack */
}

/* Return addresses into code, and saved words between them; a guard page below. */
static uint64_t put_thread_stack(struct sim_making *x, uint64_t va)
{
	struct sim_inside *in = x->in;
	const uint32_t from = STACK_PAGES - STACK_USED;
	uint8_t *bytes = sim__making_private(x, va, STACK_PAGES, from, STACK_USED);
	uint8_t *guard;

	if (!bytes)
		return 0;
	for (size_t at = 2 * PAGE_SIZE; at < STACK_USED * PAGE_SIZE; at += 0x40) {
		put_le64(bytes + at, in->ntdll.base + PAGE_SIZE + sim_below(&in->random, 0x3000));
		put_le64(bytes + at + 0x10, sim_below(&in->random, 0x1000));
		put_le64(bytes + at + 0x20, va + (from * PAGE_SIZE) + at + 0x40);
	}
	guard = sim__table_entry(in->m, x->p->root, va + (from - 1) * PAGE_SIZE, 1, true);
	if (!guard)
		return 0;
	put_le64(guard, sim__entry_zero(MM_READWRITE | MM_DECOMMIT)); /* 0x10 beside it: guard */
	return va + from * PAGE_SIZE + 2 * PAGE_SIZE;
}

bool sim__making_thread(struct sim_making *x, uint32_t i)
{
	struct sim_inside *in = x->in;
	const struct sim_layout *l = in->layout;
	const uint32_t tid = x->p->pid + TID_STEP * (i + 1);
	const uint64_t stack = sim__making_place(x, STACK_PAGES), rsp = put_thread_stack(x, stack);
	const uint64_t teb = x->tebs + (uint64_t)(x->teb_step * (int64_t)i);
	const struct sim_image *library = x->narrow ? &in->kernel32_32 : &in->kernel32;
	const uint64_t start = (i ? library->base : x->program->base) + PAGE_SIZE + 0x40 * i;
	uint64_t va;
	uint8_t *at = sim__pool_take(&in->pools, POOL_NONPAGED, 0x900, "Thre", &va);

	if (!rsp || !at || !put_kernel_stack(x, at, rsp, in->ntdll.base + PAGE_SIZE + 0x14))
		return false;
	put_le32(at, 0x00580006); /* DISPATCHER_HEADER: a thread */
	put_le64(at + l->teb, teb);
	put_le64(at + l->process, x->eprocess);
	put_le64(at + l->cid, x->p->pid);
	put_le64(at + l->cid + 8, tid);
	put_le64(at + l->start, start);
	link_thread(x, va + l->thread_links);
	x->rsp[x->n_threads] = rsp;
	x->thread_bytes[x->n_threads++] = at;
	put_teb(x, x->teb_bytes[i], teb, tid, stack);
	if (in->m->told)
		fprintf(in->m->told,
			"thread,%" PRIu32 ",%" PRIu32 ",0x%" PRIx64 ",0x%" PRIx64 ",0x%" PRIx64
			",0x%" PRIx64 ",0x%" PRIx64 ",0x%" PRIx64 "\n",
			x->p->pid, tid, va, teb, stack + (STACK_PAGES - STACK_USED) * PAGE_SIZE,
			stack + STACK_PAGES * PAGE_SIZE, start, rsp);
	return !x->narrow || sim__wow64_thread(x, i, teb, tid);
}
