/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page frames. The kernel takes all its memory from one part of RAM. The rest is filled once, every
 * eight bytes with their own address, and never changes: that is what an acquisition is compared
 * with.
 */
#include "paging.h"

#define FRAMES_MAX 0x20000 /* 512 MiB */

static uint64_t first_frame, frame_count;
/* Below it nothing is free. */
static uint64_t lowest;
static uint8_t used[FRAMES_MAX / 8];

static bool is_used(uint64_t n)
{
	return used[n / 8] >> n % 8 & 1;
}

static void set_used(uint64_t n, bool on)
{
	const uint8_t bit = (uint8_t)(1u << n % 8);

	used[n / 8] = on ? used[n / 8] | bit : used[n / 8] & (uint8_t)~bit;
}

bool is_ram(uint64_t phys)
{
	for (uint64_t i = 0; i < mailbox.ram_count; i++)
		if (phys >= mailbox.ram[i].base &&
		    phys - mailbox.ram[i].base < mailbox.ram[i].bytes)
			return true;
	return false;
}

void frames_init(uint64_t first, uint64_t bytes)
{
	first_frame = first / PAGE_SIZE;
	frame_count = MIN(bytes / PAGE_SIZE, FRAMES_MAX);
	/* The kernel's image is in there. */
	for (uint64_t n = 0; n < frame_count; n++) {
		const uint64_t phys = (first_frame + n) * PAGE_SIZE;

		if (phys >= KERNEL_PHYS &&
		    phys - KERNEL_PHYS < (uint64_t)(kernel_end - kernel_start))
			set_used(n, true);
	}
}

/* Takes the lowest free frame, so that few frames ever change. */
uint64_t frame_take(void)
{
	while (lowest < frame_count && is_used(lowest))
		lowest++;
	if (lowest == frame_count)
		bug_check(NULL, HOST_CANNOT, frame_count, 0, 0, 0);
	set_used(lowest, true);
	mailbox.counters.frames++;
	return (first_frame + lowest) * PAGE_SIZE;
}

void frame_free(uint64_t phys)
{
	const uint64_t n = phys / PAGE_SIZE - first_frame;

	if (n >= frame_count || !is_used(n))
		bug_check(NULL, HOST_CANNOT, phys, 0, 0, 0);
	set_used(n, false);
	lowest = MIN(lowest, n);
	mailbox.counters.frames--;
}

/* Searches from the end, to leave the lower frames to frame_take(). */
uint64_t frames_take(uint64_t count)
{
	uint64_t run = 0, n = frame_count;

	while (n && run < count)
		run = is_used(--n) ? 0 : run + 1;
	if (run < count)
		bug_check(NULL, HOST_CANNOT, frame_count, count, 0, 0);
	for (uint64_t i = 0; i < count; i++)
		set_used(n + i, true);
	mailbox.counters.frames += count;
	return (first_frame + n) * PAGE_SIZE;
}
