/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "agent/shared/program/json.h"
#include "tests/gen/text_file.h"

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

/* What a terminal would obey, hide or reorder is the same value in other letters. */
TEST(hidden_characters_are_escaped)
{
	static const char text[] = "\n\xc2\x9b\x7f\xe2\x80\xae\xd8\x9c\xe2\x81\xa9\xf3\xa0\x81\x81"
				   "caf\xc3\xa9 \xe4\xb8\xad\xf0\x9f\x98\x80";
	json_t *doc = json_fields(JSON_FIELDS(field_text("t", text)));
	_cleanup_free_ char *shown = json_dumped(doc, JSON_COMPACT);
	json_t *back = json_loads(shown, 0, NULL);

	assert_string_equal(shown, "{\"t\":\"\\n\\u009b\\u007f\\u202e\\u061c\\u2069\\udb40\\udc41"
				   "caf\xc3\xa9 \xe4\xb8\xad\xf0\x9f\x98\x80\"}");
	assert_string_equal(json_string_value(json_object_get(back, "t")), text);
	json_decref(back);
	json_decref(doc);
	assert_null(json_dumped(NULL, 0));
}

/* How often an item was made; above `last` there is no memory. */
struct items {
	size_t *made;
	size_t last;
};

static json_t *make_item(const void *arg, size_t i)
{
	const struct items *x = arg;

	++*x->made;
	return i > x->last ? NULL
			   : json_pack("{s:i, s:[s, s], s:{}}", "i", (int)i, "texts", "a\nb", "",
				       "empty");
}

/* A list that is printed item by item is what the whole document would be. */
TEST(list_is_printed_as_within_its_document)
{
	for (size_t count = 0; count < 4; count++) {
		size_t made = 0;
		const struct items x = { &made, count };
		json_t *doc, *list = json_array();
		struct err e = ERR_INIT;
		FILE *out = text_file_open();
		char *text, *whole;

		doc = json_fields(
			JSON_FIELDS(field_text("a", "b\nc"), field_json("d", json_object())));
		CHECK_OK(
			json_print_list(out, json_deep_copy(doc), "list", count, make_item, &x, &e),
			&e);
		assert_int_equal(made, count);
		for (size_t i = 0; i < count; i++)
			json_array_append_new(list, make_item(&x, i));
		json_object_set_new(doc, "list", list);
		whole = json_dumps(doc, JSON_INDENT(1));
		text = text_file_close(out);
		assert_memory_equal(text, whole, strlen(whole));
		assert_string_equal(text + strlen(whole), "\n");
		json_decref(doc);
		free(whole);
		free(text);
	}
}

TEST(list_that_could_not_be_made_fails)
{
	size_t made = 0;
	const struct items x = { &made, 1 };
	FILE *out = text_file_open();
	struct err e = ERR_INIT;

	CHECK_STATUS(json_print_list(out, json_pack("{s:i}", "a", 1), "list", 9, make_item, &x, &e),
		     ST_NOMEM, &e);
	assert_int_equal(made, 3);
	CHECK_STATUS(json_print_list(out, NULL, "list", 0, make_item, &x, &e), ST_NOMEM, &e);
	free(text_file_close(out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_stand_in_their_order_with_their_types),
		cmocka_unit_test(number_that_readers_would_lose_is_a_text),
		cmocka_unit_test(what_could_not_be_made_fails_the_whole),
		cmocka_unit_test(what_an_object_has_already_stays),
		cmocka_unit_test(hidden_characters_are_escaped),
		cmocka_unit_test(list_is_printed_as_within_its_document),
		cmocka_unit_test(list_that_could_not_be_made_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
