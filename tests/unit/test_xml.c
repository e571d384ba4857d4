/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/collect/wire/xml.h"

/* "NAME=TEXT;" for each element, and "!" for what is no XML. */
static void check(const char *text, const char *want)
{
	char got[512] = "";
	struct xml x;

	xml_init(&x, text, strlen(text));
	while (xml_next(&x)) {
		strcat(got, x.name);
		strcat(got, "=");
		strcat(got, x.text);
		strcat(got, ";");
	}
	if (x.bad)
		strcat(got, "!");
	assert_string_equal(got, want);
}

TEST(elements_come_when_they_end)
{
	check("<a><b>1</b><c>two</c></a>", "b=1;c=two;a=;");
	check("<?xml version=\"1.0\"?>\n<a xmlns='x>y'>\n<b/>t<!-- <z> --></a>\n", "b=;a=t;");
	check("<s3:Error><s3:Code>x</s3:Code></s3:Error>", "Code=x;Error=;");
	check("<a/>", "a=;");
}

TEST(entities_become_characters)
{
	check("<a>&quot;1&amp;2&#65;&#x42;&lt;&gt;&apos;&#8364;</a>", "a=\"1&2AB<>'?;");
}

TEST(what_is_no_xml_is_said)
{
	const char *const wrong[] = { "",
				      "text",
				      "<a>",
				      "<a",
				      "<a></b>",
				      "</a>",
				      "<a>&nbsp;</a>",
				      "<a>&#</a>",
				      "<a>&#zz;</a>",
				      "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>",
				      "<a b='></a>",
				      "<>x</>",
				      "<a><!--</a>",
				      "<![CDATA[x]]>" };

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		check(wrong[i], "!");
	check("<a/><b/>", "a=;!");
}

TEST(depth_and_length_are_bounded)
{
	static char long_text[XML_TEXT_MAX + 100];
	char deep[400] = "";
	struct xml x;

	for (int i = 0; i < XML_DEPTH_MAX + 1; i++)
		strcat(deep, "<a>");
	check(deep, "!");
	strcpy(long_text, "<a>");
	memset(long_text + 3, 'x', XML_TEXT_MAX);
	strcat(long_text, "</a>");
	xml_init(&x, long_text, strlen(long_text));
	assert_false(xml_next(&x));
	assert_true(x.bad);
}

TEST(one_element_is_found)
{
	static const char text[] = "<E><Code>NoSuchKey</Code><Code>second</Code></E>";
	char ret[10];

	assert_true(xml_find(text, strlen(text), "Code", ret, sizeof(ret)));
	assert_string_equal(ret, "NoSuchKey");
	assert_false(xml_find(text, strlen(text), "Code", ret, 9));
	assert_false(xml_find(text, strlen(text), "Message", ret, sizeof(ret)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elements_come_when_they_end),
		cmocka_unit_test(entities_become_characters),
		cmocka_unit_test(what_is_no_xml_is_said),
		cmocka_unit_test(depth_and_length_are_bounded),
		cmocka_unit_test(one_element_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
