/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file is that is no memory. A raw image has no header that would say what it is, so
 * anything can be taken for one: an archive, a disk, a dump in a format of its own.
 *
 * The rule: a file is foreign for how it begins, and for nothing else. It has a magic of at least
 * four bytes at its documented place, or a shorter one and fields around it that fit; or its first
 * 64 KiB are text. The beginning of a PC's RAM is none of these: it holds the interrupt vectors of
 * real mode (4 bytes each, offset and segment), code that processors begin with, or zeros.
 *
 * Its limits: memory that begins elsewhere can begin with a page of any file that the machine had
 * in its cache; such a part is called foreign, and the user has to say that it is raw. And what has
 * no magic (encrypted, or a piece out of the middle of something) passes for memory, as it must.
 */
#ifndef RAMSEAL_FORMATS_FOREIGN_H
#define RAMSEAL_FORMATS_FOREIGN_H

#include "formats/base/io.h"

struct foreign {
	const char *what;   /* "a gzip file" */
	const char *advice; /* what to do about it, or NULL */
};

/* *ret is static, or NULL if nothing is known that speaks against memory. ST_INPUT, ST_NOMEM. */
enum status foreign_find(struct blob *b, const struct foreign **ret, struct err *e);

#endif
