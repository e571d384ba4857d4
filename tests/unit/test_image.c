/* SPDX-License-Identifier: Apache-2.0 */
/* The writers of images, read back by the parsers beside them. */
#include "tests/unit/test.h"

#include <string.h>

#include "formats/base/bytes.h"
#include "formats/image/elf_core.h"
#include "formats/image/lime.h"
#include "formats/image/raw.h"
#include "tests/gen/images.h"

#define GIB ((uint64_t)1 << 30)

/* A piece of `pages` pages from `first` on: patterned; those of `zeros` (a bit each) are zero. */
static void put(struct image_writer *w, uint64_t first, size_t pages, uint32_t zeros)
{
	struct page_status status[32] = { 0 };
	uint8_t data[32 * PAGE_SIZE];
	struct err e = ERR_INIT;

	pattern(data, first, pages * PAGE_SIZE);
	for (size_t i = 0; i < pages; i++) {
		if (!(zeros >> i & 1))
			continue;
		status[i].state = PAGE_ZERO;
		memset(data + i * PAGE_SIZE, 0, PAGE_SIZE);
	}
	CHECK_OK(w->format->put(
			 w,
			 &(struct image_piece){
				 .address = first, .pages = pages, .data = data, .status = status },
			 &e),
		 &e);
}

static struct image_writer *create(const struct image_format *f, const struct image_spec *spec,
				   struct mem_sink *out)
{
	struct image_writer *w = NULL;
	struct err e = ERR_INIT;

	mem_sink_init(out, 64 << 20);
	CHECK_OK(f->create(spec, &out->sink, &w, &e), &e);
	return w;
}

static void finish(struct image_writer *w, bool whole)
{
	struct err e = ERR_INIT;

	CHECK_OK(w->format->finish(w, whole, &e), &e);
	w->format->destroy(w);
}

static void check_pattern(const uint8_t *at, uint64_t first, size_t len)
{
	uint8_t want[PAGE_SIZE];

	for (size_t i = 0; i < len; i += PAGE_SIZE) {
		pattern(want, first + i, PAGE_SIZE);
		assert_memory_equal(at + i, want, PAGE_SIZE);
	}
}

static struct range two[] = { { 0x1000, 0x2fff }, { 5 * GIB, 5 * GIB + 0xfff } };
static const struct range_list two_ranges = { .at = two, .count = 2 };

TEST(lime_has_a_header_per_range_with_inclusive_ends)
{
	const struct image_spec spec = { .ranges = &two_ranges };
	struct mem_sink out;
	struct mem_blob blob;
	struct lime l;
	struct err e = ERR_INIT;
	struct image_writer *w = create(&lime_format, &spec, &out);

	put(w, 0x1000, 2, 0);
	put(w, 5 * GIB, 1, 0);
	finish(w, true);
	assert_int_equal(out.len, 2 * LIME_HEADER_SIZE + 3 * PAGE_SIZE);
	mem_blob_init(&blob, out.at, out.len);
	CHECK_OK(lime_init(&l, &blob.blob, &e), &e);
	assert_int_equal(l.count, 2);
	assert_int_equal(l.end, LIME_WHOLE);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(l.at[i].range.first, two[i].first);
		assert_int_equal(l.at[i].range.last, two[i].last);
		check_pattern(out.at + l.at[i].offset, two[i].first, range_bytes(two[i]));
	}
	lime_deinit(&l);
	mem_sink_deinit(&out);
}

TEST(lime_range_in_several_pieces_has_one_header)
{
	const struct image_spec spec = { .ranges = &two_ranges };
	struct mem_sink out;
	struct image_writer *w = create(&lime_format, &spec, &out);

	put(w, 0x1000, 1, 0);
	put(w, 0x2000, 1, 0);
	finish(w, false);
	assert_int_equal(out.len, LIME_HEADER_SIZE + 2 * PAGE_SIZE);
	mem_sink_deinit(&out);
}

TEST(elf_names_every_range_and_keeps_notes_and_direct_map)
{
	static const char notes[] = "notes of any kind";
	const struct image_spec spec = {
		.ranges = &two_ranges,
		.own = &(const struct image_kernel){ .notes = notes,
						     .notes_size = sizeof(notes),
						     .direct_map = 0xffff888000000000u },
	};
	struct mem_sink out;
	struct mem_blob blob;
	struct elf_core c;
	struct err e = ERR_INIT;
	struct image_writer *w = create(&elf_format, &spec, &out);

	put(w, 0x1000, 2, 2);
	put(w, 5 * GIB, 1, 0);
	finish(w, true);
	mem_blob_init(&blob, out.at, out.len);
	CHECK_OK(elf_core_init(&c, &blob.blob, &e), &e);
	assert_int_equal(c.n_loads, 2);
	assert_int_equal(c.notes_size, sizeof(notes));
	assert_memory_equal(c.notes, notes, sizeof(notes));
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(c.loads[i].paddr, two[i].first);
		assert_int_equal(c.loads[i].vaddr,
				 ((const struct image_kernel *)spec.own)->direct_map +
					 two[i].first);
		assert_int_equal(c.loads[i].filesz, range_bytes(two[i]));
		assert_int_equal(c.loads[i].offset % PAGE_SIZE, 0);
	}
	check_pattern(out.at + c.loads[0].offset, 0x1000, PAGE_SIZE);
	assert_true(bytes_are_zero(out.at + c.loads[0].offset + PAGE_SIZE, PAGE_SIZE));
	check_pattern(out.at + c.loads[1].offset, 5 * GIB, PAGE_SIZE);
	assert_int_equal(c.loads[1].offset + PAGE_SIZE, out.len);
	elf_core_deinit(&c);
	mem_sink_deinit(&out);
}

#define TEXT   UINT64_C(0xffffffff81000000)
#define DIRECT UINT64_C(0xffff888000000000)

/* A PT_LOAD as it should be: what it begins with, where, and how long it is in pages. */
struct load {
	uint64_t paddr, vaddr, pages;
};

/* An ELF core of 16 pages from 0x10000 on and one at 5 GiB, with an image of the kernel in it. */
static void check_loads(uint64_t image_pa, uint64_t pages, const struct load *want, size_t n)
{
	static struct range at[] = { { 0x10000, 0x1ffff }, { 5 * GIB, 5 * GIB + PAGE_SIZE - 1 } };
	const struct range_list list = { .at = at, .count = 2 };
	const struct image_spec spec = {
		.ranges = &list,
		.own = &(const struct image_kernel){ .notes = "notes",
						     .notes_size = 5,
						     .direct_map = DIRECT,
						     .image_va = TEXT,
						     .image_pa = image_pa,
						     .image_bytes = pages * PAGE_SIZE },
	};
	struct mem_sink out;
	struct mem_blob blob;
	struct elf_core c;
	struct err e = ERR_INIT;
	struct image_writer *w = create(&elf_format, &spec, &out);

	put(w, 0x10000, 16, 0);
	put(w, 5 * GIB, 1, 0);
	finish(w, true);
	mem_blob_init(&blob, out.at, out.len);
	CHECK_OK(elf_core_init(&c, &blob.blob, &e), &e);
	assert_int_equal(c.n_loads, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(c.loads[i].paddr, want[i].paddr);
		assert_int_equal(c.loads[i].vaddr, want[i].vaddr);
		assert_int_equal(c.loads[i].filesz, want[i].pages * PAGE_SIZE);
		check_pattern(out.at + c.loads[i].offset, want[i].paddr, c.loads[i].filesz);
	}
	assert_int_equal(c.loads[n - 1].offset + c.loads[n - 1].filesz, out.len);
	elf_core_deinit(&c);
	mem_sink_deinit(&out);
}

TEST(elf_has_the_kernels_image_in_a_segment_of_its_own)
{
	const struct load last = { 5 * GIB, DIRECT + 5 * GIB, 1 };
	const struct load inside[] = { { 0x10000, DIRECT + 0x10000, 2 },
				       { 0x12000, TEXT, 4 },
				       { 0x16000, DIRECT + 0x16000, 10 },
				       last };
	const struct load begins[] = { { 0x10000, TEXT, 3 },
				       { 0x13000, DIRECT + 0x13000, 13 },
				       last };
	const struct load ends[] = { { 0x10000, DIRECT + 0x10000, 15 },
				     { 0x1f000, TEXT, 1 },
				     last };
	const struct load before[] = { { 0x10000, TEXT + 0x2000, 2 },
				       { 0x12000, DIRECT + 0x12000, 14 },
				       last };
	const struct load behind[] = { { 0x10000, DIRECT + 0x10000, 12 },
				       { 0x1c000, TEXT, 4 },
				       last };
	const struct load all[] = { { 0x10000, TEXT, 16 }, last };
	const struct load none[] = { { 0x10000, DIRECT + 0x10000, 16 }, last };

	check_loads(0x12000, 4, inside, ARRAY_SIZE(inside));
	check_loads(0x10000, 3, begins, ARRAY_SIZE(begins));
	check_loads(0x1f000, 1, ends, ARRAY_SIZE(ends));
	check_loads(0xe000, 4, before, ARRAY_SIZE(before));
	check_loads(0x1c000, 8, behind, ARRAY_SIZE(behind));
	check_loads(0x10000, 16, all, ARRAY_SIZE(all));
	check_loads(0x20000, 4, none, ARRAY_SIZE(none));
	check_loads(0x12000, 0, none, ARRAY_SIZE(none));
}

/* p_align of the first PT_LOAD, which is where a netdump says its page size: crash, netdump.c. */
static uint64_t first_align(const char *notes)
{
	const struct image_spec spec = { .ranges = &two_ranges,
					 .own = &(const struct image_kernel){
						 .notes = notes,
						 .notes_size = notes ? strlen(notes) : 0 } };
	struct mem_sink out;
	uint64_t align;

	finish(create(&elf_format, &spec, &out), false);
	align = get_le64(out.at + ELF_EHDR_SIZE + (notes ? ELF_PHDR_SIZE : 0) + 48);
	mem_sink_deinit(&out);
	return align;
}

TEST(elf_with_notes_is_no_netdump)
{
	assert_int_equal(first_align("notes"), 0);
	assert_int_equal(first_align(NULL), PAGE_SIZE);
}

/* 65534 program headers still fit e_phnum; with the notes it is one more, and they do not. */
static void check_count(size_t ranges, bool notes, uint16_t phnum)
{
	struct range *at = calloc(ranges, sizeof(*at));
	const struct range_list list = { .at = at, .count = ranges };
	const struct image_spec spec = { .ranges = &list,
					 .own = &(const struct image_kernel){
						 .notes = notes ? "note" : NULL,
						 .notes_size = notes ? 4 : 0 } };
	struct mem_sink out;
	struct mem_blob blob;
	struct elf_core c;
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ranges; i++)
		at[i] = (struct range){ 2 * i * PAGE_SIZE, (2 * i + 1) * PAGE_SIZE - 1 };
	finish(create(&elf_format, &spec, &out), false);
	assert_int_equal(out.at[56] | out.at[57] << 8, phnum);
	mem_blob_init(&blob, out.at, out.len);
	CHECK_OK(elf_core_init(&c, &blob.blob, &e), &e);
	assert_int_equal(c.n_loads, ranges);
	assert_int_equal(c.loads[ranges - 1].paddr, at[ranges - 1].first);
	elf_core_deinit(&c);
	mem_sink_deinit(&out);
	free(at);
}

TEST(elf_counts_program_headers_in_section_0_when_they_are_too_many)
{
	check_count(65534, false, 65534);
	check_count(65534, true, ELF_PN_XNUM);
	check_count(65535, false, ELF_PN_XNUM);
	check_count(70000, true, ELF_PN_XNUM);
}

TEST(elf_refuses_more_ranges_than_its_reader_takes)
{
	const struct range_list list = { .at = two, .count = ELF_PHDRS_MAX };
	struct image_writer *w = NULL;
	struct mem_sink out;
	struct err e = ERR_INIT;

	mem_sink_init(&out, SIZE_MAX);
	CHECK_STATUS(elf_format.create(&(struct image_spec){ .ranges = &list }, &out.sink, &w, &e),
		     ST_INPUT, &e);
	assert_int_equal(out.len, 0);
}

TEST(raw_is_padded_up_to_the_first_range_and_between)
{
	static struct range at[] = { { 0x2000, 0x2fff }, { 0x5000, 0x5fff } };
	const struct range_list list = { .at = at, .count = 2 };
	struct mem_sink out;
	struct image_writer *w = create(&raw_format, &(struct image_spec){ .ranges = &list }, &out);

	put(w, 0x2000, 1, 0);
	put(w, 0x5000, 1, 0);
	finish(w, true);
	assert_int_equal(out.len, 0x6000);
	assert_true(bytes_are_zero(out.at, 0x2000));
	check_pattern(out.at + 0x2000, 0x2000, PAGE_SIZE);
	assert_true(bytes_are_zero(out.at + 0x3000, 0x2000));
	check_pattern(out.at + 0x5000, 0x5000, PAGE_SIZE);
	mem_sink_deinit(&out);
}

TEST(raw_of_a_file_ends_inside_a_page_or_in_a_hole)
{
	static struct range at[] = { { 0, 0x1233 } };
	const struct range_list list = { .at = at, .count = 1 };
	const struct image_spec exact = { .ranges = &list },
				longer = { .ranges = &list, .end = 0x4321 };
	uint8_t want[2 * PAGE_SIZE];
	struct mem_sink out;
	struct image_writer *w = create(&raw_format, &exact, &out);

	pattern(want, 0, sizeof(want));
	put(w, 0, 2, 0);
	finish(w, true);
	assert_int_equal(out.len, 0x1234);
	assert_memory_equal(out.at, want, out.len);
	mem_sink_deinit(&out);
	w = create(&raw_format, &longer, &out);
	put(w, 0, 2, 0);
	finish(w, true);
	assert_int_equal(out.len, 0x4321);
	mem_sink_deinit(&out);
}

TEST(raw_that_ends_early_is_not_padded)
{
	static struct range at[] = { { 0, 0x5fff } };
	const struct range_list list = { .at = at, .count = 1 };
	struct mem_sink out;
	struct image_writer *w = create(&raw_format, &(struct image_spec){ .ranges = &list }, &out);

	put(w, 0, 3, 0);
	finish(w, false);
	assert_int_equal(out.len, 0x3000);
	mem_sink_deinit(&out);
}

TEST(full_disk_is_an_output_error)
{
	const struct image_format *const formats[] = { &raw_format, &lime_format, &elf_format };

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		const struct image_spec spec = { .ranges = &two_ranges };
		struct page_status status = { 0 };
		uint8_t page[PAGE_SIZE] = { 1 };
		struct err e = ERR_INIT;
		struct mem_sink out;
		struct image_writer *w = create(formats[i], &spec, &out);

		out.limit = out.len + 100;
		CHECK_STATUS(formats[i]->put(w,
					     &(struct image_piece){ .address = 0x1000,
								    .pages = 1,
								    .data = page,
								    .status = &status },
					     &e),
			     ST_OUTPUT, &e);
		formats[i]->destroy(w);
		mem_sink_deinit(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lime_has_a_header_per_range_with_inclusive_ends),
		cmocka_unit_test(lime_range_in_several_pieces_has_one_header),
		cmocka_unit_test(elf_names_every_range_and_keeps_notes_and_direct_map),
		cmocka_unit_test(elf_has_the_kernels_image_in_a_segment_of_its_own),
		cmocka_unit_test(elf_with_notes_is_no_netdump),
		cmocka_unit_test(elf_counts_program_headers_in_section_0_when_they_are_too_many),
		cmocka_unit_test(elf_refuses_more_ranges_than_its_reader_takes),
		cmocka_unit_test(raw_is_padded_up_to_the_first_range_and_between),
		cmocka_unit_test(raw_of_a_file_ends_inside_a_page_or_in_a_hole),
		cmocka_unit_test(raw_that_ends_early_is_not_padded),
		cmocka_unit_test(full_disk_is_an_output_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
