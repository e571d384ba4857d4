/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `ramseal acquire` is asked to do, and its two ways to do it: into a sealed container, or
 * into an image. commands/acquire.c has the options and chooses.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_ACQUIRE_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_ACQUIRE_H

#include "agent/collect/acquire/changes.h"
#include "agent/collect/acquire/disk_options.h"
#include "agent/collect/capture/reading.h"
#include "agent/collect/host/driver.h"
#include "agent/collect/host/limits.h"
#include "agent/collect/stores/network_options.h"
#include "agent/image/image_out.h"
#include "agent/shared/output/recipients.h"
#include "agent/shared/program/cli.h"
#include "driver-interface/drv.h"

struct level_choice {
	int level;
	bool automatic;
};

/*
 * When page files are copied, relative to the memory. Side by side they are done sooner, but the
 * memory takes longer (by 12 % in a guest with a swap partition in use, by 77 % with a page file as
 * fast as memory on two CPUs), and it is the memory that changes while one waits. Guided: what the
 * page tables name is read right behind them (collect/order/slots.h), the rest after the memory;
 * all of it after, if the memory is not read by its tables.
 */
enum pagefile_time { PAGEFILE_BEFORE, PAGEFILE_AFTER, PAGEFILE_CONCURRENT, PAGEFILE_GUIDED };

/* Which passes over the page tables are made. */
enum pagetables { TABLES_BOTH, TABLES_BEFORE, TABLES_AFTER, TABLES_NONE };

/*
 * zstd's level 1 keeps up with every source that we have measured; what higher ones gain in size
 * they lose in time, and time is smear.
 */
#define ACQUIRE_LEVEL 1

struct order;
struct running;

#define MAP_HELP                                                                                   \
	"where the bytes of a raw image belong: a text file with one address range per line, in "  \
	"hexadecimal (0-bfffffff), in the order of the image, or followed by @OFFSET"

struct acquire_options {
	struct image_options image; /* without a format: into a container */
	const char *source;
	const char *map; /* where the bytes of a raw image belong; or NULL */
	struct driver_options driver;
	const char *output;
	struct network_options network;
	const char *statement; /* "-": stdout; NULL: it is only in the summary of --log-json */
	const char *summary;   /* "-": stdout; NULL: it is only in the log */
	const char *timestamp_url, *timestamp_ca; /* of an authority; a file of PEM */
	struct level_choice level;
	struct disk_options disk;
	struct cli_strings files;
	size_t pagefile; /* enum pagefile_time */
	bool no_pagefile;
	bool hibernation;
	size_t pagetables;         /* enum pagetables */
	const struct order *order; /* NULL: what suits the source */
	uint64_t threads;          /* 0: as shared/program/share.h says */
	uint64_t nice;             /* where the user says it; shared/program/share.h */
	bool fast;
	bool force;
	uint64_t read_timeout; /* seconds; 0: none */
	struct recipient_options recipient;
	const struct age_recipients *to; /* those; NULL or none: it is not encrypted */
	bool detach;
	const char *state;
	bool allow_second;
	struct running *running; /* what others see of it; NULL: nothing */
};

/*
 * Opens the source that the options name. ST_NO_SOURCE if it names no memory; otherwise as
 * drv_open(), with ST_INPUT for a file that is not what it should be. A source that has a clock
 * of its own is the clock until it is closed.
 */
enum status acquire_open_source(const struct acquire_options *o, struct drv **ret, struct err *e);
void acquire_close_source(struct drv *d); /* NULL is fine */

/* What a container and an image begin with alike. Zero-initialise; acquire_close() frees. */
struct acquire_base {
	struct driver_session *driver;
	struct drv *source;
	struct reading reading; /* the watchdog over it */
	struct memory_changes changes;
	struct host_limits limits;
	unsigned threads;      /* that compress */
	const char *inputs[2]; /* the file that is the source, if it is one */
	char *output;          /* where to */
};

/* Loads the driver, opens the source, and steps back (acquire_begin_share()). */
enum status acquire_open(const struct cli *cli, const struct acquire_options *o, size_t *spool,
			 struct acquire_base *b, struct err *e);
void acquire_close(struct acquire_base *b);

/* ST_OUTPUT if b->output is where the summary or the state is to be. */
struct summary;
enum status acquire_check_output(const struct acquire_options *o, const struct acquire_base *b,
				 struct summary *s, struct err *e);

/*
 * Where it goes, for free(): what was named, or else a name and the time; of an image its own name,
 * not that of this machine. In a directory that was named the same. `info` is NULL if there is no
 * source yet.
 */
enum status acquire_output_path(const struct acquire_options *o, const struct drv_info *info,
				const char *suffix, char **ret, struct err *e);
/* Below an address that ends in '/', the same name as where none was given; `info` as above. */
enum status acquire_name_remote(const struct acquire_options *o, const struct drv_info *info,
				const char *suffix, struct network *n, struct err *e);

/*
 * ST_UNREADABLE of a source that fills what it cannot read with zeros: it may have, and nobody can
 * tell.
 */
enum status acquire_check_source(const struct drv_info *info, struct err *e);

/*
 * Which page files and other files the options ask for: those of the disk that they name, which is
 * opened, or else of the machine whose memory `source` is (NULL: of this one). Both `check` and
 * `acquire` decide by this. *ret_disk is the caller's, NULL if none is named; `o` is borrowed by
 * the plan. ST_USAGE, or as opening the disk fails.
 */
struct files_plan;
enum status acquire_plan_files(const struct cli *cli, const struct acquire_options *o,
			       struct drv *source, struct disk **ret_disk, struct files_plan *ret,
			       struct err *e);
/* True if a disk is named, so that what cannot be found there was asked for. */
bool acquire_names_disk(const struct acquire_options *o);

/*
 * Before anything is read of `source`: what this process is allowed, and, if it is this machine's
 * memory or --nice says so, how far it steps back (until share_end()). *ret_threads compress;
 * *spool, the bytes of memory for a link, may become less. ST_NOMEM if a limit allows too little.
 */
enum status acquire_begin_share(const struct cli *cli, const struct acquire_options *o,
				const struct drv_info *source, struct host_limits *ret,
				unsigned *ret_threads, size_t *spool, struct err *e);

/* Logs what the source is, and what it costs not to know, before it starts. */
void acquire_announce_source(const struct drv_info *info);

/* ST_OUTPUT if the state is where the output, the statement or the summary is to be. */
enum status acquire_check_state(const struct acquire_options *o, const char *output, struct err *e);

/*
 * The source is open, and so is the output: `output` is its name (an address if `remote`), `where`
 * its temporary one. Tells everyone who looks; of a detached one, lets go.
 */
enum status acquire_is_ready(const struct acquire_options *o, const char *output, bool remote,
			     const char *where, struct err *e);

/* Where the bytes are now, for those who look. */
void acquire_tell_where(const struct acquire_options *o, const char *where, bool remote);

/*
 * What a detached process says when it is ready: {"schema": "ramseal-detached-1", "pid":, "state":,
 * "output":, "in_job":}, the last only on Windows. Of an output that is too long the end is shown,
 * behind "...". NULL if out of memory.
 */
json_t *acquire_detached_json(const char *state, const char *output);

/* ST_USAGE if the path of the state leaves no room for that. */
enum status acquire_check_detached(const char *state, struct err *e);

/* Everything that the options ask for, into one container. */
enum status acquire_container(const struct cli *cli, const struct acquire_options *o,
			      struct summary *s, struct err *e);

/* Memory alone, into an image of the format that the options name. */
enum status acquire_image(const struct cli *cli, const struct acquire_options *o, struct summary *s,
			  struct err *e);

#endif
