/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/shared/program/clock.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"

/* A log that goes to a file in memory. */
static int begin(bool json, bool quiet, bool verbose)
{
	const int fd = memfd_create("log", MFD_CLOEXEC);

	assert_true(fd >= 0);
	log_init(
		&(struct log_config){ .fd = fd, .json = json, .quiet = quiet, .verbose = verbose });
	return fd;
}

/* What was logged, for free(); the log goes back to stderr. */
static char *end(int fd)
{
	const off_t size = lseek(fd, 0, SEEK_END);
	char *text = calloc(1, (size_t)size + 1);

	assert_int_equal(pread(fd, text, (size_t)size, 0), size);
	close(fd);
	log_init(&(struct log_config){ .fd = STDERR_FILENO });
	return text;
}

static json_t *parsed(const char *line)
{
	json_error_t why;
	json_t *object = json_loads(line, 0, &why);

	if (!object)
		fail_msg("%s: %s", why.text, line);
	return object;
}

static void log_all_levels(void)
{
	log_debug("e", "d %d", 1);
	log_info("e", "i");
	log_result("e", "r");
	log_warning("e", "w");
	log_error("e", "verify: x");
}

static void check_levels(bool quiet, bool verbose, const char *want)
{
	const int fd = begin(false, quiet, verbose);
	_cleanup_free_ char *text = NULL;

	log_all_levels();
	text = end(fd);
	assert_string_equal(text, want);
}

TEST(people_get_the_lines_that_they_asked_for)
{
	check_levels(false, false,
		     "ramseal: i\nramseal: r\nramseal: warning: w\nramseal: verify: x\n");
	check_levels(true, false, "ramseal: warning: w\nramseal: verify: x\n");
	check_levels(false, true,
		     "ramseal: debug: d 1\nramseal: i\nramseal: r\nramseal: warning: w\n"
		     "ramseal: verify: x\n");
}

TEST(line_for_people_is_one_line_and_harmless_to_a_terminal)
{
	const int fd = begin(false, false, false);
	_cleanup_free_ char *text = NULL;

	log_info("e", "%s", "a\nb\033[2J \xc3\xa4 \xff \xc2\x9b \\");
	text = end(fd);
	assert_string_equal(text, "ramseal: a\\x0ab\\x1b[2J \xc3\xa4 \\xff \\xc2\\x9b \\\n");
}

TEST(json_line_has_all_fields)
{
	const int fd = begin(true, false, false);
	_cleanup_free_ char *text = NULL;
	json_t *o;

	log_warning_with(JSON_FIELDS(field_text("t", "x"), field_text("none", NULL),
				     field_u64("u", 7), field_u64("huge", UINT64_MAX),
				     field_i64("i", -7), field_bool("b", true),
				     field_real("r", 0.5), field_real("nan", NAN),
				     field_json("j", json_pack("[i]", 3)),
				     field_text("event", "cannot overwrite ours")),
			 "some-event", "text %d", 5);
	text = end(fd);
	o = parsed(text);
	assert_string_equal(json_string_value(json_object_get(o, "level")), "warning");
	assert_string_equal(json_string_value(json_object_get(o, "event")), "some-event");
	assert_string_equal(json_string_value(json_object_get(o, "message")), "text 5");
	assert_string_equal(json_string_value(json_object_get(o, "t")), "x");
	assert_true(json_is_null(json_object_get(o, "none")));
	assert_int_equal(json_integer_value(json_object_get(o, "u")), 7);
	assert_string_equal(json_string_value(json_object_get(o, "huge")), "18446744073709551615");
	assert_int_equal(json_integer_value(json_object_get(o, "i")), -7);
	assert_true(json_is_true(json_object_get(o, "b")));
	assert_true(json_real_value(json_object_get(o, "r")) == 0.5);
	assert_true(json_is_null(json_object_get(o, "nan")));
	assert_int_equal(json_integer_value(json_array_get(json_object_get(o, "j"), 0)), 3);
	assert_int_equal(strlen(json_string_value(json_object_get(o, "time"))),
			 CLOCK_RFC3339_SIZE - 1);
	assert_true(json_integer_value(json_object_get(o, "mono_ns")) > 0);
	assert_string_equal(strchr(text, '\n'), "\n");
	json_decref(o);
}

TEST(quiet_json_still_has_the_result)
{
	const int fd = begin(true, true, false);
	_cleanup_free_ char *text = NULL;

	log_all_levels();
	log_progress(NULL);
	text = end(fd);
	assert_null(strstr(text, "\"info\""));
	CHECK_HAS(text, "\"result\"");
	CHECK_HAS(text, "\"warning\"");
}

static void check_text(const char *bytes, size_t len, const char *want)
{
	json_t *v = json_bytes(bytes, len);

	assert_non_null(v);
	assert_int_equal(json_string_length(v), strlen(want));
	assert_string_equal(json_string_value(v), want);
	json_decref(v);
}

TEST(proper_text_is_itself_and_other_bytes_are_escaped)
{
	check_text("plain", 5, "plain");
	check_text("", 0, "");
	check_text("C:\\dir", 6, "C:\\dir");
	check_text("\xe2\x82\xac \xf0\x9f\x92\xbe", 8, "\xe2\x82\xac \xf0\x9f\x92\xbe");
	check_text("a\xff\\", 3, "a\\xff\\\\");
	check_text("a\0b", 3, "a\\x00b");
	/* What is proper has backslashes of its own. */
	check_text("\\xff", 4, "\\xff");
	check_text("Users\\xaver\\NTUSER.DAT", 22, "Users\\xaver\\NTUSER.DAT");
	check_text("\\x", 2, "\\x");
	check_text("\\\\x00\\", 6, "\\\\x00\\");
	check_text("\\xff\xff", 5, "\\\\xff\\xff");
	check_text("\xc0\xaf", 2, "\\xc0\\xaf"); /* overlong */
	check_text("\xe0\x80\xaf", 3, "\\xe0\\x80\\xaf");
	check_text("\xf0\x80\x80\xaf", 4, "\\xf0\\x80\\x80\\xaf");
	check_text("\xed\xa0\x80", 3, "\\xed\\xa0\\x80");          /* surrogate */
	check_text("\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80"); /* above U+10FFFF */
	check_text("\xe2\x82", 2, "\\xe2\\x82");                   /* cut */
	assert_true(json_is_null(json_text(NULL)));
}

TEST(path_of_any_bytes_makes_valid_json)
{
	const int fd = begin(true, false, false);
	_cleanup_free_ char *text = NULL;
	char path[256];
	json_t *o;

	for (int i = 0; i < 255; i++)
		path[i] = (char)(i + 1);
	path[255] = '\0';
	log_info_with(JSON_FIELDS(field_text("path", path)), "e", "%s", path);
	text = end(fd);
	o = parsed(text);
	CHECK_HAS(json_string_value(json_object_get(o, "path")), "\\x80\\x81");
	json_decref(o);
}

TEST(message_that_is_too_long_is_cut_and_stays_valid)
{
	const int fd = begin(true, false, false);
	_cleanup_free_ char *text = NULL;
	char longer[8192];
	json_t *o;

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	log_info("e", "%s", longer);
	text = end(fd);
	o = parsed(text);
	CHECK_HAS(json_string_value(json_object_get(o, "message")), "xxx...");
	json_decref(o);
}

struct collected {
	char text[1 << 16];
	size_t lines;
};

static void collect(void *arg, const char *line, size_t len)
{
	struct collected *c = arg;

	assert_int_equal(line[len - 1], '\n');
	assert_int_equal(strlen(line), len);
	snprintf(c->text + strlen(c->text), sizeof(c->text) - strlen(c->text), "%s", line);
	c->lines++;
	if (c->lines < 100)
		log_info("from-the-tee", "must neither loop nor lock up");
}

TEST(tee_gets_json_of_every_level_but_no_progress)
{
	static struct collected c;
	const int fd = begin(false, true, false);
	_cleanup_free_ char *text = NULL;

	log_tee(collect, &c);
	log_all_levels();
	log_progress(JSON_FIELDS(field_u64("bytes", 1)));
	log_tee(NULL, NULL);
	log_info("e", "after");
	text = end(fd);
	assert_int_equal(c.lines, 5);
	CHECK_HAS(c.text, "\"level\": \"debug\"");
	assert_null(strstr(c.text, "progress"));
	assert_null(strstr(c.text, "after"));
	assert_string_equal(text, "ramseal: warning: w\nramseal: verify: x\n");
}

static void *log_one_apart(void *arg)
{
	log_apart();
	log_warning("e", "apart");
	return arg;
}

TEST(lines_of_a_thread_apart_are_shown_and_not_kept)
{
	static struct collected c;
	const int fd = begin(false, true, false);
	_cleanup_free_ char *text = NULL;
	pthread_t thread;

	log_tee(collect, &c);
	assert_int_equal(pthread_create(&thread, NULL, log_one_apart, NULL), 0);
	pthread_join(thread, NULL);
	log_warning("e", "together");
	log_tee(NULL, NULL);
	text = end(fd);
	assert_int_equal(c.lines, 1);
	CHECK_HAS(c.text, "together");
	assert_string_equal(text, "ramseal: warning: apart\nramseal: warning: together\n");
}

static void *log_many(void *arg)
{
	for (int i = 0; i < 200; i++)
		log_info_with(JSON_FIELDS(field_i64("i", i)), "e", "thread %s line %d",
			      (const char *)arg, i);
	return NULL;
}

TEST(lines_of_many_threads_stay_whole)
{
	static char names[4][2] = { "a", "b", "c", "d" };
	const int fd = begin(true, false, false);
	_cleanup_free_ char *text = NULL;
	pthread_t threads[4];
	int lines = 0;
	json_int_t before = 0;

	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, log_many, names[i]), 0);
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	text = end(fd);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), lines++) {
		json_t *o = parsed(line);
		const json_int_t mono = json_integer_value(json_object_get(o, "mono_ns"));

		assert_true(mono >= before);
		before = mono;
		json_decref(o);
	}
	assert_int_equal(lines, 800);
}

TEST(log_line_goes_above_the_status_line)
{
	const int fd = begin(false, false, false);
	_cleanup_free_ char *text = NULL;

	log_status_line(NULL); /* nothing to take away, nothing is written */
	log_status_line("50%");
	log_info("e", "news");
	log_status_line(NULL);
	log_info("e", "after");
	text = end(fd);
	assert_string_equal(text, "\r\033[K50%"
				  "\r\033[Kramseal: news\n50%"
				  "\r\033[K"
				  "ramseal: after\n");
}

TEST(times_are_written_in_utc)
{
	char time[CLOCK_RFC3339_SIZE], name[CLOCK_FILE_NAME_SIZE];
	const uint64_t ns = UINT64_C(951782400000000042); /* a leap day */

	clock_rfc3339(ns, time);
	clock_file_name(ns, name);
	assert_string_equal(time, "2000-02-29T00:00:00.000000042Z");
	assert_string_equal(name, "20000229T000000Z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(people_get_the_lines_that_they_asked_for),
		cmocka_unit_test(line_for_people_is_one_line_and_harmless_to_a_terminal),
		cmocka_unit_test(json_line_has_all_fields),
		cmocka_unit_test(quiet_json_still_has_the_result),
		cmocka_unit_test(proper_text_is_itself_and_other_bytes_are_escaped),
		cmocka_unit_test(path_of_any_bytes_makes_valid_json),
		cmocka_unit_test(message_that_is_too_long_is_cut_and_stays_valid),
		cmocka_unit_test(tee_gets_json_of_every_level_but_no_progress),
		cmocka_unit_test(lines_of_a_thread_apart_are_shown_and_not_kept),
		cmocka_unit_test(lines_of_many_threads_stay_whole),
		cmocka_unit_test(log_line_goes_above_the_status_line),
		cmocka_unit_test(times_are_written_in_utc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
