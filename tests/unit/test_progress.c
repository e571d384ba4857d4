/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <pty.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/progress.h"
#include "agent/shared/program/text.h"

#define GIB (UINT64_C(1) << 30)

static const struct progress_numbers half = {
	.label = "memory", .done = 2 * GIB, .total = 4 * GIB, .rate = GIB / 4, .unreadable = 3
};

static void check_line(const struct progress_numbers *n, unsigned columns, const char *want)
{
	char line[512];

	progress_format(n, columns, line, sizeof(line));
	assert_string_equal(line, want);
}

TEST(wide_terminal_shows_everything)
{
	check_line(&half, 120,
		   "memory  [####################--------------------]  50%  2.0 GiB/4.0 GiB  "
		   "256.0 MiB/s  0:08 left  3 unreadable");
}

TEST(narrow_terminal_gives_up_the_bar_first_and_the_percentage_last)
{
	check_line(
		&half, 79,
		"memory  [####----]  50%  2.0 GiB/4.0 GiB  256.0 MiB/s  0:08 left  3 unreadable");
	check_line(&half, 78,
		   "memory   50%  2.0 GiB/4.0 GiB  256.0 MiB/s  0:08 left  3 unreadable");
	check_line(&half, 60, "memory   50%  2.0 GiB/4.0 GiB  256.0 MiB/s  3 unreadable");
	check_line(&half, 50, "memory   50%  2.0 GiB/4.0 GiB  3 unreadable");
	check_line(&half, 30, "memory   50%  3 unreadable");
	check_line(&half, 20, " 50%  3 unreadable");
	check_line(&half, 18, " 50%"); /* half of a number would be another number */
	check_line(&half, 10, " 50%");
	check_line(&half, 5, " 50%");
	check_line(&half, 4, "");
	check_line(&half, 1, "");
	check_line(&half, 0, "");
}

TEST(line_never_fills_the_terminal)
{
	struct progress_numbers n = half;
	char line[512];

	n.label = "a label that is longer than anybody would like a label to be, really";
	n.unreadable = UINT64_MAX;
	n.done = n.rate = UINT64_MAX / 2;
	n.total = UINT64_MAX;
	for (unsigned columns = 1; columns < 300; columns++) {
		assert_true(progress_format(&n, columns, line, sizeof(line)) < columns);
		assert_int_equal(strlen(line), strspn(line, "\x20!\"#$%&'()*+,-./0123456789:;<=>?@"
							    "ABCDEFGHIJKLMNOPQRSTUVWXYZ[]"
							    "abcdefghijklmnopqrstuvwxyz"));
	}
}

/* As a terminal counts that shows each character of these as two columns. */
static size_t columns_of(const char *line)
{
	size_t ret = 0;

	for (; *line; line++)
		if (((unsigned char)*line & 0xc0) != 0x80)
			ret += (unsigned char)*line < 0x80 ? 1 : 2;
	return ret;
}

TEST(label_is_no_wider_than_it_looks)
{
	/* Characters of two columns each; bytes that are no UTF-8; escapes. */
	static const char *const labels[] = {
		"C:\\\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\\\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e."
		"sys",
		"\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97"
		"\xa5"
		"\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97"
		"\xa5",
		"\xff\xfe\xe6\x97",
		"\x1b[2J\x1b[31m\n\r\t",
	};
	char line[512];

	for (size_t i = 0; i < ARRAY_SIZE(labels); i++) {
		struct progress_numbers n = half;

		n.label = labels[i];
		for (unsigned columns = 1; columns < 200; columns++) {
			progress_format(&n, columns, line, sizeof(line));
			assert_true(columns_of(line) < columns);
			for (const char *c = line; *c; c++)
				assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
		}
		CHECK_HAS(line, "] "); /* the bar is behind the label, and whole */
		CHECK_HAS(line, "  [###");
	}
}

TEST(long_label_shows_its_end)
{
	struct progress_numbers n = half;

	n.label = "/var/lib/a/folder/far/below/pagefile.sys";
	check_line(&n, 40, "...low/pagefile.sys   50%  3 unreadable");
	check_line(&n, 120,
		   "/var/lib/a/folder/far/below/pagefile.sys  [#######--------]  50%  "
		   "2.0 GiB/4.0 GiB  256.0 MiB/s  0:08 left  3 unreadable");
}

TEST(unknown_total_has_no_bar_and_no_end)
{
	check_line(&(struct progress_numbers){ .label = "x", .done = 1536, .rate = 10 }, 80,
		   "x  1.5 KiB  10 B/s");
}

TEST(hundred_percent_only_at_the_end)
{
	char line[512];

	progress_format(&(struct progress_numbers){ .label = "x", .done = 999, .total = 1000 }, 30,
			line, sizeof(line));
	CHECK_HAS(line, " 99%");
	progress_format(&(struct progress_numbers){ .label = "x", .done = 1001, .total = 1000 }, 30,
			line, sizeof(line));
	CHECK_HAS(line, "100%");
}

TEST(time_left_is_rounded_up_and_unknown_without_a_rate)
{
	struct progress_numbers n = { .done = 10, .total = 100, .rate = 40 };

	assert_int_equal(progress_seconds_left(&n), 3);
	n.rate = 0;
	assert_int_equal(progress_seconds_left(&n), UINT64_MAX);
	n = (struct progress_numbers){ .done = 200, .total = 100, .rate = 1 };
	assert_int_equal(progress_seconds_left(&n), 0);
}

TEST(amounts_and_durations_read_well)
{
	char size[TEXT_SIZE_MAX], duration[TEXT_DURATION_MAX];

	text_size(1023, size);
	assert_string_equal(size, "1023 B");
	text_size((UINT64_C(1) << 20) - 1, size);
	assert_string_equal(size, "1.0 MiB");
	text_size(UINT64_MAX, size);
	assert_string_equal(size, "16.0 EiB");
	text_duration(3723, duration);
	assert_string_equal(duration, "1:02:03");
	text_duration(UINT64_MAX, duration);
	assert_string_equal(duration, "-:--");
	text_duration(UINT64_MAX - 1, duration);
	assert_string_equal(duration, ">99 h");
}

/* `ask`: somebody does, at half of it. */
static char *run_progress(enum progress_mode mode, bool ask)
{
	const int fd = memfd_create("log", MFD_CLOEXEC);
	char *text = calloc(1, 65536);
	struct progress p;

	log_init(&(struct log_config){
		.fd = fd, .json = mode == PROGRESS_JSON, .quiet = mode == PROGRESS_QUIET });
	progress_init(&p, mode, "memory", 5000);
	for (unsigned i = 0; i < 5000; i++) {
		if (ask && i == 2500)
			raise(SIGUSR1);
		progress_update(&p, i, i / 1000);
	}
	progress_update(&p, 5000, 4);
	progress_finish(&p);
	(void)!pread(fd, text, 65535, 0);
	close(fd);
	log_init(&(struct log_config){ .fd = STDERR_FILENO });
	return text;
}

TEST(events_come_once_a_second_and_once_at_the_end)
{
	_cleanup_free_ char *text = run_progress(PROGRESS_JSON, false);
	char *last = strchr(text, '\n');
	json_t *o;

	assert_non_null(last); /* the first at once, the last with what was done, none between */
	o = json_loads(last + 1, 0, NULL);
	assert_non_null(o);
	assert_string_equal(json_string_value(json_object_get(o, "event")), "progress");
	assert_int_equal(json_integer_value(json_object_get(o, "bytes")), 5000);
	assert_int_equal(json_integer_value(json_object_get(o, "total_bytes")), 5000);
	assert_int_equal(json_integer_value(json_object_get(o, "unreadable_pages")), 4);
	json_decref(o);
}

TEST(quiet_shows_nothing)
{
	_cleanup_free_ char *text = run_progress(PROGRESS_QUIET, false);

	assert_string_equal(text, "");
}

TEST(who_asks_gets_a_line_also_if_quiet)
{
	static const char first[] = "ramseal: memory   50%  2.4 KiB/4.9 KiB  ";
	_cleanup_free_ char *text = run_progress(PROGRESS_QUIET, true);
	_cleanup_free_ char *json = run_progress(PROGRESS_JSON, true);
	size_t lines = 0;

	assert_memory_equal(text, first, sizeof(first) - 1);
	assert_non_null(strstr(text, "2 unreadable\n"));
	assert_string_equal(strchr(text, '\n'), "\n");
	for (const char *c = json; *c; c++)
		lines += *c == '\n';
	assert_int_equal(lines, 3);
	assert_non_null(strstr(json, "\"bytes\": 2500"));
}

/* What a terminal of 60 columns gets on stderr, for free(). */
static char *run_on_terminal(const char *kind)
{
	const struct winsize size = { .ws_row = 24, .ws_col = 60 };
	const int before = dup(STDERR_FILENO);
	char *text = calloc(1, 65536);
	int master, slave;
	struct progress p;
	size_t len = 0;

	assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
	setenv("TERM", kind, 1);
	dup2(slave, STDERR_FILENO);
	log_init(&(struct log_config){ .fd = STDERR_FILENO });
	progress_init(&p, PROGRESS_AUTO, "memory", 2000);
	for (unsigned i = 0; i < 1000; i++)
		progress_update(&p, i, 0);
	progress_finish(&p);
	dup2(before, STDERR_FILENO);
	close(before);
	close(slave);
	/* The kernel hands the bytes over when it likes; EIO comes when there are no more. */
	for (ssize_t n; (n = read(master, text + len, 65535 - len)) > 0;)
		len += (size_t)n;
	close(master);
	return text;
}

TEST(terminal_gets_one_line_that_is_taken_away_again)
{
	static const char first[] = "\r\033[Kmemory  [--------------------]   0%  0 B/2.0 KiB  "
				    "-:-- left";
	_cleanup_free_ char *text = run_on_terminal("xterm");
	size_t drawn = 0;

	assert_memory_equal(text, first, sizeof(first) - 1);
	assert_string_equal(text + strlen(text) - 4, "\r\033[K");
	/* A thousand updates in no time are one line; a machine that was busy may need more. */
	for (const char *c = text; *c; c++)
		drawn += *c == '\r';
	assert_in_range(drawn, 2, 20);
}

TEST(dumb_terminal_gets_nothing)
{
	_cleanup_free_ char *text = run_on_terminal("dumb");

	assert_string_equal(text, "");
}

/* From another thread; here from the same one. */
TEST(others_see_the_pass_that_began_first_until_it_ends)
{
	char label[PROGRESS_LABEL_MAX], name[] = "memory";
	struct progress_numbers n;
	struct progress first, second;

	assert_false(progress_now(&n, label));
	progress_init(&first, PROGRESS_QUIET, name, 4 * GIB);
	progress_init(&second, PROGRESS_QUIET, "page files", GIB);
	progress_update(&first, 2 * GIB, 3);
	progress_update(&second, 1, 0);
	memset(name, 'x', sizeof(name) - 1); /* borrowed no longer than for the call */
	assert_true(progress_now(&n, label));
	assert_string_equal(label, "memory");
	assert_int_equal(n.done, 2 * GIB);
	assert_int_equal(n.total, 4 * GIB);
	assert_int_equal(n.unreadable, 3);
	progress_finish(&second);
	assert_true(progress_now(&n, label));
	progress_finish(&first);
	assert_false(progress_now(&n, label));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wide_terminal_shows_everything),
		cmocka_unit_test(narrow_terminal_gives_up_the_bar_first_and_the_percentage_last),
		cmocka_unit_test(line_never_fills_the_terminal),
		cmocka_unit_test(label_is_no_wider_than_it_looks),
		cmocka_unit_test(long_label_shows_its_end),
		cmocka_unit_test(unknown_total_has_no_bar_and_no_end),
		cmocka_unit_test(hundred_percent_only_at_the_end),
		cmocka_unit_test(time_left_is_rounded_up_and_unknown_without_a_rate),
		cmocka_unit_test(amounts_and_durations_read_well),
		cmocka_unit_test(events_come_once_a_second_and_once_at_the_end),
		cmocka_unit_test(quiet_shows_nothing),
		cmocka_unit_test(terminal_gets_one_line_that_is_taken_away_again),
		cmocka_unit_test(dumb_terminal_gets_nothing),
		cmocka_unit_test(who_asks_gets_a_line_also_if_quiet),
		cmocka_unit_test(others_see_the_pass_that_began_first_until_it_ends),
	};

	interrupt_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
