/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The licences of ramseal and of the libraries that this executable contains, embedded by the build
 * (build/licence-text), so that they come with the executable.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_LICENCES_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_LICENCES_H

#include <stdio.h>

#include "formats/base/err.h"

/* UTF-8, some thousands of lines. ST_OUTPUT if writing to `to`, which is stdout, fails. */
enum status licences_print(FILE *to, struct err *e);

/* Made by the build: a zstd frame, and its uncompressed size. */
extern const uint8_t licences_packed[];
extern const size_t licences_packed_size, licences_size;

#endif
