/* SPDX-License-Identifier: Apache-2.0 */
/* The little that we need to know about a terminal. */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_TERMINAL_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_TERMINAL_H

#include <stdbool.h>

/* True for a terminal on which a line can be erased (not a dumb one). */
bool terminal_can_redraw(int fd);

/* How wide it is: what the terminal says, else $COLUMNS, else 80. */
unsigned terminal_columns(int fd);

#endif
