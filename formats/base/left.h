/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread that hangs may still write to, and that was given up: it stays until the program
 * ends, and somebody points to it, so that whoever looks for leaks sees that it is none.
 */
#ifndef RAMSEAL_BASE_LEFT_H
#define RAMSEAL_BASE_LEFT_H

/* NULL is fine. From any thread. */
void left_keep(void *p);

#endif
