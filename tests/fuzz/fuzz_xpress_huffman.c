/* SPDX-License-Identifier: Apache-2.0 */
/* 2 bytes: how long the output is; then the stream. Each buffer is of its own size. */
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/xpress_huffman.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t want = size < 2 ? 0 : get_le16(data);
	uint8_t *out, *again;

	if (size < 2)
		return 0;
	out = malloc(want + 1);
	again = malloc(want + 1);
	MUST(out && again);
	memset(again, 0xff, want);
	out[want] = again[want] = 0x5a;
	if (xpress_huffman_decode(data + 2, size - 2, out, want)) {
		/* All of it is written, and by nothing but the input. */
		MUST(xpress_huffman_decode(data + 2, size - 2, again, want));
		MUST(!memcmp(out, again, want));
	}
	MUST(out[want] == 0x5a && again[want] == 0x5a);
	free(out);
	free(again);
	return 0;
}
