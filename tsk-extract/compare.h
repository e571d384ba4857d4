/* SPDX-License-Identifier: Apache-2.0 */
/* The same file read in two ways: do both give the same? */
#ifndef RAMSEAL_TSK_EXTRACT_COMPARE_H
#define RAMSEAL_TSK_EXTRACT_COMPARE_H

#include "tsk-extract/extract.h"

/* In pages; every page is counted once. */
struct comparison {
	uint64_t same;
	uint64_t settled; /* differed, and were the same when both were read again */
	uint64_t different;
	uint64_t unread;          /* at least one way did not give them */
	uint64_t first_different; /* offset; UINT64_MAX: none */
	bool other_size;          /* the two differ in size; the shorter one counts */
};

/*
 * Both are read a piece at a time, one right after the other, because the file may be in use. Pages
 * that differ are read once more, each on its own. Only ST_NOMEM and ST_CORRUPT are errors.
 */
enum status compare_file(struct extract *x, struct reader *other, struct comparison *ret,
			 struct err *e);

#endif
