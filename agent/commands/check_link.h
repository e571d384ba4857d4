/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `check` says about an address: whether an upload can begin, how fast the link is, and how
 * long it will take.
 */
#ifndef RAMSEAL_AGENT_COMMANDS_CHECK_LINK_H
#define RAMSEAL_AGENT_COMMANDS_CHECK_LINK_H

#include <jansson.h>

#include "agent/collect/acquire/acquire.h"
#include "agent/collect/acquire/preflight.h"
#include "agent/collect/stores/link_probe.h"

/* Zero-initialise; check_link_deinit() frees. */
struct check_link {
	struct network *network; /* NULL: the output is not an address */
	struct link_speed speed; /* .rate 0: it was not measured */
	uint64_t bytes;          /* likely to be sent */
	bool likely;             /* false: an upper bound, as if nothing compressed */
};

/* Chooses a file name if the address has none. `info` is NULL if no source is known. */
enum status check_link_name(struct check_link *l, const struct acquire_options *o,
			    const struct drv_info *info, const char *suffix,
			    const struct output_need *need, struct err *e);
/* Everything that can be checked about an address and its keys without sending anything. */
enum status check_link_try(struct check_link *l, struct err *e);
void check_link_deinit(struct check_link *l);

/*
 * Sends data. Reports what would keep acquire from starting, and what stays on the server, as
 * findings.
 */
enum status check_link_probe(struct check_link *l, struct findings *to, struct err *e);

/* `reading`: seconds that the source needs; UINT64_MAX: not known. */
void check_link_print(const struct check_link *l, uint64_t reading);
void check_link_json(const struct check_link *l, uint64_t reading, json_t *to);

#endif
