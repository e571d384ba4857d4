/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256, MD5 and SHA-1 by Windows' own bcrypt.dll (CNG). BCRYPT_HASH_REUSABLE_FLAG would save
 * making the object anew, but it needs Windows 8; BCryptCreateHash() with an object buffer of ours
 * does not allocate, and so cannot run out of memory halfway.
 */
#include "formats/base/bcrypt.h"

#include <stdbool.h>

#include "formats/base/md5_sha1.h"
#include "formats/base/sha256.h"

/*
 * The algorithms stay open: whoever opens one again asks Windows for files and keys, which a
 * process in a cage cannot reach (agent/shared/program/cage_windows.h).
 */
enum algorithm { SHA256, MD5, SHA1 };
static const wchar_t *const algorithm_names[] = {
	[SHA256] = BCRYPT_SHA256_ALGORITHM,
	[MD5] = BCRYPT_MD5_ALGORITHM,
	[SHA1] = BCRYPT_SHA1_ALGORITHM,
};
static BCRYPT_ALG_HANDLE algorithms[ARRAY_SIZE(algorithm_names)];

/* One hash under way. */
struct hash {
	struct bcrypt dll;
	BCRYPT_ALG_HANDLE algorithm; /* of `algorithms` */
	BCRYPT_HASH_HANDLE handle;
	uint8_t *object; /* what `handle` lives in */
	ULONG object_size;
};

/* What cannot fail; if it did, going on would write a hash that is wrong, so stop. */
static void must_succeed(NTSTATUS status)
{
	if (!BCRYPT_SUCCESS(status))
		abort();
}

static void hash_deinit(struct hash *h)
{
	if (h->handle)
		h->dll.BCryptDestroyHash(h->handle);
	free(h->object);
	*h = (struct hash){ 0 };
}

static NTSTATUS open_algorithm(struct hash *h, enum algorithm which)
{
	BCRYPT_ALG_HANDLE *const kept = &algorithms[which];
	BCRYPT_ALG_HANDLE opened = NULL;
	NTSTATUS failed = 0;

	h->algorithm = __atomic_load_n(kept, __ATOMIC_ACQUIRE);
	if (h->algorithm)
		return 0;
	failed = h->dll.BCryptOpenAlgorithmProvider(&opened, algorithm_names[which], NULL, 0);
	if (!BCRYPT_SUCCESS(failed))
		return failed;
	/* Another thread may have been faster. */
	if (__atomic_compare_exchange_n(kept, &h->algorithm, opened, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		h->algorithm = opened;
	else
		h->dll.BCryptCloseAlgorithmProvider(opened, 0);
	return 0;
}

static enum status hash_init(struct hash *h, enum algorithm which, struct err *e)
{
	ULONG got = 0;
	NTSTATUS failed;
	enum status st;

	*h = (struct hash){ 0 };
	st = bcrypt_load(&h->dll, e);
	if (st)
		return st;
	failed = open_algorithm(h, which);
	if (BCRYPT_SUCCESS(failed))
		failed = h->dll.BCryptGetProperty(h->algorithm, BCRYPT_OBJECT_LENGTH,
						  (PUCHAR)&h->object_size, sizeof(h->object_size),
						  &got, 0);
	if (!BCRYPT_SUCCESS(failed)) {
		hash_deinit(h);
		return err_set(e, ST_SYSTEM, "bcrypt has no %ls: status 0x%08lx",
			       algorithm_names[which], (unsigned long)failed);
	}
	h->object = malloc(MAX(h->object_size, 1));
	if (!h->object) {
		hash_deinit(h);
		return err_nomem(e);
	}
	return ST_OK;
}

static void hash_begin(struct hash *h)
{
	if (h->handle)
		must_succeed(h->dll.BCryptDestroyHash(h->handle));
	h->handle = NULL;
	must_succeed(h->dll.BCryptCreateHash(h->algorithm, &h->handle, h->object, h->object_size,
					     NULL, 0, 0));
}

static void hash_update(struct hash *h, const void *p, size_t len)
{
	const uint8_t *at = p;

	while (len) {
		const ULONG n = (ULONG)MIN(len, (size_t)1 << 30);

		/* It only reads; its prototype lacks the const. */
		must_succeed(h->dll.BCryptHashData(h->handle, (PUCHAR)(uintptr_t)at, n, 0));
		at += n;
		len -= n;
	}
}

static void hash_end(struct hash *h, uint8_t *ret, size_t len)
{
	must_succeed(h->dll.BCryptFinishHash(h->handle, ret, (ULONG)len, 0));
}

struct sha256 {
	struct hash hash;
};

enum status sha256_create(struct sha256 **ret, struct err *e)
{
	struct sha256 *h = calloc(1, sizeof(*h));
	enum status st;

	if (!h)
		return err_nomem(e);
	st = hash_init(&h->hash, SHA256, e);
	if (st) {
		free(h);
		return st;
	}
	*ret = h;
	return ST_OK;
}

void sha256_destroy(struct sha256 *h)
{
	if (!h)
		return;
	hash_deinit(&h->hash);
	free(h);
}

void sha256_begin(struct sha256 *h)
{
	hash_begin(&h->hash);
}

void sha256_update(struct sha256 *h, const void *p, size_t len)
{
	hash_update(&h->hash, p, len);
}

void sha256_end(struct sha256 *h, uint8_t ret[static SHA256_SIZE])
{
	hash_end(&h->hash, ret, SHA256_SIZE);
}

struct md5_sha1 {
	struct hash md5;
	struct hash sha1;
};

enum status md5_sha1_create(struct md5_sha1 **ret, struct err *e)
{
	struct md5_sha1 *h = calloc(1, sizeof(*h));
	enum status st;

	if (!h)
		return err_nomem(e);
	st = hash_init(&h->md5, MD5, e);
	if (!st)
		st = hash_init(&h->sha1, SHA1, e);
	if (st) {
		md5_sha1_destroy(h);
		return st;
	}
	hash_begin(&h->md5);
	hash_begin(&h->sha1);
	*ret = h;
	return ST_OK;
}

void md5_sha1_destroy(struct md5_sha1 *h)
{
	if (!h)
		return;
	hash_deinit(&h->md5);
	hash_deinit(&h->sha1);
	free(h);
}

void md5_sha1_update(struct md5_sha1 *h, const void *p, size_t len)
{
	hash_update(&h->md5, p, len);
	hash_update(&h->sha1, p, len);
}

void md5_sha1_end(struct md5_sha1 *h, uint8_t ret_md5[static MD5_SIZE],
		  uint8_t ret_sha1[static SHA1_SIZE])
{
	hash_end(&h->md5, ret_md5, MD5_SIZE);
	hash_end(&h->sha1, ret_sha1, SHA1_SIZE);
}
