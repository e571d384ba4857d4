/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources beside those in the header, all Microsoft Learn: "Driver Signing Policy" (Secure Boot and
 * cross-signed drivers), "The TESTSIGNING boot configuration option", "Understanding App Control
 * event IDs", "Microsoft recommended driver block rules". That the list of vulnerable drivers that
 * Windows applies is not the one that Microsoft publishes: CISA, VA-25-273-01.
 */
#include "agent/collect/acquire/driver_forecast.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "agent/collect/acquire/driver_policy.h"
#include "agent/collect/host/ci_host.h"
#include "agent/collect/host/context.h"
#include "agent/collect/host/host.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/log.h"

/* Windows 11 24H2 and Server 2025: the first that have the policy. */
#define BUILD_DRIVER_POLICY 26100

/* Windows 10 1607 (Windows release information). */
#define BUILD_10_1607       14393

/* SystemUptime counts what FILETIME counts (as people saw it grow). */
#define TICKS_PER_HOUR      UINT64_C(36000000000)

const char *forecast_name(enum forecast f)
{
	static const char *const names[FORECASTS] = {
		[FORECAST_LOADS] = "loads",
		[FORECAST_RESTARTS] = "restarts-evaluation",
		[FORECAST_UNKNOWN] = "unknown",
		[FORECAST_BLOCKED] = "blocked",
	};

	return names[f];
}

/*
 * JSON
 */

static const json_t *inner(const json_t *o, const char *section, const char *key)
{
	return json_object_get(json_object_get(o, section), key);
}

static const char *inner_text(const json_t *o, const char *section, const char *key)
{
	return json_string_value(inner(o, section, key));
}

static bool is_on(const struct forecast_input *in, const char *key)
{
	return json_is_true(json_object_get(in->policy, key));
}

static bool is_off(const struct forecast_input *in, const char *key)
{
	return json_is_false(json_object_get(in->policy, key));
}

/* A text of another's JSON: nothing of it is trusted to be there. */
static const char *text_or(const json_t *o, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : otherwise;
}

/*
 * Reasons
 */

struct judge {
	const struct forecast_input *in;
	json_t *reasons;
};

static void add_reason(const struct judge *j, const char *what, enum forecast verdict, bool certain,
		       const char *fmt, ...) PRINTF_LIKE(5, 6);

static void add_reason(const struct judge *j, const char *what, enum forecast verdict, bool certain,
		       const char *fmt, ...)
{
	char text[ERR_MESSAGE_MAX];
	va_list args;

	/* A kernel that does not say that it checks signatures may take anything. */
	if (verdict == FORECAST_BLOCKED && !is_on(j->in, "signatures_checked"))
		certain = false;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	json_array_append_new(j->reasons, json_pack("{s:s, s:s, s:b, s:o}", "what", what, "verdict",
						    forecast_name(verdict), "certain", certain,
						    "text", json_text(text)));
}

static enum forecast verdict_of(const json_t *o)
{
	const char *name = text_or(o, "verdict", "");

	for (unsigned f = 0; f < FORECASTS; f++)
		if (!strcmp(name, forecast_name((enum forecast)f)))
			return (enum forecast)f;
	return FORECAST_UNKNOWN;
}

/*
 * The worst verdict wins, and among equals what is certain; of those that let it load, the one that
 * is not.
 */
static unsigned weight_of(const json_t *reason)
{
	const enum forecast f = verdict_of(reason);
	const bool certain = json_is_true(json_object_get(reason, "certain"));

	return 2 * (unsigned)f + (f == FORECAST_LOADS ? !certain : certain);
}

static const json_t *heaviest(const json_t *reasons)
{
	const json_t *ret = json_array_get(reasons, 0), *one;
	size_t i;

	json_array_foreach(reasons, i, one)
	{
		if (weight_of(one) > weight_of(ret))
			ret = one;
	}
	return ret;
}

/*
 * The driver's signatures
 */

/* Best first: Windows takes the best signature that it finds. */
static const char *const classes[] = { "whcp", "attested", "cross-signed", "test", "other" };

/* Of all that are over the file; "none", or NULL: nobody can tell. */
static const char *best_class(const json_t *driver)
{
	const json_t *signers = json_object_get(driver, "signers"), *one;
	size_t i;

	if (!json_is_array(signers))
		return NULL;
	for (size_t c = 0; c < ARRAY_SIZE(classes); c++)
		json_array_foreach(signers, i, one)
		{
			if (!json_is_false(json_object_get(one, "covers_file")) &&
			    !strcmp(text_or(one, "class", ""), classes[c]))
				return classes[c];
		}
	return "none";
}

static bool has_cross_signature(const json_t *driver)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(driver, "signers"), i, one)
	{
		if (!strcmp(text_or(one, "class", ""), "cross-signed"))
			return true;
	}
	return false;
}

static void judge_no_signature(const struct judge *j)
{
	if (json_array_size(json_object_get(j->in->driver, "signers")))
		add_reason(j, "changed-file", FORECAST_BLOCKED, true,
			   "the file was changed after it was signed");
	else
		add_reason(j, "not-signed", FORECAST_BLOCKED, true, "the file is not signed");
}

static void judge_test_signature(const struct judge *j)
{
	if (is_on(j->in, "test_signing"))
		add_reason(j, "test-signed", FORECAST_LOADS, true,
			   "it is test-signed, and test signing is on");
	else if (is_off(j->in, "test_signing"))
		add_reason(j, "test-signed", FORECAST_BLOCKED, true,
			   "it is test-signed, and test signing is off");
	else
		add_reason(j, "test-signed", FORECAST_UNKNOWN, true,
			   "it is test-signed, and nothing tells whether test signing is on");
}

/*
 * Windows 10 1607 and later, installed afresh with Secure Boot, take no cross-signed driver whose
 * certificate is of after 2015-07-29; an installation that was upgraded does. WinPmem's are of 2018
 * and 2020.
 */
static void judge_cross_signature(const struct judge *j)
{
	const json_t *build = inner(j->in->facts, "os", "build");
	const bool older = json_is_integer(build) && json_integer_value(build) < BUILD_10_1607;

	if (is_on(j->in, "secure_boot") && !older)
		add_reason(j, "secure-boot", FORECAST_BLOCKED, false,
			   "it is cross-signed only, and with Secure Boot Windows 10 1607 and "
			   "later want Microsoft's own signature unless they were upgraded from an "
			   "earlier one");
	else
		add_reason(j, "cross-signed", FORECAST_LOADS, false, "it is cross-signed");
}

static void judge_attestation(const struct judge *j)
{
	if (is_on(j->in, "server") && is_on(j->in, "secure_boot"))
		add_reason(j, "server", FORECAST_BLOCKED, false,
			   "this is a Windows Server with Secure Boot, and Microsoft's attestation "
			   "is for desktop editions");
	else
		add_reason(j, "attested", FORECAST_LOADS, true, "Microsoft attested it");
}

/* CERT_E_REVOKED and TRUST_E_EXPLICIT_DISTRUST (winerror.h): by lists that the host has. */
static void judge_trust(const struct judge *j)
{
	const char *trust = text_or(j->in->driver, "trust", "");

	if (!strcmp(trust, "0x800b010c") || !strcmp(trust, "0x800b0111"))
		add_reason(j, "revoked", FORECAST_BLOCKED, false,
			   "its certificate is revoked or distrusted by a list of this host (%s)",
			   trust);
}

static void judge_signatures(const struct judge *j, const char *class)
{
	if (!class)
		add_reason(j, "signers-unknown", FORECAST_UNKNOWN, true,
			   "who signed it cannot be read from its file");
	else if (!strcmp(class, "none"))
		judge_no_signature(j);
	else if (!strcmp(class, "test"))
		judge_test_signature(j);
	else if (!strcmp(class, "cross-signed"))
		judge_cross_signature(j);
	else if (!strcmp(class, "attested"))
		judge_attestation(j);
	else if (!strcmp(class, "whcp"))
		add_reason(j, "whcp", FORECAST_LOADS, true, "it passed Microsoft's tests");
	else
		add_reason(j, "other-authority", FORECAST_BLOCKED, false,
			   "no signature in it is of Microsoft, or of an authority that Microsoft "
			   "cross-certified");
	judge_trust(j);
}

/*
 * The Windows Driver Policy
 */

enum policy_state { POLICY_ABSENT, POLICY_EVALUATION, POLICY_ENFORCED, POLICY_UNKNOWN };

struct driver_state {
	enum policy_state state;
	bool certain;
	char why[ERR_MESSAGE_MAX / 2];
};

static const char *const state_names[] = {
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
		if (ci_same_id(text_or(one, "id", ""), id) &&
		    json_is_true(json_object_get(one, "enforced")) &&
		    json_is_true(json_object_get(one, "authorized")))
			return true;
	}
	return false;
}

static bool state_by_citool(const json_t *ci, struct driver_state *ret)
{
	const json_t *list = inner(ci, "citool", "policies");

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

	json_array_foreach(inner(ci, "events", "list"), i, one)
	{
		if (json_integer_value(json_object_get(one, "id")) == CI_EVENT_ACTIVATED &&
		    json_is_true(json_object_get(one, "since_boot")) &&
		    ci_same_id(text_or(one, "policy", ""), id))
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
static const json_t *policy_file(const json_t *ci, const char *id)
{
	static const char *const lists[] = { "policy_files", "efi_files" };
	const json_t *one;
	size_t i;

	for (size_t k = 0; k < ARRAY_SIZE(lists); k++)
		json_array_foreach(json_object_get(ci, lists[k]), i, one)
		{
			if (ci_same_id(text_or(one, "id", ""), id))
				return one;
		}
	return NULL;
}

static const char *log_problem(const json_t *ci)
{
	const char *problem = inner_text(ci, "events", "problem");

	return problem ? problem : "the log has no event 3099 of it since the last boot";
}

/* Its counters are there. */
static bool is_counted(const json_t *context)
{
	return json_is_object(json_object_get(context, "driver_evaluation"));
}

/* A file is not yet a policy in force, and no file is not yet none: there may be one for EFI. */
static struct driver_state state_by_files(const json_t *ci, bool counted)
{
	const char *problem = inner_text(ci, "policy_folder", "problem");

	if (policy_file(ci, CI_POLICY_ENFORCED))
		return state_of(POLICY_UNKNOWN, false,
				"the file of its enforcement is there, but not that it is in force "
				"(%s)",
				log_problem(ci));
	if (policy_file(ci, CI_POLICY_AUDIT) && counted)
		return state_of(POLICY_EVALUATION, false,
				"the file of its audit policy and the counters are there");
	if (policy_file(ci, CI_POLICY_AUDIT) || counted)
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

static struct driver_state driver_state(const struct forecast_input *in)
{
	const json_t *build = inner(in->facts, "os", "build");
	struct driver_state ret;

	if (state_by_citool(in->ci, &ret) || state_by_events(in->ci, &ret))
		return ret;
	if (json_is_integer(build) && json_integer_value(build) < BUILD_DRIVER_POLICY &&
	    !policy_file(in->ci, CI_POLICY_ENFORCED) && !policy_file(in->ci, CI_POLICY_AUDIT))
		return state_of(POLICY_ABSENT, true, "build %" PRIi64 " has none",
				(int64_t)json_integer_value(build));
	if (!json_is_object(in->ci))
		return state_of(POLICY_UNKNOWN, false, "nothing is known of this host's policies");
	return state_by_files(in->ci, is_counted(in->context));
}

/* As far as the registry has these values: their names are as people saw them. */
static void tell_progress(const json_t *context, char *text, size_t size)
{
	const json_t *boots = inner(context, "driver_evaluation", "NumBootSessions");
	const json_t *uptime = inner(context, "driver_evaluation", "SystemUptime");

	if (json_is_integer(boots) && json_is_integer(uptime))
		snprintf(text, size, "; %" PRIu64 " boots and %" PRIu64 " hours so far",
			 (uint64_t)json_integer_value(boots),
			 (uint64_t)json_integer_value(uptime) / TICKS_PER_HOUR);
	else if (is_counted(context))
		snprintf(text, size, "; %s is missing among its counters",
			 json_is_integer(boots) ? "SystemUptime" : "NumBootSessions");
	else
		snprintf(text, size, "; its counters are not known");
}

static bool same_text(const char *text, const char *want)
{
	return text && !strcmp(text, want);
}

/* Rules that go by a file's name are not judged. */
static bool is_not_allowed(const json_t *file)
{
	return same_text(json_string_value(json_object_get(file, "allows")), "no") &&
	       !json_is_true(json_object_get(file, "by_name"));
}

static void tell_allow_list(const json_t *file, char *text, size_t size)
{
	const char *problem = json_string_value(json_object_get(file, "problem"));

	snprintf(text, size, ", but may be on its allow list%s%s%s", problem ? " (" : "",
		 problem ? problem : "", problem ? ")" : "");
}

/* Cross-signed only, or of another authority: what the policy is about. */
static void judge_distrusted(const struct judge *j, const struct driver_state *s)
{
	const bool enforced = s->state == POLICY_ENFORCED;
	const json_t *file =
		policy_file(j->in->ci, enforced ? CI_POLICY_ENFORCED : CI_POLICY_AUDIT);
	const char *allowed = json_string_value(json_object_get(file, "allows"));
	char progress[96] = "", unless[160] = "";

	if (!is_not_allowed(file))
		tell_allow_list(file, unless, sizeof(unless));
	if (same_text(allowed, "yes")) {
		add_reason(j, "allow-list", FORECAST_LOADS, false,
			   "the Windows Driver Policy's allow list names it");
	} else if (enforced) {
		add_reason(j, "driver-policy", FORECAST_BLOCKED, s->certain && !*unless,
			   "the Windows Driver Policy is enforced (%s): it takes no driver that is "
			   "not signed by Microsoft; this one is not%s",
			   s->why, unless);
	} else {
		tell_progress(j->in->context, progress, sizeof(progress));
		add_reason(j, "driver-policy", FORECAST_RESTARTS, s->certain && !*unless,
			   "the Windows Driver Policy is being evaluated (%s%s), and a driver that "
			   "is not signed by Microsoft starts that again; this one is not%s",
			   s->why, progress, unless);
	}
}

/*
 * The kernel's own bit (context_flags.h). Whether it is the Windows Driver Policy that sets it
 * nobody has told; if so, it takes what that takes.
 */
static void judge_whql(const struct judge *j, const struct driver_state *s, const char *class)
{
	const bool by_policy = s->state == POLICY_ENFORCED && same_text(class, "attested");

	if (is_on(j->in, "whql_enforcement") && !same_text(class, "whcp") && !by_policy)
		add_reason(j, "whql-enforcement", FORECAST_BLOCKED, false,
			   "Windows loads only drivers that passed Microsoft's tests here, which "
			   "this one did not");
}

static void judge_driver_policy(const struct judge *j, const struct driver_state *s,
				const char *class)
{
	const bool attested = same_text(class, "attested"), whcp = same_text(class, "whcp");

	if (s->state == POLICY_ABSENT) {
		if (!s->certain)
			add_reason(j, "driver-policy", FORECAST_LOADS, false,
				   "the Windows Driver Policy is probably not here: %s", s->why);
	} else if (whcp || (attested && !has_cross_signature(j->in->driver))) {
		add_reason(j, "driver-policy", FORECAST_LOADS, whcp,
			   "the Windows Driver Policy takes drivers that Microsoft signed");
	} else if (attested) {
		add_reason(j, "driver-policy", FORECAST_LOADS, false,
			   "the Windows Driver Policy takes drivers that Microsoft signed; this "
			   "one is cross-signed first and attested in a nested signature, which "
			   "nobody has yet reported to pass");
	} else if (s->state == POLICY_UNKNOWN) {
		add_reason(j, "driver-policy", FORECAST_UNKNOWN, true,
			   "it is not signed by Microsoft, and whether the Windows Driver Policy "
			   "is in force cannot be told: %s",
			   s->why);
	} else {
		judge_distrusted(j, s);
	}
}

/*
 * Lists and other policies
 */

/* Which list was asked: the published one has entries that the one of Windows lacks. */
static void judge_block_list(const struct judge *j)
{
	const json_t *list = json_object_get(j->in->ci, "block_list");
	const char *denies = json_string_value(json_object_get(list, "denies"));
	const char *path = text_or(list, "path", "driversipolicy.p7b");
	const char *version = text_or(list, "version", "unknown");
	const char *by = text_or(j->in->policy, "blocklist_by", "a setting");

	if (!is_on(j->in, "blocklist"))
		return;
	if (same_text(denies, "yes"))
		add_reason(j, "block-list", FORECAST_BLOCKED, true,
			   "the list of vulnerable drivers is in force (by %s) and names it: %s, "
			   "version %s",
			   by, path, version);
	else if (same_text(denies, "maybe"))
		add_reason(j, "block-list", FORECAST_UNKNOWN, true,
			   "the list of vulnerable drivers is in force (by %s), and a rule of it "
			   "with further conditions names one of its certificates: %s, version %s",
			   by, path, version);
	else if (same_text(denies, "no"))
		add_reason(j, "block-list", FORECAST_LOADS,
			   !json_is_true(json_object_get(list, "by_name")),
			   "the list of vulnerable drivers is in force (by %s) and names neither "
			   "its hash nor its certificates: %s, version %s, which is this host's "
			   "and not the longer one that Microsoft publishes",
			   by, path, version);
	else
		add_reason(j, "block-list", FORECAST_LOADS, false,
			   "the list of vulnerable drivers is in force (by %s), and could not be "
			   "asked: %s",
			   by, text_or(list, "problem", "it was not read"));
}

static void judge_other_policy(const struct judge *j, const json_t *file)
{
	const char *id = text_or(file, "id", "?"), *path = text_or(file, "path", "?");
	const char *problem = text_or(file, "problem", "");

	if (ci_is_inbox(id) || json_is_true(json_object_get(file, "audit")))
		return;
	if (same_text(json_string_value(json_object_get(file, "denies")), "yes"))
		add_reason(j, "app-control", FORECAST_BLOCKED, false,
			   "an App Control policy of this organisation names it to be blocked: %s",
			   path);
	else if (same_text(json_string_value(json_object_get(file, "allows")), "yes"))
		add_reason(j, "app-control", FORECAST_LOADS, false,
			   "an App Control policy of this organisation allows it: %s", path);
	else
		add_reason(j, "app-control", FORECAST_UNKNOWN, true,
			   "this organisation has an App Control policy, and what it makes of the "
			   "driver is not judged here: %s%s%s",
			   path, *problem ? ": " : "", problem);
}

static void judge_other_policies(const struct judge *j)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(j->in->ci, "policy_files"), i, one)
		judge_other_policy(j, one);
	if (is_on(j->in, "memory_integrity"))
		add_reason(j, "memory-integrity", FORECAST_LOADS, false,
			   "memory integrity (HVCI) is on, which may refuse it");
	if (json_integer_value(inner(j->in->context, "security", "smart_app_control")) == 1)
		add_reason(j, "smart-app-control", FORECAST_LOADS, false,
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

		if (text && (!strcasecmp(text, text_or(driver, "authenticode_sha256", "-")) ||
			     !strcasecmp(text, text_or(driver, "sha256", "-"))))
			return true;
	}
	return false;
}

static void judge_event(const struct judge *j, const json_t *event)
{
	const char *time = text_or(event, "time", "?"), *policy = text_or(event, "policy", "?");

	switch (json_integer_value(json_object_get(event, "id"))) {
	case CI_EVENT_BLOCKED:
		add_reason(j, "was-blocked", FORECAST_BLOCKED, false,
			   "it was blocked here before (event 3077 of %s, policy %s)", time,
			   policy);
		break;
	case CI_EVENT_AUDITED:
		if (ci_same_id(policy, CI_POLICY_AUDIT))
			add_reason(j, "was-flagged", FORECAST_RESTARTS, false,
				   "the Windows Driver Policy flagged it here before (event 3076 "
				   "of %s)",
				   time);
		break;
	}
}

static void judge_events(const struct judge *j)
{
	const json_t *one;
	size_t i;

	json_array_foreach(inner(j->in->ci, "events", "list"), i, one)
	{
		if (names_driver(one, j->in->driver))
			judge_event(j, one);
	}
}

/*
 * All together
 */

/* What to do about it, by the reason that decided. */
static const char *help_for(enum forecast f, const char *what)
{
	if (f == FORECAST_LOADS)
		return NULL;
	if (f == FORECAST_RESTARTS)
		return "use a driver that Microsoft attested (WinPmem 2.0.1), or take the memory "
		       "from the hypervisor, and the evaluation goes on";
	if (!strcmp(what, "changed-file"))
		return "get the file again";
	if (!strcmp(what, "driver-policy") || !strcmp(what, "cross-signed") ||
	    !strcmp(what, "secure-boot") || !strcmp(what, "not-signed") ||
	    !strcmp(what, "test-signed") || !strcmp(what, "other-authority"))
		return "use a driver that Microsoft attested (WinPmem 2.0.1), have an App Control "
		       "policy that is signed for this host's Secure Boot allow it, or take the "
		       "memory from the hypervisor";
	if (!strcmp(what, "app-control"))
		return "have that policy allow the driver's SHA-256";
	return "use another driver, or take the memory from the hypervisor";
}

static void judge_all(const struct judge *j, const struct driver_state *s, const char *class)
{
	if (is_off(j->in, "signatures_checked")) {
		add_reason(j, "signatures-unchecked", FORECAST_LOADS, true,
			   "Windows does not check the signatures of drivers here");
		return;
	}
	judge_signatures(j, class);
	/* What is not signed for any Windows gets no further. */
	if (class && strcmp(class, "none") != 0) {
		judge_whql(j, s, class);
		judge_driver_policy(j, s, class);
	}
	judge_block_list(j);
	judge_other_policies(j);
	judge_events(j);
}

json_t *driver_forecast_json(const struct forecast_input *in)
{
	const char *class = best_class(in->driver), *what;
	const struct driver_state s = driver_state(in);
	const struct judge j = { .in = in, .reasons = json_array() };
	const json_t *first;
	enum forecast f;

	if (!json_is_object(in->policy) || !j.reasons) {
		json_decref(j.reasons);
		return json_is_object(in->policy) ? NULL : json_null();
	}
	judge_all(&j, &s, class);
	first = heaviest(j.reasons);
	f = verdict_of(first);
	what = text_or(first, "what", "");
	return json_pack("{s:s, s:b, s:s, s:s, s:s?, s:o, s:s?}", "verdict", forecast_name(f),
			 "certain", json_is_true(json_object_get(first, "certain")),
			 "driver_policy", state_names[s.state], "driver_policy_because", s.why,
			 "class", class, "reasons", j.reasons, "help", help_for(f, what));
}

/* What cannot be found out of the driver its loading says in a moment. */
enum status driver_forecast_here(const struct driver_options *o, const char *source, json_t **ret,
				 json_t **ret_ci, struct err *e)
{
	struct ci_subject subject;
	json_t *driver = NULL, *facts = NULL, *context = NULL, *policy;
	enum status st = ST_OK;

	*ret = *ret_ci = NULL;
	if (driver_session_inspect(o, source, &driver, NULL) || !driver)
		return ST_OK;
	if (!driver_session_subject(o, &subject, NULL))
		st = host_describe(0, NULL, &facts, e);
	if (!st && facts) {
		if (context_of_host(&context, NULL))
			context = NULL;
		policy = driver_policy_json(facts, context);
		*ret_ci = ci_host_json(&subject, false);
		if (policy && *ret_ci)
			*ret = driver_forecast_json(&(struct forecast_input){ driver, facts, policy,
									      context, *ret_ci });
		json_decref(policy);
		st = *ret ? ST_OK : err_nomem(e);
	}
	json_decref(driver);
	json_decref(facts);
	json_decref(context);
	return st;
}

enum forecast driver_forecast_verdict(const json_t *forecast)
{
	return verdict_of(forecast);
}

void driver_forecast_text(const json_t *forecast, struct err *ret)
{
	static const char *const sure[FORECASTS] = {
		[FORECAST_LOADS] = "will load",
		[FORECAST_RESTARTS] = ("will load and restart this host's evaluation of the "
				       "Windows Driver Policy"),
		[FORECAST_UNKNOWN] = "may or may not load",
		[FORECAST_BLOCKED] = "will be blocked",
	};
	static const char *const probable[FORECASTS] = {
		[FORECAST_LOADS] = "will probably load",
		[FORECAST_RESTARTS] = ("will probably load and restart this host's evaluation of "
				       "the Windows Driver Policy"),
		[FORECAST_UNKNOWN] = "may or may not load",
		[FORECAST_BLOCKED] = "will probably be blocked",
	};
	const enum forecast f = verdict_of(forecast);
	const bool certain = json_is_true(json_object_get(forecast, "certain"));
	const json_t *first = heaviest(json_object_get(forecast, "reasons"));
	const char *help = text_or(forecast, "help", "");

	err_set(ret, ST_OK, "%s, because %s%s%s", (certain ? sure : probable)[f],
		text_or(first, "text", "?"), *help ? "; " : "", help);
}

void driver_forecast_tell(json_t *forecast)
{
	struct err text = ERR_INIT;

	if (!json_is_object(forecast))
		return;
	driver_forecast_text(forecast, &text);
	if (verdict_of(forecast) == FORECAST_LOADS)
		log_info_with(JSON_FIELDS(field_json("forecast", json_incref(forecast))),
			      "driver-forecast", "the driver %s", text.message);
	else
		log_warning_with(JSON_FIELDS(field_json("forecast", json_incref(forecast))),
				 "driver-forecast", "the driver %s", text.message);
}

void driver_forecast_check(const json_t *forecast, struct findings *to)
{
	const bool certain = json_is_true(json_object_get(forecast, "certain"));
	struct err text = ERR_INIT;

	if (!json_is_object(forecast))
		return;
	driver_forecast_text(forecast, &text);
	findings_add(to, verdict_of(forecast) == FORECAST_BLOCKED && certain ? ST_NO_SOURCE : ST_OK,
		     "driver-forecast", "the driver %s", text.message);
}
