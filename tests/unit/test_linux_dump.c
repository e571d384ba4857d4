/* SPDX-License-Identifier: Apache-2.0 */
/* What an ELF core says of its kernel, found in memory on generated machines. */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/shared/kernel/linux_dump.h"
#include "formats/image/elf_core.h"
#include "tests/gen/machine.h"
#include "tests/unit/machine_mem.h"

#define RAM_LAST    UINT64_C(0x3fffffff)
#define TEXT        UINT64_C(0xffffffff81000000)
#define TEXT_PA     UINT64_C(0x4000000)
#define IMAGE_BYTES UINT64_C(0x40000) /* machine_linux() maps so many, in pages of 4 KiB */

static struct machine m;
static struct machine_linux l;
static struct linux_dump d;

static void make(unsigned levels)
{
	m = (struct machine){ .levels = levels };
	l = (struct machine_linux){
		.p = { { .name = "swapper/0", .no_memory = true }, { .name = "init", .pid = 1 } },
		.count = 2,
	};
	machine_linux(&m, &l);
}

static void look_with(const struct image_kernel *known, struct walk_budget *budget)
{
	struct err e = ERR_INIT;
	struct machine_mem mem;

	CHECK_OK(linux_dump_init(&d, machine_mem_init(&mem, &m, RAM_LAST), known, NULL, budget, &e),
		 &e);
	machine_mem_deinit(&mem);
}

static void look(void)
{
	look_with(&(const struct image_kernel){ 0 }, NULL);
}

static void end(void)
{
	linux_dump_deinit(&d);
	machine_linux_free(&l);
	machine_free(&m);
}

static void check_vmcoreinfo(void)
{
	size_t size = 0;
	const void *text = elf_note_find(d.kernel.notes, d.kernel.notes_size, "VMCOREINFO", &size);

	assert_non_null(text);
	assert_int_equal(size, l.vmcoreinfo.len);
	assert_memory_equal(text, l.vmcoreinfo.at, size);
}

static void check_image(uint64_t bytes)
{
	assert_int_equal(d.kernel.image_va, TEXT);
	assert_int_equal(d.kernel.image_pa, TEXT_PA);
	assert_int_equal(d.kernel.image_bytes, bytes);
}

TEST(memory_alone_is_enough)
{
	for (unsigned levels = 4; levels <= 5; levels++) {
		make(levels);
		look();
		assert_int_equal(d.os, OS_LINUX);
		assert_string_equal(d.vmcoreinfo, "memory");
		check_vmcoreinfo();
		check_image(IMAGE_BYTES);
		assert_int_equal(d.kernel.direct_map,
				 levels == 5 ? 0xff11000000000000 : 0xffff888000000000);
		end();
	}
}

TEST(notes_of_the_source_stay_as_they_are)
{
	struct image notes = { 0 };

	make(4);
	machine_linux_notes(&l, &notes);
	look_with(&(const struct image_kernel){ .notes = notes.at, .notes_size = notes.len }, NULL);
	assert_string_equal(d.vmcoreinfo, "source");
	assert_int_equal(d.kernel.notes_size, notes.len);
	assert_memory_equal(d.kernel.notes, notes.at, notes.len);
	check_image(IMAGE_BYTES);
	image_free(&notes);
	end();
}

/* As those of /proc/kcore before Linux 4.19. */
TEST(notes_without_vmcoreinfo_are_kept_behind_it)
{
	static const char other[] = "\5\0\0\0\3\0\0\0\1\0\0\0CORE\0\0\0\0abc";
	size_t size = 0;

	make(4);
	look_with(&(const struct image_kernel){ .notes = other, .notes_size = sizeof(other) },
		  NULL);
	assert_string_equal(d.vmcoreinfo, "memory");
	check_vmcoreinfo();
	assert_memory_equal(elf_note_find(d.kernel.notes, d.kernel.notes_size, "CORE", &size),
			    "abc", 3);
	assert_int_equal(size, 3);
	end();
}

TEST(direct_map_of_the_source_is_believed)
{
	make(4);
	look_with(&(const struct image_kernel){ .direct_map = 0xffff9a0000000000 }, NULL);
	assert_int_equal(d.kernel.direct_map, 0xffff9a0000000000);
	check_image(IMAGE_BYTES);
	end();
}

/* The entry of the page of the image that lies `at` bytes behind its beginning. */
static void set_entry(uint64_t at, uint64_t raw)
{
	machine_u64(&m, machine_entry(&m, l.root, TEXT + at, 1), raw);
}

/* What was needed for the start only is given back in the middle of the image. */
TEST(image_goes_on_behind_pages_that_were_given_back)
{
	make(4);
	set_entry(0x3000, 0);
	set_entry(0x4000, (TEXT_PA + 0x4000) | 0x8000000000000100);
	for (uint64_t at = IMAGE_BYTES; at < 0x400000; at += MACHINE_PAGE)
		set_entry(at, (TEXT_PA + at) | 0x8000000000000100);
	machine_map(&m, l.root, TEXT + 0x400000, TEXT_PA + 0x400000, 2);
	look();
	check_image(0x600000);
	end();
}

TEST(image_ends_where_2_mib_are_empty_or_the_frames_are_others)
{
	make(4);
	machine_map(&m, l.root, TEXT + 0x400000, TEXT_PA + 0x400000, 2);
	look();
	check_image(IMAGE_BYTES);
	end();

	make(4);
	set_entry(IMAGE_BYTES, TEXT_PA | 1);
	set_entry(IMAGE_BYTES + 0x1000, (TEXT_PA + IMAGE_BYTES + 0x1000) | 1);
	look();
	check_image(IMAGE_BYTES);
	end();
}

/* Something that lies lower than the direct map, and is aligned like it. */
TEST(mapping_that_does_not_show_the_kernel_is_no_direct_map)
{
	make(4);
	machine_map(&m, l.root, 0xffff880000000000, 0, 2);
	machine_map(&m, l.root, 0xffff880000000000 + (l.root & ~UINT64_C(0x1fffff)), 0x5000000, 2);
	look();
	assert_int_equal(d.kernel.direct_map, 0xffff888000000000);
	end();
}

/* Its root is not there, but its name and release are: the note is right, maps cannot be found. */
TEST(memory_without_the_kernels_tables_still_has_vmcoreinfo)
{
	make(4);
	machine_forget(&m, l.root);
	look();
	assert_int_equal(d.os, OS_LINUX);
	assert_string_equal(d.vmcoreinfo, "memory");
	check_vmcoreinfo();
	assert_int_equal(d.kernel.image_bytes, 0);
	assert_int_equal(d.kernel.direct_map, 0);
	end();
}

TEST(what_cannot_be_found_is_left_as_it_was)
{
	static const char notes[] = "notes of any kind";
	const struct image_kernel known = { .notes = notes,
					    .notes_size = sizeof(notes),
					    .direct_map = 0xffff888000000000 };

	make(4);
	machine_forget(&m, l.root);
	machine_forget(&m, l.vmcoreinfo_pa & ~UINT64_C(0xfff));
	look_with(&known, NULL);
	assert_int_equal(d.os, OS_UNKNOWN);
	assert_null(d.vmcoreinfo);
	assert_int_equal(d.kernel.notes_size, sizeof(notes));
	assert_memory_equal(d.kernel.notes, notes, sizeof(notes));
	assert_int_equal(d.kernel.direct_map, known.direct_map);
	assert_int_equal(d.kernel.image_bytes, 0);
	end();

	make(4);
	look_with(&known, &(struct walk_budget){ .pages = 0 });
	assert_null(d.vmcoreinfo);
	assert_int_equal(d.kernel.notes_size, sizeof(notes));
	end();
}

TEST(windows_has_neither_notes_nor_image)
{
	struct machine_windows w = { .pid = 0x440,
				     .name = 0x5a8,
				     .user_dtb = 0x388,
				     .low_stub = true,
				     .self_index = 0x1ed,
				     .p = { { .name = "System", .pid = 4 } },
				     .count = 1 };

	m = (struct machine){ .levels = 4 };
	machine_windows(&m, &w);
	look();
	assert_int_equal(d.os, OS_WINDOWS);
	assert_null(d.vmcoreinfo);
	assert_null(d.kernel.notes);
	assert_int_equal(d.kernel.image_bytes, 0);
	assert_int_equal(d.kernel.direct_map, 0);
	linux_dump_deinit(&d);
	machine_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_alone_is_enough),
		cmocka_unit_test(notes_of_the_source_stay_as_they_are),
		cmocka_unit_test(notes_without_vmcoreinfo_are_kept_behind_it),
		cmocka_unit_test(direct_map_of_the_source_is_believed),
		cmocka_unit_test(image_goes_on_behind_pages_that_were_given_back),
		cmocka_unit_test(image_ends_where_2_mib_are_empty_or_the_frames_are_others),
		cmocka_unit_test(mapping_that_does_not_show_the_kernel_is_no_direct_map),
		cmocka_unit_test(memory_without_the_kernels_tables_still_has_vmcoreinfo),
		cmocka_unit_test(what_cannot_be_found_is_left_as_it_was),
		cmocka_unit_test(windows_has_neither_notes_nor_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
