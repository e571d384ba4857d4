/* SPDX-License-Identifier: Apache-2.0 */
/* The Linux side: the mailbox and the bell. */
#ifndef WINPMEM_KERNEL_TRANSPORT_H
#define WINPMEM_KERNEL_TRANSPORT_H

#include "kernel.h"

/* Says that the mailbox has changed. */
void transport_ring(void);

/* Sleeps until the other side says so. */
void transport_wait(void);

#endif
