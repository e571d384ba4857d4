/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/self.h"

#include "agent/shared/program/json.h"

static json_t *io_json(const struct self_io *io)
{
	const struct {
		const char *key;
		uint64_t n;
	} counters[] = {
		{ "read_calls", io->read_calls },
		{ "read_bytes", io->read_bytes },
		{ "write_calls", io->write_calls },
		{ "write_bytes", io->write_bytes },
		{ "other_calls", io->other_calls },
		{ "other_bytes", io->other_bytes },
		{ "disk_read_bytes", io->disk_read_bytes },
		{ "disk_write_bytes", io->disk_write_bytes },
	};
	json_t *o = json_object();

	for (size_t i = 0; o && i < ARRAY_SIZE(counters); i++)
		if (counters[i].n != UINT64_MAX)
			json_object_set_new(o, counters[i].key, json_u64(counters[i].n));
	return o;
}

json_t *self_usage_json(void)
{
	struct self_usage u;

	self_usage(&u);
	return json_fields(
		JSON_FIELDS(field_u64("user_ns", u.user_ns), field_u64("system_ns", u.system_ns),
			    field_u64("peak_rss", u.peak_rss), field_made("io", io_json(&u.io))));
}
