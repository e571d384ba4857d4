/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "formats/proof/ci_policy.h"
#include "tests/fuzz/fuzz.h"

static void check_text(const char *text)
{
	const size_t len = strlen(text);

	MUST(len < CI_NAME_MAX);
	for (size_t i = 0; i < len; i++)
		MUST(text[i] >= 0x20 && text[i] < 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ci_subject subject = {
		.hashes = { { .at = "hash", .len = 32 } },
		.n_hashes = 1,
		.certificates = { { .at = "certificate", .len = 20 } },
		.n_certificates = 1,
	};
	struct err e = ERR_INIT;
	struct ci_policy p;
	struct ci_match m;
	enum status st = ci_policy_read(data, size, &p, &e);

	MUST(st == ST_OK || st == ST_CORRUPT);
	MUST(!st || e.message[0]);
	if (st)
		return 0;
	MUST(strlen(p.type) == CI_GUID_SIZE - 1);
	st = ci_policy_match(&p, &subject, &m, &e);
	MUST(st == ST_OK || st == ST_CORRUPT);
	MUST(!st || e.message[0]);
	check_text(m.name);
	check_text(m.id);
	MUST(m.allowed <= CI_YES && m.denied <= CI_YES);
	return 0;
}
