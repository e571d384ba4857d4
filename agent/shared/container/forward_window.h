/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A blob over input that can only be read forward. Its window holds the current record, with header
 * and payload; older bytes are dropped when there is no more space.
 */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_FORWARD_WINDOW_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_FORWARD_WINDOW_H

#include "formats/base/io.h"

struct forward_window {
	struct blob blob;
	/* Reads what is available, at most `len` bytes. *got is 0 only at the end. */
	enum status (*pull)(void *arg, void *p, size_t len, size_t *got, struct err *e);
	void *arg;

	uint8_t *window;
	size_t room;
	size_t len;
	uint64_t base; /* offset of window[0] */
	uint64_t low;  /* nothing before it is needed any more */
};

void forward_window_init(struct forward_window *w,
			 enum status (*pull)(void *arg, void *p, size_t len, size_t *got,
					     struct err *e),
			 void *arg);
void forward_window_deinit(struct forward_window *w);

#endif
