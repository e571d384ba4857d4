/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by check.c, which collects the answers, and check_tell.c, which prints them. */
#ifndef RAMSEAL_AGENT_COMMANDS_CHECK_INTERNAL_H
#define RAMSEAL_AGENT_COMMANDS_CHECK_INTERNAL_H

#include "agent/collect/acquire/acquire.h"
#include "agent/collect/acquire/preflight.h"
#include "agent/collect/acquire/room.h"
#include "agent/commands/check_link.h"

struct check_options {
	struct acquire_options acquire;
	bool probe_link;
	bool citool;
	bool json;
};

/* Everything that `check` has learned. */
struct check {
	const struct check_options *o;
	json_t *driver;     /* the one to be loaded; NULL: none */
	struct drv *source; /* NULL: none, or none before a driver is loaded */
	struct probe probe;
	struct room_sample *memory_sample, *file_sample;
	struct disk *disk;
	struct pagefile_list pagefiles;
	uint64_t memory_bytes, pagefile_bytes;
	struct age_recipients to; /* none: it is not encrypted */
	char *output;
	struct check_link link;
	struct output_need need;
	uint64_t room;
	json_t *facts;
	json_t *policy;   /* on drivers; null where there is none */
	json_t *ci;       /* ci_host_json() */
	json_t *forecast; /* whether the driver will load; NULL: there is none to load */
	json_t *files;    /* driver_known_list(), if no driver was named; or NULL */
	json_t *context;  /* what the registry of this Windows says; NULL: there is none */
	struct findings findings;
};

/* Also ROOM_DOUBTFUL if the free space or the size of the memory is not known. */
enum output_room check__room(const struct check *c);

/* `starts`: acquire would start, and end with `st`. NULL without memory. */
json_t *check__json(const struct check *c, bool starts, enum status st);
void check__print(const struct check *c, bool starts, enum status st);

#endif
