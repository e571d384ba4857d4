/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/host/context_flags.h"
#include "agent/host/driver_policy.h"

#define WINDOWS(build, security)                                                                   \
	"{\"os\": {\"id\": \"windows\", \"build\": " #build "}, \"security\": {" security "}}"
#define INTEGRITY(value) "\"code_integrity\": {\"value\": " #value ", \"names\": []}"
#define SET(values)      "{\"security\": {" values "}}"

/* `context`: NULL, or what the registry says. */
static json_t *policy_of(const char *facts, const char *context)
{
	json_t *f = json_loads(facts, 0, NULL);
	json_t *c = context ? json_loads(context, 0, NULL) : NULL;
	json_t *policy = driver_policy_json(f, c);

	assert_non_null(f);
	assert_true(!context || c);
	assert_non_null(policy);
	json_decref(f);
	json_decref(c);
	return policy;
}

/* The names of the findings, in their order: "a b ". */
static void check_findings(json_t *policy, const char *want)
{
	struct findings f = { 0 };
	char got[512] = "";

	driver_policy_judge(policy, NULL, &f);
	for (size_t i = 0; i < f.count; i++) {
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s ", f.at[i].what);
		assert_int_equal(f.at[i].st, ST_OK);
		assert_true(strlen(f.at[i].text.message) > 40);
	}
	assert_string_equal(got, want);
	findings_deinit(&f);
	json_decref(policy);
}

static void check_text(json_t *policy, const char *what, const char *want)
{
	struct findings f = { 0 };
	const char *text = "";

	driver_policy_judge(policy, NULL, &f);
	for (size_t i = 0; i < f.count; i++)
		if (!strcmp(f.at[i].what, what))
			text = f.at[i].text.message;
	CHECK_HAS(text, want);
	findings_deinit(&f);
	json_decref(policy);
}

TEST(other_systems_have_no_such_policy)
{
	json_t *policy = policy_of("{\"os\": {\"id\": \"debian\"}}", NULL);

	assert_true(json_is_null(policy));
	check_findings(policy, "");
	check_findings(policy_of("{}", NULL), "");
}

TEST(what_nobody_tells_is_null)
{
	json_t *policy = policy_of("{\"os\": {\"id\": \"windows\"}}", NULL);
	const char *key;
	json_t *value;

	json_object_foreach(policy, key, value) if (!json_is_null(value)) fail_msg("%s", key);
	assert_int_equal(json_object_size(policy), 8);
	check_findings(policy, "driver-signature ");
}

TEST(signatures_are_wanted_unless_windows_says_otherwise)
{
	check_findings(policy_of(WINDOWS(19045, INTEGRITY(1)), NULL), "driver-signature ");
	check_findings(policy_of(WINDOWS(19045, INTEGRITY(3)), NULL), "driver-test-signing ");
	check_findings(policy_of(WINDOWS(19045, INTEGRITY(0)), NULL), "driver-unsigned ");
	check_text(policy_of(WINDOWS(19045, INTEGRITY(1)), NULL), "driver-signature", "577");
}

TEST(what_runs_wins_over_what_is_set)
{
	const char *set = SET("\"test_signing\": true, \"hvci\": true, \"secure_boot\": true");

	check_findings(policy_of(WINDOWS(19045, INTEGRITY(1)), set),
		       "driver-signature driver-secure-boot ");
	/* An older Windows does not tell what runs. */
	check_findings(policy_of(WINDOWS(19045, ""), set),
		       "driver-test-signing driver-secure-boot driver-memory-integrity "
		       "driver-blocklist ");
	check_findings(policy_of(WINDOWS(19045, INTEGRITY(1) ", \"secure_boot\": false"), set),
		       "driver-signature ");
}

TEST(memory_integrity_brings_the_list_with_it)
{
	const char *off = SET("\"vulnerable_driver_blocklist\": false");

	check_findings(policy_of(WINDOWS(19045, INTEGRITY(1025)), off),
		       "driver-signature driver-memory-integrity driver-blocklist ");
	check_text(policy_of(WINDOWS(19045, INTEGRITY(1025)), off), "driver-blocklist",
		   "by memory integrity");
	/* What is only written down refuses nothing. */
	check_findings(policy_of(WINDOWS(19045, INTEGRITY(3073)), off), "driver-signature ");
}

TEST(list_of_vulnerable_drivers)
{
	static const struct {
		const char *facts, *context, *by; /* NULL: it is not in force */
	} cases[] = {
		{ WINDOWS(22621, INTEGRITY(1)), NULL, "by default" },
		{ WINDOWS(22000, INTEGRITY(1)), NULL, NULL },
		{ WINDOWS(22621, INTEGRITY(1)), SET("\"vulnerable_driver_blocklist\": null"),
		  "by default" },
		{ WINDOWS(22631, INTEGRITY(1)), SET("\"vulnerable_driver_blocklist\": false"),
		  NULL },
		{ WINDOWS(19045, INTEGRITY(1)), SET("\"vulnerable_driver_blocklist\": true"),
		  "by registry" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (cases[i].by)
			check_text(policy_of(cases[i].facts, cases[i].context), "driver-blocklist",
				   cases[i].by);
		else
			check_findings(policy_of(cases[i].facts, cases[i].context),
				       "driver-signature ");
	}
}

TEST(application_control)
{
	check_findings(policy_of(WINDOWS(19045, INTEGRITY(5)), NULL),
		       "driver-signature driver-application-control ");
	check_findings(policy_of(WINDOWS(19045, INTEGRITY(13)), NULL), "driver-signature ");
}

#define DRIVER(signer, trust)                                                                      \
	"{\"path\": \"x.sys\", \"signer\": " signer ", \"trust\": \"" trust "\"}"

/* What is told of a driver that was named; its name, or "" for nothing. */
static void check_driver(const char *driver, int integrity, const char *want, enum status st)
{
	json_t *d = json_loads(driver, 0, NULL);
	json_t *policy = integrity ? policy_of(WINDOWS(19045, INTEGRITY(1)), NULL)
				   : policy_of(WINDOWS(19045, INTEGRITY(0)), NULL);
	struct findings f = { 0 };
	size_t n = 0;

	assert_non_null(d);
	driver_policy_judge(policy, d, &f);
	for (size_t i = 0; i < f.count; i++) {
		assert_string_not_equal(f.at[i].what, "driver-signature");
		if (!strcmp(f.at[i].what, "driver-unsigned"))
			continue;
		n++;
		assert_string_equal(f.at[i].what, want);
		assert_int_equal(f.at[i].st, st);
		CHECK_HAS(f.at[i].text.message, "x.sys: ");
	}
	assert_int_equal(n, *want != '\0');
	findings_deinit(&f);
	json_decref(policy);
	json_decref(d);
}

TEST(driver_that_was_named)
{
	check_driver(DRIVER("\"Somebody\"", "trusted"), 1, "", ST_OK);
	check_driver(DRIVER("null", "0x800b0100"), 1, "driver-not-signed", ST_NO_SOURCE);
	check_driver(DRIVER("\"Somebody\"", "0x800b0109"), 1, "driver-not-trusted", ST_OK);
	check_driver(DRIVER("null", "0x800b0003"), 1, "driver-not-trusted", ST_OK);
	/* Where nothing is checked, anything goes. */
	check_driver(DRIVER("null", "0x800b0100"), 0, "", ST_OK);
}

TEST(bits_of_code_integrity_have_names)
{
	json_t *names = context_flag_names(0x8401, context_code_integrity);

	assert_int_equal(json_array_size(names), 3);
	assert_string_equal(json_string_value(json_array_get(names, 0)), "enabled");
	assert_string_equal(json_string_value(json_array_get(names, 1)), "memory integrity");
	assert_string_equal(json_string_value(json_array_get(names, 2)), "0x8000");
	json_decref(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_systems_have_no_such_policy),
		cmocka_unit_test(what_nobody_tells_is_null),
		cmocka_unit_test(signatures_are_wanted_unless_windows_says_otherwise),
		cmocka_unit_test(what_runs_wins_over_what_is_set),
		cmocka_unit_test(memory_integrity_brings_the_list_with_it),
		cmocka_unit_test(list_of_vulnerable_drivers),
		cmocka_unit_test(application_control),
		cmocka_unit_test(driver_that_was_named),
		cmocka_unit_test(bits_of_code_integrity_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
