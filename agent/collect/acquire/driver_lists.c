/* SPDX-License-Identifier: Apache-2.0 */
/* What the list of vulnerable drivers, other policies and events of a host say of a driver. */
#include <string.h>

#include "agent/collect/acquire/driver_forecast_internal.h"
#include "agent/collect/host/ci_host.h"

/* Which list was asked: the published one has entries that the one of Windows lacks. */
void forecast__judge_block_list(const struct judge *j)
{
	const json_t *list = json_object_get(j->in->ci, "block_list");
	const char *denies = json_string_value(json_object_get(list, "denies"));
	const char *path = forecast__text(list, "path", "driversipolicy.p7b");
	const char *version = forecast__text(list, "version", "unknown");
	const char *by = forecast__text(j->in->policy, "blocklist_by", "a setting");

	if (!forecast__is_on(j->in, "blocklist"))
		return;
	if (forecast__same(denies, "yes"))
		forecast__add(
			j, "block-list", FORECAST_BLOCKED, true,
			"the list of vulnerable drivers is in force (by %s) and names it: %s, "
			"version %s",
			by, path, version);
	else if (forecast__same(denies, "maybe"))
		forecast__add(
			j, "block-list", FORECAST_UNKNOWN, true,
			"the list of vulnerable drivers is in force (by %s), and a rule of it "
			"with further conditions names one of its certificates: %s, version %s",
			by, path, version);
	else if (forecast__same(denies, "no"))
		forecast__add(
			j, "block-list", FORECAST_LOADS,
			!json_is_true(json_object_get(list, "by_name")),
			"the list of vulnerable drivers is in force (by %s) and names neither "
			"its hash nor its certificates: %s, version %s, which is this host's "
			"and not the longer one that Microsoft publishes",
			by, path, version);
	else if (json_is_string(json_object_get(list, "version")) &&
		 !json_is_string(json_object_get(list, "problem")))
		forecast__add(
			j, "block-list", FORECAST_LOADS, false,
			"the list of vulnerable drivers is in force (by %s), and was not asked "
			"about this file ('driver inspect FILE.sys' on that host asks it)",
			by);
	else
		forecast__add(
			j, "block-list", FORECAST_LOADS, false,
			"the list of vulnerable drivers is in force (by %s), and could not be "
			"asked: %s",
			by, forecast__text(list, "problem", "it was not read"));
}

static void judge_other_policy(const struct judge *j, const json_t *file)
{
	const char *id = forecast__text(file, "id", "?"), *path = forecast__text(file, "path", "?");
	const char *problem = forecast__text(file, "problem", "");

	if (ci_is_inbox(id) || json_is_true(json_object_get(file, "audit")))
		return;
	if (forecast__same(json_string_value(json_object_get(file, "denies")), "yes"))
		forecast__add(
			j, "app-control", FORECAST_BLOCKED, false,
			"an App Control policy of this organisation names it to be blocked: %s",
			path);
	else if (forecast__same(json_string_value(json_object_get(file, "allows")), "yes"))
		forecast__add(j, "app-control", FORECAST_LOADS, false,
			      "an App Control policy of this organisation allows it: %s", path);
	else
		forecast__add(
			j, "app-control", FORECAST_UNKNOWN, true,
			"this organisation has an App Control policy, and what it makes of the "
			"driver is not judged here: %s%s%s",
			path, *problem ? ": " : "", problem);
}

void forecast__judge_policies(const struct judge *j)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(j->in->ci, "policy_files"), i, one)
		judge_other_policy(j, one);
	if (forecast__is_on(j->in, "memory_integrity"))
		forecast__add(j, "memory-integrity", FORECAST_LOADS, false,
			      "memory integrity (HVCI) is on, which may refuse it");
	if (json_integer_value(forecast__inner(j->in->context, "security", "smart_app_control")) ==
	    1)
		forecast__add(
			j, "smart-app-control", FORECAST_LOADS, false,
			"Smart App Control is on, which brings the list of vulnerable drivers");
}

/* The hash is that of the program's image, in some events that of the whole file. */
static bool names_driver(const json_t *event, const json_t *driver)
{
	const json_t *hash;
	size_t i;

	json_array_foreach(json_object_get(event, "hashes"), i, hash)
	{
		const char *text = json_string_value(hash);

		if (text &&
		    (!strcasecmp(text, forecast__text(driver, "authenticode_sha256", "-")) ||
		     !strcasecmp(text, forecast__text(driver, "sha256", "-"))))
			return true;
	}
	return false;
}

static void judge_event(const struct judge *j, const json_t *event)
{
	const char *time = forecast__text(event, "time", "?"),
		   *policy = forecast__text(event, "policy", "?");

	switch (json_integer_value(json_object_get(event, "id"))) {
	case CI_EVENT_BLOCKED:
		forecast__add(j, "was-blocked", FORECAST_BLOCKED, false,
			      "it was blocked here before (event 3077 of %s, policy %s)", time,
			      policy);
		break;
	case CI_EVENT_AUDITED:
		if (ci_same_id(policy, CI_POLICY_AUDIT))
			forecast__add(
				j, "was-flagged", FORECAST_RESTARTS, false,
				"the Windows Driver Policy flagged it here before (event 3076 "
				"of %s)",
				time);
		break;
	}
}

void forecast__judge_events(const struct judge *j)
{
	const json_t *one;
	size_t i;

	json_array_foreach(forecast__inner(j->in->ci, "events", "list"), i, one)
	{
		if (names_driver(one, j->in->driver))
			judge_event(j, one);
	}
}
