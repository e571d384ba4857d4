/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verifying a whole container: every record and every payload, in parallel.
 */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_VERIFY_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_VERIFY_H

#include "agent/shared/container/container.h"
#include "agent/shared/program/progress.h"
#include "formats/rsz/rsz_reader.h"

/*
 * ST_OK: sealed, and every bit as it was sealed. ST_CORRUPT: `ret` says how far it is whole (a bad
 * payload counts as damage at its record). Other statuses: it could not be read, and `ret` is
 * undefined.
 *
 * Reads it once, from front to back, so `in` may be a pipe. `told` (or NULL) gets what the manifest
 * says about the acquisition: with ST_OK, what container_outcome() and container_acquisition_json()
 * need; in any case, its identity. container_close() frees that.
 */
enum status container_verify(struct blob *in, unsigned threads, enum progress_mode progress,
			     struct rsz_scan_result *ret, struct container *told, struct err *e);

#endif
