/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, what of them is shown, and keys. */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/collect/stores/network_options.h"
#include "agent/shared/program/address.h"

TEST(addresses_are_told_from_files)
{
	static const char *const addresses[] = {
		"s3://b/k", "https://h/x", "tls://h:1",
		"gs://b/k", "http://h/",   "azblob:https://a/c/b?s"
	};
	static const char *const files[] = { "file",    "/a/b://c", "C:\\x", "C://x",  "s3:/x",
					     "azblob:", "://x",     "-",     "a b://c" };

	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
		assert_true(is_address(addresses[i]));
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		assert_false(is_address(files[i]));
}

static void check_shown(const char *address, const char *want, bool secret)
{
	_cleanup_free_ char *shown = address_shown(address);

	assert_string_equal(shown, want);
	assert_int_equal(address_is_secret(address), secret);
}

TEST(what_is_secret_in_an_address_is_not_shown)
{
	check_shown("https://h:1/a/b", "https://h:1/a/b", false);
	check_shown("https://h/a?sig=x", "https://h/a", true);
	check_shown("https://h/a#x", "https://h/a", true);
	check_shown("https://h?x", "https://h", true);
	check_shown("https://u:p@h/a@b", "https://h/a@b", true);
	check_shown("https://u@x:p@h/a?b", "https://h/a", true);
	check_shown("azblob:https://a/c/b?sv=1&sig=x", "azblob:https://a/c/b", true);
	check_shown("s3://b/k?not#secret", "s3://b/k?not#secret", false);
	check_shown("s3://id:key@b/k", "s3://b/k", true);
}

TEST(memory_goes_in_the_clear_to_this_machine_only)
{
	static const char *const good[] = { "https://h/", "http://127.0.0.1:80/x",
					    "http://localhost", "http://[::1]:1" };
	static const char *const bad[] = { "http://h/", "http://127.0.0.1.evil.org/",
					   "http://localhost@h/", "http://127.0.0.10/" };
	struct http_options o = { .pin = "sha256//x" };
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		CHECK_OK(remote_check_url(good[i], &o, &e), &e);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_STATUS(remote_check_url(bad[i], &o, &e), ST_USAGE, &e);
	o.pin = NULL;
	CHECK_STATUS(remote_check_url("https://h/", &o, &e), ST_USAGE, &e);
	CHECK_OK(remote_check_url("http://localhost/", &o, &e), &e);
}

static void deinit(struct remote_keys *k)
{
	secret_wipe(&k->id);
	secret_wipe(&k->secret);
	secret_wipe(&k->token);
	free(k->region);
	free(k->endpoint);
}

static void check_keys(const char *text)
{
	struct remote_keys k = { 0 };
	struct err e = ERR_INIT;

	CHECK_OK(network_parse_keys(text, &k, &e), &e);
	assert_string_equal(k.id.text, "AKID");
	assert_string_equal(k.secret.text, "a/b+c=");
	assert_string_equal(k.token.text, "t");
	assert_string_equal(k.region, "eu-1");
	assert_string_equal(k.endpoint, "https://h:1");
	deinit(&k);
}

TEST(keys_are_read_as_others_write_them)
{
	check_keys("[default]\naws_access_key_id = AKID\naws_secret_access_key=a/b+c=\r\n"
		   "aws_session_token=t\nregion = eu-1\nendpoint_url = https://h:1\n");
	check_keys("aws_access_key_id=old\nregion=old\naws_access_key_id=AKID\n"
		   "aws_secret_access_key=a/b+c=\naws_session_token=t\nregion=eu-1\n"
		   "endpoint_url=https://h:1\n");
	check_keys("# a comment = x\nexport AWS_ACCESS_KEY_ID=AKID\n"
		   "export AWS_SECRET_ACCESS_KEY='a/b+c='\nAWS_SESSION_TOKEN=\"t\"\n"
		   "AWS_DEFAULT_REGION=eu-1\n\nAWS_ENDPOINT_URL_S3=https://h:1");
}

TEST(several_profiles_are_no_answer)
{
	struct remote_keys k = { 0 };
	struct err e = ERR_INIT;

	CHECK_STATUS(network_parse_keys("[a]\naws_access_key_id=1\n[b]\n", &k, &e), ST_USAGE, &e);
	CHECK_HAS(e.message, "several profiles");
	deinit(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_told_from_files),
		cmocka_unit_test(what_is_secret_in_an_address_is_not_shown),
		cmocka_unit_test(memory_goes_in_the_clear_to_this_machine_only),
		cmocka_unit_test(keys_are_read_as_others_write_them),
		cmocka_unit_test(several_profiles_are_no_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
