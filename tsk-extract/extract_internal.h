/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by opening and comparing (extract.c) and reading (extract_read.c). */
#ifndef RAMSEAL_TSK_EXTRACT_EXTRACT_INTERNAL_H
#define RAMSEAL_TSK_EXTRACT_EXTRACT_INTERNAL_H

#include "tsk-extract/extract.h"
#include "tsk-extract/mft.h"
#include "tsk-extract/wof.h"

struct extract {
	struct reader *reader;
	const struct volume *volume;
	struct volume whole; /* `volume` of extract_open_whole(), which owns the reader */
	char *path_text;
	struct ntfs_path path;
	unsigned flags;

	struct extract_state first, now;
	uint8_t *value;  /* content of a resident file */
	struct mft *mft; /* kept open only for a compressed file */
	struct wof *wof; /* if WOF compressed it */
	uint64_t unit;   /* bytes of a compression unit */
	uint8_t *unit_bytes;

	uint64_t next;   /* offset of extract_next() */
	uint64_t hinted; /* hints were given to the reader up to there */
	struct extract_bad *bad;
	size_t n_bad;
	size_t bad_room;
};

/* Wall time, in nanoseconds since 1970. */
uint64_t extract__now(void);

#endif
