/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory pass: every range of a source, in order of address, into a container.
 */
#ifndef RAMSEAL_AGENT_MEMORY_H
#define RAMSEAL_AGENT_MEMORY_H

#include "agent/paging/roots.h"
#include "agent/stream_pass.h"
#include "driver-interface/drv.h"

struct memory_plan {
	struct drv *source;
	struct root_watch *watch;  /* is shown every page that was read; or NULL */
	struct stream_plan stream; /* without feed, label and total */
};

/* Zero-initialise. */
struct memory_result {
	struct stream_result stream;
	/*
	 * ST_OK, ST_SOURCE_FAILED or ST_INTERRUPTED: why pages are skipped. The container holds
	 * their states all the same, and can be closed.
	 */
	enum status stopped;
	struct err why;
};

void memory_result_deinit(struct memory_result *r);

/*
 * Reads every range of the source's first map. ST_OK also when it was stopped (see the result);
 * otherwise ST_OUTPUT or ST_NOMEM, and the container ends with the last whole chunk.
 */
enum status memory_acquire(const struct memory_plan *plan, struct memory_result *ret,
			   struct err *e);

#endif
