/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/driver_signers.h"

#include <stdio.h>
#include <string.h>

#include "agent/shared/program/json.h"
#include "formats/proof/authenticode.h"
#include "formats/base/io.h"
#include "formats/base/sha256.h"

/* The same bound as for loading one (winpmem_file.c): WinPmem has 50 KiB. */
#define DRIVER_MAX ((uint64_t)16 << 20)

static bool has_sha256(const void *p, size_t len, const char *want)
{
	uint8_t digest[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE];
	struct sha256 *h = NULL;

	if (sha256_create(&h, NULL))
		return false;
	sha256_of(h, p, len, digest);
	sha256_destroy(h);
	sha256_hex(digest, hex);
	return !strcmp(hex, want);
}

json_t *driver_signers_json(const void *p, size_t len, const char *sha256)
{
	struct authenticode a;
	json_t *list;

	if (!has_sha256(p, len, sha256) || authenticode_read(p, len, &a, NULL))
		return json_null();
	list = json_array();
	for (size_t i = 0; list && i < a.count; i++) {
		const struct authenticode_signer *s = &a.at[i];

		json_array_append_new(list,
				      json_pack("{s:o, s:s, s:b, s:b, s:b}", "name",
						s->name[0] ? json_text(s->name) : json_null(),
						"digest", s->digest, "nested", s->nested, "whql",
						s->whql, "attestation", s->attestation));
	}
	return list;
}

json_t *driver_signers_of_file(const char *path, const char *sha256)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct file_blob file;
	json_t *ret = NULL;
	size_t len;

	if (file_blob_open(&file, path, NULL))
		return json_null();
	len = file.blob.size <= DRIVER_MAX ? (size_t)file.blob.size : 0;
	bytes = len ? malloc(len) : NULL;
	if (bytes && !blob_read(&file.blob, 0, bytes, len, NULL))
		ret = driver_signers_json(bytes, len, sha256);
	file_blob_deinit(&file);
	return bytes ? ret : json_null();
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
