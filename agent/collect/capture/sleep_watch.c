/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/capture/sleep_watch.h"

#include <stdio.h>

#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"
#include "formats/base/defs.h"

void sleep_watch_begin(struct sleep_watch *w)
{
	*w = (struct sleep_watch){ .mono = clock_mono_ns(), .asleep = clock_asleep_ns() };
}

bool sleep_watch_add(struct sleep_watch *w, uint64_t mono, uint64_t asleep, struct sleep *ret)
{
	const bool slept = asleep > w->asleep && asleep - w->asleep >= SLEEP_LEAST;

	if (slept) {
		*ret = (struct sleep){ w->mono, mono, asleep - w->asleep };
		w->total += ret->ns;
		if (w->count < SLEEPS_MAX)
			w->at[w->count++] = *ret;
		else
			w->more++;
		w->asleep = asleep;
	}
	w->mono = mono;
	return slept;
}

void sleep_watch_sample(struct sleep_watch *w)
{
	char text[TEXT_DURATION_MAX];
	struct sleep s;

	if (!sleep_watch_add(w, clock_mono_ns(), clock_asleep_ns(), &s))
		return;
	text_duration(s.ns / NS_PER_SECOND, text);
	log_warning_with(JSON_FIELDS(field_u64("asleep_ns", s.ns)), "machine-slept",
			 "the machine slept for %s during the acquisition: pages read before and "
			 "after are from two different times",
			 text);
}

json_t *sleep_watch_json(const struct sleep_watch *w)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < w->count; i++)
		json_array_append_new(list, json_pack("{s:I, s:I, s:I}", "from_ns",
						      (json_int_t)w->at[i].from, "to_ns",
						      (json_int_t)w->at[i].to, "asleep_ns",
						      (json_int_t)w->at[i].ns));
	return list;
}

bool sleep_watch_text(const json_t *sleeps, char ret[static SLEEP_TEXT_MAX])
{
	const size_t n = json_array_size(sleeps);
	char text[TEXT_DURATION_MAX];
	uint64_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += (uint64_t)json_integer_value(
			json_object_get(json_array_get(sleeps, i), "asleep_ns"));
	text_duration(total / NS_PER_SECOND, text);
	snprintf(ret, SLEEP_TEXT_MAX, "the machine slept %zu time%s meanwhile, for %s", n,
		 n == 1 ? "" : "s", text);
	return n != 0;
}
