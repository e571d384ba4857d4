/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/shared/kernel/discover.h"
#include "agent/shared/kernel/candidates.h"
#include "formats/base/bytes.h"
#include "tests/unit/machine_mem.h"

#define RAM_LAST UINT64_C(0xfffffff) /* 256 MiB */

static struct machine m;
static struct machine_mem mem;
static struct discovery d;

/* Runs everything over the machine as it is now. */
static void look(const struct discover_hints *h, struct walk_budget *budget)
{
	struct err e = ERR_INIT;

	CHECK_OK(discover(machine_mem_init(&mem, &m, RAM_LAST), h, budget, &d, &e), &e);
}

static void end(void)
{
	discovery_deinit(&d);
	machine_mem_deinit(&mem);
	machine_free(&m);
}

static const struct address_space *space_of(uint64_t dtb)
{
	for (size_t i = 0; i < d.n_spaces; i++)
		if (d.spaces[i].process.has_dtb && d.spaces[i].process.dtb == dtb)
			return &d.spaces[i];
	fail_msg("no address space at 0x%llx", (unsigned long long)dtb);
	return NULL;
}

static bool is_listed(uint32_t pid)
{
	for (size_t i = 0; i < d.list.count; i++)
		if (d.list.at[i].pid == pid)
			return true;
	return false;
}

/* Some other process, which no check accepts, if it is not there. */
static const struct process *listed(uint32_t pid)
{
	static const struct process nobody;

	for (size_t i = 0; i < d.list.count; i++)
		if (d.list.at[i].pid == pid)
			return &d.list.at[i];
	return &nobody;
}

static void check_listed(const struct machine_process *p)
{
	const struct process *got = listed(p->pid);

	assert_true(is_listed(p->pid));
	assert_string_equal(got->name, p->name);
	assert_int_equal(got->object, p->object);
	assert_int_equal(got->has_dtb, !p->no_memory);
	if (got->has_dtb)
		assert_int_equal(got->dtb, p->dtb);
	assert_int_equal(got->user_dtb, p->user_dtb);
}

/*
 * Windows
 */

/* Fields as in 20H1; a test may move them. */
static struct machine_windows windows_10(void)
{
	return (struct machine_windows){
		.pid = 0x440,
		.name = 0x5a8,
		.user_dtb = 0x388,
		.self_index = 0x1ed,
		.low_stub = true,
		.p = { { .name = "System", .pid = 4 },
		       { .name = "smss.exe", .pid = 348 },
		       { .name = "lsass.exe", .pid = 664 },
		       { .name = "swapper.exe", .pid = 4412 } },
		.count = 4,
	};
}

TEST(windows_processes_are_found_without_symbols)
{
	struct machine_windows w = windows_10();
	struct discover_hints h = { 0 };

	machine_windows(&m, &w);
	look(&h, NULL);
	assert_int_equal(d.os, OS_WINDOWS);
	assert_int_equal(d.kernel_dtb, w.p[0].dtb);
	assert_int_equal(d.kernel_dtb_origin, DTB_LOW_STUB);
	assert_int_equal(d.self_index, 0x1ed);
	assert_int_equal(d.windows.base, w.base);
	assert_int_equal(d.windows.offsets.pid, w.pid);
	assert_int_equal(d.windows.offsets.name, w.name);
	assert_int_equal(d.list.end, LIST_CLOSED);
	assert_int_equal(d.list.count, 4);
	for (size_t i = 0; i < w.count; i++)
		check_listed(&w.p[i]);
	assert_int_equal(d.roots.count, 4);
	assert_true(d.roots.complete);
	assert_int_equal(d.hidden, 0);
	assert_int_equal(d.unscanned, 0);
	assert_int_equal(d.n_spaces, 4);
	assert_true(space_of(w.p[0].dtb)->kernel);
	assert_true(d.pages_read > 0);
	end();
}

TEST(eprocess_fields_of_other_versions_are_found_too)
{
	static const struct {
		uint32_t pid, name;
	} versions[] = { { 0x180, 0x2e0 }, { 0x2e0, 0x438 }, { 0x1d0, 0x338 } };

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		struct machine_windows w = windows_10();
		struct discover_hints h = { 0 };

		w.pid = versions[i].pid;
		w.name = versions[i].name;
		w.self_index = 0x100 + 37 * (uint32_t)i + 3;
		machine_windows(&m, &w);
		look(&h, NULL);
		assert_int_equal(d.windows.offsets.pid, w.pid);
		assert_int_equal(d.windows.offsets.name, w.name);
		assert_int_equal(d.self_index, w.self_index);
		assert_int_equal(d.list.count, 4);
		end();
	}
}

/* What a rootkit can write, and each of these once cost the whole list. */
TEST(bytes_of_one_process_hide_no_other)
{
	static const struct {
		size_t process;
		bool pid; /* else its name */
		size_t at;
		uint8_t byte;
	} lies[] = {
		{ 1, false, 0, 1 },    { 1, false, 3, 0x1f }, { 1, false, 0, 0 },
		{ 1, false, 7, 0x7f }, { 3, false, 0, 2 },    { 0, false, 4, 'E' },
		{ 0, false, 0, 's' },  { 2, false, 0, 0 },    { 1, true, 0, 0x5d },
		{ 3, true, 0, 0x3d },  { 0, true, 0, 8 },     { 1, true, 7, 1 },
		{ 0, true, 0, 5 },     { 0, true, 5, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		struct machine_windows w = windows_10();
		struct discover_hints h = { 0 };

		w.p[4] = (struct machine_process){ .name = "csrss.exe", .pid = 512 };
		w.p[5] = (struct machine_process){ .name = "svchost.exe", .pid = 900 };
		w.count = 6;
		machine_windows(&m, &w);
		machine_put_va(&m, w.p[0].dtb,
			       w.p[lies[i].process].object + (lies[i].pid ? w.pid : w.name) +
				       lies[i].at,
			       &lies[i].byte, 1);
		look(&h, NULL);
		assert_int_equal(d.windows.offsets.pid, w.pid);
		assert_int_equal(d.windows.offsets.name, w.name);
		for (size_t k = 0; k < w.count; k++)
			if (k != lies[i].process)
				check_listed(&w.p[k]);
		assert_int_equal(d.list.count, w.count);
		assert_int_equal(d.hidden, 0);
		end();
	}
}

/* Taken out of the list, or with links that lead nowhere, System is not where the list begins. */
TEST(list_is_found_without_system)
{
	for (unsigned k = 0; k < 4; k++) {
		struct machine_windows w = windows_10();
		struct discover_hints h = { 0 };
		uint64_t link;

		w.kdbg = MACHINE_KDBG_PLAIN;
		w.p[0].unlinked = k & 1;
		machine_windows(&m, &w);
		link = w.p[0].object + w.pid + 8;
		machine_u64_va(&m, w.p[0].dtb, link, k & 2 ? 0xffffc00000000000 : link);
		machine_u64_va(&m, w.p[0].dtb, link + 8, k & 2 ? 0xffffc00000000000 : link);
		look(&h, NULL);
		assert_int_equal(d.windows.offsets.pid, w.pid);
		assert_int_equal(d.windows.system_process, w.p[0].object);
		for (size_t i = 1; i < w.count; i++)
			check_listed(&w.p[i]);
		end();
	}
}

TEST(system_and_half_of_the_others_can_have_any_name)
{
	static const char *const names[] = { "svchost.exe", "",    "\1", "SYSTEM",
					     "System Idle", "\xff" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct machine_windows w = windows_10();
		struct discover_hints h = { 0 };

		w.p[0].name = names[i];
		w.p[3].name = "\x1b[2J";
		w.p[4] = (struct machine_process){ .name = "csrss.exe", .pid = 512 };
		w.p[5] = (struct machine_process){ .name = "", .pid = 900 };
		w.count = 6;
		machine_windows(&m, &w);
		look(&h, NULL);
		assert_int_equal(d.windows.offsets.name, w.name);
		assert_int_equal(d.list.count, 6);
		for (size_t k = 0; k < w.count; k++)
			check_listed(&w.p[k]);
		end();
	}
}

/* No name is one: PIDs and roots are there all the same. */
TEST(list_without_names_is_kept)
{
	struct machine_windows w = windows_10();
	struct discover_hints h = { 0 };

	for (size_t k = 0; k < w.count; k++)
		w.p[k].name = "\1";
	machine_windows(&m, &w);
	look(&h, NULL);
	assert_int_equal(d.windows.offsets.name, 0);
	assert_int_equal(d.list.end, LIST_CLOSED);
	assert_int_equal(d.list.count, 4);
	for (size_t k = 0; k < w.count; k++)
		assert_true(is_listed(w.p[k].pid));
	end();
}

TEST(unlinked_process_is_found_by_the_scan)
{
	struct machine_windows w = windows_10();
	struct discover_hints h = { 0 };

	w.p[2].unlinked = true;
	machine_windows(&m, &w);
	look(&h, NULL);
	assert_int_equal(d.list.end, LIST_CLOSED);
	assert_int_equal(d.list.count, 3);
	assert_false(is_listed(w.p[2].pid));
	assert_int_equal(d.hidden, 1);
	assert_false(space_of(w.p[2].dtb)->listed);
	assert_true(space_of(w.p[2].dtb)->scanned);
	assert_int_equal(d.n_spaces, 4);
	end();
}

/* Another kernel's, in a virtual machine or in a file: it names itself at the same index. */
TEST(roots_of_another_kernel_are_none_of_ours)
{
	struct machine_windows w = windows_10();
	struct discover_hints h = { 0 };
	uint64_t other;

	machine_windows(&m, &w);
	other = machine_alloc(&m);
	machine_u64(&m, other + 8 * w.self_index, other | 0x63);
	for (uint32_t i = 0; i < 300; i += 20)
		machine_u64(&m, other + 8 * i, machine_alloc(&m) | 0x63);
	look(&h, NULL);
	assert_int_equal(d.hidden, 0);
	assert_int_equal(d.roots.count, 4);
	end();
}

TEST(kernel_is_found_by_the_sources_cr3)
{
	struct machine_windows w = windows_10();
	struct discover_hints h = { .has_cr3 = true, .has_kernel_base = true };

	w.low_stub = false;
	machine_windows(&m, &w);
	machine_u64(&m, w.p[0].dtb + 8 * 501,
		    RAM_LAST + 1 + 0x63); /* a table where no RAM is known */
	h.cr3 = w.p[0].dtb | 2;
	h.kernel_base = w.base;
	look(&h, NULL);
	assert_int_equal(d.kernel_dtb_origin, DTB_SOURCE);
	assert_int_equal(d.list.count, 4);
	end();
}

TEST(kernel_is_found_by_its_self_reference)
{
	struct machine_windows w = windows_10();
	struct discover_hints h = { 0 };

	w.low_stub = false;
	machine_windows(&m, &w);
	look(&h, NULL);
	assert_int_equal(d.kernel_dtb_origin, DTB_SELF_REFERENCE);
	assert_int_equal(d.kernel_dtb, w.p[0].dtb);
	assert_int_equal(d.list.count, 4);
	end();
}

TEST(kva_shadow_tables_are_recognised)
{
	struct machine_windows w = windows_10();
	struct discover_hints h = { 0 };

	w.kva_shadow = true;
	machine_windows(&m, &w);
	look(&h, NULL);
	assert_int_equal(d.windows.offsets.user_dtb, w.user_dtb);
	for (size_t i = 1; i < w.count; i++)
		check_listed(&w.p[i]);
	assert_int_equal(d.hidden, 0);
	end();
}

TEST(broken_list_is_read_from_both_ends)
{
	struct machine_windows w = windows_10();
	struct discover_hints h = { 0 };
	uint64_t link;

	machine_windows(&m, &w);
	link = w.p[1].object + w.pid + 8;
	machine_u64_va(&m, w.p[0].dtb, link, 0xffffc00000000000); /* smss.exe leads nowhere */
	look(&h, NULL);
	assert_int_equal(d.list.end, LIST_UNREADABLE);
	assert_int_equal(d.list.count, 4);
	assert_int_equal(d.hidden, 0);
	end();
}

TEST(list_that_runs_in_a_circle_ends)
{
	struct machine_windows w = windows_10();
	struct discover_hints h = { 0 };
	uint64_t link;

	machine_windows(&m, &w);
	link = w.p[1].object + w.pid + 8;
	machine_u64_va(&m, w.p[0].dtb, w.p[2].object + w.pid + 8,
		       link); /* lsass.exe back to smss */
	look(&h, NULL);
	assert_int_equal(d.list.end, LIST_TORN);
	assert_true(d.list.torn > 0);
	assert_true(is_listed(w.p[3].pid)); /* from the other end */
	end();
}

TEST(hostile_exports_end)
{
	struct machine_windows w = windows_10();
	struct discover_hints h = { .has_kernel_base = true };

	machine_windows(&m, &w);
	h.kernel_base = w.base;
	for (uint32_t at = 20; at < 40; at += 4) {
		const uint64_t va = w.base + 0x1000 + at;
		const uint64_t was = machine_get_va(&m, w.p[0].dtb, va);

		machine_u64_va(&m, w.p[0].dtb, va, UINT64_MAX);
		look(&h, NULL);
		/*
		 * Two of the five do not matter: there are more functions and names than there are.
		 */
		assert_true(d.list.end == LIST_NOT_FOUND || d.list.end == LIST_CLOSED);
		assert_int_equal(d.roots.count, 4);
		discovery_deinit(&d);
		machine_mem_deinit(&mem);
		machine_u64_va(&m, w.p[0].dtb, va, was);
	}
	look(&h, NULL);
	assert_int_equal(d.list.end, LIST_CLOSED);
	end();
}

/* Where tests/gen has the debug directory, and the record. */
#define DEBUG_AT 0x3000
#define RSDS_AT  0x3fe0

TEST(pdb_of_the_kernel_is_read)
{
	struct machine_windows w = windows_10();
	struct discover_hints h = { 0 };
	char guid[PE_GUID_TEXT];

	machine_windows(&m, &w);
	look(&h, NULL);
	assert_true(d.windows.has_pdb);
	assert_string_equal(d.windows.pdb.name, MACHINE_PDB);
	assert_int_equal(d.windows.pdb.age, MACHINE_PDB_AGE);
	pe_guid_text(d.windows.pdb.guid, guid);
	assert_string_equal(guid, MACHINE_PDB_GUID);
	end();
}

TEST(pdb_name_that_is_not_there_leaves_guid_and_age)
{
	struct machine_windows w = windows_10();
	struct discover_hints h = { 0 };

	machine_windows(&m, &w);
	machine_forget(&m, machine_pa(&m, w.p[0].dtb, w.base + DEBUG_AT + PAGE_SIZE));
	look(&h, NULL);
	assert_true(d.windows.has_pdb);
	assert_string_equal(d.windows.pdb.name, "");
	assert_int_equal(d.windows.pdb.age, MACHINE_PDB_AGE);
	assert_int_equal(d.list.count, 4);
	end();
}

TEST(kernel_without_its_debug_directory_is_still_one)
{
	struct machine_windows w = windows_10();
	struct discover_hints h = { 0 };
	struct discovery first;

	machine_windows(&m, &w);
	const uint64_t pa = machine_pa(&m, w.p[0].dtb, w.base + DEBUG_AT);
	uint8_t page[PAGE_SIZE];

	memcpy(page, machine_page(&m, pa), sizeof(page));
	machine_forget(&m, pa);
	look(&h, NULL);
	assert_false(d.windows.has_pdb);
	assert_int_equal(d.list.count, 4);

	/* At the second look it is there again. */
	first = d;
	machine_mem_deinit(&mem);
	machine_put(&m, pa, page, sizeof(page));
	h.before = &first;
	look(&h, NULL);
	assert_true(d.windows.has_pdb);
	assert_string_equal(d.windows.pdb.name, MACHINE_PDB);
	discovery_deinit(&first);
	end();
}

TEST(hostile_debug_directories_end)
{
	/* What is overwritten, with what, and whether GUID and age are still found. */
	static const struct {
		uint32_t at;
		uint64_t value;
		bool found;
	} changes[] = {
		{ 0xf0 + 24 + 108, 0x100000000006, false },        /* there are six directories */
		{ 0xf0 + 24 + 160, UINT64_MAX, false },            /* beyond the image */
		{ 0xf0 + 24 + 160, 0xffffffff00003000, true },     /* millions of entries */
		{ 0xf0 + 24 + 160, 0x1b00003000, false },          /* less than one */
		{ DEBUG_AT + 28 + 12, UINT64_MAX, false },         /* no CodeView */
		{ DEBUG_AT + 28 + 16, 0x3fe000000017, false },     /* a record that is too short */
		{ DEBUG_AT + 28 + 16, 0x3fe0ffffffff, true },      /* a name without end */
		{ DEBUG_AT + 28 + 16, 0xffffffe000000100, false }, /* that wraps around */
		{ DEBUG_AT + 28 + 16, 0x5ff000000100, false },     /* that crosses the end */
		{ RSDS_AT, 0x3031424e, false },                    /* NB10, which has no GUID */
	};

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct machine_windows w = windows_10();
		struct discover_hints h = { 0 };

		machine_windows(&m, &w);
		machine_u64_va(&m, w.p[0].dtb, w.base + changes[i].at, changes[i].value);
		look(&h, NULL);
		assert_int_equal(d.windows.has_pdb, changes[i].found);
		assert_int_equal(d.list.count, 4);
		end();
	}
}

TEST(pdb_name_that_is_too_long_is_left_out)
{
	struct machine_windows w = windows_10();
	struct discover_hints h = { 0 };
	uint8_t path[700];

	memset(path, 'x', sizeof(path));
	machine_windows(&m, &w);
	machine_u64_va(&m, w.p[0].dtb, w.base + DEBUG_AT + 28 + 16, 0x3fe000000400);
	machine_put_va(&m, w.p[0].dtb, w.base + RSDS_AT + 24, path, sizeof(path));
	look(&h, NULL);
	assert_true(d.windows.has_pdb);
	assert_string_equal(d.windows.pdb.name, "");
	end();
}

/*
 * What a kernel's memory has not is in its file. `changed`: a word of the file that is another's.
 */
static void look_with_file(uint64_t missing, size_t missing_len, size_t changed)
{
	struct machine_windows w = windows_10();
	struct image bytes = { 0 };
	struct mem_blob blob;
	struct pe_file file = { .blob = &blob.blob };
	struct discover_hints h = { .ntoskrnl = &file };

	machine_windows(&m, &w);
	for (size_t at = 0; at < missing_len; at += PAGE_SIZE)
		machine_forget(&m, machine_pa(&m, w.p[0].dtb, w.base + missing + at));
	machine_kernel_file(&bytes);
	if (changed)
		bytes.at[changed]++;
	mem_blob_init(&blob, bytes.at, bytes.len);
	look(&h, NULL);
	image_free(&bytes);
}

TEST(export_table_comes_from_the_file_if_memory_has_it_not)
{
	look_with_file(0x1000, 0x4000, 0);
	assert_int_equal(d.list.end, LIST_CLOSED);
	assert_int_equal(d.list.count, 4);
	assert_true(d.windows.has_pdb);
	assert_string_equal(d.windows.pdb.name, MACHINE_PDB);
	assert_true(d.windows.file_used);
	end();
}

TEST(file_is_not_asked_for_what_memory_has)
{
	look_with_file(0, 0, 0);
	assert_int_equal(d.list.count, 4);
	assert_true(d.windows.has_pdb);
	assert_false(d.windows.file_used);
	end();
}

TEST(file_of_another_build_is_left_alone)
{
	static const size_t marks[] = { 0xf0 + 8, 0xf0 + 24 + 56, 0xf0 + 24 + 64 };

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		look_with_file(0x1000, 0x4000, marks[i]);
		assert_int_equal(d.list.end, LIST_NOT_FOUND);
		assert_false(d.windows.has_pdb);
		assert_false(d.windows.file_used);
		end();
	}
}

TEST(file_that_is_no_image_is_left_alone)
{
	/* No MZ is asked for, but PE is; and its table may lead outside. */
	look_with_file(0x1000, 0x4000, 0xf0);
	assert_int_equal(d.list.end, LIST_NOT_FOUND);
	end();
	look_with_file(0x1000, 0x4000, 0x3f);
	assert_int_equal(d.list.end, LIST_NOT_FOUND);
	end();
}

TEST(budget_bounds_all_of_it)
{
	struct machine_windows w = windows_10();
	struct discover_hints h = { 0 };

	machine_windows(&m, &w);
	for (uint64_t pages = 0; pages < 3000; pages += 13) {
		struct walk_budget budget = { .pages = pages, .deadline = UINT64_MAX };

		look(&h, &budget);
		assert_true(d.pages_read <= pages);
		assert_false(d.roots.complete);
		if (d.list.count && d.list.count < 4)
			assert_int_equal(d.list.end, LIST_OUT_OF_BUDGET);
		discovery_deinit(&d);
		machine_mem_deinit(&mem);
	}
	machine_free(&m);
}

/*
 * Linux
 */

static struct machine_linux linux_6(void)
{
	return (struct machine_linux){
		.p = { { .name = "swapper/0", .pid = 0, .no_memory = true },
		       { .name = "init", .pid = 1 },
		       { .name = "kthreadd", .pid = 2, .no_memory = true },
		       { .name = "sh", .pid = 77 },
		       { .name = "swapper", .pid = 4242 } },
		.count = 5,
	};
}

static void check_linux(const struct machine_linux *l)
{
	assert_int_equal(d.os, OS_LINUX);
	assert_int_equal(d.kernel_dtb, l->root);
	assert_int_equal(d.init_task, l->init_task);
	assert_int_equal(d.linux_offsets.tasks, MACHINE_TASK_TASKS);
	assert_int_equal(d.linux_offsets.pgd, MACHINE_MM_PGD);
	assert_int_equal(d.list.end, LIST_CLOSED);
	for (size_t i = 0; i < l->count; i++)
		if (!l->p[i].unlinked)
			check_listed(&l->p[i]);
	assert_true(d.roots.complete);
}

static void linux_machine_is_found(struct machine_linux *l, unsigned levels, bool notes)
{
	struct discover_hints h = { 0 };
	struct image i = { 0 };

	m.levels = levels;
	machine_linux(&m, l);
	machine_linux_notes(l, &i);
	if (notes) {
		h.notes = i.at;
		h.notes_size = i.len;
	}
	look(&h, NULL);
	check_linux(l);
	assert_int_equal(d.vmcoreinfo_from_memory, !notes);
	assert_int_equal(d.mode, levels);
	assert_int_equal(vmcoreinfo_version(d.vmcoreinfo), 601);
	image_free(&i);
}

static void end_linux(struct machine_linux *l)
{
	end();
	machine_linux_free(l);
}

TEST(linux_processes_are_found_by_symbols_in_memory)
{
	struct machine_linux l = linux_6();

	linux_machine_is_found(&l, 4, true);
	assert_string_equal(d.symbols_origin, "memory");
	assert_string_equal(d.btf_origin, "memory");
	assert_int_equal(d.list.count, 5);
	assert_int_equal(d.roots.count, 4); /* the kernel's, and three processes */
	assert_int_equal(d.hidden, 0);
	assert_int_equal(d.unscanned, 0);
	end_linux(&l);
}

/* Which of the two a kernel is decides what its absent entries mean. */
TEST(linux_symbols_tell_of_device_private)
{
	static const enum pte_option want[] = { OPTION_OFF, OPTION_ON };

	for (size_t i = 0; i < 2; i++) {
		struct machine_linux l = linux_6();

		l.device_private = i;
		linux_machine_is_found(&l, 4, true);
		assert_int_equal(d.device_private, want[i]);
		end_linux(&l);
	}
}

TEST(linux_with_five_levels_and_no_word_from_the_source)
{
	struct machine_linux l = linux_6();

	linux_machine_is_found(&l, 5, false);
	end_linux(&l);
}

TEST(linux_without_symbol_tables_is_found_by_its_look)
{
	struct machine_linux l = linux_6();

	l.no_symbols = true;
	linux_machine_is_found(&l, 4, true);
	assert_null(d.symbols_origin);
	assert_int_equal(d.device_private, OPTION_UNTOLD);
	assert_string_equal(d.btf_origin, "memory");
	end_linux(&l);
}

TEST(linux_takes_kallsyms_and_btf_from_the_source)
{
	struct machine_linux l = linux_6();
	struct discover_hints h = { 0 };

	l.no_symbols = true;
	machine_linux(&m, &l);
	h.kallsyms = (const char *)l.kallsyms.at;
	h.kallsyms_size = l.kallsyms.len;
	h.btf = l.btf.at;
	h.btf_size = l.btf.len;
	look(&h, NULL);
	check_linux(&l);
	assert_string_equal(d.symbols_origin, "kallsyms");
	assert_string_equal(d.btf_origin, "source");
	end_linux(&l);
}

TEST(pti_tables_are_recognised)
{
	struct machine_linux l = linux_6();

	l.pti = true;
	linux_machine_is_found(&l, 4, true);
	assert_int_equal(d.hidden, 0);
	assert_int_equal(space_of(l.p[1].dtb)->process.user_dtb, l.p[1].dtb + 0x1000);
	end_linux(&l);
}

TEST(unlinked_task_is_found_by_the_scan)
{
	struct machine_linux l = linux_6();

	l.pti = true;
	l.p[3].unlinked = true;
	linux_machine_is_found(&l, 4, true);
	assert_int_equal(d.hidden, 1);
	assert_false(is_listed(77));
	assert_false(space_of(l.p[3].dtb)->listed);
	assert_int_equal(space_of(l.p[3].dtb)->process.user_dtb, l.p[3].user_dtb);
	end_linux(&l);
}

/*
 * Threads
 */

TEST(process_whose_first_thread_has_ended_has_a_root)
{
	struct machine_linux l = linux_6();

	l.pti = true;
	l.p[3].first_ended = true;
	linux_machine_is_found(&l, 4, true);
	assert_true(space_of(l.p[3].dtb)->listed);
	assert_int_equal(space_of(l.p[3].dtb)->process.pid, 77);
	assert_int_equal(d.hidden, 0);
	assert_int_equal(d.unlisted, 0);
	end_linux(&l);
}

/* Threads of which none has memory: its root is freed, or soon will be. */
TEST(process_whose_threads_have_all_ended_has_no_root)
{
	struct machine_linux l = linux_6();
	struct discover_hints h = { 0 };

	l.p[3].first_ended = true;
	machine_linux(&m, &l);
	machine_u64_va(&m, l.root, l.p[3].second + MACHINE_TASK_MM, 0);
	look(&h, NULL);
	assert_false(listed(77)->has_dtb);
	assert_false(listed(77)->lost_dtb);
	end_linux(&l);
}

/* A word of the threads of process 77, and what is wrong with it. */
enum thread_lie { HEAD_NOWHERE, HEAD_BACK, SIGNAL_NOWHERE, SIGNAL_OTHER, CIRCLE, MM_NOWHERE, LIES };

static void put_thread_lie(const struct machine_linux *l, enum thread_lie lie)
{
	const struct machine_process *p = &l->p[3], *other = &l->p[4];
	const uint64_t signal = machine_get_va(&m, l->root, p->object + MACHINE_TASK_SIGNAL);
	const uint64_t second = p->second + MACHINE_TASK_THREAD;
	const struct {
		uint64_t at, value;
	} lies[LIES] = {
		[HEAD_NOWHERE] = { signal + MACHINE_SIGNAL_HEAD, 0x1000 },
		[HEAD_BACK] = { second + 8, second },
		[SIGNAL_NOWHERE] = { p->object + MACHINE_TASK_SIGNAL, 0 },
		[SIGNAL_OTHER] = { p->second + MACHINE_TASK_SIGNAL,
				   machine_get_va(&m, l->root,
						  other->object + MACHINE_TASK_SIGNAL) },
		[CIRCLE] = { p->object + MACHINE_TASK_THREAD, p->object + MACHINE_TASK_THREAD },
		[MM_NOWHERE] = { p->second + MACHINE_TASK_MM, UINT64_C(0xffff888000000001) },
	};

	machine_u64_va(&m, l->root, lies[lie].at, lies[lie].value);
	if (lie == CIRCLE)
		machine_u64_va(&m, l->root, lies[lie].at + 8, lies[lie].at);
}

/* It may have a root, and nobody knows which: then nothing is called hidden. */
TEST(threads_that_lie_leave_a_root_that_is_lost)
{
	for (unsigned lie = 0; lie < LIES; lie++) {
		struct machine_linux l = linux_6();
		struct discover_hints h = { 0 };

		l.p[3].first_ended = true;
		machine_linux(&m, &l);
		put_thread_lie(&l, (enum thread_lie)lie);
		look(&h, NULL);
		assert_int_equal(d.list.end, LIST_CLOSED);
		assert_false(listed(77)->has_dtb);
		assert_true(listed(77)->lost_dtb);
		assert_int_equal(d.hidden, 0);
		assert_int_equal(d.unlisted, 1);
		end_linux(&l);
	}
}

/* memmem() is not in C. */
static uint8_t *find_text(uint8_t *at, size_t len, const char *text)
{
	for (size_t n = strlen(text); len >= n; at++, len--)
		if (!memcmp(at, text, n))
			return at;
	return NULL;
}

/* Of one that knows no threads nothing else is said than before. */
TEST(without_the_fields_of_threads_the_first_has_to_do)
{
	struct machine_linux l = linux_6();
	struct discover_hints h = { 0 };
	uint8_t *field;

	l.p[3].first_ended = true;
	machine_linux(&m, &l);
	field = find_text(l.btf.at, l.btf.len, "thread_head");
	assert_non_null(field);
	*field = 'T';
	h.btf = l.btf.at;
	h.btf_size = l.btf.len;
	look(&h, NULL);
	assert_false(d.linux_offsets.threads);
	assert_false(listed(77)->has_dtb);
	assert_false(listed(77)->lost_dtb);
	assert_int_equal(d.hidden, 1);
	end_linux(&l);
}

TEST(freed_roots_are_counted_and_not_listed)
{
	struct machine_linux l = linux_6();
	struct discover_hints h = { 0 };
	uint64_t freed;

	machine_linux(&m, &l);
	freed = machine_alloc(&m);
	for (uint32_t i = 256; i < 512; i++)
		machine_u64(&m, freed + 8 * i, machine_get(&m, l.root + 8 * i));
	look(&h, NULL);
	assert_int_equal(d.idle_roots, 1);
	assert_int_equal(d.hidden, 0);
	end_linux(&l);
}

TEST(copies_of_roots_are_no_finding)
{
	struct machine_linux l = linux_6();
	struct discover_hints h = { 0 };
	uint64_t copies[3];

	l.p[3].unlinked = true;
	machine_linux(&m, &l);
	for (size_t k = 0; k < 3; k++) {
		copies[k] = machine_alloc(&m);
		for (uint32_t i = 0; i < 512; i++)
			machine_u64(&m, copies[k] + 8 * i, machine_get(&m, l.p[1].dtb + 8 * i));
	}
	/*
	 * The first is in a buffer of "swapper", the second in free memory, the third there, too,
	 * and what it was a copy of has ended: it names a table that is empty now.
	 */
	machine_map(&m, l.p[4].dtb, 0x500000, copies[0], 1);
	for (uint32_t i = 0; i < 256; i++)
		machine_u64(&m, copies[2] + 8 * i, 0);
	machine_u64(&m, copies[2], machine_alloc(&m) | 0x67);
	look(&h, NULL);
	assert_int_equal(d.copies, 3);
	for (size_t k = 0; k < 3; k++)
		assert_true(space_of(copies[k])->copy);
	assert_int_equal(space_of(copies[0])->mapped_by, l.p[4].pid);
	assert_int_equal(space_of(copies[1])->mapped_by, 0);
	assert_int_equal(d.hidden, 1);
	assert_false(space_of(l.p[3].dtb)->copy);
	end_linux(&l);
}

/* What looks like a root in every way, and was one of a process that has ended. */
TEST(kernel_is_asked_whose_a_root_is)
{
	for (int owners = 0; owners < 2; owners++) {
		struct machine_linux l = linux_6();
		struct discover_hints h = { 0 };
		uint64_t stale;

		l.owners = owners;
		l.p[3].unlinked = true;
		machine_linux(&m, &l);
		stale = machine_alloc(&m);
		for (uint32_t i = 256; i < 512; i++)
			machine_u64(&m, stale + 8 * i, machine_get(&m, l.root + 8 * i));
		machine_map_fresh(&m, stale, 0x400000, 0x2000);
		look(&h, NULL);
		assert_int_equal(d.vmemmap != 0, owners);
		assert_int_equal(d.hidden, owners ? 1 : 2);
		assert_int_equal(d.copies, owners);
		assert_int_equal(space_of(stale)->copy, owners);
		assert_false(space_of(l.p[3].dtb)->copy);
		end_linux(&l);
	}
}

TEST(process_that_is_being_cleared_away_is_not_hidden)
{
	struct machine_linux l = linux_6();
	struct discover_hints h = { 0 };

	l.owners = true;
	l.p[3].unlinked = true;
	l.p[3].ending = true;
	machine_linux(&m, &l);
	look(&h, NULL);
	assert_int_equal(d.hidden, 0);
	assert_int_equal(d.copies, 1);
	end_linux(&l);
}

/* A page table of a direct map that is not made of large pages names itself. */
static void put_direct_map(uint64_t table)
{
	for (uint64_t i = 0; i < 512; i++)
		machine_u64(&m, table + 8 * i, (table + (i - 320) * 0x1000) | 0x63);
}

TEST(direct_map_is_no_windows_root)
{
	struct discover_hints h = { 0 };

	put_direct_map(0x4040000);
	look(&h, NULL);
	assert_int_equal(d.os, OS_UNKNOWN);
	end();
}

TEST(root_without_a_kernel_does_not_outweigh_vmcoreinfo)
{
	struct machine_linux l = linux_6();
	struct discover_hints h = { 0 };
	const uint64_t table = 0x4040000; /* below VMCOREINFO, so that it is met first */

	machine_linux(&m, &l);
	for (uint64_t i = 256; i < 300; i += 4)
		machine_u64(&m, table + 8 * i, (0x5000000 + i * 0x7000) | 0x63);
	machine_u64(&m, table + 8 * 320, table | 0x63);
	look(&h, NULL);
	check_linux(&l);
	end_linux(&l);
}

/* As a reader of tables has it in his buffer: the copy of a table that maps the buffer. */
TEST(table_in_a_buffer_that_it_maps_is_no_windows_root)
{
	struct machine_linux l = linux_6();
	struct discover_hints h = { 0 };
	const uint64_t buffer = 0x4040000;

	machine_linux(&m, &l);
	for (uint64_t i = 0; i < 512; i++)
		machine_u64(&m, buffer + 8 * i,
			    (0x5000000 + (511 - i) * 0x1000) | UINT64_C(0x8000000000000867));
	machine_u64(&m, buffer + 8 * 400, buffer | UINT64_C(0x8000000000000867));
	look(&h, NULL);
	check_linux(&l);
	end_linux(&l);
	for (uint64_t i = 0; i < 512; i++)
		machine_u64(&m, buffer + 8 * i, (0x5000000 + (511 - i) * 0x1000) | 0x867);
	machine_u64(&m, buffer + 8 * 400, buffer | 0x867);
	look(&h, NULL);
	assert_int_equal(d.os, OS_UNKNOWN);
	end();
}

TEST(candidate_that_leads_everywhere_leaves_enough_for_the_others)
{
	struct machine_linux l = linux_6();
	struct discover_hints h = { 0 };
	struct walk_budget budget = { .pages = 1000000, .deadline = UINT64_MAX };
	const uint64_t root = 0x4040000, table = 0x4041000;

	machine_linux(&m, &l);
	for (uint64_t i = 256; i < 300; i += 4)
		machine_u64(&m, root + 8 * i, (0x5000000 + i * 0x7000) | 0x63);
	machine_u64(&m, root + 8 * 320, root | 0x63);
	machine_u64(&m, root + 8 * 496, table | 0x63);
	for (uint64_t i = 0; i < 512; i++)
		machine_u64(&m, table + 8 * i, i << 30 | 0xe3);
	look(&h, &budget);
	check_linux(&l);
	end_linux(&l);
}

TEST(scan_can_be_left_out)
{
	struct machine_linux l = linux_6();
	struct discover_hints h = { .skip_scan = true };

	l.pti = true;
	machine_linux(&m, &l);
	look(&h, NULL);
	assert_int_equal(d.list.end, LIST_CLOSED);
	assert_int_equal(d.roots.count, 0);
	assert_int_equal(d.unscanned, 0);
	assert_int_equal(listed(1)->user_dtb, l.p[1].user_dtb);
	end_linux(&l);
}

TEST(second_discovery_takes_the_kernel_from_the_first)
{
	struct machine_linux l = linux_6();
	struct discover_hints h = { .skip_scan = true };
	struct discovery first;
	struct image i = { 0 };
	uint64_t pages;

	machine_linux(&m, &l);
	machine_linux_notes(&l, &i);
	h.notes = i.at;
	h.notes_size = i.len;
	look(&h, NULL);
	first = d;
	pages = d.pages_read;
	machine_mem_deinit(&mem);
	/* "sh" has ended since. */
	machine_u64_va(&m, l.root, l.p[2].object + MACHINE_TASK_TASKS,
		       l.p[4].object + MACHINE_TASK_TASKS);
	machine_u64_va(&m, l.root, l.p[4].object + MACHINE_TASK_TASKS + 8,
		       l.p[2].object + MACHINE_TASK_TASKS);
	h = (struct discover_hints){ .before = &first, .skip_scan = true };
	look(&h, NULL);
	assert_int_equal(d.list.count, 4);
	assert_int_equal(d.list.end, LIST_CLOSED);
	assert_false(is_listed(77));
	assert_int_equal(d.kernel_dtb, l.root);
	assert_int_equal(d.init_task, l.init_task);
	assert_true(d.pages_read < pages);
	discovery_deinit(&first);
	image_free(&i);
	end_linux(&l);
}

/* Between two discoveries every page is shown but that at `missing`. */
static void watch_memory(struct root_watch *w, uint64_t missing)
{
	const struct root_scan_options o = {
		.mode = d.mode,
		.kernel_dtb = d.kernel_dtb,
		.self_index = d.self_index,
	};

	assert_true(root_watch_begin(w, &mem.pieces.mem, &o));
	for (size_t i = 0; i < m.count; i++)
		if (m.pages[i].pa != missing)
			root_watch_page(w, m.pages[i].bytes, m.pages[i].pa);
	w->seen.complete = true;
}

static void unlink_task(const struct machine_linux *l, size_t i)
{
	machine_u64_va(&m, l->root, l->p[i - 1].object + MACHINE_TASK_TASKS,
		       l->p[i + 1].object + MACHINE_TASK_TASKS);
	machine_u64_va(&m, l->root, l->p[i + 1].object + MACHINE_TASK_TASKS + 8,
		       l->p[i - 1].object + MACHINE_TASK_TASKS);
}

/* First a discovery without the scan, then memory, then another that takes what was seen there. */
static void look_twice(const struct machine_linux *l, uint64_t missing, size_t unlinked,
		       uint64_t ended)
{
	struct discover_hints h = { .skip_scan = true };
	struct discovery first;
	struct root_watch w;

	look(&h, NULL);
	watch_memory(&w, missing);
	first = d;
	machine_mem_deinit(&mem);
	if (unlinked)
		unlink_task(l, unlinked);
	for (uint32_t i = 0; ended && i < 256; i++)
		machine_u64(&m, ended + 8 * i, 0);
	h.before = &first;
	h.watch = &w;
	look(&h, NULL);
	assert_int_equal(d.list.end, LIST_CLOSED);
	discovery_deinit(&first);
	root_watch_deinit(&w);
}

TEST(scan_made_while_memory_is_read_agrees)
{
	struct machine_linux l = linux_6();

	l.pti = true;
	machine_linux(&m, &l);
	look_twice(&l, 0, 0, 0);
	assert_true(d.roots.complete);
	assert_int_equal(d.roots.pages, m.count);
	assert_int_equal(d.hidden, 0);
	assert_int_equal(d.unscanned, 0);
	for (size_t i = 0; i < l.count; i++)
		if (!l.p[i].no_memory)
			assert_true(space_of(l.p[i].dtb)->scanned);
	assert_int_equal(space_of(l.p[1].dtb)->process.user_dtb, l.p[1].user_dtb);
	end_linux(&l);
}

TEST(scan_made_while_memory_is_read_finds_what_is_unlinked)
{
	struct machine_linux l = linux_6();

	machine_linux(&m, &l);
	look_twice(&l, 0, 3, 0);
	assert_false(is_listed(l.p[3].pid));
	assert_int_equal(d.hidden, 1);
	assert_true(space_of(l.p[3].dtb)->scanned);
	assert_false(space_of(l.p[3].dtb)->listed);
	end_linux(&l);
}

TEST(process_that_ended_meanwhile_is_not_hidden)
{
	struct machine_linux l = linux_6();

	machine_linux(&m, &l);
	look_twice(&l, 0, 3, l.p[3].dtb);
	assert_false(is_listed(l.p[3].pid));
	assert_int_equal(d.hidden, 0);
	assert_int_equal(d.idle_roots, 1);
	end_linux(&l);
}

TEST(listed_root_that_the_scan_missed_is_counted)
{
	struct machine_linux l = linux_6();

	machine_linux(&m, &l);
	look_twice(&l, l.p[3].dtb, 0, 0);
	assert_int_equal(d.unscanned, 1);
	assert_false(space_of(l.p[3].dtb)->scanned);
	assert_int_equal(d.hidden, 0);
	end_linux(&l);
}

/* Its own was given back behind the scan, and that of a new one: it is no miss. */
TEST(root_that_changed_hands_is_not_missed)
{
	struct machine_linux l = linux_6();
	struct discover_hints h = { .skip_scan = true };
	const uint32_t pid = 1234;
	struct discovery first;
	struct root_watch w;

	machine_linux(&m, &l);
	look(&h, NULL);
	watch_memory(&w, l.p[3].dtb);
	first = d;
	machine_mem_deinit(&mem);
	machine_put_va(&m, l.root, l.p[3].object + MACHINE_TASK_PID, &pid, 4);
	h.before = &first;
	h.watch = &w;
	look(&h, NULL);
	assert_true(is_listed(pid));
	assert_int_equal(d.unscanned, 0);
	discovery_deinit(&first);
	root_watch_deinit(&w);
	end_linux(&l);
}

/*
 * Pages that were collected while memory was read
 */

static void collect(struct candidates *c)
{
	const struct page_status data = { .state = PAGE_DATA };

	/* In any order, and some twice. */
	for (size_t i = m.count; i--;)
		candidates_show(c, m.pages[i].bytes, &data, 1, m.pages[i].pa);
	for (size_t i = 0; i < m.count; i += 3)
		candidates_show(c, m.pages[i].bytes, &data, 1, m.pages[i].pa);
	c->complete = true;
	candidates_sort(c);
}

/* What a search and a scan of all memory find is found among them, and nothing else. */
static void collected_are_enough(struct discover_hints h)
{
	struct candidates c = { 0 };
	struct discovery all;

	look(&h, NULL);
	all = d;
	machine_mem_deinit(&mem);
	collect(&c);
	assert_true(c.count < m.count / 2);
	h.candidates = &c;
	h.skip_scan = true;
	look(&h, NULL);
	assert_int_equal(d.os, all.os);
	assert_int_equal(d.kernel_dtb, all.kernel_dtb);
	assert_int_equal(d.kernel_dtb_origin, all.kernel_dtb_origin);
	assert_int_equal(d.list.count, all.list.count);
	assert_int_equal(d.roots.count, all.roots.count);
	for (size_t i = 0; i < all.roots.count; i++)
		assert_int_equal(d.roots.at[i].pa, all.roots.at[i].pa);
	assert_int_equal(d.n_spaces, all.n_spaces);
	assert_int_equal(d.hidden, all.hidden);
	assert_int_equal(d.unscanned, all.unscanned);
	assert_int_equal(d.searched, d.kernel_dtb_origin != DTB_LOW_STUB);
	assert_true(d.roots.complete);
	discovery_deinit(&all);
	candidates_deinit(&c);
}

TEST(collected_pages_are_enough_for_linux)
{
	for (unsigned how = 0; how < 8; how++) {
		struct machine_linux l = linux_6();

		l.pti = how & 1;
		l.p[3].unlinked = how & 2;
		if (how & 4)
			m.levels = 5;
		machine_linux(&m, &l);
		collected_are_enough((struct discover_hints){ 0 });
		assert_int_equal(d.os, OS_LINUX);
		assert_true(d.vmcoreinfo_from_memory);
		end_linux(&l);
	}
}

TEST(collected_pages_are_enough_for_windows)
{
	for (unsigned how = 0; how < 4; how++) {
		struct machine_windows w = windows_10();

		w.low_stub = how & 1;
		w.p[2].unlinked = how & 2;
		machine_windows(&m, &w);
		collected_are_enough((struct discover_hints){ 0 });
		assert_int_equal(d.os, OS_WINDOWS);
		end();
	}
}

/* All was looked at, but not all of it could be kept. */
TEST(memory_without_a_kernel_is_told_as_searched_only_if_it_was)
{
	struct candidates c = { .complete = true };
	struct discover_hints h = { .candidates = &c };

	machine_page(&m, 0x1000);
	for (unsigned how = 0; how < 3; how++) {
		c.complete = how != 1;
		c.full = how == 2;
		look(&h, NULL);
		assert_int_equal(d.os, OS_UNKNOWN);
		assert_int_equal(d.searched, how == 0);
		discovery_deinit(&d);
		machine_mem_deinit(&mem);
	}
	machine_free(&m);
}

/* A root in doubt is taken at the end of all memory, not at the end of a few pages. */
TEST(few_pages_settle_what_leaves_no_doubt)
{
	struct discover_hints h = { .skip_scan = true };
	const uint64_t root = 0x1000;

	for (uint64_t i = 256; i < 300; i += 4)
		machine_u64(&m, root + 8 * i, (0x5000000 + i * 0x7000) | 0x63);
	machine_u64(&m, root + 8 * 320, root | 0x63);
	look(&h, NULL);
	assert_int_equal(d.os, OS_WINDOWS);
	discovery_deinit(&d);
	machine_mem_deinit(&mem);
	h.search_pages = DISCOVER_FEW;
	look(&h, NULL);
	assert_int_equal(d.os, OS_UNKNOWN);
	assert_true(d.pages_read <= DISCOVER_FEW + 1000);
	end();
}

TEST(pages_of_anything_else_are_hardly_collected)
{
	static uint8_t page[PAGE_SIZE];
	uint64_t random = 1;
	size_t n = 0;

	assert_false(candidate_page(page, 0));
	for (size_t k = 0; k < 3000; k++) {
		for (size_t i = 0; i < TABLE_ENTRIES; i++) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			/* Noise, a heap's pointers, small numbers; what a leaf of user mode is. */
			put_le64(page + 8 * i, k % 4 == 0 ? random
					       : k % 4 == 1
						       ? UINT64_C(0x7f0000000000) + (random >> 24)
					       : k % 4 == 2 ? random >> 60
							    : (random >> 30 & ~UINT64_C(0xfff)) |
								      UINT64_C(0x8000000000000867));
		}
		n += candidate_page(page, 0x12345000);
	}
	assert_true(n < 3);
}

/* At each index, and by nothing that only looks like it. */
TEST(table_that_names_itself_is_told_at_each_index)
{
	const uint64_t pa = UINT64_C(0x12345678000), bit = UINT64_C(1) << 47;
	static uint8_t page[PAGE_SIZE];

	for (size_t i = 0; i < TABLE_ENTRIES; i++) {
		put_le64(page + 8 * i, pa | 0x863);
		assert_int_equal(self_map_index(page, pa, 0), i < ROOT_HALF ? NO_INDEX : i);
		put_le64(page + 8 * i, pa | bit | 0x863);
		assert_int_equal(self_map_index(page, pa, 0), NO_INDEX);
		assert_int_equal(self_map_index(page, pa, bit), i < ROOT_HALF ? NO_INDEX : i);
		put_le64(page + 8 * i, pa | 0x8e3); /* large */
		assert_int_equal(self_map_index(page, pa, 0), NO_INDEX);
		put_le64(page + 8 * i, pa | 0x862); /* not present */
		assert_int_equal(self_map_index(page, pa, 0), NO_INDEX);
		put_le64(page + 8 * i, 0);
	}
}

TEST(nothing_is_found_in_empty_memory)
{
	struct discover_hints h = { .has_cr3 = true, .cr3 = 0x1000, .notes = "x", .notes_size = 1 };

	machine_page(&m, 0x1000);
	look(&h, NULL);
	assert_int_equal(d.os, OS_UNKNOWN);
	assert_int_equal(d.n_spaces, 0);
	end();
}

/*
 * BTF
 */

TEST(btf_knows_members_of_anonymous_structures)
{
	struct image i = { 0 };
	struct err e = ERR_INIT;
	uint32_t off;
	struct btf b;

	machine_btf(&i);
	CHECK_OK(btf_init(&b, i.at, i.len, &e), &e);
	assert_int_equal(b.count, 19);
	assert_true(btf_offset(&b, "mm_struct", "pgd", &off));
	assert_int_equal(off, MACHINE_MM_PGD);
	assert_true(btf_offset(&b, "task_struct", "pid", &off));
	assert_int_equal(off, MACHINE_TASK_PID);
	assert_true(btf_offset(&b, "task_struct", "tasks.prev", &off)); /* through a typedef */
	assert_int_equal(off, MACHINE_TASK_TASKS + 8);
	assert_true(btf_offset(&b, "page", "pt_mm", &off));
	assert_int_equal(off, MACHINE_PAGE_PT_MM);
	assert_false(btf_offset(&b, "task_struct", "task", &off));
	assert_false(btf_offset(&b, "task_struct", "mm.pgd", &off)); /* a pointer is no member */
	assert_false(btf_offset(&b, "no_struct", "pid", &off));
	assert_true(btf_size(&b, "task_struct", &off));
	assert_int_equal(off, MACHINE_TASK_SIZE);
	assert_true(btf_enumerator(&b, "PG_head", &off));
	assert_int_equal(off, MACHINE_PG_HEAD);
	assert_false(btf_enumerator(&b, "PG_headless", &off));
	assert_false(btf_enumerator(&b, "pageflags", &off));
	btf_deinit(&b);
	image_free(&i);
}

TEST(btf_that_is_cut_short_or_lies_is_refused)
{
	struct image i = { 0 };
	struct err e = ERR_INIT;
	struct btf b;

	machine_btf(&i);
	for (size_t len = 0; len < i.len; len++) {
		CHECK_STATUS(btf_init(&b, i.at, len, &e), ST_CORRUPT, &e);
		btf_deinit(&b);
	}
	image_u32(&i, 12, UINT32_MAX);
	CHECK_STATUS(btf_init(&b, i.at, i.len, &e), ST_CORRUPT, &e);
	image_free(&i);
}

TEST(types_that_contain_themselves_end)
{
	struct image i = { 0 };
	struct err e = ERR_INIT;
	struct btf b;
	uint32_t off;

	machine_btf(&i);
	/* Every type number in the section names type 7, the anonymous structure. */
	CHECK_OK(btf_init(&b, i.at, i.len, &e), &e);
	off = b.offsets[7 - 1];
	btf_deinit(&b);
	for (uint32_t k = 0; k < 2; k++) {
		image_u32(&i, 24 + off + 12 + 12 * k, 0);
		image_u32(&i, 24 + off + 12 + 12 * k + 4, 7);
	}
	CHECK_OK(btf_init(&b, i.at, i.len, &e), &e);
	assert_false(btf_offset(&b, "mm_struct", "pgd", &off));
	btf_deinit(&b);
	image_free(&i);
}

/* The kernel that runs the test, where it says what it is made of. */
TEST(btf_of_this_kernel_is_read)
{
	FILE *f = fopen("/sys/kernel/btf/vmlinux", "rb");
	struct linux_offsets o = { 0 };
	struct err e = ERR_INIT;
	struct btf b;
	uint8_t *p;
	size_t len;

	if (!f)
		skip();
	p = malloc(BTF_SIZE_MAX);
	assert_non_null(p);
	len = fread(p, 1, BTF_SIZE_MAX, f);
	fclose(f);
	CHECK_OK(btf_init(&b, p, len, &e), &e);
	assert_true(b.count > 10000);
	assert_true(linux_offsets_from_btf(&o, &b));
	assert_true(o.tasks && o.mm && o.pid && o.comm && o.pgd);
	assert_true(o.pid % 4 == 0 && o.mm % 8 == 0 && o.tasks % 8 == 0 && o.pgd % 8 == 0);
	btf_deinit(&b);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_processes_are_found_without_symbols),
		cmocka_unit_test(eprocess_fields_of_other_versions_are_found_too),
		cmocka_unit_test(bytes_of_one_process_hide_no_other),
		cmocka_unit_test(list_is_found_without_system),
		cmocka_unit_test(system_and_half_of_the_others_can_have_any_name),
		cmocka_unit_test(list_without_names_is_kept),
		cmocka_unit_test(unlinked_process_is_found_by_the_scan),
		cmocka_unit_test(roots_of_another_kernel_are_none_of_ours),
		cmocka_unit_test(kernel_is_found_by_the_sources_cr3),
		cmocka_unit_test(kernel_is_found_by_its_self_reference),
		cmocka_unit_test(kva_shadow_tables_are_recognised),
		cmocka_unit_test(broken_list_is_read_from_both_ends),
		cmocka_unit_test(list_that_runs_in_a_circle_ends),
		cmocka_unit_test(hostile_exports_end),
		cmocka_unit_test(pdb_of_the_kernel_is_read),
		cmocka_unit_test(pdb_name_that_is_not_there_leaves_guid_and_age),
		cmocka_unit_test(kernel_without_its_debug_directory_is_still_one),
		cmocka_unit_test(hostile_debug_directories_end),
		cmocka_unit_test(pdb_name_that_is_too_long_is_left_out),
		cmocka_unit_test(export_table_comes_from_the_file_if_memory_has_it_not),
		cmocka_unit_test(file_is_not_asked_for_what_memory_has),
		cmocka_unit_test(file_of_another_build_is_left_alone),
		cmocka_unit_test(file_that_is_no_image_is_left_alone),
		cmocka_unit_test(budget_bounds_all_of_it),
		cmocka_unit_test(linux_processes_are_found_by_symbols_in_memory),
		cmocka_unit_test(linux_symbols_tell_of_device_private),
		cmocka_unit_test(linux_with_five_levels_and_no_word_from_the_source),
		cmocka_unit_test(linux_without_symbol_tables_is_found_by_its_look),
		cmocka_unit_test(linux_takes_kallsyms_and_btf_from_the_source),
		cmocka_unit_test(pti_tables_are_recognised),
		cmocka_unit_test(unlinked_task_is_found_by_the_scan),
		cmocka_unit_test(process_whose_first_thread_has_ended_has_a_root),
		cmocka_unit_test(process_whose_threads_have_all_ended_has_no_root),
		cmocka_unit_test(threads_that_lie_leave_a_root_that_is_lost),
		cmocka_unit_test(without_the_fields_of_threads_the_first_has_to_do),
		cmocka_unit_test(freed_roots_are_counted_and_not_listed),
		cmocka_unit_test(copies_of_roots_are_no_finding),
		cmocka_unit_test(kernel_is_asked_whose_a_root_is),
		cmocka_unit_test(process_that_is_being_cleared_away_is_not_hidden),
		cmocka_unit_test(direct_map_is_no_windows_root),
		cmocka_unit_test(root_without_a_kernel_does_not_outweigh_vmcoreinfo),
		cmocka_unit_test(table_in_a_buffer_that_it_maps_is_no_windows_root),
		cmocka_unit_test(candidate_that_leads_everywhere_leaves_enough_for_the_others),
		cmocka_unit_test(scan_can_be_left_out),
		cmocka_unit_test(second_discovery_takes_the_kernel_from_the_first),
		cmocka_unit_test(scan_made_while_memory_is_read_agrees),
		cmocka_unit_test(scan_made_while_memory_is_read_finds_what_is_unlinked),
		cmocka_unit_test(process_that_ended_meanwhile_is_not_hidden),
		cmocka_unit_test(listed_root_that_the_scan_missed_is_counted),
		cmocka_unit_test(root_that_changed_hands_is_not_missed),
		cmocka_unit_test(collected_pages_are_enough_for_linux),
		cmocka_unit_test(collected_pages_are_enough_for_windows),
		cmocka_unit_test(memory_without_a_kernel_is_told_as_searched_only_if_it_was),
		cmocka_unit_test(few_pages_settle_what_leaves_no_doubt),
		cmocka_unit_test(pages_of_anything_else_are_hardly_collected),
		cmocka_unit_test(table_that_names_itself_is_told_at_each_index),
		cmocka_unit_test(nothing_is_found_in_empty_memory),
		cmocka_unit_test(btf_knows_members_of_anonymous_structures),
		cmocka_unit_test(btf_that_is_cut_short_or_lies_is_refused),
		cmocka_unit_test(types_that_contain_themselves_end),
		cmocka_unit_test(btf_of_this_kernel_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
