/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises files that are not memory. A raw image has no header, so anything could be taken for
 * one: an archive, a disk, a dump in another format.
 *
 * The rule: only how a file begins makes it foreign. It has a magic of at least four bytes at its
 * documented place, or a shorter one and fields around it that fit; or its first 64 KiB are text.
 * The beginning of a PC's RAM is none of these: it holds the interrupt vectors of real mode (4
 * bytes each, offset and segment), code that processors begin with, or zeros.
 *
 * Its limits: an image that does not begin at address 0 can begin with a cached page of any file;
 * it is called foreign, and the user must say that it is raw. And a file without a magic
 * (encrypted, or a part from the middle of something) passes for memory, as it must.
 */
#ifndef RAMSEAL_FORMATS_FOREIGN_H
#define RAMSEAL_FORMATS_FOREIGN_H

#include "formats/base/io.h"

struct foreign {
	const char *what;   /* "a gzip file" */
	const char *advice; /* what to do about it, or NULL */
	enum foreign_kind {
		FOREIGN_OTHER,
		FOREIGN_DISK,         /* or a volume: with --image it is read */
		FOREIGN_VIRTUAL_DISK, /* its sectors are not at their places in the file */
	} kind;
};

/* *ret is static, or NULL if the file may be memory. ST_INPUT, ST_NOMEM. */
enum status foreign_find(struct blob *b, const struct foreign **ret, struct err *e);

#endif
