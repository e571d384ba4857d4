/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "formats/proof/authenticode.h"
#include "formats/base/utf8.h"
#include "tests/fuzz/fuzz.h"

static void check_chain(const struct authenticode_signer *s, const uint8_t *data, size_t size)
{
	MUST(s->chain_len <= AUTHENTICODE_CHAIN_MAX);
	MUST(utf8_valid(s->root, strlen(s->root)));
	MUST(authenticode_class_name(s->class) != NULL);
	for (size_t i = 0; i < s->chain_len; i++) {
		const struct authenticode_certificate *c = &s->chain[i];

		MUST(utf8_valid(c->name, strlen(c->name)) && c->digest);
		MUST(c->body >= data && c->body_len <= size &&
		     (size_t)(c->body - data) <= size - c->body_len);
	}
	MUST(!s->imprint || (s->imprint >= data && s->imprint_len <= size && s->imprint_digest));
}

static void check_ranges(const uint8_t *data, size_t size)
{
	struct authenticode_range r[AUTHENTICODE_RANGES];

	if (!authenticode_ranges(data, size, r))
		return;
	for (size_t i = 0; i < AUTHENTICODE_RANGES; i++)
		MUST(r[i].at <= size && r[i].len <= size - r[i].at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = ERR_INIT;
	struct authenticode a;
	const enum status st = authenticode_read(data, size, &a, &e);

	MUST(st == ST_OK || st == ST_CORRUPT);
	MUST(!st || e.message[0]);
	MUST(a.count <= AUTHENTICODE_SIGNERS_MAX &&
	     (!a.more || a.count == AUTHENTICODE_SIGNERS_MAX));
	for (size_t i = 0; i < a.count; i++) {
		const size_t len = strlen(a.at[i].name);

		MUST(len < AUTHENTICODE_NAME_MAX && utf8_valid(a.at[i].name, len));
		MUST(a.at[i].digest != NULL);
		check_chain(&a.at[i], data, size);
		for (size_t k = 0; k < len; k++)
			MUST((uint8_t)a.at[i].name[k] >= 0x20);
	}
	check_ranges(data, size);
	return 0;
}
