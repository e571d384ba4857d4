/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/driver_signers.h"

#include <stdio.h>
#include <string.h>

#include "agent/shared/program/clock.h"
#include "agent/shared/program/json.h"
#include "driver-interface/driver_safety.h"
#include "formats/base/bytes.h"
#include "formats/base/io.h"
#include "formats/base/md5_sha1.h"
#include "formats/proof/authenticode.h"

/*
 * Hashes
 */

/* The hashes of a program that a signature of it is over. */
struct image_hashes {
	uint8_t sha256[SHA256_SIZE], sha1[SHA1_SIZE];
};

static enum status hash_ranges(const uint8_t *p, const struct authenticode_range *r, size_t n,
			       struct image_hashes *ret, struct err *e)
{
	struct md5_sha1 *small = NULL;
	struct sha256 *big = NULL;
	enum status st = sha256_create(&big, e);
	uint8_t md5[MD5_SIZE];

	if (!st)
		st = md5_sha1_create(&small, e);
	if (!st) {
		sha256_begin(big);
		for (size_t i = 0; i < n; i++) {
			sha256_update(big, p + r[i].at, r[i].len);
			md5_sha1_update(small, p + r[i].at, r[i].len);
		}
		sha256_end(big, ret->sha256);
		md5_sha1_end(small, md5, ret->sha1);
	}
	sha256_destroy(big);
	md5_sha1_destroy(small);
	return st;
}

/* ST_CORRUPT: it is no program. */
static enum status hash_program(const uint8_t *p, size_t len, struct image_hashes *ret,
				struct err *e)
{
	struct authenticode_range r[AUTHENTICODE_RANGES];

	if (!authenticode_ranges(p, len, r))
		return err_set(e, ST_CORRUPT, "is no Windows program and no driver");
	return hash_ranges(p, r, AUTHENTICODE_RANGES, ret, e);
}

/* Of the hash, as far as one of these two was used. */
static bool pick_digest(const struct image_hashes *h, const char *digest, struct ci_digest *ret)
{
	if (!strcmp(digest, "sha256"))
		ret->len = SHA256_SIZE;
	else if (!strcmp(digest, "sha1"))
		ret->len = SHA1_SIZE;
	else
		return false;
	memcpy(ret->at, ret->len == SHA1_SIZE ? h->sha1 : h->sha256, ret->len);
	return true;
}

static enum status add_certificates(const struct authenticode_signer *s, struct ci_subject *to,
				    struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < s->chain_len && !st; i++) {
		const struct authenticode_range body = { .len = s->chain[i].body_len };
		struct image_hashes h;

		if (to->n_certificates == CI_CERTIFICATES_MAX)
			return ST_OK;
		st = hash_ranges(s->chain[i].body, &body, 1, &h, e);
		if (!st &&
		    pick_digest(&h, s->chain[i].digest, &to->certificates[to->n_certificates]))
			to->n_certificates++;
	}
	return st;
}

enum status driver_subject(const void *p, size_t len, struct ci_subject *ret, struct err *e)
{
	struct authenticode a;
	struct image_hashes h;
	enum status st = hash_program(p, len, &h, e);

	*ret = (struct ci_subject){ 0 };
	if (st)
		return st == ST_CORRUPT ? ST_OK : st;
	pick_digest(&h, "sha256", &ret->hashes[ret->n_hashes++]);
	pick_digest(&h, "sha1", &ret->hashes[ret->n_hashes++]);
	if (authenticode_read(p, len, &a, NULL))
		return ST_OK;
	for (size_t i = 0; i < a.count && !st; i++)
		st = add_certificates(&a.at[i], ret, e);
	return st;
}

/*
 * Signers
 */

static json_t *covers_json(const struct authenticode_signer *s, const struct image_hashes *h)
{
	struct ci_digest d;

	if (!s->imprint || !pick_digest(h, s->imprint_digest, &d))
		return json_null();
	return json_boolean(s->imprint_len == d.len && !memcmp(s->imprint, d.at, d.len));
}

static json_t *name_or_null(const char *name)
{
	return name[0] ? json_text(name) : json_null();
}

static json_t *signer_json(const struct authenticode_signer *s, const struct image_hashes *h)
{
	json_t *chain = json_array();
	char time[CLOCK_RFC3339_SIZE];

	for (size_t i = 0; i < s->chain_len; i++)
		json_array_append_new(chain, json_text(s->chain[i].name));
	clock_rfc3339(s->time, time);
	return json_pack("{s:o, s:s, s:b, s:b, s:b, s:s, s:o, s:o, s:o, s:o}", "name",
			 name_or_null(s->name), "digest", s->digest, "nested", s->nested, "whql",
			 s->whql, "attestation", s->attestation, "class",
			 authenticode_class_name(s->class), "chain", chain, "root",
			 name_or_null(s->root), "time", s->time ? json_string(time) : json_null(),
			 "covers_file", covers_json(s, h));
}

static enum status list_signers(const void *p, size_t len, json_t **ret, struct err *e)
{
	struct image_hashes h;
	struct authenticode a;
	enum status st = authenticode_read(p, len, &a, e);

	if (!st)
		st = hash_program(p, len, &h, e);
	if (st)
		return st;
	*ret = json_array();
	for (size_t i = 0; *ret && i < a.count; i++)
		json_array_append_new(*ret, signer_json(&a.at[i], &h));
	return *ret ? ST_OK : err_nomem(e);
}

json_t *driver_signers_json(const void *p, size_t len, const char *sha256)
{
	char hex[SHA256_HEX_SIZE];
	json_t *list;

	if (sha256_hex_of(p, len, hex, NULL) || strcmp(hex, sha256) != 0 ||
	    list_signers(p, len, &list, NULL))
		return json_null();
	return list;
}

/*
 * Files
 */

enum status driver_bytes_of_file(const char *path, uint8_t **ret, size_t *ret_len, struct err *e)
{
	struct file_blob file;
	enum status st = file_blob_open(&file, path, e);

	*ret = NULL;
	if (st)
		return st;
	if (file.blob.size > DRIVER_MAX) {
		st = err_set(e, ST_INPUT, "%s: is too large for a driver", path);
	} else {
		*ret_len = (size_t)file.blob.size;
		*ret = malloc(*ret_len + 1);
		st = *ret ? blob_read(&file.blob, 0, *ret, *ret_len, e) : err_nomem(e);
		if (st && st != ST_NOMEM)
			st = err_add(e, ST_INPUT, "%s", path);
	}
	file_blob_deinit(&file);
	if (st) {
		free(*ret);
		*ret = NULL;
	}
	return st;
}

json_t *driver_signers_of_file(const char *path, const char *sha256)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t len;

	if (driver_bytes_of_file(path, &bytes, &len, NULL))
		return json_null();
	return driver_signers_json(bytes, len, sha256);
}

static json_t *version_json(const void *p, size_t len)
{
	const struct driver_version v = driver_version_of(p, len);

	return v.major ? json_sprintf("%u.%u.%u", v.major, v.minor, v.patch) : json_null();
}

enum status driver_describe(const char *path, const void *p, size_t len, json_t **ret,
			    struct err *e)
{
	char hex[SHA256_HEX_SIZE], own[SHA256_HEX_SIZE], sha1[2 * SHA1_SIZE + 1];
	struct image_hashes h;
	json_t *signers = NULL;
	enum status st = list_signers(p, len, &signers, e);

	*ret = NULL;
	if (st == ST_CORRUPT)
		return err_add(e, ST_INPUT, "%s", path);
	if (!st)
		st = hash_program(p, len, &h, e);
	if (!st)
		st = sha256_hex_of(p, len, hex, e);
	if (st) {
		json_decref(signers);
		return st;
	}
	sha256_hex(h.sha256, own);
	bytes_to_hex(h.sha1, SHA1_SIZE, sha1);
	*ret = json_pack("{s:o, s:I, s:s, s:o, s:s, s:s, s:o}", "path", json_text(path), "bytes",
			 (json_int_t)len, "sha256", hex, "version", version_json(p, len),
			 "authenticode_sha256", own, "authenticode_sha1", sha1, "signers", signers);
	return *ret ? ST_OK : err_nomem(e);
}

void driver_signers_text(const json_t *driver, char ret[static DRIVER_SIGNERS_MAX])
{
	const char *signer = json_string_value(json_object_get(driver, "signer"));
	const json_t *one;
	size_t i, n = 0;

	ret[0] = '\0';
	json_array_foreach(json_object_get(driver, "signers"), i, one)
	{
		const char *name = json_string_value(json_object_get(one, "name"));

		if (!name || n >= DRIVER_SIGNERS_MAX)
			continue;
		n += (size_t)snprintf(
			ret + n, DRIVER_SIGNERS_MAX - n, "%s%s%s", n ? ", and " : "", name,
			json_is_true(json_object_get(one, "nested")) ? " (nested)" : "");
	}
	if (!ret[0])
		snprintf(ret, DRIVER_SIGNERS_MAX, "%s", signer ? signer : "no signer known");
}
