/* SPDX-License-Identifier: Apache-2.0 */
/* What `check` says of an address: whether it can be begun at, how fast the link is, how long. */
#ifndef RAMSEAL_AGENT_COMMANDS_CHECK_LINK_H
#define RAMSEAL_AGENT_COMMANDS_CHECK_LINK_H

#include <jansson.h>

#include "agent/collect/acquire/acquire.h"
#include "agent/collect/acquire/preflight.h"
#include "agent/collect/stores/link_probe.h"

/* Zero-initialise; check_link_deinit() frees. */
struct check_link {
	struct network *network; /* NULL: it goes to no address */
	struct link_speed speed; /* .rate 0: it was not measured */
	uint64_t bytes;          /* that are likely to be sent, */
	bool likely;             /* or if nothing compresses */
};

/* Its name, if none was given below the address. `info` NULL: no source is known. */
enum status check_link_name(struct check_link *l, const struct acquire_options *o,
			    const struct drv_info *info, const char *suffix,
			    const struct output_need *need, struct err *e);
/* All that can be said of an address and its keys without asking anybody: nothing is sent. */
enum status check_link_try(struct check_link *l, struct err *e);
void check_link_deinit(struct check_link *l);

/* Sends. What keeps acquire from beginning, and what stays at the other end, are findings. */
enum status check_link_probe(struct check_link *l, struct findings *to, struct err *e);

/* `reading`: seconds that the source takes; UINT64_MAX: not known. */
void check_link_print(const struct check_link *l, uint64_t reading);
void check_link_json(const struct check_link *l, uint64_t reading, json_t *to);

#endif
