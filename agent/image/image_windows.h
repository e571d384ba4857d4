/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before a crash dump is written: identifies Windows, fills in the header, finds which pages exist,
 * and which bytes debuggers need to be different from memory.
 */
#ifndef RAMSEAL_AGENT_IMAGE_IMAGE_WINDOWS_H
#define RAMSEAL_AGENT_IMAGE_IMAGE_WINDOWS_H

#include <jansson.h>

#include "agent/image/image_pass.h"
#include "agent/shared/container/container.h"
#include "agent/shared/kernel/dump_facts.h"
#include "agent/shared/program/json.h"

/* Must not be moved. Zero-initialise; image_windows_deinit() in any case. */
struct image_windows {
	struct dump_facts dump;
	struct range_list present; /* of a container: the pages that have content */
};

/* True of dmp and dmp-full. */
bool image_is_dmp(const struct image_format *f);

/*
 * Both: ST_INPUT if the memory is from Linux; ST_OK if little or nothing was found, with a log line
 * about what that means for which tool; ST_NOMEM. `patch` as in dump_facts_init().
 */

/* From the stream `memory` of a container; `ranges` will be in the dump. */
enum status image_windows_of_container(struct container *in, uint32_t memory,
				       const struct range_list *ranges, unsigned threads,
				       bool patch, struct image_windows *ret, struct err *e);
/*
 * From a source: an image by `threads` threads through `pages`, a live machine on the calling
 * thread.
 */
enum status image_windows_of_source(struct drv *source, struct image_pages *pages, unsigned threads,
				    bool patch, struct image_windows *ret, struct err *e);
void image_windows_deinit(struct image_windows *w);

/*
 * Bytes of a dump that differ from memory, for the list of gaps: [{"what":, "address":, "bytes":,
 * "original":, "written":}], in hexadecimal digits. Empty if there are none; NULL if out of memory.
 */
json_t *image_patched_json(const struct dmp_kernel *k);

/*
 * For the summary of a dump, "kernel": {"os":, "dtb":, "build":, "kdbg": {"va":, "encoded":,
 * "patched":} or null, "modules":, "process_list":, "processors":, "system_time":, "context":}.
 */
json_t *image_windows_json(const struct image_windows *w);

#endif
