/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/wire/link.h"

#include "agent/shared/program/clock.h"

/* stop() is asked so often. */
#define STEP_MS 100

enum status link_wait(const struct link *l, enum socket_event what, unsigned ms, struct err *e)
{
	const uint64_t until = clock__mono_ns() + ms * (NS_PER_SECOND / 1000);

	for (;;) {
		const uint64_t now = clock__mono_ns();
		const uint64_t left = now < until ? (until - now + 999999) / 1000000 : 0;
		enum status st;

		if (l->options.stop && l->options.stop(l->options.arg))
			return err_set(e, ST_INTERRUPTED, "interrupted");
		st = socket_wait(l->socket, what, (unsigned)MIN(left, STEP_MS), e);
		if (st != ST_END || !left)
			return st;
	}
}
