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
 * "whql_enforcement":, "blocklist":, "secure_boot":, "server":}, each true, false, or null where
 * nobody tells; "blocklist_by": "registry", "memory integrity" or "default", or null;
 * "code_integrity": {"value":, "names":} or null. What runs wins over what is set. The caller owns
 * it. Null of a system other than Windows; NULL if memory ran out. `context` may be NULL.
 */
json_t *driver_policy_json(const json_t *facts, const json_t *context);

/*
 * One sentence for each that stands in the way, or that should be known. `driver` is what would be
 * loaded (driver_session_inspect()), or NULL if nobody has named one. Only a driver without a
 * signature stops.
 */
void driver_policy_check(const json_t *policy, const json_t *driver, struct findings *to);

#endif
