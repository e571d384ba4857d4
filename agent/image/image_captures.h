/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of a container that were captured more than once: a flat image has the newest capture of
 * each, and its list says which pages have others (formats/SPEC.md, section 7).
 */
#ifndef RAMSEAL_AGENT_IMAGE_IMAGE_CAPTURES_H
#define RAMSEAL_AGENT_IMAGE_IMAGE_CAPTURES_H

#include <jansson.h>

#include "agent/shared/container/container.h"

/* "first", "table-changed", "file-changed", "table-again"; "?" for an invalid one. */
const char *image_reason_name(uint32_t reason);

struct image_captures {
	uint64_t pages;  /* with older readable captures */
	uint64_t tables; /* of those, page tables that were read again after what they refer to */
	/*
	 * {"pages":, "page_tables":, "ranges": [{"first":, "last":, "pages":, "captures":
	 * [{"start_ns":, "end_ns":, "reason":}]}], "ranges_not_listed":, "captures_not_listed":},
	 * captures in order; the last one is in the image.
	 */
	json_t *list;
};

enum status image_captures_load(struct container *c, uint32_t stream, struct image_captures *ret,
				struct err *e);
void image_captures_deinit(struct image_captures *x);

#endif
