/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated machine's network link. It takes data as agent/collect/stores/uploader.c sends it:
 * into a spool, and from there in pieces; a piece's room in the spool is freed once the whole piece
 * has gone. Nothing is really sent, and only the machine's clock counts, so a slow link costs no
 * real time.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_LINK_H
#define RAMSEAL_AGENT_SIMULATOR_LINK_H

#include "agent/simulator/spec.h"

struct sim_link {
	uint64_t rate;    /* bytes a second; 0: no link, nothing waits */
	uint64_t piece;   /* bytes */
	uint64_t spool;   /* bytes, a multiple of .piece */
	uint64_t written; /* bytes in all */
	uint64_t at;      /* ns: when there was room for the last of them */
	uint64_t idle_at; /* ns: when all pieces that are complete will have gone */
	uint64_t pieces;  /* complete ones, gone or not */
	uint64_t *gone;   /* ns: when the newest of them had gone; a ring of spool / piece + 1 */
};

enum status sim__link_init(struct sim_link *l, const struct sim_spec *spec, struct err *e);
void sim__link_deinit(struct sim_link *l);

/* Adds `bytes` (at most a piece) at time `at`. Returns when there was room; 0 without a link. */
uint64_t sim__link_take(struct sim_link *l, uint64_t at, uint64_t bytes);

#endif
