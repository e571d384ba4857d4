/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file as it comes; or, if the first byte is 1, what follows as the blob that base64 would hide
 * from the fuzzer.
 */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "formats/proof/sshsig.h"
#include "tests/fuzz/fuzz.h"

static size_t put_armor(const uint8_t *blob, size_t len, char ret[static SSHSIG_FILE_MAX])
{
	size_t n = (size_t)sprintf(ret, "-----BEGIN SSH SIGNATURE-----\n");

	sodium_bin2base64(ret + n, SSHSIG_FILE_MAX - n, blob, len, sodium_base64_VARIANT_ORIGINAL);
	n += strlen(ret + n);
	return n + (size_t)sprintf(ret + n, "\n-----END SSH SIGNATURE-----\n");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char armor[SSHSIG_FILE_MAX];
	char fingerprint[SSHSIG_FINGERPRINT_SIZE];
	struct err e = ERR_INIT;
	struct sshsig s;
	enum status st;

	if (size && data[0] == 1 && size <= SSHSIG_BLOB_MAX)
		st = sshsig_parse(armor, put_armor(data + 1, size - 1, armor), &s, &e);
	else
		st = sshsig_parse(data, size, &s, &e);
	MUST(st == ST_OK || st == ST_INPUT);
	MUST(!st || e.message[0]);
	if (st)
		return 0;
	MUST(s.name_space.left && s.type.left);
	sshsig_fingerprint(&s, fingerprint);
	MUST(strlen(fingerprint) == SSHSIG_FINGERPRINT_SIZE - 1);
	st = sshsig_verify(&s, "ramseal", "hello\n", 6, &e);
	MUST(st == ST_OK || st == ST_MISMATCH || st == ST_INPUT);
	MUST(sshsig_verify(&s, "ramseal", "hallo\n", 6, NULL) != ST_OK);
	return 0;
}
