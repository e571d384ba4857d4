/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/capture/clock_watch.h"

#include <inttypes.h>
#include <stdio.h>

#include "agent/shared/program/json.h"
#include "agent/shared/program/log.h"
#include "formats/base/defs.h"

void clock_watch_begin(struct clock_watch *w)
{
	*w = (struct clock_watch){ .mono = clock_mono_ns(), .seen = clock_steps() };
}

bool clock_watch_add(struct clock_watch *w, uint64_t mono, struct clock_steps steps)
{
	struct clock_span *span;

	if (steps.count != w->seen.count) {
		span = &w->at[MIN(w->count, CLOCK_SPANS_MAX - 1)];
		if (w->count < CLOCK_SPANS_MAX) {
			*span = (struct clock_span){ .from = w->mono };
			w->count++;
		}
		span->to = mono;
		span->steps.count += steps.count - w->seen.count;
		span->steps.back_ns += steps.back_ns - w->seen.back_ns;
	}
	w->mono = mono;
	if (steps.count == w->seen.count)
		return false;
	w->seen = steps;
	return true;
}

void clock_watch_sample(struct clock_watch *w)
{
	const bool first = !w->count;
	const uint64_t mono = clock_mono_ns(); /* before the steps: it may find one */

	if (!clock_watch_add(w, mono, clock_steps()) || !first)
		return;
	log_warning_with(
		JSON_FIELDS(field_u64("back_ns", w->at[0].steps.back_ns)), "clock-went-back",
		"the machine's counter went back by %.6f s during the acquisition: from "
		"now on the system's tick holds the clock, and durations are right to %u "
		"ms; no more is said of further steps here, the manifest counts them",
		(double)w->at[0].steps.back_ns / 1e9, (unsigned)(CLOCK_SLACK_NS / 1000000));
}

json_t *clock_watch_json(const struct clock_watch *w)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < w->count; i++)
		json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:o}", "from_ns",
						      json_u64(w->at[i].from), "to_ns",
						      json_u64(w->at[i].to), "count",
						      json_u64(w->at[i].steps.count), "back_ns",
						      json_u64(w->at[i].steps.back_ns)));
	return list;
}

bool clock_watch_text(const json_t *steps, char ret[static CLOCK_TEXT_MAX])
{
	json_int_t count = 0, back = 0;
	const json_t *o;
	size_t i;

	json_array_foreach(steps, i, o)
	{
		count += json_integer_value(json_object_get(o, "count"));
		back += json_integer_value(json_object_get(o, "back_ns"));
	}
	snprintf(ret, CLOCK_TEXT_MAX,
		 "the machine's counter went back %lld time%s meanwhile, by %.3f s in all",
		 (long long)count, count == 1 ? "" : "s", (double)back / 1e9);
	return count > 0;
}
