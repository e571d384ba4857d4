/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether Windows will load a driver, judged before anything is touched. Nothing is read here: what
 * the driver's file says (driver_signers.h) is set against what is known of the host, so that any
 * machine can judge for another one.
 *
 * From the update of April 2026 on, Windows 11 24H2 and later and Server 2025 stop trusting drivers
 * of the cross-signed programme: "Advancing Windows driver security: Removing trust for the
 * cross-signed driver program" (Windows IT Pro Blog, 2026-03-26), "The Windows Driver Policy"
 * (support.microsoft.com, ecd2a78c-750c-415d-93f2-e37302ce0443). At first what would be blocked is
 * only audited. After enough hours and boots without such a driver the policy is enforced, for
 * good; a driver that is flagged before starts the count again. Which drivers it flags is known
 * from these texts alone: whether one that is cross-signed first and attested in a nested signature
 * passes has been seen by nobody whom we could read, so it is said as probable.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_DRIVER_FORECAST_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_DRIVER_FORECAST_H

#include "agent/collect/acquire/preflight.h"
#include "agent/collect/host/driver.h"

/* In the order in which one wins over another. */
enum forecast {
	FORECAST_LOADS,    /* it will load */
	FORECAST_RESTARTS, /* and this host's evaluation of the policy will start again */
	FORECAST_UNKNOWN,
	FORECAST_BLOCKED,
	FORECASTS
};

/* "loads", "restarts-evaluation", "unknown", "blocked". */
const char *forecast_name(enum forecast f);

struct forecast_input {
	const json_t *driver;  /* driver_describe() or driver_session_inspect() */
	const json_t *facts;   /* host_describe() */
	const json_t *policy;  /* driver_policy_json() */
	const json_t *context; /* context_of_host(); NULL: its registry is not known */
	const json_t *ci;      /* ci_host_json(); null: nobody could ask */
};

/*
 * {"verdict":, "certain":, "driver_policy": "enforced", "evaluation", "absent" or "unknown",
 * "driver_policy_because":, "class": of its best signature, "none", or null, "reasons": [{"what":,
 * "verdict":, "certain":, "text":}], "help": text or null}. The caller owns it. Null of a host that
 * is no Windows; NULL if memory ran out.
 */
json_t *driver_forecast_json(const struct forecast_input *in);

/*
 * Of this machine, and of the driver that would be loaded. *ret is NULL if none would be, or this
 * is no Windows; *ret_ci is ci_host_json(), or NULL. The caller owns both.
 */
enum status driver_forecast_here(const struct driver_options *o, const char *source, json_t **ret,
				 json_t **ret_ci, struct err *e);

enum forecast driver_forecast_verdict(const json_t *forecast);

/* "will probably load", "will be blocked", … and why: one sentence, or two with what helps. */
void driver_forecast_text(const json_t *forecast, struct err *ret);

/* In the log, if there is a forecast: a warning unless the driver will simply load. */
void driver_forecast_tell(json_t *forecast);

/* As a finding, if there is a forecast; only what will certainly be blocked stops. */
void driver_forecast_check(const json_t *forecast, struct findings *to);

#endif
