/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by s3.c, the steps of an upload, s3_lost.c, for a lost answer to the last step,
 * s3_resume.c, which finishes an upload of an earlier run, s3_lock.c, object locks, and s3_ask.c,
 * one signed request and its answer.
 */
#ifndef RAMSEAL_AGENT_COLLECT_STORES_S3_INTERNAL_H
#define RAMSEAL_AGENT_COLLECT_STORES_S3_INTERNAL_H

#include "agent/collect/stores/store_answer.h"
#include "formats/base/sha256.h"

#define S3_ETAG_MAX   128
#define S3_REGION_MAX 64
/* Amazon S3 User Guide, "Amazon S3 multipart upload limits". */
#define S3_PARTS_MAX  10000
#define S3_PART_LEAST ((size_t)8 << 20) /* 5 MiB would do */

struct s3_part {
	char etag[S3_ETAG_MAX];
	char sum[STORE_SHA256_SIZE]; /* "": not known */
};

/* The differences between Amazon's S3 and compatible stores, and Google's interface for it. */
struct s3_kind {
	const struct remote_ops *ops;
	const char *endpoint; /* NULL: a host for each region, Amazon's */
	const char *region;   /* NULL: from the keys */
	/*
	 * It knows neither create-only nor SHA-256: "Preconditions are not supported in the
	 * requests" (Cloud Storage documentation, "XML API multipart uploads"). It ignores
	 * If-None-Match, so we check whether the name is free, at the beginning and right before
	 * the end. Parts go with Content-MD5.
	 */
	bool only_looks;
};

struct s3 {
	struct remote remote;
	const struct s3_kind *kind;
	const struct remote_options *o;
	struct http *http;
	struct sha256 *hash;
	char *endpoint; /* NULL: the kind's */
	char *bucket, *key;
	char region[S3_REGION_MAX];
	char *base; /* "https://HOST[:PORT]" */
	char *path; /* "/BUCKET/KEY", encoded */
	char *bucket_path;
	char *upload;
	bool checksums;        /* the store keeps each part's SHA-256, and needs them at the end */
	bool unconditional;    /* it does not support create-only */
	bool unsure;           /* a completion was requested, but no answer came */
	int64_t clock_ahead_s; /* how far the store's clock is ahead of ours */
	struct s3_part *parts;
	size_t n_parts, room;
};

/* What differs from request to request. */
struct s3_request {
	const char *method;
	const char *query; /* as signed: sorted, encoded; "" */
	const void *body;
	size_t len;
	const char *content_type;
	const char *checksum_algorithm;
	bool of_bucket;   /* for the bucket, not the object */
	bool locks;       /* the result must be locked, if that was requested */
	bool md5;         /* send the body's MD5 */
	bool sum;         /* send the body's SHA-256, to be kept */
	bool create_only; /* If-None-Match: * */
	/* The end of the upload, which can take long. We must know whether it was sent before. */
	bool last;
};

/* Seconds since 1970, by the store's clock as far as it is known. */
uint64_t s3__time(const struct s3 *s);

bool s3__is_region(const char *text);

/* "https://HOST" and "/BUCKET/KEY" of the region: s->base, path and bucket_path. ST_NOMEM. */
enum status s3__locate(struct s3 *s, struct err *e);

/*
 * Asks, with the store's own clock and region if it says that ours are wrong. REMOTE_DONE: it was
 * done. Otherwise `e` has the store's message. *ret always needs http_answer_deinit(). ret_code:
 * S3's error code, or ""; `ret_sum` may be NULL.
 */
#define S3_CODE_MAX STORE_CODE_MAX
struct remote_result s3__ask(struct s3 *s, const struct s3_request *r, struct http_answer *ret,
			     char ret_code[static S3_CODE_MAX], char *ret_sum, struct err *e);

/*
 * s3.c
 */

enum status s3__check_endpoint(const char *url, struct err *e);

/* Of a part, which is sent back to the store in an XML document. */
bool s3__is_etag(const char *text, size_t len);
/* Remembers part `index`, from 0. False if out of memory. */
bool s3__keep_part(struct s3 *s, size_t index, const char *etag, size_t len, const char *sum);

/* What exists under the name. */
enum s3_there { S3_THERE_NOTHING, S3_THERE_OBJECT, S3_THERE_UNKNOWN };

struct s3_seen {
	enum s3_there there;
	uint64_t size; /* of an object */
};

/*
 * REMOTE_DONE: *ret is set. Keys that may only create are denied, and errors in the request show
 * only in answers with a body: then it is not known.
 */
struct remote_result s3__look(struct s3 *s, struct s3_seen *ret, struct err *e);

/* "partNumber=N&uploadId=ID", for free(). */
char *s3__part_query(const struct s3 *s, uint64_t number);
/* To send a part; the caller keeps `query` and `p`. */
struct s3_request s3__part_request(const struct s3 *s, const char *query, const void *p,
				   size_t len);

/*
 * s3_lock.c and s3_resume.c: remote_ops of these names
 */

struct remote_result s3__lock(struct remote *remote, struct err *e);

json_t *s3__state(const struct remote *remote);
struct remote_result s3__resume(struct remote *remote, const json_t *state, uint64_t *ret_has,
				struct err *e);

/*
 * s3_lost.c
 */

/*
 * A completion whose answer was lost may have succeeded: then the upload, whose id nobody else has,
 * is gone, and an object of the same size exists. `was`: what the next attempt was told, that there
 * is no upload (404) or that the name is taken (412); `r` and `e` are its result, and are returned
 * if the completion had failed. `seen` is the existing object; NULL: look it up.
 */
struct remote_result s3__was_it_done(struct s3 *s, const struct s3_seen *seen, uint64_t total,
				     unsigned was, struct remote_result r, struct err *e);

#endif
