/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows' policies on drivers, and what each of them means for a memory driver that has yet to be
 * loaded. Nothing is read here: the values are those of host_describe() and of context_of_host().
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_DRIVER_POLICY_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_DRIVER_POLICY_H

#include "agent/collect/acquire/preflight.h"

/*
 * {"signatures_checked":, "test_signing":, "application_control":, "memory_integrity":,
 * "whql_enforcement":, "blocklist":, "secure_boot":, "server":}, each true, false, or null if not
 * known; "blocklist_by": "registry", "memory integrity" or "default", or null; "code_integrity":
 * {"value":, "names":} or null. The running state takes precedence over the configured one. The
 * caller owns the result. Null if the system is not Windows; NULL if out of memory. `context` may
 * be NULL.
 */
json_t *driver_policy_json(const json_t *facts, const json_t *context);

/*
 * Adds a finding for each policy that is in the way or worth knowing. `driver` is the one to be
 * loaded (driver_session_inspect()), or NULL if none is named. Only an unsigned driver is a reason
 * not to start.
 */
void driver_policy_check(const json_t *policy, const json_t *driver, struct findings *to);

#endif
