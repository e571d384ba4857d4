/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <stdlib.h>

#include "formats/proof/ci_policy.h"
#include "tests/unit/ci_build.h"

static const uint8_t ours[32] = "the driver's own hash";
static const uint8_t sha1[20] = "and its SHA-1";
static const uint8_t root[32] = "a certificate in its signature";
static const uint8_t other[32] = "somebody else's";

static const struct ci_subject driver = {
	.hashes = { { .at = "the driver's own hash", .len = 32 },
		    { .at = "and its SHA-1", .len = 20 } },
	.n_hashes = 2,
	.certificates = { { .at = "a certificate in its signature", .len = 32 } },
	.n_certificates = 1,
};

#define DRIVERS(...)                                                                               \
	{                                                                                          \
		{                                                                                  \
			.value = 131, __VA_ARGS__                                                  \
		}                                                                                  \
	}
#define RULES(...) .rules = { __VA_ARGS__ }

/* Without rules. */
static const struct ci_recipe audit = {
	.options = CI_OPTION_AUDIT,
	.version = { 10, 29611, 1, 2 },
	.name = "Microsoft Windows Cross Certificates for Code Integrity Exceptions Audit Policy",
	.id = "10.29611.0.0",
	.scenarios = DRIVERS(.n_rules = 0),
	.n_scenarios = 1,
};

static struct ci_match match_of(const struct ci_recipe *r)
{
	const struct ci_bytes b = ci_make(r);
	struct err e = ERR_INIT;
	struct ci_policy p;
	struct ci_match m;

	CHECK_OK(ci_policy_read(b.at, b.len, &p, &e), &e);
	CHECK_OK(ci_policy_match(&p, &driver, &m, &e), &e);
	return m;
}

static void check_audit(const void *bytes, size_t len, bool is_signed)
{
	struct err e = ERR_INIT;
	struct ci_policy p;
	struct ci_match m;

	CHECK_OK(ci_policy_read(bytes, len, &p, &e), &e);
	assert_int_equal(p.is_signed, is_signed);
	assert_int_equal(p.format, 8);
	assert_string_equal(p.type, "{A244370E-44C9-4C06-B551-F6016E563076}");
	assert_true(p.options & CI_OPTION_AUDIT);
	assert_int_equal(p.version[0], 10);
	assert_int_equal(p.version[1], 29611);
	assert_int_equal(p.version[2], 1);
	assert_int_equal(p.version[3], 2);
	CHECK_OK(ci_policy_match(&p, &driver, &m, &e), &e);
	assert_string_equal(m.name, audit.name);
	assert_string_equal(m.id, audit.id);
	assert_int_equal(m.allowed, CI_NO);
	assert_int_equal(m.denied, CI_NO);
}

TEST(header_and_settings_are_told)
{
	const struct ci_bytes b = ci_make(&audit);
	static struct out o;

	check_audit(b.at, b.len, false);
	ci_wrap(&o, &b);
	check_audit(o.bytes + sizeof(o.bytes) - o.len, o.len, true);
}

TEST(hash_is_found_where_a_scenario_for_drivers_names_its_rule)
{
	static const struct {
		struct ci_rule rule;
		struct ci_scenario scenario;
		enum ci_verdict allowed, denied;
	} cases[] = {
		{ { 1, NULL, ours, 32 }, { .value = 131, .n_rules = 1 }, CI_YES, CI_NO },
		{ { 0, NULL, ours, 32 }, { .value = 131, .n_rules = 1 }, CI_NO, CI_YES },
		{ { 0, NULL, sha1, 20 }, { .value = 131, .n_rules = 1 }, CI_NO, CI_YES },
		{ { 0, NULL, other, 32 }, { .value = 131, .n_rules = 1 }, CI_NO, CI_NO },
		{ { 0, NULL, ours, 20 }, { .value = 131, .n_rules = 1 }, CI_NO, CI_NO },
		{ { 0, NULL, ours, 0 }, { .value = 131, .n_rules = 1 }, CI_NO, CI_NO },
		/* Named by nobody, or only for programs. */
		{ { 0, NULL, ours, 32 }, { .value = 131 }, CI_NO, CI_NO },
		{ { 0, NULL, ours, 32 }, { .value = 12, .n_rules = 1 }, CI_NO, CI_NO },
		{ { 2, NULL, ours, 32 }, { .value = 131, .n_rules = 1 }, CI_NO, CI_NO },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct ci_match m = match_of(&(struct ci_recipe){
			.rules = { cases[i].rule },
			.n_rules = 1,
			.scenarios = { cases[i].scenario },
			.n_scenarios = 1,
		});

		if (m.allowed != cases[i].allowed || m.denied != cases[i].denied || m.by_name)
			fail_msg("case %zu: %d %d", i, m.allowed, m.denied);
	}
}

TEST(rules_by_name_are_told_of)
{
	const struct ci_match m = match_of(&(struct ci_recipe){
		RULES({ 0, NULL, other, 32 }, { 0, "odd.sys", NULL, 0 }),
		.n_rules = 2,
		.scenarios = DRIVERS(.rules = { 1 }, .n_rules = 1),
		.n_scenarios = 1,
	});

	assert_true(m.by_name);
	assert_int_equal(m.denied, CI_NO);
}

TEST(certificate_with_conditions_is_a_maybe)
{
	static const struct {
		struct ci_signer signer;
		struct ci_scenario scenario;
		enum ci_verdict allowed, denied;
	} cases[] = {
		{ { root, 32 }, { .value = 131, .n_denied = 1 }, CI_NO, CI_YES },
		{ { root, 32 }, { .value = 131, .n_allowed = 1 }, CI_YES, CI_NO },
		{ { other, 32 }, { .value = 131, .n_denied = 1 }, CI_NO, CI_NO },
		{ { 0 }, { .value = 131, .n_allowed = 1 }, CI_NO, CI_NO },
		{ { root, 32 }, { .value = 12, .n_denied = 1 }, CI_NO, CI_NO },
		{ { root, 32 }, { .value = 131 }, CI_NO, CI_NO },
		{ { root, 32, .usage = true }, { .value = 131, .n_allowed = 1 }, CI_MAYBE, CI_NO },
		{ { root, 32, .publisher = "X" },
		  { .value = 131, .n_denied = 1 },
		  CI_NO,
		  CI_MAYBE },
		{ { root, 32, .attributes = true },
		  { .value = 131, .n_denied = 1 },
		  CI_NO,
		  CI_MAYBE },
		{ { root, 32 },
		  { .value = 131, .n_allowed = 1, .exception = true },
		  CI_MAYBE,
		  CI_NO },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct ci_match m = match_of(&(struct ci_recipe){
			RULES({ 0, "odd.sys", NULL, 0 }),
			.n_rules = 1,
			.signers = { cases[i].signer },
			.n_signers = 1,
			.scenarios = { cases[i].scenario },
			.n_scenarios = 1,
		});

		if (m.allowed != cases[i].allowed || m.denied != cases[i].denied)
			fail_msg("case %zu: %d %d", i, m.allowed, m.denied);
	}
}

static void check_bad(const void *p, size_t len, const char *want)
{
	struct err e = ERR_INIT;
	struct ci_policy policy;

	assert_int_equal(ci_policy_read(p, len, &policy, &e), ST_CORRUPT);
	CHECK_HAS(e.message, want);
}

TEST(what_is_none_is_named)
{
	struct ci_bytes b = ci_make(&audit);
	static struct out o;

	check_bad("", 0, "is empty");
	check_bad("not a policy, only a text that is long enough to be one of these: 0123456789",
		  76, "is no code integrity policy");
	check_bad(b.at, 0x43, "is cut short");
	ci_wrap(&o, &b);
	check_bad(o.bytes + sizeof(o.bytes) - o.len, o.len - 1, "is cut short, or its signature");
	put_le32(b.at, 10);
	check_bad(b.at, b.len, "has format 10");
	put_le32(b.at, 8);
	b.at[0x27] &= 0x7f;
	check_bad(b.at, b.len, "is no code integrity policy");
}

/* Cut anywhere, or with any byte changed, it ends, and reads nothing that is not there. */
TEST(damaged_policies_end)
{
	static const struct ci_recipe r = {
		RULES({ 0, "odd.sys", NULL, 0 }, { 1, NULL, ours, 32 }),
		.n_rules = 2,
		.signers = { { root, 32, .publisher = "X", .attributes = true } },
		.n_signers = 1,
		.scenarios = { { .value = 131,
				 .allowed = { 0 },
				 .n_allowed = 1,
				 .rules = { 1 },
				 .n_rules = 1 },
			       { .value = 12, .n_denied = 1 } },
		.n_scenarios = 2,
		.name = "N",
	};
	struct ci_bytes b = ci_make(&r);
	size_t failed = 0, settings = 0;
	struct ci_policy p;
	struct ci_match m;

	for (size_t cut = 0; cut < b.len; cut++) {
		uint8_t *part = malloc(cut ? cut : 1); /* of its own, for the sanitizer to watch */

		memcpy(part, b.at, cut);
		if (ci_policy_read(part, cut, &p, NULL) || ci_policy_match(&p, &driver, &m, NULL))
			failed++;
		else
			settings += !m.name[0];
		free(part);
	}
	/* All but the settings, which are for people alone. */
	assert_true(failed > b.len / 2 && settings > 10);
	for (size_t i = 0; i < b.len; i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			b.at[i] ^= (uint8_t)(1 << bit);
			if (!ci_policy_read(b.at, b.len, &p, NULL))
				ci_policy_match(&p, &driver, &m, NULL);
			b.at[i] ^= (uint8_t)(1 << bit);
		}
}

TEST(numbers_that_lead_nowhere_are_damage)
{
	struct ci_recipe r = {
		RULES({ 0, NULL, ours, 32 }),       .n_rules = 1,
		.signers = { { root, 32 } },        .n_signers = 1,
		.scenarios = DRIVERS(.n_rules = 1), .n_scenarios = 1,
	};
	struct err e = ERR_INIT;
	struct ci_policy p;
	struct ci_match m;

	for (size_t i = 0; i < 4; i++) {
		struct ci_scenario *s = &r.scenarios[0];
		struct ci_bytes b;

		*s = (struct ci_scenario){ .value = 131 };
		s->n_rules = i == 0;
		s->n_allowed = i == 1;
		s->n_denied = i == 2;
		s->inherits = i == 3;
		s->rules[0] = s->allowed[0] = s->denied[0] = 1;
		b = ci_make(&r);
		CHECK_OK(ci_policy_read(b.at, b.len, &p, &e), &e);
		assert_int_equal(ci_policy_match(&p, &driver, &m, &e), ST_CORRUPT);
		CHECK_HAS(e.message, i == 3 ? "inherit" : "damaged");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_and_settings_are_told),
		cmocka_unit_test(hash_is_found_where_a_scenario_for_drivers_names_its_rule),
		cmocka_unit_test(rules_by_name_are_told_of),
		cmocka_unit_test(certificate_with_conditions_is_a_maybe),
		cmocka_unit_test(what_is_none_is_named),
		cmocka_unit_test(damaged_policies_end),
		cmocka_unit_test(numbers_that_lead_nowhere_are_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
