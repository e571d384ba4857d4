/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/collect/acquire/preflight.h"
#include "tests/unit/fake_drv.h"
#include "tests/unit/scratch.h"

static const struct finding *find(const struct findings *f, const char *what)
{
	for (size_t i = 0; i < f->count; i++)
		if (!strcmp(f->at[i].what, what))
			return &f->at[i];
	return NULL;
}

static const char *text_of(const struct findings *f, const char *what)
{
	const struct finding *at = find(f, what);

	assert_non_null(at);
	return at ? at->text.message : "";
}

/* The findings about a machine of these facts. */
static struct findings judge(const char *facts)
{
	struct findings f = { 0 };
	json_t *doc = json_loads(facts, 0, NULL);

	assert_non_null(doc);
	preflight_check_host(doc, &f);
	json_decref(doc);
	return f;
}

TEST(what_the_machine_is_becomes_notes)
{
	struct findings f = judge("{\"cpu\": {\"flags\": [\"la57\", \"sev\", \"hypervisor\"]},"
				  " \"security\": {\"lockdown\": \"confidentiality\"},"
				  " \"memory\": {\"zswap\": \"Y\"}}");

	assert_non_null(find(&f, "la57"));
	CHECK_HAS(text_of(&f, "encrypted-guest"), "sev");
	CHECK_HAS(text_of(&f, "lockdown"), "confidentiality");
	assert_non_null(find(&f, "zswap"));
	assert_null(findings_stop(&f));
	findings_deinit(&f);
}

TEST(a_host_that_can_encrypt_its_guests_is_no_guest)
{
	struct findings f = judge("{\"cpu\": {\"flags\": [\"sme\", \"sev\", \"sev_es\"]}}");

	assert_non_null(find(&f, "encrypted-memory"));
	assert_null(find(&f, "encrypted-guest"));
	findings_deinit(&f);
	f = judge("{\"cpu\": {\"flags\": [\"tdx_guest\"]}}");
	assert_non_null(find(&f, "encrypted-guest"));
	findings_deinit(&f);
	f = judge("{\"security\": {\"lockdown\": \"none\"}, \"memory\": {\"zswap\": \"N\"}}");
	assert_int_equal(f.count, 0);
	findings_deinit(&f);
}

TEST(kernels_that_nobody_has_tried_are_told)
{
	struct findings f =
		judge("{\"os\": {\"kernel\": \"Linux\", \"kernel_release\": \"99.7.0-x\"}}");

	CHECK_HAS(text_of(&f, "kernel-untested"), "Linux 99.7 is newer than ");
	assert_null(findings_stop(&f));
	findings_deinit(&f);
	f = judge("{\"os\": {\"kernel\": \"Linux\", \"kernel_release\": \"6.1.0-56-amd64\"}}");
	assert_int_equal(f.count, 0);
	findings_deinit(&f);
	/* Windows tells its version in the same place. */
	f = judge("{\"os\": {\"kernel_release\": \"10.0.26100\"}}");
	assert_int_equal(f.count, 0);
	findings_deinit(&f);
	f = judge("{\"os\": {\"kernel\": \"Linux\", \"kernel_release\": \"x\"}}");
	assert_int_equal(f.count, 0);
	findings_deinit(&f);
}

TEST(swap_in_memory_and_files_that_cannot_be_copied_are_told)
{
	struct pagefile at[] = {
		{ .kind = PAGEFILE_LINUX_ZRAM, .path = (char[]){ "/dev/zram0" }, .readable = true },
		{ .kind = PAGEFILE_PAGING, .path = (char[]){ "/gone" }, .problem = { "it went" } },
		{ .kind = PAGEFILE_LINUX_FILE, .path = (char[]){ "/swap" }, .readable = true },
		{ .kind = PAGEFILE_LINUX_FILE,
		  .path = (char[]){ "/other" },
		  .readable = true,
		  .slots_problem = { "FIEMAP: not supported" } },
	};
	const struct pagefile_list l = { .at = at, .count = ARRAY_SIZE(at) };
	struct findings f = { 0 };

	preflight_check_pagefiles(&l, &f);
	assert_int_equal(f.count, 3);
	CHECK_HAS(text_of(&f, "zram"), "/dev/zram0");
	CHECK_HAS(text_of(&f, "slots"), "/other");
	CHECK_HAS(text_of(&f, "slots"), "FIEMAP: not supported");
	CHECK_HAS(text_of(&f, "pagefile"), "it went");
	assert_null(findings_stop(&f));
	findings_deinit(&f);
}

static const struct drv_ops ops = {
	.name = "fake",
	.read_max = (size_t)1 << 20,
	.read = fake_read,
	.close = fake_close,
};

static void count_pages(void *arg, uint8_t *data, const struct page_status *status, size_t pages)
{
	size_t *const seen = arg;

	(void)data, (void)status;
	*seen += pages;
}

TEST(a_probe_reads_little_and_everywhere)
{
	const uint64_t last = ((uint64_t)1 << 32) - 1;
	struct err e = ERR_INIT;
	size_t seen = 0;
	struct fake f;
	struct probe p;

	fake_init(&f, &ops, 0, last);
	CHECK_OK(preflight_probe(&f.drv, count_pages, &seen, &p, &e), &e);
	assert_int_equal(p.pages * PAGE_SIZE, PROBE_PLACES * PROBE_BYTES);
	assert_int_equal(seen, p.pages);
	assert_int_equal(p.unreadable, 0);
	assert_int_equal(f.bytes, PROBE_PLACES * PROBE_BYTES);
	fake_deinit(&f);

	/* The second half of memory: that is half of the places. */
	fake_init(&f, &ops, 0, last);
	f.fails = fake_fails_from_k;
	f.k = (last + 1) / PAGE_SIZE / 2;
	f.k2 = last / PAGE_SIZE;
	f.exact = true;
	CHECK_OK(preflight_probe(&f.drv, NULL, NULL, &p, &e), &e);
	assert_int_equal(p.unreadable * 2, p.pages);
	fake_deinit(&f);

	/* Less memory than would be read. */
	fake_init(&f, &ops, 0x1000, 0x3fff);
	CHECK_OK(preflight_probe(&f.drv, NULL, NULL, &p, &e), &e);
	assert_int_equal(p.unreadable, 0);
	assert_int_equal(p.pages, 3); /* each once */
	fake_deinit(&f);

	fake_init(&f, &ops, 0, last);
	f.dies_at = 0;
	CHECK_STATUS(preflight_probe(&f.drv, NULL, NULL, &p, &e), ST_SOURCE_FAILED, &e);
	fake_deinit(&f);
}

/* Something that takes any number of bytes, and is no file. */
#ifdef _WIN32
#define SINK "\\\\.\\NUL"
#else
#define SINK "/dev/null"
#endif

static struct output_need at_least(uint64_t bytes)
{
	return (struct output_need){ .least = bytes };
}

TEST(an_output_is_judged_and_not_made)
{
	const struct output_need little = at_least(1), all = at_least(UINT64_MAX - 1);
	struct findings f = { 0 };
	struct scratch dir;
	uint64_t room = 0;
	char path[600];

	scratch_init(&dir);
	snprintf(path, sizeof(path), "%s", scratch_path(&dir, "new.rsz"));
	preflight_check_output(path, false, &little, &room, &f);
	assert_int_equal(f.count, 0);
	assert_true(room > 0);
	assert_int_not_equal(access(path, F_OK), 0);
	/* More than any file system has. */
	preflight_check_output(path, false, &all, &room, &f);
	assert_int_equal(findings_stop(&f)->st, ST_OUTPUT);
	assert_string_equal(findings_stop(&f)->what, "room");
	findings_deinit(&f);
	preflight_check_output(path, true, &all, &room, &f);
	assert_non_null(find(&f, "room"));
	assert_null(findings_stop(&f));
	findings_deinit(&f);

	scratch_write(&dir, "old.rsz", "x", 1);
	snprintf(path, sizeof(path), "%s", scratch_path(&dir, "old.rsz"));
	preflight_check_output(path, false, &little, &room, &f);
	CHECK_HAS(findings_stop(&f)->text.message, "--force");
	findings_deinit(&f);
	preflight_check_output(path, true, &little, &room, &f);
	assert_int_equal(f.count, 0);
	snprintf(path, sizeof(path), "%s/no/such", dir.path);
	preflight_check_output(path, true, &little, &room, &f);
	assert_int_equal(findings_stop(&f)->st, ST_OUTPUT);
	assert_true(room == ROOM_UNKNOWN);
	findings_deinit(&f);
	preflight_check_output(SINK, false, &all, &room, &f);
	assert_int_equal(f.count, 0);
	scratch_deinit(&dir);
}

/* One try: what may not fit is told, and tried all the same. */
TEST(room_that_may_not_do_is_told_and_stops_nothing)
{
	const struct {
		struct output_need need;
		enum output_room want;
		const char *text;
	} rows[] = {
		{ { .least = 10, .most = 100 }, ROOM_ENOUGH, NULL },
		{ { .least = 10, .most = 101 },
		  ROOM_DOUBTFUL,
		  "has room for 100 B, may need 101 B if" },
		{ { .least = 10, .likely = 80, .most = 900 }, ROOM_ENOUGH, NULL },
		{ { .least = 10, .likely = 81, .most = 900 },
		  ROOM_TIGHT,
		  "about 81 B (estimated from a sample), or 900 B" },
		{ { .least = 10, .likely = 100, .most = 900 }, ROOM_TIGHT, "about 100 B" },
		{ { .least = 10, .likely = 101, .most = 900 }, ROOM_SHORT, "about 101 B" },
		{ { .least = 101, .most = 900 }, ROOM_TOO_LITTLE, "--force" },
		{ { 0 }, ROOM_ENOUGH, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err e = ERR_INIT;

		assert_int_equal(output_room_verdict(100, &rows[i].need, "x", &e), rows[i].want);
		if (rows[i].text)
			CHECK_HAS(e.message, rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_machine_is_becomes_notes),
		cmocka_unit_test(a_host_that_can_encrypt_its_guests_is_no_guest),
		cmocka_unit_test(kernels_that_nobody_has_tried_are_told),
		cmocka_unit_test(swap_in_memory_and_files_that_cannot_be_copied_are_told),
		cmocka_unit_test(a_probe_reads_little_and_everywhere),
		cmocka_unit_test(an_output_is_judged_and_not_made),
		cmocka_unit_test(room_that_may_not_do_is_told_and_stops_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
