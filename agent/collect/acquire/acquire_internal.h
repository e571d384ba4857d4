/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What acquire_container.c, which reads, shares with acquire_begin.c, which describes the machine
 * before anything is read, and with acquire_end.c, which seals whatever there is.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_ACQUIRE_INTERNAL_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_ACQUIRE_INTERNAL_H

#include "agent/collect/acquire/acquire.h"
#include "agent/collect/acquire/files.h"
#include "agent/collect/acquire/summary.h"
#include "agent/collect/order/memory.h"
#include "agent/collect/capture/sealer.h"
#include "agent/collect/acquire/tables.h"
#include "agent/collect/host/file_mark.h"
#include "agent/collect/order/slots.h"
#include "agent/shared/output/output.h"
#include "formats/proof/statement.h"

/* One thread is enough while memory is read: the disk is slower than it. */
#define FILE_THREADS 1

/* Everything that lives from the first line of the manifest to the last. */
struct acquisition {
	const struct cli *cli;
	const struct acquire_options *o;
	struct summary *summary;
	struct acquire_base base;
	struct output *out;
	struct sealer *sealer;
	struct memory_result memory;
	uint32_t memory_stream;  /* UINT32_MAX: not declared yet */
	bool memory_named;       /* every page of it is in the container, at least as skipped */
	struct network *network; /* how, if that is an address */
	bool encrypted;          /* for o->to */
	struct disk *disk;       /* of --image or --volume */
	struct files_plan files_plan;
	struct files files;
	struct slots *slots;             /* page files read with the memory; NULL: they are not */
	struct physmem_drv *swap_memory; /* for their look into the swap cache */
	const char *no_swap_cache;       /* why they do not; NULL: they do, or this is not Linux */
	struct tables_result before, after;
	struct file_mark mark;          /* of a source that is an image, when it was opened */
	bool still;                     /* it is, and it cannot change while it is read */
	struct tables_result image;     /* its tables then, as they were found before it was read */
	struct tables_result image_end; /* and after it */
	struct root_watch watch;
	bool watching;
	struct candidates candidates; /* of an image whose kernel is not known while it is read */
	bool collecting;
	char root[SHA256_HEX_SIZE];
	struct statement stated;                /* as far as it is known */
	struct output *statement_out;           /* NULL: none, or stdout */
	char *statement;                        /* its text, once the container is closed */
	bool statement_kept;                    /* and it is in that file */
	struct output *timestamp_out;           /* NULL: none is asked for */
	char *timestamp_ca;                     /* PEM */
	char *timestamp_problem;                /* why there is none */
	char timestamp_sha256[SHA256_HEX_SIZE]; /* of the file; "": there is none */
};

/*
 * acquire_container.c
 */

struct stream_plan acquire__stream_plan(const struct acquisition *a, unsigned threads,
					enum progress_mode progress);
const struct order *acquire__order(const struct acquisition *a);
/* The metadata of the memory's stream, owned by the caller. NULL if out of memory. */
json_t *acquire__memory_meta(const struct acquisition *a);

/* acquire_begin.c: checks and opens the output, and writes the manifest's first line. */
enum status acquire__begin(struct acquisition *a, struct err *e);

/*
 * acquire_end.c
 */

/* The status that the command ends with: the worst one, unless the output failed. */
enum status acquire__outcome(const struct acquisition *a, enum status output, struct err *e);
/* Closes the container whatever happened before, using the space reserved for this. */
enum status acquire__end(struct acquisition *a, enum status st, struct err *e);
/* The one line for people, and the object for programs. */
void acquire__summarise(const struct acquisition *a, enum status st, const struct err *e);

/* acquire_statement.c: the statement (formats/STATEMENT.md) */

/* Opens the statement's file before anything is read. */
enum status acquire__begin_statement(struct acquisition *a, struct err *e);
/* Copies facts from the manifest's first line into the statement. */
void acquire__state_begin(struct acquisition *a, const json_t *begin);
/*
 * Makes the statement, whether or not the container could be closed, and writes it. `st` is how the
 * acquisition ended; returns that, or ST_OUTPUT if only the statement failed.
 */
enum status acquire__end_statement(struct acquisition *a, enum status st, struct err *e);
/* The statement's file, for the summary. NULL if out of memory. */
json_t *acquire__statement_json(const struct acquisition *a);

/* acquire_timestamp.c: an authority's time stamp over the statement, in STATEMENT.tsr */

enum status acquire__begin_timestamp(struct acquisition *a, struct err *e);
/* After acquire__end_statement(). A failure is only a warning, because the container is sealed. */
void acquire__end_timestamp(struct acquisition *a);
/* {"file":, "problem":}; null if none was asked for. NULL if out of memory. */
json_t *acquire__timestamp_json(const struct acquisition *a);

#endif
