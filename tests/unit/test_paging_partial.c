/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images that lack something: what is found degrades, and nothing is told that is not there.
 * Memory that is missing is either unknown to the image's map (as in LiME and ELF files) or
 * unreadable within it.
 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/shared/kernel/discover.h"
#include "tests/unit/machine_mem.h"

/* As little as the machines need: all of it is looked through again and again. */
#define RAM_LAST   UINT64_C(0x1ffffff)
#define LINUX_NEXT UINT64_C(0x4100000) /* behind its kernel's image */

static struct machine m;
static struct machine_mem mem;
static struct discovery d;

enum map { MAP_WHOLE, MAP_OF_WHAT_IS_THERE };

static void look_at(enum map map, const struct discover_hints *h)
{
	const uint64_t highest = m.count ? m.pages[m.count - 1].pa : 0;
	struct physmem *p = machine_mem_init(&mem, &m, MAX(RAM_LAST, highest | 0xffffff));
	struct err e = ERR_INIT;

	if (map == MAP_OF_WHAT_IS_THERE) {
		range_list_deinit(&mem.ranges);
		for (size_t i = 0; i < m.count; i++)
			CHECK_OK(range_list_add(&mem.ranges, m.pages[i].pa,
						m.pages[i].pa + PAGE_SIZE - 1, &e),
				 &e);
		range_list_tidy(&mem.ranges, NULL);
		range_list_join(&mem.ranges);
	}
	CHECK_OK(discover(p, h, NULL, &d, &e), &e);
}

static void look(enum map map)
{
	look_at(map, &(struct discover_hints){ 0 });
}

static void look_away(void)
{
	discovery_deinit(&d);
	machine_mem_deinit(&mem);
}

static void end(void)
{
	look_away();
	machine_free(&m);
}

static struct machine_windows windows_10(void)
{
	return (struct machine_windows){
		.pid = 0x440,
		.name = 0x5a8,
		.user_dtb = 0x388,
		.self_index = 0x1ed,
		.shared_data = true,
		.kdbg = MACHINE_KDBG_ENCODED,
		.kdbg_keys = { 0x8642097531fedcba, 0x0f1e2d3c4b5a6978, 0xfffff80312345678 },
		.p = { { .name = "System", .pid = 4 },
		       { .name = "smss.exe", .pid = 348 },
		       { .name = "lsass.exe", .pid = 664 },
		       { .name = "svchost.exe", .pid = 4412 } },
		.count = 4,
	};
}

static struct machine_linux linux_6(void)
{
	return (struct machine_linux){
		.p = { { .name = "swapper/0", .pid = 0, .no_memory = true },
		       { .name = "init", .pid = 1 },
		       { .name = "kthreadd", .pid = 2, .no_memory = true },
		       { .name = "sh", .pid = 77 } },
		.count = 4,
	};
}

static void make_linux(struct machine_linux *l)
{
	m.next = LINUX_NEXT;
	machine_linux(&m, l);
}

/* Takes away the page of the kernel's image at `at`. */
static void forget_kernel(const struct machine_windows *w, uint64_t at)
{
	machine_forget(&m, machine_pa(&m, w->p[0].dtb, w->base + at));
}

static const struct machine_process *process_of(const struct machine_process *p, size_t n,
						uint64_t dtb)
{
	for (size_t i = 0; i < n; i++)
		if (dtb && p[i].dtb == dtb)
			return &p[i];
	return NULL;
}

/* Nothing is told that is not true of the whole machine, whose processes are `p`. */
static void check_spaces(const struct machine_process *p, size_t n, uint64_t kernel)
{
	assert_int_equal(d.hidden, 0);
	assert_int_equal(d.unscanned, 0);
	for (size_t i = 0; i < d.n_spaces; i++) {
		const struct address_space *a = &d.spaces[i];
		const struct machine_process *truth = process_of(p, n, a->process.dtb);

		if (a->copy || !a->process.has_dtb)
			continue;
		if (a->kernel)
			assert_int_equal(a->process.dtb, kernel);
		if (a->process.dtb == kernel)
			continue;
		assert_non_null(truth);
		if (a->listed) {
			assert_int_equal(a->process.pid, truth->pid);
			assert_string_equal(a->process.name, truth->name);
		}
	}
}

static void check_version(const struct windows_version *v)
{
	assert_true(v->major == 0 || v->major == 10);
	assert_true(v->build == 0 || v->build == MACHINE_BUILD);
	assert_true(!v->lab[0] || !strcmp(v->lab, MACHINE_LAB));
	assert_true(!v->root[0] || !strcmp(v->root, MACHINE_ROOT));
}

static void check_windows(const struct machine_windows *w)
{
	const struct windows_kernel *k = &d.windows;
	char guid[PE_GUID_TEXT];

	assert_int_not_equal(d.os, OS_LINUX);
	assert_true(k->base == 0 || k->base == w->base);
	assert_true(k->kdbg.va == 0 || k->kdbg.va == w->kdbg_va);
	check_version(&k->version);
	if (k->has_pdb) {
		pe_guid_text(k->pdb.guid, guid);
		assert_string_equal(guid, MACHINE_PDB_GUID);
		assert_int_equal(k->pdb.age, MACHINE_PDB_AGE);
		assert_true(!k->pdb.name[0] || !strcmp(k->pdb.name, MACHINE_PDB));
	}
	if (d.os == OS_UNKNOWN)
		return;
	assert_non_null(process_of(w->p, w->count, d.walk_dtb));
	if (d.kernel_dtb_origin != DTB_SELF_REFERENCE)
		assert_int_equal(d.kernel_dtb, w->p[0].dtb);
	check_spaces(w->p, w->count, w->p[0].dtb);
}

/*
 * What an image that was cut off lacks
 */

TEST(root_that_names_memory_behind_the_end_is_one)
{
	struct machine_windows w = windows_10();
	struct discover_hints h = { 0 };

	machine_windows(&m, &w);
	/* Two tables of everybody's kernel half are in what was cut off. */
	for (size_t i = 0; i < w.count; i++) {
		machine_u64(&m, w.p[i].dtb + 8 * 300, (RAM_LAST + 1 + 0x4000) | 0x63);
		machine_u64(&m, w.p[i].dtb + 8 * 301, (RAM_LAST + 1 + 0x5000) | 0x63);
	}
	look_at(MAP_WHOLE, &h);
	assert_int_equal(d.os, OS_WINDOWS);
	assert_int_equal(d.kernel_dtb, w.p[0].dtb);
	assert_int_equal(d.windows.base, w.base);
	assert_int_equal(d.list.count, 4);
	check_windows(&w);
	end();
}

/* It names itself, and looks like a root, but no table vouches for it. */
TEST(page_that_names_itself_and_memory_that_is_not_there_is_no_root)
{
	const uint64_t table = 0x1040000;

	for (unsigned vouched = 0; vouched < 2; vouched++) {
		machine_page(&m, table);
		for (uint64_t i = 256; i < 300; i += 4)
			machine_u64(&m, table + 8 * i, (RAM_LAST + 1 + i * 0x7000) | 0x63);
		machine_u64(&m, table + 8 * 320, table | 0x63);
		for (uint64_t i = 0; vouched && i < 2; i++) {
			machine_u64(&m, table + 8 * (330 + i), (0x1500000 + i * 0x1000) | 0x63);
			machine_u64(&m, 0x1500000 + i * 0x1000, 0x1502000 | 0x63);
		}
		look(MAP_WHOLE);
		assert_int_equal(d.os, vouched ? OS_WINDOWS : OS_UNKNOWN);
		look_away();
		/* What they name are texts, and no tables. */
		machine_put(&m, 0x1500000, "not a page table at all", 23);
		look(MAP_WHOLE);
		assert_int_equal(d.os, OS_UNKNOWN);
		end();
	}
}

/* System's root was cut off. Another process's does as well, but is not the kernel's. */
TEST(kernel_is_read_through_a_process_and_that_is_said)
{
	for (unsigned map = 0; map < 2; map++) {
		struct machine_windows w = windows_10();

		machine_windows(&m, &w);
		machine_forget(&m, w.p[0].dtb);
		look((enum map)map);
		assert_int_equal(d.os, OS_WINDOWS);
		assert_int_equal(d.walk_dtb, w.p[1].dtb);
		assert_int_equal(d.kernel_dtb, w.p[0].dtb);
		assert_int_equal(d.kernel_dtb_origin, DTB_SYSTEM);
		assert_int_equal(d.list.count, 4);
		check_windows(&w);
		end();
	}
}

TEST(root_of_a_process_is_not_called_the_kernels_where_there_is_no_list)
{
	struct machine_windows w = windows_10();

	w.kdbg = MACHINE_NO_KDBG;
	machine_windows(&m, &w);
	machine_forget(&m, w.p[0].dtb);
	machine_forget(&m, machine_pa(&m, w.p[1].dtb, w.base + MACHINE_AT_EXPORTS));
	look(MAP_WHOLE);
	assert_int_equal(d.list.end, LIST_NOT_FOUND);
	assert_int_equal(d.kernel_dtb_origin, DTB_SELF_REFERENCE);
	for (size_t i = 0; i < d.n_spaces; i++)
		assert_false(d.spaces[i].kernel);
	assert_int_equal(d.unlisted, 3);
	check_windows(&w);
	end();
}

/*
 * What is known of the kernel
 */

TEST(kernel_without_its_export_table_is_told_by_its_pdb)
{
	for (unsigned map = 0; map < 2; map++) {
		struct machine_windows w = windows_10();

		machine_windows(&m, &w);
		forget_kernel(&w, MACHINE_AT_EXPORTS);
		look((enum map)map);
		assert_int_equal(d.windows.base, w.base);
		assert_true(d.windows.has_pdb);
		assert_string_equal(d.windows.pdb.name, MACHINE_PDB);
		/* And its processes by the debugger's block. */
		assert_int_equal(d.windows.kdbg.va, w.kdbg_va);
		assert_int_equal(d.list.end, LIST_CLOSED);
		assert_int_equal(d.list.count, 4);
		assert_string_equal(d.windows.version.lab, MACHINE_LAB);
		check_windows(&w);
		end();
	}
}

TEST(image_whose_pdb_is_another_is_no_kernel)
{
	struct machine_windows w = windows_10();

	machine_windows(&m, &w);
	machine_put_va(&m, w.p[0].dtb, w.base + MACHINE_AT_DEBUG + 0xfe0 + 24,
		       "d:\\build\\tcpip.pdb", 19);
	forget_kernel(&w, MACHINE_AT_EXPORTS);
	look(MAP_WHOLE);
	assert_int_equal(d.os, OS_WINDOWS);
	assert_int_equal(d.windows.base, 0);
	assert_false(d.windows.has_pdb);
	assert_int_equal(d.list.end, LIST_NOT_FOUND);
	end();
}

TEST(pdb_is_found_without_the_headers_that_lead_to_it)
{
	struct machine_windows w = windows_10();

	machine_windows(&m, &w);
	forget_kernel(&w, 0);
	look(MAP_OF_WHAT_IS_THERE);
	assert_int_equal(d.windows.base, 0);
	assert_int_equal(d.windows.pdb_record, w.base + MACHINE_AT_DEBUG + 0xfe0);
	assert_string_equal(d.windows.pdb.name, MACHINE_PDB);
	check_windows(&w);
	end();
}

TEST(version_is_what_the_kernel_says)
{
	struct machine_windows w = windows_10();

	machine_windows(&m, &w);
	look(MAP_WHOLE);
	assert_int_equal(d.windows.version.major, 10);
	assert_int_equal(d.windows.version.minor, 0);
	assert_int_equal(d.windows.version.build, MACHINE_BUILD);
	assert_string_equal(d.windows.version.root, MACHINE_ROOT);
	assert_string_equal(d.windows.version.lab, MACHINE_LAB);
	end();
	/* Without that page there is the kernel's own text, and no number is made of it. */
	w = windows_10();
	w.shared_data = false;
	machine_windows(&m, &w);
	look(MAP_WHOLE);
	assert_int_equal(d.windows.version.major, 0);
	assert_int_equal(d.windows.version.build, 0);
	assert_string_equal(d.windows.version.lab, MACHINE_LAB);
	end();
}

TEST(version_that_makes_no_sense_is_none)
{
	static const struct {
		uint32_t at, value;
	} changes[] = { { 0x26c, 7 }, { 0x270, 4 }, { 0x30, 0 }, { 0x32, 0x2044 } };

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct machine_windows w = windows_10();

		machine_windows(&m, &w);
		machine_put_va(&m, w.p[0].dtb, UINT64_C(0xfffff78000000000) + changes[i].at,
			       &changes[i].value, 4);
		look(MAP_WHOLE);
		assert_int_equal(d.windows.version.major, 0);
		assert_int_equal(d.windows.version.build, 0);
		assert_int_equal(d.list.count, 4);
		end();
	}
}

/*
 * The debugger's block
 */

static uint64_t draw(uint64_t *seed)
{
	/* splitmix64 */
	uint64_t x = *seed += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

TEST(kdbg_is_found_whatever_it_is_encoded_with)
{
	uint64_t seed = 1;

	for (unsigned i = 0; i < 22; i++) {
		struct machine_windows w = windows_10();

		/* Rotations from 0 to 63; and once it is not encoded. */
		w.kdbg_keys[0] = (draw(&seed) & ~UINT64_C(63)) | (3 * i % 64);
		w.kdbg_keys[1] = draw(&seed);
		w.kdbg = i == 1 ? MACHINE_KDBG_PLAIN : MACHINE_KDBG_ENCODED;
		machine_windows(&m, &w);
		look_at(MAP_WHOLE, &(struct discover_hints){ .skip_scan = true });
		assert_int_equal(d.windows.kdbg.va, w.kdbg_va);
		assert_int_equal(d.windows.kdbg.encoded, i != 1);
		assert_int_equal(d.windows.kdbg.size, 0x340);
		assert_int_equal(d.windows.kdbg.processes, w.head);
		assert_int_equal(d.windows.kdbg.modules, w.base + MACHINE_AT_DATA + 0x140);
		end();
	}
}

/* Of two blocks it is the one that leads to the list. */
TEST(kdbg_that_names_another_list_is_left_alone)
{
	struct machine_windows w = windows_10();
	uint64_t va;

	machine_windows(&m, &w);
	va = w.base + MACHINE_AT_DEBUG + 0x1400; /* before the other one */
	for (uint64_t i = 0; i < 0x340; i += 8)
		machine_u64_va(&m, w.p[0].dtb, va + i,
			       machine_get_va(&m, w.p[0].dtb, w.kdbg_va + i));
	machine_u64_va(&m, w.p[0].dtb, va + 0x50, machine_kdbg_encode(&w, w.head + 16));
	look(MAP_WHOLE);
	assert_int_equal(d.windows.kdbg.va, w.kdbg_va);
	look_away();
	machine_u64_va(&m, w.p[0].dtb, w.kdbg_va + 16, 0);
	look(MAP_WHOLE);
	assert_int_equal(d.windows.kdbg.va, 0);
	assert_int_equal(d.list.count, 4);
	end();
}

TEST(kdbg_that_makes_no_sense_is_none)
{
	static const struct {
		unsigned word;
		uint64_t value;
	} changes[] = {
		{ 2, UINT64_C(0x340) << 32 | 0x4742444c }, /* another tag */
		{ 2, UINT64_C(0x341) << 32 | 0x4742444b }, /* sizes */
		{ 2, UINT64_C(0x80) << 32 | 0x4742444b },
		{ 2, UINT64_C(0x800) << 32 | 0x4742444b },
		{ 3, UINT64_C(0xfffff80312b00000) }, /* another base */
		{ 9, 0 },                            /* variables outside the image */
		{ 10, UINT64_C(0xfffff80312a06000) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		for (unsigned kind = MACHINE_KDBG_PLAIN; kind <= MACHINE_KDBG_ENCODED; kind++) {
			struct machine_windows w = windows_10();

			w.kdbg = (enum machine_kdbg)kind;
			machine_windows(&m, &w);
			machine_u64_va(&m, w.p[0].dtb, w.kdbg_va + UINT64_C(8) * changes[i].word,
				       machine_kdbg_encode(&w, changes[i].value));
			look_at(MAP_WHOLE, &(struct discover_hints){ .skip_scan = true });
			assert_int_equal(d.windows.kdbg.va, 0);
			assert_int_equal(d.list.count, 4);
			end();
		}
	}
}

/*
 * Lists that are not whole
 */

TEST(without_a_list_nothing_is_hidden)
{
	struct machine_windows w = windows_10();

	w.kdbg = MACHINE_NO_KDBG;
	machine_windows(&m, &w);
	forget_kernel(&w, MACHINE_AT_EXPORTS);
	look(MAP_WHOLE);
	assert_int_equal(d.list.end, LIST_NOT_FOUND);
	assert_int_equal(d.hidden, 0);
	assert_int_equal(d.unlisted, 3);
	assert_int_equal(d.n_spaces, 4);
	end();
}

TEST(of_a_list_with_a_hole_nothing_is_hidden)
{
	struct machine_windows w = windows_10();

	machine_windows(&m, &w);
	/* Both ways lead to structures that are not there; all roots are. */
	machine_forget(&m, machine_pa(&m, w.p[0].dtb, w.p[1].object & ~UINT64_C(0xfff)));
	machine_forget(&m, machine_pa(&m, w.p[0].dtb, w.p[3].object & ~UINT64_C(0xfff)));
	look(MAP_WHOLE);
	assert_int_equal(d.list.end, LIST_UNREADABLE);
	assert_false(process_list_is_whole(&d.list));
	assert_int_equal(d.hidden, 0);
	assert_int_equal(d.list.count, 1);
	assert_int_equal(d.unlisted, 3);
	end();
}

/* The list has all processes, but of one nobody knows the root. */
TEST(root_of_a_process_that_cannot_be_asked_is_not_hidden)
{
	struct machine_linux l = linux_6();
	uint64_t mm;

	make_linux(&l);
	mm = machine_get_va(&m, l.root, l.p[3].object + MACHINE_TASK_MM);
	machine_forget(&m, machine_pa(&m, l.root, mm));
	look(MAP_WHOLE);
	assert_int_equal(d.list.end, LIST_CLOSED);
	assert_int_equal(d.list.count, 4);
	assert_int_equal(d.hidden, 0);
	assert_int_equal(d.unlisted, 1);
	end();
	machine_linux_free(&l);
}

/* The scan cannot find a root whose page the image lacks. */
TEST(root_that_is_not_in_the_image_is_not_missed)
{
	for (unsigned map = 0; map < 2; map++) {
		struct machine_windows w = windows_10();

		machine_windows(&m, &w);
		machine_forget(&m, w.p[2].dtb);
		look((enum map)map);
		assert_int_equal(d.list.count, 4);
		assert_int_equal(d.unscanned, 0);
		check_windows(&w);
		end();
	}
}

/*
 * Anything may be missing
 */

static void lose(unsigned percent, uint64_t seed)
{
	for (size_t i = m.count; i-- > 0;)
		if (draw(&seed) % 100 < percent)
			machine_forget(&m, m.pages[i].pa);
}

static void cut(unsigned pages)
{
	while (pages-- && m.count)
		machine_forget(&m, m.pages[m.count - 1].pa);
}

static void check_linux(const struct machine_linux *l)
{
	assert_int_not_equal(d.os, OS_WINDOWS);
	if (d.os == OS_UNKNOWN)
		return;
	assert_int_equal(d.kernel_dtb, l->root);
	assert_true(!d.uts.nodename[0] || !strcmp(d.uts.nodename, MACHINE_NODENAME));
	assert_true(!d.init_task || d.init_task == l->init_task);
	check_spaces(l->p, l->count, l->root);
}

/* How often something was found, so that a test can tell that it saw both ends. */
struct found {
	unsigned machines, os, kernels, lists;
};

/* One machine with one loss, by both maps. */
static void try_windows(void (*spoil)(unsigned, uint64_t), unsigned how, uint64_t seed,
			struct found *f)
{
	struct machine_windows w = windows_10();

	w.low_stub = seed % 2;
	machine_windows(&m, &w);
	spoil(how, seed);
	for (unsigned map = 0; map < 2; map++) {
		look((enum map)map);
		check_windows(&w);
		f->machines++;
		f->os += d.os == OS_WINDOWS;
		f->kernels += d.windows.base != 0;
		f->lists += d.list.end == LIST_CLOSED;
		look_away();
	}
	machine_free(&m);
}

static void try_linux(void (*spoil)(unsigned, uint64_t), unsigned how, uint64_t seed,
		      struct found *f)
{
	struct machine_linux l = linux_6();

	make_linux(&l);
	spoil(how, seed);
	for (unsigned map = 0; map < 2; map++) {
		look((enum map)map);
		check_linux(&l);
		f->machines++;
		f->os += d.os == OS_LINUX;
		f->kernels += d.uts.release[0] != '\0';
		f->lists += d.list.end == LIST_CLOSED;
		look_away();
	}
	machine_free(&m);
	machine_linux_free(&l);
}

static void lose_one(unsigned which, uint64_t seed)
{
	(void)seed;
	if (which < m.count)
		machine_forget(&m, m.pages[which].pa);
}

static void lose_the_end(unsigned pages, uint64_t seed)
{
	(void)seed;
	cut(pages);
}

/* Any one page but few, and both are found as if it were there. */
TEST(any_one_page)
{
	struct found windows = { 0 }, linux_ = { 0 };

	for (unsigned i = 0; i < 120; i += 3) {
		try_windows(lose_one, i, i, &windows);
		try_linux(lose_one, i, i, &linux_);
	}
	assert_int_equal(windows.os, windows.machines);
	assert_true(windows.kernels >= windows.machines - 4);
	assert_true(windows.lists >= windows.machines * 3 / 4);
	assert_true(linux_.os >= linux_.machines - 4);
	assert_true(linux_.lists >= linux_.machines / 2);
}

TEST(a_part_of_all_pages)
{
	static const unsigned percents[] = { 1, 10, 50 };

	for (size_t k = 0; k < ARRAY_SIZE(percents); k++) {
		struct found windows = { 0 }, linux_ = { 0 };

		for (uint64_t seed = 1; seed <= 8; seed++) {
			try_windows(lose, percents[k], seed, &windows);
			try_linux(lose, percents[k], seed, &linux_);
		}
		assert_true(windows.os >= windows.machines / 2);
		if (k < 2) {
			assert_true(windows.kernels >= windows.machines / 2);
			assert_true(linux_.os >= linux_.machines / 2);
		} else {
			assert_true(windows.lists < windows.machines / 2);
		}
	}
}

TEST(the_end)
{
	struct found windows = { 0 }, linux_ = { 0 };

	for (unsigned pages = 1; pages < 100; pages += 7) {
		try_windows(lose_the_end, pages, pages, &windows);
		try_linux(lose_the_end, pages, pages, &linux_);
	}
	assert_true(windows.os > 0 && linux_.machines > 0);
}

/*
 * Linux
 */

TEST(vmcoreinfo_is_believed_if_the_kernel_says_the_same)
{
	static const struct {
		uint64_t missing[2];
		bool renamed;
		bool found;
	} cases[] = {
		/* Tables, and the kernel's own name; the root first. */
		{ { 0, 0 }, false, true },
		{ { MACHINE_STEXT_PA + 0x1000, 0 }, false, true },
		{ { MACHINE_STEXT_PA, 0 }, false, true },
		{ { MACHINE_STEXT_PA + 0x1000, MACHINE_STEXT_PA }, false, false },
		{ { MACHINE_STEXT_PA + 0x1000, 0 }, true, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct machine_linux l = linux_6();

		make_linux(&l);
		if (cases[i].renamed) /* it is another kernel's by now */
			machine_put(&m, MACHINE_UTS_PA + 2 * 65, "6.1.1-test", 11);
		for (size_t k = 0; k < 2; k++)
			if (cases[i].missing[k])
				machine_forget(&m, cases[i].missing[k]);
		look(MAP_OF_WHAT_IS_THERE);
		assert_int_equal(d.os, cases[i].found ? OS_LINUX : OS_UNKNOWN);
		check_linux(&l);
		end();
		machine_linux_free(&l);
	}
}

TEST(linux_says_its_name)
{
	struct machine_linux l = linux_6();

	make_linux(&l);
	look(MAP_WHOLE);
	assert_string_equal(d.uts.nodename, MACHINE_NODENAME);
	assert_string_equal(d.uts.release, MACHINE_RELEASE);
	assert_string_equal(d.uts.version, "#1 SMP");
	assert_string_equal(d.uts.machine, "x86_64");
	end();
	machine_linux_free(&l);
}

TEST(linux_without_a_list_hides_nothing)
{
	struct machine_linux l = linux_6();

	make_linux(&l);
	machine_forget(&m, MACHINE_STEXT_PA + 0x10000); /* of its BTF */
	look(MAP_OF_WHAT_IS_THERE);
	assert_int_equal(d.os, OS_LINUX);
	assert_int_equal(d.list.end, LIST_NOT_FOUND);
	assert_int_equal(d.hidden, 0);
	assert_int_equal(d.unlisted, 2);
	check_linux(&l);
	end();
	machine_linux_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(root_that_names_memory_behind_the_end_is_one),
		cmocka_unit_test(page_that_names_itself_and_memory_that_is_not_there_is_no_root),
		cmocka_unit_test(kernel_is_read_through_a_process_and_that_is_said),
		cmocka_unit_test(
			root_of_a_process_is_not_called_the_kernels_where_there_is_no_list),
		cmocka_unit_test(kernel_without_its_export_table_is_told_by_its_pdb),
		cmocka_unit_test(image_whose_pdb_is_another_is_no_kernel),
		cmocka_unit_test(pdb_is_found_without_the_headers_that_lead_to_it),
		cmocka_unit_test(version_is_what_the_kernel_says),
		cmocka_unit_test(version_that_makes_no_sense_is_none),
		cmocka_unit_test(kdbg_is_found_whatever_it_is_encoded_with),
		cmocka_unit_test(kdbg_that_names_another_list_is_left_alone),
		cmocka_unit_test(kdbg_that_makes_no_sense_is_none),
		cmocka_unit_test(without_a_list_nothing_is_hidden),
		cmocka_unit_test(of_a_list_with_a_hole_nothing_is_hidden),
		cmocka_unit_test(root_of_a_process_that_cannot_be_asked_is_not_hidden),
		cmocka_unit_test(root_that_is_not_in_the_image_is_not_missed),
		cmocka_unit_test(any_one_page),
		cmocka_unit_test(a_part_of_all_pages),
		cmocka_unit_test(the_end),
		cmocka_unit_test(vmcoreinfo_is_believed_if_the_kernel_says_the_same),
		cmocka_unit_test(linux_says_its_name),
		cmocka_unit_test(linux_without_a_list_hides_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
