/* SPDX-License-Identifier: Apache-2.0 */
/* The little that we need to know about a terminal. */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_TERMINAL_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_TERMINAL_H

#include <stdbool.h>

/* True for a terminal on which a line can be erased (not a dumb one). */
bool terminal_can_redraw(int fd);

/* How wide it is: what the terminal says, else $COLUMNS, else 80. */
unsigned terminal_columns(int fd);

/*
 * Windows: stdin is the keyboard of a console that only this process uses, and that closes with it:
 * somebody double-clicked the program. Elsewhere false.
 */
bool terminal_closes_with_us(void);

/* Waits for any key in that console. */
void terminal_wait_for_key(void);

/* How many columns of it a line may fill; 0 if it is no terminal. */
unsigned terminal_line(int fd);

#endif
