/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The four examples of the Amazon S3 API Reference, "Signature Calculations for the Authorization
 * Header: Transferring Payload in a Single Chunk"; their key and secret are Amazon's, for all to
 * see.
 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/collect/stores/sigv4.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define DATE  { "x-amz-date", "20130524T000000Z" }
#define HOST  { "host", "examplebucket.s3.amazonaws.com" }

static char id[] = "AKIAIOSFODNN7EXAMPLE";
static char key[] = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

static void check_with(char *secret, const struct sigv4_request *r, const char *names,
		       const char *signature)
{
	struct err e = ERR_INIT;
	struct sha256 *h = NULL;
	_cleanup_free_ char *got = NULL, *want = NULL;

	CHECK_OK(sha256_create(&h, &e), &e);
	CHECK_OK(sigv4_authorization(r, &(struct secret){ .text = id, .len = strlen(id) },
				     &(struct secret){ .text = secret, .len = strlen(secret) },
				     "us-east-1", h, &got, &e),
		 &e);
	sha256_destroy(h);
	if (asprintf(&want,
		     "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/"
		     "aws4_request,SignedHeaders=%s,Signature=%s",
		     names, signature) < 0)
		abort();
	assert_string_equal(got, want);
}

static void check(const struct sigv4_request *r, const char *names, const char *signature)
{
	check_with(key, r, names, signature);
}

TEST(get_object)
{
	const struct http_header headers[] = {
		HOST, { "range", "bytes=0-9" }, { "x-amz-content-sha256", EMPTY }, DATE
	};

	check(&(struct sigv4_request){ .method = "GET",
				       .path = "/test.txt",
				       .query = "",
				       .headers = headers,
				       .n_headers = ARRAY_SIZE(headers),
				       .payload = EMPTY },
	      "host;range;x-amz-content-sha256;x-amz-date",
	      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(put_object)
{
	static const char hash[] =
		"44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
	const struct http_header headers[] = { { "date", "Fri, 24 May 2013 00:00:00 GMT" },
					       HOST,
					       { "x-amz-content-sha256", hash },
					       DATE,
					       { "x-amz-storage-class", "REDUCED_REDUNDANCY" } };
	_cleanup_free_ char *path = uri_encode("/test$file.text", true);

	check(&(struct sigv4_request){ .method = "PUT",
				       .path = path,
				       .query = "",
				       .headers = headers,
				       .n_headers = ARRAY_SIZE(headers),
				       .payload = hash },
	      "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
	      "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

static void check_list(const char *query, const char *signature)
{
	const struct http_header headers[] = { HOST, { "x-amz-content-sha256", EMPTY }, DATE };

	check(&(struct sigv4_request){ .method = "GET",
				       .path = "/",
				       .query = query,
				       .headers = headers,
				       .n_headers = ARRAY_SIZE(headers),
				       .payload = EMPTY },
	      "host;x-amz-content-sha256;x-amz-date", signature);
}

TEST(get_bucket_lifecycle)
{
	check_list("lifecycle=",
		   "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TEST(get_bucket_list_objects)
{
	check_list("max-keys=2&prefix=J",
		   "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

/*
 * With "AWS4" in front of them, these are a byte shorter than a block of SHA-256, one, and a byte
 * longer: only the last is hashed (RFC 2104, 2). By Python's hmac.
 */
TEST(key_of_one_block_is_the_key)
{
	static const char *const signatures[] = {
		"d0321d37689add83a830cc0eb0fcc3862c0025c293be8eb18c5c4235efe08856",
		"c4fd66a81ba21206a6d68123e6959a25b1f51b5c078239418abce6306bf2624f",
		"1fd16da840873dae0785e3020c3f0e6d29a47bfe3ae180ac98f343e66e0f2292",
	};
	const struct http_header headers[] = { HOST, { "x-amz-content-sha256", EMPTY }, DATE };
	const struct sigv4_request r = { .method = "GET",
					 .path = "/",
					 .query = "lifecycle=",
					 .headers = headers,
					 .n_headers = ARRAY_SIZE(headers),
					 .payload = EMPTY };

	for (size_t i = 0; i < ARRAY_SIZE(signatures); i++) {
		char secret[64] = "";

		memset(secret, 'k', 59 + i);
		check_with(secret, &r, "host;x-amz-content-sha256;x-amz-date", signatures[i]);
	}
}

TEST(names_are_encoded_as_they_are_signed)
{
	_cleanup_free_ char *path = uri_encode("a b/\xc3\xa4+~_-.%", true);
	_cleanup_free_ char *value = uri_encode("a/b=c", false);

	assert_string_equal(path, "a%20b/%C3%A4%2B~_-.%25");
	assert_string_equal(value, "a%2Fb%3Dc");
}

TEST(time_is_written_as_it_is_signed)
{
	char text[SIGV4_TIME_SIZE];

	sigv4_time(1369353600, text);
	assert_string_equal(text, "20130524T000000Z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(get_object),
		cmocka_unit_test(put_object),
		cmocka_unit_test(get_bucket_lifecycle),
		cmocka_unit_test(get_bucket_list_objects),
		cmocka_unit_test(key_of_one_block_is_the_key),
		cmocka_unit_test(names_are_encoded_as_they_are_signed),
		cmocka_unit_test(time_is_written_as_it_is_signed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
