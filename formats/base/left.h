/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that an abandoned, hanging thread may still write to. It is kept until the program ends,
 * with a pointer to it so that leak checkers do not report it.
 */
#ifndef RAMSEAL_BASE_LEFT_H
#define RAMSEAL_BASE_LEFT_H

/* NULL is fine. From any thread. */
void left_keep(void *p);

#endif
