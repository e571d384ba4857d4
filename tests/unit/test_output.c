/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <errno.h>
#include <linux/loop.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include "agent/shared/output/output.h"
#include "agent/shared/output/output_linux.h"
#include "agent/shared/output/output_set.h"
#include "tests/unit/scratch.h"

static struct scratch dir;

static int set_up(void **state)
{
	(void)state;
	scratch_init(&dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_deinit(&dir);
	return 0;
}

static struct output *open_named(const char *name, bool force)
{
	struct err e = ERR_INIT;
	struct output *o = NULL;

	CHECK_OK(output_open(&(struct output_options){ .path = scratch_path(&dir, name),
						       .force = force },
			     &o, &e),
		 &e);
	return o;
}

static void append(struct output *o, const char *text)
{
	struct err e = ERR_INIT;

	CHECK_OK(sink_write(output_sink(o), text, strlen(text), &e), &e);
}

static void commit(struct output *o)
{
	struct err e = ERR_INIT;

	CHECK_OK(output_commit(o, &e), &e);
}

static void check_refused(const char *path, const char *message)
{
	struct err e = ERR_INIT;
	struct output *o = NULL;

	CHECK_STATUS(output_open(&(struct output_options){ .path = path }, &o, &e), ST_OUTPUT, &e);
	CHECK_HAS(e.message, message);
	assert_null(o);
}

static void check_content(const char *name, const char *want)
{
	_cleanup_free_ char *text = scratch_read(&dir, name);

	assert_non_null(text);
	assert_string_equal(text, want);
}

TEST(file_has_its_name_only_when_it_is_complete)
{
	_cleanup_output_ struct output *o = open_named("a.rsz", false);
	struct stat sb;

	append(o, "one");
	assert_false(scratch_has(&dir, "a.rsz"));
	check_content("a.rsz.partial", "one");
	CHECK_HAS(output_where(o), "/a.rsz.partial");
	append(o, "two");
	assert_int_equal(output_bytes(o), 6);
	commit(o);
	check_content("a.rsz", "onetwo");
	assert_false(scratch_has(&dir, "a.rsz.partial"));
	assert_string_equal(output_where(o), output_name(o));
	assert_int_equal(stat(scratch_path(&dir, "a.rsz"), &sb), 0);
	assert_int_equal(sb.st_mode & 07777, 0600);
}

TEST(file_is_rewritten_and_goes_on_at_its_end)
{
	struct output *o = open_named("rewritten", false), *null = NULL;
	struct err e = ERR_INIT;

	append(o, "head body");
	CHECK_OK(output_sink(o)->rewrite(output_sink(o), 0, "HEAD", 4, &e), &e);
	append(o, " tail");
	assert_int_equal(output_bytes(o), 14);
	commit(o);
	output_destroy(o);
	check_content("rewritten", "HEAD body tail");
	CHECK_OK(output_open(&(struct output_options){ .path = "/dev/null" }, &null, &e), &e);
	assert_null(output_sink(null)->rewrite);
	output_destroy(null);
}

TEST(unfinished_file_stays_unless_it_is_empty_or_discarded)
{
	struct output *o = open_named("a", false);

	append(o, "sealed so far");
	output_destroy(o);
	check_content("a.partial", "sealed so far");
	assert_false(scratch_has(&dir, "a"));

	output_destroy(open_named("b", false));
	assert_false(scratch_has(&dir, "b.partial"));

	o = open_named("c", false);
	append(o, "worth nothing");
	output_discard(o);
	output_destroy(o);
	assert_false(scratch_has(&dir, "c.partial"));
}

TEST(existing_file_is_refused_and_left_alone)
{
	scratch_write(&dir, "a", "old", 3);
	check_refused(scratch_path(&dir, "a"),
		      "/a exists; choose another name, or --force replaces it");
	check_content("a", "old");
	assert_false(scratch_has(&dir, "a.partial"));
}

/* It is evidence: neither a second try nor --force may cost it. */
TEST(unfinished_file_of_an_earlier_run_is_left_alone)
{
	for (int force = 0; force < 2; force++) {
		_cleanup_output_ struct output *o = NULL;

		scratch_write(&dir, "a.partial", "evidence", 8);
		scratch_write(&dir, "a.2.partial", "more of it", 10);
		o = open_named("a", force);
		append(o, "new");
		CHECK_HAS(output_where(o), "/a.3.partial");
		commit(o);
		check_content("a", "new");
		check_content("a.partial", "evidence");
		check_content("a.2.partial", "more of it");
		assert_false(scratch_has(&dir, "a.3.partial"));
		assert_int_equal(unlink(scratch_path(&dir, "a")), 0);
	}
}

TEST(force_replaces_the_file_but_only_at_the_end)
{
	_cleanup_output_ struct output *o = NULL;

	scratch_write(&dir, "a", "old", 3);
	o = open_named("a", true);
	append(o, "new");
	check_content("a", "old");
	commit(o);
	check_content("a", "new");
}

TEST(kept_file_has_its_temporary_name)
{
	struct err e = ERR_INIT;
	struct output *o = open_named("a", false);

	append(o, "list");
	CHECK_OK(output_keep(o, &e), &e);
	CHECK_HAS(output_where(o), "/a.partial");
	output_destroy(o);
	check_content("a.partial", "list");
	assert_false(scratch_has(&dir, "a"));
}

TEST(what_is_being_read_is_not_replaced)
{
	_cleanup_free_ char *input = strdup(scratch_path(&dir, "in"));
	_cleanup_free_ char *link = strdup(scratch_path(&dir, "link"));
	_cleanup_free_ char *hard = strdup(scratch_path(&dir, "hard"));
	const char *const inputs[] = { "/dev/null", link, NULL };
	struct output_options o = { .force = true, .inputs = inputs };
	struct err e = ERR_INIT;
	struct output *out = NULL;

	scratch_write(&dir, "in", "evidence", 8);
	assert_int_equal(symlink("in", link), 0);
	assert_int_equal(linkat(AT_FDCWD, input, AT_FDCWD, hard, 0), 0);
	for (int i = 0; i < 3; i++) {
		o.path = i == 0 ? input : i == 1 ? hard : "/dev/null";
		CHECK_STATUS(output_open(&o, &out, &e), ST_OUTPUT, &e);
		CHECK_HAS(e.message, ": is the input that is being read");
		assert_null(out);
	}
	check_content("in", "evidence");
	o.path = scratch_path(&dir, "other");
	CHECK_OK(output_open(&o, &out, &e), &e);
	output_destroy(out);
}

TEST(output_knows_its_name_however_it_is_told)
{
	_cleanup_output_ struct output *a = open_named("a", false), *null = NULL;
	char path[256];
	struct err e = ERR_INIT;

	snprintf(path, sizeof(path), "%s/../%s/a", dir.path, strrchr(dir.path, '/') + 1);
	assert_true(output_is_at(a, path));
	assert_true(output_is_at(a, scratch_path(&dir, "a")));
	assert_false(output_is_at(a, scratch_path(&dir, "b")));
	assert_false(output_is_at(a, "a"));
	assert_false(output_is_at(a, "-"));
	CHECK_OK(output_open(&(struct output_options){ .path = "/dev/null" }, &null, &e), &e);
	assert_true(output_is_at(null, "/dev/../dev/null"));
	assert_false(output_is_at(null, "/dev/full"));
}

/* Not the next try, but one too many: both would want the name in the end. */
TEST(output_that_is_being_written_is_refused)
{
	_cleanup_output_ struct output *o = open_named("a", true);

	append(o, "one");
	check_refused(scratch_path(&dir, "a"), "/a.partial: another process is writing");
	assert_false(scratch_has(&dir, "a.2.partial"));
}

TEST(file_that_appeared_meanwhile_is_not_overwritten)
{
	_cleanup_output_ struct output *o = open_named("a", false);
	struct err e = ERR_INIT;

	append(o, "ours");
	scratch_write(&dir, "a", "theirs", 6);
	CHECK_STATUS(output_commit(o, &e), ST_OUTPUT, &e);
	CHECK_HAS(e.message, "/a appeared in the meantime; the complete output is in ");
	check_content("a", "theirs");
	check_content("a.partial", "ours");
}

static void put_member(const struct output_set *s, const char *ending, const char *text)
{
	_cleanup_free_ char *path = NULL;
	FILE *f;

	assert_true(asprintf(&path, "%s.%s", output_set_base(s), ending) > 0);
	f = fopen(path, "wb");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

/* One file of it is enough, whichever that is; what only looks like one is none. */
TEST(set_of_which_one_file_is_there_is_not_replaced)
{
	static const char *const members[] = { "set.E01", "set.E02", "set.EAA", "set.ZZZ" };
	static const char *const others[] = { "set.E1", "set.D01", "set.E001", "se.E01",
					      "set2.E01" };
	_cleanup_free_ char *path = strdup(scratch_path(&dir, "set.E01"));
	struct output_options options = { .path = path };
	struct output_set *s = NULL;
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		scratch_write(&dir, members[i], "theirs", 6);
		CHECK_STATUS(output_set_open(&options, ".E01", &s, &e), ST_OUTPUT, &e);
		CHECK_HAS(e.message, members[i]);
		CHECK_HAS(e.message, " exists; choose another name, or --force replaces it");
		check_content(members[i], "theirs");
		assert_false(scratch_has(&dir, "set.E01.partial"));
		options.force = true;
		CHECK_OK(output_set_open(&options, ".E01", &s, &e), &e);
		put_member(s, "E01", "ours");
		check_content(members[i], "theirs");
		CHECK_OK(output_set_commit(s, &e), &e);
		output_set_destroy(s);
		check_content("set.E01", "ours");
		assert_true(!i || !scratch_has(&dir, members[i]));
		assert_int_equal(remove(path), 0);
		options.force = false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		scratch_write(&dir, others[i], "theirs", 6);
	CHECK_OK(output_set_open(&options, ".E01", &s, &e), &e);
	output_set_destroy(s);
}

/* All of it, or nothing of it, is where it should be. */
TEST(set_of_which_one_appeared_meanwhile_stays_in_its_folder)
{
	static const char *const endings[] = { "E01", "E02", "E03" };
	const struct output_options options = { .path = scratch_path(&dir, "set.E01") };
	struct output_set *s = NULL;
	_cleanup_free_ char *folder = NULL;
	struct err e = ERR_INIT;
	char name[64];

	CHECK_OK(output_set_open(&options, ".E01", &s, &e), &e);
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++)
		put_member(s, endings[i], endings[i]);
	scratch_write(&dir, "set.E02", "theirs", 6);
	CHECK_STATUS(output_set_commit(s, &e), ST_OUTPUT, &e);
	CHECK_HAS(e.message, "set.E02 appeared in the meantime; the complete output is in ");
	folder = output_set_folder(s);
	assert_string_equal(folder, scratch_path(&dir, "set.E01.partial"));
	output_set_destroy(s);
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
		snprintf(name, sizeof(name), "set.E01.partial/set.%s", endings[i]);
		check_content(name, endings[i]);
	}
	assert_false(scratch_has(&dir, "set.E01"));
	assert_false(scratch_has(&dir, "set.E03"));
	check_content("set.E02", "theirs");
}

TEST(rename_that_reserves_the_name_overwrites_nothing_either)
{
	const int fd = open(dir.path, O_RDONLY | O_DIRECTORY);

	scratch_write(&dir, "from", "ours", 4);
	scratch_write(&dir, "to", "theirs", 6);
	assert_int_equal(target__rename_reserved(fd, "from", fd, "to"), EEXIST);
	check_content("to", "theirs");
	assert_int_equal(target__rename_reserved(fd, "from", fd, "new"), 0);
	check_content("new", "ours");
	assert_false(scratch_has(&dir, "from"));
	/* A name without a file behind it would look like a result. */
	assert_int_equal(target__rename_reserved(fd, "missing", fd, "empty"), ENOENT);
	assert_false(scratch_has(&dir, "empty"));
	close(fd);
}

TEST(directory_that_moves_takes_the_file_along)
{
	_cleanup_free_ char *from = NULL, *to = NULL;
	struct output *o;

	scratch_write(&dir, "d/x", "", 0);
	o = open_named("d/a", false);
	append(o, "text");
	from = strdup(scratch_path(&dir, "d"));
	to = strdup(scratch_path(&dir, "e"));
	assert_int_equal(rename(from, to), 0);
	commit(o);
	output_destroy(o);
	check_content("e/a", "text");
}

TEST(link_to_a_file_is_not_followed)
{
	_cleanup_free_ char *link = strdup(scratch_path(&dir, "link"));

	scratch_write(&dir, "precious", "old", 3);
	assert_int_equal(symlink("precious", link), 0);
	check_refused(link, "is a symbolic link");
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink("nowhere", link), 0);
	check_refused(link, "is a symbolic link");
	assert_false(scratch_has(&dir, "nowhere"));

	/* And none that waits under the temporary name. */
	assert_int_equal(symlink("precious", scratch_path(&dir, "b.partial")), 0);
	output_destroy(open_named("b", false));
	check_content("precious", "old");
}

TEST(link_to_a_device_is_followed_only_if_its_owner_is_trusted)
{
	_cleanup_free_ char *link = strdup(scratch_path(&dir, "link"));

	assert_int_equal(symlink("/dev/null", link), 0);
	output_destroy(open_named("link", false));
	if (geteuid() == 0 && lchown(link, 12345, 12345) == 0)
		check_refused(link, "is a symbolic link that belongs to another user");
}

TEST(what_is_no_target_says_so)
{
	check_refused(dir.path, "Is a directory");
	check_refused("", "is not a file name");
	check_refused("/tmp/", "is not a file name");
	check_refused("/nonexistent/a", "/nonexistent: No such file or directory");
	scratch_write(&dir, "file", "", 0);
	check_refused(scratch_path(&dir, "file/a"), "Not a directory");
}

TEST(full_device_is_an_output_error)
{
	struct err e = ERR_INIT;
	_cleanup_output_ struct output *o = NULL;

	CHECK_OK(output_open(&(struct output_options){ .path = "/dev/full" }, &o, &e), &e);
	CHECK_STATUS(sink_write(output_sink(o), "x", 1, &e), ST_OUTPUT, &e);
	assert_string_equal(e.message, "/dev/full: write: No space left on device");
}

TEST(target_that_is_visibly_too_small_is_refused_without_force)
{
	struct output_options options = { .path = scratch_path(&dir, "a"),
					  .need.least = UINT64_C(1) << 60 };
	struct err e = ERR_INIT;
	struct output *o = NULL;

	CHECK_STATUS(output_open(&options, &o, &e), ST_OUTPUT, &e);
	CHECK_HAS(e.message, "/a: may need 1.0 EiB, has room for only ");
	assert_false(scratch_has(&dir, "a.partial"));
	options.path = scratch_path(&dir, "a");
	options.force = true;
	CHECK_OK(output_open(&options, &o, &e), &e);
	output_destroy(o);
	options.path = scratch_path(&dir, "a");
	options.force = false;
	options.need.least = 1;
	CHECK_OK(output_open(&options, &o, &e), &e);
	output_destroy(o);
}

/* As if the disk had so much room, but for every user. What the limit was. */
static rlim_t limit_files(rlim_t most)
{
	struct rlimit limit;
	rlim_t was;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	was = limit.rlim_cur;
	limit.rlim_cur = most;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	return was;
}

/* A write that would touch the room for the end fails, and none that would not. */
static void check_room_for_the_end(uint64_t most)
{
	static char bytes[1 << 20];
	const size_t len = 300000;
	struct output_options options = { .path = scratch_path(&dir, "a"),
					  .reserve = sizeof(bytes) };
	struct output *o = NULL;
	struct err e = ERR_INIT;
	enum status st = ST_OK;
	rlim_t was;
	uint64_t had;

	signal(SIGXFSZ, SIG_IGN);
	CHECK_OK(output_open(&options, &o, &e), &e);
	was = limit_files(most);
	while (!st)
		st = sink_write(output_sink(o), bytes, len, &e);
	had = output_bytes(o);
	CHECK_STATUS(st, ST_OUTPUT, &e);
	assert_true(had + sizeof(bytes) <= most);
	assert_true(had + len + sizeof(bytes) > most);
	CHECK_OK(sink_cut(output_sink(o), had, &e), &e);
	CHECK_OK(sink_write(output_sink(o), bytes, sizeof(bytes), &e), &e);
	limit_files(was);
	commit(o);
	output_destroy(o);
	scratch_remove(scratch_path(&dir, "a"));
}

/* Room is kept in steps: the disk ends at several places of the last one. */
TEST(room_for_the_end_is_there_whenever_it_ends)
{
	for (uint64_t less = 0; less < 300000; less += 60000)
		check_room_for_the_end((9 << 20) + 12345 - less);
}

TEST(skipped_bytes_are_zeros_and_a_hole_at_the_end_counts)
{
	_cleanup_output_ struct output *o = open_named("a", false);
	struct err e = ERR_INIT;
	struct stat sb;
	FILE *f;

	CHECK_OK(sink_skip(output_sink(o), 1 << 20, &e), &e);
	append(o, "middle");
	CHECK_OK(sink_skip(output_sink(o), 1 << 20, &e), &e);
	assert_int_equal(output_bytes(o), (2 << 20) + 6);
	commit(o);
	assert_int_equal(stat(scratch_path(&dir, "a"), &sb), 0);
	assert_int_equal(sb.st_size, (2 << 20) + 6);
	assert_true(sb.st_blocks * 512 < 1 << 20);
	f = fopen(scratch_path(&dir, "a"), "rb");
	fseek(f, (1 << 20) - 1, SEEK_SET);
	assert_int_equal(fgetc(f), 0);
	assert_int_equal(fgetc(f), 'm');
	fclose(f);
}

/* Reads a FIFO to its end. */
static void *drain(void *arg)
{
	static char all[1 << 18];
	size_t len = 0;
	FILE *f = fopen(arg, "rb");

	len = fread(all, 1, sizeof(all), f);
	fclose(f);
	return (void *)(uintptr_t)(len == 100002 && all[0] == 'a' && all[1] == '\0' &&
				   all[100001] == 'z');
}

TEST(fifo_is_written_directly_and_gets_real_zeros)
{
	_cleanup_free_ char *path = strdup(scratch_path(&dir, "fifo"));
	struct err e = ERR_INIT;
	struct output *o;
	pthread_t reader;
	void *good;

	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(pthread_create(&reader, NULL, drain, path), 0);
	o = open_named("fifo", false);
	append(o, "a");
	CHECK_OK(sink_skip(output_sink(o), 100000, &e), &e);
	append(o, "z");
	commit(o);
	output_destroy(o);
	pthread_join(reader, &good);
	assert_non_null(good);
	assert_false(scratch_has(&dir, "fifo.partial"));
}

TEST(reader_that_goes_away_is_an_output_error)
{
	_cleanup_free_ char *path = strdup(scratch_path(&dir, "fifo"));
	struct err e = ERR_INIT;
	struct output *o;
	int reader;

	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(mkfifo(path, 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	o = open_named("fifo", false);
	close(reader);
	CHECK_STATUS(sink_write(output_sink(o), "x", 1, &e), ST_OUTPUT, &e);
	CHECK_HAS(e.message, "fifo: write: Broken pipe");
	output_destroy(o);
}

TEST(nothing_but_the_output_reaches_stdout)
{
	struct err e = ERR_INIT;
	struct output *o;
	char got[64] = "";
	const int before = dup(STDOUT_FILENO);
	int ends[2];

	fflush(stdout);
	assert_int_equal(pipe(ends), 0);
	dup2(ends[1], STDOUT_FILENO);
	CHECK_OK(output_open(&(struct output_options){ .path = "-" }, &o, &e), &e);
	assert_string_equal(output_name(o), "stdout");
	printf("[a stray line, on stderr]\n");
	fflush(stdout);
	append(o, "container");
	commit(o);
	output_destroy(o);
	dup2(before, STDOUT_FILENO);
	close(before);
	close(ends[1]);
	assert_int_equal(read(ends[0], got, sizeof(got) - 1), 9);
	assert_string_equal(got, "container");
	close(ends[0]);
}

/* What a reader of a pipe has, it has: nothing more can be kept. */
TEST(early_end_of_a_pipe_leaves_what_was_written)
{
	_cleanup_free_ char *path = strdup(scratch_path(&dir, "fifo"));
	char got[16] = "";
	struct output *o;
	int reader;

	assert_int_equal(mkfifo(path, 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	o = open_named("fifo", false);
	append(o, "so far");
	output_destroy(o);
	assert_int_equal(read(reader, got, sizeof(got)), 6);
	assert_string_equal(got, "so far");
	assert_int_equal(read(reader, got, sizeof(got)), 0);
	close(reader);
}

TEST(early_end_of_stdout_leaves_what_was_written)
{
	const int before = dup(STDOUT_FILENO);
	struct output *o = NULL;
	struct err e = ERR_INIT;
	char got[16] = "";
	int ends[2];

	fflush(stdout);
	assert_int_equal(pipe(ends), 0);
	dup2(ends[1], STDOUT_FILENO);
	close(ends[1]);
	CHECK_OK(output_open(&(struct output_options){ .path = "-" }, &o, &e), &e);
	assert_false(output_is_file(o));
	assert_true(output_is_at(o, "-"));
	append(o, "so far");
	output_destroy(o);
	fflush(stdout);
	dup2(before, STDOUT_FILENO);
	close(before);
	assert_int_equal(read(ends[0], got, sizeof(got)), 6);
	assert_string_equal(got, "so far");
	assert_int_equal(read(ends[0], got, sizeof(got)), 0);
	close(ends[0]);
}

/* A disk of 64 KiB, of which all bytes are 'x'. -1: not for us. */
static int make_disk(char ret[static 32])
{
	static char old[65536];
	const int control = open("/dev/loop-control", O_RDWR);
	const int number = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE);
	int disk, file;

	close(control);
	snprintf(ret, 32, "/dev/loop%d", number);
	disk = number < 0 ? -1 : open(ret, O_RDWR);
	if (disk < 0)
		return -1;
	memset(old, 'x', sizeof(old));
	scratch_write(&dir, "disk", old, sizeof(old));
	file = open(scratch_path(&dir, "disk"), O_RDWR);
	if (ioctl(disk, LOOP_SET_FD, file)) {
		close(disk);
		disk = -1;
	}
	close(file);
	return disk;
}

TEST(early_end_of_a_disk_leaves_what_was_written)
{
	struct output_options options = { .reserve = 1 << 14 };
	struct err e = ERR_INIT;
	struct output *o = NULL;
	char path[32], bytes[1 << 14] = "";
	int disk = make_disk(path);
	uint64_t room = 0;

	if (disk < 0)
		skip();
	options.path = path;
	CHECK_OK(output_open(&options, &o, &e), &e);
	assert_true(output_room(o, &room));
	assert_int_equal(room, 65536);
	assert_false(output_is_file(o));
	for (int i = 0; i < 3; i++)
		CHECK_OK(sink_write(output_sink(o), bytes, sizeof(bytes), &e), &e);
	/* The last quarter is kept for an end, until a cut gives it back. */
	CHECK_STATUS(sink_write(output_sink(o), bytes, 1, &e), ST_OUTPUT, &e);
	CHECK_HAS(e.message, "write: No space left on device");
	CHECK_OK(sink_cut(output_sink(o), 2 * sizeof(bytes), &e), &e);
	append(o, "end");
	assert_int_equal(output_bytes(o), 2 * sizeof(bytes) + 3);
	output_destroy(o);
	assert_int_equal(pread(disk, bytes, 5, 2 * sizeof(bytes)), 5);
	assert_memory_equal(bytes, "end\0", 5);
	assert_int_equal(pread(disk, bytes, 1, 3 * sizeof(bytes)), 1);
	assert_memory_equal(bytes, "x", 1);
	ioctl(disk, LOOP_CLR_FD);
	close(disk);
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		ROW(file_has_its_name_only_when_it_is_complete),
		ROW(unfinished_file_stays_unless_it_is_empty_or_discarded),
		ROW(file_is_rewritten_and_goes_on_at_its_end),
		ROW(existing_file_is_refused_and_left_alone),
		ROW(unfinished_file_of_an_earlier_run_is_left_alone),
		ROW(force_replaces_the_file_but_only_at_the_end),
		ROW(kept_file_has_its_temporary_name),
		ROW(what_is_being_read_is_not_replaced),
		ROW(output_knows_its_name_however_it_is_told),
		ROW(output_that_is_being_written_is_refused),
		ROW(file_that_appeared_meanwhile_is_not_overwritten),
		ROW(set_of_which_one_file_is_there_is_not_replaced),
		ROW(set_of_which_one_appeared_meanwhile_stays_in_its_folder),
		ROW(rename_that_reserves_the_name_overwrites_nothing_either),
		ROW(directory_that_moves_takes_the_file_along),
		ROW(link_to_a_file_is_not_followed),
		ROW(link_to_a_device_is_followed_only_if_its_owner_is_trusted),
		ROW(what_is_no_target_says_so),
		ROW(full_device_is_an_output_error),
		ROW(target_that_is_visibly_too_small_is_refused_without_force),
		ROW(room_for_the_end_is_there_whenever_it_ends),
		ROW(skipped_bytes_are_zeros_and_a_hole_at_the_end_counts),
		ROW(fifo_is_written_directly_and_gets_real_zeros),
		ROW(reader_that_goes_away_is_an_output_error),
		ROW(nothing_but_the_output_reaches_stdout),
		ROW(early_end_of_a_pipe_leaves_what_was_written),
		ROW(early_end_of_stdout_leaves_what_was_written),
		ROW(early_end_of_a_disk_leaves_what_was_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
