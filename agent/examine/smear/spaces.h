/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address spaces of a container, from what the two passes over the page tables wrote into its
 * manifest.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_SMEAR_SPACES_H
#define RAMSEAL_AGENT_EXAMINE_SMEAR_SPACES_H

#include <jansson.h>

#include "agent/shared/kernel/discover.h"

#define FATE_MAP(X)                                                                                \
	X(FATE_LIVED, "lived") /* both passes have it */                                           \
	X(FATE_ENDED, "ended") /* the first pass only */                                           \
	X(FATE_BORN, "born")   /* the second only */

enum fate {
#define X(name, text) name,
	FATE_MAP(X)
#undef X
		FATES,
	FATE_NOT_APPLICABLE = FATES /* of an image, which has one moment */
};

const char *fate_name(enum fate f);

/* One for each set of tables; several processes may run in it. */
struct smear_id {
	uint64_t dtb;
	bool listed; /* has a PID and a name */
	uint32_t pid;
	char *name;     /* text of the manifest; may hold control characters */
	size_t sharers; /* further processes with the same tables */
	enum fate fate;
	bool image;           /* the walk of the image's copy is counted here: once for each dtb */
	uint64_t pass_tables; /* table pages in both passes; known once the layout is chosen */
};

/* A process that shares its tables with one of a lower PID, for which they are counted. */
struct smear_sharer {
	uint32_t pid;
	uint64_t dtb;
};

struct smear_spaces {
	enum discover_os os;
	enum paging_mode mode;
	uint64_t ignore;
	bool cut; /* one of the passes did not come to its end */
	struct smear_id *at;
	size_t count;
	struct smear_sharer *sharers; /* of both passes; one may be there twice */
	size_t n_sharers;
};

/*
 * The process that is called `name`, in any case. Windows keeps 14 or 15 bytes of a name and Linux
 * 15, so a longer `name` means a process whose name has so many and begins the same. ST_INPUT: none
 * is called so. ST_USAGE: several are; the message has their PIDs.
 */
enum status smear_spaces_pid(const struct smear_spaces *s, const char *name, uint32_t *ret,
			     struct err *e);

/* True if the pass ("before" or "after") left its line. */
bool smear_spaces_has(const json_t *manifest, const char *when);

/*
 * ST_INPUT if one of the lines is missing, or if they come from no machine that we know. With
 * `one_pass` either line is enough, and what it names counts as having lived.
 */
enum status smear_spaces_load(struct smear_spaces *ret, const json_t *manifest, bool one_pass,
			      struct err *e);
/*
 * For an image, which cannot have changed: everything that its lines name, without a fate. ST_OK
 * also if there are none; then `ret->mode` is 0.
 */
enum status smear_spaces_load_still(struct smear_spaces *ret, const json_t *manifest,
				    struct err *e);
void smear_spaces_deinit(struct smear_spaces *s);

#endif
