/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/simulator/layout.h"

#define KTHREAD_7                                                                                  \
	.stack_limit = 0x30, .stack_base = 0x278, .kernel_stack = 0x38, .trap_frame = 0x1d8,       \
	.teb = 0xb8, .process = 0x210
#define KTHREAD_10                                                                                 \
	.stack_limit = 0x30, .stack_base = 0x38, .kernel_stack = 0x58, .trap_frame = 0x90,         \
	.teb = 0xf0, .process = 0x220
/* 20H1 to 11 23H2; MMVAD_FLAGS has moved again within them. */
#define EPROCESS_20H1                                                                              \
	.pid = 0x440, .create_time = 0x468, .parent = 0x540, .section_base = 0x520, .peb = 0x550,  \
	.wow64 = 0x580, .name = 0x5a8, .threads = 0x5e0, .active_threads = 0x5f0,                  \
	.exit_status = 0x7d4, .vad_root = 0x7d8, .vad_type = 4, .vad_protection = 7
#define ETHREAD_11 .vad_private = 21, .cid = 0x4c8, .start = 0x520, .thread_links = 0x538

static const struct sim_layout layouts[] = {
	{ .build = 7601,
	  .seven = true,
	  .pid = 0x180,
	  .create_time = 0x168,
	  .parent = 0x290,
	  .section_base = 0x270,
	  .peb = 0x338,
	  .wow64 = 0x320,
	  .name = 0x2e0,
	  .threads = 0x308,
	  .active_threads = 0x328,
	  .vad_root = 0x448,
	  .vad_type = 52,
	  .vad_protection = 56,
	  .vad_private = 63,
	  .cid = 0x3b8,
	  .start = 0x418,
	  .thread_links = 0x428,
	  KTHREAD_7 },
	{ .build = 10240, .early = true, .pid = 0x2e8, .name = 0x448 },
	{ .build = 10586, .early = true, .pid = 0x2e8, .name = 0x450 },
	{ .build = 17763,
	  .pid = 0x2e0,
	  .create_time = 0x308,
	  .parent = 0x3e0,
	  .section_base = 0x3c0,
	  .peb = 0x3f8,
	  .wow64 = 0x428,
	  .name = 0x450,
	  .threads = 0x488,
	  .active_threads = 0x498,
	  .exit_status = 0x624,
	  .vad_root = 0x628,
	  .vad_type = 0,
	  .vad_protection = 3,
	  .vad_private = 14,
	  .cid = 0x638,
	  .start = 0x690,
	  .thread_links = 0x6a8,
	  KTHREAD_10 },
	{ .build = 18362,
	  .pid = 0x2e8,
	  .create_time = 0x310,
	  .parent = 0x3e8,
	  .section_base = 0x3c8,
	  .peb = 0x3f8,
	  .wow64 = 0x428,
	  .name = 0x450,
	  .threads = 0x488,
	  .active_threads = 0x498,
	  .exit_status = 0x654,
	  .vad_root = 0x658,
	  .vad_type = 4,
	  .vad_protection = 7,
	  .vad_private = 20,
	  .cid = 0x648,
	  .start = 0x6a0,
	  .thread_links = 0x6b8,
	  KTHREAD_10 },
	{ .build = 19045,
	  EPROCESS_20H1,
	  .vad_private = 20,
	  .cid = 0x478,
	  .start = 0x4d0,
	  .thread_links = 0x4e8,
	  KTHREAD_10 },
	{ .build = 22000, EPROCESS_20H1, ETHREAD_11, KTHREAD_10 },
	/* Read nowhere: fields and flags lie as in no build, so that only symbols tell where. */
	{ .build = 22000,
	  .moved = true,
	  .pid = 0x458,
	  .create_time = 0x4a0,
	  .parent = 0x588,
	  .section_base = 0x538,
	  .peb = 0x578,
	  .name = 0x5d8,
	  .threads = 0x620,
	  .active_threads = 0x630,
	  .exit_status = 0x7fc,
	  .vad_root = 0x800,
	  .vad_type = 6,
	  .vad_protection = 12,
	  .vad_private = 25,
	  .cid = 0x4f8,
	  .start = 0x550,
	  .thread_links = 0x570,
	  .stack_limit = 0x30,
	  .stack_base = 0x40,
	  .kernel_stack = 0x60,
	  .trap_frame = 0x98,
	  .teb = 0x100,
	  .process = 0x230 },
	{ .build = 22621, EPROCESS_20H1, ETHREAD_11, KTHREAD_10 },
	{ .build = 22631, EPROCESS_20H1, ETHREAD_11, KTHREAD_10 },
	{ .build = 26100,
	  .chained = true,
	  .pid = 0x1d0,
	  .create_time = 0x1f8,
	  .parent = 0x2d0,
	  .section_base = 0x2b0,
	  .peb = 0x2e0,
	  .wow64 = 0x310,
	  .name = 0x338,
	  .threads = 0x370,
	  .active_threads = 0x380,
	  .exit_status = 0x554,
	  .vad_root = 0x558,
	  .vad_type = 4,
	  .vad_protection = 7,
	  .vad_private = 21,
	  .cid = 0x508,
	  .start = 0x560,
	  .thread_links = 0x578,
	  KTHREAD_10 },
};

const struct sim_layout *sim__layout(const struct sim_spec *spec)
{
	const uint64_t build = spec->build          ? spec->build
			       : spec->moved        ? 22000
			       : spec->windows == 7 ? 7601
						    : 19045;

	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (layouts[i].build == build && layouts[i].moved == (spec->moved != 0) &&
		    layouts[i].seven == (spec->windows == 7))
			return &layouts[i];
	return NULL;
}
