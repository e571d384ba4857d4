/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/simulator/link.h"

#include <stdlib.h>

#define SECOND UINT64_C(1000000000)

enum status sim__link_init(struct sim_link *l, const struct sim_spec *spec, struct err *e)
{
	*l = (struct sim_link){ .rate = spec->link, .piece = spec->piece };
	if (!l->rate)
		return ST_OK;
	l->spool = MAX((spec->spool + l->piece - 1) / l->piece, UINT64_C(2)) * l->piece;
	l->gone = calloc((size_t)(l->spool / l->piece) + 1, sizeof(*l->gone));
	return l->gone ? ST_OK : err_nomem(e);
}

void sim__link_deinit(struct sim_link *l)
{
	free(l->gone);
}

static uint64_t *gone_at(const struct sim_link *l, uint64_t piece)
{
	return &l->gone[piece % (l->spool / l->piece + 1)];
}

uint64_t sim__link_take(struct sim_link *l, uint64_t at, uint64_t bytes)
{
	if (!l->rate)
		return 0;
	at = MAX(at, l->at);
	l->written += bytes;
	for (; l->pieces < l->written / l->piece; l->pieces++) {
		l->idle_at = MAX(at, l->idle_at) + l->piece * SECOND / l->rate;
		*gone_at(l, l->pieces) = l->idle_at;
	}
	/* Of what does not fit, the piece that it takes the room of has to be gone. */
	if (l->written > l->spool)
		at = MAX(at, *gone_at(l, (l->written - l->spool - 1) / l->piece));
	l->at = at;
	return at;
}
