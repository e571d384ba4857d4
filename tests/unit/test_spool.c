/* SPDX-License-Identifier: Apache-2.0 */
/* What waits to be sent: in memory, then in a file, which must not fill the page cache. */
#include "tests/unit/test.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "agent/collect/stores/spool.h"
#include "formats/base/page.h"
#include "tests/unit/scratch.h"

#define PIECE    ((size_t)100000) /* no whole pages */
#define FILE_MAX ((uint64_t)24 << 20)
#define CACHED   ((size_t)12 << 20) /* two steps, and one being written */
#define TMPFS    0x01021994

static struct scratch dir;

static int make_spool_dir(void **state)
{
	(void)state;
	scratch_init(&dir);
	return 0;
}

static int remove_spool_dir(void **state)
{
	(void)state;
	scratch_deinit(&dir);
	return 0;
}

static uint8_t byte_at(uint64_t at)
{
	return (uint8_t)(at % 251 + at / 4093);
}

/* The file has no name: it is found among our descriptors. */
static int find_spool_file(void)
{
	char link[64], path[1024];

	for (int fd = 3; fd < 64; fd++) {
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, path, sizeof(path) - 1);
		path[MAX(n, 0)] = '\0';
		if (n > 0 && strstr(path, dir.path))
			return fd;
	}
	return -1;
}

/* Bytes of the file in the page cache, by mincore(2). */
static size_t cached_bytes(int fd)
{
	static unsigned char there[FILE_MAX / PAGE_SIZE];
	void *p = mmap(NULL, FILE_MAX, PROT_READ, MAP_SHARED, fd, 0);
	size_t n = 0;

	assert_true(p != MAP_FAILED);
	assert_int_equal(mincore(p, FILE_MAX, there), 0);
	for (size_t i = 0; i < sizeof(there); i++)
		n += there[i] & 1 ? PAGE_SIZE : 0;
	munmap(p, FILE_MAX);
	return n;
}

static uint64_t fill_spool(struct spool *s, uint64_t from, uint64_t to)
{
	static uint8_t piece[PIECE];

	while (from < to) {
		const size_t n = (size_t)MIN(to - from, PIECE);

		for (size_t i = 0; i < n; i++)
			piece[i] = byte_at(from + i);
		assert_int_equal(spool_write(s, piece, n), n);
		from += n;
	}
	return from;
}

static uint64_t drain_spool(struct spool *s, uint64_t from, uint64_t to)
{
	struct err e = ERR_INIT;

	while (from < to) {
		bool moved;
		size_t n;
		const uint8_t *p;

		CHECK_OK(spool_fill(s, &moved, &e), &e);
		p = spool_at(s, from, (size_t)MIN(to - from, PIECE), &n);
		assert_true(n > 0);
		for (size_t i = 0; i < n; i++)
			if (p[i] != byte_at(from + i))
				fail_msg("byte %llu", (unsigned long long)(from + i));
		from += n;
		spool_forget(s, from);
	}
	return from;
}

TEST(spool_file_leaves_the_page_cache)
{
	struct spool *s = NULL;
	struct err e = ERR_INIT;
	struct statfs fs;
	uint64_t written, read = 0;
	int fd;

	CHECK_OK(spool_create(2 * PIECE, PIECE, dir.path, FILE_MAX, &s, &e), &e);
	fd = find_spool_file();
	assert_true(fd >= 0);
	assert_int_equal(fstatfs(fd, &fs), 0);
	written = fill_spool(s, 0, (uint64_t)20 << 20);
	if (fs.f_type != TMPFS)
		assert_in_range(cached_bytes(fd), 0, CACHED);
	read = drain_spool(s, read, written);
	/* Once around the ring, and what was read is gone as well. */
	written = fill_spool(s, written, (uint64_t)42 << 20);
	drain_spool(s, read, written);
	if (fs.f_type != TMPFS)
		assert_in_range(cached_bytes(fd), 0, CACHED);
	spool_destroy(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spool_file_leaves_the_page_cache),
	};

	return cmocka_run_group_tests(tests, make_spool_dir, remove_spool_dir);
}
