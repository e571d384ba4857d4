/* SPDX-License-Identifier: Apache-2.0 */
/* The report on one process, made by hand: more of everything than is shown, and names that lie. */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "agent/examine/report/process/process_page.h"
#include "agent/examine/report/process/process_map.h"
#include "agent/examine/report/process/process_sections.h"
#include "formats/base/utf8.h"

#define EVIL   "</title><script>alert(1)</script>\" onload=\"x\xe2\x80\xae\x1b[2J\xff"
#define RANGES 20000

static const uint8_t *no_page(void *context, uint64_t va)
{
	(void)context, (void)va;
	return NULL;
}

struct made {
	struct report_process r;
	struct process_facts facts;
	struct vad_list vads;
	struct memory_view memory;
};

/* Images, private memory and files in turn, of four pages, 1 GiB apart each hundred. */
static void make(struct made *m, size_t count, const char *name)
{
	const struct heap_sources sources = { .memory = &m->memory, .ranges = &m->r.ranges };
	uint64_t at = 0x10000;
	struct err e;

	*m = (struct made){ .memory = { no_page, NULL } };
	m->facts = (struct process_facts){ .pid = 7, .layout = name, .layout_reason = name };
	snprintf(m->facts.name, sizeof(m->facts.name), "%s", name);
	m->vads = (struct vad_list){ .at = calloc(count, sizeof(*m->vads.at)), .count = count };
	m->r = (struct report_process){ .path = name, .facts = &m->facts, .vads = &m->vads };
	m->r.regions = calloc(count, sizeof(*m->r.regions));
	m->r.pages.each = calloc(count, sizeof(*m->r.pages.each));
	assert_non_null(m->vads.at && m->r.regions && m->r.pages.each ? m : NULL);
	for (size_t i = 0; i < count; i++, at += i % 100 ? 0x10000 : 0x80000000) {
		struct pages_counts *c = &m->r.pages.each[i];

		m->vads.at[i] = (struct vad){
			.start = at,
			.end = at + 0x3fff,
			.type = i % 3 ? VAD_NONE : VAD_IMAGE,
			.is_private = i % 3 == 1,
			.file = i % 3 == 1 ? NULL : strdup(name),
		};
		m->r.regions[i].kind = i % 3 == 0   ? REGION_IMAGE
				       : i % 3 == 1 ? REGION_PRIVATE
						    : REGION_FILE;
		c->state[PAGES_VALID] = 2;
		c->judged[PAGES_VALID][TRUST_SAFE] = c->trust[TRUST_SAFE] = 1;
		c->judged[PAGES_VALID][TRUST_AT_RISK] = c->trust[TRUST_AT_RISK] = 1;
		c->state[PAGES_MISSING] = c->state[PAGES_RESERVED] = 1;
		pages_counts_add(&m->r.pages.total, c);
		m->r.by_region[m->r.regions[i].kind].vads++;
		pages_counts_add(&m->r.by_region[m->r.regions[i].kind].pages, c);
	}
	CHECK_OK(heaps_open(&sources, &m->r.heaps, &e), &e);
}

static void forget(struct made *m)
{
	for (size_t i = 0; i < m->vads.count; i++)
		free(m->vads.at[i].file);
	free(m->vads.at);
	report_process_deinit(&m->r);
}

static size_t times(const char *text, const char *what)
{
	size_t n = 0;

	while ((text = strstr(text, what))) {
		text += strlen(what);
		n++;
	}
	return n;
}

TEST(names_are_text_and_nothing_else)
{
	_cleanup_doc_ struct doc d = { 0 };
	struct made m;

	make(&m, 12, EVIL);
	page_of_process(&d, &m.r);
	assert_false(d.lost);
	assert_true(utf8_valid(d.at, d.len));
	assert_int_equal(times(d.at, "<script"), 0);
	assert_int_equal(times(d.at, "onload=\""), 0);
	assert_int_equal(times(d.at, "\x1b"), 0);
	assert_int_equal(times(d.at, "\xe2\x80\xae"), 0);
	assert_true(times(d.at, "&lt;script&gt;alert(1)") > 8);
	assert_int_equal(times(d.at, "<title>"), times(d.at, "</title>"));
	forget(&m);
}

/* Some MiB at most, and what is left out is in the sums. */
TEST(what_is_too_much_is_folded)
{
	_cleanup_doc_ struct doc d = { 0 };
	struct made m;

	make(&m, RANGES, "C:\\Windows\\x.dll");
	page_of_process(&d, &m.r);
	assert_false(d.lost);
	assert_in_range(d.len, 100000, 4 << 20);
	assert_int_equal(map_fold(&m.r, SVG_WIDE), RANGES / MAP_COLUMNS_WIDE);
	/* Each column has three kinds at most. */
	assert_in_range(times(d.at, "class=\"block\""), MAP_COLUMNS_WIDE,
			3 * (MAP_COLUMNS_WIDE + MAP_COLUMNS_NARROW));
	assert_int_equal(times(d.at, "Up to 50 neighbouring ranges share a column."), 1);
	assert_int_equal(times(d.at, "19,500 more</th>"), 1);
	assert_int_equal(times(d.at, "<td class=\"n\" data-column=\"pages\">78,000</td>"), 1);
	assert_int_equal(times(d.at, "<td class=\"n\" data-column=\"pages\">80,000</td>"), 1);
	forget(&m);
}

/* Of 60 pages with data a third is safe, a third at risk, a third lost; no list was read. */
TEST(headline_says_no_more_than_is_known)
{
	_cleanup_doc_ struct doc d = { 0 };
	struct made m;

	make(&m, 20, "x");
	page_of_process(&d, &m.r);
	assert_int_equal(times(d.at, "20 of 60 pages with data are safe"), 1);
	assert_int_equal(times(d.at, "class=\"outcome bad\""), 1);
	assert_int_equal(times(d.at, "No data of a heap was found."), 1);
	assert_int_equal(times(d.at, "agree."), 0);
	assert_false(report_process_is_whole(&m.r));
	forget(&m);
}

TEST(an_image_is_never_good)
{
	_cleanup_doc_ struct doc d = { 0 };
	struct made m;

	make(&m, 3, "x");
	m.r.still = true;
	for (size_t i = 0; i < REGIONS; i++)
		m.r.by_region[i].pages.state[PAGES_MISSING] = 0;
	m.r.pages.total.state[PAGES_MISSING] = 0;
	page_of_process(&d, &m.r);
	assert_int_equal(times(d.at, "6 of 6 pages with data are in this container"), 1);
	assert_int_equal(times(d.at, "class=\"outcome fair\""), 1);
	assert_int_equal(times(d.at, "with data are safe"), 0);
	forget(&m);
}

/* Its 32-bit PEB is lost, which makes it no 64-bit program. */
TEST(what_is_lost_makes_no_other_program_of_it)
{
	_cleanup_doc_ struct doc d = { 0 };
	struct made m;

	make(&m, 3, "x");
	m.facts.wow64 = true;
	page_of_process(&d, &m.r);
	assert_int_equal(times(d.at, "32-bit program (WoW64)"), 1);
	assert_int_equal(times(d.at, "names no 32-bit PEB"), 0);
	assert_int_equal(times(d.at, "The loader's list of 32-bit modules could not"), 1);
	forget(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_text_and_nothing_else),
		cmocka_unit_test(what_is_too_much_is_folded),
		cmocka_unit_test(headline_says_no_more_than_is_known),
		cmocka_unit_test(an_image_is_never_good),
		cmocka_unit_test(what_is_lost_makes_no_other_program_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
