/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of a loader of 64 bits and one of 32, names and images, of which the input overwrites
 * words. Whatever comes of it is in order, each module once, and somebody knew of each.
 */
#include <string.h>

#include "agent/examine/process/modules.h"
#include "tests/fuzz/changes.h"
#include "tests/fuzz/fuzz.h"

#define PEB    UINT64_C(0x7ffd8000)
#define PEB32  UINT64_C(0x7ffd9000)
#define LDR    UINT64_C(0x77420000)
#define LDR32  UINT64_C(0x77520000)
#define ENTRY  UINT64_C(0x250000)
#define TEXT   UINT64_C(0x260000)
#define IMAGE  UINT64_C(0x10000000)
#define LISTED 4
#define MAPPED 5

static struct vm memory;
static struct mapped_image mapped[MAPPED];

static uint64_t base_of(size_t i)
{
	return IMAGE + 0x100000 * i;
}

static void put_text(bool wide, uint64_t va, uint64_t text, const char *from)
{
	const size_t bytes = 2 * strlen(from);

	vm_put(&memory, va, bytes, 2);
	vm_put(&memory, va + 2, bytes + 2, 2);
	vm_put(&memory, va + (wide ? 8 : 4), text, wide ? 8 : 4);
	for (size_t i = 0; from[i]; i++)
		vm_put(&memory, text + 2 * i, (uint8_t)from[i], 2);
}

/* The first modules of the list of 32 bits are also in that of 64, as WoW64 has them. */
static void put_list(bool wide)
{
	const size_t word = wide ? 8 : 4;
	const uint64_t ldr = wide ? LDR : LDR32, head = ldr + (wide ? 0x10 : 0xc);
	uint64_t back = head;

	vm_put(&memory, wide ? PEB + 0x18 : PEB32 + 0xc, ldr, word);
	for (size_t i = 0; i < LISTED; i++) {
		const uint64_t at = ENTRY + (wide ? 0 : 0x2000) + 0x100 * i;

		vm_put(&memory, back, at, word);
		vm_put(&memory, at + word, back, word);
		vm_put(&memory, at + (wide ? 0x30 : 0x18), base_of(wide ? i : i + 2), word);
		vm_put(&memory, at + (wide ? 0x40 : 0x20), 0x5000, 4);
		put_text(wide, at + (wide ? 0x48 : 0x24), TEXT + (wide ? 0 : 0x400) + 0x80 * i,
			 i % 2 ? "C:\\Windows\\System32\\a.dll" : "C:\\b.exe");
		back = at;
	}
	vm_put(&memory, back, head, word);
	vm_put(&memory, head + word, back, word);
}

/* Headers, and a record of a PDB in the same page. */
static void put_image(uint64_t base, bool wide)
{
	const uint64_t pe = base + 0x80, directories = pe + 24 + (wide ? 112 : 96);

	vm_put(&memory, base, 0x5a4d, 2);
	vm_put(&memory, base + 0x3c, 0x80, 4);
	vm_put(&memory, pe, 0x4550, 4);
	vm_put(&memory, pe + 4, wide ? 0x8664 : 0x14c, 2);
	vm_put(&memory, pe + 8, 0x5f5e1000, 4);
	vm_put(&memory, pe + 24, wide ? 0x20b : 0x10b, 2);
	vm_put(&memory, pe + 24 + 56, 0x5000, 4);
	vm_put(&memory, directories - 4, 16, 4);
	vm_put(&memory, directories + 8 * 6, 0x200, 4);
	vm_put(&memory, directories + 8 * 6 + 4, 28, 4);
	vm_put(&memory, base + 0x200 + 12, 2, 4);
	vm_put(&memory, base + 0x200 + 16, 0x40, 4);
	vm_put(&memory, base + 0x200 + 20, 0x300, 4);
	vm_put(&memory, base + 0x300, 0x53445352, 4);
	vm_put(&memory, base + 0x300 + 20, 1, 4);
	vm_put(&memory, base + 0x300 + 24, 0x6264702e61, 6);
}

static void make_process(void)
{
	put_list(true);
	put_list(false);
	for (size_t i = 0; i < MAPPED; i++) {
		put_image(base_of(i + 1), i < 3);
		mapped[i] =
			(struct mapped_image){ base_of(i + 1), 0x5000, i % 2 ? "\\c.dll" : NULL };
	}
	/* A second page for the names, so that one can begin in the first and end behind it. */
	vm_put(&memory, TEXT + PAGE_SIZE, 0, 1);
}

static void check(const struct modules *m, const struct modules_plan *plan)
{
	size_t of_mapping = 0;

	MUST(m->count <= (size_t)2 * MODULES_MAX + plan->n_mapped);
	MUST(m->end < LIST_ENDS && m->narrow_end < LIST_ENDS);
	MUST(plan->peb32 || m->narrow_end == LIST_NOT_FOUND);
	for (size_t i = 0; i < m->count; i++) {
		const struct module *of = &m->at[i];

		MUST(of->listed || of->mapped);
		MUST(!i || m->at[i - 1].base < of->base);
		MUST(module_name(of) && !strpbrk(module_name(of), "\\/"));
		MUST(!of->size || modules_at(m, of->base) == of);
		of_mapping += of->mapped;
	}
	MUST(of_mapping == plan->n_mapped);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_over(data, size);
	const uint8_t how = cur_u8(&c), missing = cur_u8(&c);
	const struct memory_view view = { vm_view, &memory };
	const struct modules_plan plan = {
		.memory = &view,
		.peb = PEB,
		.peb32 = how & 1 ? PEB32 : 0,
		.mapped = mapped,
		.n_mapped = how & 2 ? MAPPED : 0,
	};
	struct changes changes;
	struct modules found;

	if (!memory.count)
		make_process();
	changes_make(&changes, &memory, missing, &c);
	MUST(!modules_find(&plan, &found, NULL));
	check(&found, &plan);
	modules_deinit(&found);
	changes_undo(&changes);
	return 0;
}
