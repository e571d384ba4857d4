/* SPDX-License-Identifier: Apache-2.0 */
/* ramseal read --pa: all captures of one page of physical memory. */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_READ_CAPTURES_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_READ_CAPTURES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/shared/output/output.h"

struct captures_request {
	const char *path;                        /* of the container */
	const struct age_identities *identities; /* NULL: none */
	uint64_t pa;                             /* any byte of the page */
	uint64_t number;    /* of the capture for `out`, from 1 on; 0: the newest */
	struct output *out; /* NULL: they are only listed */
	bool json;          /* one object for each */
	bool silent;        /* stdout is `out`'s */
};

/* ST_UNREADABLE: there is no content at `pa`. ST_USAGE: there are fewer captures than `number`. */
enum status read_captures(const struct captures_request *r, struct err *e);

#endif
