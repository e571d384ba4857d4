/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device sources against plain files, which stand in for /dev/mem, /dev/pmem and /dev/crash
 * well enough. linpmem needs an ioctl() made here, and a refusal in mid-read needs a pread(); the
 * linker wraps both.
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <sys/ioctl.h>

#include "driver-interface/iomem.h"
#include "driver-interface/kpageflags.h"
#include "driver-interface/source.h"
#include "tests/unit/drv_check.h"

#define FIRST 0x1000
#define LAST  0x8fff

static struct image iomem, memory;

static int setup(void **state)
{
	(void)state;
	image_text(&iomem, "00001000-00008fff : System RAM\n");
	iomem_set_path(image_save(&iomem));
	image_memory(&memory, 0, 0, LAST + 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	iomem_set_path(NULL);
	image_free(&iomem);
	image_free(&memory);
	return 0;
}

static void source_reads_ram(const char *name)
{
	struct drv *d = open_image(name, &memory);

	CHECK_MAP(d, 0, iomem.path, { FIRST, LAST });
	assert_string_equal(d->info.source, name);
	assert_string_equal(d->info.path, memory.path);
	assert_string_equal(d->info.error_numbers, "errno");
	check_data(d, FIRST, LAST);
	CHECK_PAGE(d, 0, PAGE_SKIPPED, SKIP_NOT_MAPPED);
	drv_close(d);
}

TEST(devices_read_at_physical_addresses)
{
	source_reads_ram("devmem");
	source_reads_ram("crash");
	source_reads_ram("pmem");
}

TEST(device_that_ends_early_loses_the_pages_there)
{
	static const char *const names[] = { "devmem", "crash", "pmem" };

	memory.len = 0x5fff; /* as rekall's does: one byte short */
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct drv *d = open_image(names[i], &memory);

		check_data(d, FIRST, 0x4fff);
		CHECK_PAGE(d, 0x5000, PAGE_UNREADABLE, DRV_NO_DATA);
		CHECK_PAGE(d, 0x6000, PAGE_UNREADABLE, DRV_NO_DATA);
		drv_close(d);
		unlink(memory.path);
	}
}

/* rekall's pmem refuses the first page of every range (tools/linux/pmem.c, 55d1925f, line 71). */
TEST(first_page_that_pmem_refuses_is_not_taken_for_zeros)
{
	struct page_status s[8];
	uint8_t buf[8 * PAGE_SIZE];
	struct err e = ERR_INIT;
	struct drv *d;

	memset(memory.at + 0x1000, 0, 0x1000);
	memset(memory.at + 0x3000, 0, 0x1000);
	d = open_image("pmem", &memory);
	assert_true(d->info.silent);
	CHECK_OK(drv_read_pages(d, FIRST, buf, 8, s, &e), &e);
	assert_int_equal(s[0].state, PAGE_UNREADABLE);
	assert_int_equal(s[0].detail, DRV_NO_DATA);
	for (size_t i = 1; i < 8; i++)
		assert_int_equal(s[i].state, PAGE_DATA); /* zeros inside the range may be zeros */
	assert_memory_equal(buf + PAGE_SIZE, memory.at + 0x2000, 7 * PAGE_SIZE);
	drv_close(d);
}

TEST(device_without_a_map_is_refused)
{
	struct err e = ERR_INIT;
	struct drv *d = NULL;
	char spec[128];

	snprintf(spec, sizeof(spec), "devmem:%s", image_save(&memory));
	iomem_set_path("/nowhere/iomem");
	CHECK_STATUS(drv_open(spec, &d, &e), ST_NO_SOURCE, &e);
	CHECK_HAS(e.message, "/nowhere/iomem");
	assert_null(d);
}

TEST(missing_device_says_what_to_do)
{
	struct err e = ERR_INIT;
	struct drv *d = NULL;

	CHECK_STATUS(drv_open("linpmem:/nowhere/linpmem", &d, &e), ST_NO_SOURCE, &e);
	CHECK_HAS(e.message, "mknod /dev/linpmem c 42 0");
	CHECK_STATUS(drv_open("crash:/nowhere/crash", &d, &e), ST_NO_SOURCE, &e);
	CHECK_HAS(e.message, "modprobe crash");
}

/*
 * A kernel that refuses what reaches `refused_from`, whatever of the request is in front of it, as
 * read_mem() in drivers/char/mem.c does.
 */
static off_t refused_from = -1;

ssize_t __real_pread64(int fd, void *buf, size_t len, off_t off);
ssize_t __wrap_pread64(int fd, void *buf, size_t len, off_t off);

ssize_t __wrap_pread64(int fd, void *buf, size_t len, off_t off)
{
	if (refused_from < 0 || off + (off_t)len <= refused_from)
		return __real_pread64(fd, buf, len, off);
	errno = EPERM;
	return -1;
}

/* Pages 1..8 below 1 MiB and 0x100..0x103 above, 2 and 3 zero. */
static struct drv *open_strict_devmem(void)
{
	image_text(&iomem, "00100000-00103fff : System RAM\n");
	unlink(iomem.path);
	iomem_set_path(image_save(&iomem));
	image_memory(&memory, 0x100000, 0x100000, 0x4000);
	memset(memory.at + 0x2000, 0, 2 * PAGE_SIZE);
	return open_image("devmem", &memory);
}

static void check_devmem(struct drv *d, uint64_t addr, const uint32_t *unreadable, size_t pages)
{
	struct page_status s[8];
	uint8_t buf[8 * PAGE_SIZE];
	struct err e = ERR_INIT;

	CHECK_OK(drv_read_pages(d, addr, buf, pages, s, &e), &e);
	for (size_t i = 0; i < pages; i++) {
		assert_int_equal(s[i].state, unreadable[i] ? PAGE_UNREADABLE : PAGE_DATA);
		assert_int_equal(s[i].detail, unreadable[i]);
		if (!unreadable[i])
			assert_memory_equal(buf + i * PAGE_SIZE, memory.at + addr + i * PAGE_SIZE,
					    PAGE_SIZE);
	}
}

TEST(strict_devmem_costs_only_what_it_refuses)
{
	static const uint32_t low[8] = { 0, DRV_NO_DATA, DRV_NO_DATA },
			      high[4] = { EPERM, EPERM, EPERM, EPERM };
	struct drv *d;

	refused_from = 0x100000;
	d = open_strict_devmem();
	CHECK_HAS(d->info.note, "STRICT_DEVMEM");
	check_devmem(d, FIRST, low, 8);
	check_devmem(d, 0x100000, high, 4);
	refused_from = -1;
	drv_close(d);
}

TEST(refusal_in_the_middle_costs_nothing_in_front_of_it)
{
	static const uint32_t low[8] = { 0 }, high[4] = { 0, 0, 0, EPERM };
	struct drv *d = open_strict_devmem();

	refused_from = 0x103000;
	/* Zeros are zeros: nothing was refused at the start of RAM. */
	assert_null(strstr(d->info.note, "STRICT_DEVMEM"));
	check_devmem(d, FIRST, low, 8);
	check_devmem(d, 0x100000, high, 4);
	refused_from = -1;
	drv_close(d);
}

/* Lockdown of distributions before 5.4: the headers are given, the memory is not. */
TEST(kcore_whose_reads_are_refused_speaks_of_lockdown)
{
	const struct phdr p = { 1, 0x1000, 0xffff888000001000, 0x1000, 0x2000, 0x2000 };
	struct image i = { 0 };

	elf_header(&i, &p, 1);
	image_memory(&i, 0x1000, 0x1000, 0x2000);
	refused_from = 0x1000;
	refuse_image("kcore", &i, ST_NO_PRIVILEGE, "lockdown");
	refused_from = -1;
}

/* A linpmem: what its ioctls do, from linpmem_shared.h; layouts spelt out again. */
struct transfer {
	uint64_t phys_address, out_value;
	void *readbuffer;
	uint64_t readbuffer_size;
	uint8_t access_type, write_access, reserved[2];
};

static bool linpmem_is_there;
static int linpmem_errno;    /* what reading page 0x4000 says; 0: success with size 0 */
static uint64_t linpmem_pid; /* whose CR3 it knows */

int __real_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg);

static int fake_linpmem_read(struct transfer *t)
{
	/* As pte_mmap_read() in src/linpmem.c: a read never crosses a page. */
	const size_t room = 0x1000 - t->phys_address % 0x1000;

	if (t->access_type != 9 || !t->readbuffer || !t->readbuffer_size ||
	    t->readbuffer_size > 0x1000) {
		errno = EINVAL;
		return -1;
	}
	if (t->phys_address / 0x1000 == 4 && linpmem_errno) {
		errno = linpmem_errno;
		return -1;
	}
	t->readbuffer_size = t->phys_address / 0x1000 == 4 ? 0 : MIN(room, t->readbuffer_size);
	pattern(t->readbuffer, t->phys_address, t->readbuffer_size);
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	uint64_t *const cr3 = arg;

	if (!linpmem_is_there)
		return __real_ioctl(fd, request, arg);
	if (request == 0xC0286161)
		return fake_linpmem_read(arg);
	if (request == 0xC0106163 && cr3[0] == linpmem_pid) {
		cr3[1] = 0x1000 + cr3[0];
		return 0;
	}
	errno = request == 0xC0106163 ? ESRCH : ENOSYS;
	return -1;
}

TEST(linpmem_reads_page_by_page_and_size_0_is_unreadable)
{
	struct drv *d;

	linpmem_is_there = true;
	linpmem_pid = 1;
	linpmem_errno = 0;
	d = open_image("linpmem", &memory);
	check_data(d, FIRST, 0x3fff);
	check_data(d, 0x5000, LAST);
	CHECK_PAGE(d, 0x4000, PAGE_UNREADABLE, DRV_NO_DATA);
	assert_true(d->info.has_cr3);
	assert_int_equal(d->info.cr3, 0x1001);
	drv_close(d);

	/* Its process has what was there when it began. */
	linpmem_errno = EIO;
	d = open_image("linpmem", &memory);
	CHECK_PAGE(d, 0x4000, PAGE_UNREADABLE, EIO);
	drv_close(d);
	linpmem_is_there = false;
}

TEST(linpmem_without_process_1_tells_our_cr3)
{
	struct drv *d;

	linpmem_is_there = true;
	linpmem_pid = 0;
	d = open_image("linpmem", &memory);
	assert_int_equal(d->info.cr3, 0x1000);
	drv_close(d);
	linpmem_is_there = false;
}

TEST(linpmem_that_is_unloaded_is_dead)
{
	struct page_status s[8];
	uint8_t buf[8 * PAGE_SIZE];
	struct err e = ERR_INIT;
	struct drv *d;

	linpmem_is_there = true;
	linpmem_pid = 1;
	linpmem_errno = ENODEV;
	d = open_image("linpmem", &memory);
	CHECK_STATUS(drv_read_pages(d, FIRST, buf, 8, s, &e), ST_SOURCE_FAILED, &e);
	assert_int_equal(s[2].state, PAGE_DATA);
	assert_int_equal(s[3].state, PAGE_SKIPPED);
	assert_int_equal(s[7].detail, SKIP_SOURCE_FAILED);
	drv_close(d);
	linpmem_is_there = false;
}

TEST(other_file_is_not_linpmem)
{
	struct err e = ERR_INIT;
	struct drv *d = NULL;
	char spec[128];

	snprintf(spec, sizeof(spec), "linpmem:%s", image_save(&memory));
	CHECK_STATUS(drv_open(spec, &d, &e), ST_NO_SOURCE, &e);
	CHECK_HAS(e.message, "is not linpmem");
}

/* What is not this machine is never taken for it, and what can harm it never used unasked. */
TEST(order_of_preference_begins_with_what_cannot_harm)
{
	static const struct {
		const char *name;
		enum drv_kind kind;
		bool automatic;
	} order[] = {
		{ "kcore", DRV_OWN, true },        { "crash", DRV_MODULE, true },
		{ "devmem", DRV_OWN, true },       { "linpmem", DRV_HAZARD, false },
		{ "pmem", DRV_HAZARD, false },     { "file", DRV_DEAD, false },
		{ "raw", DRV_DEAD, false },        { "lime-pages", DRV_DEAD, false },
		{ "lime-bytes", DRV_DEAD, false },
	};
	size_t i = 0;

	for (; drv_table[i]; i++) {
		assert_in_range(i, 0, ARRAY_SIZE(order) - 1);
		assert_string_equal(drv_table[i]->name, order[i].name);
		assert_int_equal(drv_table[i]->kind, order[i].kind);
		assert_int_equal(drv_table[i]->automatic, order[i].automatic);
		assert_int_equal(drv_table[i]->read_max % PAGE_SIZE, 0);
		assert_non_null(drv_table[i]->summary);
		assert_non_null(drv_table[i]->reason);
	}
	assert_int_equal(i, ARRAY_SIZE(order));
}

TEST(a_source_of_the_programs_own_comes_last)
{
	static const struct drv_ops own = { .name = "own", .kind = DRV_DEAD };
	const struct drv_ops *const *before = drv_table;
	size_t n = 0;

	while (before[n])
		n++;
	drv_add_source(&own);
	for (size_t i = 0; i < n; i++)
		assert_ptr_equal(drv_table[i], before[i]);
	assert_string_equal(drv_source_name(n + 1), "own");
	assert_null(drv_source_name(n + 2));
	drv_table = before;
}

/* All of them ask the same, and none touches what must not be read. */
TEST(no_source_reads_what_must_not_be_read)
{
	static const char *const names[] = { "kcore", "devmem", "crash", "pmem" };
	const struct phdr p = { 1, 0x1000, 0xffff888000001000, 0x1000, 0x8000, 0x8000 };
	struct image flags = { 0 }, kcore = { 0 };

	elf_header(&kcore, &p, 1);
	image_memory(&kcore, 0x1000, 0x1000, 0x8000);
	for (uint64_t pfn = 0; pfn <= LAST / PAGE_SIZE; pfn++)
		image_u64(&flags, pfn * 8, pfn == 3 ? 1 << 19 : pfn == 5 ? 1 << 23 : 0);
	kpageflags_set_path(image_save(&flags));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct drv *d = open_image(names[i], i ? &memory : &kcore);
		struct drv_withheld w = { 0 };
		struct err e = ERR_INIT;

		check_data(d, 0x1000, 0x2fff);
		CHECK_PAGE(d, 0x3000, PAGE_UNREADABLE, DRV_POISONED);
		CHECK_PAGE(d, 0x4000, PAGE_DATA, 0);
		CHECK_PAGE(d, 0x5000, PAGE_SKIPPED, SKIP_NOT_MAPPED);
		check_data(d, 0x6000, LAST);
		CHECK_OK(drv_withheld(d, &w, &e), &e);
		assert_true(w.known);
		assert_int_equal(w.poisoned.count, 1);
		assert_int_equal(w.poisoned.at[0].first, 0x3000);
		assert_int_equal(w.offline.count, 1);
		assert_int_equal(w.offline.at[0].last, 0x5fff);
		drv_withheld_deinit(&w);
		drv_close(d);
	}
	kpageflags_set_path(NULL);
	image_free(&flags);
	image_free(&kcore);
}

/* Where nobody can be asked, that is said, and a hole may look like zeros. */
TEST(source_that_cannot_ask_says_so)
{
	static const char *const names[] = { "devmem", "crash", "pmem" };

	kpageflags_set_path("/nowhere/kpageflags");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct drv *d = open_image(names[i], &memory);

		assert_true(d->info.silent);
		assert_false(d->info.withholds);
		CHECK_HAS(d->info.note, "/proc/kpageflags");
		check_data(d, FIRST, LAST);
		drv_close(d);
	}
	kpageflags_set_path(NULL);
}

#define DEVICE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DEVICE_TEST(devices_read_at_physical_addresses),
		DEVICE_TEST(device_that_ends_early_loses_the_pages_there),
		DEVICE_TEST(first_page_that_pmem_refuses_is_not_taken_for_zeros),
		DEVICE_TEST(strict_devmem_costs_only_what_it_refuses),
		DEVICE_TEST(refusal_in_the_middle_costs_nothing_in_front_of_it),
		DEVICE_TEST(kcore_whose_reads_are_refused_speaks_of_lockdown),
		DEVICE_TEST(device_without_a_map_is_refused),
		DEVICE_TEST(missing_device_says_what_to_do),
		DEVICE_TEST(linpmem_reads_page_by_page_and_size_0_is_unreadable),
		DEVICE_TEST(linpmem_without_process_1_tells_our_cr3),
		DEVICE_TEST(linpmem_that_is_unloaded_is_dead),
		DEVICE_TEST(other_file_is_not_linpmem),
		DEVICE_TEST(order_of_preference_begins_with_what_cannot_harm),
		DEVICE_TEST(a_source_of_the_programs_own_comes_last),
		DEVICE_TEST(no_source_reads_what_must_not_be_read),
		DEVICE_TEST(source_that_cannot_ask_says_so),
	};

	return cmocka_run_group_tests_name("devices", tests, NULL, NULL);
}
