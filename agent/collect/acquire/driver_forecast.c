/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources beside those in the header, all Microsoft Learn: "Driver Signing Policy" (Secure Boot and
 * cross-signed drivers), "The TESTSIGNING boot configuration option", "Understanding App Control
 * event IDs", "Microsoft recommended driver block rules". That the list of vulnerable drivers that
 * Windows applies is not the one that Microsoft publishes: CISA, VA-25-273-01.
 */
#include "agent/collect/acquire/driver_forecast_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "agent/collect/acquire/driver_policy.h"
#include "agent/collect/host/ci_host.h"
#include "agent/collect/host/context.h"
#include "agent/collect/host/host.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/log.h"

/* Windows 10 1607 (Windows release information). */
#define BUILD_10_1607  14393

/* SystemUptime counts what FILETIME counts (as people saw it grow). */
#define TICKS_PER_HOUR UINT64_C(36000000000)

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

const json_t *forecast__inner(const json_t *o, const char *section, const char *key)
{
	return json_object_get(json_object_get(o, section), key);
}

const char *forecast__inner_text(const json_t *o, const char *section, const char *key)
{
	return json_string_value(forecast__inner(o, section, key));
}

bool forecast__is_on(const struct forecast_input *in, const char *key)
{
	return json_is_true(json_object_get(in->policy, key));
}

bool forecast__is_off(const struct forecast_input *in, const char *key)
{
	return json_is_false(json_object_get(in->policy, key));
}

/* A text of another's JSON: nothing of it is trusted to be there. */
const char *forecast__text(const json_t *o, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : otherwise;
}

bool forecast__same(const char *text, const char *want)
{
	return text && !strcmp(text, want);
}

/*
 * Reasons
 */

void forecast__add(const struct judge *j, const char *what, enum forecast verdict, bool certain,
		   const char *fmt, ...)
{
	char text[ERR_MESSAGE_MAX];
	va_list args;

	/* A kernel that does not say that it checks signatures may take anything. */
	if (verdict == FORECAST_BLOCKED && !forecast__is_on(j->in, "signatures_checked"))
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
	const char *name = forecast__text(o, "verdict", "");

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
			    !strcmp(forecast__text(one, "class", ""), classes[c]))
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
		if (!strcmp(forecast__text(one, "class", ""), "cross-signed"))
			return true;
	}
	return false;
}

static void judge_no_signature(const struct judge *j)
{
	if (json_array_size(json_object_get(j->in->driver, "signers")))
		forecast__add(j, "changed-file", FORECAST_BLOCKED, true,
			      "the file was changed after it was signed");
	else
		forecast__add(j, "not-signed", FORECAST_BLOCKED, true, "the file is not signed");
}

static void judge_test_signature(const struct judge *j)
{
	if (forecast__is_on(j->in, "test_signing"))
		forecast__add(j, "test-signed", FORECAST_LOADS, true,
			      "it is test-signed, and test signing is on");
	else if (forecast__is_off(j->in, "test_signing"))
		forecast__add(j, "test-signed", FORECAST_BLOCKED, true,
			      "it is test-signed, and test signing is off");
	else
		forecast__add(j, "test-signed", FORECAST_UNKNOWN, true,
			      "it is test-signed, and nothing tells whether test signing is on");
}

/*
 * Windows 10 1607 and later, installed afresh with Secure Boot, take no cross-signed driver whose
 * certificate is of after 2015-07-29; an installation that was upgraded does. WinPmem's are of 2018
 * and 2020.
 */
static void judge_cross_signature(const struct judge *j)
{
	const json_t *build = forecast__inner(j->in->facts, "os", "build");
	const bool older = json_is_integer(build) && json_integer_value(build) < BUILD_10_1607;

	if (forecast__is_on(j->in, "secure_boot") && !older)
		forecast__add(
			j, "secure-boot", FORECAST_BLOCKED, false,
			"it is cross-signed only, and with Secure Boot Windows 10 1607 and "
			"later want Microsoft's own signature unless they were upgraded from an "
			"earlier one");
	else
		forecast__add(j, "cross-signed", FORECAST_LOADS, false, "it is cross-signed");
}

static void judge_attestation(const struct judge *j)
{
	if (forecast__is_on(j->in, "server") && forecast__is_on(j->in, "secure_boot"))
		forecast__add(
			j, "server", FORECAST_BLOCKED, false,
			"this is a Windows Server with Secure Boot, and Microsoft's attestation "
			"is for desktop editions");
	else
		forecast__add(j, "attested", FORECAST_LOADS, true, "Microsoft attested it");
}

/* CERT_E_REVOKED and TRUST_E_EXPLICIT_DISTRUST (winerror.h): by lists that the host has. */
static void judge_trust(const struct judge *j)
{
	const char *trust = forecast__text(j->in->driver, "trust", "");

	if (!strcmp(trust, "0x800b010c") || !strcmp(trust, "0x800b0111"))
		forecast__add(
			j, "revoked", FORECAST_BLOCKED, false,
			"its certificate is revoked or distrusted by a list of this host (%s)",
			trust);
}

static void judge_signatures(const struct judge *j, const char *class)
{
	if (!class)
		forecast__add(j, "signers-unknown", FORECAST_UNKNOWN, true,
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
		forecast__add(j, "whcp", FORECAST_LOADS, true, "it passed Microsoft's tests");
	else
		forecast__add(
			j, "other-authority", FORECAST_BLOCKED, false,
			"no signature in it is of Microsoft, or of an authority that Microsoft "
			"cross-certified");
	judge_trust(j);
}

/* As far as the registry has these values: their names are as people saw them. */
static void tell_progress(const json_t *context, char *text, size_t size)
{
	const json_t *boots = forecast__inner(context, "driver_evaluation", "NumBootSessions");
	const json_t *uptime = forecast__inner(context, "driver_evaluation", "SystemUptime");

	if (json_is_integer(boots) && json_is_integer(uptime))
		snprintf(text, size, "; %" PRIu64 " boots and %" PRIu64 " hours so far",
			 (uint64_t)json_integer_value(boots),
			 (uint64_t)json_integer_value(uptime) / TICKS_PER_HOUR);
	else if (forecast__is_counted(context))
		snprintf(text, size, "; %s is missing among its counters",
			 json_is_integer(boots) ? "SystemUptime" : "NumBootSessions");
	else
		snprintf(text, size, "; its counters are not known");
}

/* Rules that go by a file's name are not judged. */
static bool is_not_allowed(const json_t *file)
{
	return forecast__same(json_string_value(json_object_get(file, "allows")), "no") &&
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
		forecast__policy_file(j->in->ci, enforced ? CI_POLICY_ENFORCED : CI_POLICY_AUDIT);
	const char *allowed = json_string_value(json_object_get(file, "allows"));
	char progress[96] = "", unless[160] = "";

	if (!is_not_allowed(file))
		tell_allow_list(file, unless, sizeof(unless));
	if (forecast__same(allowed, "yes")) {
		forecast__add(j, "allow-list", FORECAST_LOADS, false,
			      "the Windows Driver Policy's allow list names it");
	} else if (enforced) {
		forecast__add(
			j, "driver-policy", FORECAST_BLOCKED, s->certain && !*unless,
			"the Windows Driver Policy is enforced (%s): it takes no driver that is "
			"not signed by Microsoft; this one is not%s",
			s->why, unless);
	} else {
		tell_progress(j->in->context, progress, sizeof(progress));
		forecast__add(
			j, "driver-policy", FORECAST_RESTARTS, s->certain && !*unless,
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
	const bool by_policy = s->state == POLICY_ENFORCED && forecast__same(class, "attested");

	if (forecast__is_on(j->in, "whql_enforcement") && !forecast__same(class, "whcp") &&
	    !by_policy)
		forecast__add(
			j, "whql-enforcement", FORECAST_BLOCKED, false,
			"Windows loads only drivers that passed Microsoft's tests here, which "
			"this one did not");
}

static void judge_driver_policy(const struct judge *j, const struct driver_state *s,
				const char *class)
{
	const bool attested = forecast__same(class, "attested"),
		   whcp = forecast__same(class, "whcp");

	if (s->state == POLICY_ABSENT) {
		if (!s->certain)
			forecast__add(j, "driver-policy", FORECAST_LOADS, false,
				      "the Windows Driver Policy is probably not here: %s", s->why);
	} else if (whcp || (attested && !has_cross_signature(j->in->driver))) {
		forecast__add(j, "driver-policy", FORECAST_LOADS, whcp,
			      "the Windows Driver Policy takes drivers that Microsoft signed");
	} else if (attested) {
		forecast__add(j, "driver-policy", FORECAST_LOADS, false,
			      "the Windows Driver Policy takes drivers that Microsoft signed; this "
			      "one is cross-signed first and attested in a nested signature, which "
			      "nobody has yet reported to pass");
	} else if (s->state == POLICY_UNKNOWN) {
		forecast__add(
			j, "driver-policy", FORECAST_UNKNOWN, true,
			"it is not signed by Microsoft, and whether the Windows Driver Policy "
			"is in force cannot be told: %s",
			s->why);
	} else {
		judge_distrusted(j, s);
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
	if (forecast__is_off(j->in, "signatures_checked")) {
		forecast__add(j, "signatures-unchecked", FORECAST_LOADS, true,
			      "Windows does not check the signatures of drivers here");
		return;
	}
	judge_signatures(j, class);
	/* What is not signed for any Windows gets no further. */
	if (class && strcmp(class, "none") != 0) {
		judge_whql(j, s, class);
		judge_driver_policy(j, s, class);
	}
	forecast__judge_block_list(j);
	forecast__judge_policies(j);
	forecast__judge_events(j);
}

json_t *driver_forecast_json(const struct forecast_input *in)
{
	const char *class = best_class(in->driver), *what;
	const struct driver_state s = forecast__policy_state(in);
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
	what = forecast__text(first, "what", "");
	return json_pack("{s:s, s:b, s:s, s:s, s:s?, s:o, s:s?}", "verdict", forecast_name(f),
			 "certain", json_is_true(json_object_get(first, "certain")),
			 "driver_policy", forecast__state_names[s.state], "driver_policy_because",
			 s.why, "class", class, "reasons", j.reasons, "help", help_for(f, what));
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
	const char *help = forecast__text(forecast, "help", "");

	err_set(ret, ST_OK, "%s, because %s%s%s", (certain ? sure : probable)[f],
		forecast__text(first, "text", "?"), *help ? "; " : "", help);
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
