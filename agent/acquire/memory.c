/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/acquire/memory.h"

#include "agent/order/order.h"

enum status memory_acquire(const struct memory_plan *plan, struct memory_result *ret, struct err *e)
{
	const struct order *order = plan->order ? plan->order : &linear_order;
	struct stream_plan stream = plan->stream;
	enum status st = order->open(plan, ret, &stream.feed, e);

	if (st)
		return st;
	stream.label = "memory";
	stream.total = range_list_bytes(memory_ranges(plan));
	drv_note_parts(plan->source, true);
	st = stream_pass(&stream, &ret->stream, e);
	drv_note_parts(plan->source, false);
	if (plan->watch)
		plan->watch->seen.complete = !st && !ret->stopped;
	order->close(stream.feed);
	return st;
}

void memory_result_deinit(struct memory_result *r)
{
	stream_result_deinit(&r->stream);
}
