/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/limits.h"

#include "agent/shared/program/json.h"
#include "agent/shared/program/self.h"

void host_limits_deinit(struct host_limits *l)
{
	free(l->cpu_from);
	free(l->memory_from);
	*l = (struct host_limits){ 0 };
}

unsigned host_limits_cpus(const struct host_limits *l)
{
	const unsigned cpus = self_cpus();

	return l->cpu_milli ? (unsigned)MAX(1, MIN(cpus, l->cpu_milli / 1000)) : cpus;
}

static json_t *limit_json(uint64_t bytes)
{
	return bytes == LIMIT_NONE ? json_null() : json_u64(bytes);
}

json_t *host_limits_json(const struct host_limits *l)
{
	return json_fields(JSON_FIELDS(
		field_u64("cpus", self_cpus()),
		field_json("cpu_time",
			   l->cpu_milli ? json_real((double)l->cpu_milli / 1000) : json_null()),
		field_text("cpu_time_from", l->cpu_from),
		field_made("memory", limit_json(l->memory)),
		field_made("memory_left", limit_json(l->memory_left)),
		field_text("memory_from", l->memory_from)));
}
