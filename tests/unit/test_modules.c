/* SPDX-License-Identifier: Apache-2.0 */
/* The loader's lists and what is mapped, and the ring of threads, out of memory made by hand. */
#include "tests/unit/test.h"

#include "agent/examine/process/modules.h"
#include "agent/examine/process/threads.h"
#include "agent/examine/process/unicode_string.h"
#include "tests/unit/sparse_view.h"

#define PEB    UINT64_C(0x7ffd8000)
#define PEB32  UINT64_C(0x7ffd9000)
#define LDR    UINT64_C(0x77420000)
#define LDR32  UINT64_C(0x77520000)
#define ENTRY  UINT64_C(0x250000)
#define TEXT   UINT64_C(0x260000)
#define IMAGE  UINT64_C(0x140000000)
#define KERNEL UINT64_C(0xffffa80000000000)

static struct sparse s;
static struct memory_view view;
static struct modules_plan plan;
static struct modules found;
static struct mapped_image mapped[4];
static uint64_t text_end;

static void set_up(void)
{
	view = sparse_view(&s);
	plan = (struct modules_plan){ .memory = &view, .peb = PEB, .mapped = mapped };
	text_end = TEXT;
}

static void tear_down(void)
{
	modules_deinit(&found);
	sparse_deinit(&s);
}

static void find(void)
{
	struct err e = ERR_INIT;

	modules_deinit(&found);
	CHECK_OK(modules_find(&plan, &found, &e), &e);
}

static void put_word(bool wide, uint64_t va, uint64_t value)
{
	if (wide)
		sparse_u64(&s, va, value);
	else
		sparse_u32(&s, va, (uint32_t)value);
}

static void put_text(uint64_t va, bool wide, const char *text)
{
	const uint16_t bytes = (uint16_t)(2 * strlen(text));

	sparse_u16(&s, va, bytes);
	sparse_u16(&s, va + 2, bytes);
	put_word(wide, va + (wide ? 8 : 4), text_end);
	for (const char *c = text; *c; c++, text_end += 2)
		sparse_u16(&s, text_end, (uint8_t)*c);
}

struct listed {
	uint64_t base;
	uint32_t size;
	const char *path;
};

/* Entries are 256 bytes apart. */
static void put_list(bool wide, const struct listed *of, size_t n)
{
	const uint64_t head = (wide ? LDR + 0x10 : LDR32 + 0xc),
		       entries = ENTRY + (wide ? 0 : 0x8000);
	const unsigned word = wide ? 8 : 4;
	uint64_t back = head;

	put_word(wide, wide ? PEB + 0x18 : PEB32 + 0xc, wide ? LDR : LDR32);
	for (size_t i = 0; i < n; i++) {
		const uint64_t at = entries + 256 * i;

		put_word(wide, back, at);
		put_word(wide, at + word, back);
		put_word(wide, at + (wide ? 0x30 : 0x18), of[i].base);
		sparse_u32(&s, at + (wide ? 0x40 : 0x20), of[i].size);
		put_text(at + (wide ? 0x48 : 0x24), wide, of[i].path);
		back = at;
	}
	put_word(wide, back, head);
	put_word(wide, head + word, back);
}

static const struct listed usual[] = {
	{ IMAGE, 0x5000, "C:\\prog\\program.exe" },
	{ 0x77400000, 0x1a9000, "C:\\Windows\\SYSTEM32\\ntdll.dll" },
	{ 0x77000000, 0x11f000, "C:\\Windows\\system32\\kernel32.dll" },
};

/* Headers of a program with a CodeView record 0x300 behind its base. */
static void put_image(uint64_t base, bool wide, uint32_t age)
{
	const uint64_t pe = base + 0x80, directories = pe + 24 + (wide ? 112 : 96);

	sparse_put(&s, base, "MZ", 2);
	sparse_u32(&s, base + 0x3c, 0x80);
	sparse_put(&s, pe, "PE\0\0", 4);
	sparse_u16(&s, pe + 4, wide ? 0x8664 : 0x14c);
	sparse_u32(&s, pe + 8, 0x5f5e1000);
	sparse_u16(&s, pe + 24, wide ? 0x20b : 0x10b);
	sparse_u32(&s, pe + 24 + 56, 0x5000);
	sparse_u32(&s, directories - 4, 16);
	sparse_u32(&s, directories + 8 * 6, 0x200);
	sparse_u32(&s, directories + 8 * 6 + 4, 28);
	sparse_u32(&s, base + 0x200 + 12, 2);
	sparse_u32(&s, base + 0x200 + 16, 0x40);
	sparse_u32(&s, base + 0x200 + 20, 0x300);
	sparse_put(&s, base + 0x300, "RSDS0123456789abcdef", 20);
	sparse_u32(&s, base + 0x300 + 20, age);
	sparse_put(&s, base + 0x300 + 24, "C:\\build\\program.pdb", 21);
}

static bool read_view(void *context, uint64_t va, void *p, size_t len)
{
	return view_read(context, va, p, len);
}

TEST(writable_sections_of_an_image)
{
	const struct pe_memory memory = { read_view, &view };
	/* From the page behind the headers on; the last one is in a page of its own. */
	static const struct {
		uint32_t va, size, flags;
	} sections[] = {
		{ 0x1000, 0x2345, 0x60000020 },
		{ 0x4000, 0x1801, 0xc0000040 },
		{ 0x6000, 0, 0xc0000040 },
		{ 0x7000, UINT32_MAX, 0xc0000040 }, /* behind the image's end */
		{ 0x8000, 1, 0xc0000080 },
	};
	struct range at[PE_SECTIONS_MAX];
	uint64_t table;
	uint8_t raw[4];
	size_t n;

	set_up();
	put_image(IMAGE, true, 7);
	assert_true(view_read(&view, IMAGE + 0x3c, raw, sizeof(raw)));
	table = IMAGE + get_le32(raw);
	sparse_u16(&s, table + 6, ARRAY_SIZE(sections));
	sparse_u32(&s, table + 24 + 56, 0x9000); /* SizeOfImage */
	sparse_u16(&s, table + 20, 0xff0 - 24 - (uint16_t)get_le32(raw));
	table = IMAGE + 0xff0; /* across a page's end */
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		sparse_u32(&s, table + 40 * i + 8, sections[i].size);
		sparse_u32(&s, table + 40 * i + 12, sections[i].va);
		sparse_u32(&s, table + 40 * i + 36, sections[i].flags);
	}
	assert_true(pe_writable(&memory, IMAGE, at, ARRAY_SIZE(at), &n));
	assert_int_equal(n, 2);
	assert_int_equal(at[0].first, IMAGE + 0x4000);
	assert_int_equal(at[0].last, IMAGE + 0x5800);
	assert_int_equal(at[1].first, IMAGE + 0x8000);
	assert_int_equal(at[1].last, IMAGE + 0x8000);
	assert_true(pe_writable(&memory, IMAGE, at, 1, &n));
	assert_int_equal(n, 1);
	sparse_lose(&s, IMAGE + 0x1000, true);
	assert_false(pe_writable(&memory, IMAGE, at, ARRAY_SIZE(at), &n));
	assert_false(pe_writable(&memory, IMAGE + 0x1000, at, ARRAY_SIZE(at), &n));
	assert_int_equal(n, 0);
	tear_down();
}

TEST(loaders_list_is_read_and_sorted)
{
	set_up();
	put_list(true, usual, ARRAY_SIZE(usual));
	put_image(IMAGE, true, 7);
	find();
	assert_int_equal(found.end, LIST_CLOSED);
	assert_int_equal(found.narrow_end, LIST_NOT_FOUND);
	assert_int_equal(found.count, 3);
	assert_int_equal(found.at[0].base, 0x77000000);
	assert_int_equal(found.at[1].size, 0x1a9000);
	assert_string_equal(found.at[1].path, "C:\\Windows\\SYSTEM32\\ntdll.dll");
	assert_string_equal(module_name(&found.at[1]), "ntdll.dll");
	assert_false(found.at[1].has_headers);
	assert_true(found.at[2].has_headers && found.at[2].program.has_pdb);
	assert_int_equal(found.at[2].program.pdb.age, 7);
	assert_int_equal(found.at[2].program.time_date_stamp, 0x5f5e1000);
	assert_string_equal(found.at[2].program.pdb.name, "program.pdb");
	assert_memory_equal(found.at[2].program.pdb.guid, "0123456789abcdef", 16);
	assert_ptr_equal(modules_at(&found, IMAGE + 0x4fff), &found.at[2]);
	assert_null(modules_at(&found, IMAGE + 0x5000));
	assert_null(modules_at(&found, 0x76ffffff));
	tear_down();
}

TEST(what_list_and_mappings_know_is_told_apart)
{
	set_up();
	put_list(true, usual, ARRAY_SIZE(usual));
	mapped[0] = (struct mapped_image){ IMAGE, 0x5000, "\\prog\\program.exe" };
	mapped[1] = (struct mapped_image){ 0x77400000, 0x1a9000, NULL };
	mapped[2] = (struct mapped_image){ 0x180000000, 0x3000, "\\hidden.dll" };
	plan.n_mapped = 3;
	put_image(0x180000000, false, 1);
	find();
	assert_int_equal(found.count, 4);
	assert_true(found.at[0].listed && !found.at[0].mapped); /* kernel32: no image is there */
	assert_true(found.at[1].listed && found.at[1].mapped);
	assert_true(found.at[2].listed && found.at[2].mapped);
	assert_string_equal(found.at[2].path, "C:\\prog\\program.exe"); /* as the loader says it */
	assert_true(!found.at[3].listed && found.at[3].mapped);
	assert_string_equal(found.at[3].path, "\\hidden.dll");
	assert_true(found.at[3].narrow && found.at[3].has_headers);
	tear_down();
}

TEST(process_of_32_bits_has_two_lists)
{
	static const struct listed narrow[] = {
		{ 0x400000, 0x5000, "C:\\prog\\program.exe" },
		{ 0x77600000, 0x180000, "C:\\Windows\\SysWOW64\\ntdll.dll" },
	};
	static const struct listed wide[] = {
		{ 0x400000, 0x5000, "C:\\prog\\program.exe" },
		{ 0x77400000, 0x1a9000, "C:\\Windows\\SYSTEM32\\ntdll.dll" },
	};

	set_up();
	put_list(true, wide, ARRAY_SIZE(wide));
	put_list(false, narrow, ARRAY_SIZE(narrow));
	plan.peb32 = PEB32;
	find();
	assert_int_equal(found.end, LIST_CLOSED);
	assert_int_equal(found.narrow_end, LIST_CLOSED);
	assert_int_equal(found.count, 3); /* the program is in both, and told once */
	assert_int_equal(found.at[0].base, 0x400000);
	assert_true(found.at[2].narrow && !found.at[1].narrow);
	tear_down();
}

TEST(list_that_lies_ends)
{
	set_up();
	put_list(true, usual, ARRAY_SIZE(usual));
	sparse_u64(&s, ENTRY + 256 + 8, ENTRY + 1); /* the second does not point back */
	find();
	assert_int_equal(found.end, LIST_TORN);
	assert_int_equal(found.count, 1);

	put_list(true, usual, ARRAY_SIZE(usual));
	sparse_u64(&s, ENTRY + 512, ENTRY); /* a ring that skips its head */
	find();
	assert_int_equal(found.end, LIST_TORN);
	assert_int_equal(found.count, 3);

	put_list(true, usual, ARRAY_SIZE(usual));
	sparse_u64(&s, ENTRY, UINT64_C(0x123456789000));
	find();
	assert_int_equal(found.end, LIST_UNREADABLE);

	put_list(true, usual, ARRAY_SIZE(usual));
	sparse_lose(&s, LDR, true);
	find();
	assert_int_equal(found.end, LIST_NOT_FOUND);
	assert_int_equal(found.count, 0);
	sparse_lose(&s, LDR, false);

	sparse_lose(&s, TEXT, true); /* only the names are lost */
	find();
	assert_int_equal(found.end, LIST_CLOSED);
	assert_null(found.at[0].path);
	assert_string_equal(module_name(&found.at[0]), "?");
	tear_down();
}

/* Each entry points to itself and back: a list without an end that is never torn. */
TEST(endless_list_is_cut)
{
	set_up();
	put_list(true, usual, 1);
	sparse_u64(&s, ENTRY, ENTRY);
	sparse_u64(&s, ENTRY + 8, ENTRY);
	sparse_u64(&s, LDR + 0x10, ENTRY);
	find();
	assert_int_equal(found.end, LIST_TORN); /* the first one has to point back to the head */
	sparse_u64(&s, ENTRY + 8, LDR + 0x10);
	find();
	assert_int_equal(found.end, LIST_TORN);
	assert_true(found.count <= 2);
	tear_down();
}

TEST(texts_make_sense_or_are_none)
{
	char *text;

	set_up();
	put_text(ENTRY, true, "abc");
	text = unicode_string_read(&view, ENTRY, true);
	assert_string_equal(text, "abc");
	free(text);
	sparse_u16(&s, ENTRY, 8); /* longer than its room */
	assert_null(unicode_string_read(&view, ENTRY, true));
	sparse_u16(&s, ENTRY, 5);
	assert_null(unicode_string_read(&view, ENTRY, true));
	sparse_u16(&s, ENTRY, 6);
	sparse_u16(&s, TEXT + 2, 0); /* ends at a NUL */
	text = unicode_string_read(&view, ENTRY, true);
	assert_string_equal(text, "a");
	free(text);
	sparse_lose(&s, TEXT, true);
	assert_null(unicode_string_read(&view, ENTRY, true));
	tear_down();
}

/*
 * Threads
 */

#define EPROCESS (KERNEL + 0x1000)
#define ETHREAD  (KERNEL + 0x10000)
#define TEB      UINT64_C(0x7ffdb000)

struct ethread {
	uint16_t head, cid, start, link, process, teb, stack_base, kernel_stack, frame;
};

/*
 * By the same public records as the reader's (agent/examine/process/threads.c), a second time; the
 * last five are KTHREAD's.
 */
#define SEVEN 0x210, 0xb8, 0x278, 0x38, 0x1d8
#define LATER 0x220, 0xf0, 0x38, 0x58, 0x90

static const struct {
	struct ethread l;
	const char *name;
} versions[] = {
	{ { 0x308, 0x3b0, 0x410, 0x420, SEVEN }, "7" },
	{ { 0x308, 0x3b8, 0x418, 0x428, SEVEN }, "7-sp1" },
	{ { 0x470, 0x398, 0x3f0, 0x400, LATER }, "8" },
	{ { 0x470, 0x620, 0x678, 0x688, LATER }, "8.1" },
	{ { 0x480, 0x628, 0x680, 0x690, LATER }, "10-10240" },
	{ { 0x488, 0x628, 0x680, 0x690, LATER }, "10-10586" },
	{ { 0x488, 0x630, 0x688, 0x698, LATER }, "10-14393" },
	{ { 0x488, 0x638, 0x690, 0x6a0, LATER }, "10-15063" },
	{ { 0x488, 0x638, 0x690, 0x6a8, LATER }, "10-17763" },
	{ { 0x488, 0x648, 0x6a0, 0x6b8, LATER }, "10-18362" },
	{ { 0x5e0, 0x478, 0x4d0, 0x4e8, LATER }, "10-19041" },
	{ { 0x5e0, 0x4c8, 0x520, 0x538, LATER }, "11-22000" },
	{ { 0x370, 0x508, 0x560, 0x578, LATER }, "11-26100" },
};

static const struct ethread ten = { 0x5e0, 0x478, 0x4d0, 0x4e8, 0x220, 0xf0, 0x38, 0x58, 0x90 };

static struct threads ring;
static struct threads_plan threads_plan;

static void put_threads(const struct ethread *l, size_t n)
{
	uint64_t back = EPROCESS + l->head;

	for (size_t i = 0; i < n; i++) {
		const uint64_t object = ETHREAD + 0x1000 * i, teb = TEB + 0x4000 * i;

		sparse_u64(&s, back, object + l->link);
		sparse_u64(&s, object + l->link + 8, back);
		sparse_u64(&s, object + l->process, EPROCESS);
		sparse_u64(&s, object + l->cid, 1148);
		sparse_u64(&s, object + l->cid + 8, 2000 + 4 * i);
		sparse_u64(&s, object + l->start, UINT64_C(0x77001234));
		sparse_u64(&s, object + l->teb, teb);
		sparse_u64(&s, object + l->stack_base, KERNEL + 0x90000);
		sparse_u64(&s, object + l->kernel_stack, KERNEL + 0x8f800);
		sparse_u64(&s, object + l->frame, KERNEL + 0x8fe00);
		sparse_u64(&s, teb + 0x30, teb);
		sparse_u64(&s, teb + 8, UINT64_C(0x300000) + 0x100000 * i);
		sparse_u64(&s, teb + 0x10, UINT64_C(0x2fd000) + 0x100000 * i);
		back = object + l->link;
	}
	sparse_u64(&s, back, EPROCESS + l->head);
	sparse_u64(&s, EPROCESS + l->head + 8, back);
	sparse_u64(&s, KERNEL + 0x8fe00 + 0x168, UINT64_C(0x7700aaaa));
	sparse_u16(&s, KERNEL + 0x8fe00 + 0x170, 0x33);
	sparse_u64(&s, KERNEL + 0x8fe00 + 0x180, UINT64_C(0x2ff000));
	threads_plan = (struct threads_plan){ .memory = &view, .eprocess = EPROCESS, .pid = 1148 };
}

static void find_threads(void)
{
	struct err e = ERR_INIT;

	threads_deinit(&ring);
	CHECK_OK(threads_find(&threads_plan, &ring, &e), &e);
}

TEST(threads_are_found_by_the_layout_that_fits)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		set_up();
		put_threads(&versions[i].l, 3);
		find_threads();
		assert_string_equal(ring.layout, versions[i].name);
		assert_int_equal(ring.end, LIST_CLOSED);
		assert_int_equal(ring.count, 3);
		assert_int_equal(ring.at[2].tid, 2008);
		assert_int_equal(ring.at[1].start, 0x77001234);
		assert_true(ring.at[1].has_stack && ring.at[1].has_frame);
		assert_int_equal(ring.at[1].stack_base, 0x400000);
		assert_int_equal(ring.at[1].stack_limit, 0x3fd000);
		assert_int_equal(ring.at[1].rip, 0x7700aaaa);
		assert_int_equal(ring.at[1].rsp, 0x2ff000);
		assert_int_equal(ring.at[1].kernel_stack, KERNEL + 0x8f800);
		threads_deinit(&ring);
		tear_down();
	}
}

TEST(thread_of_another_process_ends_the_ring)
{
	set_up();
	put_threads(&ten, 4);
	sparse_u64(&s, ETHREAD + 0x2000 + ten.cid, 1152);
	find_threads();
	assert_int_equal(ring.end, LIST_TORN);
	assert_int_equal(ring.count, 2);
	sparse_lose(&s, ETHREAD + 0x1000, true);
	find_threads();
	assert_int_equal(ring.end, LIST_UNREADABLE);
	assert_int_equal(ring.count, 1);
	threads_plan.pid = 4;
	find_threads();
	assert_null(ring.layout);
	assert_int_equal(ring.count, 0);
	threads_deinit(&ring);
	tear_down();
}

TEST(what_a_thread_lacks_is_said)
{
	set_up();
	put_threads(&ten, 2);
	sparse_lose(&s, TEB, true);
	sparse_u16(&s, KERNEL + 0x8fe00 + 0x170, 0x10); /* the kernel's own */
	find_threads();
	assert_int_equal(ring.end, LIST_CLOSED);
	assert_false(ring.at[0].has_stack);
	assert_true(ring.at[1].has_stack);
	assert_false(ring.at[0].has_frame);
	assert_int_equal(ring.at[0].rip, 0);
	sparse_u64(&s, TEB + 0x4000 + 0x30, TEB); /* another thread's TEB */
	find_threads();
	assert_false(ring.at[1].has_stack);
	threads_deinit(&ring);
	tear_down();
}

TEST(thread_of_wow64_has_two_stacks)
{
	const uint64_t teb32 = TEB + 0x2000;

	set_up();
	put_threads(&ten, 1);
	threads_plan.wow64 = true;
	sparse_u32(&s, teb32 + 0x18, (uint32_t)teb32);
	sparse_u32(&s, teb32 + 4, 0x150000);
	sparse_u32(&s, teb32 + 8, 0x14e000);
	find_threads();
	assert_int_equal(ring.at[0].narrow_base, 0x150000);
	assert_int_equal(ring.at[0].narrow_limit, 0x14e000);
	threads_deinit(&ring);
	tear_down();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writable_sections_of_an_image),
		cmocka_unit_test(loaders_list_is_read_and_sorted),
		cmocka_unit_test(what_list_and_mappings_know_is_told_apart),
		cmocka_unit_test(process_of_32_bits_has_two_lists),
		cmocka_unit_test(list_that_lies_ends),
		cmocka_unit_test(endless_list_is_cut),
		cmocka_unit_test(texts_make_sense_or_are_none),
		cmocka_unit_test(threads_are_found_by_the_layout_that_fits),
		cmocka_unit_test(thread_of_another_process_ends_the_ring),
		cmocka_unit_test(what_a_thread_lacks_is_said),
		cmocka_unit_test(thread_of_wow64_has_two_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
