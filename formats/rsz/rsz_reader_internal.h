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
	struct packed records; /* of the wanted CHUNKs: the number of the first extent, and where */
	uint64_t count;        /* of extents, all streams' */
	uint64_t lowest;       /* the number that `extents` has for extent 0 */
	atomic_bool *starved;  /* by whatever cursor, which may change nothing else */
};

#endif
