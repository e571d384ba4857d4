/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/stores/azblob_internal.h"

#include <inttypes.h>
#include <mbedtls/base64.h>
#include <string.h>

#include "formats/base/utc.h"

/* The first that has blocks above 100 MiB; older emulators know it. */
#define API_VERSION      "2019-12-12"
/* The first that has immutability policies of blobs. */
#define API_VERSION_LOCK "2020-06-12"

void azblob__block_id(const struct azblob *b, uint64_t number, char ret[static AZBLOB_ID_SIZE])
{
	char name[40];
	size_t n =
		(size_t)snprintf(name, sizeof(name), "ramseal-%s-%07" PRIu64 "-", b->run, number);

	mbedtls_base64_encode((uint8_t *)ret, AZBLOB_ID_SIZE, &n, (const uint8_t *)name, n);
}

/*
 * Asking
 */

/* As RFC 9110, 5.6.7, has it, in English whatever the machine speaks. */
static void put_http_date(uint64_t seconds,
			  char ret[static sizeof("Sun, 31 Jan 2027 12:00:00 GMT")])
{
	static const char days[] = "ThuFriSatSunMonTueWed"; /* 1970 began on a Thursday */
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	const struct utc t = utc_of(seconds);

	snprintf(ret, sizeof("Sun, 31 Jan 2027 12:00:00 GMT"),
		 "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT", days + seconds / 86400 % 7 * 3,
		 t.day % 100, months + (t.month - 1) % 12 * 3, t.year % 10000, t.hour % 100,
		 t.minute % 100, t.second % 100);
}

/* "Unlocked" can be ended by who has the right to, "Locked" by nobody. */
static const char *mode_of(const struct object_lock *l)
{
	return l->mode == LOCK_COMPLIANCE ? "Locked" : "Unlocked";
}

static enum status azblob_ask_once(struct azblob *b, const struct azblob_request *r,
				   struct http_answer *ret, bool *again, struct err *e)
{
	char sum[STORE_MD5_SIZE] = "";
	char until[sizeof("Sun, 31 Jan 2027 12:00:00 GMT")] = "";
	const bool list = r->sum && strstr(r->query, "blocklist");
	const struct http_header all[] = {
		{ "x-ms-version", r->lock ? API_VERSION_LOCK : API_VERSION },
		{ "x-ms-immutability-policy-until-date", r->lock ? until : NULL },
		{ "x-ms-immutability-policy-mode", r->lock ? mode_of(r->lock) : NULL },
		{ "content-md5", r->sum ? sum : NULL },
		{ "content-type", list ? "application/xml" : NULL },
		{ "x-ms-blob-content-type", list ? "application/octet-stream" : NULL },
		{ "if-match", r->if_match },
		{ "if-none-match", r->if_none_match },
	};
	struct http_header headers[ARRAY_SIZE(all)];
	struct http_request ask = {
		.method = r->method,
		.headers = headers,
		.n_headers = store_headers(all, ARRAY_SIZE(all), headers),
		.body = r->body,
		.len = r->len,
		.answer_max = r->answer_max,
		.anew = r->anew,
		.answer_s = list ? HTTP_COMMIT_S : 0,
	};
	enum status st = r->sum ? store_md5(r->body, r->len, sum, e) : ST_OK;
	char *url;

	if (st)
		return st;
	if (r->lock)
		put_http_date(r->lock->until, until);
	if (asprintf(&url, "%s%s", b->url, r->query) < 0)
		return err_nomem(e);
	ask.url = url;
	st = http_ask(b->http, &ask, ret, again, e);
	memory_wipe(url, strlen(url));
	free(url);
	return st;
}

/*
 * Its answer
 */

/* "Blob service error codes" and "Common REST API error codes", and what to do about them. */
static const struct store_error known[] = {
	{ "AccountIsDisabled", REMOTE_NEVER, "the account is disabled" },
	{ "AuthenticationFailed", REMOTE_NEVER, "the SAS is wrong, or has expired" },
	{ "AuthorizationFailure", REMOTE_NEVER, "the store does not accept this machine" },
	{ "AuthorizationPermissionMismatch", REMOTE_NEVER,
	  "the SAS does not allow this (sp=cw does)" },
	{ "AuthorizationProtocolMismatch", REMOTE_NEVER, "the SAS is for https:// only" },
	{ "AuthorizationSourceIPMismatch", REMOTE_NEVER,
	  "the SAS is for a different client address" },
	{ "BlobAlreadyExists", REMOTE_NEVER,
	  "exists; choose another name, or --force replaces it" },
	{ "BlobImmutableDueToPolicy", REMOTE_NEVER,
	  "the container's policy protects its contents" },
	{ "ConditionNotMet", REMOTE_NEVER, "exists, or somebody else wrote it" },
	{ "ContainerBeingDeleted", REMOTE_NEVER, "the container is being deleted" },
	{ "ContainerNotFound", REMOTE_NEVER, "there is no such container" },
	{ "InternalError", REMOTE_AGAIN, "the store has a problem" },
	{ "InvalidBlobOrBlock", REMOTE_NEVER,
	  "somebody else has unfinished blocks under this name; choose another" },
	{ "InvalidBlobType", REMOTE_NEVER, "exists, and is not a block blob" },
	{ "InvalidBlockList", REMOTE_NEVER, "the store has lost blocks" },
	{ "LeaseIdMissing", REMOTE_NEVER, "somebody holds a lease on it" },
	{ "Md5Mismatch", REMOTE_AGAIN, "it was damaged in transit" },
	{ "OperationTimedOut", REMOTE_AGAIN, "the store has a problem" },
	{ "ServerBusy", REMOTE_AGAIN, "the store is busy" },
	{ "UnauthorizedBlobOverwrite", REMOTE_NEVER,
	  "exists, and the SAS does not allow replacing it" },
};

static const char *azblob_status_advice(unsigned status)
{
	switch (status) {
	case 401:
	case 403:
		return "the SAS does not allow this";
	case 404:
		return "there is no such container";
	case 411:
	case 413:
		return "the store does not accept blocks of this size";
	default:
		return status >= 300 && status < 400
			       ? "the store redirects to another address: use that one"
			       : "the store refuses";
	}
}

/* HEAD has it in the header alone. */
static void find_code(const struct http_answer *a, char ret[static AZBLOB_CODE_MAX])
{
	size_t len;
	const char *header = http_answer_header(a, "x-ms-error-code", &len);

	ret[0] = '\0';
	if (header && len < AZBLOB_CODE_MAX) {
		snprintf(ret, AZBLOB_CODE_MAX, "%.*s", (int)len, header);
		store_clean_code(ret);
	} else if (a->status >= 300) {
		store_code(a, ret);
	}
}

static struct remote_result judge_azblob_answer(const struct http_answer *a, const char *code,
						struct err *e)
{
	if (a->status >= 200 && a->status < 300)
		return (struct remote_result){ .end = REMOTE_DONE };
	return store_judge(a, code, known, ARRAY_SIZE(known), azblob_status_advice(a->status), e);
}

struct remote_result azblob__ask(struct azblob *b, const struct azblob_request *r,
				 struct http_answer *ret, char ret_code[static AZBLOB_CODE_MAX],
				 struct err *e)
{
	bool again = false;

	ret_code[0] = '\0';
	if (azblob_ask_once(b, r, ret, &again, e)) {
		ret->status = 0;
		return (struct remote_result){ .end = again ? REMOTE_AGAIN : REMOTE_NEVER };
	}
	if (ret->date)
		b->date = ret->date;
	find_code(ret, ret_code);
	return judge_azblob_answer(ret, ret_code, e);
}
