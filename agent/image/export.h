/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a stream of pages in a container to an image: `export`, and `extract` of files.
 */
#ifndef RAMSEAL_AGENT_IMAGE_EXPORT_H
#define RAMSEAL_AGENT_IMAGE_EXPORT_H

#include "agent/image/image_out.h"
#include "agent/shared/container/container.h"

struct export_plan {
	const struct cli *cli; /* its first operand is the container */
	struct container *in;  /* this one */
	const struct image_options *image;
	const char *output;
	const char *stream; /* NULL: the physical memory */
	int level;
	uint64_t threads; /* 0: the default */
	bool force;
	bool whole_file; /* byte for byte as long as the file was, not whole pages */
};

/* Writes the image, its list of gaps, and the summary. */
enum status export_stream(const struct export_plan *plan, struct err *e);

/*
 * The addresses of all pages in an image of a paged stream, tidy: captured ones and, for memory,
 * those that should have been. Zero-initialise `ret`.
 */
enum status export_ranges(const struct container *c, uint32_t stream, struct range_list *ret,
			  struct err *e);

/*
 * In bytes. A file may end in a hole that no extent covers: its size is in its metadata. `ranges`
 * as from export_ranges().
 */
uint64_t export_file_size(const struct rsz_stream_info *s, const struct range_list *ranges);

/* A stream without its bytes, for summaries: {"name":, "kind":, "metadata":}. */
json_t *export_stream_json(const struct rsz_stream_info *s);

/* {"container": `path`, "stream":, and what container_end_json() says} */
json_t *export_origin_json(const struct container *c, const char *path,
			   const struct rsz_stream_info *s);

/* ST_CORRUPT if the container is not sealed, although its content was exported. */
enum status export_check_end(const struct container *c, const char *path, struct err *e);

#endif
