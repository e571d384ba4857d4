/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link of a simulated machine: what is acquired goes out by it, as
 * agent/collect/stores/uploader.c sends: into a spool, and from there in pieces, whose room is free
 * when all of a piece has gone. Nothing is really sent, and no clock but the machine's counts: a
 * link of any speed costs no time.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_LINK_H
#define RAMSEAL_AGENT_SIMULATOR_LINK_H

#include "agent/simulator/spec.h"

struct sim_link {
	uint64_t rate;    /* bytes a second; 0: there is no link, and nothing waits */
	uint64_t piece;   /* bytes */
	uint64_t spool;   /* bytes, so many whole pieces */
	uint64_t written; /* bytes in all */
	uint64_t at;      /* ns: when there was room for the last of them */
	uint64_t idle_at; /* ns: when all pieces that are complete will have gone */
	uint64_t pieces;  /* that are complete, gone or not; the newest of them are in: */
	uint64_t *gone;   /* when each had gone, a ring of spool / piece + 1 */
};

enum status sim__link_init(struct sim_link *l, const struct sim_spec *spec, struct err *e);
void sim__link_deinit(struct sim_link *l);

/* `bytes` more come at `at`, a piece at most. When there was room for them; 0 without a link. */
uint64_t sim__link_take(struct sim_link *l, uint64_t at, uint64_t bytes);

#endif
