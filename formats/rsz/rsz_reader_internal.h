/* SPDX-License-Identifier: Apache-2.0 */
/* Between rsz_reader.c, which opens and finds, and rsz_cursor.c, which loads. */
#ifndef RAMSEAL_FORMATS_RSZ_READER_INTERNAL_H
#define RAMSEAL_FORMATS_RSZ_READER_INTERNAL_H

#include <stdatomic.h>

#include "formats/rsz/rsz_extents.h"
#include "formats/rsz/rsz_scan.h"

struct rsz_reader {
	struct blob *in;
	struct rsz_identity identity;
	struct rsz__streams streams;
	struct rsz_scan_result end;
	struct rsz__extents extents;
	struct packed records; /* of each CHUNK: its first extent's number, and its offset */
	uint64_t count;        /* of extents, all streams' */
	uint64_t lowest;       /* the number of extent 0 in `extents` */
	atomic_bool *starved;  /* set by any cursor, which changes nothing else */
};

#endif
