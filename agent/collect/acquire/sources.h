/* SPDX-License-Identifier: Apache-2.0 */
/* The table of sources (driver-interface/drv.h), as --help shows it. */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_SOURCES_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_SOURCES_H

#include <stdio.h>

/* Prints all sources with their kinds and the reasons: command.put_notes. */
void sources_put_notes(FILE *to);

#endif
