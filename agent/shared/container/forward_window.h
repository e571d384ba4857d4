/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A blob over what can only be read forward. What is read goes into a window that holds the record
 * that is looked at, with its header and payload; what lies before goes when there is no more room.
 */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_FORWARD_WINDOW_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_FORWARD_WINDOW_H

#include "formats/base/io.h"

struct forward_window {
	struct blob blob;
	/* As much as there is at the moment, at most `len` bytes. *got is 0 at the end alone. */
	enum status (*pull)(void *arg, void *p, size_t len, size_t *got, struct err *e);
	void *arg;

	uint8_t *window;
	size_t room;
	size_t len;
	uint64_t base; /* offset of window[0] */
	uint64_t low;  /* nothing before it is wanted any more */
};

void forward_window_init(struct forward_window *w,
			 enum status (*pull)(void *arg, void *p, size_t len, size_t *got,
					     struct err *e),
			 void *arg);
void forward_window_deinit(struct forward_window *w);

#endif
