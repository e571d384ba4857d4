/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statement: what an acquisition says about its container, in a few lines that can be sent
 * home, signed and time-stamped. STATEMENT.md has every line. There is exactly one way to write a
 * statement, and no other is accepted, so that two people sign the same bytes.
 */
#ifndef RAMSEAL_FORMATS_STATEMENT_H
#define RAMSEAL_FORMATS_STATEMENT_H

#include "formats/rsz/rsz.h"

/* Bytes of a text: the longest file name of Linux and Windows, and the longest key of S3. */
#define STATEMENT_TEXT_MAX 1024
/* Bytes of a whole statement: four texts with every byte written as \xNN, and the rest. */
#define STATEMENT_MAX      ((size_t)20 << 10)

enum statement_outcome {
	STATEMENT_COMPLETE, /* exit code 0 */
	STATEMENT_GAPS,     /* exit code 3: some pages could not be read, or this is unknown */
	STATEMENT_STOPPED,  /* sealed, but incomplete */
	STATEMENT_UNSEALED, /* it has no root */
};

typedef char statement_text[STATEMENT_TEXT_MAX + 1]; /* NUL-terminated; any bytes, not empty */

struct statement {
	uint8_t container[RSZ_ID_SIZE];
	bool has_root; /* unless `outcome` is STATEMENT_UNSEALED */
	uint8_t root[SHA256_SIZE];
	uint64_t size; /* bytes of the container, before encryption if there is any */
	statement_text name;
	enum statement_outcome outcome;
	statement_text source;
	statement_text host;
	uint64_t begin_wall, end_wall; /* ns since 1970-01-01T00:00:00Z */
	uint64_t begin_mono, end_mono; /* ns, on the clock of the container's capture times */
	statement_text tool;           /* "ramseal 0.1.0" */
	bool has_tool_hash;            /* false: it is not known */
	uint8_t tool_sha256[SHA256_SIZE];
};

/* Copies a text; one that is too long is cut between characters. NULL and "" become "-". */
void statement_set_text(statement_text ret, const char *text);

/* Writes the text, NUL-terminated; returns its length without the NUL. */
size_t statement_write(const struct statement *s, char ret[static STATEMENT_MAX]);

/*
 * ST_INPUT: it is not a statement, is of another version, or differs from what statement_write()
 * writes. The message names the line.
 */
enum status statement_parse(const void *p, size_t len, struct statement *ret, struct err *e);

/*
 * The outcome of an acquisition with that exit code (one of err.h, or any number from a container).
 * If it was not sealed, or sealed later, that is STATEMENT_UNSEALED whatever the code.
 */
enum statement_outcome statement_outcome_of(bool sealed, int64_t exit_code);

/* "complete", "gaps", … */
const char *statement_outcome_name(enum statement_outcome o);

#endif
