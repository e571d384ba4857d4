/* SPDX-License-Identifier: Apache-2.0 */
/* Between rsz_reader.c, which opens and finds, and rsz_cursor.c, which loads. */
#ifndef RAMSEAL_FORMATS_RSZ_READER_INTERNAL_H
#define RAMSEAL_FORMATS_RSZ_READER_INTERNAL_H

#include "formats/rsz_scan.h"

struct indexed_extent; /* of the index: rsz_reader.c */

struct rsz_reader {
	struct blob *in;
	struct rsz_identity identity;
	struct rsz__streams streams;
	struct rsz_scan_result end;
	/* Once open: by stream and address, disjoint within a stream. */
	struct indexed_extent *pieces;
	size_t count;
	size_t room;
};

#endif
