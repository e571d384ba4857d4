/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "formats/image/elf_core.h"
#include "tests/gen/images.h"

#define LOAD 1
#define NOTE 4

static enum status parse(const struct image *i, struct elf_core *ret, struct err *e)
{
	struct mem_blob b;

	mem_blob_init(&b, i->at, i->len);
	return elf_core_init(ret, &b.blob, e);
}

/* Parses, wants `want` with `text` in the message, and frees everything. */
static void refused(struct image *i, enum status want, const char *text)
{
	struct err e = ERR_INIT;
	struct elf_core c;

	CHECK_STATUS(parse(i, &c, &e), want, &e);
	CHECK_HAS(e.message, text);
	elf_core_deinit(&c);
	image_free(i);
}

static void one_load(struct image *i)
{
	const struct phdr p = { LOAD, 0x1000, 0xffff888000001000, 0x1000, 0x2000, 0x3000 };

	elf_header(i, &p, 1);
}

TEST(segments_and_notes_come_back)
{
	const struct phdr p[] = {
		{ NOTE, 232, 0, 0, 20, 0 },
		{ LOAD, 0x1000, 0xffff888000001000, 0x1000, 0x2000, 0x3000 },
		{ LOAD, 0x3000, 0xffffc90000000000, UINT64_MAX, 0x10, 0x10 },
	};
	struct image i = { 0 };
	struct err e = ERR_INIT;
	struct elf_core c;
	const uint8_t *desc;
	size_t size = 0;

	elf_header(&i, p, 3);
	assert_int_equal(elf_note(&i, 232, "ABC", "four", 4), 252);
	CHECK_OK(parse(&i, &c, &e), &e);
	assert_int_equal(c.n_loads, 2);
	assert_int_equal(c.loads[0].offset, 0x1000);
	assert_int_equal(c.loads[0].vaddr, 0xffff888000001000);
	assert_int_equal(c.loads[0].paddr, 0x1000);
	assert_int_equal(c.loads[0].filesz, 0x2000);
	assert_int_equal(c.loads[0].memsz, 0x3000);
	assert_true(c.loads[1].paddr == ELF_PADDR_NONE);
	assert_int_equal(c.notes_size, 20);
	desc = elf_note_find(c.notes, c.notes_size, "ABC", &size);
	assert_non_null(desc);
	assert_int_equal(size, 4);
	assert_memory_equal(desc, "four", 4);
	elf_core_deinit(&c);
	image_free(&i);
}

TEST(what_is_no_elf_is_not_mine)
{
	struct image i = { 0 };

	image_put(&i, 0, "EMiL", 4);
	refused(&i, ST_NOT_MINE, "not an ELF");
	refused(&i, ST_NOT_MINE, "not an ELF"); /* empty now */
}

TEST(header_that_is_cut_is_corrupt)
{
	for (size_t len = 4; len < 64; len++) {
		struct image i = { 0 };

		one_load(&i);
		i.len = len;
		refused(&i, ST_CORRUPT, "cut short");
	}
}

TEST(other_kinds_of_elf_are_named)
{
	struct image i = { 0 };

	one_load(&i), image_u8(&i, 4, 1);
	refused(&i, ST_INPUT, "64-bit");
	one_load(&i), image_u8(&i, 5, 2);
	refused(&i, ST_INPUT, "little-endian");
	one_load(&i), image_u8(&i, 6, 9);
	refused(&i, ST_CORRUPT, "version 9");
	one_load(&i), image_u16(&i, 16, 2);
	refused(&i, ST_INPUT, "not a core");
	one_load(&i), image_u16(&i, 18, 40);
	refused(&i, ST_INPUT, "machine 40, only x86-64 and ARM64");
}

TEST(both_machines_are_told_apart)
{
	static const struct {
		uint16_t machine;
		enum machine_arch arch;
	} known[] = { { 62, ARCH_X86_64 }, { 183, ARCH_ARM64 } };

	for (size_t k = 0; k < ARRAY_SIZE(known); k++) {
		struct image i = { 0 };
		struct err e = ERR_INIT;
		struct elf_core c;

		one_load(&i), image_u16(&i, 18, known[k].machine);
		CHECK_OK(parse(&i, &c, &e), &e);
		assert_int_equal(c.arch, known[k].arch);
		assert_int_equal(c.n_loads, 1);
		elf_core_deinit(&c);
		image_free(&i);
	}
}

TEST(program_headers_of_another_size_are_corrupt)
{
	struct image i = { 0 };

	one_load(&i), image_u16(&i, 54, 64);
	refused(&i, ST_CORRUPT, "64 bytes");
}

TEST(table_past_the_end_is_corrupt)
{
	struct image i = { 0 };

	one_load(&i), i.len--;
	refused(&i, ST_CORRUPT, "past the end");
	one_load(&i), image_u64(&i, 32, UINT64_MAX - 8);
	refused(&i, ST_CORRUPT, "past the end");
}

TEST(segment_with_more_file_than_memory_is_corrupt)
{
	struct image i = { 0 };

	one_load(&i), image_u64(&i, 64 + 32, 0x3001);
	refused(&i, ST_CORRUPT, "program header 0");
}

TEST(segment_without_memory_is_nothing)
{
	struct image i = { 0 };
	struct err e = ERR_INIT;
	struct elf_core c;

	one_load(&i), image_u64(&i, 64 + 32, 0), image_u64(&i, 64 + 40, 0);
	CHECK_OK(parse(&i, &c, &e), &e);
	assert_int_equal(c.n_loads, 0);
	elf_core_deinit(&c);
	image_free(&i);
}

TEST(core_whose_memory_is_cut_off_is_read)
{
	struct image i = { 0 };
	struct err e = ERR_INIT;
	struct elf_core c;

	one_load(&i);
	CHECK_OK(parse(&i, &c, &e), &e);
	assert_int_equal(c.n_loads, 1);
	elf_core_deinit(&c);
	image_free(&i);
}

/* 70000 segments: e_phnum holds PN_XNUM, the count stands in section header 0. */
static void extended(struct image *i, uint32_t count)
{
	one_load(i);
	image_u16(i, 56, 0xffff);
	image_u64(i, 40, 128);
	image_u64(i, 32, 192);
	image_put(i, 192, "", 0);
	image_u32(i, 128 + 44, count);
}

TEST(many_segments_are_counted_in_the_section_header)
{
	struct image i = { 0 };
	struct err e = ERR_INIT;
	struct elf_core c;

	extended(&i, 70000);
	image_put(&i, 192 + 70000 * 56, "", 0);
	for (size_t k = 0; k < 70000; k++) {
		image_u32(&i, 192 + k * 56, LOAD);
		image_u64(&i, 192 + k * 56 + 24, k << 13);
		image_u64(&i, 192 + k * 56 + 40, 0x1000);
	}
	CHECK_OK(parse(&i, &c, &e), &e);
	assert_int_equal(c.n_loads, 70000);
	assert_int_equal(c.loads[69999].paddr, (uint64_t)69999 << 13);
	elf_core_deinit(&c);
	image_free(&i);
}

TEST(extended_count_is_bounded_by_the_file)
{
	struct image i = { 0 };

	extended(&i, 70000);
	refused(&i, ST_CORRUPT, "past the end");
	extended(&i, UINT32_MAX);
	refused(&i, ST_CORRUPT, "too many");
	extended(&i, 1), image_u64(&i, 40, 0);
	refused(&i, ST_CORRUPT, "without a section header");
	extended(&i, 1), image_u64(&i, 40, UINT64_MAX);
	refused(&i, ST_CORRUPT, "section header 0");
}

TEST(notes_past_the_end_are_corrupt)
{
	const struct phdr p = { NOTE, 120, 0, 0, 4, 0 };
	struct image i = { 0 };

	elf_header(&i, &p, 1), image_put(&i, 120, "abc", 3);
	refused(&i, ST_CORRUPT, "notes reach past the end");
	elf_header(&i, &p, 1), image_u64(&i, 64 + 8, UINT64_MAX - 1);
	refused(&i, ST_CORRUPT, "notes reach past the end");
}

TEST(too_many_bytes_of_notes_are_refused_before_they_are_read)
{
	static struct phdr p[2] = { { NOTE, 0, 0, 0, 9 << 20, 0 }, { NOTE, 0, 0, 0, 9 << 20, 0 } };
	struct image i = { 0 };

	elf_header(&i, p, 2);
	image_put(&i, 9 << 20, "", 0);
	refused(&i, ST_CORRUPT, "program header 1");
}

TEST(note_that_reaches_past_the_end_ends_the_search)
{
	struct image i = { 0 };
	size_t size = 0;
	const size_t end = elf_note(&i, 0, "CORE", "abcde", 5);

	elf_note(&i, end, "VMCOREINFO", "x=1\n", 4);
	assert_non_null(elf_note_find(i.at, i.len, "VMCOREINFO", &size));
	assert_int_equal(size, 4);
	for (size_t len = 0; len < i.len; len++)
		assert_null(elf_note_find(i.at, len, "VMCOREINFO", &size));
	image_u32(&i, end, UINT32_MAX);
	assert_null(elf_note_find(i.at, i.len, "VMCOREINFO", &size));
	image_free(&i);
}

TEST(note_that_was_put_is_found)
{
	static const char text[] = "OSRELEASE=6.1.0";
	uint8_t notes[128];
	size_t at = 0, size = 0;

	for (size_t len = 0; len < 4; len++) {
		const char name[] = { "ABC"[len], '\0' };

		elf_note_put(notes + at, name, text, len);
		at += elf_note_size(name, len);
		assert_int_equal(at % 4, 0);
	}
	elf_note_put(notes + at, "VMCOREINFO", text, 15);
	at += elf_note_size("VMCOREINFO", 15);
	assert_true(at <= sizeof(notes));
	assert_memory_equal(elf_note_find(notes, at, "VMCOREINFO", &size), text, 15);
	assert_int_equal(size, 15);
	assert_memory_equal(elf_note_find(notes, at, "C", &size), text, 2);
	assert_int_equal(size, 2);
}

TEST(vmcoreinfo_gives_numbers_by_key)
{
	static const char text[] = "OSRELEASE=6.1.0\n"
				   "SYMBOL(_stextual)=1\n"
				   "SYMBOL(_stext)=ffffffff81000000\n"
				   "NUMBER(phys_base)=-16777216\n"
				   "SYMBOL(big)=10000000000000000\n"
				   "SYMBOL(none)=\n"
				   "KERNELOFFSET=3c";
	const size_t size = sizeof(text) - 1;
	uint64_t hex = 0;
	int64_t decimal = 0;

	assert_true(vmcoreinfo_hex(text, size, "SYMBOL(_stext)", &hex));
	assert_int_equal(hex, 0xffffffff81000000);
	assert_true(vmcoreinfo_decimal(text, size, "NUMBER(phys_base)", &decimal));
	assert_int_equal(decimal, -16777216);
	assert_true(vmcoreinfo_hex(text, size, "KERNELOFFSET", &hex));
	assert_int_equal(hex, 0x3c);
	assert_false(vmcoreinfo_hex(text, size, "SYMBOL(big)", &hex));
	assert_false(vmcoreinfo_hex(text, size, "SYMBOL(none)", &hex));
	assert_false(vmcoreinfo_hex(text, size, "SYMBOL(_ste", &hex));
	assert_false(vmcoreinfo_hex(text, size, "OSRELEASE", &hex));
	assert_false(vmcoreinfo_decimal(text, size, "OSRELEASE", &decimal));
	assert_false(vmcoreinfo_hex(NULL, 0, "OSRELEASE", &hex));
}

/* NUMBER(VA_BITS) is the one that ARM64 writes in decimal. */
TEST(vmcoreinfo_of_arm64_has_numbers_with_0x)
{
	static const char text[] = "PAGESIZE=16384\n"
				   "NUMBER(VA_BITS)=48\n"
				   "NUMBER(PHYS_OFFSET)=0xffffccee00000000\n"
				   "NUMBER(kimage_voffset)=0xffffb3e7c8800000\n"
				   "NUMBER(bad)=0x\n"
				   "NUMBER(worse)=0x0x1\n";
	const size_t size = sizeof(text) - 1;
	uint64_t hex = 0;
	int64_t decimal = 0;

	assert_true(vmcoreinfo_hex(text, size, "NUMBER(PHYS_OFFSET)", &hex));
	assert_int_equal(hex, 0xffffccee00000000);
	assert_true(vmcoreinfo_hex(text, size, "NUMBER(kimage_voffset)", &hex));
	assert_int_equal(hex, 0xffffb3e7c8800000);
	assert_false(vmcoreinfo_hex(text, size, "NUMBER(bad)", &hex));
	assert_false(vmcoreinfo_hex(text, size, "NUMBER(worse)", &hex));
	assert_false(vmcoreinfo_decimal(text, size, "NUMBER(PHYS_OFFSET)", &decimal));
	assert_true(vmcoreinfo_decimal(text, size, "NUMBER(VA_BITS)", &decimal));
	assert_int_equal(decimal, 48);
	assert_int_equal(vmcoreinfo_page_size(text, size, ARCH_ARM64), 16384);
	assert_int_equal(vmcoreinfo_page_size(text, size, ARCH_X86_64), 0);
	assert_int_equal(vmcoreinfo_page_size("PAGESIZE=4097", 13, ARCH_ARM64), 0);
	assert_int_equal(vmcoreinfo_page_size("PAGESIZE=-4096", 14, ARCH_ARM64), 0);
	assert_int_equal(vmcoreinfo_page_size("PAGESIZE=4096", 13, ARCH_X86_64), 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_and_notes_come_back),
		cmocka_unit_test(what_is_no_elf_is_not_mine),
		cmocka_unit_test(header_that_is_cut_is_corrupt),
		cmocka_unit_test(other_kinds_of_elf_are_named),
		cmocka_unit_test(both_machines_are_told_apart),
		cmocka_unit_test(vmcoreinfo_of_arm64_has_numbers_with_0x),
		cmocka_unit_test(program_headers_of_another_size_are_corrupt),
		cmocka_unit_test(table_past_the_end_is_corrupt),
		cmocka_unit_test(segment_with_more_file_than_memory_is_corrupt),
		cmocka_unit_test(segment_without_memory_is_nothing),
		cmocka_unit_test(core_whose_memory_is_cut_off_is_read),
		cmocka_unit_test(many_segments_are_counted_in_the_section_header),
		cmocka_unit_test(extended_count_is_bounded_by_the_file),
		cmocka_unit_test(notes_past_the_end_are_corrupt),
		cmocka_unit_test(too_many_bytes_of_notes_are_refused_before_they_are_read),
		cmocka_unit_test(note_that_reaches_past_the_end_ends_the_search),
		cmocka_unit_test(note_that_was_put_is_found),
		cmocka_unit_test(vmcoreinfo_gives_numbers_by_key),
	};

	return cmocka_run_group_tests_name("elf_core", tests, NULL, NULL);
}
