/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files made like /proc/kcore of several kernels. The offsets are small, because nobody says that
 * they are not; everything else is as fs/proc/kcore.c writes it.
 */
#include "tests/unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver-interface/iomem.h"
#include "driver-interface/linux.h"
#include "driver-interface/source.h"
#include "tests/unit/drv_check.h"

#define LOAD         1
#define NOTE         4
#define NO_ADDR      UINT64_MAX

/* include/uapi/linux/kernel-page-flags.h */
#define KPF_HEAD     ((uint64_t)1 << 15)
#define KPF_TAIL     ((uint64_t)1 << 16)
#define KPF_HUGE     ((uint64_t)1 << 17)
#define KPF_HWPOISON ((uint64_t)1 << 19)
#define KPF_NOPAGE   ((uint64_t)1 << 20)
#define KPF_OFFLINE  ((uint64_t)1 << 23)

#define KASLR        0xffff968e00000000 /* a page_offset_base: 1 GiB steps */
#define OLD          0xffff880000000000
#define TEXT         0xffffffff9e000000

static struct image iomem;

static void use_iomem(const char *text)
{
	image_text(&iomem, text);
	iomem_set_path(image_save(&iomem));
}

static int no_iomem(void **state)
{
	(void)state;
	image_free(&iomem);
	iomem_set_path("/nowhere/iomem");
	return 0;
}

static const char usual_iomem[] = "00000000-00000fff : Reserved\n"
				  "00001000-00004bff : System RAM\n"
				  "00100000-00103fff : System RAM\n"
				  "40000000-40001fff : System RAM\n";

/*
 * RAM 0x1000-0x3fff, 0x100000-0x103fff, 0x40000000-0x40001fff, and around it what else is in a
 * kcore. Segment order as in real ones: image, vmalloc, modules, then RAM and vmemmap mixed.
 */
static void make_kcore(struct image *i, uint64_t base, bool paddr)
{
	const uint64_t none = paddr ? NO_ADDR : 0;
	const struct phdr p[] = {
		{ NOTE, 0x800, 0, 0, 0, 0 },
		{ LOAD, 0x1000, TEXT, paddr ? 0x100000 : 0, 0x2000, 0x2000 },
		{ LOAD, 0x1000, base + ((uint64_t)11 << 40), none, (uint64_t)32 << 40,
		  (uint64_t)32 << 40 },
		{ LOAD, 0x1000, 0xffffffffc0000000, none, 0x1000000, 0x1000000 },
		{ LOAD, 0x4000, base + 0x1000, paddr ? 0x1000 : 0, 0x3000, 0x3000 },
		{ LOAD, 0x1000, base + ((uint64_t)60 << 40), none, 0x1000, 0x1000 },
		{ LOAD, 0x8000, base + 0x100000, paddr ? 0x100000 : 0, 0x4000, 0x4000 },
		{ LOAD, 0x1000, base + ((uint64_t)60 << 40) + 0x4000, none, 0x1000, 0x1000 },
		{ LOAD, 0xc000, base + 0x40000000, paddr ? 0x40000000 : 0, 0x2000, 0x2000 },
	};

	elf_header(i, p, ARRAY_SIZE(p));
	image_memory(i, 0x4000, 0x1000, 0x3000);
	image_memory(i, 0x8000, 0x100000, 0x4000);
	image_memory(i, 0xc000, 0x40000000, 0x2000);
}

static void check_ram(struct drv *d)
{
	check_data(d, 0x1000, 0x3fff);
	check_data(d, 0x100000, 0x103fff);
	check_data(d, 0x40000000, 0x40001fff);
}

#define USUAL_RAM { 0x1000, 0x3fff }, { 0x100000, 0x103fff }, { 0x40000000, 0x40001fff }

TEST(kernel_since_4_11_is_read_by_p_paddr)
{
	struct image i = { 0 };
	struct drv *d;

	use_iomem(usual_iomem);
	make_kcore(&i, KASLR, true);
	d = open_image("kcore", &i);
	CHECK_MAP(d, 0, iomem.path, USUAL_RAM);
	CHECK_MAP(d, 1, i.path, USUAL_RAM);
	assert_int_equal(d->info.maps[0].faults.partial, 1);
	check_ram(d);
	assert_true(d->info.silent);
	CHECK_HAS(d->info.note, "zeros");
	assert_true(d->info.has_kernel_base && d->info.has_kernel_phys && !d->info.has_cr3);
	assert_int_equal(d->info.kernel_base, TEXT);
	assert_int_equal(d->info.kernel_phys, 0x100000);
	drv_close(d);
	image_free(&i);
}

TEST(without_iomem_the_segments_are_the_map)
{
	struct image i = { 0 };
	struct drv *d;

	make_kcore(&i, KASLR, true);
	d = open_image("kcore", &i);
	assert_int_equal(d->info.n_maps, 1);
	CHECK_MAP(d, 0, i.path, USUAL_RAM);
	check_ram(d);
	drv_close(d);
	image_free(&i);
}

TEST(hidden_iomem_is_as_good_as_none)
{
	struct image i = { 0 };
	struct drv *d;

	use_iomem("00000000-00000000 : System RAM\n");
	make_kcore(&i, KASLR, true);
	d = open_image("kcore", &i);
	assert_int_equal(d->info.n_maps, 1);
	drv_close(d);
	image_free(&i);
}

TEST(ram_that_kcore_lacks_is_seen_to_be_missing)
{
	struct image i = { 0 };
	struct drv *d;

	use_iomem("1000-3fff : System RAM\n100000-107fff : System RAM\n"
		  "40000000-40001fff : System RAM\n");
	make_kcore(&i, KASLR, true);
	d = open_image("kcore", &i);
	assert_false(range_list_same(&d->info.maps[0].ranges, &d->info.maps[1].ranges));
	check_ram(d);
	CHECK_PAGE(d, 0x104000, PAGE_SKIPPED, SKIP_NOT_MAPPED);
	CHECK_PAGE(d, 0x107000, PAGE_SKIPPED, SKIP_NOT_MAPPED);
	drv_close(d);
	image_free(&i);
}

TEST(kernel_before_4_11_is_read_without_kaslr)
{
	struct image i = { 0 };
	struct drv *d;

	use_iomem(usual_iomem);
	make_kcore(&i, OLD, false);
	d = open_image("kcore", &i);
	CHECK_MAP(d, 1, i.path, USUAL_RAM);
	check_ram(d);
	assert_true(d->info.has_kernel_base && !d->info.has_kernel_phys);
	assert_int_equal(d->info.kernel_base, TEXT);
	drv_close(d);
	image_free(&i);
}

TEST(kernel_before_4_11_is_read_wherever_kaslr_put_it)
{
	for (uint64_t k = 0; k < 48; k++) {
		struct image i = { 0 };
		struct drv *d;

		no_iomem(NULL);
		use_iomem(usual_iomem);
		make_kcore(&i, OLD + k * 0xff40000000, false);
		d = open_image("kcore", &i);
		CHECK_MAP(d, 1, i.path, USUAL_RAM);
		check_ram(d);
		drv_close(d);
		image_free(&i);
	}
}

TEST(kernel_before_4_11_without_iomem_is_read_at_the_fixed_base_only)
{
	struct image i = { 0 };
	struct drv *d;
	size_t vmalloc = 64 + 2 * 56 + 16;

	/* The vmalloc area of that layout begins at ffffc90000000000. */
	make_kcore(&i, OLD, false);
	image_u64(&i, vmalloc, 0xffffc90000000000);
	d = open_image("kcore", &i);
	assert_int_equal(d->info.n_maps, 1);
	check_ram(d);
	drv_close(d);
	image_free(&i);

	make_kcore(&i, KASLR, false);
	refuse_image("kcore", &i, ST_NO_SOURCE, "before 4.11");
}

TEST(iomem_of_another_machine_fits_no_base)
{
	struct image i = { 0 };

	use_iomem("1000-1fff : System RAM\n123456000-123456fff : System RAM\n");
	make_kcore(&i, OLD, false);
	refuse_image("kcore", &i, ST_NO_SOURCE, "none fits");
}

TEST(segments_that_overlap_are_read_once)
{
	const struct phdr p[] = {
		{ LOAD, 0x1000, KASLR + 0x3000, 0x3000, 0x3000, 0x3000 },
		{ LOAD, 0x4000, KASLR + 0x1000, 0x1000, 0x3000, 0x3000 },
		{ LOAD, 0x8000, KASLR + PHYS_LIMIT - 0x1000, PHYS_LIMIT - 0x1000, 0x2000, 0x2000 },
		{ LOAD, 0x1000, 0xffffc90000000000, 0, 0x100000, 0x100000 }, /* no place at 0 */
	};
	struct image i = { 0 };
	struct drv *d;

	elf_header(&i, p, ARRAY_SIZE(p));
	image_memory(&i, 0x1000, 0x3000, 0x3000);
	image_memory(&i, 0x4000, 0x1000, 0x3000);
	image_memory(&i, 0x8000, PHYS_LIMIT - 0x1000, 0x1000);
	d = open_image("kcore", &i);
	CHECK_MAP(d, 0, i.path, { 0x1000, 0x5fff }, { PHYS_LIMIT - 0x1000, PHYS_LIMIT - 1 });
	assert_int_equal(d->info.maps[0].faults.unsorted, 1);
	assert_int_equal(d->info.maps[0].faults.overlapping, 1);
	assert_int_equal(d->info.maps[0].faults.beyond, 1);
	check_data(d, 0x1000, 0x5fff);
	CHECK_PAGE(d, PHYS_LIMIT - 0x1000, PAGE_DATA, 0);
	drv_close(d);
	image_free(&i);
}

TEST(ram_at_zero_is_ram_where_the_direct_map_agrees)
{
	const struct phdr p[] = {
		{ LOAD, 0x1000, KASLR, 0, 0x2000, 0x2000 },
		{ LOAD, 0x3000, KASLR + 0x100000, 0x100000, 0x1000, 0x1000 },
	};
	struct image i = { 0 };
	struct drv *d;

	elf_header(&i, p, ARRAY_SIZE(p));
	image_memory(&i, 0x1000, 0, 0x2000);
	image_memory(&i, 0x3000, 0x100000, 0x1000);
	d = open_image("kcore", &i);
	CHECK_MAP(d, 0, i.path, { 0, 0x1fff }, { 0x100000, 0x100fff });
	check_data(d, 0, 0x1fff);
	drv_close(d);
	image_free(&i);
}

TEST(end_of_the_file_is_an_error_of_the_page_there)
{
	struct image i = { 0 };
	struct drv *d;

	make_kcore(&i, KASLR, true);
	i.len -= 0x800;
	d = open_image("kcore", &i);
	CHECK_PAGE(d, 0x40000000, PAGE_DATA, 0);
	CHECK_PAGE(d, 0x40001000, PAGE_UNREADABLE, DRV_NO_DATA);
	drv_close(d);
	image_free(&i);
}

/* A text that somebody mounted over /proc/iomem. */
TEST(ram_that_iomem_does_not_name_is_acquired_too)
{
	static const char *const texts[] = {
		"00001000-00004bff : System RAM\n40000000-40001fff : System RAM\n",
		"00101000-00102fff : System RAM\n",
		"00001000-00003fff : System RAM\n",
	};

	for (size_t k = 0; k < ARRAY_SIZE(texts); k++) {
		_cleanup_ranges_ struct range_list lacks = { 0 };
		const struct range ram[] = { USUAL_RAM };
		struct image i = { 0 };
		struct err e = ERR_INIT;
		struct drv *d;

		use_iomem(texts[k]);
		make_kcore(&i, KASLR, true);
		d = open_image("kcore", &i);
		check_ram(d);
		assert_int_equal(d->info.n_maps, 3);
		assert_string_equal(d->info.maps[0].origin, "/proc/iomem and /proc/kcore together");
		assert_string_equal(d->info.maps[1].origin, iomem.path);
		for (size_t r = 0; r < ARRAY_SIZE(ram); r++)
			for (uint64_t at = ram[r].first; at < ram[r].last; at += PAGE_SIZE)
				assert_non_null(range_list_find(&d->info.maps[0].ranges, at));
		assert_int_equal(range_list_bytes(&d->info.maps[0].ranges), 9 * PAGE_SIZE);
		CHECK_OK(range_list_subtract(&d->info.maps[1].ranges, &d->info.maps[0].ranges,
					     &lacks, &e),
			 &e);
		assert_int_equal(lacks.count, 0);
		CHECK_HAS(d->info.odd, "are acquired, too");
		drv_close(d);
		image_free(&i);
		image_free(&iomem);
	}
	iomem_set_path("/nowhere/iomem");
}

/* Texts in the place of /proc/iomem, each another one that kcore does not bear out. */
TEST(maps_that_kcore_does_not_bear_out_cost_no_ram)
{
	/* What is acquired, in pages, of which kcore has 9; and what is said of it. */
	static const struct {
		const char *text;
		uint64_t pages;
		const char *odd, *lost;
	} lies[] = {
		/* Ends one byte too early; a page too high; what belongs to another bus. */
		{ "1000-3ffe : System RAM\n100000-103ffe : System RAM\n40000000-40001fff : System "
		  "RAM\n",
		  9, "does not name 2 pages", NULL },
		{ "2000-4fff : System RAM\n101000-104fff : System RAM\n40001000-40002fff : System "
		  "RAM\n",
		  12, "does not name 3 pages", NULL },
		{ "0-3fffffffff : PCI Bus 0000:00\n  1000-3fff : System RAM\n"
		  "  40000000-40001fff : System RAM (kmem)\n",
		  9, "does not name 4 pages", NULL },
		{ "80000000-80001fff : System RAM\n", 11, "does not name 9 pages", NULL },
		/* Cut in the middle of a line. */
		{ "1000-3fff : System RAM\n100000-103fff : System RAM\n40000000-4000", 9,
		  "does not name 2 pages", NULL },
		/* In another order, and twice: that is no other memory. */
		{ "40000000-40001fff : System RAM\n100000-103fff : System RAM\n"
		  "100000-103fff : System RAM\n1000-3fff : System RAM\n",
		  9, NULL, NULL },
		/* Without RAM: of nobody's, another file of /proc, other words, other line ends. */
		{ "", 9, "lists no System RAM; the map is that of", NULL },
		{ "Linux version 6.1.0-13-amd64 (x@y) #1 SMP\n", 9, "lists no System RAM", NULL },
		{ "1000-3fff : system ram\n100000-103fff : System  RAM\n", 9, "lists no System RAM",
		  NULL },
		{ "1000-3fff : System RAM\r\n40000000-40001fff : System RAM\r\n", 9,
		  "lists no System RAM", NULL },
		/* Backwards; all that there can be, and a part of it. */
		{ "1000-3fff : System RAM\n103fff-100000 : System RAM\n", 9, "runs backwards",
		  NULL },
		{ "0-ffffffffffffffff : System RAM\n", 9, NULL, "which is implausible" },
		{ "1000-3fff : System RAM\n100000000-100ffffffffff : System RAM\n", 9, NULL,
		  "which is implausible" },
	};

	for (size_t k = 0; k < ARRAY_SIZE(lies); k++) {
		struct image i = { 0 };
		struct drv *d;

		use_iomem(lies[k].text);
		make_kcore(&i, KASLR, true);
		d = open_image("kcore", &i);
		check_ram(d);
		assert_int_equal(range_list_bytes(&d->info.maps[0].ranges),
				 lies[k].pages * PAGE_SIZE);
		if (lies[k].odd)
			CHECK_HAS(d->info.odd, lies[k].odd);
		else
			assert_null(d->info.odd);
		if (lies[k].lost)
			CHECK_HAS(d->info.lost, lies[k].lost);
		else
			assert_null(d->info.lost);
		drv_close(d);
		image_free(&i);
		image_free(&iomem);
	}
	iomem_set_path("/nowhere/iomem");
}

/* What the rest of the system says, in a folder of its own. */
struct made_system {
	char root[TEMPORARY_MAX];
};

static void put_file(const struct made_system *s, const char *path, const char *text)
{
	char full[2 * TEMPORARY_MAX];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", s->root, path);
	for (char *slash = full + strlen(s->root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(full, 0755);
		*slash = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void made_system_init(struct made_system *s)
{
	snprintf(s->root, sizeof(s->root), "%s/ramseal-test-XXXXXX", temporary_folder());
	assert_non_null(mkdtemp(s->root));
	put_file(s, "/proc/self/mountinfo", "22 27 0:21 / /proc rw,relatime - proc proc rw\n");
	put_file(s, "/proc/zoneinfo",
		 "Node 0, zone      DMA\n  per-node stats\n      nr_free 1\n  pages free     3\n"
		 "        spanned  4095\n        present  7\n        managed  6\n"
		 "Node 0, zone   Normal\n        spanned  9\n        present  2\n");
	linux_set_system_root(s->root);
}

static void made_system_deinit(struct made_system *s)
{
	char command[2 * TEMPORARY_MAX];

	linux_set_system_root(NULL);
	snprintf(command, sizeof(command), "rm -r '%s'", s->root);
	assert_int_equal(system(command), 0);
}

static struct drv *open_in_system(struct image *i)
{
	use_iomem(usual_iomem);
	make_kcore(i, KASLR, true);
	return open_image("kcore", i);
}

static void close_in_system(struct drv *d, struct image *i)
{
	drv_close(d);
	image_free(i);
	image_free(&iomem);
	iomem_set_path("/nowhere/iomem");
}

TEST(what_the_system_says_of_its_memory_is_compared)
{
	struct made_system s;
	struct image i = { 0 };
	struct drv *d;

	made_system_init(&s);
	d = open_in_system(&i);
	assert_null(d->info.odd);
	assert_null(d->info.lost);
	close_in_system(d, &i);

	/* Mounts over single files, as of another file of /proc. */
	put_file(&s, "/proc/self/mountinfo",
		 "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
		 "60 22 0:21 /version /proc/iomem rw - proc proc rw\n"
		 "61 22 0:5 /null /proc/kpagecount rw - devtmpfs udev rw\n");
	d = open_in_system(&i);
	CHECK_HAS(d->info.odd, "/proc/iomem is not the kernel's own");
	CHECK_HAS(d->info.odd, "/proc/kpagecount is not the kernel's own");
	assert_null(strstr(d->info.odd, "/proc/kcore is"));
	close_in_system(d, &i);

	/* More pages than all maps have: some are missing, and nobody knows where. */
	put_file(&s, "/proc/self/mountinfo", "22 27 0:21 / /proc rw,relatime - proc proc rw\n");
	put_file(&s, "/proc/zoneinfo", "        present  4095\n        present  1000\n");
	d = open_in_system(&i);
	CHECK_HAS(d->info.lost, "5086 pages are not acquired");
	close_in_system(d, &i);

	/* RAM that the kernel leaves alone. */
	put_file(&s, "/proc/zoneinfo", "        present  9\n");
	put_file(&s, "/sys/firmware/memmap/0/start", "0x0\n");
	put_file(&s, "/sys/firmware/memmap/0/end", "0x103fff\n");
	put_file(&s, "/sys/firmware/memmap/0/type", "System RAM\n");
	put_file(&s, "/sys/firmware/memmap/1/start", "0x40000000\n");
	put_file(&s, "/sys/firmware/memmap/1/end", "0x5fffffff\n");
	put_file(&s, "/sys/firmware/memmap/1/type", "System RAM\n");
	put_file(&s, "/sys/firmware/memmap/2/start", "0x80000000\n");
	put_file(&s, "/sys/firmware/memmap/2/end", "0x8fffffff\n");
	put_file(&s, "/sys/firmware/memmap/2/type", "Reserved\n");
	d = open_in_system(&i);
	CHECK_HAS(d->info.odd, "firmware names 511 MiB of RAM");
	assert_null(d->info.lost);
	close_in_system(d, &i);
	made_system_deinit(&s);
}

/* Made-up flags would withhold all memory. */
TEST(flags_that_no_kernel_gives_are_not_believed)
{
	/* Of every page; what it is that is said. */
	static const struct {
		uint64_t flags;
		const char *why;
	} lies[] = {
		{ UINT64_MAX, "flags that no kernel sets" },
		{ (uint64_t)1 << 20 | 1, "flags that no kernel sets" },
		{ (uint64_t)1 << 20, "forbids every page" },
		{ (uint64_t)1 << 23, "forbids every page" },
		{ (uint64_t)1 << 19, "forbids every page" },
		{ 0, "forbids every page" }, /* of an empty file */
	};

	for (size_t k = 0; k < ARRAY_SIZE(lies); k++) {
		_cleanup_ranges_ struct range_list map = { 0 };
		struct image flags = { 0 };
		struct kpageflags f;
		struct err e = ERR_INIT;

		CHECK_OK(range_list_add(&map, 0x1000, 0x3fff, &e), &e);
		CHECK_OK(range_list_add(&map, 0x100000, 0x17ffff, &e), &e);
		for (uint64_t pfn = 0; pfn < 0x180 && lies[k].flags; pfn++)
			image_u64(&flags, pfn * 8, lies[k].flags);
		kpageflags_set_path(image_save(&flags));
		kpageflags_open(&f);
		assert_non_null(kpageflags_doubt(&f, &map, false));
		CHECK_HAS(kpageflags_doubt(&f, &map, false), lies[k].why);
		kpageflags_close(&f);
		/* With one that is readable: that can be, but not so many that are lost. */
		if (lies[k].flags == (uint64_t)1 << 23 || lies[k].flags == (uint64_t)1 << 19) {
			image_u64(&flags, 0x140 * 8, 0x2c);
			kpageflags_set_path(image_save(&flags));
			kpageflags_open(&f);
			if (lies[k].flags == (uint64_t)1 << 23)
				assert_null(kpageflags_doubt(&f, &map, false));
			else
				CHECK_HAS(kpageflags_doubt(&f, &map, false), "more pages poisoned");
			kpageflags_close(&f);
		}
		kpageflags_set_path(NULL);
		image_free(&flags);
	}
}

/* The flags of 2048 pages of RAM, page by page, as somebody may have made them up. */
static uint64_t flags_of_random(uint64_t pfn)
{
	return pfn * UINT64_C(0x9e3779b97f4a7c15) ^ pfn << 20;
}

static uint64_t flags_of_text(uint64_t pfn)
{
	return UINT64_C(0x3030303030303030) + pfn % 10; /* "00000000-..." */
}

static uint64_t flags_with_every_second_page_missing(uint64_t pfn)
{
	return pfn % 2 ? KPF_NOPAGE : 0x2c;
}

static uint64_t flags_with_pieces_of_64_kib_missing(uint64_t pfn)
{
	return pfn / 16 % 2 ? KPF_NOPAGE : 0x2c;
}

static uint64_t flags_with_a_few_poisoned(uint64_t pfn)
{
	return pfn % 64 == 3 ? KPF_HWPOISON : 0x2c;
}

static uint64_t flags_of_huge_pages_that_are_poisoned(uint64_t pfn)
{
	const uint64_t tail = pfn % 512 ? KPF_TAIL : KPF_HEAD | KPF_HWPOISON;

	return KPF_HUGE | tail;
}

static uint64_t flags_of_missing_and_given_back(uint64_t pfn)
{
	return pfn % 1024 < 512 ? KPF_NOPAGE : KPF_OFFLINE;
}

static uint64_t flags_that_exist_and_do_not(uint64_t pfn)
{
	return pfn == 1024 ? KPF_NOPAGE | KPF_OFFLINE : 0x2c;
}

/* What can be: counters (kpagecount), a section that is away, a balloon. */
static uint64_t flags_of_counters(uint64_t pfn)
{
	return pfn % 7;
}

static uint64_t flags_with_a_section_away(uint64_t pfn)
{
	return pfn / 512 == 1 ? KPF_NOPAGE : 0x2c;
}

static uint64_t flags_with_a_balloon(uint64_t pfn)
{
	return pfn % 16 ? KPF_OFFLINE : 0x2c;
}

/* Older kernels of ARM64 have such holes. */
#ifdef __x86_64__
#define LACKS_PAGES "lacks single pages"
#else
#define LACKS_PAGES NULL
#endif

TEST(flags_that_are_made_up_page_by_page)
{
	static const struct {
		uint64_t (*of)(uint64_t pfn);
		const char *why; /* NULL: that can be */
	} made[] = {
		{ flags_of_random, "flags that no kernel sets" },
		{ flags_of_text, "flags that no kernel sets" },
		{ flags_that_exist_and_do_not, "flags that no kernel sets" },
		{ flags_with_every_second_page_missing, LACKS_PAGES },
		{ flags_with_pieces_of_64_kib_missing, LACKS_PAGES },
		{ flags_with_a_few_poisoned, "where the kernel counts none" },
		{ flags_of_huge_pages_that_are_poisoned, "forbids every page" },
		{ flags_of_missing_and_given_back, "forbids every page" },
		{ flags_of_counters, NULL },
		{ flags_with_a_section_away, NULL },
		{ flags_with_a_balloon, NULL },
	};
	struct made_system s;

	made_system_init(&s);
	put_file(&s, "/proc/meminfo", "MemTotal: 8192 kB\nHardwareCorrupted:     0 kB\n");
	for (size_t k = 0; k < ARRAY_SIZE(made); k++) {
		_cleanup_ranges_ struct range_list map = { 0 };
		struct image flags = { 0 };
		struct kpageflags f;
		struct err e = ERR_INIT;
		const char *why;

		CHECK_OK(range_list_add(&map, 0, 2048 * PAGE_SIZE - 1, &e), &e);
		for (uint64_t pfn = 0; pfn < 2048; pfn++)
			image_u64(&flags, pfn * 8, made[k].of(pfn));
		kpageflags_set_path(image_save(&flags));
		kpageflags_open(&f);
		why = kpageflags_doubt(&f, &map, true);
		if (made[k].why)
			CHECK_HAS(why, made[k].why);
		else
			assert_null(why);
		/* The kernel counts some, too. */
		if (made[k].of == flags_with_a_few_poisoned) {
			put_file(&s, "/proc/meminfo", "HardwareCorrupted:    128 kB\n");
			assert_null(kpageflags_doubt(&f, &map, true));
			put_file(&s, "/proc/meminfo", "HardwareCorrupted:     0 kB\n");
		}
		kpageflags_close(&f);
		kpageflags_set_path(NULL);
		image_free(&flags);
	}
	made_system_deinit(&s);
}

/* Of a file that ends too early, all memory behind its end would be no memory. */
TEST(flags_that_end_before_kcore_does_are_not_believed)
{
	static const uint64_t ends[] = { 0x40002, 0x40001, 0x104, 0x20000 };

	for (size_t k = 0; k < ARRAY_SIZE(ends); k++) {
		struct image i = { 0 }, flags = { 0 };
		struct drv *d;

		image_u64(&flags, (ends[k] - 1) * 8, 0x2c);
		kpageflags_set_path(image_save(&flags));
		make_kcore(&i, KASLR, true);
		d = open_image("kcore", &i);
		kpageflags_set_path(NULL);
		assert_int_equal(d->info.withholds, !k);
		if (k)
			CHECK_HAS(d->info.odd, "/proc/kpageflags ends before the memory does");
		else
			assert_null(d->info.odd);
		check_ram(d);
		drv_close(d);
		image_free(&i);
		image_free(&flags);
	}
}

/* Whoever opens one waits for a writer. */
TEST(nobody_waits_for_a_fifo_in_the_place_of_a_file)
{
	struct made_system s;
	struct image i = { 0 };
	char path[2 * TEMPORARY_MAX];
	struct drv *d;

	made_system_init(&s);
	snprintf(path, sizeof(path), "%s/proc/zoneinfo", s.root);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	kpageflags_set_path(path);
	d = open_in_system(&i);
	check_ram(d);
	kpageflags_set_path(NULL);
	close_in_system(d, &i);
	made_system_deinit(&s);
}

/* What mountinfo does not say, as something is mounted over that, too. /proc is a mount. */
TEST(mounts_are_told_without_mountinfo)
{
	struct made_system s;
	struct image i = { 0 };
	char path[2 * TEMPORARY_MAX];
	struct drv *d;

	made_system_init(&s);
	snprintf(path, sizeof(path), "%s/proc/iomem", s.root);
	assert_int_equal(symlink("/proc", path), 0);
	d = open_in_system(&i);
	CHECK_HAS(d->info.odd, "/proc/iomem is not the kernel's own");
	assert_null(strstr(d->info.odd, "/proc/kcore is"));
	close_in_system(d, &i);
	made_system_deinit(&s);
}

TEST(memory_is_read_in_spite_of_such_flags)
{
	struct image i = { 0 }, flags = { 0 };
	struct drv *d;

	for (uint64_t k = 0; k < 0x40010 * 8; k += 4096)
		image_u64(&flags, k + 4088, UINT64_MAX);
	for (uint64_t k = 0; k < flags.len; k++)
		flags.at[k] = 0xff;
	kpageflags_set_path(image_save(&flags));
	make_kcore(&i, KASLR, true);
	d = open_image("kcore", &i);
	kpageflags_set_path(NULL);
	check_ram(d);
	CHECK_HAS(d->info.odd, "/proc/kpageflags has flags that no kernel sets, so it is ignored");
	assert_true(d->info.silent && !d->info.withholds);
	drv_close(d);
	image_free(&i);
	image_free(&flags);
}

TEST(vmcoreinfo_tells_where_the_kernel_is)
{
	static const char info[] = "SYMBOL(_stext)=ffffffff9e000000\n"
				   "SYMBOL(init_top_pgt)=ffffffff9f610000\n"
				   "NUMBER(phys_base)=4194304\n";
	struct image i = { 0 };
	struct drv *d;

	make_kcore(&i, KASLR, true);
	image_u64(&i, 64 + 32, elf_note(&i, 0x800, "VMCOREINFO", info, sizeof(info) - 1) - 0x800);
	d = open_image("kcore", &i);
	assert_true(d->info.has_kernel_base && d->info.has_kernel_phys && d->info.has_cr3);
	assert_int_equal(d->info.kernel_base, 0xffffffff9e000000);
	assert_int_equal(d->info.kernel_phys, 0x1e400000);
	assert_int_equal(d->info.cr3, 0x1fa10000);
	assert_int_equal(d->info.notes_size, 12 + 12 + (sizeof(info) - 1 + 3) / 4 * 4);
	drv_close(d);
	image_free(&i);
}

/*
 * The tables of a small kernel whose direct map is that of make_kcore(), in its last RAM: all of
 * the first 2 MiB are mapped by single pages, the rest in blocks. Every page that can be told has
 * kpageflags, so that nothing else is unknown.
 */
enum { ROOT = 0x40000000, PUDS = 0x40001000, PMDS = 0x102000, PTES = 0x103000 };

static void put_entry(struct image *i, uint64_t table, size_t index, uint64_t entry)
{
	const uint64_t offset = table >= ROOT ? 0xc000 + table - ROOT : 0x8000 + table - 0x100000;

	image_u64(i, offset + index * 8, entry);
}

static const uint64_t table_pages[] = { ROOT, PUDS, PMDS, PTES };

static void make_mapped_kcore(struct image *i)
{
	static const char info[] = "SYMBOL(_stext)=ffffffff9e000000\n"
				   "SYMBOL(init_top_pgt)=ffffffffa0000000\n"
				   "NUMBER(phys_base)=536870912\n"
				   "NUMBER(pgtable_l5_enabled)=0\n";

	make_kcore(i, KASLR, true);
	image_u64(i, 64 + 32, elf_note(i, 0x800, "VMCOREINFO", info, sizeof(info) - 1) - 0x800);
	for (size_t t = 0; t < ARRAY_SIZE(table_pages); t++)
		for (size_t k = 0; k < 512; k++)
			put_entry(i, table_pages[t], k, 0);
	put_entry(i, ROOT, KASLR >> 39 & 511, PUDS | 1);
	put_entry(i, PUDS, KASLR >> 30 & 511, PMDS | 1);
	put_entry(i, PUDS, (KASLR >> 30 & 511) + 1, 0x40000000 | 0x81);
	put_entry(i, PMDS, 0, PTES | 1);
	for (uint64_t k = 0; k < 512; k++)
		put_entry(i, PTES, k, k << PAGE_SHIFT | 1);
}

static void flag(struct image *flags, uint64_t pfn, unsigned bit)
{
	image_u64(flags, pfn * 8, (uint64_t)1 << bit);
}

/* kcore gives zeros for such pages, or before 5.14 reads them: they are not asked for. */
TEST(pages_that_must_not_be_read_are_not)
{
	struct image i = { 0 }, flags = { 0 };
	struct page_status s[4];
	uint8_t buf[4 * PAGE_SIZE];
	struct err e = ERR_INIT;
	struct drv *d;

	image_put(&flags, 0x40002 * 8, "", 0);
	flag(&flags, 0x1, 19);   /* poisoned */
	flag(&flags, 0x100, 19); /* poisoned */
	flag(&flags, 0x101, 23); /* offline */
	flag(&flags, 0x103, 20); /* no page */
	kpageflags_set_path(image_save(&flags));
	make_kcore(&i, KASLR, true);
	memset(i.at + 0x8000, 0, 4 * PAGE_SIZE);
	d = open_image("kcore", &i);
	kpageflags_set_path(NULL);
	assert_true(d->info.withholds);
	CHECK_HAS(d->info.note, "direct map");
	CHECK_PAGE(d, 0x1000, PAGE_UNREADABLE, EHWPOISON);
	check_data(d, 0x2000, 0x3fff);
	check_data(d, 0x40000000, 0x40001fff);
	CHECK_OK(drv_read_pages(d, 0x100000, buf, 4, s, &e), &e);
	assert_int_equal(s[0].state, PAGE_UNREADABLE);
	assert_int_equal(s[0].detail, EHWPOISON);
	assert_int_equal(s[1].state, PAGE_SKIPPED);
	assert_int_equal(s[1].detail, SKIP_NOT_MAPPED);
	assert_int_equal(s[2].state, PAGE_DATA);
	assert_true(bytes_are_zero(buf + 2 * PAGE_SIZE, PAGE_SIZE));
	assert_int_equal(s[3].state, PAGE_SKIPPED);
	drv_close(d);
	image_free(&i);
	image_free(&flags);
}

static void use_no_flags(struct image *flags)
{
	image_put(flags, 0x40002 * 8, "", 0);
	kpageflags_set_path(image_save(flags));
}

/* As a kernel has it whose file lacks the note; it says where in RAM that lies. */
TEST(note_of_an_older_kernel_is_found_in_ram)
{
	static const char info[] = "SYMBOL(phys_base)=ffffffff9e001008\n"
				   "SYMBOL(init_level4_pgt)=ffffffffa0000000\n";
	struct image i = { 0 }, flags = { 0 }, sysfs = { 0 };
	struct drv *d;
	size_t end;

	use_no_flags(&flags);
	make_mapped_kcore(&i);
	image_u64(&i, 64 + 32, 0);
	/* At 0x100fa0, over the end of its page; phys_base in the image, which is at 0x1000. */
	end = elf_note(&i, 0x8fa0, "VMCOREINFO", info, sizeof(info) - 1);
	assert_true(end > 0x9000);
	image_u64(&i, 0x2008, 0x20000000);
	image_text(&sysfs, "100fa0 1000\n");
	linux_set_vmcoreinfo_path(image_save(&sysfs));
	d = open_image("kcore", &i);
	assert_true(d->info.has_cr3);
	assert_int_equal(d->info.cr3, 0x40000000);
	assert_true(d->info.finds_holes);
	assert_false(d->info.silent);
	drv_close(d);
	image_free(&sysfs);

	/* What it says makes no sense. */
	static const char *const nonsense[] = { "",
						"x",
						"100fa0",
						"100fa0 0",
						"100fa0 fffff",
						"ffffffffff00 400",
						"fffffffffffff000 400",
						"101000 400" };

	for (size_t k = 0; k < ARRAY_SIZE(nonsense); k++) {
		sysfs = (struct image){ 0 };
		image_text(&sysfs, nonsense[k]);
		linux_set_vmcoreinfo_path(image_save(&sysfs));
		d = open_image("kcore", &i);
		assert_false(d->info.has_cr3);
		assert_true(d->info.silent);
		drv_close(d);
		image_free(&sysfs);
	}
	linux_set_vmcoreinfo_path(NULL);
	kpageflags_set_path(NULL);
	image_free(&i);
	image_free(&flags);
}

static void check_zero(struct drv *d, uint64_t addr, uint32_t state, uint32_t detail)
{
	uint8_t page[PAGE_SIZE];
	struct page_status s;
	struct err e = ERR_INIT;

	for (unsigned n = 0; n < 2; n++) {
		CHECK_OK(n ? drv_read_pages_beside(d, n, addr, page, 1, &s, &e)
			   : drv_read_pages(d, addr, page, 1, &s, &e),
			 &e);
		assert_int_equal(s.state, state);
		assert_int_equal(s.detail, detail);
		if (state == PAGE_DATA)
			assert_true(bytes_are_zero(page, PAGE_SIZE));
	}
}

/*
 * ARM64 with pages of 4 KiB and addresses of 48 bits. RAM begins at 0; the kernel's text comes
 * first, shows the head of the image as zeros, and lies within the area of vmalloc.
 */
#define ARM64_LINEAR UINT64_C(0xffff331200000000)
#define ARM64_TEXT   UINT64_C(0xffffb3e7c8900000)

static const char arm64_info[] = "PAGESIZE=4096\n"
				 "SYMBOL(_stext)=ffffb3e7c8901000\n"
				 "SYMBOL(swapper_pg_dir)=ffffb3e808800000\n"
				 "NUMBER(VA_BITS)=48\n"
				 "NUMBER(TCR_EL1_T1SZ)=0x10\n"
				 "NUMBER(kimage_voffset)=0xffffb3e7c8800000\n";

static void make_arm64_kcore(struct image *i, const char *info)
{
	const struct phdr p[] = {
		{ NOTE, 0x800, 0, 0, 0, 0 },
		{ LOAD, 0x1000, ARM64_TEXT, 0x100000, 0x2000, 0x2000 },
		{ LOAD, 0x1000, 0xffff800010000000, NO_ADDR, (uint64_t)100 << 40,
		  (uint64_t)100 << 40 },
		{ LOAD, 0x4000, ARM64_LINEAR, 0, 0x3000, 0x3000 },
		{ LOAD, 0x8000, ARM64_LINEAR + 0x100000, 0x100000, 0x4000, 0x4000 },
		{ LOAD, 0xc000, ARM64_LINEAR + 0x40000000, 0x40000000, 0x2000, 0x2000 },
	};
	const uint8_t zeros[PAGE_SIZE] = { 0 };

	elf_header(i, p, ARRAY_SIZE(p));
	image_u16(i, 18, 183);
	image_put(i, 0x1000, zeros, sizeof(zeros));
	image_memory(i, 0x2000, 0x101000, 0x1000);
	image_memory(i, 0x4000, 0, 0x3000);
	image_memory(i, 0x8000, 0x100000, 0x4000);
	image_memory(i, 0xc000, 0x40000000, 0x2000);
	if (info)
		image_u64(i, 64 + 32, elf_note(i, 0x800, "VMCOREINFO", info, strlen(info)) - 0x800);
}

#define ARM64_RAM { 0, 0x2fff }, { 0x100000, 0x103fff }, { 0x40000000, 0x40001fff }

/* With VMCOREINFO and, as kernels before 4.19 have it, without. */
TEST(arm64_is_read_through_its_linear_map)
{
	for (int told = 0; told < 2; told++) {
		struct image i = { 0 };
		struct drv *d;

		make_arm64_kcore(&i, told ? arm64_info : NULL);
		d = open_image("kcore", &i);
		CHECK_MAP(d, 0, i.path, ARM64_RAM);
		check_data(d, 0, 0x2fff);
		check_data(d, 0x100000, 0x103fff);
		check_data(d, 0x40000000, 0x40001fff);
		assert_true(d->info.has_direct_map);
		assert_int_equal(d->info.direct_map, ARM64_LINEAR);
		assert_true(d->info.has_machine);
		assert_int_equal(d->info.machine.arch, ARCH_ARM64);
		if (told)
			assert_int_equal(d->info.machine.page_size, 4096);
		assert_true(d->info.has_kernel_base);
		assert_int_equal(d->info.kernel_base, ARM64_TEXT + (told ? 0x1000 : 0));
		assert_true(d->info.has_kernel_phys);
		assert_int_equal(d->info.kernel_phys, told ? 0x101000 : 0x100000);
		assert_int_equal(d->info.has_cr3, told);
		if (told)
			assert_int_equal(d->info.cr3, ROOT);
		drv_close(d);
		image_free(&i);
	}
}

/* It is placed by itself, and nothing else says where the linear map begins. */
TEST(arm64_keeps_ram_at_zero_that_is_all_there_is)
{
	const struct phdr p[] = {
		{ LOAD, 0x1000, ARM64_TEXT, 0x1000, 0x1000, 0x1000 },
		{ LOAD, 0x4000, ARM64_LINEAR, 0, 0x3000, 0x3000 },
	};
	struct image i = { 0 };
	struct drv *d;

	elf_header(&i, p, ARRAY_SIZE(p));
	image_u16(&i, 18, 183);
	image_memory(&i, 0x4000, 0, 0x3000);
	d = open_image("kcore", &i);
	CHECK_MAP(d, 0, i.path, { 0, 0x2fff });
	check_data(d, 0, 0x2fff);
	assert_int_equal(d->info.direct_map, ARM64_LINEAR);
	drv_close(d);
	image_free(&i);
}

TEST(arm64_before_4_11_has_no_addresses)
{
	const struct phdr p[] = {
		{ LOAD, 0x1000, ARM64_TEXT, 0, 0x1000, 0x1000 },
		{ LOAD, 0x4000, OLD, 0, 0x3000, 0x3000 },
	};
	struct image i = { 0 };

	elf_header(&i, p, ARRAY_SIZE(p));
	image_u16(&i, 18, 183);
	image_memory(&i, 0x4000, 0, 0x3000);
	refuse_image("kcore", &i, ST_NO_SOURCE, "no physical address");
}

/* The tables of make_mapped_kcore(), with a level more. */
TEST(holes_of_arm64s_linear_map_are_no_zeros)
{
	static const uint64_t how = 0x403; /* accessed; a table, and a page in the last level */
	struct image i = { 0 }, flags = { 0 };
	struct drv *d;

	use_no_flags(&flags);
	make_arm64_kcore(&i, arm64_info);
	for (size_t t = 0; t < ARRAY_SIZE(table_pages); t++)
		for (size_t k = 0; k < 512; k++)
			put_entry(&i, table_pages[t], k, 0);
	put_entry(&i, ROOT, ARM64_LINEAR >> 39 & 511, PUDS | how);
	put_entry(&i, PUDS, ARM64_LINEAR >> 30 & 511, PMDS | how);
	put_entry(&i, PUDS, (ARM64_LINEAR >> 30 & 511) + 1, 0x40000000 | 0x401);
	put_entry(&i, PMDS, ARM64_LINEAR >> 21 & 511, PTES | how);
	for (uint64_t k = 0; k < 512; k++)
		put_entry(&i, PTES, k, k << PAGE_SHIFT | how);
	memset(i.at + 0x4000, 0, 2 * PAGE_SIZE);
	put_entry(&i, PTES, 1, UINT64_C(1) << PAGE_SHIFT | (how & ~UINT64_C(1)));
	d = open_image("kcore", &i);
	assert_true(d->info.finds_holes);
	assert_false(d->info.silent);
	check_zero(d, 0, PAGE_DATA, 0);
	check_zero(d, 0x1000, PAGE_UNREADABLE, DRV_UNMAPPED);
	check_data(d, 0x2000, 0x2fff);
	check_data(d, 0x100000, 0x101fff);
	drv_close(d);
	kpageflags_set_path(NULL);
	image_free(&i);
	image_free(&flags);
}

/* memfd_secret: the kernel gives zeros for such pages, and nothing but its tables says so. */
TEST(holes_of_the_direct_map_are_no_zeros)
{
	struct image i = { 0 }, flags = { 0 };
	struct drv_withheld w = { 0 };
	struct err e = ERR_INIT;
	struct drv *d;

	use_no_flags(&flags);
	make_mapped_kcore(&i);
	memset(i.at + 0x4000, 0, 3 * PAGE_SIZE); /* 0x1000-0x3fff */
	put_entry(&i, PTES, 2, 0);
	put_entry(&i, PTES, 0x100, 0);
	d = open_image("kcore", &i);
	assert_true(d->info.finds_holes);
	assert_false(d->info.silent);
	assert_null(d->info.note);
	check_zero(d, 0x1000, PAGE_DATA, 0);
	check_zero(d, 0x3000, PAGE_DATA, 0);
	check_zero(d, 0x2000, PAGE_UNREADABLE, DRV_UNMAPPED);
	CHECK_PAGE(d, 0x100000, PAGE_DATA, 0); /* has content, and so was mapped */
	check_data(d, 0x101000, 0x101fff);
	CHECK_OK(drv_withheld(d, &w, &e), &e);
	assert_true(w.known && w.holes_known);
	assert_int_equal(w.holes.count, 2);
	assert_int_equal(w.holes.at[0].first, 0x2000);
	assert_int_equal(w.holes.at[0].last, 0x2fff);
	assert_int_equal(w.holes.at[1].first, 0x100000);
	assert_int_equal(w.holes.at[1].last, 0x100fff);
	drv_withheld_deinit(&w);
	kpageflags_set_path(NULL);
	drv_close(d);
	image_free(&i);
	image_free(&flags);
}

/* A page that is poisoned is no hole, too; where tables are missing, nobody knows. */
TEST(holes_are_told_once_and_only_where_tables_tell)
{
	struct image i = { 0 }, flags = { 0 };
	struct drv_withheld w = { 0 };
	struct err e = ERR_INIT;
	struct drv *d;

	use_no_flags(&flags);
	flag(&flags, 2, 19);
	kpageflags_set_path(image_save(&flags));
	make_mapped_kcore(&i);
	memset(i.at + 0x4000, 0, 3 * PAGE_SIZE);
	put_entry(&i, PTES, 2, 0);
	put_entry(&i, PTES, 3, 0);
	d = open_image("kcore", &i);
	check_zero(d, 0x1000, PAGE_DATA, 0);
	check_zero(d, 0x2000, PAGE_UNREADABLE, DRV_POISONED);
	check_zero(d, 0x3000, PAGE_UNREADABLE, DRV_UNMAPPED);
	CHECK_OK(drv_withheld(d, &w, &e), &e);
	assert_int_equal(w.holes.count, 1);
	assert_int_equal(w.holes.at[0].first, 0x3000);
	drv_withheld_deinit(&w);
	drv_close(d);

	put_entry(&i, PUDS, (KASLR >> 30 & 511) + 1, 0);
	d = open_image("kcore", &i);
	assert_false(d->info.finds_holes);
	assert_true(d->info.silent);
	CHECK_HAS(d->info.note, "memfd_secret");
	check_zero(d, 0x3000, PAGE_DATA, 0);
	CHECK_OK(drv_withheld(d, &w, &e), &e);
	assert_true(w.known);
	assert_false(w.holes_known);
	drv_withheld_deinit(&w);
	drv_close(d);
	kpageflags_set_path(NULL);
	image_free(&i);
	image_free(&flags);
}

static void save_again(const struct image *i)
{
	FILE *f = fopen(i->path, "r+");

	assert_non_null(f);
	assert_int_equal(fwrite(i->at, 1, i->len, f), i->len);
	assert_int_equal(fclose(f), 0);
}

/*
 * Memory is added, somebody opens the file, and there is one header more than fits its page: every
 * offset has moved by a page.
 */
TEST(offsets_that_move_under_the_reader_are_found_again)
{
	const struct phdr before[] = { { LOAD, 0x2000, KASLR + 0x1000, 0x1000, 0x3000, 0x3000 } };
	const struct phdr after[] = {
		{ LOAD, 0x3000, KASLR + 0x1000, 0x1000, 0x3000, 0x3000 },
		{ LOAD, 0x6000, KASLR + 0x40000000, 0x40000000, 0x2000, 0x2000 },
	};
	struct image i = { 0 };
	struct drv_maps maps = { 0 };
	struct err e = ERR_INIT;
	struct drv *d;

	elf_header(&i, before, 1);
	image_memory(&i, 0x2000, 0x1000, 0x3000);
	image_put(&i, 0x8000, "", 0);
	d = open_image("kcore", &i);
	check_data(d, 0x1000, 0x3fff);
	elf_header(&i, after, 2);
	image_memory(&i, 0x3000, 0x1000, 0x3000);
	image_memory(&i, 0x6000, 0x40000000, 0x2000);
	save_again(&i);
	check_data(d, 0x1000, 0x3fff);

	/* And what was added is told when it is asked for. */
	CHECK_OK(drv_maps_again(d, &maps, &e), &e);
	assert_int_equal(maps.count, 1);
	assert_string_equal(maps.at[0].origin, i.path);
	assert_int_equal(maps.at[0].ranges.count, 2);
	assert_int_equal(maps.at[0].ranges.at[1].first, 0x40000000);
	drv_maps_deinit(&maps);

	/* A file that is none any more is no source. */
	memset(i.at, 0, 64);
	save_again(&i);
	CHECK_STATUS(drv_read_pages(d, 0x1000, (uint8_t[PAGE_SIZE]){ 0 }, 1,
				    &(struct page_status){ 0 }, &e),
		     ST_SOURCE_FAILED, &e);
	CHECK_HAS(e.message, "headers");
	drv_close(d);
	image_free(&i);
}

static size_t count_descriptors_of(const char *path)
{
	DIR *fds = opendir("/proc/self/fd");
	size_t ret = 0;

	assert_non_null(fds);
	for (struct dirent *at; (at = readdir(fds));) {
		char to[PATH_MAX];
		const ssize_t n = readlinkat(dirfd(fds), at->d_name, to, sizeof(to));

		ret += n == (ssize_t)strlen(path) && !memcmp(to, path, (size_t)n);
	}
	closedir(fds);
	return ret;
}

static void check_data_beside(struct drv *d, unsigned reader, uint64_t addr)
{
	uint8_t got[PAGE_SIZE], want[PAGE_SIZE];
	struct page_status s;
	struct err e = ERR_INIT;

	CHECK_OK(drv_read_pages_beside(d, reader, addr, got, 1, &s, &e), &e);
	assert_int_equal(s.state, PAGE_DATA);
	pattern(want, addr, sizeof(want));
	assert_memory_equal(got, want, sizeof(got));
}

/* The kernel has a buffer for each descriptor, and no lock for it. */
TEST(each_reader_has_a_descriptor_of_its_own)
{
	struct image i = { 0 };
	struct drv *d;

	make_kcore(&i, KASLR, true);
	d = open_image("kcore", &i);
	assert_non_null(d->info.parallel);
	assert_int_equal(count_descriptors_of(i.path), 1);
	for (unsigned n = 0; n < 3; n++) {
		check_data_beside(d, n, 0x100000);
		assert_int_equal(count_descriptors_of(i.path), 2 + n);
		check_data_beside(d, n, 0x40000000);
		assert_int_equal(count_descriptors_of(i.path), 2 + n);
	}
	/* Who can have none reads by the first, and not at all less. */
	assert_int_equal(unlink(i.path), 0);
	check_data_beside(d, 3, 0x1000);
	check_data_beside(d, 0, 0x1000);
	drv_close(d);
	image_free(&i);
}

TEST(offsets_that_move_are_found_again_by_each_reader)
{
	const struct phdr before[] = { { LOAD, 0x2000, KASLR + 0x1000, 0x1000, 0x3000, 0x3000 } };
	const struct phdr after[] = {
		{ LOAD, 0x3000, KASLR + 0x1000, 0x1000, 0x3000, 0x3000 },
		{ LOAD, 0x6000, KASLR + 0x40000000, 0x40000000, 0x2000, 0x2000 },
	};
	struct image i = { 0 };
	struct drv *d;

	elf_header(&i, before, 1);
	image_memory(&i, 0x2000, 0x1000, 0x3000);
	image_put(&i, 0x8000, "", 0);
	d = open_image("kcore", &i);
	check_data_beside(d, 0, 0x1000);
	check_data_beside(d, 1, 0x2000);
	elf_header(&i, after, 2);
	image_memory(&i, 0x3000, 0x1000, 0x3000);
	save_again(&i);
	for (unsigned n = 0; n < 3; n++)
		check_data_beside(d, n, 0x3000);
	check_data(d, 0x1000, 0x3fff);
	drv_close(d);
	image_free(&i);
}

/* Container engines bind /dev/null over it. */
TEST(kcore_that_is_masked_is_told_from_none)
{
	struct err e = ERR_INIT;
	struct drv *d = NULL;

	CHECK_STATUS(drv_open("kcore:/dev/null", &d, &e), ST_NO_PRIVILEGE, &e);
	CHECK_HAS(e.message, "masked");
}

/* systemd puts an empty file over it. */
TEST(a_mask_is_a_device_or_an_empty_file)
{
	struct image i = { 0 };

	assert_true(drv_kcore_is_masked(image_save(&i)));
	image_free(&i);
	i = (struct image){ 0 };
	refuse_image("kcore", &i, ST_NO_PRIVILEGE, "masked");
	assert_true(drv_kcore_is_masked("/dev/null"));
	assert_false(drv_kcore_is_masked("/proc/self/exe"));
	assert_false(drv_kcore_is_masked("/proc/self/exe/none"));
	assert_false(drv_kcore_is_masked("/dev"));
}

/* AVML's heuristic: under lockdown some kernels show a file of one page. */
TEST(kcore_without_ram_speaks_of_lockdown)
{
	const struct phdr p = { NOTE, 120, 0, 0, 0, 0 };
	const struct phdr no_ram[] = {
		{ LOAD, 0x1000, TEXT, 0x1000000, 0x1000, 0x1000 },
		{ LOAD, 0x1000, 0xffffc90000000000, NO_ADDR, 0x1000, 0x1000 },
	};
	struct image i = { 0 };

	elf_header(&i, &p, 1), image_put(&i, 4096, "", 0);
	refuse_image("kcore", &i, ST_NO_PRIVILEGE, "lockdown");
	elf_header(&i, no_ram, 2);
	refuse_image("kcore", &i, ST_NO_PRIVILEGE, "lockdown");
}

TEST(what_is_no_kcore_is_refused)
{
	struct err e = ERR_INIT;
	struct drv *d = NULL;
	struct image i = { 0 };

	image_put(&i, 8192, "", 0);
	refuse_image("kcore", &i, ST_NO_SOURCE, "not an ELF file");
	elf_header(&i, NULL, 0), image_u16(&i, 18, 40);
	refuse_image("kcore", &i, ST_INPUT, "machine 40");
	CHECK_STATUS(drv_open("kcore:/nowhere/kcore", &d, &e), ST_NO_SOURCE, &e);
}

#define KCORE_TEST(name) cmocka_unit_test_setup_teardown(name, no_iomem, no_iomem)

int main(void)
{
	const struct CMUnitTest tests[] = {
		KCORE_TEST(kernel_since_4_11_is_read_by_p_paddr),
		KCORE_TEST(without_iomem_the_segments_are_the_map),
		KCORE_TEST(hidden_iomem_is_as_good_as_none),
		KCORE_TEST(ram_that_kcore_lacks_is_seen_to_be_missing),
		KCORE_TEST(kernel_before_4_11_is_read_without_kaslr),
		KCORE_TEST(kernel_before_4_11_is_read_wherever_kaslr_put_it),
		KCORE_TEST(kernel_before_4_11_without_iomem_is_read_at_the_fixed_base_only),
		KCORE_TEST(iomem_of_another_machine_fits_no_base),
		KCORE_TEST(segments_that_overlap_are_read_once),
		KCORE_TEST(ram_at_zero_is_ram_where_the_direct_map_agrees),
		KCORE_TEST(end_of_the_file_is_an_error_of_the_page_there),
		KCORE_TEST(maps_that_kcore_does_not_bear_out_cost_no_ram),
		KCORE_TEST(ram_that_iomem_does_not_name_is_acquired_too),
		KCORE_TEST(what_the_system_says_of_its_memory_is_compared),
		KCORE_TEST(flags_that_no_kernel_gives_are_not_believed),
		KCORE_TEST(flags_that_are_made_up_page_by_page),
		KCORE_TEST(flags_that_end_before_kcore_does_are_not_believed),
		KCORE_TEST(nobody_waits_for_a_fifo_in_the_place_of_a_file),
		KCORE_TEST(mounts_are_told_without_mountinfo),
		KCORE_TEST(memory_is_read_in_spite_of_such_flags),
		KCORE_TEST(vmcoreinfo_tells_where_the_kernel_is),
		KCORE_TEST(pages_that_must_not_be_read_are_not),
		KCORE_TEST(note_of_an_older_kernel_is_found_in_ram),
		KCORE_TEST(arm64_is_read_through_its_linear_map),
		KCORE_TEST(arm64_keeps_ram_at_zero_that_is_all_there_is),
		KCORE_TEST(arm64_before_4_11_has_no_addresses),
		KCORE_TEST(holes_of_arm64s_linear_map_are_no_zeros),
		KCORE_TEST(holes_of_the_direct_map_are_no_zeros),
		KCORE_TEST(holes_are_told_once_and_only_where_tables_tell),
		KCORE_TEST(offsets_that_move_under_the_reader_are_found_again),
		KCORE_TEST(each_reader_has_a_descriptor_of_its_own),
		KCORE_TEST(offsets_that_move_are_found_again_by_each_reader),
		KCORE_TEST(kcore_that_is_masked_is_told_from_none),
		KCORE_TEST(a_mask_is_a_device_or_an_empty_file),
		KCORE_TEST(kcore_without_ram_speaks_of_lockdown),
		KCORE_TEST(what_is_no_kcore_is_refused),
	};

	return cmocka_run_group_tests_name("kcore", tests, NULL, NULL);
}
