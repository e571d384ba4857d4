/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/order/memory.h"

#include "agent/collect/capture/reading.h"
#include "agent/collect/order/order.h"
#include "agent/shared/kernel/candidates.h"
#include "formats/base/left.h"

enum status memory_acquire(const struct memory_plan *plan, struct memory_result *ret, struct err *e)
{
	const struct order *order = plan->order ? plan->order : &linear_order;
	const bool was_left = drv_is_abandoned(plan->source);
	struct stream_plan stream = plan->stream;
	struct reading reading;
	enum status st = order->open(plan, ret, &stream.feed, e);

	if (st)
		return st;
	if (stream.reading) {
		reading = *stream.reading;
		reading.source = plan->source; /* perhaps the one that was opened again */
		stream.reading = &reading;
	}
	stream.label = "memory";
	stream.total = range_list_bytes(memory_ranges(plan));
	drv_note_parts(plan->source, true);
	st = stream_pass(&stream, &ret->stream, e);
	if (!was_left && drv_is_abandoned(plan->source)) {
		/*
		 * The feed stays, and so does the list of parts. What was left out is not known
		 * here.
		 */
		left_keep(stream.feed);
		ret->stopped = st;
		ret->why = *e;
		return ST_OK;
	}
	drv_note_parts(plan->source, false);
	if (plan->watch)
		plan->watch->seen.complete = !st && !ret->stopped;
	if (plan->candidates)
		plan->candidates->complete = !st && !ret->stopped;
	order->close(stream.feed);
	return st;
}

void memory_result_deinit(struct memory_result *r)
{
	stream_result_deinit(&r->stream);
}
