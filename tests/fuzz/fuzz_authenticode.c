/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "formats/proof/authenticode.h"
#include "formats/base/utf8.h"
#include "tests/fuzz/fuzz.h"

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
		for (size_t k = 0; k < len; k++)
			MUST((uint8_t)a.at[i].name[k] >= 0x20);
	}
	return 0;
}
