/* SPDX-License-Identifier: Apache-2.0 */
/* Between host.c and the platform's half of it. */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_HOST_FACTS_H
#define RAMSEAL_AGENT_COLLECT_HOST_HOST_FACTS_H

#include <jansson.h>

/*
 * facts[section][key] = value, consuming it. A NULL value is a fact that is not known, and is left
 * out.
 */
void host__put(json_t *facts, const char *section, const char *key, json_t *value);

/* Adds the platform's facts. */
void host__facts(json_t *facts);

/* A path from which the running program can be read, for free(); NULL if out of memory. */
char *host__own_executable(void);

#endif
