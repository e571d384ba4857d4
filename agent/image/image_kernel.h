/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before an ELF core or kdump is written: whose memory it is. Readers of such a dump want
 * VMCOREINFO and the kernel's mappings in its headers, so that what the source did not tell is
 * looked for in memory.
 */
#ifndef RAMSEAL_AGENT_IMAGE_IMAGE_KERNEL_H
#define RAMSEAL_AGENT_IMAGE_IMAGE_KERNEL_H

#include <jansson.h>

#include "agent/image/image_pass.h"
#include "agent/shared/container/container.h"
#include "agent/shared/kernel/linux_dump.h"
#include "agent/shared/program/json.h"

/* True if the acquisition found page tables, and they are those of Windows. */
bool image_kernel_is_windows(struct container *in);

/*
 * Both: ST_OK if little or nothing was found, and also when interrupted; ST_NOMEM. `ret` is
 * zero-initialised, and linux_dump_deinit() frees it in any case. Where the acquisition says what
 * it has found, that is believed; else all of the memory may have to be read, by `threads` threads.
 */

/* Of the stream `memory` of a container. */
enum status image_kernel_of_container(struct container *in, uint32_t memory, unsigned threads,
				      struct linux_dump *ret, struct err *e);
/* Of a source, whose pages `pages` gives. */
enum status image_kernel_of_source(struct drv *source, struct image_pages *pages, unsigned threads,
				   struct linux_dump *ret, struct err *e);

/*
 * For the summary of an ELF core or kdump, "kernel": {"os":, "vmcoreinfo": "source", "memory" or
 * null, "direct_map":, "image": {"va":, "pa":, "bytes":} or null}. Of another format: the end of
 * the list.
 */
struct json_field image_kernel_field(const struct image_format *f, const struct linux_dump *d);

#endif
