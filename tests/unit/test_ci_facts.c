/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/collect/host/ci_host.h"
#include "tests/unit/ci_build.h"

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

TEST(ids_are_the_same_in_any_writing)
{
	assert_true(ci_same_id(CI_POLICY_AUDIT, "784c4414-79f4-4c32-a6a5-f0fb42a51d0d"));
	assert_true(ci_same_id("{784C4414-79F4-4C32-A6A5-F0FB42A51D0D}.cip", CI_POLICY_AUDIT));
	assert_false(ci_same_id(CI_POLICY_AUDIT, CI_POLICY_ENFORCED));
	assert_false(ci_same_id(CI_POLICY_AUDIT, "{784C4414"));
	assert_false(ci_same_id("", ""));
	assert_true(ci_is_inbox("{d2bda982-ccf6-4344-ac5b-0b44427b6816}"));
	assert_false(ci_is_inbox("{496a5746-5600-4cdd-b22e-333fd5614d00}"));
}

/*
 * As Windows renders them, after samples that people published: with either kind of quotes, and
 * names of data that have blanks.
 */
#define SYSTEM(id, time)                                                                           \
	"<Event xmlns='http://schemas.microsoft.com/win/2004/08/events/event'><System>"            \
	"<Provider Name='Microsoft-Windows-CodeIntegrity'/><EventID>" id "</EventID>"              \
	"<Version>1</Version><TimeCreated SystemTime='" time "'/>"                                 \
	"<EventRecordID>197</EventRecordID></System><EventData>"
#define DATA(name, value) "<Data Name='" name "'>" value "</Data>"
#define END               "</EventData></Event>"
#define BOOT              UINT64_C(1640646173000000000) /* 2021-12-27T23:02:53Z */

TEST(activation_is_told)
{
	json_t *o = ci_event_json(
		SYSTEM("3099", "2021-12-27T23:02:53.9707587Z") DATA("PolicyNameLength", "7")
			DATA("PolicyNameBuffer", "A &amp; B &lt;1&gt;")
				DATA("PolicyGUID", CI_POLICY_AUDIT) DATA("Status", "0x0") END,
		BOOT);

	assert_non_null(o);
	assert_int_equal(json_integer_value(json_object_get(o, "id")), 3099);
	assert_int_equal(json_integer_value(json_object_get(o, "record")), 197);
	assert_string_equal(text_of(o, "time"), "2021-12-27T23:02:53.970758700Z");
	assert_true(json_is_true(json_object_get(o, "since_boot")));
	assert_string_equal(text_of(o, "policy"), CI_POLICY_AUDIT);
	assert_string_equal(text_of(o, "name"), "A & B <1>");
	assert_true(json_is_null(json_object_get(o, "file")));
	json_decref(o);
}

TEST(load_is_told_with_its_hashes)
{
	json_t *o = ci_event_json(
		"<Event><System><EventID Qualifiers=\"0\">3077</EventID>"
		"<TimeCreated SystemTime=\"2021-12-27T23:02:52Z\"/></System><EventData>"
		"<Data Name=\"File Name\">\\Device\\HarddiskVolume3\\x.sys</Data>"
		"<Data Name=\"SHA1 Hash\">15CD</Data><Data Name=\"SHA256 Hash\">C22C</Data>"
		"<Data Name=\"PolicyName\">N</Data><Data Name=\"PolicyGUID\">{8f9c}</Data>" END,
		BOOT);

	assert_non_null(o);
	assert_int_equal(json_integer_value(json_object_get(o, "id")), 3077);
	assert_true(json_is_false(json_object_get(o, "since_boot")));
	assert_string_equal(text_of(o, "file"), "\\Device\\HarddiskVolume3\\x.sys");
	assert_string_equal(text_of(o, "name"), "N");
	assert_int_equal(json_array_size(json_object_get(o, "hashes")), 2);
	json_decref(o);
}

TEST(what_an_event_lacks_is_null)
{
	static const char *const times[] = { "", "soon", "2021-12-27T23:02:53",
					     "2021-13-27T23:02:53Z" };
	char xml[512];
	json_t *o;

	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		snprintf(xml, sizeof(xml), SYSTEM("3076", "%s") END, times[i]);
		o = ci_event_json(xml, BOOT);
		assert_non_null(o);
		assert_true(json_is_null(json_object_get(o, "time")));
		assert_true(json_is_null(json_object_get(o, "since_boot")));
		assert_true(json_is_null(json_object_get(o, "policy")));
		json_decref(o);
	}
	o = ci_event_json(SYSTEM("3099", "2021-12-27T23:02:53Z") END, 0);
	assert_true(json_is_null(json_object_get(o, "since_boot")));
	json_decref(o);
	assert_null(ci_event_json(SYSTEM("3033", "2021-12-27T23:02:53Z") END, BOOT));
	assert_null(ci_event_json("", BOOT));
	assert_null(ci_event_json("<EventID>3099", BOOT));
	assert_null(ci_event_json("no XML", BOOT));
}

TEST(policy_and_what_it_says_of_a_driver)
{
	static const uint8_t hash[32] = "hash";
	const struct ci_subject ours = { .hashes = { { .at = "hash", .len = 32 } }, .n_hashes = 1 };
	const struct ci_bytes b = ci_make(&(struct ci_recipe){
		.options = CI_OPTION_AUDIT,
		.version = { 10, 1, 2, 3 },
		.name = "N",
		.rules = { { 1, NULL, hash, 32 } },
		.n_rules = 1,
		.scenarios = { { .value = 131, .n_rules = 1 } },
		.n_scenarios = 1,
	});
	json_t *o = ci_policy_json(CI_POLICY_AUDIT, "C:\\x.cip", b.at, b.len, &ours);

	assert_string_equal(text_of(o, "id"), CI_POLICY_AUDIT);
	assert_string_equal(text_of(o, "path"), "C:\\x.cip");
	assert_int_equal(json_integer_value(json_object_get(o, "bytes")), b.len);
	assert_int_equal(strlen(text_of(o, "sha256")), 64);
	assert_string_equal(text_of(o, "version"), "10.1.2.3");
	assert_true(json_is_true(json_object_get(o, "audit")));
	assert_string_equal(text_of(o, "name"), "N");
	assert_string_equal(text_of(o, "allows"), "yes");
	assert_string_equal(text_of(o, "denies"), "no");
	json_decref(o);
	/* Nobody is asked about. */
	o = ci_policy_json(CI_POLICY_AUDIT, "C:\\x.cip", b.at, b.len, NULL);
	assert_null(json_object_get(o, "allows"));
	assert_string_equal(text_of(o, "name"), "N");
	json_decref(o);
}

/* One clear line, and nothing is said of what could not be read. */
TEST(policy_that_is_cut_short)
{
	const struct ci_bytes b = ci_make(&(struct ci_recipe){
		.rules = { { 0, "a.sys", NULL, 0 } },
		.n_rules = 1,
		.scenarios = { { .value = 131, .n_rules = 1 } },
		.n_scenarios = 1,
	});
	static const struct {
		size_t len;
		const char *problem;
		bool has_version;
	} cases[] = { { 0, "is empty", false },
		      { 40, "is cut short", false },
		      { 100, "its rules are cut short or damaged", true } };
	const struct ci_subject none = { .n_hashes = 0 };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *o = ci_policy_json("{x}", "x.cip", b.at, cases[i].len, &none);

		assert_string_equal(text_of(o, "problem"), cases[i].problem);
		assert_int_equal(json_object_get(o, "version") != NULL, cases[i].has_version);
		assert_null(json_object_get(o, "allows"));
		assert_null(json_object_get(o, "denies"));
		json_decref(o);
	}
}

/* As Microsoft's own check reads it ("The Windows Driver Policy"). */
TEST(citool_is_understood)
{
	static const char good[] =
		"{\"OperationResult\": 0, \"Policies\": [{\"PolicyID\": "
		"\"784c4414-79f4-4c32-a6a5-f0fb42a51d0d\", \"FriendlyName\": \"N\", "
		"\"VersionString\": \"10.0\", \"IsEnforced\": true, \"IsAuthorized\": true, "
		"\"IsOnDisk\": true}, 7, {}]}\r\n";
	static const char *const bad[] = { "", "{}", "[]", "Access is denied.",
					   "{\"Policies\": 7}" };
	json_t *o = ci_citool_json(good, strlen(good));
	const json_t *first = json_array_get(json_object_get(o, "policies"), 0);

	assert_int_equal(json_array_size(json_object_get(o, "policies")), 3);
	assert_true(ci_same_id(text_of(first, "id"), CI_POLICY_AUDIT));
	assert_true(json_is_true(json_object_get(first, "enforced")));
	assert_true(json_is_true(json_object_get(first, "authorized")));
	json_decref(o);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		o = ci_citool_json(bad[i], strlen(bad[i]));
		assert_null(json_object_get(o, "policies"));
		CHECK_HAS(text_of(o, "problem"), "citool");
		json_decref(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_are_the_same_in_any_writing),
		cmocka_unit_test(activation_is_told),
		cmocka_unit_test(load_is_told_with_its_hashes),
		cmocka_unit_test(what_an_event_lacks_is_null),
		cmocka_unit_test(policy_and_what_it_says_of_a_driver),
		cmocka_unit_test(policy_that_is_cut_short),
		cmocka_unit_test(citool_is_understood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
