/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/simulator/wow64.h"

#include <inttypes.h>
#include <string.h>

#include "agent/simulator/leaker.h"
#include "agent/simulator/manager.h"
#include "formats/base/bytes.h"

#define TEB_PAGES      3 /* two of the TEB, and TEB32 */
#define TEB32_BEHIND   0x2000
#define STACK_PAGES    64
#define STACK_USED     3

/* In ntdll's data of 32 bits, as in that of 64 bits (making.h, inside.c). */
#define LDR32_AT       0x200
#define LDR32_LISTS    0xc
#define LDR32_ENTRY    0xa8 /* of 7; later ones are longer */
#define LISTS          3
#define LOADED_MAX     4 /* of the lists, but for one process */

/* The ring's descriptors (heaps.c), with words of 4 bytes. */
#define DESCRIPTOR     0x1c
#define HEAP_IN        8

/* PEB32 */
#define PEB_IMAGE      0x8
#define PEB_LDR        0xc
#define PEB_PARAMETERS 0x10
#define PEB_HEAP       0x18
#define PEB_HEAPS      0x88
#define PEB_HEAPS_MAX  0x8c
#define PEB_HEAPS_AT   0x90
#define PEB_VERSION    0xa4
#define PEB_BUILD      0xac
#define PEB_SESSION    0x1d4

/* The main process is 0, the one before it 1, and so on; System is none. */
bool sim__wow64_has(const struct machine *m, uint32_t process)
{
	const uint32_t others = m->n_processes - 1;

	return process && (m->main + others - process) % others < m->spec.wow64;
}

/*
 * Images
 */

enum status sim__wow64_files(struct sim_inside *in, struct err *e)
{
	const bool seven = in->layout->seven;
	const uint64_t slide = sim_below(&in->random, 0x40) * GRANULE;
	struct sim_image *all[] = { &in->wow64, &in->ntdll32, &in->kernel32_32, &in->unlisted32 };
	enum status st = ST_OK;

	in->wow64 = (struct sim_image){ .path = "\\Windows\\System32\\wow64.dll",
					.base = seven ? UINT64_C(0x74000000) + slide
						      : in->ntdll.base - UINT64_C(0x400000),
					.text_pages = 6,
					.data_pages = 1,
					.library = true };
	in->ntdll32 = (struct sim_image){ .path = "\\Windows\\SysWOW64\\ntdll.dll",
					  .base = UINT64_C(0x77000000) + slide,
					  .text_pages = 16,
					  .data_pages = 2,
					  .library = true,
					  .narrow = true };
	in->kernel32_32 = (struct sim_image){ .path = "\\Windows\\SysWOW64\\kernel32.dll",
					      .base = UINT64_C(0x76000000) + slide,
					      .text_pages = 10,
					      .data_pages = 1,
					      .library = true,
					      .narrow = true };
	in->unlisted32 = (struct sim_image){ .path = "\\Users\\Public\\helper.dll",
					     .base = UINT64_C(0x73000000) + slide,
					     .text_pages = 3,
					     .data_pages = 1,
					     .library = true,
					     .narrow = true };
	if (in->m->spec.leaker)
		sim__leaker_libraries(in);
	for (size_t i = 0; i < ARRAY_SIZE(all) && !st; i++)
		st = sim__image_make(all[i], &in->pools, &in->random, e);
	if (!st && in->m->spec.leaker)
		st = sim__image_make(&in->kernelbase32, &in->pools, &in->random, e);
	return st;
}

void sim__wow64_deinit(struct sim_inside *in)
{
	sim__section_deinit(&in->wow64.section);
	sim__section_deinit(&in->ntdll32.section);
	sim__section_deinit(&in->kernel32_32.section);
	sim__section_deinit(&in->unlisted32.section);
	sim__section_deinit(&in->kernelbase32.section);
}

bool sim__wow64_images(struct sim_making *x)
{
	struct sim_inside *in = x->in;

	x->ntdll32_bytes = sim__making_map(x, &in->ntdll32);
	x->ntdll32_data = in->ntdll32.base + (uint64_t)in->ntdll32.data_at * PAGE_SIZE;
	if (!x->ntdll32_bytes || !sim__making_map(x, &in->wow64) ||
	    !sim__making_map(x, &in->kernel32_32))
		return false;
	if (sim__leaker_is(x) && !sim__making_map(x, &in->kernelbase32))
		return false;
	if (x->process % 3 != 2)
		return true;
	sim__making_tell_module(x, &in->unlisted32, "vad");
	return sim__making_map(x, &in->unlisted32) != NULL;
}

/*
 * PEBs and TEBs. 7: the PEB, below it PEB32, and below that the threads'; each in a VAD of its own.
 * 10: PEB32 follows the PEB, and TEBs both. A TEB32 is two pages behind its TEB.
 */

static void split_teb(struct sim_making *x, uint32_t i, uint8_t *both)
{
	x->teb_bytes[i] = both;
	x->teb32_bytes[i] = both + TEB32_BEHIND;
}

static bool put_blocks_7(struct sim_making *x, uint32_t threads)
{
	x->peb = 0x7efdf000;
	x->peb32 = 0x7efde000;
	x->tebs = 0x7efdb000;
	x->teb_step = -(int64_t)(TEB_PAGES * PAGE_SIZE);
	x->peb_bytes = sim__making_private(x, x->peb, 1, 0, 1);
	x->peb32_bytes = sim__making_private(x, x->peb32, 1, 0, 1);
	if (!x->peb_bytes || !x->peb32_bytes)
		return false;
	for (uint32_t i = 0; i < threads; i++) {
		const uint64_t va = x->tebs + (uint64_t)(x->teb_step * (int64_t)i);
		uint8_t *both = sim__making_private(x, va, TEB_PAGES, 0, TEB_PAGES);

		if (!both)
			return false;
		split_teb(x, i, both);
	}
	return true;
}

bool sim__wow64_blocks(struct sim_making *x)
{
	const uint32_t threads = (uint32_t)x->in->m->spec.threads, before = 16;
	uint8_t *all;

	if (x->in->layout->seven)
		return put_blocks_7(x, threads);
	x->peb = UINT64_C(0x800000) + sim_below(&x->in->random, 3) * 2 * SIM_MIB;
	all = sim__making_private(x, x->peb, SIM_TABLE, before, 2 + TEB_PAGES * threads);
	if (!all)
		return false;
	x->peb += before * PAGE_SIZE;
	x->peb32 = x->peb + PAGE_SIZE;
	x->tebs = x->peb32 + PAGE_SIZE;
	x->teb_step = TEB_PAGES * PAGE_SIZE;
	x->peb_bytes = all;
	x->peb32_bytes = all + PAGE_SIZE;
	for (uint32_t i = 0; i < threads; i++)
		split_teb(x, i, all + (2 + (size_t)i * TEB_PAGES) * PAGE_SIZE);
	return true;
}

/* Before 10 the EPROCESS has the address of PEB32; then that of an _EWOW64PROCESS. */
bool sim__wow64_peb(struct sim_making *x)
{
	const struct sim_layout *l = x->in->layout;
	uint8_t *peb = x->peb32_bytes, *own;
	uint64_t wow64 = x->peb32;

	put_le32(peb + PEB_IMAGE, (uint32_t)x->program->base);
	put_le32(peb + PEB_LDR, (uint32_t)x->ntdll32_data + LDR32_AT);
	put_le32(peb + PEB_HEAPS_MAX, HEAPS_MAX);
	put_le32(peb + PEB_HEAPS_AT, (uint32_t)x->ntdll32_data + HEAPS_AT);
	put_le32(peb + PEB_VERSION, l->seven ? 6 : 10);
	put_le32(peb + PEB_VERSION + 4, l->seven ? 1 : 0);
	put_le16(peb + PEB_BUILD, (uint16_t)l->build);
	put_le32(peb + PEB_SESSION, x->process > 3);
	if (!l->seven) {
		own = sim__pool_take(&x->in->pools, POOL_PAGED, 0x10, "Wow6", &wow64);
		if (!own)
			return false;
		put_le64(own, x->peb32);
		put_le16(own + 8, 0x14c); /* x86 */
	}
	put_le64(x->bytes + l->wow64, wow64);
	if (x->in->m->told)
		fprintf(x->in->m->told, "wow64,%" PRIu32 ",0x%" PRIx64 "\n", x->p->pid, x->peb32);
	return true;
}

/*
 * Parameters and the loader's lists
 */

/* Text as UTF-16 behind *at, and the UNICODE_STRING32 for it. */
static void put_unicode_string32(uint8_t *string, const char *text, uint8_t *bytes, uint64_t va,
				 size_t *at)
{
	const size_t len = strlen(text);

	put_le16(string, (uint16_t)(2 * len));
	put_le16(string + 2, (uint16_t)(2 * len + 2));
	put_le32(string + 4, (uint32_t)(va + *at));
	for (size_t i = 0; i < len; i++)
		put_le16(bytes + *at + 2 * i, (uint8_t)text[i]);
	*at += (2 * len + 2 + 3) / 4 * 4;
}

static bool put_parameters32(struct sim_making *x)
{
	const uint64_t va = sim__making_place(x, 1);
	uint8_t *bytes = sim__making_private(x, va, 1, 0, 1);
	char path[SIM_NAME_MAX + 16];
	size_t at = 0x2c0;

	if (!bytes)
		return false;
	put_le32(bytes, PAGE_SIZE);
	put_le32(bytes + 4, 0x2c0);
	put_le32(bytes + 8, 1); /* its pointers are addresses */
	put_unicode_string32(bytes + 0x24, "C:\\Windows\\system32\\", bytes, va, &at);
	snprintf(path, sizeof(path), "C:%s", x->program->path);
	put_unicode_string32(bytes + 0x38, path, bytes, va, &at);
	snprintf(path, sizeof(path), "\"C:%s\" -k %" PRIu32, x->program->path, x->process);
	put_unicode_string32(bytes + 0x40, path, bytes, va, &at);
	put_le32(x->peb32_bytes + PEB_PARAMETERS, (uint32_t)va);
	return true;
}

static void put_loader_entry32(uint8_t *entry, const struct sim_image *image, uint8_t *bytes,
			       uint64_t va, size_t *at)
{
	char path[SIM_NAME_MAX + 2];

	put_le32(entry + 0x18, (uint32_t)image->base);
	put_le32(entry + 0x1c, (uint32_t)image->base + image->entry);
	put_le32(entry + 0x20, image->section.pages * (uint32_t)PAGE_SIZE);
	snprintf(path, sizeof(path), "C:%s", image->path);
	put_unicode_string32(entry + 0x24, path, bytes, va, at);
	put_unicode_string32(entry + 0x2c, sim__image_name(image), bytes, va, at);
}

/* One of the three rings: from its head through all entries. */
static void put_loader_ring32(struct sim_making *x, uint32_t links, uint8_t *entries, uint64_t va,
			      size_t count)
{
	uint8_t *head = x->ntdll32_bytes + LDR32_AT + LDR32_LISTS + links;
	const uint64_t head_va = x->ntdll32_data + LDR32_AT + LDR32_LISTS + links;

	for (size_t i = 0; i <= count; i++) {
		const uint64_t to = i == count ? head_va : va + i * LDR32_ENTRY + links;
		const uint64_t from = i ? va + (i - 1) * LDR32_ENTRY + links : head_va;

		put_le32(i ? entries + (i - 1) * LDR32_ENTRY + links : head, (uint32_t)to);
		put_le32(i == count ? head + 4 : entries + i * LDR32_ENTRY + links + 4,
			 (uint32_t)from);
	}
}

bool sim__wow64_loader(struct sim_making *x)
{
	struct sim_inside *in = x->in;
	const struct sim_image ghost = {
		.path = "\\Windows\\Temp\\ghost32.dll",
		.base = in->kernel32_32.base - UINT64_C(0x1000000),
		.entry = PAGE_SIZE,
		.narrow = true,
		.section = { .pages = 16 },
	};
	const struct sim_image *loaded[LOADED_MAX + 1] = { x->program, &in->ntdll32,
							   &in->kernel32_32 };
	size_t count = 3;
	const uint64_t va = sim__making_place(x, 1);
	uint8_t *bytes = sim__making_private(x, va, 1, 0, 1);
	size_t at = LOADED_MAX * LDR32_ENTRY;

	if (!bytes || !put_parameters32(x))
		return false;
	if (sim__leaker_is(x))
		loaded[count++] = &in->kernelbase32;
	if (in->m->spec.ghosts)
		loaded[count++] = &ghost;
	at = MAX(at, count * LDR32_ENTRY);
	for (size_t i = 0; i < count; i++) {
		put_loader_entry32(bytes + i * LDR32_ENTRY, loaded[i], bytes, va, &at);
		if (i) /* the program is in the list of 64 bits, too */
			sim__making_tell_module(x, loaded[i],
						loaded[i] == &ghost ? "loader" : "both");
	}
	for (uint32_t list = 0; list < LISTS; list++)
		put_loader_ring32(x, 8 * list, bytes, va, count);
	put_le32(x->ntdll32_bytes + LDR32_AT, 0x30); /* Length, Initialized */
	x->ntdll32_bytes[LDR32_AT + 4] = 1;
	return true;
}

/*
 * Threads
 */

/* Return addresses into code, and frame pointers. */
static uint64_t put_stack32(struct sim_making *x)
{
	struct sim_inside *in = x->in;
	const uint32_t from = STACK_PAGES - STACK_USED;
	const uint64_t va = sim__making_place(x, STACK_PAGES);
	uint8_t *bytes = sim__making_private(x, va, STACK_PAGES, from, STACK_USED);
	uint8_t *guard;

	if (!bytes)
		return 0;
	for (uint32_t at = PAGE_SIZE; at < STACK_USED * PAGE_SIZE; at += 0x20) {
		put_le32(bytes + at, (uint32_t)(va + from * PAGE_SIZE) + at + 0x20);
		put_le32(bytes + at + 4,
			 (uint32_t)(in->ntdll32.base + PAGE_SIZE + sim_below(&in->random, 0x3000)));
		put_le32(bytes + at + 8, (uint32_t)sim_below(&in->random, 0x1000));
	}
	guard = sim__table_entry(in->m, x->p->root, va + (from - 1) * PAGE_SIZE, 1, true);
	if (!guard)
		return 0;
	put_le64(guard, sim__entry_zero(MM_READWRITE | MM_DECOMMIT));
	return va;
}

/* Each names the other: the TEB in its ExceptionList, the TEB32 in GdiBatchCount. */
bool sim__wow64_thread(struct sim_making *x, uint32_t i, uint64_t teb, uint32_t tid)
{
	const uint64_t stack = put_stack32(x), teb32 = teb + TEB32_BEHIND;
	const uint64_t limit = stack + (STACK_PAGES - STACK_USED) * PAGE_SIZE;
	const uint64_t base = stack + STACK_PAGES * PAGE_SIZE;
	uint8_t *at = x->teb32_bytes[i];

	if (!stack)
		return false;
	put_le64(x->teb_bytes[i], teb32);
	put_le32(at, UINT32_MAX); /* ExceptionList: its end */
	put_le32(at + 4, (uint32_t)base);
	put_le32(at + 8, (uint32_t)limit);
	put_le32(at + 0x18, (uint32_t)teb32);
	put_le32(at + 0x20, x->p->pid);
	put_le32(at + 0x24, tid);
	put_le32(at + 0x30, (uint32_t)x->peb32);
	put_le32(at + 0xe0c, (uint32_t)stack); /* DeallocationStack */
	put_le32(at + 0xf70, (uint32_t)teb);
	if (x->in->m->told)
		fprintf(x->in->m->told,
			"thread32,%" PRIu32 ",%" PRIu32 ",0x%" PRIx64 ",0x%" PRIx64 ",0x%" PRIx64
			"\n",
			x->p->pid, tid, teb32, limit, base);
	return true;
}

/*
 * Heaps
 */

bool sim__wow64_make_ring(struct sim_making *x)
{
	x->ring32 = sim__making_place(x, 1);
	x->ring32_bytes = sim__making_private(x, x->ring32, 1, 0, 1);
	return x->ring32_bytes != NULL;
}

static void link_heap_descriptor32(struct sim_making *x, uint32_t index, uint64_t heap)
{
	const uint32_t head = (uint32_t)x->ntdll32_data + HEAP_RING_AT;
	const uint32_t at = (uint32_t)sim__wow64_descriptor(x, index);
	uint8_t *ring = x->ntdll32_bytes + HEAP_RING_AT;
	uint8_t *own = x->ring32_bytes + DESCRIPTOR * (index - 1);

	put_le32(index == 1 ? ring : own - DESCRIPTOR, at);
	put_le32(own, head);
	put_le32(own + 4, index == 1 ? head : at - DESCRIPTOR);
	put_le32(ring + 4, at);
	put_le32(own + HEAP_IN, (uint32_t)heap);
}

uint64_t sim__wow64_descriptor(const struct sim_making *x, uint32_t index)
{
	return x->ring32 ? x->ring32 + (uint64_t)DESCRIPTOR * (index - 1) : 0;
}

void sim__wow64_list_heap(struct sim_making *x, uint32_t index, uint64_t heap)
{
	if (x->ring32)
		link_heap_descriptor32(x, index, heap);
	if (index == 1 || !x->ring32) {
		put_le32(x->ntdll32_bytes + HEAPS_AT + (size_t)4 * (index - 1), (uint32_t)heap);
		put_le32(x->peb32_bytes + PEB_HEAPS, index);
	}
	if (index == 1)
		put_le32(x->peb32_bytes + PEB_HEAP, (uint32_t)heap);
}
