/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include "driver-interface/extents.h"
#include "tests/unit/drv_check.h"

#define LOAD 1
#define NOTE 4

TEST(raw_file_is_one_range)
{
	struct image i = { 0 };
	struct drv *d;
	size_t count = 0;

	image_memory(&i, 0, 0, 9 * PAGE_SIZE);
	d = open_image("file", &i);
	CHECK_MAP(d, 0, "file size", { 0, 9 * PAGE_SIZE - 1 });
	drv_note_parts(d, true);
	check_data(d, 0, 9 * PAGE_SIZE - 1);
	CHECK_PAGE(d, 9 * PAGE_SIZE, PAGE_SKIPPED, SKIP_NOT_MAPPED);
	assert_null(d->info.note);
	assert_string_equal(drv_parts(d, &count)[0].source, "file");
	assert_int_equal(count, 1);
	assert_int_equal(drv_parts(d, &count)[0].range.first, 0);
	assert_int_equal(drv_parts(d, &count)[0].range.last, 9 * PAGE_SIZE - 1);
	drv_close(d);
	image_free(&i);
}

TEST(part_of_a_page_at_the_end_of_a_raw_file_is_unreadable_and_told)
{
	struct image i = { 0 };
	struct drv *d;

	image_memory(&i, 0, 0, 2 * PAGE_SIZE + 100);
	d = open_image("file", &i);
	CHECK_MAP(d, 0, "file size", { 0, 3 * PAGE_SIZE - 1 });
	assert_int_equal(d->info.maps[0].faults.partial, 1);
	CHECK_HAS(d->info.note, "only partly in the file are unreadable: 1");
	assert_null(d->info.lost);
	check_data(d, 0, 2 * PAGE_SIZE - 1);
	CHECK_PAGE(d, 2 * PAGE_SIZE, PAGE_UNREADABLE, DRV_NO_DATA);
	drv_close(d);
	image_free(&i);
}

/* Bytes at a place of a file that is zeros otherwise, and what it is called then. */
struct begin {
	size_t offset;
	const char *bytes;
	size_t len;
	const char *name;
};

#define BEGIN(offset, bytes, name) { offset, bytes, sizeof(bytes) - 1, name }

static void put_begin(struct image *i, const struct begin *b)
{
	image_put(i, 17 * PAGE_SIZE, "", 0);
	image_put(i, b->offset, b->bytes, b->len);
}

TEST(files_that_are_no_memory_are_named)
{
	static const struct begin begins[] = {
		BEGIN(0, "\x1f\x8b\x08\x00\x11\x22\x33\x44\x00\x03", "a gzip file"),
		BEGIN(0, "\x28\xb5\x2f\xfd", "a zstd file"),
		BEGIN(0, "\xfd\x37\x7a\x58\x5a\x00", "an xz file"),
		BEGIN(0, "BZh91AY&SY", "a bzip2 file"),
		BEGIN(0, "\x04\x22\x4d\x18", "an LZ4 file"),
		BEGIN(0, "PK\x03\x04", "a zip file"),
		BEGIN(0, "7z\xbc\xaf\x27\x1c", "a 7z archive"),
		BEGIN(0, "Rar!\x1a\x07\x01", "a RAR archive"),
		BEGIN(257, "ustar", "a tar archive"),
		BEGIN(0, "PAGEDUMP", "a 32-bit Windows crash dump"),
		BEGIN(0, "PAGEDU65", "a damaged signature"),
		BEGIN(0, "MDMP\x93\xa7", "a minidump"),
		BEGIN(0, "hibr", "hibernation file"),
		BEGIN(0, "HIBR", "hibernation file"),
		BEGIN(0, "WAKE", "hibernation file"),
		BEGIN(0, "RSTR", "hibernation file"),
		BEGIN(7 * PAGE_SIZE, "\x81\x81xpress", "left of a Windows hibernation file"),
		BEGIN(0, "DISKDUMP", "a diskdump"),
		BEGIN(0, "\xed\x23\x8f\x61\x73\x01\x19\xa8", "an LKCD dump"),
		BEGIN(0, "HPAK", "HPAK"),
		BEGIN(0, "\xcf\xfa\xed\xfe", "a Mach-O file"),
		BEGIN(0, "QEVM", "dump-guest-memory"),
		BEGIN(0, "LibvirtQemudSave", "libvirt"),
		BEGIN(0, "Xen saved domain, xl format\n \0 \r", "xl dump-core"),
		BEGIN(0, "\xd2\xbe\xd2\xbe", "a VMware snapshot"),
		BEGIN(0, "\xd2\xbe\xd2\xbe", ".vmem"),
		BEGIN(0, "\x14\x20\x28\x01", "a Hyper-V saved state"),
		BEGIN(0, "\xd1\xba\xd1\xba", "a VMware snapshot"),
		BEGIN(0, "\x7fVirtualBox SavedState V2.0\n", "VirtualBox"),
		BEGIN(0, "EVF\x09\x0d\x0a\xff\x00", "an E01 image"),
		BEGIN(0, "EVF2\x0d\x0a\x81\x00", "an Ex01 image"),
		BEGIN(0, "QFI\xfb", "a qcow2 disk"),
		BEGIN(0, "KDMV", "a VMDK disk"),
		BEGIN(0, "COWD", "a VMDK disk"),
		BEGIN(0, "# Disk DescriptorFile\nversion=1\n", "the descriptor of a VMDK disk"),
		BEGIN(64, "\x7f\x10\xda\xbe", "a VDI disk"),
		BEGIN(0, "conectix", "a VHD disk"),
		BEGIN(0, "vhdxfile", "a VHDX disk"),
		BEGIN(512, "EFI PART", "a disk with a GPT"),
		BEGIN(4096, "EFI PART", "a disk with a GPT"),
		BEGIN(3, "NTFS    ", "an NTFS volume"),
		BEGIN(3, "-FVE-FS-", "BitLocker"),
		BEGIN(82, "FAT32   ", "(FAT)"),
		BEGIN(0, "LUKS\xba\xbe", "LUKS"),
		BEGIN(4086, "SWAPSPACE2", "Linux swap"),
		BEGIN(4086, "SWAP-SPACE", "Linux swap"),
		BEGIN(4086, "S1SUSPEND\0", "a hibernated system"),
		BEGIN(4086, "S2SUSPEND\0", "a hibernated system"),
		BEGIN(4086, "ULSUSPEND\0", "a hibernated system"),
		BEGIN(4086, "LINHIB0001", "a hibernated system"),
		BEGIN(4086, "\xed\xc3\x02\xe9\x98\x56\xe5\x0c\0\0", "a hibernated system"),
		BEGIN(8182, "S1SUSPEND\0", "a hibernated system"),
		BEGIN(16374, "SWAPSPACE2", "Linux swap, from a kernel with"),
		BEGIN(65526, "LINHIB0001", "a hibernated system, from a kernel with"),
		BEGIN(0, "XFSB", "an XFS volume"),
		BEGIN(0, "%PDF-1.7", "a PDF document"),
		BEGIN(0, "\x50\x2a\x4d\x18", "container"),
		BEGIN(0, "\x5e\x2a\x4d\x18", "container"),
	};

	for (size_t k = 0; k < ARRAY_SIZE(begins); k++) {
		struct image i = { 0 };
		struct drv *d;

		put_begin(&i, &begins[k]);
		refuse_image("file", &i, ST_INPUT, begins[k].name);
		put_begin(&i, &begins[k]);
		refuse_image("file", &i, ST_INPUT, "raw:PATH");
		put_begin(&i, &begins[k]);
		d = open_image("raw", &i);
		CHECK_MAP(d, 0, "file size", { 0, 17 * PAGE_SIZE - 1 });
		drv_close(d);
		image_free(&i);
	}
}

static void put_partition(struct image *i, unsigned n, uint8_t status, uint8_t type, uint32_t lba)
{
	image_u8(i, 446 + 16 * n, status);
	image_u8(i, 446 + 16 * n + 4, type);
	image_u32(i, 446 + 16 * n + 8, lba);
	image_u32(i, 446 + 16 * n + 12, 4096);
	image_u16(i, 510, 0xaa55);
}

/* The fields that make a superblock of two bytes of magic. */
static void put_ext(struct image *i, uint32_t blocks_per_group)
{
	image_put(i, 2 * PAGE_SIZE, "", 0);
	image_u32(i, 1024, 128);
	image_u32(i, 1024 + 0x18, 2);
	image_u32(i, 1024 + 0x20, blocks_per_group);
	image_u16(i, 1024 + 0x38, 0xef53);
	image_u32(i, 1024 + 0x4c, 1);
}

TEST(disks_and_volumes_with_short_marks_are_named)
{
	struct image i = { 0 };

	image_put(&i, 2 * PAGE_SIZE, "", 0);
	put_partition(&i, 0, 0x80, 7, 2048);
	put_partition(&i, 2, 0, 0x83, 8192);
	refuse_image("file", &i, ST_INPUT, "a disk with partitions");
	put_ext(&i, 32768);
	refuse_image("file", &i, ST_INPUT, "ext2, ext3 or ext4");
}

static void put_lines(struct image *i, size_t len)
{
	char line[32];

	for (unsigned n = 0; i->len < len; n++) {
		snprintf(line, sizeof(line), "line %u: \xe2\x82\xac\t\x1b[0m\r\n", n);
		image_text(i, line);
	}
}

TEST(text_is_named)
{
	struct image i = { 0 };

	put_lines(&i, 100 << 10);
	refuse_image("file", &i, ST_INPUT, "is text");
	/* A character that is cut off by the end of what is looked at is no reason against it. */
	for (size_t len = (64 << 10) - 3; len < (64 << 10) + 3; len++) {
		put_lines(&i, len);
		i.len = len;
		refuse_image("file", &i, ST_INPUT, "is text");
	}
	put_lines(&i, 50);
	refuse_image("file", &i, ST_INPUT, "is text");
}

static void accept(struct image *i)
{
	struct drv *d = open_image("file", i);

	drv_close(d);
	image_free(i);
}

/* What memory may begin with: nobody may refuse that. */
TEST(what_may_be_memory_is_accepted)
{
	static const struct begin begins[] = {
		BEGIN(0, "\x53\xff\x00\xf0\xc3\xe2\x00\xf0", "interrupt vectors of real mode"),
		BEGIN(0, "\xe9\x4d\x06\x00\x01\x00\x00\x00", "code that processors begin with"),
		BEGIN(4096, "PAGEDU64", "a magic elsewhere"),
		BEGIN(1, "\x28\xb5\x2f\xfd", "one byte behind its place"),
		BEGIN(0, "\x1f\x8b\x08\xe0", "gzip with reserved flags"),
		BEGIN(0, "BZh9 and so on", "bzip2 without a block"),
		BEGIN(1080, "\x53\xef", "the magic of ext4 and nothing around it"),
		BEGIN(510, "\x55\xaa", "the mark of an MBR and no partition"),
		BEGIN(100, "all of this is text, but what is around it is not", "text"),
	};
	struct image i = { 0 };

	for (size_t k = 0; k < ARRAY_SIZE(begins); k++) {
		put_begin(&i, &begins[k]);
		accept(&i);
	}
	image_memory(&i, 0, 0, 2 * PAGE_SIZE);
	accept(&i);
	put_ext(&i, 32769);
	accept(&i);
	image_put(&i, 2 * PAGE_SIZE, "", 0);
	put_partition(&i, 0, 0x80, 7, 2048);
	put_partition(&i, 1, 0x41, 7, 8192);
	accept(&i);
	for (size_t at = 0; at < 20 * PAGE_SIZE; at += 16)
		image_put(&i, at, "UNREADABLE PAGE ", 16);
	accept(&i);
}

TEST(file_shorter_than_a_page_is_refused)
{
	struct image i = { 0 };

	refuse_image("file", &i, ST_INPUT, "0 bytes");
	image_put(&i, PAGE_SIZE - 1, "", 0);
	refuse_image("file", &i, ST_INPUT, "4095 bytes");
}

TEST(missing_file_is_an_input_error)
{
	struct err e = ERR_INIT;
	struct drv *d = NULL;

	CHECK_STATUS(drv_open("file:/nowhere/image", &d, &e), ST_INPUT, &e);
	CHECK_HAS(e.message, "file: /nowhere/image");
	CHECK_STATUS(drv_open("file:/", &d, &e), ST_INPUT, &e);
	CHECK_STATUS(drv_open("file", &d, &e), ST_USAGE, &e);
	CHECK_STATUS(drv_open("file:", &d, &e), ST_USAGE, &e);
	CHECK_STATUS(drv_open("elif:x", &d, &e), ST_USAGE, &e);
	CHECK_HAS(e.message, "\"elif\"");
}

TEST(lime_records_are_the_map)
{
	struct image i = { 0 };
	struct drv *d;

	lime_range(&i, 0x1000, 0x9fbff);
	lime_range(&i, 0x100000, 0x102fff);
	lime_range(&i, 0x200800, 0x2017ff); /* two halves of pages */
	lime_range(&i, 0x300100, 0x3001ff); /* inside one */
	d = open_image("file", &i);
	CHECK_MAP(d, 0, "LiME headers", { 0x1000, 0x9ffff }, { 0x100000, 0x102fff },
		  { 0x200000, 0x201fff }, { 0x300000, 0x300fff });
	check_data(d, 0x1000, 0x9efff);
	check_data(d, 0x100000, 0x102fff);
	for (const uint64_t *at = (const uint64_t[]){ 0x9f000, 0x200000, 0x201000, 0x300000, 0 };
	     *at; at++)
		CHECK_PAGE(d, *at, PAGE_UNREADABLE, DRV_NO_DATA);
	CHECK_HAS(d->info.note, "only partly in the file are unreadable: 4");
	drv_close(d);
	image_free(&i);
}

/* Bytes of one page in two records, where /proc/iomem is split inside a page. */
TEST(page_split_between_two_lime_records_is_put_together)
{
	struct image i = { 0 };
	struct drv *d;

	lime_range(&i, 0x1000, 0x2017);
	lime_range(&i, 0x2018, 0x3c57);
	lime_range(&i, 0x3c58, 0x4fff);
	d = open_image("file", &i);
	CHECK_MAP(d, 0, "LiME headers", { 0x1000, 0x4fff });
	check_data(d, 0x1000, 0x4fff);
	drv_close(d);
	image_free(&i);
}

/*
 * As LiME's module does (504ensicsLabs/LiME 7511bff, src/main.c, write_range()). `fill` makes the
 * memory.
 */
static void module_range(struct image *i, uint64_t first, uint64_t last,
			 void (*fill)(void *p, uint64_t addr, size_t len))
{
	lime_header(i, first, last);
	for (uint64_t at = first, len; at <= last; at += len) {
		const size_t off = i->len;

		len = last - at + 1 < PAGE_SIZE ? last - at + 1 : PAGE_SIZE;
		image_put(i, off + (size_t)len, "", 0);
		if (len == PAGE_SIZE)
			fill(i->at + off, at & ~(uint64_t)(PAGE_SIZE - 1), PAGE_SIZE);
	}
}

/* As AVML has it: all bytes but the last, as it takes an inclusive end for an exclusive one. */
static void avml_range(struct image *i, uint64_t first, uint64_t last,
		       void (*fill)(void *p, uint64_t addr, size_t len))
{
	lime_header(i, first, last - 1);
	image_put(i, i->len + (size_t)(last - first), "", 0);
	fill(i->at + i->len - (size_t)(last - first), first, (size_t)(last - first));
}

/* Every third page is zeros: so pages can be told from what only looks like one. */
static void some_zeros(void *p, uint64_t addr, size_t len)
{
	pattern(p, addr, len);
	for (size_t k = 0; k < len; k++)
		if ((addr + k) / PAGE_SIZE % 3 == 0)
			((uint8_t *)p)[k] = 0;
}

static void check_some_zeros(struct drv *d, uint64_t first, uint64_t last)
{
	uint8_t got[PAGE_SIZE], want[PAGE_SIZE];

	for (uint64_t at = first; at < last; at += PAGE_SIZE) {
		struct page_status s = { 99, 99 };
		struct err e = ERR_INIT;

		CHECK_OK(drv_read_pages(d, at, got, 1, &s, &e), &e);
		assert_int_equal(s.state, PAGE_DATA);
		some_zeros(want, at, PAGE_SIZE);
		assert_memory_equal(got, want, PAGE_SIZE);
	}
}

/* With memmap=0x40$0x6000018, and as EFI's setup_data splits RAM. */
static void module_file(struct image *i, void (*fill)(void *p, uint64_t addr, size_t len))
{
	module_range(i, 0x1000, 0x9fbff, fill);
	module_range(i, 0x100000, 0x120017, fill);
	module_range(i, 0x120058, 0x140d57, fill);
	module_range(i, 0x140d58, 0x160fff, fill);
}

static void check_module_file(struct drv *d, void (*check)(struct drv *d, uint64_t, uint64_t))
{
	CHECK_MAP(d, 0, "LiME headers", { 0x1000, 0x9ffff }, { 0x100000, 0x11ffff },
		  { 0x120000, 0x13ffff }, { 0x140000, 0x160fff });
	check(d, 0x1000, 0x9efff);
	check(d, 0x100000, 0x11ffff);
	check(d, 0x120000, 0x13ffff);
	check(d, 0x140000, 0x15ffff);
	for (const uint64_t *at = (const uint64_t[]){ 0x9f000, 0x160000, 0 }; *at; at++)
		CHECK_PAGE(d, *at, PAGE_UNREADABLE, DRV_NO_DATA);
}

TEST(lime_records_that_begin_inside_a_page_have_whole_pages)
{
	struct image i = { 0 };
	struct drv *d;

	module_file(&i, some_zeros);
	d = open_image("file", &i);
	check_module_file(d, check_some_zeros);
	CHECK_HAS(d->info.note, "as LiME's module writes them");
	assert_null(d->info.lost);
	drv_close(d);
	/* So much for what the content tells: without that it is open. */
	image_free(&i);
	module_file(&i, pattern);
	d = open_image("file", &i);
	check_module_file(d, check_data);
	CHECK_HAS(d->info.lost, "it is uncertain");
	CHECK_HAS(d->info.lost, "lime-bytes:PATH");
	drv_close(d);
	d = open_image("lime-pages", &i);
	check_module_file(d, check_data);
	assert_null(d->info.lost);
	drv_close(d);
	image_free(&i);
}

TEST(lime_records_of_avml_have_the_bytes_of_their_addresses)
{
	struct image i = { 0 };
	struct drv *d;

	avml_range(&i, 0x1000, 0x9fbff, pattern);
	avml_range(&i, 0x100000, 0x120017, pattern);
	avml_range(&i, 0x120058, 0x160fff, pattern);
	d = open_image("file", &i);
	assert_null(d->info.lost);
	check_data(d, 0x1000, 0x9efff);
	check_data(d, 0x121000, 0x15ffff);
	CHECK_PAGE(d, 0x120000, PAGE_UNREADABLE, DRV_NO_DATA);
	CHECK_PAGE(d, 0x160000, PAGE_UNREADABLE, DRV_NO_DATA);
	drv_close(d);
	/* Also if what it has at the ends is zeros. */
	image_free(&i);
	avml_range(&i, 0x102000, 0x120017, some_zeros);
	avml_range(&i, 0x120058, 0x162fff, some_zeros);
	d = open_image("file", &i);
	assert_null(d->info.lost);
	check_some_zeros(d, 0x121000, 0x161fff);
	drv_close(d);
	image_free(&i);
}

TEST(zeros_that_avml_leaves_out_are_told_in_limes_format_too)
{
	const uint64_t block = (uint64_t)16 << 20;
	struct image i = { 0 };
	struct drv *d;

	avml_range(&i, 0x1000, 0x4fff, pattern);
	d = open_image("file", &i);
	CHECK_HAS(d->info.note, "AVML leaves out blocks of zeros");
	drv_close(d);
	/* Whose ends are left out, and whose ranges are split. */
	image_free(&i);
	lime_range(&i, 0, block - 1);
	lime_range(&i, 3 * block, 4 * block - 1);
	d = open_image("file", &i);
	CHECK_HAS(d->info.note, "AVML leaves out blocks of zeros");
	drv_close(d);
	image_free(&i);
	lime_range(&i, 0x1000, 0x4fff);
	lime_range(&i, 0x10000, 0x10fff);
	d = open_image("file", &i);
	assert_null(d->info.note);
	drv_close(d);
	image_free(&i);
}

TEST(headers_of_avml_alone_are_zeros_and_nothing_is_missing)
{
	struct image i = { 0 };
	struct page_status s[16];
	uint8_t got[16 * PAGE_SIZE];
	struct err e = ERR_INIT;
	struct drv *d;

	avml_range(&i, 0x1000, 0x4fff, pattern);
	lime_header(&i, 0x10000, 0x1fffe);
	lime_header(&i, 0x30000, 0x3fffe);
	d = open_image("file", &i);
	CHECK_HAS(d->info.note, "131070 bytes have only a header, which stands for zeros");
	assert_null(d->info.lost);
	CHECK_OK(drv_read_pages(d, 0x30000, got, 16, s, &e), &e);
	for (size_t k = 0; k < 15 * PAGE_SIZE; k++)
		assert_int_equal(got[k], 0);
	assert_int_equal(s[14].state, PAGE_DATA);
	assert_int_equal(s[15].state, PAGE_UNREADABLE); /* of which the last byte is missing */
	drv_close(d);
	image_free(&i);
}

/* As whoever puts two files together has them: what is right for one is wrong for the other. */
TEST(records_of_two_programs_are_in_doubt)
{
	struct image i = { 0 };
	struct drv *d;

	module_range(&i, 0x120058, 0x2e2fff, some_zeros);
	lime_header(&i, 0x300058, 0x332057);
	image_put(&i, i.len + 0x32000, "", 0);
	some_zeros(i.at + i.len - 0x32000, 0x300058, 0x32000);
	d = open_image("file", &i);
	CHECK_HAS(d->info.lost, "it is uncertain");
	drv_close(d);
	image_free(&i);
}

/* Objects of half a page in slabs of a page: zeros end where they do. */
TEST(objects_of_half_a_page_do_not_tell_where_pages_are)
{
	struct image i = { 0 };
	struct drv *d;

	lime_header(&i, 0x120800, 0x162fff);
	for (uint64_t at = 0; at < 0x42000; at += 0x1000) {
		image_put(&i, i.len + 0x800, "", 0);
		memset(i.at + i.len - 0x800, 0, 0x800);
		image_memory(&i, i.len, at, 0x800);
	}
	image_put(&i, i.len + 0x800, "", 0);
	memset(i.at + i.len - 0x800, 0, 0x800);
	d = open_image("file", &i);
	CHECK_HAS(d->info.lost, "it is uncertain");
	drv_close(d);
	image_free(&i);
}

TEST(lime_records_by_others_are_told_by_their_pages)
{
	struct image i = { 0 };
	struct drv *d;

	/* Bytes of their addresses with LiME's ends, whose last page is zeros. */
	lime_header(&i, 0x120058, 0x162fff);
	image_put(&i, i.len + 0x42fa8, "", 0);
	some_zeros(i.at + i.len - 0x42fa8, 0x120058, 0x42fa8);
	d = open_image("file", &i);
	assert_null(d->info.lost);
	check_some_zeros(d, 0x121000, 0x162fff);
	drv_close(d);
	/* What is said of it counts. */
	image_free(&i);
	lime_range(&i, 0x120058, 0x162fff);
	d = open_image("lime-bytes", &i);
	check_data(d, 0x121000, 0x162fff);
	drv_close(d);
	/* LiME's zeros at the end of each range: AVML's ends alone do not tell. */
	image_free(&i);
	module_range(&i, 0x1058, 0x9fc16, pattern);
	d = open_image("file", &i);
	CHECK_HAS(d->info.lost, "it is uncertain");
	drv_close(d);
	refuse_image("lime-pages", &(struct image){ 0 }, ST_INPUT, "neither a LiME nor an AVML");
	image_free(&i);
}

TEST(a_lime_record_that_is_cut_keeps_the_pages_of_the_next)
{
	struct image i = { 0 };
	struct drv *d;

	lime_range(&i, 0x1000, 0x8fff);
	i.len -= 0x3000;
	lime_range(&i, 0x100000, 0x10ffff);
	lime_range(&i, 0x200000, 0x200fff);
	d = open_image("file", &i);
	CHECK_MAP(d, 0, "LiME headers", { 0x1000, 0x8fff }, { 0x100000, 0x10ffff },
		  { 0x200000, 0x200fff });
	check_data(d, 0x1000, 0x5fff);
	check_data(d, 0x100000, 0x10ffff);
	check_data(d, 0x200000, 0x200fff);
	for (uint64_t at = 0x6000; at < 0x9000; at += PAGE_SIZE)
		CHECK_PAGE(d, at, PAGE_UNREADABLE, DRV_NO_DATA);
	CHECK_HAS(d->info.lost, "1 record is shorter than its header says: 12288 bytes");
	drv_close(d);
	image_free(&i);
}

static void read_anything(struct drv *d, uint64_t addr, size_t pages)
{
	uint8_t *got = malloc(pages * PAGE_SIZE);
	struct page_status *s = calloc(pages, sizeof(*s));
	struct err e = ERR_INIT;

	assert_true(got && s);
	CHECK_OK(drv_read_pages(d, addr, got, pages, s, &e), &e);
	free(got);
	free(s);
}

/* The walk leads on to a header, or to the end, and only memory shows that one is missing. */
TEST(a_lime_record_that_lacks_what_the_next_one_has_is_noticed)
{
	for (unsigned k = 0; k < 4; k++) {
		struct image i = { 0 };
		uint8_t *at;
		struct drv *d;

		lime_range(&i, 0x1000, 0x8fff);
		i.len -= 0x3020;
		if (k == 3)
			i.len -= 0x3020;
		lime_range(&i, 0x100000, 0x102fff);
		/* In the page cache; of memory that is in the file; and two that are swallowed. */
		at = i.at + i.len - 0x3020;
		if (k == 1)
			at[0] = 'e';
		if (k == 2)
			at[9] = 0x10, at[10] = 0, at[17] = 0x3f, at[18] = 0;
		if (k == 3)
			lime_range(&i, 0x180000, 0x182fff);
		lime_range(&i, 0x200000, 0x200fff);
		d = open_image("file", &i);
		assert_null(d->info.lost);
		read_anything(d, k == 3 ? 0x2000 : 0x5000, 1);
		if (k == 1 || k == 2)
			assert_null(d->info.lost);
		else
			CHECK_HAS(d->info.lost, "stands the header of a record");
		drv_close(d);
		image_free(&i);
	}
}

/* Two whole records of another file in the page cache lead to nothing here. */
TEST(a_lime_file_in_the_memory_is_no_record_that_is_missing)
{
	struct image i = { 0 };
	struct drv *d;

	lime_range(&i, 0x1000, 0x2fff);
	lime_range(&i, 0x100000, 0x100fff);
	i.len -= 0x1020;
	lime_header(&i, 0x100000, 0x10ffff);
	lime_range(&i, 0x700000, 0x701fff);
	lime_range(&i, 0x800000, 0x801fff);
	image_put(&i, i.len + 0x10000 - 2 * 0x2020, "", 0);
	lime_range(&i, 0x200000, 0x200fff);
	d = open_image("file", &i);
	read_anything(d, 0x100000, 16);
	assert_null(d->info.lost);
	drv_close(d);
	image_free(&i);
}

TEST(what_a_cut_lime_file_lacks_is_unreadable)
{
	struct image i = { 0 };
	struct drv *d;

	lime_range(&i, 0x1000, 0x2fff);
	lime_range(&i, 0x8000, 0xcfff);
	i.len -= 0x2800;
	d = open_image("file", &i);
	CHECK_HAS(d->info.note, "cut short");
	check_data(d, 0x1000, 0x2fff);
	check_data(d, 0x8000, 0x9fff);
	CHECK_PAGE(d, 0xa000, PAGE_UNREADABLE, DRV_NO_DATA);
	CHECK_PAGE(d, 0xc000, PAGE_UNREADABLE, DRV_NO_DATA);
	drv_close(d);
	image_free(&i);
}

TEST(what_a_lime_file_lost_without_an_address_is_told)
{
	struct image i = { 0 };
	struct drv *d;

	lime_range(&i, 0x1000, 0x1fff);
	lime_header(&i, 0x3000, 0x3fff);
	i.len -= 5;
	d = open_image("file", &i);
	CHECK_MAP(d, 0, "LiME headers", { 0x1000, 0x1fff });
	CHECK_HAS(d->info.lost, "inside the header of record 1");
	drv_close(d);
	image_free(&i);

	lime_range(&i, 0x1000, 0x1fff);
	lime_header(&i, 0x3000, 0x2fff);
	d = open_image("file", &i);
	check_data(d, 0x1000, 0x1fff);
	CHECK_HAS(d->info.lost, "after record 0");
	CHECK_HAS(d->info.lost, "runs backwards): 32 bytes");
	drv_close(d);
	image_free(&i);
}

TEST(lime_file_whose_first_header_is_wrong_is_refused)
{
	struct image i = { 0 };

	lime_header(&i, 0x3000, 0x2fff);
	refuse_image("file", &i, ST_CORRUPT, "record 0: ");
}

TEST(zeros_behind_a_lime_file_are_left_out)
{
	struct image i = { 0 };
	struct drv *d;

	lime_range(&i, 0x1000, 0x1fff);
	image_u8(&i, i.len + 99999, 0);
	d = open_image("file", &i);
	CHECK_MAP(d, 0, "LiME headers", { 0x1000, 0x1fff });
	CHECK_HAS(d->info.note, "100000 bytes of zeros");
	assert_null(d->info.lost);
	drv_close(d);
	image_free(&i);
}

TEST(lime_records_that_lie_are_counted_and_every_byte_is_read_once)
{
	struct image i = { 0 };
	struct drv *d;

	lime_range(&i, 0x5000, 0x8fff);
	lime_range(&i, 0x1000, 0x6fff); /* unsorted, overlapping */
	lime_range(&i, 0x2000, 0x2fff); /* inside */
	lime_header(&i, PHYS_LIMIT, PHYS_LIMIT + 7);
	image_text(&i, "8 bytes.");
	d = open_image("file", &i);
	CHECK_MAP(d, 0, "LiME headers", { 0x1000, 0x8fff });
	assert_int_equal(d->info.maps[0].faults.unsorted, 1);
	assert_int_equal(d->info.maps[0].faults.overlapping, 2);
	assert_int_equal(d->info.maps[0].faults.beyond, 1);
	CHECK_HAS(d->info.note,
		  "12288 bytes of memory are in the file twice, with the same content");
	assert_null(d->info.lost);
	check_data(d, 0x1000, 0x8fff);
	drv_close(d);
	image_free(&i);
}

TEST(bytes_that_stand_there_twice_and_differ_are_told)
{
	struct image i = { 0 };
	struct drv *d;

	lime_range(&i, 0x1000, 0x4fff);
	lime_range(&i, 0x3000, 0x8fff);
	lime_range(&i, 0x4000, 0x6fff); /* shares bytes with both */
	image_u8(&i, 32 + 0x4000 + 32 + 5, 0xee);
	image_u8(&i, i.len - 1, 0xee);
	d = open_image("file", &i);
	check_data(d, 0x1000, 0x4fff); /* as the first range has it */
	CHECK_HAS(d->info.lost, "20480 bytes of memory are in the file twice");
	CHECK_HAS(d->info.lost, "20480 that were compared 2 differ");
	drv_close(d);
	image_free(&i);
}

/* As our own ELF exports have the kernel's text: the same bytes of the file by two addresses. */
TEST(segments_of_the_same_bytes_are_nothing_to_tell)
{
	const struct phdr p[] = {
		{ LOAD, 0x1000, 0xffff888000001000, 0x1000, 0x4000, 0x4000 },
		{ LOAD, 0x2000, 0xffffffff81000000, 0x2000, 0x1000, 0x1000 },
	};
	struct image i = { 0 };
	struct drv *d;

	elf_header(&i, p, 2);
	image_memory(&i, 0x1000, 0x1000, 0x4000);
	d = open_image("file", &i);
	check_data(d, 0x1000, 0x4fff);
	assert_null(d->info.note);
	assert_null(d->info.lost);
	drv_close(d);
	image_free(&i);
}

/* Offsets that no file reaches have nothing; what extents mean by some of them is not theirs. */
TEST(segments_beyond_any_file_are_unreadable)
{
	static const uint64_t offsets[] = { (uint64_t)1 << 40, ((uint64_t)1 << 62) - PAGE_SIZE,
					    (uint64_t)1 << 62, (uint64_t)1 << 63,
					    UINT64_MAX - 2 * PAGE_SIZE };

	for (size_t k = 0; k < ARRAY_SIZE(offsets); k++) {
		const struct phdr p[] = {
			{ LOAD, 0x1000, 0, 0x1000, 0x1000, 0x1000 },
			{ LOAD, offsets[k], 0, 0x10000, 0x3000, 0x3000 },
		};
		struct image i = { 0 };
		struct drv *d;

		elf_header(&i, p, 2);
		image_memory(&i, 0x1000, 0x1000, 0x1000);
		d = open_image("file", &i);
		check_data(d, 0x1000, 0x1fff);
		for (uint64_t at = 0x10000; at < 0x13000; at += PAGE_SIZE)
			CHECK_PAGE(d, at, PAGE_UNREADABLE, DRV_NO_DATA);
		drv_close(d);
		image_free(&i);
	}
}

/* Where nobody could wait for what is not there, that is not in the map. */
TEST(memory_that_is_declared_and_not_in_the_file_is_left_out)
{
	static const uint64_t sizes[] = { (uint64_t)8 << 40, (uint64_t)12 << 40, (uint64_t)5 << 30,
					  (uint64_t)1 << 62 };

	for (size_t k = 0; k < 3 * ARRAY_SIZE(sizes); k++) {
		const uint64_t size = sizes[k / 3];
		/* Bytes that are missing at the end of the file, and what never was in it. */
		const struct phdr p[] = {
			{ LOAD, 0x1000, 0xffff888000001000, 0x1000, k % 3 ? 0x1000 : size, size },
			{ LOAD, 0x2000, 0xffff888000001000, 0x1000 + size, 0, size },
		};
		struct image i = { 0 };
		struct drv *d;

		if (k % 3 < 2) {
			elf_header(&i, p, 1 + k % 3);
			image_memory(&i, 0x1000, 0x1000, 0x1000);
		} else {
			lime_header(&i, 0x1000, size - 1);
			image_memory(&i, i.len, 0x1000, 0x1000);
		}
		d = open_image("file", &i);
		CHECK_MAP(d, 0, k % 3 < 2 ? "ELF program headers" : "LiME headers",
			  { 0x1000, 0x1fff });
		check_data(d, 0x1000, 0x1fff);
		CHECK_HAS(d->info.lost, "the file has 4096 bytes of it: the rest is left out");
		drv_close(d);
		image_free(&i);
	}
}

TEST(extents_inside_others_are_dropped)
{
	struct extents x = { 0 };
	struct err e = ERR_INIT;

	CHECK_OK(extents_add(&x, 0x3000, 0x1000, 7, &e), &e);
	CHECK_OK(extents_add(&x, 0x1000, 0x8000, 100, &e), &e);
	CHECK_OK(extents_add(&x, 0x1000, 0x1000, 8, &e), &e);
	CHECK_OK(extents_add(&x, 0x8000, 0x2000, 500, &e), &e);
	CHECK_OK(extents_add(&x, 0x8000, 0, 9, &e), &e);
	extents_tidy(&x);
	assert_int_equal(x.count, 2);
	assert_int_equal(x.at[0].range.last, 0x8fff);
	assert_int_equal(x.at[0].offset, 100);
	assert_int_equal(x.at[1].range.first, 0x9000);
	assert_int_equal(x.at[1].range.last, 0x9fff);
	assert_int_equal(x.at[1].offset, 0x1000 + 500);
	extents_deinit(&x);
}

TEST(core_is_read_at_its_physical_addresses)
{
	static const char info[] = "SYMBOL(_stext)=ffffffff9e000000\n"
				   "SYMBOL(init_top_pgt)=ffffffff9f610000\n"
				   "NUMBER(phys_base)=-486539264\n";
	const struct phdr p[] = {
		{ NOTE, 0x400, 0, 0, 0, 0 },
		{ LOAD, 0x2000, 0, 0x100000, 0x3000, 0x5000 }, /* two pages are not in it */
		{ LOAD, 0x5000, 0, 0x1000, 0x2000, 0x2000 },   /* unsorted */
		{ LOAD, 0x1000, 0xffffc90000000000, UINT64_MAX, 0x1000, 0x1000 },
		{ LOAD, 0x7000, 0, 0x200000, 0x2000, 0x2000 }, /* past the end of the file */
	};
	struct image i = { 0 };
	struct drv *d;

	elf_header(&i, p, 5);
	image_u64(&i, 64 + 32, elf_note(&i, 0x400, "VMCOREINFO", info, sizeof(info) - 1) - 0x400);
	image_memory(&i, 0x2000, 0x100000, 0x3000);
	image_memory(&i, 0x5000, 0x1000, 0x2000);
	image_memory(&i, 0x7000, 0x200000, 0x1000);
	d = open_image("file", &i);
	CHECK_MAP(d, 0, "ELF program headers", { 0x1000, 0x2fff }, { 0x100000, 0x104fff },
		  { 0x200000, 0x201fff });
	check_data(d, 0x1000, 0x2fff);
	check_data(d, 0x100000, 0x102fff);
	CHECK_PAGE(d, 0x103000, PAGE_SKIPPED, SKIP_NOT_MAPPED);
	CHECK_PAGE(d, 0x104000, PAGE_SKIPPED, SKIP_NOT_MAPPED);
	CHECK_PAGE(d, 0x200000, PAGE_DATA, 0);
	CHECK_PAGE(d, 0x201000, PAGE_UNREADABLE, DRV_NO_DATA);
	CHECK_HAS(d->info.note, "cut short");
	assert_true(d->info.has_kernel_base && d->info.has_kernel_phys && d->info.has_cr3);
	assert_int_equal(d->info.kernel_base, 0xffffffff9e000000);
	assert_int_equal(d->info.kernel_phys, 0x1000000);
	assert_int_equal(d->info.cr3, 0x2610000);
	assert_non_null(d->info.notes);
	drv_close(d);
	image_free(&i);
}

TEST(core_without_physical_addresses_is_refused)
{
	const struct phdr p[] = {
		{ LOAD, 0x1000, 0x400000, 0, 0x1000, 0x1000 },
		{ LOAD, 0x2000, 0x600000, 0, 0x1000, 0x1000 },
	};
	struct image i = { 0 };

	elf_header(&i, p, 2);
	image_put(&i, 0x3000, "", 0);
	refuse_image("file", &i, ST_INPUT, "without physical addresses");
}

TEST(core_with_ram_at_zero_is_read)
{
	const struct phdr p = { LOAD, 0x1000, 0, 0, 0x2000, 0x2000 };
	struct image i = { 0 };
	struct drv *d;

	elf_header(&i, &p, 1);
	image_memory(&i, 0x1000, 0, 0x2000);
	d = open_image("file", &i);
	check_data(d, 0, 0x1fff);
	drv_close(d);
	image_free(&i);
}

TEST(other_elf_files_are_refused_not_taken_for_raw)
{
	struct image i = { 0 };

	elf_header(&i, NULL, 0);
	image_u16(&i, 16, 2);
	image_put(&i, 2 * PAGE_SIZE, "", 0);
	refuse_image("file", &i, ST_INPUT, "not a core");
}

TEST(thousands_of_runs_are_read)
{
	struct image i = { 0 };
	struct drv *d;

	for (uint64_t k = 0; k < 5000; k++)
		lime_range(&i, k * 0x3000, k * 0x3000 + 0xfff);
	d = open_image("file", &i);
	assert_int_equal(d->info.maps[0].ranges.count, 5000);
	for (uint64_t k = 0; k < 5000; k++) {
		CHECK_PAGE(d, k * 0x3000, PAGE_DATA, 0);
		CHECK_PAGE(d, k * 0x3000 + 0x1000, PAGE_SKIPPED, SKIP_NOT_MAPPED);
	}
	drv_close(d);
	image_free(&i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(raw_file_is_one_range),
		cmocka_unit_test(part_of_a_page_at_the_end_of_a_raw_file_is_unreadable_and_told),
		cmocka_unit_test(files_that_are_no_memory_are_named),
		cmocka_unit_test(disks_and_volumes_with_short_marks_are_named),
		cmocka_unit_test(text_is_named),
		cmocka_unit_test(what_may_be_memory_is_accepted),
		cmocka_unit_test(file_shorter_than_a_page_is_refused),
		cmocka_unit_test(missing_file_is_an_input_error),
		cmocka_unit_test(lime_records_are_the_map),
		cmocka_unit_test(page_split_between_two_lime_records_is_put_together),
		cmocka_unit_test(lime_records_that_begin_inside_a_page_have_whole_pages),
		cmocka_unit_test(lime_records_of_avml_have_the_bytes_of_their_addresses),
		cmocka_unit_test(zeros_that_avml_leaves_out_are_told_in_limes_format_too),
		cmocka_unit_test(headers_of_avml_alone_are_zeros_and_nothing_is_missing),
		cmocka_unit_test(records_of_two_programs_are_in_doubt),
		cmocka_unit_test(objects_of_half_a_page_do_not_tell_where_pages_are),
		cmocka_unit_test(lime_records_by_others_are_told_by_their_pages),
		cmocka_unit_test(a_lime_record_that_is_cut_keeps_the_pages_of_the_next),
		cmocka_unit_test(a_lime_record_that_lacks_what_the_next_one_has_is_noticed),
		cmocka_unit_test(a_lime_file_in_the_memory_is_no_record_that_is_missing),
		cmocka_unit_test(what_a_cut_lime_file_lacks_is_unreadable),
		cmocka_unit_test(what_a_lime_file_lost_without_an_address_is_told),
		cmocka_unit_test(lime_file_whose_first_header_is_wrong_is_refused),
		cmocka_unit_test(zeros_behind_a_lime_file_are_left_out),
		cmocka_unit_test(lime_records_that_lie_are_counted_and_every_byte_is_read_once),
		cmocka_unit_test(bytes_that_stand_there_twice_and_differ_are_told),
		cmocka_unit_test(segments_of_the_same_bytes_are_nothing_to_tell),
		cmocka_unit_test(segments_beyond_any_file_are_unreadable),
		cmocka_unit_test(memory_that_is_declared_and_not_in_the_file_is_left_out),
		cmocka_unit_test(extents_inside_others_are_dropped),
		cmocka_unit_test(core_is_read_at_its_physical_addresses),
		cmocka_unit_test(core_without_physical_addresses_is_refused),
		cmocka_unit_test(core_with_ram_at_zero_is_read),
		cmocka_unit_test(other_elf_files_are_refused_not_taken_for_raw),
		cmocka_unit_test(thousands_of_runs_are_read),
	};

	return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
