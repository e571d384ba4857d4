/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The WinPmem drivers that their authors publish, and which of them fits a host. The files are not
 * part of ramseal: versions, hashes and signatures are those that `ramseal driver inspect` shows.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_DRIVER_KNOWN_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_DRIVER_KNOWN_H

#include "agent/collect/acquire/driver_forecast.h"

/*
 * {"version":, "name":, "sha256":, "repository":, "path":, "commit":} of the published file with
 * this SHA-256 (lower-case hexadecimal digits). The caller owns it. JSON null: it is none of them;
 * NULL if memory ran out.
 */
json_t *driver_known_json(const char *sha256);

/*
 * A list of all of them, the one to try first in front: the members above, and "forecast"
 * (driver_forecast_json()) for the host of `in`, whose `driver` is not used. What its policies said
 * about another driver is ignored. No "forecast" if in->facts is NULL. The caller owns it; NULL if
 * memory ran out.
 */
json_t *driver_known_list(const struct forecast_input *in);

/* As a finding for `check`: which file to get, from where, and whether it will load there. */
void driver_known_check(const json_t *list, struct findings *to);

/* As text: some lines for each. */
void driver_known_print(const json_t *list, FILE *out);

#endif
