/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/simulator/stack_roots.h"

#include <inttypes.h>

#include "formats/base/bytes.h"

/* A user's stack has a frame every 40 bytes (hexadecimal), of which this word is free. */
#define FRAME      0x40
#define FRAME_WORD 0x18
#define FRAMES     150 /* of a thread's, at most */
#define SAVED      4   /* R12 to R15, this far above the kernel's stack pointer */
#define SAVED_AT   0x40

enum place { USER_STACK, REGISTER, KERNEL_STACK, PLACES };

static const char *const names[] = {
	[USER_STACK] = "user-stack",
	[REGISTER] = "register",
	[KERNEL_STACK] = "kernel-stack",
};

/* KTRAP_FRAME's Rbx, Rdi, Rsi, which have not moved from 7 to 11. */
static const uint16_t registers[] = { 0x140, 0x148, 0x150 };

/* The n-th of a kind of places of a process. 0: there are not so many. */
static uint64_t stack_root_place(const struct sim_making *x, enum place place, size_t n)
{
	const struct sim_layout *l = x->in->layout;
	const size_t threads = x->n_threads;
	const size_t thread = n % threads, of_thread = n / threads;

	switch (place) {
	case USER_STACK:
		return of_thread < FRAMES ? x->rsp[thread] + FRAME * of_thread + FRAME_WORD : 0;
	case REGISTER:
		if (of_thread >= ARRAY_SIZE(registers))
			return 0;
		return get_le64(x->thread_bytes[thread] + l->trap_frame) + registers[of_thread];
	default:
		if (of_thread >= SAVED)
			return 0;
		return get_le64(x->thread_bytes[thread] + l->kernel_stack) + SAVED_AT +
		       8 * of_thread;
	}
}

static void put_stack_root(struct sim_making *x, enum place place, uint64_t va, uint64_t value)
{
	const struct sim_region *r;

	if (place != USER_STACK) {
		put_le64(sim__kernel_bytes(x->in->m, va), value);
		return;
	}
	r = sim__regions_find(&x->p->regions, SIM_VPN(va));
	if (r)
		put_le64(r->bytes + (va - r->va), value);
}

size_t sim__stack_roots_put(struct sim_making *x, uint32_t heap, const uint64_t *roots,
			    size_t count)
{
	size_t used[PLACES] = { 0 }, n = 0;

	for (; n < count && x->n_threads; n++) {
		enum place place = (enum place)(n % PLACES);
		uint64_t va = stack_root_place(x, place, used[place]);

		if (!va) {
			place = USER_STACK;
			va = stack_root_place(x, place, used[place]);
		}
		if (!va)
			break;
		used[place]++;
		put_stack_root(x, place, va, roots[n]);
		if (x->in->m->told)
			fprintf(x->in->m->told,
				"stack-root,%" PRIu32 ",%" PRIu32 ",0x%" PRIx64 ",%s,0x%" PRIx64
				"\n",
				x->p->pid, heap, roots[n], names[place], va);
	}
	return n;
}
