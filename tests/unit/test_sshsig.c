/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures by ssh-keygen of OpenSSH 9.2, over "hello\n", with a key that was made for this and
 * thrown away. What it says of the same files is compared in tests/cli/test_signature.py.
 */
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/proof/ssh_signers.h"
#include "formats/proof/sshsig.h"

#define KEY   "AAAAC3NzaC1lZDI1NTE5AAAAIHQyk5JBCJuo5Y5kY6VLG0+5dMzROA766o5t/tNErfl7"
#define OTHER "AAAAC3NzaC1lZDI1NTE5AAAAIHQyk5JBCJuo5Y5kY6VLG0+5dMzROA766o5t/tNErfl8"
#define FRONT                                                                                      \
	"-----BEGIN SSH SIGNATURE-----\n"                                                          \
	"U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgdDKTkkEIm6jljmRjpUsbT7l0zN\n"
#define END "-----END SSH SIGNATURE-----\n"

static const char by_sha512[] =
	FRONT "E4Dvrqjm3+00St+XsAAAAHcmFtc2VhbAAAAAAAAAAGc2hhNTEyAAAAUwAAAAtzc2gtZWQy\n"
	      "NTUxOQAAAEAEUi6T6NwX+jvCaXFFM1LhLKAh8qSjURwwpEqFnSfZnBRTR1HFBEZs4Uq9vh\n"
	      "7QCxJ16C1ztbLaIATJXAo+kPwF\n" END;
static const char by_sha256[] =
	FRONT "E4Dvrqjm3+00St+XsAAAAHcmFtc2VhbAAAAAAAAAAGc2hhMjU2AAAAUwAAAAtzc2gtZWQy\n"
	      "NTUxOQAAAEBEONXsUHVo4z9Nf1f7TW5j5Zc/Z7VI3ES805tiB2oMdiu0errayyRfPYAZ79\n"
	      "M6hqp5nIDV2/3ZPKme879SkKcC\n" END;
static const char of_a_file[] =
	FRONT "E4Dvrqjm3+00St+XsAAAAEZmlsZQAAAAAAAAAGc2hhNTEyAAAAUwAAAAtzc2gtZWQyNTUx\n"
	      "OQAAAEAL7vQ3jbIhxj3MaAc0ud0y3CJlfkvBQWO1/wAvY3hwdF9q+AGU7gqwk7U3kkf4Db\n"
	      "JN9IauifZej4pVKyzAYNAP\n" END;

static struct sshsig *parsed(const char *text)
{
	struct sshsig *s = malloc(sizeof(*s));
	struct err e = ERR_INIT;

	assert_non_null(s);
	CHECK_OK(sshsig_parse(text, strlen(text), s, &e), &e);
	return s;
}

static enum status verify(const char *text, const char *message, struct err *e)
{
	struct sshsig *s = parsed(text);
	const enum status st = sshsig_verify(s, "ramseal", message, strlen(message), e);

	free(s);
	return st;
}

TEST(signatures_of_ssh_keygen)
{
	char fingerprint[SSHSIG_FINGERPRINT_SIZE];
	struct sshsig *s = parsed(by_sha512);
	struct err e = ERR_INIT;

	CHECK_OK(verify(by_sha512, "hello\n", &e), &e);
	CHECK_OK(verify(by_sha256, "hello\n", &e), &e);
	sshsig_fingerprint(s, fingerprint);
	assert_string_equal(fingerprint, "SHA256:TZkYIUigzFch7noP6IUoF8O35CNEhmZi+b4A3VImyPo");
	free(s);
}

TEST(other_bytes_and_other_purposes)
{
	struct err e = ERR_INIT;

	CHECK_STATUS(verify(by_sha512, "hello", &e), ST_MISMATCH, &e);
	CHECK_STATUS(verify(by_sha512, "", &e), ST_MISMATCH, &e);
	CHECK_STATUS(verify(of_a_file, "hello\n", &e), ST_MISMATCH, &e);
	CHECK_HAS(e.message, "is for \"file\", not for \"ramseal\"");
}

/* Every bit of the blob counts, but for the name of the reserved field, which is empty. */
TEST(a_changed_byte_is_no_signature)
{
	const size_t front = strlen("-----BEGIN SSH SIGNATURE-----\n");
	char text[sizeof(by_sha512)];
	struct sshsig s;

	for (size_t i = 0; i + strlen(END) < sizeof(text) - 1; i++) {
		memcpy(text, by_sha512, sizeof(text));
		text[i] = text[i] == 'B' ? 'C' : 'B';
		if (text[i] == by_sha512[i] || (i >= front && by_sha512[i] == '\n'))
			continue;
		if (sshsig_parse(text, strlen(text), &s, NULL) == ST_OK)
			assert_int_not_equal(sshsig_verify(&s, "ramseal", "hello\n", 6, NULL),
					     ST_OK);
	}
}

TEST(what_is_no_signature)
{
	static const char *const texts[] = {
		"",
		"hello",
		"-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----\n",
		"-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n",
		"-----BEGIN SSH SIGNATURE-----\n!!!!\n-----END SSH SIGNATURE-----\n",
		"-----BEGIN SSH SIGNATURE-----\n",
		"-----BEGIN SSH SIGNATURE----------END SSH SIGNATURE-----",
		FRONT END,
	};
	struct err e = ERR_INIT;
	struct sshsig s;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		CHECK_STATUS(sshsig_parse(texts[i], strlen(texts[i]), &s, &e), ST_INPUT, &e);
	for (size_t len = 0; len < sizeof(by_sha512) - 2; len++)
		assert_int_equal(sshsig_parse(by_sha512, len, &s, NULL), ST_INPUT);
}

/*
 * Signers
 */

#define NOW UINT64_C(1795357800) /* 2026-11-22T14:30:00Z */

static enum status find(const char *file, const char *principal, struct ssh_signer *ret,
			struct err *e)
{
	struct sshsig *s = parsed(by_sha512);
	const struct ssh_wanted w = {
		.key = s->key, .name_space = "ramseal", .principal = principal, .time = NOW
	};
	const enum status st = ssh_signers_find(file, strlen(file), &w, ret, e);

	free(s);
	return st;
}

#define ED25519 "ssh-ed25519 "

TEST(a_line_that_allows_it_is_found)
{
	static const char *const files[] = {
		"alice " ED25519 KEY,
		"alice " ED25519 KEY " a comment\n",
		"# nobody\n\n  \nbob " ED25519 OTHER "\r\nalice " ED25519 KEY "\r\n",
		"\"alice\"\t " ED25519 KEY,
		"alice NAMESPACES=\"git,ramseal\" " ED25519 KEY,
		"alice "
		"namespaces=\"ram*\",valid-after=\"20260101\",valid-before=\"20270101\" " ED25519
			KEY,
		"alice namespaces=\"r?mseal\" " ED25519 KEY,
		"alice valid-after=\"20261122143000Z\" " ED25519 KEY,
		"alice valid-before=\"202611221430Z\" " ED25519 KEY,
		"alice valid-before=\"20200101Z\" " ED25519 KEY "\nalice " ED25519 KEY,
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct err e = ERR_INIT;
		struct ssh_signer who;

		CHECK_OK(find(files[i], NULL, &who, &e), &e);
		assert_string_equal(who.principals, "alice");
		CHECK_OK(find(files[i], "alice", &who, &e), &e);
		CHECK_STATUS(find(files[i], "alic", &who, &e), ST_MISMATCH, &e);
	}
}

TEST(a_line_that_does_not_allow_it_says_why)
{
	static const char *const cases[][2] = {
		{ "", "no line has this key" },
		{ "bob " ED25519 OTHER, "no line has this key" },
		{ "alice cert-authority " ED25519 KEY, "no line has this key" },
		{ "alice namespaces=\"git\" " ED25519 KEY, "line 1: its namespaces=" },
		{ "alice namespaces=\"*,!ramseal\" " ED25519 KEY, "line 1: its namespaces=" },
		{ "\nalice valid-after=\"20261122143001Z\" " ED25519 KEY,
		  "line 2: its key is not" },
		{ "alice valid-before=\"20261122142959Z\" " ED25519 KEY,
		  "line 1: its key is no longer" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = ERR_INIT;
		struct ssh_signer who;

		CHECK_STATUS(find(cases[i][0], NULL, &who, &e), ST_MISMATCH, &e);
		CHECK_HAS(e.message, cases[i][1]);
	}
}

TEST(a_line_that_cannot_be_read)
{
	static const char *const cases[][2] = {
		{ "alice\n", "line 1: the key" },
		{ "alice " ED25519, "line 1: the key" },
		{ "alice " ED25519 "AAAA", "line 1: the key" },
		{ "alice ssh-rsa " KEY, "line 1: the key" },
		{ "alice foo=\"bar\" " ED25519 KEY, "line 1: the key" },
		{ "\"alice " ED25519 KEY, "line 1: the principals" },
		{ "alice namespaces=ramseal " ED25519 KEY, "line 1: the options" },
		{ "alice namespaces=\"ramseal " ED25519 KEY, "line 1: the options" },
		{ "alice namespaces=\"a\",namespaces=\"b\" " ED25519 KEY, "line 1: the options" },
		{ "alice namespaces=\"a\", " ED25519 KEY, "line 1: the options" },
		{ "alice namespaces=\"a\"x " ED25519 KEY, "line 1: the options" },
		{ "alice valid-after=\"2026\" " ED25519 KEY, "line 1: the options" },
		{ "alice valid-after=\"20261322\" " ED25519 KEY, "line 1: the options" },
		{ "alice valid-after=\"20270101Z\",valid-before=\"20260101Z\" " ED25519 KEY,
		  "line 1: the options" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = ERR_INIT;
		struct ssh_signer who;

		CHECK_STATUS(find(cases[i][0], NULL, &who, &e), ST_INPUT, &e);
		CHECK_HAS(e.message, cases[i][1]);
	}
}

/* Each '*' tried at every place would take longer than anybody waits. */
TEST(hostile_patterns_end)
{
	char file[2048];
	struct err e = ERR_INIT;
	struct ssh_signer who;
	size_t n = (size_t)sprintf(file, "alice namespaces=\"");

	for (unsigned i = 0; i < 400; i++)
		n += (size_t)sprintf(file + n, "*a");
	sprintf(file + n, "b\" " ED25519 KEY);
	CHECK_STATUS(find(file, NULL, &who, &e), ST_MISMATCH, &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signatures_of_ssh_keygen),
		cmocka_unit_test(other_bytes_and_other_purposes),
		cmocka_unit_test(a_changed_byte_is_no_signature),
		cmocka_unit_test(what_is_no_signature),
		cmocka_unit_test(a_line_that_allows_it_is_found),
		cmocka_unit_test(a_line_that_does_not_allow_it_says_why),
		cmocka_unit_test(a_line_that_cannot_be_read),
		cmocka_unit_test(hostile_patterns_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
