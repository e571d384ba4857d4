/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start-up, and the loop that serves the Linux side. Options on the machine's command line: "la57",
 * "vbs", and "system=MIB", the amount of RAM for the kernel itself.
 */
#include "cpu.h"
#include "gate.h"
#include "ntoskrnl.h"
#include "paging.h"
#include "thread.h"
#include "transport.h"
#include "vbs.h"

#define START_MAGIC  0x336ec578u
#define MEMORY_RAM   1
#define SYSTEM_FIRST 0x100000
#define SYSTEM_MIB   24
#define USER_BYTES   0xa00000 /* the process's buffers: enough for two reads of 4 MiB */

/* struct hvm_start_info and hvm_memmap_table_entry (Xen's start_info.h) */
struct start_info {
	uint32_t magic, version, flags, modules;
	uint64_t modules_at, command_line, rsdp, memory_at;
	uint32_t memory_entries, reserved;
};

struct memory_entry {
	uint64_t base, bytes;
	uint32_t type, reserved;
};

void kernel_main(const struct start_info *start, uint64_t levels);

static char command_line[256];

static const char *find_option(const char *name)
{
	for (const char *at = command_line; *at; at++)
		if (!memcmp(at, name, strlen(name)))
			return at + strlen(name);
	return NULL;
}

static uint64_t option(const char *name, uint64_t missing)
{
	const char *at = find_option(name);
	uint64_t value = 0;

	if (!at)
		return missing;
	while (*at >= '0' && *at <= '9')
		value = value * 10 + (uint64_t)(*at++ - '0');
	return value;
}

/* Whole pages of RAM. */
static void read_memory_map(const struct start_info *start)
{
	const struct memory_entry *const e = (const struct memory_entry *)start->memory_at;

	for (uint32_t i = 0; i < start->memory_entries && mailbox.ram_count < RANGES_MAX; i++) {
		const uint64_t first = ROUND_UP(e[i].base, PAGE_SIZE);
		const uint64_t end = PAGE_OF(e[i].base + e[i].bytes);

		if (e[i].type == MEMORY_RAM && first < end)
			mailbox.ram[mailbox.ram_count++] =
				(struct machine_range){ first, end - first };
	}
}

/* With its own address. */
static void fill_page(uint64_t phys)
{
	uint64_t *const at = window(phys);

	for (uint64_t i = 0; i < PAGE_SIZE / 8; i++)
		at[i] = phys + 8 * i;
}

/* Everything but page 0 and the kernel's own part. */
static void fill_ram(uint64_t system_end)
{
	for (uint64_t i = 0; i < mailbox.ram_count; i++)
		for (uint64_t at = mailbox.ram[i].base;
		     at < mailbox.ram[i].base + mailbox.ram[i].bytes; at += PAGE_SIZE)
			if (at && (at < SYSTEM_FIRST || at >= system_end))
				fill_page(at);
}

/* The asking process: buffers, a read-only page, and Windows' KUSER_SHARED_DATA. */
static void make_process(void)
{
	const uint64_t shared = frame_take();

	memset(window(shared), 0, PAGE_SIZE);
	map(SHARED_DATA_VA, shared, 0);
	mailbox.user_phys = frames_take(USER_BYTES / PAGE_SIZE);
	mailbox.user_va = USER_VA;
	mailbox.user_bytes = USER_BYTES;
	mailbox.user_read_only = USER_READ_ONLY_VA;
	memset(window(mailbox.user_phys), 0, USER_BYTES);
	write_cr3(paging_user_root);
	for (uint64_t at = 0; at < USER_BYTES; at += PAGE_SIZE)
		map(USER_VA + at, mailbox.user_phys + at, MAP_USER | MAP_WRITE);
	map_new(USER_READ_ONLY_VA, 1, MAP_USER);
	write_cr3(paging_system_root);
}

static void describe(uint64_t system_bytes)
{
	mailbox.size = sizeof(mailbox);
	mailbox.system_first = SYSTEM_FIRST;
	mailbox.system_bytes = system_bytes;
	mailbox.cr3_system = paging_system_root;
	mailbox.cr3_user = paging_user_root;
	mailbox.levels = paging_levels;
}

static void serve(void)
{
	uint64_t begun;

	for (;;) {
		mailbox.state = MACHINE_READY;
		transport_ring();
		transport_wait();
		begun = ticks();
		mailbox.state = MACHINE_BUSY;
		mailbox.reply = (struct machine_reply){ 0 };
		thread_run(&mailbox.request, &mailbox.reply);
		if (!mailbox.reply.done)
			mailbox.reply.hung = 1;
		mailbox.counters.request_ticks += ticks() - begun;
	}
}

void kernel_main(const struct start_info *start, uint64_t levels)
{
	uint64_t system_bytes;

	cpu_init();
	if (start->magic != START_MAGIC || start->version < 1)
		bug_check(NULL, HOST_CANNOT, start->magic, 0, 0, 0);
	memcpy(command_line, (const char *)start->command_line, sizeof(command_line) - 1);
	read_memory_map(start);
	system_bytes = option("system=", SYSTEM_MIB) << 20;
	frames_init(SYSTEM_FIRST, system_bytes);
	paging_init((unsigned)levels);
	fill_ram(SYSTEM_FIRST + system_bytes);
	make_process();
	exports_init();
	ntoskrnl_init();
	threads_init();
	describe(system_bytes);
	mailbox.vbs = find_option("vbs") && vbs_enter();
	mailbox.magic = MAILBOX_MAGIC;
	serve();
}
