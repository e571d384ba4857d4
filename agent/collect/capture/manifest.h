/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manifest's lines, as formats/MANIFEST.md names their keys, as they are written;
 * shared/container/manifest_read.h reads them. All return NULL if memory ran out; the caller owns
 * what they return.
 */
#ifndef RAMSEAL_AGENT_COLLECT_CAPTURE_MANIFEST_H
#define RAMSEAL_AGENT_COLLECT_CAPTURE_MANIFEST_H

#include <jansson.h>

#include "agent/collect/capture/sealer.h"
#include "agent/collect/capture/stream_pass.h"
#include "driver-interface/drv.h"

#define MANIFEST_VERSION  1

/* Unreadable ranges that a summary lists; the chunks have them all. */
#define MANIFEST_GAPS_MAX 100

/* {"name":, "path":, "silent":, …} */
json_t *manifest_source(const struct drv_info *info);

/*
 * Of the "begin" line of an image: what it says of the machine that ramseal runs on goes into an
 * object "made_on", because it is not the one whose memory this is.
 */
enum status manifest_move_machine(json_t *begin, struct err *e);

/* [{"origin":, "bytes":, "ranges": [{"first":, "last":}], "faults": {…}}], maps[0] first. */
json_t *manifest_maps(const struct drv_info *info);

/* The same of maps that were asked for again. */
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
