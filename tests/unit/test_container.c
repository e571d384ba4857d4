/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a container as a whole: how it ended, what it lacks, when what was captured. */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/shared/container/captures.h"
#include "agent/shared/container/container.h"
#include "agent/shared/container/sums.h"
#include "agent/shared/container/verify.h"
#include "agent/shared/program/log.h"
#include "tests/gen/age_recipe.h"
#include "tests/unit/rsz_build.h"
#include "tests/unit/scratch.h"

#define PAGE(n) ((uint64_t)(n) * PAGE_SIZE)

static struct scratch dir;
static struct build b;
static uint32_t manifest, memory;

static int set_up(void **state)
{
	(void)state;
	scratch_init(&dir);
	build_begin(&b, 7, RSZ_LEVEL_STORE);
	manifest = build_stream(&b, RSZ_KIND_MANIFEST, "manifest");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	build_deinit(&b);
	scratch_deinit(&dir);
	return 0;
}

static void put_memory(uint64_t time, uint64_t address, const char *states)
{
	build_chunk(&b, memory, time);
	build_extent(&b, address, states);
	build_put(&b);
}

static void open_built(struct container *ret)
{
	struct err e = ERR_INIT;

	scratch_write(&dir, "a.rsz", b.out.at, b.out.len);
	CHECK_OK(container_open(scratch_path(&dir, "a.rsz"), NULL, ret, &e), &e);
}

/*
 * How it ended
 */

/* Sealed is what every acquisition is that could write its end, whatever went wrong before. */
static void check_outcome(const char *end, bool has_memory, enum status want)
{
	struct err e = ERR_INIT;
	struct container c;

	build_text(&b, manifest, 0, "{\"event\":\"begin\"}\n");
	build_text(&b, manifest, 18, end);
	if (has_memory) {
		memory = build_stream(&b, RSZ_KIND_MEMORY, "memory");
		put_memory(100, 0, "ab");
	}
	build_close(&b);
	open_built(&c);
	assert_int_equal(c.end.end, RSZ_END_SEALED);
	CHECK_STATUS(container_outcome(&c, &e), want, &e);
	assert_int_equal(container_is_complete(&c), want == ST_OK || !has_memory);
	container_close(&c);
}

#define END(code) "{\"event\":\"end\",\"exit_code\":" code ",\"outcome\":\"what it was\"}\n"

TEST(acquisition_that_came_to_its_end_is_complete)
{
	check_outcome(END("0"), true, ST_OK);
}

TEST(acquisition_with_gaps_is_complete)
{
	check_outcome(END("3"), true, ST_OK);
}

TEST(acquisition_whose_source_failed_is_not_complete)
{
	check_outcome(END("5"), true, ST_PARTIAL);
}

TEST(acquisition_that_was_interrupted_is_not_complete)
{
	check_outcome(END("8"), true, ST_PARTIAL);
}

TEST(container_without_memory_is_not_all_of_it)
{
	check_outcome(END("0"), false, ST_PARTIAL);
}

/*
 * What it lacks
 */

static void check_range(const struct range_list *l, size_t i, uint64_t first, uint64_t behind)
{
	assert_in_range(i, 0, l->count - 1);
	assert_int_equal(l->at[i].first, PAGE(first));
	assert_int_equal(l->at[i].last, PAGE(behind) - 1);
}

TEST(what_no_record_has_is_missing_to_the_byte)
{
	_cleanup_ranges_ struct range_list missing = { 0 };
	struct err e = ERR_INIT;
	struct container c;

	build_text(&b, manifest, 0,
		   "{\"event\":\"begin\",\"maps\":[{\"ranges\":[{\"first\":0,\"last\":40959},"
		   "{\"first\":65536,\"last\":73727}]}]}\n");
	memory = build_stream(&b, RSZ_KIND_MEMORY, "memory");
	put_memory(100, PAGE(2), "a-");
	put_memory(200, PAGE(6), "?b");
	put_memory(300, PAGE(9), "c");
	open_built(&c);
	CHECK_OK(container_missing(&c, &missing, &e), &e);
	assert_int_equal(missing.count, 4);
	check_range(&missing, 0, 0, 2);
	check_range(&missing, 1, 4, 6);
	check_range(&missing, 2, 8, 9);
	check_range(&missing, 3, 16, 18);
	container_close(&c);
}

/*
 * When what was captured
 */

static void check_capture(const struct captures *c, uint64_t page, uint64_t last, uint64_t start,
			  uint32_t state)
{
	struct capture x;

	assert_true(captures_from(c, PAGE(page), PAGE(16) - 1, &x));
	assert_int_equal(x.range.first, PAGE(page));
	assert_int_equal(x.range.last, PAGE(last + 1) - 1);
	assert_int_equal(x.start, start);
	assert_int_equal(x.end, start + 10);
	assert_int_equal(x.state, state);
}

static void check_older(struct rsz_reader *r, const struct captures *c, uint64_t page, char content)
{
	const struct older_page *o;
	struct rsz_cursor *cursor = NULL;
	uint8_t got[PAGE_SIZE], want[PAGE_SIZE];
	struct err e = ERR_INIT;
	size_t n;

	o = captures_older(c, PAGE(page), &n);
	assert_int_equal(n, 1);
	assert_non_null(o);
	assert_int_equal(o->start, 100);
	assert_int_equal(o->end, 110);
	assert_int_equal(o->state, PAGE_DATA);
	CHECK_OK(rsz_cursor_create(r, 1, &cursor, &e), &e);
	CHECK_OK(captures_read_older(cursor, o, got, &e), &e);
	memset(want, content, sizeof(want));
	assert_memory_equal(got, want, sizeof(want));
	rsz_cursor_destroy(cursor);
}

TEST(page_that_was_captured_twice_has_both)
{
	struct stream_captures all;
	struct rsz_reader *r = NULL;
	struct mem_blob in;
	struct err e = ERR_INIT;
	const struct captures *c;
	size_t n;

	memory = build_stream(&b, RSZ_KIND_MEMORY, "memory");
	put_memory(100, 0, "abcd?-");
	put_memory(200, PAGE(1), "BC");
	build_close(&b);
	mem_blob_init(&in, b.out.at, b.out.len);
	CHECK_OK(rsz_reader_open(&in.blob, RSZ_TRUST_INDEX, &r, &e), &e);
	CHECK_OK(stream_captures_load(&all, &in.blob, r, &e), &e);
	c = &all.streams[memory];
	check_capture(c, 0, 0, 100, PAGE_DATA);
	check_capture(c, 1, 2, 200, PAGE_DATA);
	check_capture(c, 3, 3, 100, PAGE_DATA);
	check_capture(c, 4, 4, 100, PAGE_UNREADABLE);
	check_capture(c, 5, 5, 100, PAGE_SKIPPED);
	check_older(r, c, 1, 'b');
	check_older(r, c, 2, 'c');
	assert_null(captures_older(c, 0, &n));
	assert_null(captures_older(c, PAGE(3), &n));
	stream_captures_deinit(&all);
	rsz_reader_close(r);
}

/* What is added when a container is sealed later was captured at no time. */
TEST(sealing_later_does_not_count_as_a_capture)
{
	static const char line[] = "{\"event\":\"sealed_later\"}\n";
	struct container_sums sums = { 0 };
	struct rsz_reader *r = NULL;
	struct mem_blob in;
	struct err e = ERR_INIT;
	uint64_t at = 18;

	build_text(&b, manifest, 0, "{\"event\":\"begin\"}\n");
	CHECK_OK(rsz_writer_text(b.writer, manifest, &at, line, strlen(line), 0, &e), &e);
	build_close(&b);
	mem_blob_init(&in, b.out.at, b.out.len);
	CHECK_OK(container_sums_open(&in.blob, &r, &sums, &e), &e);
	assert_int_equal(sums.streams[manifest].chunks, 2);
	assert_int_equal(sums.streams[manifest].start, 100);
	assert_int_equal(sums.streams[manifest].end, 100);
	container_sums_deinit(&sums);
	rsz_reader_close(r);
}

/*
 * Is it whole?
 */

static enum status verify(size_t len, struct rsz_scan_result *ret)
{
	struct mem_blob in;
	struct err e = ERR_INIT;

	mem_blob_init(&in, b.out.at, len);
	return container_verify(&in.blob, 1, PROGRESS_QUIET, ret, NULL, &e);
}

TEST(only_what_is_sealed_is_whole)
{
	struct rsz_scan_result end;
	size_t whole;

	memory = build_stream(&b, RSZ_KIND_MEMORY, "memory");
	put_memory(100, 0, "abc");
	whole = b.out.len;
	build_close(&b);
	assert_int_equal(verify(b.out.len, &end), ST_OK);
	assert_int_equal(end.end, RSZ_END_SEALED);
	assert_int_equal(verify(whole, &end), ST_CORRUPT);
	assert_int_equal(end.end, RSZ_END_UNSEALED);
	assert_int_equal(verify(whole - 1, &end), ST_CORRUPT);
	assert_int_equal(end.end, RSZ_END_CUT);
	assert_int_equal(verify(whole + 1, &end), ST_CORRUPT);
	assert_int_equal(end.end, RSZ_END_CUT);
	assert_int_equal(end.whole, whole);
}

/* Which only they are looked at for: headers have nothing against it. */
TEST(bit_that_flipped_in_a_payload_is_damage)
{
	struct rsz_scan_result end;
	size_t whole, at;

	memory = build_stream(&b, RSZ_KIND_MEMORY, "memory");
	put_memory(100, 0, "abc");
	whole = b.out.len;
	put_memory(200, PAGE(3), "def");
	at = b.out.len - PAGE_SIZE;
	put_memory(300, PAGE(6), "ghi");
	build_close(&b);
	b.out.at[at] ^= 1;
	assert_int_equal(verify(b.out.len, &end), ST_CORRUPT);
	assert_int_equal(end.end, RSZ_END_DAMAGED);
	assert_int_equal(end.whole, whole);
}

/*
 * Encrypted
 */

static char warnings[2048];

static void keep_warning(void *arg, const char *line, size_t len)
{
	(void)arg;
	(void)len;
	strncat(warnings, line, sizeof(warnings) - strlen(warnings) - 1);
}

static void write_encrypted(const char *name, size_t flipped)
{
	struct age_recipients to = { 0 };
	struct age_writer *w = NULL;
	struct mem_sink out;
	struct err e = ERR_INIT;

	CHECK_OK(age_recipients_add(&to, AGE_RECIPE_RECIPIENT, strlen(AGE_RECIPE_RECIPIENT), &e),
		 &e);
	mem_sink_init(&out, SIZE_MAX);
	CHECK_OK(age_writer_create(&out.sink, &to, &w, &e), &e);
	CHECK_OK(age_writer_write(w, b.out.at, b.out.len, &e), &e);
	CHECK_OK(age_writer_end(w, &e), &e);
	if (flipped)
		out.at[flipped] ^= 1;
	scratch_write(&dir, name, out.at, out.len);
	age_writer_destroy(w);
	mem_sink_deinit(&out);
	age_recipients_deinit(&to);
}

/* Where zeros were read in its place, and the container is damaged there, that is why. */
TEST(damage_of_the_encryption_is_told)
{
	static char states[BUILD_PAGES_MAX + 1];
	struct age_identities *x = NULL;
	struct container c;
	struct err e = ERR_INIT;

	memory = build_stream(&b, RSZ_KIND_MEMORY, "memory");
	memset(states, 'a', BUILD_PAGES_MAX);
	put_memory(100, 0, states);
	build_close(&b);
	CHECK_OK(age_identities_create(&x, &e), &e);
	CHECK_OK(age_identities_read(x, AGE_RECIPE_IDENTITY, strlen(AGE_RECIPE_IDENTITY), &e), &e);
	log_tee(keep_warning, NULL);
	for (size_t flipped = 0; flipped <= 100000; flipped += 100000) {
		struct rsz_scan_result end;

		warnings[0] = '\0';
		write_encrypted("a.rsz.age", flipped);
		CHECK_OK(container_open(scratch_path(&dir, "a.rsz.age"), x, &c, &e), &e);
		assert_int_equal(container_verify(c.in->blob, 1, PROGRESS_QUIET, &end, NULL, &e),
				 flipped ? ST_CORRUPT : ST_OK);
		container_close(&c);
		if (flipped)
			CHECK_HAS(warnings, "was damaged or changed after it was encrypted, first "
					    "at offset ");
		else
			assert_string_equal(warnings, "");
	}
	log_tee(NULL, NULL);
	age_identities_destroy(x);
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		ROW(acquisition_that_came_to_its_end_is_complete),
		ROW(acquisition_with_gaps_is_complete),
		ROW(acquisition_whose_source_failed_is_not_complete),
		ROW(acquisition_that_was_interrupted_is_not_complete),
		ROW(container_without_memory_is_not_all_of_it),
		ROW(what_no_record_has_is_missing_to_the_byte),
		ROW(page_that_was_captured_twice_has_both),
		ROW(sealing_later_does_not_count_as_a_capture),
		ROW(only_what_is_sealed_is_whole),
		ROW(bit_that_flipped_in_a_payload_is_damage),
		ROW(damage_of_the_encryption_is_told),
	};

	return cmocka_run_group_tests_name("container", tests, NULL, NULL);
}
