/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `ramseal acquire` is asked to do, and the two ways to do it: into a sealed container or into
 * an image. commands/acquire.c has the options and chooses.
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
 * When page files are copied, relative to the memory. Copying both concurrently finishes sooner,
 * but the memory takes longer (by 12 % in a guest with a swap partition in use, by 77 % with a page
 * file as fast as memory on two CPUs), and it is memory that changes meanwhile. Guided: slots that
 * page tables name are read right after those tables (collect/order/slots.h), and the rest after
 * the memory; if the memory is not read in guided order, all of it after the memory.
 */
enum pagefile_time { PAGEFILE_BEFORE, PAGEFILE_AFTER, PAGEFILE_CONCURRENT, PAGEFILE_GUIDED };

/* Which passes over the page tables are made. */
enum pagetables { TABLES_BOTH, TABLES_BEFORE, TABLES_AFTER, TABLES_NONE };

/*
 * zstd's level 1 keeps up with every source that we have measured. Higher levels save space but
 * cost time, and time means smear.
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
	const char *map; /* a file with the addresses of a raw image's bytes; or NULL */
	struct driver_options driver;
	const char *output;
	struct network_options network;
	const char *statement; /* "-": stdout; NULL: only in the summary of --log-json */
	const char *summary;   /* "-": stdout; NULL: only in the log */
	const char *timestamp_url, *timestamp_ca; /* of the authority; a PEM file */
	struct level_choice level;
	struct disk_options disk;
	struct cli_strings files;
	size_t pagefile; /* enum pagefile_time */
	bool no_pagefile;
	bool hibernation;
	bool system_handle;
	size_t pagetables;         /* enum pagetables */
	const struct order *order; /* NULL: the default for the source */
	uint64_t threads;          /* 0: as shared/program/share.h says */
	uint64_t nice;             /* where the user says it; shared/program/share.h */
	bool fast;
	bool force;
	uint64_t read_timeout; /* seconds; 0: none */
	struct recipient_options recipient;
	const struct age_recipients *to; /* its keys; NULL or none: no encryption */
	bool detach;
	const char *state;
	bool allow_second;
	struct running *running; /* the state that others see; NULL: none */
};

/*
 * Opens the source that the options name. ST_NO_SOURCE if it names no memory; otherwise as
 * drv_open(), with ST_INPUT for a file of the wrong kind. A source with its own clock becomes the
 * clock until it is closed.
 */
enum status acquire_open_source(const struct acquire_options *o, struct drv **ret, struct err *e);
void acquire_close_source(struct drv *d); /* NULL is fine */

/*
 * What acquiring into a container and into an image have in common. Zero-initialise;
 * acquire_close() frees.
 */
struct acquire_base {
	struct driver_session *driver;
	json_t *forecast, *code_integrity; /* driver_forecast_here(); NULL: no driver was loaded */
	struct drv *source;
	struct reading reading; /* the watchdog over it */
	struct memory_changes changes;
	struct host_limits limits;
	unsigned threads;      /* for compression */
	const char *inputs[2]; /* the file that is the source, if it is one */
	char *output;          /* the output's path */
};

/* Loads the driver, opens the source, and lowers our priority (acquire_begin_share()). */
enum status acquire_open(const struct cli *cli, const struct acquire_options *o, size_t *spool,
			 struct acquire_base *b, struct err *e);
void acquire_close(struct acquire_base *b);

/* ST_OUTPUT if b->output is also the file for the summary or the state. */
struct summary;
enum status acquire_check_output(const struct acquire_options *o, const struct acquire_base *b,
				 struct summary *s, struct err *e);

/*
 * The output's path, for free(): the one given, or the host's name and the time (for an image as
 * the source, the image's name). If a directory was given, a file of that name in it. `info` is
 * NULL if there is no source yet.
 */
enum status acquire_output_path(const struct acquire_options *o, const struct drv_info *info,
				const char *suffix, char **ret, struct err *e);
/* Chooses the same name below an address that ends in '/'; `info` as above. */
enum status acquire_name_remote(const struct acquire_options *o, const struct drv_info *info,
				const char *suffix, struct network *n, struct err *e);

/*
 * ST_UNREADABLE if the source fills what it cannot read with zeros: nobody can tell whether it did.
 */
enum status acquire_check_source(const struct drv_info *info, struct err *e);

/*
 * Plans which page files and other files to copy, for both `check` and `acquire`: from the disk
 * that the options name, which is opened, or else from the machine whose memory `source` is (NULL:
 * this one). *ret_disk is the caller's, NULL if no disk is named; the plan borrows `o`. ST_USAGE,
 * or why the disk cannot be opened.
 */
struct files_plan;
enum status acquire_plan_files(const struct cli *cli, const struct acquire_options *o,
			       struct drv *source, struct disk **ret_disk, struct files_plan *ret,
			       struct err *e);
/* True if the options name a disk. Files that are missing there were asked for. */
bool acquire_names_disk(const struct acquire_options *o);

/*
 * Before anything is read from `source`: finds the limits of this process and, if the source is
 * this machine's memory or --nice is given, lowers its priority until share_end(). *ret_threads is
 * for compression; *spool, the memory for a link in bytes, may be reduced. ST_NOMEM if a limit
 * allows too little.
 */
enum status acquire_begin_share(const struct cli *cli, const struct acquire_options *o,
				const struct drv_info *source, struct host_limits *ret,
				unsigned *ret_threads, size_t *spool, struct err *e);

/* Logs what the source is and what it cannot report, before it starts. */
void acquire_announce_source(const struct drv_info *info);

/* ST_OUTPUT if the state file is also the output, the statement or the summary. */
enum status acquire_check_state(const struct acquire_options *o, const char *output, struct err *e);

/*
 * Source and output are open: `output` is the output's name (an address if `remote`), `where` its
 * temporary one. Publishes this in the state file; a detached acquisition now lets its parent go.
 */
enum status acquire_is_ready(const struct acquire_options *o, const char *output, bool remote,
			     const char *where, struct err *e);

/* Publishes where the bytes are now. */
void acquire_tell_where(const struct acquire_options *o, const char *where, bool remote);

/*
 * What a detached process says when it is ready: {"schema": "ramseal-detached-1", "pid":, "state":,
 * "output":, "in_job":}, the last only on Windows. If the output's path is too long, only its end
 * is shown, after "...". NULL if out of memory.
 */
json_t *acquire_detached_json(const char *state, const char *output);

/* ST_USAGE if the state file's path is too long for that message. */
enum status acquire_check_detached(const char *state, struct err *e);

/* Everything that the options ask for, into one container. */
enum status acquire_container(const struct cli *cli, const struct acquire_options *o,
			      struct summary *s, struct err *e);

/* Memory alone, into an image of the format that the options name. */
enum status acquire_image(const struct cli *cli, const struct acquire_options *o, struct summary *s,
			  struct err *e);

#endif
