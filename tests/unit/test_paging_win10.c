/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 107 real pages of a Windows 10 x64 machine. They are not a part of the sources: they are looked
 * for in $RAMSEAL_TEST_DATA, or in ../shared/data beside the sources, and without them the test is
 * skipped. What must come out is known from the machine's own CPU context.
 */
#include "tests/unit/test.h"

#include <dirent.h>
#include <string.h>

#include "agent/shared/kernel/discover.h"
#include "agent/shared/paging/pte.h"

#define PAGES_MAX 256
#define CR3       UINT64_C(0x6cca9002)
#define ROOT      UINT64_C(0x6cca9000)
#define RAM_LAST  UINT64_C(0x7fffffff)

static struct physmem_piece pieces[PAGES_MAX];
static struct physmem_pieces source;
static struct range_list ranges;
static size_t n_pages;

static int compare(const void *a, const void *b)
{
	const struct physmem_piece *x = a, *y = b;

	return x->pa < y->pa ? -1 : x->pa > y->pa;
}

static void load_page(const char *folder, const char *name)
{
	char path[1024];
	uint8_t *bytes = malloc(PAGE_SIZE);
	char *end;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fread(bytes, 1, PAGE_SIZE, f), PAGE_SIZE);
	fclose(f);
	pieces[n_pages++] = (struct physmem_piece){ strtoull(name, &end, 16), bytes };
	assert_string_equal(end, ".bin");
}

static int load(void **unused)
{
	const char *root = getenv("RAMSEAL_TEST_DATA");
	char folder[512];
	struct dirent *entry;
	DIR *dir;

	(void)unused;
	snprintf(folder, sizeof(folder), "%s/win10-x64-partial-memory/mem",
		 root ? root : SOURCE_ROOT "/../shared/data");
	dir = opendir(folder);
	if (!dir)
		return 0;
	while ((entry = readdir(dir)) && n_pages < PAGES_MAX)
		if (entry->d_name[0] != '.')
			load_page(folder, entry->d_name);
	closedir(dir);
	qsort(pieces, n_pages, sizeof(pieces[0]), compare);
	if (range_list_add(&ranges, 0, RAM_LAST, NULL))
		return 1;
	physmem_pieces_init(&source, pieces, n_pages, &ranges);
	return 0;
}

static void need_pages(void)
{
	if (!n_pages)
		skip();
}

static bool has_page(uint64_t pa)
{
	const struct physmem_piece key = { .pa = pa };

	return bsearch(&key, pieces, n_pages, sizeof(pieces[0]), compare);
}

static struct walk w;

/* How many of the pages some leaf entry leads to, and what was seen on the way. */
static size_t walk_all(struct win_pte_evidence *ev)
{
	const struct walk_options o = { .mode = PAGING_4_LEVEL, .last = UINT64_MAX };
	static bool reached[PAGES_MAX];
	enum walk_event event;
	struct walk_set set;
	struct err e = ERR_INIT;
	size_t count = 0;

	memset(reached, 0, sizeof(reached));
	CHECK_OK(walk_set_init(&set, &ranges, &e), &e);
	walk_begin(&w, &source.mem, &set, &o, CR3);
	while ((event = walk_next(&w)) != WALK_END) {
		if (event != WALK_LEAF)
			continue;
		if (ev)
			win_pte_evidence_add(ev, w.leaf.entry.va, w.leaf.raw);
		for (size_t i = 0; i < n_pages && w.leaf.entry.kind == ENTRY_LEAF; i++)
			reached[i] |= pieces[i].pa - w.leaf.entry.frame < w.leaf.entry.size;
	}
	walk_set_deinit(&set);
	for (size_t i = 0; i < n_pages; i++)
		count += reached[i];
	return count;
}

TEST(seventy_six_pages_are_reached)
{
	need_pages();
	assert_int_equal(n_pages, 107);
	assert_int_equal(walk_all(NULL), 76);
	assert_int_equal(w.stop, WALK_COMPLETE);
	assert_int_equal(w.counts.tables[4], 1);
	assert_int_equal(w.counts.tables[3], 5);
	assert_int_equal(w.counts.tables[2], 5);
	assert_int_equal(w.counts.tables[1], 20);
	assert_int_equal(w.counts.skipped[WALK_SELF], 1);
	assert_int_equal(w.counts.skipped[WALK_RESERVED], 0);
	/* Tables that nobody touched while the machine was traced. */
	assert_int_equal(w.counts.skipped[WALK_UNREADABLE] + w.counts.skipped[WALK_SEEN], 156);
	assert_int_equal(w.counts.skipped[WALK_OUTSIDE], 0);
}

TEST(kernel_root_and_self_map_index_are_found)
{
	struct discover_hints h = { .has_cr3 = true, .cr3 = CR3 };
	struct err e = ERR_INIT;
	struct discovery d;

	need_pages();
	CHECK_OK(discover(&source.mem, &h, NULL, &d, &e), &e);
	assert_int_equal(d.os, OS_WINDOWS);
	assert_int_equal(d.kernel_dtb, ROOT);
	assert_int_equal(d.kernel_dtb_origin, DTB_SOURCE);
	assert_int_equal(d.self_index, 0x1f8);
	assert_int_equal(d.roots.count, 1);
	assert_int_equal(d.roots.unreadable, (RAM_LAST + 1) / PAGE_SIZE - n_pages);
	discovery_deinit(&d);
	h.has_cr3 = false; /* nobody tells */
	CHECK_OK(discover(&source.mem, &h, NULL, &d, &e), &e);
	assert_int_equal(d.kernel_dtb, ROOT);
	assert_int_equal(d.self_index, 0x1f8);
	/* Its kernel's data is not among the pages, and nothing else is taken for the table. */
	assert_int_equal(d.windows.paging_files.count, 0);
	discovery_deinit(&d);
}

/*
 * As a LiME or ELF file would have these pages, and no others: nearly all that the root names is
 * missing.
 */
TEST(root_is_found_where_the_map_has_only_what_is_there)
{
	const struct discover_hints h = { 0 };
	struct range_list there = { 0 };
	struct physmem_pieces only;
	struct err e = ERR_INIT;
	struct discovery d;

	need_pages();
	for (size_t i = 0; i < n_pages; i++)
		CHECK_OK(range_list_add(&there, pieces[i].pa, pieces[i].pa + PAGE_SIZE - 1, &e),
			 &e);
	range_list_tidy(&there, NULL);
	physmem_pieces_init(&only, pieces, n_pages, &there);
	CHECK_OK(discover(&only.mem, &h, NULL, &d, &e), &e);
	assert_int_equal(d.os, OS_WINDOWS);
	assert_int_equal(d.walk_dtb, ROOT);
	assert_int_equal(d.kernel_dtb_origin, DTB_SELF_REFERENCE);
	assert_int_equal(d.self_index, 0x1f8);
	/* Nothing else is there, and nothing is told of it. */
	assert_int_equal(d.windows.base, 0);
	assert_false(d.windows.has_pdb);
	assert_int_equal(d.windows.kdbg.va, 0);
	assert_int_equal(d.windows.version.major, 0);
	assert_int_equal(d.list.end, LIST_NOT_FOUND);
	/* It is some process's, with a user half; without a list it is not hidden. */
	assert_int_equal(d.n_spaces, 1);
	assert_false(d.spaces[0].kernel);
	assert_int_equal(d.hidden, 0);
	assert_int_equal(d.unlisted, 1);
	discovery_deinit(&d);
	range_list_deinit(&there);
}

/* RIP, RSP and GDTR's base of the CPU context lie in pages that are there. */
TEST(addresses_of_the_cpu_are_mapped)
{
	static const uint64_t va[] = { UINT64_C(18446735301190313276),
				       UINT64_C(18446725986088691528),
				       UINT64_C(18446735301162688432) };
	const struct virt v = { .mem = &source.mem, .mode = PAGING_4_LEVEL, .dtb = CR3 };

	need_pages();
	for (size_t i = 0; i < ARRAY_SIZE(va); i++) {
		uint64_t pa;

		assert_true(virt_translate(&v, va[i], &pa));
		assert_true(has_page(pa & ~(uint64_t)(PAGE_SIZE - 1)));
	}
}

/* Entries of free system PTEs: all have bit 45, half of them with the swizzle bit, half without. */
TEST(entries_are_recognised_as_swizzled)
{
	struct win_pte_evidence ev = { .facts = { .ranges = &ranges } };
	struct win_pte_choice choice;

	need_pages();
	walk_all(&ev);
	win_pte_choose(&ev, &choice);
	assert_non_null(choice.context.layout);
	assert_int_equal(choice.context.layout->swizzle_bit, 4);
	assert_int_equal(choice.context.layout->file_shift, 12);
	assert_int_equal(choice.context.invalid_mask, UINT64_C(1) << 45);
	assert_false(choice.by_version_only);
	/* They are no pages at all, and no page-file entries. */
	assert_int_equal(win_pte_decode(&choice.context, 0xb5a000000010).state, PTE_NO_PAGE);
	assert_int_equal(win_pte_decode(&choice.context, 0x609200000000).state, PTE_NO_PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seventy_six_pages_are_reached),
		cmocka_unit_test(kernel_root_and_self_map_index_are_found),
		cmocka_unit_test(root_is_found_where_the_map_has_only_what_is_there),
		cmocka_unit_test(addresses_of_the_cpu_are_mapped),
		cmocka_unit_test(entries_are_recognised_as_swizzled),
	};

	const int failed = cmocka_run_group_tests(tests, load, NULL);

	return n_pages ? failed : 77; /* meson's number for a test that was skipped */
}
