/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/stores/store_answer.h"

#include <ctype.h>
#include <mbedtls/base64.h>
#include <string.h>

#include "agent/collect/wire/xml.h"
#include "formats/base/md5_sha1.h"

size_t store_headers(const struct http_header *all, size_t n, struct http_header *ret)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++)
		if (all[i].value)
			ret[used++] = all[i];
	return used;
}

enum status store_md5(const void *p, size_t len, char ret[static STORE_MD5_SIZE], struct err *e)
{
	uint8_t md5[MD5_SIZE], sha1[SHA1_SIZE];
	struct md5_sha1 *h = NULL;
	enum status st = md5_sha1_create(&h, e);
	size_t n;

	if (st)
		return st;
	md5_sha1_update(h, p, len);
	md5_sha1_end(h, md5, sha1);
	md5_sha1_destroy(h);
	mbedtls_base64_encode((uint8_t *)ret, STORE_MD5_SIZE, &n, md5, sizeof(md5));
	return ST_OK;
}

void store_sha256(const uint8_t digest[static SHA256_SIZE], char ret[static STORE_SHA256_SIZE])
{
	size_t n;

	mbedtls_base64_encode((uint8_t *)ret, STORE_SHA256_SIZE, &n, digest, SHA256_SIZE);
}

void store_clean_code(char code[static STORE_CODE_MAX])
{
	for (char *c = code; *c; c++)
		if (!isalnum((unsigned char)*c))
			*c = '_';
}

void store_code(const struct http_answer *a, char ret[static STORE_CODE_MAX])
{
	ret[0] = '\0';
	if (a->len && xml_find(a->body, a->len, "Code", ret, STORE_CODE_MAX))
		store_clean_code(ret);
	else
		ret[0] = '\0';
}

struct remote_result store_judge(const struct http_answer *a, const char *code,
				 const struct store_error *known, size_t n, const char *advice,
				 struct err *e)
{
	struct remote_result ret = { .end = REMOTE_NEVER };
	const char *space = *code ? " " : "";

	if (http_status_is_passing(a->status))
		ret.end = REMOTE_AGAIN;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(known[i].code, code) != 0)
			continue;
		ret.end = known[i].end;
		advice = known[i].advice;
	}
	if (a->retry_after_s > 0)
		ret.wait_ms = (unsigned)a->retry_after_s * 1000;
	if (*advice)
		err_set(e, ST_OUTPUT, "%s (HTTP %u%s%s)", advice, a->status, space, code);
	else
		err_set(e, ST_OUTPUT, "HTTP %u%s%s", a->status, space, code);
	return ret;
}
