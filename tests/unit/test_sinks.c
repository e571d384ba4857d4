/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs that stand on each other: what each does itself, and what it leaves to the one below. */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/shared/output/age_sink.h"
#include "agent/shared/output/hash_sink.h"
#include "agent/shared/output/output_sink.h"
#include "agent/shared/program/interrupt.h"
#include "formats/base/sha256.h"
#include "tests/gen/age_recipe.h"
#include "tests/unit/scratch.h"

#ifdef _WIN32
#include "agent/shared/output/output_windows.h"
#include "agent/shared/program/log.h"
#endif

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

/*
 * A cipher, as far as the seam is concerned: other bytes, and an end of its own that belongs also
 * to what ends early.
 */
struct cipher {
	struct output output;
	bool ended;
};

static enum status cipher_write(struct output *o, const void *p, size_t len, struct err *e)
{
	uint8_t other[64];

	assert_true(len <= sizeof(other));
	for (size_t i = 0; i < len; i++)
		other[i] = ((const uint8_t *)p)[i] ^ 0x20;
	return sink_write(output_sink(o->below), other, len, e);
}

static enum status cipher_end(struct cipher *c, struct err *e)
{
	c->ended = true;
	return sink_write(output_sink(c->output.below), "!", 1, e);
}

static enum status cipher_commit(struct output *o, struct err *e)
{
	const enum status st = cipher_end((struct cipher *)o, e);

	return st ? st : output_commit(o->below, e);
}

static enum status cipher_keep(struct output *o, struct err *e)
{
	const enum status st = cipher_end((struct cipher *)o, e);

	return st ? st : output_keep(o->below, e);
}

static void cipher_destroy(struct output *o)
{
	struct cipher *c = (struct cipher *)o;

	if (!c->ended && o->bytes)
		cipher_end(c, NULL);
	free(c);
}

static const struct output_ops cipher_ops = {
	.name = "cipher",
	.write = cipher_write,
	.commit = cipher_commit,
	.keep = cipher_keep,
	.destroy = cipher_destroy,
};

static struct output *open_file(const char *name)
{
	const struct output_options options = { .path = scratch_path(&dir, name) };
	struct output *o = NULL;
	struct err e = ERR_INIT;

	CHECK_OK(output_open(&options, &o, &e), &e);
	return o;
}

static struct output *put_cipher_on(struct output *below)
{
	struct cipher *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	output_init(&c->output, &cipher_ops, below);
	return &c->output;
}

/* A hash of what is said, on a cipher of it, on a file. */
static struct output *open_stack(const char *name)
{
	struct output *o = put_cipher_on(open_file(name));
	struct err e = ERR_INIT;

	CHECK_OK(hash_sink_put_on(&o, &e), &e);
	return o;
}

static void append(struct output *o, const char *text)
{
	struct err e = ERR_INIT;

	CHECK_OK(sink_write(output_sink(o), text, strlen(text), &e), &e);
}

static void check_content(const char *name, const char *want)
{
	_cleanup_free_ char *text = scratch_read(&dir, name);

	assert_non_null(text);
	assert_string_equal(text, want);
}

static void check_hash(struct output *o, const void *p, size_t len)
{
	char got[SHA256_HEX_SIZE], want[SHA256_HEX_SIZE];
	uint8_t digest[SHA256_SIZE];
	struct sha256 *h = NULL;
	struct err e = ERR_INIT;

	CHECK_OK(sha256_create(&h, &e), &e);
	sha256_of(h, p, len, digest);
	sha256_destroy(h);
	sha256_hex(digest, want);
	hash_sink_end(o, got);
	assert_string_equal(got, want);
}

TEST(hash_counts_holes_as_the_zeros_that_they_are)
{
	static const char zeros[100000];
	struct output *o = open_file("a");
	char all[sizeof(zeros) + 3];
	struct err e = ERR_INIT;

	memset(all, 0, sizeof(all));
	all[0] = 'a';
	memcpy(all + sizeof(all) - 2, "zz", 2);
	CHECK_OK(hash_sink_put_on(&o, &e), &e);
	append(o, "a");
	CHECK_OK(sink_skip(output_sink(o), sizeof(zeros), &e), &e);
	append(o, "zz");
	check_hash(o, all, sizeof(all));
	assert_int_equal(output_bytes(o), sizeof(all));
	CHECK_OK(output_commit(o, &e), &e);
	output_destroy(o);
	assert_true(scratch_has(&dir, "a"));
}

/* Takes all, and keeps nothing. */
static enum status nowhere_write(struct output *o, const void *p, size_t len, struct err *e)
{
	(void)o;
	(void)p;
	(void)len;
	(void)e;
	return ST_OK;
}

static enum status nowhere_skip(struct output *o, uint64_t len, struct err *e)
{
	return nowhere_write(o, NULL, (size_t)len, e);
}

static void stay(struct output *o)
{
	(void)o;
}

static const struct output_ops nowhere_ops = {
	.name = "nowhere",
	.write = nowhere_write,
	.skip = nowhere_skip,
	.destroy = stay,
};

/* One over a part of it would be wrong. */
TEST(hole_whose_hash_was_interrupted_has_none)
{
	char hex[SHA256_HEX_SIZE] = "unknown";
	struct output below, *o = &below;
	struct err e = ERR_INIT;

	output_init(&below, &nowhere_ops, NULL);
	CHECK_OK(hash_sink_put_on(&o, &e), &e);
	append(o, "before it");
	interrupt_ask("the test");
	CHECK_STATUS(sink_skip(output_sink(o), UINT64_C(1) << 40, &e), ST_INTERRUPTED, &e);
	interrupt_forget();
	append(o, "behind it");
	hash_sink_end(o, hex);
	assert_string_equal(hex, "");
	output_destroy(o);
}

TEST(what_a_sink_does_not_know_the_one_below_is_asked)
{
	struct output *o = open_stack("a");
	uint64_t room = 0;

	assert_true(output_room(o, &room) && room);
	assert_true(output_is_file(o));
	assert_true(output_is_at(o, scratch_path(&dir, "a")));
	assert_false(output_is_at(o, "-"));
	CHECK_HAS(output_name(o), "a");
	CHECK_HAS(output_where(o), "a.partial");
	output_destroy(o);
	assert_false(scratch_has(&dir, "a.partial"));
}

/* The file below could do both, but then hash and cipher would not be of what is there. */
TEST(nothing_is_taken_back_behind_the_back_of_an_upper_sink)
{
	struct output *o = open_stack("a");
	struct err e = ERR_INIT;

	append(o, "abc");
	CHECK_STATUS(sink_cut(output_sink(o), 1, &e), ST_OUTPUT, &e);
	assert_string_equal(e.message, "what was written cannot be taken back");
	assert_null(output_blob(o));
	output_destroy(o);
}

TEST(each_ends_its_own_part_before_the_one_below)
{
	struct output *o = open_stack("a");
	struct err e = ERR_INIT;

	append(o, "Seal");
	append(o, "ed");
	assert_false(scratch_has(&dir, "a"));
	check_hash(o, "Sealed", 6);
	CHECK_OK(output_commit(o, &e), &e);
	assert_int_equal(output_bytes(o), 7);
	CHECK_HAS(output_where(o), "a");
	assert_null(strstr(output_where(o), ".partial"));
	output_destroy(o);
	check_content("a", "sEALED!");
	assert_false(scratch_has(&dir, "a.partial"));
}

/* The hash has nothing to end, and leaves that to the file. */
TEST(commit_is_of_those_below_too)
{
	struct output *o = open_file("a");
	struct err e = ERR_INIT;

	CHECK_OK(hash_sink_put_on(&o, &e), &e);
	append(o, "abc");
	CHECK_OK(output_commit(o, &e), &e);
	assert_string_equal(output_where(o), scratch_path(&dir, "a"));
	output_destroy(o);
	check_content("a", "abc");
}

TEST(holes_go_through_what_changes_the_bytes)
{
	struct output *o = put_cipher_on(open_file("a"));
	struct err e = ERR_INIT;

	CHECK_OK(sink_skip(output_sink(o), 3, &e), &e);
	CHECK_OK(output_commit(o, &e), &e);
	output_destroy(o);
	check_content("a", "   !");
}

TEST(early_end_of_all_keeps_what_was_written)
{
	struct output *o = open_stack("a");

	append(o, "sofar");
	output_destroy(o);
	check_content("a.partial", "SOFAR!");
	assert_false(scratch_has(&dir, "a"));
}

TEST(kept_output_has_its_end_and_not_its_name)
{
	struct output *o = open_stack("a");
	struct err e = ERR_INIT;

	append(o, "sofar");
	CHECK_OK(output_keep(o, &e), &e);
	output_destroy(o);
	check_content("a.partial", "SOFAR!");
	assert_false(scratch_has(&dir, "a"));
}

TEST(discarded_output_leaves_nothing)
{
	struct output *o = open_stack("a");

	append(o, "nothing");
	output_discard(o);
	output_destroy(o);
	assert_false(scratch_has(&dir, "a"));
	assert_false(scratch_has(&dir, "a.partial"));
}

TEST(empty_output_that_ends_early_leaves_nothing)
{
	output_destroy(open_stack("a"));
	assert_false(scratch_has(&dir, "a.partial"));
}

/*
 * age, which must never encrypt two contents with one nonce
 */

static struct output *open_encrypted(const char *name, struct age_recipients *to)
{
	struct output *o = open_file(name);
	struct err e = ERR_INIT;

	CHECK_OK(age_recipients_add(to, AGE_RECIPE_RECIPIENT, strlen(AGE_RECIPE_RECIPIENT), &e),
		 &e);
	CHECK_OK(age_sink_put_on(&o, to, &e), &e);
	return o;
}

/* What the recipient reads of it. */
static void check_decrypted(const char *name, const void *want, size_t len)
{
	struct age_identities *x = NULL;
	struct age_reader *r = NULL;
	struct file_blob file;
	struct blob *content;
	struct age_end end;
	uint8_t *got = malloc(len + 1);
	struct err e = ERR_INIT;

	assert_non_null(got);
	CHECK_OK(file_blob_open(&file, scratch_path(&dir, name), &e), &e);
	CHECK_OK(age_identities_create(&x, &e), &e);
	CHECK_OK(age_identities_read(x, AGE_RECIPE_IDENTITY, strlen(AGE_RECIPE_IDENTITY), &e), &e);
	CHECK_OK(age_reader_create(&file.blob, x, &r, &e), &e);
	content = age_reader_blob(r);
	assert_int_equal(content->size, len);
	CHECK_OK(blob_read(content, 0, got, len, &e), &e);
	assert_memory_equal(got, want, len);
	age_reader_end(r, &end);
	assert_true(end.whole && !end.damaged);
	age_reader_destroy(r);
	age_identities_destroy(x);
	file_blob_deinit(&file);
	free(got);
}

TEST(encrypted_output_has_an_end_however_it_ends)
{
	struct age_recipients to = { 0 };
	struct output *o;
	struct err e = ERR_INIT;

	o = open_encrypted("a", &to);
	append(o, "all of it");
	assert_string_equal(output_where(o), scratch_path(&dir, "a.partial"));
	CHECK_OK(output_commit(o, &e), &e);
	assert_string_equal(output_where(o), scratch_path(&dir, "a"));
	assert_int_equal(output_bytes(o), 22 + 98 + 48 + 16 + 9 + 16);
	output_destroy(o);
	check_decrypted("a", "all of it", 9);
	o = open_encrypted("b", &to);
	append(o, "so far");
	output_destroy(o);
	check_decrypted("b.partial", "so far", 6);
	o = open_encrypted("c", &to);
	append(o, "so far");
	CHECK_OK(output_keep(o, &e), &e);
	output_destroy(o);
	check_decrypted("c.partial", "so far", 6);
	o = open_encrypted("d", &to);
	append(o, "nothing");
	output_discard(o);
	output_destroy(o);
	output_destroy(open_encrypted("e", &to));
	assert_false(scratch_has(&dir, "d.partial"));
	assert_false(scratch_has(&dir, "e.partial"));
	age_recipients_deinit(&to);
}

/*
 * What stays out of the cache, on Windows in whole sectors, is the same file.
 */

#define LEAN_MOST 1000000

static uint8_t lean_model[LEAN_MOST];
static size_t lean_length;

static void lean_append(struct output *o, size_t len)
{
	struct err e = ERR_INIT;

	for (size_t i = 0; i < len; i++)
		lean_model[lean_length + i] = (uint8_t)((lean_length + i) * 7 / 5);
	CHECK_OK(sink_write(output_sink(o), lean_model + lean_length, len, &e), &e);
	lean_length += len;
}

static void lean_rewrite(struct output *o, size_t at, const char *text)
{
	struct err e = ERR_INIT;

	CHECK_OK(output_sink(o)->rewrite(output_sink(o), at, text, strlen(text), &e), &e);
	memcpy(lean_model + at, text, strlen(text));
}

static void lean_cut(struct output *o, size_t len)
{
	struct err e = ERR_INIT;

	CHECK_OK(sink_cut(output_sink(o), len, &e), &e);
	lean_length = len;
}

/* What it has so far, from any place on. */
static void check_lean_blob(struct output *o)
{
	struct blob *b = output_blob(o);
	uint8_t *got = malloc(lean_length);
	struct err e = ERR_INIT;

	assert_int_equal(b->size, lean_length);
	CHECK_OK(blob_read(b, 0, got, lean_length, &e), &e);
	assert_memory_equal(got, lean_model, lean_length);
	CHECK_OK(blob_read(b, 4095, got, 5, &e), &e);
	assert_memory_equal(got, lean_model + 4095, 5);
	CHECK_OK(blob_read(b, lean_length - 3, got, 3, &e), &e);
	assert_memory_equal(got, lean_model + lean_length - 3, 3);
	free(got);
	lean_cut(o, lean_length); /* before the next write, as output_blob() says */
}

static void check_lean_file(const char *name)
{
	struct file_blob file;
	uint8_t *got = malloc(LEAN_MOST);
	struct err e = ERR_INIT;

	CHECK_OK(file_blob_open(&file, scratch_path(&dir, name), &e), &e);
	assert_int_equal(file.blob.size, lean_length);
	CHECK_OK(blob_read(&file.blob, 0, got, lean_length, &e), &e);
	assert_memory_equal(got, lean_model, lean_length);
	file_blob_deinit(&file);
	free(got);
}

static struct output *open_lean(const char *name, uint64_t reserve)
{
	const struct output_options options = { .path = scratch_path(&dir, name),
						.lean = true,
						.reserve = reserve };
	struct output *o = NULL;
	struct err e = ERR_INIT;

	CHECK_OK(output_open(&options, &o, &e), &e);
	lean_length = 0;
	return o;
}

/* With a reserve, a cut leaves the file as long as it is until the end. */
static void check_lean(const char *name, uint64_t reserve)
{
	struct output *o = open_lean(name, reserve);
	struct err e = ERR_INIT;

	lean_append(o, 100);
	lean_append(o, 5000);
	lean_append(o, 300001);
	lean_append(o, 3);
	check_lean_blob(o);
	lean_cut(o, 5100);
	lean_append(o, 70000);
	lean_cut(o, lean_length - 1);
	check_lean_blob(o);
	lean_rewrite(o, 10, "over the front");
	lean_rewrite(o, 65530, "over what is written and what waits, perhaps");
	if (!reserve) {
		CHECK_OK(sink_skip(output_sink(o), 9000, &e), &e);
		memset(lean_model + lean_length, 0, 9000);
		lean_length += 9000;
	}
	lean_append(o, 77);
	check_lean_blob(o);
	assert_int_equal(output_bytes(o), lean_length);
	CHECK_OK(output_commit(o, &e), &e);
	output_destroy(o);
	check_lean_file(name);
	/* What ends early stays, to its last byte. */
	o = open_lean("early", reserve);
	lean_append(o, 12345);
	output_destroy(o);
	check_lean_file("early.partial");
	scratch_remove(scratch_path(&dir, "early.partial"));
	output_destroy(open_lean("empty", reserve));
	assert_false(scratch_has(&dir, "empty.partial"));
}

TEST(file_past_the_cache_is_as_any_other)
{
	check_lean("lean", 0);
	check_lean("lean with reserve", 65536);
}

#ifdef _WIN32
static char told[1024];

static void keep_told(void *arg, const char *line, size_t len)
{
	(void)arg;
	if (len < sizeof(told) - strlen(told))
		strncat(told, line, len);
}

/* Some network file systems: then it goes through the cache, and that is said. */
TEST(file_system_that_takes_no_unbuffered_writes_is_told)
{
	told[0] = '\0';
	log_tee(keep_told, NULL);
	check_lean("direct", 0);
	assert_null(strstr(told, "output-buffered"));
	windows__refuse_direct = true;
	check_lean("buffered", 65536);
	windows__refuse_direct = false;
	log_tee(NULL, NULL);
	CHECK_HAS(told, "output-buffered");
}
#endif

/* Full, and would be glad to be called complete. */
struct full {
	struct output output;
	bool committed;
};

static enum status full_write(struct output *o, const void *p, size_t len, struct err *e)
{
	(void)o;
	(void)p;
	(void)len;
	return err_set(e, ST_OUTPUT, "full");
}

static enum status full_commit(struct output *o, struct err *e)
{
	(void)e;
	((struct full *)o)->committed = true;
	return ST_OK;
}

static const struct output_ops full_ops = {
	.name = "full",
	.write = full_write,
	.commit = full_commit,
	.keep = full_commit,
	.destroy = stay,
};

/* What is held back comes with the end, and so may be what there is no room for. */
TEST(encryption_without_its_end_is_not_complete)
{
	for (unsigned keep = 0; keep < 2; keep++) {
		struct age_recipients to = { 0 };
		struct full full = { .committed = false };
		struct output *o = &full.output;
		struct err e = ERR_INIT;

		CHECK_OK(age_recipients_add(&to, AGE_RECIPE_RECIPIENT, strlen(AGE_RECIPE_RECIPIENT),
					    &e),
			 &e);
		output_init(o, &full_ops, NULL);
		CHECK_OK(age_sink_put_on(&o, &to, &e), &e);
		append(o, "held back");
		CHECK_STATUS(keep ? output_keep(o, &e) : output_commit(o, &e), ST_OUTPUT, &e);
		assert_false(full.committed);
		output_destroy(o);
		age_recipients_deinit(&to);
	}
}

TEST(what_was_encrypted_is_not_taken_back)
{
	static char content[200000], got[sizeof(content)];
	struct age_recipients to = { 0 };
	struct output *o = open_encrypted("a", &to);
	struct blob *b;
	struct err e = ERR_INIT;

	memset(content, 'x', sizeof(content));
	CHECK_OK(sink_write(output_sink(o), content, 150000, &e), &e);
	CHECK_STATUS(sink_cut(output_sink(o), 149999, &e), ST_OUTPUT, &e);
	CHECK_HAS(e.message, "cannot be taken back");
	CHECK_OK(output_check(o, &e), &e);
	b = output_blob(o);
	assert_non_null(b);
	assert_int_equal(b->size, 150000);
	CHECK_OK(blob_read(b, 0, got, 150000, &e), &e);
	assert_memory_equal(got, content, 150000);
	/* Behind a read: nothing of it goes, and it goes on there. */
	CHECK_OK(sink_cut(output_sink(o), 150000, &e), &e);
	CHECK_OK(sink_write(output_sink(o), content, 50000, &e), &e);
	CHECK_OK(output_commit(o, &e), &e);
	CHECK_STATUS(sink_cut(output_sink(o), sizeof(content), &e), ST_OUTPUT, &e);
	output_destroy(o);
	check_decrypted("a", content, sizeof(content));
	age_recipients_deinit(&to);
}

/* A disk as far as this seam is concerned. */
static const char *disk_path(const struct output *o)
{
	(void)o;
	return "/dev/sdz";
}

static void disk_destroy(struct output *o)
{
	free(o);
}

static const struct output_ops disk_ops = {
	.name = "disk",
	.is_disk = true,
	.write = cipher_write,
	.path = disk_path,
	.destroy = disk_destroy,
};

TEST(disk_is_not_encrypted)
{
	struct age_recipients to = { 0 };
	struct output *o = calloc(1, sizeof(*o)), *below = o;
	struct err e = ERR_INIT;

	assert_non_null(o);
	output_init(o, &disk_ops, NULL);
	CHECK_STATUS(age_sink_put_on(&o, &to, &e), ST_OUTPUT, &e);
	assert_string_equal(e.message, "/dev/sdz: is a disk, so the end of the encrypted data "
				       "would be unknown: write to a file on it");
	assert_ptr_equal(o, below);
	output_destroy(o);
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		ROW(file_past_the_cache_is_as_any_other),
#ifdef _WIN32
		ROW(file_system_that_takes_no_unbuffered_writes_is_told),
#endif
		ROW(hash_counts_holes_as_the_zeros_that_they_are),
		ROW(hole_whose_hash_was_interrupted_has_none),
		ROW(what_a_sink_does_not_know_the_one_below_is_asked),
		ROW(nothing_is_taken_back_behind_the_back_of_an_upper_sink),
		ROW(each_ends_its_own_part_before_the_one_below),
		ROW(commit_is_of_those_below_too),
		ROW(holes_go_through_what_changes_the_bytes),
		ROW(early_end_of_all_keeps_what_was_written),
		ROW(kept_output_has_its_end_and_not_its_name),
		ROW(discarded_output_leaves_nothing),
		ROW(empty_output_that_ends_early_leaves_nothing),
		ROW(encrypted_output_has_an_end_however_it_ends),
		ROW(encryption_without_its_end_is_not_complete),
		ROW(what_was_encrypted_is_not_taken_back),
		ROW(disk_is_not_encrypted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
