/* SPDX-License-Identifier: Apache-2.0 */
/* Between check.c, which finds out, and check_tell.c. */
#ifndef RAMSEAL_AGENT_COMMANDS_CHECK_INTERNAL_H
#define RAMSEAL_AGENT_COMMANDS_CHECK_INTERNAL_H

#include "agent/collect/acquire/acquire.h"
#include "agent/collect/acquire/preflight.h"
#include "agent/collect/acquire/room.h"
#include "agent/commands/check_link.h"

struct check_options {
	struct acquire_options acquire;
	bool probe_link;
	bool json;
};

/* All that was found out. */
struct check {
	const struct check_options *o;
	json_t *driver;     /* that would be loaded; NULL: none */
	struct drv *source; /* NULL: there is none, or not before there is a driver */
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
	json_t *policy;  /* on drivers; null where there is none */
	json_t *context; /* what the registry of this Windows says; NULL: there is none */
	struct findings findings;
};

/* ROOM_DOUBTFUL also where the room is not known, or how much memory there is. */
enum output_room check__room(const struct check *c);

/* `starts`: acquire would start, and end with `st`. NULL without memory. */
json_t *check__json(const struct check *c, bool starts, enum status st);
void check__print(const struct check *c, bool starts, enum status st);

#endif
