/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that is written past the system's cache: in whole units, from memory that is aligned to
 * them, each at a multiple of one. What does not fill a unit waits in a buffer; at the end its unit
 * is filled up with zeros, and the file made as long as it is. Windows' rules for
 * FILE_FLAG_NO_BUFFERING (learn.microsoft.com/windows/win32/fileio/file-buffering); nothing in here
 * is Windows'.
 */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_DIRECT_FILE_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_DIRECT_FILE_H

#include "formats/base/io.h"

/* Does for disks of 512 bytes and of 4 KiB a sector, and is at most what a unit may be. */
#define DIRECT_UNIT     ((size_t)4096)
#define DIRECT_UNIT_MAX ((size_t)65536)

/* What the file is made of: all offsets, sizes and addresses are multiples of the unit. */
struct direct_io {
	enum status (*write)(struct direct_io *io, uint64_t at, const void *p, size_t len,
			     struct err *e);
	/* *got is less only where the file ends, and then as many bytes as there are. */
	enum status (*read)(struct direct_io *io, uint64_t at, void *p, size_t len, size_t *got,
			    struct err *e);
	/* To any size; what is new reads as zeros. */
	enum status (*resize)(struct direct_io *io, uint64_t size, struct err *e);
};

struct direct_file;

/* For an empty file; `unit` is a power of 2. `io` is borrowed. */
enum status direct_file_create(struct direct_io *io, size_t unit, struct direct_file **ret,
			       struct err *e);
void direct_file_destroy(struct direct_file *d); /* NULL is fine */

/* How long the file is, with what waits. */
uint64_t direct_file_end(const struct direct_file *d);

/* At the end. What fails may be done again, behind a cut. */
enum status direct_file_write(struct direct_file *d, const void *p, size_t len, struct err *e);
/* `len` zeros at the end; as a hole, if there are many. */
enum status direct_file_skip(struct direct_file *d, uint64_t len, struct err *e);
/* Writing goes on at `at`, which is not behind the end; `shorten`: the file gets shorter. */
enum status direct_file_cut(struct direct_file *d, uint64_t at, bool shorten, struct err *e);
/* Over what was written. */
enum status direct_file_rewrite(struct direct_file *d, uint64_t at, const void *p, size_t len,
				struct err *e);
/* *got is less only where the file ends. */
enum status direct_file_read(struct direct_file *d, uint64_t at, void *p, size_t len, size_t *got,
			     struct err *e);
/* Everything is in the file, which has its length. Writing may go on. */
enum status direct_file_settle(struct direct_file *d, struct err *e);

#endif
