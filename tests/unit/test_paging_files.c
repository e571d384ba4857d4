/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's table of paging files, in made Windows machines. */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/shared/kernel/discover.h"
#include "tests/unit/machine_mem.h"

#define RAM_LAST UINT64_C(0xfffffff) /* 256 MiB */
#define STORE    0x40
#define APPS     0x10

static struct machine m;
static struct machine_mem mem;
static struct machine_windows w;
static struct discovery d;

/* A standard client: page file, swap file of store apps, compression store. */
static void set_up(unsigned layout)
{
	w = (struct machine_windows){
		.pid = 0x440,
		.name = 0x5a8,
		.user_dtb = 0x388,
		.self_index = 0x1ed,
		.low_stub = true,
		.paging_layout = layout,
		.files = { { "\\??\\C:\\pagefile.sys", 0 },
			   { "\\??\\C:\\swapfile.sys", APPS },
			   { NULL, STORE } },
		.n_files = 3,
		.p = { { .name = "System", .pid = 4 }, { .name = "smss.exe", .pid = 348 } },
		.count = 2,
	};
	machine_windows(&m, &w);
}

static const struct paging_files *look(void)
{
	struct discover_hints h = { 0 };
	struct err e = ERR_INIT;

	CHECK_OK(discover(machine_mem_init(&mem, &m, RAM_LAST), &h, NULL, &d, &e), &e);
	return &d.windows.paging_files;
}

static void end(void)
{
	discovery_deinit(&d);
	machine_mem_deinit(&mem);
	machine_free(&m);
}

TEST(files_and_store_have_the_kernels_numbers)
{
	static const unsigned layouts[] = { 1507, 1703, 2409 };
	static const char *const names[] = { "10-1507", "10-1703", "11-24H2" };

	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		const struct paging_files *f;

		set_up(layouts[i]);
		f = look();
		assert_int_equal(f->count, 3);
		assert_string_equal(f->layout, names[i]);
		assert_int_equal(f->va, w.partition);
		assert_string_equal(f->at[0].name, "\\??\\C:\\pagefile.sys");
		assert_int_equal(f->at[0].pages, 0x40000);
		assert_false(f->at[0].store || f->at[0].apps);
		assert_string_equal(f->at[1].name, "\\??\\C:\\swapfile.sys");
		assert_true(f->at[1].apps);
		assert_string_equal(f->at[2].name, "");
		assert_int_equal(paging_files_store(f), 2);
		end();
	}
}

TEST(machine_without_a_store_has_none)
{
	const struct paging_files *f;

	set_up(1703);
	machine_free(&m);
	w.n_files = 2;
	machine_windows(&m, &w);
	f = look();
	assert_int_equal(f->count, 2);
	assert_int_equal(paging_files_store(f), -1);
	end();
	set_up(0);
	assert_int_equal(look()->count, 0);
	assert_int_equal(paging_files_store(&d.windows.paging_files), -1);
	end();
}

/* The name is in pool that may be paged out; the numbers hold all the same. */
TEST(name_that_is_not_there_is_empty)
{
	const struct paging_files *f;

	set_up(2409);
	machine_u64_va(&m, w.p[0].dtb, w.file_object[1] + 0x48, UINT64_C(0xffffb0c000000000));
	f = look();
	assert_int_equal(f->count, 3);
	assert_string_equal(f->at[1].name, "");
	assert_string_equal(f->at[0].name, "\\??\\C:\\pagefile.sys");
	end();
}

static void put16(uint64_t va, uint16_t v)
{
	machine_put_va(&m, w.p[0].dtb, va, &v, sizeof(v));
}

static void put32(uint64_t va, uint32_t v)
{
	machine_put_va(&m, w.p[0].dtb, va, &v, sizeof(v));
}

static void put64(uint64_t va, uint64_t v)
{
	machine_u64_va(&m, w.p[0].dtb, va, v);
}

/* Each of these contradicts the rest, and nothing is believed of it. */
static void break_number(void)
{
	put16(w.file_object[1] + 0xcc, 0x80 | 2);
}
static void break_count(void)
{
	put32(w.partition + 0x18, 2);
}
static void break_more(void)
{
	put32(w.partition + 0x18, 4);
}
static void break_order(void)
{
	put64(w.partition, 0x8000);
}
static void break_pages(void)
{
	put64(w.partition + 0x10, 0x8000);
}
static void break_pointer(void)
{
	put64(w.partition + 0x20, 0x12340);
}
static void break_away(void)
{
	put64(w.partition + 0x28, UINT64_C(0xffffb0c000000000));
}
static void break_size(void)
{
	put64(w.file_object[0], 0x80001);
}
static void break_free(void)
{
	put64(w.file_object[0] + 0x18, 0x40001);
}
static void break_object(void)
{
	put64(w.file_object[0] + 0x38, 1);
}
static void break_name(void)
{
	put16(w.file_object[0] + 0x60, 0);
}
static void break_room(void)
{
	put16(w.file_object[0] + 0x62, 2);
}
static void break_stores(void)
{
	put16(w.file_object[1] + 0xcc, 0x41);
}
static void break_both(void)
{
	put16(w.file_object[2] + 0xcc, 0x52);
}

static void break_twice(void)
{
	for (unsigned i = 0; i < 0xa0; i += 8)
		put64(w.partition + 0x200 + i, machine_get_va(&m, w.p[0].dtb, w.partition + i));
}

TEST(table_that_contradicts_itself_is_not_believed)
{
	static void (*const breaks[])(
		void) = { break_number,  break_count, break_more,   break_order, break_pages,
			  break_pointer, break_away,  break_size,   break_free,  break_object,
			  break_name,    break_room,  break_stores, break_both,  break_twice };

	for (size_t i = 0; i < ARRAY_SIZE(breaks); i++) {
		set_up(1703);
		breaks[i]();
		if (look()->count)
			fail_msg("case %zu is believed", i);
		assert_int_equal(d.list.end, LIST_CLOSED);
		end();
	}
}

/* No moment of it is of use: the search ends with its budget, and a part of it says nothing. */
TEST(budget_that_runs_out_finds_nothing)
{
	struct discover_hints h = { 0 };
	struct walk_budget budget = { .pages = 60, .deadline = UINT64_MAX };
	struct err e = ERR_INIT;

	set_up(1703);
	CHECK_OK(discover(machine_mem_init(&mem, &m, RAM_LAST), &h, &budget, &d, &e), &e);
	assert_int_equal(d.windows.paging_files.count, 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_and_store_have_the_kernels_numbers),
		cmocka_unit_test(machine_without_a_store_has_none),
		cmocka_unit_test(name_that_is_not_there_is_empty),
		cmocka_unit_test(table_that_contradicts_itself_is_not_believed),
		cmocka_unit_test(budget_that_runs_out_finds_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
