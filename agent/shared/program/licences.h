/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The licences of ramseal and of the libraries that this executable contains, which the build packs
 * into it (build/licence-text), so that whoever has the executable has them.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_LICENCES_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_LICENCES_H

#include <stdio.h>

#include "formats/base/err.h"

/* UTF-8, some thousands of lines. ST_OUTPUT if `to`, which is stdout, takes no more. */
enum status licences_print(FILE *to, struct err *e);

/* Made by the build: a zstd frame, and how many bytes are in it. */
extern const uint8_t licences_packed[];
extern const size_t licences_packed_size, licences_size;

#endif
