/* SPDX-License-Identifier: Apache-2.0 */
/* Between host.c and the platform's half of it. */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_HOST_FACTS_H
#define RAMSEAL_AGENT_COLLECT_HOST_HOST_FACTS_H

#include <jansson.h>

/* facts[section][key] = value, consuming it. A NULL value is a fact that is not known: left out. */
void host__put(json_t *facts, const char *section, const char *key, json_t *value);

/* What the platform knows. */
void host__facts(json_t *facts);

/* A path under which the program that runs can be read, for free(); NULL if out of memory. */
char *host__own_executable(void);

#endif
