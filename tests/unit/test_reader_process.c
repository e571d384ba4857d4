/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that reads a device: what becomes of it, when the device kills it, keeps it, or is
 * gone. The devices are functions of this file; the path is that of a plain file.
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver-interface/reader_process.h"
#include "tests/gen/images.h"

#define SIZE (4 * PAGE_SIZE)

static struct image memory;
static uint8_t buffer[SIZE];

static int setup(void **state)
{
	(void)state;
	image_memory(&memory, 0, 0, 16 * PAGE_SIZE);
	image_save(&memory);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	reader_process_set_patience(0);
	image_free(&memory);
	return 0;
}

static struct drv_result plain(int fd, uint64_t addr, void *buf, size_t len)
{
	const ssize_t n = pread(fd, buf, len, (off_t)addr);

	return (struct drv_result){ .good = n < 0 ? 0 : (size_t)n, .error = DRV_POISONED };
}

/* A BUG() in the kernel ends the task like this, signals blocked or not. */
static struct drv_result dies_at_page_8(int fd, uint64_t addr, void *buf, size_t len)
{
	if (addr / PAGE_SIZE == 8)
		kill(getpid(), SIGKILL);
	return plain(fd, addr, buf, len);
}

static struct drv_result hangs_at_page_8(int fd, uint64_t addr, void *buf, size_t len)
{
	while (addr / PAGE_SIZE == 8)
		pause();
	return plain(fd, addr, buf, len);
}

static struct drv_result tells_who_it_is(int fd, uint64_t addr, void *buf, size_t len)
{
	const pid_t pid = getpid();

	(void)fd;
	(void)addr;
	memset(buf, 0, len);
	memcpy(buf, &pid, sizeof(pid));
	return (struct drv_result){ .good = len };
}

/* Descriptors that are open, but for its own two. */
static struct drv_result counts_descriptors(int fd, uint64_t addr, void *buf, size_t len)
{
	size_t count = 0;

	for (int i = 0; i < 256; i++)
		count += i != fd && fcntl(i, F_GETFD) >= 0;
	(void)addr;
	memset(buf, 0, len);
	memcpy(buf, &count, sizeof(count));
	return (struct drv_result){ .good = len };
}

static int begin_with_a_fact(int fd, uint64_t *fact)
{
	(void)fd;
	*fact = 42;
	return 0;
}

static int begin_in_vain(int fd, uint64_t *fact)
{
	(void)fd;
	(void)fact;
	return ENOTTY;
}

static int begin_and_die(int fd, uint64_t *fact)
{
	(void)fd;
	(void)fact;
	kill(getpid(), SIGKILL);
	return 0;
}

static struct reader_process *start(const struct reader_device *device)
{
	struct reader_opening how;
	struct reader_process *p = NULL;
	struct err e = ERR_INIT;

	CHECK_OK(reader_process_start(device, memory.path, SIZE, &p, &how, &e), &e);
	assert_int_equal(how.error, 0);
	assert_non_null(p);
	return p;
}

static void check_read(struct reader_process *p, uint64_t page)
{
	uint8_t want[SIZE];
	const struct drv_result r = reader_process_read(p, page * PAGE_SIZE, buffer, SIZE);

	assert_int_equal(r.good, SIZE);
	pattern(want, page * PAGE_SIZE, SIZE);
	assert_memory_equal(buffer, want, SIZE);
}

static struct drv_result fails_from_8_to_10(int fd, uint64_t addr, void *buf, size_t len)
{
	const uint64_t page = addr / PAGE_SIZE;
	const size_t good = page < 8 ? MIN(len, (8 - page) * PAGE_SIZE) : page > 10 ? len : 0;

	if (plain(fd, addr, buf, good).good != good)
		abort();
	return (struct drv_result){ .good = good,
				    .error = good < len ? 14 + (page == 10) : 0,
				    .exact = true };
}

/* One answer for all that fail alike, and no page lost behind them. */
TEST(pages_that_fail_alike_come_in_one_answer)
{
	static const struct reader_device device = { .read = fails_from_8_to_10 };
	struct reader_process *p = start(&device);
	struct drv_result r = reader_process_read(p, 7 * PAGE_SIZE, buffer, SIZE);
	uint8_t want[PAGE_SIZE];

	assert_int_equal(r.good, PAGE_SIZE);
	assert_int_equal(r.error, 14);
	assert_int_equal(r.bad, 2); /* the third fails in another way */
	pattern(want, 7 * PAGE_SIZE, PAGE_SIZE);
	assert_memory_equal(buffer, want, PAGE_SIZE);
	r = reader_process_read(p, 10 * PAGE_SIZE, buffer, SIZE);
	assert_int_equal(r.bad, 1);
	assert_int_equal(reader_process_read(p, 11 * PAGE_SIZE, buffer, SIZE).good, SIZE);
	reader_process_stop(p);
}

TEST(memory_comes_from_another_process)
{
	static const struct reader_device device = { .begin = begin_with_a_fact, .read = plain },
					  who = { .read = tells_who_it_is, .one_cpu = true };
	struct reader_opening how;
	struct reader_process *p = NULL;
	struct err e = ERR_INIT;
	struct drv_result r;
	pid_t pid;

	CHECK_OK(reader_process_start(&device, memory.path, SIZE, &p, &how, &e), &e);
	assert_int_equal(how.fact, 42);
	assert_int_equal(how.cpu, -1);
	check_read(p, 0);
	check_read(p, 12);
	r = reader_process_read(p, 14 * PAGE_SIZE, buffer, SIZE);
	assert_int_equal(r.good, 2 * PAGE_SIZE);
	assert_int_equal(r.error, DRV_POISONED);
	assert_null(reader_process_death(p));
	reader_process_stop(p);

	CHECK_OK(reader_process_start(&who, memory.path, SIZE, &p, &how, &e), &e);
	assert_true(how.cpu >= 0);
	reader_process_read(p, 0, buffer, PAGE_SIZE);
	memcpy(&pid, buffer, sizeof(pid));
	assert_int_not_equal(pid, getpid());
	reader_process_stop(p);
	assert_int_equal(kill(pid, 0), -1); /* and buried */
}

/* A pipe that it kept open would not end; nor would its own reading end. */
TEST(it_keeps_nothing_of_ours_open)
{
	static const struct reader_device device = { .read = counts_descriptors };
	struct reader_process *p;
	size_t count;
	int pipe_of_ours[2];

	assert_int_equal(pipe(pipe_of_ours), 0);
	p = start(&device);
	reader_process_read(p, 0, buffer, PAGE_SIZE);
	memcpy(&count, buffer, sizeof(count));
	assert_int_equal(count, 1); /* its socket */
	reader_process_stop(p);
	close(pipe_of_ours[0]);
	close(pipe_of_ours[1]);
}

TEST(its_death_is_an_error_and_not_ours)
{
	static const struct reader_device device = { .read = dies_at_page_8 };
	struct reader_process *p = start(&device);
	struct drv_result r;

	check_read(p, 0);
	r = reader_process_read(p, 8 * PAGE_SIZE, buffer, SIZE);
	assert_true(r.dead);
	assert_int_equal(r.good, 0);
	CHECK_HAS(reader_process_death(p), "killed by signal 9");
	reader_process_stop(p);
}

TEST(waiting_for_it_has_an_end)
{
	static const struct reader_device device = { .read = hangs_at_page_8 };
	struct reader_process *p = start(&device);
	struct drv_result r;

	reader_process_set_patience(300);
	r = reader_process_read(p, 8 * PAGE_SIZE, buffer, SIZE);
	assert_true(r.dead);
	CHECK_HAS(reader_process_death(p), "hangs");
	reader_process_stop(p);
}

/* Ctrl-C goes to the whole group: what it means is the parent's business. */
TEST(signals_are_not_its_business)
{
	static const struct reader_device device = { .read = tells_who_it_is };
	struct reader_process *p = start(&device);
	pid_t pid;

	reader_process_read(p, 0, buffer, PAGE_SIZE);
	memcpy(&pid, buffer, sizeof(pid));
	kill(pid, SIGINT);
	kill(pid, SIGTERM);
	kill(pid, SIGHUP);
	assert_int_equal(reader_process_read(p, 0, buffer, SIZE).good, SIZE);
	reader_process_stop(p);
}

TEST(what_cannot_be_opened_leaves_no_process)
{
	static const struct reader_device plain_device = { .read = plain },
					  vain = { .begin = begin_in_vain, .read = plain },
					  deadly = { .begin = begin_and_die, .read = plain };
	struct reader_opening how;
	struct reader_process *p = NULL;
	struct err e = ERR_INIT;

	CHECK_OK(reader_process_start(&plain_device, "/nowhere", SIZE, &p, &how, &e), &e);
	assert_null(p);
	assert_true(how.open);
	assert_int_equal(how.error, ENOENT);
	CHECK_OK(reader_process_start(&vain, memory.path, SIZE, &p, &how, &e), &e);
	assert_null(p);
	assert_false(how.open);
	assert_int_equal(how.error, ENOTTY);
	CHECK_STATUS(reader_process_start(&deadly, memory.path, SIZE, &p, &how, &e),
		     ST_SOURCE_FAILED, &e);
	assert_null(p);
	CHECK_HAS(e.message, "killed by signal 9");
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

#define PROCESS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PROCESS_TEST(memory_comes_from_another_process),
		PROCESS_TEST(pages_that_fail_alike_come_in_one_answer),
		PROCESS_TEST(it_keeps_nothing_of_ours_open),
		PROCESS_TEST(its_death_is_an_error_and_not_ours),
		PROCESS_TEST(waiting_for_it_has_an_end),
		PROCESS_TEST(signals_are_not_its_business),
		PROCESS_TEST(what_cannot_be_opened_leaves_no_process),
	};

	return cmocka_run_group_tests_name("reader_process", tests, NULL, NULL);
}
