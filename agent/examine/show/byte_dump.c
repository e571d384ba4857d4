/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/byte_dump.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "agent/shared/program/lines.h"

#define LINE_BYTES 16

/*
 * "0x00000000011d1020  7a 6a …  |zj…|" takes 88 columns. Where a terminal has fewer, bytes stand in
 * pairs, and 80 are enough.
 */
#define COLUMNS    88

static void print_byte_line(uint64_t va, const uint8_t *bytes, size_t from, size_t to)
{
	const bool in_pairs = lines_width(stdout) < COLUMNS;
	char text[LINE_BYTES + 1];

	printf("0x%016" PRIx64 " ", va);
	for (size_t i = 0; i < LINE_BYTES; i++) {
		const bool wanted = i >= from && i < to;

		text[i] = !wanted                               ? ' '
			  : bytes[i] >= 0x20 && bytes[i] < 0x7f ? (char)bytes[i]
								: '.';
		if (i == LINE_BYTES / 2)
			fputs("  ", stdout);
		else if (!in_pairs || i % 2 == 0)
			fputs(" ", stdout);
		if (wanted)
			printf("%02x", bytes[i]);
		else
			fputs("  ", stdout);
	}
	text[LINE_BYTES] = '\0';
	printf("  |%s|\n", text);
}

void byte_dump_print(uint64_t va, const uint8_t *bytes, size_t from, size_t to)
{
	const uint8_t *line = NULL; /* the last one that was whole */
	bool starred = false;

	for (size_t at = from & ~(size_t)(LINE_BYTES - 1); at < to; at += LINE_BYTES) {
		const bool whole = from <= at && to - at >= LINE_BYTES;

		if (whole && line && !memcmp(bytes + at, line, LINE_BYTES)) {
			if (!starred)
				puts("*");
			starred = true;
			continue;
		}
		line = whole ? bytes + at : NULL;
		starred = false;
		print_byte_line(va + at, bytes + at, at < from ? from - at : 0,
				MIN(to - at, LINE_BYTES));
	}
}
