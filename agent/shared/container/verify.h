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
 * payload counts as damage at its record). Others: it could not be read, and `ret` is undefined.
 *
 * It is read once, from front to back; `in` can be one that can only be read so. `told` (or NULL)
 * gets what the manifest says of the acquisition: of a container that is ST_OK, as much as
 * container_outcome() and container_acquisition_json() want; of any, its identity.
 * container_close() frees that.
 */
enum status container_verify(struct blob *in, unsigned threads, enum progress_mode progress,
			     struct rsz_scan_result *ret, struct container *told, struct err *e);

#endif
