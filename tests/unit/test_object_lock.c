/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/collect/stores/object_lock.h"

/* 2027-01-31T00:00:00Z: `date -u -d 2027-01-31 +%s` */
#define DAY UINT64_C(1801353600)

static struct object_lock parse(const char *text)
{
	struct object_lock ret = { 0 };
	struct err e = ERR_INIT;

	CHECK_OK(object_lock_parse(text, &ret, &e), &e);
	return ret;
}

TEST(a_time_is_taken_as_it_is)
{
	struct object_lock l = parse("compliance:2027-01-31T12:00:01Z");
	char text[LOCK_TIME_SIZE];

	assert_int_equal(l.mode, LOCK_COMPLIANCE);
	assert_int_equal(l.until, DAY + 12 * 3600 + 1);
	object_lock_begin(&l, 1);
	object_lock_time(l.until, text);
	assert_string_equal(text, "2027-01-31T12:00:01Z");
	assert_int_equal(parse("governance:2027-01-31").until, DAY);
}

TEST(days_begin_when_it_is_said)
{
	struct object_lock l = parse("governance:90d");

	assert_int_equal(l.mode, LOCK_GOVERNANCE);
	assert_int_equal(l.until, 0);
	object_lock_begin(&l, DAY);
	object_lock_begin(&l, DAY + 1000000);
	assert_int_equal(l.until, DAY + 90 * 86400);
}

TEST(what_is_no_lock_is_refused)
{
	static const char *const wrong[] = {
		"",
		"governance",
		"governance:",
		"legal-hold:90d",
		"governance:0d",
		"governance:36501d",
		"governance:-1d",
		"governance:90",
		"governance:90d ",
		"governance:2027-1-31",
		"governance:2027-02-29",
		"governance:1969-12-31",
		"governance:2027-01-31T",
		"governance:2027-01-31T12:00:00",
		"governance:2027-01-31T24:00:00Z",
		"governance:2027-01-31Z",
		"Governance:90d",
		"governance:+1d",
	};
	struct object_lock l;
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		CHECK_STATUS(object_lock_parse(wrong[i], &l, &e), ST_USAGE, &e);
}

TEST(what_a_store_says_may_have_fractions)
{
	uint64_t got = 0;

	assert_true(object_lock_parse_time("2027-01-31T00:00:00.000Z", &got));
	assert_int_equal(got, DAY);
	assert_false(object_lock_parse_time("2027-01-31T00:00:00.000", &got));
	assert_false(object_lock_parse_time("2027-01-31.000Z", &got));
}

TEST(as_json_and_back)
{
	struct object_lock l = parse("compliance:2027-01-31"), back;
	json_t *doc;

	l.seen = LOCK_MISSING;
	doc = object_lock_json(&l);
	assert_true(json_is_false(json_object_get(doc, "kept")));
	assert_true(object_lock_from_json(doc, &back));
	assert_int_equal(back.mode, LOCK_COMPLIANCE);
	assert_int_equal(back.until, DAY);
	json_object_set_new(doc, "until", json_string("soon"));
	assert_false(object_lock_from_json(doc, &back));
	json_decref(doc);
	assert_null(object_lock_json(&(struct object_lock){ 0 }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_time_is_taken_as_it_is),
		cmocka_unit_test(days_begin_when_it_is_said),
		cmocka_unit_test(what_is_no_lock_is_refused),
		cmocka_unit_test(what_a_store_says_may_have_fractions),
		cmocka_unit_test(as_json_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
