/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Golden vectors of entries, each put together by hand from the layout that its comment names, and
 * the choice of a layout from many entries.
 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/shared/paging/pte.h"

#define MASK      (UINT64_C(1) << 45) /* InvalidPteMask on most Intel processors */
#define USER_VA   UINT64_C(0x7ff600001000)
#define KERNEL_VA UINT64_C(0xffffb08000001000)

static const struct win_pte_layout *win_layout(const char *name)
{
	for (size_t i = 0; i < win_pte_layout_count; i++)
		if (!strcmp(win_pte_layouts[i].name, name))
			return &win_pte_layouts[i];
	fail_msg("no layout %s", name);
	return NULL;
}

static struct win_pte_context win(const char *name, uint64_t mask)
{
	return (struct win_pte_context){ win_layout(name), mask, -1 };
}

static const struct linux_pte_layout *linux_layout(const char *name)
{
	for (size_t i = 0; i < linux_pte_layout_count; i++)
		if (!strcmp(linux_pte_layouts[i].name, name))
			return &linux_pte_layouts[i];
	fail_msg("no layout %s", name);
	return NULL;
}

struct win_vector {
	const char *layout;
	uint64_t mask;
	uint64_t raw;
	enum pte_state state;
	uint64_t value; /* frame, slot or address, whatever the state has */
	uint32_t file;
	uint32_t protection;
};

static uint64_t value_of(const struct pte *p)
{
	if (p->has_frame)
		return p->frame;
	return p->address ? p->address : p->slot;
}

static void check_win(const struct win_vector *v, size_t n, bool prototype)
{
	for (size_t i = 0; i < n; i++) {
		const struct win_pte_context c = win(v[i].layout, v[i].mask);
		const struct pte p = prototype ? win_prototype_decode(&c, v[i].raw)
					       : win_pte_decode(&c, v[i].raw);

		if (p.state != v[i].state || value_of(&p) != v[i].value || p.file != v[i].file ||
		    p.protection != v[i].protection || p.raw != v[i].raw)
			fail_msg("vector %zu, 0x%llx: %s 0x%llx file %u protection %u", i,
				 (unsigned long long)v[i].raw, pte_state_name(p.state),
				 (unsigned long long)value_of(&p), p.file, p.protection);
	}
}

/* Figure 2. */
TEST(windows_hardware_entries)
{
	static const struct win_vector v[] = {
		/* Valid, and not executable. */
		{ "7", 0, 0x80000000002da963, PTE_VALID, 0x2da000, 0, 0 },
		{ "10-1809", MASK, 0x8a00000012345867, PTE_VALID, 0x12345000, 0, 0 },
		/* Transition: bit 11, not bit 10; protection 4 (read and write) at 5. */
		{ "7", 0, 0x0000000012345880, PTE_TRANSITION, 0x12345000, 0, 4 },
		{ "10-1809", MASK, 0x0000200012345880, PTE_TRANSITION, 0x12345000, 0, 4 },
		/* The same with the swizzle bit: bit 45 was the frame's own. */
		{ "10-1809", MASK, 0x0000200012345890, PTE_TRANSITION, 0x200012345000, 0, 4 },
		/* Prototype: bit 10. Protection at 11 up to 1607, at 5 from 1809 on. */
		{ "10-1507", 0, 0xf8a00112a7c82400, PTE_PROTOTYPE, 0xfffff8a00112a7c8, 0, 4 },
		{ "10-1809", MASK, 0xb60d0f1e78900490, PTE_PROTOTYPE, 0xffffb60d0f1e7890, 0, 4 },
		{ "10-1809", MASK, 0xb60d2f1e78900480, PTE_PROTOTYPE, 0xffffb60d0f1e7890, 0, 4 },
		/*
		 * Combined (bit 11 with bit 10) is a prototype all the same; Rekall took it for
		 * transition.
		 */
		{ "10-1809", MASK, 0xb60d0f1e78900c90, PTE_PROTOTYPE, 0xffffb60d0f1e7890, 0, 4 },
		/* A prototype's protection of 1607 may set bit 11 as well. */
		{ "10-1507", 0, 0xf8a00112a7c80c00, PTE_PROTOTYPE, 0xfffff8a00112a7c8, 0, 1 },
		/*
		 * VAD markers: Rekall's example, and 0xffffffff in the high half of a software
		 * entry.
		 */
		{ "7", 0, 0xffffffff00000420, PTE_VAD_PROTOTYPE, 0, 0, 0 },
		{ "7", 0, 0xffffffff00000080, PTE_VAD_PROTOTYPE, 0xffffffff, 0, 4 },
		/* Page file 2, slot 0x12345. */
		{ "7", 0, 0x0001234500000084, PTE_PAGE_FILE, 0x12345, 2, 4 },
		{ "10-1507", 0, 0x0001234500002084, PTE_PAGE_FILE, 0x12345, 2, 4 },
		{ "10-1809", MASK, 0x0001334500002084, PTE_PAGE_FILE, 0x11345, 2, 4 },
		/*
		 * Swizzled: bit 13 of the slot is the mask's, unless bit 4 says that it was there.
		 */
		{ "10-1809", MASK, 0x0000234500000084, PTE_PAGE_FILE, 0x345, 0, 4 },
		{ "10-1809", MASK, 0x0000234500000094, PTE_PAGE_FILE, 0x2345, 0, 4 },
		{ "11-insider", MASK, 0x0000234500001088, PTE_PAGE_FILE, 0x345, 1, 4 },
		/* Demand zero; with the mask and without it. */
		{ "7", 0, 0x0000000000000080, PTE_DEMAND_ZERO, 0, 0, 4 },
		{ "10-1809", MASK, 0x0000200000000080, PTE_DEMAND_ZERO, 0, 0, 4 },
		{ "10-1809", MASK, 0x0000000000000080, PTE_DEMAND_ZERO, 0, 0, 4 },
		{ "10-1809", MASK, 0x0000200000000200, PTE_DECOMMITTED, 0, 0, 16 },
		/* Free system PTEs of the 107 real pages. */
		{ "10-1809", MASK, 0x0000b5a000000010, PTE_NO_PAGE, 0xb5a0, 0, 0 },
		{ "10-1809", MASK, 0x0000609200000000, PTE_NO_PAGE, 0x4092, 0, 0 },
		{ "7", 0, 0, PTE_EMPTY, 0, 0, 0 },
	};

	check_win(v, ARRAY_SIZE(v), false);
}

/* Figure 3. */
TEST(windows_prototype_entries)
{
	static const struct win_vector v[] = {
		{ "7", 0, 0x8000000012345921, PTE_VALID, 0x12345000, 0, 0 },
		{ "7", 0, 0x00000000123458a0, PTE_TRANSITION, 0x12345000, 0, 5 },
		/* A mapped file: bit 10, the subsection's address at 16. */
		{ "7", 0, 0xfa800312a7c804a0, PTE_SUBSECTION, 0xfffffa800312a7c8, 0, 5 },
		{ "10-1809", MASK, 0xb60d2f1e789004a0, PTE_SUBSECTION, 0xffffb60d0f1e7890, 0, 5 },
		/* The same with ColdPage, which is no transition. */
		{ "10-1809", MASK, 0xb60d2f1e78900ca0, PTE_SUBSECTION, 0xffffb60d0f1e7890, 0, 5 },
		{ "10-1809", MASK, 0xffff800012345680, PTE_FILE_BACKED, 0xffff800012345680, 0, 0 },
		{ "7", 0, 0x0001234500000084, PTE_PAGE_FILE, 0x12345, 2, 4 },
		{ "7", 0, 0x0000000000000080, PTE_DEMAND_ZERO, 0, 0, 4 },
	};

	check_win(v, ARRAY_SIZE(v), true);
}

/* Only the hardware's entries send you to the VAD when the slot is 0. */
TEST(slot_zero_needs_the_vad_in_the_first_stage_only)
{
	const struct win_pte_context c = win("7", 0);

	assert_true(win_pte_decode(&c, 0x80).needs_vad);
	assert_false(win_prototype_decode(&c, 0x80).needs_vad);
	assert_true(win_pte_decode(&c, 0).needs_vad);
	assert_true(win_pte_decode(&c, 0xffffffff00000420).needs_vad);
}

/* UsedPageTableEntries of 0x155 and InStore, where each layout has them. */
TEST(paged_out_tables_say_how_full_they_were)
{
	static const struct {
		const char *layout;
		unsigned shift;
	} v[] = { { "7", 12 }, { "10-1507", 14 }, { "10-1809", 16 }, { "11-insider", 17 } };

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		const struct win_pte_context c = win(v[i].layout, 0);
		const uint64_t raw = 0x0001000000000080 | UINT64_C(0x155) << v[i].shift;

		assert_int_equal(win_pte_decode(&c, raw).used, 0x155);
		assert_int_equal(win_pte_decode(&c, raw).slot, 0x10000);
		assert_int_equal(win_pte_decode(&c, raw | 1 << 22).in_store, i == 0);
	}
}

TEST(compressed_pages_are_in_the_store)
{
	struct win_pte_context c = win("10-1809", MASK);
	struct pte p;

	c.store = 2;
	p = win_pte_decode(&c, 0x0001334500002084);
	assert_int_equal(p.state, PTE_COMPRESSED);
	assert_int_equal(p.slot, 0x20011345);
	p = win_pte_decode(&c, 0x0fffffff00002094);
	assert_int_equal(p.slot, 0x2fffffff);
	/* A key has no room for more. */
	p = win_pte_decode(&c, 0x3001134500002094);
	assert_int_equal(p.state, PTE_COMPRESSED);
	assert_int_equal(p.slot, 0x320011345);
	c.store = 1;
	assert_int_equal(win_pte_decode(&c, 0x0001334500002084).state, PTE_PAGE_FILE);
}

struct linux_vector {
	const char *layout;
	unsigned level;
	uint64_t raw;
	enum pte_state state;
	uint64_t value; /* frame or slot */
	uint32_t file;
	bool soft_dirty, uffd_wp, exclusive;
};

TEST(linux_entries)
{
	static const struct linux_vector v[] = {
		{ "5.19", 1, 0x8000000012345867, PTE_VALID, 0x12345000, 0, 0, 0, 0 },
		{ "5.19", 2, 0x80000000123ff8e7, PTE_VALID, 0x12200000, 0, 0, 0, 0 },
		/* PROT_NONE: bit 8 without bit 0. Frames are inverted since the L1TF change. */
		{ "4.14", 1, 0x8000000012345920, PTE_PROT_NONE, 0x12345000, 0, 0, 0, 0 },
		{ "l1tf", 1, 0x800fffffedcba920, PTE_PROT_NONE, 0x12345000, 0, 0, 0, 0 },
		{ "l1tf", 2, 0x800fffffedc00180, PTE_PROT_NONE, 0x12200000, 0, 0, 0, 0 },
		/* A large page whose present bit was taken away while it is split. */
		{ "6.2", 2, 0x800fffffedc00080, PTE_PROT_NONE, 0x12200000, 0, 0, 0, 0 },
		/* Swap area 1, slot 0x1234, as each version writes it. */
		{ "4.0", 1, UINT64_C(0x1234) << 9 | 1 << 1, PTE_SWAP, 0x1234, 1, 0, 0, 0 },
		{ "4.0", 1, UINT64_C(0x1234) << 9 | 1 << 1 | 0x80, PTE_SWAP, 0x1234, 1, 1, 0, 0 },
		{ "4.8", 1, UINT64_C(0x1234) << 15 | 1 << 9, PTE_SWAP, 0x1234, 1, 0, 0, 0 },
		{ "4.9", 1, UINT64_C(0x1234) << 14 | 1 << 9 | 0x80, PTE_SWAP, 0x1234, 1, 1, 0, 0 },
		{ "4.14", 1, UINT64_C(0x1234) << 14 | 1 << 9 | 2, PTE_SWAP, 0x1234, 1, 1, 0, 0 },
		/*
		 * 6.1 arch/x86/include/asm/pgtable_64.h: ~0x1234 << 14 >> 5 is 0x07ffffffffdb9600.
		 */
		{ "l1tf", 1, 0x0fffffffffdb9600, PTE_SWAP, 0x1234, 1, 0, 0, 0 },
		{ "l1tf", 1, 0x0fffffffffdb9606, PTE_SWAP, 0x1234, 1, 1, 0, 0 },
		{ "5.7", 1, 0x0fffffffffdb9604, PTE_SWAP, 0x1234, 1, 0, 1, 0 },
		{ "5.19", 1, 0x0fffffffffdb960e, PTE_SWAP, 0x1234, 1, 1, 1, 1 },
		{ "6.2", 1, 0x07ffffffffdb9608, PTE_SWAP, 0x1234, 0, 0, 0, 1 },
		{ "6.15", 1, 0x07ffffffffdb9600, PTE_SWAP, 0x1234, 0, 0, 0, 0 },
		/* Special types of 6.1 without CONFIG_DEVICE_PRIVATE: 26 poison, 27-29 migration,
		 * 30 marker, 31 error (include/linux/swap.h). Frame 0x12345; young and dirty bits
		 * above. */
		{ "5.19", 1, 0xd7fffffffdb97400, PTE_POISONED, 0x12345000, 26, 0, 0, 0 },
		{ "5.19", 1, 0xdffffffffdb97400, PTE_MIGRATION, 0x12345000, 27, 0, 0, 0 },
		{ "5.19", 1, 0xefffe7fffdb97400, PTE_MIGRATION, 0x12345000, 29, 0, 0, 0 },
		{ "5.19", 1, 0xf7fffffffffffc00, PTE_MARKER, 1, 30, 0, 0, 0 },
		{ "5.19", 1, 0xfffffffffffffe00, PTE_SWAP_ERROR, 0, 31, 0, 0, 0 },
		{ "5.19", 1, 0xcfffffffffdb9600, PTE_SWAP, 0x1234, 25, 0, 0, 0 },
		/*
		 * 5.10: 29 poison, 30 and 31 migration. 6.2: 27 poison, 28-30 migration, 31 marker.
		 */
		{ "5.7", 1, 0xeffffffffdb97400, PTE_POISONED, 0x12345000, 29, 0, 0, 0 },
		{ "5.7", 1, 0xfffffffffdb97400, PTE_MIGRATION, 0x12345000, 31, 0, 0, 0 },
		{ "6.2", 1, 0xdffffffffdb97400, PTE_POISONED, 0x12345000, 27, 0, 0, 0 },
		{ "6.2", 1, 0xfffffffffffffc00, PTE_MARKER, 1, 31, 0, 0, 0 },
		{ "6.13", 1, 0xfffffffffffff600, PTE_MARKER, 4, 31, 0, 0, 0 },
		{ "6.15", 2, 0xdffffffffdb97400, PTE_POISONED, 0x12345000, 27, 0, 0, 0 },
		{ "6.15", 3, 0xfffffffffffffa00, PTE_MARKER, 2, 31, 0, 0, 0 },
		/* The markers of a newer kernel, read by an older one's layout: frame 0x4000. */
		{ "l1tf", 1, 0xfffffffffffff600, PTE_UNKNOWN, 4, 31, 0, 0, 0 },
		/* A marker without a bit, and one with more than there can be. */
		{ "6.13", 1, 0xfffffffffffffe00, PTE_UNKNOWN, 0, 31, 0, 0, 0 },
		{ "6.13", 1, 0xfffffffffffdfe00, PTE_UNKNOWN, 0x100, 31, 0, 0, 0 },
		{ "6.2", 1, 0, PTE_EMPTY, 0, 0, 0, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		const struct linux_pte_context c = { .layout = linux_layout(v[i].layout) };
		const struct pte p = linux_pte_decode(&c, v[i].level, v[i].raw);

		if (p.state != v[i].state || value_of(&p) != v[i].value || p.file != v[i].file ||
		    p.soft_dirty != v[i].soft_dirty || p.uffd_wp != v[i].uffd_wp ||
		    p.exclusive != v[i].exclusive || p.raw != v[i].raw)
			fail_msg("vector %zu, 0x%llx: %s 0x%llx type %u", i,
				 (unsigned long long)v[i].raw, pte_state_name(p.state),
				 (unsigned long long)value_of(&p), p.file);
	}
}

TEST(device_types_move_the_others_down)
{
	const struct linux_pte_context c = { .layout = linux_layout("5.19"),
					     .device_private = true };

	/* 22 poison, 23-25 migration, 26-29 device, 30 marker, 31 error. */
	assert_int_equal(linux_pte_decode(&c, 1, 0xb7fffffffdb97400).state, PTE_POISONED);
	assert_int_equal(linux_pte_decode(&c, 1, 0xcffffffffdb97400).state, PTE_MIGRATION);
	assert_int_equal(linux_pte_decode(&c, 1, 0xd7fffffffdb97400).state, PTE_DEVICE);
	assert_int_equal(linux_pte_decode(&c, 1, 0xf7fffffffffffc00).state, PTE_MARKER);
}

/* MAX_SWAPFILES of each version, without the option and with it (include/linux/swap.h). */
TEST(swap_areas_end_where_each_version_has_it)
{
	static const struct {
		const char *layout;
		unsigned areas[2];
	} v[] = {
		{ "4.0", { 29, 29 } },  { "4.14", { 29, 27 } }, { "l1tf", { 29, 27 } },
		{ "5.14", { 29, 25 } }, { "5.19", { 26, 22 } }, { "6.2", { 27, 23 } },
		{ "6.13", { 27, 23 } }, { "6.15", { 27, 24 } },
	};

	for (size_t i = 0; i < 2 * ARRAY_SIZE(v); i++) {
		const struct linux_pte_layout *l = linux_layout(v[i / 2].layout);
		const unsigned areas = v[i / 2].areas[i % 2];

		assert_int_equal(linux_pte_state_of_type(l, i % 2, areas - 1), PTE_SWAP);
		assert_int_equal(linux_pte_state_of_type(l, i % 2, areas), PTE_POISONED);
	}
}

TEST(markers_have_names)
{
	static const char *const names[] = { "",         "uffd-wp",
					     "poisoned", "uffd-wp+poisoned",
					     "guard",    "uffd-wp+guard" };
	char name[PTE_MARKER_NAME_MAX];

	for (size_t i = 1; i < ARRAY_SIZE(names); i++) {
		pte_marker_name((uint8_t)i, name);
		assert_string_equal(name, names[i]);
	}
	pte_marker_name(0x80, name);
	assert_string_equal(name, "unknown");
	pte_marker_name(0xff, name);
	assert_string_equal(name, "uffd-wp+poisoned+guard+unknown");
}

TEST(young_and_dirty_bits_stand_above_the_frames_of_the_paging_mode)
{
	struct linux_pte_context c = { .layout = linux_layout("5.19"), .five_levels = true };

	/* Offset bits 40 and 41 with five levels, 34 and 35 with four. */
	assert_int_equal(linux_pte_decode(&c, 1, 0xeff9fffffdb97400).frame, 0x12345000);
	assert_int_equal(linux_pte_decode(&c, 1, 0xefffe7fffdb97400).frame,
			 0x12345000 | UINT64_C(3) << 46);
	c.five_levels = false;
	assert_int_equal(linux_pte_decode(&c, 1, 0xefffe7fffdb97400).frame, 0x12345000);
}

/*
 * The choice
 */

static struct range_list ram;

static int make_ram(void **unused)
{
	(void)unused;
	return range_list_add(&ram, 0, 0x7fffffff, NULL) != ST_OK;
}

static int free_ram(void **unused)
{
	(void)unused;
	range_list_deinit(&ram);
	return 0;
}

/* Entries of a machine with one page file, as a layout writes them. `swizzle`: with the mask. */
static struct win_pte_evidence entries_of(unsigned file_shift, unsigned allocated, bool swizzle,
					  size_t n)
{
	struct win_pte_evidence ev = { .facts = { .ranges = &ram, .files = 1 } };
	const uint64_t mask = swizzle ? MASK : 0;

	ev.facts.file_pages[0] = 0x40000;
	for (uint64_t i = 1; i <= n; i++) {
		const uint64_t slot = i * 7919 % 0x40000;
		uint64_t soft = slot << 32 | UINT64_C(0) << file_shift | 0x80;
		uint64_t transition = (i * 104729 % 0x7ffff) << 12 | 0x880;

		if (allocated)
			soft |= UINT64_C(1) << allocated;
		if (soft & mask)
			soft |= 0x10;
		win_pte_evidence_add(&ev, USER_VA, soft | mask);
		win_pte_evidence_add(&ev, USER_VA, transition | mask);
		win_pte_evidence_add(&ev, USER_VA, 0x80);
		win_pte_evidence_add(&ev, KERNEL_VA, mask ? i * 977 << 33 | mask : 0);
	}
	return ev;
}

static void check_win_choice(const struct win_pte_evidence *ev, const char *name, uint64_t mask)
{
	struct win_pte_choice choice;

	win_pte_choose(ev, &choice);
	assert_non_null(choice.context.layout);
	assert_string_equal(choice.context.layout->name, name);
	assert_int_equal(choice.context.invalid_mask, mask);
	assert_false(choice.by_version_only);
	assert_true(choice.reason[0]);
}

TEST(windows_layout_is_chosen_by_what_entries_look_like)
{
	struct win_pte_evidence ev;

	ev = entries_of(12, 2, true, 100);
	check_win_choice(&ev, "10-1809", MASK);
	ev = entries_of(1, 13, false, 100);
	check_win_choice(&ev, "10-1507", 0);
	/* The new layout on a processor without the mask: only the page file tells. */
	ev = entries_of(12, 2, false, 100);
	check_win_choice(&ev, "10-1809", 0);
	ev = entries_of(1, 0, false, 100);
	ev.facts.version = 7601;
	check_win_choice(&ev, "7", 0);
}

/* No page file is in use: the free system PTEs of the kernel's half have the mask all the same. */
TEST(mask_alone_tells_the_layout)
{
	struct win_pte_evidence ev = { .facts = { .ranges = &ram, .version = 17134 } };

	for (uint64_t i = 1; i < 100; i++)
		win_pte_evidence_add(&ev, KERNEL_VA, i * 977 << 33 | MASK | (i & 1) << 4);
	check_win_choice(&ev, "10-1809", MASK);
}

/* The mask does not say where a slot lies, and for an unknown build that is not guessed. */
TEST(mask_alone_tells_too_little_of_a_build_that_nobody_knows)
{
	static const uint32_t builds[] = { 3790, 26201, 28000 };
	struct win_pte_choice choice;

	for (size_t i = 0; i < ARRAY_SIZE(builds); i++) {
		struct win_pte_evidence ev = { .facts = { .ranges = &ram, .version = builds[i] } };

		for (uint64_t k = 1; k < 100; k++)
			win_pte_evidence_add(&ev, KERNEL_VA, k * 977 << 33 | MASK | (k & 1) << 4);
		win_pte_choose(&ev, &choice);
		assert_null(choice.context.layout);
		assert_false(choice.by_version_only);
		CHECK_HAS(choice.reason, "fit 10-1809 or 11-insider, but");
		CHECK_HAS(choice.reason, "none is known");
		/* A build that is not told may be any that is known. */
		ev.facts.version = 0;
		check_win_choice(&ev, "10-1809", MASK);
	}
}

/* A page that was no table any more when it was read is no reason to read all others wrong. */
TEST(mask_is_found_though_a_torn_table_lacks_it)
{
	struct win_pte_evidence ev = entries_of(12, 2, true, 8192);

	for (uint64_t i = 0; i < 512; i++)
		win_pte_evidence_add(&ev, USER_VA, UINT64_C(0x6162636465666768) + (i << 33));
	check_win_choice(&ev, "10-1809", MASK);
}

/* The kernel takes bits that no frame has: the first may be the one right above all memory. */
TEST(mask_lies_above_all_memory)
{
	for (uint64_t beyond = 0; beyond < 2; beyond++) {
		struct win_pte_evidence ev = { .facts = { .version = 17134 } };
		struct win_pte_choice choice;
		struct range_list l = { 0 };

		assert_int_equal(range_list_add(&l, 0, MASK - 1 + beyond, NULL), ST_OK);
		ev.facts.ranges = &l;
		for (uint64_t i = 1; i < 100; i++)
			win_pte_evidence_add(&ev, KERNEL_VA, i * 977 << 33 | MASK | (i & 1) << 4);
		win_pte_choose(&ev, &choice);
		assert_int_equal(choice.context.invalid_mask, beyond ? 0 : MASK);
		range_list_deinit(&l);
	}
}

TEST(build_number_does_not_outweigh_entries_where_servicing_changed_them)
{
	struct win_pte_evidence ev = entries_of(12, 2, true, 100);

	ev.facts.version = 17134; /* 1803, which came with the old layout and was serviced */
	check_win_choice(&ev, "10-1809", MASK);
	ev = entries_of(1, 13, false, 100);
	ev.facts.version = 30000; /* nobody knows it yet */
	check_win_choice(&ev, "10-1507", 0);
}

/*
 * Without a mask, and with slots in the store of compressed pages, entries look like the older
 * layout's.
 */
TEST(build_number_decides_from_1809_on)
{
	static const uint32_t builds[] = { 17763, 18362, 19041, 19045, 20348,
					   22000, 22621, 22631, 26100, 26200 };

	for (size_t i = 0; i < ARRAY_SIZE(builds); i++) {
		struct win_pte_evidence ev = entries_of(1, 13, false, 100);

		ev.facts.version = builds[i];
		check_win_choice(&ev, "10-1809", 0);
	}
}

TEST(without_entries_only_the_version_speaks)
{
	struct win_pte_evidence ev = { .facts = { .version = 19045 } };
	struct linux_pte_evidence lev = { .facts = { .version = 601 } };
	struct linux_pte_choice linux_choice;
	struct win_pte_choice choice;

	win_pte_choose(&ev, &choice);
	assert_true(choice.by_version_only);
	assert_string_equal(choice.context.layout->name, "10-1809");
	ev.facts.version = 0;
	win_pte_choose(&ev, &choice);
	assert_null(choice.context.layout);
	CHECK_HAS(choice.reason, "no entry tells");
	linux_pte_choose(&lev, &linux_choice);
	assert_true(linux_choice.by_version_only);
	assert_string_equal(linux_choice.context.layout->name, "5.19");
	lev.facts.version = 0;
	linux_pte_choose(&lev, &linux_choice);
	assert_null(linux_choice.context.layout);
}

/* 3790 is what ReactOS says, and 6003 Vista; of what comes behind the last nothing was read. */
TEST(version_that_nobody_knows_gets_no_layout)
{
	static const uint32_t builds[] = { 1, 3790, 6003, 7599, 26201, 28000 };
	struct win_pte_evidence ev;
	struct win_pte_choice choice;

	for (size_t i = 0; i < ARRAY_SIZE(builds); i++) {
		char build[32];

		ev = (struct win_pte_evidence){ .facts = { .ranges = &ram, .version = builds[i] } };
		for (uint64_t k = 1; k <= 100; k++) {
			win_pte_evidence_add(&ev, USER_VA, 0x80);
			win_pte_evidence_add(&ev, USER_VA, k << 12 | 0x880);
		}
		win_pte_choose(&ev, &choice);
		assert_null(choice.context.layout);
		snprintf(build, sizeof(build), "build %u ", builds[i]);
		CHECK_HAS(choice.reason, build);
		/* What entries say counts for any version. */
		ev = entries_of(12, 2, true, 100);
		ev.facts.version = builds[i];
		check_win_choice(&ev, "10-1809", MASK);
	}
	for (size_t i = 0; i < 2; i++) {
		ev = (struct win_pte_evidence){ .facts = { .version = i ? 26200 : 7600 } };
		win_pte_choose(&ev, &choice);
		assert_non_null(choice.context.layout);
	}
}

/* file << 1 | slot << 12 | 0x800: with a layout of Windows, a frame that was never this page's. */
TEST(page_file_entry_of_reactos_is_no_transition)
{
	struct win_pte_evidence ev = { .facts = { .ranges = &ram, .version = 3790 } };
	struct win_pte_choice choice;

	for (uint64_t slot = 1; slot <= 100; slot++)
		win_pte_evidence_add(&ev, USER_VA, slot << 12 | 0x800);
	assert_int_equal(ev.transition, 0);
	win_pte_choose(&ev, &choice);
	assert_null(choice.context.layout);
	CHECK_HAS(choice.reason, "100 are as no known Windows has them");
	for (size_t i = 0; i < win_pte_layout_count; i++) {
		const struct win_pte_context c = { &win_pte_layouts[i], 0, -1 };
		const struct pte p = win_pte_decode(&c, UINT64_C(0x123802));

		assert_int_equal(p.state, PTE_UNKNOWN);
		assert_false(p.has_frame);
		assert_int_equal(win_prototype_decode(&c, UINT64_C(0x123802)).state, PTE_UNKNOWN);
		assert_int_equal(win_pte_decode(&c, UINT64_C(0x123882)).state, PTE_TRANSITION);
	}
}

static uint64_t linux_swap(bool inverted, uint64_t type, uint64_t slot)
{
	return inverted ? ~slot << 14 >> 5 | type << 59 : slot << 14 | type << 9;
}

/* A frame of RAM, or a marker's bits, in a special entry. */
static uint64_t linux_special(uint64_t type, uint64_t offset)
{
	return linux_swap(true, type, offset);
}

/* Swap entries and PROT_NONE pages of a machine with one area. */
static void put_machine(struct linux_pte_evidence *ev, bool inverted, bool files_known, uint64_t n)
{
	ev->facts.files = files_known;
	ev->facts.file_pages[0] = 0x10000;
	for (uint64_t i = 1; i <= n; i++) {
		const uint64_t frame = (i * 104729 % 0x7ffff) << 12;

		linux_pte_evidence_add(ev, 1, linux_swap(inverted, 0, i * 31 % 0xffff + 1));
		linux_pte_evidence_add(ev, 1,
				       ((inverted ? ~frame : frame) & 0xffffffffff000) | 0x120);
	}
}

static struct linux_pte_evidence linux_evidence(uint32_t version)
{
	return (struct linux_pte_evidence){ .facts = { .ranges = &ram, .version = version } };
}

static const char *linux_choice_of(bool inverted, uint32_t version, bool files_known)
{
	struct linux_pte_evidence ev = linux_evidence(version);
	struct linux_pte_choice choice;

	put_machine(&ev, inverted, files_known, 199);
	linux_pte_choose(&ev, &choice);
	assert_non_null(choice.context.layout);
	assert_false(choice.by_version_only);
	assert_false(choice.context.device_private);
	assert_int_equal(choice.areas, 1);
	return choice.context.layout->name;
}

TEST(linux_layout_is_chosen_by_what_entries_look_like)
{
	assert_string_equal(linux_choice_of(true, 601, true), "5.19");
	assert_string_equal(linux_choice_of(true, 612, true), "6.2");
	assert_string_equal(linux_choice_of(true, 703, true), "6.15");
	assert_string_equal(linux_choice_of(true, 0, true), "l1tf");
	assert_string_equal(linux_choice_of(true, 601, false), "5.19");
	assert_string_equal(linux_choice_of(false, 414, true), "4.14");
	/*
	 * A stable 4.9 with the L1TF change carried back: the version says otherwise, and is wrong.
	 */
	assert_string_equal(linux_choice_of(true, 409, true), "l1tf");
	/* And a version that claims too much. */
	assert_string_equal(linux_choice_of(false, 510, true), "4.9");
}

/* What the choice makes of one entry. */
static struct pte chosen(const struct linux_pte_evidence *ev, const char *layout, uint64_t raw)
{
	struct linux_pte_choice choice;

	linux_pte_choose(ev, &choice);
	assert_non_null(choice.context.layout);
	assert_string_equal(choice.context.layout->name, layout);
	return linux_pte_decode(&choice.context, 1, raw);
}

static void check_marker(const struct linux_pte_evidence *ev, const char *layout, uint64_t raw,
			 uint8_t bits)
{
	const struct pte p = chosen(ev, layout, raw);

	assert_int_equal(p.state, PTE_MARKER);
	assert_int_equal(p.marker, bits);
	assert_false(p.has_frame);
}

/* MADV_GUARD_INSTALL: type 31, bit 2. */
TEST(one_guard_marker_without_swap_is_a_marker)
{
	static const uint32_t versions[] = { 613, 615, 702, 703, 0 };
	static const char *const layouts[] = { "6.13", "6.15", "6.15", "6.15", "6.13" };

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		struct linux_pte_evidence ev = linux_evidence(versions[i]);

		linux_pte_evidence_add(&ev, 1, linux_special(31, 4));
		check_marker(&ev, layouts[i], linux_special(31, 4), LINUX_MARKER_GUARD);
	}
}

/* As many as there are swap entries, and ten times as many. */
TEST(guard_markers_do_not_outvote_swap)
{
	for (uint64_t times = 1; times <= 10; times += 9) {
		for (uint32_t version = 0; version <= 703; version += 703) {
			struct linux_pte_evidence ev = linux_evidence(version);

			put_machine(&ev, true, true, 100);
			for (uint64_t i = 0; i < 100 * times; i++)
				linux_pte_evidence_add(&ev, 1, linux_special(31, 4));
			check_marker(&ev, version ? "6.15" : "6.13", linux_special(31, 4),
				     LINUX_MARKER_GUARD);
			assert_int_equal(
				chosen(&ev, version ? "6.15" : "6.13", linux_swap(true, 0, 77))
					.state,
				PTE_SWAP);
		}
	}
}

/* Write protection by userfaultfd, of shmem that is paged out and of hugetlb: level 2, too. */
TEST(markers_of_write_protection_are_markers)
{
	static const struct {
		uint32_t version;
		const char *layout;
		uint64_t type;
	} v[] = {
		{ 601, "5.19", 30 }, { 606, "6.2", 31 }, { 612, "6.2", 31 }, { 703, "6.15", 31 }
	};

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		struct linux_pte_evidence ev = linux_evidence(v[i].version);
		const uint64_t raw = linux_special(v[i].type, 1);

		for (uint64_t k = 0; k < 178; k++)
			linux_pte_evidence_add(&ev, 1 + k % 2, raw);
		check_marker(&ev, v[i].layout, raw, LINUX_MARKER_UFFD_WP);
	}
}

/* Bits that no version has yet; 4.19 would read the second as the migration of a frame of RAM. */
TEST(marker_of_a_later_kernel_is_a_marker)
{
	for (unsigned bit = 3; bit <= 6; bit += 3) {
		struct linux_pte_evidence ev = linux_evidence(708);

		for (uint64_t i = 0; i < 100; i++)
			linux_pte_evidence_add(&ev, 1, linux_special(31, UINT64_C(1) << bit));
		check_marker(&ev, "6.15", linux_special(31, UINT64_C(1) << bit),
			     (uint8_t)(1U << bit));
	}
}

/* What 7.2 and 7.3 of Debian write: 24 poison, 25-27 migration, 28-30 device, 31 marker. */
TEST(kernel_that_has_device_private_is_read_as_such)
{
	static const struct {
		uint64_t type;
		enum pte_state with, without, untold;
	} v[] = {
		{ 23, PTE_SWAP, PTE_SWAP, PTE_SWAP },
		{ 24, PTE_POISONED, PTE_SWAP, PTE_UNKNOWN },
		{ 25, PTE_MIGRATION, PTE_SWAP, PTE_UNKNOWN },
		{ 26, PTE_MIGRATION, PTE_SWAP, PTE_UNKNOWN },
		{ 27, PTE_MIGRATION, PTE_POISONED, PTE_UNKNOWN },
		{ 28, PTE_DEVICE, PTE_MIGRATION, PTE_UNKNOWN },
		{ 30, PTE_DEVICE, PTE_MIGRATION, PTE_UNKNOWN },
	};
	static const enum pte_option options[] = { OPTION_ON, OPTION_OFF, OPTION_UNTOLD };

	for (size_t k = 0; k < ARRAY_SIZE(options); k++) {
		struct linux_pte_evidence ev = linux_evidence(703);
		struct linux_pte_choice choice;

		ev.facts.device_private = options[k];
		put_machine(&ev, true, true, 20);
		for (uint64_t i = 0; i < 20; i++)
			linux_pte_evidence_add(&ev, 1, linux_special(31, 4));
		linux_pte_choose(&ev, &choice);
		assert_int_equal(choice.device_private, options[k]);
		assert_string_equal(choice.doubt, "");
		for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
			const uint64_t raw = linux_special(v[i].type, 0x12345);
			const enum pte_state want = k == 0   ? v[i].with
						    : k == 1 ? v[i].without
							     : v[i].untold;
			const struct pte p = chosen(&ev, "6.15", raw);

			assert_int_equal(p.state, want);
			assert_int_equal(p.has_frame,
					 want == PTE_MIGRATION || want == PTE_POISONED);
		}
		check_marker(&ev, "6.15", linux_special(31, 4), LINUX_MARKER_GUARD);
	}
}

/* A type whose entry only one reading explains. RAM ends at 2 GiB. */
TEST(entries_tell_whether_there_is_device_private)
{
	static const struct {
		uint32_t version;
		uint64_t type, frame;
		enum pte_option want;
	} v[] = {
		{ 703, 24, 0x12345, OPTION_ON },         /* poison, or swap area 24 */
		{ 703, 25, 0x12345, OPTION_ON },         /* migration, or swap area 25 */
		{ 703, 27, 0x12345, OPTION_UNTOLD },     /* migration, or poison */
		{ 703, 28, 0x12345, OPTION_OFF },        /* migration; a device's page is no RAM */
		{ 703, 28, 0x7ffffff00, OPTION_UNTOLD }, /* too long for a frame */
		{ 703, 28, 0x3ffffff00, OPTION_ON },
		{ 703, 30, 0x12345, OPTION_UNTOLD }, /* migration, or a page that stays in RAM */
		{ 601, 22, 0x12345, OPTION_ON },
		{ 601, 26, 0x12345, OPTION_OFF },
		{ 601, 29, 0x12345, OPTION_UNTOLD },
		{ 510, 30, 0x12345, OPTION_OFF },
	};

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		struct linux_pte_evidence ev = linux_evidence(v[i].version);
		struct linux_pte_choice choice;

		linux_pte_evidence_add(&ev, 1, linux_special(v[i].type, v[i].frame));
		linux_pte_choose(&ev, &choice);
		if (choice.device_private != v[i].want)
			fail_msg("%u, type %u: %d", v[i].version, (unsigned)v[i].type,
				 choice.device_private);
	}
}

/* One torn entry among many does not turn what they say. */
TEST(entries_that_contradict_each_other_tell_nothing)
{
	struct linux_pte_evidence ev = linux_evidence(703);
	struct linux_pte_choice choice;

	for (uint64_t i = 0; i < 9; i++)
		linux_pte_evidence_add(&ev, 1, linux_special(25, 0x12345));
	linux_pte_evidence_add(&ev, 1, linux_special(28, 0x12345));
	linux_pte_choose(&ev, &choice);
	assert_int_equal(choice.device_private, OPTION_ON);
	linux_pte_evidence_add(&ev, 1, linux_special(28, 0x12345));
	linux_pte_choose(&ev, &choice);
	assert_int_equal(choice.device_private, OPTION_UNTOLD);
}

/* What was found of the kernel, and what its entries are. */
TEST(entries_can_put_the_option_in_doubt)
{
	for (uint64_t n = 7; n <= 8; n++) {
		struct linux_pte_evidence ev = linux_evidence(703);
		struct linux_pte_choice choice;

		ev.facts.device_private = OPTION_OFF;
		for (uint64_t i = 0; i < n; i++)
			linux_pte_evidence_add(&ev, 1, linux_special(24, 0x12345));
		linux_pte_choose(&ev, &choice);
		assert_int_equal(choice.device_private, n < 8 ? OPTION_OFF : OPTION_UNTOLD);
		assert_int_equal(choice.doubt[0] != '\0', n == 8);
	}
}

/*
 * A 5.14 with much of 6.x carried back: entries with the exclusive bit are none of its own. More
 * than one in eight must be such, and at least 8.
 */
static void check_lie(uint64_t against, uint64_t for_it, bool lies)
{
	struct linux_pte_evidence ev = linux_evidence(514);
	struct linux_pte_choice choice;

	for (uint64_t i = 1; i <= for_it; i++)
		linux_pte_evidence_add(&ev, 1, linux_swap(true, 0, i));
	for (uint64_t i = 1; i <= against; i++)
		linux_pte_evidence_add(&ev, 1, linux_swap(true, 0, i) | 8);
	linux_pte_choose(&ev, &choice);
	assert_string_equal(choice.context.layout->name, lies ? "5.19" : "5.14");
	assert_int_equal(choice.doubt[0] != '\0', lies);
	assert_int_equal(strstr(choice.doubt, "Linux 5.14") != NULL, lies);
}

TEST(version_is_believed_until_entries_make_it_impossible)
{
	check_lie(7, 0, false);
	check_lie(8, 0, true);
	check_lie(8, 55, true);
	check_lie(8, 56, false);
	check_lie(100, 900, false);
}

/* Entries that no other layout explains any better are torn, and no reason. */
TEST(version_is_not_left_for_a_layout_that_explains_less)
{
	struct linux_pte_evidence ev = linux_evidence(612);
	struct linux_pte_choice choice;

	put_machine(&ev, true, true, 100);
	for (uint64_t i = 1; i <= 100; i++)
		linux_pte_evidence_add(&ev, 1, linux_swap(false, 0, i));
	linux_pte_choose(&ev, &choice);
	assert_string_equal(choice.context.layout->name, "6.2");
	assert_string_equal(choice.doubt, "");
}

TEST(prot_none_alone_can_contradict_a_version)
{
	for (uint64_t n = 7; n <= 8; n++) {
		struct linux_pte_evidence ev = linux_evidence(612);
		struct linux_pte_choice choice;

		for (uint64_t i = 1; i <= n; i++)
			linux_pte_evidence_add(&ev, 1, i << 20 | 0x120);
		linux_pte_choose(&ev, &choice);
		assert_int_equal(choice.doubt[0] != '\0', n == 8);
		assert_int_equal(choice.context.layout->inverted, n < 8);
		/* Four layouts are not inverted, and nothing tells how they keep slots. */
		if (n == 8)
			assert_int_equal(linux_pte_decode(&choice.context, 1, 0x4000).state,
					 PTE_UNKNOWN);
	}
}

/* What several layouts explain as well is unknown where they differ; swap is the same in all. */
TEST(without_a_version_what_layouts_differ_in_is_unknown)
{
	struct linux_pte_evidence ev = linux_evidence(0);

	put_machine(&ev, true, true, 100);
	assert_int_equal(chosen(&ev, "l1tf", linux_swap(true, 0, 5)).state, PTE_SWAP);
	assert_int_equal(chosen(&ev, "l1tf", linux_swap(true, 21, 5)).state, PTE_SWAP);
	for (uint64_t type = 26; type < 32; type++)
		assert_int_equal(chosen(&ev, "l1tf", linux_special(type, 0x12345)).state,
				 PTE_UNKNOWN);
}

/* What no kernel writes is no reason to doubt a version, nor to choose a layout. */
TEST(noise_chooses_no_layout)
{
	for (uint32_t version = 0; version <= 612; version += 612) {
		struct linux_pte_evidence ev = linux_evidence(version);
		struct linux_pte_choice choice;

		for (uint64_t i = 1; i < 100; i++)
			linux_pte_evidence_add(&ev, 1, UINT64_C(0x6162636465666870) + (i << 33));
		linux_pte_choose(&ev, &choice);
		assert_int_equal(choice.context.layout != NULL, version != 0);
		assert_string_equal(choice.doubt, "");
		assert_true(choice.reason[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_hardware_entries),
		cmocka_unit_test(windows_prototype_entries),
		cmocka_unit_test(slot_zero_needs_the_vad_in_the_first_stage_only),
		cmocka_unit_test(paged_out_tables_say_how_full_they_were),
		cmocka_unit_test(compressed_pages_are_in_the_store),
		cmocka_unit_test(linux_entries),
		cmocka_unit_test(device_types_move_the_others_down),
		cmocka_unit_test(swap_areas_end_where_each_version_has_it),
		cmocka_unit_test(markers_have_names),
		cmocka_unit_test(young_and_dirty_bits_stand_above_the_frames_of_the_paging_mode),
		cmocka_unit_test(windows_layout_is_chosen_by_what_entries_look_like),
		cmocka_unit_test(mask_alone_tells_the_layout),
		cmocka_unit_test(mask_alone_tells_too_little_of_a_build_that_nobody_knows),
		cmocka_unit_test(mask_is_found_though_a_torn_table_lacks_it),
		cmocka_unit_test(mask_lies_above_all_memory),
		cmocka_unit_test(
			build_number_does_not_outweigh_entries_where_servicing_changed_them),
		cmocka_unit_test(build_number_decides_from_1809_on),
		cmocka_unit_test(without_entries_only_the_version_speaks),
		cmocka_unit_test(version_that_nobody_knows_gets_no_layout),
		cmocka_unit_test(page_file_entry_of_reactos_is_no_transition),
		cmocka_unit_test(linux_layout_is_chosen_by_what_entries_look_like),
		cmocka_unit_test(one_guard_marker_without_swap_is_a_marker),
		cmocka_unit_test(guard_markers_do_not_outvote_swap),
		cmocka_unit_test(markers_of_write_protection_are_markers),
		cmocka_unit_test(marker_of_a_later_kernel_is_a_marker),
		cmocka_unit_test(kernel_that_has_device_private_is_read_as_such),
		cmocka_unit_test(entries_tell_whether_there_is_device_private),
		cmocka_unit_test(entries_that_contradict_each_other_tell_nothing),
		cmocka_unit_test(entries_can_put_the_option_in_doubt),
		cmocka_unit_test(version_is_believed_until_entries_make_it_impossible),
		cmocka_unit_test(version_is_not_left_for_a_layout_that_explains_less),
		cmocka_unit_test(prot_none_alone_can_contradict_a_version),
		cmocka_unit_test(without_a_version_what_layouts_differ_in_is_unknown),
		cmocka_unit_test(noise_chooses_no_layout),
	};

	return cmocka_run_group_tests(tests, make_ram, free_ram);
}
