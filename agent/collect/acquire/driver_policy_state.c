/* SPDX-License-Identifier: Apache-2.0 */
/* In which state the Windows Driver Policy is on a host, and how that is known. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "agent/collect/acquire/driver_forecast_internal.h"
#include "agent/collect/host/ci_host.h"

/* Windows 11 24H2 and Server 2025: the first that have the policy. */
#define BUILD_DRIVER_POLICY 26100

const char *const forecast__state_names[] = {
	[POLICY_ABSENT] = "absent",
	[POLICY_EVALUATION] = "evaluation",
	[POLICY_ENFORCED] = "enforced",
	[POLICY_UNKNOWN] = "unknown",
};

static struct driver_state state_of(enum policy_state state, bool certain, const char *fmt, ...)
	PRINTF_LIKE(3, 4);

static struct driver_state state_of(enum policy_state state, bool certain, const char *fmt, ...)
{
	struct driver_state ret = { .state = state, .certain = certain };
	va_list args;

	va_start(args, fmt);
	vsnprintf(ret.why, sizeof(ret.why), fmt, args);
	va_end(args);
	return ret;
}

/* citool's list, by Microsoft's own check: IsEnforced and IsAuthorized. */
static bool citool_has(const json_t *list, const char *id)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (ci_same_id(forecast__text(one, "id", ""), id) &&
		    json_is_true(json_object_get(one, "enforced")) &&
		    json_is_true(json_object_get(one, "authorized")))
			return true;
	}
	return false;
}

static bool state_by_citool(const json_t *ci, struct driver_state *ret)
{
	const json_t *list = forecast__inner(ci, "citool", "policies");

	if (!json_is_array(list))
		return false;
	if (citool_has(list, CI_POLICY_ENFORCED))
		*ret = state_of(POLICY_ENFORCED, true, "citool lists it as enforced");
	else if (citool_has(list, CI_POLICY_AUDIT))
		*ret = state_of(POLICY_EVALUATION, true, "citool lists its audit policy");
	else
		*ret = state_of(POLICY_ABSENT, true, "citool lists no policy of it in force");
	return true;
}

/* Event 3099 since the last boot: it was activated. */
static bool was_activated(const json_t *ci, const char *id)
{
	const json_t *one;
	size_t i;

	json_array_foreach(forecast__inner(ci, "events", "list"), i, one)
	{
		if (json_integer_value(json_object_get(one, "id")) == CI_EVENT_ACTIVATED &&
		    json_is_true(json_object_get(one, "since_boot")) &&
		    ci_same_id(forecast__text(one, "policy", ""), id))
			return true;
	}
	return false;
}

static bool state_by_events(const json_t *ci, struct driver_state *ret)
{
	if (was_activated(ci, CI_POLICY_ENFORCED))
		*ret = state_of(POLICY_ENFORCED, true,
				"event 3099 says that it was activated since the last boot");
	else if (was_activated(ci, CI_POLICY_AUDIT))
		*ret = state_of(POLICY_EVALUATION, true,
				"event 3099 says that its audit policy was activated since the "
				"last boot");
	else
		return false;
	return true;
}

/* From Windows' own folder, or from the EFI partition where that was to be seen. */
const json_t *forecast__policy_file(const json_t *ci, const char *id)
{
	static const char *const lists[] = { "policy_files", "efi_files" };
	const json_t *one;
	size_t i;

	for (size_t k = 0; k < ARRAY_SIZE(lists); k++)
		json_array_foreach(json_object_get(ci, lists[k]), i, one)
		{
			if (ci_same_id(forecast__text(one, "id", ""), id))
				return one;
		}
	return NULL;
}

static const char *log_problem(const json_t *ci)
{
	const char *problem = forecast__inner_text(ci, "events", "problem");

	return problem ? problem : "the log has no event 3099 of it since the last boot";
}

/* Its counters are there. */
bool forecast__is_counted(const json_t *context)
{
	return json_is_object(json_object_get(context, "driver_evaluation"));
}

/* A file is not yet a policy in force, and no file is not yet none: there may be one for EFI. */
static struct driver_state state_by_files(const json_t *ci, bool counted)
{
	const char *problem = forecast__inner_text(ci, "policy_folder", "problem");

	if (forecast__policy_file(ci, CI_POLICY_ENFORCED))
		return state_of(POLICY_UNKNOWN, false,
				"the file of its enforcement is there, but not that it is in force "
				"(%s)",
				log_problem(ci));
	if (forecast__policy_file(ci, CI_POLICY_AUDIT) && counted)
		return state_of(POLICY_EVALUATION, false,
				"the file of its audit policy and the counters are there");
	if (forecast__policy_file(ci, CI_POLICY_AUDIT) || counted)
		return state_of(POLICY_UNKNOWN, false,
				"%s, but nothing tells whether it is in force (%s)",
				counted ? "its counters are there"
					: "the file of its audit policy is there",
				log_problem(ci));
	if (problem)
		return state_of(POLICY_UNKNOWN, false, "the folder of policies: %s", problem);
	return state_of(
		POLICY_ABSENT, false, "neither a file nor a counter of it is there%s",
		json_is_object(json_object_get(ci, "efi_folder"))
			? ""
			: "; the EFI partition, which may have a file, has no drive letter");
}

struct driver_state forecast__policy_state(const struct forecast_input *in)
{
	const json_t *build = forecast__inner(in->facts, "os", "build");
	struct driver_state ret;

	if (state_by_citool(in->ci, &ret) || state_by_events(in->ci, &ret))
		return ret;
	if (json_is_integer(build) && json_integer_value(build) < BUILD_DRIVER_POLICY &&
	    !forecast__policy_file(in->ci, CI_POLICY_ENFORCED) &&
	    !forecast__policy_file(in->ci, CI_POLICY_AUDIT))
		return state_of(POLICY_ABSENT, true, "build %" PRIi64 " has none",
				(int64_t)json_integer_value(build));
	if (!json_is_object(in->ci))
		return state_of(POLICY_UNKNOWN, false, "nothing is known of this host's policies");
	return state_by_files(in->ci, forecast__is_counted(in->context));
}
