/* SPDX-License-Identifier: Apache-2.0 */
/* A file of signers, asked for one key: with and without a name, and at two times. */
#include <sodium.h>
#include <string.h>

#include "formats/proof/ssh_signers.h"
#include "tests/fuzz/fuzz.h"

static const char key_text[] =
	"AAAAC3NzaC1lZDI1NTE5AAAAIHQyk5JBCJuo5Y5kY6VLG0+5dMzROA766o5t/tNErfl7";

static enum status find(const uint8_t *data, size_t size, const char *principal, uint64_t time)
{
	struct err e = ERR_INIT;
	struct ssh_signer who;
	uint8_t key[64];
	size_t len;
	enum status st;

	MUST(!sodium_base642bin(key, sizeof(key), key_text, sizeof(key_text) - 1, NULL, &len, NULL,
				sodium_base64_VARIANT_ORIGINAL));
	st = ssh_signers_find(data, size,
			      &(struct ssh_wanted){ .key = cursor_over(key, len),
						    .name_space = "ramseal",
						    .principal = principal,
						    .time = time },
			      &who, &e);
	MUST(st == ST_OK || st == ST_MISMATCH || st == ST_INPUT);
	MUST(!st == !e.message[0]);
	MUST(st || (who.line && strlen(who.principals) < SSH_PRINCIPALS_MAX));
	return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const enum status anybody = find(data, size, NULL, UINT64_C(1795357800));

	/* Whoever is found by name has the key. */
	if (!find(data, size, "alice", UINT64_C(1795357800)))
		MUST(!anybody);
	find(data, size, "bob", 0);
	return 0;
}
