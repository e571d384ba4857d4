/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the manifest's lines; formats/MANIFEST.md has their keys, and
 * shared/container/manifest_read.h reads them. All return NULL if out of memory; the caller owns
 * the result.
 */
#ifndef RAMSEAL_AGENT_COLLECT_CAPTURE_MANIFEST_H
#define RAMSEAL_AGENT_COLLECT_CAPTURE_MANIFEST_H

#include <jansson.h>

#include "agent/collect/capture/sealer.h"
#include "agent/collect/capture/stream_pass.h"
#include "driver-interface/drv.h"

#define MANIFEST_VERSION  1

/* The most unreadable ranges in a summary; the chunks have them all. */
#define MANIFEST_GAPS_MAX 100

/* {"name":, "path":, "silent":, …} */
json_t *manifest_source(const struct drv_info *info);

/* What kind of machine the memory is of; NULL if the source does not know. */
json_t *manifest_machine(const struct drv_info *info);

/*
 * In the "begin" line of an image: moves the facts about the machine that ramseal runs on into an
 * object "made_on", because the memory is another machine's.
 */
enum status manifest_move_machine(json_t *begin, struct err *e);

/* [{"origin":, "bytes":, "ranges": [{"first":, "last":}], "faults": {…}}], maps[0] first. */
json_t *manifest_maps(const struct drv_info *info);

/* The same for maps that were asked for again. */
json_t *manifest_maps_again(const struct drv_maps *m);

/* [{"source":, "first":, "last":}] */
json_t *manifest_parts(const struct drv *d);

/* {"pages": {…}, "bytes":, "start_ns":, "end_ns":, "unreadable": […], "skipped": […]} */
json_t *manifest_stream(const struct stream_result *r);

/*
 * Kernel notes in the "begin" line: hexadecimal, under "kernel_notes". Beyond MANIFEST_NOTES_MAX
 * they are left out, with a warning.
 */
enum status manifest_set_notes(json_t *begin, const void *notes, size_t size, struct err *e);

/* {"wall_ns":, "mono_ns":}: both clocks now. */
json_t *manifest_clocks(void);

#endif
