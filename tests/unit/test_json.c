/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "agent/program/json.h"

static void check_text(json_t *doc, const char *want)
{
	char *text = json_dumps(doc, JSON_COMPACT);

	assert_non_null(text);
	assert_string_equal(text, want);
	free(text);
	json_decref(doc);
}

TEST(fields_stand_in_their_order_with_their_types)
{
	check_text(json_fields(JSON_FIELDS(field_text("z", "one"), field_u64("y", 2),
					   field_i64("x", -3), field_bool("w", true),
					   field_json("v", json_array()),
					   field_made("u", json_object()), field_text("t", NULL),
					   field_json("s", NULL))),
		   "{\"z\":\"one\",\"y\":2,\"x\":-3,\"w\":true,\"v\":[],\"u\":{},\"t\":null,\"s\":"
		   "null}");
	check_text(json_fields(JSON_FIELDS(field_text("path", "a\xff"))),
		   "{\"path\":\"a\\\\xff\"}");
}

TEST(number_that_readers_would_lose_is_a_text)
{
	check_text(json_fields(JSON_FIELDS(field_u64("a", INT64_MAX),
					   field_u64("b", (uint64_t)INT64_MAX + 1))),
		   "{\"a\":9223372036854775807,\"b\":\"9223372036854775808\"}");
}

TEST(what_could_not_be_made_fails_the_whole)
{
	json_t *list = json_array();

	assert_null(json_fields(
		JSON_FIELDS(field_made("a", NULL), field_json("b", json_incref(list)))));
	assert_false(json_add_fields(NULL, JSON_FIELDS(field_json("b", json_incref(list)))));
	assert_int_equal(list->refcount, 1); /* consumed all the same */
	json_decref(list);
}

TEST(what_an_object_has_already_stays)
{
	json_t *doc = json_fields(JSON_FIELDS(field_text("a", "first")));

	assert_true(
		json_add_fields(doc, JSON_FIELDS(field_text("a", "second"), field_u64("b", 1))));
	check_text(doc, "{\"a\":\"first\",\"b\":1}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_stand_in_their_order_with_their_types),
		cmocka_unit_test(number_that_readers_would_lose_is_a_text),
		cmocka_unit_test(what_could_not_be_made_fails_the_whole),
		cmocka_unit_test(what_an_object_has_already_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
