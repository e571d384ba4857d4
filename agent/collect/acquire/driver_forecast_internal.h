/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between driver_forecast.c, which judges, driver_policy_state.c, which finds out the state of the
 * Windows Driver Policy, and driver_lists.c, which asks lists, other policies and events.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_DRIVER_FORECAST_INTERNAL_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_DRIVER_FORECAST_INTERNAL_H

#include "agent/collect/acquire/driver_forecast.h"

struct judge {
	const struct forecast_input *in;
	json_t *reasons;
};

/* Adds a reason, with its text. */
void forecast__add(const struct judge *j, const char *what, enum forecast verdict, bool certain,
		   const char *fmt, ...) PRINTF_LIKE(5, 6);

/* Members of another's JSON, of which nothing is trusted to be there. NULL: it is not. */
const json_t *forecast__inner(const json_t *o, const char *section, const char *key);
const char *forecast__inner_text(const json_t *o, const char *section, const char *key);
const char *forecast__text(const json_t *o, const char *key, const char *otherwise);
/* What driver_policy_json() says of the host: certainly so, certainly not so. */
bool forecast__is_on(const struct forecast_input *in, const char *key);
bool forecast__is_off(const struct forecast_input *in, const char *key);
/* False also for NULL. */
bool forecast__same(const char *text, const char *want);

/*
 * The Windows Driver Policy
 */

enum policy_state { POLICY_ABSENT, POLICY_EVALUATION, POLICY_ENFORCED, POLICY_UNKNOWN };

struct driver_state {
	enum policy_state state;
	bool certain;
	char why[ERR_MESSAGE_MAX / 2];
};

/* "absent", "evaluation", ... */
extern const char *const forecast__state_names[];

struct driver_state forecast__policy_state(const struct forecast_input *in);
/* The file of that policy in what ci_host_json() says; NULL: there is none. */
const json_t *forecast__policy_file(const json_t *ci, const char *id);
/* Are the counters of the evaluation there? */
bool forecast__is_counted(const json_t *context);

/*
 * Lists, other policies, events
 */

void forecast__judge_block_list(const struct judge *j);
void forecast__judge_policies(const struct judge *j);
void forecast__judge_events(const struct judge *j);

#endif
