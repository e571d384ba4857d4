/* SPDX-License-Identifier: Apache-2.0 */
/* The Linux side: the mailbox and the bell. */
#ifndef WINPMEM_KERNEL_TRANSPORT_H
#define WINPMEM_KERNEL_TRANSPORT_H

#include "kernel.h"

/* Tells the Linux side to look at the mailbox. */
void transport_ring(void);

/* Halts until the other side rings. */
void transport_wait(void);

#endif
