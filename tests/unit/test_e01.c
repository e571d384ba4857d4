/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence files, read back by libewf: which sectors have no content, and what the others have. */
#include "tests/unit/test.h"

#include "formats/image/e01.h"
#include "formats/image/ewf.h"
#include "tests/gen/images.h"
#include "tests/unit/scratch.h"

#define PER_PAGE (PAGE_SIZE / 512)

/* Two pieces; of each page what its letter says: read, zeros, unreadable, skipped. */
#define PAGES    64
static const char states[PAGES + 1] = "dd?ddddddddd????"
				      "dddddddd-ddddddd"
				      "?ddddddddddddddd"
				      "dddd..ddddddddd-";

static struct range all[] = { { 0, PAGES *PAGE_SIZE - 1 } };
static const struct range_list ranges = { .at = all, .count = 1 };

static void write_e01(const char *base)
{
	const struct e01_settings settings = { .level = 1 };
	const struct image_spec spec = {
		.ranges = &ranges, .threads = 1, .base = base, .own = &settings
	};
	struct page_status status[PAGES] = { 0 };
	uint8_t *data = malloc(PAGES * PAGE_SIZE);
	void *code = malloc(e01_format.code_size);
	struct image_writer *w = NULL;
	struct err e = ERR_INIT;

	assert_true(data && code);
	pattern(data, 0, PAGES * PAGE_SIZE);
	for (size_t i = 0; i < PAGES; i++) {
		status[i].state = states[i] == '?'   ? PAGE_UNREADABLE
				  : states[i] == '-' ? PAGE_SKIPPED
				  : states[i] == '.' ? PAGE_ZERO
						     : PAGE_DATA;
		if (states[i] != 'd')
			memset(data + i * PAGE_SIZE, states[i] == '.' ? 0 : states[i], PAGE_SIZE);
	}
	CHECK_OK(e01_format.create(&spec, NULL, &w, &e), &e);
	for (size_t i = 0; i < PAGES; i += PAGES / 2) {
		struct image_piece p = { .address = i * PAGE_SIZE,
					 .pages = PAGES / 2,
					 .data = data + i * PAGE_SIZE,
					 .status = status + i,
					 .code = code };

		CHECK_OK(e01_format.encode(w, 0, &p, &e), &e);
		CHECK_OK(e01_format.put(w, &p, &e), &e);
	}
	CHECK_OK(e01_format.finish(w, true, &e), &e);
	e01_format.destroy(w);
	free(code);
	free(data);
}

/* The runs of pages without content, one behind the other; from each piece its own. */
static size_t next_run(size_t *page)
{
	size_t n = 0;

	while (*page < PAGES && !strchr("?-", states[*page]))
		++*page;
	while (*page + n < PAGES && strchr("?-", states[*page + n]) &&
	       (!n || *page + n != PAGES / 2))
		n++;
	return n;
}

TEST(pages_without_content_are_listed_by_their_sectors)
{
	libewf_handle_t *h = NULL;
	uint8_t page[PAGE_SIZE], want[PAGE_SIZE];
	struct scratch s;
	uint32_t errors = 0, found = 0;
	size64_t size = 0;
	char path[600];

	scratch_init(&s);
	write_e01(scratch_path(&s, "memory"));
	snprintf(path, sizeof(path), "%s", scratch_path(&s, "memory.E01"));
	assert_int_equal(libewf_handle_initialize(&h, NULL), 1);
	assert_int_equal(ewf_open_set(h, path, NULL), 1);
	assert_int_equal(libewf_handle_get_media_size(h, &size, NULL), 1);
	assert_int_equal(size, PAGES * PAGE_SIZE);
	assert_int_equal(libewf_handle_get_number_of_acquiry_errors(h, &errors, NULL), 1);
	for (size_t at = 0, n; (n = next_run(&at)); at += n, found++) {
		uint64_t first = 0, count = 0;

		assert_int_equal(libewf_handle_get_acquiry_error(h, found, &first, &count, NULL),
				 1);
		assert_int_equal(first, at * PER_PAGE);
		assert_int_equal(count, n * PER_PAGE);
	}
	assert_int_equal(found, errors);
	for (size_t i = 0; i < PAGES; i++) {
		if (states[i] == 'd')
			pattern(want, i * PAGE_SIZE, PAGE_SIZE);
		else
			memset(want, states[i] == '.' ? 0 : states[i], PAGE_SIZE);
		assert_int_equal(libewf_handle_read_random(h, page, PAGE_SIZE,
							   (off64_t)(i * PAGE_SIZE), NULL),
				 PAGE_SIZE);
		assert_memory_equal(page, want, PAGE_SIZE);
	}
	libewf_handle_close(h, NULL);
	libewf_handle_free(&h, NULL);
	scratch_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_without_content_are_listed_by_their_sectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
