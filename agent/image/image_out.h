/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing an image, for `export`, `extract` and `acquire --format`: the output under its temporary
 * name, the hash, the list of gaps beside it, the summary.
 *
 *	image_out_open() .. image_out_write() .. image_out_json() .. image_out_close()
 */
#ifndef RAMSEAL_AGENT_IMAGE_IMAGE_OUT_H
#define RAMSEAL_AGENT_IMAGE_IMAGE_OUT_H

#include "agent/shared/output/hash_sink.h"
#include "agent/image/image_captures.h"
#include "agent/image/image_options.h"
#include "agent/image/image_pass.h"
#include "agent/shared/output/output.h"
#include "agent/shared/output/output_set.h"
#include "agent/shared/program/json.h"
#include "formats/image/dmp.h"
#include "formats/image/e01.h"
#include "formats/image/kdump.h"

/* All borrowed until image_out_close(). */
struct image_request {
	const struct image_options *options; /* `format` is set */
	const char *path;                    /* as output_options.path, */
	const char *name;                    /* and name */
	bool force;
	const char *const *inputs;       /* as output_options.inputs */
	bool partial;                    /* the input is itself incomplete */
	bool once;                       /* it cannot be read again: too little space only warns */
	const struct range_list *ranges; /* as image_spec.ranges */
	uint64_t end;                    /* as image_spec.end */
	const struct image_kernel *kernel; /* for formats that want one; or NULL */
	struct dmp_kernel *dmp;            /* for a crash dump; or NULL */
	int level;                         /* for formats that compress */
	unsigned threads;
	const struct image_captures *captures; /* NULL: each page was captured once */
	enum progress_mode progress;
	const char *phase; /* for the progress: "export" */
};

struct image_out {
	struct image_request request;
	struct image_spec spec;
	struct e01_settings e01;
	struct kdump_settings kdump;
	struct output *out;     /* or */
	struct output_set *set; /* of formats that make their own files */
	bool hashed;            /* `out` is a hash sink */
	struct image_writer *writer;
	struct image_result result;
	struct output *gaps;               /* the list; NULL: there is none */
	char sha256[SHA256_HEX_SIZE];      /* of the file as written; "": not known */
	char gaps_sha256[SHA256_HEX_SIZE]; /* of the list, once it is written */
	bool complete;                     /* it is complete and has its final name */
};

/* For a list of pages without content. All borrowed except `origin`, which is consumed. */
struct image_gaps {
	const char *image; /* its name */
	json_t *origin;    /* where the pages came from */
	const char *format;
	bool complete; /* nothing is missing because of an early end */
	const struct tally *tally;
	const struct range_list *ranges;
	uint64_t damaged; /* pages; or */
#define IMAGE_DAMAGE_UNKNOWN UINT64_MAX
	const struct image_captures *again; /* NULL: each page was captured once */
	const struct dmp_kernel *dmp; /* for a crash dump: the bytes that were changed; or NULL */
};

/* The list that lies beside an image; NULL if out of memory. */
json_t *image_gaps_json(const struct image_gaps *g);

/* image_out_close() also after a failure. */
enum status image_out_open(const struct image_request *r, struct image_out *ret, struct err *e);
void image_out_close(struct image_out *x);

/*
 * Writes the image and the list of its gaps. `origin` (consumed) says in that list where the pages
 * came from. ST_INTERRUPTED and ST_SOURCE_FAILED: what was read until then keeps its temporary
 * name; the list has the rest as skipped, and keeps its temporary name too.
 */
enum status image_out_write(struct image_out *x, struct image_pages *from, json_t *origin,
			    struct err *e);

/* True if it has only gaps. */
bool image_out_is_empty(const struct image_out *x);

/* ST_UNREADABLE if the image has gaps. */
enum status image_out_outcome(const struct image_out *x, const char *path, struct err *e);

/* Its current name, which is temporary until it is complete. */
const char *image_out_where(const struct image_out *x);

/* What was written, for a summary; NULL if out of memory. */
json_t *image_out_json(const struct image_out *x);
/* The same as a line of text. */
#define IMAGE_OUT_TEXT_MAX 1536
void image_out_text(const struct image_out *x, char ret[static IMAGE_OUT_TEXT_MAX]);

#endif
