/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/collect/host/context_flags.h"
#include "agent/collect/acquire/driver_policy.h"
#include "agent/collect/host/driver_signers.h"
#include "formats/base/sha256.h"
#include "tests/unit/scratch.h"

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

	driver_policy_check(policy, NULL, &f);
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

	driver_policy_check(policy, NULL, &f);
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
	assert_int_equal(json_object_size(policy), 10);
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
	driver_policy_check(policy, d, &f);
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

#define SERVER(installation, security)                                                             \
	"{\"os\": {\"id\": \"windows\", \"build\": 17763, \"installation\": \"" installation       \
	"\"}, \"security\": {" security "}}"

/* What stands in the way of a driver with these signers; NULL: none was named. */
static void check_signers(const char *facts, const char *signers, const char *want)
{
	json_t *policy = policy_of(facts, NULL);
	json_t *driver = signers ? json_loads(signers, 0, NULL) : NULL;
	struct findings f = { 0 };
	char got[256] = "";

	assert_true(!signers || driver);
	driver_policy_check(policy, driver, &f);
	for (size_t i = 0; i < f.count; i++)
		if (strcmp(f.at[i].what, "driver-signature") != 0)
			snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s ", f.at[i].what);
	assert_string_equal(got, want);
	findings_deinit(&f);
	json_decref(driver);
	json_decref(policy);
}

#define SIGNED(signers) "{\"path\": \"x.sys\", \"trust\": \"trusted\", \"signers\": [" signers "]}"
#define PLAIN           "{\"whql\": false, \"attestation\": false}"
#define ATTESTED        "{\"whql\": true, \"attestation\": true}"
#define TESTED          "{\"whql\": true, \"attestation\": false}"

static void check_signers_text(const char *driver, const char *want)
{
	json_t *doc = json_loads(driver, 0, NULL);
	char text[DRIVER_SIGNERS_MAX];

	assert_non_null(doc);
	driver_signers_text(doc, text);
	assert_string_equal(text, want);
	json_decref(doc);
}

/* WinVerifyTrust() may name nobody where the file names several. */
TEST(all_signers_are_named)
{
	static const char both[] = "{\"signer\": null, \"signers\": ["
				   "{\"name\": \"A\", \"nested\": false}, {\"name\": null}, "
				   "{\"name\": \"B\", \"nested\": true}]}";

	check_signers_text(both, "A, and B (nested)");
	check_signers_text("{\"signer\": \"C\", \"signers\": null}", "C");
	check_signers_text("{\"signer\": null, \"signers\": []}", "no signer known");
	check_signers_text("{}", "no signer known");
}

TEST(attestation_is_not_for_servers)
{
	static const char on[] = SERVER("Server Core", INTEGRITY(1) ", \"secure_boot\": true");

	check_signers(on, NULL, "driver-server ");
	check_signers(on, SIGNED(PLAIN "," ATTESTED), "driver-server ");
	check_signers(on, SIGNED(""), "driver-server ");
	check_signers(on, SIGNED(PLAIN "," TESTED), "driver-secure-boot ");
	check_signers(SERVER("Server", INTEGRITY(1) ", \"secure_boot\": true"), NULL,
		      "driver-server ");
	check_signers(SERVER("Server", INTEGRITY(1) ", \"secure_boot\": false"), NULL, "");
	check_signers(SERVER("Client", INTEGRITY(1) ", \"secure_boot\": true"), NULL,
		      "driver-secure-boot ");
	/* Where nothing is checked, a server takes anything, too. */
	check_signers(SERVER("Server", INTEGRITY(0) ", \"secure_boot\": true"), NULL,
		      "driver-unsigned driver-secure-boot ");
	check_text(policy_of(on, NULL), "driver-server", "hypervisor");
}

TEST(whql_enforcement_wants_tested_drivers)
{
	static const char on[] = WINDOWS(19045, INTEGRITY(16385));

	check_signers(on, NULL, "driver-whql ");
	check_signers(on, SIGNED(ATTESTED), "driver-whql ");
	check_signers(on, SIGNED(TESTED), "");
	/* Bit 0x8000: it only writes down what it would refuse. */
	check_signers(WINDOWS(19045, INTEGRITY(49153)), NULL, "");
}

static void check_signers_json(json_t *signers, bool known)
{
	assert_int_equal(json_is_array(signers), known);
	assert_int_equal(json_is_null(signers), !known);
	json_decref(signers);
}

TEST(signers_are_those_of_the_bytes_that_were_hashed)
{
	/* PE headers without a signature: an empty list of signers. */
	uint8_t file[0x200] = { 'M', 'Z', [0x3c] = 0x80, [0x80] = 'P', 'E', [0x98] = 0x0b, 0x02 };
	uint8_t digest[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE];
	struct sha256 *h;
	struct scratch dir;

	CHECK_OK(sha256_create(&h, NULL), &(struct err)ERR_INIT);
	sha256_of(h, file, sizeof(file), digest);
	sha256_destroy(h);
	sha256_hex(digest, hex);
	check_signers_json(driver_signers_json(file, sizeof(file), hex), true);
	check_signers_json(driver_signers_json(file, sizeof(file) - 1, hex), false);
	scratch_init(&dir);
	scratch_write(&dir, "x.sys", file, sizeof(file));
	check_signers_json(driver_signers_of_file(scratch_path(&dir, "x.sys"), hex), true);
	hex[0] ^= 1;
	check_signers_json(driver_signers_of_file(scratch_path(&dir, "x.sys"), hex), false);
	check_signers_json(driver_signers_of_file(scratch_path(&dir, "y.sys"), hex), false);
	scratch_deinit(&dir);
}

TEST(bits_of_code_integrity_have_names)
{
	json_t *names = context_flag_names(0x1c401, context_code_integrity);

	assert_int_equal(json_array_size(names), 5);
	assert_string_equal(json_string_value(json_array_get(names, 0)), "enabled");
	assert_string_equal(json_string_value(json_array_get(names, 1)), "memory integrity");
	assert_string_equal(json_string_value(json_array_get(names, 2)), "WHQL enforcement");
	assert_string_equal(json_string_value(json_array_get(names, 3)),
			    "WHQL enforcement, audit only");
	assert_string_equal(json_string_value(json_array_get(names, 4)), "0x10000");
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
		cmocka_unit_test(all_signers_are_named),
		cmocka_unit_test(attestation_is_not_for_servers),
		cmocka_unit_test(whql_enforcement_wants_tested_drivers),
		cmocka_unit_test(signers_are_those_of_the_bytes_that_were_hashed),
		cmocka_unit_test(bits_of_code_integrity_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
