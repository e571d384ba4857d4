/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/stores/put_proof.h"

#include <string.h>

#include "agent/collect/stores/store_answer.h"
#include "formats/base/bytes.h"
#include "formats/base/md5_sha1.h"
#include "formats/base/sha256.h"

#define CHUNK ((size_t)1 << 20)

/* What the server says; "": nothing. */
struct words {
	char md5[2 * MD5_SIZE + 1];
	char sum[STORE_SHA256_SIZE];
};

/* "\"MD5\"": one of another length, or a weak one, is something else. */
static void note_etag_md5(const struct http_answer *a, struct words *ret)
{
	size_t len;
	const char *etag = http_answer_header(a, "etag", &len);

	if (!etag || len != sizeof(ret->md5) + 1 || etag[0] != '"' || etag[len - 1] != '"' ||
	    strspn(etag + 1, "0123456789abcdefABCDEF") != len - 2)
		return;
	for (size_t i = 0; i < len - 2; i++)
		ret->md5[i] = etag[i + 1] >= 'A' && etag[i + 1] <= 'F'
				      ? (char)(etag[i + 1] - 'A' + 'a')
				      : etag[i + 1];
}

/* "sha-512=:...:, sha-256=:BASE64:" */
static void take_digest(const struct http_answer *a, struct words *ret)
{
	static const char name[] = "sha-256=:";
	size_t len;
	const char *text = http_answer_header(a, "repr-digest", &len);
	const char *at = text ? strstr(text, name) : NULL;

	if (!at || at + sizeof(name) - 1 + sizeof(ret->sum) > text + len)
		return;
	at += sizeof(name) - 1;
	if (at[sizeof(ret->sum) - 1] == ':')
		memcpy(ret->sum, at, sizeof(ret->sum) - 1);
}

struct hashes {
	struct md5_sha1 *md5;
	struct sha256 *sha;
	uint8_t chunk[CHUNK];
};

static void hashes_destroy(struct hashes *h)
{
	if (!h)
		return;
	md5_sha1_destroy(h->md5);
	sha256_destroy(h->sha);
	free(h);
}

static struct hashes *hashes_create(void)
{
	struct hashes *h = calloc(1, sizeof(*h));

	if (h && !md5_sha1_create(&h->md5, NULL) && !sha256_create(&h->sha, NULL)) {
		sha256_begin(h->sha);
		return h;
	}
	hashes_destroy(h);
	return NULL;
}

static bool hash_whole_blob(struct hashes *h, struct blob *b, const struct http_options *o)
{
	for (uint64_t at = 0, n; at < b->size; at += n) {
		n = MIN(b->size - at, (uint64_t)CHUNK);
		if ((o->stop && o->stop(o->arg)) || blob_read(b, at, h->chunk, (size_t)n, NULL))
			return false;
		md5_sha1_update(h->md5, h->chunk, (size_t)n);
		sha256_update(h->sha, h->chunk, (size_t)n);
	}
	return true;
}

static struct words end_hashes(struct hashes *h)
{
	uint8_t md5[MD5_SIZE], sha1[SHA1_SIZE], sha[SHA256_SIZE];
	struct words ret;

	md5_sha1_end(h->md5, md5, sha1);
	sha256_end(h->sha, sha);
	bytes_to_hex(md5, sizeof(md5), ret.md5);
	store_sha256(sha, ret.sum);
	return ret;
}

bool put_is_proven(const struct http_answer *a, struct blob *b, const struct http_options *o)
{
	struct words said = { .md5 = "" }, ours;
	struct hashes *h = NULL;
	bool ret = false;

	note_etag_md5(a, &said);
	take_digest(a, &said);
	if (said.md5[0] || said.sum[0])
		h = hashes_create();
	if (h && hash_whole_blob(h, b, o)) {
		ours = end_hashes(h);
		/* SHA-256 is the better word: where it is another one, an ETag does not count. */
		ret = said.sum[0] ? !strcmp(said.sum, ours.sum) : !strcmp(said.md5, ours.md5);
	}
	hashes_destroy(h);
	return ret;
}
