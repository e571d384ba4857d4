/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identifies the kernel before an ELF core or kdump is written. Readers of such a dump need
 * VMCOREINFO and the kernel's mappings in its headers, so what the source did not provide is
 * searched for in memory.
 */
#ifndef RAMSEAL_AGENT_IMAGE_IMAGE_KERNEL_H
#define RAMSEAL_AGENT_IMAGE_IMAGE_KERNEL_H

#include <jansson.h>

#include "agent/image/image_pass.h"
#include "agent/shared/container/container.h"
#include "agent/shared/kernel/linux_dump.h"
#include "agent/shared/program/json.h"

/* True if the acquisition found page tables of Windows. */
bool image_kernel_is_windows(struct container *in);

/*
 * Both: ST_OK if little or nothing was found, and also when interrupted; ST_NOMEM. `ret` is
 * zero-initialised, and linux_dump_deinit() frees it in any case. What the acquisition recorded is
 * used; otherwise all memory may have to be read, with `threads` threads.
 */

/* From the stream `memory` of a container. */
enum status image_kernel_of_container(struct container *in, uint32_t memory, unsigned threads,
				      struct linux_dump *ret, struct err *e);
/* From a source, whose pages `pages` provides. */
enum status image_kernel_of_source(struct drv *source, struct image_pages *pages, unsigned threads,
				   struct linux_dump *ret, struct err *e);

/*
 * For the summary of an ELF core or kdump, "kernel": {"os":, "vmcoreinfo": "source", "memory" or
 * null, "direct_map":, "image": {"va":, "pa":, "bytes":} or null}. For other formats: the end of
 * the list.
 */
struct json_field image_kernel_field(const struct image_format *f, const struct linux_dump *d);

#endif
