/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raw images in which no page tables are found, although they are there: what shows that its bytes
 * are not at the addresses of their offsets, as in an image whose parts were put together in
 * another order, or with something in front.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_DISPLACED_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_DISPLACED_H

#include "agent/collect/capture/reading.h"

struct displaced {
	bool looked;
	/*
	 * Windows: roots of page tables that name themselves at the same index, and all as far away
	 * from where they are. Those of the distance that most have.
	 */
	uint64_t roots;
	int64_t distance; /* from where they should be, in bytes */
	/* Linux: a VMCOREINFO that names a root where there is none. */
	bool vmcoreinfo;
	char release[65];
};

/* Reads all of memory, unless that takes too long. */
enum status displaced_look(const struct reading *reading, struct drv *source, struct displaced *ret,
			   struct err *e);

bool displaced_is_sure(const struct displaced *d);
void displaced_text(const struct displaced *d, struct err *ret);

#endif
