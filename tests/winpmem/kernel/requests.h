/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of the Linux side, carried out as those of a Windows program. */
#ifndef WINPMEM_KERNEL_REQUESTS_H
#define WINPMEM_KERNEL_REQUESTS_H

#include "kernel.h"

/* In whose address space. */
uint64_t request_cr3(const struct machine_request *request);

/* On a thread of its own. */
void request_run(const struct machine_request *request, struct machine_reply *reply);

#endif
