/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks on pages that a source delivered, against pattern() of tests/gen/images.h.
 */
#ifndef RAMSEAL_TESTS_UNIT_DRV_CHECK_H
#define RAMSEAL_TESTS_UNIT_DRV_CHECK_H

#include <string.h>

#include "driver-interface/drv.h"
#include "tests/gen/images.h"
#include "tests/unit/test.h"

/* The state of one page, read alone; its content is checked if it is data. */
static inline struct page_status page_at(struct drv *d, uint64_t addr)
{
	struct page_status s = { 99, 99 };
	uint8_t got[PAGE_SIZE], want[PAGE_SIZE];
	struct err e = ERR_INIT;

	CHECK_OK(drv_read_pages(d, addr, got, 1, &s, &e), &e);
	pattern(want, addr, PAGE_SIZE);
	if (s.state == PAGE_DATA)
		assert_memory_equal(got, want, PAGE_SIZE);
	return s;
}

#define CHECK_PAGE(d, addr, want_state, want_detail)                                               \
	do {                                                                                       \
		const struct page_status s_ = page_at(d, addr);                                    \
		assert_int_equal(s_.state, want_state);                                            \
		assert_int_equal(s_.detail, want_detail);                                          \
	} while (0)

/* All pages of a range are data, read in one go. */
static inline void check_data(struct drv *d, uint64_t first, uint64_t last)
{
	const size_t pages = (size_t)(last - first + 1) / PAGE_SIZE;
	uint8_t *got = malloc(pages * PAGE_SIZE), *want = malloc(pages * PAGE_SIZE);
	struct page_status *s = calloc(pages, sizeof(*s));
	struct err e = ERR_INIT;

	assert_true(got && want && s);
	CHECK_OK(drv_read_pages(d, first, got, pages, s, &e), &e);
	for (size_t i = 0; i < pages; i++)
		assert_int_equal(s[i].state, PAGE_DATA);
	pattern(want, first, pages * PAGE_SIZE);
	assert_memory_equal(got, want, pages * PAGE_SIZE);
	free(got);
	free(want);
	free(s);
}

#define CHECK_MAP(d, n, want_origin, ...)                                                          \
	do {                                                                                       \
		const struct range want_[] = { __VA_ARGS__ };                                      \
		const struct drv_map *m_ = &(d)->info.maps[n];                                     \
		assert_in_range(n, 0, (d)->info.n_maps - 1);                                       \
		assert_string_equal(m_->origin, want_origin);                                      \
		assert_int_equal(m_->ranges.count, ARRAY_SIZE(want_));                             \
		for (size_t i_ = 0; i_ < ARRAY_SIZE(want_); i_++) {                                \
			assert_int_equal(m_->ranges.at[i_].first, want_[i_].first);                \
			assert_int_equal(m_->ranges.at[i_].last, want_[i_].last);                  \
		}                                                                                  \
	} while (0)

/* drv_open() of NAME:image, saved first. */
static inline struct drv *open_image(const char *name, struct image *i)
{
	struct err e = ERR_INIT;
	struct drv *d = NULL;
	char spec[128];

	snprintf(spec, sizeof(spec), "%s:%s", name, image_save(i));
	CHECK_OK(drv_open(spec, &d, &e), &e);
	return d;
}

static inline void refuse_image(const char *name, struct image *i, enum status want,
				const char *text)
{
	struct err e = ERR_INIT;
	struct drv *d = NULL;
	char spec[128];

	snprintf(spec, sizeof(spec), "%s:%s", name, image_save(i));
	CHECK_STATUS(drv_open(spec, &d, &e), want, &e);
	CHECK_HAS(e.message, text);
	CHECK_HAS(e.message, i->path);
	assert_null(d);
	image_free(i);
}

#endif
